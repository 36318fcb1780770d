"""An expansion whose coefficients are capped: bounds on all |a_i| save looking at each."""

from __future__ import annotations

import math

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.state import Stored


class CappedExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)` with `low <= |a_i| <= high` known for all i."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._low, self._high = math.inf, 0.0

    @property
    def all_equal(self) -> bool:
        """Whether all |a_i| are known to be equal."""
        return self._low == self._high

    def add(self, coefficient: float) -> None:
        super().add(coefficient)
        size = abs(coefficient)
        if size < self._low:
            self._low = size
        if size > self._high:
            self._high = size

    def scale(self, factor: float) -> None:
        super().scale(factor)
        self._low *= factor
        self._high *= factor

    def add_and_cap(self, coefficient: float, limit: float) -> None:
        """`f ← f + coefficient·κ(x,·)`; then bring every |a_i| that is above `limit` down to it."""
        if self._high > limit:  # first, because those that are all equal take one factor
            self.clip_coefficients(limit)
        if abs(coefficient) > limit:
            coefficient = math.copysign(limit, coefficient)
        self.add(coefficient)

    def clip_coefficients(self, limit: float) -> None:
        if self._high <= limit:
            return
        if self._low == self._high:
            self.scale(limit / self._high)
        else:
            super().clip_coefficients(limit)
            self._low, self._high = min(self._low, limit), limit

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        self._low = stored.number("low", self._low, infinite=True)
        self._high = stored.number("high", self._high)
