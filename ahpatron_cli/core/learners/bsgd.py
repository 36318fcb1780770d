"""BSGD: budgeted stochastic gradient descent on the SVM objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import HINGE, Learner, on_hinge_loss
from ahpatron_cli.core.merging import MergingExpansion
from ahpatron_cli.core.parameters import choice, real, whole
from ahpatron_cli.core.span import PrunedExpansion
from ahpatron_cli.core.state import pass_state

IN_SPAN = 1e-3
"""An x with δ² up to this, in units of κ(x,x), is in the span of S."""
MAINTENANCE: dict[str, tuple[Callable[[Kernel], Expansion], Callable[[Any], None]]] = {
    "remove": (Expansion, Expansion.drop_smallest),
    "project": (lambda kernel: PrunedExpansion(kernel, IN_SPAN), PrunedExpansion.project_smallest),
    "merge": (MergingExpansion, MergingExpansion.merge_smallest),
}
"""By name, what f is made of and how it makes room."""


@dataclass
class BSGD(Learner[Expansion]):
    """Stochastic gradient descent on `λ‖f‖²/2 + loss` on a budget (Wang, Crammer, Vucetic 2012).

    In round t, from 1 on: `f ← (1 - 1/t)·f`; if `y·f(x) < 1` (f as predicted), add x with y/(λt).
    If then |S| > B, budget maintenance, for the example i with the smallest |a|, the older of equal
    ones: `remove` drops it; `project` adds its projection onto their span to the others; `merge`
    puts the best point between i and the example of the same sign for which that costs least in the
    place of that example (Gaussian kernel; rows of at most 4,096 features).
    Symbols: B `budget`, λ `regularisation`.

    For `project`, K must not be singular: an x in the span of S (δ² <= 1e-3·κ(x,x)) is projected
    itself and never joins. Coefficients equal to ten digits of the largest are equal there.
    Where all of f cancels, as it does on equal rows with both labels, rounding decides the sign.
    All that never merged have |a| = 1/(λt), so `remove` forgets the oldest.

    The authors' program (BudgetedSVM) keeps a coefficient per class, so that its margin is 2·y·f(x)
    and its λ is 2λ here; it merges across signs as well, and equal points first. Its kernel is
    exp(-γ‖u-v‖²/2), so that it plays σ√2 with γ = 1/(2σ²); there, `merge` differs from it by less
    than 1 %. It removes by |a| without a tolerance, so that rounding chooses among equals: on
    phishing its rules give 932 to 2375 mistakes from order to order, these give 1377 to 1463.
    No theorem for one pass on a budget applies without knowing what maintenance loses.
    """

    name = "bsgd"
    title = "BSGD: stochastic gradient descent on a budget (Wang, Crammer, Vucetic 2012)"

    budget: int = whole("B", "most examples kept", default=400, at_least=1)
    regularisation: float = real("λ", "strength of the regulariser", default=0.001, over=0)
    maintenance: str = choice("", "what makes room when |S| > B", *MAINTENANCE)

    _rounds: int = pass_state(0)  # t

    def hypothesis(self, kernel: Kernel) -> Expansion:
        """The empty f."""
        if self.maintenance == "merge" and not isinstance(kernel, Gaussian):
            message = "bsgd with maintenance=merge takes the gaussian kernel only"
            raise ParameterError(message, "kernel", "kernel")
        return MAINTENANCE[self.maintenance][0](kernel)

    wants = on_hinge_loss

    def each_round(self, f: Expansion, margin: float, y: float) -> None:
        f.scale(self.shrink_at())

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Add x with y/(λt), and make room again."""
        f.add(y * self.step_at())
        if f.size > self.budget:
            MAINTENANCE[self.maintenance][1](f)

    def shrink_at(self) -> float:
        """1 - 1/t, of one more round; in the first one f is 0 and stays so."""
        self.__dict__["_rounds"] += 1  # past the guard of parameters: in every round
        return 1 - 1 / self._rounds if self._rounds > 1 else 1.0

    def step_at(self, *_: float) -> float:
        """1/(λt)."""
        return 1 / (self.regularisation * self._rounds)

    def steps(self) -> Steps:
        return Steps(
            HINGE,
            self.step_at,
            budget=self.budget,
            trim=MAINTENANCE[self.maintenance][1],
            shrink_at=self.shrink_at,
        )
