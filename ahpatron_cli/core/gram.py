"""The kernel matrix K(S,S) of an expansion, kept from block to block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers

PANEL = 32
"""Columns that are mirrored together: faster than all columns at once."""


class Gram:
    """K(S,S) in order of age, brought up to date when it is asked for.

    Values of examples that joined S are taken from the table K of the open block. Only the lower
    triangle is written; the upper one is completed from it where it is needed.

    Between two blocks there are only the matrix, with spare rows, and `_mirrored`.
    """

    _columns: Integers
    """Within a block: the columns that the matrix covers."""
    _some_left: bool
    """Within a block: whether examples left S since the matrix was brought up to date."""
    _in_place: bool
    """Within a block: whether the first examples of S still are the first columns of the block."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix
        self._mirrored = len(matrix)  # examples for which both triangles are up to date

    def open(self, size: int) -> None:
        """Start a block; S has `size` examples, the first columns of the block."""
        self._columns = np.arange(size)
        self._some_left = False
        self._in_place = True

    def leave(self) -> None:
        """Note that an example has left S."""
        self._some_left = True
        self._in_place = False

    def lower(self, alive: NDArray[np.bool_], K: Floats) -> Floats:
        """The matrix for the columns that are `alive`; only its lower triangle is valid."""
        (support,) = alive.nonzero()
        size = len(support)
        if self._some_left:
            self._remove(alive)
        old = len(self._columns)
        if size > len(self._matrix):
            self._enlarge(size, old)
        if size > old:
            self._append(support, K)
        self._columns = support
        return self._matrix[:size, :size]

    def _remove(self, alive: NDArray[np.bool_]) -> None:
        """Remove rows and columns of examples that have left S."""
        columns = self._columns
        in_support = alive.take(columns)
        (stays,) = in_support.nonzero()
        count = len(stays)
        rows = self._matrix.take(stays, 0)
        self._matrix[:count, :count] = rows.take(stays, 1)
        self._columns = columns.take(stays)
        mirrored = stays.searchsorted(self._mirrored)
        self._mirrored = int(mirrored)
        self._some_left = False

    def _enlarge(self, size: int, old: int) -> None:
        """Make room for `size` examples; the first `old` rows are in use."""
        matrix = self._matrix
        capacity = max(size, 2 * len(matrix))  # growing block by block would be slow
        shape = (capacity, capacity)
        larger = np.empty(shape)
        larger[:old, :old] = matrix[:old, :old]
        self._matrix = larger

    def _append(self, support: Integers, K: Floats) -> None:
        """Write the rows of the examples that joined S in this block."""
        old = len(self._columns)
        size = len(support)
        rounds, columns = K.shape
        n = columns - rounds  # columns before those of the rounds
        joined = support[old:] - n
        rows = K.take(joined, 0, mode="clip")
        new = self._matrix[old:size]
        if self._in_place:
            new[:, :n] = rows[:, :n]
            later = support[n:]
            new[:, n:size] = rows.take(later, 1, mode="clip")
        else:
            new[:, :size] = rows.take(support, 1, mode="clip")

    def whole(self, size: int) -> Floats:
        """The matrix of `size` examples with both triangles, once it is up to date."""
        matrix = self._matrix[:size, :size]
        for first in range(self._mirrored, size, PANEL):
            stop = min(first + PANEL, size)
            panel = matrix[first:stop]
            matrix[:first, first:stop] = panel[:, :first].T
            corner = panel[:, first:stop]
            lower = np.tri(stop - first, dtype=bool)
            corner[:] = np.where(lower, corner, corner.T)
        self._mirrored = size
        return matrix

    def replace(self, matrix: Floats, columns: Integers, before: int) -> None:
        """Set the matrix of a part of S, in which there were `before` examples."""
        size = len(columns)
        if len(self._matrix) > before:  # products of parts of a larger matrix are slow
            shape = (before, before)
            self._matrix = np.empty(shape)
        has_both_triangles = self._mirrored == before
        if has_both_triangles:
            self._mirrored = size
        else:
            self._mirrored = 0
        self._matrix[:size, :size] = matrix
        self._columns = columns
        self._in_place = False
