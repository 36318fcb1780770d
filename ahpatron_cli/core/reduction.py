"""Budget maintenance: choose the examples of S that stay, and project f onto their span.

With `f = Σ a_i κ(s_i,·)` on S, S2 the examples that stay and S1 the rest (the paper's Section
"Ahpatron"):

    θ = argmin ‖Σ_{S2} θ_i κ(s_i,·) - f_1‖² + η‖θ‖² = (K_2 + ηI)^{-1} K_21 a_1,    a_2 ← a_2 + θ,

then the result is rescaled to a given norm. With several classes a has a column per class, and each
class is projected and rescaled separately. Only the lower triangle of Gram matrices is read, except
in `choose_nearest`, which also reads the upper one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
"""A function of K, |a|, f(S) = Ka and η that returns the indices that stay, in order of age."""


class Reduction(NamedTuple):
    """The f̄ that replaces f. With several classes, norms are arrays of shape (k,)."""

    stays: Integers  # numbers of the examples that stay, in order of age
    gram: Floats
    coefficients: Floats
    norm: Any  # ‖f̄‖, rescaled
    norm_before: Any  # ‖f‖, from the Gram matrix
    gap: float  # ‖f - f̄‖ of this halving: ζU in Theorem 6
    rescaled: bool  # False if f̄ is zero


class _Change(NamedTuple):
    """f, and the f̄ before rescaling: coefficients and values; with several classes by class."""

    a2: Floats
    reduced: Floats  # f̄ at the examples that stay
    at_staying: Floats  # f at the examples that stay
    a: Floats
    values: Floats  # f(S)

    def of_class(self, c: int) -> _Change:
        """The change of one class."""
        parts = []
        for array in self:
            part = array[:, c].copy()
            parts.append(part)
        return _Change(*parts)


class _Rescaling(NamedTuple):
    """How f̄ is rescaled. With several classes, arrays of shape (k,)."""

    factor: Any
    norm: Any  # ‖f̄‖ after rescaling
    norm_before: Any  # ‖f‖
    squared_gap: Any  # ‖f - f̄‖²
    solid: Any  # whether f̄ ≠ 0; otherwise it is not rescaled


def project_onto(
    gram: Floats, coefficients: Floats, select: Selection, ridge: float, norm: float | None
) -> Reduction:
    """Project f onto the examples that `select` returns, with η = `ridge`; rescale it to `norm`.

    With several classes `select` gets the norms of the rows of a in place of |a| and of f(S).
    """
    a = coefficients
    product: Any = dsymv
    if a.ndim > 1:
        product = dsymm
    values = product(1.0, gram.T, a)  # f(S)
    stays = _selected(gram, a, values=values, select=select, ridge=ridge)
    # Youngest first: this turns the lower triangle into the one that LAPACK handles faster.
    order = stays[::-1]
    rows = gram.take(order, 0, mode="clip")
    K2 = rows.take(order, 1, mode="clip")
    a2 = a.take(order, 0)
    at_staying = values.take(order, 0)
    own = product(1.0, K2.T, a2, lower=1)  # f_2 at those that stay
    removed = at_staying - own  # f_1 at those that stay: K_21 a_1
    theta = _ridge_solve(K2, removed, ridge)
    a2 += theta
    reduced = product(1.0, K2.T, a2, lower=1)
    change = _Change(a2=a2, reduced=reduced, at_staying=at_staying, a=a, values=values)
    oldest_first = K2[::-1, ::-1]
    new = _rescaled(stays, oldest_first, change=change, norm=norm)
    return new._replace(coefficients=new.coefficients[::-1])


def _selected(
    gram: Floats, a: Floats, *, values: Floats, select: Selection, ridge: float
) -> Integers:
    """The examples that stay, as `select` decides from K, |a| and f(S)."""
    if a.ndim == 1:
        sizes = np.abs(a)
        return select(gram, sizes, values, ridge)
    squares = np.square(a)
    sizes = np.sqrt(squares.sum(axis=1))
    return select(gram, sizes, sizes, ridge)


def merge_into_nearest(gram: Floats, coefficients: Floats, count: int, norm: float) -> Reduction:
    """Keep the `count` oldest examples; add each other coefficient to the most similar of them."""
    similar = gram[count:, :count]
    largest = similar.max(axis=1, keepdims=True)
    slack = NEAR_TIE * np.abs(largest)
    is_nearest = similar >= largest - slack
    nearest = is_nearest.argmax(axis=1)  # ties up to rounding: the oldest
    removed = coefficients[count:]
    added = np.bincount(nearest, removed, minlength=count)
    a2 = coefficients[:count] + added
    K2 = gram[:count, :count].copy()
    reduced = dsymv(1.0, K2.T, a2)
    values = dsymv(1.0, gram.T, coefficients)
    at_staying = values[:count]
    change = _Change(a2=a2, reduced=reduced, at_staying=at_staying, a=coefficients, values=values)
    return _rescaled(np.arange(count), K2, change=change, norm=norm)


def _rescaled(stays: Integers, K2: Floats, *, change: _Change, norm: float | None) -> Reduction:
    """The `Reduction` to `f̄ = Σ a2_i κ(s_i,·)`, rescaled to `norm`."""
    if change.a2.ndim == 1:
        scaling = _rescaling(change, norm)
        squared_gap = scaling.squared_gap
        solid = scaling.solid
    else:
        classes = change.a2.shape[1]
        parts = []
        for c in range(classes):
            part = _rescaling(change.of_class(c), norm)
            parts.append(part)
        columns = zip(*parts, strict=True)
        scaling = _Rescaling(*map(np.array, columns))
        squared_gap = scaling.squared_gap.sum()
        solid = bool(scaling.solid.all())
    return Reduction(
        stays=stays,
        gram=K2,
        coefficients=scaling.factor * change.a2,
        norm=scaling.norm,
        norm_before=scaling.norm_before,
        gap=math.sqrt(squared_gap),
        rescaled=solid,
    )


def _rescaling(change: _Change, norm: float | None) -> _Rescaling:
    """How f̄ of one class is rescaled to `norm`, or to ‖f‖ without `norm`."""
    a2 = change.a2
    square_before = ddot(change.a, change.values)
    before = math.sqrt(max(square_before, 0.0))
    target = before
    if norm is not None:
        target = norm
    square = ddot(a2, change.reduced)
    total = dasum(a2)
    # otherwise ‖f̄‖² is only rounding error, and f̄ cannot be rescaled
    solid = square > 4 * EPS * total * total  # not **, which raises on overflow
    if solid:
        factor = target / math.sqrt(square)
        after = target
    else:
        factor = 1.0
        after = math.sqrt(max(square, 0.0))
    shared = ddot(a2, change.at_staying)  # ⟨f, f̄⟩ before rescaling
    mixed = 2 * factor * shared
    squared_gap = before * before - mixed + after * after
    return _Rescaling(
        factor=factor,
        norm=after,
        norm_before=before,
        squared_gap=max(squared_gap, 0.0),
        solid=solid,
    )


def choose_largest(gram: Floats, sizes: Floats, *_: object) -> Integers:
    """Indices of the half with the largest |a|, in order of age; ties: the older stay.

    Ties are equal to ten digits of the largest |a|: examples far from all others have equal
    coefficients up to rounding of θ, and rounding must not decide which of them stay.
    """
    half = len(sizes) // 2
    order = sizes.argsort()
    last = order.item(-1)
    staying = order.item(-half)
    removed = order.item(-half - 1)
    largest = max(sizes.item(last), TINY)
    slack = SLACK * largest
    smallest_staying = sizes.item(staying)
    gap = smallest_staying - sizes.item(removed)
    if gap <= 2 * slack:
        order = _younger_first(sizes, slack)  # so that the older are in the last half
    stays = order[len(order) - half :]
    stays.sort()
    return stays


def choose_greedily(gram: Floats, sizes: Floats, values: Floats, ridge: float) -> Integers:
    """Indices of the half found by greedy forward projection of f (orthogonal matching pursuit).

    Repeatedly take the example with the largest `r_i²/d_i` (ties up to rounding: the oldest), where
    r is the residual of f at S and d_i is η plus the squared distance of κ(s_i,·) to the span of
    those taken. A pivoted Cholesky factorisation of K + ηI, stopped half-way, updates both; the
    rest of K is updated in panels of 32 columns.
    """
    size = len(values)
    panel_size = 32
    residual = values.copy()
    distance = gram.diagonal() + ridge
    left = gram.copy().T  # upper triangle: K minus what earlier panels explain
    panel = np.empty((panel_size, size))  # row k: a column of the factor
    taken = np.zeros(size, dtype=bool)
    gain = residual * residual / distance
    largest = float(gain.max())
    floor = 1e-20 * largest
    for number in range(size // 2):
        k = number % panel_size
        if number and not k:
            left = dsyrk(-1.0, panel.T, beta=1.0, c=left, overwrite_c=1)
        np.multiply(residual, residual, out=gain)
        np.divide(gain, distance, out=gain)
        best = _largest_gain(gain, taken, floor)
        pivot = math.sqrt(distance.item(best))
        column = panel[k]
        _copy_column(left, best, out=column)
        column[best] += ridge
        if k:
            earlier = panel[:k]
            column -= earlier[:, best] @ earlier
        column /= pivot
        step = -residual.item(best) / pivot
        daxpy(column, residual, a=step)  # in place
        distance -= np.multiply(column, column, out=gain)
        np.maximum(distance, ridge, out=distance)
        taken[best] = True
        distance[best] = math.inf  # never taken again
    return np.flatnonzero(taken)


def _copy_column(upper: Floats, j: int, out: Floats) -> None:
    """Copy column j of a symmetric matrix, of which only the upper triangle is valid."""
    out[:j] = upper[:j, j]
    out[j:] = upper[j, j:]


def _largest_gain(gain: Floats, taken: NDArray[np.bool_], floor: float) -> int:
    """The oldest example of largest gain, up to rounding; the oldest not taken if none is left."""
    best = gain.argmax()
    largest = gain.item(best)
    if largest > floor:
        enough = largest * (1 - NEAR_TIE)
        first = (gain >= enough).argmax()
    else:
        first = taken.argmin()
    return int(first)


def choose_nearest(gram: Floats, sizes: Floats, *_: object) -> Integers:
    """Indices of three quarters of S: removes the examples that a neighbour replaces best.

    The neighbour of s_i is the example j ≠ i with the largest `κ_ij²/κ_jj`. Replacing i by j loses
    the squared distance of `a_i κ(s_i,·)` to the span of `κ(s_j,·)`:

        loss_i = a_i²·(κ_ii - κ_ij²/κ_jj).

    In order of increasing loss, i is removed unless its neighbour was removed or i is the neighbour
    of a removed example; if these are too few, the smallest losses of the rest follow. Ties up to
    rounding: the older is the neighbour, and the younger is removed.
    """
    nearest, shared = _neighbours(gram)
    squares = sizes * sizes
    explained = gram.diagonal() - shared
    distances = np.maximum(explained, 0.0)
    losses = squares * distances
    # relative to a²: if every example has a duplicate, all losses are 0 up to rounding
    least = 1e-4 * squares.max()
    largest = max(losses.max(), least, TINY / SLACK)
    ordered = _younger_first(losses, SLACK * largest)
    order: list[int] = ordered.tolist()
    size = len(sizes)
    left = max(size // 4, 1)
    stays = [True] * size
    needed = [False] * size  # neighbours of removed examples
    for i in order:
        j = nearest[i]
        if needed[i] or not stays[j]:
            continue
        stays[i] = False
        needed[j] = True
        left -= 1
        if not left:
            break
    rest = [i for i in order if stays[i]]
    for i in rest[:left]:
        stays[i] = False
    return np.flatnonzero(stays)


def _neighbours(gram: Floats) -> tuple[list[int], Floats]:
    """The neighbour j of each example i, and `κ_ij²/κ_jj`."""
    diagonal = gram.diagonal()
    divisors = np.where(diagonal > 0, diagonal, np.inf)
    lengths = np.sqrt(divisors)
    # square roots of κ²/κ_jj have the same order and are not denormal
    roots = np.abs(gram)
    roots *= 1.0 / lengths
    flat = roots.reshape(-1)
    flat[:: len(gram) + 1] = -1.0  # no example is its own neighbour
    largest = roots.max(axis=1)
    shared = np.maximum(largest, 0.0)
    shared *= shared
    enough = np.maximum(shared - SLACK, 0.0)
    limits = np.sqrt(enough)
    is_nearest = roots >= limits[:, None]
    nearest = is_nearest.argmax(axis=1)
    return nearest.tolist(), shared


def _younger_first(values: Floats, unit: float) -> Integers:
    """Indices sorted by value, rounded to multiples of `unit`; ties: the youngest first."""
    rounded = np.rint(values / unit)
    youngest_first = rounded[::-1]
    order = youngest_first.argsort(kind="stable")
    return len(values) - 1 - order


def _ridge_solve(K: Floats, right: Floats, ridge: float) -> Floats:
    """`(K + ηI)^{-1} right`; by pseudo-inverse if η is below the rounding of K.

    Only the upper triangle of K is read.
    """
    size = len(K)
    rounding = size**2 * EPS  # κ <= 1, so the largest eigenvalue is at most the size of K
    if ridge > rounding:
        # Values far below the rounding of 1 become 0: their products would be denormal numbers,
        # with which some CPUs take four times as long.
        regular = K + 1.0
        regular -= 1.0
        flat = regular.reshape(-1)
        flat[:: size + 1] += ridge
        # the transpose has the memory order of LAPACK
        _, solution, info = dposv(regular.T, right, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(solution)
    eigenvalues, vectors = np.linalg.eigh(K, UPLO="U")
    solid = eigenvalues > rounding
    divisors = np.where(solid, eigenvalues + ridge, 1.0)
    inverse = solid / divisors
    components = vectors.T @ right
    scaled = inverse * components.T
    solution = vectors @ scaled.T
    return np.asarray(solution)


SELECT: dict[str, Selection] = {
    "magnitude": choose_largest,
    "greedy": choose_greedily,
    "nearest": choose_nearest,
}
"""Selection functions by the value of the parameter `selection`."""
