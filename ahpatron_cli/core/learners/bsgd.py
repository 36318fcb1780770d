"""BSGD: budgeted stochastic gradient descent on the SVM objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import Learner, Margin, Trigger
from ahpatron_cli.core.merging import MergingExpansion
from ahpatron_cli.core.parameters import choice, real, whole
from ahpatron_cli.core.state import pass_state

MAINTENANCE: dict[str, tuple[type[Expansion], Callable[[Any], None]]] = {
    "remove": (Expansion, Expansion.drop_smallest),
    "merge": (MergingExpansion, MergingExpansion.merge_smallest),
}
"""By name, what f is made of and how it makes room."""


@dataclass
class BSGD(Learner[Expansion]):
    """Stochastic gradient descent on `λ‖f‖²/2 + loss` on a budget (Wang, Crammer, Vucetic 2012).

    In round t, from 1 on: `f ← (1 - 1/t)·f`; if `y·f(x) < 1` (f as predicted), add x with y/(λt).
    If then |S| > B, budget maintenance, for the example i with the smallest |a|, the older of equal
    ones: `remove` drops it; `merge` puts the best point between i and the example of the same sign
    for which that costs least in the place of that example (Gaussian kernel; rows of at most 4,096
    features). Symbols: B `budget`, λ `regularisation`.

    All that never merged have |a| = 1/(λt), so `remove` forgets the oldest. The authors' program
    (BudgetedSVM) compares without a tolerance, so that rounding chooses among equals; its counts
    differ from these by up to 16 %. It also keeps a coefficient per class, so that its margin is
    2·y·f(x) and its λ is 2λ here; starts with coefficient 1; lets x replace or join an equal point
    of S first. Its projection is not here. The publication also merges across signs, with h outside
    [0, 1]; the program does not. No theorem for one pass on a budget applies without knowing what
    maintenance loses.
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

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        """Where the hinge loss is not zero."""
        return margin < 1.0

    def each_round(self, f: Expansion, margin: float, y: float) -> None:
        """Shrink; in the first round there is nothing to shrink."""
        self._rounds += 1
        if f.size:
            f.scale(1 - 1 / self._rounds)

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Add x with y/(λt), and make room again."""
        step = y / (self.regularisation * self._rounds)
        f.add(step)
        if f.size > self.budget:
            MAINTENANCE[self.maintenance][1](f)
