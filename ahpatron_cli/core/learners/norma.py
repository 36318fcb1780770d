"""NORMA: stochastic gradient descent with a step that decays, truncated at B examples."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger, up_to
from ahpatron_cli.core.learners.gradient import check_shrinkage, shrinkage_parameter
from ahpatron_cli.core.parameters import real, whole
from ahpatron_cli.core.state import pass_state


@dataclass
class Norma(Learner[Expansion]):
    """Gradient descent on hinge loss and regulariser (Kivinen, Smola, Williamson 2001, 2004).

    In round t: `η_t = η/√t`; `a ← (1 - η_t·λ)·a`; if `y·f(x) <= ρ` (f as predicted), add x with
    η_t·y; if then |S| > B, drop the oldest, whose coefficient has shrunk the most.
    Symbols: B `budget`, η `step`, λ `shrinkage`, ρ `threshold`.

    The publication truncates after a number of rounds; with a budget of examples the oldest goes,
    whatever its age. Its offset b and its adaptive ρ (the ν-trick) are left out.
    """

    takes_costs = True  # w·η_t
    name = "norma"
    title = "NORMA: gradient descent that forgets the oldest (Kivinen et al. 2004)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    step: float = real("η", "first step; that of round t is η/√t", default=1.0, over=0)
    shrinkage: float = shrinkage_parameter(formula="0.01/B", derive=lambda self: 0.01 / self.budget)
    threshold: float = real("ρ", "update if y·f(x) <= ρ", default=1.0, over=0)

    _rounds: int = pass_state(0)  # t

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shrinkage(self.step, self.shrinkage)

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        return margin <= up_to(self.threshold)

    def each_round(self, f: Expansion, margin: float, y: float) -> None:
        f.scale(self.shrink_at())

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(self._weight * self.step_at() * y)
        if f.size > self.budget:
            f.drop(0)

    def shrink_at(self) -> float:
        """1 - η_t·λ, of one more round."""
        self.__dict__["_rounds"] += 1  # past the guard of parameters: in every round
        return 1 - self.step_at() * self.shrinkage

    def step_at(self, *_: float) -> float:
        """η_t."""
        return self.step / math.sqrt(self._rounds)

    def steps(self) -> Steps:
        return Steps(
            up_to(self.threshold),
            self.step_at,
            budget=self.budget,
            trim=lambda f: f.drop(0),
            shrink_at=self.shrink_at,
        )
