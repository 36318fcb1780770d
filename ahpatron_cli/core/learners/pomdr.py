"""POMDR: optimistic mirror descent, which bets on the next example being like the last ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot

from ahpatron_cli.core.budget import ROUNDING
from ahpatron_cli.core.gram_inverse import Inverse
from ahpatron_cli.core.hinted import HintedExpansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.parameters import ParameterError, real, whole
from ahpatron_cli.core.state import State, Stored


@dataclass
class POMDR(Learner):
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
    keeps_gram = True
    wants_horizon = True
    remembers = ("_surprise", "_halvings", "_unscaled")

    budget: int = whole("B", "most examples kept", default=400, even=True, at_least=2)
    radius: float = real("U", "f is kept in the ball of this radius", default=25.0, over=0)
    memory: int = whole("M", "rounds that the hint is the mean of", default=15, at_least=1)
    horizon: int | None = whole(
        "T",
        "number of rounds",
        at_least=1,
        optional=True,
        formula="length of the stream, where it is known",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._inverse = Inverse()
        self._surprise = 0.0  # A
        self._halvings = 0
        self._unscaled = 0

    def begin(
        self, kernel: Kernel, rng: np.random.Generator, horizon: int | None
    ) -> HintedExpansion:
        """Settle T, and what depends on it."""
        self.horizon = self.horizon or horizon
        if not self.horizon:
            message = "pomdr needs the number of rounds beforehand; give -p horizon=N"
            raise ParameterError("horizon", message)
        self._phase_one = min(round(10 * math.log(self.horizon)), self.budget // 2)  # B_0
        self._tolerance = 1 / math.sqrt(self.horizon)
        f = HintedExpansion(kernel, self.memory)
        f.hint_weight = self._step()
        return f

    def _step(self) -> float:
        """λ_t."""
        return (0.1 if self._halvings else 1.0) * self.radius / math.sqrt(3.0 + self._surprise)

    def wants(self, margin: Any, y: Any) -> Any:
        """Where the hinge loss of F is not zero."""
        return margin < 1.0

    def update(self, f: HintedExpansion, margin: float, y: float) -> None:
        """Take a step; make room as soon as there is none."""
        step = self._project_or_add if f.size < self._phase_one else self._add
        self._surprise += max(step(f, y), 0.0)
        f.project(self.radius)
        if f.size == self.budget:
            self._halve(f)
        f.hint_weight = self._step()

    def _add(self, f: HintedExpansion, y: float) -> float:
        """Add x; what the hint did not foretell of it."""
        f.add(f.hint_weight * y)
        return f.diagonal() - 2 * y * f.hint()

    def _project_or_add(self, f: HintedExpansion, y: float) -> float:
        """Stay in the span of S if x is near, else add it; what the hint did not foretell."""
        column = f.column()
        d, squared = self._inverse.project(column, f.diagonal(), f.gram)
        if self._inverse.holds(squared, self._tolerance):
            f.move(f.hint_weight * y, d)
            return (ddot(d, column) if len(d) else 0.0) - 2 * y * f.hint_of(d)
        surprise = self._add(f, y)
        f.settle()
        self._inverse.grow(d, squared, f.gram)
        return surprise

    def _halve(self, f: HintedExpansion) -> None:
        f.settle()
        gram, a, half = f.gram, f.coefficients, self.budget // 2
        f.check_norm(math.sqrt(max(float(a @ gram @ a), 0.0)))
        similar = gram[:half, half:]
        most = similar.max(axis=0)
        heirs = np.argmax(similar >= most - 1e-9 * np.abs(most), axis=0)  # the oldest, where equal
        merged = a[:half] + np.bincount(heirs, weights=a[half:], minlength=half)
        squared = float(merged @ gram[:half, :half] @ merged)
        norm = math.sqrt(max(squared, 0.0))
        if squared > 4 * ROUNDING * float(np.abs(merged).sum()) ** 2:
            merged, norm = merged * (self.radius / norm), self.radius
        else:  # nothing but rounding: no factor brings it to a norm
            self._unscaled += 1
        f.restrict(np.arange(half), merged, gram[:half, :half].copy(), norm)
        self._halvings += 1
        self._surprise = 0.0

    def state(self) -> State:
        return {**super().state(), "inverse": self._inverse.state()}

    def restore(self, stored: Stored) -> None:
        super().restore(stored)
        self._inverse.restore(stored.child("inverse"), self.budget)

    def fits(self, f: HintedExpansion) -> bool:
        """In phase 1 the inverse is that of all of S."""
        return self._inverse.size == f.size or f.size >= self._phase_one

    def halvings(self) -> int:
        """How often S was full and was halved."""
        return self._halvings

    def warnings(self) -> list[str]:
        """Halvings that left nothing to rescale."""
        if not self._unscaled:
            return []
        return [f"{self._unscaled} of {self._halvings} halvings left f at zero: not rescaled"]
