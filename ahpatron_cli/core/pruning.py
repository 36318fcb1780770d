"""An expansion that drops examples as long as projecting them onto the others costs little.

With `Q = K^{-1}`, the part of `a_j κ(s_j,·)` outside the span of the others has the norm
`γ_j = |a_j|/√Q_jj`. Without j, the coefficients of the projection of f are `a_r - a_j·Q_rj/Q_jj`,
and K^{-1} is `Q - q·qᵀ/Q_jj`, q = Q·e_j, less its row and column j.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import ddot

from ahpatron_cli.core.budget import oldest_smallest
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.gram_inverse import DRIFT, inverse_of
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stored

IN_SPAN = 1e-5
"""An example whose δ² is at most this is in the span of S: K stays far from singular."""
DOUBTFUL = 1e-2
"""δ² below this is computed with greater care."""
PROBE_EVERY = 50
"""Examples that join between two comparisons of Q with K."""


class PrunedExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with K^{-1}; examples join at once, and leave by `prune`."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, keep_gram=True)
        self._Q: Floats = np.empty((0, 0))
        self._joined = 0

    def join(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)`; if x is in the span of S, in the span."""
        k, squared = self.column(), self.diagonal()
        d = self._Q @ k
        if self.size:
            squared -= ddot(k, d)
            if squared < DOUBTFUL:  # κ(x,x) - 2k·d + dᵀKd is least at d, so it has more digits
                squared -= ddot(d, k - self.gram @ d)
        if squared <= IN_SPAN:
            self.move(coefficient, d)
        else:
            self.add(coefficient)
            self.settle()
            u = np.append(d, -1.0)
            self._Q = np.pad(self._Q, (0, 1)) + u[:, None] * (u / squared)
            self._joined += 1
            if self._joined % PROBE_EVERY == 0:
                self._mend()

    def prune(self, tolerance: float) -> None:
        """While the smallest γ is at most `tolerance`, project f onto the others."""
        while self.size:
            diagonal = self._Q.diagonal()
            gamma = (abs(self._scale) * np.abs(self.coefficients)) / np.sqrt(diagonal)
            if gamma.item(gamma.argmin()) > tolerance:
                return
            j = oldest_smallest(gamma, np.ones(self.size, dtype=bool))
            q = self._Q[:, j].copy()
            stays = np.flatnonzero(np.arange(self.size) != j)
            self.coefficients[stays] -= (self.coefficients.item(j) / q.item(j)) * q[stays]
            q_s = q[stays]
            self._Q = self._Q[np.ix_(stays, stays)] - q_s[:, None] * (q_s / q.item(j))
            self.drop_at(j)
            self.settle()

    def _mend(self) -> None:
        """Compute Q anew from K, if it has drifted."""
        v = np.where(np.arange(self.size) % 2, 1.0, -1.0)
        if not np.abs(self.gram @ (self._Q @ v) - v).max() <= DRIFT:
            lower = np.tril(inverse_of(self.gram))
            self._Q = lower + np.tril(lower, -1).T

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        self._Q = stored.array("inverse", (self.size, self.size), self._Q)
        self._joined = stored.integer("joined", self._joined)
