"""The learned metric of metron, and the hypothesis whose kernel uses it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.kernels import Matern
from ahpatron_cli.core.numerics import (
    CANCELLED,
    EPS,
    FAR,
    HUGE,
    TINY,
    dgemv,
    dpotrf,
    dpotri,
    dpotrs,
    dsymm,
    dsyrk,
    dtrmm,
    dtrsm,
    sparse_product,
)
from ahpatron_cli.core.points import DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.core.second_order import Head, SecondOrder
from ahpatron_cli.core.state import State, Stateful, StateReader
from ahpatron_cli.core.symmetric import Symmetric


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
        return float(self.relevance[compared] @ np.abs(np.log(ratios)))


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
        negative = (self.columns < 0).any()
        if negative or (np.diff(self.columns) <= 0).any():
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
        elif points.width <= len(self.columns) and self.weights.all():  # as nearly always
            return
        else:
            owners, places, values = self._unweighted_dense(points)
        if not len(places):
            return
        if not self.weights.any():  # the first nonzero row is scaled to length 1
            in_first_row = np.count_nonzero(owners == owners[0])
            self.new_feature_scale = 1.0 / math.sqrt(in_first_row)
        places, earliest = np.unique(places, return_index=True)  # in order of time
        values = values[earliest]
        self.first[places] = values
        self.scale[places] = _inverse_size(values)
        weights = self.new_feature_scale / np.maximum(np.abs(values), TINY)
        self.weights[places] = np.minimum(weights, HUGE)

    def _unweighted_sparse(self, points: SparsePoints) -> tuple[Any, Any, Any]:
        """Row, place and value of each nonzero value of a feature without a weight, row by row."""
        rows = points.csr.without_zeros()
        self._insert(rows.columns)
        places, _ = self._find(rows.columns)  # all are there now
        new = self.weights[places] == 0.0
        return rows.owners[new], places[new], rows.values[new]

    def _unweighted_dense(self, points: Points) -> tuple[Any, Any, Any]:
        """The same for dense points."""
        assert isinstance(points, DensePoints)
        if points.width > len(self.columns):
            self._insert(np.arange(points.width))
        unset = np.flatnonzero(self.weights == 0.0)
        rest = points.coordinates[:, unset]
        owners, numbers = rest.nonzero()
        return owners, unset[numbers], rest[owners, numbers]

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
        if not squares.max(initial=0.0) < FAR * FAR:
            largest = np.zeros(len(self.columns))
            np.maximum.at(largest, places, np.abs(rows.values))
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
        if not squares.max(initial=0.0) < FAR * FAR:
            largest = np.abs(coordinates).max(axis=0)
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
        largest = np.maximum(largest, np.abs(self.first))
        scale = np.minimum(self.scale, _inverse_size(largest))
        factors = scale / np.where(scale > 0.0, self.scale, 1.0)
        self.total *= factors
        self.square *= factors * factors
        self.scale = scale

    def _find(self, columns: Any) -> tuple[Any, Any]:
        """Positions of these columns in the arrays, and a mask of those that are there.

        Positions of the others have no meaning, but are legal unless there are no columns at all.
        """
        last = len(self.columns) - 1
        if last < 0 or self.columns[-1] == last:  # columns 0 to last, without gaps
            return np.minimum(columns, max(last, 0)), columns <= last
        # same dtype, otherwise NumPy would convert all columns seen
        places = self.columns.searchsorted(columns.astype(np.int64))
        np.minimum(places, last, out=places)
        return places, self.columns[places] == columns

    def _insert(self, columns: Any) -> None:
        """Insert those of these columns that are new."""
        _, known = self._find(columns)
        if known.all():
            return
        new = np.unique(columns[~known])
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
            z = np.where(weights > 0.0, z, self.new_feature_scale * np.sign(x))
        found = _points(rows, z)
        if not found.largest < FAR * FAR / 2.0:  # κ is 0 that far away, whatever the distance is
            found = _points(rows, np.clip(z, -FAR, FAR))
        return found

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
        variance[variance <= CANCELLED * shift * shift] = 0.0  # pure rounding
        empty = (self.rounds - self.count) / self.rounds  # 1 - p
        empty[empty <= CANCELLED] = 0.0
        deviation = np.sqrt(variance + empty * mean**2)
        varies = deviation > CANCELLED * np.abs(mean)
        varies &= self.count > 0.0  # later rows of the block may have its first values
        # (1 - p)·mean² <= spread, so a column with an origin is 0 in less than 1/64 of the rows
        shifted = varies & (np.abs(mean) > 8.0 * deviation)
        origin = np.divide(mean, self.scale, out=np.zeros(len(varies)), where=shifted)
        deviation = np.divide(deviation, self.scale, out=np.abs(self.first), where=varies)
        return origin, np.maximum(deviation, TINY), varies

    def proposed(self, t: int, gradients: Floats | None, classes: int) -> Weighting:
        """The weights that follow from the statistics; t is that of λ.

        `gradients` are the mean over S of the squared gradients of f in the current metric, summed
        over the classes; without them, all features are equally relevant.
        """
        origin, deviation, varies = self._deviations()
        features = max(int(np.count_nonzero(varies)), 1)
        base = 1.0 / features
        shares = np.full(len(varies), base)
        if gradients is not None:
            sloping = varies & (gradients > 0.0)
            scaled = gradients * (self.weights * deviation) ** 2
            scaled = np.where(sloping, scaled, 0.0)  # g
            total = scaled.sum()
            if 0 < total < math.inf:
                warm_up_rounds = 60.0 * features
                seen = math.sqrt(max(classes - 1, 1)) * t
                uniform_share = max(0.1, warm_up_rounds / (warm_up_rounds + seen))  # λ
                base *= uniform_share
                shares = (1 - uniform_share) * scaled / total + base
        relevance = np.where(varies, shares, 0.0)
        # Σ_j var_j·P_j² before P is divided by its root; 0 if nothing varies
        square = float(relevance @ self.count) / self.rounds
        norm = math.sqrt(square) or 1.0
        weights = np.sqrt(shares) / deviation / norm
        weights = np.minimum(weights, HUGE)
        weights = np.where(self.count > 0, weights, 0.0)
        scale = math.sqrt(base) / norm
        return Weighting(origin, weights, relevance, new_feature_scale=scale, uniform=base)

    def adopt(self, weighting: Weighting) -> None:
        """Use these weights from now on."""
        self.origin = weighting.origin
        self.weights = weighting.weights
        self.relevance = weighting.relevance
        self.new_feature_scale = weighting.new_feature_scale
        self.uniform = weighting.uniform
        self._note_shifted()

    def gradients(self, slopes: Floats, a: Floats, points: Any) -> Floats:
        """Mean over S of the squares of `Σ_j slopes_ij·a_j·(z_j - z_i)`, summed over classes.

        z are the points of S; a has a column for each class.
        """
        means = np.zeros(len(self.columns))
        for coefficients in a.T:
            matrix = slopes * coefficients
            matrix.flat[:: len(a) + 1] -= matrix.sum(axis=1)
            if isinstance(points, DensePoints):
                moved = matrix @ points.coordinates
                means[: points.width] += np.einsum("ij,ij->j", moved, moved)
            else:
                self._add_squares(means, matrix, points.csr)
        return means / len(a)

    def _add_squares(self, sums: Floats, matrix: Floats, rows: CsrRows) -> None:
        """Add the squares of `matrix`·`rows` to `sums`, by column."""
        by_column, columns = _transposed(rows)
        places, known = self._find(columns)
        turned = np.ascontiguousarray(matrix.T)
        for start in range(0, len(columns), 4096):  # the columns of S may be many
            stop = min(start + 4096, len(columns))
            moved = sparse_product(by_column.slice(start, stop), turned)
            squares = np.einsum("ij,ij->i", moved, moved)
            here = known[start:stop]
            sums[places[start:stop][here]] += squares[here]  # no place twice

    @property
    def effective(self) -> float:
        """Effective number of features: exp of the entropy of the relevances."""
        shares = self.relevance[self.relevance > 0]
        if not len(shares):
            return 0.0
        negative_entropy = float(shares @ np.log(shares))
        return math.exp(-negative_entropy)


class Relevance(NamedTuple):
    """Relevance of a feature."""

    value: float
    """R of the metric; the sum over all features is 1."""
    above_uniform: float
    """What R has beyond the part that all features get alike."""


def relevances(fs: Sequence[Any]) -> dict[int, Relevance]:
    """Relevance of each feature that varies, by column: the mean over all f with a metric."""
    metrics = [f.metric for f in fs if isinstance(f, MetricExpansion)]
    found: dict[int, Relevance] = {}
    for metric in metrics:
        columns = metric.columns.tolist()
        for column, value in zip(columns, metric.relevance.tolist(), strict=True):
            if value > 0.0:
                above = max(value - metric.uniform, 0.0)
                before = found.get(column, Relevance(0.0, 0.0))
                found[column] = Relevance(
                    before.value + value / len(metrics),
                    before.above_uniform + above / len(metrics),
                )
    return found


def most_relevant(fs: Sequence[Any], most: int) -> list[tuple[int, float]]:
    """The `most` columns of largest relevance, with the relevance."""
    found = [(column, one.value) for column, one in relevances(fs).items()]
    found.sort(key=lambda one: (-one[1], one[0]))
    return found[:most]


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
    columns, starts = np.unique(rows.columns[order], return_index=True)
    transposed = CsrRows(
        indptr=np.append(starts, len(order)),
        columns=rows.owners[order].astype(np.int32),
        values=rows.values[order],
        width=len(rows),
    )
    return transposed, columns


class MetricExpansion(SecondOrder):
    """Hypothesis of metron: blocks hold raw examples, `points` are S in the current metric."""

    state_fields: ClassVar[Any] = {**SecondOrder.state_fields, "metric": Metric, "smooth": int}
    kernel: Matern
    least_change = 0.0
    """The metric stays as it is if it would change by less (`Weighting.change_from`)."""
    _counted: int  # rounds of the open block that the metric has counted

    def __init__(self, budget: int, classes: tuple[int, ...] = ()) -> None:
        super().__init__(Matern(), budget, classes)
        self.examples: Points | None = None  # S as it came
        self.metric = Metric()
        self.smooth = 0

    def state_dict(self) -> State:
        """The state; its points are the examples as they came."""
        state = super().state_dict()
        if self.examples is not None:
            state["points"] = self.examples.state_dict()
        return state

    def check(self, state: StateReader) -> None:
        super().check(state)
        self.kernel = Matern(self.smooth > 0)
        self.examples = self.points
        if self.examples is not None:
            self.points = self.metric.weighted(self.examples)

    def open(self, block: Points, start: int = 0) -> None:
        self._counted = start
        self.metric.weigh_new_features(block.slice(start, block.size))
        super().open(self.metric.weighted(block), start)
        self.block = block

    def close(self) -> None:
        self.count(self.m)
        self._close()

    def _close(self) -> None:
        """Close the block without counting its examples, and keep those that joined S."""
        joined = self.alive[self.n :].nonzero()[0]
        super().close()
        if not len(joined):
            return
        examples = self.block.subset(joined)
        if self.examples is None:
            self.examples = examples
        else:
            self.examples = self.examples.widened(self.block.width)
            self.examples.extend(examples)

    def leave_block(self) -> None:
        """Close the block after the current round; the engine opens the rest of it again."""
        self.count(self.t + 1)
        self._close()
        self.reopen()

    def count(self, stop: int) -> None:
        """Add the examples of the block up to round `stop` to the statistics of the metric."""
        if stop > self._counted:
            passed = self.block.slice(self._counted, stop)
            self.metric.add(passed)
            self._counted = stop

    def at(self, points: Points) -> Floats:
        return super().at(self.metric.weighted(points))

    def change(self, t: int, tolerance: float) -> bool:
        """Change the metric between two blocks, and convert f, which must not be empty.

        False if the metric hardly differs from the current one, which then stays.
        """
        assert self.points is not None
        assert self.examples is not None
        enough = self.size >= 10
        a = self.coefficients.reshape(self.size, -1)
        distances, _ = self.kernel.distances(self.points, self.points)
        np.fill_diagonal(distances, 0.0)
        gradients = None
        if enough:
            slopes = self.kernel.slopes(distances)
            gradients = self.metric.gradients(slopes, a, self.points)
        weighting = self.metric.proposed(t, gradients, classes=a.shape[1])
        if weighting.change_from(self.metric.weights) < self.least_change:
            return False
        self.metric.adopt(weighting)
        prior = self._settled_prior(distances)
        self.points = self.metric.weighted(self.examples)
        distances, _ = self.kernel.distances(self.points, self.points)
        if enough:
            self._choose_kernel(distances)
        np.fill_diagonal(distances, 0.0)
        K1 = self.kernel.at(distances)
        self._transfer(Transfer(prior.A, K1, tolerance))
        return True

    def _settled_prior(self, distances: Floats) -> Symmetric:
        """Q = K^{-1} between two blocks, from the matrix of distances if it is not kept."""
        if self.spans:
            self.Q.settle()
            return self.Q
        Q = Symmetric()
        Q.set_inverse(self.kernel.at(distances))
        return Q

    def _choose_kernel(self, distances: Floats) -> None:
        """Choose the form of κ from the matrix of distances √3·‖s - s'‖; changes its diagonal."""
        np.fill_diagonal(distances, np.inf)
        nearest = distances.min(axis=1)
        self.smooth = int(np.median(nearest) > math.sqrt(3.0))
        self.kernel = Matern(self.smooth > 0)

    def _transfer(self, transfer: Transfer) -> None:
        """Convert all heads to a new kernel; examples in the span of older ones leave S."""
        assert self.points is not None
        assert self.examples is not None
        for head in self.heads:
            transfer.convert(head)
        stays = transfer.stays
        if len(stays) < self.size:
            self.points.keep(stays)
            self.examples.keep(stays)
            self.size = len(stays)
        self.spans = self._has_room()
        self.Q = transfer.inverse() if self.spans else Symmetric()
        self._joined = 0
        self.drift = 0.0
        self.forget_norm()


