"""The hypothesis `f = Σ_i a_i κ(s_i,·)`, used on one block of examples at a time.

When a block opens, one product gives a table K of kernel values. It has a row per round of the
block and a column per example: those of S in order of age, then the rounds of the block. So the
order of columns is the order of age, and a mask `alive` says which columns are in S. Within the
block `f(x_t) = scale·g_t` with `g = K·a`: reading f is one number of g, adding an example adds a
row of K to g, and shrinking f multiplies the scale.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.gram import Gram
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.numerics import (
    CANCELLED,
    FLUSHED,
    TINY,
    dasum,
    daxpy,
    ddot,
    first_smallest,
)
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.reduction import Reduction
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import State, Stateful, StateReader

EXACT = -1.0
"""The `rounding` of values that are exact: no |value| is below it."""


class Hypothesis(Stateful, ABC):
    """Interface of a hypothesis f: open a block of examples, read f(x) per round, close it."""

    size: int | None = 0  # |S|; None if f is not made of examples
    successor: Hypothesis | None = None  # set by an update: opens the rest of the block
    rounding = EXACT  # |values| up to this may be pure rounding: use `exact_value` instead
    scale = 1.0
    t = 0  # the current round of the block, set by the engine before each update
    values: Any  # f(x) of each round of the open block, as f is now, in units of `scale`
    block: Points  # the examples of the open block

    def open(self, block: Points, start: int = 0) -> None:
        """Start a block: compute what is needed to read f at its examples.

        `start` is the first round to come, if another f has been used in the earlier ones.
        """
        self.block = block

    def reopen(self) -> None:
        """Have the engine open the rest of the block again, which the update has closed."""
        self.successor = self

    @property
    def is_interrupted(self) -> bool:
        """Whether the update has closed the block, so that the rest of it will be opened again."""
        return self.successor is self

    def exact_value(self, t: int) -> float:
        """f(x) of round t in units of `scale`; exactly 0 if its terms cancel up to rounding."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """End the block: keep the examples that joined S and discard the others."""

    @abstractmethod
    def at(self, points: Points) -> Floats:
        """Values of f at any points, without side effects; only while no block is open."""

    @property
    @abstractmethod
    def norm(self) -> float: ...


def exact_zeros(K: Floats, values: Floats, a: Floats) -> Floats:
    """`values = K·a` with entries set to exactly 0 if their terms cancel up to rounding."""
    if np.abs(values).min(initial=math.inf) > CANCELLED * np.abs(a).sum():
        return values  # as nearly always: κ <= 1, so Σ|a| bounds the terms
    terms = np.abs(K) @ np.abs(a)
    cancels = np.abs(values) <= CANCELLED * terms
    return np.where(cancels, 0.0, values)


class Expansion(Hypothesis):
    """f = Σ a_i κ(s_i,·) on an active set S; with `classes=(k,)`, k functions that share one S.

    Arrays "by column" have an entry per column of K: S at the start of the block, then the rounds
    of the block. Columns outside S have `a = 0` and `alive = False`. `gram=True` keeps K(S,S).

    Attributes
    ----------
    points : Points or None
        The examples of S, then, in an open block, those of the block; None before the first block.
    size : int
        |S|.
    a : array of shape (columns,) or (columns, k)
        Coefficients in units of `scale`; between blocks only those of S, with scale 1.
    square : float or array of shape (k,)
        ‖f‖², updated with f; NaN if it is no longer tracked.

    All others belong to the open block:

    alive : array of bool of shape (columns,)
        Which columns are in S.
    K : array of shape (rounds, columns)
        Kernel values; K[t] is κ(·, x_t).
    g : array of shape (rounds,) or (rounds, k)
        `K·a`.
    diagonal : list of float
        κ(x, x) of each round.
    n, m : int
        |S| when the block opened, and the number of rounds in it.
    """

    state_fields: ClassVar[Any] = {
        "points": Points,
        "a": "s...",
        "square": "any",
        "_gram": "ss?",
    }
    # between blocks
    size: int
    points: Points | None
    norm_drift = 0.0  # largest relative error of the tracked norm at a halving
    _matrix: Gram | None  # K(S,S), if it is kept
    _room: Floats = np.empty(0)  # memory of K, used again by the next block
    # within a block
    _dropped: bool  # whether an example has left S
    _old_rows: Floats  # κ(s, ·) of some examples of S
    _old_first: int  # the column of the first of them

    def __init__(
        self, kernel: Kernel, classes: tuple[int, ...] = (), *, gram: bool = False
    ) -> None:
        self.kernel = kernel
        self.points = None
        self.size = 0
        self.a: Floats = np.empty((0, *classes))
        self.square: Any = np.zeros(classes) if classes else 0.0
        self._matrix = Gram(np.empty((0, 0))) if gram else None

    def check(self, state: StateReader) -> None:
        self.size = 0 if self.points is None else self.points.size

    def state_dict(self) -> State:
        if np.isnan(self.square).any():
            self.square = math.nan
        return super().state_dict()

    def open(self, block: Points, start: int = 0) -> None:
        self.block = block
        self.n = n = self.size
        self.m = m = block.size
        self.columns = columns = n + m
        points = block.slice(0, 0) if self.points is None else self.points
        self.points = points = points.widened(block.width)  # new features may turn up
        points.extend(block)
        self.successor = None
        self.scale = 1.0
        if m * columns > len(self._room):  # reuse memory: allocating per block is slow
            self._room = np.empty(2 * m * columns)
        room = self._room[: m * columns].reshape(m, columns)
        self.K = self.kernel.between(block, points, room)
        self._flat = self.K.reshape(-1)
        self.diagonal = self.kernel.diagonal(block)
        self.classes = self.a.shape[1:]
        zeros = np.zeros((m, *self.classes))
        self.a = np.concatenate((self.a, zeros))
        self.alive: NDArray[np.bool_] = np.zeros(columns, dtype=bool)
        self.alive[:n] = True
        views: Any = memoryview  # faster than arrays for reading single numbers
        self._a = views(self.a)
        self._alive = views(self.alive)
        self._dropped = False
        self._old_rows = self.K[:0]
        self._old_first = 0
        if self._matrix is not None:
            self._matrix.open(n)
        self.evaluate()

    def evaluate(self) -> None:
        """Compute `g = K·a` from the coefficients."""
        self.g: Floats = np.dot(self.K, self.a)
        self.values = self._g = memoryview(self.g)
        self.rounding = CANCELLED * dasum(self.a.reshape(-1))  # κ <= 1, so Σ|a| bounds the terms

    def exact_value(self, t: int) -> float:
        row = self.K[t]
        value: float = ddot(self.a, row)
        if value == 0.0 or abs(value) <= CANCELLED * dasum(self.a * row):
            return 0.0
        return value

    def class_values(self, start: int, stop: int) -> Floats:
        """f(x) of rounds start to stop, shape (rounds, k); exactly 0 if terms cancel."""
        g = self.g[start:stop]
        if np.abs(g).min() <= self.rounding:
            g = self._exact_zeros(self.K[start:stop], g)
        return g * self.scale

    def _exact_zeros(self, K: Floats, values: Floats) -> Floats:
        """`exact_zeros` of the values of f, `values = K·a`."""
        return exact_zeros(K, values, self.a)

    def close(self) -> None:
        assert self.points is not None
        if not self._dropped and self.size == self.n:  # S is the same as before
            self.points.keep(np.arange(self.n), unmoved=self.n)
            self.a = self.a[: self.n]
        else:
            if self._matrix is not None:
                self.lower_gram()
            support = self.support
            unmoved = 0 if self._dropped else self.n
            self.points.keep(support, unmoved)
            self.a = self.a.take(support, 0)
            self.size = len(support)
        if self.scale != 1.0:
            self.a *= self.scale
            self.scale = 1.0

    def at(self, points: Points) -> Floats:
        if self.points is None:
            return np.zeros((points.size, *self.a.shape[1:]))
        examples = self.points.widened(points.width)
        K = self.kernel.between(points, examples)
        return self._exact_zeros(K, K @ self.a)

    def add(self, c: Any, radius: float | None = None) -> None:
        """`f ← f + c·κ(x,·)` for the current example x; then project f onto a ball, if given."""
        if self.classes:
            self._add_to_classes(c, radius)
            return
        t = self.t
        n = self.n
        scale = self.scale
        column = n + t
        stored = c / scale
        self._a[column] = stored
        self._alive[column] = True
        self.size += 1
        square = self.square + c * (2.0 * scale * self._g[t] + c * self.diagonal[t])
        # κ(x,·) at the rounds of the block is in x's own row of K; g changes in place
        daxpy(self._flat, self.g, self.m, stored, t * self.columns + n)
        self.rounding += CANCELLED * abs(stored)
        self.square = square
        if radius is not None:
            limit = radius * radius
            if TINY <= limit < square < math.inf and scale > 1e-75:
                self.scale = scale * radius / math.sqrt(square)  # `project`, inlined
                self.square = limit
            elif not TINY <= square <= limit or square == math.inf:
                self.project(radius)

    def _add_to_classes(self, c: Floats, radius: float | None) -> None:
        t = self.t
        column = self.n + t
        stored = c / self.scale
        self.a[column] = stored
        self.alive[column] = True
        self.size += 1
        self.square = self.square + c * (2.0 * self.scale * self.g[t] + c * self.diagonal[t])
        self.g += self.K[t, self.n :, None] * stored
        self.rounding += CANCELLED * dasum(stored)
        if radius is not None:
            self.project(radius)

    def drop(self, column: int) -> None:
        """Remove an example from S: `f ← f - a_s·κ(s,·)`."""
        if self.classes:
            self.g -= self.K[:, column, None] * self.a[column]
            self.a[column] = 0.0
        else:
            daxpy(self._flat, self.g, self.m, -self._a[column], column, self.columns)
            self._a[column] = 0.0
        self._alive[column] = False
        self.size -= 1
        self._dropped = True
        if self._matrix is not None:
            self._matrix.leave()
        self.square = math.nan

    def forget_norm(self) -> None:
        """Stop tracking ‖f‖; from now on it is computed on demand."""
        self.square = math.nan

    def shift(self, by: Floats) -> None:
        """`f ← f + Σ_i by_i κ(s_i,·)`; coefficients that cancel become 0. Does not set `square`."""
        by = by / self.scale
        sizes = np.abs(self.a) + np.abs(by)
        self.a += by
        cancels = np.abs(self.a) <= CANCELLED * sizes
        self.g += np.dot(self.K, by)
        if (cancels & (sizes > 0)).any():
            self.a[cancels] = 0.0
            self.evaluate()
        self.rounding += CANCELLED * dasum(by.reshape(-1))

    def shrink(self, factor: float) -> None:
        """`f ← factor·f`."""
        self.scale *= factor
        self.square *= factor * factor
        if self.scale < FLUSHED:
            self.a *= self.scale
            self.scale = 1.0
            self.evaluate()

    def project(self, radius: float) -> None:
        """Project f onto the ball of radius U: `f ← min(1, U/‖f‖)·f`; each f_c by itself."""
        limit = radius * radius
        if np.isnan(self.square).any():
            self.square = self._exact_square()
        if self.classes:
            self._project_classes(radius)
            return
        square = self.square
        # if terms cancel, the square is 0, or slightly negative by rounding
        if not TINY <= square < math.inf or limit < TINY:
            self._check_square(limit)
        if square > limit:
            self.shrink(radius / math.sqrt(square))
            self.square = limit

    def _project_classes(self, radius: float) -> None:
        """Project each f_c onto the ball."""
        limit = radius * radius
        large = self.square > limit
        if not large.any():
            return
        norms = np.sqrt(np.where(large, self.square, 1.0))
        factor = np.where(large, radius / norms, 1.0)
        self.a *= factor
        self.g *= factor
        self.square = np.where(large, limit, self.square)

    def _check_square(self, limit: float) -> None:
        """Raise an error if ‖f‖² is not a number that can be compared with the limit U²."""
        square = self.square
        newest = abs(self.a.item(self.n + self.t)) * self.scale
        too_small = 0 < square < TINY or limit < min(TINY, square)
        vanished = square == 0 < newest < math.sqrt(TINY)
        if too_small or vanished or square == math.inf:
            message = "‖f‖² overflows a double or is too small for a double"
            raise NumericalError(message, self.t)

    def cap(self, limit: float) -> None:
        """Clip all coefficients to [-limit, limit]."""
        bound = limit / self.scale
        if max(self.a.max(), -self.a.min()) > bound:
            np.clip(self.a, -bound, bound, out=self.a)
            self.evaluate()
            self.forget_norm()

    def replace(self, new: Reduction) -> None:
        """Replace f by the result of a reduction (`reduction.py`), on a subset of S."""
        assert self._matrix is not None
        exact = math.hypot(*new.norm_before) if self.classes else new.norm_before
        if exact > 0:
            drift = abs(self.norm - exact) / exact
            self.norm_drift = max(self.norm_drift, drift)
        support = self.support.take(new.stays)
        self._matrix.replace(new.gram, columns=support, before=self.size)
        self.size = len(support)
        self.alive[:] = False
        self.alive[support] = True
        self.a[:] = 0.0
        self.a[support] = new.coefficients
        self.scale = 1.0
        self.square = new.norm * new.norm
        self._dropped = True
        self.evaluate()

    @property
    def norm(self) -> float:
        """‖f‖; with several classes `√(Σ_c ‖f_c‖²)`."""
        square = self.square
        if isinstance(square, float) and square >= 0.0:
            return math.sqrt(square)
        if np.isnan(square).any():
            self.square = square = self._exact_square()
        return math.sqrt(max(float(np.sum(square)), 0.0))

    def _exact_square(self) -> Any:
        """‖f‖² from kernel values: `scale²·aᵀKa`."""
        assert self.points is not None
        with np.errstate(over="ignore", invalid="ignore"):
            gram = self.kernel.between(self.points, self.points)
            products = self.a * (gram @ self.a)
            squares = products.sum(axis=0) * (self.scale * self.scale)
        return squares if squares.ndim else float(squares)

    @property
    def support(self) -> Integers:
        """Columns of S, in order of age."""
        return self.alive.nonzero()[0]

    @property
    def coefficients(self) -> Floats:
        """Coefficients of S in order of age."""
        if len(self.a) == self.size:
            return self.a * self.scale
        return self.a.take(self.support, 0) * self.scale

    @property
    def oldest(self) -> int:
        """Column of the oldest example of S."""
        return int(self.alive.argmax())

    @property
    def smallest(self) -> int:
        """Column with the smallest |a| (norm of the row of a, with k classes); ties: the oldest."""
        support = self.support
        sizes = np.abs(self.a.take(support, 0))
        if self.classes:
            sizes = np.sqrt(np.square(sizes).sum(axis=1))
        return support.item(first_smallest(sizes))

    @property
    def value(self) -> Any:
        """f(x) of the current example by the current f; with k classes an array of shape (k,)."""
        g = self.g[self.t] if self.classes else self.g.item(self.t)
        return g * self.scale

    @property
    def k(self) -> Floats:
        """κ(s, x) by column, for the current example x."""
        row: Floats = self.K[self.t]
        return row

    def value_at(self, column: int) -> float:
        """f(s) of the example s in a column; for two classes only."""
        assert self.points is not None
        if column >= self.n:
            return self.scale * self.exact_value(column - self.n)
        first = self._old_first
        if not first <= column < first + len(self._old_rows):
            first = column
            stop = min(first + 8, self.n)  # prefetch: callers go column by column
            examples = self.points.slice(first, stop)
            self._old_rows = self.kernel.between(examples, self.points)
            self._old_first = first
        row = self._old_rows[column - first]
        return float(self.scale * ddot(self.a, row))

    def gram(self) -> Floats:
        """Gram matrix K(S,S) in order of age, shape (|S|, |S|); requires `gram=True`."""
        self.lower_gram()
        assert self._matrix is not None
        return self._matrix.whole(self.size)

    def lower_gram(self) -> Floats:
        """Gram matrix K(S,S) in order of age; only the lower triangle is valid."""
        if self._matrix is None:
            raise TypeError("K(S,S) is not kept: make the expansion with gram=True")
        return self._matrix.lower(self.alive, self.K)

    @property
    def _gram(self) -> Floats | None:
        """K(S,S) as it is saved, between two blocks."""
        if self._matrix is None:
            return None
        return np.ascontiguousarray(self._matrix.whole(self.size))

    @_gram.setter
    def _gram(self, gram: Floats | None) -> None:
        self._matrix = None if gram is None else Gram(gram)
