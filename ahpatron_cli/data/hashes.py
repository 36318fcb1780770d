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
        self._labels.update(np.ascontiguousarray(batch.labels, dtype="<f8").data)
        self._sizes.update(np.diff(rows.indptr).astype("<i8").data)
        self._columns.update(rows.columns.astype("<i8").data)
        self._values.update(np.ascontiguousarray(rows.values, dtype="<f8").data)

    def hexdigest(self) -> str:
        """The hash in hexadecimal."""
        parts = (self._labels, self._sizes, self._columns, self._values)
        digests = b"".join(part.digest() for part in parts)
        return hashlib.sha256(digests).hexdigest()


class RowChecksum:
    """Number of rows so far, with and without a label, and their checksum."""

    def __init__(self) -> None:
        self.rounds = 0
        self._sums = [0, 0, 0, 0]

    def add(self, batch: Batch) -> None:
        """Add rows to the checksum; independent of how they are split into batches."""
        rows = batch.stored  # sparse: a file that grew may have more columns
        parts = batch.labels, np.diff(rows.indptr), rows.columns, rows.values
        for number, part in enumerate(parts):
            self._sums[number] = zlib.crc32(np.ascontiguousarray(part).data, self._sums[number])
        self.rounds += len(batch.labels)

    @property
    def digest(self) -> int:
        """The checksum as a single integer."""
        return zlib.crc32(repr(self._sums).encode())


def row_hashes(rows: CsrRows) -> Words:
    """64-bit hash of each row; rows that are equal as vectors have equal hashes.

    `Σ mix(bits(x_ij) ⊕ key_j)` mod 2^64 over the values that are not 0: two rows that differ
    collide with probability 2^-64.
    """
    values = np.ascontiguousarray(rows.values)
    golden = np.uint64(0x9E3779B97F4A7C15)
    salt = np.uint64(0x243F6A8885A308D3)
    keys = _mix(rows.columns.astype(np.uint64) * golden + salt)
    mixed = _mix(keys ^ values.view(np.uint64))
    zero = np.uint64(0)
    words = np.where(values == 0, zero, mixed)  # a zero counts as not stored
    sums = np.append(zero, np.cumsum(words, dtype=np.uint64))
    starts = rows.indptr[:-1]
    ends = rows.indptr[1:]
    return sums[ends] - sums[starts]


def _mix(words: Words) -> Words:
    """The finaliser of SplitMix64, a bijection in which every bit depends on every other."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words
