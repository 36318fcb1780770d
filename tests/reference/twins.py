"""Every learner once more, literally: lists and loops, one example at a time.

Slow on purpose and independent on purpose: nothing here comes from the package. f(x) is summed anew
in every round, norms and Gram matrices are computed from scratch, linear systems are solved by
elimination.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from reference.choices import REACHED, evaluate, greedy, replaceable, solve
from reference.kernels import KernelFunction, Row


@dataclass
class Trace:
    """What a twin did."""

    scores: list[float] = field(default_factory=list)
    """f_t(x_t), as predicted."""
    mistakes: int = 0
    nonpositive_margins: int = 0
    updates: int = 0
    margin_updates: int = 0
    halvings: int = 0
    gaps: list[float] = field(default_factory=list)
    """‖f_t - f̄_t‖ of each halving."""
    points: list[Row] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    """|S| and ‖f‖ after each update."""
    steps: list[float] = field(default_factory=list)
    """λ_t of each update."""
    margins_at_updates: list[float] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    """Rounds, from 0, in which everything started anew."""


def norm(points: list[Row], coefficients: list[float], kernel: KernelFunction) -> float:
    total = math.fsum(
        a * b * kernel(s, r)
        for a, s in zip(coefficients, points, strict=True)
        for b, r in zip(coefficients, points, strict=True)
    )
    return math.sqrt(max(total, 0.0))


def sign(score: float) -> int:
    return 1 if score >= 0 else -1


def predict(trace: Trace, kernel: KernelFunction, x: Row, y: int) -> float:
    """Predict, then look at the label and count; the margin."""
    terms = [a * kernel(s, x) for a, s in zip(trace.coefficients, trace.points, strict=True)]
    score = math.fsum(terms)
    if abs(score) <= 1e-12 * math.fsum(abs(term) for term in terms):
        score = 0.0  # the terms cancel but for rounding
    return count(trace, score, y)


def count(trace: Trace, score: float, y: int) -> float:
    """Note the prediction, then look at the label; the margin."""
    trace.scores.append(score)
    trace.mistakes += sign(score) != y
    trace.nonpositive_margins += y * score <= 0
    return y * score


def count_update(trace: Trace, margin: float) -> None:
    trace.updates += 1
    trace.margin_updates += margin > 0
    trace.margins_at_updates.append(margin)


def perceptron(X: list[Row], Y: list[int], kernel: KernelFunction) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if sign(trace.scores[-1]) != y or not trace.points:
            count_update(trace, margin)
            trace.points.append(x)
            trace.coefficients.append(float(y))
            trace.sizes.append(len(trace.points))
    return trace


def avp(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    epsilon: float = 0.5,
    radius: float = math.inf,
    step: float = 1.0,
    schedule: str = "constant",
) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if margin < (1 - epsilon) * (1 - REACHED):
            count_update(trace, margin)
            _add_and_project(trace, kernel, x, y, _step(trace, step, radius, schedule), radius)
    return trace


def ahpatron(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    epsilon: float = 0.5,
    radius: float | None = None,
    step: float | None = None,
    schedule: str = "constant",
    ridge: float = 0.0005,
    selection: str = "magnitude",
    rescale: float | str = "keep",
) -> Trace:
    U = math.sqrt(budget) / 2 if radius is None else radius
    lam = U / math.sqrt(4 * budget) if step is None else step
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if margin < (1 - epsilon) * (1 - REACHED):
            count_update(trace, margin)
            if len(trace.points) == budget:
                _halve(trace, kernel, ridge, selection, None if rescale == "keep" else rescale * U)
            _add_and_project(trace, kernel, x, y, _step(trace, lam, U, schedule), U)
    return trace


def ahpatron_plus(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int = 400,
    epsilon: float = 0.75,
    radius: float | None = None,
    step: float = 0.25,
    schedule: str = "adaptive",
    ridge: float = 0.0005,
    selection: str = "nearest",
    rescale: float | str = "keep",
) -> Trace:
    """Defaults are spelt out once more: the law that compares with them compares these, too."""
    U = math.sqrt(budget) if radius is None else radius
    return ahpatron(
        X,
        Y,
        kernel,
        budget=budget,
        epsilon=epsilon,
        radius=U,
        step=step,
        schedule=schedule,
        ridge=ridge,
        selection=selection,
        rescale=rescale,
    )


def _step(trace: Trace, step: float, radius: float, schedule: str) -> float:
    if schedule == "constant":
        return step
    return step / math.sqrt(1 + trace.nonpositive_margins / radius**2)


def _add_and_project(
    trace: Trace, kernel: KernelFunction, x: Row, y: int, step: float, radius: float
) -> None:
    trace.steps.append(step)
    trace.points.append(x)
    trace.coefficients.append(step * y)
    size = norm(trace.points, trace.coefficients, kernel)
    if size > radius:
        trace.coefficients = [a * (radius / size) for a in trace.coefficients]
    trace.sizes.append(len(trace.points))
    trace.norms.append(min(size, radius))


def _halve(
    trace: Trace, kernel: KernelFunction, ridge: float, selection: str, target: float | None
) -> None:
    S, a = trace.points, trace.coefficients
    B = len(S)
    before = norm(S, a, kernel)
    if selection == "magnitude":
        largest = max(abs(value) for value in a)
        ranked = sorted(range(B), key=lambda i: (-round(abs(a[i]) / largest, 10), i))
        kept = sorted(ranked[: B // 2])
    elif selection == "nearest":
        gone = replaceable(S, a, kernel)
        kept = [i for i in range(B) if i not in gone]
    else:
        kept = sorted(greedy(S, a, kernel, ridge))
    gone = [i for i in range(B) if i not in kept]
    matrix = [[kernel(S[i], S[j]) + (ridge if i == j else 0.0) for j in kept] for i in kept]
    right = [math.fsum(kernel(S[i], S[j]) * a[j] for j in gone) for i in kept]
    theta = solve(matrix, right)
    points = [S[i] for i in kept]
    coefficients = [a[i] + t for i, t in zip(kept, theta, strict=True)]
    after = norm(points, coefficients, kernel)
    largest = math.fsum(abs(value) for value in coefficients)
    zero = after**2 <= 4 * 2.0**-52 * largest**2  # nothing but rounding: no factor helps
    factor = 1.0 if zero else (before if target is None else target) / after
    coefficients = [factor * value for value in coefficients]
    difference = [-value for value in a]
    for i, value in zip(kept, coefficients, strict=True):
        difference[i] += value
    trace.gaps.append(norm(S, difference, kernel))
    trace.halvings += 1
    trace.points, trace.coefficients = points, coefficients


def alma2(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    alpha: float = 0.9,
    beta: float | None = None,
    gain: float = math.sqrt(2),
) -> Trace:
    trace = Trace()
    size = 1 / alpha if beta is None else beta
    k = 1
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if margin <= (1 - alpha) * size / math.sqrt(k) * (1 + REACHED):
            count_update(trace, margin)
            _add_and_project(trace, kernel, x, y, gain / math.sqrt(k), 1.0)
            k += 1
    return trace


def forgetron(X: list[Row], Y: list[int], kernel: KernelFunction, *, budget: int) -> Trace:
    trace = Trace()
    M, Q = 0, 0.0
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if sign(trace.scores[-1]) != y or not trace.points:
            count_update(trace, margin)
            M += 1
            trace.points.append(x)
            trace.coefficients.append(float(y))
            if len(trace.points) > budget:
                sigma = abs(trace.coefficients[0])
                y_r = 1 if trace.coefficients[0] > 0 else -1
                mu = y_r * evaluate(trace.points, trace.coefficients, kernel, trace.points[0])
                phi = _largest_phi(sigma**2 - 2 * sigma * mu, 2 * sigma, Q - 15 / 32 * M)
                Q += (phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu
                trace.coefficients = [phi * a for a in trace.coefficients][1:]
                trace.points = trace.points[1:]
            trace.sizes.append(len(trace.points))
    return trace


def _largest_phi(a: float, b: float, c: float) -> float:
    """The largest φ in (0, 1] with aφ² + bφ + c <= 0, by the three cases."""
    if a + b + c <= 0:
        return 1.0
    if a > 0:
        return (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    if a == 0:
        return -c / b
    return min(
        root
        for sign_ in (1, -1)
        if (root := (-b + sign_ * math.sqrt(b * b - 4 * a * c)) / (2 * a)) > 0
    )


def rbp(X: list[Row], Y: list[int], kernel: KernelFunction, *, budget: int) -> Trace:
    trace = Trace()
    rng = np.random.default_rng((0,))
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if sign(trace.scores[-1]) != y or not trace.points:
            count_update(trace, margin)
            if len(trace.points) == budget:
                gone = int(rng.integers(budget))
                del trace.points[gone], trace.coefficients[gone]
            trace.points.append(x)
            trace.coefficients.append(float(y))
            trace.sizes.append(len(trace.points))
    return trace


def bogd(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    step: float,
    shrinkage: float = 0.0,
    cap: float = 1.0,
    prefer_small: bool = False,
) -> Trace:
    trace = Trace()
    rng = np.random.default_rng((0,))
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        trace.coefficients = [a * (1 - step * shrinkage) for a in trace.coefficients]
        if margin < 1 - REACHED:
            count_update(trace, margin)
            if len(trace.points) == budget:
                gone, factor = (
                    _draw_small(trace.coefficients, rng)
                    if prefer_small
                    else (int(rng.integers(budget)), budget / (budget - 1))
                )
                del trace.points[gone], trace.coefficients[gone]
                trace.coefficients = [a * factor for a in trace.coefficients]
            trace.points.append(x)
            trace.coefficients.append(step * y)
            limit = step * cap
            trace.coefficients = [max(-limit, min(limit, a)) for a in trace.coefficients]
            trace.sizes.append(len(trace.points))
    return trace


def _draw_small(coefficients: list[float], rng: np.random.Generator) -> tuple[int, float]:
    """Which example goes, and by what the others are multiplied."""
    s = (len(coefficients) - 1) / math.fsum(abs(a) for a in coefficients)
    odds = [max(1 - s * abs(a), 0.0) for a in coefficients]
    lot = rng.random() * math.fsum(odds)
    gone, so_far = 0, odds[0]
    while so_far <= lot:
        gone += 1
        so_far += odds[gone]
    return gone, 1 / (s * abs(coefficients[gone]))


def bogd_pp(X: list[Row], Y: list[int], kernel: KernelFunction, **settings: float) -> Trace:
    return bogd(X, Y, kernel, prefer_small=True, **settings)  # type: ignore[arg-type]


def hinge_losses(
    X: list[Row], Y: list[int], kernel: KernelFunction, points: list[Row], weights: list[float]
) -> float:
    """L_T(f) of `f = Σ w_i κ(p_i,·)`."""
    return math.fsum(
        max(0.0, 1 - y * evaluate(points, weights, kernel, x)) for x, y in zip(X, Y, strict=True)
    )
