"""metron with two memories, literally: one example at a time, two heads on one active set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reference.kernels import Row
from reference.second_order import Metron, transferred
from reference.trace import Stream, Trace


class Judged(NamedTuple):
    """What a head makes of its own value f_i(x): margin, step, mistake and loss."""

    margin: float
    step: np.ndarray
    mistake: bool
    loss: float


class Head:
    """Coefficients a, a column per class, their covariance C, losses and discounted mistakes."""

    def __init__(self, outputs: int) -> None:
        self.a = np.zeros((0, outputs))
        self.C = np.zeros((0, 0))
        self.mistakes = 0.0
        self.start()

    def start(self) -> None:
        """One round of loss 1 before the first."""
        self.loss = 1.0
        self.rounds = 1.0

    @property
    def noise(self) -> float:
        return max(0.001, 0.3 * (self.loss / self.rounds) ** 2)

    def join(self, D: np.ndarray, delta: float) -> None:
        self.C = np.pad(self.C, (0, 1)) + np.outer(D, D) / delta
        self.a = np.vstack((self.a, np.zeros((1, self.a.shape[1]))))

    def update(self, k: np.ndarray, step: np.ndarray, weight: float) -> bool:
        u = self.C @ k
        v = float(k @ u)
        if not v > 1e-250:
            return False
        b = 1 / (v + self.noise / weight)
        self.a = self.a + b * np.outer(u, step)
        self.C = self.C - b * np.outer(u, u)
        return True


class TwoMemories(Metron):
    """The rule in the docstring of `Metron`, step by step."""

    def __init__(self, stream: Stream, classes: int = 0, **params: Any) -> None:
        outputs = max(classes, 1)
        self.steady = Head(outputs)
        self.tracker = Head(outputs)
        super().__init__(stream, classes, **params)
        self.changed = 0
        self.gap = 2
        self.handicap = 4

    @property
    def heads(self) -> tuple[Head, Head]:
        return self.steady, self.tracker

    @property
    def w(self) -> float:
        """Weight of the tracker."""
        lag = self.tracker.mistakes + self.handicap - self.steady.mistakes
        return 1 / (1 + math.exp(0.5 * lag))

    @property
    def mixture(self) -> np.ndarray:
        """Coefficients of the mixture of both heads, without clipping."""
        return (1 - self.w) * self.steady.a + self.w * self.tracker.a

    def run(self, weights: Sequence[float] | None = None) -> None:
        for t, (row, y) in enumerate(self.f.stream):
            x = np.asarray(row, dtype=float)
            self.meet(x)
            self.round(x, y, 1.0 if weights is None else weights[t])
        self.f.columns = self.mixture.T.tolist()

    def round(self, x: np.ndarray, y: int, weight: float) -> None:
        f = self.f
        k = self.kernel_row(f.points, x)
        values = [self.value(head, k) for head in self.heads]
        mixed = self.mixed(values)
        margin = f.count(mixed.tolist() if f.classes else float(mixed[0]), y)  # step 1
        judged = [self.judge(value, y) for value in values]  # step 2
        for head, own in zip(self.heads, judged, strict=True):
            head.loss += own.loss
            head.rounds += 1
            head.mistakes = (1 - 1 / 200) * head.mistakes + own.mistake
        alarm = self.has_risen(judged[0].mistake)  # step 3
        joining = judged if f.restarts else judged[:1]
        k = self.join(x, k, min(own.margin for own in joining))  # step 4
        updated = False
        for head, own in zip(self.heads, judged, strict=True):  # step 5
            if f.below(own.margin, 1 - f.reached) and not (alarm and head is self.steady):
                updated |= head.update(k, own.step, weight)
        if updated:
            f.updated(margin)
        self.t += 1  # step 6
        self.rows.append(x)
        self.counts.append(1.0)
        if alarm:  # step 7
            f.restarts.append(self.t - 1)
            self.alarmed()
        if self.t % 16 == 0:  # step 8
            q = (1 - 1 / 500) ** 16
            self.tracker.C = q * self.tracker.C + (1 - q) * self.Q
        if self.t == self.next:  # step 9
            self.next = self.t + self.gap
            self.gap *= 2
            if f.points:
                self.change()

    def value(self, head: Head, k: np.ndarray) -> np.ndarray:
        """f_i(x) of each class; 0 where the terms cancel up to rounding."""
        terms = head.a * k[:, None]
        values = terms.sum(axis=0)
        return np.where(np.abs(values) <= 1e-12 * np.abs(terms).sum(axis=0), 0.0, values)

    def mixed(self, values: list[np.ndarray]) -> np.ndarray:
        """F(x) of each class."""
        first, second = (np.clip(value, -1.5, 1.5) for value in values)
        F = (1 - self.w) * first + self.w * second
        size = (1 - self.w) * np.abs(first) + self.w * np.abs(second)
        return np.where(np.abs(F) <= 1e-12 * size, 0.0, F)

    def judge(self, value: np.ndarray, y: int) -> Judged:
        if not self.f.classes:
            margin = y * float(value[0])
            step = np.array([y * max(0.0, 1 - margin)])
            return Judged(margin, step, margin < 0 or (margin == 0 and y < 0), float(step[0] ** 2))
        signs = np.where(np.arange(self.f.classes) == y, 1.0, -1.0)
        step = signs * np.maximum(1 - signs * value, 0.0)
        slack = 1e-12 * np.abs(value).max()
        others = [c for c in range(self.f.classes) if c != y]
        best = max(value[c] for c in others)
        rival = next(c for c in others if value[c] >= best - slack)
        gap = value[y] - best
        margin = gap / 2 if abs(gap) > slack else 0.0
        mistake = margin < 0 or (margin == 0 and rival < y)
        return Judged(margin, step, mistake, float((step**2).mean()))

    def join(self, x: np.ndarray, k: np.ndarray, margin: float) -> np.ndarray:
        """x joins S if there is room and it is outside the span; κ(S, x)."""
        n = len(self.f.points)
        if n == self.budget or not self.f.below(margin, 1 - n / self.budget):
            return k
        d = self.Q @ k
        delta = 1 - float(k @ d)
        if not self.f.below(0.001, delta):
            return k
        D = np.append(d, -1.0)
        self.Q = np.pad(self.Q, (0, 1)) + np.outer(D, D) / delta
        for head in self.heads:
            head.join(D, delta)
        self.f.points.append(x)
        return np.append(k, 1.0)

    def alarmed(self) -> None:
        n = len(self.f.points)
        half = self.budget // 2
        if n > half:
            gain = (self.tracker.a**2).sum(axis=1) / self.Q.diagonal()
            order = np.argsort(gain, kind="stable")  # of equals the older goes
            self.drop(np.sort(order[: n - half]), np.sort(order[n - half :]))
        self.steady.a = np.zeros_like(self.steady.a)
        self.steady.C = self.Q
        self.steady.start()
        self.g = 0.0
        self.wrong = 1
        self.seen = 2
        self.counts = [count / 2 for count in self.counts]
        self.handicap = 2
        self.gap = 64
        self.next = self.t + self.gap

    def drop(self, D: np.ndarray, R: np.ndarray) -> None:
        """Project both heads onto the span of the examples R that stay."""
        Q = self.Q
        V = -np.linalg.solve(Q[np.ix_(D, D)], Q[np.ix_(D, R)])
        for head in self.heads:
            head.a = head.a[R] + V.T @ head.a[D]
            P = np.zeros((len(R), len(Q)))
            P[:, R] = np.eye(len(R))
            P[:, D] = V.T
            head.C = P @ head.C @ P.T
        self.Q = Q[np.ix_(R, R)] + Q[np.ix_(R, D)] @ V
        self.f.points = [self.f.points[i] for i in R]

    def change(self) -> None:
        """The metric from the gradients of the mixture; the transfer once per head."""
        self.f.columns = self.mixture.T.tolist()
        P, R = self.weights()
        varies = R > 0
        change = np.abs(np.log(P[varies] / self.P[varies]))
        if R[varies] @ change < 0.05:
            return  # the metric stays
        self.changed += 1
        K0, K1, stays = self.change_metric(P)
        for head in self.heads:
            head.a, head.C = transferred(K0, K1, stays, head.a, head.C)


def metron(
    X: Sequence[Row],
    Y: Sequence[int],
    kernel: Any = None,
    *,
    classes: int = 0,
    weights: Sequence[float] | None = None,
    tracker: str = "on",
    **params: Any,
) -> Trace:
    """`kernel` has no effect."""
    rule = TwoMemories if tracker == "on" else Metron
    learner = rule(list(zip(X, Y, strict=True)), classes, **params)
    learner.run(weights)
    return learner.f
