"""BPA-S: passive-aggressive learning that replaces one example by the new one."""

from __future__ import annotations

from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.base import Learner, budget_parameter
from ahpatron_cli.core.numerics import HINGE, cancelled, first_smallest
from ahpatron_cli.core.parameters import real


@dataclass
class BpaS(Learner):
    """Budgeted passive-aggressive learning, simple (Wang, Vucetic 2010, BPA-S).

    If `y·f(x) < 1`, τ = min(C, 1 - y·f(x)). While |S| < B, add x with τ·y. Else, dropping r from S
    and adding x with `β_r = a_r·κ(s_r,x) + τ·y`, the minimiser of `½‖f' - f‖² + C·loss(f')`, costs

        Q_r = ½(a_r² + β_r² - 2·a_r·β_r·κ(s_r,x)) + C·max(0, 1 - y·f(x) - τ);

    drop the r that costs least, the oldest of equal ones. κ(x,x) = 1 as in the publication.
    Symbols: B `budget`, C `aggressiveness`.
    """

    name = "bpa-s"
    title = "BPA-S: passive-aggressive, replaces one example (Wang, Vucetic 2010)"

    budget: int = budget_parameter()
    aggressiveness: float = real("C", "largest step", default=1.0, over=0)
    update_below = HINGE

    def update(self, f: Expansion, y: float, margin: float) -> None:
        step = y * min(self.aggressiveness, 1.0 - margin)  # τ·y
        if f.size == self.budget:
            # 2·Q_r = τ² + a_r²·(1 - κ(s_r,x)²), without what is the same for all r
            support, k = f.support, f.k
            cost = 1.0 - k * k
            cost *= f.a
            cost *= f.a
            cost += step * step
            costs = cost.take(support)
            column = support.item(first_smallest(costs, costs.item(costs.argmax())))
            taken_over = f.a.item(column) * k.item(column)
            f.drop(column)
            beta = step + taken_over
            step = 0.0 if cancelled(beta, abs(step) + abs(taken_over)) else beta
        f.add(step)
