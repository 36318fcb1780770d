"""Gradient descent on random Fourier features."""

from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.features import Featured, FourierMap
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.gradient import GradientLearner, horizon_parameter, step_parameter
from ahpatron_cli.core.parameters import whole


@dataclass
class FOGD(GradientLearner[Featured]):
    """Fourier online gradient descent (Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 1).

    The Gaussian kernel is replaced by a product of explicit features: D frequencies u are drawn
    from N(0, I/σ²), and `z(x) = [cos(Ux), sin(Ux)]/√D`, so that `E[z(x)·z(x')] = κ(x, x')`. Then
    `f(x) = w·z(x)`, w = 0 at first, and `w ← w + η·y·z(x)` if `y·f(x) < 1`. No example is kept.
    Symbols: D `features`, η `step`, T `horizon`.

    D frequencies take the room of D examples: D = B unless given. ‖f‖ is reported as ‖w‖. Where z
    is written without the factor 1/√D, a step D times as small does the same.
    """

    takes_costs = True  # w·η
    name = "fogd"
    title = "FOGD: gradient descent on D random Fourier features (Lu et al. 2016)"

    budget: int = whole(
        "B", "room for this many examples, used for frequencies", default=400, at_least=1
    )
    features: int = whole(
        "D", "frequencies drawn", at_least=1, formula="B", derive=lambda self: self.budget
    )
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()

    def hypothesis(self, kernel: Kernel) -> Featured:
        """Draw the frequencies; w = 0."""
        if not isinstance(kernel, Gaussian):
            message = "fogd approximates the gaussian kernel only"
            raise ParameterError(message, "kernel", "kernel")
        return Featured(FourierMap(self.features, self._rng), np.zeros(2 * self.features))

    def update(self, f: Featured, margin: float, y: float) -> None:
        f.add(self._weight * self.step * y)
