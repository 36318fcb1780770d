"""Points: sets of examples prepared for kernels, i.e. scaled and (if dense) centred.

Kernels only use the methods of `Points`. Sparse points are never made dense.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.numerics import daxpy, ddot, sparse_product
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, row_sums
from ahpatron_cli.core.state import State, Stateful, StateReader

NARROW = 4096
"""Width up to which products of sparse rows use a dense table of all columns."""
INDEXED = 2**22
"""Width up to which columns of sparse rows are renumbered by an array with an entry each."""

Matrix: TypeAlias = Callable[[Integers], Floats]
"""A function that returns the rows of a matrix for an array of column numbers."""


class Points(Stateful, ABC):
    """A set of points. Methods of n points that take m others return an array of shape (n, m).

    Sets that are compared must be of the same class.

    Attributes
    ----------
    size : int
        Number of points.
    width : int
        Number of coordinates.
    largest : float
        Largest entry of `half_norms`.
    """

    size: int
    width: int
    largest: float

    @property
    @abstractmethod
    def stored(self) -> int:
        """Number of values stored."""

    @property
    @abstractmethod
    def half_norms(self) -> Floats:
        """‖x‖²/2 of each point."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Self:
        """Points `start` to `stop`, as a view."""

    @abstractmethod
    def subset(self, chosen: Integers) -> Self:
        """A copy of the points with these numbers."""

    @abstractmethod
    def extend(self, other: Self) -> None:
        """Append the points of another set."""

    @abstractmethod
    def keep(self, chosen: Integers, unmoved: int = 0) -> None:
        """Remove all other points than these; the first `unmoved` of them are in place already."""

    @abstractmethod
    def widened(self, width: int) -> Self:
        """The points with at least this many coordinates."""

    @abstractmethod
    def products(self, other: Self) -> Floats:
        """⟨s, x⟩ of all pairs."""

    @abstractmethod
    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        """-‖s - x‖²/2 of all pairs, with a rounding error relative to the norms."""

    @abstractmethod
    def times(self, matrix: Matrix, out: Floats) -> Floats:
        """Product with a matrix M, Σ_k x_k·M_k of each point."""

    @abstractmethod
    def _differences(self, other: Self, power: int) -> Iterator[Floats]:
        """Σ_k |s_k - x_k|^power of all points s, for one x of the other set after another."""

    def differences(self, other: Self, power: int) -> Floats:
        """Σ_k |s_k - x_k|^power of all pairs, with full relative accuracy."""
        if other.size > self.size:  # loop over the smaller set
            return np.ascontiguousarray(other.differences(self, power).T)
        out = np.empty((self.size, other.size))
        for i, sums in enumerate(self._differences(other, power)):
            out[:, i] = sums
        return out


