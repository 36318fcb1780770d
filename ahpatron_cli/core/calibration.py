"""Probabilities from scores: a logistic link, fitted online during a run."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ahpatron_cli.core.numerics import ddot, dposv
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stateful
from ahpatron_cli.core.tally import has_answer

WINDOW = 256
"""Number of rounds between Newton steps."""
_ONES = np.ones(WINDOW)
"""A dot product with ones is ten times as fast as `np.sum`."""


class _Slopes(NamedTuple):
    """Derivatives of the log loss of a window, `shares` (see `Calibration.fit`), and Brier loss."""

    shares: Floats
    brier: float
    gradient: list[float]
    curvature: list[list[float]]


class Calibration(Stateful):
    """Platt's link `P(y = +1) = 1/(1 + exp(-(α·f(x) + β)))`; for k classes, softmax of `α·f_c(x)`.

    It is fitted to scores that were predicted before their labels were seen, so it is not
    overconfident as a link fitted to training scores would be. After every 256 rounds, one Newton
    step minimises the log loss of these rounds plus a quadratic approximation of that of earlier
    rounds and of the prior. Before the first step, α = 1 and β = 0.

    Attributes
    ----------
    weights : array of shape (2,), or (1,) with several classes
        α and β.
    loss : float
        Sum of `-log P(y)` over complete windows, each with the link fitted before it.
    brier : float
        Sum of Brier losses over the same rounds, see `brier_loss`.

    References
    ----------
    Platt (1999): Probabilistic outputs for support vector machines.
    """

    state_fields: ClassVar[Any] = {
        "weights": "p",
        "loss": float,
        "brier": float,
        "_precision": "pp",
        "_scores": "b...",
        "_labels": "b",
    }

    memory = 0.97  # weight of earlier windows, per window: f changes while it learns
    least = 1e-15  # smaller probabilities are clipped to this in the log loss

    def __init__(self, classes: int, *, of_classes: bool = False) -> None:
        """`of_classes` means softmax also if there are fewer than three."""
        self.weights: Floats = np.array([1.0, 0.0])
        # scores and labels of the incomplete window
        self._scores: Floats = np.empty(0)
        self._labels: Floats = np.empty(0)
        if classes > 2 or of_classes:
            self.weights = np.array([1.0])
            self._scores = np.empty((0, classes))
        self.loss = 0.0
        self.brier = 0.0
        count = len(self.weights)
        self._precision: Floats = np.eye(count)

    @property
    def is_fitted(self) -> bool:
        """Whether there were rounds enough for a step."""
        prior = np.eye(len(self.weights))
        return not np.array_equal(self._precision, prior)

    def with_class(self) -> Calibration:
        """A copy of the link with a further class, which had the smallest score so far."""
        link = copy.copy(self)
        scores = self._scores
        least = scores.min(axis=1, keepdims=True, initial=np.inf)
        link._scores = np.concatenate([scores, least], axis=1)
        return link

    def add(self, scores: Floats, labels: Floats) -> None:
        """Store the scores f(x) and labels of rounds for `fit`, except scores of NaN."""
        answered = has_answer(scores)
        if not answered.all():
            scores = scores[answered]
            labels = labels[answered]
        if len(self._labels):
            scores = np.concatenate([self._scores, scores])
            labels = np.concatenate([self._labels, labels])
        self._scores = scores
        self._labels = labels
        if len(labels) >= 16 * WINDOW:  # fitting many windows at once is faster
            self.fit()

    def follow(self, scores: Floats, labels: Floats) -> Floats:
        """Add rows in order; return the probabilities that were predicted for them.

        Those of a row are computed by the link that was fitted to complete windows before it.
        Rows without a label (NaN) get probabilities, and are not added. Nor are scores of NaN,
        whose probabilities are NaN.

        Returns
        -------
        array of shape (n, 2) with columns for -1 and +1, or (n, k)
        """
        known = ~np.isnan(labels) & has_answer(scores)
        seen = np.cumsum(known)
        parts = []
        start = 0
        while start < len(labels):
            room = WINDOW - len(self._labels) % WINDOW
            before = 0
            if start:
                before = int(seen[start - 1])
            last = int(np.searchsorted(seen, before + room))  # the last row of the window
            stop = min(last + 1, len(labels))
            part = slice(start, stop)
            parts.append(self.probabilities(scores[part]))
            has_label = known[part]
            labelled = scores[part][has_label]
            self.add(labelled, labels[part][has_label])
            self.fit()
            start = part.stop
        if not parts:
            return self.probabilities(scores)
        return np.concatenate(parts)

    def fit(self) -> None:
        """Fit the link to all complete windows that are stored."""
        scores = self._scores
        labels = self._labels
        windows = len(labels) // WINDOW
        if not windows:
            return
        done = windows * WINDOW
        shares = np.empty(done)  # P(y) of each round; with two classes P(+1) - P(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, done, WINDOW):
                stop = start + WINDOW
                window = slice(start, stop)
                own = labels[window]
                shares[window] = self._step(scores[window], own)
        if scores.ndim == 1:
            signs = labels[:done]
            shares = 0.5 + 0.5 * signs * shares
        logs = self._logs(shares)
        # one sum per window: independent of how the stream is cut into pieces
        for logs_of_window in logs.reshape(-1, WINDOW):
            total = float(logs_of_window.sum())
            self.loss -= total
        self._scores = scores[done:].copy()
        self._labels = labels[done:].copy()

    def _logs(self, shares: Floats) -> Floats:
        """log P(y); smaller probabilities than `least` are clipped to it."""
        clipped = np.maximum(shares, self.least)
        return np.log(clipped)

    def _step(self, scores: Floats, labels: Floats) -> Floats:
        """One Newton step on a window; returns `shares` (see `fit`) by the link before the step."""
        if scores.ndim == 1:
            slopes = self._slopes_of_two(scores, labels)
        else:
            slopes = self._slopes_of_classes(scores, labels)
        self.brier += slopes.brier
        if math.isfinite(slopes.curvature[0][0]):  # not if squares of huge scores overflow
            before = self.weights
            earlier = self.memory * self._precision
            curvature = np.array(slopes.curvature)
            self._precision = earlier + curvature
            _, step, _ = dposv(self._precision, slopes.gradient)
            weights = before + step
            # if f was confident and wrong, a full step could overshoot and make α negative
            lowest = 0.5 * before[0]
            weights[0] = max(weights[0], lowest)
            self.weights = weights
        return slopes.shares

    def _slopes_of_two(self, scores: Floats, labels: Floats) -> _Slopes:
        """Derivatives on a window with two classes, with respect to α and β."""
        shares = self._difference(scores)
        missed = labels - shares
        brier = 0.25 * ddot(missed, missed)
        by_slope = 0.5 * ddot(scores, missed)
        by_offset = 0.5 * ddot(_ONES, missed)
        squares = 0.25 * shares * shares
        variance = 0.25 - squares
        products = scores * variance
        prior = 1.0 - self.memory
        slope = ddot(scores, products) + prior
        mixed = ddot(_ONES, products)
        offset = ddot(_ONES, variance) + prior
        return _Slopes(
            shares=shares,
            brier=brier,
            gradient=[by_slope, by_offset],
            curvature=[[slope, mixed], [mixed, offset]],
        )

    def _slopes_of_classes(self, scores: Floats, labels: Floats) -> _Slopes:
        """Derivatives on a window with several classes, with respect to α."""
        p = self.probabilities(scores)
        products = p * scores
        mean = products.sum(axis=1)  # mean of f_c under P
        own = _of_class(scores, labels)
        missed = own - mean
        gradient = missed.sum()
        prior = 1.0 - self.memory
        squares = products * scores
        variance = squares.sum() - ddot(mean, mean)
        curvature = variance + prior
        return _Slopes(
            shares=_of_class(p, labels),
            brier=_brier_of_classes(p, labels),
            gradient=[gradient],
            curvature=[[curvature]],
        )

    def _difference(self, scores: Floats) -> Floats:
        """P(y = +1) - P(y = -1) of two classes."""
        halves = 0.5 * self.weights
        slope, offset = halves.tolist()
        logits = slope * scores + offset
        return np.asarray(np.tanh(logits))

    def log_loss(self, rounds: int) -> float:
        """Mean of `-log P(y)` per round; `rounds` is the number of all rounds added."""
        self.fit()
        rest = self.loss_of(self._scores, self._labels)
        total = self.loss + rest
        return total / max(rounds, 1)

    def loss_of(self, scores: Floats, labels: Floats) -> float:
        """Sum of `-log P(y)` of rows with these scores and labels, by the link so far."""
        p = self.probabilities(scores)
        classes = labels
        if scores.ndim == 1:  # -1 and +1 are the columns 0 and 1
            positive = labels > 0
            classes = positive.astype(float)
        shares = _of_class(p, classes)
        logs = self._logs(shares)
        return -float(logs.sum())

    def brier_score(self, rounds: int) -> float:
        """Mean Brier loss per round; `rounds` is the number of all rounds added."""
        self.fit()
        rest = self.brier_loss(self._scores, self._labels)
        total = self.brier + rest
        return total / max(rounds, 1)

    def brier_loss(self, scores: Floats, labels: Floats) -> float:
        """Sum of Brier losses of rows with these scores and labels, by the link so far.

        With two classes `(P(+1) - [y = +1])²`; with more, `(P(c) - [y = c])²` summed over classes,
        as in scikit-learn.
        """
        p = self.probabilities(scores)
        if scores.ndim > 1:
            return _brier_of_classes(p, labels)
        is_positive = labels > 0
        missed = p[:, 1] - is_positive
        return float(missed @ missed)

    def probabilities(self, scores: Floats) -> Floats:
        """Class probabilities P(y = c | x) of rows with these scores f(x).

        Parameters
        ----------
        scores : array of shape (n,), or (n, k) with k classes

        Returns
        -------
        array of shape (n, 2) with columns for -1 and +1, or (n, k)
        """
        if scores.ndim == 1:
            difference = self._difference(scores)
            positive = 0.5 + 0.5 * difference
            negative = 1.0 - positive
            return np.stack((negative, positive), axis=1)
        logits = self.weights[0] * scores
        largest = logits.max(axis=1, keepdims=True)
        odds: Floats = np.exp(logits - largest)  # no exponent is positive: nothing overflows
        total: Floats = odds.sum(axis=1, keepdims=True)
        return odds / total


def _brier_of_classes(p: Floats, classes: Floats) -> float:
    """Sum of Brier losses of rows with these probabilities and classes."""
    missed = p.copy()
    rows = np.arange(len(classes))
    columns = classes.astype(np.int64)
    missed[rows, columns] -= 1.0
    return float(np.sum(missed * missed))


def _of_class(table: Floats, classes: Floats) -> Floats:
    """The entry of each row of a table in the column of its class."""
    rows = np.arange(len(classes))
    columns = classes.astype(np.int64)
    entries: Floats = table[rows, columns]
    return entries
