"""Probabilities from scores: a logistic link that is fitted while a pass goes on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.numerics import ddot
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stateful


class Calibration(Stateful):
    """Platt's link `P(y = +1) = 1/(1 + exp(-(α·f(x) + β)))`; for k classes, softmax of `α·f_c(x)`.

    It is fitted to the scores of a pass, which were predicted before their labels were seen, so it
    is not optimistic as one fitted to training scores would be. After every 256 rounds of the
    stream, one Newton step minimises the log loss of these rounds plus a quadratic approximation
    of that of earlier ones and of the prior.

    Attributes
    ----------
    weights : array of shape (2,), or (1,) with several classes
        α and β.
    loss : float
        Sum of `-log P(y)` over complete windows, by the link as it was before each window.

    References
    ----------
    Platt (1999): Probabilistic outputs for support vector machines.
    """

    kept: ClassVar[Any] = {
        **{"weights": "p", "loss": float, "_precision": "pp"},
        **{"_scores": "b...", "_labels": "b"},
    }

    window = 256  # rounds from one Newton step to the next
    memory = 0.97  # weight of earlier windows, per window: f changes while it learns
    least = 1e-15  # probabilities below this count as this much in the log loss

    def __init__(self, classes: int) -> None:
        size = 2 if classes == 2 else 1
        self.weights: Floats = np.array([1.0, 0.0])[:size]
        self.loss, self._precision = 0.0, np.eye(size)
        # rounds of the open window
        self._scores: Floats = np.empty((0,) if classes == 2 else (0, classes))
        self._labels: Floats = np.empty(0)

    def add(self, scores: Floats, labels: Floats) -> None:
        """Learn from rounds with these f(x) and labels."""
        if len(self._labels):
            scores = np.concatenate((self._scores, scores))
            labels = np.concatenate((self._labels, labels))
        done = len(labels) // self.window * self.window
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, done, self.window):
                self._step(scores[start : start + self.window], labels[start : start + self.window])
        self._scores, self._labels = scores[done:].copy(), labels[done:].copy()

    def _step(self, scores: Floats, labels: Floats) -> None:
        """One Newton step."""
        own = self._own(scores, labels)
        self.loss -= float(np.log(np.maximum(own, self.least)).sum())
        if scores.ndim == 1:
            missed = labels * (1.0 - own)
            variance = missed * labels * own
            gradient = [ddot(scores, missed), missed.sum()]
            mixed = ddot(scores, variance)
            curvature: Any = [[ddot(scores * scores, variance), mixed], [mixed, variance.sum()]]
        else:
            p = self.probabilities(scores)
            mean = (p * scores).sum(axis=1)  # of f_c under P
            true = scores[np.arange(len(labels)), labels.astype(np.int64)]
            gradient = [(true - mean).sum()]
            curvature = [[(p * scores * scores).sum() - ddot(mean, mean)]]
        if not np.isfinite(curvature).all():  # squares of huge scores overflow: nothing to learn
            return
        prior = np.eye(len(self.weights))
        self._precision = self.memory * self._precision + (1 - self.memory) * prior + curvature
        weights = self.weights + np.linalg.solve(self._precision, gradient)
        # where f was confident and wrong, a full step would overshoot and turn the classes round
        weights[0] = max(weights[0], 0.5 * self.weights[0])
        self.weights = weights

    def _own(self, scores: Floats, labels: Floats) -> Floats:
        """P(y) of the true class of each round."""
        if scores.ndim == 1:
            logits = labels * (self.weights[0] * scores + self.weights[1])
            return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))
        return self.probabilities(scores)[np.arange(len(labels)), labels.astype(np.int64)]

    def log_loss(self, rounds: int) -> float:
        """Mean of `-log P(y)` over so many rounds, all that were added."""
        own = np.maximum(self._own(self._scores, self._labels), self.least)
        return (self.loss - float(np.log(own).sum())) / max(rounds, 1)

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = c | x) of rows with these f(x).

        Parameters
        ----------
        scores : array of shape (n,), or (n, k) with k classes

        Returns
        -------
        array of shape (n, 2) with columns for -1 and +1, or (n, k)
        """
        if scores.ndim == 1:
            positive = self._own(scores, np.ones(len(scores)))
            return np.stack((1.0 - positive, positive), axis=1)
        logits = self.weights[0] * scores
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))
