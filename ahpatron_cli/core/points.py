"""Sets of examples in kernel-ready form: scaled, and for dense data centred.

`DensePoints` and `SparsePoints` answer the same questions, and a kernel asks nothing else:
inner products, `-‖s - x‖²/2`, and the sums `Σ_k |s_k - x_k|^p` computed without cancellation.
A set of n points against a set of m gives an n x m array. Sparse points never become dense.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.blas import daxpy, ddot, sparse_product
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, compressed, row_sums
from ahpatron_cli.core.state import State, Stored

NARROW = 4096


class Points(ABC):
    """A set of points. Two sets that meet are always of the same kind."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of points."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of coordinates."""

    @property
    @abstractmethod
    def half_norms(self) -> Floats:
        """`‖x‖²/2` of each point."""

    largest: float
    """An upper bound on the half norms, known without looking at each."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Self:
        """Points `start` to `stop`, sharing memory."""

    @abstractmethod
    def append(self, other: Self, chosen: Integers) -> None:
        """Add the `chosen` points of `other`."""

    @abstractmethod
    def followed_by(self, other: Self) -> Self:
        """These points and then those of `other`, until these are changed."""

    @abstractmethod
    def extend(self, other: Self) -> None:
        """Add all points of `other`."""

    @abstractmethod
    def keep(self, kept: Integers, unmoved: int = 0) -> None:
        """Forget all points but the `kept` ones, the first `unmoved` of which stay in place."""

    @abstractmethod
    def widened(self, width: int) -> Self:
        """The same points with at least so many coordinates; these, where they have enough."""

    @abstractmethod
    def products(self, other: Self) -> Floats:
        """`⟨s, x⟩`."""

    @abstractmethod
    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        """`-‖s - x‖²/2`, up to rounding of the norms' size (so perhaps a little above 0).

        `out` is a place for them, which need not be taken.
        """

    @abstractmethod
    def differences(self, other: Self, power: int) -> Floats:
        """`Σ_k |s_k - x_k|^power`, by subtraction: exact to the last few digits."""

    @abstractmethod
    def times(self, matrix: Callable[[Integers], tuple[Integers, Floats]], out: Floats) -> Floats:
        """`Σ_k x_k·M_k`, n x D; `matrix(k)` is a table, and the row M_k in it for each column k.

        `out` is where they go.
        """

    @abstractmethod
    def state(self) -> State:
        """What `points_from` reads back."""

    def subset(self, chosen: Integers) -> Self:
        """The `chosen` points, copied."""
        part = self.slice(0, 0)
        part.append(self, chosen)
        return part


