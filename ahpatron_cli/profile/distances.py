"""Distances between the rows of a sample, which σ fits them, and the kernel alignment A_T."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats
from ahpatron_cli.data.geometry import LOST, Geometry, distances_apart

MOST_COMPARED = 1000
"""Rows of the sample whose distances are looked at: half a million pairs."""
BINS = 8
SHARE = 0.05
"""σ is useful while so many pairs have a κ that is not nearly 0, and so many one not nearly 1."""


@dataclass(frozen=True)
class Distances:
    """Euclidean distances between all pairs of some rows; quantiles are of those that are not 0.

    `sigma` is their median (the median heuristic): half of the pairs have κ > exp(-1/2) = 0.61.
    Between `sigma_low` and `sigma_high` kernel values are neither nearly all 0 nor nearly all 1:
    from `sigma_low` on at least 5 % of the pairs have κ >= 0.05, and up to `sigma_high` at least
    5 % have κ <= 0.95. With d_q the q-quantile, κ(d) = exp(-d²/(2σ²)) solved for σ gives

        sigma_low = d_0.05 / √(2·ln(1/0.05)),   sigma_high = d_0.95 / √(2·ln(1/0.95)).
    """

    rows: int
    pairs: int
    zero_pairs: int
    smallest: float
    quantile_05: float
    median: float
    quantile_95: float
    largest: float
    sigma: float
    sigma_low: float
    sigma_high: float
    histogram_edges: tuple[float, ...]
    """Eight equal steps from the 1 % to the 99 % quantile; the outer bins reach on to the extremes.

    One step where these are equal.
    """
    histogram_counts: tuple[int, ...]


@dataclass(frozen=True)
class Alignment:
    """The paper's kernel alignment A_T for the Gaussian kernel of this σ.

    In the section "Comparison with Previous Results" of Liao et al. (AAAI 2024),

        A_T = Σ_t κ(x_t, x_t) - (1/T)·Yᵀ K Y,   Y = (y_1, …, y_T), K_ij = κ(x_i, x_j),

    an upper bound on the hinge loss Σ_t max(0, 1 - y_t·f(x_t)) of the best f in the ball. As
    κ(x, x) = 1, A_T = (T - 1)(1 - μ) with μ the mean of y_i·y_j·κ(x_i, x_j) over all pairs i ≠ j.
    Where only n of T rows were drawn, μ is estimated by the mean over their pairs, which is
    unbiased, and its standard error by the jackknife: with g_i the mean over the pairs of row i,

        se² = (1 - n/T) · 4(n-1) / (n(n-2)²) · Σ_i (g_i - μ)².
    """

    sigma: float
    value: float
    per_round: float
    """A_T/T, between 0 and 1."""
    exact: bool
    standard_error: float | None
    """None where `exact`, and where too few rows were drawn."""
    rows: int
    """How many rows it was computed from."""


def measure(rows: CsrRows) -> Distances | str:
    """The distances between all pairs of these rows, or why they say nothing."""
    found = distances_apart(rows)
    if isinstance(found, str):
        return found
    apart, pairs = found
    first, low, median, high, last = np.quantile(
        apart, [0.01, 0.05, 0.5, 0.95, 0.99], method="inverted_cdf"
    )
    edges = np.linspace(first, last, BINS + 1) if first < last else np.array([first, last])
    edges[[0, -1]] = apart[[0, -1]]
    counts = np.diff(np.searchsorted(apart, edges[:-1]), append=len(apart))
    return Distances(
        rows=len(rows),
        pairs=pairs,
        zero_pairs=pairs - len(apart),
        smallest=float(apart[0]),
        quantile_05=float(low),
        median=float(median),
        quantile_95=float(high),
        largest=float(apart[-1]),
        sigma=float(median),
        sigma_low=float(low) / math.sqrt(-2 * math.log(SHARE)),
        sigma_high=float(high) / math.sqrt(-2 * math.log1p(-SHARE)),
        histogram_edges=tuple(edges.tolist()),
        histogram_counts=tuple(counts.tolist()),
    )


def align(rows: CsrRows, signs: Floats, sigma: float, total: int) -> Alignment | None:
    """A_T of a file of `total` rows from these, which are all of them or drawn from them.

    None where it cannot be told: rows that σ would tell apart differ by less than a double can.
    """
    geometry = Geometry(rows)
    count = len(geometry)
    with np.errstate(over="ignore", under="ignore"):
        width = max(float(np.ldexp(sigma, -geometry.exponent)), 5e-324)
    sums = np.zeros(count)
    for start, stop, squares in geometry.blocks():
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.sqrt(squares, out=squares)
            scaled /= width
            scaled *= scaled
            scaled *= -0.5
            terms = np.exp(scaled, out=scaled)
        terms *= signs[start:stop, None]
        terms *= signs[start:]
        np.fill_diagonal(terms, 0.0)
        sums[start:stop] += terms.sum(axis=1)
        sums[stop:] += terms[:, stop - start :].sum(axis=0)
    if geometry.lost and width < 1e20 * LOST:
        return None
    mean = float(sums.sum()) / (count * (count - 1)) if count > 1 else 0.0
    value = (total - 1) * (1 - mean)
    error = None
    if 2 < count < total:
        gaps = sums / (count - 1) - mean
        factor = (1 - count / total) * 4 * (count - 1) / (count * (count - 2) ** 2)
        error = (total - 1) * math.sqrt(factor * float(gaps @ gaps))
    return Alignment(sigma, value, value / total, count == total, error, count)
