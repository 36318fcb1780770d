"""Probabilities from scores: a logistic link, fitted online during a run."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.numerics import ddot, dposv
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stateful

WINDOW = 256
"""Number of rounds between Newton steps."""
_ONES = np.ones(WINDOW)
"""A dot product with ones is ten times as fast as `np.sum`."""


class Calibration(Stateful):
    """Platt's link `P(y = +1) = 1/(1 + exp(-(α·f(x) + β)))`; for k classes, softmax of `α·f_c(x)`.

    It is fitted to scores that were predicted before their labels were seen, so it is not
    overconfident as a link fitted to training scores would be. After every 256 rounds, one Newton
    step minimises the log loss of these rounds plus a quadratic approximation of that of earlier
    rounds and of the prior.

    Attributes
    ----------
    weights : array of shape (2,), or (1,) with several classes
        α and β.
    loss : float
        Sum of `-log P(y)` over complete windows, each with the link fitted before it.

    References
    ----------
    Platt (1999): Probabilistic outputs for support vector machines.
    """

    kept: ClassVar[Any] = {
        **{"weights": "p", "loss": float, "_precision": "pp"},
        **{"_scores": "b...", "_labels": "b"},
    }

    memory = 0.97  # weight of earlier windows, per window: f changes while it learns
    least = 1e-15  # smaller probabilities are clipped to this in the log loss

    def __init__(self, classes: int) -> None:
        size = 2 if classes == 2 else 1
        self.weights: Floats = np.array([1.0, 0.0])[:size]
        self.loss, self._precision = 0.0, np.eye(size)
        # scores and labels of the incomplete window
        self._scores: Floats = np.empty((0,) if classes == 2 else (0, classes))
        self._labels: Floats = np.empty(0)

    def add(self, scores: Floats, labels: Floats) -> None:
        """Store the scores f(x) and labels of rounds for `fit`."""
        if len(self._labels):
            scores = np.concatenate((self._scores, scores))
            labels = np.concatenate((self._labels, labels))
        self._scores, self._labels = scores, labels
        if len(labels) >= 16 * WINDOW:  # fitting many windows at once is faster
            self.fit()

    def fit(self) -> None:
        """Fit the link to all complete windows that are stored."""
        scores, labels = self._scores, self._labels
        done = len(labels) // WINDOW * WINDOW
        if not done:
            return
        shares = np.empty(done)  # P(y) of each round; with two classes P(+1) - P(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, done, WINDOW):
                part = slice(start, start + WINDOW)
                shares[part] = self._step(scores[part], labels[part])
        if scores.ndim == 1:
            shares = 0.5 + 0.5 * labels[:done] * shares
        # one sum per window: independent of how the stream is cut into pieces
        for logs in np.log(np.maximum(shares, self.least)).reshape(-1, WINDOW):
            self.loss -= float(logs.sum())
        self._scores, self._labels = scores[done:].copy(), labels[done:].copy()

    def _step(self, scores: Floats, labels: Floats) -> Floats:
        """One Newton step on a window; returns `shares` (see `fit`) by the link before the step."""
        prior = 1.0 - self.memory
        if scores.ndim == 1:
            shares = self._difference(scores)
            missed, variance = labels - shares, 0.25 - 0.25 * shares * shares
            gradient = [0.5 * ddot(scores, missed), 0.5 * ddot(_ONES, missed)]
            products = scores * variance
            square, mixed = ddot(scores, products), ddot(_ONES, products)
            curvature = [[square + prior, mixed], [mixed, ddot(_ONES, variance) + prior]]
        else:
            p, true = self.probabilities(scores), (np.arange(len(labels)), labels.astype(np.int64))
            shares, mean = p[true], (p * scores).sum(axis=1)  # mean of f_c under P
            gradient = [(scores[true] - mean).sum()]
            curvature = [[(p * scores * scores).sum() - ddot(mean, mean) + prior]]
        if math.isfinite(curvature[0][0]):  # not if squares of huge scores overflow
            self._precision = self.memory * self._precision + curvature
            weights = self.weights + dposv(self._precision, gradient)[1]
            # if f was confident and wrong, a full step could overshoot and make α negative
            weights[0] = max(weights[0], 0.5 * self.weights[0])
            self.weights = weights
        return shares

    def _difference(self, scores: Floats) -> Floats:
        """P(y = +1) - P(y = -1) of two classes."""
        slope, offset = (0.5 * self.weights).tolist()
        return np.asarray(np.tanh(slope * scores + offset))

    def log_loss(self, rounds: int) -> float:
        """Mean of `-log P(y)` per round; `rounds` is the number of all rounds added."""
        self.fit()
        return (self.loss + self.loss_of(self._scores, self._labels)) / max(rounds, 1)

    def loss_of(self, scores: Floats, labels: Floats) -> float:
        """Sum of `-log P(y)` of rows with these scores and labels, by the link so far."""
        classes = (labels > 0 if scores.ndim == 1 else labels).astype(np.int64)
        shares = self.probabilities(scores)[np.arange(len(classes)), classes]
        return -float(np.log(np.maximum(shares, self.least)).sum())

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
            positive = 0.5 + 0.5 * self._difference(scores)
            return np.stack((1.0 - positive, positive), axis=1)
        logits = self.weights[0] * scores
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))
