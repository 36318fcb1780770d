"""What `--metrics` and `--window` add to a run: AUC, precision and so on; recent mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.learners.arow import page_statistic
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.records import Metrics, Window

MOST_KEYS = 1 << 17
"""Different scores that bounded memory (3 MB) distinguishes."""
FEWEST_KEYS = 1 << 10
"""Of each of many classes."""
PENDING_SCORES = 1 << 16
"""Scores that are sorted together."""
DRIFT_ALARM = 12.0
"""Page's statistic from which on the mistake rate has risen."""

Keys: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]


class Ranking:
    """How often each class got each score: what AUC is computed from.

    With more than two classes, each is ranked against the rest by its own score.
    """

    def __init__(self, most_keys: int | None = MOST_KEYS) -> None:
        """Without `most_keys` AUC of two classes is exact, and memory grows with the rounds."""
        self._most_keys = most_keys
        self._classes: list[_Scores] = []

    def add(self, scores: Floats, labels: Floats) -> None:
        """Count rounds with these f(x), a column per class if there are more than two."""
        if scores.ndim == 1:
            self._classes = self._classes or [_Scores(self._most_keys)]
            self._classes[0].add(scores.copy(), labels > 0)
            return
        if not self._classes:  # always bounded: there may be a thousand classes
            most = max((self._most_keys or MOST_KEYS) // scores.shape[1], FEWEST_KEYS)
            self._classes = [_Scores(most) for _ in range(scores.shape[1])]
        for number, own in enumerate(self._classes):
            own.add(scores[:, number].copy(), labels == number)

    def auc(self) -> tuple[float, float] | None:
        """The mean of AUC over the classes that occur, and a bound on its error; None without."""
        areas = [area for one in self._classes if (area := one.auc()) is not None]
        if not areas:
            return None
        auc, error = (sum(column) / len(areas) for column in zip(*areas, strict=True))
        return auc, error


class _Scores:
    """Scores of positive and negative examples.

    A score is keyed by its bits, rearranged so that keys order as scores do. If there are more than
    `most_keys` of them, keys drop low bits until they are few enough. Scores with equal keys count
    as tied, so AUC is exact as long as no bit was dropped; after that its error is at most half of
    the share of pairs with equal keys. Neither depends on the order of the rounds.
    """

    def __init__(self, most_keys: int | None) -> None:
        self._most_keys = most_keys
        self._dropped_bits = 0
        self._keys: Keys = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty((0, 2), dtype=np.int64)
        self._pending: list[tuple[Floats, NDArray[np.bool_]]] = []
        self._pending_scores = 0

    def add(self, scores: Floats, positive: NDArray[np.bool_]) -> None:
        self._pending.append((scores, positive))
        self._pending_scores += len(scores)
        if self._pending_scores >= min(PENDING_SCORES, self._most_keys or PENDING_SCORES):
            self._merge()

    def auc(self) -> tuple[float, float] | None:
        """P(f(x) > f(x')) + P(f(x) = f(x'))/2 for y = +1, y' = -1, and a bound on its error.

        None if there are only positive or only negative examples.
        """
        self._merge()
        negatives, positives = self._counts.T
        pairs = int(positives.sum()) * int(negatives.sum())
        if not pairs:
            return None
        tied = int(positives @ negatives)
        won = int(positives @ (np.cumsum(negatives) - negatives))
        return (2 * won + tied) / (2 * pairs), tied / (2 * pairs) if self._dropped_bits else 0.0

    def _merge(self) -> None:
        if not self._pending:
            return
        scores, positive = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
        self._pending, self._pending_scores = [], 0
        bits = (scores + 0.0).view(np.uint64)  # -0 becomes 0
        sign = np.uint64(1 << 63)
        ordered = np.where(bits & sign, ~bits, bits | sign)  # these order as the numbers do
        keys = np.append(self._keys, ordered >> np.uint64(self._dropped_bits))
        order = np.argsort(keys, kind="stable")
        counts = np.concatenate([self._counts, np.stack([~positive, positive], axis=1)])
        self._keys, self._counts = _joined(keys[order], counts[order])
        while self._most_keys is not None and len(self._keys) > self._most_keys:
            self._dropped_bits += 1
            self._keys, self._counts = _joined(self._keys >> np.uint64(1), self._counts)


def _joined(keys: Keys, counts: Counts) -> tuple[Keys, Counts]:
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
