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

    is_dimension = True
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
    def shorten(self, size: int) -> None:
        """Remove the points of the last `extend`, before which there were `size`."""

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
            turned = other.differences(self, power)
            return np.ascontiguousarray(turned.T)
        shape = (self.size, other.size)
        out = np.empty(shape)
        for i, sums in enumerate(self._differences(other, power)):
            out[:, i] = sums
        return out


class DensePoints(Points):
    """Dense points, stored as rows `[x, -‖x‖²/2, 1]`: one product gives Gaussian exponents."""

    state_fields: ClassVar[Any] = {"_rows": "rc"}
    _largest_before = 0.0  # `largest` before the last `extend`

    def __init__(
        self, rows: Floats, centre: Floats | None = None, unit: float | Floats = 1.0
    ) -> None:
        """Coordinates are `(rows - centre)/unit`; `unit` is a float or an array by column."""
        size, width = rows.shape
        stored = np.empty((size, width + 2))
        coordinates = stored[:, :-2]
        norms = stored[:, -2]
        if centre is None:
            coordinates[:] = rows
        else:
            np.subtract(rows, centre, out=coordinates)
        if isinstance(unit, np.ndarray) or unit != 1.0:
            coordinates /= unit
        np.einsum("ij,ij->i", coordinates, coordinates, out=norms)
        norms *= -0.5
        stored[:, -1] = 1.0
        lowest = np.minimum.reduce(norms, initial=0.0)
        self._rows = stored
        self.size = size
        self.width = width
        self.largest = -float(lowest)

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
        rows = self._rows[start:stop]
        return self._with(rows)

    def subset(self, chosen: Integers) -> Self:
        rows = self._rows.take(chosen, axis=0)
        return self._with(rows)

    def _with(self, rows: Floats) -> Self:
        """Points whose stored rows are these."""
        kind = type(self)
        part = kind.__new__(kind)
        size, stored_width = rows.shape
        norms = rows[:, -2]
        lowest = np.minimum.reduce(norms, initial=0.0)
        part._rows = rows
        part.largest = -float(lowest)
        part.size = size
        part.width = stored_width - 2
        return part

    def extend(self, other: Self) -> None:
        rows = self._rows
        size = self.size
        needed = size + other.size
        capacity, stored_width = rows.shape
        if needed > capacity:  # double the capacity
            capacity = max(needed, 2 * capacity)
            larger = np.empty((capacity, stored_width))
            larger[:size] = rows[:size]
            rows = larger
            self._rows = rows
        rows[size:needed] = other._rows[: other.size]
        self._largest_before = self.largest
        self.size = needed
        self.largest = max(self.largest, other.largest)

    def shorten(self, size: int) -> None:
        self.size = size
        self.largest = self._largest_before

    def keep(self, chosen: Integers, unmoved: int = 0) -> None:
        size = len(chosen)
        self.size = size
        rows = self._rows
        moved = chosen[unmoved:]
        rows[unmoved:size] = rows.take(moved, axis=0, mode="clip")
        norms = rows[:size, -2]
        lowest = norms.min(initial=0.0)
        self.largest = -float(lowest)

    def put_between(self, i: int, j: int, share: float) -> None:
        """Replace point j by `share·x_i + (1 - share)·x_j`."""
        row = self._rows[j]
        row *= 1.0 - share
        daxpy(self._rows[i], row, a=share)
        square = ddot(row, row, self.width)
        row[-2] = -0.5 * square
        row[-1] = 1.0

    def widened(self, width: int) -> Self:
        if width <= self.width:
            return self
        shape = (self.size, width + 2)
        rows = np.zeros(shape)  # new coordinates are 0
        rows[:, : self.width] = self.coordinates
        own = self._rows[: self.size]
        rows[:, -2:] = own[:, -2:]
        return self._with(rows)

    def state_dict(self) -> State:
        state = super().state_dict()
        state["rows"] = self._rows[: self.size]  # without the spare capacity
        return state

    def check(self, state: StateReader) -> None:
        size, stored_width = self._rows.shape
        if stored_width < 2:
            raise state.refusal("rows", "are not examples")
        self.size = size
        self.width = stored_width - 2
        largest = self.half_norms.max(initial=0.0)
        self.largest = float(largest)

    def products(self, other: Self) -> Floats:
        others = other.coordinates
        products = self.coordinates @ others.T
        return np.asarray(products)

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        own = self._rows[: self.size]
        turned = own.copy()
        constants = own[:, :-3:-1]  # [1, -‖x‖²/2]
        turned[:, -2:] = constants
        others = other._rows[: other.size]
        return np.dot(turned, others.T, out=out)

    def _differences(self, other: Self, power: int) -> Iterator[Floats]:
        coordinates = self.coordinates
        for point in other.coordinates:
            differences = coordinates - point
            powers = _power(differences, power)
            yield powers.sum(axis=1)

    def times(self, matrix: Matrix, out: Floats) -> Floats:
        columns = np.arange(self.width)
        table = matrix(columns)
        return np.matmul(self.coordinates, table, out=out)


