"""Counts over the rounds of a run, with two classes (-1, +1) or more (0, 1, …)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ahpatron_cli.core.numerics import CANCELLED, NEAR_TIE
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Stateful

MAX_CLASSES = 1000


def mistaken(y: Any, margin: Any) -> Any:
    """Whether sign(f(x)) ≠ y, with sign(0) = +1, from y and y·f(x); floats or arrays."""
    return (margin < 0) | ((margin == 0) & (y < 0))


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
    slack = CANCELLED * np.abs(scores).max(axis=1, keepdims=True)
    largest = scores.max(axis=1, keepdims=True)
    leads = scores >= largest - slack
    return np.asarray(leads.argmax(axis=1))


def class_margins(scores: Floats, labels: Floats) -> tuple[Floats, Integers]:
    """Margin `f_y(x) - max_{c≠y} f_c(x)` of each round, and the class of the maximum.

    If values are equal up to rounding, the margin is 0 and the first of them is the maximum.
    """
    rounds = np.arange(len(labels))
    own = labels.astype(np.int64)
    slack = CANCELLED * np.abs(scores).max(axis=1)
    others = scores.copy()
    others[rounds, own] = -np.inf
    best = others.max(axis=1)
    margins = scores[rounds, own] - best
    margins[np.abs(margins) <= slack] = 0.0
    least = best - slack
    leads = others >= least[:, None]
    return margins, leads.argmax(axis=1)


@dataclass(eq=False)
class Tally(Stateful):
    """Counts over the rounds of a run.

    Attributes
    ----------
    confusion : array of int of shape (k, k)
        Rounds by true class (rows) and predicted class (columns); -1 comes before +1.
    rounds : int
    mistakes : int
        |M_T|: rounds whose predicted class is not the true one, with sign(0) = +1.
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
        return cls(np.zeros((classes, classes), dtype=np.int64))

    @property
    def mistakes(self) -> int:
        return self.rounds - int(self.confusion.trace())

    def counts(self) -> dict[str, Any]:
        """All counts by name."""
        return {**vars(self), "mistakes": self.mistakes}

    def count(self, scores: Floats, labels: Floats) -> None:
        """Add rounds with these scores f(x) and labels to the counts."""
        true: Any
        chosen: Any
        if scores.ndim == 1:
            margins = scores * labels
            sizes = np.abs(scores)
            true = labels > 0
            chosen = scores >= 0
            self.baseline_mistakes += self._baseline_of_two(labels)
        else:
            margins, _ = class_margins(scores, labels)
            two_largest = np.partition(scores, -2, axis=1)[:, -2:]
            sizes = two_largest[:, 1] - two_largest[:, 0]
            true = labels.astype(np.int64)
            chosen = predicted(scores)
            self.baseline_mistakes += self._baseline(true)
        k = len(self.confusion)
        cells = np.bincount(k * true + chosen, minlength=k * k)
        # not in place: copies of a tally share the array
        self.confusion = self.confusion + cells.reshape(k, k)
        if self.rounds == 0:
            sizes = sizes[1:]  # f = 0 in the first round of a stream: not counted as a near tie
        self.near_ties += int(np.count_nonzero(sizes < NEAR_TIE))
        self.nonpositive_margins += int(np.count_nonzero(margins <= 0))
        self.rounds += len(labels)

    def _baseline_of_two(self, labels: Floats) -> int:
        """Mistakes of predicting the more frequent of two classes so far."""
        positives = int(self.confusion[1].sum())
        earlier = 2 * positives - self.rounds
        before = np.cumsum(labels) - labels + earlier  # Σ y_s, s < t
        wrong = (before >= 0) != (labels > 0)
        return int(np.count_nonzero(wrong))

    def _baseline(self, true: Integers) -> int:
        """Mistakes of predicting the most frequent class so far, for more than two classes."""
        counts: list[int] = self.confusion.sum(axis=1).tolist()
        leader = counts.index(max(counts))
        mistakes = 0
        for y in true.tolist():
            if y != leader:
                mistakes += 1
            counts[y] += 1
            if (-counts[y], y) < (-counts[leader], leader):
                leader = y
        return mistakes
