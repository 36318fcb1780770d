"""A whole file in memory: once, and in the smallest form that loses nothing.

Values are held as float32 where every one of them is such a number (0 and 1, halves, small whole
numbers), and become float64 again, exactly, when they are played.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows
from ahpatron_cli.data.libsvm.reader import Chunk


def smallest(values: Floats) -> Floats:
    """The same numbers as float32, if all of them are; else as they are."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    # typed as float64, which it is again before anything is computed: see `exact_rows`
    return single if np.array_equal(single, values) else values  # type: ignore[return-value]


def small_rows(rows: Rows) -> Rows:
    """Rows with their values in the smallest form."""
    if isinstance(rows, CsrRows):
        return CsrRows(rows.indptr, rows.columns, smallest(rows.values), rows.width)
    return smallest(rows)


def exact_rows(rows: Rows) -> Rows:
    """Rows to compute with: float64 again, and nothing is copied that is so already."""
    if isinstance(rows, CsrRows):
        values = rows.values.astype(np.float64, copy=False)
        return CsrRows(rows.indptr, rows.columns, values, rows.width)
    return rows.astype(np.float64, copy=False)


@dataclass
class Gathered:
    """All chunks of a file, until it is known in which form they are held."""

    chunks: list[Chunk]
    width: int = 0
    values: int = 0

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> Gathered:
        """All of these, their values in the smallest form, chunk by chunk."""
        gathered = cls([])
        for chunk in chunks:
            rows = small_rows(chunk.rows)
            assert isinstance(rows, CsrRows)
            gathered.chunks.append(Chunk(chunk.labels, rows, chunk.lines))
            gathered.width = max(gathered.width, rows.width)
            gathered.values += len(rows.values)
        return gathered

    @property
    def labels(self) -> Floats:
        """The labels of all rows, as they stand in the file."""
        return np.concatenate([chunk.labels for chunk in self.chunks])

    @property
    def lines(self) -> Integers:
        """The line of each row."""
        return np.concatenate([chunk.lines for chunk in self.chunks])

    def rows(self, *, dense: bool, width: int) -> Rows:
        """All rows, dense with `width` columns or compressed; the chunks are used up.

        Each is let go as soon as it was copied, so that never both forms of all rows are there.
        """
        kinds = {chunk.rows.values.dtype for chunk in self.chunks}
        kind = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
        count = sum(len(chunk.labels) for chunk in self.chunks)
        return self._dense(kind, count, width) if dense else self._compressed(kind, count)

    def _taken(self) -> Iterable[CsrRows]:
        self.chunks.reverse()
        while self.chunks:
            yield self.chunks.pop().rows

    def _dense(self, kind: type[np.floating], count: int, width: int) -> Floats:
        out: NDArray[Any] = np.zeros((count, width), dtype=kind)
        start = 0
        for rows in self._taken():
            out[start : start + len(rows)] = rows.dense(width)
            start += len(rows)
        return out

    def _compressed(self, kind: type[np.floating], count: int) -> CsrRows:
        indptr = np.zeros(count + 1, dtype=np.int64)
        columns = np.empty(self.values, dtype=np.int32)
        values: NDArray[Any] = np.empty(self.values, dtype=kind)
        row, start = 0, 0
        for rows in self._taken():
            stop = start + len(rows.values)
            indptr[row + 1 : row + 1 + len(rows)] = rows.indptr[1:] + start
            columns[start:stop], values[start:stop] = rows.columns, rows.values
            row, start = row + len(rows), stop
        return CsrRows(indptr, columns, values, self.width)
