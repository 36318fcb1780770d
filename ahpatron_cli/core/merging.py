"""Budget maintenance by merging two examples into a point between them.

Gaussian kernel, `κ = κ(s_i, s_j)`, coefficients of the same sign, |a_i| <= |a_j|. The point
`z = h·s_i + (1-h)·s_j` has `κ(z, s_i) = κ^((1-h)²)` and `κ(z, s_j) = κ^(h²)`, so with
`m = a_i/(a_i + a_j) <= ½` the best coefficient of z and the loss are

    a_z = (a_i + a_j)·g,   g = m·κ^((1-h)²) + (1-m)·κ^(h²),
    ‖a_i κ(s_i,·) + a_j κ(s_j,·) - a_z κ(z,·)‖² = a_i² + a_j² + 2·a_i·a_j·κ - a_z²,

and h maximises g. `g(h) - g(1-h) = (1-2m)(κ^(h²) - κ^((1-h)²))`, so h is in [0, ½].
There g' = 0 becomes, with h = 1/(1 + e^(-s)),

    u(s) = s + ln κ·tanh(s/2) - ln(m/(1-m)) = 0,

and u is concave for s <= 0: Newton's method from `s = ln(m/(1-m)) + ln κ`, where u <= 0, increases
monotonically to the only root.

The loss and h are read from tables over (m, √κ) by bilinear interpolation. That is fast, and it
makes merging well defined: examples that were never merged have equal coefficients, so m = ½, where
two maxima of g become one at κ = e^(-2), and h varies there as steeply as a cube root.
"""

from __future__ import annotations

import bisect
import math
from functools import cache
from typing import NamedTuple

import numpy as np

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.numerics import CANCELLED, SLACK, daxpy
from ahpatron_cli.core.points import DensePoints
from ahpatron_cli.core.rows import Floats

CELLS = 256  # number of cells of the tables, along each of m and √κ
EDGES = CELLS + 2


class MergingExpansion(Expansion):
    """Expansion whose support points may be merged points; they are stored densely."""

    points: DensePoints

    def merge_smallest(self) -> None:
        """Merge the example of smallest |a| with the best partner of its sign; drop it if none.

        The merged point takes the partner's column. Ties up to rounding go to the oldest, for the
        smallest as for the partner.
        """
        a = self.a
        i = self.smallest
        a_i = a.item(i)
        if not math.isfinite(a_i):
            raise NumericalError("a coefficient is not a finite number", self.t)
        partners = a > 0.0 if a_i > 0 else a < 0.0
        partners[i] = False
        (columns,) = partners.nonzero()
        if len(columns):
            similarities = self._similarities(i)
            k = similarities.take(columns)
            others = a.take(columns)
            chosen = cheapest(a_i, others, k)
            a_j = others.item(chosen)
            m = a_i / (a_i + a_j)
            h, g = best_point(m, k.item(chosen))
            j = columns.item(chosen)
            self._merge(i, j, h=h, g=g)
        self.drop(i)

    def _merge(self, i: int, j: int, *, h: float, g: float) -> None:
        """Put the merged point z and its coefficient in column j; column i is not changed."""
        a_i = self.a.item(i)
        a_j = self.a.item(j)
        a_z = (a_i + a_j) * g
        self.points.put_between(i, j, h)
        # merged points are in columns of rounds that are over: z at these rounds is never read
        old_values = self.K[:, j]
        new_values = self._similarities(j, start=self.n)
        daxpy(old_values, self.g, a=-a_j)
        daxpy(new_values, self.g, a=a_z)
        old_values[:] = new_values
        self.a[j] = a_z
        self.rounding += CANCELLED * abs(a_z)

    def _similarities(self, column: int, start: int = 0) -> Floats:
        """κ of the example in `column` with those in the columns from `start` on."""
        points = self.points
        own = points.slice(column, column + 1)
        others = points.slice(start, points.size)
        values: Floats
        (values,) = self.kernel.between(own, others)
        return values


def cheapest(a: float, others: Floats, k: Floats) -> int:
    """Index of the partner with the smallest loss of merging; ties up to rounding: the oldest.

    Losses decrease with κ. If the most similar partner has loss l, any partner with a smaller loss,
    whatever its m, has at least the κ of the table column whose lowest loss is l, so usually only
    few partners need to be compared.
    """
    nearest = int(k.argmax())
    coefficient = others.item(nearest)
    m = a / (a + coefficient)
    loss = loss_of(m, k.item(nearest))
    if loss >= 1.0 - SLACK:  # all partners are far away and have the same loss
        return 0
    # between two columns of the table, no loss is below the lowest of the right one
    limit = loss + SLACK
    lowest = tables().lowest
    right = bisect.bisect_left(lowest, -limit)
    left = max(right - 1, 0)
    root = left / CELLS
    is_near = k >= root**2
    (near,) = is_near.nonzero()
    candidates: list[int] = near.tolist()
    losses = []
    for j in candidates:
        coefficient = others.item(j)
        m = a / (a + coefficient)
        loss = loss_of(m, k.item(j))
        losses.append(loss)
    limit = min(losses) + SLACK
    first = 0
    while not losses[first] <= limit:
        first += 1
    return candidates[first]


