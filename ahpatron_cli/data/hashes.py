"""Hashes of rows: of all rows of a file, of the rows of a stream so far, and of each row."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows

if TYPE_CHECKING:
    from ahpatron_cli.data.batch import Batch

Words: TypeAlias = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0x243F6A8885A308D3)
"""Constants that make a key of a column number."""
_FACTORS = {
    np.uint64(30): np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(27): np.uint64(0x94D049BB133111EB),
}
"""Shifts of SplitMix64, each with the factor that follows."""
_LAST_SHIFT = np.uint64(31)


class RowHash:
    """SHA-256 of labels and rows as numbers; independent of how they are split into batches."""

    def __init__(self) -> None:
        self._labels = hashlib.sha256()
        self._sizes = hashlib.sha256()
        self._columns = hashlib.sha256()
        self._values = hashlib.sha256()

    def add(self, batch: Batch) -> None:
        """Add the examples of a batch."""
        rows = batch.stored
        labels = np.ascontiguousarray(batch.labels, dtype="<f8")
        sizes = np.diff(rows.indptr).astype("<i8")
        columns = rows.columns.astype("<i8")
        values = np.ascontiguousarray(rows.values, dtype="<f8")
        self._labels.update(labels.data)
        self._sizes.update(sizes.data)
        self._columns.update(columns.data)
        self._values.update(values.data)

    def hexdigest(self) -> str:
        """The hash in hexadecimal."""
        whole = hashlib.sha256()
        whole.update(self._labels.digest())
        whole.update(self._sizes.digest())
        whole.update(self._columns.digest())
        whole.update(self._values.digest())
        return whole.hexdigest()


class RowChecksum:
    """Number of rows so far, with and without a label, and their checksum."""

    def __init__(self) -> None:
        self.rounds = 0
        self._labels = 0
        self._sizes = 0
        self._columns = 0
        self._values = 0

    def add(self, batch: Batch) -> None:
        """Add rows to the checksum; independent of how they are split into batches."""
        rows = batch.stored  # sparse: a file that grew may have more columns
        sizes = np.diff(rows.indptr)
        self._labels = _crc32(batch.labels, self._labels)
        self._sizes = _crc32(sizes, self._sizes)
        self._columns = _crc32(rows.columns, self._columns)
        self._values = _crc32(rows.values, self._values)
        self.rounds += len(batch.labels)

    @property
    def digest(self) -> int:
        """The checksum as a single integer."""
        sums = [self._labels, self._sizes, self._columns, self._values]
        text = repr(sums)
        return zlib.crc32(text.encode())


def _crc32(numbers: np.ndarray, before: int) -> int:
    """The checksum of numbers that follow others, whose checksum is `before`."""
    contiguous = np.ascontiguousarray(numbers)
    return zlib.crc32(contiguous.data, before)


def row_hashes(rows: CsrRows) -> Words:
    """64-bit hash of each row; rows that are equal as vectors have equal hashes.

    `Σ mix(bits(x_ij) ⊕ key_j)` mod 2^64 over the values that are not 0: two rows that differ
    collide with probability 2^-64.
    """
    values = np.ascontiguousarray(rows.values)
    is_zero = values == 0
    keys = rows.columns.astype(np.uint64)
    keys *= _GOLDEN
    keys += _SALT
    bits = values.view(np.uint64)
    words = _mix(keys)
    words ^= bits
    words = _mix(words)
    words[is_zero] = 0  # a zero counts as not stored
    count = len(words)
    sums = np.zeros(count + 1, dtype=np.uint64)
    np.cumsum(words, out=sums[1:])
    starts = rows.indptr[:-1]
    ends = rows.indptr[1:]
    return sums[ends] - sums[starts]


def _mix(words: Words) -> Words:
    """The finaliser of SplitMix64, a bijection in which every bit depends on every other."""
    for shift, factor in _FACTORS.items():
        high = words >> shift
        words ^= high
        words *= factor
    high = words >> _LAST_SHIFT
    words ^= high
    return words
