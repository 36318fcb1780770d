"""Budget maintenance: which examples of S stay, and what they take over from those that go.

With `f = Σ a_i κ(s_i,·)` on S, S2 the kept half and S1 the rest (the paper's Section "Ahpatron"):

    θ = argmin ‖Σ_{S2} θ_i κ(s_i,·) - f_1‖² + η‖θ‖² = (K_2 + ηI)^{-1} K_21 a_1,    a_2 ← a_2 + θ,

then the result is rescaled to a given norm. S2 may also be more or less than half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core.blas import dasum, daxpy, ddot, dposv, dsyrk
from ahpatron_cli.core.rows import Floats, Integers

if TYPE_CHECKING:
    from ahpatron_cli.core.capped import CappedExpansion
    from ahpatron_cli.core.expansion import Expansion

Selection: TypeAlias = Callable[[Floats, Floats, Floats, float], Integers]
"""From K, a, f(S) = Ka and η to the examples that stay, in order of age."""

ROUNDING = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
SHARE = 4
"""One of so many goes, by `selection=nearest`."""
EQUAL = 1e-10
NOISE = 1e-4
"""Losses are compared in units of `EQUAL` of the largest, or of this share of the largest a²."""
PANEL = 32
"""Examples that the greedy selection takes between two products of matrices."""


class Reduction(NamedTuple):
    """The hypothesis f̄ that replaces f: kept examples, their Gram matrix and coefficients."""

    kept: Integers
    gram: Floats
    coefficients: Floats
    norm: float
    """‖f̄‖, rescaled."""
    norm_before: float
    """‖f‖, from the Gram matrix."""
    gap: float
    """‖f - f̄‖: what Theorem 5 calls ζU, of this halving."""
    rescaled: bool
    """False where f̄ came out as zero, which no factor brings to a norm."""


def project_onto(
    gram: Floats, coefficients: Floats, select: Selection, ridge: float, norm: float | None
) -> Reduction:
    """Project f onto the examples that `select` keeps; rescale to `norm` (None: that of f)."""
    values = gram.dot(coefficients)  # f at its own examples
    kept = select(gram, coefficients, values, ridge)
    K2, a2 = _part(gram, kept), coefficients.take(kept)
    a2 += _ridge_solve(K2, values.take(kept) - K2.dot(a2), ridge)  # K_21 a_1: what a_2 leaves of f
    return _rescaled(kept, K2, a2, ddot(a2, K2.dot(a2)), coefficients, values, norm)


def _part(gram: Floats, kept: Integers) -> Floats:
    """The rows and columns of those kept; `clip` only spares the check of numbers."""
    rows = gram.take(kept, axis=0, mode="clip") if gram.flags.contiguous else gram[kept]
    return rows.take(kept, axis=1, mode="clip")


def project_classes(
    gram: Floats, coefficients: Floats, select: Selection, ridge: float, norm: float | None
) -> tuple[Integers, Floats, list[Reduction]]:
    """`project_onto` for each class, a row of coefficients each, on one S2 for all.

    `select` sees the norms of the examples' coefficients over the classes in place of |a|; it must
    not be one that looks at values of f. Each class is rescaled to its own norm, or to `norm`.
    """
    values = coefficients @ gram
    sizes = np.sqrt((coefficients * coefficients).sum(axis=0))
    kept = select(gram, sizes, sizes, ridge)
    K2, a2 = _part(gram, kept), coefficients[:, kept]
    a2 = a2 + _ridge_solve(K2, (values[:, kept] - a2 @ K2).T, ridge).T
    squares = np.einsum("ci,ci->c", a2, a2 @ K2).tolist()
    rows = zip(a2, squares, coefficients, values, strict=True)
    return kept, K2, [_rescaled(kept, K2, *row, norm) for row in rows]


def hand_over(gram: Floats, coefficients: Floats, kept: int, norm: float) -> Reduction:
    """Keep the oldest; each other one hands its coefficient to the most similar that stays.

    Where equal but for rounding, to the oldest of them.
    """
    similar = gram[:kept, kept:]
    most = similar.max(axis=0)
    heirs = np.argmax(similar >= most - 1e-9 * np.abs(most), axis=0)
    merged = coefficients[:kept] + np.bincount(heirs, coefficients[kept:], minlength=kept)
    K2 = gram[:kept, :kept]
    squared = float(merged @ K2 @ merged)
    values = gram @ coefficients
    return _rescaled(np.arange(kept), K2.copy(), merged, squared, coefficients, values, norm)


def _rescaled(
    kept: Integers,
    K2: Floats,
    a2: Floats,
    squared: float,
    before: Floats,
    values: Floats,
    norm: float | None,
) -> Reduction:
    """`f̄ = Σ a2_i κ(s_i,·)` on the kept examples, of squared norm `squared`, brought to `norm`.

    `before` are the coefficients of f, and `values` what it is at its own examples.
    """
    norm_before = math.sqrt(max(ddot(before, values), 0.0))
    overlap = ddot(a2, values.take(kept))
    target = norm_before if norm is None else norm
    # Below this, ‖f̄‖² is nothing but the rounding of its sum (κ <= 1).
    mass = dasum(a2)
    rescaled = squared > 4 * ROUNDING * mass * mass
    factor = target / math.sqrt(squared) if rescaled else 1.0
    squared, overlap = factor * factor * max(squared, 0.0), factor * overlap
    return Reduction(
        kept=kept,
        gram=K2,
        coefficients=factor * a2,
        norm=target if rescaled else math.sqrt(squared),
        norm_before=norm_before,
        gap=math.sqrt(max(norm_before**2 - 2 * overlap + squared, 0.0)),
        rescaled=rescaled,
    )


def choose_largest(coefficients: Floats) -> Integers:
    """The half with the largest |a|, in order of age; where equal, the older stays.

    Equal means to ten digits of the largest: examples far from all others keep equal coefficients
    but for the rounding of θ, and rounding must not decide who stays.
    """
    half = len(coefficients) // 2
    sizes = np.abs(coefficients)
    order = sizes.argsort()
    largest = max(sizes.item(order.item(-1)), TINY)
    if sizes.item(order.item(-half)) - sizes.item(order.item(-half - 1)) <= 2 * EQUAL * largest:
        # equal ones from the youngest on, so that the older are among the last half
        order = np.rint(sizes / (EQUAL * largest))[::-1].argsort(kind="stable")
        order = len(sizes) - 1 - order
    kept = order[len(order) - half :]
    kept.sort()
    return kept


def choose_greedily(gram: Floats, values: Floats, ridge: float) -> Integers:
    """The half found by forward greedy projection of f (orthogonal matching pursuit).

    Repeatedly take the example with the largest `r_i²/d_i`, where r are the values at S of the part
    of f not yet explained and d_i is the squared distance of κ(s_i,·) to the span of those taken,
    plus η. A pivoted Cholesky factorisation of K + ηI, stopped half-way, keeps both up to date; the
    rest of K follows a panel at a time.
    Where gains are equal but for rounding, as those of duplicates are, the older is taken.
    """
    size = len(values)
    residual = values.copy()
    distance = gram.diagonal() + ridge
    left = gram.copy().T  # its lower triangle: K minus what those of earlier panels explain
    panel = np.empty((PANEL, size))  # row k: the column of the factor that the k-th of it added
    taken = np.zeros(size, dtype=bool)
    gain = residual * residual / distance
    floor = 1e-20 * float(gain.max())
    for number in range(size // 2):
        k = number % PANEL
        if number and not k:
            left = dsyrk(-1.0, panel.T, beta=1.0, c=left, lower=1, overwrite_c=1)
        np.multiply(residual, residual, out=gain)
        np.divide(gain, distance, out=gain)
        most = gain.item(gain.argmax())
        best = int((gain >= most * (1 - 1e-9)).argmax() if most > floor else taken.argmin())
        pivot = math.sqrt(distance.item(best))
        column = panel[k]
        column[:best], column[best:] = left[best, :best], left[best:, best]
        column[best] += ridge
        if k:
            column -= panel[:k, best] @ panel[:k]
        column /= pivot
        daxpy(column, residual, a=-residual.item(best) / pivot)  # in place
        distance -= np.multiply(column, column, out=gain)
        np.maximum(distance, ridge, out=distance)
        taken[best], distance[best] = True, math.inf  # it gains nothing any more
    return np.flatnonzero(taken)


def choose_nearest(gram: Floats, coefficients: Floats) -> Integers:
    """The three quarters that stay when those go which their neighbours replace best.

    The neighbour of s_i is the example j ≠ i with the largest `κ_ij²/κ_jj`, and what is lost where
    j takes over from i is the squared distance of `a_i κ(s_i,·)` to the span of `κ(s_j,·)`,

        loss_i = a_i²·(κ_ii - κ_ij²/κ_jj).

    From the smallest loss on, i goes unless its neighbour has gone, or has to stay for another one
    that went; if these are too few, the smallest losses among the rest go, too. (Budgeted SGD
    merges pairs by such a loss, one at a time.) What stands in for them is then found by the
    projection onto all that stay, not only onto the neighbour.

    Where equal but for rounding, the older is the neighbour, and the younger goes. If every example
    has a duplicate, all losses are 0 but for rounding: they are small beside a², and so equal.
    """
    size = len(coefficients)
    diagonal = gram.diagonal()
    neighbours, closest = _neighbours(gram, diagonal)
    squares = coefficients * coefficients
    losses = squares * np.maximum(diagonal - closest, 0.0)
    largest = max(losses.max(), NOISE * squares.max(), TINY)
    losses = np.rint(losses / (EQUAL * largest))
    younger_first: list[int] = (size - 1 - losses[::-1].argsort(kind="stable")).tolist()
    left = max(size // SHARE, 1)
    stays, needed = [True] * size, [False] * size
    nearest: list[int] = neighbours.tolist()
    for one in younger_first:
        if not needed[one] and stays[nearest[one]]:
            stays[one], needed[nearest[one]] = False, True
            left -= 1
            if not left:
                break
    for one in younger_first[: size if left else 0]:
        if left and stays[one]:
            stays[one] = False
            left -= 1
    return np.flatnonzero(stays)


def _neighbours(gram: Floats, diagonal: Floats) -> tuple[Integers, Floats]:
    """For each i the j ≠ i with the largest `κ_ij²/κ_jj`, the oldest of equal ones; and that."""
    shared = np.abs(gram)  # the square has the same order, but denormals, which are slow
    lengths = diagonal
    if not (np.abs(diagonal - 1.0) <= EQUAL).all():
        shared /= np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
        lengths = np.ones(len(gram))
    np.fill_diagonal(shared, -1.0)
    rows = np.arange(len(shared))
    neighbours = shared.argmax(axis=1)
    most = shared[rows, neighbours]
    shared[rows, neighbours] = -1.0
    second = np.maximum(shared.max(axis=1), 0.0)
    shared[rows, neighbours] = most
    squares = np.maximum(most, 0.0) ** 2 / lengths.take(neighbours)
    enough = squares - EQUAL
    tied = np.flatnonzero((second * second >= enough) & (enough > 0))
    if len(tied):
        neighbours[tied] = (shared[tied] >= np.sqrt(enough[tied])[:, None]).argmax(axis=1)
    neighbours[enough <= 0] = 0  # far from all: the oldest
    if enough[0] <= 0:
        neighbours[0] = min(1, len(rows) - 1)
    return neighbours, squares


def _ridge_solve(K: Floats, right: Floats, ridge: float) -> Floats:
    """`(K + ηI)^{-1} right`; where η is lost in the rounding of K, by pseudo-inverse."""
    noise = len(K) ** 2 * ROUNDING  # κ <= 1: no eigenvalue is above len(K)
    if ridge > noise:
        # Values far below the rounding of 1 become 0: their products would be denormal numbers,
        # with which some CPUs take four times as long.
        regular = K + 1.0
        regular -= 1.0
        regular.reshape(-1)[:: len(K) + 1] += ridge
        # K is symmetric: its transpose is the same matrix, in the order that LAPACK reads.
        _, solution, info = dposv(regular.T, right, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(solution)
    eigenvalues, vectors = np.linalg.eigh(K)
    solid = eigenvalues > noise
    inverse = solid / np.where(solid, eigenvalues + ridge, 1.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ right).T).T)


SELECT: dict[str, Selection] = {
    "magnitude": lambda gram, coefficients, values, ridge: choose_largest(coefficients),
    "greedy": lambda gram, coefficients, values, ridge: choose_greedily(gram, values, ridge),
    "nearest": lambda gram, coefficients, values, ridge: choose_nearest(gram, coefficients),
}
"""Which examples stay, by name."""


def oldest_smallest(values: Floats) -> int:
    """The age of the smallest value; of those equal up to rounding of the largest, the oldest."""
    smallest = values.item(values.argmin())
    largest = max(values.item(values.argmax()), -smallest, TINY)
    return int((values <= smallest + EQUAL * largest).argmax())


def drop_any(f: Expansion, rng: np.random.Generator) -> float:
    """Drop an example uniformly at random; the probability of each other one to stay."""
    size = f.size
    f.drop(int(rng.integers(size)))
    return (size - 1) / size


def drop_small(f: CappedExpansion, rng: np.random.Generator) -> float:
    """Drop example i with probability `p_i = 1 - (|S|-1)·|a_i|/Σ|a_j|`, at least 0; `1 - p_i`."""
    size = f.size
    if f.all_equal:  # and so are their odds
        f.drop(int(rng.random() * size))
        return (size - 1) / size
    kept = f.sizes()
    present = kept > 0
    kept *= (size - 1) / dasum(kept)  # 1 - p
    odds = present - kept
    odds = np.maximum(odds, 0.0, out=odds).cumsum()
    gone = int(odds.searchsorted(rng.random() * odds.item(-1), side="right"))
    f.drop_at(gone)
    return float(kept.item(gone))
