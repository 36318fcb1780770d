"""Budget maintenance: which examples of S stay, and what they take over from the others.

With `f = Σ a_i κ(s_i,·)` on S, S2 the examples that stay and S1 the rest (the paper's Section
"Ahpatron"):

    θ = argmin ‖Σ_{S2} θ_i κ(s_i,·) - f_1‖² + η‖θ‖² = (K_2 + ηI)^{-1} K_21 a_1,    a_2 ← a_2 + θ,

then the result is rescaled to a given norm. With several classes a has a column per class, and each
class is projected and rescaled by itself. Of Gram matrices the lower triangle is read, and the
other by `choose_nearest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core.numerics import (
    EPS,
    NEAR_TIE,
    SLACK,
    TINY,
    dasum,
    daxpy,
    ddot,
    dposv,
    dsymm,
    dsymv,
    dsyrk,
)
from ahpatron_cli.core.rows import Floats, Integers

Selection: TypeAlias = Callable[[Floats, Floats, Floats, float], Integers]
"""From K, |a|, f(S) = Ka and η to the examples that stay, in order of age."""


class Reduction(NamedTuple):
    """The f̄ that replaces f. With several classes norms are arrays with an entry per class."""

    kept: Integers
    gram: Floats
    coefficients: Floats
    norm: Any  # ‖f̄‖, rescaled
    norm_before: Any  # ‖f‖, from the Gram matrix
    gap: float  # ‖f - f̄‖: Theorem 5's ζU, of this halving
    rescaled: bool  # False if f̄ is zero


def project_onto(
    gram: Floats, coefficients: Floats, select: Selection, ridge: float, norm: float | None
) -> Reduction:
    """Project f onto the examples that `select` keeps with η = `ridge`; rescale to `norm` or ‖f‖.

    With several classes `select` is given the lengths of the rows of a in place of |a| and of f(S).
    """
    product: Any = dsymv if coefficients.ndim == 1 else dsymm
    values = product(1.0, gram.T, coefficients)  # f at its own examples
    if coefficients.ndim == 1:
        kept = select(gram, np.abs(coefficients), values, ridge)
    else:
        sizes = np.sqrt(np.square(coefficients).sum(axis=1))
        kept = select(gram, sizes, sizes, ridge)
    # The youngest come first: so the lower triangle becomes the one that LAPACK is quicker with.
    order = kept[::-1]
    K2 = gram.take(order, 0, mode="clip").take(order, 1, mode="clip")
    a2 = coefficients.take(order, 0)
    at_kept = values.take(order, 0)
    a2 += _ridge_solve(K2, at_kept - product(1.0, K2.T, a2, lower=1), ridge)  # K_21 a_1
    reduced = product(1.0, K2.T, a2, lower=1)
    tables = a2, reduced, at_kept, coefficients, values
    new = _rescaled(kept, K2[::-1, ::-1], tables, norm)
    return new._replace(coefficients=new.coefficients[::-1])


def merge_into_nearest(gram: Floats, coefficients: Floats, kept: int, norm: float) -> Reduction:
    """Keep the oldest examples; add each other coefficient to the most similar example kept."""
    similar = gram[kept:, :kept]
    most = similar.max(axis=1, keepdims=True)
    # of examples that are equally similar up to rounding, the oldest
    nearest = np.argmax(similar >= most - NEAR_TIE * np.abs(most), axis=1)
    a2 = coefficients[:kept] + np.bincount(nearest, coefficients[kept:], minlength=kept)
    K2, values = gram[:kept, :kept].copy(), dsymv(1.0, gram.T, coefficients)
    tables = a2, dsymv(1.0, K2.T, a2), values[:kept], coefficients, values
    return _rescaled(np.arange(kept), K2, tables, norm)


def _rescaled(
    kept: Integers, K2: Floats, tables: Sequence[Floats], norm: float | None
) -> Reduction:
    """`f̄ = Σ a2_i κ(s_i,·)` rescaled to `norm`; a2 is the first table of `_factor`."""
    a2 = tables[0]
    if a2.ndim == 1:
        factor, after, before, gap, solid = _factor(tables, norm)
        return Reduction(kept, K2, factor * a2, after, before, math.sqrt(gap), solid)
    parts = [_factor([table[:, c].copy() for table in tables], norm) for c in range(a2.shape[1])]
    factors, norms, norms_before, gaps, solids = (
        np.array(part) for part in zip(*parts, strict=True)
    )
    gap = math.sqrt(gaps.sum())
    return Reduction(kept, K2, factors * a2, norms, norms_before, gap, bool(solids.all()))


def _factor(
    tables: Sequence[Floats], norm: float | None
) -> tuple[float, float, float, float, bool]:
    """The factor that brings f̄ to `norm`; its norm then, ‖f‖, ‖f - f̄‖², and whether f̄ ≠ 0.

    Tables are a2, f̄ and f at the examples kept, a, and f(S).
    """
    a2, reduced, at_kept, a, values = tables
    square, before = ddot(a2, reduced), math.sqrt(max(ddot(a, values), 0.0))
    target = before if norm is None else norm
    # else ‖f̄‖² is only the rounding of its sum, and no factor brings f̄ to a norm
    total = dasum(a2)
    solid = square > 4 * EPS * total * total  # of floats, ** would raise where this overflows
    factor = target / math.sqrt(square) if solid else 1.0
    after = target if solid else math.sqrt(max(square, 0.0))
    gap = before * before - 2 * factor * ddot(a2, at_kept) + after * after
    return factor, after, before, max(gap, 0.0), solid


def choose_largest(gram: Floats, sizes: Floats, *_: object) -> Integers:
    """The half with the largest |a|, in order of age; of equal ones, the older stay.

    Equal means to ten digits of the largest: examples far from all others have equal coefficients
    up to the rounding of θ, and rounding must not decide which of them stay.
    """
    half = len(sizes) // 2
    order = sizes.argsort()
    largest = max(sizes.item(order.item(-1)), TINY)
    if sizes.item(order.item(-half)) - sizes.item(order.item(-half - 1)) <= 2 * SLACK * largest:
        order = _younger_first(sizes, SLACK * largest)  # so that the older are in the last half
    kept = order[len(order) - half :]
    kept.sort()
    return kept


def choose_greedily(gram: Floats, sizes: Floats, values: Floats, ridge: float) -> Integers:
    """The half found by forward greedy projection of f (orthogonal matching pursuit).

    Repeatedly take the example with the largest `r_i²/d_i` (of those equal up to rounding, the
    oldest), where r are the values at S of the part of f not yet explained and d_i is the squared
    distance of κ(s_i,·) to the span of those taken, plus η. A pivoted Cholesky factorisation of
    K + ηI, stopped half-way, updates both; the rest of K follows a panel of 32 columns at a time.
    """
    size, panel_size = len(values), 32
    residual = values.copy()
    distance = gram.diagonal() + ridge
    left = gram.copy().T  # upper triangle: K minus what earlier panels explain
    panel = np.empty((panel_size, size))  # row k: a column of the factor
    taken = np.zeros(size, dtype=bool)
    gain = residual * residual / distance
    floor = 1e-20 * float(gain.max())
    for number in range(size // 2):
        k = number % panel_size
        if number and not k:
            left = dsyrk(-1.0, panel.T, beta=1.0, c=left, overwrite_c=1)
        np.divide(np.multiply(residual, residual, out=gain), distance, out=gain)
        most = gain.item(gain.argmax())
        best = int((gain >= most * (1 - NEAR_TIE)).argmax() if most > floor else taken.argmin())
        pivot = math.sqrt(distance.item(best))
        column = panel[k]
        column[:best], column[best:] = left[:best, best], left[best, best:]
        column[best] += ridge
        if k:
            column -= panel[:k, best] @ panel[:k]
        column /= pivot
        daxpy(column, residual, a=-residual.item(best) / pivot)  # in place
        distance -= np.multiply(column, column, out=gain)
        np.maximum(distance, ridge, out=distance)
        taken[best], distance[best] = True, math.inf  # it gains nothing any more
    return np.flatnonzero(taken)


def choose_nearest(gram: Floats, sizes: Floats, *_: object) -> Integers:
    """The three quarters that stay when the examples leave that a neighbour replaces best.

    The neighbour of s_i is the example j ≠ i with the largest `κ_ij²/κ_jj`. If j replaces i, the
    squared distance of `a_i κ(s_i,·)` to the span of `κ(s_j,·)` is lost:

        loss_i = a_i²·(κ_ii - κ_ij²/κ_jj).

    From the smallest loss on, i leaves unless its neighbour has left, or is needed by another
    example that left; if these are too few, the smallest losses among the rest leave, too.
    Of examples that are equal up to rounding, the older is the neighbour, and the younger leaves.
    """
    size, diagonal, squares = len(sizes), gram.diagonal(), sizes * sizes
    # the roots of κ²/κ_jj have the same order, and are no denormal numbers
    shared = np.abs(gram)
    shared *= 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    shared.reshape(-1)[:: size + 1] = -1.0
    most = np.maximum(shared.max(axis=1), 0.0)
    most *= most
    enough = np.sqrt(np.maximum(most - SLACK, 0.0))
    nearest: list[int] = (shared >= enough[:, None]).argmax(axis=1).tolist()
    losses = squares * np.maximum(diagonal - most, 0.0)
    # if every example has a duplicate, all losses are 0 up to rounding: compare them with a²
    largest = max(losses.max(), 1e-4 * squares.max(), TINY / SLACK)
    order: list[int] = _younger_first(losses, SLACK * largest).tolist()
    left = max(size // 4, 1)
    stays, needed = [True] * size, [False] * size
    for i in order:
        j = nearest[i]
        if not needed[i] and stays[j]:
            stays[i], needed[j] = False, True
            left -= 1
            if not left:
                break
    for i in [i for i in order if stays[i]][:left]:
        stays[i] = False
    return np.flatnonzero(stays)


def _younger_first(values: Floats, unit: float) -> Integers:
    """Indices from the smallest value on; of those that are equal in this unit, the youngest."""
    return len(values) - 1 - np.rint(values / unit)[::-1].argsort(kind="stable")


def _ridge_solve(K: Floats, right: Floats, ridge: float) -> Floats:
    """`(K + ηI)^{-1} right`; by pseudo-inverse if η is lost in the rounding of K.

    Of K the upper triangle is read.
    """
    noise = len(K) ** 2 * EPS  # κ <= 1: no eigenvalue is above len(K)
    if ridge > noise:
        # Values far below the rounding of 1 become 0: their products would be denormal numbers,
        # with which some CPUs take four times as long.
        regular = K + 1.0
        regular -= 1.0
        regular.reshape(-1)[:: len(K) + 1] += ridge
        # its transpose is in the order that LAPACK reads
        _, solution, info = dposv(regular.T, right, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(solution)
    eigenvalues, vectors = np.linalg.eigh(K, UPLO="U")
    solid = eigenvalues > noise
    inverse = solid / np.where(solid, eigenvalues + ridge, 1.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ right).T).T)


SELECT: dict[str, Selection] = {
    "magnitude": choose_largest,
    "greedy": choose_greedily,
    "nearest": choose_nearest,
}
"""Rules that select the examples that stay, by name."""
