"""Expansions that maintain K(S,S)^{-1}, for projections onto the span of S.

With `d = K^{-1} k`, k = κ(S, x), the projection of κ(x,·) onto the span of S is `Σ d_i κ(s_i,·)`,
and `δ² = κ(x,x) - k·d` is its squared distance to the span. When x joins S,

    K^{-1} ← [K^{-1} 0; 0 0] + D·Dᵀ/δ²,    D = (d, -1).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.numerics import (
    DRIFT,
    EPS,
    FLUSHED,
    NEAR_SPAN,
    SLACK,
    SPAN_ERROR,
    ddot,
    dgemv,
    dpotrf,
    dpotri,
    dsymm,
    dsymv,
    dsyrk,
    first_smallest,
    flush,
)
from ahpatron_cli.core.points import Points
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


class SpanExpansion(Expansion):
    """Expansion that maintains Q = K(S,S)^{-1}, for projections onto the span of S.

    Rounding errors accumulate in Q: after a number of joins it is compared with K, and recomputed
    if it has drifted. With `gram=True`, for examples that may be close to the span, K is kept and
    used to refine projections. Q is kept until |S| = `most`; `drift` is the error of K·Q - I that
    remained after Q was recomputed. `spans` says whether Q is kept.
    """

    kept: ClassVar[Any] = {
        **Expansion.kept,
        "Q": Symmetric,
        "drift": float,
        "_joined": int,
        "_most": "fixed?",
    }
    probe_every = 50

    def __init__(
        self,
        kernel: Kernel,
        classes: tuple[int, ...] = (),
        *,
        gram: bool = False,
        most: int | None = None,
    ) -> None:
        super().__init__(kernel, classes, gram=gram)
        self.Q = Symmetric()
        self.drift = 0.0
        self._joined = 0
        self._most = most
        self.spans = self._has_room()

    def _has_room(self) -> bool:
        return self._most is None or self.size < self._most

    def check(self, state: StateReader) -> None:
        super().check(state)
        self.spans = self._has_room() and self.Q.size == self.size  # once given up, Q is empty

    def open(self, block: Points) -> None:
        super().open(block)
        if self.spans:
            self.Q.open(len(self.a), block.size)

    def close(self) -> None:
        spans = self.spans
        if spans:
            self.Q.close(self.support)
        elif self.Q.size:
            self.Q = Symmetric()
        super().close()
        probe_after = self.probe_every if self._gram is None else 1
        if spans and self._joined >= probe_after:
            self._probe()

    def add(self, c: Any, radius: float | None = None) -> None:
        """`f ← f + c·κ(x,·)`; only when Q is no longer kept, before that use `join` or `move`."""
        if self.spans:
            raise TypeError("K^{-1} is kept: use `projection`, then `join` or `move`")
        super().add(c, radius)

    def drop(self, column: int) -> None:
        """Remove an example from S and from Q."""
        super().drop(column)
        if self.spans:
            self.Q.leave(column)

    def projection(self) -> tuple[Floats, float]:
        """`d = Q·κ(S,x)`, by column, and δ² of the current example x; 0 if x is in the span."""
        k = self.k  # entries outside S are multiplied by zeros of Q
        d = self.Q.times(k)
        squared = self.diagonal[self.t] - ddot(k, d)
        floor = SLACK
        if squared < NEAR_SPAN and self._gram is not None:  # few digits are left: refine d once
            support = self.support
            residual = np.zeros(len(k))
            residual[support] = k[support] - self.gram() @ d[support]
            d += self.Q.times(residual)
            squared = self.diagonal[self.t] - ddot(k, d)
            floor = max(floor, SPAN_ERROR * self.Q.diagonal().max())
        if not squared > floor:  # or NaN
            squared = 0.0
        return d, squared

    def grow(self, d: Floats, squared: float) -> None:
        """Update Q for the current example x, which joins S; d and δ² > 0 are its projection."""
        d[self.n + self.t] = -1.0
        self.Q.change(d, 1.0 / squared)
        self._joined += 1
        self.spans = self._has_room()

    def join(self, c: Any, d: Floats, squared: float) -> None:
        """`f ← f + c·κ(x,·)` for an x outside the span; d and δ² are from `projection`."""
        Expansion.add(self, c)
        self.grow(d, squared)

    def move(self, c: Any, d: Floats, squared: float) -> None:
        """`f ← f + c·Σ d_i κ(s_i,·)`: c times the projection of κ(x,·) onto the span of S."""
        explained = self.diagonal[self.t] - squared  # the squared norm of the projection
        self.square += c * (2.0 * self.value + c * explained)
        self.shift(c * d)

    def _probe(self) -> None:
        """Recompute Q if it has drifted from K^{-1}."""
        assert self.points is not None
        self._joined = 0
        if self._gram is None:
            gram = self.kernel.between(self.points, self.points)
        else:
            gram = self._mirror()
        if self._error(gram) > max(DRIFT, 10 * self.drift):
            self.Q.set_inverse(gram)
            self.drift = self._error(gram)

    def _error(self, gram: Floats) -> float:
        """The largest entry of `K·(Q·v) - v` for a v with entries ±1."""
        rng = np.random.default_rng(self.size)
        v = rng.choice([-1.0, 1.0], self.size)
        self.Q.settle()
        product = dsymv(1.0, self.Q.A, v, lower=1) if self.size else v
        errors = np.abs(gram @ product - v)
        largest = float(errors.max(initial=0.0))
        return largest if math.isfinite(largest) else math.inf


class PrunedExpansion(SpanExpansion):
    """Expansion in which examples are removed by projecting f onto the span of the others.

    Examples in the span, `δ² <= in_span·κ(x,x)`, never join, so K stays far from singular.
    """

    probe_every = 256
    kept: ClassVar[Any] = {**SpanExpansion.kept, "_in_span": "fixed"}

    def __init__(self, kernel: Kernel, in_span: float) -> None:
        super().__init__(kernel)
        self._in_span = in_span

    def add(self, c: Any, radius: float | None = None) -> None:
        """`f ← f + c·κ(x,·)`; if x is in the span of S, without adding x."""
        d, squared = self.projection()
        if squared <= self._in_span * self.diagonal[self.t]:
            self.move(c, d, squared)
        else:
            self.join(c, d, squared)
        if radius is not None:
            self.project(radius)

    def distances(self) -> Floats:
        """Distance `γ_j = |a_j|/√Q_jj` of f to the span of S without j, in order of age."""
        support = self.support
        roots = np.sqrt(self.Q.diagonal().take(support))
        sizes = np.abs(self.a.take(support)) * self.scale
        return np.asarray(sizes / roots)

    def project_smallest(self, sizes: Floats | None = None) -> None:
        """Remove the example with the smallest entry of `sizes` (default |a|) and project f."""
        support = self.support
        if sizes is None:
            sizes = np.abs(self.a.take(support))
        smallest = first_smallest(sizes, float(sizes.max()))
        j = support.item(smallest)
        c = self.scale * self.a.item(j)
        Expansion.drop(self, j)
        self.shift(c * self.Q.leave(j))
