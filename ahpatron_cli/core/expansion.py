"""The hypothesis `f = Σ_i a_i κ(s_i,·)`, played one block of examples at a time.

When a block opens, one matrix product gives all kernel values that it can need: κ of the examples
in S, and of the block's own, at the block's examples. Each row of this table is a round, each
column a *place*: first those of S in order of age, then the rounds of the block. Within the block

    f(x_i) = c·g_i,      g = table·a,

where a holds the coefficients by place and c is a lazy scale. Reading f is one number of g; adding
an example writes one number into a and adds a row of the table to g; shrinking f multiplies c.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ahpatron_cli.core.blas import dasum, daxpy, ddot
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
LARGEST_SQUARE = float(np.finfo(np.float64).max)
EQUAL_SIZE = 1e-10
"""Coefficients that differ by this share of their size are equal but for rounding."""
CANCELLED = 1e-12
"""A sum this small beside its terms is rounding, and counts as 0."""


class Steps(NamedTuple):
    """A rule that f follows by itself. In round t, the margin y·f(x) being that of the prediction:

    `f ← s_t·f`; then, if `y·f(x) <= θ` or S is empty, `f ← Proj_U(f + λ_t·y·κ(x,·))`.
    What is called with f may change it by the methods below, as `update` may.
    """

    threshold: float
    """θ; 0 is the rule of mistakes: a margin of exactly 0 is one if y = -1."""
    step_at: Callable[[float, float], float]
    """λ_t > 0 by the margin and κ(x,x); asked for once in each round that updates, in order."""
    radius: float | None = None
    """U; None: no projection."""
    budget: int | None = None
    """B; None: S may grow."""
    make_room: Callable[[Any], object] | None = None
    """What the learner does to f before an example joins, if |S| = B."""
    trim: Callable[[Any], object] | None = None
    """What the learner does to f after an example joined, if |S| > B."""
    shrink_at: Callable[[], float] | None = None
    """s_t; asked for once in each round. None: 1."""
    next_threshold: Callable[[], float] | None = None
    """θ from the next round on; asked for after each update. None: it stays."""


class Expansion(Hypothesis):
    """f, its active set S and its norm. Learners change it by `add`, `scale`, `drop` and so on."""

    size: int
    looks_ahead = True

    def __init__(self, kernel: Kernel, *, keep_gram: bool = False, most: int | None = None) -> None:
        """`most` is |S| at its largest, if it is known: the Gram matrix then has no empty room."""
        self.kernel = kernel
        self._largest_size = sys.maxsize if most is None else most
        self.size = 0
        self.norm_squared = 0.0
        """‖f‖², tracked: `‖f + cκ(x,·)‖² = ‖f‖² + 2c·f(x) + c²κ(x,x)`; NaN if not known."""
        self.points: Points | None = None
        """S; while a block is open, S as it was then and behind it the block, by place."""
        self._a: Floats = np.empty(0)
        self._scale = 1.0
        self._places: Integers = np.empty(0, dtype=np.int64)
        self._gram: Floats | None = np.empty((0, 0)) if keep_gram else None
        self._gram_places = self._places
        self._is_open = False
        self._room: Floats = np.empty(0)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy takes along between two blocks: not the table."""
        return {**vars(self), "_room": np.empty(0)}

    # What the engine does -----------------------------------------------------------------------

    def open(self, block: Points, labels: Floats) -> None:
        # the stream may use features that it did not use so far
        if self.points is None:
            self.points = block.slice(0, 0)
        self.points = points = self.points.widened(block.width)
        points.extend(block)
        self._settled: tuple[Floats, Floats] | None = None
        self._block, self._is_open, self._moved = block, True, False
        self._rounds, places = block.size, points.size
        self._first = self.size  # the place of the block's first round
        self._table = self.kernel.between(block, points, self._room_for(self._rounds, places))
        self._flat = self._table.ravel()
        self._diagonal = self.kernel.diagonal(block)
        self._diagonals: Floats | None = None
        self._places = np.arange(places)  # of S in order of age; only the first |S| count
        self._gram_places = self._places[: self._first].copy()
        coefficients = self._a
        self._a = np.zeros(places)
        self._a[: self._first] = coefficients
        self._evaluate()

    def _room_for(self, rows: int, columns: int) -> Floats:
        """Where the table goes: fresh memory for each block would take a third of its product."""
        if rows * columns > len(self._room):
            self._room = np.empty(2 * rows * columns)
        return self._room[: rows * columns].reshape(rows, columns)

    def _evaluate(self) -> None:
        """g from the coefficients."""
        self._g: Floats = self._table.dot(self._a)
        # |f(x)| up to this may be a sum that cancelled: κ <= 1, so Σ|a| bounds the terms
        self._noise = CANCELLED * dasum(self._a)

    def values(self) -> Floats:
        values: Floats = self._g * self._scale
        doubtful = np.abs(self._g) <= self._noise
        if doubtful.any():
            if not self._moved:
                doubtful &= self._g != 0.0
            for round_ in np.flatnonzero(doubtful).tolist():
                values[round_] = self._careful_value(round_) * self._scale
        return values

    def value(self, round_: int) -> float:
        value = self._g.item(round_)
        if -self._noise <= value <= self._noise and (value or self._moved):
            value = self._careful_value(round_)
        value *= self._scale
        self._now, self._value = round_, value
        return value

    def sweep(self, steps: Steps, labels: list[float], scores: list[float]) -> tuple[int, int]:
        """Play the block's rounds by `steps`, and note each f(x) as it was predicted.

        Returns how many updated, and how many of them although y·f(x) > 0. The arithmetic is that
        of `value`, `scale`, `add` and `project`: their calls would take most of the time.
        """
        threshold, step_at, radius, budget, make_room, trim, shrink_at, next_threshold = steps
        square = math.inf if radius is None else radius * radius  # infinite where ** would raise
        smallest, most = SMALLEST_SQUARE, min(square, LARGEST_SQUARE)
        flat, diagonal, first, rounds = self._flat, self._diagonal, self._first, self._rounds
        views: Any = memoryview  # quicker by one number at a time
        a, places = views(self._a), views(self._places)
        g, values, width = self._g, views(self._g), len(a)
        scale, noise, squared, size = self._scale, self._noise, self.norm_squared, self.size
        updates = margin_updates = 0
        for now, y in enumerate(labels):
            value = values[now]
            if value <= noise and value >= -noise and (value or self._moved):
                value = self._careful_value(now)
            scores[now] = value = value * scale
            margin = y * value
            if shrink_at is not None:
                factor = shrink_at()
                scale *= factor
                value *= factor
                squared *= factor * factor
                if scale < SMALLEST_SCALE:
                    self._scale, self._noise = scale, noise
                    self._fold_scale()  # g changes in place
                    scale, noise = self._scale, self._noise
            if not size or (margin <= threshold and (margin or threshold or y < 0.0)):
                if make_room is not None and size == budget:
                    self._now, self._value, self.size = now, value, size
                    self._scale, self._noise, self.norm_squared = scale, noise, squared
                    make_room(self)
                    scale, noise, squared = self._scale, self._noise, self.norm_squared
                    size, g, values, value = self.size, self._g, views(self._g), self._value
                step = step_at(margin, diagonal[now])
                updates += 1
                if margin > 0:
                    margin_updates += 1
                stored = step / scale
                noise += CANCELLED * stored
                stored *= y
                place = first + now
                a[place], places[size] = stored, place
                size += 1
                daxpy(flat, g, rounds, stored, now * width + first)
                squared += step * (2.0 * y * value + step * diagonal[now])
                if next_threshold is not None:
                    threshold = next_threshold()
                if trim is not None and size - 1 == budget:
                    self._now, self._value, self.size = now, value, size
                    self._scale, self._noise, self.norm_squared = scale, noise, squared
                    trim(self)
                    scale, noise, squared = self._scale, self._noise, self.norm_squared
                    size, g, values = self.size, self._g, views(self._g)
                if radius is None or smallest <= squared <= most:  # as mostly: nothing to project
                    continue
                factor = radius / math.sqrt(squared) if smallest <= square < squared else 0.0
                if scale * factor >= SMALLEST_SCALE:
                    scale *= factor
                    squared = square
                else:
                    self._now, self._value, self.size = now, value, size
                    self._scale, self._noise, self.norm_squared = scale, noise, squared
                    self.project(radius)
                    scale, noise, squared = self._scale, self._noise, self.norm_squared
        self._scale, self._noise, self.norm_squared, self.size = scale, noise, squared, size
        return updates, margin_updates

    def _careful_value(self, round_: int) -> float:
        """g anew, or exactly 0 where its terms cancel but for rounding.

        Duplicates with opposite labels do that; then sign(0) = +1 is to decide, not rounding. And g
        may carry the rounding of what was dropped, or be 0 by it; if nothing was, a 0 is one.
        """
        a, row = self._a, self._table[round_]
        value: float = ddot(a, row)
        return 0.0 if abs(value) <= CANCELLED * dasum(a * row) else value

    def close(self) -> None:
        assert self.points is not None
        if self._gram is not None:
            self._complete_gram()
        members = self.members
        self.points.keep(members, 0 if self._moved else self._first)
        self._a = self._a.take(members)
        if self._scale != 1.0:
            self._a *= self._scale
            self._scale = 1.0
        self._is_open = False
        self._table = self._flat = self._g = np.empty(0)  # copies of a pass need not carry them

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
        self.size = size = 0 if self.points is None else self.points.size
        self._a = stored.array("coefficients", (size,), self._a)
        if self._gram is None:
            stored.none("gram")
        else:
            self._gram = stored.array("gram", (size, size), self._gram[:size, :size])
        self._scale = 1.0

    # What learners do ---------------------------------------------------------------------------

    def add(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the current example x."""
        now, first = self._now, self._first
        place = first + now
        stored = coefficient / self._scale
        self._a[place] = stored
        self._places[self.size] = place
        self.size += 1
        # κ(x, ·) at the block's examples stands in x's own row, too; g changes in place
        daxpy(self._flat, self._g, self._rounds, stored, now * len(self._a) + first)
        self._noise += CANCELLED * abs(stored)
        self.norm_squared += coefficient * (2.0 * self._value + coefficient * self._diagonal[now])

    def shift(self, by: Floats) -> None:
        """`f ← f + Σ by_i κ(s_i,·)`, in order of age. ‖f‖ is left as it was."""
        moved = self.by_place(by / self._scale)
        self._a += moved
        self._g += self._table @ moved
        self._noise += CANCELLED * dasum(moved)

    def move(self, coefficient: float, d: Floats) -> None:
        """`f ← f + coefficient·Σ d_i κ(s_i,·)`, where `d = K^{-1} κ(S, x)`.

        The sum is the projection of κ(x,·) onto the span of S. So it has the same inner product
        with f, namely f(x), and its squared norm is `d·κ(S, x)`.
        """
        if self.size:
            self.shift(coefficient * d)
            explained = ddot(d, self.column())
            self.norm_squared += coefficient * (2.0 * self._value + coefficient * explained)

    def scale(self, factor: float) -> None:
        """`f ← factor·f`."""
        self._scale *= factor
        self._value *= factor
        self.norm_squared *= factor * factor
        if self._scale < SMALLEST_SCALE:
            self._fold_scale()

    def _fold_scale(self) -> None:
        """Apply the lazy scale before it underflows."""
        self._a *= self._scale
        self._g *= self._scale
        self._noise *= self._scale
        self._scale = 1.0

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
        """A norm of exactly zero is fine; one that underflowed or overflowed is refused."""
        if math.isinf(square):
            raise NumericalError("‖f‖² overflows a double", self._now, "norm")
        newest = self._a.item(self._places.item(self.size - 1)) if self.size else 0.0
        if square > 0 or 0 < abs(newest * self._scale) < math.sqrt(SMALLEST_SQUARE):
            raise NumericalError("‖f‖² is too small for a double", self._now, "norm")

    def drop(self, age: int) -> None:
        """Forget one example, 0 being the oldest: `f ← f - a_s·κ(s,·)`."""
        place, self._moved = self._places.item(age), True
        self._places[age : self.size - 1] = self._places[age + 1 : self.size]
        self.size -= 1
        # a column: every len(a)-th number of the table; g changes in place
        daxpy(self._flat, self._g, self._rounds, -self._a.item(place), place, len(self._a))
        self._a[place] = 0.0
        self.norm_squared = math.nan

    def drop_at(self, place: int) -> None:
        """Forget the example in this place."""
        self.drop(int(self.members.searchsorted(place)))

    def drop_smallest(self) -> None:
        """Forget the example with the smallest |a|; where equal but for rounding, the oldest."""
        self.drop(self.smallest())

    def smallest(self) -> int:
        """The age of the smallest |a|; where equal but for rounding, the oldest."""
        sizes = np.abs(self._a.take(self.members))
        return int((sizes <= sizes.item(sizes.argmin()) * (1 + EQUAL_SIZE)).argmax())

    def clip_coefficients(self, limit: float) -> None:
        """Bring every |a_i| that is above `limit` down to it."""
        bound = limit / self._scale
        clipped = np.clip(self._a, -bound, bound)
        if not np.array_equal(clipped, self._a):
            self._a[:] = clipped
            self._evaluate()
            self.norm_squared = math.nan

    def reduce(self, select: Selection, ridge: float, norm: float | None) -> Reduction:
        """Project f onto the examples that `select` keeps; rescale it to `norm` (None: its own)."""
        return self._replace(project_onto(self.gram, self.coefficients, select, ridge, norm))

    def merge_into_oldest(self, kept: int, norm: float) -> Reduction:
        """Keep the oldest; the others hand their coefficients over; rescale f to `norm`."""
        return self._replace(hand_over(self.gram, self.coefficients, kept, norm))

    def _replace(self, new: Reduction) -> Reduction:
        """Go on with f̄ in place of f; note how far the tracked norm had drifted."""
        assert self._gram is not None
        if new.norm_before > 0:
            drift = abs(self.norm - new.norm_before) / new.norm_before
            self.norm_drift = max(self.norm_drift, drift)
        members = self.members.take(new.kept)
        self.size, self._moved = len(members), True
        self._places[: self.size] = members
        self._gram[: self.size, : self.size] = new.gram
        self._gram_places = members
        self._a[:] = 0.0
        self._a[members] = new.coefficients
        self._scale = 1.0
        self.norm_squared = new.norm * new.norm
        self._evaluate()
        self.value(self._now)
        return new

    # What anyone may look at --------------------------------------------------------------------

    @property
    def norm(self) -> float:
        if math.isnan(self.norm_squared):
            self.norm_squared = self._squared_norm()
        return math.sqrt(max(self.norm_squared, 0.0))

    def _squared_norm(self) -> float:
        """‖f‖² from the kernel: `c²·aᵀKa`."""
        assert self.points is not None
        squared = float(self._a @ self.kernel.between(self.points, self.points) @ self._a)
        return squared * self._scale * self._scale

    @property
    def members(self) -> Integers:
        """The places of S while a block is open, in order of age."""
        return self._places[: self.size]

    @property
    def coefficients(self) -> Floats:
        """a, in order of age."""
        return self._a.take(self.members) * self._scale if self._is_open else self._a

    @property
    def gram(self) -> Floats:
        """K(S, S), in order of age."""
        self._complete_gram()
        assert self._gram is not None
        return self._gram[: self.size, : self.size]

    def _complete_gram(self) -> None:
        """Bring the kept Gram matrix up to date: without those dropped, with those added."""
        gram, before, members, size = self._gram, self._gram_places, self.members, self.size
        assert gram is not None
        known = len(before)
        if not self._is_open:
            return
        if known and (size < known or members.item(known - 1) != before.item(-1)):  # some left
            known = int(members.searchsorted(before[-1], side="right"))
            still = before.searchsorted(members[:known])
            _move_to_front(gram, still)
        if size > known:
            if size > len(gram):  # its room is doubled when it runs out
                room = max(size, min(2 * len(gram), self._largest_size))
                grown = np.zeros((room, room))
                grown[:known, :known] = gram[:known, :known]
                self._gram = gram = grown
            new = members[known:]
            rows = self._table.take(new - self._first, axis=0, mode="clip")
            if known and members.item(known - 1) != known - 1:  # some places before it are empty
                rows = rows.take(members, axis=1, mode="clip")
            else:
                rows[:, known:size] = rows.take(new, axis=1, mode="clip")
            gram[known:size, :size] = rows[:, :size]
            gram[:known, known:size] = rows[:, :known].T
        self._gram_places = members.copy()

    def column(self) -> Floats:
        """κ(S, x), x being the current example, in order of age."""
        return self.similarities().take(self.members)

    def diagonal(self) -> float:
        """κ(x, x) of the current example."""
        return self._diagonal[self._now]

    # Arrays by place have entries for rounds that did not join, and for examples dropped since.

    def by_place(self, weights: Floats) -> Floats:
        """Weights of the examples in order of age, by place; 0 where there is none."""
        placed = np.zeros(len(self._a))
        placed[self.members] = weights
        return placed

    def weights(self) -> Floats:
        """a_i by place; 0 where there is no example."""
        return self._a * self._scale

    def similarities(self) -> Floats:
        """κ(s, x) by place, x being the current example."""
        row: Floats = self._table[self._now]
        return row

    def diagonals(self) -> Floats:
        """κ(s, s) by place, if the Gram matrix is kept."""
        if self._diagonals is None:
            assert self._gram is not None
            self._diagonals = np.concatenate([self._gram.diagonal()[: self._first], self._diagonal])
        return self._diagonals

    def gram_by_place(self) -> Floats:
        """κ(s, s') by place, if the Gram matrix is kept and was not asked for in this block."""
        assert self._gram is not None
        n = self._first
        K, G = self._table[:, :n], self._table[:, n:]
        return np.block([[self._gram[:n, :n], K.T], [K, G]])

    def values_at_support(self) -> Floats:
        """f(s) by place, if the Gram matrix is kept and was not asked for in this block."""
        assert self._gram is not None
        n, a = self._first, self._a
        if self._settled is None:
            known = a.copy()
            known[n:] = 0.0
            self._settled = known, self._gram[:n, :n] @ a[:n]
        known, values = self._settled  # a of the last time, and f(s) with it at the first n places
        changed = (a != known).nonzero()[0].tolist() if n else []  # few were added or dropped since
        for place in changed:
            row = self._gram[place] if place < n else self._table[place - n]
            daxpy(row, values, n, a.item(place) - known.item(place))  # in place
            known[place] = a[place]
        support = np.concatenate([values, self._g])
        if self._scale != 1.0:
            support *= self._scale
        return support

    def sizes(self) -> Floats:
        """|a_i| up to a common factor, by place; 0 where there is no example."""
        sizes: Floats = np.abs(self._a)
        return sizes

    def oldest_coefficient(self) -> float:
        """a_s of the oldest example s in S."""
        return self._scale * self._a.item(self._places.item(0))

    def value_at_oldest(self) -> float:
        """f(s) at the oldest example s in S."""
        place, n = self._places.item(0), self._first
        if place < n:
            assert self.points is not None
            row = self.kernel.between(self.points.slice(place, place + 1), self.points)[0]
            return float(self._scale * ddot(self._a, row))
        value = self._g.item(place - n)
        if abs(value) <= self._noise:
            value = self._careful_value(place - n)
        return self._scale * value


def _move_to_front(gram: Floats, kept: Integers) -> None:
    """Move these rows and columns to the front: runs of columns together, which is quicker."""
    rows = gram.take(kept, axis=0, mode="clip")
    ends = (kept[1:] - kept[:-1] > 1).nonzero()[0] + 1
    begin = 0
    for end in [*ends.tolist(), len(kept)] if len(kept) else []:
        first = kept.item(begin)
        gram[: len(kept), begin:end] = rows[:, first : first + end - begin]
        begin = end
