"""What a reference implementation counts, and f = Σ a·κ(s,·) as lists.

Nothing in this folder comes from the package. f(x) is summed from scratch in every round, norms and
Gram matrices are computed from scratch, linear systems are solved by elimination. Numbers are
floats, or decimals of many digits (`precise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import wraps
from typing import Any

from reference.kernels import KernelFunction, Row

Stream = Sequence[tuple[Row, int]]


@dataclass
class Trace:
    """f, and what was counted. With several classes f has a list of coefficients for each."""

    kernel: KernelFunction
    stream: Stream = ()
    classes: int = 0
    """0 stands for two classes with one f, and labels ±1."""
    number: type = float
    scores: list[Any] = field(default_factory=list)
    """f_t(x_t), as predicted."""
    mistake: bool = False
    """Whether the last prediction was wrong."""
    mistakes: int = 0
    nonpositive_margins: int = 0
    updates: int = 0
    margin_updates: int = 0
    halvings: int = 0
    gaps: list[float] = field(default_factory=list)
    """‖f_t - f̄_t‖ of each halving."""
    restarts: list[int] = field(default_factory=list)
    """Rounds, from 0, in which everything started from scratch."""
    points: list[Row] = field(default_factory=list)
    columns: list[list[Any]] = field(default_factory=list)
    weights: list[float] | None = None
    """f on explicit features, where it is not Σ a·κ(s,·)."""
    closest: Any = math.inf
    """The least distance of a value from a limit: below rounding, either side is right."""

    def __post_init__(self) -> None:
        self.reached = self.number("1e-10")
        """A margin that misses what was asked for by no more than this share has reached it."""
        self.columns = [[] for _ in range(max(self.classes, 1))]

    @property
    def coefficients(self) -> list[Any]:
        return self.columns[0]

    @coefficients.setter
    def coefficients(self, values: list[Any]) -> None:
        self.columns[0] = values

    def total(self, values: Iterator[Any] | list[Any]) -> Any:
        return math.fsum(values) if self.number is float else sum(values, Decimal(0))

    def root(self, value: Any) -> Any:
        return math.sqrt(value) if self.number is float else value.sqrt()

    def below(self, value: Any, limit: Any) -> bool:
        self.closest = min(self.closest, abs(value - limit))
        return bool(value < limit)

    def at(self, x: Row) -> Any:
        """f(x) of two classes."""
        pairs = zip(self.coefficients, self.points, strict=True)
        return self.total(a * self.kernel(s, x) for a, s in pairs)

    def rounds(self) -> Iterator[tuple[Row, int, Any]]:
        """Each example with its margin."""
        for x, y in self.stream:
            yield x, y, self.predict(x, y)

    def failures(self, threshold: float = 0.0) -> Iterator[tuple[Row, int, Any]]:
        """The rounds of a mistake, or of a margin up to the threshold, or with an empty S."""
        for x, y, margin in self.rounds():
            near = threshold > 0 and margin <= threshold * (1 + self.reached)
            if self.mistake or near or not self.points:
                self.updated(margin)
                yield x, y, margin

    def predict(self, x: Row, y: int) -> Any:
        """Note f(x); the margin. Terms that cancel up to rounding are 0."""
        k = [self.kernel(s, x) for s in self.points]
        f = []
        for column in self.columns:
            terms = [a * b for a, b in zip(column, k, strict=True)]
            value = self.total(terms)
            zero = abs(value) <= self.number("1e-12") * self.total(map(abs, terms))
            f.append(self.number(0) if zero else value)
        return self.count(f if self.classes else f[0], y)

    def count(self, score: Any, y: int) -> Any:
        """Note the prediction, then look at the label; the margin."""
        self.scores.append(score)
        if self.classes:
            slack = 1e-12 * max(map(abs, score))
            others = [c for c in range(self.classes) if c != y]
            best = max(score[c] for c in others)
            predicted = next(c for c, value in enumerate(score) if value >= max(score) - slack)
            rival = next(c for c in others if score[c] >= best - slack)
            margin = score[y] - best if abs(score[y] - best) > slack else 0.0
            self.direction = [(c == y) - (c == rival) for c in range(self.classes)]
            self.mistake = predicted != y
        else:
            margin = y * score
            self.direction = [y]
            self.mistake = (score >= 0) != (y > 0)
            if score:
                self.below(score, 0)
        self.mistakes += self.mistake
        self.nonpositive_margins += margin <= 0
        return margin

    def updated(self, margin: Any) -> None:
        self.updates += 1
        self.margin_updates += margin > 0

    def add(self, x: Row, coefficient: Any) -> None:
        self.points.append(x)
        self.coefficients.append(coefficient)

    def remove(self, i: int) -> None:
        for values in (self.points, *self.columns):
            del values[i]

    def shrink(self, factor: Any) -> None:
        self.coefficients = [factor * a for a in self.coefficients]

    def move(self, factor: float, d: Sequence[float]) -> None:
        self.coefficients = [a + factor * w for a, w in zip(self.coefficients, d, strict=True)]

    def gram(self) -> list[list[Any]]:
        return [[self.kernel(s, r) for r in self.points] for s in self.points]

    def norms(self) -> list[Any]:
        """‖f‖ of each class."""
        if self.weights is not None:
            return [math.hypot(*self.weights)]
        K = self.gram()
        squares = []
        for column in self.columns:
            rows = zip(column, K, strict=True)
            terms = (a * b * k for a, row in rows for b, k in zip(column, row, strict=True))
            squares.append(self.total(terms))
        return [self.root(max(square, self.number(0))) for square in squares]

    def project(self, radius: Any) -> None:
        """Onto the ball of this radius, for each class."""
        for c, size in enumerate(self.norms()):
            if size > radius:
                self.columns[c] = [a * (radius / size) for a in self.columns[c]]


def reference(rule: Callable[..., None]) -> Callable[..., Trace]:
    """A rule as a function of rows, labels, kernel and parameters."""

    @wraps(rule)
    def run(
        X: Sequence[Row],
        Y: Sequence[int],
        kernel: KernelFunction,
        *,
        classes: int = 0,
        number: type = float,
        **params: Any,
    ) -> Trace:
        f = Trace(kernel, list(zip(X, Y, strict=True)), classes, number)
        given = {**(rule.__kwdefaults__ or {}), **params}  # defaults are floats, too
        exact = {name: number(v) if type(v) is float else v for name, v in given.items()}
        rule(f, **exact)
        return f

    return run


def solve(f: Trace, matrix: list[list[Any]], right: list[Any]) -> list[Any]:
    """Gaussian elimination with partial pivoting."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [p - factor * q for p, q in zip(rows[r], rows[i], strict=True)]
    solution = [f.number(0)] * n
    for i in reversed(range(n)):
        known = f.total(rows[i][j] * solution[j] for j in range(i + 1, n))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution
