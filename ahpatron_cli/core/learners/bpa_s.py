"""BPA-S: passive-aggressive learning that replaces one example by the new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner, budget_parameter
from ahpatron_cli.core.numerics import HINGE, TINY, cancelled, first_smallest
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.points import Points


class ReplaceableExpansion(Expansion):
    """An expansion that finds the example whose replacement by the current one costs least."""

    largest = 0.0  # the largest a² so far
    kept: ClassVar[Any] = {**Expansion.kept, "largest": float}

    def open(self, block: Points) -> None:
        super().open(block)
        # 1 - κ(s,x)²: the part of κ(s,·) that x cannot replace; never 0, which times inf is NaN
        self._parts = np.maximum(1.0 - np.square(self.K), TINY)
        self._squares = np.where(self.alive, self.a * self.a, np.inf)

    def add(self, c: float, radius: float | None = None) -> None:
        super().add(c, radius)
        self._squares[self.n + self.t] = square = c * c
        if square > self.largest:
            self.largest = square

    def drop(self, column: int) -> None:
        super().drop(column)
        self._squares[column] = np.inf

    def cheapest(self) -> int:
        """Column with the smallest `a²·(1 - κ(s,x)²)`; of equal ones the oldest."""
        return first_smallest(self._parts[self.t] * self._squares, self.largest)


@dataclass
class BpaS(Learner):
    """Budgeted passive-aggressive learning, simple (Wang, Vucetic 2010, BPA-S).

    If `y·f(x) < 1`, τ = min(C, 1 - y·f(x)). While |S| < B, add x with τ·y. Else, dropping r from S
    and adding x with `β_r = a_r·κ(s_r,x) + τ·y`, the minimiser of `½‖f' - f‖² + C·loss(f')`, costs

        Q_r = ½(a_r² + β_r² - 2·a_r·β_r·κ(s_r,x)) + C·max(0, 1 - y·f(x) - τ);

    drop the r that costs least, the oldest of equal ones. κ(x,x) = 1 as in the publication.
    Symbols: B `budget`, C `aggressiveness`.
    """

    name = "bpa-s"
    title = "BPA-S: passive-aggressive, replaces one example (Wang, Vucetic 2010)"

    budget: int = budget_parameter()
    aggressiveness: float = real("C", "largest step", default=1.0, over=0)
    update_below = HINGE

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> ReplaceableExpansion:
        return ReplaceableExpansion(kernel)

    def update(self, f: ReplaceableExpansion, y: float, margin: float) -> None:
        step = y * min(self.aggressiveness, 1.0 - margin)  # τ·y
        if f.size == self.budget:
            column = f.cheapest()  # 2·Q_r is its cost, up to what is the same for all r
            taken_over = f.a.item(column) * f.K.item(f.t, column)
            f.drop(column)
            beta = step + taken_over
            step = 0.0 if cancelled(beta, abs(step) + abs(taken_over)) else beta
        f.add(step)
