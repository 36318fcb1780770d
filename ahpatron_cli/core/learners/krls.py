"""KRLS: kernel recursive least squares on a sparse dictionary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner, check_support, max_support_parameter
from ahpatron_cli.core.numerics import NEAR_SPAN, cancelled, ddot
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import SpanExpansion, Symmetric


class LeastSquares(SpanExpansion):
    """An expansion with `P = (DᵀD)^{-1}`, the rows of D being the projections d of the rounds."""

    kept: ClassVar[Any] = {**SpanExpansion.kept, "P": Symmetric}

    def __init__(self, kernel: Kernel, *, gram: bool) -> None:
        super().__init__(kernel, gram=gram)
        self.P = Symmetric()

    def open(self, block: Points) -> None:
        super().open(block)
        self.P.open(len(self.a), block.size)

    def close(self) -> None:
        self.P.close(self.support)
        super().close()

    def expand(self, error: float, d: Floats, squared: float) -> None:
        """Let x join, so that f(x) = y and f stays the same at S; `error` is y - f(x)."""
        self.shift(-error / squared * d)
        self.join(error / squared, d, squared)
        own = np.zeros(len(d))
        own[self.n + self.t] = 1.0
        self.P.change(own, 1.0)  # P ← [P 0; 0 1]
        self.forget_norm()

    def refit(self, error: float, d: Floats) -> None:
        """One step of recursive least squares for x, which stays outside S."""
        Pd = self.P.times(d)
        scale = 1.0 / (1.0 + ddot(d, Pd))
        self.P.change(Pd, -scale)
        self.shift(error * scale * self.Q.times(Pd))
        self.forget_norm()


@dataclass
class KRLS(Learner):
    """Least squares on the labels ±1, example by example (Engel, Mannor, Meir 2004).

    With k = κ(S, x), K the Gram matrix of S, e = y - f(x), in every round

        d = K^{-1} k,   δ² = κ(x,x) - k·d
        δ² > ν:   a ← a - (e/δ²)·d,  add x with e/δ²,   P ← [P 0; 0 1]
        else:     q = P·d/(1 + dᵀPd),   a ← a + e·K^{-1}q,   P ← P - q·dᵀP

    so f minimises `Σ_t (y_t - f(x_t))²` in the span of S, each x_t replaced by its projection.
    Symbol: ν `tolerance`. No budget, no shrinkage, no forgetting; every round is an update and
    costs O(|S|²). The publication is on regression, and has no mistake bound.
    """

    name = "krls"
    title = "KRLS: recursive least squares on a dictionary (Engel, Mannor, Meir 2004)"

    tolerance: float = real(
        "ν", "squared distance to the span from which an example joins", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()
    update_below = math.inf

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> LeastSquares:
        return LeastSquares(kernel, gram=self.tolerance < NEAR_SPAN)

    def update(self, f: LeastSquares, y: float, margin: float) -> None:
        error = 0.0 if cancelled(1.0 - margin, 1.0) else y * (1.0 - margin)  # y·y = 1
        d, squared = f.projection()
        if squared > self.tolerance:
            check_support(f.size + 1, self.max_support)
            f.expand(error, d, squared)
        else:
            f.refit(error, d)
