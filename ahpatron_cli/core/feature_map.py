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


class _BlockValues:
    """f(x) = w·z(x) of each round of a block, computed when it is read."""

    __slots__ = ("w", "z")

    def __init__(self, w: Floats, z: list[Floats]) -> None:
        self.w = w
        self.z = z

    def __getitem__(self, t: int) -> float:
        return ddot(self.w, self.z[t])  # type: ignore[no-any-return]  # a float


class LinearModel(Hypothesis):
    """Hypothesis `f(x) = w·z(x)` with weights w and a feature map z."""

    state_fields: ClassVar[Any] = {"features": Features, "w": "w"}
    values: _BlockValues

    def __init__(self, features: Features, w: Floats) -> None:
        self.features = features
        self.w = w

    def check(self, state: StateReader) -> None:
        expected = self.features.length
        if expected is not None and expected != len(self.w):
            raise state.refusal("w", "is not as long as the feature vectors")

    @property
    def size(self) -> int | None:  # type: ignore[override]  # computed
        return self.features.size

    def open(self, block: Points, start: int = 0) -> None:
        self.block = block
        features = self.features_of(block)
        z = np.ascontiguousarray(features)
        self._z = list(z)
        self.values = _BlockValues(self.w, self._z)

    def features_of(self, block: Points) -> Floats:
        """z(x) of each example of a block that is opened."""
        return self.features(block)

    def add(self, coefficient: float) -> None:
        """`w ← w + coefficient·z(x)` for the current example x."""
        z = self._z[self.t]
        daxpy(z, self.w, a=coefficient)

    def close(self) -> None:
        self._z = []
        self.values = _BlockValues(self.w, self._z)

    def at(self, points: Points) -> Floats:
        features = self.features(points)
        values: Floats = features @ self.w
        return values

    @property
    def norm(self) -> float:
        square = ddot(self.w, self.w)
        return math.sqrt(square)


