"""The kernel Perceptron."""

from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, on_mistake, unit_step


@dataclass
class Perceptron(Learner[Expansion]):
    """Add every example that was predicted wrongly (Rosenblatt 1958; kernels: Freund, Schapire).

    `f ← f + y·κ(x,·)` if `sign(f(x)) ≠ y`. No budget, no parameters. For every f in the space,
    `|M_T| <= 2·L_T(f) + ‖f‖²` (the paper's Theorem 1), L_T the sum of hinge losses.
    """

    name = "perceptron"
    title = "Perceptron: adds every mistake, no budget"
    wants = on_mistake

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(y)

    def steps(self) -> Steps:
        return Steps(0.0, unit_step)
