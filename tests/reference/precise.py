"""AVP, Ahpatron and arow once more, in decimal arithmetic of 60 digits: rounding plays no part.

As literal as `twins`, and for where doubles lose digits: offsets, tiny and huge values, radii,
ridges. Doubles go in exactly; what comes out is rounded once. Three rules of the learners are about
rounding and kept as they are: f(x) whose terms cancel to 12 digits is 0, a margin that misses 1 - ε
by 1e-10 of it has reached it, and coefficients that are equal to ten digits of the largest are
equal when half of them is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext

Row = Sequence[Decimal]
Kernel = Callable[[Row, Row], Decimal]
PRECISION = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_EVEN, traps=[])
ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)
CANCELLED, REACHED = Decimal("1e-12"), Decimal("1e-10")


@dataclass
class Precise:
    """What a twin did."""

    scores: list[float] = field(default_factory=list)
    mistakes: int = 0
    updates: int = 0
    halvings: int = 0
    norm: float = 0.0
    closest: float = float("inf")
    """The smallest distance of a margin from 0 or 1 - ε: below rounding, either side is right."""


def gaussian(sigma: float) -> Kernel:
    width = 2 * Decimal(sigma) * Decimal(sigma)

    def kernel(u: Row, v: Row) -> Decimal:
        return (-sum(((a - b) ** 2 for a, b in zip(u, v, strict=True)), ZERO) / width).exp()

    return kernel


def ahpatron(
    X: Sequence[Sequence[float]],
    Y: Sequence[int],
    sigma: float,
    *,
    budget: int | None = None,
    epsilon: float = 0.5,
    radius: float | None = None,
    step: float | None = None,
    ridge: float = 0.0005,
    rescale: float | str = "keep",
) -> Precise:
    """Algorithm 2; without `budget` Algorithm 1, whose radius and step are then ∞ and 1."""
    with localcontext(PRECISION):
        kernel = gaussian(sigma)
        U = None if radius is None else Decimal(radius)
        if U is None and budget is not None:
            U = Decimal(budget).sqrt() / 2
        lam = ONE if step is None else Decimal(step)
        if step is None and budget is not None:
            assert U is not None
            lam = U / Decimal(4 * budget).sqrt()
        threshold = (ONE - Decimal(epsilon)) * (ONE - REACHED)
        found = Precise()
        points: list[Row] = []
        a: list[Decimal] = []
        for row, y in zip(X, Y, strict=True):
            x = [Decimal(value) for value in row]
            score = _score(points, a, kernel, x)
            margin = y * score
            found.scores.append(float(score))
            found.mistakes += (1 if score >= 0 else -1) != y
            if points:
                gap = min(abs(score) if score else ONE, abs(margin - threshold))
                found.closest = min(found.closest, float(gap))
            if margin >= threshold:
                continue
            found.updates += 1
            if budget is not None and len(points) == budget:
                target = None if isinstance(rescale, str) else Decimal(rescale) * (U or ZERO)
                points, a = _halved(points, a, kernel, Decimal(ridge), target)
                found.halvings += 1
            points, a = [*points, x], [*a, lam * y]
            size = _norm(points, a, kernel)
            if U is not None and size > U:
                a = [one * U / size for one in a]
        found.norm = float(_norm(points, a, kernel))
        return found


def arow(
    X: Sequence[Sequence[float]],
    Y: Sequence[int],
    sigma: float,
    *,
    budget: int,
    noise: float = 0.3,
    floor: float = 0.001,
    tolerance: float = 0.001,
    alarm: float = 12.0,
) -> Precise:
    """Its box. `closest` is about all that decides: margins, δ and g."""
    with localcontext(PRECISION):
        kernel = gaussian(sigma)
        found = Precise()
        points: list[Row] = []
        a: list[Decimal] = []
        Q: list[list[Decimal]] = []
        C: list[list[Decimal]] = []
        loss, rounds, wrong, seen, g = ONE, 1, ONE, 2, ZERO
        decisions: list[Decimal] = []
        for row, y in zip(X, Y, strict=True):
            x = [Decimal(value) for value in row]
            score = _score(points, a, kernel, x)
            m = y * score
            mistake = (1 if score >= 0 else -1) != y
            found.scores.append(float(score))
            found.mistakes += mistake
            if score:
                decisions.append(score)
            loss += max(ZERO, ONE - m) ** 2
            rounds += 1
            r = max(Decimal(floor), Decimal(noise) * (loss / rounds) ** 2)
            p = wrong / seen
            q = p + (1 - p) / 4
            g = max(ZERO, g + (q / p if mistake else (1 - q) / (1 - p)).ln())
            wrong += mistake
            seen += 1
            decisions += [g - Decimal(alarm), m - 1 + REACHED]
            if g > Decimal(alarm):
                points, a, Q, C = [], [], [], []
                loss, rounds, wrong, seen, g = ONE, 1, ONE, 2, ZERO
                found.halvings += 1
            elif m < ONE - REACHED:
                k = [kernel(s, x) for s in points]
                decisions.append(m - (1 - Decimal(len(points)) / budget))
                if len(points) < budget and m < 1 - Decimal(len(points)) / budget:
                    d = _times(Q, k)
                    delta = ONE - _dot(k, d)
                    decisions.append(delta - Decimal(tolerance))
                    if delta > Decimal(tolerance):
                        D = [*d, -ONE]
                        Q, C = _bordered(Q, D, delta), _bordered(C, D, delta)
                        points, a, k = [*points, x], [*a, ZERO], [*k, ONE]
                u = _times(C, k)
                v = _dot(k, u)
                if v > Decimal("1e-250"):
                    found.updates += 1
                    b = 1 / (v + r)
                    a = [one + (1 - m) * y * b * w for one, w in zip(a, u, strict=True)]
                    C = [
                        [c - b * w * z for c, z in zip(line, u, strict=True)]
                        for line, w in zip(C, u, strict=True)
                    ]
        found.closest = float(min(map(abs, decisions)))
        found.norm = float(_norm(points, a, kernel))
        return found


def _dot(u: Sequence[Decimal], v: Sequence[Decimal]) -> Decimal:
    return sum((p * q for p, q in zip(u, v, strict=True)), ZERO)


def _times(matrix: list[list[Decimal]], v: Sequence[Decimal]) -> list[Decimal]:
    return [_dot(line, v) for line in matrix]


def _bordered(matrix: list[list[Decimal]], D: list[Decimal], delta: Decimal) -> list[list[Decimal]]:
    """The matrix with a row and a column of zeros more, plus D·Dᵀ/δ."""
    padded = [*([*line, ZERO] for line in matrix), [ZERO] * len(D)]
    return [
        [c + p * q / delta for c, q in zip(line, D, strict=True)]
        for line, p in zip(padded, D, strict=True)
    ]


def _score(points: list[Row], a: list[Decimal], kernel: Kernel, x: Row) -> Decimal:
    terms = [one * kernel(s, x) for one, s in zip(a, points, strict=True)]
    score = sum(terms, ZERO)
    return ZERO if abs(score) <= CANCELLED * sum(map(abs, terms), ZERO) else score


def _norm(points: list[Row], a: list[Decimal], kernel: Kernel) -> Decimal:
    gram = [[kernel(s, r) for r in points] for s in points]
    total = sum(
        (p * q * k for p, row in zip(a, gram, strict=True) for q, k in zip(a, row, strict=True)),
        ZERO,
    )
    return max(total, ZERO).sqrt()


def _halved(
    points: list[Row], a: list[Decimal], kernel: Kernel, ridge: Decimal, target: Decimal | None
) -> tuple[list[Row], list[Decimal]]:
    before = _norm(points, a, kernel)
    largest = max(map(abs, a))
    ranked = sorted(range(len(a)), key=lambda i: (-round(abs(a[i]) / largest, 10), i))
    kept = sorted(ranked[: len(a) // 2])
    gone = [i for i in range(len(a)) if i not in kept]
    matrix = [
        [kernel(points[i], points[j]) + (ridge if i == j else ZERO) for j in kept] for i in kept
    ]
    right = [sum((kernel(points[i], points[j]) * a[j] for j in gone), ZERO) for i in kept]
    theta = _solved(matrix, right)
    half = [points[i] for i in kept]
    b = [a[i] + one for i, one in zip(kept, theta, strict=True)]
    size = _norm(half, b, kernel)
    if size <= Decimal("3e-8") * sum(map(abs, b), ZERO):
        return half, b  # the projection came out as zero: there is nothing to rescale
    return half, [one * (before if target is None else target) / size for one in b]


def _solved(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Elimination with pivots; what is singular even in 60 digits has zero for an answer there."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, size):
            factor = rows[i][column] / rows[column][column]
            rows[i] = [p - factor * q for p, q in zip(rows[i], rows[column], strict=True)]
    solution = [ZERO] * size
    for i in reversed(range(size)):
        known = sum((rows[i][j] * solution[j] for j in range(i + 1, size)), ZERO)
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution
