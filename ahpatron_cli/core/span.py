"""An expansion that knows K^{-1}, and so the distance of an example to the span of S."""

from __future__ import annotations

import math

from scipy.linalg.blas import ddot

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.gram_inverse import Inverse
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stored


class SpanExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)`; examples join it, or are projected onto its span."""

    def __init__(self, kernel: Kernel, most: float = math.inf) -> None:
        """Once S has `most` examples, K^{-1} is no longer kept up: nothing is near any more."""
        super().__init__(kernel, keep_gram=True)
        self.inverse = Inverse()
        self._most = most

    def projection(self) -> tuple[Floats, float]:
        """`d = K^{-1} κ(S, x)` and `δ² = κ(x,x) - κ(S,x)·d` of the current example x."""
        self._d, self._squared = self.inverse.project(self.column(), self.diagonal(), self.gram)
        return self._d, self._squared

    def near(self, tolerance: float) -> bool:
        """Whether δ <= tolerance for the example that `projection` was asked for."""
        return self.inverse.holds(self._squared, tolerance)

    def in_span(self, tolerance: float) -> Floats | None:
        """d, if the current example is at most so far from the span of S; else None."""
        if self.size >= self._most:
            return None
        d, _ = self.projection()
        return d if self.near(tolerance) else None

    def explained(self, d: Floats) -> float:
        """`dᵀKd`: the squared norm of the current example's projection."""
        return ddot(d, self.column()) if len(d) else 0.0

    def join(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the example that was found not to be near."""
        grows = self.size < self._most
        self.add(coefficient)
        if grows:
            self.settle()
            self.inverse.grow(self._d, self._squared, self.gram)

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        stored.part("inverse", self.inverse)
        if self.inverse.size != min(self.size, self._most):
            raise stored.refuse("inverse", "is not that of S")
