"""Ahpatron: AVP on a budget, by halving and projecting."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ahpatron_cli.core.budget import halve
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.learners.avp import (
    EPSILON_MEANING,
    RADIUS_MEANING,
    SCHEDULE_MEANING,
    STEP_MEANING,
    Aggressive,
)
from ahpatron_cli.core.parameters import choice, real, whole

SELECTION_MEANING = "which half stays at a halving; nearest: three quarters stay"


@dataclass
class Ahpatron(Aggressive):
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
    """

    name = "ahpatron"
    title = "Ahpatron: AVP on a budget by halving and projecting (Liao et al. 2024, Algorithm 2)"
    keeps_gram = True
    remembers = ("_failures", "_margin_steps", "_halvings", "_unscaled", "_gaps")

    budget: int = whole("B", "most examples kept", default=400, even=True, at_least=2)
    epsilon: float = real("ε", EPSILON_MEANING, default=0.5, over=0, under=1)
    radius: float = real(
        "U", RADIUS_MEANING, over=0, formula="√B/2", derive=lambda self: math.sqrt(self.budget) / 2
    )
    step: float = real(
        "λ",
        STEP_MEANING,
        over=0,
        formula="U/√(4B)",
        derive=lambda self: self.radius / math.sqrt(4 * self.budget),
    )
    schedule: str = choice("λ_t", SCHEDULE_MEANING, "constant", "adaptive")
    ridge: float = real("η", "ridge of the projection at a halving", default=0.0005, over=0)
    selection: str = choice("S_2", SELECTION_MEANING, "magnitude", "greedy", "nearest")
    rescale: float | str = real(
        "c_t",
        "norm after a halving, in units of U; keep: the norm from before",
        default="keep",
        words=("keep",),
        over=0,
        at_most=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._halvings = 0
        self._unscaled = 0
        self._gaps = 0.0

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Make room if there is none; then add and project as AVP does."""
        if f.size == self.budget:
            self._halve(f)
        super().update(f, margin, y)

    def _halve(self, f: Expansion) -> None:
        f.settle()
        norm = None if isinstance(self.rescale, str) else self.rescale * self.radius
        half = halve(f.gram, f.coefficients, self.ridge, self.selection, norm)
        f.check_norm(half.norm_before)
        f.restrict(half.kept, half.coefficients, half.gram, half.norm)
        self._halvings += 1
        self._gaps += half.gap
        self._unscaled += not half.rescaled

    def halvings(self) -> int:
        """J, the number of halvings; Lemma 1: `J <= max(2(|M'_T| + |N_T|)/B - 1, 0)` for halves."""
        return self._halvings

    def zeta(self) -> float | None:
        """`ζ̂ = Σ ‖f_t - f̄_t‖ / (U·J)`, the quantity that Theorem 5 depends on."""
        return self._gaps / (self.radius * self._halvings) if self._halvings else None

    def warnings(self) -> list[str]:
        """Halvings that left nothing to rescale."""
        if not self._unscaled:
            return []
        return [f"{self._unscaled} of {self._halvings} halvings projected f to zero: not rescaled"]
