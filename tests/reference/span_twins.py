"""The learners that project onto the span of S or merge: each system solved from scratch."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reference.kernels import Row
from reference.trace import Trace, reference, solve
from reference.twins import first_smallest, oldest_smallest_coefficient


def projection(f: Trace, x: Row) -> tuple[list[float], float]:
    """`d = K^{-1}k` and δ, the distance of κ(x,·) to the span of S."""
    k = [f.kernel(s, x) for s in f.points]
    d = solve(f, f.gram(), k)
    squared = f.kernel(x, x) - math.fsum(w * v for w, v in zip(d, k, strict=True))
    return d, math.sqrt(squared) if squared >= 1e-10 else 0.0


@reference
def projectron(f: Trace, *, tolerance: float = 0.1, budget: int | None = None) -> None:
    for x, y, _ in f.failures():
        project_or_add(f, x, y, tolerance, budget)


def project_or_add(f: Trace, x: Row, y: int, tolerance: float, budget: int | None) -> None:
    d, distance = projection(f, x)
    if distance <= tolerance or len(f.points) == budget:
        f.move(y, d)
    else:
        f.add(x, float(y))


@reference
def projectron_pp(
    f: Trace, *, tolerance: float = 0.1, rule: str = "published", budget: int | None = None
) -> None:
    for x, y, margin in f.rounds():
        if f.mistake or not f.points or (rule == "full" and margin < 1 - f.reached):
            f.updated(margin)
            project_or_add(f, x, y, tolerance, budget)
        elif 0 < margin < 1 - f.reached:
            d, distance = projection(f, x)
            loss = 1 - margin
            p = f.kernel(x, x) - distance**2
            if loss > distance / tolerance:
                f.updated(margin)
                f.move(y * min(1, loss / p, 2 * (loss - distance / tolerance) / p), d)


@reference
def avp_ogs(
    f: Trace,
    *,
    tolerance: float | None = None,
    horizon: int | None = None,
    epsilon: float = 0.6,
    radius: float = 10.0,
    gain: float = 0.5,
) -> None:
    if tolerance is None:
        assert horizon is not None
        tolerance = 100 / horizon
    step = gain * radius
    total = 1.0
    for x, y, margin in f.rounds():
        if f.points and margin >= (1 - epsilon) * (1 - f.reached):
            continue
        f.updated(margin)
        first = not f.points
        d, distance = projection(f, x)
        stays = distance == 0 or (distance**2 <= tolerance and not first)
        if f.mistake and not first:
            total += f.kernel(x, x) - distance**2 if stays else f.kernel(x, x)
            step = gain * radius / math.sqrt(radius**2 + total)
        if stays:
            f.move(step * y, d)
        else:
            f.add(x, step * y)
        f.project(radius)


@reference
def pomdr(f: Trace, *, horizon: int, budget: int, radius: float = 25.0, memory: int = 15) -> None:
    A = 0.0
    B0 = min(round(10 * math.log(horizon)), budget // 2)
    for t, (x, y) in enumerate(f.stream):
        recent = f.stream[max(0, t - memory) : t]
        step = radius / math.sqrt(3 + A) * (0.1 if f.halvings else 1.0)
        hint = mean([label * f.kernel(row, x) for row, label in recent])
        margin = f.count(f.at(x) + step * hint, y)
        if margin >= 1 - f.reached and f.points:
            continue
        f.updated(margin)
        d, distance = projection(f, x) if len(f.points) < B0 else ([], math.inf)
        if distance <= horizon**-0.5:
            f.move(step * y, d)
            projected = Trace(f.kernel, points=f.points)
            projected.coefficients = d
            g = mean([label * projected.at(row) for row, label in recent])
            A += max(projected.norms()[0] ** 2 - 2 * y * g, 0.0)
        else:
            f.add(x, step * y)
            A += max(f.kernel(x, x) - 2 * y * hint, 0.0)
        f.project(radius)
        if len(f.points) == budget:
            hand_over(f, radius)
            f.halvings += 1
            A = 0.0


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def hand_over(f: Trace, radius: float) -> None:
    """Keep the older half; each one that goes gives its coefficient to the most similar kept."""
    half = len(f.points) // 2
    gone = list(zip(f.points[half:], f.coefficients[half:], strict=True))
    f.points, f.coefficients = f.points[:half], f.coefficients[:half]
    for x, a in gone:
        similar = [f.kernel(s, x) for s in f.points]
        least = max(similar) - 1e-9 * abs(max(similar))  # where equal up to rounding: the older
        f.coefficients[[value >= least for value in similar].index(True)] += a
    (length,) = f.norms()
    if length**2 > 4 * 2.0**-52 * math.fsum(abs(a) for a in f.coefficients) ** 2:
        f.shrink(radius / length)


@reference
def krls(f: Trace, *, tolerance: float = 0.1) -> None:
    """P = (AᵀA)^{-1} by the recursion of the publication; K^{-1} by elimination each time."""
    P = np.empty((0, 0))
    for x, y, margin in f.rounds():
        f.updated(margin)
        error = y - f.at(x)
        d, distance = projection(f, x)
        if distance**2 > tolerance:
            f.move(-error / distance**2, d)
            f.add(x, error / distance**2)
            P = np.pad(P, (0, 1))
            P[-1, -1] = 1.0
        elif f.points:
            w = np.array(d)
            q = P @ w / (1 + w @ P @ w)
            P = P - np.outer(q, w @ P)
            f.move(1.0, solve(f, f.gram(), (q * error).tolist()))


@reference
def polk(f: Trace, *, step: float = 0.5, shrinkage: float = 0.001, tolerance: float = 0.01) -> None:
    for x, y, margin in f.rounds():
        f.shrink(1 - step * shrinkage)
        if margin < 1 - f.reached or not f.points:
            f.updated(margin)
            d, distance = projection(f, x)
            if distance**2 <= 1e-5:
                f.move(step * y, d)
            else:
                f.add(x, step * y)
        while f.points:
            K = np.array(f.gram())
            spans = [span_of_others(K, j) for j in range(len(K))]
            sizes = zip(f.coefficients, spans, strict=True)
            errors = [abs(a) * distance for a, (_, distance) in sizes]
            j = first_smallest(errors)
            if errors[j] > tolerance:
                break
            a = f.coefficients[j]
            f.remove(j)
            f.move(a, spans[j][0].tolist())


def span_of_others(K: np.ndarray, j: int) -> tuple[np.ndarray, float]:
    """The weights of the others nearest to κ(s_j,·), and its distance: 1/√((K^{-1})_jj)."""
    rest = [i for i in range(len(K)) if i != j]
    part = K[np.ix_(rest, rest)]
    k = K[rest, j]
    d = np.linalg.lstsq(part, k, rcond=1e-10)[0] if rest else np.empty(0)
    return d, math.sqrt(max(float(K[j, j] - 2 * (d @ k) + d @ part @ d), 0.0))


@reference
def bsgd(
    f: Trace, *, budget: int, regularisation: float = 0.001, maintenance: str = "remove"
) -> None:
    for t, (x, y, margin) in enumerate(f.rounds(), 1):
        f.shrink(1 - 1 / t)
        if margin < 1 - f.reached or not f.points:
            f.updated(margin)
            step = y / (regularisation * t)
            if maintenance == "project":
                d, distance = projection(f, x)
                if distance**2 <= 1e-3 * f.kernel(x, x):  # in the span of S
                    f.move(step, d)
                    continue
            f.add(x, step)
            if len(f.points) > budget:
                MAINTENANCE[maintenance](f)


def remove_one(f: Trace) -> None:
    f.remove(oldest_smallest_coefficient(f))


def project_one(f: Trace) -> None:
    i = first_smallest([abs(a) for a in f.coefficients])
    s = f.points[i]
    a = f.coefficients[i]
    f.remove(i)
    f.move(a, projection(f, s)[0])


def merge_two(f: Trace) -> None:
    S = f.points
    a = f.coefficients
    i = oldest_smallest_coefficient(f)
    partners = [j for j in range(len(a)) if j != i and (a[j] > 0) == (a[i] > 0)]
    if partners:
        pairs = [(a[i] / (a[i] + a[j]), f.kernel(S[i], S[j])) for j in partners]
        losses = [interpolated(0, *pair) for pair in pairs]
        best = next(p for p, loss in enumerate(losses) if loss <= min(losses) + 1e-10)
        j = partners[best]
        (m, k) = pairs[best]
        h = interpolated(1, m, k)
        a[j] = (a[i] + a[j]) * (m * k ** ((1 - h) ** 2) + (1 - m) * k ** (h**2))
        S[j] = [h * u + (1 - h) * v for u, v in zip(S[i], S[j], strict=True)]
    f.remove(i)


MAINTENANCE = {"remove": remove_one, "project": project_one, "merge": merge_two}
CELLS = 256


def interpolated(which: int, m: float, k: float) -> float:
    """Bilinear, from the four nodes around (m, √κ)."""
    x = 2 * CELLS * m
    y = CELLS * math.sqrt(k)
    row = min(int(x), CELLS)
    column = min(int(y), CELLS)
    total = 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            share = abs(1 - dx - (x - row)) * abs(1 - dy - (y - column))
            if share > 0:
                total += share * node(min(row + dx, CELLS), min(column + dy, CELLS))[which]
    return total


@cache
def node(row: int, column: int) -> tuple[float, float]:
    return merged(row / CELLS / 2, (column / CELLS) ** 2)


def merged(m: float, k: float) -> tuple[float, float]:
    """Loss in units of a_i², and h by bisection: g rises where m(1-h)κ^((1-h)²) > (1-m)hκ^(h²)."""
    if k == 0:
        return 1.0, 0.0
    if m == 0:
        return 1 - k * k * (1 - 2 * math.log(k)), 0.0
    low = 0.0
    high = 0.5
    for _ in range(100):
        h = (low + high) / 2
        rises = m * (1 - h) * k ** ((1 - h) ** 2) > (1 - m) * h * k ** (h**2)
        low, high = (h, high) if rises else (low, h)
    h = (low + high) / 2
    r = (1 - m) / m
    loss = 1 - k ** (2 * (1 - h) ** 2) + r * r * (1 - k ** (2 * h * h))
    return loss + 2 * r * (k - k ** (1 - 2 * h * (1 - h))), h
