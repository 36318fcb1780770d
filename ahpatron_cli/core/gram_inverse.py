"""K^{-1} of a set that grows one example at a time, and projections onto the span of the set.

With `d = K^{-1} k`, k = κ(S, x), the projection of κ(x,·) onto the span of S is `Σ d_i κ(s_i,·)`,
and `δ² = κ(x,x) - k·d` is its squared distance to the span. When x joins,

    K^{-1} ← [ K^{-1} + d·dᵀ/δ²   -d/δ² ]
             [      -dᵀ/δ²         1/δ² ]

which costs O(|S|²). Only one triangle is kept, packed column by column: a new column goes to the
end, and nothing moves. Rounding adds up over the growths, the faster the larger K^{-1} is: it is
probed against K every few growths, and where it has drifted it is computed anew; where it is large,
d is corrected once before a growth, and every growth is probed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import ddot, dspmv, dspr
from scipy.linalg.lapack import dpotrf, dpotri

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Saved, Stored

IN_SPAN = 1e-10
"""δ² below this is taken as 0: the example is in the span of S, as a duplicate is."""
NEAR_SPAN = 1e-4
"""δ² below this is computed with greater care."""
DRIFT = 1e-8
"""How far K·K^{-1} may be from I."""
PROBE_EVERY = 50
"""Growths between two probes."""
LARGE = 1e3
"""Entries of K^{-1} from which on every growth is looked after."""
ROUNDING = float(np.finfo(np.float64).eps)
NOISE = 1e3 * ROUNDING
"""Error of δ² for each unit of the largest entry of K^{-1}, with a margin."""


class Inverse(Saved):
    """K^{-1} of the active set S, for learners that project onto its span."""

    def __init__(self) -> None:
        self.size = 0
        self.refreshes = 0
        """How often it had drifted and was computed anew."""
        self.drift = 0.0
        """The drift that was left after the last time; above 1e-8 if K is nearly singular."""
        self._largest = 1.0  # entry of K^{-1}
        self._packed: Floats = np.zeros(64)  # the upper triangle, column by column

    def project(self, column: Floats, diagonal: float, gram: Floats) -> tuple[Floats, float]:
        """d and δ² of an example, given κ(S, x), κ(x, x) and K."""
        d = self.times(column)
        if not self.size:
            return d, diagonal
        squared = diagonal - ddot(column, d)
        if (
            squared < NEAR_SPAN
        ):  # of few digits; `κ(x,x) - 2k·d + dᵀKd` is least at d, so it has more
            squared -= ddot(d, column - gram @ d)
        return d, squared if squared >= IN_SPAN else 0.0

    def holds(self, squared: float, tolerance: float) -> bool:
        """Whether δ <= tolerance; also where δ² is too small to be told from rounding."""
        return squared <= max(tolerance * tolerance, NOISE * self._largest)

    def times(self, vector: Floats) -> Floats:
        """`K^{-1}·vector`."""
        if not self.size:
            return np.empty(0)
        return np.asarray(dspmv(self.size, 1.0, self._packed, vector))

    def grow(self, d: Floats, squared: float, gram: Floats) -> None:
        """Let the example join of which `project` gave d and δ² > 0; `gram` is K with it."""
        if squared < IN_SPAN:
            raise ValueError("an example in the span of S would make K singular")
        old, begin = self.size, _entries(self.size)
        if self._largest > LARGE:
            column = gram[:old, old]
            d = d + self.times(column - gram[:old, :old] @ d)
            squared = max(float(gram[old, old] - column @ d), IN_SPAN)
        self._make_room(begin + old + 1)
        if old:
            dspr(old, 1.0 / squared, d, self._packed, overwrite_ap=1)
            self._packed[begin : begin + old] = d / -squared
        self._packed[begin + old] = 1.0 / squared
        self.size += 1
        i = np.arange(self.size)
        self._largest = float(self._packed[i * (i + 3) // 2].max())  # it is on the diagonal
        if self.size % PROBE_EVERY == 0 or self._largest > LARGE:
            self.mend(gram)

    def mend(self, gram: Floats) -> None:
        """Compute K^{-1} anew from K, if it has drifted."""
        if self._probe(gram) > max(DRIFT, 10 * self.drift):
            below = np.tri(self.size, dtype=bool)  # row by row: the upper triangle by columns
            self._packed[: _entries(self.size)] = inverse_of(gram)[below]
            self.refreshes += 1
            self.drift = self._probe(gram)

    def exchange(self, stored: Stored) -> None:
        self.size = stored.integer("size", self.size, at_most=2**31)
        self.refreshes = stored.integer("refreshes", self.refreshes)
        self.drift = stored.number("drift", self.drift, infinite=True)
        self._largest = stored.number("largest", self._largest)
        entries = _entries(self.size)
        self._packed = stored.array("packed", (entries,), self._packed[:entries])

    def _probe(self, gram: Floats) -> float:
        """The largest entry of `K·(K^{-1}v) - v` for a v with entries of size one."""
        v = np.random.default_rng(self.size).choice([-1.0, 1.0], self.size)
        worst = float(np.abs(gram @ self.times(v) - v).max())
        return worst if np.isfinite(worst) else np.inf

    def _make_room(self, entries: int) -> None:
        if entries > len(self._packed):
            grown = np.zeros(2 * entries)
            grown[: len(self._packed)] = self._packed
            self._packed = grown


def _entries(size: int) -> int:
    return size * (size + 1) // 2


def inverse_of(gram: Floats) -> Floats:
    """K^{-1} (its lower triangle) by Cholesky; if K is singular but for rounding, K^+."""
    factor, info = dpotrf(gram, lower=1)
    if info == 0:
        inverse, info = dpotri(factor, lower=1)
        if info == 0:
            return np.asarray(inverse)  # its lower triangle; the upper one is not meant
    eigenvalues, vectors = np.linalg.eigh(gram)
    solid = eigenvalues > len(gram) ** 2 * ROUNDING
    return np.asarray((vectors * (solid / np.where(solid, eigenvalues, 1.0))) @ vectors.T)
