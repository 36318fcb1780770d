"""Fixed hypotheses f to hold a learner against: L_T(f) and ‖f‖, over a stream read in pieces.

A mistake bound holds for every comparator f, so any f will do, and the better it is the tighter the
bound. All of them here are combinations of m examples drawn from the stream, m <= `SAMPLE`:

    f = 0,   the kernel mean `Σ y_i κ(x_i,·)`,   and for a path of C the minimisers of
    `‖f‖²/2 + C·(T/m)·Σ_i max(0, 1 - y_i·f(x_i))`,

which is what 2·L_T(f) + ‖f‖² and its likes ask for, the sample standing in for the stream (where
m = T it is the stream). Each is stretched to many lengths; then one pass over the whole stream
gives L_T of all of them exactly, in memory that does not grow with it.

Rounding must not make a bound too small. A kernel value is off by at most some δ, so f(x) by at
most δ·Σ|a_i| and ‖f‖² by at most δ·(Σ|a_i|)²: losses and norms are given with that on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core.blas import daxpy
from ahpatron_cli.core.kernels import ROUNDING, TRUSTED, Kernel
from ahpatron_cli.core.points import DensePoints, Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows

Pieces: TypeAlias = Callable[[], Iterable[tuple[Rows, Floats]]]
"""Reads the stream from its start: rows and labels, piece by piece, the same ones every time."""

SAMPLE = 2000
PATH = tuple(2.0**power for power in range(-10, 3))
"""The C of the minimisers, in units of the whole stream: C = 1 minimises 2·L_T(f) + ‖f‖²."""
EPOCHS = 30
PER_OCTAVE = 16
"""Lengths tried between one and its double."""
SHORTEST = 1 / 64
BLOCK = 1024
SAFETY = 1e-9
"""What sums of T terms may lose, relative to their size."""


@dataclass(frozen=True)
class Comparator:
    """An f, and upper ends of its L_T(f) and ‖f‖."""

    name: str
    loss: float
    norm: float


def comparators(
    pieces: Pieces, rounds: int, kernel: Kernel, radii: Iterable[float] = (), seed: int = 0
) -> list[Comparator]:
    """Comparators of every length up to √(2T), by norm, each of less loss than those before it.

    `radii` are lengths that must be among them: those of the balls that theorems have.
    """
    sample = _draw(pieces, rounds, kernel, seed)
    rays = list(_rays(sample, rounds, seed))
    lengths = _lengths(rounds, radii)
    sums = [_LossSums(ray.norm / lengths) for ray in rays]
    weights = np.array([ray.weights for ray in rays])
    for rows, labels in pieces():
        points = sample.form(rows)
        for start in range(0, len(labels), BLOCK):
            stop = min(start + BLOCK, len(labels))
            values = weights @ kernel.between(sample.points, points.slice(start, stop))
            for one, margins in zip(sums, values * labels[start:stop], strict=True):
                one.add(margins)
    found = [Comparator("0", float(rounds), 0.0)]
    for ray, one in zip(rays, sums, strict=True):
        per_round = sample.error * ray.mass / ray.norm
        losses = one.losses() + rounds * per_round * lengths
        found += map(Comparator, [ray.name] * len(lengths), losses.tolist(), lengths.tolist())
    return _worthwhile(found)


def _worthwhile(found: list[Comparator]) -> list[Comparator]:
    """Those with less loss than every shorter one."""
    found.sort(key=lambda one: (one.norm, one.loss))
    kept: list[Comparator] = []
    for one in found:
        if not kept or one.loss < kept[-1].loss:
            kept.append(one)
    return kept


def _lengths(rounds: int, radii: Iterable[float]) -> Floats:
    """Beyond √(2T), ‖f‖² alone is more than any bound at f = 0."""
    longest = max(math.sqrt(2 * rounds), 2.0)
    count = 1 + math.ceil(PER_OCTAVE * math.log2(longest / SHORTEST))
    ladder = np.geomspace(SHORTEST, longest, count)
    return np.union1d(ladder, [radius for radius in radii if radius <= longest])


class _LossSums:
    """`Σ_t max(0, 1 - s·v_t)` over a stream of margins v, for many scales s at once.

    With τ = 1/s that is `#{v_t < τ} - s·Σ_{v_t < τ} v_t`: margins are sorted into bins between the
    thresholds, and only the count and the sum of each bin are kept.
    """

    def __init__(self, thresholds: Floats) -> None:
        self._thresholds = thresholds
        self._increasing = np.sort(thresholds)
        self._counts = np.zeros(len(thresholds) + 1)
        self._sums = np.zeros(len(thresholds) + 1)
        self._sizes = np.zeros(len(thresholds) + 1)

    def add(self, margins: Floats) -> None:
        """Take in the margins of some rounds."""
        bins = np.searchsorted(self._increasing, margins, side="right")
        size = len(self._counts)
        self._counts += np.bincount(bins, minlength=size)
        self._sums += np.bincount(bins, weights=margins, minlength=size)
        self._sizes += np.bincount(bins, weights=np.abs(margins), minlength=size)

    def losses(self) -> Floats:
        """The sum for each threshold, with what it may have lost to rounding on top."""
        below = np.searchsorted(self._increasing, self._thresholds)
        counts, sums, sizes = (
            np.cumsum(part)[below] for part in (self._counts, self._sums, self._sizes)
        )
        losses: Floats = counts - sums / self._thresholds
        losses += SAFETY * (counts + sizes / self._thresholds)
        return losses


# The sample, and what is made of it ---------------------------------------------------------------


class _Sample(NamedTuple):
    points: Points
    labels: Floats
    form: Callable[[Rows], Points]
    """Rows of the stream as points of the same kind, width and origin."""
    gram: Floats
    error: float
    """What a kernel value may be off by."""


class _Ray(NamedTuple):
    """A direction: coefficients a on the sample, an upper end of ‖f‖, and Σ|a|."""

    name: str
    weights: Floats
    norm: float
    mass: float


def _draw(pieces: Pieces, rounds: int, kernel: Kernel, seed: int) -> _Sample:
    size = min(rounds, SAMPLE)
    wanted = np.sort(np.random.default_rng([seed, rounds]).choice(rounds, size, replace=False))
    parts: list[Rows] = []
    labels: list[Floats] = []
    first = width = 0
    sparse = False
    for rows, signs in pieces():
        width = max(width, rows.width if isinstance(rows, CsrRows) else rows.shape[1])
        sparse = sparse or isinstance(rows, CsrRows)
        here = wanted[(wanted >= first) & (wanted < first + len(signs))] - first
        first += len(signs)
        if len(here):
            parts.append(rows.take(here) if isinstance(rows, CsrRows) else rows[here])
            labels.append(signs[here])
    centre: Floats | None = None
    if kernel.centred and not sparse:
        padded = [_padded(part, width) for part in parts if not isinstance(part, CsrRows)]
        centre = np.median(np.concatenate(padded), axis=0)

    def form(rows: Rows) -> Points:
        if not isinstance(rows, CsrRows):
            rows = _padded(rows, width)
        points = kernel.points(rows, centre)
        return points.to_sparse(None) if sparse and isinstance(points, DensePoints) else points

    points = form(parts[0])
    for part in parts[1:]:
        more = form(part)
        points.append(more, np.arange(more.size))
    gram = kernel.between(points, points)
    error = 1e-12 + min(TRUSTED, 8 * ROUNDING * points.largest)
    return _Sample(points, np.concatenate(labels), form, (gram + gram.T) / 2, error)


def _padded(rows: Floats, width: int) -> Floats:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def _rays(sample: _Sample, rounds: int, seed: int) -> Iterator[_Ray]:
    """The kernel mean, and the minimisers along the path; those that are 0 give no direction."""
    names = [f"mean of {len(sample.labels)}", *(f"SVM, C = {C:.3g}" for C in PATH)]
    costs = [C * rounds / len(sample.labels) for C in PATH]
    path = minimisers(sample.gram, sample.labels, costs, seed)
    for name, weights in zip(names, [sample.labels, *path], strict=True):
        mass = float(np.abs(weights).sum())
        squared = float(weights @ sample.gram @ weights) + sample.error * mass * mass
        if squared > 0:
            yield _Ray(name, weights, math.sqrt(squared), mass)


def minimisers(
    gram: Floats, labels: Floats, costs: Sequence[float], seed: int = 0
) -> Iterator[Floats]:
    """For each cost C the coefficients that minimise `‖f‖²/2 + C·Σ max(0, 1 - y_i·f(x_i))`.

    Dual coordinate ascent: with a_i = α_i·y_i and 0 <= α_i <= C, one example after the other gets
    the α_i that is best while the others stay, `α_i + (1 - y_i·f(x_i))/κ(x_i, x_i)` clipped; those
    that would hardly move are passed over for a round. Costs must increase: each starts from the
    solution of the one before.
    """
    rng = np.random.default_rng(seed)
    rows, signs = list(gram), labels.tolist()
    diagonal = np.where(gram.diagonal() > 0, gram.diagonal(), np.inf)  # κ(x, x) = 0: never moves
    alphas = np.zeros(len(signs))
    values = np.zeros(len(signs))
    for cost in costs:
        for _ in range(EPOCHS):
            moves = np.clip(alphas + (1.0 - labels * values) / diagonal, 0.0, cost) - alphas
            worthwhile = np.flatnonzero(np.abs(moves) > 0.01 * cost)
            if not len(worthwhile):
                break
            for i in rng.permutation(worthwhile).tolist():
                before, sign = alphas.item(i), signs[i]
                gain = (1.0 - sign * values.item(i)) / diagonal.item(i)
                alphas[i] = after = min(max(before + gain, 0.0), cost)
                daxpy(rows[i], values, a=(after - before) * sign)
        yield alphas * labels
