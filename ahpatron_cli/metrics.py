"""What `--metrics` and `--window` add to a run: AUC, precision and so on; recent mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.learners.arow import page_statistic
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.records import Metrics, Window

MOST_KEYS = 1 << 19
"""Different scores, of all classes together, that are distinguished: 12 MB."""
FEWEST_KEYS = 1 << 10
"""Of each of many classes."""
DRIFT_ALARM = 12.0
"""Page's statistic from which on the mistake rate has risen."""

Keys: TypeAlias = NDArray[np.uint64]


class Ranking:
    """How often each class got each score: what AUC is computed from, in bounded memory.

    With more than two classes, each is ranked against the rest by its own score. A score is keyed
    by its bits, rearranged so that keys order as scores do. If there are too many of them, keys
    drop low bits until they are few enough. Scores with equal keys count as tied, so AUC is exact
    as long as no bit was dropped; after that its error is at most half of the share of pairs with
    equal keys. Neither depends on the order of the rounds.
    """

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._new: list[tuple[Floats, Floats]] = []
        """Scores and labels of rounds that are not in the tables yet."""
        self._new_scores = 0
        self._tables: dict[int, tuple[int, Keys, Integers]] = {}
        """For each class: bits dropped, keys in order, how often (as negative, as positive)."""

    def add(self, scores: Floats, labels: Floats) -> None:
        """Count rounds with these f(x), a column per class if there are more than two."""
        self._new.append((scores.copy(), labels))
        self._new_scores += scores.size
        if self._new_scores >= self._most_keys:
            self._merge()

    def _merge(self) -> None:
        scores, labels = (np.concatenate(parts) for parts in zip(*self._new, strict=True))
        self._new, self._new_scores = [], 0
        columns = {1: scores} if scores.ndim == 1 else dict(enumerate(scores.T))
        most = self._most_keys
        if scores.ndim > 1:
            most = max(most // len(columns), min(most, FEWEST_KEYS))
        for number, column in columns.items():
            bits = (column + 0.0).view(np.uint64)  # -0 becomes 0
            sign = np.uint64(1 << 63)
            ordered = np.where(bits & sign, ~bits, bits | sign)  # these order as the numbers do
            positive = labels == number
            counts = np.stack([~positive, positive], axis=1).astype(np.int64)
            dropped = 0
            if number in self._tables:
                dropped, keys, before = self._tables[number]
                ordered = np.append(keys, ordered >> np.uint64(dropped))
                counts = np.concatenate([before, counts])
            order = np.argsort(ordered, kind="stable")
            keys, counts = _joined(ordered[order], counts[order])
            while len(keys) > most:
                dropped += 1
                keys, counts = _joined(keys >> np.uint64(1), counts)
            self._tables[number] = dropped, keys, counts

    def auc(self) -> tuple[float, float] | None:
        """P(f(x) > f(x')) + P(f(x) = f(x'))/2 for y = +1, y' = -1, and a bound on its error.

        The mean over the classes that occur; None if only one does.
        """
        if self._new:
            self._merge()
        areas = []
        for dropped, _, counts in self._tables.values():
            negatives, positives = counts.T
            tied = int(positives @ negatives)
            won = int(positives @ (np.cumsum(negatives) - negatives))
            if pairs := 2 * int(positives.sum()) * int(negatives.sum()):
                areas.append(((2 * won + tied) / pairs, tied / pairs if dropped else 0.0))
        if not areas:
            return None
        auc, error = (sum(column) / len(areas) for column in zip(*areas, strict=True))
        return auc, error


def _joined(keys: Keys, counts: Integers) -> tuple[Keys, Integers]:
    """Each key once; `keys` are in order."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[starts], np.add.reduceat(counts, starts, axis=0)


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
    auc, auc_error = (ranking and ranking.auc()) or (None, None)
    return Metrics(
        precision=precision,
        recall=recall,
        f1=f1,
        balanced_error=sum(known) / classes if len(known) == classes else None,
        kappa=_ratio(sum(right) * rounds - by_chance, rounds**2 - by_chance),
        auc=auc,
        auc_error=auc_error,
        log_loss=log_loss,
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
