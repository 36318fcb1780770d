"""What `--metrics` and `--window` add to a run: AUC, precision and so on; recent mistakes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.learners.arow import page_statistic
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.records import Metrics, Window

MOST_SCORES = 1 << 23
"""Scores of a run, of all its classes, that are kept for AUC: 64 MB."""
DRIFT_ALARM = 12.0
"""Page's statistic from which on the mistake rate has risen."""


class Ranking:
    """The scores of all rounds, from which AUC is computed exactly, as long as memory allows."""

    def __init__(self, most_scores: int = MOST_SCORES) -> None:
        self._most = most_scores
        self._scores, self._labels = array("d"), array("h")

    def add(self, scores: Floats, labels: Floats) -> None:
        """Add rounds with these f(x), a column per class if there are more than two."""
        if len(self._scores) <= self._most:  # one more shows that there were too many
            self._scores.frombytes(scores.tobytes())
            self._labels.frombytes(labels.astype(np.int16).tobytes())

    def auc(self) -> float | None:
        """P(f(x) > f(x')) + P(f(x) = f(x'))/2 for y = +1, y' = -1; None where it is not known.

        With more than two classes, each that occurs is ranked against the rest by its own score:
        the mean of these.
        """
        if not self._labels or len(self._scores) > self._most:
            return None
        labels = np.array(self._labels)
        scores = np.array(self._scores).reshape(len(labels), -1)
        columns = {1: scores[:, 0]} if scores.shape[1] == 1 else dict(enumerate(scores.T))
        areas = []
        for number, column in columns.items():
            negatives, positives = np.sort(column[labels != number]), column[labels == number]
            if pairs := 2 * len(positives) * len(negatives):
                below = np.searchsorted(negatives, positives, "left")
                not_above = np.searchsorted(negatives, positives, "right")
                areas.append(int(below.sum() + not_above.sum()) / pairs)
        return sum(areas) / len(areas) if areas else None


class RecentMistakes:
    """The mistake rate of the last N rounds, and where it rose.

    Page's test watches the mistakes, as `arow` does: with p their rate so far and q = p + (1-p)/4,
    g = max(0, g + log(q/p)) on a mistake, else g + log((1-q)/(1-p)). If g > 12, the rate has risen:
    the round is marked, and the test is reset.
    """

    def __init__(self, rounds: int, window: int) -> None:
        """N, after so many rounds that are not looked at."""
        self._rounds, self._window = rounds, window
        self._before = np.zeros(1)
        """Mistakes up to each of the last N rounds."""
        self._wrong, self._seen, self._page = 1, 2, 0.0
        self.drifts: list[int] = []
        """The rounds, from 1, in which the rate was found to have risen."""
        self.rate = 0.0

    def extend(self, mistaken: NDArray[np.bool_]) -> Floats:
        """The recent rate at each of these rounds."""
        totals = np.append(self._before, self._before[-1] + np.cumsum(mistaken))
        last = np.arange(len(self._before), len(totals))
        first = np.maximum(last - self._window, 0)
        self._before = totals[-self._window - 1 :]
        rates = np.asarray((totals[last] - totals[first]) / (last - first))
        self._watch(mistaken)
        self._rounds += len(mistaken)
        self.rate = float(rates[-1])
        return rates

    def facts(self) -> dict[str, Any]:
        """The fields of a record that are about this."""
        window = Window(len(self._before) - 1, self.rate)
        return {"window": window, "drifts": tuple(self.drifts)}

    def _watch(self, mistaken: NDArray[np.bool_]) -> None:
        """Page's test."""
        past = -1
        for now in np.flatnonzero(mistaken).tolist():
            right = now - past - 1
            self._page = page_statistic(self._page, right, self._wrong / (self._seen + right))
            self._wrong += 1
            self._seen += right + 1
            past = now
            if self._page > DRIFT_ALARM:
                self.drifts.append(self._rounds + now + 1)
                self._wrong, self._seen, self._page = 1, 2, 0.0
        left = len(mistaken) - past - 1
        self._seen += left
        self._page = page_statistic(self._page, left, None)


def metrics_of(
    confusion: Sequence[Sequence[int]],
    ranking: Ranking | None = None,
    log_loss: float | None = None,
) -> Metrics:
    """All metrics; None for those that these counts leave undefined, or without a ranking.

    `confusion` has the rounds by true class (rows) and predicted class (columns). Of two classes
    precision, recall and F1 are those of the second, +1; of more, means over the classes that occur
    or are predicted, where an undefined value counts as 0, as in scikit-learn.
    """
    totals = [sum(row) for row in confusion]
    found = [sum(column) for column in zip(*confusion, strict=True)]
    right = [row[number] for number, row in enumerate(confusion)]
    rounds, classes = sum(totals), len(totals)
    by_chance = sum(a * b for a, b in zip(totals, found, strict=True))  # of rounds²
    each = [
        (_ratio(ok, said), _ratio(ok, total), _ratio(2 * ok, said + total))
        for ok, said, total in zip(right, found, totals, strict=True)
        if said or total or classes == 2
    ]
    precision, recall, f1 = each[-1] if each else (None, None, None)
    if classes > 2 and each:
        precision, recall, f1 = (
            sum(value or 0.0 for value in column) / len(each) for column in zip(*each, strict=True)
        )
    missed = [_ratio(total - ok, total) for ok, total in zip(right, totals, strict=True)]
    known = [rate for rate in missed if rate is not None]
    return Metrics(
        precision=precision,
        recall=recall,
        f1=f1,
        balanced_error=sum(known) / classes if len(known) == classes else None,
        kappa=_ratio(sum(right) * rounds - by_chance, rounds**2 - by_chance),
        auc=ranking.auc() if ranking else None,
        log_loss=log_loss,
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
