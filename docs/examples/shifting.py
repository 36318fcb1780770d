"""A learner from a paper: the shifting Perceptron, on a budget.

ahpatron run data.svm -l docs/examples/shifting.py:ShiftingPerceptron -p budget=100
"""

from dataclasses import dataclass

from ahpatron_cli.core import Expansion, Learner, integer, real


@dataclass
class ShiftingPerceptron(Learner):
    """On mistake number k: `f ← (1 - λ_k)·f + λ_k·y·κ(x,·)`; drop the oldest if |S| > B."""

    name = "shifting"
    title = "Shifting Perceptron on a budget (Cavallanti et al. 2007)"
    references = ("cavallanti2007",)
    grid = ("decay=log:1:10000:5",)

    budget: int = integer("B", "most examples kept", default=400, at_least=1)
    decay: float = real("λ", "how fast old examples fade", default=100.0, over=0)

    mistakes = 0  # k
    state_fields = ("mistakes",)

    def update(self, f: Expansion, y: float, margin: float) -> None:
        """One step of the algorithm; it is called on mistakes only."""
        rate = self.decay / (self.decay + self.mistakes)  # λ_k, 1 at first
        if f.size:
            f.shrink(1.0 - rate)
        f.add(rate * y)
        if f.size > self.budget:
            f.drop(f.oldest)
        self.mistakes += 1
