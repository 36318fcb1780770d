"""POLK: gradient descent that prunes f as long as it stays near."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    Learner,
    check_shrinkage,
    check_support,
    max_support_parameter,
    shrinkage_parameter,
)
from ahpatron_cli.core.numerics import HINGE
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.span import PrunedExpansion


@dataclass
class Polk(Learner):
    """Gradient descent, then destructive matching pursuit (Koppel et al. 2019, POLK).

    In every round `f ← (1 - ηλ)·f`, and if `y·f(x) < 1` (f as predicted) add x with η·y. Then, with
    `γ_j = |a_j|/√((K^{-1})_jj)`, the distance of f to the span of S without j: while the smallest γ
    is at most ε, drop that j (the oldest of equal ones) and project f onto the others. No budget;
    an update costs O(|S|²). Symbols: η `step`, λ `shrinkage`, ε `tolerance`.

    The publication compares the distance to f before all pruning with ε, not each removal. Here, x
    in the span of S (δ² <= 1e-5) never joins. Its theorems on the expected risk bound no mistakes.
    """

    name = "polk"
    title = "POLK: gradient descent, pruned as long as f stays near (Koppel et al. 2019)"

    step: float = real("η", "step of the gradient descent", default=0.5, over=0)
    shrinkage: float = shrinkage_parameter(0.001)
    tolerance: float = real("ε", "how far a removal may move f", default=0.01, over=0)
    max_support: int | None = max_support_parameter()
    update_below = math.inf  # f shrinks in every round

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shrinkage(self.step, self.shrinkage)

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> PrunedExpansion:
        return PrunedExpansion(kernel, in_span=1e-5)

    def update(self, f: PrunedExpansion, y: float, margin: float) -> bool:
        violated = margin < HINGE or f.size == 0
        f.shrink(1 - self.step * self.shrinkage)
        if violated:
            f.add(self.step * y)
        while f.size and (gamma := f.distances()).min() <= self.tolerance:
            f.project_smallest(gamma)
        check_support(f.size, self.max_support)
        return violated
