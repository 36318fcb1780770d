"""ahpatron+: Ahpatron with one default for every data set."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.learners.ahpatron import Ahpatron
from ahpatron_cli.core.parameters import as_in


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

    epsilon: float = as_in(Ahpatron, "epsilon", 0.75)
    radius: float = as_in(
        Ahpatron, "radius", formula="√B", derive=lambda self: math.sqrt(self.budget)
    )
    step: float = as_in(Ahpatron, "step", 0.25, formula=None, derive=None)
    schedule: str = as_in(Ahpatron, "schedule", "adaptive", words=("adaptive", "constant"))
    selection: str = as_in(
        Ahpatron, "selection", "nearest", words=("nearest", "greedy", "magnitude")
    )
