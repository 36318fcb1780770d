"""Projectron: a Perceptron that keeps an example only if S cannot stand in for it."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    Learner,
    check_support,
    max_support_parameter,
    on_mistake,
)
from ahpatron_cli.core.parameters import real, whole
from ahpatron_cli.core.span import DRIFT, SpanExpansion


@dataclass
class Projectron(Learner[SpanExpansion]):
    """Project a mistake onto the span of S, if it is near; else add it (Orabona et al. 2008).

    The problem: a Perceptron whose active set S stays small although nothing is ever forgotten.
    With k = κ(S, x), K the Gram matrix of S, on a mistake

        d = K^{-1} k,   δ² = κ(x,x) - k·d     (the projection of κ(x,·) onto the span; its distance)
        a ← a + y·d                           if δ <= η
        add x with coefficient y              else.

    Symbols: η `tolerance`. There is no budget, but where the data lie in a bounded region S stays
    finite; `max_support` ends a run, with a message, before S outgrows it. Every update costs
    O(|S|²). δ² below 1e-10 is taken as 0, and an example whose δ cannot be told from rounding does
    not join, whatever η is. With `budget` B, once |S| = B every update is projected, whatever δ:
    not of the publication, but known from later comparisons.
    """

    name = "projectron"
    title = "Projectron: projects mistakes onto the span of S if near (Orabona et al. 2008)"

    tolerance: float = real(
        "η", "examples at most this far from the span of S do not join", 0.1, over=0, under=1
    )
    max_support: int | None = max_support_parameter()
    budget: int | None = whole(
        "B",
        "once S has so many examples, every update is projected",
        at_least=1,
        optional=True,
        words=("none",),
    )
    wants = on_mistake

    def __post_init__(self) -> None:
        super().__post_init__()
        if vars(self)["budget"] == "none":
            self.__dict__["budget"] = None

    def hypothesis(self, kernel: Kernel) -> SpanExpansion:
        return SpanExpansion(kernel)

    def update(self, f: SpanExpansion, margin: float, y: float) -> bool | None:
        full = f.size == self.budget
        d = f.in_span(math.inf if full else self.tolerance)  # δ <= η
        if d is not None:
            f.move(y, d)
        else:
            check_support(f.size + 1, self.max_support)
            f.join(y)
        return None

    def warnings(self, f: SpanExpansion) -> list[str]:
        if f.inverse.drift <= DRIFT:
            return []
        drift = f"{f.inverse.drift:.0e}"
        return [f"the kernel matrix of S is nearly singular: projections are good to {drift} only"]
