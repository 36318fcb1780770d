"""ahpatron+: Ahpatron with one default for every data set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ahpatron_cli.core.learners.ahpatron import SELECTION_MEANING, Ahpatron
from ahpatron_cli.core.learners.avp import (
    EPSILON_MEANING,
    RADIUS_MEANING,
    SCHEDULE_MEANING,
    STEP_MEANING,
)
from ahpatron_cli.core.parameters import choice, real


@dataclass
class AhpatronPlus(Ahpatron):
    """Ahpatron in one composition of its own options; no rule here is new.

    `selection=nearest`, `schedule=adaptive`, `U = √B`, `λ = 0.25`, `ε = 0.75`, `η = 0.0005`:

        f ← Proj_U(f + λ_t·y·κ(x,·))  if  y·f(x) < 1 - ε,    λ_t = λ/√(1 + M'_t/B).

    Steps that shrink with the rounds so far with `y·f(x) <= 0` do what choosing ε for each data set
    does with a constant step, and need no choice. When S is full, the quarter goes that the rest
    best stands in for: f loses less than by halving, and the choice costs less than a greedy one.

    Proved is what is proved of Ahpatron, and only with the parameters that it is proved for:
    Theorem 5 wants halves and a constant `λ = U/(2√B)`, so these defaults have no mistake bound.
    λ_t has the shape of AVP's Corollary 2, which is about AVP, without a budget and with λ = 1.
    That the defaults make fewer mistakes is measured (tests/benchmarks/ours.py), not proved.
    """

    name = "ahpatron+"
    title = "ahpatron+: Ahpatron with adaptive steps, less forgotten and one default (ours)"

    epsilon: float = real("ε", EPSILON_MEANING, default=0.75, over=0, under=1)
    radius: float = real(
        "U", RADIUS_MEANING, over=0, formula="√B", derive=lambda self: math.sqrt(self.budget)
    )
    step: float = real("λ", STEP_MEANING, default=0.25, over=0)
    schedule: str = choice("λ_t", SCHEDULE_MEANING, "adaptive", "constant")
    selection: str = choice("S_2", SELECTION_MEANING, "nearest", "greedy", "magnitude")
