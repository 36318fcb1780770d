"""Forgetron: a Perceptron that shrinks f and forgets the oldest example."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, on_mistake
from ahpatron_cli.core.parameters import whole
from ahpatron_cli.core.state import pass_state


@dataclass
class Forgetron(Learner[Expansion]):
    """Shrink f, then forget the oldest example (Dekel, Shalev-Shwartz, Singer 2008; self-tuned).

    On a mistake, add x with y. If now |S| > B: let r be the oldest example, σ = |a_r| and
    μ = y_r·f(x_r); multiply f by φ and drop r. φ is the largest value in (0, 1] that keeps
    `Ψ(φ) + Q <= (15/32)·M`, where `Ψ(φ) = (φσ)² + 2φσ - 2φσ·φμ` is what forgetting costs, Q what it
    has cost so far and M the number of mistakes, this one included.

    For every f with `‖f‖ <= √(B+1) / (4·√ln(B+1))`: `|M_T| <= 4·L_T(f) + 2·‖f‖²`.
    """

    name = "forgetron"
    title = "Forgetron: forgets the oldest, shrinking first (Dekel et al. 2008, self-tuned)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    wants = on_mistake

    _mistakes: int = pass_state(0)  # M
    _cost: float = pass_state(0.0)  # Q

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(self.step_at() * y)
        if f.size > self.budget:
            self.forget(f)

    def step_at(self, *_: float) -> float:
        """1, of one more mistake."""
        self._mistakes += 1
        return 1.0

    def forget(self, f: Expansion) -> None:
        """Shrink f, and drop the oldest."""
        f.scale(self._shrinking(f))
        f.drop(0)

    def steps(self) -> Steps:
        return Steps(0.0, self.step_at, budget=self.budget, trim=self.forget)

    def _shrinking(self, f: Expansion) -> float:
        """φ: `aφ² + bφ + c <= 0` with `a = σ² - 2σμ`, `b = 2σ`, `c = Q - 15M/32 < 0`."""
        coefficient = f.oldest_coefficient()
        sigma = abs(coefficient)
        mu = math.copysign(1.0, coefficient) * f.value_at_oldest()
        a, b = sigma**2 - 2 * sigma * mu, 2 * sigma
        c = self._cost - 15 / 32 * self._mistakes
        # At φ = 0 the sum is c < 0. If it is above 0 at φ = 1, the crossing between them is the
        # root below, in the form that also holds for a = 0 and loses no digits.
        phi = 1.0 if a + b + c <= 0 else -2 * c / (b + math.sqrt(b * b - 4 * a * c))
        self._cost += a * phi**2 + b * phi
        return phi
