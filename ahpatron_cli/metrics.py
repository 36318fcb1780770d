"""Metrics of a run (`--metrics`) and the recent mistake rate (`--window`)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.judging import page_statistic
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import State, Stateful, StateReader
from ahpatron_cli.records import Metrics, Window

Flags: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = Sequence[int]
"""A number of rounds for each class."""

MOST_SCORES = 1 << 23
"""Largest number of scores of a run, over all classes, kept for AUC (64 MB)."""
DRIFT_ALARM = 12.0
"""Threshold of Page's statistic above which the mistake rate is considered to have risen."""


class Ranking(Stateful):
    """Scores of all rounds, for AUC and average precision; up to a limit on memory."""

    def __init__(self, most_scores: int = MOST_SCORES) -> None:
        self._most = most_scores
        self._scores = array("d")
        self._labels = array("h")

    def add(self, scores: Floats, labels: Floats) -> None:
        """Add rounds with these scores, shape (n,), or (n, k) with k > 2 classes."""
        if self._is_over():  # which marks the AUC as unknown
            return
        numbers = labels.astype(np.int16)
        self._scores.frombytes(scores.tobytes())
        self._labels.frombytes(numbers.tobytes())

    def state_dict(self) -> State:
        return {
            "class": self.state_name,
            "scores": np.array(self._scores),
            "labels": np.array(self._labels, dtype=np.int32),
        }

    def load_state_dict(self, state: StateReader) -> None:
        scores = state.array("scores", "s")
        labels = state.array("labels", "%r")
        rounds = len(labels)
        fits = not len(scores)
        if rounds:
            fits = len(scores) % rounds == 0
        if not fits:
            raise state.refusal("scores", "are not those of the labels")
        numbers = labels.astype(np.int16)
        self._scores = array("d", scores.tobytes())
        self._labels = array("h", numbers.tobytes())

    def auc(self) -> float | None:
        """AUC: P(f(x) > f(x')) + P(f(x) = f(x'))/2 for y = +1, y' = -1; None if undefined.

        With more than two classes, the mean over the classes that occur of the one-vs-rest AUC by
        the score of the class.
        """
        return self._mean(_area)

    def average_precision(self) -> float | None:
        """Mean precision over the positive examples, each with all that f ranks as high or higher.

        None without positive examples. With more than two classes, the mean over the classes that
        occur, each against the rest.
        """
        return self._mean(_average_precision)

    def of_two_classes(self) -> tuple[Floats, Flags] | None:
        """Scores of all rounds, and which are positive; None if there are too many."""
        if self._is_over():
            return None
        labels = np.array(self._labels)
        return np.array(self._scores), labels == 1

    def _mean(self, measure: Callable[[Floats, Flags], float | None]) -> float | None:
        """A measure of scores and of which are positive; with more classes, its mean over them."""
        rounds = len(self._labels)
        if rounds == 0 or self._is_over():
            return None
        labels = np.array(self._labels)
        scores = np.array(self._scores)
        if len(scores) == rounds:
            return measure(scores, labels == 1)
        by_class = scores.reshape(rounds, -1).T
        found = []
        for number, column in enumerate(by_class):
            value = measure(column, labels == number)
            if value is not None:
                found.append(value)
        if not found:
            return None
        return sum(found) / len(found)

    def _is_over(self) -> bool:
        """Whether there are more scores than the limit."""
        return len(self._scores) > self._most


def _area(scores: Floats, positive: Flags) -> float | None:
    """AUC of scores; None unless there are positive and negative examples."""
    positives = scores[positive]
    negatives = np.sort(scores[~positive])
    pairs = len(positives) * len(negatives)
    if pairs == 0:
        return None
    below = np.searchsorted(negatives, positives, "left")
    not_above = np.searchsorted(negatives, positives, "right")
    halves = below.sum() + not_above.sum()
    return int(halves) / (2 * pairs)


