"""Selection of σ: distances between rows, and learners tried with several widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Player
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed, rows_of
from ahpatron_cli.core.tally import Tally
from ahpatron_cli.data.layout import is_dense

TOO_SMALL = "values are too small or too large to compute distances"
DIGITS = 4
"""Significant digits of a selected σ, so that typing the printed value gives the same bits."""
MOST_COMPARED = 1000
"""Largest number of rows whose pairwise distances are computed (half a million pairs)."""
MOST_VALUES = 1 << 23
"""Largest number of values, including zeros, of these rows: fewer rows of wide data."""
SHARE = 0.05
"""σ is useful if at least this share of pairs has κ >= 0.05, and as many have κ <= 0.95."""
METRICS: dict[str, Literal["euclidean", "cityblock"]] = {
    "gaussian": "euclidean",
    "laplacian": "cityblock",
}
SUGGESTED_LEARNER = "arow"
"""The learner with which values of σ are tried: the most accurate one that uses σ."""
TRIED_FACTORS = (1.0, 0.5, 0.25, 0.125, 2.0)
"""Values of σ to try, as multiples of the median distance."""
FEWEST_TRIED_ROWS = 200
"""Smallest number of rows on which a σ is tried."""
MOST_TRIED_ROWS = 1000
"""Largest number of rows on which each σ is tried; all of it takes at most a second."""
MOST_TRIED_CLASSES = 100


def distances_between(rows: Rows, kernel: str = "gaussian") -> tuple[Floats, int] | str:
    """Sorted distances of all pairs of the first rows, and the number of these rows.

    A text with the reason if they cannot be computed. The distance is that of the kernel.
    """
    from scipy.spatial.distance import pdist

    stored = compressed(rows).without_zeros()
    used, columns = np.unique(stored.columns, return_inverse=True)
    width = max(len(used), 1)
    narrow = CsrRows(
        indptr=stored.indptr,
        columns=columns.astype(np.int32),
        values=stored.values,
        width=len(used),
    )
    affordable = max(MOST_VALUES // width, 2)
    count = min(len(narrow), MOST_COMPARED, affordable)
    if count < 2:
        return "there is only one row"
    dense = narrow.slice(0, count).dense(width)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.sort(pdist(dense, METRICS[kernel]))
    largest = float(distances[-1])
    if not math.isfinite(10 * largest):
        return TOO_SMALL
    if largest == 0.0:
        differ = (dense != dense[0]).any()
        return TOO_SMALL if differ else "all rows of the sample are equal"
    return distances, count


def auto_sigma(rows: Rows, labels: Floats, kernel: str) -> float | str:
    """The best of five widths around the median distance of these rows; else the reason as text.

    The widths are tried on the rows in order; if that is not possible, the median is returned.
    """
    median = median_sigma(rows, kernel)
    if isinstance(median, str):
        return median
    tried = try_sigmas(rows, labels, median=median, kernel=kernel)
    return _rounded(best_sigma(median, tried))


def median_sigma(rows: Rows, kernel: str) -> float | str:
    """The median nonzero distance between two of the first rows; else the reason as text.

    These are the first rows of the file, whatever their order in a run, so the value is the same
    for all runs on a file.

    The distance is the kernel's own: `‖u - v‖` for the Gaussian, half of whose values are then
    above `exp(-1/2) = 0.61`, and `‖u - v‖₁` for the Laplacian, half above `exp(-1) = 0.37`.
    """
    found = distances_between(rows, kernel)
    if isinstance(found, str):
        return found
    distances, _ = found
    apart = distances[distances > 0]
    median = np.quantile(apart, 0.5, method="inverted_cdf")
    return _rounded(float(median))


def _rounded(sigma: float) -> float:
    """σ with `DIGITS` significant digits."""
    return float(f"{sigma:.{DIGITS}g}")


@dataclass(frozen=True)
class TriedSigma:
    """A value of σ and the result of `SUGGESTED_LEARNER` with it on a sample of rows."""

    sigma: float
    rounds: int
    mistake_rate: float
    majority_error: float
    """Mistake rate of always predicting the most frequent label of these rows."""


def try_learner(
    name: str,
    rows: Rows,
    labels: Floats,
    kernel: Kernel | None = None,
    weights: Floats | None = None,
) -> Tally | None:
    """Counts of a learner with default parameters on these rows.

    None if there are too few rows, only one class or too many, or a numerical error.
    """
    names, numbers = np.unique(labels, return_inverse=True)
    rounds = len(labels)
    if rounds < FEWEST_TRIED_ROWS or not 2 <= len(names) <= MOST_TRIED_CLASSES:
        return None
    if isinstance(rows, CsrRows) and is_dense(len(rows), rows.width, stored=len(rows.values)):
        rows = rows.dense()
    codes = 2 * numbers - 1 if len(names) == 2 else numbers
    player = Player(REGISTRY[name](), kernel, classes=len(names), horizon=rounds)
    try:
        player.feed(rows, codes.astype(np.float64), weights)
    except NumericalError:
        return None
    return player.tally


def try_sigmas(
    rows: Rows, labels: Floats, median: float, kernel: str = "gaussian"
) -> tuple[TriedSigma, ...]:
    """Try values of σ around the median distance; results sorted, the best first."""
    rounds = min(len(labels), MOST_TRIED_ROWS)
    first = rows_of(rows, slice(0, rounds))
    first_labels = labels[:rounds]
    _, counts = np.unique(first_labels, return_counts=True)
    largest_share = float(counts.max(initial=0)) / max(rounds, 1)
    found = []
    for factor in TRIED_FACTORS:
        sigma = factor * median
        of_sigma = KERNELS[kernel](**{"sigma": sigma})
        tally = try_learner(SUGGESTED_LEARNER, first, first_labels, kernel=of_sigma)
        if tally is None:
            return ()
        tried = TriedSigma(
            sigma=sigma,
            rounds=rounds,
            mistake_rate=tally.mistakes / rounds,
            majority_error=1 - largest_share,
        )
        found.append(tried)

    def rank(one: TriedSigma) -> tuple[float, float]:
        """By mistakes; of equal ones, the σ nearest to the median first."""
        return one.mistake_rate, abs(math.log(one.sigma / median))

    return tuple(sorted(found, key=rank))


def is_best(rate: float | None, tried: Sequence[TriedSigma]) -> bool:
    """Whether a mistake rate is at most one standard error above the best one tried."""
    if rate is None or not tried:
        return True
    best = tried[0]
    mistakes = rate * best.rounds
    fewest = best.mistake_rate * best.rounds
    return mistakes - fewest <= math.sqrt(mistakes + fewest)


def best_sigma(median: float, tried: Sequence[TriedSigma]) -> float:
    """The median, or the best σ tried if the median is worse by more than a standard error."""
    of_median = next((one.mistake_rate for one in tried if one.sigma == median), None)
    if is_best(of_median, tried):
        return median
    return tried[0].sigma


def sigma_range(rows: Rows) -> tuple[float, float, float] | str:
    """Median distance between rows, and lower and upper end of useful σ; else the reason as text.

    Distances of 0 are left out. From the lower end on at least 5 % of the pairs have κ >= 0.05, up
    to the upper end at least 5 % have κ <= 0.95. With d_q the q-quantile of the distances,
    κ(d) = exp(-d²/(2σ²)) solved for σ gives d_0.05 / √(2·ln(1/0.05)) and d_0.95 / √(2·ln(1/0.95)).
    """
    found = distances_between(rows)
    if isinstance(found, str):
        return found
    distances, _ = found
    apart = distances[distances > 0]
    quantiles = [SHARE, 0.5, 1 - SHARE]
    near, median, far = np.quantile(apart, quantiles, method="inverted_cdf").tolist()
    low = near / math.sqrt(-2 * math.log(SHARE))
    high = far / math.sqrt(-2 * math.log1p(-SHARE))
    return median, low, high
