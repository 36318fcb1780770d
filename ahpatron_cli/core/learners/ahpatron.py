"""AVP and Ahpatron, Algorithms 1 and 2 of Liao et al. 2024, and ahpatron+.

Numbers of algorithms, lines, equations and theorems are those of this paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    REST,
    SHARED,
    Classes,
    Learner,
    budget_parameter,
    multiclass_parameter,
)
from ahpatron_cli.core.numerics import under
from ahpatron_cli.core.parameters import as_in, choice, real
from ahpatron_cli.core.reduction import SELECT, project_onto
from ahpatron_cli.core.rows import Floats

SCHEDULES = "constant: λ; adaptive: λ_t = λ/√(1 + M'_t/U²), M'_t = rounds with y·f(x) <= 0"
RESCALE = "norm of f after a halving, in units of U; keep: unchanged"


class Aggressive(Learner):
    """Base of AVP and Ahpatron: `f ← Proj_U(f + λ_t·y·κ(x,·))` if `y·f(x) < 1 - ε`."""

    takes_costs = True

    epsilon: float
    radius: float
    step: float
    schedule: str

    nonpositive_margins = 0  # M'_t
    margin_steps = 0.0  # Σ λ_t over N_T, used in Δ_T of Corollary 2
    state_fields: ClassVar[tuple[str, ...]] = ("nonpositive_margins", "margin_steps")
    reports: ClassVar[tuple[str, ...]] = ("margin_steps",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "adaptive" and math.isinf(self.radius):
            message = "radius must be a finite number > 0 where schedule is adaptive, got inf"
            raise ParameterError(message, "radius")

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        self.update_below = under(1.0 - self.epsilon)
        return Expansion(kernel, classes)

    def update(self, f: Expansion, y: float | Floats, margin: float) -> None:
        step = self.step_at(margin)  # λ_t
        f.add(self.weight * step * y, self.radius)  # Algorithm 1, lines 5 and 6

    def step_at(self, margin: float) -> float:
        """The step λ_t of this round: constant, or that of Corollary 2 (`schedule`)."""
        step = self.step
        if self.schedule == "adaptive":
            if margin <= 0:
                self.nonpositive_margins += 1
            per_radius = self.nonpositive_margins / self.radius / self.radius  # M'_t/U²
            step /= math.sqrt(1.0 + per_radius)
        if margin > 0:
            self.margin_steps += step
        return step


@dataclass
class AVP(Aggressive):
    """Perceptron that also learns from small positive margins (Liao et al. 2024, Algorithm 1).

    `f ← Proj_U(f + λ_t·y·κ(x,·))` if `y·f(x) < 1 - ε`; Proj_U projects onto the ball of radius U.
    No budget. An example of weight w gets w·λ_t. Symbols: ε `epsilon`, λ `step`, U `radius`.

    `schedule=constant` with λ = 1, U = ∞, 1/2 < ε < 1 is Corollary 1:
    `|M'_T| <= 2·L_T(f) + ‖f‖² + (1 - 2ε)·|N_T|`. `schedule=adaptive` with λ = 1 and a finite U is
    Corollary 2: `λ_t = U/√(U² + M'_t)`; M'_t counts rounds with `y·f(x) <= 0`, this one included.
    Theorem 3 holds for other constant λ < 2 with λ/2 < ε < 1 (5).

    Deviations
    ----------
    ε is the same in all rounds. Weights, and `schedule=adaptive` with λ ≠ 1, are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import AVP, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(AVP(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    146
    """

    name = "avp"
    title = "AVP: adds x if its margin is below 1 - ε, no budget (Liao et al. 2024, Algorithm 1)"
    references = ("liao2024",)
    grid = ("epsilon=0.5:0.9:0.1",)

    epsilon: float = real("ε", "update if y·f(x) < 1 - ε", default=0.5, over=0, under=1)
    radius: float = real("U", "f is kept in a ball of this radius", math.inf, over=0, infinite=True)
    step: float = real("λ", "coefficient of a new example; if adaptive, of the first", 1.0, over=0)
    schedule: str = choice("λ_t", SCHEDULES, "constant", "adaptive")


@dataclass
class Ahpatron(Aggressive):
    """AVP on at most B examples, with halving and projection (Liao et al. 2024, Algorithm 2).

    If |S| = B before an update, half of S is removed (lines 10 to 12). With S_1 the half that goes,
    S_2 the half that stays, a_1 and a_2 their coefficients, K_2 and K_21 the kernel matrices,

        θ = (K_2 + η·I)^{-1} K_21 a_1                (9), the solution of (6)
        a_2 ← a_2 + θ, rescaled to the norm c_t·U    (7)
        f ← Proj_U(f̄ + λ_t·y·κ(x,·))                 (8), where f̄ is f after that.

    Symbols: B `budget`, ε `epsilon`, U `radius`, λ `step`, η `ridge`, c_t `rescale`.

    `rescale=keep` is `c_t = ‖f_t‖/U` (Theorem 6, and the paper's experiments); a number is a
    constant c_t (Theorem 4: 0.6, with λ = √2·U/√B, B >= 50, U <= √B/4, 3U/√B < ε < 1).
    `selection=magnitude` keeps the half with the largest |a| (ties: the older), as in the paper.
    `greedy` keeps the half found by greedy forward projection, after the paper's remark that the
    best f̄ is the one closest to f. `nearest` removes only a quarter: the examples that a neighbour
    replaces best; the theorems do not cover it.

    With `multiclass=shared`, f_c = Σ_i A_ic κ(s_i,·) on one S. If `f_y(x) - max_{c≠y} f_c(x)` is
    below 1 - ε, x is added with +λ_t for y and -λ_t for the class of the maximum, and each f_c is
    projected. Halvings select by the norms of the rows of A and keep the norm of each f_c.

    Deviations
    ----------
    The published code keeps the oldest examples whose |a| reaches the median: the same up to ties.
    `selection=greedy`, `selection=nearest`, `multiclass=shared` and weights are ours.

    Examples
    --------
    >>> from ahpatron_cli.core import Ahpatron, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Ahpatron(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    132
    """

    name = "ahpatron"
    title = "Ahpatron: AVP on a budget by halving and projecting (Liao et al. 2024, Algorithm 2)"
    references = ("liao2024",)
    grid: ClassVar[tuple[str, ...]] = ("epsilon=0.5:0.9:0.1",)

    budget: int = budget_parameter(even=True, at_least=2)
    epsilon: float = as_in(AVP, "epsilon", 0.5)
    radius: float = as_in(
        AVP,
        "radius",
        infinite=False,
        formula="√B/2",
        derive=lambda own: own.budget**0.5 / 2,
    )
    step: float = as_in(
        AVP,
        "step",
        formula="U/√(4B)",
        derive=lambda own: own.radius / (4 * own.budget) ** 0.5,
    )
    schedule: str = as_in(AVP, "schedule", "constant")
    ridge: float = real("η", "ridge of the projection at a halving", default=0.0005, over=0)
    selection: str = choice("S_2", "which half of S stays; nearest keeps three quarters", *SELECT)
    rescale: float | str = real("c_t", RESCALE, "keep", words=("keep",), over=0, at_most=1)
    multiclass: str = multiclass_parameter(REST, SHARED)

    halvings = 0  # J
    unscaled = 0
    gaps = 0.0  # Σ ‖f_t - f̄_t‖
    state_fields = (*Aggressive.state_fields, "halvings", "unscaled", "gaps")
    reports = (*Aggressive.reports, "halvings")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiclass == SHARED and self.selection == "greedy":
            message = "selection must be magnitude or nearest where multiclass is shared"
            raise ParameterError(f"{message}, got greedy", "selection")

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        super().begin(kernel)
        return Expansion(kernel, classes, gram=True)

    def update(self, f: Expansion, y: float | Floats, margin: float) -> None:
        if f.size == self.budget:  # |S_t| = B: Algorithm 2, line 9
            self.halve(f)
        step = self.step_at(margin)  # λ_t
        f.add(self.weight * step * y, self.radius)  # line 7, and (8) after a halving

    def halve(self, f: Expansion) -> None:
        """Remove half of S (a quarter for `nearest`), and project f onto the rest: (6) and (7)."""
        norm = None  # keep ‖f_t‖
        if not isinstance(self.rescale, str):
            norm = self.rescale * self.radius  # c_t·U
        gram = f.gram() if self.selection == "nearest" else f.lower_gram()
        select = SELECT[self.selection]
        new = project_onto(gram, f.coefficients, select=select, ridge=self.ridge, norm=norm)
        f.replace(new)
        self.halvings += 1
        self.gaps += new.gap
        if not new.rescaled:
            self.unscaled += 1

    def statistics(self) -> dict[str, int | float | None]:
        # Lemma 1, for halves: J <= max(2(|M'_T| + |N_T|)/B - 1, 0).
        # Theorem 6 depends on ζ̂ = Σ ‖f_t - f̄_t‖ / (U·J), the smallest ζ for which (11) holds.
        statistics = super().statistics()
        statistics["zeta"] = None
        if self.halvings:
            largest = self.radius * self.halvings
            statistics["zeta"] = self.gaps / largest
        return statistics

    def warnings(self, f: Expansion) -> list[str]:
        messages = []
        if self.unscaled:
            which = f"{self.unscaled} of {self.halvings} halvings"
            messages.append(f"{which} projected f to zero: not rescaled")
        if f.norm_drift > 1e-6:
            messages.append(f"the tracked norm of f was off by {f.norm_drift:.1e} before a halving")
        return messages


@dataclass
class AhpatronPlus(Ahpatron):
    """Ahpatron with defaults that suit most data sets: other option values, no new rule.

    `selection=nearest`, `schedule=adaptive`, `U = √B`, `λ = 0.25`, `ε = 0.75`, `η = 0.0005`:

        f ← Proj_U(f + λ_t·y·κ(x,·))  if  y·f(x) < 1 - ε,    λ_t = λ/√(1 + M'_t/B).

    Steps that shrink with M'_t, the number of rounds with `y·f(x) <= 0`, replace tuning ε for each
    data set. Removing a quarter changes f less than removing half. Theorem 6 requires halves and a
    constant `λ = U/(2√B)`, so these defaults have no mistake bound. That they make fewer mistakes
    is measured (tests/benchmarks), not proved.

    Examples
    --------
    >>> from ahpatron_cli.core import AhpatronPlus, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(AhpatronPlus(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    128
    """

    name = "ahpatron+"
    title = "ahpatron+: Ahpatron with adaptive steps, smaller removals, one default (ours)"
    references = ("liao2024",)
    grid: ClassVar[tuple[str, ...]] = ()  # one default for all data

    epsilon: float = as_in(Ahpatron, "epsilon", 0.75)
    radius: float = as_in(
        Ahpatron,
        "radius",
        formula="√B",
        derive=lambda own: math.sqrt(own.budget),
    )
    step: float = as_in(Ahpatron, "step", 0.25, formula=None, derive=None)
    schedule: str = as_in(Ahpatron, "schedule", "adaptive")
    selection: str = as_in(Ahpatron, "selection", "nearest")
