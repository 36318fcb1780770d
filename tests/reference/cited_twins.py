"""The learners that the paper cites, literally: lists and loops, one example at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from reference.choices import REACHED
from reference.kernels import KernelFunction, Row
from reference.projection_twins import move, projection
from reference.twins import Trace, count_update, evaluate, predict, sign, solve

TIE = 1e-10
"""Values this near to each other, relative to the largest, are equal: the older goes."""


def first_smallest(values: list[float]) -> int:
    """The oldest of the smallest values, equal up to rounding."""
    largest = max(max(abs(value) for value in values), 1e-300)
    return next(i for i, v in enumerate(values) if v <= min(values) + TIE * largest)


def oldest_smallest_coefficient(a: list[float]) -> int:
    """The oldest of the smallest |a|, equal up to rounding of themselves."""
    least = min(abs(value) for value in a)
    return next(i for i, value in enumerate(a) if abs(value) <= least * (1 + TIE))


def remove(trace: Trace, i: int) -> None:
    del trace.points[i], trace.coefficients[i]


def add(trace: Trace, x: Row, coefficient: float) -> None:
    trace.points.append(x)
    trace.coefficients.append(coefficient)


def shrink(trace: Trace, factor: float) -> None:
    trace.coefficients = [factor * a for a in trace.coefficients]


def values_at(trace: Trace, kernel: KernelFunction) -> list[float]:
    """f(s) at every s in S."""
    return [evaluate(trace.points, trace.coefficients, kernel, s) for s in trace.points]


def budget_perceptron(
    X: list[Row], Y: list[int], kernel: KernelFunction, *, budget: int, threshold: float = 0.0
) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        mistake = sign(trace.scores[-1]) != y
        if mistake or not trace.points or (threshold > 0 and margin <= threshold * (1 + REACHED)):
            count_update(trace, margin)
            if len(trace.points) == budget:
                best = [margin_without(trace, kernel, i, i) for i in range(budget)]
                remove(trace, first_largest(best))
            add(trace, x, float(y))
            trace.sizes.append(len(trace.points))
    return trace


def tighter_perceptron(X: list[Row], Y: list[int], kernel: KernelFunction, *, budget: int) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if sign(trace.scores[-1]) != y or not trace.points:
            count_update(trace, margin)
            if len(trace.points) == budget:
                remove(trace, _fewest_errors(trace, kernel, x, y))
            add(trace, x, float(y))
            trace.sizes.append(len(trace.points))
    return trace


def _fewest_errors(trace: Trace, kernel: KernelFunction, x: Row, y: int) -> int:
    """Which example to drop: fewest errors, then the largest own margin without it, then age."""
    size = len(trace.points)
    add(trace, x, float(y))  # the last example; f does without it
    errors, margins = [], []
    for i in range(size):
        left = [margin_without(trace, kernel, k, i, size) for k in range(size + 1)]
        errors.append(sum(value <= TIE * size for value in left))
        margins.append(left[i])
    remove(trace, size)
    fewest = [i for i, count in enumerate(errors) if count == min(errors)]
    return fewest[first_largest([margins[i] for i in fewest], size)]


def margin_without(
    trace: Trace, kernel: KernelFunction, k: int, i: int, size: int | None = None
) -> Fraction:
    """y_k·(f(s_k) - a_i·κ(s_i,s_k)), exactly: rational numbers, summed over the others.

    f has the first `size` examples; all coefficients are labels.
    """
    S, a = trace.points, trace.coefficients
    terms = (
        Fraction(a[k]) * Fraction(a[j]) * Fraction(kernel(S[j], S[k]))
        for j in range(len(S) if size is None else size)
        if j != i
    )
    return sum(terms, Fraction(0))


def first_largest(values: list[Fraction], size: int | None = None) -> int:
    """The oldest of the largest values; sums of `size` terms of at most 1 are equal up to TIE."""
    slack = Fraction(TIE) * (len(values) if size is None else size)
    return next(i for i, value in enumerate(values) if value >= max(values) - slack)


def norma(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    step: float = 1.0,
    shrinkage: float | None = None,
    threshold: float = 1.0,
) -> Trace:
    lam = 0.01 / budget if shrinkage is None else shrinkage
    trace = Trace()
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        margin = predict(trace, kernel, x, y)
        eta = step / math.sqrt(t)
        shrink(trace, 1 - eta * lam)
        if margin <= threshold * (1 + REACHED) or not trace.points:
            count_update(trace, margin)
            add(trace, x, eta * y)
            if len(trace.points) > budget:
                remove(trace, 0)
            trace.sizes.append(len(trace.points))
    return trace


def silk(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    step: float = 1.0,
    shrinkage: float | None = None,
    loss_weight: float = 1.0,
    threshold: float = 1.0,
) -> Trace:
    lam = 0.01 / budget if shrinkage is None else shrinkage
    tau = step * lam / (1 + step * lam)
    cap = step * loss_weight / (1 + step * lam)
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        shrink(trace, 1 - tau)
        own = kernel(x, x)
        missing = threshold - (1 - tau) * margin
        if missing > REACHED * threshold:
            alpha = min(cap, missing / own) if own > 0 else cap
            count_update(trace, margin)
            add(trace, x, alpha * y)
            if len(trace.points) > budget:
                remove(trace, oldest_smallest_coefficient(trace.coefficients))
            trace.sizes.append(len(trace.points))
    return trace


def polk(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    step: float = 0.5,
    shrinkage: float = 0.001,
    tolerance: float = 0.01,
) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        shrink(trace, 1 - step * shrinkage)
        if margin < 1 - REACHED or not trace.points:
            count_update(trace, margin)
            d, distance = projection(trace.points, kernel, x)
            if distance**2 <= 1e-5:
                move(trace, step * y, d)
            else:
                add(trace, x, step * y)
        while trace.points:
            a = np.array(trace.coefficients)
            K = np.array([[kernel(s, r) for r in trace.points] for s in trace.points])
            errors = [_removal_error(K, a, j) for j in range(len(a))]
            j = first_smallest(errors)
            if errors[j] > tolerance:
                break
            rest = [i for i in range(len(a)) if i != j]
            moved = a[rest] + a[j] * _least_squares(K[np.ix_(rest, rest)], K[rest, j])
            remove(trace, j)
            trace.coefficients = moved.tolist()
        trace.sizes.append(len(trace.points))
    return trace


def _least_squares(K: np.ndarray, k: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(K, k, rcond=1e-10)[0] if len(k) else np.empty(0)


def _removal_error(K: np.ndarray, a: np.ndarray, j: int) -> float:
    """|a_j| times the distance of κ(s_j,·) to the span of the others: |a_j|/√((K^{-1})_jj)."""
    rest = [i for i in range(len(a)) if i != j]
    d = _least_squares(K[np.ix_(rest, rest)], K[rest, j])
    squared = float(K[j, j] - 2 * (d @ K[rest, j]) + d @ K[np.ix_(rest, rest)] @ d)
    return abs(float(a[j])) * math.sqrt(max(squared, 0.0))


def bsgd(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    regularisation: float = 0.001,
    maintenance: str = "remove",
) -> Trace:
    trace = Trace()
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        margin = predict(trace, kernel, x, y)
        shrink(trace, 1 - 1 / t)
        if margin < 1 - REACHED or not trace.points:
            count_update(trace, margin)
            MAINTENANCE[maintenance](trace, kernel, x, y / (regularisation * t), budget)
            trace.sizes.append(len(trace.points))
    return trace


def _add_and_remove(trace: Trace, _: KernelFunction, x: Row, step: float, budget: int) -> None:
    add(trace, x, step)
    if len(trace.points) > budget:
        remove(trace, oldest_smallest_coefficient(trace.coefficients))


def _add_and_merge(trace: Trace, kernel: KernelFunction, x: Row, step: float, budget: int) -> None:
    add(trace, x, step)
    S, a = trace.points, trace.coefficients
    if len(S) <= budget:
        return
    i = oldest_smallest_coefficient(a)
    partners = [j for j in range(len(a)) if j != i and (a[j] > 0) == (a[i] > 0)]
    if partners:
        m = [a[i] / (a[i] + a[j]) for j in partners]
        k = [kernel(S[i], S[j]) for j in partners]
        losses = [_interpolated(0, *pair) for pair in zip(m, k, strict=True)]
        best = next(p for p, loss in enumerate(losses) if loss <= min(losses) + 1e-10)
        j, h = partners[best], _interpolated(1, m[best], k[best])
        g = m[best] * k[best] ** ((1 - h) ** 2) + (1 - m[best]) * k[best] ** (h**2)
        a[j] = (a[i] + a[j]) * g
        S[j] = [h * u + (1 - h) * v for u, v in zip(S[i], S[j], strict=True)]
    remove(trace, i)


CELLS = 256


def _interpolated(which: int, m: float, k: float) -> float:
    """Bilinear, from the four nodes around (m, √κ)."""
    x, y = 2 * CELLS * m, CELLS * math.sqrt(k)
    row, column = min(int(x), CELLS), min(int(y), CELLS)
    total = 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            share = abs(1 - dx - (x - row)) * abs(1 - dy - (y - column))
            if share > 0:
                total += share * _node(min(row + dx, CELLS), min(column + dy, CELLS))[which]
    return total


@cache
def _node(row: int, column: int) -> tuple[float, float]:
    """Loss in units of a_i², and h by bisection: g rises where m(1-h)κ^((1-h)²) > (1-m)hκ^(h²)."""
    m, k = row / CELLS / 2, (column / CELLS) ** 2
    if k == 0:
        return 1.0, 0.0
    if m == 0:
        return 1 - k * k * (1 - 2 * math.log(k)), 0.0
    low, high = 0.0, 0.5
    for _ in range(100):
        h = (low + high) / 2
        if m * (1 - h) * k ** ((1 - h) ** 2) > (1 - m) * h * k ** (h**2):
            low = h
        else:
            high = h
    h, r = (low + high) / 2, (1 - m) / m
    loss = 1 - k ** (2 * (1 - h) ** 2) + r * r * (1 - k ** (2 * h * h))
    return loss + 2 * r * (k - k ** (1 - 2 * h * (1 - h))), h


def _add_and_project(
    trace: Trace, kernel: KernelFunction, x: Row, step: float, budget: int
) -> None:
    d, distance = projection(trace.points, kernel, x)
    if distance**2 <= 1e-3 * kernel(x, x):  # in the span of S
        move(trace, step, d)
        return
    add(trace, x, step)
    if len(trace.points) > budget:
        i = first_smallest([abs(a) for a in trace.coefficients])
        s, a = trace.points[i], trace.coefficients[i]
        remove(trace, i)
        move(trace, a, projection(trace.points, kernel, s)[0])


MAINTENANCE = {"remove": _add_and_remove, "project": _add_and_project, "merge": _add_and_merge}


def bpa_s(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    aggressiveness: float = 1.0,
) -> Trace:
    C = aggressiveness
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if margin < 1 - REACHED:
            count_update(trace, margin)
            tau = min(C, 1 - margin)
            if len(trace.points) < budget:
                add(trace, x, y * tau)
            else:
                k = [kernel(s, x) for s in trace.points]
                betas = [a * k_r + y * tau for a, k_r in zip(trace.coefficients, k, strict=True)]
                left = C * max(0.0, 1 - margin - tau)
                costs = [
                    0.5 * (a**2 + beta**2 - 2 * a * beta * k_r) + left
                    for a, beta, k_r in zip(trace.coefficients, betas, k, strict=True)
                ]
                r = first_smallest(costs)
                remove(trace, r)
                add(trace, x, betas[r])
            trace.sizes.append(len(trace.points))
    return trace


def krls(X: list[Row], Y: list[int], kernel: KernelFunction, *, tolerance: float = 0.1) -> Trace:
    """P = (AᵀA)^{-1} by the recursion of the publication; K^{-1} by elimination each time."""
    trace = Trace()
    P = np.empty((0, 0))
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        d, distance = projection(trace.points, kernel, x)
        error = y - math.fsum(
            a * kernel(s, x) for a, s in zip(trace.coefficients, trace.points, strict=True)
        )
        count_update(trace, margin)
        if distance**2 > tolerance:
            step = error / distance**2
            trace.coefficients = [a - w * step for a, w in zip(trace.coefficients, d, strict=True)]
            add(trace, x, step)
            P = np.pad(P, (0, 1))
            P[-1, -1] = 1.0
        elif trace.points:
            w = np.array(d)
            q = P @ w / (1 + w @ P @ w)
            P = P - np.outer(q, w @ P)
            K = [[kernel(s, r) for r in trace.points] for s in trace.points]
            moved = solve(K, (q * error).tolist())
            trace.coefficients = [a + b for a, b in zip(trace.coefficients, moved, strict=True)]
        trace.sizes.append(len(trace.points))
    return trace
