"""Distances between rows, exact to nine digits, hashes that find equal rows, and `--sigma auto`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.kernels import ROUNDING, TRUSTED
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, compressed, rows_of
from ahpatron_cli.data.dataset import WARM_UP

TOO_SMALL = "some values are too small beside others to compute distances"
_DENSE_SHARE = 0.25
_DENSE_WIDTH = 4096
_BLOCK = 256
_PAIRS_VALUES = 1 << 20
LOST = 1e-140
"""Distances below, in units of the largest value, are not known: their squares underflow."""
DIGITS = 4
"""Of the σ chosen: few enough to be typed, and then to give the same bits."""

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0x243F6A8885A308D3)


def _mix(words: Words) -> Words:
    """The finaliser of SplitMix64, a bijection in which every bit depends on every other."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words


def row_hashes(rows: CsrRows) -> Words:
    """A hash of each row; rows that are equal as vectors have equal ones.

    `Σ mix(bits(x_ij) ⊕ key_j)` mod 2^64 over the values that are not 0: two rows that differ
    collide with probability 2^-64.
    """
    values = np.ascontiguousarray(rows.values)
    words = _mix(rows.columns.astype(np.uint64) * _GOLDEN + _SALT)
    words ^= values.view(np.uint64)
    words = np.where(values == 0, np.uint64(0), _mix(words))  # a zero counts as not stored
    sums = np.concatenate((np.zeros(1, np.uint64), words))
    np.cumsum(sums, out=sums)
    return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]


class Geometry:
    """Squared distances between rows, block by block, exact to nine digits.

    `‖u - v‖² = ‖u‖² + ‖v‖² - 2⟨u, v⟩`, and by subtraction where that loses digits. All is
    computed in units of 2^e, with e such that no square overflows or underflows.
    """

    def __init__(self, rows: CsrRows) -> None:
        largest = float(np.abs(rows.values).max(initial=0.0))
        self.exponent = math.frexp(largest)[1]
        values = np.ldexp(rows.values, -self.exponent)
        self._hashes = row_hashes(rows)
        size = len(rows) * rows.width
        self._rows: (
            Any  # a NumPy array, or a matrix of scipy.sparse: both are sliced and multiplied
        )
        self._sparse = rows.width > _DENSE_WIDTH or len(values) < _DENSE_SHARE * size
        if self._sparse:
            from scipy.sparse import csr_matrix

            used, columns = np.unique(rows.columns, return_inverse=True)
            shape = (len(rows), len(used))
            self._rows = csr_matrix((values, columns, rows.indptr), shape=shape)
            self._norms = np.asarray(self._rows.multiply(self._rows).sum(axis=1)).reshape(-1)
        else:
            dense = CsrRows(rows.indptr, rows.columns, values, rows.width).dense()
            self._rows = dense - dense.mean(axis=0)  # offsets would cost digits
            self._norms = np.einsum("ij,ij->i", self._rows, self._rows)
        self.lost = False
        """Whether two rows differ by less than can be told beside the largest value."""

    def __len__(self) -> int:
        return len(self._hashes)

    def blocks(self) -> Iterator[tuple[int, int, Floats]]:
        """(start, stop, squares): of rows start to stop with all rows from `start` on."""
        for start in range(0, len(self), _BLOCK):
            stop = min(start + _BLOCK, len(self))
            yield start, stop, self._squares(start, stop)

    def _squares(self, start: int, stop: int) -> Floats:
        products = self._rows[start:stop] @ self._rows[start:].T
        squares: Floats = -2.0 * (products.toarray() if self._sparse else products)
        sums = self._norms[start:stop, None] + self._norms[start:]
        squares += sums
        equal = self._hashes[start:stop, None] == self._hashes[start:]
        squares[equal] = 0.0
        doubtful = ~equal & (TRUSTED * squares < 8 * ROUNDING * sums)
        left, right = np.nonzero(np.triu(doubtful, 1))
        if len(left):
            squares[left, right] = self._by_subtraction(left + start, right + start)
            mirrored = right < stop - start
            left, right = left[mirrored], right[mirrored]
            squares[right, left] = squares[left, right]
        self.lost |= bool((~equal & (squares < LOST**2)).any())
        return squares

    def _by_subtraction(self, left: Integers, right: Integers) -> Floats:
        """`‖u - v‖²` of single pairs, a bounded number of values at a time."""
        out = np.empty(len(left))
        step = max(_PAIRS_VALUES // max(self._rows.shape[1], 1), 1)
        if self._sparse:
            step = max(_PAIRS_VALUES // int(np.diff(self._rows.indptr).max(initial=1)), 1)
        for start in range(0, len(left), step):
            part = slice(start, start + step)
            gap = self._rows[left[part]] - self._rows[right[part]]
            square = gap.multiply(gap) if self._sparse else gap * gap
            out[part] = np.asarray(square.sum(axis=1)).reshape(-1)
        return out


def distances_apart(rows: CsrRows) -> tuple[Floats, int] | str:
    """The distances that are not 0 between two of these rows, sorted, and the number of pairs.

    Or why they say nothing.
    """
    if len(rows) < 2:
        return "there is only one row"
    geometry = Geometry(rows)
    parts = []
    for start, stop, squares in geometry.blocks():
        above = np.triu(np.ones(squares.shape, dtype=bool), 1)
        parts.append(np.sqrt(squares[above[: stop - start]]))
    distances = np.sort(np.concatenate(parts))
    if geometry.lost and distances[len(distances) // 20] < LOST:
        return TOO_SMALL
    apart = distances[np.searchsorted(distances, 0.0, side="right") :]
    if not len(apart):
        return "all rows of the sample are equal"
    with np.errstate(over="ignore"):
        apart = np.ldexp(apart, geometry.exponent)
    if not math.isfinite(10 * float(apart[-1])):
        return "distances do not fit into a double"
    return apart, len(distances)


def median_sigma(rows: Rows, kernel: str) -> float | str:
    """The median distance between two of the first rows, leaving out those that are 0; or why not.

    The rows are those that come first in the file, whatever the order they are played in, and no
    label is looked at: so the answer is one per file.

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
        return "all rows of the sample are equal, or there is only one"
    return (apart,) if np.isfinite(10 * apart.max()) else "distances do not fit into a double"