class FourierFeatures(Features):
    """Random Fourier features `z(x) = [cos(Ux), sin(Ux)]/√D`, D frequencies u ~ N(0, I).

    `E[z(x)·z(x')] = exp(-‖x - x'‖²/2)`, points in units of σ. Each column of the data has its own
    random generator, seeded by one random number and the column's index: U depends neither on the
    width of the data nor on the order in which columns appear; only columns in use are drawn. Those
    of the last block and of the `KEPT` most recent numbers are stored, others are drawn again.
    """

    state_fields: ClassVar[Any] = {"count": int, "_seed": int}
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
        size = block.size
        count = self.count
        memory = np.empty((size, count))
        angles = block.times(self.frequencies, memory)
        z = np.empty((size, 2 * count))
        length = 1 / math.sqrt(count)
        rows = max(2**15 // count, 1)  # as many as fit the CPU cache
        for start in range(0, size, rows):
            part = slice(start, start + rows)
            cos_sin(angles[part], length, z[part])
        return z

    def frequencies(self, columns: Integers) -> Floats:
        """Frequencies of these columns, array of shape (columns, D)."""
        if np.array_equal(columns, self._columns):
            return self._table
        drawn = [self._drawn_for(column) for column in columns.tolist()]
        table = np.array(drawn)
        self._columns = columns
        self._table = table.reshape(-1, self.count)
        limit = max(KEPT // self.count, 1)
        while len(self._recent) > limit:
            self._recent.popitem(last=False)
        return self._table

    def _drawn_for(self, column: int) -> Floats:
        """Frequencies of a column: drawn, unless they are among the recent ones."""
        drawn = self._recent.get(column)
        if drawn is not None:
            self._recent.move_to_end(column)
            return drawn
        seed = (self._seed, column)
        own = np.random.default_rng(seed)
        drawn = own.standard_normal(self.count)
        self._recent[column] = drawn
        return drawn

    @functools.cached_property
    def _recent(self) -> OrderedDict[int, Floats]:
        """Frequencies of columns of the last blocks, the most recent last."""
        return OrderedDict()


def cos_sin_by_tangent(angles: Floats, length: float, out: Floats) -> None:
    """Write `[length·cos θ, length·sin θ]` of each row of angles θ to `out`; overwrites `angles`.

    With τ = tan(θ/2), `cos θ = 2/(1 + τ²) - 1` and `sin θ = 2τ/(1 + τ²)`.
    """
    D = angles.shape[1]
    cosines = out[:, :D]
    sines = out[:, D:]
    angles *= 0.5
    tangents = np.tan(angles, out=angles)
    factor = tangents * tangents
    factor += 1.0
    np.divide(2.0 * length, factor, out=factor)
    np.subtract(factor, length, out=cosines)
    np.multiply(factor, tangents, out=sines)


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
    highest = k.max(initial=0.0)
    lowest = k.min(initial=0.0)
    if max(highest, -lowest) >= 2.0**51:  # the next step would fail
        np.fmod(k, NOTCHES, out=k)
    k += 1.5 * 2.0**52  # now the low bits of the double are the integer k
    notch = k.view(np.int64)
    notch &= NOTCHES - 1
    circle = _circle()
    turned = circle.take(notch, mode="clip")  # e^{iαk}
    squares = np.multiply(angles, angles)
    rest = np.empty(angles.shape, dtype=np.complex128)  # length·e^{iαr}
    second_order = -length * step**2 / 2.0
    np.multiply(squares, second_order, out=rest.real)
    rest.real += length
    third_order = -length * step**3 / 6.0
    squares *= third_order
    squares += length * step
    np.multiply(squares, angles, out=rest.imag)
    turned *= rest
    D = angles.shape[1]
    out[:, :D] = turned.real
    out[:, D:] = turned.imag


@functools.cache
def _circle() -> NDArray[np.complex128]:
    """Table of e^{iαk} for k = 0, 1, …; angles are reduced to [-π, π] for accuracy."""
    k = np.arange(NOTCHES)
    in_first_half = k < NOTCHES // 2
    second_half = k - NOTCHES
    reduced = np.where(in_first_half, k, second_half)
    step = 2.0 * math.pi / NOTCHES
    angles = step * reduced
    cosines = np.cos(angles)
    sines = np.sin(angles)
    return cosines + 1j * sines


def _vectorised_tangent() -> bool:
    """Whether np.tan uses AVX-512: 1.6 times as fast as the table, else 3 times as slow."""
    introspect = getattr(np.lib, "introspect", None)  # since NumPy 2.0
    if introspect is None:
        return False
    found = introspect.opt_func_info("^tan$", "float64")
    for loops in found.values():
        for loop in loops.values():
            if loop["current"] in ("X86_V4", "AVX512_SKX"):
                return True
    return False


# np.cos and np.sin take five times as long as either
cos_sin = cos_sin_by_tangent if _vectorised_tangent() else cos_sin_by_table


class KernelFeatures(Features):
    """`φ(x) = Zᵀκ(S, x)` for fixed examples S and a matrix Z with a row for each of them."""

    state_fields: ClassVar[Any] = {"points": Points, "Z": "sz"}

    def __init__(self, kernel: Kernel, points: Points, Z: Floats) -> None:
        self.kernel = kernel
        self.points = points
        self.Z = np.ascontiguousarray(Z)

    @property
    def size(self) -> int:  # type: ignore[override]  # computed
        return self.points.size

    @property
    def length(self) -> int:
        _, length = self.Z.shape
        return int(length)

    def __call__(self, block: Points) -> Floats:
        points = self.points.widened(block.width)
        K = self.kernel.between(block, points)
        features: Floats = K @ self.Z
        return features


def nystroem(f: Expansion, rank: int) -> LinearModel:
    """Nyström form of f: `w·φ(x)`, `φ(x) = Λ^{-1/2}Vᵀκ(S, x)`, `w = Λ^{1/2}Vᵀa`, K ≈ VΛVᵀ."""
    assert f.points is not None
    gram = f.gram()
    eigenvalues, V = leading(gram, rank)
    roots = np.sqrt(eigenvalues)
    S = f.points.subset(f.support)
    features = KernelFeatures(f.kernel, S, V / roots)
    products = V.T @ f.coefficients
    w = roots * products
    return LinearModel(features, w)


def leading(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """The `rank` largest eigenvalues of a symmetric matrix (or fewer), and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    size = len(values)
    largest = max(values[-1], 0.0)
    solid = values > 1e-8 * largest  # smaller λ would lose half their digits
    beyond = max(size - rank, 0)
    solid[:beyond] = False
    if not solid.any():  # a zero matrix: keep one eigenvalue, which adds nothing
        nothing = np.zeros((size, 1))
        return np.ones(1), nothing
    return values[solid], vectors[:, solid]
