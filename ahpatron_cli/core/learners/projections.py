"""Learners that project onto the span of S: Projectron, Projectron++, KRLS and POLK."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    Classes,
    Learner,
    check_shrinkage,
    check_support,
    max_support_parameter,
    shrinkage_parameter,
)
from ahpatron_cli.core.numerics import DRIFT, HINGE, NEAR_SPAN, cancelled, ddot
from ahpatron_cli.core.parameters import choice, integer, real
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import PrunedExpansion, SpanExpansion
from ahpatron_cli.core.symmetric import Symmetric
from ahpatron_cli.core.tally import mistaken


@dataclass
class Projectron(Learner):
    """Perceptron that projects mistakes onto the span of S if near (Orabona et al. 2008).

    With k = κ(S, x), K the Gram matrix of S, on a mistake

        d = K^{-1} k,   δ² = κ(x,x) - k·d     (the projection of κ(x,·) onto the span; its distance)
        a ← a + y·d                           if δ <= η
        add x with coefficient y              else.

    Symbol: η `tolerance`. S stays finite where the data lie in a bounded region. An update costs
    O(|S|²).

    Deviations
    ----------
    δ² below 1e-10 is taken as 0, and an example whose δ cannot be distinguished from rounding does
    not join. `budget` is not from the publication, but from later comparisons.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, Projectron, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Projectron(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    226
    """

    name = "projectron"
    title = "Projectron: projects mistakes onto the span of S if near (Orabona et al. 2008)"
    references = ("orabona2008",)
    grid = ("tolerance=0.1,0.5,0.9",)

    tolerance: float = real(
        "η", "x is added if its distance to the span is larger", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()
    budget: int | None = integer(
        "B",
        "size of S from which every update is projected",
        at_least=1,
        optional=True,
        words=("none",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if vars(self)["budget"] == "none":
            self.budget = None

    def begin(self, kernel: Kernel, classes: Classes = ()) -> SpanExpansion:
        is_needed = self.tolerance**2 < NEAR_SPAN
        return SpanExpansion(kernel, gram=is_needed)

    def update(self, f: SpanExpansion, y: float, margin: float) -> bool | None:
        d, residual = f.projection()
        in_span = residual <= self.tolerance**2
        if in_span or f.size == self.budget:
            f.add_projection(y, d, residual)
        else:
            check_support(f.size + 1, self.max_support)
            f.add_example(y, d, residual)
        return None

    def warnings(self, f: SpanExpansion) -> list[str]:
        messages = []
        if f.drift > DRIFT:
            message = "the kernel matrix of S is nearly singular: projections are good to"
            messages.append(f"{message} {f.drift:.0e} only")
        return messages


@dataclass
class ProjectronPlusPlus(Projectron):
    """Projectron that also learns from positive margins below 1 (Orabona et al. 2008).

    On a mistake as Projectron. If `0 < y·f(x) < 1`, with ℓ = 1 - y·f(x) and p = κ(x,x) - δ², the
    squared norm of the projection of κ(x,·):

        a ← a + τ·y·d,   τ = min(1, ℓ/p, 2(ℓ - δ/η)/p)      if ℓ > δ/η;   else nothing changes,

    and the round does not count as an update.

    Deviations
    ----------
    A known implementation has δ² in place of δ in both tests. `rule=full` reproduces the tables of
    Liao et al. 2024: every round with `y·f(x) < 1` is treated as a mistake, with a full step, and x
    may join S.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, ProjectronPlusPlus, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(ProjectronPlusPlus(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    181
    """

    name = "projectron++"
    title = "Projectron++: the same, also for margins below 1 (Orabona et al. 2008)"
    references = ("orabona2008",)
    grid = ("tolerance=0.1,0.5,0.9",)

    rule: str = choice("τ", "update for 0 < y·f(x) < 1; full: as for mistakes", "published", "full")
    update_below = HINGE

    def update(self, f: SpanExpansion, y: float, margin: float) -> bool | None:
        if self.rule == "full" or f.size == 0 or mistaken(y, margin):
            return super().update(f, y, margin)
        d, residual = f.projection()
        loss = 1.0 - margin  # ℓ
        distance = math.sqrt(residual)
        excess = loss - distance / self.tolerance  # ℓ - δ/η
        if margin <= 0 or excess <= 0:
            return False
        explained = f.diagonal[f.t] - residual  # p
        tau = min(1.0, loss / explained, 2.0 * excess / explained)
        f.add_projection(y * tau, d, residual)
        return None


class LeastSquares(SpanExpansion):
    """Expansion with `P = (DᵀD)^{-1}`, where the rows of D are the projections d of all rounds."""

    state_fields: ClassVar[Any] = {**SpanExpansion.state_fields, "P": Symmetric}

    def __init__(self, kernel: Kernel, *, gram: bool) -> None:
        super().__init__(kernel, gram=gram)
        self.P = Symmetric()

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        self.P.open(len(self.a), block.size)

    def close(self) -> None:
        self.P.close(self.support)
        super().close()

    def expand(self, error: float, d: Floats, residual: float) -> None:
        """Add x to S so that f(x) = y and f at S does not change; `error` is y - f(x)."""
        coefficient = error / residual
        self.shift(-coefficient * d)
        self.add_example(coefficient, d, residual)
        own = np.zeros(len(d))
        own[self.n + self.t] = 1.0
        self.P.change(own, 1.0)  # P ← [P 0; 0 1]
        self.forget_norm()

    def refit(self, error: float, d: Floats) -> None:
        """One step of recursive least squares for an x that does not join S."""
        Pd = self.P.times(d)
        scale = 1.0 / (1.0 + ddot(d, Pd))
        self.P.change(Pd, -scale)
        KPd = self.Q.times(Pd)  # K^{-1}·P·d
        self.shift(error * scale * KPd)
        self.forget_norm()


@dataclass
class KRLS(Learner):
    """Kernel recursive least squares on the labels ±1 (Engel, Mannor, Meir 2004).

    With k = κ(S, x), K the Gram matrix of S, e = y - f(x), in every round

        d = K^{-1} k,   δ² = κ(x,x) - k·d
        δ² > ν:   a ← a - (e/δ²)·d,  add x with e/δ²,   P ← [P 0; 0 1]
        else:     q = P·d/(1 + dᵀPd),   a ← a + e·K^{-1}q,   P ← P - q·dᵀP

    so f minimises `Σ_t (y_t - f(x_t))²` in the span of S, each x_t replaced by its projection.
    Symbol: ν `tolerance`. No budget, no shrinkage, no forgetting; every round is an update and
    costs O(|S|²).

    Deviations
    ----------
    The publication is about regression and has no mistake bound; here the labels are the targets.

    Examples
    --------
    >>> from ahpatron_cli.core import KRLS, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(KRLS(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    123
    """

    name = "krls"
    title = "KRLS: recursive least squares on a dictionary (Engel, Mannor, Meir 2004)"
    references = ("engel2004",)
    grid = ("tolerance=0.01,0.1,0.5",)

    tolerance: float = real(
        "ν", "x is added if its squared distance to the span is larger", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()
    update_below = math.inf

    def begin(self, kernel: Kernel, classes: Classes = ()) -> LeastSquares:
        return LeastSquares(kernel, gram=self.tolerance < NEAR_SPAN)

    def update(self, f: LeastSquares, y: float, margin: float) -> None:
        error = y * (1.0 - margin)  # e = y - f(x), as y·y = 1
        if cancelled(1.0 - margin, 1.0):
            error = 0.0
        d, residual = f.projection()
        if residual > self.tolerance:
            check_support(f.size + 1, self.max_support)
            f.expand(error, d, residual)
        else:
            f.refit(error, d)


@dataclass
class Polk(Learner):
    """Gradient descent, pruned by destructive matching pursuit (Koppel et al. 2019, POLK).

    In every round `f ← (1 - ηλ)·f`, and if `y·f(x) < 1` (f as predicted) add x with η·y. Then, with
    `γ_j = |a_j|/√((K^{-1})_jj)`, the distance of f to the span of S without j: while the smallest γ
    is at most ε, drop that j (ties: the oldest) and project f onto the others. No budget;
    an update costs O(|S|²). Symbols: η `step`, λ `shrinkage`, ε `tolerance`.

    Deviations
    ----------
    The publication compares the distance to f before all pruning with ε, not that of each removal.
    Here, x in the span of S (δ² <= 1e-5) never joins. Its theorems bound the risk, not mistakes.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, Polk, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Polk(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    133
    """

    name = "polk"
    title = "POLK: gradient descent; drops examples while f changes little (Koppel et al. 2019)"
    references = ("koppel2019",)
    grid = ("tolerance=log:0.001:0.1:3", "step=0.1,0.5,1")

    step: float = real("η", "step size", default=0.5, over=0)
    shrinkage: float = shrinkage_parameter(0.001)
    tolerance: float = real("ε", "largest change of f by a removal", default=0.01, over=0)
    max_support: int | None = max_support_parameter()
    update_below = math.inf  # f shrinks in every round

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shrinkage(self.step, self.shrinkage)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> PrunedExpansion:
        return PrunedExpansion(kernel, in_span=1e-5)

    def update(self, f: PrunedExpansion, y: float, margin: float) -> bool:
        violated = margin < HINGE or f.size == 0
        f.shrink(1 - self.step * self.shrinkage)  # 1 - ηλ
        if violated:
            f.add(self.step * y)
        while f.size:
            gamma = f.distances()
            if not gamma.min() <= self.tolerance:  # also if it is not a number
                break
            f.project_smallest(gamma)
        check_support(f.size, self.max_support)
        return violated
