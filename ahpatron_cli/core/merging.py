"""An expansion that makes room by merging two examples into a point between them.

Gaussian kernel, `κ = κ(s_i, s_j)`, coefficients of the same sign, |a_i| <= |a_j|. The point
`z = h·s_i + (1-h)·s_j` has `κ(z, s_i) = κ^((1-h)²)` and `κ(z, s_j) = κ^(h²)`, so with
`m = a_i/(a_i + a_j) <= ½` the best coefficient of z and what is lost are

    a_z = (a_i + a_j)·g,   g = m·κ^((1-h)²) + (1-m)·κ^(h²),
    ‖a_i κ(s_i,·) + a_j κ(s_j,·) - a_z κ(z,·)‖² = a_i² + a_j² + 2·a_i·a_j·κ - a_z²,

and h is where g is largest. `g(h) - g(1-h) = (1-2m)(κ^(h²) - κ^((1-h)²))`, so that is in [0, ½].
There g' = 0 reads, with h = 1/(1 + e^(-s)),

    u(s) = s + ln κ·tanh(s/2) - ln(m/(1-m)) = 0,

and u is concave for s <= 0: Newton's method from `s = ln(m/(1-m)) + ln κ`, where u <= 0, climbs to
the one root there is.

Both the loss and h are read from tables over (m, √κ) by bilinear interpolation. That is quick; and
it is what makes merging well defined: examples that never merged have equal coefficients, so m = ½,
where two maxima of g become one at κ = e^(-2), and h itself is as steep there as a cube root.
"""

from __future__ import annotations

import bisect
import math
from functools import cache
from typing import NamedTuple

import numpy as np

from ahpatron_cli.core.blas import daxpy
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import CANCELLED, Expansion
from ahpatron_cli.core.points import NARROW, DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import Floats, Integers

CELLS = 256
"""Of the tables, along each of m and √κ."""
EDGES = CELLS + 2
"""Of the cells, and one more."""
FEW = 12
"""So many partners are looked at one by one."""
EQUAL_LOSS = 1e-10
"""Losses, in units of a_i², that differ by this are equal but for rounding."""
SHORT = 150.0
"""Half norms below this leave every exponent its digits, so that κ is at most 1 + 1e-12, and keep
`exp` from numbers so small that it is slow."""
NEWTON_STEPS = 60
"""Enough next to m = ½ and κ = e^(-2), too, where each step only halves the error."""


class MergingExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with points s_i that need not be rows of the data, and so are dense.

    Sparse rows that are narrow enough become dense; wide ones are refused.
    """

    points: DensePoints

    def open(self, block: Points, labels: Floats) -> None:
        super().open(_dense(block), labels)
        # no merged point is longer than the longest, so this holds for the whole block
        self._short = self.points.largest < SHORT

    def at(self, points: Points) -> Floats:
        return super().at(_dense(points))

    def compress(self, origin: Floats | None) -> None:
        """Stay dense; only the origin changes, because sparse rows have none."""
        if self.points is not None and origin is not None:
            points = _dense(self.points).widened(len(origin))
            self.points = DensePoints(points.coordinates + origin)

    def merge_smallest(self) -> None:
        """Merge the smallest |a| with the partner that costs least; with none, drop it.

        Partners have the same sign. The merged point takes the partner's place. Where equal but for
        rounding, the older is the smallest, and the older is the partner.
        """
        a, age = self._a, self.smallest()
        i = self._places.item(age)
        a_i = a.item(i)
        if not math.isfinite(a_i):
            raise NumericalError("a coefficient is not a finite number", self._now, "score")
        partners = a > 0.0 if a_i > 0 else a < 0.0
        partners[i] = False
        places = partners.nonzero()[0]
        if len(places):
            k = self._similar(i, places)
            chosen = cheapest(a_i, a.take(places), k)
            j = places.item(chosen)
            self._merge(i, j, *best_point(a_i / (a_i + a.item(j)), k.item(chosen)))
        self.drop(age)

    def _similar(self, place: int, places: Integers) -> Floats:
        """κ of the example in this place and of those in `places`."""
        if self._short:
            return np.exp(self.points.exponents_of(place).take(places))
        one = self.points.slice(place, place + 1)
        row: Floats = self.kernel.between(one, self.points)[0]
        return row.take(places)

    def _merge(self, i: int, j: int, h: float, g: float) -> None:
        """Put z, with its coefficient, in the place j; what is in the place i stays.

        Coefficients are those up to the lazy scale. The rounds of the block whose places were taken
        by merged points are over: the values of z there are never read.
        """
        before, stored = self._a.item(j), (self._a.item(i) + self._a.item(j)) * g
        self.points.put_between(i, j, h)
        if self._short:
            new = np.exp(self.points.exponents_of(j, self._first))
        else:
            block = self.points.slice(self._first, self.points.size)
            new = self.kernel.between(block, self.points.slice(j, j + 1))[:, 0]
        column = self._table[:, j]
        daxpy(column, self._g, a=-before)  # in place
        daxpy(new, self._g, a=stored)
        column[:], self._a[j] = new, stored
        self._noise += CANCELLED * abs(stored)
        self.norm_squared = math.nan


def _dense(points: Points) -> DensePoints:
    """The same points; wide ones are refused."""
    if isinstance(points, SparsePoints):
        if points.width > NARROW:
            message = f"points between examples are dense, and {NARROW:,} features are the most"
            raise NumericalError(f"{message}, got {points.width:,}", 0, "width")
        return points.to_dense()
    assert isinstance(points, DensePoints)
    return points


def cheapest(a: float, others: Floats, k: Floats) -> int:
    """Which of the others costs least to merge with; the oldest of those equal but for rounding.

    Losses fall as κ rises: where the most similar one loses l, all that can lose as little have a
    κ from `least_similar(l)` on. They are few, mostly.
    """
    most = int(k.argmax())
    loss = read_loss(a / (a + others.item(most)), k.item(most))
    near = (k >= least_similar(loss)).nonzero()[0]
    if len(near) == 1:
        return most
    if len(near) > FEW:
        losses = read_losses(a / (a + others.take(near)), k.take(near)).tolist()
    else:
        losses = [read_loss(a / (a + others.item(j)), k.item(j)) for j in near.tolist()]
    enough = min(losses) + EQUAL_LOSS
    return near.item(next(j for j, loss in enumerate(losses) if loss <= enough))


def best_point(m: float, k: float) -> tuple[float, float]:
    """h by the table, and g there."""
    if k <= 0.0:
        return 0.0, 1 - m
    h = _read(tables().shares, m, k)
    log_k = math.log(k)
    return h, m * math.exp(log_k * (1 - h) ** 2) + (1 - m) * math.exp(log_k * h * h)


def read_loss(m: float, k: float) -> float:
    """`read_losses` of one pair: on arrays of one it would take ten times as long."""
    return _read(tables().losses, m, k)


def _read(table: list[float], m: float, k: float) -> float:
    """A table at (m, √κ), by bilinear interpolation."""
    x, y = m * (2.0 * CELLS), math.sqrt(k) * CELLS
    row, column = int(x), int(y)
    x, y, corner = x - row, y - column, row * EDGES + column
    low, high = table[corner], table[corner + EDGES]
    low += y * (table[corner + 1] - low)
    high += y * (table[corner + EDGES + 1] - high)
    return low + x * (high - low)


def read_losses(m: Floats, k: Floats) -> Floats:
    """The loss of each pair, m <= ½, in units of a_i², by bilinear interpolation."""
    table = tables().losses_array
    x, y = m * (2.0 * CELLS), np.sqrt(k) * CELLS
    row, column = x.astype(np.intp), y.astype(np.intp)
    x -= row
    y -= column
    row *= EDGES
    row += column
    low, high = table.take(row), table.take(row + EDGES)
    low += y * (table.take(row + 1) - low)
    high += y * (table.take(row + (EDGES + 1)) - high)
    high -= low
    high *= x
    low += high
    return low


def least_similar(loss: float) -> float:
    """The κ below which no partner, whatever its m, costs as little as this but for rounding.

    Between two columns of the table, no loss is below the lowest of the right one.
    """
    right = bisect.bisect_left(tables().gains, -(loss + EQUAL_LOSS))
    return (max(right - 1, 0) / CELLS) ** 2


class Tables(NamedTuple):
    """At m = 0 … ½ (rows) and √κ = 0 … 1 (columns), flat, with an edge more."""

    losses: list[float]
    shares: list[float]
    """h."""
    losses_array: Floats
    """The same losses, to read many at once."""
    gains: list[float]
    """Minus the lowest loss of each column; they rise."""


@cache
def tables() -> Tables:
    """Losses and h by Newton's method."""
    grid = np.minimum(np.arange(EDGES) / CELLS, 1.0)
    m, k = (0.5 * grid[1:])[:, None], (grid[1:] ** 2)[None, :]
    log_k, log_odds = np.log(k), np.log(m / (1 - m))
    s = log_odds + log_k
    for _ in range(NEWTON_STEPS):
        t = np.tanh(0.5 * s)
        slope = np.maximum(1 + 0.5 * log_k * (1 - t * t), 1e-9)  # 0 where two roots are one
        s += np.maximum(log_odds - s - log_k * t, 0.0) / slope
    h = np.zeros((EDGES, EDGES))  # m = 0, κ = 0: z is s_j
    h[1:, 1:] = inner = 1 / (1 + np.exp(-s))
    r = (1 - m) / m
    losses = np.ones((EDGES, EDGES))  # κ = 0: nothing is shared
    # without cancellation: 1 - κ^(2(1-h)²) + r²(1 - κ^(2h²)) + 2rκ(1 - κ^(-2h(1-h)))
    losses[1:, 1:] = -np.expm1(2 * log_k * (1 - inner) ** 2)
    losses[1:, 1:] -= r * r * np.expm1(2 * log_k * inner * inner)
    losses[1:, 1:] -= 2 * r * k * np.expm1(-2 * log_k * inner * (1 - inner))
    # m → 0: what is left of κ(s_i,·) beside κ(s_j,·) and its derivative towards s_i
    losses[0, 1:] = 1 - k * k * (1 - 2 * log_k)
    flat = losses.ravel()
    return Tables(flat.tolist(), h.ravel().tolist(), flat, (-losses.min(axis=0)).tolist())
