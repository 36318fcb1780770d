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
the one root there is. Losses are computed without cancellation, in units of a_i²: with r = a_j/a_i,

    1 - κ^(2(1-h)²) + r²·(1 - κ^(2h²)) + 2·r·κ·(1 - κ^(-2h(1-h))).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.linalg.blas import daxpy

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import EQUAL_SIZE, Expansion
from ahpatron_cli.core.points import NARROW, DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import Floats

CELLS = 512
"""Of the table of losses, along each of m and √κ."""
TABLE_ERROR = 1e-3
"""Losses from the table are wrong by at most this times κ(1.05 - κ); a test measures it.

The most where two maxima of g become one: m = ½, κ = e^(-2)."""
EQUAL_LOSS = 1e-10
"""Losses that differ by this share of the largest are equal but for rounding."""
STEPS, TABLE_STEPS = 100, 12
"""Most steps of Newton's method; nearly all searches end within ten."""
SMALLEST_SLOPE = 1e-3
"""Where two roots of u are one, its slope there is 0; the table keeps away from that."""


class MergingExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with points s_i that need not be rows of the data, and so are dense.

    Sparse rows that are narrow enough become dense; wide ones are refused.
    """

    def open(self, block: Points, labels: Floats) -> None:
        block = _dense(block)
        # a copy, because merged points take the places of its newcomers
        super().open(block.subset(np.arange(block.size)), labels)

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
        a = np.concatenate([self.coefficients, self._pending])  # by place, up to the lazy scale
        sizes = np.abs(a)
        sizes[sizes == 0] = math.inf
        i = int((sizes <= sizes.min() * (1 + EQUAL_SIZE)).argmax())
        a_i = a.item(i)
        a[i] = 0.0
        partners = np.flatnonzero(a > 0.0 if a_i > 0 else a < 0.0)
        if len(partners):
            k = self._similarities_to(i)[partners]
            chosen, h, height = best_partner(a_i / (a_i + a[partners]), k)
            j = int(partners[chosen])
            z = h * self._coordinates(i) + (1 - h) * self._coordinates(j)
            self._put(j, DensePoints(z[None]), (a_i + a.item(j)) * height)
        self.drop_at(i)

    def _similarities_to(self, place: int) -> Floats:
        """κ(s, s') by place s, s' being in this place."""
        if place >= self._settled:
            round_ = place - self._settled
            return np.concatenate([self._K[:, round_], self._G[round_]])
        assert self.points is not None
        row = self.kernel.between(self.points, self.points.slice(place, place + 1))[:, 0]
        return np.concatenate([row, self._K[place]])

    def _coordinates(self, place: int) -> Floats:
        inside = place < self._settled
        points = self.points if inside else self._block
        assert isinstance(points, DensePoints)
        row: Floats = points.coordinates[place if inside else place - self._settled]
        return row

    def _put(self, place: int, point: DensePoints, stored: float) -> None:
        """Replace an example; `stored` is the coefficient up to the lazy scale."""
        row = self.kernel.between(point, self._block)[0]
        if place < self._settled:
            assert isinstance(self.points, DensePoints)
            self.points.replace(place, point)
            self._base = daxpy(self._K[place], self._base, a=-self._coefficients.item(place))
            self._base = daxpy(row, self._base, a=stored)
            self._coefficients[place], self._K[place] = stored, row
            self._terms = None
        else:
            round_ = place - self._settled  # its own round is over: only f needs its row
            assert isinstance(self._block, DensePoints)
            self._block.replace(round_, point)
            self._G[round_] = self._G[:, round_] = row
            self._G[round_, round_] = 1.0
            self._pending[round_] = stored
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


def best_partner(m: Floats, k: Floats) -> tuple[int, float, float]:
    """Which of the pairs (m, κ) loses least relative to a_i², and h and g of that pair.

    A table tells which pairs may be meant; these are computed exactly.
    """
    losses = table_losses(m, k)
    doubt = TABLE_ERROR * k * (1.05 - k)
    near = np.flatnonzero(losses - doubt <= (losses + doubt).min())
    found = [best_between(m.item(pair), k.item(pair)) for pair in near.tolist()]
    chosen = 0
    if len(near) > 1:
        exact = np.array([loss for loss, _, _ in found])
        equal = EQUAL_LOSS * float(losses.max())
        chosen = int((exact <= exact.min() + equal).argmax())
    return int(near[chosen]), found[chosen][1], found[chosen][2]


def best_between(m: float, k: float) -> tuple[float, float, float]:
    """The loss of a merge in units of a_i², and the h and g for which it is least."""
    if k <= 0.0:
        return 1.0, 0.0, 1 - m
    log_k, log_odds = math.log(k), math.log(m / (1 - m))
    s = log_odds + log_k
    for _ in range(STEPS):
        t = math.tanh(0.5 * s)
        slope = 1 + 0.5 * log_k * (1 - t * t)
        rise = log_odds - s - log_k * t
        if rise <= 1e-15 * abs(s) or slope <= 0.0:
            break
        s += rise / slope
    h = 1 / (1 + math.exp(-s))
    g = m * math.exp(log_k * (1 - h) ** 2) + (1 - m) * math.exp(log_k * h * h)
    r = (1 - m) / m
    loss = -math.expm1(2 * log_k * (1 - h) ** 2) - r * r * math.expm1(2 * log_k * h * h)
    return loss - 2 * r * k * math.expm1(-2 * log_k * h * (1 - h)), h, g


def table_losses(m: Floats, k: Floats) -> Floats:
    """The loss of each pair in units of a_i², m <= ½, by bilinear interpolation in a table."""
    table = _table()
    x, y = m * (2 * CELLS), np.sqrt(k) * CELLS
    row, column = x.astype(np.intp), y.astype(np.intp)
    x -= row
    y -= column
    row *= CELLS + 2
    row += column
    low, high = table[row], table[row + (CELLS + 2)]
    low += y * (table[row + 1] - low)
    high += y * (table[row + (CELLS + 3)] - high)
    high -= low
    high *= x
    low += high
    return low


@cache
def _table() -> Floats:
    """Losses at m = 0 … ½ (rows) and √κ = 0 … 1 (columns), flat; an edge more, for m = ½, κ = 1."""
    grid = np.minimum(np.arange(CELLS + 2) / CELLS, 1.0)
    m, k = (0.5 * grid[1:])[:, None], (grid[1:] ** 2)[None, :]
    log_k, log_odds = np.log(k), np.log(m / (1 - m))
    s = log_odds + log_k
    for _ in range(TABLE_STEPS):
        t = np.tanh(0.5 * s)
        slope = np.maximum(1 + 0.5 * log_k * (1 - t * t), SMALLEST_SLOPE)
        s += np.maximum(log_odds - s - log_k * t, 0.0) / slope
    h = 1 / (1 + np.exp(-s))
    r = (1 - m) / m
    table = np.ones((CELLS + 2, CELLS + 2))  # κ = 0: nothing is shared
    table[1:, 1:] = -np.expm1(2 * log_k * (1 - h) ** 2) - r * r * np.expm1(2 * log_k * h * h)
    table[1:, 1:] -= 2 * r * k * np.expm1(-2 * log_k * h * (1 - h))
    # m → 0: what is left of κ(s_i,·) beside κ(s_j,·) and its derivative towards s_i
    table[0, 1:] = 1 - k * k * (1 - 2 * log_k)
    return table.ravel()
