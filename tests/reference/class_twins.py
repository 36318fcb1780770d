"""Learners of several classes on one active set, literally: one example at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from reference.choices import REACHED, replaceable, solve
from reference.kernels import KernelFunction, Row


@dataclass
class ClassTrace:
    """What a twin did; `rows` has the coefficients of each example, one per class."""

    classes: int
    scores: list[list[float]] = field(default_factory=list)
    mistakes: int = 0
    updates: int = 0
    margin_updates: int = 0
    halvings: int = 0
    restarts: int = 0
    points: list[Row] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)

    def predict(self, kernel: KernelFunction, x: Row, y: int) -> tuple[list[float], int, float]:
        """f(x), the best of the other classes, and the margin."""
        near = [kernel(s, x) for s in self.points]
        f = []
        for c in range(self.classes):
            terms = [row[c] * k for row, k in zip(self.rows, near, strict=True)]
            value = math.fsum(terms)
            f.append(0.0 if abs(value) <= 1e-12 * math.fsum(map(abs, terms)) else value)
        self.scores.append(f)
        slack = 1e-12 * max(map(abs, f))
        self.mistakes += next(c for c in range(self.classes) if f[c] >= max(f) - slack) != y
        others = [c for c in range(self.classes) if c != y]
        best = max(f[c] for c in others)
        margin = f[y] - best
        margin = 0.0 if abs(margin) <= slack else margin
        return f, next(c for c in others if f[c] >= best - slack), margin

    def norms(self, kernel: KernelFunction) -> list[float]:
        A = np.array(self.rows).reshape(len(self.points), self.classes)
        K = np.array([[kernel(s, r) for r in self.points] for s in self.points])
        return [math.sqrt(max(float(A[:, c] @ K @ A[:, c]), 0.0)) for c in range(self.classes)]


def ahpatron(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    classes: int,
    *,
    budget: int,
    epsilon: float,
    radius: float,
    step: float,
    schedule: str,
    selection: str,
    ridge: float = 0.0005,
    rescale: float | str = "keep",
) -> ClassTrace:
    trace = ClassTrace(classes)
    nonpositive_margins = 0
    for x, y in zip(X, Y, strict=True):
        _, rival, margin = trace.predict(kernel, x, y)
        nonpositive_margins += margin <= 0
        if not margin < (1 - epsilon) * (1 - REACHED):
            continue
        trace.updates += 1
        trace.margin_updates += margin > 0
        if len(trace.points) == budget:
            _halve(trace, kernel, ridge, selection, None if rescale == "keep" else rescale * radius)
        lam = (
            step
            if schedule == "constant"
            else step / math.sqrt(1 + nonpositive_margins / radius**2)
        )
        row = [0.0] * classes
        row[y], row[rival] = lam, -lam
        trace.points.append(x)
        trace.rows.append(row)
        _bring_to(trace, [min(1.0, radius / size) if size else 1.0 for size in trace.norms(kernel)])
    return trace


def _bring_to(trace: ClassTrace, factors: list[float]) -> None:
    trace.rows = [[a * b for a, b in zip(row, factors, strict=True)] for row in trace.rows]


def _halve(
    trace: ClassTrace, kernel: KernelFunction, ridge: float, selection: str, target: float | None
) -> None:
    S, sizes = trace.points, [math.sqrt(math.fsum(a * a for a in row)) for row in trace.rows]
    before = trace.norms(kernel)
    if selection == "magnitude":
        ranked = sorted(range(len(S)), key=lambda i: (-round(sizes[i] / max(sizes), 10), i))
        kept = sorted(ranked[: len(S) // 2])
    else:
        gone = replaceable(S, sizes, kernel)
        kept = [i for i in range(len(S)) if i not in gone]
    rest = [i for i in range(len(S)) if i not in kept]
    matrix = [[kernel(S[i], S[j]) + (ridge if i == j else 0.0) for j in kept] for i in kept]
    rows = [list(trace.rows[i]) for i in kept]
    for c in range(trace.classes):
        right = [math.fsum(kernel(S[i], S[j]) * trace.rows[j][c] for j in rest) for i in kept]
        for row, theta in zip(rows, solve(matrix, right), strict=True):
            row[c] += theta
    trace.points, trace.rows = [S[i] for i in kept], rows
    after = trace.norms(kernel)
    goals = before if target is None else [target] * trace.classes
    _bring_to(trace, [g / n if n > 1e-12 else 1.0 for g, n in zip(goals, after, strict=True)])
    trace.halvings += 1


def arow(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    classes: int,
    *,
    budget: int,
    noise: float = 0.3,
    floor: float = 0.001,
    tolerance: float = 0.001,
    alarm: float = 12.0,
) -> ClassTrace:
    trace = ClassTrace(classes)
    Q = C = np.zeros((0, 0))
    loss, rounds, wrong, seen, g = 1.0, 1, 1, 2, 0.0
    for x, y in zip(X, Y, strict=True):
        before = trace.mistakes
        f, _, margin = trace.predict(kernel, x, y)
        mistake, m = trace.mistakes > before, margin / 2
        signs = [1 if c == y else -1 for c in range(classes)]
        hinges = [max(0.0, 1 - t * value) for t, value in zip(signs, f, strict=True)]
        loss += sum(h * h for h in hinges) / classes
        rounds += 1
        r = max(floor, noise * (loss / rounds) ** 2)
        p = wrong / seen
        q = p + (1 - p) / 4
        g = max(0.0, g + math.log(q / p if mistake else (1 - q) / (1 - p)))
        wrong += mistake
        seen += 1
        if g > alarm:
            trace.points, trace.rows = [], []
            Q = C = np.zeros((0, 0))
            loss, rounds, wrong, seen, g = 1.0, 1, 1, 2, 0.0
            trace.restarts += 1
        elif m < 1 - REACHED:
            n = len(trace.points)
            k = np.array([kernel(s, x) for s in trace.points])
            if n < budget and m < 1 - n / budget:
                d = Q @ k
                delta = kernel(x, x) - float(k @ d)
                if delta > tolerance:
                    D = np.append(d, -1.0)
                    Q, C = (np.pad(A, (0, 1)) + np.outer(D, D) / delta for A in (Q, C))
                    trace.points.append(x)
                    trace.rows.append([0.0] * classes)
                    k = np.append(k, kernel(x, x))
            u = C @ k
            v = max(float(k @ u), 0.0)
            if v > 1e-250:
                trace.updates += 1
                trace.margin_updates += margin > 0
                b = 1 / (v + r)
                moves = np.outer(b * u, [t * h for t, h in zip(signs, hinges, strict=True)])
                trace.rows = (np.array(trace.rows) + moves).tolist()
                C = C - b * np.outer(u, u)
    return trace
