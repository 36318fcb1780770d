"""Projectron and Projectron++: Perceptrons that keep an example only if S cannot replace it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner, check_support, max_support_parameter
from ahpatron_cli.core.numerics import DRIFT, HINGE, NEAR_SPAN
from ahpatron_cli.core.parameters import choice, integer, real
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.tally import mistaken


@dataclass
class Projectron(Learner):
    """Project a mistake onto the span of S, if it is near; else add it (Orabona et al. 2008).

    With k = κ(S, x), K the Gram matrix of S, on a mistake

        d = K^{-1} k,   δ² = κ(x,x) - k·d     (the projection of κ(x,·) onto the span; its distance)
        a ← a + y·d                           if δ <= η
        add x with coefficient y              else.

    Symbol: η `tolerance`. S stays finite where the data lie in a bounded region. An update costs
    O(|S|²). δ² below 1e-10 is taken as 0, and an example whose δ cannot be distinguished from
    rounding does not join. `budget` is not in the publication, but in later comparisons.
    """

    name = "projectron"
    title = "Projectron: projects mistakes onto the span of S if near (Orabona et al. 2008)"

    tolerance: float = real(
        "η", "examples at most this far from the span of S do not join", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()
    budget: int | None = integer(
        "B",
        "once S has so many examples, every update is projected",
        at_least=1,
        optional=True,
        words=("none",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if vars(self)["budget"] == "none":
            self.budget = None

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> SpanExpansion:
        return SpanExpansion(kernel, gram=self.tolerance**2 < NEAR_SPAN)

    def update(self, f: SpanExpansion, y: float, margin: float) -> bool | None:
        d, squared = f.projection()
        if squared <= self.tolerance**2 or f.size == self.budget:
            f.move(y, d, squared)
        else:
            check_support(f.size + 1, self.max_support)
            f.join(y, d, squared)
        return None

    def warnings(self, f: SpanExpansion) -> list[str]:
        message = "the kernel matrix of S is nearly singular: projections are good to"
        return [f"{message} {f.drift:.0e} only"] if f.drift > DRIFT else []


@dataclass
class ProjectronPlusPlus(Projectron):
    """Projectron that also learns from positive margins below 1 (Orabona et al. 2008).

    On a mistake as Projectron. If `0 < y·f(x) < 1`, with ℓ = 1 - y·f(x) and p = κ(x,x) - δ², the
    squared norm of the projection of κ(x,·):

        a ← a + τ·y·d,   τ = min(1, ℓ/p, 2(ℓ - δ/η)/p)      if ℓ > δ/η;   else nothing changes,

    and the round does not count as an update. A known implementation has δ² in place of δ in both
    tests. `rule=full` produced the tables of Liao et al. 2024: every `y·f(x) < 1` is treated as a
    mistake, with a full step and the right to join.
    """

    name = "projectron++"
    title = "Projectron++: the same, also for margins below 1 (Orabona et al. 2008)"

    rule: str = choice(
        "τ", "what margins below 1 do; full: the same as mistakes", "published", "full"
    )
    update_below = HINGE

    def update(self, f: SpanExpansion, y: float, margin: float) -> bool | None:
        if self.rule == "full" or f.size == 0 or mistaken(y, margin):
            return super().update(f, y, margin)
        d, squared = f.projection()
        loss, explained = 1.0 - margin, f.diagonal[f.t] - squared
        excess = loss - math.sqrt(squared) / self.tolerance
        if margin <= 0 or excess <= 0:
            return False
        f.move(y * min(1.0, loss / explained, 2.0 * excess / explained), d, squared)
        return None