def _average_precision(scores: Floats, positive: Flags) -> float | None:
    """Average precision of scores; None without positive examples."""
    steps = ranked(scores, positive)
    positives = int(steps.right[-1])
    if not positives:
        return None
    found = np.diff(steps.right, prepend=0)
    precision = steps.right / steps.above
    return float(found @ precision) / positives


class Steps(NamedTuple):
    """Numbers of examples for each distinct score, from the highest to the lowest."""

    scores: Floats
    above: Integers
    """Examples with at least this score."""
    right: Integers
    """Positive examples with at least this score."""


def ranked(scores: Floats, positive: Flags) -> Steps:
    """Numbers of examples, and of positive ones, with at least each of the scores."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    differs_from_next = ordered[1:] != ordered[:-1]
    is_last = np.append(differs_from_next, True)  # of those with the same score
    right = np.cumsum(positive[order])
    above = np.arange(1, len(scores) + 1)
    return Steps(
        scores=ordered[is_last],
        above=above[is_last],
        right=right[is_last],
    )


class Recent(TypedDict, total=False):
    """Fields of a record about the last rounds."""

    window: Window
    drifts: tuple[int, ...]


class RecentMistakes(Stateful):
    """Mistake rate of the last N rounds, and detection of rises of the mistake rate.

    Page's test monitors the mistakes, as in `arow`. If g > 12 (see `page_statistic`), the rate has
    risen: the round is marked, and the test is reset.
    """

    state_fields: ClassVar[Any] = {
        "_rounds": int,
        "_window": int,
        "_before": "n",
        "_wrong": int,
        "_seen": int,
        "_page": float,
        "rate": float,
    }

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

    def extend(self, mistaken: Flags) -> Floats:
        """Add rounds; returns the recent mistake rate after each of them."""
        window = self._window
        before = self._before
        earlier = before[-1]
        new_totals = earlier + np.cumsum(mistaken)
        totals = np.append(before, new_totals)
        last = np.arange(len(before), len(totals))
        first = np.maximum(last - window, 0)
        mistakes = new_totals - totals[first]
        rounds = last - first
        rates = np.asarray(mistakes / rounds)
        self._before = totals[-window - 1 :]
        self._watch(mistaken)
        self._rounds += len(mistaken)
        self.rate = float(rates[-1])
        return rates

    @property
    def size(self) -> int:
        """N, the number of rounds in the window."""
        return self._window

    def window(self) -> Window:
        """The recent mistake rate, as a record has it."""
        rounds = len(self._before) - 1
        return Window(rounds, self.rate)

    def facts(self) -> Recent:
        """Fields of a record: the recent mistake rate and the rises."""
        return {"window": self.window(), "drifts": tuple(self.drifts)}

    def state_dict(self) -> State:
        drifts = np.array(self.drifts, dtype=np.int64)
        return {**super().state_dict(), "drifts": drifts}

    def load_state_dict(self, state: StateReader) -> None:
        super().load_state_dict(state)
        self.drifts = state.array("drifts", "#d").tolist()

    def check(self, state: StateReader) -> None:
        fits_window = 1 <= len(self._before) <= self._window + 1
        is_rate = 0 < self._wrong <= self._seen
        if not fits_window or not is_rate:
            raise state.refusal("before", "does not fit the window")

    def _reset_test(self) -> None:
        """Restart Page's test, with one mistake in two rounds as the first rate."""
        self._wrong = 1
        self._seen = 2
        self._page = 0.0

    def _watch(self, mistaken: Flags) -> None:
        """Update Page's test and `drifts` with these rounds."""
        past = -1
        for now in np.flatnonzero(mistaken).tolist():
            right = now - past - 1
            seen = self._seen + right
            rate = self._wrong / seen
            self._page = page_statistic(self._page, right, rate)
            self._wrong += 1
            self._seen = seen + 1
            past = now
            if self._page > DRIFT_ALARM:
                drift = self._rounds + now + 1
                self.drifts.append(drift)
                self._reset_test()
        left = len(mistaken) - past - 1
        self._seen += left
        self._page = page_statistic(self._page, left)


