"""POMDR: optimistic mirror descent, which bets on the next example being like the last ones."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Self

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner, on_hinge_loss
from ahpatron_cli.core.learners.gradient import horizon_parameter
from ahpatron_cli.core.parameters import real, whole
from ahpatron_cli.core.span import HintedExpansion
from ahpatron_cli.core.state import pass_state


@dataclass
class POMDR(Learner[HintedExpansion]):
    """Optimistic mirror descent with hints, on a budget (Li and Liao 2023).

    The problem: learn faster where the stream is regular, that is where h, the mean of
    `y_τ κ(x_τ,·)` over the last M rounds, foretells the next `y·κ(x,·)`. The prediction is that of
    `F = f + λ_t·h`; if `y·F(x) < 1`, with `λ_t = U/√(3 + A)`, A = 0 at first,

        phase 1, until |S| = B_0:  d = K^{-1} κ(S, x), δ the distance of κ(x,·) to the span of S;
            δ <= 1/√T:  a ← a + λ_t·y·d,         A ← A + max(dᵀKd - 2y·⟨h, Σ d_i κ(s_i,·)⟩, 0)
            else:       add x with λ_t·y,        A ← A + max(κ(x,x) - 2y·h(x), 0)
        phase 2:        add x with λ_t·y,        A as before
        always:         f ← Proj_U(f)
        as soon as |S| = B:  keep the oldest B/2; each other example hands its coefficient to the
            kept one that it is most similar to, the older where equal; rescale f to the norm U;
            A = 0; from the first time on λ_t is a tenth of the above.

    Symbols: B `budget`, U `radius`, M `memory`, T `horizon`. This is the algorithm as it was run
    for the tables of Liao et al. 2024. `B_0 = min(10·ln T, B/2)`, the first rounded; the published
    code lacks the second and overruns small budgets. It writes 1 for κ(x,x), which is the same
    for all kernels here but the linear one at a row of zeros.
    """

    name = "pomdr"
    title = "POMDR: optimistic mirror descent with hints, on a budget (Li and Liao 2023)"

    budget: int = whole("B", "most examples kept", default=400, even=True, at_least=2)
    radius: float = real("U", "f is kept in the ball of this radius", default=25.0, over=0)
    memory: int = whole("M", "rounds that the hint is the mean of", default=15, at_least=1)
    horizon: int | None = horizon_parameter("number of rounds")
    wants = on_hinge_loss

    _surprise: float = pass_state(0.0)  # A
    _halvings: int = pass_state(0, "how often S was full and halved")
    _unscaled: int = pass_state(0)

    def resolved(self, horizon: int | None) -> Self:
        """T, a stated one before the stream's own."""
        T = self.horizon or horizon
        if not T:
            message = "horizon must be given: pomdr needs the number of rounds beforehand"
            raise ParameterError(message, "horizon", "missing")
        return dataclasses.replace(self, horizon=T)

    def hypothesis(self, kernel: Kernel) -> HintedExpansion:
        """The empty f, and no hint yet; in phase 1 it knows the span of S."""
        assert self.horizon is not None
        self._tolerance = 1 / math.sqrt(self.horizon)
        first = min(round(10 * math.log(self.horizon)), self.budget // 2)  # B_0
        return HintedExpansion(kernel, self.memory, first, self.step_now())

    def step_now(self) -> float:
        """λ_t."""
        return (0.1 if self._halvings else 1.0) * self.radius / math.sqrt(3.0 + self._surprise)

    def update(self, f: HintedExpansion, margin: float, y: float) -> None:
        step = self.step_now()
        d = f.in_span(self._tolerance)  # None: δ > 1/√T, or phase 2
        if d is not None:
            f.move(step * y, d)
            self._surprise += max(f.explained(d) - 2 * y * f.hint_of(d), 0.0)
        else:
            f.join(step * y)
            self._surprise += max(f.diagonal() - 2 * y * f.hint(), 0.0)
        f.project(self.radius)
        if f.size == self.budget:
            self._unscaled += not f.merge_into_oldest(self.budget // 2, self.radius).rescaled
            self._halvings += 1
            self._surprise = 0.0
        f.hint_weight = self.step_now()

    def warnings(self, f: HintedExpansion) -> list[str]:
        if not self._unscaled:
            return []
        return [f"{self._unscaled} of {self._halvings} halvings left f at zero: not rescaled"]
