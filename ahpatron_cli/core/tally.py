"""Counts over the rounds of a run, with two classes (-1, +1) or more (0, 1, …)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.numerics import CANCELLED, NEAR_TIE
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Stateful

MAX_CLASSES = 1000


@overload
def mistaken(y: float, margin: float) -> bool: ...


@overload
def mistaken(y: Floats, margin: Floats) -> NDArray[np.bool_]: ...


def mistaken(y: float | Floats, margin: float | Floats) -> bool | NDArray[np.bool_]:
    """Whether sign(f(x)) ≠ y, with sign(0) = +1, from y and y·f(x); floats or arrays."""
    is_tie = margin == 0
    wrong_by_tie = is_tie & (y < 0)
    return (margin < 0) | wrong_by_tie


def predicted(scores: Floats) -> Integers:
    """Predicted class of each row: the largest score; ties up to rounding: the first class.

    Parameters
    ----------
    scores : array of shape (n, k)

    Returns
    -------
    array of int of shape (n,)

    Examples
    --------
    >>> predicted(np.array([[0.0, 0.0, -1.0], [0.1, 0.2, 0.3]])).tolist()
    [0, 2]
    """
    sizes = np.abs(scores)
    slack = CANCELLED * sizes.max(axis=1, keepdims=True)
    largest = scores.max(axis=1, keepdims=True)
    leads = scores >= largest - slack
    first = leads.argmax(axis=1)
    return np.asarray(first)


def chosen(scores: Floats) -> Integers:
    """Number of the predicted label of each row; of two labels, 1 if f(x) >= 0.

    Parameters
    ----------
    scores : array of shape (n,), or (n, k) with k classes
    """
    if scores.ndim == 1:
        return (scores >= 0).astype(np.int64)
    return predicted(scores)


def has_answer(scores: Floats) -> NDArray[np.bool_]:
    """Whether each row was answered: its scores are NaN if no label was known then."""
    first = scores if scores.ndim == 1 else scores[:, 0]
    return ~np.isnan(first)


def class_margins(scores: Floats, labels: Floats) -> tuple[Floats, Integers]:
    """Margin `f_y(x) - max_{c≠y} f_c(x)` of each round, and the class of the maximum.

    If values are equal up to rounding, the margin is 0 and the first of them is the maximum.
    """
    rounds = np.arange(len(labels))
    own = labels.astype(np.int64)
    sizes = np.abs(scores)
    slack = CANCELLED * sizes.max(axis=1)
    others = scores.copy()
    others[rounds, own] = -np.inf
    best = others.max(axis=1)
    own_scores = scores[rounds, own]
    margins = own_scores - best
    is_tie = np.abs(margins) <= slack
    margins[is_tie] = 0.0
    least = best - slack
    leads = others >= least[:, None]
    return margins, leads.argmax(axis=1)


class _Judged(NamedTuple):
    """Rounds with their labels and predictions."""

    margins: Floats
    leads: Floats
    """|f(x)|, or the difference of the two largest f_c(x)."""
    true: Any
    """Numbers of the classes; booleans are those of two, -1 and +1."""
    predicted: Any


def _judged_of_two(scores: Floats, labels: Floats) -> _Judged:
    """Rounds with the labels -1 and +1."""
    return _Judged(
        margins=scores * labels,
        leads=np.abs(scores),
        true=labels > 0,
        predicted=scores >= 0,
    )


def _judged_of_classes(scores: Floats, labels: Floats) -> _Judged:
    """Rounds with the labels 0, 1, …; a single class has no rival."""
    margins, _ = class_margins(scores, labels)
    leads = np.full(len(scores), np.inf)
    if scores.shape[1] > 1:
        ordered = np.partition(scores, -2, axis=1)
        best = ordered[:, -1]
        leads = best - ordered[:, -2]
    return _Judged(
        margins=margins,
        leads=leads,
        true=labels.astype(np.int64),
        predicted=predicted(scores),
    )


@dataclass(eq=False)
class Tally(Stateful):
    """Counts over the rounds of a run.

    Attributes
    ----------
    confusion : array of int of shape (k, k)
        Rounds by true class (rows) and predicted class (columns); -1 comes before +1. Rounds that
        had no answer are in no cell.
    rounds : int
    mistakes : int
        |M_T|: rounds whose predicted class is not the true one, with sign(0) = +1, or that had no
        answer.
    nonpositive_margins : int
        |M'_T|: rounds with y·f(x) <= 0.
    updates : int
        Number of updates; with one learner per class, the sum over all learners.
    margin_updates : int
        |N_T|: updates with y·f(x) > 0.
    near_ties : int
        Rounds after the first with |f(x)| < 1e-9, or whose two largest f_c(x) differ by less: the
        prediction may differ on other hardware.
    baseline_mistakes : int
        Mistakes of always predicting the most frequent class so far (ties: +1 or the first class).
    seconds : float
        Learning time.
    """

    confusion: Integers
    rounds: int = 0
    nonpositive_margins: int = 0
    updates: int = 0
    margin_updates: int = 0
    near_ties: int = 0
    baseline_mistakes: int = 0
    seconds: float = 0.0

    state_fields: ClassVar[Any] = {
        "confusion": "#...",
        "rounds": int,
        "nonpositive_margins": int,
        "updates": int,
        "margin_updates": int,
        "near_ties": int,
        "baseline_mistakes": int,
        "seconds": float,
    }

    @classmethod
    def of(cls, classes: int) -> Self:
        """An empty tally for this number of classes."""
        shape = (classes, classes)
        confusion = np.zeros(shape, dtype=np.int64)
        return cls(confusion)

    def with_class(self) -> Self:
        """The same counts with a further class."""
        after = ((0, 1), (0, 1))
        confusion = np.pad(self.confusion, after)
        return replace(self, confusion=confusion)

    @property
    def mistakes(self) -> int:
        right = int(self.confusion.trace())
        return self.rounds - right

    def counts(self) -> dict[str, Any]:
        """All counts by name."""
        return {**vars(self), "mistakes": self.mistakes}

    def count(self, scores: Floats, labels: Floats) -> None:
        """Add rounds with these scores f(x) and labels to the counts.

        A score of NaN is no answer: no label was known then. That is a mistake, and one of the
        baseline, which knew nothing either.
        """
        answered = has_answer(scores)
        if not answered.all():
            self._count_unanswered(int(np.count_nonzero(~answered)))
            scores = scores[answered]
            labels = labels[answered]
        if scores.ndim == 1:
            self.baseline_mistakes += self._baseline_of_two(labels)
            judged = _judged_of_two(scores, labels)
        else:
            self.baseline_mistakes += self._baseline(labels.astype(np.int64))
            judged = _judged_of_classes(scores, labels)
        k = len(self.confusion)
        numbers = k * judged.true + judged.predicted
        cells = np.bincount(numbers, minlength=k * k)
        # not in place: copies of a tally share the array
        self.confusion = self.confusion + cells.reshape(k, k)
        leads = judged.leads
        if self.rounds == 0:
            leads = leads[1:]  # f = 0 in the first round of a stream: not counted as a near tie
        nonpositive = np.count_nonzero(judged.margins <= 0)
        self.near_ties += int(np.count_nonzero(leads < NEAR_TIE))
        self.nonpositive_margins += int(nonpositive)
        self.rounds += len(labels)

    def _count_unanswered(self, rounds: int) -> None:
        """Count rounds in which no label was known."""
        self.rounds += rounds
        self.nonpositive_margins += rounds
        self.baseline_mistakes += rounds

    def _baseline_of_two(self, labels: Floats) -> int:
        """Mistakes of predicting the more frequent of two classes so far."""
        positives = int(self.confusion[1].sum())
        rounds = int(self.confusion.sum())
        earlier = 2 * positives - rounds
        sums = np.cumsum(labels) + earlier
        before = sums - labels  # Σ y_s, s < t
        predicted_positive = before >= 0
        positive = labels > 0
        wrong = np.count_nonzero(predicted_positive != positive)
        return int(wrong)

    def _baseline(self, true: Integers) -> int:
        """Mistakes of predicting the most frequent class so far, for more than two classes."""
        by_class = self.confusion.sum(axis=1)
        counts: list[int] = by_class.tolist()
        leader = counts.index(max(counts))
        mistakes = 0
        for y in true.tolist():
            if y != leader:
                mistakes += 1
            counts[y] += 1
            ahead = counts[y] - counts[leader]
            if ahead > 0 or (ahead == 0 and y < leader):
                leader = y
        return mistakes
