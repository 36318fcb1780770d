"""Hypotheses `f(x) = w·z(x)` for a feature map z that is computed, not implied by a kernel.

When a block opens, z of all its examples is computed at once; then reading f is one dot product
with w, and a step of the learner adds a multiple of one feature vector to w.
"""

from __future__ import annotations

import functools
import math
import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.blas import daxpy, ddot
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Saved, Stored

SOLID = 1e-8
"""Eigenvalues below this share of the largest are dropped: half the digits of 1/λ are noise."""
INVERTED = 1e-3
"""Singular values below this share of the largest are not inverted, lest w grow at every fit."""
NOTCHES = 2**14
"""Angles on the circle whose cosines and sines are tabulated."""
WHOLE = 1.5 * 2.0**52
"""k + this, as bits, ends with the whole number k."""
AT_ONCE = 2**15
"""Angles that are worked on together: about what the cache holds."""


class FeatureMap(Saved, ABC):
    """z: a vector for each example."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of entries of z(x)."""

    @abstractmethod
    def vectors(self, block: Points, out: Floats | None = None) -> Floats:
        """z(x) of every example of a block, one a row.

        `out` is a place for them, which need not be taken.
        """

    @abstractmethod
    def compress(self, origin: Floats | None, weights: Floats) -> None:
        """Go on with sparse points, as `Hypothesis.compress` does; keeps f by mending w."""


class Featured(Hypothesis):
    """`f(x) = w·z(x)`."""

    size: int | None = None  # no example is kept

    def __init__(self, features: FeatureMap, weights: Floats) -> None:
        self.features = features
        self.weights = weights
        self._room: Floats = np.empty((0, 0))

    def __getstate__(self) -> dict[str, Any]:
        """What a copy takes along between two blocks: not the vectors' room."""
        return {**vars(self), "_room": np.empty((0, 0))}

    def open(self, block: Points, labels: Floats) -> None:
        shape = (block.size, self.features.length)
        if self._room.shape != shape:  # fresh memory for each block would take longer than its use
            self._room = np.empty(shape)
        self._vectors = np.ascontiguousarray(self.features.vectors(block, self._room))
        self._rows = list(self._vectors)

    def values(self) -> Floats:
        values: Floats = self._vectors @ self.weights
        return values

    def value(self, round_: int) -> float:
        self._now = round_
        return ddot(self.weights, self._rows[round_])  # type: ignore[no-any-return]  # a float

    def add(self, coefficient: float) -> None:
        """`w ← w + coefficient·z(x)` for the current example x."""
        daxpy(self._rows[self._now], self.weights, a=coefficient)  # in place

    def close(self) -> None:
        self._vectors, self._rows = np.empty((0, 0)), []

    def at(self, points: Points) -> Floats:
        values: Floats = self.features.vectors(points) @ self.weights
        return values

    def compress(self, origin: Floats | None) -> None:
        self.features.compress(origin, self.weights)

    def exchange(self, stored: Stored) -> None:
        stored.part("features", self.features)
        self.weights = stored.array("weights", (self.features.length,), self.weights)

    @property
    def norm(self) -> float:
        return math.sqrt(ddot(self.weights, self.weights))


