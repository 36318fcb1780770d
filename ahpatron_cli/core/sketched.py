"""The feature map of SkeGD: sketches of the kernel matrix of a set that grows."""

from __future__ import annotations

import numpy as np

from ahpatron_cli.core.features import Anchors, KernelMap, leading, no_anchors
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stored

SOLID = 1e-3
"""Singular values below this share of the largest are not inverted, lest w grow at every fit."""


class Sketches(KernelMap):
    """The feature map φ, and the sketches Φ_pp and Φ_pm that it comes from.

    Lots are drawn in this order: the columns of S, their signs (0: -1), the sampled examples; then
    a column and a sign for each example admitted.
    """

    def __init__(
        self,
        admitted: Anchors,
        gram: Floats,
        sketch: int,
        samples: int,
        rank: int,
        rng: np.random.Generator,
    ) -> None:
        self._rng, self._sketch, self._rank = rng, sketch, rank
        self.admitted = admitted
        self.columns = rng.integers(self._sketch, size=len(gram))
        self.signs = 2.0 * rng.integers(2, size=len(gram)) - 1.0
        self.sampled = np.sort(rng.choice(len(gram), size=samples, replace=False))
        S_p = np.zeros((len(gram), self._sketch))
        S_p[np.arange(len(gram)), self.columns] = self.signs
        self.pp: Floats = S_p.T @ gram @ S_p
        self.pm: Floats = S_p.T @ gram[:, self.sampled]
        points = admitted.points.subset(self.sampled)
        super().__init__(Anchors(admitted.kernel, points), self._find_matrix())

    @classmethod
    def blank(cls, kernel: Kernel, sketch: int, rank: int, rng: np.random.Generator) -> Sketches:
        """Sketches whose state is still to come."""
        blank = cls.__new__(cls)
        blank._rng, blank._sketch, blank._rank = rng, sketch, rank
        blank.admitted, blank.anchors = no_anchors(kernel), no_anchors(kernel)
        blank.columns = blank.sampled = np.empty(0, dtype=np.int64)
        blank.signs = blank.pp = blank.pm = blank.matrix = np.empty((0, 0))
        return blank

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        self.admitted.exchange(stored, "admitted")
        size, samples = self.admitted.points.size, self.anchors.points.size
        self.columns = stored.array("columns", (size,), self.columns, np.int64)
        self.signs = stored.array("signs", (size,), self.signs)
        self.sampled = stored.array("sampled", (samples,), self.sampled, np.int64)
        self.pp = stored.array("pp", (self._sketch, self._sketch), self.pp)
        self.pm = stored.array("pm", (self._sketch, samples), self.pm)
        if size and not 0 <= self.columns.min() <= self.columns.max() < self._sketch:
            raise stored.refuse("columns", "go beyond the sketch")

    def admit(self, x: Points) -> None:
        """E gets one example more."""
        column = int(self._rng.integers(self._sketch))
        sign = 2.0 * int(self._rng.integers(2)) - 1.0
        k = self.admitted.columns(x)[0]
        across = np.bincount(self.columns, weights=self.signs * k, minlength=self._sketch)  # S_pᵀk
        self.pp[column] += sign * across
        self.pp[:, column] += sign * across
        self.pp[column, column] += self.admitted.kernel.diagonal(x)[0]
        self.pm[column] += sign * self.anchors.columns(x)[0]
        self.columns = np.append(self.columns, column)
        self.signs = np.append(self.signs, sign)
        self.admitted.points = self.admitted.points.widened(x.width)
        self.admitted.points.append(x, np.zeros(1, dtype=np.int64))
        self.matrix = self._find_matrix()

    def _find_matrix(self) -> Floats:
        values, vectors = leading(self.pp, self._rank)
        return np.asarray(np.linalg.pinv(self.pm, rcond=SOLID) @ (vectors * np.sqrt(values)))

    def compress(self, origin: Floats | None, weights: Floats) -> None:
        super().compress(origin, weights)
        self.admitted.compress(origin)


def fit(matrix: Floats, values: Floats) -> Floats:
    """`matrix^+ values`: least squares."""
    return np.asarray(np.linalg.lstsq(matrix, values, rcond=SOLID)[0])
