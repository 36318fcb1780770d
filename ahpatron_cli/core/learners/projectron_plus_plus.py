"""Projectron++: Projectron that also learns from margins below 1."""

import math
from dataclasses import dataclass

from ahpatron_cli.core.learners.base import on_hinge_loss, wrong
from ahpatron_cli.core.learners.projectron import Projectron
from ahpatron_cli.core.parameters import choice
from ahpatron_cli.core.span import SpanExpansion


@dataclass
class ProjectronPlusPlus(Projectron):
    """Projectron that also learns from what was right but not by much (Orabona et al. 2008).

    On a mistake as Projectron. If `0 < y·f(x) < 1`, with ℓ = 1 - y·f(x) and p = κ(x,x) - δ², the
    squared norm of the projection of κ(x,·):

        a ← a + τ·y·d,   τ = min(1, ℓ/p, 2(ℓ - δ/η)/p)      if ℓ > δ/η;   else nothing changes,

    and the round does not count as an update. Symbols: η `tolerance`, the rest as in Projectron.

    `rule=published` is this. A known implementation has δ² in place of δ in both tests; this one
    follows the publication. `rule=full` is what produced the tables of Liao et al. 2024: every
    `y·f(x) < 1` is treated as a mistake, with a full step and with the right to join.
    """

    name = "projectron++"
    title = "Projectron++: the same, also for margins below 1 (Orabona et al. 2008)"

    rule: str = choice(
        "τ", "what margins below 1 do; full: the same as mistakes", "published", "full"
    )
    wants = on_hinge_loss

    def update(self, f: SpanExpansion, margin: float, y: float) -> bool | None:
        """As Projectron on a mistake; else a step within the span, if one is worth it."""
        if self.rule == "full" or f.size == 0 or wrong(margin, y):
            return super().update(f, margin, y)
        d, squared = f.projection()
        loss, explained = 1.0 - margin, f.diagonal() - squared
        excess = loss - math.sqrt(squared) / self.tolerance
        if margin <= 0 or excess <= 0:
            return False
        f.move(y * min(1.0, loss / explained, 2.0 * excess / explained), d)
        return None
