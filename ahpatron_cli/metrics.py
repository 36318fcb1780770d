"""Metrics of a run (`--metrics`) and the recent mistake rate (`--window`)."""

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
"""Largest number of scores of a run, over all classes, kept for AUC (64 MB)."""
DRIFT_ALARM = 12.0
"""Threshold of Page's statistic above which the mistake rate is considered to have risen."""


class Ranking:
    """Scores of all rounds, for the exact AUC; up to a limit on memory."""

    def __init__(self, most_scores: int = MOST_SCORES) -> None:
        self._most = most_scores
        self._scores = array("d")
        self._labels = array("h")

    def add(self, scores: Floats, labels: Floats) -> None:
        """Add rounds with these scores, shape (n,), or (n, k) with k > 2 classes."""
        if len(self._scores) <= self._most:  # exceeding the limit marks the AUC as unknown
            self._scores.frombytes(scores.tobytes())
            self._labels.frombytes(labels.astype(np.int16).tobytes())

    def auc(self) -> float | None:
        """AUC: P(f(x) > f(x')) + P(f(x) = f(x'))/2 for y = +1, y' = -1; None if undefined.

        With more than two classes, the mean over the classes that occur of the one-vs-rest AUC by
        the score of the class.
        """
        if not self._labels or len(self._scores) > self._most:
            return None
        labels = np.array(self._labels)
        scores = np.array(self._scores).reshape(len(labels), -1)
        if scores.shape[1] == 1:
            return _area(scores[:, 0], labels == 1)
        areas = [_area(column, labels == number) for number, column in enumerate(scores.T)]
        defined = [area for area in areas if area is not None]
        if not defined:
            return None
        return sum(defined) / len(defined)


def _area(scores: Floats, positive: NDArray[np.bool_]) -> float | None:
    """AUC of scores; None unless there are positive and negative examples."""
    positives = scores[positive]
    negatives = np.sort(scores[~positive])
    pairs = len(positives) * len(negatives)
    if not pairs:
        return None
    below = np.searchsorted(negatives, positives, "left")
    not_above = np.searchsorted(negatives, positives, "right")
    return int(below.sum() + not_above.sum()) / (2 * pairs)


class RecentMistakes:
    """Mistake rate of the last N rounds, and detection of rises of the mistake rate.

    Page's test monitors the mistakes, as in `arow`: with p their rate so far and q = p + (1-p)/4,
    g = max(0, g + log(q/p)) on a mistake, else g + log((1-q)/(1-p)). If g > 12, the rate has risen:
    the round is marked, and the test is reset.
    """

    def __init__(self, rounds: int, window: int) -> None:
        """`rounds` is the number of earlier rounds, which are ignored; `window` is N."""
        self._rounds = rounds
        self._window = window
        self._before = np.zeros(1)
        """Cumulative mistakes up to each of the last N rounds."""
        self._reset_test()
        self.drifts: list[int] = []
        """Rounds (from 1) in which a rise of the mistake rate was detected."""
        self.rate = 0.0

    def extend(self, mistaken: NDArray[np.bool_]) -> Floats:
        """Add rounds; returns the recent mistake rate after each of them."""
        new_totals = self._before[-1] + np.cumsum(mistaken)
        totals = np.append(self._before, new_totals)
        last = np.arange(len(self._before), len(totals))
        first = np.maximum(last - self._window, 0)
        mistakes = totals[last] - totals[first]
        rates = np.asarray(mistakes / (last - first))
        self._before = totals[-self._window - 1 :]
        self._watch(mistaken)
        self._rounds += len(mistaken)
        self.rate = float(rates[-1])
        return rates

    def facts(self) -> dict[str, Any]:
        """Fields of a record: the recent mistake rate and the rises."""
        rounds = len(self._before) - 1
        return {"window": Window(rounds, self.rate), "drifts": tuple(self.drifts)}

    def _reset_test(self) -> None:
        """Start Page's test anew, with one mistake in two rounds as the first rate."""
        self._wrong = 1
        self._seen = 2
        self._page = 0.0

    def _watch(self, mistaken: NDArray[np.bool_]) -> None:
        """Update Page's test and `drifts` with these rounds."""
        past = -1
        for now in np.flatnonzero(mistaken).tolist():
            right = now - past - 1
            rate = self._wrong / (self._seen + right)
            self._page = page_statistic(self._page, right, rate)
            self._wrong += 1
            self._seen += right + 1
            past = now
            if self._page > DRIFT_ALARM:
                self.drifts.append(self._rounds + now + 1)
                self._reset_test()
        left = len(mistaken) - past - 1
        self._seen += left
        self._page = page_statistic(self._page, left, None)


def metrics_of(
    confusion: Sequence[Sequence[int]],
    ranking: Ranking | None = None,
    log_loss: float | None = None,
) -> Metrics:
    """Compute all metrics; None for those that are undefined, and for AUC without a ranking.

    `confusion` has the rounds by true class (rows) and predicted class (columns). Of two classes
    precision, recall and F1 are those of the second, +1; of more, means over the classes that occur
    or are predicted, where an undefined value counts as 0, as in scikit-learn.
    """
    totals = [sum(row) for row in confusion]
    found = [sum(column) for column in zip(*confusion, strict=True)]
    right = [row[number] for number, row in enumerate(confusion)]
    rounds = sum(totals)
    expected = [total * said for total, said in zip(totals, found, strict=True)]
    by_chance = sum(expected)  # times rounds²
    precision, recall, f1 = _precision_recall_f1(right, found, totals)
    return Metrics(
        precision=precision,
        recall=recall,
        f1=f1,
        balanced_error=_balanced_error(right, totals),
        kappa=_ratio(sum(right) * rounds - by_chance, rounds**2 - by_chance),
        auc=ranking.auc() if ranking else None,
        log_loss=log_loss,
    )


def _precision_recall_f1(
    right: Sequence[int], found: Sequence[int], totals: Sequence[int]
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1: of the second of two classes, or means over more classes.

    For each class, `right` has its rounds that were predicted correctly, `found` the rounds in
    which it was predicted, and `totals` its rounds.
    """
    classes = len(totals)
    precisions: list[float | None] = []
    recalls: list[float | None] = []
    scores: list[float | None] = []
    for ok, said, total in zip(right, found, totals, strict=True):
        if said or total or classes == 2:
            precisions.append(_ratio(ok, said))
            recalls.append(_ratio(ok, total))
            scores.append(_ratio(2 * ok, said + total))
    if not scores:
        return None, None, None
    if classes <= 2:
        return precisions[-1], recalls[-1], scores[-1]
    return _mean(precisions), _mean(recalls), _mean(scores)


def _balanced_error(right: Sequence[int], totals: Sequence[int]) -> float | None:
    """Mean of the mistake rates of the classes; None if one of them does not occur."""
    rates = []
    for ok, total in zip(right, totals, strict=True):
        if total == 0:
            return None
        rates.append((total - ok) / total)
    return sum(rates) / len(rates)


def _mean(values: Sequence[float | None]) -> float:
    """Mean of values, where an undefined one counts as 0."""
    return sum(value or 0.0 for value in values) / len(values)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
