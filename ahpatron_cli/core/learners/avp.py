"""AVP: the aggressive variant of the Perceptron, without a budget."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger, under
from ahpatron_cli.core.parameters import choice, real
from ahpatron_cli.core.state import pass_state

MARGIN_STEPS_MEANING = "Σ λ_t over N_T, of which Corollary 2's Δ_T is made"


class Aggressive(Learner[Expansion]):
    """The rule that AVP and Ahpatron share: `f ← Proj_U(f + λ_t·y·κ(x,·))` if `y·f(x) < 1 - ε`.

    An example of cost w gets w·λ_t.
    """

    takes_costs = True

    epsilon: float
    radius: float
    step: float
    schedule: str
    _failures: int
    _margin_steps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "adaptive" and math.isinf(self.radius):
            message = "radius must be a finite number > 0 where schedule is adaptive, got inf"
            raise ParameterError(message, "radius")

    def highest(self) -> float:
        """The largest margin that updates."""
        return under(1.0 - self.epsilon)

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        return margin <= self.highest()

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(self._weight * self.step_at(margin) * y)
        f.project(self.radius)

    def steps(self) -> Steps:
        return Steps(self.highest(), self.step_at, self.radius)

    def step_at(self, margin: float, own: float = 1.0) -> float:
        """λ_t of a round that updates; every round with `y·f(x) <= 0` does."""
        step = self.step
        if self.schedule == "adaptive":
            self._failures += margin <= 0
            step /= math.sqrt(1.0 + self._failures / self.radius / self.radius)
        if margin > 0:
            self.__dict__["_margin_steps"] += step  # half of the time, past the guard of parameters
        return step


@dataclass
class AVP(Aggressive):
    """Also learn from what was right but not by much (Liao et al. 2024, Algorithm 1).

    `f ← Proj_U(f + λ_t·y·κ(x,·))` if `y·f(x) < 1 - ε`, where Proj_U brings f back to the ball of
    radius U. No budget. Symbols: ε `epsilon`, λ `step`, U `radius`.

    `schedule=constant` with λ = 1, U = ∞, 1/2 < ε < 1 is Corollary 1:
    `|M'_T| <= 2·L_T(f) + ‖f‖² + (1 - 2ε)·|N_T|`. `schedule=adaptive` with λ = 1 and a finite U is
    Corollary 2: `λ_t = U/√(U² + M'_t)`, where M'_t counts the rounds so far, this one included,
    with `y·f(x) <= 0`.
    """

    name = "avp"
    title = "AVP: adds every margin below 1 - ε, no budget (Liao et al. 2024, Algorithm 1)"

    epsilon: float = real("ε", "update if y·f(x) < 1 - ε", default=0.5, over=0, under=1)
    radius: float = real(
        "U", "f is kept in the ball of this radius", math.inf, over=0, infinite=True
    )
    step: float = real("λ", "coefficient of a new example; the first one, if adaptive", 1.0, over=0)
    schedule: str = choice(
        "λ_t",
        "constant: λ; adaptive: λ_t = λ/√(1 + M'_t/U²), M'_t = rounds with y·f(x) <= 0",
        "constant",
        "adaptive",
    )

    _failures: int = pass_state(0)  # M'_t
    _margin_steps: float = pass_state(0.0, MARGIN_STEPS_MEANING)
