"""BOGD++: BOGD that rather drops small coefficients."""

from dataclasses import dataclass

from ahpatron_cli.core.budget import drop_small
from ahpatron_cli.core.capped import CappedExpansion
from ahpatron_cli.core.learners.bogd import Bogd


@dataclass
class BogdPlusPlus(Bogd):
    """Drop an example with a small coefficient rather than a large one (Zhao et al. 2012, BOGD++).

    As BOGD, but example i is dropped with probability `p_i = 1 - s·|a_i|`, `s = (B-1)/Σ|a_j|`, and
    the others are divided by `1 - p_i`. The p_i sum to 1, but one is negative where a coefficient
    is larger than the mean of all others: the published code then stops; here it counts as 0.
    """

    name = "bogd++"
    title = "BOGD++: BOGD that rather drops small coefficients (Zhao et al. 2012)"

    def make_room(self, f: CappedExpansion) -> float:
        """Drop an example, the likelier the smaller its coefficient; `1 - p_i` of it."""
        return drop_small(f, self._rng)
