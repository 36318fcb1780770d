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

Both the loss and h are read from tables over (m, √κ) by bilinear interpolation. That is quick, and
it makes merging well defined: examples that never merged have equal coefficients, so m = ½, where
two maxima of g become one at κ = e^(-2), and h itself is as steep there as a cube root.
"""

from __future__ import annotations

import bisect
import math
from functools import cache

import numpy as np

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.numerics import CANCELLED, SLACK, daxpy
from ahpatron_cli.core.points import DensePoints
from ahpatron_cli.core.rows import Floats

CELLS = 256  # of the tables, along each of m and √κ
EDGES = CELLS + 2


class MergingExpansion(Expansion):
    """An expansion whose points need not be rows of the data, and so are dense."""

    points: DensePoints

    def merge_smallest(self) -> None:
        """Merge the smallest |a| with the partner of its sign that costs least; with none, drop it.

        The merged point takes the partner's column. Of examples that are equal up to rounding, the
        oldest is the smallest, and the oldest is the partner.
        """
        a, i = self.a, self.smallest
        a_i = a.item(i)
        if not math.isfinite(a_i):
            raise NumericalError("a coefficient is not a finite number", self.t)
        partners = a > 0.0 if a_i > 0 else a < 0.0
        partners[i] = False
        columns = partners.nonzero()[0]
        if len(columns):
            k = self._similar(i, 0).take(columns)
            chosen = cheapest(a_i, a.take(columns), k)
            j = columns.item(chosen)
            self._merge(i, j, *best_point(a_i / (a_i + a.item(j)), k.item(chosen)))
        self.drop(i)

    def _merge(self, i: int, j: int, h: float, g: float) -> None:
        """Put z, with its coefficient, in column j; column i stays."""
        # rounds whose columns hold merged points are over: the values of z there are never read
        before, after = self.a.item(j), (self.a.item(i) + self.a.item(j)) * g
        self.points.put_between(i, j, h)
        new, column = self._similar(j, self.n), self.K[:, j]
        daxpy(column, self.g, a=-before)
        daxpy(new, self.g, a=after)
        column[:], self.a[j] = new, after
        self.noise += CANCELLED * abs(after)

    def _similar(self, column: int, start: int) -> Floats:
        """κ of the example in this column and of those in the columns from `start` on."""
        others = self.points.slice(start, self.points.size)
        return np.asarray(self.kernel.between(self.points.slice(column, column + 1), others)[0])


def cheapest(a: float, others: Floats, k: Floats) -> int:
    """Which of the others costs least to merge with; of those equal up to rounding, the oldest.

    Losses fall as κ rises: if the most similar one loses l, no other that loses as little, whatever
    its m, has a κ below that of the column of the table whose lowest loss is l. Usually few are
    above it.
    """
    most = int(k.argmax())
    loss = loss_of(a / (a + others.item(most)), k.item(most))
    if loss >= 1.0 - SLACK:  # all are far away, and lose the same
        return 0
    # between two columns of the table, no loss is below the lowest of the right one
    right = bisect.bisect_left(tables()[2], -(loss + SLACK))
    near = (k >= (max(right - 1, 0) / CELLS) ** 2).nonzero()[0].tolist()
    losses = [loss_of(a / (a + others.item(j)), k.item(j)) for j in near]
    enough = min(losses) + SLACK
    return next(j for j, loss in zip(near, losses, strict=True) if loss <= enough)


def loss_of(m: float, k: float) -> float:
    """What merging a pair loses by the table, in units of a_i²."""
    return _read(tables()[0], m, k)


def best_point(m: float, k: float) -> tuple[float, float]:
    """h by the table, and g there."""
    if k <= 0.0:
        return 0.0, 1 - m
    h = _read(tables()[1], m, k)
    log_k = math.log(k)
    return h, m * math.exp(log_k * (1 - h) ** 2) + (1 - m) * math.exp(log_k * h * h)


def _read(table: list[float], m: float, k: float) -> float:
    """A table at (m, √κ), by bilinear interpolation; with NumPy it would take ten times as long."""
    x, y = m * (2.0 * CELLS), math.sqrt(k) * CELLS
    row, column = int(x), int(y)
    x, y, corner = x - row, y - column, row * EDGES + column
    low, high = table[corner], table[corner + EDGES]
    low += y * (table[corner + 1] - low)
    high += y * (table[corner + EDGES + 1] - high)
    return low + x * (high - low)


@cache
def tables() -> tuple[list[float], list[float], list[float]]:
    """Losses and h at m = 0 … ½ (rows) and √κ = 0 … 1 (columns), flat, with an edge more.

    The last are minus the lowest loss of each column, which rise.
    """
    grid = np.minimum(np.arange(EDGES) / CELLS, 1.0)
    m, k = (0.5 * grid[1:])[:, None], (grid[1:] ** 2)[None, :]
    log_k, log_odds = np.log(k), np.log(m / (1 - m))
    s = log_odds + log_k
    for _ in range(60):  # enough at m = ½ and κ = e^(-2), too, where a step halves the error
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
    # m → 0: the part of κ(s_i,·) outside the span of κ(s_j,·) and its derivative towards s_i
    losses[0, 1:] = 1 - k * k * (1 - 2 * log_k)
    return losses.ravel().tolist(), h.ravel().tolist(), (-losses.min(axis=0)).tolist()
