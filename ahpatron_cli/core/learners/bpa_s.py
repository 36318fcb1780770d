"""BPA-S: passive-aggressive learning that replaces one example by the new one."""

from dataclasses import dataclass

from ahpatron_cli.core.budget import oldest_smallest
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.base import Learner, on_hinge_loss
from ahpatron_cli.core.parameters import real, whole


@dataclass
class BpaS(Learner[Expansion]):
    """Budgeted passive-aggressive learning, simple (Wang, Vucetic 2010, BPA-S).

    If `y·f(x) < 1`, τ = min(C, 1 - y·f(x)). While |S| < B, add x with τ·y. Else, for every r in S,
    dropping r and giving x the coefficient `β_r = a_r·κ(s_r,x) + τ·y`, the minimiser of
    `½‖f' - f‖² + C·loss(f')` where only x may change, costs

        Q_r = ½(a_r² + β_r² - 2·a_r·β_r·κ(s_r,x)) + C·max(0, 1 - y·f(x) - τ);

    drop the r that costs least, the older of equal ones, and add x with β_r.
    Symbols: B `budget`, C `aggressiveness`. κ(x,x) = 1 is assumed, as in the publication.
    """

    name = "bpa-s"
    title = "BPA-S: passive-aggressive, replaces one example (Wang, Vucetic 2010)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    aggressiveness: float = real("C", "largest step", default=1.0, over=0)

    wants = on_hinge_loss

    def update(self, f: Expansion, margin: float, y: float) -> None:
        step = y * min(self.aggressiveness, 1.0 - margin)  # τ·y
        if f.size == self.budget:
            # but for what is the same for all r, 2·Q_r = τ² + a_r²·(1 - κ(s_r,x)²)
            a, k = f.weights(), f.similarities()
            cost = 1.0 - k * k
            cost *= a
            cost *= a
            cost += step * step
            members = f.members
            r = oldest_smallest(cost.take(members))
            place = members.item(r)
            step += a.item(place) * k.item(place)  # β_r
            f.drop(r)
        f.add(step)
