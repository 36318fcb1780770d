"""Gradient descent on Nyström features."""

from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.features import KernelMap, Staged, leading
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.gradient import GradientLearner, horizon_parameter, step_parameter
from ahpatron_cli.core.parameters import share_of_budget, whole


@dataclass
class NOGD(GradientLearner[Staged]):
    """Nyström online gradient descent (Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 2).

    Kernel gradient descent, `f ← f + η·y·κ(x,·)` if `y·f(x) < 1`, until |S| = B. Then, at once, the
    Gram matrix of S is decomposed, `K = V·diag(λ)·Vᵀ`, and with its r largest eigenvalues

        φ(x) = Λ_r^{-1/2} V_rᵀ κ(S, x),    w = Λ_r^{1/2} V_rᵀ a,    f(x) = w·φ(x)

    go on as linear gradient descent: `w ← w + η·y·φ(x)` if `y·f(x) < 1`. S stays as it is.
    Symbols: B `budget`, r `rank`, η `step`, T `horizon`.

    The new f is the old one projected onto the span of the r leading eigenvectors: with r = B it is
    the same. Eigenvalues at rounding level (1e-8 of the largest) are dropped, not inverted, so
    there may be fewer than r.
    """

    takes_costs = True  # w·η
    name = "nogd"
    title = "NOGD: gradient descent on Nyström features of B examples (Lu et al. 2016)"

    budget: int = whole("B", "examples that the features are made of", default=400, at_least=1)
    rank: int = share_of_budget("r", "eigenvectors kept, at most B", 0.2)
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.budget:
            message = f"rank must be at most the budget, {self.budget}, got {self.rank}"
            raise ParameterError(message, "rank")

    def hypothesis(self, kernel: Kernel) -> Staged:
        return Staged(kernel, KernelMap(kernel))

    def update(self, f: Staged, margin: float, y: float) -> None:
        """A step along κ(x,·), or φ(x); and the switch, once there are B examples."""
        f.add(self._weight * self.step * y)
        if f.size == self.budget and isinstance(f.stage, Expansion):
            f.stage.close()
            assert f.stage.points is not None
            values, vectors = leading(f.stage.gram, self.rank)
            roots = np.sqrt(values)
            f.features.fix(f.stage.points, vectors / roots)
            f.switch(roots * (vectors.T @ f.stage.coefficients))
