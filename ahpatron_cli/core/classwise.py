"""f with a value f_c(x) for each class c, and how learners change it on one active set for all.

The prediction is the class with the largest value; of classes that are equal up to rounding, the
first in the order of their labels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.budget import Selection, project_classes
from ahpatron_cli.core.expansion import CANCELLED
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.second_order import SecondOrder
from ahpatron_cli.core.state import Stored

REST, SHARED = "rest", "shared"
MULTICLASS_MEANING = "several classes: one learner for each against the rest, or one S for all"
MAX_CLASSES = 1000
EQUAL_VALUES = 1e-12
"""Values that differ by this share of the largest |f_c(x)| are equal but for rounding."""


def predicted(scores: Floats) -> Integers:
    """The class with the largest value in each row; of those equal up to rounding, the first."""
    slack = EQUAL_VALUES * np.abs(scores).max(axis=1, keepdims=True)
    return np.asarray((scores >= scores.max(axis=1, keepdims=True) - slack).argmax(axis=1))


def class_margins(scores: Floats, labels: Floats) -> tuple[Floats, Integers]:
    """f_y(x) - max_{c≠y} f_c(x) of each row, and the class that the maximum is of.

    Values that are equal up to rounding are equal: the margin is 0, and the first is the maximum.
    """
    rounds, own = np.arange(len(labels)), labels.astype(np.int64)
    slack = EQUAL_VALUES * np.abs(scores).max(axis=1)
    others = scores.copy()
    others[rounds, own] = -np.inf
    best = others.max(axis=1)
    margins = scores[rounds, own] - best
    margins[np.abs(margins) <= slack] = 0.0
    return margins, (others >= (best - slack)[:, None]).argmax(axis=1)


class SharingLearner:
    """A learner that can play several classes on one active set."""

    multiclass: str
    """`SHARED`, or `REST`: one learner for each class against the rest."""

    def shared(self, kernel: Kernel, classes: int) -> Hypothesis:
        """The empty f, with a value for each class.

        `values` has a row for each example of the block, with f_c of each class as it is now and up
        to rounding; `value` is one of these rows, exactly 0 where terms cancel.
        """
        raise NotImplementedError

    def wants_class(self, margins: Floats) -> NDArray[np.bool_]:
        """Which rounds with the margins `f_y(x) - max_{c≠y} f_c(x)` are to change f."""
        raise NotImplementedError

    def pass_over(self, values: Floats, labels: Floats) -> None:
        """Rounds with these f_c(x) that do not change f."""

    def update_class(
        self, f: Any, values: Floats, y: int, rival: int, margin: float
    ) -> bool | None:
        """Change f by the current example, of class y; `rival` is the class of max_{c≠y} f_c(x).

        False says that nothing changed after all.
        """
        raise NotImplementedError


class SharedExpansion(Hypothesis):
    """f_c = Σ_i A_ic κ(s_i,·): an expansion for each class, on one S with one Gram matrix."""

    size: int

    def __init__(self, kernel: Kernel, classes: int) -> None:
        self.kernel = kernel
        self.classes = classes
        self.size = 0
        """|S|, this block's newcomers included; their points and Gram matrix settle later."""
        self.points: Points | None = None
        self.norms_squared = np.zeros(classes)
        """‖f_c‖², tracked."""
        self._A = np.zeros((classes, 64))
        self._gram = np.zeros((0, 0))

    def open(self, block: Points, labels: Floats) -> None:
        self.points = (self.points or block.slice(0, 0)).widened(block.width)
        self._block, n = block, self.size
        table = self.kernel.between(self.points.followed_by(block), block)
        self._K, self._G = table[:n], table[n:]
        self._diagonal = self.kernel.diagonal(block)
        self._newcomers: list[int] = []
        self._F = self.coefficients @ self._K

    @property
    def coefficients(self) -> Floats:
        """A, one row per class."""
        return self._A[:, : self.size]

    def values(self) -> Floats:
        return self._F.T

    def value(self, round_: int) -> Floats:  # type: ignore[override]  # one for each class
        self._now, values = round_, self._F[:, round_]
        kernel_values = np.concatenate((self._K[:, round_], self._G[self._newcomers, round_]))
        terms = np.abs(self.coefficients) @ np.abs(kernel_values)
        return np.where(np.abs(values) <= CANCELLED * terms, 0.0, values)

    def add(self, coefficient: float, y: int, rival: int) -> None:
        """`f_y ← f_y + cκ(x,·)`, `f_rival ← f_rival - cκ(x,·)` for the current example x."""
        if self.size == self._A.shape[1]:
            self._A = np.concatenate((self._A, np.zeros_like(self._A)), axis=1)
        self._A[:, self.size] = 0.0
        now, row = self._now, self._G[self._now]
        for c, step in ((y, coefficient), (rival, -coefficient)):
            self.norms_squared[c] += step * (2 * self._F[c, now] + step * self._diagonal[now])
            self._A[c, self.size] = step
            self._F[c] += step * row
        self._newcomers.append(now)
        self.size += 1

    def project(self, radius: float) -> None:
        """`f_c ← min(1, U/‖f_c‖)·f_c` for each class."""
        for c in np.flatnonzero(self.norms_squared > radius * radius).tolist():
            factor = radius / math.sqrt(self.norms_squared[c])
            self._A[c] *= factor
            self._F[c] *= factor
            self.norms_squared[c] = radius * radius

    def reduce(self, select: Selection, ridge: float, norm: float | None) -> None:
        """Project each f_c onto the examples that `select` keeps, by the norms of rows of A."""
        assert self.points is not None
        self.close()
        kept, self._gram, parts = project_classes(
            self._gram, self.coefficients, select, ridge, norm
        )
        self.points.keep(kept)
        self.size = len(kept)
        for c, part in enumerate(parts):
            self._A[c, : self.size] = part.coefficients
            self.norms_squared[c] = part.norm * part.norm
        self._K = self._K[kept]
        self._F = self.coefficients @ self._K

    def close(self) -> None:
        """Bring points and Gram matrix up to date with the newcomers."""
        if not self._newcomers:
            return
        assert self.points is not None
        new = np.array(self._newcomers, dtype=np.int64)
        self.points.append(self._block, new)
        across = self._K[:, new]
        self._gram = np.block([[self._gram, across], [across.T, self._G[np.ix_(new, new)]]])
        self._K = np.concatenate((self._K, self._G[new]))
        self._newcomers = []

    def at(self, points: Points) -> Floats:
        if self.points is None:
            return np.zeros((points.size, self.classes))
        K = self.kernel.between(self.points.widened(points.width), points)
        values, terms = self.coefficients @ K, np.abs(self.coefficients) @ np.abs(K)
        return np.where(np.abs(values) <= CANCELLED * terms, 0.0, values).T

    def compress(self, origin: Floats | None) -> None:
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    @property
    def norm(self) -> float:
        """√(Σ ‖f_c‖²)."""
        return math.sqrt(max(float(self.norms_squared.sum()), 0.0))

    def exchange(self, stored: Stored) -> None:
        self.norms_squared = stored.array("norms_squared", (self.classes,), self.norms_squared)
        self.points = exchange_points(stored, "points", self.points)
        self.size = size = 0 if self.points is None else self.points.size
        self._A = stored.array("coefficients", (self.classes, size), self.coefficients)
        if not size:
            self._A = np.zeros((self.classes, 64))
        self._gram = stored.array("gram", (size, size), self._gram)


class SharedSecondOrder(SecondOrder):
    """All classes in the span of one S, with one covariance."""

    def __init__(self, kernel: Kernel, budget: int, classes: int) -> None:
        super().__init__(kernel, budget, (classes,))

    def value(self, round_: int) -> Floats:  # type: ignore[override]  # one for each class
        """Computed anew if the two largest differ by little but rounding."""
        self._now = t = round_
        gap = _gap(self._f[t : t + 1]).item()
        if gap == 0.0 or gap > self._noise or gap > self._noise * self._largest_kernel_value(t):
            return np.asarray(self._f[t])
        self._settle()
        self._begin()
        return np.asarray(np.where(self._cancelled(t), 0.0, self._f[t]))

    def values(self) -> Floats:
        return self._f

    def _distances(self) -> Floats:
        """Half the margin of each round, if its label is the predicted one."""
        return _gap(self._f) / 2

    def _move(self, w: Floats, step: Any) -> None:
        self._f += w[:, None] * step


def _gap(values: Floats) -> Floats:
    """The difference of the two largest values in each row."""
    two = np.partition(values, -2, axis=1)
    return np.asarray(two[:, -1] - two[:, -2])