class DensePoints(Points):
    """Dense points, stored as rows `[x, -‖x‖²/2, 1]`: one product gives Gaussian exponents."""

    state_fields: ClassVar[Any] = {"_rows": "rc"}
    _size_before: int | None = None  # `size` before the last `extend`
    _largest_before = 0.0  # `largest` before the last `extend`

    def __init__(self, rows: Floats, centre: Floats | None = None, unit: Any = 1.0) -> None:
        """Coordinates are `(rows - centre)/unit`; `unit` is a float or an array by column."""
        self.size, self.width = rows.shape
        self._rows = np.empty((self.size, self.width + 2))
        coordinates = self._rows[:, :-2]
        norms = self._rows[:, -2]
        if centre is None:
            coordinates[:] = rows
        else:
            np.subtract(rows, centre, out=coordinates)
        if isinstance(unit, np.ndarray) or unit != 1.0:
            coordinates /= unit
        np.einsum("ij,ij->i", coordinates, coordinates, out=norms)
        norms *= -0.5
        self._rows[:, -1] = 1.0
        self.largest = -float(np.minimum.reduce(norms, initial=0.0))

    @property
    def stored(self) -> int:
        return self.size * self.width

    @property
    def coordinates(self) -> Floats:
        """Scaled and centred examples, array of shape (size, width)."""
        return self._rows[: self.size, :-2]

    @property
    def half_norms(self) -> Floats:
        return -self._rows[: self.size, -2]

    def slice(self, start: int, stop: int) -> Self:
        return self._with(self._rows[start:stop])

    def subset(self, chosen: Integers) -> Self:
        return self._with(self._rows.take(chosen, axis=0))

    def _with(self, rows: Floats) -> Self:
        part = type(self).__new__(type(self))
        part._rows = rows
        part.largest = -float(np.minimum.reduce(rows[:, -2], initial=0.0))
        part.size = len(rows)
        part.width = rows.shape[1] - 2
        return part

    def extend(self, other: Self) -> None:
        needed = self.size + other.size
        if needed > len(self._rows):  # double the capacity
            capacity = max(needed, 2 * len(self._rows))
            rows = np.empty((capacity, self._rows.shape[1]))
            rows[: self.size] = self._rows[: self.size]
            self._rows = rows
        self._rows[self.size : needed] = other._rows[: other.size]
        self._size_before = self.size
        self._largest_before = self.largest
        self.size = needed
        self.largest = max(self.largest, other.largest)

    def keep(self, chosen: Integers, unmoved: int = 0) -> None:
        self.size = len(chosen)
        if unmoved == self.size == self._size_before:  # undo the last `extend`
            self.largest = self._largest_before
            return
        moved = chosen[unmoved:]
        self._rows[unmoved : self.size] = self._rows.take(moved, axis=0, mode="clip")
        self.largest = -float(self._rows[: self.size, -2].min(initial=0.0))

    def put_between(self, i: int, j: int, share: float) -> None:
        """Replace point j by `share·x_i + (1 - share)·x_j`."""
        row = self._rows[j]
        row *= 1.0 - share
        daxpy(self._rows[i], row, a=share)
        row[-2] = -0.5 * ddot(row, row, self.width)
        row[-1] = 1.0

    def widened(self, width: int) -> Self:
        if width <= self.width:
            return self
        rows = np.zeros((self.size, width + 2))  # new coordinates are 0
        rows[:, : self.width] = self.coordinates
        rows[:, -2:] = self._rows[: self.size, -2:]
        return self._with(rows)

    def state_dict(self) -> State:
        state = super().state_dict()
        state["rows"] = self._rows[: self.size]  # without the spare capacity
        return state

    def check(self, state: StateReader) -> None:
        self.size = len(self._rows)
        self.width = self._rows.shape[1] - 2
        if self.width < 0:
            raise state.refusal("rows", "are not examples")
        self.largest = float(self.half_norms.max(initial=0.0))

    def products(self, other: Self) -> Floats:
        return np.asarray(self.coordinates @ other.coordinates.T)

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        own = self._rows[: self.size]
        turned = own.copy()
        turned[:, -2:] = own[:, :-3:-1]  # [x, 1, -‖x‖²/2]
        others = other._rows[: other.size]
        return np.dot(turned, others.T, out=out)

    def _differences(self, other: Self, power: int) -> Iterator[Floats]:
        for point in other.coordinates:
            powers = _power(self.coordinates - point, power)
            yield powers.sum(axis=1)

    def times(self, matrix: Matrix, out: Floats) -> Floats:
        table = matrix(np.arange(self.width))
        return np.matmul(self.coordinates, table, out=out)


