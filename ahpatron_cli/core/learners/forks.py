"""FORKS: second-order gradient descent on sketched kernel features."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.base import budget_parameter, horizon_parameter, required_rounds
from ahpatron_cli.core.learners.features import SketchingLearner
from ahpatron_cli.core.numerics import HINGE
from ahpatron_cli.core.parameters import WithBudget, integer, real, share_of_budget
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.sketches import FixedSketches, NewtonModel
from ahpatron_cli.core.state import StateReader

GUARD = 1e-4
"""Added to the divisor when f(x) is clipped, except in the round of the switch."""
TINY_FEATURES = 1e-8
"""Up to this length of φ, the first w is 0."""


def _rank(learner: WithBudget) -> int:
    """k = ⌊s_p/10⌋."""
    sketch: int = learner.sketch  # type: ignore[attr-defined]  # a parameter of Forks
    return max(1, sketch // 10)


@dataclass
class Forks(SketchingLearner):
    """Second-order descent on features from sketches that change a few times (Wen et al. 2025).

    Each round with `y·f(x) < 1` counts: v ← v + 1. In such a round x is added to S with η·y, until
    |S| = B. In the next one, f is replaced by `w·φ(x)`, with features from two sketches of
    K = κ(S,S): P, a random column of s_p and a random sign for each example of S, and x̃, s_m
    examples of S:

        A = Pᵀ K P,    C = Pᵀ κ(S, x̃),    φ(x) = Zᵀ κ(x̃, x),    Z = C^+ V_k |Λ_k|^{1/2}.

    Λ_k are the k eigenvalues of A with the largest absolute values, V_k their eigenvectors. The
    first w keeps f at x only: `w = f(x)·φ/‖φ‖²`; and G = I/ρ. From then on, in each such round,

        if v mod c = 1: x enters the sketches, in a random column with a random sign:
                        A and C change, w ← 0, G ← I/ρ, with φ in the changed features
        u = G φ,        w' = w + η·y·u,    z = w'·φ
        w ← w' - sign(z)·max(|z| - 1, 0)/(φ·u + 1e-4)·u      (clips f(x) to [-1, 1])
        G ← G - η²·u·uᵀ/(1 + η²·φ·u).

    An update costs O(k²), a round O(s_m). Symbols: B `budget`, s_p `sketch`, s_m `samples`,
    k `rank`, c `cycle`, η `step`, ρ `ridge`, T `horizon`.

    Deviations
    ----------
    This follows the published code, in double precision: with floats, the code inverts singular
    values that are rounding errors. Its incremental decomposition loses orthogonality; here, Z is
    computed from scratch. The code counts mistakes only after the switch. ^+ ignores singular
    values up to 1e-8.

    Examples
    --------
    >>> from ahpatron_cli.core import Forks, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Forks(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    741
    """

    name = "forks"
    title = "FORKS: second-order descent on sketched kernel features (Wen et al. 2025)"
    references = ("wen2025",)
    grid = ("step=0.05,0.1,0.2,0.4,0.8", "ridge=0.001,0.01,0.1")
    successors = (NewtonModel,)

    budget: int = budget_parameter("examples kept, all before the switch")
    sketch: int = share_of_budget("s_p", "columns of the count sketch", 0.75)
    samples: int = share_of_budget("s_m", "examples sampled, at most B", 0.5)
    rank: int = integer(
        "k", "features, at most s_p and s_m", at_least=1, formula="s_p/10", derive=_rank
    )
    cycle: int | None = integer(
        "c",
        "updates between two changes of the features; 1: they never change",
        at_least=1,
        optional=True,
        formula="0.3·T",
    )
    step: float = real("η", "step size", default=0.2, over=0)
    ridge: float = real("ρ", "G = I/ρ at first", default=0.01, over=0)
    horizon: int | None = horizon_parameter()
    update_below = HINGE

    violations = 0  # v
    state_fields = ("violations",)

    def check(self, state: StateReader) -> None:
        if self.violations > self.round:
            raise state.refusal("violations", "has an invalid value")

    def resolved(self, horizon: int | None) -> Self:
        """A copy with the cycle c = 0.3·T, T the given horizon or the length of the stream."""
        T = self.horizon or horizon
        cycle = self.cycle
        if cycle is None:
            rounds = required_rounds(T, self.name, instead="cycle")
            cycle = max(1, 3 * rounds // 10)
        return dataclasses.replace(self, horizon=T, cycle=cycle)

    def update(self, f: Expansion | NewtonModel, y: float, margin: float) -> None:
        self.violations += 1
        if isinstance(f, NewtonModel):
            assert self.cycle is not None
            if self.violations % self.cycle == 1:
                f.features.add_example(f.x, f.at_samples)
                f.restart(self.ridge)
            f.newton(f.z, self.step * y, GUARD)
        elif f.size < self.budget:
            f.add(self.step * y)
        else:
            f.successor = self.switched(f, y, margin)

    def switched(self, f: Expansion, y: float, margin: float) -> NewtonModel:
        """The f on features that replaces the one on S, after a step at the current example x."""
        features = FixedSketches(f, self.sizes, self.rng)
        k = f.k.take(f.support)
        z: Floats = features.Z.T @ k.take(features.sampled)
        square = float(z @ z)
        w = 0.0 * z
        if square > TINY_FEATURES**2:
            w = (y * margin / square) * z  # keeps f(x) = y·margin
        model = NewtonModel(features, w, self.ridge)
        model.newton(z, self.step * y, guard=0.0)
        return model
