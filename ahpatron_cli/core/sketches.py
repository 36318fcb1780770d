"""Feature maps from two sketches of a kernel matrix, and f on them: for SkeGD and FORKS.

Examples E are admitted one after another; K is their kernel matrix. The count sketch S_p adds them
up in s_p columns: each example has a random column and a random sign. The sampling sketch S_m takes
s_m of the first examples, x̃. With `Φ_pp = S_pᵀ K S_p` and `Φ_pm = S_pᵀ K S_m`

    K ≈ (K S_m) Z Zᵀ (K S_m)ᵀ,    Z = Φ_pm^+ V Σ^{1/2},    φ(x) = Zᵀ κ(x̃, x),

where V Σ Vᵀ are k leading eigenvectors and eigenvalues of Φ_pp. Another example changes one row and
one column of Φ_pp, and one row of Φ_pm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.feature_map import KernelFeatures, LinearModel, leading
from ahpatron_cli.core.numerics import daxpy, ddot
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import StateReader

INVERTED = 1e-3
"""SkeGD: singular values below this share of the largest are ignored, or w would grow."""
SMALLEST_INVERTED = 1e-8
"""FORKS: singular values up to this are ignored."""


@dataclass(frozen=True)
class SketchSizes:
    """Sizes of sketches: s_p columns of the count sketch, s_m examples sampled, rank k."""

    columns: int
    samples: int
    rank: int


def check_sizes(budget: int, sizes: SketchSizes) -> None:
    """Raise ParameterError if more is asked for than there is."""
    highest_rank = min(sizes.columns, sizes.samples)
    limits = {"samples": budget, "rank": highest_rank}
    for name, limit in limits.items():
        value = getattr(sizes, name)
        if value > limit:
            message = f"{name} must be at most {limit} here, got {value}"
            raise ParameterError(message, name)


class Sketches(KernelFeatures, ABC):
    """`φ(x) = Zᵀκ(x̃, x)` with Z from sketches of the kernel matrix of the admitted examples.

    Random numbers are drawn in this order: columns of S, their signs (0: -1), the sample; then a
    column and a sign for each example that is added.
    """

    state_fields: ClassVar[Any] = {
        **KernelFeatures.state_fields,
        "admitted": Points,
        "columns": "#a",
        "signs": "a",
        "pp": "pp",
        "pm": "ps",
        "_rank": int,
    }

    def __init__(self, f: Expansion, sizes: SketchSizes, rng: np.random.Generator) -> None:
        assert f.points is not None
        size = f.size
        K = f.gram()
        columns: Integers = rng.integers(sizes.columns, size=size)
        coins = rng.integers(2, size=size)
        sampled = self._sample(size, sizes.samples, rng)
        S_p = np.zeros((size, sizes.columns))
        signs = 2.0 * coins - 1.0
        rows = np.arange(size)
        S_p[rows, columns] = signs
        K_m = K[:, sampled]  # K·S_m
        self.rng = rng
        self.sampled = sampled
        self.columns = columns
        self.signs = signs
        self.pp = S_p.T @ K @ S_p
        self.pm = S_p.T @ K_m
        self.admitted = f.points.subset(f.support)
        self._rank = sizes.rank
        sample = self.admitted.subset(sampled)
        super().__init__(f.kernel, sample, self._matrix())

    def check(self, state: StateReader) -> None:
        lowest = self.columns.min(initial=0)
        highest = self.columns.max(initial=0)
        is_legal = lowest >= 0 and highest < len(self.pp)
        if not is_legal:
            raise state.refusal("columns", "has an invalid value")
        if self._rank < 1:
            raise state.refusal("rank", "must be at least 1")

    @property
    def size(self) -> int:  # type: ignore[override]  # computed
        return int(self.admitted.size)

    def kernel_values(self, block: Points) -> Floats:
        """κ(x̃, x), one row per example of the block."""
        points = self.points.widened(block.width)
        return self.kernel.between(block, points)

    def add_to_sketches(self, x: Points, at_samples: Floats) -> tuple[int, float]:
        """Add one example, with κ(x̃, x), to Φ_pp and Φ_pm; its column and its sign."""
        length = len(self.pp)
        column = int(self.rng.integers(length))
        coin = int(self.rng.integers(2))
        sign = 2.0 * coin - 1.0
        self.admitted = self.admitted.widened(x.width)
        (k,) = self.kernel.between(x, self.admitted)
        signed_k = self.signs * k
        across = np.bincount(self.columns, signed_k, length)  # S_pᵀk
        signed = sign * across
        self.pp[column] += signed
        self.pp[:, column] += signed
        (square,) = self.kernel.diagonal(x)
        self.pp[column, column] += square
        self.pm[column] += sign * at_samples
        return column, sign

    @staticmethod
    @abstractmethod
    def _sample(size: int, samples: int, rng: np.random.Generator) -> Integers:
        """Indices of the examples x̃ in S."""

    @abstractmethod
    def _matrix(self) -> Floats:
        """Z."""


class GrowingSketches(Sketches):
    """The sketches of SkeGD: each example that is added is admitted to E, and w is carried over.

    `Z = Φ_pm^+ V_k Σ_k^{1/2}` with the k largest eigenvalues Σ_k of Φ_pp.
    """

    @staticmethod
    def _sample(size: int, samples: int, rng: np.random.Generator) -> Integers:
        sampled: Integers = rng.choice(size, size=samples, replace=False)
        sampled.sort()
        return sampled

    def least_squares(self, f: Expansion) -> Floats:
        """The w with which w·φ is closest to f at S."""
        K = f.gram()
        samples = K[:, self.sampled]
        z = samples @ self.Z
        return _least_squares(z, K @ f.coefficients)

    def add_example(self, x: Points, at_samples: Floats, w: Floats) -> Floats:
        """Admit x, with κ(x̃, x); return the w that keeps f on the span of x̃."""
        column, sign = self.add_to_sketches(x, at_samples)
        self.columns = np.append(self.columns, column)
        self.signs = np.append(self.signs, sign)
        self.admitted.extend(x)
        before = self.Z
        self.Z = self._matrix()
        return _least_squares(self.Z, before @ w)

    def _matrix(self) -> Floats:
        eigenvalues, V = leading(self.pp, self._rank)
        scaled = V * np.sqrt(eigenvalues)
        # Φ_pm^+ from the eigenvectors of Φ_pmᵀΦ_pm: half the time of a singular value
        # decomposition, and accurate enough for singular values above 1e-3 of the largest
        pm = self.pm
        squares, right = np.linalg.eigh(pm.T @ pm)
        smallest = INVERTED**2 * squares[-1]
        inverted = squares > smallest
        basis = right[:, inverted]
        images = pm @ basis
        products = images.T @ scaled
        products /= squares[inverted, None]
        Z: Floats = basis @ products
        return Z


def _least_squares(Z: Floats, values: Floats) -> Floats:
    """The shortest w with the smallest `‖Zw - values‖`."""
    w, *_ = np.linalg.lstsq(Z, values, rcond=INVERTED)
    return np.asarray(w)


class FixedSketches(Sketches):
    """The sketches of FORKS: E stays S, and examples that are added change Φ_pp and Φ_pm only.

    `Z = Φ_pm^+ V Σ^{1/2}`, where Σ are the k eigenvalues of Φ_pp with the largest absolute values,
    without their signs.
    """

    @staticmethod
    def _sample(size: int, samples: int, rng: np.random.Generator) -> Integers:
        return rng.permutation(size)[:samples]

    def add_example(self, x: Points, at_samples: Floats) -> None:
        """Change Φ_pp, Φ_pm and Z by x, with κ(x̃, x)."""
        self.add_to_sketches(x, at_samples)
        self.Z = np.ascontiguousarray(self._matrix())

    def _matrix(self) -> Floats:
        eigenvalues, vectors = np.linalg.eigh(self.pp)
        sizes = np.abs(eigenvalues)
        order = np.argsort(-sizes, kind="stable")
        largest = order[: self._rank]
        roots = np.sqrt(sizes[largest])
        scaled = vectors[:, largest] * roots
        left, singular, right = np.linalg.svd(self.pm, full_matrices=False)
        inverted = singular > SMALLEST_INVERTED
        images = left[:, inverted]
        products = images.T @ scaled
        products /= singular[inverted, None]
        Z: Floats = right[inverted].T @ products
        return Z


class SketchedModel(LinearModel):
    """`f(x) = w·φ(x)` with features from sketches, which may change within a block."""

    state_fields: ClassVar[Any] = {**LinearModel.state_fields, "features": GrowingSketches}
    features: GrowingSketches | FixedSketches

    def open(self, block: Points, start: int = 0) -> None:
        self._kernel_values = self.features.kernel_values(block)
        super().open(block, start)

    def features_of(self, block: Points) -> Floats:
        values: Floats = self._kernel_values @ self.features.Z
        return values

    @property
    def x(self) -> Points:
        """The current example."""
        number = np.array([self.t])
        return self.block.subset(number)

    @property
    def at_samples(self) -> Floats:
        """κ(x̃, x) of the current example x."""
        row: Floats = self._kernel_values[self.t]
        return row

    def refit(self, w: Floats) -> None:
        """Set w after the feature map has changed, from this round on."""
        self.w = w
        self.values.w = w
        coming = self._kernel_values[self.t :]
        self._z[self.t :] = coming @ self.features.Z

    def close(self) -> None:
        super().close()
        self._kernel_values = np.empty((0, 0))


class NewtonModel(SketchedModel):
    """`f(x) = w·φ(x)` that learns by Newton steps: G is the inverse of a sum of squared gradients.

    Parameters
    ----------
    ridge : float
        ρ; at first, and after a change of the features, G = I/ρ.
    """

    state_fields: ClassVar[Any] = {
        **LinearModel.state_fields,
        "features": FixedSketches,
        "G": "ww",
    }
    features: FixedSketches

    def __init__(self, features: FixedSketches, w: Floats, ridge: float) -> None:
        super().__init__(features, w)
        self.G = np.eye(len(w)) / ridge

    @property
    def z(self) -> Floats:
        """φ(x) of the current example x."""
        row: Floats = self._z[self.t]
        return row

    def restart(self, ridge: float) -> None:
        """`w = 0`, `G = I/ρ` for features that have changed."""
        _, length = self.features.Z.shape
        self.G = np.eye(length) / ridge
        self.refit(np.zeros(length))

    def newton(self, z: Floats, gradient: float, guard: float) -> None:
        """A step for the gradient `-gradient·z` of the loss, then f(x) is clipped to [-1, 1].

        `guard` is added to the divisor of the clipping.
        """
        u = self.G @ z
        curvature = ddot(z, u)
        daxpy(u, self.w, a=gradient)
        value = ddot(self.w, z)
        excess = abs(value) - 1.0
        if excess > 0.0:
            back = -np.copysign(excess, value)
            back /= curvature + guard
            daxpy(u, self.w, a=back)
        square = gradient * gradient
        factor = square / (1.0 + square * curvature)
        change = np.multiply.outer(factor * u, u)
        self.G -= change
