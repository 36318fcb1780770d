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

import math
from functools import cache

import numpy as np

from ahpatron_cli.core.blas import daxpy
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import CANCELLED, Expansion
from ahpatron_cli.core.points import NARROW, DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import Floats

CELLS = 256
"""Of the tables, along each of m and √κ."""
EQUAL_LOSS = 1e-10
"""Losses, in units of a_i², that differ by this are equal but for rounding."""
NEWTON_STEPS = 60
"""Enough next to m = ½ and κ = e^(-2), too, where each step only halves the error."""


class MergingExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with points s_i that need not be rows of the data, and so are dense.

    Sparse rows that are narrow enough become dense; wide ones are refused.
    """

    points: DensePoints
    _block: DensePoints

    def open(self, block: Points, labels: Floats) -> None:
        super().open(_dense(block), labels)
        # a copy, because merged points take the places of its rounds, too
        self._block = self.points.slice(self._first, self.points.size)

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
        i = self.members.item(age)
        a_i = a.item(i)
        partners = a > 0.0 if a_i > 0 else a < 0.0
        partners[i] = False
        places = partners.nonzero()[0]
        if len(places):
            smallest = self._point(i)
            k = self.kernel.between(smallest, self.points)[0].take(places)
            m = a_i / (a_i + a.take(places))
            losses = read_losses(m, k)
            chosen = int((losses <= losses.item(losses.argmin()) + EQUAL_LOSS).argmax())
            h, g = best_point(m.item(chosen), k.item(chosen))
            place = places.item(chosen)
            between = h * smallest.coordinates + (1 - h) * self._point(place).coordinates
            self._put(place, DensePoints(between), (a_i + a.item(place)) * g)
        self.drop(age)

    def _point(self, place: int) -> DensePoints:
        """In this place: those of the block are behind those of S."""
        if place >= self._first:
            return self._block.slice(place - self._first, place - self._first + 1)
        return self.points.slice(place, place + 1)

    def _put(self, place: int, point: DensePoints, stored: float) -> None:
        """Replace an example; `stored` is the coefficient up to the lazy scale."""
        column = self.kernel.between(self._block, point)[:, 0]
        daxpy(self._table[:, place], self._g, a=-self._a.item(place))  # in place
        daxpy(column, self._g, a=stored)
        self._table[:, place], self._a[place] = column, stored
        self._noise += CANCELLED * abs(stored)
        self._point(place).replace(0, point)
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


def best_point(m: float, k: float) -> tuple[float, float]:
    """h by the table, and g there."""
    if k <= 0.0:
        return 0.0, 1 - m
    # as in `read_losses`, for one pair: on arrays of one it would take ten times as long
    table, x, y = tables()[1], m * (2 * CELLS), math.sqrt(k) * CELLS
    row, column = int(x), int(y)
    x, y, corner = x - row, y - column, row * (CELLS + 2) + column
    low, above = table.item(corner), table.item(corner + 1)
    high, opposite = table.item(corner + CELLS + 2), table.item(corner + CELLS + 3)
    low += y * (above - low)
    high += y * (opposite - high)
    h = low + x * (high - low)
    log_k = math.log(k)
    return h, m * math.exp(log_k * (1 - h) ** 2) + (1 - m) * math.exp(log_k * h * h)


def read_losses(m: Floats, k: Floats) -> Floats:
    """The loss of each pair, m <= ½, in units of a_i², by bilinear interpolation."""
    table = tables()[0]
    x, y = m * (2 * CELLS), np.sqrt(k) * CELLS
    row, column = x.astype(np.intp), y.astype(np.intp)
    x -= row
    y -= column
    row *= CELLS + 2
    row += column
    low, high = table.take(row), table.take(row + (CELLS + 2))
    low += y * (table.take(row + 1) - low)
    high += y * (table.take(row + (CELLS + 3)) - high)
    high -= low
    high *= x
    low += high
    return low


@cache
def tables() -> tuple[Floats, Floats]:
    """Losses and h at m = 0 … ½ (rows) and √κ = 0 … 1 (columns), flat, with an edge more."""
    grid = np.minimum(np.arange(CELLS + 2) / CELLS, 1.0)
    m, k = (0.5 * grid[1:])[:, None], (grid[1:] ** 2)[None, :]
    log_k, log_odds = np.log(k), np.log(m / (1 - m))
    s = log_odds + log_k
    for _ in range(NEWTON_STEPS):
        t = np.tanh(0.5 * s)
        slope = np.maximum(1 + 0.5 * log_k * (1 - t * t), 1e-9)  # 0 where two roots are one
        s += np.maximum(log_odds - s - log_k * t, 0.0) / slope
    h = np.zeros((CELLS + 2, CELLS + 2))  # m = 0, κ = 0: z is s_j
    h[1:, 1:] = inner = 1 / (1 + np.exp(-s))
    r = (1 - m) / m
    losses = np.ones((CELLS + 2, CELLS + 2))  # κ = 0: nothing is shared
    # without cancellation: 1 - κ^(2(1-h)²) + r²(1 - κ^(2h²)) + 2rκ(1 - κ^(-2h(1-h)))
    losses[1:, 1:] = -np.expm1(2 * log_k * (1 - inner) ** 2)
    losses[1:, 1:] -= r * r * np.expm1(2 * log_k * inner * inner)
    losses[1:, 1:] -= 2 * r * k * np.expm1(-2 * log_k * inner * (1 - inner))
    # m → 0: what is left of κ(s_i,·) beside κ(s_j,·) and its derivative towards s_i
    losses[0, 1:] = 1 - k * k * (1 - 2 * log_k)
    return losses.ravel(), h.ravel()
