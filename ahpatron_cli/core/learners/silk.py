"""SILK: implicit online learning with kernels."""

from dataclasses import dataclass

from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger, under
from ahpatron_cli.core.learners.gradient import shrinkage_parameter
from ahpatron_cli.core.parameters import real, whole


@dataclass
class Silk(Learner[Expansion]):
    """Implicit updates, which never overshoot the margin (Cheng et al. 2006, SILK).

    In every round, with `τ = ηλ/(1 + ηλ)`, `f ← (1 - τ)·f`; then, with m = y·f(x) after that,

        α = min(η·C/(1 + ηλ), max(0, (ρ - m)/κ(x,x))),

    and x joins with α·y if α > 0: the step goes to the margin ρ and no further, where NORMA takes a
    full one. If |S| > B, drop the example with the smallest |a|, the older of equal ones.
    Symbols: B `budget`, η `step`, λ `shrinkage`, C `loss_weight`, ρ `threshold`.
    """

    name = "silk"
    title = "SILK: implicit updates, drops the smallest coefficient (Cheng et al. 2006)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    step: float = real("η", "size of the implicit step", default=1.0, over=0)
    shrinkage: float = shrinkage_parameter(formula="0.01/B", derive=lambda self: 0.01 / self.budget)
    loss_weight: float = real("C", "weight of the hinge loss", default=1.0, over=0)
    threshold: float = real("ρ", "margin that is asked for", default=1.0, over=0)

    def kept_share(self) -> float:
        """1 - τ."""
        return 1 / (1 + self.step * self.shrinkage)

    def highest(self) -> float:
        """The largest margin, before the shrinking, with α > 0."""
        return under(self.threshold / self.kept_share())

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        return margin <= self.highest()

    def each_round(self, f: Expansion, margin: float, y: float) -> None:
        f.scale(self.kept_share())

    def update(self, f: Expansion, margin: float, y: float) -> None:
        f.add(y * self.step_at(margin, f.diagonal()))
        if f.size > self.budget:
            f.drop_smallest()

    def step_at(self, margin: float, own: float) -> float:
        """α, own being κ(x,x)."""
        missing = self.threshold - self.kept_share() * margin
        most = self.step * self.loss_weight * self.kept_share()
        return min(most, missing / own) if own > 0 else most

    def steps(self) -> Steps:
        return Steps(
            self.highest(),
            self.step_at,
            budget=self.budget,
            trim=Expansion.drop_smallest,
            shrink_at=self.kept_share,
        )
