"""An expansion of at most B examples that projects whatever leaves it onto those that stay.

With `Q = K^{-1}` and its column q = Q·e_i, the projection of κ(s_i,·) onto the span of the others
has the coefficients `-q_r/Q_ii`, and their own K^{-1} is `Q - q·qᵀ/Q_ii`. An example that joins
with `d = Q·κ(S, x)` and squared distance δ² to the span adds `u·uᵀ/δ²`, u = (d, -1). All are O(B²).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ddot, dsymv, dsyr

from ahpatron_cli.core.expansion import EQUAL_SIZE, Expansion
from ahpatron_cli.core.gram_inverse import DRIFT, inverse_of
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import State, Stored

IN_SPAN = 1e-4
"""An example whose δ² is at most this is in the span of S: K stays far from singular."""
DOUBTFUL = 1e-2
"""δ² below this is computed with greater care."""
PROBE_EVERY = 64
"""Examples that join between two comparisons of Q with K."""


class ProjectingExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with K^{-1}. Who joins a full S takes the place of who leaves it."""

    def __init__(self, kernel: Kernel, budget: int) -> None:
        super().__init__(kernel, keep_gram=True)
        self._budget = budget
        self._Q: Floats = np.zeros((budget, budget), order="F")  # its upper triangle
        self._joined = 0

    def add_and_project(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)`, on at most B examples.

        If x is in the span of S, nobody joins. Else, if S is full, the example with the smallest
        |a|, x included, is projected onto the others; of equal ones the first place goes, x last.
        """
        self.settle()
        n, k = self._settled, self.column()
        d = self._times(k)
        squared = self.diagonal() - ddot(k, d) if n else self.diagonal()
        if n and squared < DOUBTFUL:  # `κ(x,x) - 2k·d + dᵀKd` is least at d, so it has more digits
            squared -= ddot(d, k - self.gram @ d)
        if squared <= IN_SPAN:
            self.move(coefficient, d)
        elif n < self._budget:
            self.add(coefficient)
            self.settle()
            self._join(n, d, squared)
        else:
            sizes = np.abs(self.coefficients)
            least = min(float(sizes.min()), abs(coefficient))
            small = sizes <= least * (1 + EQUAL_SIZE)
            if small.any():
                self._swap(int(small.argmax()), coefficient, d, squared)
            else:
                self.move(coefficient, d)
        self.norm_squared = math.nan

    def _swap(self, i: int, coefficient: float, d: Floats, squared: float) -> None:
        """Let x join in place of s_i, which is projected onto the others and x."""
        assert self.points is not None
        assert self._gram is not None
        q, share = self._column_of_inverse(i), d.item(i) / squared
        with_x = q + share * d  # column i of the inverse on S and x; its entry at x is -share
        weight = -self.coefficients.item(i) / with_x.item(i)
        self.coefficients[:] += weight * with_x
        self.coefficients[i] = coefficient - weight * share
        self._leave(i, q)
        column = self.column().copy()
        column[i] = 0.0
        d = self._times(column)
        now = self._now
        self.points.replace(i, self._block.slice(now, now + 1))
        self._K[i] = self._G[now]
        self.gram[i] = self.gram[:, i] = column
        self.gram[i, i] = self.diagonal()
        self._join(i, d, self.diagonal() - ddot(column, d))
        self._set_base(self.coefficients @ self._K)

    def _times(self, vector: Floats) -> Floats:
        """`Q·vector`."""
        if not self._settled:
            return np.empty(0)
        padded = np.zeros(self._budget)
        padded[: self._settled] = vector
        return np.asarray(dsymv(1.0, self._Q, padded))[: self._settled]

    def _column_of_inverse(self, i: int) -> Floats:
        return np.concatenate([self._Q[:i, i], self._Q[i, i : self._settled]])

    def _join(self, place: int, d: Floats, squared: float) -> None:
        u = np.zeros(self._budget)
        u[: len(d)] = d
        u[place] = -1.0
        self._Q = dsyr(1 / squared, u, a=self._Q, overwrite_a=1)
        self._joined += 1
        if self._joined % PROBE_EVERY == 0:
            self._mend()

    def _leave(self, i: int, q: Floats) -> None:
        padded = np.zeros(self._budget)
        padded[: len(q)] = q
        self._Q = dsyr(-1 / q.item(i), padded, a=self._Q, overwrite_a=1)
        self._Q[: i + 1, i] = 0.0
        self._Q[i, i:] = 0.0

    def _mend(self) -> None:
        """Compute Q anew from K, if it has drifted."""
        v = np.where(np.arange(self._settled) % 2, 1.0, -1.0)
        if not np.abs(self.gram @ self._times(v) - v).max() <= DRIFT:
            n = self._settled
            lower = inverse_of(self.gram)
            self._Q[:n, :n] = np.triu(lower.T)

    def state(self) -> State:
        n = self.size
        return {
            **super().state(),
            "inverse": np.triu(self._Q[:n, :n]),
            "joined": self._joined,
        }

    def restore(self, stored: Stored) -> None:
        super().restore(stored)
        n = self.size
        self._Q = np.zeros((self._budget, self._budget), order="F")
        self._Q[:n, :n] = stored.array("inverse", (n, n))
        self._joined = stored.integer("joined")
