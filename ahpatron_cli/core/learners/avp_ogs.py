"""AVP-OGS: AVP with online greedy sparsification."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Self

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.ahpatron import AVP
from ahpatron_cli.core.learners.base import (
    Classes,
    Learner,
    check_support,
    horizon_parameter,
    max_support_parameter,
    required_rounds,
)
from ahpatron_cli.core.numerics import NEAR_SPAN, under
from ahpatron_cli.core.parameters import as_in, real
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.tally import mistaken


@dataclass
class AvpOgs(Learner):
    """AVP that stays in the span of S if x is near it (Li and Liao 2024).

    With k = κ(S, x), K the Gram matrix of S, λ = c·U and Λ = 1 at first, if `y·f(x) < 1 - ε`:

        d = K^{-1} k,   δ² = κ(x,x) - k·d     (the projection of κ(x,·) onto the span; its distance)
        δ² <= α:  on a mistake Λ ← Λ + κ(x,x) - δ²,  λ ← c·U/√(U² + Λ);   a ← a + λ·y·d
        else:     on a mistake Λ ← Λ + κ(x,x),       λ ← c·U/√(U² + Λ);   add x with λ·y
        then:     f ← Proj_U(f)                       (projects onto the ball of radius U).

    The first example is added with λ·y, and changes neither λ nor Λ; so the steps up to the next
    mistake are c·U, √(U² + Λ) times as long as the later ones. α = 100/T, so S keeps one example if
    T <= 100. No budget; an update costs O(|S|²).
    Symbols: ε `epsilon`, U `radius`, c `gain`, α `tolerance`, T `horizon`.

    Deviations
    ----------
    This follows the published code; the manuscript was not compared. The code counts the first
    round as a mistake for either label; here sign(0) = +1. It has the Gaussian kernel only, and 1
    in place of κ(x,x). It does not project f in the first round, which matters for c > 1. Here, an
    example in the span up to rounding (δ² below 1e-10) is never added.

    Examples
    --------
    >>> from ahpatron_cli.core import AvpOgs, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(AvpOgs(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    132
    """

    name = "avp-ogs"
    title = "AVP-OGS: AVP that projects x onto the span of S if near (Li and Liao 2024)"
    references = ("li2024",)
    grid = ("tolerance=log:0.001:0.1:3", "epsilon=0.5:0.9:0.1")

    epsilon: float = as_in(AVP, "epsilon", 0.6)
    radius: float = as_in(AVP, "radius", 10.0, infinite=False)
    gain: float = real("c", "the first step is c·U", default=0.5, over=0)
    tolerance: float | None = real(
        "α",
        "x is added if its squared distance to the span is larger",
        over=0,
        optional=True,
        formula="100/T",
    )
    max_support: int | None = max_support_parameter()
    horizon: int | None = horizon_parameter()

    step = 0.0  # λ
    mistaken_squares = 1.0  # Λ
    state_fields = ("step", "mistaken_squares")

    def check(self, state: StateReader) -> None:
        if not (self.step > 0.0 and self.mistaken_squares >= 1.0):
            raise state.refusal("mistaken_squares", "has an invalid value")

    def resolved(self, horizon: int | None) -> Self:
        """A copy with α = 100/T, T the given horizon or the length of the stream."""
        T = self.horizon or horizon
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = 100.0 / required_rounds(T, self.name, instead="tolerance")
        return dataclasses.replace(self, horizon=T, tolerance=tolerance)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> SpanExpansion:
        assert self.tolerance is not None
        self.update_below = under(1.0 - self.epsilon)
        self.step = self.gain * self.radius
        return SpanExpansion(kernel, gram=self.tolerance < NEAR_SPAN)

    def update(self, f: SpanExpansion, y: float, margin: float) -> None:
        assert self.tolerance is not None
        first = f.size == 0
        d, residual = f.projection()  # d and δ²
        added = residual > self.tolerance
        if first:
            added = residual > 0
        if not first and mistaken(y, margin):
            square = f.diagonal[f.t]  # ‖κ(x,·)‖², or that of its projection
            if not added:
                square -= residual
            self.mistaken_squares += square
            divisor = math.sqrt(self.radius**2 + self.mistaken_squares)  # √(U² + Λ)
            self.step = self.gain * self.radius / divisor
        if added:
            check_support(f.size + 1, self.max_support)
            f.add_example(self.step * y, d, residual)
        else:
            f.add_projection(self.step * y, d, residual)
        f.project(self.radius)
