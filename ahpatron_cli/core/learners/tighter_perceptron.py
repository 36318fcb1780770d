"""Tighter Budget Perceptron: drops the example whose loss costs the fewest errors."""

from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.budget import oldest_smallest
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.base import Learner, on_mistake
from ahpatron_cli.core.parameters import whole

NOISE = 1e-10
"""Margins up to this, for each example kept, count as 0: they are sums that cancelled."""


@dataclass
class TighterPerceptron(Learner[Expansion]):
    """Drop the example without which f makes the fewest errors (Weston, Bordes, Bottou 2005).

    On a mistake, if |S| = B first drop the i with the smallest
    `#{k ∈ S ∪ {x}: y_k·(f(s_k) - a_i·κ(s_i,s_k)) <= 0}`; of equal ones that with the largest
    `y_i·(f(s_i) - a_i·κ(s_i,s_i))`, then the oldest. Then add x with y. Symbol: B `budget`.

    The publication counts errors on a cache of examples; here the cache is S and x.
    """

    name = "tighter-perceptron"
    title = "Tighter Perceptron: drops what costs the fewest errors (Weston et al. 2005)"
    keeps_gram = True

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    wants = on_mistake

    def update(self, f: Expansion, margin: float, y: float) -> None:
        if f.size == self.budget:
            f.drop(self._fewest_errors(f, margin, y))
        f.add(y)

    def _fewest_errors(self, f: Expansion, margin: float, y: float) -> int:
        """Without which example, by age, there are fewest."""
        places = f.members
        a, K = f.coefficients, f.gram_by_place()[np.ix_(places, places)]
        labels, values = np.sign(a), f.values_at_support()[places]
        left = labels * (values - a[:, None] * K)  # row i: margins of S without i
        of_x = margin - y * a * f.column()
        noise = NOISE * self.budget
        errors = np.count_nonzero(left <= noise, axis=1) + (of_x <= noise)
        fewest = np.flatnonzero(errors == errors.min())
        return int(fewest[oldest_smallest(-left.diagonal()[fewest])])
