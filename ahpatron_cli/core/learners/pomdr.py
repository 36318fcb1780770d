"""POMDR: optimistic mirror descent with a hint from the last examples."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    Classes,
    Learner,
    budget_parameter,
    horizon_parameter,
    required_rounds,
)
from ahpatron_cli.core.numerics import HINGE, ddot
from ahpatron_cli.core.parameters import integer, real
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.reduction import merge_into_nearest
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.state import StateReader


class _HintedValues:
    """F(x) of each round of the open block, as f is now, in units of `scale`."""

    def __init__(self, f: HintedExpansion) -> None:
        self._f = f

    def __getitem__(self, t: int) -> float:
        f = self._f
        value = f.g.item(t)
        weight = f.hint_weight / f.scale
        return value + weight * f.hint(t)


class HintedExpansion(SpanExpansion):
    """Hypothesis `F = f + λ·h`; the hint h is the mean of `y_τ κ(x_τ,·)` over the last M rounds.

    M is `memory`, λ is `hint_weight`; Q is kept while |S| < `limit`.
    """

    state_fields: ClassVar[Any] = {
        **SpanExpansion.state_fields,
        "hint_weight": float,
        "recent": Points,
        "labels": "r",
        "_memory": "fixed",
    }
    recent: Points | None
    """Examples of the last M rounds."""

    def __init__(self, kernel: Kernel, memory: int, limit: int, hint_weight: float) -> None:
        super().__init__(kernel, gram=True, limit=limit)
        self._memory = memory
        self.hint_weight = hint_weight
        self.recent = None
        self.labels = np.empty(0)  # of the last M rounds

    def check(self, state: StateReader) -> None:
        super().check(state)
        if len(self.labels) > self._memory:
            raise state.refusal("labels", "are those of more rounds than are remembered")

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        if self.recent is None:
            self.recent = block.slice(0, 0)
        else:
            self.recent = self.recent.widened(block.width)
        assert self.points is not None
        self._before = self.recent.size
        # kernel values of all columns with the recent rounds, then with those of the block
        earlier = self.kernel.between(self.recent, self.points)
        self._H = np.concatenate((earlier, self.K))
        self._flat_H = self._H.reshape(-1)
        not_yet_seen = np.zeros(self.m)
        self._signs = np.concatenate((self.labels, not_yet_seen))

    def evaluate(self) -> None:
        super().evaluate()
        self.values = _HintedValues(self)

    def exact_value(self, t: int) -> float:
        value = super().exact_value(t)
        weight = self.hint_weight / self.scale
        return value + weight * self.hint(t)

    def hint(self, t: int) -> float:
        """Value h(x) of the hint in round t."""
        now = self._before + t
        M: int = min(now, self._memory)
        if not M:
            return 0.0
        first = now - M
        own = self.n + t  # the column of x
        start = first * self.columns + own
        # by position, as keywords would take twice as long in every round
        total: float = ddot(self._flat_H, self._signs, M, start, self.columns, first)
        return total / M

    def hint_along(self, d: Floats) -> float:
        """Inner product ⟨h, Σ d_i κ(s_i,·)⟩; d is by column."""
        now = self._before + self.t
        M: int = min(now, self._memory)
        last = slice(now - M, now)
        values = self._H[last] @ d  # Σ d_i κ(s_i,·) at the recent rounds
        total = self._signs[last] @ values
        return float(total) / max(M, 1)

    def remember(self, y: float) -> None:
        """Store the label of the current round for the hints of the next M rounds."""
        now = self._before + self.t
        self._signs[now] = y

    def close(self) -> None:
        assert self.recent is not None
        self.recent.extend(self.block)
        size = self.recent.size
        first = max(size - self._memory, 0)
        last = np.arange(first, size)
        self.recent.keep(last)
        labels = self._signs[first:]
        self.labels = labels.copy()
        super().close()

    def at(self, points: Points) -> Floats:
        values = super().at(points)
        if self.recent is None:
            return values
        recent = self.recent.widened(points.width)
        near = self.kernel.between(points, recent)
        sums = self.hint_weight * (near @ self.labels)
        hints: Floats = sums / recent.size
        return values + hints


@dataclass
class POMDR(Learner):
    """Optimistic mirror descent with hints, on a budget (Li and Liao 2023).

    With h the mean of `y_τ κ(x_τ,·)` over the last M rounds, a hint at the next `y·κ(x,·)`, the
    prediction is that of `F = f + λ_t·h`; if `y·F(x) < 1`, with `λ_t = U/√(3 + A)`, A = 0 at first,

        phase 1, until |S| = B_0:  d = K^{-1} κ(S, x), δ the distance of κ(x,·) to the span of S;
            δ <= 1/√T:  a ← a + λ_t·y·d,         A ← A + max(dᵀKd - 2y·⟨h, Σ d_i κ(s_i,·)⟩, 0)
            else:       add x with λ_t·y,        A ← A + max(κ(x,x) - 2y·h(x), 0)
        phase 2:        add x with λ_t·y,        A as before
        always:         f ← Proj_U(f)
        as soon as |S| = B:  keep the oldest B/2; add the coefficient of each other example to that
            of the kept one that it is most similar to, the oldest where equal; rescale f to the
            norm U; set A = 0. After the first reduction, λ_t is a tenth of the above.

    Symbols: B `budget`, U `radius`, M `memory`, T `horizon`. `B_0 = min(10·ln T, B/2)`, with
    10·ln T rounded. This is the variant in the tables of Liao et al. 2024.

    Deviations
    ----------
    The published code omits B/2 in B_0 and exceeds small budgets. In it, κ(x,x) is 1 also for
    linear kernels and rows of zeros.

    Examples
    --------
    >>> from ahpatron_cli.core import POMDR, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(POMDR(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    151
    """

    name = "pomdr"
    title = "POMDR: optimistic mirror descent with hints, on a budget (Li and Liao 2023)"
    references = ("li2023", "liao2024")

    budget: int = budget_parameter(even=True, at_least=2)
    radius: float = real("U", "f is kept in the ball of this radius", default=25.0, over=0)
    memory: int = integer("M", "number of rounds averaged in the hint", default=15, at_least=1)
    horizon: int | None = horizon_parameter("number of rounds")
    update_below = math.inf  # every round enters the hint

    surprise = 0.0  # A
    halvings = 0
    unscaled = 0
    state_fields = ("surprise", "halvings", "unscaled")
    reports = ("halvings",)

    def resolved(self, horizon: int | None) -> Self:
        """A copy with T set to the given horizon or the length of the stream."""
        T = required_rounds(self.horizon or horizon, self.name)
        return dataclasses.replace(self, horizon=T)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> HintedExpansion:
        assert self.horizon is not None
        wanted = round(10 * math.log(self.horizon))
        first = min(wanted, self.budget // 2)  # B_0
        step = self.step_now()
        return HintedExpansion(kernel, memory=self.memory, limit=first, hint_weight=step)

    def step_now(self) -> float:
        """The step λ_t of this round."""
        factor = 0.1 if self.halvings else 1.0
        surprise = abs(self.surprise)  # negative only in a forged state
        divisor = math.sqrt(3.0 + surprise)
        return factor * self.radius / divisor

    def update(self, f: HintedExpansion, y: float, margin: float) -> bool:
        f.remember(y)
        if margin >= HINGE and f.size:
            return False
        assert self.horizon is not None
        step = self.step_now()  # λ_t
        seen = f.diagonal[f.t]  # κ(x,x)
        hint = f.hint(f.t)  # h(x)
        if not f.spans:  # phase 2
            f.add(step * y)
        else:
            d, residual = f.projection()  # d and δ²
            if residual <= 1 / self.horizon:
                f.add_projection(step * y, d, residual)
                seen -= residual  # dᵀKd
                hint = f.hint_along(d)  # ⟨h, Σ d_i κ(s_i,·)⟩
            else:
                f.add_example(step * y, d, residual)
        surprise = seen - 2 * y * hint
        self.surprise += max(surprise, 0.0)
        f.project(self.radius)
        if f.size == self.budget:
            self._halve(f)
        f.hint_weight = self.step_now()
        return True

    def _halve(self, f: HintedExpansion) -> None:
        """Merge the younger half of S into the older one, and set A = 0."""
        half = self.budget // 2
        gram = f.gram()
        new = merge_into_nearest(gram, f.coefficients, count=half, norm=self.radius)
        f.replace(new)
        if not new.rescaled:
            self.unscaled += 1
        self.halvings += 1
        self.surprise = 0.0

    def warnings(self, f: HintedExpansion) -> list[str]:
        if not self.unscaled:
            return []
        return [f"{self.unscaled} of {self.halvings} halvings left f at zero: not rescaled"]
