"""Gradient descent on the hinge loss with a budget of examples: BOGD, BOGD++, NORMA, SILK, BSGD."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import (
    Classes,
    GradientLearner,
    Learner,
    budget_parameter,
    check_shrinkage,
    horizon_parameter,
    shrinkage_parameter,
    step_parameter,
)
from ahpatron_cli.core.merging import MergingExpansion
from ahpatron_cli.core.numerics import HINGE, under, up_to
from ahpatron_cli.core.parameters import WithBudget, choice, real
from ahpatron_cli.core.span import PrunedExpansion


class CappedExpansion(Expansion):
    """Expansion that tracks bounds `low <= |a_i| <= high`, so that `cap` seldom reads all a_i."""

    state_fields: ClassVar[Any] = {**Expansion.state_fields, "low": "any", "high": float}
    low = math.inf
    high = 0.0

    def add(self, coefficient: float, radius: float | None = None) -> None:
        super().add(coefficient, radius)
        size = abs(coefficient)
        self.low = min(self.low, size)
        self.high = max(self.high, size)

    def shrink(self, factor: float) -> None:
        super().shrink(factor)
        self.low *= factor
        self.high *= factor

    def cap(self, limit: float) -> None:
        if self.high <= limit:
            return
        if self.low == self.high:
            self.shrink(limit / self.high)
        else:
            super().cap(limit)
            self.low = min(self.low, limit)
            self.high = limit


@dataclass
class Bogd(GradientLearner):
    """Gradient descent that drops a random example (Zhao, Wang, Wu, Jin, Hoi 2012, BOGD).

    In every round `a ← (1 - ηλ)·a`. If `y·f(x) < 1` (f as predicted): if |S| = B, drop one example
    and multiply the others by B/(B-1), so that f stays the same in expectation; add x with η·y; cap
    |a_i| at η·γ. Symbols: B `budget`, η `step`, λ `shrinkage`, γ `cap`, T `horizon`.

    Examples
    --------
    >>> from ahpatron_cli.core import Bogd, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Bogd(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    256
    """

    name = "bogd"
    title = "BOGD: gradient descent that drops a random example (Zhao et al. 2012)"
    references = ("zhao2012",)
    grid = ("step=10^[-3:3]/sqrt(T)",)

    budget: int = budget_parameter(at_least=2)
    step: float = step_parameter()
    shrinkage: float = shrinkage_parameter(optional=True, formula="8/T², or 0 if T is unknown")
    cap: float = real("γ", "coefficients are at most this times the step", default=1.0, over=0)
    horizon: int | None = horizon_parameter()
    update_below = math.inf  # f shrinks in every round

    def resolved(self, horizon: int | None) -> Self:
        """A copy with T, η and λ set; λ is 8/T², or 1/(2η) for small T where 8/T² is too large."""
        learner = super().resolved(horizon)
        if self.shrinkage is not None:
            check_shrinkage(learner.step, learner.shrinkage)
            return learner
        T = learner.horizon
        shrinkage = 8 / T**2 if T else 0.0
        if learner.step * shrinkage >= 1:
            shrinkage = 0.5 / learner.step
        return dataclasses.replace(learner, shrinkage=shrinkage)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> CappedExpansion:
        return CappedExpansion(kernel)

    def update(self, f: CappedExpansion, y: float, margin: float) -> bool:
        step = self.step
        f.shrink(1 - step * self.shrinkage)  # 1 - ηλ
        if margin >= HINGE and f.size:
            return False
        if f.size == self.budget:
            divisor = self.make_room(f)
            f.shrink(1 / divisor)
        f.cap(step * self.cap)
        step *= min(1.0, self.cap)
        f.add(step * y)
        return True

    def make_room(self, f: CappedExpansion) -> float:
        """Drop an example; return the factor by which the others are divided."""
        index = self.rng.integers(f.size)
        column = f.support.item(index)
        f.drop(column)
        return (self.budget - 1) / self.budget


@dataclass
class BogdPlusPlus(Bogd):
    """BOGD that prefers to drop small coefficients (Zhao et al. 2012, BOGD++).

    As BOGD, but example i is dropped with probability `p_i = 1 - s·|a_i|`, `s = (B-1)/Σ|a_j|`, and
    the others are divided by `1 - p_i`.

    Deviations
    ----------
    The p_i sum to 1, but one is negative where an |a_i| is larger than the mean of all others: the
    published code then stops; here it counts as 0.

    Examples
    --------
    >>> from ahpatron_cli.core import BogdPlusPlus, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(BogdPlusPlus(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    248
    """

    name = "bogd++"
    title = "BOGD++: BOGD that prefers to drop small coefficients (Zhao et al. 2012)"
    references = ("zhao2012",)
    grid = ("step=10^[-3:3]/sqrt(T)",)

    def make_room(self, f: CappedExpansion) -> float:
        if f.low == f.high:  # all |a_i| are equal, and so are the probabilities
            drawn = self.rng.random() * f.size
            column = f.support.item(int(drawn))
            f.drop(column)
            return (self.budget - 1) / self.budget
        stays = np.abs(f.a)
        total = stays.sum()  # not dasum: its bits depend on alignment
        stays *= (self.budget - 1) / total  # 1 - p
        odds = np.maximum(f.alive - stays, 0.0)  # p
        sums = odds.cumsum()  # p_1 + … + p_i
        drawn = self.rng.random() * sums.item(-1)
        column = int(sums.searchsorted(drawn, side="right"))
        f.drop(column)
        return float(stays[column])


def _small_shrinkage(learner: WithBudget) -> float:
    """0.01/B."""
    return 0.01 / learner.budget


@dataclass
class Norma(Learner):
    """Gradient descent on hinge loss and regulariser (Kivinen, Smola, Williamson 2001, 2004).

    In round t: `η_t = η/√t`; `a ← (1 - η_t·λ)·a`; if `y·f(x) <= ρ` (f as predicted), add x with
    η_t·y; if now |S| > B, drop the oldest, whose coefficient has shrunk the most. An example of
    weight w gets w·η_t. Symbols: B `budget`, η `step`, λ `shrinkage`, ρ `threshold`.

    Deviations
    ----------
    The publication drops examples after a fixed number of rounds. Its offset b and its adaptive ρ
    (the ν-trick) are not implemented. Weights are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, Norma, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Norma(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    284
    """

    name = "norma"
    title = "NORMA: gradient descent that forgets the oldest (Kivinen et al. 2004)"
    references = ("kivinen2004",)
    grid = ("step=log:0.1:100:4",)
    takes_costs = True

    budget: int = budget_parameter()
    step: float = real("η", "first step; that of round t is η/√t", default=1.0, over=0)
    shrinkage: float = shrinkage_parameter(formula="0.01/B", derive=_small_shrinkage)
    threshold: float = real("ρ", "update if y·f(x) <= ρ", default=1.0, over=0)
    update_below = math.inf  # f shrinks in every round

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shrinkage(self.step, self.shrinkage)
        self._violated_below = up_to(self.threshold)

    def update(self, f: Expansion, y: float, margin: float) -> bool:
        step = self.step / math.sqrt(self.round + 1)  # η_t
        f.shrink(1 - step * self.shrinkage)
        if margin >= self._violated_below and f.size:
            return False
        f.add(self.weight * step * y)
        if f.size > self.budget:
            f.drop(f.oldest)
        return True


@dataclass
class Silk(Learner):
    """Implicit online gradient descent, whose steps never overshoot (Cheng et al. 2006, SILK).

    In every round, with `τ = ηλ/(1 + ηλ)`, `f ← (1 - τ)·f`; then, with m = y·f(x) after that,

        α = min(η·C/(1 + ηλ), max(0, (ρ - m)/κ(x,x))),

    and x joins with α·y if α > 0. If |S| > B, drop the example with the smallest |a| (ties: the
    oldest). Symbols: B `budget`, η `step`, λ `shrinkage`, C `loss_weight`, ρ `threshold`.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, Silk, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Silk(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    273
    """

    name = "silk"
    title = "SILK: implicit updates, drops the smallest coefficient (Cheng et al. 2006)"
    references = ("cheng2006",)
    grid = ("loss_weight=log:0.01:1:3",)

    budget: int = budget_parameter()
    step: float = real("η", "size of the implicit step", default=1.0, over=0)
    shrinkage: float = shrinkage_parameter(formula="0.01/B", derive=_small_shrinkage)
    loss_weight: float = real("C", "weight of the hinge loss", default=1.0, over=0)
    threshold: float = real("ρ", "required margin", default=1.0, over=0)
    update_below = math.inf  # f shrinks in every round

    def __post_init__(self) -> None:
        super().__post_init__()
        divisor = 1 + self.step * self.shrinkage
        self._stays = 1 / divisor  # 1 - τ
        required = self.threshold / self._stays
        self._violated_below = under(required)

    def update(self, f: Expansion, y: float, margin: float) -> bool:
        f.shrink(self._stays)
        if margin >= self._violated_below and f.size:
            return False
        alpha = self.step * self.loss_weight * self._stays  # η·C/(1 + ηλ)
        own = f.diagonal[f.t]  # κ(x,x)
        if own > 0:
            missing = self.threshold - self._stays * margin  # ρ - m
            alpha = min(alpha, missing / own)
        f.add(y * alpha)
        if f.size > self.budget:
            f.drop(f.smallest)
        return True


class Maintenance(NamedTuple):
    """A strategy of budget maintenance: how f is made, and what reduces |S| by one."""

    create: Callable[[Kernel], Expansion]
    reduce: Callable[[Any], None]


def _drop_smallest(f: Expansion) -> None:
    f.drop(f.smallest)


MAINTENANCE = {
    "remove": Maintenance(Expansion, _drop_smallest),
    "project": Maintenance(
        partial(PrunedExpansion, in_span=1e-3),
        PrunedExpansion.project_smallest,
    ),
    "merge": Maintenance(MergingExpansion, MergingExpansion.merge_smallest),
}
"""Strategies of budget maintenance by name."""


@dataclass
class BSGD(Learner):
    """Budgeted stochastic gradient descent on `λ‖f‖²/2 + loss` (Wang, Crammer, Vucetic 2012).

    In round t, from 1 on: `f ← (1 - 1/t)·f`; if `y·f(x) < 1` (f as predicted), add x with y/(λt).
    If now |S| > B, budget maintenance removes the example i of smallest |a| (ties: the oldest):
    `remove` drops it; `project` replaces it by its projection onto the span of the others; `merge`
    replaces i and the example of the same sign that costs least by the best point between them
    (Gaussian kernel; rows of at most 4,096 features). Symbols: B `budget`,
    λ `regularisation`.

    For `project`, K must not be singular: an x in the span of S (δ² <= 1e-3·κ(x,x)) is itself
    projected and never joins; coefficients that agree to ten digits of the largest count as equal.
    If all of f cancels, as on equal rows with both labels, rounding decides the sign. Examples that
    were never merged have |a| = 1/(λt), so `remove` drops the oldest.

    No mistake bound is known without the loss of maintenance.

    Deviations
    ----------
    The authors' program (BudgetedSVM) uses the margin 2·y·f(x), so its λ is 2λ here, and the kernel
    exp(-γ‖u-v‖²/2), so γ = 1/(2σ²) is σ√2 here; with these settings the mistakes of `merge` differ
    by less than 1 % (it also merges across signs, and equal points first). Its `remove` has no
    tolerance, so rounding decides between equal |a|: on phishing 932 to 2375 mistakes depending
    on the order, here 1377 to 1463.

    Examples
    --------
    >>> from ahpatron_cli.core import BSGD, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(BSGD(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    189
    """

    name = "bsgd"
    title = "BSGD: stochastic gradient descent on a budget (Wang, Crammer, Vucetic 2012)"
    references = ("wang2012",)
    grid = ("regularisation=log:1e-5:0.01:4", "maintenance=remove,merge")

    budget: int = budget_parameter()
    regularisation: float = real("λ", "strength of the regulariser", default=0.001, over=0)
    maintenance: str = choice("", "how an example is removed if |S| > B", *MAINTENANCE)
    update_below = math.inf  # f shrinks in every round

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        self.dense = self.maintenance == "merge"  # merged points are not sparse
        if self.dense and not isinstance(kernel, Gaussian):
            message = "bsgd with maintenance=merge takes the gaussian kernel only"
            raise ParameterError(message, "kernel", "kernel")
        maintenance = MAINTENANCE[self.maintenance]
        return maintenance.create(kernel)

    def update(self, f: Expansion, y: float, margin: float) -> bool:
        t = self.round + 1
        if t > 1:  # f is 0 in the first round
            f.shrink(1 - 1 / t)
        if margin >= HINGE and f.size:
            return False
        divisor = self.regularisation * t
        f.add(y / divisor)
        if f.size > self.budget:
            maintenance = MAINTENANCE[self.maintenance]
            maintenance.reduce(f)
        return True