def loss_of(m: float, k: float) -> float:
    """Loss of merging a pair, from the table, in units of a_i²."""
    losses = tables().losses
    return _read(losses, m, k)


def best_point(m: float, k: float) -> tuple[float, float]:
    """The position h of the merged point, from the table, and g(h)."""
    if k <= 0.0:
        return 0.0, 1 - m
    positions = tables().positions
    h = _read(positions, m, k)
    log_k = math.log(k)
    rest = 1 - h
    to_own = math.exp(log_k * rest**2)  # κ(z, s_i)
    to_partner = math.exp(log_k * h * h)  # κ(z, s_j)
    own_share = m * to_own
    partner_share = (1 - m) * to_partner
    return h, own_share + partner_share


def _read(table: list[float], m: float, k: float) -> float:
    """Bilinear interpolation of a table at (m, √κ); in plain Python, ten times as fast as NumPy."""
    x = m * (2.0 * CELLS)
    y = math.sqrt(k) * CELLS
    row = int(x)
    column = int(y)
    x -= row
    y -= column
    corner = row * EDGES + column
    below = corner + EDGES
    low = table[corner]
    right = table[corner + 1]
    low += y * (right - low)
    high = table[below]
    right = table[below + 1]
    high += y * (right - high)
    return low + x * (high - low)


class Tables(NamedTuple):
    """Losses and h at m = 0 … ½ (rows) and √κ = 0 … 1 (columns), flattened.

    One more row and column pad them. `lowest`, increasing, is minus the lowest loss per column.
    """

    losses: list[float]
    positions: list[float]
    lowest: list[float]


@cache
def tables() -> Tables:
    """Compute the tables; once in a process."""
    edges = np.arange(EDGES)
    grid = np.minimum(edges / CELLS, 1.0)
    inner = grid[1:]  # without 0, where logarithms are infinite
    column = inner[:, None]
    row = inner[None, :]
    m = 0.5 * column
    k = row**2
    log_k = np.log(k)
    h = _positions(m, log_k)
    shape = (EDGES, EDGES)
    positions = np.zeros(shape)  # m = 0, κ = 0: z is s_j
    positions[1:, 1:] = h
    losses = np.ones(shape)  # κ = 0: nothing is shared
    losses[1:, 1:] = _losses(m, k, log_k=log_k, h=h)
    # m → 0: the part of κ(s_i,·) outside the span of κ(s_j,·) and its derivative towards s_i
    slopes = 1 - 2 * log_k
    squares = k * k
    losses[0, 1:] = 1 - squares * slopes
    lowest = losses.min(axis=0)
    negated = -lowest
    flat_losses = losses.ravel()
    flat_positions = positions.ravel()
    return Tables(
        losses=flat_losses.tolist(),
        positions=flat_positions.tolist(),
        lowest=negated.tolist(),
    )


def _positions(m: Floats, log_k: Floats) -> Floats:
    """The best h for each m and κ, by Newton's method for u(s) = 0."""
    odds = m / (1 - m)
    log_odds = np.log(odds)
    s = log_odds + log_k
    for _ in range(60):  # enough even at m = ½, κ = e^(-2), where a step only halves the error
        tanh = np.tanh(0.5 * s)
        bend = 1 - tanh * tanh
        slope = 1 + 0.5 * log_k * bend  # u'
        slope = np.maximum(slope, 1e-9)  # 0 at a double root
        missing = log_odds - s - log_k * tanh  # -u
        missing = np.maximum(missing, 0.0)
        s += missing / slope
    inverse: Floats = 1 + np.exp(-s)
    return 1 / inverse


def _losses(m: Floats, k: Floats, *, log_k: Floats, h: Floats) -> Floats:
    """Losses of merging at the best h for each m and κ, in units of a_i²."""
    r = (1 - m) / m  # a_j/a_i
    # without cancellation: 1 - κ^(2(1-h)²) + r²(1 - κ^(2h²)) + 2rκ(1 - κ^(-2h(1-h)))
    rest = 1 - h
    twice = 2 * log_k
    own_exponents = twice * rest**2
    partner_exponents = twice * h * h
    mixed_exponents = -twice * h * rest
    own = np.expm1(own_exponents)
    partner = np.expm1(partner_exponents)
    mixed = np.expm1(mixed_exponents)
    losses: Floats = -own
    losses -= r * r * partner
    losses -= 2 * r * k * mixed
    return losses
