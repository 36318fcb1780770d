"""What is found out from the first rows of a stream, before its first round: never more than these.

Only features are looked at, never labels. The rows are those that come first in the file, whatever
the order they are played in, so the answer is one per file.
"""

from __future__ import annotations

import numpy as np

from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.rows import CsrRows, Rows, compressed, rows_of
from ahpatron_cli.data.dataset import WARM_UP
from ahpatron_cli.data.distances import measure

DIGITS = 4
"""Of the σ chosen: few enough to be typed, and then to give the same bits."""


def median_sigma(rows: Rows, kernel: str) -> float | str:
    """The median distance between two of the first rows, leaving out those that are 0; or why not.

    The distance is the kernel's own: `‖u - v‖` for the Gaussian, half of whose values are then
    above `exp(-1/2) = 0.61`, and `‖u - v‖₁` for the Laplacian, half above `exp(-1) = 0.37`.
    """
    count = len(rows) if isinstance(rows, CsrRows) else rows.shape[0]
    first = compressed(rows_of(rows, slice(0, min(count, WARM_UP))))
    found = _median_of_sums(first) if kernel == "laplacian" else measure(first)
    if isinstance(found, str):
        return found
    return float(f"{found if isinstance(found, float) else found.sigma:.{DIGITS}g}")


def _median_of_sums(rows: CsrRows) -> float | str:
    """The median of ‖u - v‖₁ over all pairs."""
    points = KERNELS["laplacian"]().points(rows)
    distances = points.differences(points, power=1)
    apart = distances[np.triu_indices(len(distances), 1)]
    apart = apart[apart > 0]
    if not len(apart):
        return "all rows looked at are equal, or there is only one"
    median = float(np.quantile(apart, 0.5, method="inverted_cdf"))
    return median if np.isfinite(10 * apart.max()) else "distances do not fit into a double"
