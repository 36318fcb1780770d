"""ALMA_2: approximate large margin in the 2-norm."""

import math
from dataclasses import dataclass
from typing import ClassVar

from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger, up_to
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.state import pass_state


@dataclass
class Alma(Learner[Expansion]):
    """Demand a margin that shrinks with the number of updates (Gentile 2001, ALMA_p with p = 2).

    With k = 1 at the start: if `y·f(x) <= (1 - α)·β/√k`, then `f ← Proj_1(f + (C/√k)·y·κ(x,·))` and
    k ← k + 1; Proj_1 projects onto the unit ball. Symbols: α `alpha`, B of the publication `beta`
    (B is the budget here), C `gain`. The publication divides by ‖x‖; kernels here have κ(x,x) = 1.
    No budget.
    """

    name = "alma2"
    title = "ALMA_2: demands a shrinking margin, no budget (Gentile 2001)"
    radius: ClassVar[float] = 1.0

    alpha: float = real(
        "α", "accuracy: the demanded margin is 1 - α of β/√k", 0.9, over=0, at_most=1
    )
    beta: float = real(
        "β",
        "size of the demanded margin",
        over=0,
        formula="1/α",
        derive=lambda self: 1 / self.alpha,
    )
    gain: float = real(
        "C",
        "first coefficient of a new example",
        over=0,
        formula="√2",
        derive=lambda _: math.sqrt(2),
    )

    _k: int = pass_state(1)

    def highest(self) -> float:
        """The largest margin that updates now."""
        return up_to((1 - self.alpha) * self.beta / math.sqrt(self._k))

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        return margin <= self.highest()

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(y * self.step_at())
        f.project(self.radius)

    def step_at(self, *_: float) -> float:
        """C/√k, and k ← k + 1."""
        step = self.gain / math.sqrt(self._k)
        self._k += 1
        return step

    def steps(self) -> Steps:
        return Steps(self.highest(), self.step_at, self.radius, next_threshold=self.highest)
