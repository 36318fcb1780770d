"""Bounded online gradient descent: kernel gradient descent that drops an example by lot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.gradient import (
    GradientLearner,
    horizon_parameter,
    step_parameter,
)
from ahpatron_cli.core.parameters import ParameterError, real, whole


@dataclass
class Bogd(GradientLearner):
    """Drop an example uniformly at random (Zhao, Wang, Wu, Jin, Hoi 2012, BOGD).

    In every round `a ← (1 - ηλ)·a`. If then `y·f(x) < 1` (f as predicted): if |S| = B, drop one
    example and multiply the others by B/(B-1), so that f stays the same in expectation; add x with
    η·y; bring every |a_i| above η·γ down to it. Symbols: B `budget`, η `step`, λ `shrinkage`,
    γ `cap`, T `horizon`.
    """

    name = "bogd"
    title = "BOGD: gradient descent that drops a random example (Zhao et al. 2012)"
    every_round = True
    remembers = ("_low", "_high")

    budget: int = whole("B", "most examples kept", default=400, at_least=2)
    step: float | None = step_parameter()
    shrinkage: float | None = real(
        "λ",
        "strength of the regulariser λ‖f‖²/2",
        at_least=0,
        optional=True,
        formula="8/T², or 0 where T is not known",
    )
    cap: float = real("γ", "coefficients are at most this times the step", default=1.0, over=0)
    horizon: int | None = horizon_parameter()

    def begin(self, kernel: Kernel, rng: np.random.Generator, horizon: int | None) -> Expansion:
        """Settle the step and the shrinkage, and keep the lots at hand."""
        self._rng = rng
        self._step = self._resolve_step(horizon)
        if self.shrinkage is None:
            self.shrinkage = 8 / self.horizon**2 if self.horizon else 0.0
        self._limit = self._step * self.cap
        self._low, self._high = math.inf, 0.0  # bounds on |a_i|
        self._decay = 1 - self._step * self.shrinkage
        if self._decay <= 0:
            message = f"shrinkage must be a number below 1/step = {1 / self._step:g}"
            raise ParameterError("shrinkage", f"{message}, got {self.shrinkage}")
        return Expansion(kernel)

    def pass_round(self, f: Expansion) -> None:
        """Shrink."""
        self._scale(f, self._decay)

    def update(self, f: Expansion, margin: float, y: float) -> None:
        """Make room by lot, cap the coefficients, and add x with η·y, capped too."""
        if f.size == self.budget:
            self._scale(f, 1 / self.make_room(f))
            self._cap(f)
        size = min(self._step, self._limit)
        f.add(size * y)
        self._low, self._high = min(self._low, size), max(self._high, size)

    def make_room(self, f: Expansion) -> float:
        """Drop any example, each with the same probability; that of the others to stay."""
        f.drop(int(self._rng.integers(self.budget)))
        return (self.budget - 1) / self.budget

    def _scale(self, f: Expansion, factor: float) -> None:
        f.scale(factor)
        self._low, self._high = factor * self._low, factor * self._high

    def _cap(self, f: Expansion) -> None:
        """Once all coefficients are at the limit, one factor brings them back to it."""
        if self._low == self._high > self._limit:
            self._scale(f, self._limit / self._high)
        elif self._high > self._limit:
            f.clip_coefficients(self._limit)
            self._low, self._high = min(self._low, self._limit), self._limit
