"""The metric that metron learns: statistics of the features, and the weights that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.numerics import (
    CANCELLED,
    FAR,
    HUGE,
    TINY,
    sparse_product,
)
from ahpatron_cli.core.points import DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, distinct
from ahpatron_cli.core.state import Stateful, StateReader

Columns: TypeAlias = NDArray[np.integer[Any]]
"""Numbers of columns, of any integer type."""


@dataclass(frozen=True)
class Weighting:
    """Weights of the features and what belongs to them; the fields are those of `Metric`."""

    origin: Floats
    weights: Floats
    relevance: Floats
    new_feature_scale: float
    uniform: float

    def change_from(self, weights: Floats) -> float:
        """Mean of `|log(P_j/weights_j)|` over the features, each of weight R_j."""
        compared = self.relevance > 0.0
        P = self.weights[compared]
        ratios = P / weights[compared]
        changes = np.abs(np.log(ratios))
        R = self.relevance[compared]
        return float(R @ changes)


class Metric(Stateful):
    """Metric of metron: a weight per feature, and the statistics from which it is computed.

    The statistics of a feature are moments of the values that are not 0, about the first of them:
    the same for dense and sparse rows, and a large offset costs no digits.

    Attributes
    ----------
    columns : array of int
        Columns seen, in increasing order: all of dense data; of sparse data those with a value.
        The other arrays have an entry for each of them.
    first : array
        The first value that is not 0; 0 if there is none yet.
    scale : array
        A power of two, about 1/|first|: squares of values times `scale` neither underflow nor
        overflow. It decreases if a value arrives that is too large for it.
    count, total, square : arrays
        Moments of the values x that are not 0: their number, and the sums of
        `z = (x - first)·scale` and of z².
    rounds : float
        Number of rows in the statistics.
    origin : array
        Subtracted from x before it is weighted, so that large offsets cost distances no digits:
        the mean of the values that are not 0 if it exceeds 8 times the deviation, else 0.
    weights : array
        P, the factor of each feature; 0 for features that were 0 in all rows.
    new_feature_scale : float
        P of a feature of spread 1 that has not varied yet. The spread of a feature that was 0 in
        all rows is the square of its first nonzero value x: its weight is new_feature_scale/|x|.
    relevance : array
        R, which sums to 1 over the features that vary; 0 for the others.
    uniform : float
        The part of R that each feature that varies gets in any case, λ/p.
    """

    arrays: ClassVar[Any] = (
        "first",
        "scale",
        "count",
        "total",
        "square",
        "origin",
        "weights",
        "relevance",
    )
    state_fields: ClassVar[Any] = {
        "columns": "#w",
        **dict.fromkeys(arrays, "w"),
        "rounds": float,
        "new_feature_scale": float,
        "uniform": float,
    }
    first: Floats
    scale: Floats
    count: Floats
    total: Floats
    square: Floats
    origin: Floats
    weights: Floats
    relevance: Floats

    def __init__(self) -> None:
        self.columns: Integers = np.empty(0, dtype=np.int64)
        for name in self.arrays:
            setattr(self, name, np.empty(0))
        self.rounds = 0.0
        self.new_feature_scale = 1.0
        self.uniform = 0.0
        self._note_shifted()

    def check(self, state: StateReader) -> None:
        all_but_last = self.columns[:-1]
        before = np.append(-1, all_but_last)
        if (self.columns <= before).any():
            raise state.refusal("columns", "must increase")
        if (self.scale < 0).any():
            raise state.refusal("scale", "must not be negative")
        self._note_shifted()

    def _note_shifted(self) -> None:
        """Note the columns with an origin: sparse points store a value of each of them."""
        shifted = self.columns[self.origin != 0.0]
        self._shifted = shifted.astype(np.int32)

    def weigh_new_features(self, points: Points) -> None:
        """Set the weight of features that are nonzero for the first time, from their first value.

        S and all earlier examples are 0 there, so the weight had no effect before.
        """
        if isinstance(points, SparsePoints):
            owners, places, values = self._unweighted_sparse(points)
        else:
            assert isinstance(points, DensePoints)
            is_known = points.width <= len(self.columns)
            if is_known and self.weights.all():  # as nearly always
                return
            owners, places, values = self._unweighted_dense(points)
        if not len(places):
            return
        if not self.weights.any():  # the first nonzero row is scaled to length 1
            in_first_row = owners == owners[0]
            values_of_first = np.count_nonzero(in_first_row)
            self.new_feature_scale = 1.0 / math.sqrt(values_of_first)
        places, earliest = np.unique(places, return_index=True)  # in order of time
        values = values[earliest]
        self.first[places] = values
        self.scale[places] = _inverse_size(values)
        sizes = np.maximum(np.abs(values), TINY)
        weights = self.new_feature_scale / sizes
        self.weights[places] = np.minimum(weights, HUGE)

    def _unweighted_sparse(self, points: SparsePoints) -> tuple[Any, Any, Any]:
        """Row, place and value of each nonzero value of a feature without a weight, row by row."""
        rows = points.csr.without_zeros()
        self._insert(rows.columns)
        places, _ = self._find(rows.columns)  # all are there now
        new = self.weights[places] == 0.0
        values = rows.values[new]
        return rows.owners[new], places[new], values

    def _unweighted_dense(self, points: DensePoints) -> tuple[Any, Any, Any]:
        """Row, place and value of each nonzero value of a feature without a weight, row by row."""
        if points.width > len(self.columns):
            every = np.arange(points.width)
            self._insert(every)
        unset = np.flatnonzero(self.weights == 0.0)
        rest = points.coordinates[:, unset]
        owners, numbers = rest.nonzero()
        values = rest[owners, numbers]
        return owners, unset[numbers], values

    def add(self, points: Points) -> None:
        """Add examples, after `weigh_new_features`, to the statistics."""
        self.rounds += points.size
        if isinstance(points, SparsePoints):
            self._add_sparse(points.csr.without_zeros())
        else:
            assert isinstance(points, DensePoints)
            self._add_dense(points.coordinates)

    def _add_sparse(self, rows: CsrRows) -> None:
        """Add sparse rows that store no zeros to the statistics."""
        places, known = self._find(rows.columns)
        assert known.all()
        moved = rows.values - self.first[places]
        moved *= self.scale[places]
        squares = moved * moved
        if not _can_be_summed(squares):
            sizes = np.abs(rows.values)
            largest = np.zeros(len(self.columns))
            np.maximum.at(largest, places, sizes)
            self._rescale(largest)
            self._add_sparse(rows)
            return
        np.add.at(self.count, places, 1.0)
        np.add.at(self.total, places, moved)
        np.add.at(self.square, places, squares)

    def _add_dense(self, coordinates: Floats) -> None:
        """Add dense rows to the statistics."""
        filled = coordinates != 0.0
        moved = coordinates - self.first
        moved *= self.scale
        moved *= filled
        squares = np.einsum("ij,ij->j", moved, moved)
        if not _can_be_summed(squares):
            sizes = np.abs(coordinates)
            largest = sizes.max(axis=0)
            self._rescale(largest)
            self._add_dense(coordinates)
            return
        self.count += filled.sum(axis=0)
        self.total += moved.sum(axis=0)
        self.square += squares

    def halve(self) -> None:
        """Let all examples so far count half in the statistics."""
        self.rounds /= 2.0
        self.count /= 2.0
        self.total /= 2.0
        self.square /= 2.0

    def _rescale(self, largest: Floats) -> None:
        """Decrease `scale` where needed so that values up to `largest` can be squared."""
        first = np.abs(self.first)
        smaller = _inverse_size(np.maximum(largest, first))
        scale = np.minimum(self.scale, smaller)
        before = np.where(scale > 0.0, self.scale, 1.0)
        factors = scale / before
        self.total *= factors
        self.square *= factors * factors
        self.scale = scale

    def _find(self, columns: Columns) -> tuple[Any, Any]:
        """Positions of these columns in the arrays, and a mask of those that are there.

        Positions of the others have no meaning, but are legal unless there are no columns at all.
        """
        last = len(self.columns) - 1
        has_no_gaps = last < 0 or self.columns[-1] == last
        if has_no_gaps:  # columns 0 to last
            places = np.minimum(columns, max(last, 0))
            return places, columns <= last
        columns = columns.astype(np.int64)  # else NumPy would convert all columns seen
        places = self.columns.searchsorted(columns)
        np.minimum(places, last, out=places)
        return places, self.columns[places] == columns

    def _insert(self, columns: Columns) -> None:
        """Insert those of these columns that are new."""
        _, known = self._find(columns)
        if known.all():
            return
        new = distinct(columns[~known])
        places = self.columns.searchsorted(new)
        self.columns = np.insert(self.columns, places, new)
        for name in self.arrays:
            longer = np.insert(getattr(self, name), places, 0.0)
            setattr(self, name, longer)

    def weighted(self, points: Points) -> Points:
        """Examples as points of the kernel: `P·(x - origin)`, within ±`FAR`.

        Features that were 0 in all rows so far have the weight new_feature_scale/|x| for each x.
        """
        rows: CsrRows | None = None
        if isinstance(points, SparsePoints):
            rows = points.csr.storing(self._shifted)
            places, known = self._find(rows.columns)
            x = rows.values
            weights = _taken(self.weights, places, known)
            origin = np.zeros(1)
            if len(self._shifted):
                origin = _taken(self.origin, places, known)
        else:
            points = points.widened(len(self.columns))
            assert isinstance(points, DensePoints)
            x = points.coordinates
            weights = self.weights
            origin = self.origin
            more = points.width - len(self.columns)
            if more:
                weights = np.pad(weights, (0, more))
                origin = np.pad(origin, (0, more))
        z = x - origin
        z *= weights
        if not weights.all():
            unit = self.new_feature_scale * np.sign(x)
            z = np.where(weights > 0.0, z, unit)
        found = _points(rows, z)
        if found.largest < FAR * FAR / 2.0:
            return found
        near = np.clip(z, -FAR, FAR)  # κ is 0 that far away, whatever the distance is
        return _points(rows, near)

    def _deviations(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Origin and root of the spread of each feature, and which features vary.

        The spread is the variance over all rows, divided by the share p of rows where the feature
        is not 0. With mean and variance of the values that are not 0, that is
        `variance + (1 - p)·mean²`, whose terms do not cancel. A feature that does not vary, up to
        rounding, has the square of its first value as its spread.
        """
        filled = np.where(self.count > 0.0, self.count, 1.0)
        shift = self.total / filled
        mean = self.first * self.scale + shift
        variance = self.square / filled - shift * shift
        is_rounding = variance <= CANCELLED * shift * shift
        variance[is_rounding] = 0.0
        zeros = self.rounds - self.count
        empty = zeros / self.rounds  # 1 - p
        empty[empty <= CANCELLED] = 0.0
        spread = variance + empty * mean**2
        deviation = np.sqrt(spread)
        size = np.abs(mean)
        varies = deviation > CANCELLED * size
        varies &= self.count > 0.0  # later rows of the block may have its first values
        # (1 - p)·mean² <= spread, so a column with an origin is 0 in less than 1/64 of the rows
        shifted = varies & (size > 8.0 * deviation)
        origin = np.zeros(len(varies))
        np.divide(mean, self.scale, out=origin, where=shifted)
        in_units = np.abs(self.first)
        np.divide(deviation, self.scale, out=in_units, where=varies)
        return origin, np.maximum(in_units, TINY), varies

    def proposed(self, t: int, gradients: Floats | None, classes: int) -> Weighting:
        """The weights that follow from the statistics; t is that of λ.

        `gradients` are the mean over S of the squared gradients of f in the current metric, summed
        over the classes; without them, all features are equally relevant.
        """
        origin, deviation, varies = self._deviations()
        varying = int(np.count_nonzero(varies))
        features = max(varying, 1)
        base = 1.0 / features
        shares = np.full(len(varies), base)
        if gradients is not None:
            sloping = varies & (gradients > 0.0)
            steepness = self.weights * deviation
            scaled = gradients * steepness**2
            scaled = np.where(sloping, scaled, 0.0)  # g
            total = scaled.sum()
            if 0 < total < math.inf:
                uniform_share = _uniform_share(features, classes, t)  # λ
                base *= uniform_share
                rest = 1 - uniform_share
                shares = rest * scaled / total + base
        relevance = np.where(varies, shares, 0.0)
        # Σ_j var_j·P_j² before P is divided by its root; 0 if nothing varies
        evidence = float(relevance @ self.count)
        square = evidence / self.rounds
        norm = math.sqrt(square) or 1.0
        weights = np.sqrt(shares) / deviation / norm
        weights = np.minimum(weights, HUGE)
        weights = np.where(self.count > 0, weights, 0.0)
        return Weighting(
            origin=origin,
            weights=weights,
            relevance=relevance,
            new_feature_scale=math.sqrt(base) / norm,
            uniform=base,
        )

    def adopt(self, weighting: Weighting) -> None:
        """Use these weights from now on."""
        self.origin = weighting.origin
        self.weights = weighting.weights
        self.relevance = weighting.relevance
        self.new_feature_scale = weighting.new_feature_scale
        self.uniform = weighting.uniform
        self._note_shifted()

    def gradients(self, slopes: Floats, a: Floats, points: Points) -> Floats:
        """Mean over S of the squares of `Σ_j slopes_ij·a_j·(z_j - z_i)`, summed over classes.

        z are the points of S; a has a column for each class.
        """
        means = np.zeros(len(self.columns))
        for coefficients in a.T:
            matrix = slopes * coefficients
            diagonal = np.einsum("ii->i", matrix)  # a view: the matrix changes with it
            diagonal -= matrix.sum(axis=1)
            if isinstance(points, DensePoints):
                moved = matrix @ points.coordinates
                squares = np.einsum("ij,ij->j", moved, moved)
                means[: points.width] += squares
            else:
                assert isinstance(points, SparsePoints)
                self._add_squares(means, matrix, points.csr)
        return means / len(a)

    def _add_squares(self, sums: Floats, matrix: Floats, rows: CsrRows) -> None:
        """Add the squares of `matrix`·`rows` to `sums`, by column."""
        by_column, columns = _transposed(rows)
        places, known = self._find(columns)
        turned = np.ascontiguousarray(matrix.T)
        count = len(columns)
        squares = np.empty(count)
        for start in range(0, count, 4096):  # the columns of S may be many
            stop = min(start + 4096, count)
            part = by_column.slice(start, stop)
            moved = sparse_product(part, turned)
            squares[start:stop] = np.einsum("ij,ij->i", moved, moved)
        sums[places[known]] += squares[known]  # no place twice

    @property
    def effective(self) -> float:
        """Effective number of features: exp of the entropy of the relevances."""
        shares = self.relevance[self.relevance > 0]
        if not len(shares):
            return 0.0
        negative_entropy = float(shares @ np.log(shares))
        return math.exp(-negative_entropy)


