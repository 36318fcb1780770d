"""BOGD++: BOGD that rather drops small coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dasum

from ahpatron_cli.core.expansion import Expansion
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

    def make_room(self, f: Expansion) -> float:
        """Drop an example, the likelier the smaller its coefficient."""
        if self._low == self._high:  # all are equal, and so are their odds
            f.drop(int(self._rng.random() * self.budget))
            return (self.budget - 1) / self.budget
        kept = f.sizes()
        present = kept > 0
        kept *= (self.budget - 1) / dasum(kept)  # 1 - p
        odds = present - kept
        odds = np.maximum(odds, 0.0, out=odds).cumsum()
        gone = int(odds.searchsorted(self._rng.random() * odds.item(-1), side="right"))
        f.drop_at(gone)
        return float(kept.item(gone))
