"""The hypothesis `F = f + λ·h`: an expansion and a hint, the mean of the last rounds."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import ddot

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.state import Stored


class HintedExpansion(SpanExpansion):
    """`F = f + λ·h`, where the hint h is the mean of `y_τ κ(x_τ,·)` over the last M rounds.

    The M rounds before a block are opened along with it, placed after its own: all kernel values
    that the hints of the block need are then in K and G.
    """

    def __init__(self, kernel: Kernel, memory: int, most: int, weight: float) -> None:
        """`memory` is M; K^{-1} is known until S has `most` examples; `weight` is the first λ."""
        super().__init__(kernel, most)
        self.hint_weight = weight
        """λ."""
        self._memory = memory
        self._recent: Points | None = None
        self._recent_labels: Floats = np.empty(0)

    def open(self, block: Points, labels: Floats) -> None:
        self._recent = (self._recent or block.slice(0, 0)).widened(block.width)
        now, before = np.arange(block.size), np.arange(self._recent.size)
        together = block.subset(now)
        together.append(self._recent, before)
        super().open(together, labels)
        rounds = np.concatenate([now, before - len(before)])  # the block begins with round 0
        unplayed = np.zeros(block.size - len(labels))  # what a short block is filled up with
        self._labels = np.concatenate([labels, unplayed, self._recent_labels])
        self._played = len(labels)
        age = now - rounds[:, None]
        seen = (age >= 1) & (age <= self._memory)  # column t: the rounds that round t looks back to
        self._shares = seen * self._labels[:, None] / np.maximum(seen.sum(axis=0), 1)
        self._hints: Floats = (self._shares * self._G[:, now]).sum(axis=0)

    def values(self) -> Floats:
        return super().values()[: len(self._hints)] + self.hint_weight * self._hints

    def value(self, round_: int) -> float:
        return super().value(round_) + self.hint_weight * self._hints.item(round_)

    def close(self) -> None:
        super().close()
        before = np.arange(len(self._hints), self._block.size)
        last = np.concatenate([before, np.arange(self._played)])[-self._memory :]
        self._recent, self._recent_labels = self._block.subset(last), self._labels[last]

    def at(self, points: Points) -> Floats:
        values = super().at(points)
        if self._recent is None:
            return values
        near = self.kernel.between(self._recent.widened(points.width), points)
        return values + self.hint_weight * (self._recent_labels @ near) / self._recent.size

    def compress(self, origin: Floats | None) -> None:
        super().compress(origin)
        if isinstance(self._recent, DensePoints):
            self._recent = self._recent.to_sparse(origin)

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        self.hint_weight = stored.number("hint_weight", self.hint_weight)
        self._recent = exchange_points(stored, "recent", self._recent)
        size = 0 if self._recent is None else self._recent.size
        self._recent_labels = stored.array("recent_labels", (size,), self._recent_labels)
        if size > self._memory:
            raise stored.refuse("recent", "holds more rounds than the memory")

    def hint(self) -> float:
        """h(x) of the current example."""
        return self._hints.item(self._now)

    def hint_of(self, d: Floats) -> float:
        """The inner product of h and `Σ d_i κ(s_i,·)`, for a settled f."""
        return ddot(d @ self._K, self._shares[:, self._now]) if len(d) else 0.0
