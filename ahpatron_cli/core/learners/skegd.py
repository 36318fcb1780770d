"""Gradient descent on features from sketches of the kernel matrix."""

import dataclasses
from dataclasses import dataclass
from typing import Self

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.features import Featured, Sketches, Staged, fit
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.gradient import GradientLearner, horizon_parameter, step_parameter
from ahpatron_cli.core.parameters import share_of_budget, whole
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import pass_state


@dataclass
class SkeGD(GradientLearner[Staged]):
    """Sketched kernel gradient descent (Zhang, Liao 2019): features that follow the stream.

    Kernel gradient descent, `f ← f + η·y·κ(x,·)` if `y·f(x) < 1`, until |S| = B. From then on
    `f(x) = w·φ(x)`, and `w ← w + η·y·φ(x)` if `y·f(x) < 1`, on features from two sketches of the
    kernel matrix K of the admitted examples E: these are S, and then the example of every c-th
    round. With the count sketch S_p (a random column of s_p and a random sign for each example
    admitted) and the sampling sketch S_m (s_m of the examples of S, x̃, for good)

        Φ_pp = S_pᵀ K S_p ≈ V_k Σ_k V_kᵀ,    Φ_pm = S_pᵀ K S_m,
        K ≈ (K S_m) Z Zᵀ (K S_m)ᵀ,    Z = Φ_pm^+ V_k Σ_k^{1/2},    φ(x) = Zᵀ κ(x̃, x).

    Admitting x changes one row and one column of Φ_pp and one row of Φ_pm. When Z changes, w is
    carried over so that f is kept on the span of x̃: `w ← Z_new^+ Z_old w`. The first w is that of
    least squares to f at S. Symbols: B `budget`, s_p `sketch`, s_m `samples`, k `rank`, c `cycle`,
    η `step`, T `horizon`.

    This follows the construction and is not a port. Where it leaves room: x is admitted after its
    prediction and before its update; examples of S are sampled without repetition; rank k is cut
    from Φ_pp and not from `Φ_pm^+ Φ_pp (Φ_pm^+)ᵀ`, whose largest eigenvalues are those of the least
    significant directions; no ^+ inverts singular values below 1e-3 of the largest, lest w grow at
    every change of Z; once |E| = 2B no more are admitted. Z is computed anew from the sketches.
    """

    takes_costs = True  # w·η
    name = "skegd"
    title = "SkeGD: gradient descent on sketched kernel features (Zhang, Liao 2019)"

    budget: int = whole(
        "B", "examples before the switch; at most 2B are kept", default=400, at_least=1
    )
    sketch: int = share_of_budget("s_p", "columns of the count sketch", 0.75)
    samples: int = share_of_budget("s_m", "examples sampled, at most B", 0.5)
    rank: int = share_of_budget("k", "features, at most s_p and s_m", 0.2)
    cycle: int = whole(
        "c", "rounds from one admission to the next", at_least=1, optional=True, formula="T/B"
    )
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()

    _rounds: int = pass_state(0)  # since the switch

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = {"samples": self.budget, "rank": min(self.sketch, self.samples)}
        for name, limit in limits.items():
            if getattr(self, name) > limit:
                message = f"{name} must be at most {limit} here, got {getattr(self, name)}"
                raise ParameterError(message, name)

    @property
    def most_kept(self) -> int:
        """S, and then as many admitted examples."""
        return 2 * self.budget

    def resolved(self, horizon: int | None) -> Self:
        """T and η, and then c."""
        one = super().resolved(horizon)
        if self.cycle is not None:
            return one
        if one.horizon is None:
            message = "cycle or horizon must be given: skegd needs the number of rounds beforehand"
            raise ParameterError(message, "cycle", "missing")
        return dataclasses.replace(one, cycle=-(-one.horizon // self.budget))

    def hypothesis(self, kernel: Kernel) -> Staged:
        return Staged(kernel, Sketches(kernel, self.sketch, self.rank, self._rng))

    def each_round(self, f: Staged, margin: float, y: float) -> None:
        if isinstance(f.stage, Featured) and f.size < self.most_kept:
            self._rounds += 1
            if self._rounds % self.cycle == 0:
                self._admit(f, f.stage.weights)

    def update(self, f: Staged, margin: float, y: float) -> None:
        """A step along κ(x,·), or φ(x); and the switch, once there are B examples."""
        f.add(self._weight * self.step * y)
        if f.size == self.budget and isinstance(f.stage, Expansion):
            self._switch(f, f.stage)

    def _switch(self, f: Staged, old: Expansion) -> None:
        old.close()
        assert old.points is not None
        sketches = f.features
        assert isinstance(sketches, Sketches)
        sketches.begin(old.points, old.gram, self.samples)
        # least squares to f at S; the rows of the matrix are φ(s)
        f.switch(fit(sketches.vectors(old.points), old.gram @ old.coefficients))

    def _admit(self, f: Staged, weights: Floats) -> None:
        sketches = f.features
        assert isinstance(sketches, Sketches)
        coefficients = sketches.matrix @ weights  # f = Σ_j coefficients_j κ(x̃_j,·)
        sketches.admit(f.block.slice(f.now, f.now + 1))
        f.size += 1
        f.switch(fit(sketches.matrix, coefficients))
