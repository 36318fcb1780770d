"""RBP: a Perceptron that forgets a random example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner, wrong
from ahpatron_cli.core.parameters import whole


@dataclass
class RandomBudgetPerceptron(Learner):
    """Forget an example drawn by lot (Cavallanti, Cesa-Bianchi, Gentile 2007, RBP).

    On a mistake: if |S| = B, drop one example uniformly at random; add x with y.
    """

    name = "rbp"
    title = "RBP: Perceptron that forgets a random example (Cavallanti et al. 2007)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)

    def begin(self, kernel: Kernel, rng: np.random.Generator, horizon: int | None) -> Expansion:
        """Keep the lots at hand."""
        self._rng = rng
        return Expansion(kernel)

    def wants(self, margin: Any, y: Any) -> Any:
        """On a mistake."""
        return wrong(margin, y)

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Make room by lot, and add x with y."""
        if f.size == self.budget:
            f.drop(int(self._rng.integers(self.budget)))
        f.add(y)
