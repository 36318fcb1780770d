"""An expansion that fits its coefficients by recursive least squares in the span of S."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ddot, dspmv, dspr

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.state import Stored


class LeastSquaresExpansion(SpanExpansion):
    """`f = Σ_i a_i κ(s_i,·)` with `P = (AᵀA)^{-1}`, row t of A being `d_t = K^{-1} κ(S, x_t)`.

    Columns that A got later are 0 in the rows before. Of P one triangle is kept, packed column by
    column: what S gains goes to the end.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._P: Floats = np.zeros(64)

    def expand(self, error: float) -> None:
        """Let the current example join, so that f(x) = y, and f stays as it is at S.

        d and δ² are those that `projection` gave last, and `error` is y - f(x).
        """
        step = error / self._squared
        self._shift(-step * self._d)
        self.join(step)
        self.norm_squared = math.nan
        entries = _entries(self.size)
        if entries > len(self._P):
            self._P = np.concatenate([self._P, np.zeros(2 * entries - len(self._P))])
        self._P[entries - self.size : entries - 1] = 0.0
        self._P[entries - 1] = 1.0

    def refit(self, error: float) -> None:
        """One step of recursive least squares for the current example, which stays outside S."""
        if not self.size:
            return
        Pd = dspmv(self.size, 1.0, self._P, self._d)
        scale = 1 / (1 + ddot(self._d, Pd))
        self._P = dspr(self.size, -scale, Pd, self._P, overwrite_ap=1)
        self._shift((error * scale) * self.inverse.times(Pd))

    def _shift(self, by: Floats) -> None:
        """`a ← a + by`, for a settled f."""
        if self._settled:
            scaled = by / self._scale
            self.coefficients[:] += scaled
            self._set_base(self._base + scaled @ self._K)
            self.value(self._now)
            self.norm_squared = math.nan

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        entries = _entries(self.size)
        self._P = stored.array("covariance", (entries,), self._P[:entries])


def _entries(size: int) -> int:
    return size * (size + 1) // 2
