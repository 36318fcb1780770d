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
    NEAR_SPAN,
    SLACK,
    SPAN_ERROR,
    ddot,
    dsymv,
    first_smallest,
)
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.symmetric import Symmetric


class SpanExpansion(Expansion):
    """Expansion that maintains Q = K(S,S)^{-1}, for projections onto the span of S.

    Rounding errors accumulate in Q: after a number of joins it is compared with K, and recomputed
    if it has drifted. With `gram=True`, for examples that may be close to the span, K is kept and
    used to refine projections. Q is kept until |S| = `limit`; `drift` is the error of K·Q - I that
    remained after Q was recomputed. `spans` says whether Q is kept.
    """

    state_fields: ClassVar[Any] = {
        **Expansion.state_fields,
        "Q": Symmetric,
        "drift": float,
        "_joined": int,
        "_limit": "fixed?",
    }
    probe_every = 50

    def __init__(
        self,
        kernel: Kernel,
        classes: tuple[int, ...] = (),
        *,
        gram: bool = False,
        limit: int | None = None,
    ) -> None:
        super().__init__(kernel, classes, gram=gram)
        self.Q = Symmetric()
        self.drift = 0.0
        self._joined = 0
        self._limit = limit
        self.spans = self._has_room()

    def _has_room(self) -> bool:
        """Whether S is smaller than the limit."""
        if self._limit is None:
            return True
        return self.size < self._limit

    def check(self, state: StateReader) -> None:
        super().check(state)
        is_kept = self.Q.size == self.size  # once given up, Q is empty
        self.spans = is_kept and self._has_room()

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        if self.spans:
            self.Q.open(self.columns, changes=block.size)

    def close(self) -> None:
        spans = self.spans
        if spans:
            self.Q.close(self.support)
        elif self.Q.size:
            self.Q = Symmetric()
        super().close()
        probe_after = self.probe_every if self._matrix is None else 1
        if spans and self._joined >= probe_after:
            self._probe()

    def add(self, coefficient: float | Floats, radius: float | None = None) -> None:
        """`f ← f + coefficient·κ(x,·)`; only when Q is no longer kept.

        Before that, use `add_example` or `add_projection`.
        """
        if self.spans:
            message = "K^{-1} is kept: use `projection`, then `add_example` or `add_projection`"
            raise TypeError(message)
        super().add(coefficient, radius)

    def drop(self, column: int) -> None:
        """Remove an example from S and from Q."""
        super().drop(column)
        if self.spans:
            self.Q.leave(column)

    def projection(self) -> tuple[Floats, float]:
        """`d = Q·κ(S,x)`, by column, and δ² of the current example x; 0 if x is in the span."""
        k = self.k  # entries outside S are multiplied by zeros of Q
        own = self.diagonal[self.t]
        d = self.Q.times(k)
        residual = own - ddot(k, d)
        floor = SLACK
        if residual < NEAR_SPAN and self._matrix is not None:  # few digits are left: refine d once
            d += self._correction(k, d)
            residual = own - ddot(k, d)
            largest = self.Q.diagonal().max()
            floor = max(floor, SPAN_ERROR * largest)
        if not residual > floor:  # or NaN
            residual = 0.0
        return d, residual

    def _correction(self, k: Floats, d: Floats) -> Floats:
        """What one step of iterative refinement adds to a solution d of K·d = k."""
        support = self.support
        explained = self.gram() @ d[support]
        missing = np.zeros(len(k))
        missing[support] = k[support] - explained
        return self.Q.times(missing)

    def extend_inverse(self, d: Floats, residual: float) -> None:
        """Update Q for the current example x, which joins S; d and δ² > 0 are its projection."""
        column = self.n + self.t
        d[column] = -1.0
        self.Q.change(d, 1.0 / residual)
        self._joined += 1
        self.spans = self._has_room()

    def add_example(self, coefficient: float | Floats, d: Floats, residual: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for an x outside the span; x joins S.

        d and the residual δ² are from `projection`.
        """
        Expansion.add(self, coefficient)
        self.extend_inverse(d, residual)

    def add_projection(self, coefficient: float, d: Floats, residual: float) -> None:
        """`f ← f + coefficient·Σ d_i κ(s_i,·)`: of κ(x,·), only its projection onto the span."""
        explained = self.diagonal[self.t] - residual  # the squared norm of the projection
        slope = 2.0 * self.value
        self.square += coefficient * (slope + coefficient * explained)
        self.shift(coefficient * d)

    def _probe(self) -> None:
        """Recompute Q if it has drifted from K^{-1}."""
        assert self.points is not None
        self._joined = 0
        if self._matrix is None:
            gram = self.kernel.between(self.points, self.points)
        else:
            gram = self._matrix.whole(self.size)
        tolerated = max(DRIFT, 10 * self.drift)
        if self._error(gram) > tolerated:
            self.Q.set_inverse(gram)
            self.drift = self._error(gram)

    def _error(self, gram: Floats) -> float:
        """The largest entry of `K·(Q·v) - v` for a v with entries ±1."""
        rng = np.random.default_rng(self.size)
        v = rng.choice([-1.0, 1.0], self.size)
        self.Q.settle()
        product = v
        if self.size:
            product = dsymv(1.0, self.Q.A, v, lower=1)
        errors = np.abs(gram @ product - v)
        largest = float(errors.max(initial=0.0))
        if math.isnan(largest):
            return math.inf
        return largest


class PrunedExpansion(SpanExpansion):
    """Expansion in which examples are removed by projecting f onto the span of the others.

    Examples in the span, `δ² <= in_span·κ(x,x)`, never join, so K stays far from singular.
    """

    probe_every = 256
    state_fields: ClassVar[Any] = {**SpanExpansion.state_fields, "_in_span": "fixed"}

    def __init__(self, kernel: Kernel, in_span: float) -> None:
        super().__init__(kernel)
        self._in_span = in_span

    def add(self, coefficient: Any, radius: float | None = None) -> None:
        """`f ← f + coefficient·κ(x,·)`; if x is in the span of S, without adding x."""
        d, residual = self.projection()
        own = self.diagonal[self.t]
        if residual <= self._in_span * own:
            self.add_projection(coefficient, d, residual)
        else:
            self.add_example(coefficient, d, residual)
        if radius is not None:
            self.project(radius)

    def distances(self) -> Floats:
        """Distance `γ_j = |a_j|/√Q_jj` of f to the span of S without j, in order of age."""
        support = self.support
        diagonal = self.Q.diagonal().take(support)
        roots = np.sqrt(diagonal)
        a = self.a.take(support)
        sizes = np.abs(a) * self.scale
        return np.asarray(sizes / roots)

    def project_smallest(self, sizes: Floats | None = None) -> None:
        """Remove the example with the smallest entry of `sizes` (default |a|) and project f."""
        support = self.support
        if sizes is None:
            a = self.a.take(support)
            sizes = np.abs(a)
        largest = float(sizes.max())
        smallest = first_smallest(sizes, largest)
        j = support.item(smallest)
        coefficient = self.scale * self.a.item(j)
        Expansion.drop(self, j)
        projection = self.Q.leave(j)
        self.shift(coefficient * projection)
