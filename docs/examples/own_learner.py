"""A learner of one's own: passive-aggressive steps on a budget, the smallest coefficient goes.

ahpatron run data.svm -l docs/examples/own_learner.py:SmallestGoes -p budget=100
"""

from dataclasses import dataclass

from ahpatron_cli.core import Learner
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.base import Margin, Trigger
from ahpatron_cli.core.parameters import real, whole
from ahpatron_cli.core.state import pass_state


@dataclass
class SmallestGoes(Learner[Expansion]):
    """If `y·f(x) < 1`: add x with `τ·y`, `τ = min(C, 1 - y·f(x))`; first make room, if |S| = B."""

    name = "smallest-goes"
    title = "Passive-aggressive on a budget: the smallest coefficient goes"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    aggressiveness: float = real("C", "largest coefficient of a new example", default=1.0, over=0)

    _dropped: int = pass_state(0, "examples that had to go")

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        """Where the hinge loss is not zero; for arrays, which rounds those are."""
        return margin < 1.0

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Make room, and add x."""
        if f.size == self.budget:
            f.drop_smallest()
            self._dropped += 1
        f.add(min(self.aggressiveness, 1.0 - margin) * y)
