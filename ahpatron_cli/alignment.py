"""The kernel alignment A_T of Liao et al. (AAAI 2024), for `ahpatron inspect`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.rows import CsrRows, Floats, Rows
from ahpatron_cli.data.layout import is_dense

ALIGNED_TOGETHER = 256
"""Number of rows of the kernel matrix that are computed at a time for A_T."""


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
    """None if the value is exact, or if too few rows were drawn."""
    rows: int
    """Number of rows from which it was computed."""


def align(rows: CsrRows, signs: Floats, sigma: float, total: int) -> Alignment | None:
    """A_T of a file with `total` rows, from these rows: all of them or a random sample.

    None if it cannot be computed.
    """
    kernel = KERNELS["gaussian"](**{"sigma": sigma})
    count = len(rows)
    form: Rows = rows
    if is_dense(count, rows.width, stored=len(rows.values)):
        form = rows.dense()
    try:
        points = kernel.points(form)
    except NumericalError:
        return None
    sums = np.empty(count)
    for start in range(0, count, ALIGNED_TOGETHER):
        stop = min(start + ALIGNED_TOGETHER, count)
        part = points.slice(start, stop)
        values = kernel.between(part, points)
        own = signs[start:stop] * (values @ signs)
        sums[start:stop] = own - 1.0  # without the pair of a row with itself
    mean = 0.0
    if count > 1:
        pairs = count * (count - 1)
        mean = float(sums.sum()) / pairs
    value = (total - 1) * (1 - mean)
    error = None
    if 2 < count < total:
        gaps = sums / (count - 1) - mean
        error = _standard_error(gaps, total)
    return Alignment(
        sigma=sigma,
        value=value,
        per_round=value / total,
        exact=count == total,
        standard_error=error,
        rows=count,
    )


def _standard_error(gaps: Floats, total: int) -> float:
    """Standard error of A_T, from how far the mean of each row drawn is from the mean of all."""
    count = len(gaps)
    left_out = 1 - count / total
    divisor = count * (count - 2) ** 2
    factor = left_out * 4 * (count - 1) / divisor
    variance = factor * float(gaps @ gaps)
    return (total - 1) * math.sqrt(variance)
