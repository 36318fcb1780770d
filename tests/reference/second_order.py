"""arow and metron, literally: one example at a time, for two classes or several; plain inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from reference.kernels import Row
from reference.trace import Stream, Trace, reference

SCALES = (0.8, 3.0), (0.2, 0.7)
FAR = 2.0**480


class Arow:
    """Q = K^{-1}, the covariance C, and all that was counted since the last reset."""

    defaults: ClassVar = {
        "noise": 0.3,
        "floor": 0.001,
        "tolerance": 0.001,
        "alarm": 12,
        "caution": 0,
    }

    def __init__(self, f: Trace, *, budget: int, **params: Any) -> None:
        self.f = f
        self.budget = budget
        for name, value in {**self.defaults, **params}.items():
            setattr(self, name, f.number(value))
        self.reset()

    def reset(self) -> None:
        f = self.f
        f.points = []
        f.columns = [[] for _ in f.columns]
        nothing = np.zeros((0, 0), dtype=float if f.number is float else object)
        self.Q = nothing
        self.C = nothing
        self.loss = f.number(1)  # as if a round of loss 1 had come before
        self.rounds = 1
        self.wrong = f.number(1)
        self.seen = 2
        self.g = f.number(0)

    def log(self, value: Any) -> Any:
        return math.log(value) if self.f.number is float else value.ln()

    def run(self, weights: Sequence[float] | None = None) -> None:
        for t, (x, y, margin) in enumerate(self.f.rounds()):
            if self.learn(x, y, margin, 1 if weights is None else weights[t]):
                self.f.restarts.append(t)

    def learn(self, x: Row, y: int, margin: Any, weight: float) -> bool:
        """A round after its prediction; whether it reset the learner."""
        f = self.f
        outputs = max(f.classes, 1)
        values = f.scores[-1] if f.classes else [f.scores[-1]]
        targets = [1 if c == y else -1 for c in range(f.classes)] or [y]
        hinges = [max(1 - t * v, f.number(0)) for t, v in zip(targets, values, strict=True)]
        m = margin / 2 if f.classes else margin
        self.loss += f.total(h * h for h in hinges) / outputs
        self.rounds += 1
        e = self.loss / self.rounds
        if self.has_risen(f.mistake):
            self.reset()
            return True
        if not f.below(m, 1 - f.reached):
            return False
        k = [f.kernel(s, x) for s in f.points]
        n = len(f.points)
        r = self.noise * e**2
        join_below = 1 - f.number(n) / self.budget
        if self.caution:
            share = min(1.0, n / self.rounds)
            r += self.caution * min(1.0, 8 * e**6 * math.sqrt(share))
            join_below *= 1 - 0.8 * self.caution * e**4
        r = max(self.floor, r) / weight
        if n < self.budget and f.below(m, join_below):
            k = self.joined(x, k)
        u = self.times(self.C, k)
        v = self.dot(k, u)
        if v > f.number("1e-250"):  # else x is orthogonal to all of S
            f.updated(margin)
            b = 1 / (v + r)
            for c, (t, h) in enumerate(zip(targets, hinges, strict=True)):
                f.columns[c] = (np.array(f.columns[c]) + t * h * b * u).tolist()
            self.C = self.C - b * np.outer(u, u)
        return False

    def has_risen(self, mistake: bool) -> bool:
        """Page's test of the mistake rate: whether g is above the alarm after this round."""
        f = self.f
        p = self.wrong / self.seen
        q = p + (1 - p) / 4
        ratio = q / p if mistake else (1 - q) / (1 - p)
        self.g = max(f.number(0), self.g + self.log(ratio))
        self.wrong += mistake
        self.seen += 1
        return f.below(self.alarm, self.g)

    def joined(self, x: Row, k: list[Any]) -> list[Any]:
        """x joins S with coefficient 0 if it is outside the span; κ(S, x) after that."""
        f = self.f
        d = self.times(self.Q, k)
        delta = f.kernel(x, x) - self.dot(k, d)
        if not f.below(self.tolerance, delta):
            return k
        D = np.array([*d, -f.number(1)])
        grows_by = np.outer(D, D) / delta
        self.Q = np.pad(self.Q, (0, 1)) + grows_by
        self.C = np.pad(self.C, (0, 1)) + grows_by
        f.points.append(x)
        for column in f.columns:
            column.append(f.number(0))
        return [*k, f.kernel(x, x)]

    def dot(self, u: Sequence[Any], v: Sequence[Any]) -> Any:
        return self.f.total(a * b for a, b in zip(u, v, strict=True))

    def times(self, matrix: np.ndarray, v: list[Any]) -> np.ndarray:
        return matrix @ np.array(v, dtype=matrix.dtype)


