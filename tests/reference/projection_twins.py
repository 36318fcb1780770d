"""The learners that project onto the span of S, literally: each system solved from scratch."""

from __future__ import annotations

import math

from reference.choices import REACHED
from reference.kernels import KernelFunction, Row
from reference.twins import Trace, count_update, evaluate, norm, predict, sign, solve


def projection(S: list[Row], kernel: KernelFunction, x: Row) -> tuple[list[float], float]:
    """`d = K^{-1}k` and δ, the distance of κ(x,·) to the span of S."""
    column = [kernel(s, x) for s in S]
    d = solve([[kernel(s, r) for r in S] for s in S], column)
    squared = kernel(x, x) - math.fsum(w * k for w, k in zip(d, column, strict=True))
    return d, math.sqrt(squared) if squared >= 1e-10 else 0.0


def move(trace: Trace, factor: float, d: list[float]) -> None:
    trace.coefficients = [a + factor * w for a, w in zip(trace.coefficients, d, strict=True)]


def project_or_add(
    trace: Trace,
    kernel: KernelFunction,
    x: Row,
    y: int,
    margin: float,
    tolerance: float,
    budget: int | None,
) -> None:
    count_update(trace, margin)
    d, distance = projection(trace.points, kernel, x)
    if distance <= tolerance or len(trace.points) == budget:
        move(trace, y, d)
    else:
        trace.points.append(x)
        trace.coefficients.append(float(y))
    trace.sizes.append(len(trace.points))


def projectron(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    tolerance: float = 0.1,
    budget: int | None = None,
) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        if sign(trace.scores[-1]) != y or not trace.points:
            project_or_add(trace, kernel, x, y, margin, tolerance, budget)
    return trace


def projectron_pp(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    tolerance: float = 0.1,
    rule: str = "published",
    budget: int | None = None,
) -> Trace:
    trace = Trace()
    for x, y in zip(X, Y, strict=True):
        margin = predict(trace, kernel, x, y)
        mistake = sign(trace.scores[-1]) != y or not trace.points
        if mistake or (rule == "full" and margin < 1 - REACHED):
            project_or_add(trace, kernel, x, y, margin, tolerance, budget)
        elif 0 < margin < 1 - REACHED:
            d, distance = projection(trace.points, kernel, x)
            loss = 1 - margin
            p = kernel(x, x) - distance**2
            if loss > distance / tolerance:
                count_update(trace, margin)
                move(trace, y * min(1, loss / p, 2 * (loss - distance / tolerance) / p), d)
    return trace


def pomdr(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    horizon: int,
    budget: int,
    radius: float = 25.0,
    memory: int = 15,
) -> Trace:
    trace = Trace()
    A = 0.0
    B0 = min(round(10 * math.log(horizon)), budget // 2)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        recent = list(range(max(0, t - memory), t))
        step = radius / math.sqrt(3 + A) * (0.1 if trace.halvings else 1.0)
        hint = mean([Y[r] * kernel(X[r], x) for r in recent])
        score = evaluate(trace.points, trace.coefficients, kernel, x) + step * hint
        trace.scores.append(score)
        trace.mistakes += sign(score) != y
        trace.nonpositive_margins += y * score <= 0
        if not (y * score < 1 - REACHED or not trace.points):
            continue
        count_update(trace, y * score)
        S = trace.points
        d, distance = projection(S, kernel, x) if len(S) < B0 else ([], math.inf)
        if distance <= horizon**-0.5:
            move(trace, step * y, d)
            size = math.fsum(
                d[i] * d[j] * kernel(S[i], S[j]) for i in range(len(S)) for j in range(len(S))
            )
            g = mean([Y[r] * evaluate(S, d, kernel, X[r]) for r in recent])
            A += max(size - 2 * y * g, 0.0)
        else:
            S.append(x)
            trace.coefficients.append(step * y)
            A += max(kernel(x, x) - 2 * y * hint, 0.0)
        length = norm(S, trace.coefficients, kernel)
        if length > radius:
            trace.coefficients = [a * radius / length for a in trace.coefficients]
        if len(S) == budget:
            hand_over(trace, kernel, radius)
            trace.halvings += 1
            A = 0.0
    return trace


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def hand_over(trace: Trace, kernel: KernelFunction, radius: float) -> None:
    """Keep the older half; each one that goes gives its coefficient to the most similar kept."""
    half = len(trace.points) // 2
    kept, coefficients = trace.points[:half], trace.coefficients[:half]
    for x, a in zip(trace.points[half:], trace.coefficients[half:], strict=True):
        similar = [kernel(s, x) for s in kept]
        least = max(similar) - 1e-9 * abs(max(similar))  # where equal but for rounding: the older
        coefficients[[value >= least for value in similar].index(True)] += a
    length = norm(kept, coefficients, kernel)
    if length**2 > 4 * 2.0**-52 * math.fsum(abs(a) for a in coefficients) ** 2:
        coefficients = [a * radius / length for a in coefficients]
    trace.points, trace.coefficients = kept, coefficients
