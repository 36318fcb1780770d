"""Which examples stay when an active set is reduced: literally, each step from scratch."""

from __future__ import annotations

import math

from reference.kernels import KernelFunction, Row

REACHED = 1e-10
"""A margin that misses what was asked for by no more than this share has reached it."""


def evaluate(points: list[Row], coefficients: list[float], kernel: KernelFunction, x: Row) -> float:
    return math.fsum(a * kernel(s, x) for a, s in zip(coefficients, points, strict=True))


def replaceable(S: list[Row], a: list[float], kernel: KernelFunction) -> list[int]:
    """A quarter of S, pair by pair: those that another example best stands in for."""
    B = len(S)
    neighbours, losses = [], []
    for i in range(B):
        shared = {}
        for j in range(B):
            if j != i:
                own = kernel(S[j], S[j])
                shared[j] = kernel(S[i], S[j]) ** 2 / own if own > 0 else 0.0
        best = max(shared.values())
        neighbours.append(min(j for j, value in shared.items() if value >= best - 1e-10))
        losses.append(a[i] ** 2 * max(kernel(S[i], S[i]) - best, 0.0))
    largest = max(*losses, 1e-4 * max(value**2 for value in a), 2.0**-1022)
    ranked = sorted(range(B), key=lambda i: (round(losses[i] / largest, 10), -i))
    many = max(B // 4, 1)
    gone: list[int] = []
    for i in ranked:
        needed = i in [neighbours[g] for g in gone]
        if len(gone) < many and not needed and neighbours[i] not in gone:
            gone.append(i)
    for i in ranked:
        if len(gone) < many and i not in gone:
            gone.append(i)
    return gone


def greedy(S: list[Row], a: list[float], kernel: KernelFunction, ridge: float) -> list[int]:
    """Orthogonal matching pursuit, each step from scratch: solve, look at what is left, take."""
    chosen: list[int] = []
    values = [evaluate(S, a, kernel, s) for s in S]
    floor = 1e-20 * max(v**2 / (kernel(s, s) + ridge) for v, s in zip(values, S, strict=True))
    for _ in range(len(S) // 2):
        matrix = [[kernel(S[i], S[j]) + (ridge if i == j else 0.0) for j in chosen] for i in chosen]
        weights = solve(matrix, [values[i] for i in chosen])
        gains = {}
        for i in range(len(S)):
            if i not in chosen:
                column = [kernel(S[i], S[j]) for j in chosen]
                explained_value = math.fsum(w * k for w, k in zip(weights, column, strict=True))
                explained = math.fsum(
                    w * k for w, k in zip(solve(matrix, column), column, strict=True)
                )
                distance = max(kernel(S[i], S[i]) - explained + ridge, ridge)
                gains[i] = (values[i] - explained_value) ** 2 / distance
        most = max(gains.values())
        least = most * (1 - 1e-9) if most > floor else 0.0
        chosen.append(min(i for i, gain in gains.items() if gain >= least))
    return chosen


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with partial pivoting."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [p - factor * q for p, q in zip(rows[r], rows[i], strict=True)]
    solution = [0.0] * n
    for i in reversed(range(n)):
        known = math.fsum(rows[i][j] * solution[j] for j in range(i + 1, n))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution
