"""The hypothesis `f = Σ_i a_i κ(s_i, ·)`, played one block of examples at a time.

When a block opens, two matrix products give all kernel values that it can need: `K = κ(S, X)` and
the block's own Gram matrix `G`. From then on every round's `y·f(x)` stands in `margins`, and stays
true through each change of f: adding example i adds a multiple of row i of `G` to the margins of
the rounds still to come, shrinking f multiplies them. Newcomers join the arrays in one go when the
block closes, or just before a halving ("settle"). Margins of rounds already played stay as they
were predicted.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points
from ahpatron_cli.core.rows import Floats, Integers


@cache
def _later_rounds(size: int) -> Floats:
    """1 above the diagonal, 0 elsewhere."""
    return np.triu(np.ones((size, size)), 1)


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
        self.margins: Floats = np.empty(0)
        """y·f(x) of the open block's rounds: as predicted up to the current one, then as of now."""
        self.points: Points | None = None
        """The settled examples of S; None before the first block."""
        self._coefficients: Floats = np.empty(0)
        self._gram: Floats | None = np.empty((0, 0)) if keep_gram else None
        self._settled = 0
        self._newcomers: list[int] = []
        self._weights: list[float] = []
        self._scale = 1.0  # coefficients in force are this times the stored ones

    # What the engine does -----------------------------------------------------------------------

    def open(self, block: Points, labels: Floats) -> None:
        """Take up a block: compute its kernel values and its margins."""
        if self.points is None:
            self.points = block.slice(0, 0)
        elif isinstance(self.points, DensePoints) and block.width > self.points.width:
            self.points.widen(block.width)  # the stream uses features that it did not use so far
        self._block, self._labels = block, labels
        self._K = self.kernel.between(self.points, block)
        self._G = self.kernel.between(block, block)
        self._diagonal: list[float] = self.kernel.diagonal(block).tolist()
        # Row i: what one unit of y_i·κ(x_i,·) adds to the margins of the rounds after i.
        effects = self._G * labels
        effects *= labels[:, None]
        effects *= _later_rounds(block.size)
        self._effects = list(effects)
        self._spare = np.empty(block.size)
        self.margins = self._coefficients[: self._settled] @ self._K
        self.margins *= labels

    def compress(self, origin: Floats | None) -> None:
        """Go on with sparse points: the stream has become too wide for dense ones."""
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    def turn_to(self, round_: int) -> float:
        """Make this round of the block the current one; its margin as predicted."""
        self._now = round_
        self._margin = self.margins.item(round_)
        return self._margin

    def close(self) -> None:
        """End the block: what it holds and the learner did not take is forgotten."""
        self.settle()

    # What learners do ---------------------------------------------------------------------------

    def add(self, step: float) -> None:
        """`f ← f + step·y·κ(x,·)` for the current example (x, y)."""
        now = self._now
        self._newcomers.append(now)
        self._weights.append(step / self._scale)
        self.size += 1
        self.norm_squared += step * (2.0 * self._margin + step * self._diagonal[now])
        np.multiply(self._effects[now], step, out=self._spare)
        self.margins += self._spare

    def scale(self, factor: float) -> None:
        """`f ← factor·f`."""
        self._scale *= factor
        self._margin *= factor
        self.norm_squared *= factor * factor
        self.margins[self._now + 1 :] *= factor

    def project(self, radius: float) -> None:
        """`f ← min(1, U/‖f‖)·f`: onto the ball of radius U."""
        if self.norm_squared > radius * radius:
            self.scale(radius / math.sqrt(self.norm_squared))
            self.norm_squared = radius * radius

    def check_norm(self, exact: float) -> None:
        """Note how far the tracked norm is from the one computed from the Gram matrix."""
        if exact > 0:
            self.norm_drift = max(self.norm_drift, abs(self.norm - exact) / exact)

    def settle(self) -> None:
        """Move the newcomers into the arrays, and the pending scale into the coefficients."""
        new = np.array(self._newcomers, dtype=np.int64)
        old, size = self._settled, self.size
        if len(new):
            assert self.points is not None
            self.points.append(self._block, new)
            self._grow(size)
            # The sign of a newcomer's coefficient is its label's: `add` takes steps along y·κ.
            self._coefficients[old:size] = self._labels[new] * self._weights
            if self._gram is not None:
                columns = self._K.take(new, axis=1)
                self._gram[:old, old:size] = columns
                self._gram[old:size, :old] = columns.T
                self._gram[old:size, old:size] = self._G[new].take(new, axis=1)
            self._settled = size
            self._newcomers.clear()
            self._weights.clear()
        if self._scale != 1.0:
            self._coefficients[:size] *= self._scale
            self._scale = 1.0
        self._joined = new

    def restrict(self, kept: Integers, coefficients: Floats, gram: Floats, norm: float) -> None:
        """Replace a settled f by one on the `kept` examples, given its Gram matrix and norm.

        The margins of the current and the coming rounds are evaluated anew.
        """
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
        now = self._now
        margins = coefficients @ self._K[:, now:]
        margins *= self._labels[now:]
        self._margin = margins.item(0)
        self.margins[now + 1 :] = margins[1:]

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

    def _grow(self, size: int) -> None:
        """Room for `size` coefficients, doubled when it runs out."""
        if size <= len(self._coefficients):
            return
        room = max(size, 2 * len(self._coefficients), 64)
        coefficients = np.zeros(room)
        coefficients[: self._settled] = self._coefficients[: self._settled]
        self._coefficients = coefficients
        if self._gram is not None:
            gram = np.zeros((room, room))
            gram[: self._settled, : self._settled] = self.gram
            self._gram = gram