class SparsePoints(Points):
    """Sparse points. Products only visit the columns in which the smaller set has values."""

    state_fields: ClassVar[Any] = {"indptr": "#n", "columns": "%e", "values": "e", "width": int}

    def __init__(self, rows: CsrRows, half_norms: Floats | None = None) -> None:
        if half_norms is None:
            squares = rows.values * rows.values
            half_norms = 0.5 * row_sums(rows, squares)
        largest = half_norms.max(initial=0.0)
        self.csr = rows
        self._half_norms = half_norms
        self.size = len(rows)
        self.width = rows.width
        self.largest = float(largest)
        self._table: Floats | None = None

    @property
    def stored(self) -> int:
        return len(self.csr.values)

    @property
    def half_norms(self) -> Floats:
        return self._half_norms

    def slice(self, start: int, stop: int) -> Self:
        rows = self.csr.slice(start, stop)
        half_norms = self._half_norms[start:stop]
        return type(self)(rows, half_norms)

    def subset(self, chosen: Integers) -> Self:
        rows = self.csr.take(chosen)
        return type(self)(rows)

    def extend(self, other: Self) -> None:
        rows = CsrRows.concatenate([self.csr, other.csr])
        half_norms = np.concatenate([self._half_norms, other._half_norms])
        SparsePoints.__init__(self, rows, half_norms)

    def shorten(self, size: int) -> None:
        rows = self.csr.slice(0, size)
        half_norms = self._half_norms[:size]
        SparsePoints.__init__(self, rows, half_norms)

    def keep(self, chosen: Integers, unmoved: int = 0) -> None:
        rows = self.csr.slice(0, unmoved)
        if unmoved < len(chosen):
            moved = self.csr.take(chosen[unmoved:])
            rows = CsrRows.concatenate([rows, moved])
        half_norms = self._half_norms.take(chosen)
        SparsePoints.__init__(self, rows, half_norms)

    def widened(self, width: int) -> Self:
        return self  # sparse points can be compared whatever their widths

    def state_dict(self) -> State:
        return {"class": "SparsePoints", **vars(self.csr)}

    def check(self, state: StateReader) -> None:
        restored = vars(self)
        arrays = {}
        for name in self.state_fields:
            arrays[name] = restored.pop(name)
        rows = CsrRows(**arrays)
        if not rows.is_legal():
            raise state.refusal("columns", "are not valid column numbers")
        SparsePoints.__init__(self, rows)

    def products(self, other: Self) -> Floats:
        products = self._products(other)
        return np.ascontiguousarray(products)

    def _products(self, other: Self) -> Floats:
        """⟨s, x⟩ as a product with a dense table of the smaller set (`self` or `other`)."""
        if other.size > self.size:
            products = other._products(self)
            return products.T
        width = max(self.width, other.width)
        if width <= NARROW:  # renumbering the columns would not pay off
            table = other._dense_table(width)
            return sparse_product(self.csr, table)
        if not other.stored:
            shape = (self.size, other.size)
            return np.zeros(shape)
        return _product_by_shared_columns(self.csr, other.csr, width)

    def _dense_table(self, width: int) -> Floats:
        """The points as columns of a dense table of at least `width` rows; kept for next time."""
        table = self._table
        if table is None or len(table) < width:
            table = _transposed(self.csr, self.csr.columns, width)
            self._table = table
        return table

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        products = self._products(other)
        own = self._half_norms[:, None]
        out = np.subtract(products, own, out=out, order="C")
        out -= other._half_norms
        return out

    def _differences(self, other: Self, power: int) -> Iterator[Floats]:
        """Differences on the columns of x, plus the values of s elsewhere: no cancellation."""
        rows = self.csr
        columns = rows.columns
        owners = rows.owners
        terms = _power(rows.values, power)
        for i in range(other.size):
            x = other.csr.slice(i, i + 1)
            places = x.columns.searchsorted(columns)
            padded = np.append(x.columns, -1)
            shared = padded.take(places) == columns
            shape = (self.size, len(x.columns))
            here = np.zeros(shape)
            values = rows.values[shared]
            here[owners[shared], places[shared]] = values
            other_terms = np.where(shared, 0.0, terms)
            elsewhere = row_sums(rows, other_terms)
            differences = here - x.values
            powers = _power(differences, power)
            yield elsewhere + powers.sum(axis=1)

    def times(self, matrix: Matrix, out: Floats) -> Floats:
        rows = self.csr
        if self.width <= NARROW:
            columns = np.arange(self.width)
            table = matrix(columns)
            return sparse_product(rows, table, out)
        used, places = np.unique(rows.columns, return_inverse=True)
        numbers = places.astype(np.int32)
        renumbered = replace(rows, columns=numbers)
        table = matrix(used.astype(np.int64))
        return sparse_product(renumbered, table, out)


