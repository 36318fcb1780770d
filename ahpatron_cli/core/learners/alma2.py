"""ALMA_2: approximate large margin in the 2-norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.numerics import up_to
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.state import StateReader


@dataclass
class Alma(Learner):
    """Require a margin that shrinks with the number of updates (Gentile 2001, ALMA_p with p = 2).

    With k = 1 at first: if `y·f(x) <= (1 - α)·β/√k`, then `f ← Proj_1(f + (C/√k)·y·κ(x,·))` and
    k ← k + 1; Proj_1 projects onto the unit ball. No budget. Symbols: α `alpha`, β `beta` (B in the
    publication), C `gain`. The publication divides by ‖x‖; here κ(x,x) = 1.
    """

    name = "alma2"
    title = "ALMA_2: demands a shrinking margin, no budget (Gentile 2001)"

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

    k = 1
    kept = ("update_below", "k")
    radius = 1.0

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> Expansion:
        self.update_below = self.required_margin()
        return Expansion(kernel)

    def check(self, state: StateReader) -> None:
        if self.k < 1:
            raise state.refusal("k", "must be a positive integer")

    def update(self, f: Expansion, y: float, margin: float) -> None:
        f.add(y * self.gain / math.sqrt(self.k), self.radius)
        self.k += 1
        self.update_below = self.required_margin()

    def required_margin(self) -> float:
        """`update_below` of the next round."""
        return up_to((1 - self.alpha) * self.beta / math.sqrt(self.k))