class Transfer:
    """Replacement of the prior covariance K0 of f at S by K1, which keeps the evidence from rounds.

    In terms of the values of f at S, the evidence is the precision `Q·C⁻¹·Q - Q`, Q = K0⁻¹. It is
    added to that of the new prior. With `L·Lᵀ = K1` on the examples that stay, `W = L⁻¹·K1` and,
    for a head, `R·Rᵀ = C` and `X = R⁻¹·Q·Wᵀ`:
    `M = I - W·Q·Wᵀ + XᵀX`, `C ← L⁻ᵀM⁻¹L⁻¹`, `a ← C·L·XᵀR⁻¹a`.

    Attributes
    ----------
    stays : array of int
        Examples that stay: those outside the span of older ones, up to `tolerance`.
    """

    def __init__(self, Q: Floats, K1: Floats, tolerance: float) -> None:
        """Only the lower triangle of Q is read; it must be in LAPACK's memory order."""
        W, self.stays = span(K1, tolerance)
        if len(self.stays) == len(K1):  # W is triangular
            self._L = W.T
            self._images = dtrmm(1.0, self._L, _both_triangles(Q), side=1, lower=1)  # Q·Wᵀ
            self._rest = dtrmm(-1.0, self._L, self._images, lower=1, trans_a=1)
        else:
            self._L = np.asfortranarray(W[:, self.stays].T)
            self._images = dsymm(1.0, Q, W.T, lower=1)
            self._rest = np.asfortranarray(-(W @ self._images))
        self._rest.flat[:: len(self._rest) + 1] += 1.0  # I - W·Q·Wᵀ

    def convert(self, head: Head) -> None:
        """Convert coefficients and covariance of a head."""
        L = self._L
        head.C.settle()
        R = _factor(head.C.A)
        X = dtrsm(1.0, R, self._images, lower=1)
        M = dsyrk(1.0, X, beta=1.0, c=self._rest, trans=1, lower=1)
        a = head.a.reshape(len(R), -1)
        h = X.T @ dtrsm(1.0, R, a, lower=1)
        root = dtrmm(1.0, L, _factor(M), lower=1)  # root·rootᵀ = L·M·Lᵀ = C⁻¹
        a, _ = dpotrs(root, L @ h, lower=1)
        C, _ = dpotri(root, lower=1, overwrite_c=1)
        head.a = a.reshape(len(M), *head.a.shape[1:])
        head.C = Symmetric(C)

    def inverse(self) -> Symmetric:
        """Q = K1^{-1} on the examples that stay."""
        Q, _ = dpotri(self._L, lower=1)
        return Symmetric(Q)