class SparsePoints(Points):
    """Sparse points. Products only visit the columns in which the smaller set has values."""

    state_fields: ClassVar[Any] = {"indptr": "#n", "columns": "%e", "values": "e", "width": int}

    def __init__(self, rows: CsrRows, half_norms: Floats | None = None) -> None:
        if half_norms is None:
            half_norms = 0.5 * row_sums(rows, rows.values * rows.values)
        self.csr = rows
        self._half_norms = half_norms
        self.size = len(rows)
        self.width = rows.width
        self.largest = float(half_norms.max(initial=0.0))
        self._table: Floats | None = None

    @property
    def stored(self) -> int:
        return len(self.csr.values)

    @property
    def half_norms(self) -> Floats:
        return self._half_norms

    def slice(self, start: int, stop: int) -> Self:
        rows = self.csr.slice(start, stop)
        return type(self)(rows, self._half_norms[start:stop])

    def subset(self, chosen: Integers) -> Self:
        return type(self)(self.csr.take(chosen))

    def extend(self, other: Self) -> None:
        rows = CsrRows.concatenate([self.csr, other.csr])
        half_norms = np.concatenate([self._half_norms, other._half_norms])
        SparsePoints.__init__(self, rows, half_norms)

    def keep(self, chosen: Integers, unmoved: int = 0) -> None:
        rows = self.csr.slice(0, unmoved)
        if unmoved < len(chosen):
            moved = self.csr.take(chosen[unmoved:])
            rows = CsrRows.concatenate([rows, moved])
        SparsePoints.__init__(self, rows, self._half_norms.take(chosen))

    def widened(self, width: int) -> Self:
        return self  # sparse points can be compared whatever their widths

    def state_dict(self) -> State:
        return {"class": "SparsePoints", **vars(self.csr)}

    def check(self, state: StateReader) -> None:
        given = vars(self)
        arrays = {name: given.pop(name) for name in self.state_fields}
        rows = CsrRows(**arrays)
        if not rows.is_legal():
            raise state.refusal("columns", "are not valid column numbers")
        SparsePoints.__init__(self, rows)

    def products(self, other: Self) -> Floats:
        return np.ascontiguousarray(self._products(other))

    def _products(self, other: Self) -> Floats:
        """⟨s, x⟩ as a product with a dense table of the smaller set (`self` or `other`)."""
        if other.size > self.size:
            return other._products(self).T
        rows = self.csr
        smaller = other.csr
        width = max(self.width, other.width)
        if width <= NARROW:  # renumbering the columns would not pay off
            if other._table is None or len(other._table) < width:
                other._table = _transposed(smaller, smaller.columns, width)
            return sparse_product(rows, other._table)
        if not len(smaller.columns):
            return np.zeros((self.size, other.size))
        return _product_by_shared_columns(rows, smaller, width)

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        products = self._products(other)
        out = np.subtract(products, self._half_norms[:, None], out=out, order="C")
        out -= other._half_norms
        return out

    def _differences(self, other: Self, power: int) -> Iterator[Floats]:
        """Differences on the columns of x, plus the values of s elsewhere: no cancellation."""
        rows = self.csr
        owners = rows.owners
        terms = _power(rows.values, power)
        for i in range(other.size):
            x = other.csr.slice(i, i + 1)
            places = x.columns.searchsorted(rows.columns)
            shared = np.append(x.columns, -1).take(places) == rows.columns
            here = np.zeros((self.size, len(x.columns)))
            here[owners[shared], places[shared]] = rows.values[shared]
            elsewhere = row_sums(rows, np.where(shared, 0.0, terms))
            powers = _power(here - x.values, power)
            yield elsewhere + powers.sum(axis=1)

    def times(self, matrix: Matrix, out: Floats) -> Floats:
        if self.width <= NARROW:
            table = matrix(np.arange(self.width))
            return sparse_product(self.csr, table, out)
        columns, places = np.unique(self.csr.columns, return_inverse=True)
        rows = replace(self.csr, columns=places.astype(np.int32))
        table = matrix(columns.astype(np.int64))
        return sparse_product(rows, table, out)


def _product_by_shared_columns(rows: CsrRows, smaller: CsrRows, width: int) -> Floats:
    """⟨s, x⟩ of two sets of rows; only the columns of the smaller one are numbered."""
    keys: NDArray[Any] = smaller.columns
    if width <= INDEXED:
        number = _numbers(width)
        number[keys] = np.arange(len(keys), dtype=np.int32)  # duplicates: any of them
        own = number[keys]
        met = number[rows.columns]
    else:  # too wide for an array with an entry per column
        keys, own = np.unique(keys, return_inverse=True)
        met = keys.searchsorted(rows.columns).astype(np.int32)
    shared = keys.take(met, mode="clip") == rows.columns
    counts = np.concatenate(([0], np.cumsum(shared)))
    part = CsrRows(
        indptr=counts[rows.indptr],
        columns=met[shared],
        values=rows.values[shared],
        width=len(keys),
    )
    table = _transposed(smaller, own, len(keys))
    return sparse_product(part, table)


_scratch = threading.local()


def _numbers(width: int) -> NDArray[Any]:
    """Uninitialised array with an entry per column, reused: clearing it would be slow."""
    if len(getattr(_scratch, "numbers", ())) < width:
        _scratch.numbers = np.zeros(width, dtype=np.int32)
    return np.asarray(_scratch.numbers)


def _transposed(rows: CsrRows, columns: NDArray[np.int32], width: int) -> Floats:
    table = np.zeros((width, len(rows)))
    table[columns, rows.owners] = rows.values
    return table


def _power(values: Floats, power: int) -> Floats:
    return np.abs(values) if power == 1 else values * values
