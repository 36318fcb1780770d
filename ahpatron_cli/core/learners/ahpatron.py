"""Ahpatron: AVP on a budget, by halving and projecting."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.budget import SELECT
from ahpatron_cli.core.classwise import (
    MULTICLASS_MEANING,
    REST,
    SHARED,
    SharedExpansion,
    SharingLearner,
)
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.avp import AVP, MARGIN_STEPS_MEANING, Aggressive
from ahpatron_cli.core.parameters import as_in, choice, real, whole
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import pass_state


@dataclass
class Ahpatron(Aggressive, SharingLearner):
    """AVP on at most B examples, by halving and projecting (Liao et al. 2024, Algorithm 2).

    When an update is due and |S| = B, half of S is removed first; the half that stays takes over
    the projection of the other onto its span, and f is rescaled to the norm `c_t·U`.
    Symbols: B `budget`, ε `epsilon`, U `radius`, λ `step`, η `ridge`, c_t `rescale`.

    `rescale=keep` is `c_t = ‖f_t‖/U` (Theorem 5, and the paper's experiments); a number is a
    constant c_t (Theorem 4: 0.6, with λ = √2·U/√B, B >= 50, U <= √B/4, 3U/√B < ε < 1).
    The half that stays is by `selection=magnitude` that of the largest |a|, the older one where
    equal, as in the paper (the authors' published code takes the first half, in order of age, whose
    |a| reaches the median: the same but for ties); by `selection=greedy` the one found by greedy
    forward projection, after the paper's Remark that the best f̄ is the closest one. By
    `selection=nearest` only a quarter goes, those examples that a neighbour best stands in for;
    that is no halving, and the theorems are not about it.

    Several classes with `multiclass=shared`: f_c = Σ_i A_ic κ(s_i,·) on one S. If
    `f_y(x) - max_{c≠y} f_c(x) < 1 - ε`, x joins with +λ_t for y and -λ_t for the class of the
    maximum, and each f_c is projected onto the ball of radius U. Halvings go by the norms of the
    rows of A, project each class and keep its norm. M'_t counts margins of at most 0.
    """

    name = "ahpatron"
    title = "Ahpatron: AVP on a budget by halving and projecting (Liao et al. 2024, Algorithm 2)"
    keeps_gram = True

    budget: int = whole("B", "most examples kept", default=400, even=True, at_least=2)
    epsilon: float = as_in(AVP, "epsilon", 0.5)
    radius: float = as_in(
        AVP,
        "radius",
        infinite=False,
        formula="√B/2",
        derive=lambda self: math.sqrt(self.budget) / 2,
    )
    step: float = as_in(
        AVP,
        "step",
        formula="U/√(4B)",
        derive=lambda self: self.radius / math.sqrt(4 * self.budget),
    )
    schedule: str = as_in(AVP, "schedule", "constant")
    ridge: float = real("η", "ridge of the projection at a halving", default=0.0005, over=0)
    selection: str = choice(
        "S_2", "which half stays at a halving; nearest: three quarters stay", *SELECT
    )
    rescale: float | str = real(
        "c_t",
        "norm after a halving, in units of U; keep: the norm from before",
        default="keep",
        words=("keep",),
        over=0,
        at_most=1,
    )
    multiclass: str = choice("", MULTICLASS_MEANING, REST, SHARED)

    _failures: int = pass_state(0)  # M'_t
    _margin_steps: float = pass_state(0.0, MARGIN_STEPS_MEANING)
    _halvings: int = pass_state(0, "J, how often S was full and reduced")
    _unscaled: int = pass_state(0)
    _gaps: float = pass_state(0.0)

    def update(self, f: Expansion, margin: float, y: float) -> None:
        if f.size == self.budget:  # |S_t| = B
            self.make_room(f)
        f.add(self._weight * self.step_at(margin) * y)  # f + λ_t·y·κ(x,·)
        f.project(self.radius)

    def make_room(self, f: Expansion) -> None:
        """Halve S, project f onto the half that stays; sum up what Theorem 5 depends on."""
        reduction = f.reduce(SELECT[self.selection], self.ridge, self.norm_after())
        self._halvings += 1
        self._gaps += reduction.gap
        self._unscaled += not reduction.rescaled

    def steps(self) -> Steps:
        return super().steps()._replace(budget=self.budget, make_room=self.make_room)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiclass == SHARED and self.selection == "greedy":
            message = "selection must be magnitude or nearest where multiclass is shared"
            raise ParameterError(f"{message}, got greedy", "selection")

    def shared(self, kernel: Kernel, classes: int) -> SharedExpansion:
        return SharedExpansion(kernel, classes)

    def wants_class(self, margins: Floats) -> NDArray[np.bool_]:
        return margins <= self.highest()

    def update_class(
        self, f: SharedExpansion, values: Floats, y: int, rival: int, margin: float
    ) -> None:
        if f.size == self.budget:
            f.reduce(SELECT[self.selection], self.ridge, self.norm_after())
            self._halvings += 1
        f.add(self._weight * self.step_at(margin), y, rival)
        f.project(self.radius)

    def norm_after(self) -> float | None:
        """`c_t·U`; None: as it was."""
        return None if isinstance(self.rescale, str) else self.rescale * self.radius

    def statistics(self) -> dict[str, int | float | None]:
        """J, with Lemma 1: `J <= max(2(|M'_T| + |N_T|)/B - 1, 0)` for halves; and

        `ζ̂ = Σ ‖f_t - f̄_t‖ / (U·J)`, the quantity that Theorem 5 depends on.
        """
        J = self._halvings
        return {**super().statistics(), "zeta": self._gaps / (self.radius * J) if J else None}

    def warnings(self, f: Expansion) -> list[str]:
        if not self._unscaled:
            return []
        return [f"{self._unscaled} of {self._halvings} halvings projected f to zero: not rescaled"]
