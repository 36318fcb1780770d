"""RBP: a Perceptron that forgets a random example."""

from dataclasses import dataclass

from ahpatron_cli.core.budget import drop_any
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, on_mistake, unit_step
from ahpatron_cli.core.parameters import whole


@dataclass
class RandomBudgetPerceptron(Learner[Expansion]):
    """Forget a random example (Cavallanti, Cesa-Bianchi, Gentile 2007, RBP).

    On a mistake: if |S| = B, drop one example uniformly at random; add x with y.
    """

    name = "rbp"
    title = "RBP: Perceptron that forgets a random example (Cavallanti et al. 2007)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    wants = on_mistake

    def update(self, f: Expansion, margin: float, y: float) -> None:
        if f.size == self.budget:
            drop_any(f, self._rng)
        f.add(y)

    def steps(self) -> Steps:
        return Steps(0.0, unit_step, budget=self.budget, make_room=lambda f: drop_any(f, self._rng))
