"""What is found out from the first rows of a stream, before its first round: never more than these.

Only features are looked at, never labels. The rows are those that come first in the file, whatever
the order they are played in, so the answer is one per file.
"""

from __future__ import annotations

import numpy as np

from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed, rows_of
from ahpatron_cli.data.dataset import WARM_UP
from ahpatron_cli.data.geometry import distances_apart

DIGITS = 4
"""Of the σ chosen: few enough to be typed, and then to give the same bits."""


def median_sigma(rows: Rows, kernel: str) -> float | str:
    """The median distance between two of the first rows, leaving out those that are 0; or why not.

    The distance is the kernel's own: `‖u - v‖` for the Gaussian, half of whose values are then
    above `exp(-1/2) = 0.61`, and `‖u - v‖₁` for the Laplacian, half above `exp(-1) = 0.37`.
    """
    count = len(rows) if isinstance(rows, CsrRows) else rows.shape[0]
    first = compressed(rows_of(rows, slice(0, min(count, WARM_UP))))
    apart = _sums(first) if kernel == "laplacian" else distances_apart(first)
    if isinstance(apart, str):
        return apart
    return float(f"{np.quantile(apart[0], 0.5, method='inverted_cdf'):.{DIGITS}g}")


def _sums(rows: CsrRows) -> tuple[Floats] | str:
    """All ‖u - v‖₁ that are not 0."""
    points = KERNELS["laplacian"]().points(rows)
    distances = points.differences(points, power=1)
    apart = distances[np.triu_indices(len(distances), 1)]
    apart = apart[apart > 0]
    if not len(apart):
        return "all rows looked at are equal, or there is only one"
    return (apart,) if np.isfinite(10 * apart.max()) else "distances do not fit into a double"
