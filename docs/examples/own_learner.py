"""A learner of one's own: passive-aggressive steps on a budget, the smallest coefficient goes.

ahpatron run data.svm -l docs/examples/own_learner.py:SmallestGoes -p budget=100
"""

from dataclasses import dataclass

from ahpatron_cli.core import HINGE, Expansion, Learner, integer, real


@dataclass
class SmallestGoes(Learner):
    """If `y·f(x) < 1`: add x with `τ·y`, `τ = min(C, 1 - y·f(x))`; first make room, if |S| = B."""

    name = "smallest-goes"
    title = "Passive-aggressive on a budget: the smallest coefficient goes"

    budget: int = integer("B", "most examples kept", default=400, at_least=1)
    aggressiveness: float = real("C", "largest coefficient of a new example", default=1.0, over=0)

    update_below = HINGE  # update where the hinge loss is not zero
    dropped = 0
    state_fields = ("dropped",)  # saved and resumed with a pass
    reports = ("dropped",)  # a statistic of the pass

    def update(self, f: Expansion, y: float, margin: float) -> None:
        """Make room, and add x."""
        if f.size == self.budget:
            f.drop(f.smallest)
            self.dropped += 1
        f.add(min(self.aggressiveness, 1.0 - margin) * y)