class FourierMap(FeatureMap):
    """`z(x) = [cos(Ux), sin(Ux)]/√D`, with D frequencies u ~ N(0, I) for points in units of σ.

    `E[z(x)·z(x')] = exp(-‖x - x'‖²/2)`. Each column of the data has a generator of its own, made
    from one number drawn at the start and the column's number: U depends neither on the width of
    the data nor on the order in which columns turn up, and only columns in use are drawn.
    """

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.count = count
        self._seed = int(rng.integers(2**63))
        self._drawn = np.empty((0, count))
        self._size = 0
        self._place = np.empty(0, dtype=np.int64)  # where a column's frequencies are; -1: not drawn

    @property
    def length(self) -> int:
        return 2 * self.count

    def vectors(self, block: Points, out: Floats | None = None) -> Floats:
        shape = (block.size, self.count)
        angles = block.times(self.frequencies, _room("angles", math.prod(shape)).reshape(shape))
        z = np.empty((block.size, 2 * self.count)) if out is None else out
        rows = max(AT_ONCE // self.count, 1)
        for start in range(0, block.size, rows):
            part = slice(start, start + rows)
            _turn(angles[part], 1.0 / math.sqrt(self.count), z[part])
        return z

    def compress(self, origin: Floats | None, weights: Floats) -> None:
        """Points lose their shift, so phases grow by that of the origin: w is turned back by it."""
        if origin is not None:
            places, table = self.frequencies(np.arange(len(origin)))
            phases = origin @ table[places]
            cosines, sines = weights[: self.count].copy(), weights[self.count :].copy()
            weights[: self.count] = cosines * np.cos(phases) - sines * np.sin(phases)
            weights[self.count :] = cosines * np.sin(phases) + sines * np.cos(phases)

    def exchange(self, stored: Stored) -> None:
        """The seed is enough: frequencies are drawn when they are needed."""
        self._seed = stored.integer("seed", self._seed, at_most=2**63)

    def frequencies(self, columns: Integers) -> tuple[Integers, Floats]:
        """A table of D frequencies a row, and the row of each of these columns in it."""
        width = int(columns.max(initial=-1)) + 1
        if width > len(self._place):
            more = max(width, 2 * len(self._place)) - len(self._place)
            self._place = np.concatenate([self._place, np.full(more, -1)])
        for column in sorted(set(columns[self._place[columns] < 0].tolist())):
            if self._size == len(self._drawn):
                room = np.empty((max(2 * self._size, 16), self.count))
                room[: self._size] = self._drawn
                self._drawn = room
            generator = np.random.default_rng((self._seed, column))
            generator.standard_normal(out=self._drawn[self._size])
            self._place[column] = self._size
            self._size += 1
        return self._place[columns], self._drawn[: self._size]


def _turn(angles: Floats, length: float, out: Floats) -> None:
    """`[length·cos θ, length·sin θ]` of each row of angles θ, which are used up.

    With α = 2π/NOTCHES, `θ = α(k + r)` for a whole k and |r| <= 1/2. So `e^{iθ} = e^{iαk}·e^{iαr}`.
    The first factor is tabulated. In the second αr is below 2e-4, so `cos αr = 1 - (αr)²/2` and
    `sin αr = αr - (αr)³/6` but for 6e-17. To ask for cos θ and sin θ takes several times as long.
    """
    step, size = 2.0 * math.pi / NOTCHES, angles.size
    whole, square = _room("reals", 2 * size).reshape(2, *angles.shape)
    turned, rest = _room("turns", 4 * size).view(complex).reshape(2, *angles.shape)
    angles *= 1.0 / step
    np.rint(angles, out=whole)
    angles -= whole
    if max(whole.max(initial=0.0), -whole.min(initial=0.0)) >= 2.0**51:  # k does not fit the bits
        np.fmod(whole, NOTCHES, out=whole)
    whole += WHOLE
    notch = whole.view(np.int64)
    notch &= NOTCHES - 1
    _circle().take(notch, out=turned, mode="clip")
    np.multiply(angles, angles, out=square)
    np.multiply(square, -length * step**2 / 2.0, out=whole)
    np.add(whole, length, out=rest.real)
    square *= -length * step**3 / 6.0
    square += length * step
    np.multiply(square, angles, out=rest.imag)
    turned *= rest
    out[:, : angles.shape[1]] = turned.real
    out[:, angles.shape[1] :] = turned.imag


@functools.cache
def _circle() -> NDArray[np.complex128]:
    """e^{iαk} for k = 0, 1, …, by angles between -π and π: they have the most digits there."""
    k = np.arange(NOTCHES)
    angles = 2.0 * math.pi / NOTCHES * np.where(k < NOTCHES // 2, k, k - NOTCHES)
    return np.cos(angles) + 1j * np.sin(angles)


_scratch = threading.local()


def _room(name: str, size: int) -> Floats:
    """Room for so many numbers, of any content, until it is asked for again."""
    room: Floats | None = getattr(_scratch, name, None)
    if room is None or len(room) < size:
        room = np.empty(size)
        setattr(_scratch, name, room)
    return room[:size]


class Anchors:
    """Examples kept for their kernel values, whatever becomes of the stream's width."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.points: Points = DensePoints(np.empty((0, 0)))

    def columns(self, block: Points) -> Floats:
        """κ(x, s), one x a row."""
        return self.kernel.between(block, self.points.widened(block.width))

    def compress(self, origin: Floats | None) -> None:
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    def exchange(self, stored: Stored, name: str) -> None:
        """Write the points into a state, or go on with those that were written."""
        points = exchange_points(stored, name, self.points)
        if points is None:
            raise stored.refuse(name, "must be a group of values")
        self.points = points


class KernelMap(FeatureMap):
    """`φ(x) = Zᵀ κ(S, x)`: kernel values at fixed examples S, and a matrix Z."""

    def __init__(self, kernel: Kernel) -> None:
        """S and Z are still to come: by `fix`, or from the state of a pass that goes on."""
        self.anchors = Anchors(kernel)
        self.matrix = np.empty((0, 0))

    def fix(self, points: Points, matrix: Floats) -> None:
        """Take these as S and Z."""
        self.anchors.points = points
        self.matrix = np.ascontiguousarray(matrix)  # one layout, so that products keep their bits

    @property
    def length(self) -> int:
        return int(self.matrix.shape[1])

    def vectors(self, block: Points, out: Floats | None = None) -> Floats:
        return self.anchors.columns(block) @ self.matrix

    def compress(self, origin: Floats | None, weights: Floats) -> None:
        self.anchors.compress(origin)

    def exchange(self, stored: Stored) -> None:
        self.anchors.exchange(stored, "anchors")
        self.matrix = stored.array("matrix", (self.anchors.points.size, None), self.matrix)


class Staged(Hypothesis):
    """An expansion first; from some round on, within a block if need be, linear in features."""

    size: int

    def __init__(self, kernel: Kernel, features: KernelMap) -> None:
        self.features = features
        self.size = 0
        self.stage: Expansion | Featured = Expansion(kernel, keep_gram=True)

    def open(self, block: Points, labels: Floats) -> None:
        self.block, self._labels = block, labels
        self.stage.open(block, labels)

    def values(self) -> Floats:
        return self.stage.values()

    def value(self, round_: int) -> float:
        self.now = round_
        return self.stage.value(round_)

    def add(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the current example x, as the features see κ."""
        self.stage.add(coefficient)
        if isinstance(self.stage, Expansion):
            self.size = self.stage.size

    def switch(self, weights: Floats) -> None:
        """From now on, `f(x) = weights·z(x)`, with the features as they are now."""
        self.stage = Featured(self.features, weights)
        self.stage.open(self.block, self._labels)
        self.stage.value(self.now)

    def close(self) -> None:
        self.stage.close()

    def at(self, points: Points) -> Floats:
        return self.stage.at(points)

    def compress(self, origin: Floats | None) -> None:
        self.stage.compress(origin)

    def exchange(self, stored: Stored) -> None:
        self.size = stored.integer("size", self.size)
        kind = "expansion" if isinstance(self.stage, Expansion) else "features"
        if stored.word("kind", ("expansion", "features"), kind) != kind:
            self.stage = Featured(self.features, np.empty(0))
        stored.part("stage", self.stage)

    @property
    def norm(self) -> float:
        return self.stage.norm


def leading(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues of a symmetric matrix, at most `rank`, and their eigenvectors.

    Those at rounding level are left out; of a matrix of zeros there is one that adds nothing.
    """
    values, vectors = np.linalg.eigh(matrix)
    solid = values > SOLID * max(values[-1], 0.0)
    solid[: max(len(values) - rank, 0)] = False
    if not solid.any():
        return np.ones(1), np.zeros((len(values), 1))
    return values[solid], vectors[:, solid]


class Sketches(KernelMap):
    """The feature map φ of SkeGD, and the sketches Φ_pp and Φ_pm that it comes from.

    Random numbers are drawn in this order: the columns of S, their signs (0: -1), the sampled
    examples; then a column and a sign for each example admitted.
    """

    def __init__(self, kernel: Kernel, sketch: int, rank: int, rng: np.random.Generator) -> None:
        super().__init__(kernel)
        self._rng, self._sketch, self._rank = rng, sketch, rank
        self.admitted = Anchors(kernel)
        self.columns = self.sampled = np.empty(0, dtype=np.int64)
        self.signs: Floats = np.empty(0)
        self.pp: Floats = np.empty((0, 0))
        self.pm: Floats = np.empty((0, 0))

    def begin(self, points: Points, gram: Floats, samples: int) -> None:
        """Admit these examples, of this Gram matrix, and sample some of them."""
        self.admitted.points = points
        self.columns = self._rng.integers(self._sketch, size=len(gram))
        self.signs = np.where(self._rng.integers(2, size=len(gram)) == 0, -1.0, 1.0)
        self.sampled = np.sort(self._rng.choice(len(gram), size=samples, replace=False))
        S_p = np.zeros((len(gram), self._sketch))
        S_p[np.arange(len(gram)), self.columns] = self.signs
        self.pp = S_p.T @ gram @ S_p
        self.pm = S_p.T @ gram[:, self.sampled]
        self.fix(points.subset(self.sampled), self._find_matrix())

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
        return np.asarray(np.linalg.pinv(self.pm, rcond=INVERTED) @ (vectors * np.sqrt(values)))

    def compress(self, origin: Floats | None, weights: Floats) -> None:
        super().compress(origin, weights)
        self.admitted.compress(origin)


def fit(matrix: Floats, values: Floats) -> Floats:
    """`matrix^+ values`: least squares."""
    return np.asarray(np.linalg.lstsq(matrix, values, rcond=INVERTED)[0])
