"""KRLS: kernel recursive least squares on a sparse dictionary."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    Learner,
    Margin,
    Trigger,
    check_support,
    max_support_parameter,
)
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.span import LeastSquaresExpansion


@dataclass
class KRLS(Learner[LeastSquaresExpansion]):
    """Least squares on the labels ±1, example by example (Engel, Mannor, Meir 2004).

    With k = κ(S, x), K the Gram matrix of S, e = y - f(x), in every round

        d = K^{-1} k,   δ² = κ(x,x) - k·d
        δ² > ν:   a ← a - (e/δ²)·d,  add x with e/δ²,   P ← [P 0; 0 1]
        else:     q = P·d/(1 + dᵀPd),   a ← a + e·K^{-1}q,   P ← P - q·dᵀP

    so f minimises `Σ_t (y_t - f(x_t))²` in the span of S, with every x_t in place of which stands
    its projection. Symbols: ν `tolerance`. No budget, no shrinkage, no forgetting; every round is
    an update and costs O(|S|²). `max_support` ends a run, with a message, before S outgrows it.
    The publication is on regression, and has no mistake bound.
    """

    name = "krls"
    title = "KRLS: recursive least squares on a dictionary (Engel, Mannor, Meir 2004)"

    tolerance: float = real(
        "ν", "squared distance to the span from which an example joins", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()

    def hypothesis(self, kernel: Kernel) -> LeastSquaresExpansion:
        return LeastSquaresExpansion(kernel)

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        return margin == margin

    def update(self, f: LeastSquaresExpansion, margin: float, y: float) -> None:
        """Fit f to the label: x joins, or f moves within the span of S."""
        error = y - y * margin  # y·y = 1
        f.projection()
        if f.near(math.sqrt(self.tolerance)):
            f.refit(error)
        else:
            check_support(f.size + 1, self.max_support)
            f.expand(error)
