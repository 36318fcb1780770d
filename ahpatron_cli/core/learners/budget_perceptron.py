"""Budget Perceptron: drops the example that is classified best without itself."""

from __future__ import annotations

from dataclasses import dataclass

from ahpatron_cli.core.budget import oldest_smallest
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger, unit_step, up_to, wrong
from ahpatron_cli.core.parameters import real, whole


@dataclass
class BudgetPerceptron(Learner[Expansion]):
    """Drop the example that is classified best without itself (Crammer, Kandola, Singer 2003).

    On `y·f(x) <= β` (β = 0: on a mistake), if |S| = B first drop
    `argmax_i y_i·(f(s_i) - a_i·κ(s_i,s_i))`, the older of equal ones; then add x with y.
    Symbols: B `budget`, β `threshold`.

    The publication drops while there is any example that the rest classifies with a margin above β;
    this is its fixed-budget form, the one that later papers compare with.
    """

    name = "budget-perceptron"
    title = "Budget Perceptron: drops what is right without itself (Crammer et al. 2003)"
    keeps_gram = True

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    threshold: float = real("β", "update if y·f(x) <= β", default=0.0, at_least=0)

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        """On a mistake; with β > 0, up to that margin."""
        if self.threshold > 0:
            return margin <= up_to(self.threshold)
        return wrong(margin, y)

    def update(self, f: Expansion, margin: float, y: float) -> None:
        if f.size == self.budget:
            self.make_room(f)
        f.add(y)

    def make_room(self, f: Expansion) -> None:
        """Drop the example with the smallest `κ(s_i,s_i) - y_i·f(s_i)`: all a_i = y_i."""
        errors = f.diagonals() - f.weights() * f.values_at_support()
        f.drop(oldest_smallest(errors.take(f.members)))

    def steps(self) -> Steps:
        highest = up_to(self.threshold) if self.threshold > 0 else 0.0
        return Steps(highest, unit_step, budget=self.budget, make_room=self.make_room)
