"""The hypothesis `f = Σ_i a_i κ(s_i, ·)`, played one block of examples at a time.

When a block opens, one matrix product gives all kernel values that it can need: `K = κ(S, X)` and
the block's own Gram matrix `G`. Within the block

    f(x_i) = c · (base_i + b · G_i),      base = a·K,

where b holds the coefficients of the block's newcomers and c is a lazy scale: reading f is one dot
product, adding an example writes one number into b, shrinking f multiplies c. Newcomers join the
arrays in one go when the block closes, or when a learner needs them there ("settle"). The arrays
are in order of age: the oldest example first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dasum, daxpy, ddot, idamax  # a third of the overhead of ufuncs

from ahpatron_cli.core.budget import Reduction, Selection, hand_over, project_onto
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Stored

SMALLEST_SCALE = 1e-100
SMALLEST_SQUARE = float(np.finfo(np.float64).tiny)
"""Below this, doubles have fewer digits."""
EQUAL_SIZE = 1e-10
"""Coefficients that differ by this share of their size are equal but for rounding."""
CANCELLED = 1e-12
"""A sum this small beside its terms is rounding, and counts as 0."""


class Expansion(Hypothesis):
    """f, its active set S and its norm. Learners change it by `add`, `scale`, `drop` and so on."""

    size: int
    looks_ahead = True

    def __init__(self, kernel: Kernel, *, keep_gram: bool = False) -> None:
        self.kernel = kernel
        self.size = 0
        self.norm_squared = 0.0
        """‖f‖², tracked: `‖f + cκ(x,·)‖² = ‖f‖² + 2c·f(x) + c²κ(x,x)`; NaN if not known."""
        self.points: Points | None = None
        """The settled examples of S; None before the first block."""
        self._coefficients: Floats = np.empty(0)
        self._gram: Floats | None = np.empty((0, 0)) if keep_gram else None
        self._settled = 0
        self._scale = 1.0
        self._is_open = False

    # What the engine does -----------------------------------------------------------------------

    def open(self, block: Points, labels: Floats) -> None:
        # the stream may use features that it did not use so far
        self.points = (self.points or block.slice(0, 0)).widened(block.width)
        self._block, self._is_open = block, True
        self._table = self.kernel.between(self.points.followed_by(block), block)
        self._K = self._table[: self._settled]
        self._G = self._table[self._settled :].copy()  # newcomers will join K in its place
        self._diagonal = self.kernel.diagonal(block)
        self._pending = np.zeros(block.size)  # b
        self._newcomers: list[int] = []
        self._alive: list[int] | None = None  # the settled examples not dropped; None: all
        self._set_base(self.coefficients @ self._K)

    def _set_base(self, base: Floats) -> None:
        self._base = base
        self._terms: Floats | None = None  # Σ |a_i κ(s_i, x)|, when somebody asks
        # |f(x)| up to this may be a sum that cancelled: κ <= 1, so Σ|a| bounds the terms
        self._noise = CANCELLED * dasum(self.coefficients) if self._settled else 0.0

    def values(self) -> Floats:
        values: Floats = self._base
        if self._newcomers:
            values = values + self._pending @ self._G
        doubtful = np.abs(values) <= self._noise
        if doubtful.any():
            values = values.copy()
            for round_ in np.flatnonzero(doubtful).tolist():
                values[round_] = self._unless_cancelled(round_, values.item(round_))
        return values if self._scale == 1.0 else values * self._scale

    def value(self, round_: int) -> float:
        value = self._base.item(round_)
        if self._newcomers:
            value += ddot(self._pending, self._G[round_])
        if -self._noise <= value <= self._noise:
            value = self._unless_cancelled(round_, value)
        value *= self._scale
        self._now, self._value = round_, value
        return value

    def _unless_cancelled(self, round_: int, value: float) -> float:
        """The value of f, or exactly 0 where its terms cancel but for rounding.

        Duplicates with opposite labels do that; then sign(0) = +1 is to decide, not rounding.
        """
        if self._terms is None:
            self._terms = np.abs(self.coefficients) @ np.abs(self._K)
        terms = self._terms.item(round_)
        if self._newcomers:
            terms += ddot(np.abs(self._pending), np.abs(self._G[round_]))
        return 0.0 if abs(value) <= CANCELLED * terms else value

    def close(self) -> None:
        self._settle()
        self._is_open = False

    def at(self, points: Points) -> Floats:
        if self.points is None:
            return np.zeros(points.size)
        K = self.kernel.between(self.points.widened(points.width), points)
        values = self.coefficients @ K
        cancelled = np.abs(values) <= CANCELLED * (np.abs(self.coefficients) @ np.abs(K))
        return np.where(cancelled, 0.0, values)

    def compress(self, origin: Floats | None) -> None:
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    def exchange(self, stored: Stored) -> None:
        self.norm_squared = stored.number("norm_squared", self.norm_squared, unknown=True)
        self.norm_drift = stored.number("norm_drift", self.norm_drift)
        self.points = exchange_points(stored, "points", self.points)
        size = 0 if self.points is None else self.points.size
        self._coefficients = stored.array("coefficients", (size,), self.coefficients)
        if self._gram is None:
            stored.none("gram")
        else:
            self._gram = stored.array("gram", (size, size), self.gram)
        self.size = self._settled = size
        self._scale = 1.0

    # What learners do ---------------------------------------------------------------------------

    def add(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the current example x."""
        now = self._now
        self._newcomers.append(now)
        stored = coefficient / self._scale
        self._pending[now] = stored
        self._noise += CANCELLED * abs(stored)
        self.size += 1
        self.norm_squared += coefficient * (
            2.0 * self._value + coefficient * self._diagonal.item(now)
        )

    def move(self, coefficient: float, d: Floats) -> None:
        """`f ← f + coefficient·Σ d_i κ(s_i,·)` for a settled f, where `d = K^{-1} κ(S, x)`.

        The sum is the projection of κ(x,·) onto the span of S. So it has the same inner product
        with f, namely f(x), and its squared norm is `d·κ(S, x)`.
        """
        if self._settled:
            scaled = (coefficient / self._scale) * d
            self.coefficients[:] += scaled
            self._set_base(self._base + scaled @ self._K)
            explained = ddot(d, self.column())
            self.norm_squared += coefficient * (2.0 * self._value + coefficient * explained)

    def scale(self, factor: float) -> None:
        """`f ← factor·f`."""
        self._scale *= factor
        self._value *= factor
        self.norm_squared *= factor * factor
        if self._scale < SMALLEST_SCALE:
            self._fold_scale()

    def project(self, radius: float) -> None:
        """`f ← min(1, U/‖f‖)·f`: onto the ball of radius U."""
        if math.isnan(self.norm_squared):
            self.norm_squared = self._squared_norm()
        if not SMALLEST_SQUARE <= self.norm_squared < math.inf:
            self._refuse_square(self.norm_squared)
        square = radius * radius
        if self.norm_squared > square:
            if square < SMALLEST_SQUARE:
                self._refuse_square(SMALLEST_SQUARE)
            self.scale(radius / math.sqrt(self.norm_squared))
            self.norm_squared = square

    def _refuse_square(self, square: float) -> None:
        """Zero is a norm like any other, and so is what cancelled to zero; lost digits are not."""
        if math.isinf(square):
            raise NumericalError("‖f‖² overflows a double", self._now, "norm")
        newest = self._pending.item(self._now)
        if not newest and self._settled:  # it has settled already
            newest = self._coefficients.item(self._settled - 1)
        if square > 0 or 0 < abs(newest * self._scale) < math.sqrt(SMALLEST_SQUARE):
            raise NumericalError("‖f‖² is too small for a double", self._now, "norm")

    def drop(self, age: int) -> None:
        """Forget one example, 0 being the oldest: `f ← f - a_s·κ(s,·)`."""
        settled = self._settled if self._alive is None else len(self._alive)
        if age >= settled:
            self.drop_at(self._settled + self._newcomers[age - settled])
        else:
            self.drop_at(age if self._alive is None else self._alive[age])

    def drop_at(self, place: int) -> None:
        """Forget the example in this place of `sizes`."""
        if self._alive is None:
            self._alive = list(range(self._settled))
        if place < self._settled:
            self._alive.remove(place)
            self._base = daxpy(self._K[place], self._base, a=-self._coefficients.item(place))
            self._coefficients[place] = 0.0
            self._terms = None
        else:
            self._newcomers.remove(place - self._settled)
            self._pending[place - self._settled] = 0.0
        self.size -= 1
        self.norm_squared = math.nan

    def drop_smallest(self) -> None:
        """Forget the example with the smallest |a|; where equal but for rounding, the oldest."""
        sizes = self.sizes()
        sizes[sizes == 0] = math.inf
        self.drop_at(int((sizes <= sizes.min() * (1 + EQUAL_SIZE)).argmax()))

    def clip_coefficients(self, limit: float) -> None:
        """Bring every |a_i| that is above `limit` down to it."""
        bound = limit / self._scale
        settled = self.coefficients
        if len(settled) and abs(settled.item(idamax(settled))) > bound:
            np.minimum(settled, bound, out=settled)
            np.maximum(settled, -bound, out=settled)
            self._base, self._terms = settled @ self._K, None
            self.norm_squared = math.nan
        if abs(self._pending.item(idamax(self._pending))) > bound:
            np.clip(self._pending, -bound, bound, out=self._pending)
            self.norm_squared = math.nan

    def settle(self) -> None:
        """Bring S, a and K up to date within a block: newcomers in, dropped ones out."""
        kept, new = self._settle()
        if kept is not None:
            self._table[: len(kept)] = self._K[kept]
        self._table[self._settled - len(new) : self._settled] = self._G[new]
        self._K = self._table[: self._settled]
        self._set_base(self.coefficients @ self._K)
        self._pending[:] = 0.0
        self._newcomers.clear()
        self._alive = None

    def reduce(self, select: Selection, ridge: float, norm: float | None) -> Reduction:
        """Project f onto the examples that `select` keeps; rescale it to `norm` (None: its own)."""
        self.settle()
        return self._replace(project_onto(self.gram, self.coefficients, select, ridge, norm))

    def merge_into_oldest(self, kept: int, norm: float) -> Reduction:
        """Keep the oldest; the others hand their coefficients over; rescale f to `norm`."""
        self.settle()
        return self._replace(hand_over(self.gram, self.coefficients, kept, norm))

    def _replace(self, new: Reduction) -> Reduction:
        """Go on with f̄ in place of a settled f; note how far the tracked norm had drifted."""
        assert self.points is not None
        assert self._gram is not None
        if new.norm_before > 0:
            drift = abs(self.norm - new.norm_before) / new.norm_before
            self.norm_drift = max(self.norm_drift, drift)
        size = len(new.kept)
        self.points.keep(new.kept)
        self._coefficients[:size] = new.coefficients
        self._gram[:size, :size] = new.gram
        self.size = self._settled = size
        self.norm_squared = new.norm * new.norm
        self._table[:size] = self._K[new.kept]
        self._K = self._table[:size]
        self._set_base(new.coefficients @ self._K)
        self.value(self._now)
        return new

    # What anyone may look at --------------------------------------------------------------------

    @property
    def norm(self) -> float:
        if math.isnan(self.norm_squared):
            self.norm_squared = self._squared_norm()
        return math.sqrt(max(self.norm_squared, 0.0))

    def _squared_norm(self) -> float:
        """‖f‖² from the kernel: `c²·(aᵀK(S,S)a + 2aᵀK(S,X)b + bᵀGb)`; b = 0 between blocks."""
        assert self.points is not None
        a = self.coefficients
        squared = float(a @ self.kernel.between(self.points, self.points) @ a)
        if self._is_open:
            b = self._pending
            squared += 2 * float(a @ (self._K @ b)) + float(b @ (self._G @ b))
        return squared * self._scale * self._scale

    @property
    def coefficients(self) -> Floats:
        """The settled coefficients a, up to the lazy scale while a block is open."""
        return self._coefficients[: self._settled]

    @property
    def gram(self) -> Floats:
        """K(S, S) of the settled examples."""
        assert self._gram is not None
        return self._gram[: self._settled, : self._settled]

    def column(self) -> Floats:
        """κ(S, x) of the settled examples and the current one."""
        return self._K[:, self._now]

    def diagonal(self) -> float:
        """κ(x, x) of the current example."""
        return self._diagonal.item(self._now)

    # Places: settled examples in order of age, then the rounds of the block; `drop_at` takes them.
    # Arrays by place have entries for rounds that did not join, and for examples dropped since.

    def present(self) -> NDArray[np.bool_]:
        """In which places there is an example."""
        present = np.zeros(self._settled + len(self._pending), dtype=bool)
        present[slice(self._settled) if self._alive is None else self._alive] = True
        present[self._settled + np.array(self._newcomers, dtype=np.int64)] = True
        return present

    def weights(self) -> Floats:
        """a_i by place; 0 where there is no example."""
        weights: Floats = np.concatenate([self.coefficients, self._pending])
        return weights if self._scale == 1.0 else weights * self._scale

    def similarities(self) -> Floats:
        """κ(s, x) by place, x being the current example."""
        return np.concatenate([self._K[:, self._now], self._G[:, self._now]])

    def diagonals(self) -> Floats:
        """κ(s, s) by place, if the Gram matrix is kept."""
        return np.concatenate([self.gram.diagonal(), self._diagonal])

    def values_at_support(self) -> Floats:
        """f(s) by place, if the Gram matrix is kept."""
        a, b = self.coefficients, self._pending
        values: Floats = np.concatenate([self.gram @ a + self._K @ b, self._base + b @ self._G])
        return values if self._scale == 1.0 else values * self._scale

    def gram_by_place(self) -> Floats:
        """κ(s, s') by place, if the Gram matrix is kept."""
        return np.block([[self.gram, self._K], [self._K.T, self._G]])

    def sizes(self) -> Floats:
        """|a_i| up to a common factor, by place; 0 where there is no example."""
        sizes: Floats = np.abs(np.concatenate([self.coefficients, self._pending]))
        return sizes

    def oldest_coefficient(self) -> float:
        """a_s of the oldest example s in S."""
        settled = self._oldest_settled()
        stored = (
            self._pending[self._newcomers[0]] if settled is None else self._coefficients[settled]
        )
        return float(self._scale * stored)

    def value_at_oldest(self) -> float:
        """f(s) at the oldest example s in S."""
        settled = self._oldest_settled()
        if settled is not None:
            assert self.points is not None
            oldest = self.points.slice(settled, settled + 1)
            row = self.kernel.between(self.points, oldest)[:, 0]
            value = ddot(self.coefficients, row) + ddot(self._pending, self._K[settled])
            return float(self._scale * value)
        now = self._now
        value = self.value(self._newcomers[0])
        self.value(now)
        return value

    def _oldest_settled(self) -> int | None:
        """Where the oldest example stands in the arrays; None if it joined in this block."""
        if self._alive is None:
            return 0 if self._settled else None
        return self._alive[0] if self._alive else None

    # Housekeeping -------------------------------------------------------------------------------

    def _settle(self) -> tuple[Integers | None, Integers]:
        """The arrays without those dropped and with the newcomers; which rows stayed and came."""
        assert self.points is not None
        kept = None if self._alive is None else np.array(self._alive, dtype=np.int64)
        if kept is not None:
            self.points.keep(kept)
            self._coefficients[: len(kept)] = self._coefficients[kept]
            if self._gram is not None:
                self._gram[: len(kept), : len(kept)] = self._gram[kept].take(kept, axis=1)
            self._settled = len(kept)
        new = np.array(self._newcomers, dtype=np.int64)
        old, size = self._settled, self._settled + len(new)
        if len(new):
            self.points.append(self._block, new)
            self._grow(size)
            self._coefficients[old:size] = self._pending[new]
            if self._gram is not None:
                columns = (self._K if kept is None else self._K[kept]).take(new, axis=1)
                self._gram[:old, old:size] = columns
                self._gram[old:size, :old] = columns.T
                self._gram[old:size, old:size] = self._G[new].take(new, axis=1)
            self._settled = size
        if self._scale != 1.0:
            self._coefficients[:size] *= self._scale
            self._scale = 1.0
        return kept, new

    def _fold_scale(self) -> None:
        """Apply the lazy scale before it underflows."""
        self._coefficients[: self._settled] *= self._scale
        self._pending *= self._scale
        self._base, self._terms = self._base * self._scale, None
        self._noise *= self._scale
        self._scale = 1.0

    def _grow(self, size: int) -> None:
        """Room for `size` coefficients, doubled when it runs out."""
        if size <= len(self._coefficients):
            return
        room = max(size, 2 * len(self._coefficients), 64)
        coefficients = np.zeros(room)
        coefficients[: self._settled] = self.coefficients
        if self._gram is not None:
            gram = np.zeros((room, room))
            gram[: self._settled, : self._settled] = self.gram
            self._gram = gram
        self._coefficients = coefficients
