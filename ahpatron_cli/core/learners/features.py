"""Gradient descent on explicit feature maps: FOGD, NOGD and SkeGD."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.feature_map import FourierFeatures, LinearModel, nystroem
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import (
    Classes,
    GradientLearner,
    Learner,
    budget_parameter,
    horizon_parameter,
    required_rounds,
    step_parameter,
)
from ahpatron_cli.core.numerics import HINGE
from ahpatron_cli.core.parameters import integer, share_of_budget
from ahpatron_cli.core.sketches import (
    GrowingSketches,
    SketchedModel,
    SketchSizes,
    check_sizes,
)

CHANGES = 25
"""SkeGD: how often the features change by default.

400 changes took ten times as long, with fewer mistakes on SUSY and more on a9a and cod-rna.
"""


@dataclass
class FOGD(GradientLearner):
    """Fourier online gradient descent (Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 1).

    The Gaussian kernel is approximated by random features: D frequencies u are drawn
    from N(0, I/σ²), and `z(x) = [cos(Ux), sin(Ux)]/√D`, so that `E[z(x)·z(x')] = κ(x, x')`. Then
    `f(x) = w·z(x)`, w = 0 at first, and `w ← w + η·y·z(x)` if `y·f(x) < 1`; η is ω·η for an example
    of weight ω. D frequencies are 2D features, so w has 2D entries. Symbols: D `features`,
    η `step`, T `horizon`. ‖f‖ is reported as ‖w‖.

    Deviations
    ----------
    Where z is defined without the factor 1/√D, as in some programs, use a step divided by D.
    Weights are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import FOGD, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(FOGD(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    146
    """

    name = "fogd"
    title = "FOGD: gradient descent on random Fourier features, D frequencies (Lu et al. 2016)"
    references = ("lu2016",)
    grid = ("step=10^[-3:3]/sqrt(T)",)
    takes_costs = True

    budget: int = budget_parameter("number of frequencies, unless D is given")
    features: int = integer(
        "D",
        "random frequencies, each with a cosine and a sine: w has 2D entries",
        at_least=1,
        formula="B",
        derive=lambda self: self.budget,
    )
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()
    update_below = HINGE

    def begin(self, kernel: Kernel, classes: Classes = ()) -> LinearModel:
        if not isinstance(kernel, Gaussian):
            message = "fogd approximates the gaussian kernel only"
            raise ParameterError(message, "kernel", "kernel")
        z = FourierFeatures(self.features, self.rng)
        w = np.zeros(2 * self.features)
        return LinearModel(z, w)

    def update(self, f: LinearModel, y: float, margin: float) -> None:
        f.add(self.weight * self.step * y)


@dataclass
class NOGD(GradientLearner):
    """Nyström online gradient descent (Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 2).

    Kernel gradient descent, `f ← f + η·y·κ(x,·)` if `y·f(x) < 1`, until |S| = B. Then the Gram
    matrix of S is decomposed, `K = V·diag(λ)·Vᵀ`, and with its r largest eigenvalues

        φ(x) = Λ_r^{-1/2} V_rᵀ κ(S, x),    w = Λ_r^{1/2} V_rᵀ a,    f(x) = w·φ(x)

    continue as linear gradient descent: `w ← w + η·y·φ(x)` if `y·f(x) < 1`; η is ω·η for an example
    of weight ω. With r = B, f stays the same. Symbols: B `budget`, r `rank`, η `step`, T `horizon`.

    Deviations
    ----------
    Eigenvalues at rounding level (1e-8 of the largest) are dropped, not inverted. In the
    code published with Liao et al. 2024, f is lost when the features replace S. Weights are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import NOGD, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(NOGD(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    178
    """

    name = "nogd"
    title = "NOGD: gradient descent on Nyström features of B examples (Lu et al. 2016)"
    references = ("lu2016",)
    grid = ("step=10^[-3:3]/sqrt(T)",)
    takes_costs = True
    successors = (LinearModel,)

    budget: int = budget_parameter("examples that define the features")
    rank: int = share_of_budget("r", "eigenvectors kept, at most B", 0.2)
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()
    update_below = HINGE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.budget:
            message = f"rank must be at most the budget, {self.budget}, got {self.rank}"
            raise ParameterError(message, "rank")

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        return Expansion(kernel, gram=True)

    def update(self, f: Expansion | LinearModel, y: float, margin: float) -> None:
        f.add(self.weight * self.step * y)
        if f.size == self.budget and isinstance(f, Expansion):
            f.successor = nystroem(f, self.rank)


class SketchingLearner(Learner):
    """Base of learners that begin with B examples and go on with sketches of their Gram matrix."""

    budget: int
    sketch: int
    samples: int
    rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self.budget, self.sizes)

    @property
    def sizes(self) -> SketchSizes:
        """Sizes of the sketches."""
        return SketchSizes(columns=self.sketch, samples=self.samples, rank=self.rank)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        return Expansion(kernel, gram=True)


@dataclass
class SkeGD(SketchingLearner, GradientLearner):
    """Gradient descent on sketched kernel features, updated with the stream (Zhang, Liao 2019).

    Kernel gradient descent, `f ← f + η·y·κ(x,·)` if `y·f(x) < 1`, until |S| = B. From then on
    `f(x) = w·φ(x)`, and `w ← w + η·y·φ(x)` if `y·f(x) < 1`, on features from two sketches of the
    kernel matrix K of the admitted examples E: S, and then the example of every c-th round. With
    the count sketch S_p (a random column of s_p and a random sign for each example admitted) and
    the sampling sketch S_m (s_m examples x̃ of S, sampled once)

        Φ_pp = S_pᵀ K S_p ≈ V_k Σ_k V_kᵀ,    Φ_pm = S_pᵀ K S_m,
        K ≈ (K S_m) Z Zᵀ (K S_m)ᵀ,    Z = Φ_pm^+ V_k Σ_k^{1/2},    φ(x) = Zᵀ κ(x̃, x).

    Admitting x changes one row and one column of Φ_pp and one row of Φ_pm; Z is then computed from
    scratch, in O(s_p³) time. By default, c = T/25: 25 examples are admitted. When Z changes, w is
    converted so that f is kept on the span of x̃: `w ← Z_new^+ Z_old w`. The first w is that of
    least squares to f at S. η is ω·η for an example of weight ω. Symbols: B `budget`, s_p `sketch`,
    s_m `samples`, k `rank`, c `cycle`, η `step`, T `horizon`.

    Deviations
    ----------
    Independent implementation. Details that the publication leaves open: x is admitted after its
    prediction and before its update; S is sampled without replacement; rank k is cut from Φ_pp, not
    from `Φ_pm^+ Φ_pp (Φ_pm^+)ᵀ`, whose largest eigenvalues belong to the least significant
    directions; ^+ ignores singular values below 1e-3 of the largest, or w would grow at every
    change of Z; no more examples are admitted once |E| = 2B. Weights are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, SkeGD, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(SkeGD(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    263
    """

    name = "skegd"
    title = "SkeGD: gradient descent on sketched kernel features (Zhang, Liao 2019)"
    references = ("zhang2019",)
    grid = ("step=10^[-3:3]/sqrt(T)",)
    takes_costs = True
    successors = (SketchedModel,)

    budget: int = budget_parameter("examples before the switch; at most 2B are kept")
    sketch: int = share_of_budget("s_p", "columns of the count sketch", 0.75)
    samples: int = share_of_budget("s_m", "examples sampled, at most B", 0.5)
    rank: int = share_of_budget("k", "features, at most s_p and s_m", 0.2)
    cycle: int = integer(
        "c", "rounds between two additions to E", at_least=1, optional=True, formula="T/25"
    )
    step: float = step_parameter()
    horizon: int | None = horizon_parameter()
    update_below = HINGE

    since_switch = 0  # rounds since |S| = B
    state_fields = ("since_switch",)

    @property
    def most_kept(self) -> int:
        """2B: S, and as many examples admitted to the sketches."""
        return 2 * self.budget

    def resolved(self, horizon: int | None) -> Self:
        """A copy with T, η and the cycle c set."""
        learner = super().resolved(horizon)
        if self.cycle is not None:
            return learner
        rounds = required_rounds(learner.horizon, self.name, instead="cycle")
        cycle = -(-rounds // CHANGES)  # rounded up
        return dataclasses.replace(learner, cycle=cycle)

    def update(self, f: Expansion | SketchedModel, y: float, margin: float) -> bool:
        if isinstance(f, SketchedModel) and f.features.size < self.most_kept:
            self.since_switch += 1
            if self.since_switch % self.cycle == 0:  # x is added before its update
                self.add_to_sketches(f)
        if margin >= HINGE and f.size:
            return False
        f.add(self.weight * self.step * y)
        if f.size == self.budget and isinstance(f, Expansion):
            sketches = GrowingSketches(f, self.sizes, self.rng)
            w = sketches.least_squares(f)
            f.successor = SketchedModel(sketches, w)
            self.update_below = math.inf  # from now on every round counts for the cycle
        return True

    def add_to_sketches(self, f: SketchedModel) -> None:
        """Add the current example to the sketches."""
        sketches = f.features
        assert isinstance(sketches, GrowingSketches)
        w = sketches.add_example(f.x, f.at_samples, f.w)
        f.refit(w)