class DensePoints(Points):
    """Rows `[x, -‖x‖²/2, 1]`: the exponent of a Gaussian then comes straight out of one product."""

    def __init__(self, rows: Floats, centre: Floats | None = None, unit: float = 1.0) -> None:
        """Coordinates are `(rows - centre)/unit`."""
        count, width = rows.shape
        self._rows = np.empty((count, width + 2))
        coordinates, norms = self._rows[:, :width], self._rows[:, width]
        np.subtract(rows, 0.0 if centre is None else centre, out=coordinates)
        if unit != 1.0:
            coordinates /= unit
        np.einsum("ij,ij->i", coordinates, coordinates, out=norms)
        norms *= -0.5
        self._rows[:, width + 1] = 1.0
        self._turned: Floats | None = None
        self._size, self._width = int(count), int(width)
        self.largest = float(self.half_norms.max(initial=0.0))

    @property
    def size(self) -> int:
        return self._size

    @property
    def width(self) -> int:
        return self._width

    @property
    def coordinates(self) -> Floats:
        """The n x width array of scaled, centred examples."""
        return self._rows[: self._size, :-2]

    @property
    def half_norms(self) -> Floats:
        return -self._rows[: self._size, -2]

    def slice(self, start: int, stop: int) -> Self:
        part = type(self).__new__(type(self))
        part._rows = self._rows[start:stop]
        part._size, part._width = len(part._rows), self._width
        part._turned = None if self._turned is None else self._turned[start:stop]
        part.largest = self.largest
        return part

    def append(self, other: Self, chosen: Integers) -> None:
        needed = self._size + len(chosen)
        self._make_room(needed)
        np.take(other._rows, chosen, axis=0, out=self._rows[self._size : needed], mode="clip")
        self._size, self._turned = needed, None
        self.largest = max(self.largest, other.largest)

    def extend(self, other: Self) -> None:
        needed = self._size + other._size
        self._make_room(needed)
        self._rows[self._size : needed] = other._rows[: other._size]
        self._size, self._turned = needed, None
        self.largest = max(self.largest, other.largest)

    def followed_by(self, other: Self) -> Self:
        both = copy.copy(self)
        both.extend(other)
        self._rows = both._rows  # with room for the next
        return both

    def _make_room(self, needed: int) -> None:
        """It doubles when it runs out."""
        if needed > len(self._rows):
            grown = np.empty((max(needed, 2 * len(self._rows)), self._rows.shape[1]))
            grown[: self._size] = self._rows[: self._size]
            self._rows = grown

    def keep(self, kept: Integers, unmoved: int = 0) -> None:
        size = len(kept)
        if unmoved < size:
            self._rows[unmoved:size] = self._rows.take(kept[unmoved:], axis=0, mode="clip")
        self._size, self._turned = size, None
        self.largest = -float(self._rows[:size, -2].min(initial=0.0))

    def put_between(self, one: int, other: int, share: float) -> None:
        """Put `share·x + (1 - share)·x'` of two points, by place, in the place of the second."""
        row = self._rows[other]
        row *= 1.0 - share
        daxpy(self._rows[one], row, a=share)  # in place
        row[-2], row[-1] = -0.5 * ddot(row, row, self._width), 1.0
        self._turned = None

    def exponents_of(self, place: int, start: int = 0) -> Floats:
        """`-‖s - x‖²/2` of the points from `start` on, x being the one in this place."""
        turned = self._rows[place].copy()
        turned[-1], turned[-2] = turned[-2], 1.0
        exponents: Floats = np.dot(self._rows[start : self._size], turned)
        return exponents

    def widened(self, width: int) -> Self:
        if width <= self._width:
            return self
        wider = self.slice(0, self._size)
        wider._rows = np.zeros((self._size, width + 2))  # new ones are 0, scaled and centred
        wider._rows[:, : self._width] = self.coordinates
        wider._rows[:, -2:] = self._rows[: self._size, -2:]
        wider._width, wider._turned = width, None
        return wider

    def to_sparse(self, origin: Floats | None) -> SparsePoints:
        """The same points compressed, with `origin` added back to each (None: they had none)."""
        rows = self.coordinates
        if origin is not None:
            rows = self.widened(len(origin)).coordinates + origin
        return SparsePoints(compressed(rows))

    def state(self) -> State:
        return {"form": "dense", "rows": self._rows[: self._size], "largest": self.largest}

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The points that `state` described."""
        rows = stored.array("rows", (None, None))
        points = cls.__new__(cls)
        points._rows, points._size, points._width = rows, len(rows), rows.shape[1] - 2
        points._turned = None
        points.largest = stored.number("largest")
        if points._width < 0 or not _agree(points.half_norms, points.coordinates, rows[:, -1]):
            raise stored.refuse("rows", "are not examples")
        return points

    def products(self, other: Self) -> Floats:
        product: Floats = self.coordinates @ other.coordinates.T
        return product

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        return np.dot(self._turned_rows(), other._rows[: other._size].T, out=out)

    def _turned_rows(self) -> Floats:
        """`[x, 1, -‖x‖²/2]`."""
        if self._turned is None:
            self._turned = self._rows[: self._size].copy()
            self._turned[:, -2:] = self._rows[: self._size, :-3:-1]
        return self._turned

    def differences(self, other: Self, power: int) -> Floats:
        if other._size > self._size:  # the loop is over the fewer
            return np.ascontiguousarray(other.differences(self, power).T)
        mine = self.coordinates
        out = np.empty((self._size, other._size))
        for i, point in enumerate(other.coordinates):
            out[:, i] = _power(mine - point, power).sum(axis=1)
        return out

    def times(self, matrix: Callable[[Integers], tuple[Integers, Floats]], out: Floats) -> Floats:
        columns = np.arange(self._width)
        places, table = matrix(columns)
        in_order = np.array_equal(places, columns)  # mostly: to copy them would take half the time
        table = table[: self._width] if in_order else table[places]
        return np.matmul(self.coordinates, table, out=out)


class SparsePoints(Points):
    """Compressed rows. Products run over the columns in which the other set has values."""

    def __init__(self, rows: CsrRows) -> None:
        self._csr = rows
        self._table: Floats | None = None
        self._half_norms = 0.5 * row_sums(rows, rows.values * rows.values)
        self.largest = float(self._half_norms.max(initial=0.0))

    @property
    def size(self) -> int:
        return len(self._csr)

    @property
    def width(self) -> int:
        return self._csr.width

    @property
    def half_norms(self) -> Floats:
        return self._half_norms

    def slice(self, start: int, stop: int) -> Self:
        part = type(self).__new__(type(self))
        part._csr = self._csr.slice(start, stop)
        part._table = None
        part._half_norms = self._half_norms[start:stop]
        part.largest = self.largest
        return part

    def append(self, other: Self, chosen: Integers) -> None:
        part = copy.copy(other)
        part._csr, part._half_norms = other._csr.take(chosen), other._half_norms.take(chosen)
        self.extend(part)

    def extend(self, other: Self) -> None:
        self._csr = CsrRows.concatenate([self._csr, other._csr])
        self._table = None
        self._half_norms = np.concatenate([self._half_norms, other._half_norms])
        self.largest = max(self.largest, other.largest)

    def followed_by(self, other: Self) -> Self:
        both = copy.copy(self)
        both.extend(other)
        return both

    def keep(self, kept: Integers, unmoved: int = 0) -> None:
        csr = self._csr.slice(0, unmoved)
        if unmoved < len(kept):
            csr = CsrRows.concatenate([csr, self._csr.take(kept[unmoved:])])
        self._csr, self._table = csr, None
        self._half_norms = self._half_norms.take(kept)
        self.largest = float(self._half_norms.max(initial=0.0))

    def state(self) -> State:
        rows = self._csr
        return {
            "form": "sparse",
            "indptr": rows.indptr,
            "columns": rows.columns,
            "values": rows.values,
            "width": rows.width,
            "half_norms": self._half_norms,
            "largest": self.largest,
        }

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The points that `state` described."""
        points = cls(csr_from(stored))
        if not np.array_equal(points._half_norms, stored.array("half_norms", (points.size,))):
            raise stored.refuse("half_norms", "are not those of the rows")
        points.largest = stored.number("largest")
        return points

    def widened(self, width: int) -> Self:
        return self  # sparse points of any width meet

    def to_dense(self) -> DensePoints:
        """The same points with all their coordinates."""
        return DensePoints(self._csr.dense())

    def products(self, other: Self) -> Floats:
        return np.ascontiguousarray(self._products(other))

    def _products(self, other: Self) -> Floats:
        """`⟨s, x⟩`, perhaps in the order of columns: the table is made of the fewer."""
        if other.size > self.size:
            return other._products(self).T
        return sparse_product(*other._meet(self._csr, only_shared=True))

    def exponents(self, other: Self, out: Floats | None = None) -> Floats:
        half_norms = self.half_norms[:, None]
        out = np.subtract(self._products(other), half_norms, out=out, order="C")
        out -= other.half_norms
        return out

    def differences(self, other: Self, power: int) -> Floats:
        if other.size > self.size:  # as above
            return np.ascontiguousarray(other.differences(self, power).T)
        # by subtraction on x's own columns, plus what s has elsewhere: nothing cancels
        mine, table = other._meet(self._csr)
        meeting = mine.dense(len(table))
        own_terms = _power(self._csr.values, power)
        in_use = np.zeros(max(self.width, other.width), dtype=bool)
        out = np.empty((self.size, other.size))
        for i in range(other.size):
            here = np.flatnonzero(table[:, i])
            own = slice(other._csr.indptr[i], other._csr.indptr[i + 1])
            columns = other._csr.columns[own][other._csr.values[own] != 0]  # zeros may be stored
            in_use[columns] = True
            elsewhere = row_sums(self._csr, np.where(in_use[self._csr.columns], 0.0, own_terms))
            in_use[columns] = False
            out[:, i] = elsewhere + _power(meeting[:, here] - table[here, i], power).sum(axis=1)
        return out

    def times(self, matrix: Callable[[Integers], tuple[Integers, Floats]], out: Floats) -> Floats:
        places, table = matrix(self._csr.columns.astype(np.int64))
        rows = dataclasses.replace(self._csr, columns=places.astype(np.int32))
        return sparse_product(rows, table, out)

    def _meet(self, rows: CsrRows, *, only_shared: bool = False) -> tuple[CsrRows, Floats]:
        """`rows` on the columns that these points use, and these points as a dense table of them.

        Row k of the table is column k; of wide data, columns that are not shared may be left out:
        they add nothing to a product. Narrow data keep all columns: to renumber would cost more
        than it saves.
        """
        mine = self._csr
        width = max(rows.width, mine.width)
        if width <= NARROW:
            if self._table is None or len(self._table) < width:
                self._table = _transposed(mine, mine.columns, width)
            return rows, self._table
        number = _numbers(width)
        number[mine.columns] = np.arange(len(mine.columns), dtype=np.int32)  # of equal ones: any
        columns, own = number[rows.columns], number[mine.columns]
        shared = mine.columns.take(columns, mode="clip") == rows.columns
        columns = columns[shared]
        kept = np.zeros(len(mine.columns), dtype=bool)
        kept[columns if only_shared else own] = True
        last = int(np.count_nonzero(kept))
        renumbered = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, last).astype(np.int32)
        indptr = np.concatenate(([0], np.cumsum(shared)))[rows.indptr]
        met = CsrRows(indptr, renumbered[columns], rows.values[shared], last)
        return met, _transposed(mine, renumbered[own], last + 1)[:last]  # the rest is cut off


