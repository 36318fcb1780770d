"""BOGD: bounded online gradient descent, which drops a random example."""

import dataclasses
from dataclasses import dataclass
from typing import Self

from ahpatron_cli.core.budget import drop_any
from ahpatron_cli.core.capped import CappedExpansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.gradient import (
    GradientLearner,
    check_shrinkage,
    horizon_parameter,
    shrinkage_parameter,
    step_parameter,
)
from ahpatron_cli.core.parameters import real, whole


@dataclass
class Bogd(GradientLearner[CappedExpansion]):
    """Drop an example uniformly at random (Zhao, Wang, Wu, Jin, Hoi 2012, BOGD).

    In every round `a ← (1 - ηλ)·a`. If then `y·f(x) < 1` (f as predicted): if |S| = B, drop one
    example and multiply the others by B/(B-1), so that f stays the same in expectation; add x with
    η·y; bring every |a_i| above η·γ down to it. Symbols: B `budget`, η `step`, λ `shrinkage`,
    γ `cap`, T `horizon`.
    """

    name = "bogd"
    title = "BOGD: gradient descent that drops a random example (Zhao et al. 2012)"

    budget: int = whole("B", "most examples kept", default=400, at_least=2)
    step: float = step_parameter()
    shrinkage: float = shrinkage_parameter(optional=True, formula="8/T², or 0 where T is not known")
    cap: float = real("γ", "coefficients are at most this times the step", default=1.0, over=0)
    horizon: int | None = horizon_parameter()

    def resolved(self, horizon: int | None) -> Self:
        """T and η, and then λ: 8/T², but 1/(2η) in the few rounds where that is too much."""
        one = super().resolved(horizon)
        if self.shrinkage is None:
            shrinkage = 8 / one.horizon**2 if one.horizon else 0.0
            too_much = one.step * shrinkage >= 1
            return dataclasses.replace(one, shrinkage=0.5 / one.step if too_much else shrinkage)
        check_shrinkage(one.step, one.shrinkage)
        return one

    def hypothesis(self, kernel: Kernel) -> CappedExpansion:
        return CappedExpansion(kernel)

    def each_round(self, f: CappedExpansion, margin: float, y: float) -> None:
        f.scale(1 - self.step * self.shrinkage)

    def update(self, f: CappedExpansion, margin: float, y: float) -> None:
        if f.size == self.budget:
            f.scale(1 / self.make_room(f))
        f.add_and_cap(self.step * y, self.step * self.cap)

    def make_room(self, f: CappedExpansion) -> float:
        """Drop any example, each with the same probability; that of the others to stay."""
        return drop_any(f, self._rng)
