"""Hypotheses `f(x) = w·z(x)` with explicit feature maps z, computed block by block."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.expansion import Expansion, Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.numerics import daxpy, ddot
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Stateful, StateReader

INVERTED = 1e-3
"""Singular values below this share of the largest are ignored, or w would grow at every fit."""

KEPT = 2**21
"""Numbers of random frequencies (16 MB) that are stored for blocks to come."""

NOTCHES = 2**14  # angles on the circle whose cosines and sines are tabulated


class Features(Stateful):
    """Base of feature maps z: called with a block of examples, returns z(x) of each."""

    size: int | None = None  # number of examples kept; None if the map needs none

    @property
    def length(self) -> int | None:
        """Number of entries of z(x), with which the length of w is compared; None: unknown."""
        return None

    def __call__(self, block: Points) -> Floats:
        """Feature vectors z(x), one row per example of the block."""
        raise NotImplementedError


class LinearModel(Hypothesis):
    """Hypothesis `f(x) = w·z(x)` with weights w and a feature map z."""

    kept: ClassVar[Any] = {"features": Features, "w": "w"}

    def __init__(self, features: Features, w: Floats) -> None:
        self.features = features
        self.w = w

    def check(self, state: StateReader) -> None:
        if self.features.length not in (None, len(self.w)):
            raise state.refusal("w", "is not as long as the feature vectors")

    @property
    def size(self) -> int | None:  # type: ignore[override]  # computed
        return self.features.size

    def open(self, block: Points) -> None:
        self.block = block
        self.values = self
        z = np.ascontiguousarray(self.features(block))
        self._z = list(z)

    def __getitem__(self, t: int) -> float:
        """f(x) of round t."""
        return ddot(self.w, self._z[t])  # type: ignore[no-any-return]  # a float

    def add(self, c: float) -> None:
        """`w ← w + c·z(x)` for the current example x."""
        daxpy(self._z[self.t], self.w, a=c)

    def refit(self, w: Floats) -> None:
        """Set w after the feature map has changed, from this round on."""
        self.w = w
        coming = self.block.slice(self.t, self.block.size)
        self._z[self.t :] = self.features(coming)

    def close(self) -> None:
        self._z = []

    def at(self, points: Points) -> Floats:
        values: Floats = self.features(points) @ self.w
        return values

    @property
    def norm(self) -> float:
        return math.sqrt(ddot(self.w, self.w))


class FourierFeatures(Features):
    """Random Fourier features `z(x) = [cos(Ux), sin(Ux)]/√D`, D frequencies u ~ N(0, I).

    `E[z(x)·z(x')] = exp(-‖x - x'‖²/2)`, points in units of σ. Each column of the data has its own
    random generator, seeded by one random number and the column's index: U depends neither on the
    width of the data nor on the order in which columns appear; only columns in use are drawn. Those
    of the last block and of the `KEPT` most recent numbers are stored, others are drawn again.
    """

    kept: ClassVar[Any] = {"count": int, "_seed": int}
    _columns = np.array([-1])  # columns of the last block; _table: their frequencies
    _table: Floats = np.empty((0, 0))
    _angles: Floats = np.empty((0, 0))

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.count = count
        self._seed = int(rng.integers(2**63))

    @property
    def length(self) -> int:
        return 2 * self.count

    def __call__(self, block: Points) -> Floats:
        angles = np.empty((block.size, self.count))
        angles = block.times(self.frequencies, angles)
        z = np.empty((block.size, 2 * self.count))
        length = 1 / math.sqrt(self.count)
        rows = max(2**15 // self.count, 1)  # as many as fit the CPU cache
        for start in range(0, block.size, rows):
            part = slice(start, start + rows)
            cos_sin(angles[part], length, z[part])
        return z

    def frequencies(self, columns: Integers) -> Floats:
        """Frequencies of these columns, array of shape (columns, D)."""
        if not np.array_equal(columns, self._columns):
            drawn = [self._drawn_for(column) for column in columns.tolist()]
            self._columns = columns
            self._table = np.array(drawn).reshape(-1, self.count)
            most = max(KEPT // self.count, 1)
            while len(self._recent) > most:
                self._recent.popitem(last=False)
        return self._table

    def _drawn_for(self, column: int) -> Floats:
        """Frequencies of a column: drawn, unless they are among the recent ones."""
        drawn = self._recent.get(column)
        if drawn is not None:
            self._recent.move_to_end(column)
            return drawn
        own = np.random.default_rng((self._seed, column))
        drawn = own.standard_normal(self.count)
        self._recent[column] = drawn
        return drawn

    @functools.cached_property
    def _recent(self) -> OrderedDict[int, Floats]:
        """Frequencies of columns of the last blocks, the most recent last."""
        return OrderedDict()


def cos_sin_by_tangent(angles: Floats, length: float, out: Floats) -> None:
    """Write `[length·cos θ, length·sin θ]` of each row of angles θ to `out`; overwrites `angles`.

    With t = tan(θ/2), `cos θ = 2/(1 + t²) - 1` and `sin θ = 2t/(1 + t²)`.
    """
    D = angles.shape[1]
    angles *= 0.5
    t = np.tan(angles, out=angles)
    factor = t * t
    factor += 1.0
    np.divide(2.0 * length, factor, out=factor)
    np.subtract(factor, length, out=out[:, :D])
    np.multiply(factor, t, out=out[:, D:])


def cos_sin_by_table(angles: Floats, length: float, out: Floats) -> None:
    """Same as `cos_sin_by_tangent`, computed from a table.

    With α = 2π/NOTCHES, `θ = α(k + r)` for an integer k and |r| <= 1/2, and
    `e^{iθ} = e^{iαk}·e^{iαr}`. The first factor is tabulated. In the second αr is below 2e-4, so
    `cos αr = 1 - (αr)²/2` and `sin αr = αr - (αr)³/6` up to 6e-17.
    """
    step = 2.0 * math.pi / NOTCHES
    angles *= 1.0 / step
    k = np.rint(angles)
    angles -= k
    largest = max(k.max(initial=0.0), -k.min(initial=0.0))
    if largest >= 2.0**51:  # the next step would fail
        np.fmod(k, NOTCHES, out=k)
    k += 1.5 * 2.0**52  # now the low bits of the double are the integer k
    notch = k.view(np.int64)
    notch &= NOTCHES - 1
    turned = _circle().take(notch, mode="clip")  # e^{iαk}
    square = np.multiply(angles, angles)
    rest = np.empty(angles.shape, dtype=np.complex128)  # length·e^{iαr}
    np.multiply(square, -length * step**2 / 2.0, out=rest.real)
    rest.real += length
    square *= -length * step**3 / 6.0
    square += length * step
    np.multiply(square, angles, out=rest.imag)
    turned *= rest
    D = angles.shape[1]
    out[:, :D] = turned.real
    out[:, D:] = turned.imag


@functools.cache
def _circle() -> NDArray[np.complex128]:
    """Table of e^{iαk} for k = 0, 1, …; angles are reduced to [-π, π] for accuracy."""
    k = np.arange(NOTCHES)
    reduced = np.where(k < NOTCHES // 2, k, k - NOTCHES)
    angles = 2.0 * math.pi / NOTCHES * reduced
    return np.cos(angles) + 1j * np.sin(angles)


def _vectorised_tangent() -> bool:
    """Whether np.tan uses AVX-512: 1.6 times as fast as the table, else 3 times as slow."""
    introspect = getattr(np.lib, "introspect", None)  # since NumPy 2.0
    if introspect is None:
        return False
    targets = set()
    for loops in introspect.opt_func_info("^tan$", "float64").values():
        for loop in loops.values():
            targets.add(loop["current"])
    return not targets.isdisjoint({"X86_V4", "AVX512_SKX"})


# np.cos and np.sin take five times as long as either
cos_sin = cos_sin_by_tangent if _vectorised_tangent() else cos_sin_by_table


class KernelFeatures(Features):
    """`φ(x) = Zᵀκ(S, x)` for fixed examples S and a matrix Z with a row for each of them."""

    kept: ClassVar[Any] = {"points": Points, "Z": "sz"}

    def __init__(self, kernel: Kernel, points: Points, Z: Floats) -> None:
        self.kernel = kernel
        self.points = points
        self.Z = np.ascontiguousarray(Z)

    @property
    def size(self) -> int:  # type: ignore[override]  # computed
        return self.points.size

    @property
    def length(self) -> int:
        return int(self.Z.shape[1])

    def __call__(self, block: Points) -> Floats:
        points = self.points.widened(block.width)
        K = self.kernel.between(block, points)
        features: Floats = K @ self.Z
        return features


def nystroem(f: Expansion, rank: int) -> LinearModel:
    """Nyström form of f: `w·φ(x)`, `φ(x) = Λ^{-1/2}Vᵀκ(S, x)`, `w = Λ^{1/2}Vᵀa`, K ≈ VΛVᵀ."""
    assert f.points is not None
    values, V = leading(f.gram(), rank)
    roots = np.sqrt(values)
    S = f.points.subset(f.support)
    features = KernelFeatures(f.kernel, S, V / roots)
    w = roots * (V.T @ f.coefficients)
    return LinearModel(features, w)


class Sketches(KernelFeatures):
    """`φ(x) = Zᵀκ(x̃, x)` with Z from sketches of the kernel matrix K of the admitted examples.

    `Z = Φ_pm^+ V_k Σ_k^{1/2}` with `Φ_pp = S_pᵀKS_p ≈ V_k Σ_k V_kᵀ` and `Φ_pm = S_pᵀKS_m`. S_p is a
    count sketch: a random column and sign for each admitted example. x̃ are examples of S, sampled
    once. Random numbers are drawn in this order: columns of S, their signs (0: -1), the sample;
    then a column and a sign for each example admitted.
    """

    kept: ClassVar[Any] = {
        **KernelFeatures.kept,
        "admitted": Points,
        "columns": "#a",
        "signs": "a",
        "pp": "pp",
        "pm": "ps",
        "_rank": int,
    }

    def __init__(
        self, f: Expansion, sketch: int, samples: int, rank: int, rng: np.random.Generator
    ) -> None:
        assert f.points is not None
        self.rng = rng
        self._rank = rank
        K = f.gram()
        self.columns: Integers = rng.integers(sketch, size=f.size)
        coins = rng.integers(2, size=f.size)
        self.signs: Floats = np.where(coins == 0, -1.0, 1.0)
        sampled = np.sort(rng.choice(f.size, size=samples, replace=False))
        S_p = np.zeros((f.size, sketch))
        S_p[np.arange(f.size), self.columns] = self.signs
        K_m = K[:, sampled]  # K·S_m
        self.pp = S_p.T @ K @ S_p
        self.pm = S_p.T @ K_m
        self.admitted = f.points.subset(f.support)
        super().__init__(f.kernel, self.admitted.subset(sampled), self._matrix())
        z = K_m @ self.Z
        values = K @ f.coefficients
        self.w = _least_squares(z, values)  # closest to f at S

    @property
    def size(self) -> int:  # type: ignore[override]  # computed
        return int(self.admitted.size)

    def admit(self, x: Points, w: Floats) -> Floats:
        """Admit an example x to the sketches; return the w that keeps f on the span of x̃."""
        column = int(self.rng.integers(len(self.pp)))
        sign = 2.0 * int(self.rng.integers(2)) - 1.0
        self.admitted = self.admitted.widened(x.width)
        k = self.kernel.between(x, self.admitted)[0]
        across = np.bincount(self.columns, self.signs * k, len(self.pp))  # S_pᵀk
        self.pp[column] += sign * across
        self.pp[:, column] += sign * across
        self.pp[column, column] += self.kernel.diagonal(x)[0]
        samples = self.points.widened(x.width)
        self.pm[column] += sign * self.kernel.between(x, samples)[0]
        self.columns = np.append(self.columns, column)
        self.signs = np.append(self.signs, sign)
        self.admitted.extend(x)
        before = self.Z
        self.Z = self._matrix()
        return _least_squares(self.Z, before @ w)

    def _matrix(self) -> Floats:
        """`Z = Φ_pm^+ V_k Σ_k^{1/2}`."""
        values, V = leading(self.pp, self._rank)
        inverse = np.linalg.pinv(self.pm, rcond=INVERTED)
        return inverse @ (V * np.sqrt(values))


def _least_squares(Z: Floats, values: Floats) -> Floats:
    """The shortest w with the smallest `‖Zw - values‖`."""
    w, *_ = np.linalg.lstsq(Z, values, rcond=INVERTED)
    return np.asarray(w)


def leading(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """The `rank` largest eigenvalues of a symmetric matrix (or fewer), and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    largest = max(values[-1], 0.0)
    solid = values > 1e-8 * largest  # smaller λ would lose half their digits
    beyond = max(len(values) - rank, 0)
    solid[:beyond] = False
    if not solid.any():  # a zero matrix: keep one eigenvalue, which adds nothing
        return np.ones(1), np.zeros((len(values), 1))
    return values[solid], vectors[:, solid]
