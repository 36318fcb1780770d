"""The hypothesis `f = Σ_i a_i κ(s_i,·)`, used on one block of examples at a time.

When a block opens, one product gives a table K of kernel values. It has a row per round of the
block and a column per example: those of S in order of age, then the rounds of the block. So the
order of columns is the order of age, and a mask `alive` says which columns are in S. Within the
block `f(x_t) = scale·g_t` with `g = K·a` and a lazy scale: reading f is one number of g, adding an
example adds a row of K to g, and shrinking f multiplies the scale.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import ColumnError, NumericalError
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
NOT_TRACKED = math.nan
"""The `square` of an f whose norm is not tracked: whatever is added to it, it stays NaN."""


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
    sizes = np.abs(values)
    weights = np.abs(a)
    smallest = sizes.min(initial=math.inf)
    if smallest > CANCELLED * weights.sum():
        return values  # as nearly always: κ <= 1, so Σ|a| bounds the terms
    terms = np.abs(K) @ weights
    cancels = sizes <= CANCELLED * terms
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
        ‖f‖², updated with f, or `NOT_TRACKED`.

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

    # What updates read and write. As slots, because CPython is slow to read attributes of objects
    # that have 30 of them or more in their dicts, as most subclasses would. `_a`, `_alive`, `_g`
    # and `_flat` are other views of a, alive, g and K, of which single numbers are read faster.
    __slots__ = (
        "K",
        "_a",
        "_alive",
        "_flat",
        "_g",
        "a",
        "alive",
        "block",
        "classes",
        "columns",
        "diagonal",
        "g",
        "m",
        "n",
        "rounding",
        "scale",
        "size",
        "square",
        "successor",
        "t",
        "values",
    )
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
    _buffer: Floats = np.empty(0)  # memory of K, used again by the next block
    # within a block
    _dropped: bool  # whether an example has left S
    _old_rows: Floats  # κ(s, ·) of some examples of S
    _old_first: int  # the column of the first of them

    def __init__(
        self, kernel: Kernel, classes: tuple[int, ...] = (), *, gram: bool = False
    ) -> None:
        self.kernel = kernel
        self.points = None
        self._begin()
        self.a: Floats = np.empty((0, *classes))
        self.square: Any = 0.0
        if classes:
            self.square = np.zeros(classes)
        self._matrix = None
        if gram:
            nothing = np.empty((0, 0))
            self._matrix = Gram(nothing)

    def _begin(self) -> None:
        """Set what is the same for every f before its first block."""
        self.size = 0
        self.successor: Hypothesis | None = None
        self.rounding: float = EXACT
        self.scale: float = 1.0
        self.t: int = 0

    def check(self, state: StateReader) -> None:
        self._begin()
        if self.points is not None:
            self.size = self.points.size

    def state_dict(self) -> State:
        if not self._is_norm_tracked():
            self.square = NOT_TRACKED
        return super().state_dict()

    def copy_last_class(self) -> None:
        super().copy_last_class()
        if isinstance(self.square, np.ndarray):
            self.square = np.append(self.square, self.square[-1])

    def open(self, block: Points, start: int = 0) -> None:
        n = self.size
        m = block.size
        columns = n + m
        self.block = block
        self.n = n
        self.m = m
        self.columns = columns
        points = self.points
        if points is None:
            points = block.slice(0, 0)
        points = points.widened(block.width)  # new features may turn up
        points.extend(block)
        self.points = points
        self.successor = None
        self.scale = 1.0
        needed = m * columns
        if needed > len(self._buffer):  # reuse memory: allocating per block is slow
            self._buffer = np.empty(2 * needed)
        table = self._buffer[:needed].reshape(m, columns)
        self.K = self.kernel.between(block, points, table)
        self._flat = self.K.reshape(-1)
        self.diagonal = self.kernel.diagonal(block)
        self._open_columns()
        if self._matrix is not None:
            self._matrix.open(n)
        self.evaluate()

    def _open_columns(self) -> None:
        """Give each column of the block a coefficient; those of its rounds are 0."""
        self.classes = self.a.shape[1:]
        shape = (self.m, *self.classes)
        zeros = np.zeros(shape)
        self.a = np.concatenate((self.a, zeros))
        alive: NDArray[np.bool_] = np.zeros(self.columns, dtype=bool)
        alive[: self.n] = True
        self.alive = alive
        views: Any = memoryview  # faster than arrays for reading single numbers
        self._a = views(self.a)
        self._alive = views(self.alive)
        self._dropped = False
        self._old_rows = self.K[:0]
        self._old_first = 0

    def evaluate(self) -> None:
        """Compute `g = K·a` from the coefficients."""
        self.g: Floats = np.dot(self.K, self.a)
        self._g = memoryview(self.g)
        self.values = self._g
        coefficients = self.a.reshape(-1)
        total = dasum(coefficients)
        self.rounding = CANCELLED * total  # κ <= 1, so Σ|a| bounds the terms

    def exact_value(self, t: int) -> float:
        row = self.K[t]
        value: float = ddot(self.a, row)
        if value == 0.0:
            return 0.0
        terms = self.a * row
        if abs(value) <= CANCELLED * dasum(terms):
            return 0.0
        return value

    def class_values(self, start: int, stop: int) -> Floats:
        """f(x) of rounds start to stop, shape (rounds, k); exactly 0 if terms cancel."""
        g = self.g[start:stop]
        smallest = np.abs(g).min()
        if smallest <= self.rounding:
            K = self.K[start:stop]
            g = self._exact_zeros(K, g)
        return g * self.scale

    def _exact_zeros(self, K: Floats, values: Floats) -> Floats:
        """`exact_zeros` of the values of f, `values = K·a`."""
        return exact_zeros(K, values, self.a)

    def close(self) -> None:
        assert self.points is not None
        n = self.n
        if not self._dropped and self.size == n:  # S is the same as before
            self.points.shorten(n)
            self.a = self.a[:n]
        else:
            if self._matrix is not None:
                self.lower_gram()
            support = self.support
            unmoved = n
            if self._dropped:
                unmoved = 0
            self.points.keep(support, unmoved)
            self.a = self.a.take(support, 0)
            self.size = len(support)
        if self.scale != 1.0:
            self.a *= self.scale
            self.scale = 1.0

    def at(self, points: Points) -> Floats:
        if self.points is None:
            classes = self.a.shape[1:]
            return np.zeros((points.size, *classes))
        examples = self.points.widened(points.width)
        K = self.kernel.between(points, examples)
        values = K @ self.a
        return self._exact_zeros(K, values)

    def add(self, coefficient: Any, radius: float | None = None) -> None:
        """`f ← f + coefficient·κ(x,·)` for the current example x; x joins S.

        Then f is projected onto a ball, if its radius is given.
        """
        if self.classes:
            self._add_to_classes(coefficient, radius)
            return
        t = self.t
        n = self.n
        scale = self.scale
        column = n + t
        stored = coefficient / scale
        self._a[column] = stored
        self._alive[column] = True
        self.size += 1
        slope = 2.0 * scale * self._g[t]
        square = self.square + coefficient * (slope + coefficient * self.diagonal[t])
        # κ(x,·) at the rounds of the block is in x's own row of K; g changes in place
        row = t * self.columns + n
        daxpy(self._flat, self.g, self.m, stored, row)
        self.rounding += CANCELLED * abs(stored)
        self.square = square
        if radius is not None:
            limit = radius * radius
            if TINY <= limit < square < math.inf and scale > 1e-75:
                self.scale = scale * radius / math.sqrt(square)  # `project`, inlined
                self.square = limit
            elif not TINY <= square <= limit or square == math.inf:
                self.project(radius)

    def _add_to_classes(self, coefficients: Floats, radius: float | None) -> None:
        """As `add`, with a coefficient for each class."""
        t = self.t
        n = self.n
        scale = self.scale
        column = n + t
        stored = coefficients / scale
        self.a[column] = stored
        self.alive[column] = True
        self.size += 1
        slopes = 2.0 * scale * self.g[t]
        growth = coefficients * (slopes + coefficients * self.diagonal[t])
        self.square = self.square + growth
        row = self.K[t, n:, None]
        self.g += row * stored
        self.rounding += CANCELLED * dasum(stored)
        if radius is not None:
            self.project(radius)

    def drop(self, column: int) -> None:
        """Remove an example from S: `f ← f - a_s·κ(s,·)`.

        Raises
        ------
        ColumnError
            The column is not in S, and so |S| would no longer be the number of examples.
        """
        if not 0 <= column < self.columns or not self._alive[column]:
            raise ColumnError(
                f"drop({column}): column {column} is not in S; f.support has the columns of S, "
                "f.oldest and f.smallest are two of them"
            )
        if self.classes:
            values = self.K[:, column, None]
            self.g -= values * self.a[column]
            self.a[column] = 0.0
        else:
            removed = -self._a[column]
            daxpy(self._flat, self.g, self.m, removed, column, self.columns)
            self._a[column] = 0.0
        self._alive[column] = False
        self.size -= 1
        self._dropped = True
        if self._matrix is not None:
            self._matrix.leave()
        self.square = NOT_TRACKED

    def forget_norm(self) -> None:
        """Stop tracking ‖f‖; from now on it is computed on demand."""
        self.square = NOT_TRACKED

    def _is_norm_tracked(self) -> bool:
        """Whether `square` is ‖f‖²."""
        return not np.isnan(self.square).any()

    def shift(self, by: Floats) -> None:
        """`f ← f + Σ_i by_i κ(s_i,·)`; coefficients that cancel become 0. Does not set `square`."""
        by = by / self.scale
        a = self.a
        sizes = np.abs(a) + np.abs(by)
        a += by
        cancels = np.abs(a) <= CANCELLED * sizes
        self.g += np.dot(self.K, by)
        changes = cancels & (sizes > 0)
        if changes.any():
            a[cancels] = 0.0
            self.evaluate()
        total = dasum(by.reshape(-1))
        self.rounding += CANCELLED * total

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
        if not self._is_norm_tracked():
            self.square = self._exact_square()
        if self.classes:
            self._project_classes(radius)
            return
        limit = radius * radius
        square = self.square
        # if terms cancel, the square is 0, or slightly negative by rounding
        if not TINY <= square < math.inf or limit < TINY:
            self._check_square(limit)
        if square > limit:
            norm = math.sqrt(square)
            self.shrink(radius / norm)
            self.square = limit

    def _project_classes(self, radius: float) -> None:
        """Project each f_c onto the ball."""
        limit = radius * radius
        large = self.square > limit
        if not large.any():
            return
        squares = np.where(large, self.square, 1.0)
        norms = np.sqrt(squares)
        factor = np.where(large, radius / norms, 1.0)
        self.a *= factor
        self.g *= factor
        self.square = np.where(large, limit, self.square)

    def _check_square(self, limit: float) -> None:
        """Raise an error if ‖f‖² is not a number that can be compared with the limit U²."""
        square = self.square
        column = self.n + self.t
        newest = abs(self.a.item(column)) * self.scale
        too_small = 0 < square < TINY or limit < min(TINY, square)
        vanished = square == 0 < newest < math.sqrt(TINY)
        if too_small or vanished or square == math.inf:
            message = "‖f‖² overflows a double or is too small for a double"
            raise NumericalError(message, self.t)

    def cap(self, limit: float) -> None:
        """Clip all coefficients to [-limit, limit]."""
        bound = limit / self.scale
        a = self.a
        largest = max(a.max(), -a.min())
        if largest > bound:
            np.clip(a, -bound, bound, out=a)
            self.evaluate()
            self.forget_norm()

    def replace(self, new: Reduction) -> None:
        """Replace f by the result of a reduction, on a subset of S."""
        assert self._matrix is not None
        exact = new.norm_before
        if self.classes:
            exact = math.hypot(*new.norm_before)
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
        if not self._is_norm_tracked():
            square = self._exact_square()
            self.square = square
        total = float(np.sum(square))
        return math.sqrt(max(total, 0.0))

    def _exact_square(self) -> Any:
        """‖f‖² from kernel values: `scale²·aᵀKa`."""
        points = self.points
        a = self.a
        assert points is not None
        with np.errstate(over="ignore", invalid="ignore"):
            gram = self.kernel.between(points, points)
            products = a * (gram @ a)
            sums = products.sum(axis=0)
            squares = sums * (self.scale * self.scale)
        if squares.ndim:
            return squares
        return float(squares)

    @property
    def support(self) -> Integers:
        """Columns of S, in order of age."""
        (columns,) = self.alive.nonzero()
        return columns

    @property
    def coefficients(self) -> Floats:
        """Coefficients of S in order of age."""
        if len(self.a) == self.size:
            return self.a * self.scale
        a = self.a.take(self.support, 0)
        return a * self.scale

    @property
    def oldest(self) -> int:
        """Column of the oldest example of S."""
        return int(self.alive.argmax())

    @property
    def smallest(self) -> int:
        """Column with the smallest |a| (norm of the row of a, with k classes); ties: the oldest."""
        support = self.support
        a = self.a.take(support, 0)
        sizes = np.abs(a)
        if self.classes:
            squares = np.square(sizes)
            sizes = np.sqrt(squares.sum(axis=1))
        smallest = first_smallest(sizes)
        return support.item(smallest)

    @property
    def value(self) -> Any:
        """f(x) of the current example by the current f; with k classes an array of shape (k,)."""
        if self.classes:
            return self.g[self.t] * self.scale
        return self.g.item(self.t) * self.scale

    @property
    def k(self) -> Floats:
        """κ(s, x) by column, for the current example x."""
        row: Floats = self.K[self.t]
        return row

    def value_at(self, column: int) -> float:
        """f(s) of the example s in a column; for two classes only."""
        assert self.points is not None
        if column >= self.n:
            t = column - self.n
            return self.scale * self.exact_value(t)
        first = self._old_first
        stop = first + len(self._old_rows)
        if not first <= column < stop:
            first = column
            stop = min(first + 8, self.n)  # prefetch: callers go column by column
            examples = self.points.slice(first, stop)
            self._old_rows = self.kernel.between(examples, self.points)
            self._old_first = first
        row = self._old_rows[column - first]
        value = ddot(self.a, row)
        return float(self.scale * value)

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
        matrix = self._matrix.whole(self.size)
        return np.ascontiguousarray(matrix)

    @_gram.setter
    def _gram(self, gram: Floats | None) -> None:
        self._matrix = None
        if gram is not None:
            self._matrix = Gram(gram)
