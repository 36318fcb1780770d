"""Selection of σ: distances between rows, and learners tried with several widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Player
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed, sliced
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

    distance = KERNELS[kernel].distance
    if distance is None:
        raise ValueError(f"the {kernel} kernel does not depend on a distance")
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
        distances = np.sort(pdist(dense, distance))
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
    classes = len(names)
    rounds = len(labels)
    if rounds < FEWEST_TRIED_ROWS or not 2 <= classes <= MOST_TRIED_CLASSES:
        return None
    if isinstance(rows, CsrRows):
        rows = _in_layout(rows)
    codes = numbers.astype(np.float64)
    if classes == 2:
        codes = 2 * codes - 1
    learner = REGISTRY[name]()
    player = Player(learner, kernel, classes=classes, horizon=rounds)
    try:
        player.feed(rows, codes, weights)
    except NumericalError:
        return None
    return player.tally


def _in_layout(rows: CsrRows) -> Rows:
    """Sparse rows in the layout in which `ahpatron run` learns them."""
    if is_dense(len(rows), rows.width, stored=len(rows.values)):
        return rows.dense()
    return rows


def try_sigmas(
    rows: Rows, labels: Floats, median: float, kernel: str = "gaussian"
) -> tuple[TriedSigma, ...]:
    """Try values of σ around the median distance; results sorted, the best first."""
    rounds = min(len(labels), MOST_TRIED_ROWS)
    first = sliced(rows, slice(0, rounds))
    first_labels = labels[:rounds]
    _, counts = np.unique(first_labels, return_counts=True)
    largest = float(counts.max(initial=0))
    largest_share = largest / max(rounds, 1)
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
        ratio = one.sigma / median
        distance = abs(math.log(ratio))
        return one.mistake_rate, distance

    return tuple(sorted(found, key=rank))


def is_best(rate: float | None, tried: Sequence[TriedSigma]) -> bool:
    """Whether a mistake rate is at most one standard error above the best one tried."""
    if rate is None or not tried:
        return True
    best = tried[0]
    mistakes = rate * best.rounds
    fewest = best.mistake_rate * best.rounds
    standard_error = math.sqrt(mistakes + fewest)
    return mistakes - fewest <= standard_error


def best_sigma(median: float, tried: Sequence[TriedSigma]) -> float:
    """The median, or the best σ tried if the median is worse by more than a standard error."""
    of_median = None
    for one in tried:
        if one.sigma == median:
            of_median = one.mistake_rate
    if is_best(of_median, tried):
        return median
    best = tried[0]
    return best.sigma


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
    widths = np.quantile(apart, quantiles, method="inverted_cdf")
    near, median, far = widths.tolist()
    log_small = math.log(SHARE)
    log_large = math.log1p(-SHARE)
    low = near / math.sqrt(-2 * log_small)
    high = far / math.sqrt(-2 * log_large)
    return median, low, high