@reference
def arow(f: Trace, **params: Any) -> None:
    Arow(f, **params).run()


class Metron(Arow):
    """arow in a kernel of its own, whose metric changes after rounds 2, 4, 8, …"""

    def __init__(self, stream: Stream, classes: int = 0, **params: Any) -> None:
        self.width = len(stream[0][0])
        super().__init__(Trace(self.kernel, stream, classes), **params)

    def reset(self) -> None:
        super().reset()
        self.t = 0
        self.next = 2
        self.rows: list[np.ndarray] = []  # all since the reset: statistics are computed from them
        self.counts: list[float] = []  # how much each of them counts in the statistics
        self.P = np.zeros(self.width)
        self.new_feature_scale = 1.0
        self.smooth = False

    def kernel(self, u: Row, v: Row) -> float:
        return float(self.kernel_row([u], v)[0])

    def kernel_row(self, S: Sequence[Row], x: Row) -> np.ndarray:
        """κ(s, x) for each s in S."""
        D = self.distances_to(S, x)
        if self.smooth:
            return np.exp(-(D**2) / (2 * 1.5**2))
        D = math.sqrt(3) * D
        return sum((w * (1 + D / c) * np.exp(-D / c) for w, c in SCALES), np.zeros(len(D)))

    def distances_to(self, S: Sequence[Row], x: Row) -> np.ndarray:
        """‖P(s - x)‖ for each s in S."""
        examples = np.asarray(S, dtype=float).reshape(len(S), self.width)
        return np.linalg.norm(self.gaps(examples, np.asarray(x)), axis=1)

    def gaps(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """P(u - v), in which coordinates beyond FAR are as if they were at FAR."""
        far = np.maximum(np.abs(self.P * u), np.abs(self.P * v)) > FAR
        clipped = np.clip(self.P * u, -FAR, FAR) - np.clip(self.P * v, -FAR, FAR)
        return np.where(far, clipped, self.P * (u - v))

    def run(self, weights: Sequence[float] | None = None) -> None:
        for t, (row, y) in enumerate(self.f.stream):
            x = np.asarray(row, dtype=float)
            self.meet(x)
            if self.learn(x, y, self.f.predict(x, y), 1 if weights is None else weights[t]):
                self.f.restarts.append(t)
                continue
            self.t += 1
            self.rows.append(x)
            self.counts.append(1.0)
            if self.t == self.next:
                self.next *= 2
                self.change()

    def meet(self, x: np.ndarray) -> None:
        """Weigh features that were 0 in all rows, and are not 0 in x."""
        if x.any() and not any(row.any() for row in self.rows):
            self.new_feature_scale = 1 / math.sqrt(np.count_nonzero(x))
        for j in range(self.width):
            if x[j] != 0 and all(row[j] == 0 for row in self.rows):
                self.P[j] = self.new_feature_scale / abs(x[j])

    def distances(self) -> np.ndarray:
        S = self.f.points
        return np.array([self.distances_to(S, s) for s in S])

    def gram(self) -> np.ndarray:
        S = self.f.points
        return np.array([self.kernel_row(S, s) for s in S])

    def change(self) -> None:
        """The weights, the kernel and S of the new metric, then f and its covariance."""
        P, _ = self.weights()
        K0, K1, stays = self.change_metric(P)
        a, self.C = transferred(K0, K1, stays, np.array(self.f.columns).T, self.C)
        self.f.columns = a.T.tolist()

    def change_metric(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """K in the old and in the new metric, and which examples of S stay; Q follows."""
        n = len(self.f.points)
        K0 = self.gram()
        self.P = P
        self.new_feature_scale = self.next_new_feature_scale
        if n >= 10:
            D = self.distances() + np.diag([math.inf] * n)
            self.smooth = bool(np.median(D.min(axis=1)) > 1)
        K1 = self.gram()
        stays: list[int] = []
        for i in range(n):
            part = K1[np.ix_(stays, stays)]
            if K1[i, i] - K1[i, stays] @ np.linalg.solve(part, K1[stays, i]) > 0.001:
                stays.append(i)
        self.Q = np.linalg.inv(K1[np.ix_(stays, stays)])
        self.f.points = [self.f.points[i] for i in stays]
        return K0, K1, stays

    def deviation(self, j: int) -> tuple[float, bool]:
        """The root of the spread of feature j, and whether it varies."""
        column = np.array([row[j] for row in self.rows])
        counts = np.array(self.counts)
        filled = column != 0
        values = column[filled]
        v = counts[filled]
        if not len(values):
            return 1.0, False  # the weight of a feature that is 0 has no effect
        _, exponent = math.frexp(float(np.abs(values).max()))
        scaled = np.ldexp(values, -exponent)  # exact: squares are finite
        mean = scaled[0] + v @ (scaled - scaled[0]) / v.sum()
        variance = v @ (scaled - mean) ** 2 / v.sum()
        if variance <= 1e-12 * (mean - scaled[0]) ** 2:  # the first value has long been halved away
            variance = 0.0
        empty = counts[~filled].sum() / counts.sum()
        root = math.sqrt(variance + (empty if empty > 1e-12 else 0.0) * mean**2)
        if root <= 1e-12 * abs(mean):  # constant up to rounding
            return abs(float(values[0])), False
        return math.ldexp(root, exponent), True

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """P and R after this round."""
        X = np.array(self.rows)
        S = self.f.points
        found = [self.deviation(j) for j in range(self.width)]
        deviation = np.array([value for value, _ in found])
        varies = np.array([is_variable for _, is_variable in found])
        d = max(int(varies.sum()), 1)
        R = np.full(self.width, 1 / d)
        uniform = 1 / d
        if len(S) >= 10:
            a = np.array(self.f.columns).T
            gradients = np.zeros((len(S), a.shape[1], self.width))
            examples = np.array(S)
            D = math.sqrt(3) * self.distances()
            slopes = sum(3 * w / c**2 * np.exp(-D / c) for w, c in SCALES)
            if self.smooth:
                slopes = self.gram() / 1.5**2
            for i, s in enumerate(examples):
                gradients[i] = (a * slopes[i][:, None]).T @ self.gaps(examples, s)
            with np.errstate(over="ignore", invalid="ignore"):
                g = (gradients**2).sum(axis=1).mean(axis=0) * (self.P * deviation) ** 2
            g[~varies] = 0.0
            if 0 < g.sum() < math.inf:
                t = math.sqrt(max(self.f.classes - 1, 1)) * self.t
                lam = max(0.1, 60 * d / (60 * d + t))
                uniform = lam / d
                R = (1 - lam) * g / g.sum() + uniform
        P: np.ndarray = np.sqrt(R) / deviation
        share = np.array(self.counts) @ (X != 0) / sum(self.counts)
        variances = share * R  # Σ_j var_j·P_j², as the variance of feature j is share·deviation²
        norm = math.sqrt(variances[varies].sum()) or 1.0
        self.next_new_feature_scale = math.sqrt(uniform) / norm
        return P / norm, np.where(varies, R, 0.0)


def transferred(
    K0: np.ndarray, K1: np.ndarray, stays: list[int], a: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and covariance after the prior K0 was replaced by K1 on the part that stays."""
    L = np.linalg.cholesky(K1[np.ix_(stays, stays)])
    W = np.linalg.solve(L, K1[stays])
    Q = np.linalg.inv(K0)
    precision = np.linalg.inv(C)
    evidence = Q @ precision @ Q - Q  # in terms of the values of f at S
    M = np.eye(len(stays)) + W @ evidence @ W.T
    h = W @ Q @ precision @ a
    inverse = np.linalg.inv(L)
    root = inverse.T @ np.linalg.inv(M)
    return root @ h, root @ inverse
