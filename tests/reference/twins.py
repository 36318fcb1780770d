"""The learners on plain expansions, literally: one example at a time, everything from scratch."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from reference.kernels import Row
from reference.trace import Trace, reference, solve

TIE = 1e-10
"""Values this near to each other are equal: the older goes."""


@reference
def perceptron(f: Trace) -> None:
    for x, y, _ in f.failures():
        f.add(x, float(y))


@reference
def avp(
    f: Trace,
    *,
    epsilon: Any = 0.5,
    radius: Any = math.inf,
    step: Any = 1,
    schedule: str = "constant",
) -> None:
    for x, _, margin in f.rounds():
        if f.below(margin, (1 - epsilon) * (1 - f.reached)):
            f.updated(margin)
            add_and_project(f, x, scheduled(f, step, radius, schedule), radius)


def scheduled(f: Trace, step: Any, radius: Any, schedule: str) -> Any:
    adaptive = schedule == "adaptive"
    return step / f.root(1 + f.nonpositive_margins / radius**2) if adaptive else step


def add_and_project(f: Trace, x: Row, step: Any, radius: Any) -> None:
    f.points.append(x)
    for column, direction in zip(f.columns, f.direction, strict=True):
        column.append(step * direction)
    f.project(radius)


@reference
def ahpatron(
    f: Trace,
    *,
    budget: int,
    epsilon: Any = 0.5,
    radius: Any = None,
    step: Any = None,
    schedule: str = "constant",
    ridge: Any = 0.0005,
    selection: str = "magnitude",
    rescale: Any = "keep",
) -> None:
    """Several classes, too: each column of f is halved and projected by itself."""
    U = f.root(f.number(budget)) / 2 if radius is None else radius
    lam = U / f.root(f.number(4 * budget)) if step is None else step
    for x, _, margin in f.rounds():
        if f.below(margin, (1 - epsilon) * (1 - f.reached)):
            f.updated(margin)
            if len(f.points) == budget:
                halve(f, ridge, selection, None if rescale == "keep" else rescale * U)
            add_and_project(f, x, scheduled(f, lam, U, schedule), U)


def ahpatron_plus(*stream: Any, budget: int = 400, **params: Any) -> Trace:
    plus = {"epsilon": 0.75, "radius": math.sqrt(budget), "step": 0.25, "schedule": "adaptive"}
    return ahpatron(*stream, **{"budget": budget, "selection": "nearest", **plus, **params})


def halve(f: Trace, ridge: Any, selection: str, target: Any) -> None:
    S = f.points
    before = f.norms()
    K = f.gram()
    sizes = [f.root(f.total(c * c for c in row)) for row in zip(*f.columns, strict=True)]
    if selection == "magnitude":
        ranked = sorted(range(len(S)), key=lambda i: (-round(sizes[i] / max(sizes), 10), i))
        kept = sorted(ranked[: len(S) // 2])
    elif selection == "nearest":
        gone = replaceable(sizes, K)
        kept = [i for i in range(len(S)) if i not in gone]
    else:
        kept = sorted(greedy(f, ridge))
    gone = [i for i in range(len(S)) if i not in kept]
    matrix = [[K[i][j] + (ridge if i == j else 0) for j in kept] for i in kept]
    old = f.columns
    f.points = [S[i] for i in kept]
    f.columns = []
    for a in old:
        theta = solve(f, matrix, [f.total(K[i][j] * a[j] for j in gone) for i in kept])
        f.columns.append([a[i] + t for i, t in zip(kept, theta, strict=True)])
    for c, after in enumerate(f.norms()):
        noise = f.number("3e-8") * f.total(map(abs, f.columns[c]))
        if after > noise:  # else f is 0 up to rounding: no factor helps
            factor = (before[c] if target is None else target) / after
            f.columns[c] = [factor * a for a in f.columns[c]]
    difference = Trace(f.kernel, number=f.number, points=S)
    difference.coefficients = [-a for a in old[0]]
    for i, a in zip(kept, f.columns[0], strict=True):
        difference.coefficients[i] += a
    f.gaps += difference.norms()
    f.halvings += 1


def replaceable(a: list[Any], K: list[list[Any]]) -> list[int]:
    """A quarter of S, pair by pair: those that another example best stands in for."""
    B = len(a)
    neighbours = []
    losses = []
    for i in range(B):
        shared = {j: K[i][j] ** 2 / K[j][j] if K[j][j] > 0 else 0.0 for j in range(B) if j != i}
        best = max(shared.values())
        neighbours.append(min(j for j, value in shared.items() if value >= best - TIE))
        losses.append(a[i] ** 2 * max(K[i][i] - best, 0.0))
    largest = max(*losses, 1e-4 * max(value**2 for value in a), 2.0**-1022)
    ranked = sorted(range(B), key=lambda i: (round(losses[i] / largest, 10), -i))
    many = max(B // 4, 1)
    gone: list[int] = []
    for i in ranked:
        needed = i in [neighbours[g] for g in gone]
        if len(gone) < many and not needed and neighbours[i] not in gone:
            gone.append(i)
    gone += [i for i in ranked if i not in gone][: many - len(gone)]
    return gone


def greedy(f: Trace, ridge: float) -> list[int]:
    """Orthogonal matching pursuit, each step from scratch: solve, look at what is left, take."""
    chosen: list[int] = []
    K = f.gram()
    values = [f.at(s) for s in f.points]
    floor = 1e-20 * max(v**2 / (K[i][i] + ridge) for i, v in enumerate(values))
    for _ in range(len(K) // 2):
        matrix = [[K[i][j] + (ridge if i == j else 0.0) for j in chosen] for i in chosen]
        weights = solve(f, matrix, [values[i] for i in chosen])
        gains = {}
        for i in set(range(len(K))) - set(chosen):
            column = [K[i][j] for j in chosen]
            left = values[i] - math.fsum(w * k for w, k in zip(weights, column, strict=True))
            explained = zip(solve(f, matrix, column), column, strict=True)
            distance = max(K[i][i] - math.fsum(w * k for w, k in explained) + ridge, ridge)
            gains[i] = left**2 / distance
        most = max(gains.values())
        least = most * (1 - 1e-9) if most > floor else 0.0
        chosen.append(min(i for i, gain in gains.items() if gain >= least))
    return chosen


@reference
def alma2(
    f: Trace, *, alpha: float = 0.9, beta: float | None = None, gain: float = math.sqrt(2)
) -> None:
    size = 1 / alpha if beta is None else beta
    k = 1
    for x, _, margin in f.rounds():
        if margin <= (1 - alpha) * size / math.sqrt(k) * (1 + f.reached):
            f.updated(margin)
            add_and_project(f, x, gain / math.sqrt(k), 1.0)
            k += 1


@reference
def forgetron(f: Trace, *, budget: int) -> None:
    Q = 0.0
    for M, (x, y, _) in enumerate(f.failures(), 1):
        f.add(x, float(y))
        if len(f.points) > budget:
            sigma = abs(f.coefficients[0])
            mu = math.copysign(1, f.coefficients[0]) * f.at(f.points[0])
            phi = largest_phi(sigma**2 - 2 * sigma * mu, 2 * sigma, Q - 15 / 32 * M)
            Q += (phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu
            f.shrink(phi)
            f.remove(0)


def largest_phi(a: float, b: float, c: float) -> float:
    """The largest φ in (0, 1] with aφ² + bφ + c <= 0, by the three cases."""
    if a + b + c <= 0:
        return 1.0
    if a == 0:
        return -c / b
    roots = [(-b + sign * math.sqrt(b * b - 4 * a * c)) / (2 * a) for sign in (1, -1)]
    return roots[0] if a > 0 else min(root for root in roots if root > 0)


@reference
def rbp(f: Trace, *, budget: int) -> None:
    rng = np.random.default_rng((0,))
    for x, y, _ in f.failures():
        if len(f.points) == budget:
            f.remove(int(rng.integers(budget)))
        f.add(x, float(y))


@reference
def bogd(
    f: Trace,
    *,
    budget: int,
    step: float,
    shrinkage: float = 0.0,
    cap: float = 1.0,
    small: bool = False,
) -> None:
    rng = np.random.default_rng((0,))
    for x, y, margin in f.rounds():
        f.shrink(1 - step * shrinkage)
        if margin < 1 - f.reached:
            f.updated(margin)
            if len(f.points) == budget:
                if small:
                    gone, factor = draw_small(f.coefficients, rng)
                else:
                    gone = int(rng.integers(budget))
                    factor = budget / (budget - 1)
                f.remove(gone)
                f.shrink(factor)
            f.add(x, step * y)
            f.coefficients = [max(-step * cap, min(step * cap, a)) for a in f.coefficients]


def draw_small(coefficients: list[float], rng: np.random.Generator) -> tuple[int, float]:
    """Which example goes, and by what the others are multiplied."""
    s = (len(coefficients) - 1) / math.fsum(abs(a) for a in coefficients)
    odds = [max(1 - s * abs(a), 0.0) for a in coefficients]
    lot = rng.random() * math.fsum(odds)
    gone = 0
    so_far = odds[0]
    while so_far <= lot:
        gone += 1
        so_far += odds[gone]
    return gone, 1 / (s * abs(coefficients[gone]))


def bogd_pp(*stream: Any, **params: Any) -> Trace:
    return bogd(*stream, small=True, **params)


@reference
def budget_perceptron(f: Trace, *, budget: int, threshold: float = 0.0) -> None:
    for x, y, _ in f.failures(threshold):
        if len(f.points) == budget:
            f.remove(first_largest([margin_without(f, i, i) for i in range(budget)], budget))
        f.add(x, float(y))


@reference
def tighter_perceptron(f: Trace, *, budget: int) -> None:
    """Which example goes: fewest errors, then the largest own margin without it, then age."""
    for x, y, _ in f.failures():
        f.add(x, float(y))  # where one goes, f does without it
        if len(f.points) > budget:
            left = [
                [margin_without(f, k, i, budget) for k in range(budget + 1)] for i in range(budget)
            ]
            errors = [sum(value <= TIE * budget for value in margins) for margins in left]
            fewest = [i for i, count in enumerate(errors) if count == min(errors)]
            f.remove(fewest[first_largest([left[i][i] for i in fewest], budget)])


def margin_without(f: Trace, k: int, i: int, size: int | None = None) -> Fraction:
    """y_k·(f(s_k) - a_i·κ(s_i,s_k)), exactly: rational numbers, summed over the others.

    f has the first `size` examples; all coefficients are labels.
    """
    S = f.points
    a = f.coefficients
    others = [j for j in range(size or len(S)) if j != i]
    return sum((Fraction(a[k] * a[j]) * Fraction(f.kernel(S[j], S[k])) for j in others), Fraction())


def first_largest(values: list[Fraction], size: int) -> int:
    """The oldest of the largest values; sums of `size` terms of at most 1 are equal up to TIE."""
    slack = Fraction(TIE) * size
    return next(i for i, value in enumerate(values) if value >= max(values) - slack)


def first_smallest(values: list[float]) -> int:
    """The oldest of the smallest values, equal up to rounding of the largest."""
    largest = max(max(abs(value) for value in values), 1e-300)
    return next(i for i, v in enumerate(values) if v <= min(values) + TIE * largest)


def oldest_smallest_coefficient(f: Trace) -> int:
    """The oldest of the smallest |a|, equal up to rounding of themselves."""
    sizes = [abs(a) for a in f.coefficients]
    return next(i for i, size in enumerate(sizes) if size <= min(sizes) * (1 + TIE))


@reference
def norma(
    f: Trace, *, budget: int, step: float = 1.0, shrinkage: Any = None, threshold: float = 1.0
) -> None:
    lam = 0.01 / budget if shrinkage is None else shrinkage
    for t, (x, y, margin) in enumerate(f.rounds(), 1):
        eta = step / math.sqrt(t)
        f.shrink(1 - eta * lam)
        if margin <= threshold * (1 + f.reached) or not f.points:
            f.updated(margin)
            f.add(x, eta * y)
            if len(f.points) > budget:
                f.remove(0)


@reference
def silk(
    f: Trace,
    *,
    budget: int,
    step: float = 1.0,
    shrinkage: Any = None,
    loss_weight: float = 1.0,
    threshold: float = 1.0,
) -> None:
    lam = 0.01 / budget if shrinkage is None else shrinkage
    tau = step * lam / (1 + step * lam)
    cap = step * loss_weight / (1 + step * lam)
    for x, y, margin in f.rounds():
        f.shrink(1 - tau)
        own = f.kernel(x, x)
        missing = threshold - (1 - tau) * margin
        if missing > f.reached * threshold:
            f.updated(margin)
            f.add(x, (min(cap, missing / own) if own > 0 else cap) * y)
            if len(f.points) > budget:
                f.remove(oldest_smallest_coefficient(f))


@reference
def bpa_s(f: Trace, *, budget: int, aggressiveness: float = 1.0) -> None:
    C = aggressiveness
    for x, y, margin in f.rounds():
        if margin < 1 - f.reached:
            f.updated(margin)
            tau = min(C, 1 - margin)
            if len(f.points) < budget:
                f.add(x, y * tau)
                continue
            a = f.coefficients
            k = [f.kernel(s, x) for s in f.points]
            betas = [a_r * k_r + y * tau for a_r, k_r in zip(a, k, strict=True)]
            left = C * max(0.0, 1 - margin - tau)
            r = first_smallest(
                [
                    0.5 * (a_r**2 + beta**2 - 2 * a_r * beta * k_r) + left
                    for a_r, beta, k_r in zip(a, betas, k, strict=True)
                ]
            )
            f.remove(r)
            f.add(x, betas[r])
