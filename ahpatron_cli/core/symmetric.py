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

    kept: ClassVar[Any] = {"A": "nn", "V": "em", "s": "e"}
    waiting = 32  # number of changes that may stay pending from one block to the next
    _room: Floats = np.empty(0)
    _used: Floats = np.empty(0)  # memory of A
    _spare: Floats = np.empty(0)  # memory for A when it grows: both are used in turn

    def __init__(self, A: Floats | None = None) -> None:
        self.A: Floats = np.zeros((0, 0), order="F") if A is None else A
        self.V = np.empty((0, len(self.A)))
        self.s = np.empty(0)

    def check(self, state: StateReader) -> None:
        self.A = np.asfortranarray(self.A)

    @property
    def size(self) -> int:
        """Number of rows of the matrix, between two blocks."""
        return self.V.shape[1]

    def open(self, columns: int, most: int) -> None:
        """Start a block with this many columns; room for `most` changes, which may grow."""
        waiting = self.V
        count, old_columns = waiting.shape
        self.n = len(self.A)
        self.count = count
        rows = count + most
        if rows * columns > len(self._room):  # reuse memory: allocating per block is slow
            self._room = np.empty(2 * rows * columns)
        self.V = self._room[: rows * columns].reshape(rows, columns)
        self.V[:count, :old_columns] = waiting
        self.V[:count, old_columns:] = 0.0
        self.s = np.concatenate((self.s, np.empty(most)))
        self._diagonal: Floats | None = None
        self._counted = 0

    def images(self, k: Floats) -> Floats:
        """`A·k_i` over the first n columns for each row k_i, array of shape (rows, n)."""
        k = flush(k[:, : self.n].copy())
        if not k.size:
            return k
        images = flush(dsymm(1.0, self.A, k.T, lower=1))
        return images.T

    def image(self, k: Floats) -> Floats:
        """A·k over the first n columns."""
        if not self.n:
            return np.empty(0)
        return np.asarray(dsymv(1.0, self.A, k[: self.n], lower=1))

    def times(self, k: Floats, image: Floats | None = None) -> Floats:
        """Product of the matrix and k, by column; `image` is A·k, if it is known."""
        if self.count:  # by BLAS, three times as fast as NumPy
            V = self.V[: self.count].T
            w = dgemv(1.0, V, k, trans=1)
            w *= self.s[: self.count]
            out = dgemv(1.0, V, w)
        else:
            out = np.zeros(len(k))
        out[: self.n] += self.image(k) if image is None else image
        return np.asarray(out)

    def change(self, v: Floats, s: float) -> None:
        """Add `s·v·vᵀ` to the matrix; v is a vector by column."""
        if self.count == len(self.V):
            self.V = np.concatenate((self.V, np.empty_like(self.V)))
            self.s = np.concatenate((self.s, np.empty_like(self.s)))
        self.V[self.count] = v
        self.s[self.count] = s
        self.count += 1

    def diagonal(self) -> Floats:
        """The diagonal, by column."""
        if self._diagonal is None:
            self._diagonal = np.zeros(self.V.shape[1])
            self._diagonal[: self.n] = self.A.diagonal()
        if self._counted < self.count:
            new = slice(self._counted, self.count)
            self._diagonal += self.s[new] @ np.square(self.V[new])
            self._counted = self.count
        return self._diagonal

    def leave(self, j: int) -> Floats:
        """Remove example j from this K^{-1}; return its projection onto the others, by column."""
        # with q = K^{-1} e_j the projection is -q/q_j, and K^{-1} - q·qᵀ/q_j the new inverse
        V = self.V[: self.count]
        q: Floats = np.dot(V[:, j] * self.s[: self.count], V)
        if j < self.n:
            q[:j] += self.A[j, :j]
            q[j : self.n] += self.A[j:, j]
        own = q.item(j)
        self.change(q, -1.0 / own)
        self.diagonal()[j] = 0.0
        if j < self.n:
            self.A[j, :j] = 0.0
            self.A[j:, j] = 0.0
        self.V[: self.count, j] = 0.0
        q[j] = 0.0
        q /= -own
        return q

    def close(self, support: Integers) -> None:
        """End the block, keeping only the columns in `support`."""
        self.V = self.V[: self.count]
        self.s = self.s[: self.count].copy()
        old = int(support.searchsorted(self.n))
        if old < self.n:
            stays = support[:old]
            self.A = np.asfortranarray(self.A[np.ix_(stays, stays)])
        if len(support) < self.V.shape[1]:
            self.V = self.V.take(support, 1)
        if self.count > self.waiting or old < self.n:
            self.settle()
        else:
            self.V = self.V.copy()  # its memory is reused by the next block

    def settle(self) -> None:
        """Apply all pending changes to A; only between two blocks."""
        n = self.size
        if n > len(self.A):
            self._enlarge(n)
        if n:
            roots = np.sqrt(np.abs(self.s))
            v = flush(self.V * roots[:, None], math.sqrt(FLUSHED))
            for sign in (1.0, -1.0):
                chosen = self.s * sign > 0
                if chosen.any():
                    part = v if chosen.all() else v[chosen]
                    dsyrk(sign, part.T, beta=1.0, c=self.A, lower=1, overwrite_c=1)
        self.V = np.empty((0, n))
        self.s = np.empty(0)

    def _enlarge(self, n: int) -> None:
        """Enlarge A to n rows and columns; the new ones are 0."""
        old = len(self.A)
        room = self._spare
        if n * n > len(room):
            room = np.empty(2 * n * n)
        A = room[: n * n].reshape((n, n), order="F")
        A[:old, :old] = self.A
        A[old:] = 0.0
        A[:, old:] = 0.0
        self.A = A
        self._spare = self._used
        self._used = room

    def whole(self) -> Floats:
        """The matrix with both triangles; only between two blocks, and after `settle`."""
        lower = np.tril(self.A)
        return lower + np.tril(self.A, -1).T

    def set_inverse(self, gram: Floats) -> None:
        """Compute K^{-1} from scratch; if K is singular up to rounding, its pseudo-inverse."""
        inverse, info = dpotrf(gram.T, lower=1)  # the transpose has LAPACK's memory order
        if info == 0:
            inverse, info = dpotri(inverse, lower=1, overwrite_c=1)
        if info != 0:
            eigenvalues, vectors = np.linalg.eigh(gram)
            solid = eigenvalues > len(gram) ** 2 * EPS
            inverted = solid / np.where(solid, eigenvalues, 1.0)
            inverse = (vectors * inverted) @ vectors.T
        Symmetric.__init__(self, np.asfortranarray(inverse))