_scratch = threading.local()


def _numbers(width: int) -> NDArray[np.int32]:
    """Room for a number per column, of any content: to clear it would take longer than its use."""
    numbers: NDArray[np.int32] | None = getattr(_scratch, "numbers", None)
    if numbers is None or len(numbers) < width:
        _scratch.numbers = numbers = np.zeros(width, dtype=np.int32)
    return numbers


def exchange_points(stored: Stored, name: str, points: Points | None) -> Points | None:
    """Write points, or none, into a state, or read them back from there."""
    if stored.writes:
        stored.note(name, None if points is None else points.state())
        return points
    return None if stored.is_none(name) else points_from(stored.child(name))


def points_from(stored: Stored) -> Points:
    """Points that were kept with `state`."""
    kind: type[DensePoints] | type[SparsePoints]
    kind = DensePoints if stored.word("form", ("dense", "sparse")) == "dense" else SparsePoints
    points = kind.restored(stored)
    stored.finish()
    return points


def csr_from(stored: Stored) -> CsrRows:
    """Compressed rows, with every index where it may be."""
    indptr = stored.array("indptr", (None,), dtype=np.int64)
    columns = stored.array("columns", (None,), dtype=np.int32)
    width = stored.integer("width", at_most=2**31 - 1)
    values = stored.array("values", (len(columns),))
    whole = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(columns)
    if not whole or (np.diff(indptr) < 0).any():
        raise stored.refuse("indptr", "does not count the values")
    if len(columns) and not 0 <= columns.min() <= columns.max() < width:
        raise stored.refuse("columns", "go beyond the width")
    rises = np.diff(columns) > 0
    rises[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < len(columns))] - 1] = True
    if not rises.all():
        raise stored.refuse("columns", "do not increase along a row")
    return CsrRows(indptr, columns, values, width)


def _agree(half_norms: Floats, coordinates: Floats, ones: Floats) -> bool:
    exact = 0.5 * np.einsum("ij,ij->i", coordinates, coordinates)
    return bool((ones == 1.0).all() and np.allclose(half_norms, exact, rtol=1e-9, atol=0.0))


def _transposed(rows: CsrRows, columns: NDArray[np.int32], width: int) -> Floats:
    table = np.zeros((width, len(rows)))
    table[columns, np.repeat(np.arange(len(rows)), np.diff(rows.indptr))] = rows.values
    return table


def _power(values: Floats, power: int) -> Floats:
    return np.abs(values) if power == 1 else values * values