def _product_by_shared_columns(rows: CsrRows, smaller: CsrRows, width: int) -> Floats:
    """⟨s, x⟩ of two sets of rows; only the columns of the smaller one are numbered."""
    keys = smaller.columns
    columns = rows.columns
    own: NDArray[np.int32]
    if width <= INDEXED:
        number = _numbers(width)
        numbers = np.arange(len(keys), dtype=np.int32)
        number[keys] = numbers  # duplicates: any of them
        own = number[keys]
        met = number[columns]
    else:  # too wide for an array with an entry per column
        keys, inverse = np.unique(keys, return_inverse=True)
        own = inverse.astype(np.int32)
        met = keys.searchsorted(columns).astype(np.int32)
    count = len(keys)
    shared = keys.take(met, mode="clip") == columns
    shared_before = np.cumsum(shared)
    pointers = np.concatenate(([0], shared_before))
    part = CsrRows(
        indptr=pointers[rows.indptr],
        columns=met[shared],
        values=rows.values[shared],
        width=count,
    )
    table = _transposed(smaller, own, count)
    return sparse_product(part, table)


_scratch = threading.local()


def _numbers(width: int) -> NDArray[np.int32]:
    """Uninitialised array with an entry per column, reused: clearing it would be slow."""
    numbers = getattr(_scratch, "numbers", None)
    if numbers is None or len(numbers) < width:
        numbers = np.zeros(width, dtype=np.int32)
        _scratch.numbers = numbers
    return np.asarray(numbers)


def _transposed(rows: CsrRows, columns: NDArray[np.int32], width: int) -> Floats:
    """A dense table with a column per row; `columns` are the places of the stored values."""
    shape = (width, len(rows))
    table = np.zeros(shape)
    table[columns, rows.owners] = rows.values
    return table


def _power(values: Floats, power: int) -> Floats:
    """|value|^power, for the powers 1 and 2."""
    if power == 1:
        return np.abs(values)
    return values * values
