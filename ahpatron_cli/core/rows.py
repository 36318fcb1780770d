"""Rows of examples: a dense array, or `CsrRows` if most values are zero.

Both are treated as read-only. `CsrRows` consists of plain NumPy arrays, so that the core need not
import `scipy.sparse`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Compressed sparse rows: row i holds `values[indptr[i]:indptr[i+1]]` at those `columns`.

    Columns increase within a row. `width` is at least one more than the largest column in use.

    >>> compressed(np.array([[0.0, 2.0], [1.0, 0.0]])).dense().tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """

    indptr: Integers
    columns: NDArray[np.int32]
    values: Floats
    width: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def owners(self) -> Integers:
        """Row number of each stored value."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def slice(self, start: int, stop: int) -> CsrRows:
        """Rows `start` to `stop`, as views."""
        indptr = self.indptr[start : stop + 1]
        begin, end = indptr[0], indptr[-1]
        return CsrRows(indptr - begin, self.columns[begin:end], self.values[begin:end], self.width)

    def take(self, order: Integers) -> CsrRows:
        """A copy of the rows with the numbers in `order`."""
        starts = self.indptr[order]
        lengths = self.indptr[order + 1] - starts
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        # position of each value: the start of its row in the source, plus its offset in the row
        source = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return CsrRows(indptr, self.columns[source], self.values[source], self.width)

    def dense(self, width: int | None = None) -> Floats:
        """The rows as a dense array with `width` columns (at least `self.width`)."""
        out = np.zeros((len(self), max(width or 0, self.width)))
        out[self.owners, self.columns] = self.values
        return out

    def storing(self, columns: NDArray[np.int32]) -> CsrRows:
        """The same rows, in which these increasing columns are stored even where they are 0."""
        if not len(columns):
            return self
        places = columns.searchsorted(self.columns)
        stored = np.append(columns, -1)[places] == self.columns
        if np.count_nonzero(stored) == len(self) * len(columns):
            return self
        owners = self.owners
        lacking = np.ones((len(self), len(columns)), dtype=bool)
        lacking[owners[stored], places[stored]] = False
        more_owners, numbers = lacking.nonzero()
        owners = np.concatenate((owners, more_owners))
        all_columns = np.concatenate((self.columns, columns[numbers]))
        values = np.concatenate((self.values, np.zeros(len(numbers))))
        order = np.lexsort((all_columns, owners))
        indptr = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(self)))))
        width = max(self.width, columns.item(-1) + 1)
        return CsrRows(indptr, all_columns[order], values[order], width)

    def without_zeros(self) -> CsrRows:
        """The same rows, in which no zeros are stored."""
        if self.values.all():
            return self
        filled = self.values != 0.0
        indptr = np.concatenate(([0], np.cumsum(filled)))[self.indptr]
        return CsrRows(indptr, self.columns[filled], self.values[filled], self.width)

    def is_legal(self) -> bool:
        """Whether columns increase and all indices are in range, as products require."""
        indptr, columns = self.indptr, self.columns
        count = len(columns)
        if not len(indptr) or indptr[0] != 0 or indptr[-1] != count or len(self.values) != count:
            return False
        if not 0 <= self.width < 2**31:
            return False
        if not count:
            return bool((indptr == 0).all())
        increases = columns[1:] > columns[:-1]
        if len(indptr) == 2:  # a single row: the first column is the smallest
            smallest, largest = columns[0], columns[-1]
        else:
            smallest, largest = columns.min(), columns.max()
            if (indptr[1:] < indptr[:-1]).any():
                return False
            starts = indptr[(indptr > 0) & (indptr < count)]
            increases[starts - 1] = True  # any column may come first in a row
        return bool(0 <= smallest <= largest < self.width and increases.all())

    def check(self) -> None:
        """Raise a ValueError if the arrays are not those of sparse rows."""
        kinds = (self.indptr, "i8"), (self.columns, "i4"), (self.values, "f")
        for array, kind in kinds:
            if not isinstance(array, np.ndarray) or array.ndim != 1 or kind not in array.dtype.str:
                message = "CsrRows need one-dimensional arrays of int64, int32 and floats"
                raise ValueError(message)
        if not self.is_legal():
            message = "columns must increase within each row of CsrRows and be below its width"
            raise ValueError(f"{message}; `indptr` must increase from 0 to their number")

    @staticmethod
    def concatenate(parts: Sequence[CsrRows]) -> CsrRows:
        """Stack the rows of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        pointers, end = [parts[0].indptr], 0
        for before, part in itertools.pairwise(parts):
            end += before.indptr.item(-1)
            pointers.append(part.indptr[1:] + end)
        columns = np.concatenate([part.columns for part in parts])
        values = np.concatenate([part.values for part in parts])
        width = max(part.width for part in parts)
        return CsrRows(np.concatenate(pointers), columns, values, width)


Rows: TypeAlias = Floats | CsrRows


def rows_from(data: Any) -> Rows:
    """Convert array-likes and SciPy sparse matrices or arrays to `Rows`; checks `CsrRows`."""
    if isinstance(data, CsrRows):
        data.check()
        return data
    if hasattr(data, "tocsr"):
        sparse = data.tocsr().copy()
        sparse.sum_duplicates()  # sorts the columns of each row, too
        indptr, columns = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32)
        return CsrRows(indptr, columns, sparse.data.astype(np.float64), int(sparse.shape[1]))
    rows = np.asarray(data)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(f"rows must be a matrix of numbers, got {rows.ndim}-d {rows.dtype}")
    return rows


def width_of(rows: Rows) -> int:
    """Number of columns."""
    return rows.width if isinstance(rows, CsrRows) else rows.shape[1]


def rows_of(rows: Rows, part: slice) -> Rows:
    """A slice of the rows, as a view."""
    return rows.slice(part.start, part.stop) if isinstance(rows, CsrRows) else rows[part]


def compressed(rows: Rows) -> CsrRows:
    """The rows as `CsrRows`; zeros that sparse rows store stay."""
    if isinstance(rows, CsrRows):
        return rows
    owners, columns = np.nonzero(rows)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(rows)))))
    return CsrRows(indptr, columns.astype(np.int32), rows[owners, columns], rows.shape[1])


def row_sums(rows: Rows, terms: Floats | None = None) -> Floats:
    """Sum of each row; if given, `terms` replace the stored values of sparse rows."""
    if not isinstance(rows, CsrRows):
        return np.asarray(rows.sum(axis=1))
    weights = rows.values if terms is None else terms
    return np.bincount(rows.owners, weights, len(rows)).astype(float, copy=False)


def unit_rows(rows: Rows) -> Rows:
    """Divide every row by its Euclidean length; rows of zeros are not changed.

    Each row is divided by its largest value first, so that no square overflows or underflows.
    """
    if isinstance(rows, CsrRows):
        owners, largest = rows.owners, np.zeros(len(rows))
        np.maximum.at(largest, owners, np.abs(rows.values))
        values = rows.values / _zero_to_one(largest)[owners]
        values /= _zero_to_one(np.sqrt(row_sums(rows, values * values)))[owners]
        return replace(rows, values=values)
    rows = rows.astype(np.float64, copy=False)
    scaled = rows / _zero_to_one(np.abs(rows).max(axis=1, initial=0.0, keepdims=True))
    return scaled / _zero_to_one(np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None])


def _zero_to_one(lengths: Floats) -> Floats:
    return np.where(lengths > 0, lengths, 1.0)
