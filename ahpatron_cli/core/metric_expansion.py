"""metron's hypothesis in a learned metric, and what happens to it when the metric changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ahpatron_cli.core.kernels import Matern
from ahpatron_cli.core.metric import Metric
from ahpatron_cli.core.numerics import (
    dgemv,
    dpotrf,
    dpotri,
    dpotrs,
    dsymm,
    dsyrk,
    dtrmm,
    dtrsm,
    median,
    rounding_level,
)
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.second_order import Head, SecondOrder
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.symmetric import Symmetric


class MetricExpansion(SecondOrder):
    """Hypothesis of metron: blocks hold raw examples, `points` are S in the current metric.

    Attributes
    ----------
    examples : Points or None
        S in the order of `points`, not weighted by the metric; None before the first block.
    metric : Metric
    smooth : int
        1 if κ is the form without neighbours (`Matern.smooth`), else 0.
    """

    state_fields: ClassVar[Any] = {
        **SecondOrder.state_fields,
        "metric": Metric,
        "smooth": int,
    }
    kernel: Matern
    least_change = 0.0
    """The metric stays as it is if it would change by less (`Weighting.change_from`)."""
    _counted: int  # rounds of the open block that the metric has counted

    def __init__(self, budget: int, classes: tuple[int, ...] = ()) -> None:
        super().__init__(Matern(), budget, classes)
        self.examples: Points | None = None
        self.metric = Metric()
        self.smooth = 0

    def state_dict(self) -> State:
        """The state; its points are the raw examples of S."""
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
        coming = block.slice(start, block.size)
        self.metric.weigh_new_features(coming)
        super().open(self.metric.weighted(block), start)
        self.block = block

    def close(self) -> None:
        self.count_until(self.m)
        self._close()

    def _close(self) -> None:
        """Close the block without counting its examples, and keep those that joined S."""
        in_block = self.alive[self.n :]
        (joined,) = in_block.nonzero()
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
        self.count_until(self.t + 1)
        self._close()
        self.reopen()

    def count_until(self, stop: int) -> None:
        """Add the examples of the block up to round `stop` to the statistics of the metric."""
        if stop > self._counted:
            passed = self.block.slice(self._counted, stop)
            self.metric.add(passed)
            self._counted = stop

    def at(self, points: Points) -> Floats:
        return super().at(self.metric.weighted(points))

    def change_metric(self, t: int, tolerance: float) -> bool:
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
        self.smooth = int(median(nearest) > math.sqrt(3.0))
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


def most_relevant(fs: Sequence[Any], count: int) -> list[tuple[int, float]]:
    """The `count` columns of largest relevance, with the relevance."""
    found = relevances(fs)

    def by_relevance(column: int) -> tuple[float, int]:
        return -found[column].value, column

    largest = sorted(found, key=by_relevance)[:count]
    return [(column, found[column].value) for column in largest]


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
            whole = _both_triangles(Q)
            self._images = dtrmm(1.0, self._L, whole, side=1, lower=1)  # Q·Wᵀ
            self._rest = dtrmm(-1.0, self._L, self._images, lower=1, trans_a=1)
        else:
            staying = W[:, self.stays]
            self._L = np.asfortranarray(staying.T)
            self._images = dsymm(1.0, Q, W.T, lower=1)
            negated = -(W @ self._images)
            self._rest = np.asfortranarray(negated)
        _raise_diagonal(self._rest, by=1.0)  # I - W·Q·Wᵀ

    def convert(self, head: Head) -> None:
        """Convert coefficients and covariance of a head."""
        L = self._L
        head.C.settle()
        R = _factor(head.C.A)
        X = dtrsm(1.0, R, self._images, lower=1)
        M = dsyrk(1.0, X, beta=1.0, c=self._rest, trans=1, lower=1)
        a = head.a.reshape(len(R), -1)
        scaled = dtrsm(1.0, R, a, lower=1)
        h = X.T @ scaled
        root = dtrmm(1.0, L, _factor(M), lower=1)  # root·rootᵀ = L·M·Lᵀ = C⁻¹
        a, _ = dpotrs(root, L @ h, lower=1)
        C, _ = dpotri(root, lower=1, overwrite_c=1)
        classes = head.a.shape[1:]
        head.a = a.reshape(len(M), *classes)
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
    level = rounding_level(A)
    while failed:
        raised = A.copy(order="F")
        _raise_diagonal(raised, by=level)
        factor, failed = dpotrf(raised, lower=1, overwrite_a=1)
        level *= 10.0
    return np.asarray(factor)


def _raise_diagonal(A: Floats, by: float) -> None:
    """Add a number to each entry of the diagonal, in place."""
    A.flat[:: len(A) + 1] += by


def span(K: Floats, tolerance: float) -> tuple[Floats, Integers]:
    """Select examples whose squared distance to the span of those before exceeds `tolerance`.

    Returns L⁻¹·K[stays], with L the Cholesky factor of K[stays, stays], and the indices `stays`.
    """
    L, failed = dpotrf(K.T, lower=1)
    if not failed:
        squares = L.diagonal() ** 2
        if squares.min() > tolerance:  # all, as nearly always
            return L.T, np.arange(len(K))
    rows = np.empty_like(K)
    left = K.diagonal().copy()  # squared distances to the span
    stays: list[int] = []
    for i in range(len(K)):
        residual = left.item(i)
        if not residual > tolerance:
            continue
        row = rows[len(stays)]
        row[:] = K[i]
        if stays:
            earlier = rows[: len(stays)]
            dgemv(-1.0, earlier.T, earlier[:, i], 1.0, row, overwrite_y=1)
        row /= math.sqrt(residual)
        left -= row * row
        stays.append(i)
    numbers = np.array(stays, dtype=np.int64)
    return rows[: len(stays)], numbers
