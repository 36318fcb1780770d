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