def metrics_of(
    confusion: Sequence[Sequence[int]],
    ranking: Ranking | None = None,
    log_loss: float | None = None,
    brier: float | None = None,
) -> Metrics:
    """Compute all metrics; None for those that are undefined, and for ranks without a ranking.

    `confusion` has the rounds by true class (rows) and predicted class (columns). Of two classes
    precision, recall and F1 are those of the second, +1; of more, means over the classes that occur
    or are predicted, where an undefined value counts as 0, as in scikit-learn.
    """
    totals = [sum(row) for row in confusion]
    columns = zip(*confusion, strict=True)
    found = [sum(column) for column in columns]
    right = [row[number] for number, row in enumerate(confusion)]
    quality = _of_all(qualities(confusion))
    auc = None
    average_precision = None
    if ranking is not None:
        auc = ranking.auc()
        average_precision = ranking.average_precision()
    return Metrics(
        precision=quality.precision,
        recall=quality.recall,
        f1=quality.f1,
        balanced_error=_balanced_error(right, totals),
        kappa=_kappa(right, found, totals),
        auc=auc,
        log_loss=log_loss,
        average_precision=average_precision,
        brier=brier,
    )


class Quality(NamedTuple):
    """Precision, recall and F1 of one class, or their means; None if undefined."""

    precision: float | None
    recall: float | None
    f1: float | None


def qualities(confusion: Sequence[Sequence[int]]) -> list[Quality]:
    """Precision, recall and F1 of each class; `confusion` is that of `metrics_of`."""
    by_class: list[Quality] = []
    columns = zip(*confusion, strict=True)
    for number, (row, column) in enumerate(zip(confusion, columns, strict=True)):
        right = row[number]
        found = sum(column)
        total = sum(row)
        quality = Quality(
            precision=_ratio(right, found),
            recall=_ratio(right, total),
            f1=_ratio(2 * right, found + total),
        )
        by_class.append(quality)
    return by_class


def _of_all(by_class: Sequence[Quality]) -> Quality:
    """Those of the second of two classes, or means over more classes."""
    if len(by_class) == 2:
        return by_class[1]
    occurring = [one for one in by_class if one.f1 is not None]
    if not occurring:
        return Quality(None, None, None)
    precisions = [one.precision for one in occurring]
    recalls = [one.recall for one in occurring]
    f1s = [one.f1 for one in occurring]
    return Quality(
        precision=_mean(precisions),
        recall=_mean(recalls),
        f1=_mean(f1s),
    )


def _kappa(right: Counts, found: Counts, totals: Counts) -> float | None:
    """Cohen's kappa, of the counts of each class.

    `right` are its rounds that were predicted correctly, `found` the rounds in which it was
    predicted, and `totals` its rounds.
    """
    rounds = sum(totals)
    agreed = sum(right) * rounds  # this and what follows is multiplied by rounds²
    by_chance = 0
    for total, said in zip(totals, found, strict=True):
        by_chance += total * said
    above_chance = agreed - by_chance
    at_most = rounds**2 - by_chance
    return _ratio(above_chance, at_most)


def _balanced_error(right: Counts, totals: Counts) -> float | None:
    """Mean of the mistake rates of the classes; None if one of them does not occur."""
    rates = []
    for ok, total in zip(right, totals, strict=True):
        if total == 0:
            return None
        wrong = total - ok
        rates.append(wrong / total)
    return sum(rates) / len(rates)


def _mean(values: Sequence[float | None]) -> float:
    """Mean of values, where an undefined one counts as 0."""
    defined = [value or 0.0 for value in values]
    return sum(defined) / len(defined)


def _ratio(part: int, whole: int) -> float | None:
    """The quotient; None for a division by 0."""
    if whole == 0:
        return None
    return part / whole
