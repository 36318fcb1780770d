"""Kernels κ with κ(x, x) <= 1, evaluated between whole sets of points.

`Kernel.points` converts rows once; `Kernel.between` returns the n x m matrix of two sets of points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.numerics import EPS, HUGE, LOWEST, NEAR_TIE
from ahpatron_cli.core.parameters import Declared, integer, real
from ahpatron_cli.core.points import DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, row_sums, unit_rows

__all__ = ["KERNELS", "Gaussian", "Kernel", "Laplacian", "Linear", "Polynomial"]

Distance: TypeAlias = Literal["euclidean", "cityblock"]


@dataclass(frozen=True)
class Kernel(Declared):
    """Base class of kernels: conversion of rows to points, and kernel matrices.

    A kernel is a frozen dataclass that defines `name` and `between`; its parameters are declared
    with `integer` and `real`. The first line of its docstring, the formula, is shown by
    `ahpatron learners`. All that the commands know of a kernel is declared here.
    """

    name: ClassVar[str]
    """The name in `--kernel`."""
    distance: ClassVar[Distance | None] = None
    """The distance that κ depends on, as SciPy names it, from which a parameter `sigma` is chosen;
    None if κ(u, v) is not a function of u - v."""
    centred: ClassVar[bool] = False
    """Whether to centre dense rows first: κ does not change, and large offsets cost no digits."""

    def points(self, rows: Rows, centre: Floats | None = None) -> Points:
        """Convert rows to points (divided by σ, if any); a NumericalError if a square overflows."""
        unit = getattr(self, "sigma", 1.0)
        points: Points
        if isinstance(rows, CsrRows):
            values = np.divide(rows.values, unit, dtype=np.float64)
            scaled = replace(rows, values=values)
            points = SparsePoints(scaled)
        else:
            points = DensePoints(rows, centre, unit)
        if not points.largest < HUGE:
            raise self._overflow(rows, points)
        return points

    def _overflow(self, rows: Rows, points: Points) -> NumericalError:
        """The error for rows of which one has a squared length that is not a finite number."""
        sums = row_sums(rows)
        missing = np.flatnonzero(np.isnan(sums))
        if len(missing):
            message = "one of its features is not a number"
            return NumericalError(message, missing.item(0))
        message = "its squared length overflows a double"
        if hasattr(self, "sigma"):
            message = "its squared length, in units of the kernel's width, overflows a double"
        is_finite = points.half_norms < HUGE
        first = is_finite.argmin()
        return NumericalError(message, int(first))

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        """Kernel matrix κ(s, x), s in `left` (rows), x in `right` (columns); `out` may be used."""
        raise NotImplementedError

    def diagonal(self, points: Points) -> list[float]:
        """κ(x, x) of each point."""
        return [1.0] * points.size


@dataclass(frozen=True)
class _Scaled(Kernel):
    """Base of kernels that depend on (u - v)/σ."""

    sigma: float = real("σ", "width of the kernel", default=1.0, over=0)


@dataclass(frozen=True)
class Gaussian(_Scaled):
    """`κ(u, v) = exp(-‖u - v‖² / (2σ²))`.

    >>> kernel = Gaussian(sigma=2.0)
    >>> points = kernel.points(np.array([[0.0], [2.0]]))
    >>> kernel.between(points, points).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """

    name = "gaussian"
    distance = "euclidean"
    centred = True

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        exponents, lowest = _exponents(left, right, out)
        return _exp(exponents, lowest)


def _exponents(left: Points, right: Points, out: Floats | None) -> tuple[Floats, float]:
    """Matrix of -‖s - x‖²/2, and a lower bound of it; inaccurate entries are recomputed.

    Entries below `LOWEST`, where `exp` is 0, may stay inaccurate: a kernel that is not 0 there
    needs `Points.differences`.
    """
    exponents = left.exponents(right, out)
    left_largest = left.largest
    right_largest = right.largest
    rounding = 4 * EPS * (left_largest + right_largest)
    if rounding > NEAR_TIE:
        _mend(exponents, left, right)
    if rounding > 1e-12:
        np.minimum(exponents, 0.0, out=exponents)
    most_apart = left_largest**0.5 + right_largest**0.5
    lowest = -(most_apart**2)
    return exponents, lowest


def _mend(exponents: Floats, left: Points, right: Points) -> None:
    """Recompute by subtraction, in place, the entries that lost digits, unless κ is 0 there."""
    trusted = NEAR_TIE / (4 * EPS)  # the product is accurate up to this sum of half norms
    left_norms = left.half_norms
    right_norms = right.half_norms
    left_sums = left_norms + right_norms.max(initial=0.0)
    right_sums = right_norms + left_norms.max(initial=0.0)
    rows = np.flatnonzero(left_sums > trusted)
    columns = np.flatnonzero(right_sums > trusted)
    place = np.ix_(rows, columns)
    found = exponents[place]
    left_of_some = left_norms[rows, None]
    sums = left_of_some + right_norms[columns]
    doubt = 4 * EPS * sums
    is_zero = found + doubt < LOWEST
    doubtful = (doubt > NEAR_TIE) & ~is_zero
    if doubtful.any():
        some_left = left.subset(rows)
        some_right = right.subset(columns)
        differences = some_left.differences(some_right, power=2)
        recomputed = -0.5 * differences
        exponents[place] = np.where(doubtful, recomputed, found)


def _exp(exponents: Floats, lowest: float) -> Floats:
    """`exp` in place, without evaluating underflows; `lowest` is a lower bound of exponents."""
    is_safe = lowest > LOWEST or not exponents.size
    if is_safe or exponents.min() > LOWEST:
        return np.exp(exponents, out=exponents)
    flat = exponents.ravel(order="K")
    near = np.flatnonzero(flat > LOWEST)
    values = np.exp(flat[near])
    flat.fill(0.0)
    flat[near] = values
    return exponents


@dataclass(frozen=True)
class Laplacian(_Scaled):
    """`κ(u, v) = exp(-‖u - v‖₁ / σ)`."""

    name = "laplacian"
    distance = "cityblock"

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        distances = left.differences(right, power=1)
        exponents = np.negative(distances, out=distances)
        return _exp(exponents, lowest=-np.inf)


@dataclass(frozen=True)
class Matern(Kernel):
    """`κ(u, v) = 0.8·M(d/3) + 0.2·M(d/0.7)`, `M(s) = (1 + √3·s)·exp(-√3·s)`, `d = ‖u - v‖`.

    M is Matérn 3/2. With `smooth`, `κ(u, v) = exp(-d²/(2·1.5²))` instead. The kernel of metron; not
    in `KERNELS`.
    """

    name = "matern"
    distance = "euclidean"
    smooth: bool = False

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        distances, largest = self.distances(left, right, out)
        return self.at(distances, largest)

    def distances(
        self, left: Points, right: Points, out: Floats | None = None
    ) -> tuple[Floats, float]:
        """Matrix of √3·‖s - x‖, s in `left`, x in `right`, and an upper bound of its entries."""
        exponents, lowest = _exponents(left, right, out)
        exponents *= -6.0
        squares = np.maximum(exponents, 0.0, out=exponents)
        distances = np.sqrt(squares, out=squares)
        largest_square = -6.0 * lowest
        return distances, largest_square**0.5

    def at(self, distances: Floats, largest: float = np.inf) -> Floats:
        """κ at these distances √3·‖s - x‖, computed in place."""
        if self.smooth:
            distances *= distances
            distances *= -1 / 13.5
            lowest = -largest * largest / 13.5
            return _exp(distances, lowest)
        fine_exponents = distances * (-1 / 0.7)
        fine = _matern(fine_exponents, weight=0.2, largest=largest / 0.7)
        distances *= -1 / 3
        values = _matern(distances, weight=0.8, largest=largest / 3)
        values += fine
        return values

    def slopes(self, distances: Floats) -> Floats:
        """Slope ρ at these distances √3·‖s - x‖: the gradient of κ(s, ·) at x is ρ·(s - x)."""
        if self.smooth:
            values = self.at(distances.copy())
            return values / 2.25
        coarse_exponents = np.maximum(distances / -3.0, LOWEST)
        coarse = np.exp(coarse_exponents)
        fine_exponents = np.maximum(distances / -0.7, LOWEST)
        fine = np.exp(fine_exponents)
        slopes = 0.8 / 3 * coarse
        slopes += 0.6 / 0.49 * fine
        return np.asarray(slopes)


def _matern(exponents: Floats, weight: float, largest: float) -> Floats:
    """`w·(1 - e)·exp(e)`, in place, for exponents e with |e| <= `largest`."""
    if largest > -LOWEST:
        np.maximum(exponents, LOWEST, out=exponents)
    powers = np.exp(exponents)
    exponents -= 1.0
    exponents *= -weight
    exponents *= powers
    return exponents


@dataclass(frozen=True)
class Polynomial(Kernel):
    """`κ(u, v) = ((⟨u, v⟩ + c) / √((‖u‖² + c)(‖v‖² + c)))^p`, so that κ(x, x) = 1."""

    name = "polynomial"

    degree: int = integer("p", "degree of the polynomial", default=2, at_least=1, at_most=100)
    offset: float = real("c", "constant added to the inner product", default=1.0, over=0)

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        offset = self.offset
        cosines: Floats = left.products(right)
        cosines += offset
        left_squares = 2 * left.half_norms + offset
        left_lengths = np.sqrt(left_squares)
        cosines /= left_lengths[:, None]
        right_squares = 2 * right.half_norms + offset
        cosines /= np.sqrt(right_squares)
        cosines = np.clip(cosines, -1.0, 1.0)
        powers = cosines**self.degree
        return np.asarray(powers)


@dataclass(frozen=True)
class Linear(Kernel):
    """`κ(u, v) = ⟨u, v⟩ / (‖u‖·‖v‖)`, the cosine; 0 for a row of zeros, κ(0, 0) included."""

    name = "linear"

    def points(self, rows: Rows, centre: Floats | None = None) -> Points:
        """Convert rows to points of length one."""
        rows = unit_rows(rows)
        return super().points(rows, centre)

    def between(self, left: Points, right: Points, out: Floats | None = None) -> Floats:
        cosines = left.products(right)
        clipped = np.clip(cosines, -1.0, 1.0)
        return np.asarray(clipped)

    def diagonal(self, points: Points) -> list[float]:
        has_length = points.half_norms > 0
        lengths = has_length.astype(float)
        squares: list[float] = lengths.tolist()
        return squares


KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in (Gaussian, Laplacian, Polynomial, Linear)
}
"""Kernels by name. Options, completion, `--sigma auto` and `ahpatron learners` use this table."""
