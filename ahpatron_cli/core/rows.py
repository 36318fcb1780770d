"""Rows of examples: a dense array, or `CsrRows` if most values are zero.

Both are treated as read-only. `CsrRows` consists of plain NumPy arrays, so that the core need not
import `scipy.sparse`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        count = len(self)
        if count == 1:  # a stream has many of them, one by one
            return np.zeros(len(self.columns), dtype=np.int64)
        lengths = self.indptr[1:] - self.indptr[:-1]
        numbers = np.arange(count)
        return np.repeat(numbers, lengths)

    def slice(self, start: int, stop: int) -> CsrRows:
        """Rows `start` to `stop`, as views."""
        indptr = self.indptr[start : stop + 1]
        begin = indptr[0]
        end = indptr[-1]
        return CsrRows(
            indptr=indptr - begin,
            columns=self.columns[begin:end],
            values=self.values[begin:end],
            width=self.width,
        )

    def take(self, order: Integers) -> CsrRows:
        """A copy of the rows with the numbers in `order`."""
        starts = self.indptr[order]
        ends = self.indptr[order + 1]
        lengths = ends - starts
        indptr = _pointers(lengths)
        # position of each value: the start of its row in the source, plus its offset in the row
        offsets = starts - indptr[:-1]
        moved_by = np.repeat(offsets, lengths)
        count = indptr[-1]
        source = np.arange(count) + moved_by
        return CsrRows(
            indptr=indptr,
            columns=self.columns[source],
            values=self.values[source],
            width=self.width,
        )

    def dense(self, width: int | None = None) -> Floats:
        """The rows as a dense array with `width` columns (at least `self.width`)."""
        width = max(width or 0, self.width)
        shape = (len(self), width)
        out = np.zeros(shape)
        out[self.owners, self.columns] = self.values
        return out

    def storing(self, columns: NDArray[np.int32]) -> CsrRows:
        """The same rows, in which these increasing columns are stored even where they are 0."""
        if not len(columns):
            return self
        rows = len(self)
        places = columns.searchsorted(self.columns)
        padded = np.append(columns, -1)
        stored = padded[places] == self.columns
        count = np.count_nonzero(stored)
        if count == rows * len(columns):
            return self
        owners = self.owners
        shape = (rows, len(columns))
        lacking = np.ones(shape, dtype=bool)
        own_places = places[stored]
        lacking[owners[stored], own_places] = False
        more_owners, numbers = lacking.nonzero()
        more_columns = columns[numbers]
        zeros = np.zeros(len(numbers))
        owners = np.concatenate((owners, more_owners))
        all_columns = np.concatenate((self.columns, more_columns))
        values = np.concatenate((self.values, zeros))
        order = np.lexsort((all_columns, owners))
        lengths = np.bincount(owners, minlength=rows)
        last = columns.item(-1)
        return CsrRows(
            indptr=_pointers(lengths),
            columns=all_columns[order],
            values=values[order],
            width=max(self.width, last + 1),
        )

    def without_zeros(self) -> CsrRows:
        """The same rows, in which no zeros are stored."""
        if self.values.all():
            return self
        filled = self.values != 0.0
        pointers = _pointers(filled)
        return CsrRows(
            indptr=pointers[self.indptr],
            columns=self.columns[filled],
            values=self.values[filled],
            width=self.width,
        )

    def is_legal(self) -> bool:
        """Whether columns increase and all indices are in range, as products require."""
        indptr = self.indptr
        columns = self.columns
        count = len(columns)
        if len(self.values) != count:
            return False
        if not len(indptr) or indptr[0] != 0:
            return False
        if indptr[-1] != count:
            return False
        if not 0 <= self.width < 2**31:
            return False
        if not count:
            return bool((indptr == 0).all())
        increases = columns[1:] > columns[:-1]
        if len(indptr) == 2:  # a single row: the first column is the smallest
            smallest = columns[0]
            largest = columns[-1]
        else:
            smallest = columns.min()
            largest = columns.max()
            decreases = indptr[1:] < indptr[:-1]
            if decreases.any():
                return False
            inside = (indptr > 0) & (indptr < count)
            starts = indptr[inside]
            increases[starts - 1] = True  # any column may come first in a row
        in_range = 0 <= smallest <= largest < self.width
        return bool(in_range and increases.all())

    def check(self) -> None:
        """Raise a ValueError if the arrays are not those of sparse rows."""
        right_kinds = (
            _is_vector(self.indptr, "i8")
            and _is_vector(self.columns, "i4")
            and _is_vector(self.values, "f")
        )
        if not right_kinds:
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
        pointers = [parts[0].indptr]
        end = 0
        for before, part in itertools.pairwise(parts):
            end += before.indptr.item(-1)
            own = part.indptr[1:]
            pointers.append(own + end)
        columns = [part.columns for part in parts]
        values = [part.values for part in parts]
        widths = [part.width for part in parts]
        return CsrRows(
            indptr=np.concatenate(pointers),
            columns=np.concatenate(columns),
            values=np.concatenate(values),
            width=max(widths),
        )


def _pointers(lengths: NDArray[Any]) -> Integers:
    """Where each row begins, and where the last one ends, if these are the lengths of the rows."""
    ends = np.cumsum(lengths)
    return np.concatenate(([0], ends))


def _is_vector(array: object, kind: str) -> bool:
    """Whether this is a one-dimensional array with a dtype of this kind."""
    if not isinstance(array, np.ndarray):
        return False
    return array.ndim == 1 and kind in array.dtype.str


Rows: TypeAlias = Floats | CsrRows


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any: ...


RowsLike: TypeAlias = ArrayLike | CsrRows | SparseMatrix
"""What `as_rows` converts to rows."""


def as_rows(data: RowsLike) -> Rows:
    """Convert array-likes and SciPy sparse matrices or arrays to `Rows`; checks `CsrRows`."""
    if isinstance(data, CsrRows):
        data.check()
        return data
    if hasattr(data, "tocsr"):
        sparse = data.tocsr().copy()
        sparse.sum_duplicates()  # sorts the columns of each row, too
        return CsrRows(
            indptr=sparse.indptr.astype(np.int64),
            columns=sparse.indices.astype(np.int32),
            values=sparse.data.astype(np.float64),
            width=int(sparse.shape[1]),
        )
    rows = np.asarray(data)
    is_number = rows.dtype.kind in "fiub"
    if rows.ndim != 2 or not is_number:
        got = f"{rows.ndim}-d {rows.dtype}"
        raise ValueError(f"rows must be a matrix of numbers, got {got}")
    return rows


def width_of(rows: Rows) -> int:
    """Number of columns."""
    if isinstance(rows, CsrRows):
        return rows.width
    _, width = rows.shape
    return int(width)


def sliced(rows: Rows, part: slice) -> Rows:
    """A slice of the rows, as a view."""
    if isinstance(rows, CsrRows):
        return rows.slice(part.start, part.stop)
    return rows[part]


def compressed(rows: Rows) -> CsrRows:
    """The rows as `CsrRows`; zeros that sparse rows store stay."""
    if isinstance(rows, CsrRows):
        return rows
    count, width = rows.shape
    owners, columns = np.nonzero(rows)
    lengths = np.bincount(owners, minlength=count)
    return CsrRows(
        indptr=_pointers(lengths),
        columns=columns.astype(np.int32),
        values=rows[owners, columns],
        width=width,
    )


def row_sums(rows: Rows, terms: Floats | None = None) -> Floats:
    """Sum of each row; if given, `terms` replace the stored values of sparse rows."""
    if not isinstance(rows, CsrRows):
        return np.asarray(rows.sum(axis=1))
    if terms is None:
        terms = rows.values
    sums = np.bincount(rows.owners, terms, len(rows))
    return sums.astype(float, copy=False)


def unit_rows(rows: Rows) -> Rows:
    """Divide every row by its Euclidean length; rows of zeros are not changed.

    Each row is divided by its largest value first, so that no square overflows or underflows.
    """
    if isinstance(rows, CsrRows):
        return _sparse_unit_rows(rows)
    rows = rows.astype(np.float64, copy=False)
    sizes = np.abs(rows)
    largest = sizes.max(axis=1, initial=0.0)
    divisors = _zero_to_one(largest)
    scaled = rows / divisors[:, None]
    squares = np.einsum("ij,ij->i", scaled, scaled)
    lengths = np.sqrt(squares)
    divisors = _zero_to_one(lengths)
    return scaled / divisors[:, None]


def _sparse_unit_rows(rows: CsrRows) -> CsrRows:
    """As `unit_rows`, for sparse rows."""
    owners = rows.owners
    sizes = np.abs(rows.values)
    largest = np.zeros(len(rows))
    np.maximum.at(largest, owners, sizes)
    divisors = _zero_to_one(largest)
    values = rows.values / divisors[owners]
    squares = row_sums(rows, values * values)
    lengths = np.sqrt(squares)
    divisors = _zero_to_one(lengths)
    values /= divisors[owners]
    return replace(rows, values=values)


def _zero_to_one(lengths: Floats) -> Floats:
    """The lengths, with 1 in place of 0, to divide by."""
    return np.where(lengths > 0, lengths, 1.0)


def distinct(values: Integers) -> Integers:
    """The distinct values in ascending order.

    `np.unique` without counts would import numpy.ma, which takes a tenth of the start of `run`.
    """
    found, _ = np.unique(values, return_counts=True)
    return found