def _uniform_share(features: int, classes: int, t: int) -> float:
    """λ, the share of the relevance that all features have equally, after t rounds."""
    warm_up_rounds = 60.0 * features
    others = max(classes - 1, 1)
    seen = math.sqrt(others) * t
    share = warm_up_rounds / (warm_up_rounds + seen)
    return max(0.1, share)


def _can_be_summed(squares: Floats) -> bool:
    """Whether the sum of these squares and of many like them stays finite."""
    largest = squares.max(initial=0.0)
    return bool(largest < FAR * FAR)


def _inverse_size(values: Floats) -> Floats:
    """Powers of two: times these, the values have a size of 1/2 to 1 (denormal ones: less)."""
    sizes = np.maximum(np.abs(values), TINY)
    _, exponents = np.frexp(sizes)
    return np.ldexp(1.0, -exponents)


def _taken(array: Floats, places: Integers, known: NDArray[np.bool_]) -> Floats:
    """Entries of an array at these places; 0 for those that are not known."""
    if known.all():
        return array[places]
    taken = np.zeros(len(places))
    taken[known] = array[places[known]]
    return taken


def _points(rows: CsrRows | None, values: Floats) -> Points:
    """Points with these values: sparse with the columns of `rows`, or dense without `rows`."""
    if rows is None:
        return DensePoints(values)
    return SparsePoints(replace(rows, values=values))


def _transposed(rows: CsrRows) -> tuple[CsrRows, Any]:
    """The transpose, with a row per column that has a value, and the numbers of these columns."""
    order = np.argsort(rows.columns, kind="stable")
    sorted_columns = rows.columns[order]
    columns, starts = np.unique(sorted_columns, return_index=True)
    owners = rows.owners[order]
    transposed = CsrRows(
        indptr=np.append(starts, len(order)),
        columns=owners.astype(np.int32),
        values=rows.values[order],
        width=len(rows),
    )
    return transposed, columns
