"""The hypothesis `f = Σ_i a_i κ(s_i, ·)`, played one block of examples at a time.

When a block opens, two matrix products give all kernel values that it can need: `K = κ(S, X)` and
the block's own Gram matrix `G`. Within the block

    f(x_i) = c · (base_i + b · G_i),      base = a·K,

where b holds the coefficients of the block's newcomers and c is a lazy scale: reading f is one dot
product, adding an example writes one number into b, shrinking f multiplies c. Newcomers join the
arrays in one go when the block closes, or just before a halving ("settle").
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ddot  # a third of the overhead of ndarray.dot

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points
from ahpatron_cli.core.rows import Floats, Integers

SMALLEST_SCALE = 1e-100


class Expansion:
    """f, its active set S and its norm. Learners call `add`, `scale`, `project` and `restrict`."""

    def __init__(self, kernel: Kernel, *, keep_gram: bool) -> None:
        self.kernel = kernel
        self.size = 0
        """|S|, newcomers of the open block included."""
        self.norm_squared = 0.0
        """‖f‖², tracked: `‖f + cκ(x,·)‖² = ‖f‖² + 2c·f(x) + c²κ(x,x)`."""
        self.norm_drift = 0.0
        """Largest relative difference seen between the tracked norm and the exact one."""
        self.points: Points | None = None
        """The settled examples of S; None before the first block."""
        self._coefficients: Floats = np.empty(0)
        self._gram: Floats | None = np.empty((0, 0)) if keep_gram else None
        self._settled = 0
        self._scale = 1.0

    # What the engine does -----------------------------------------------------------------------

    def open(self, block: Points) -> None:
        """Take up a block: compute its kernel values, and f at its examples."""
        if self.points is None:
            self.points = block.slice(0, 0)
        elif isinstance(self.points, DensePoints) and block.width > self.points.width:
            self.points.widen(block.width)  # the stream uses features that it did not use so far
        self._block = block
        self._K = self.kernel.between(self.points, block)
        self._G = self.kernel.between(block, block)
        self._rows = list(self._G)
        self._diagonal: list[float] = self.kernel.diagonal(block).tolist()
        self._pending = np.zeros(block.size)  # b
        self._newcomers: list[int] = []
        self._set_base(self.coefficients @ self._K)

    def _set_base(self, base: Floats) -> None:
        self._base = base
        self._base_list: list[float] = base.tolist()

    def value(self, round_: int) -> float:
        """f at the block's example of this round, which becomes the current one."""
        value = self._base_list[round_]
        if self._newcomers:
            value += ddot(self._pending, self._rows[round_])
        value *= self._scale
        self._now, self._value = round_, value
        return value

    def values(self) -> Floats:
        """f at all examples of a block that was just opened."""
        return self._base

    def close(self) -> None:
        """End the block: what it holds and the learner did not take is forgotten."""
        self.settle()

    def compress(self, origin: Floats | None) -> None:
        """Go on with sparse points: the stream has become too wide for dense ones."""
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    # What learners do ---------------------------------------------------------------------------

    def add(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the current example x."""
        now = self._now
        self._newcomers.append(now)
        self._pending[now] = coefficient / self._scale
        self.size += 1
        self.norm_squared += coefficient * (2.0 * self._value + coefficient * self._diagonal[now])

    def scale(self, factor: float) -> None:
        """`f ← factor·f`."""
        self._scale *= factor
        self._value *= factor
        self.norm_squared *= factor * factor
        if self._scale < SMALLEST_SCALE:
            self._fold_scale()

    def project(self, radius: float) -> None:
        """`f ← min(1, U/‖f‖)·f`: onto the ball of radius U."""
        if self.norm_squared > radius * radius:
            self.scale(radius / math.sqrt(self.norm_squared))
            self.norm_squared = radius * radius

    def settle(self) -> None:
        """Move the newcomers into the arrays, and the lazy scale into the coefficients."""
        new = np.array(self._newcomers, dtype=np.int64)
        old, size = self._settled, self.size
        if len(new):
            assert self.points is not None
            self.points.append(self._block, new)
            self._grow(size)
            self._coefficients[old:size] = self._pending[new]
            if self._gram is not None:
                columns = self._K.take(new, axis=1)
                self._gram[:old, old:size] = columns
                self._gram[old:size, :old] = columns.T
                self._gram[old:size, old:size] = self._G[new].take(new, axis=1)
            self._settled = size
        if self._scale != 1.0:
            self._coefficients[:size] *= self._scale
            self._scale = 1.0
        self._joined = new

    def restrict(self, kept: Integers, coefficients: Floats, gram: Floats, norm: float) -> None:
        """Replace a settled f by one on the `kept` examples, given its Gram matrix and norm."""
        assert self.points is not None
        assert self._gram is not None
        size = len(kept)
        self.points.keep(kept)
        self._coefficients[:size] = coefficients
        self._gram[:size, :size] = gram
        self.size = self._settled = size
        self.norm_squared = norm * norm
        # κ(S, X) of the kept ones: rows of K, and rows of G for those that joined in this block
        self._K = np.concatenate([self._K, self._G[self._joined]])[kept]
        self._set_base(coefficients @ self._K)
        self._pending[:] = 0.0
        self._newcomers.clear()
        self.value(self._now)

    def check_norm(self, exact: float) -> None:
        """Note how far the tracked norm is from the one computed from the Gram matrix."""
        if exact > 0:
            self.norm_drift = max(self.norm_drift, abs(self.norm - exact) / exact)

    # What anyone may look at --------------------------------------------------------------------

    @property
    def norm(self) -> float:
        """‖f‖, tracked."""
        return math.sqrt(max(self.norm_squared, 0.0))

    @property
    def coefficients(self) -> Floats:
        """The settled coefficients a."""
        return self._coefficients[: self._settled]

    @property
    def gram(self) -> Floats:
        """K(S, S) of the settled examples."""
        assert self._gram is not None
        return self._gram[: self._settled, : self._settled]

    # Housekeeping -------------------------------------------------------------------------------

    def _fold_scale(self) -> None:
        """Apply the lazy scale before it underflows."""
        self._coefficients[: self._settled] *= self._scale
        self._pending *= self._scale
        self._set_base(self._base * self._scale)
        self._scale = 1.0

    def _grow(self, size: int) -> None:
        """Room for `size` coefficients, doubled when it runs out."""
        if size <= len(self._coefficients):
            return
        room = max(size, 2 * len(self._coefficients), 64)
        coefficients = np.zeros(room)
        coefficients[: self._settled] = self.coefficients
        if self._gram is not None:
            gram = np.zeros((room, room))
            gram[: self._settled, : self._settled] = self.gram
            self._gram = gram
        self._coefficients = coefficients