def _both_triangles(A: Floats) -> Floats:
    """A symmetric matrix from its lower triangle."""
    lower = np.tril(A)
    lower += np.tril(A, -1).T
    return np.asfortranarray(lower)


def _factor(A: Floats) -> Floats:
    """Lower Cholesky factor of A; its diagonal is raised if rounding has made it indefinite."""
    factor, failed = dpotrf(A, lower=1)
    level = len(A) * EPS * float(A.diagonal().max(initial=0.0))
    while failed:
        raised = A.copy(order="F")
        raised.flat[:: len(A) + 1] += level
        factor, failed = dpotrf(raised, lower=1, overwrite_a=1)
        level *= 10.0
    return np.asarray(factor)


def span(K: Floats, tolerance: float) -> tuple[Floats, Integers]:
    """Select examples whose squared distance to the span of those before exceeds `tolerance`.

    Returns L⁻¹·K[kept], with L the Cholesky factor of K[kept, kept], and the indices `kept`.
    """
    L, failed = dpotrf(K.T, lower=1)
    if not failed and (L.diagonal() ** 2).min() > tolerance:  # all, as nearly always
        return L.T, np.arange(len(K))
    rows = np.empty_like(K)
    left = K.diagonal().copy()  # squared distances to the span
    kept: list[int] = []
    for i in range(len(K)):
        squared = left.item(i)
        if not squared > tolerance:
            continue
        row = rows[len(kept)]
        row[:] = K[i]
        if kept:
            done = rows[: len(kept)]
            dgemv(-1.0, done.T, done[:, i], 1.0, row, overwrite_y=1)
        row /= math.sqrt(squared)
        left -= row * row
        kept.append(i)
    return rows[: len(kept)], np.array(kept, dtype=np.int64)
