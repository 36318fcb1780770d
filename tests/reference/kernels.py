"""Kernels, written as their formulas, one pair of rows at a time."""

import math
from collections.abc import Callable, Sequence

Row = Sequence[float]
KernelFunction = Callable[[Row, Row], float]


def gaussian(sigma: float) -> KernelFunction:
    def kernel(u: Row, v: Row) -> float:
        distance = math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True))
        return math.exp(-distance / (2 * sigma * sigma))

    return kernel


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
