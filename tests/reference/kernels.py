"""Kernels, written as their formulas, one pair of rows at a time."""

import math
from collections.abc import Callable, Sequence
from typing import Any

Row = Sequence[float]
KernelFunction = Callable[[Row, Row], float]


def gaussian(sigma: float) -> KernelFunction:
    def kernel(u: Row, v: Row) -> float:
        distance = math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True))
        return math.exp(-distance / (2 * sigma * sigma))

    return kernel


def tabled(X: Sequence[Row], kernel: KernelFunction) -> KernelFunction:
    """The same kernel, computed once for each pair of these rows, which are known by identity."""
    place = {id(row): i for i, row in enumerate(X)}
    table = [[kernel(u, v) for v in X] for u in X]

    def looked_up(u: Row, v: Row) -> float:
        i, j = place.get(id(u)), place.get(id(v))
        return kernel(u, v) if i is None or j is None else table[i][j]

    return looked_up


def laplacian(sigma: float) -> KernelFunction:
    def kernel(u: Row, v: Row) -> float:
        return math.exp(-math.fsum(abs(a - b) for a, b in zip(u, v, strict=True)) / sigma)

    return kernel


def dot(u: Row, v: Row) -> float:
    return math.fsum(a * b for a, b in zip(u, v, strict=True))


def polynomial(degree: int, offset: float) -> KernelFunction:
    def kernel(u: Row, v: Row) -> float:
        lengths = math.sqrt((dot(u, u) + offset) * (dot(v, v) + offset))
        return float(((dot(u, v) + offset) / lengths) ** degree)

    return kernel


def linear() -> KernelFunction:
    def kernel(u: Row, v: Row) -> float:
        lengths = math.sqrt(dot(u, u)) * math.sqrt(dot(v, v))
        return dot(u, v) / lengths if lengths else 0.0

    return kernel


FORMULAS: dict[str, tuple[dict[str, Any], KernelFunction]] = {
    "gaussian": ({"sigma": 0.7}, gaussian(0.7)),
    "laplacian": ({"sigma": 1.3}, laplacian(1.3)),
    "polynomial": ({"degree": 3}, polynomial(3, 1.0)),
    "linear": ({}, linear()),
}
"""By the name of a kernel: parameters with which it is tested, and its formula for them."""
