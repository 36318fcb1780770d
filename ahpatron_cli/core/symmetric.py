"""Symmetric matrices that change by rank-one terms, collected and applied at once."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.numerics import (
    EPS,
    FLUSHED,
    dgemv,
    dpotrf,
    dpotri,
    dsymm,
    dsymv,
    dsyrk,
    flush,
)
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Stateful, StateReader


class Symmetric(Stateful):
    """A symmetric matrix `A + Σ_e s_e·v_e·v_eᵀ` over the columns of an expansion's block.

    Changes are collected and applied to A at most once per block, which is faster than one by one.
    Only the lower triangle of A, over the first n columns, is valid. The first `count` rows of V
    are the vectors v_e; the others are spare.
    """

    state_fields: ClassVar[Any] = {"A": "nn", "V": "em", "s": "e"}
    waiting = 32  # number of changes that may stay pending from one block to the next
    _buffer: Floats = np.empty(0)  # memory of V
    _used: Floats = np.empty(0)  # memory of A
    _spare: Floats = np.empty(0)  # memory for A when it grows: both are used in turn

    def __init__(self, A: Floats | None = None) -> None:
        if A is None:
            A = np.zeros((0, 0), order="F")
        size = len(A)
        self.A: Floats = A
        self.V = np.empty((0, size))
        self.s = np.empty(0)

    def check(self, state: StateReader) -> None:
        self.A = np.asfortranarray(self.A)

    @property
    def size(self) -> int:
        """Number of rows of the matrix, between two blocks."""
        return self.V.shape[1]

    def open(self, columns: int, changes: int) -> None:
        """Start a block with this many columns; `changes` are expected, but there may be more."""
        waiting = self.V
        count, old_columns = waiting.shape
        rows = count + changes
        needed = rows * columns
        if needed > len(self._buffer):  # reuse memory: allocating per block is slow
            self._buffer = np.empty(2 * needed)
        V = self._buffer[:needed].reshape(rows, columns)
        V[:count, :old_columns] = waiting
        V[:count, old_columns:] = 0.0
        self.V = V
        spare = np.empty(changes)
        self.s = np.concatenate((self.s, spare))
        self.n = len(self.A)
        self.count = count
        self._diagonal: Floats | None = None
        self._counted = 0

    def rows_times_base(self, k: Floats) -> Floats:
        """`A·k_i` over the first n columns for each row k_i, array of shape (rows, n)."""
        old = k[:, : self.n]
        flushed = flush(old.copy())
        if not flushed.size:
            return flushed
        products = dsymm(1.0, self.A, flushed.T, lower=1)
        products = flush(products)
        return products.T

    def times_base(self, k: Floats) -> Floats:
        """A·k over the first n columns."""
        n = self.n
        if not n:
            return np.empty(0)
        old = k[:n]
        product = dsymv(1.0, self.A, old, lower=1)
        return np.asarray(product)

    def times(self, k: Floats, base: Floats | None = None) -> Floats:
        """Product of the matrix and k, by column; `base` is A·k, if it is known."""
        count = self.count
        if count:  # by BLAS, three times as fast as NumPy
            V = self.V[:count].T
            w = dgemv(1.0, V, k, trans=1)
            w *= self.s[:count]
            out = dgemv(1.0, V, w)
        else:
            out = np.zeros(len(k))
        if base is None:
            base = self.times_base(k)
        out[: self.n] += base
        return np.asarray(out)

    def change(self, v: Floats, s: float) -> None:
        """Add `s·v·vᵀ` to the matrix; v is a vector by column."""
        count = self.count
        if count == len(self.V):
            more_rows = np.empty_like(self.V)
            self.V = np.concatenate((self.V, more_rows))
            more_factors = np.empty_like(self.s)
            self.s = np.concatenate((self.s, more_factors))
        self.V[count] = v
        self.s[count] = s
        self.count = count + 1

    def diagonal(self) -> Floats:
        """The diagonal, by column."""
        diagonal = self._diagonal
        if diagonal is None:
            columns = self.V.shape[1]
            diagonal = np.zeros(columns)
            diagonal[: self.n] = self.A.diagonal()
            self._diagonal = diagonal
        count = self.count
        if self._counted < count:
            new = slice(self._counted, count)
            squares = np.square(self.V[new])
            diagonal += self.s[new] @ squares
            self._counted = count
        return diagonal

    def leave(self, j: int) -> Floats:
        """Remove example j from this K^{-1}; return its projection onto the others, by column."""
        # with q = K^{-1} e_j the projection is -q/q_j, and K^{-1} - q·qᵀ/q_j the new inverse
        q = self._column(j)
        own = q.item(j)
        self.change(q, -1.0 / own)
        diagonal = self.diagonal()
        diagonal[j] = 0.0
        if j < self.n:
            self.A[j, :j] = 0.0
            self.A[j:, j] = 0.0
        self.V[: self.count, j] = 0.0
        q[j] = 0.0
        q /= -own
        return q

    def _column(self, j: int) -> Floats:
        """Column j of the matrix, by column."""
        count = self.count
        n = self.n
        V = self.V[:count]
        factors = self.s[:count]
        shares = V[:, j] * factors
        column: Floats = np.dot(shares, V)
        if j < n:
            column[:j] += self.A[j, :j]
            column[j:n] += self.A[j:, j]
        return column

    def close(self, support: Integers) -> None:
        """End the block, keeping only the columns in `support`."""
        count = self.count
        n = self.n
        V = self.V[:count]
        self.s = self.s[:count].copy()
        old = int(support.searchsorted(n))
        some_left = old < n
        if some_left:
            stays = support[:old]
            square = self.A[np.ix_(stays, stays)]
            self.A = np.asfortranarray(square)
        columns = V.shape[1]
        if len(support) < columns:
            V = V.take(support, 1)
        self.V = V
        if some_left or count > self.waiting:
            self.settle()
        else:
            self.V = V.copy()  # its memory is reused by the next block

    def settle(self) -> None:
        """Apply all pending changes to A; only between two blocks."""
        n = self.size
        if n > len(self.A):
            self._enlarge(n)
        if n:
            self._apply()
        self.V = np.empty((0, n))
        self.s = np.empty(0)

    def _apply(self) -> None:
        """Add the pending changes to A: those with positive factors, then the others."""
        sizes = np.abs(self.s)
        roots = np.sqrt(sizes)
        scaled = self.V * roots[:, None]
        scaled = flush(scaled, math.sqrt(FLUSHED))
        for sign in (1.0, -1.0):
            factors = self.s * sign
            chosen = factors > 0
            if not chosen.any():
                continue
            part = scaled
            if not chosen.all():
                part = scaled[chosen]
            dsyrk(sign, part.T, beta=1.0, c=self.A, lower=1, overwrite_c=1)

    def _enlarge(self, n: int) -> None:
        """Enlarge A to n rows and columns; the new ones are 0."""
        old = len(self.A)
        needed = n * n
        memory = self._spare
        if needed > len(memory):
            memory = np.empty(2 * needed)
        A = memory[:needed].reshape((n, n), order="F")
        A[:old, :old] = self.A
        A[old:] = 0.0
        A[:, old:] = 0.0
        self.A = A
        self._spare = self._used
        self._used = memory

    def whole(self) -> Floats:
        """The matrix with both triangles; only between two blocks, and after `settle`."""
        lower = np.tril(self.A)
        below = np.tril(self.A, -1)
        return lower + below.T

    def set_inverse(self, gram: Floats) -> None:
        """Compute K^{-1} from scratch; if K is singular up to rounding, its pseudo-inverse."""
        inverse, info = dpotrf(gram.T, lower=1)  # the transpose has LAPACK's memory order
        if info == 0:
            inverse, info = dpotri(inverse, lower=1, overwrite_c=1)
        if info != 0:
            inverse = _pseudo_inverse(gram)
        inverse = np.asfortranarray(inverse)
        Symmetric.__init__(self, inverse)


def _pseudo_inverse(gram: Floats) -> Floats:
    """Inverse on the span of the eigenvectors whose eigenvalues are above rounding."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    smallest = len(gram) ** 2 * EPS
    solid = eigenvalues > smallest
    divisors = np.where(solid, eigenvalues, 1.0)
    inverted = solid / divisors
    inverse: Floats = (vectors * inverted) @ vectors.T
    return inverse
