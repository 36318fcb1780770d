"""metron, literally: one example at a time, for two classes or several; plain inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reference.choices import REACHED
from reference.class_twins import ClassTrace
from reference.kernels import Row
from reference.twins import Trace

SCALES = (0.8, 3.0), (0.2, 0.7)


class Metron:
    """f, and all that was counted since the last reset; `labels` are ±1, or numbers of classes."""

    def __init__(self, width: int, budget: int, alarm: float, classes: int = 0) -> None:
        self.width, self.budget, self.alarm, self.classes = width, budget, alarm, classes
        self.resets: list[int] = []
        self.changes = self.updates = self.margin_updates = 0
        self.reset()

    def reset(self) -> None:
        self.t, self.next = 0, 2
        self.rows: list[np.ndarray] = []  # all since the reset: statistics are computed from them
        self.P, self.fresh = np.zeros(self.width), 1.0
        self.smooth = False
        self.S = np.zeros((0, self.width))
        self.a = np.zeros((0, max(self.classes, 1)))
        self.C = self.Q = np.zeros((0, 0))
        self.loss, self.rounds, self.wrong, self.seen, self.g = 1.0, 1, 1, 2, 0.0

    def round(self, x: np.ndarray, y: int, weight: float = 1.0) -> np.ndarray:
        """f(x); then learn."""
        self.meet(x)
        f = self.value(x)
        if self.learn(x, y, weight):
            return f
        self.t += 1
        self.rows.append(x)
        if self.t == self.next:
            self.next *= 2
            self.changes += 1
            self.change()
        return f

    def meet(self, x: np.ndarray) -> None:
        """Weigh features that were 0 in all rows, and are not 0 in x."""
        if x.any() and not any(row.any() for row in self.rows):
            self.fresh = 1 / math.sqrt(np.count_nonzero(x))
        for j in range(self.width):
            if x[j] != 0 and all(row[j] == 0 for row in self.rows):
                self.P[j] = self.fresh / abs(x[j])

    def value(self, x: np.ndarray) -> np.ndarray:
        if not len(self.S):
            return np.zeros(self.a.shape[1])
        terms = self.kernel(self.S, x[None]) * self.a
        f = terms.sum(axis=0)
        f[np.abs(f) <= 1e-12 * np.abs(terms).sum(axis=0)] = 0.0
        return f

    def margin(self, f: np.ndarray, y: int) -> tuple[float, bool, np.ndarray]:
        """m, whether the prediction is wrong, and the target of each value of f."""
        if not self.classes:
            return float(y * f[0]), (f[0] >= 0) != (y > 0), np.array([float(y)])
        slack = 1e-12 * np.abs(f).max()
        predicted = int((f >= f.max() - slack).argmax())
        rival = max(f[c] for c in range(self.classes) if c != y)
        m = 0.0 if abs(f[y] - rival) <= slack else float(f[y] - rival) / 2
        return m, predicted != y, np.where(np.arange(self.classes) == y, 1.0, -1.0)

    def learn(self, x: np.ndarray, y: int, weight: float) -> bool:
        """arow's round; whether it reset the learner."""
        f = self.value(x)
        m, mistake, targets = self.margin(f, y)
        hinges = np.maximum(1 - targets * f, 0.0)
        self.loss += float((hinges**2).mean())
        self.rounds += 1
        r = max(0.001, 0.3 * (self.loss / self.rounds) ** 2) / weight
        p = self.wrong / self.seen
        q = p + (1 - p) / 4
        self.g = max(0.0, self.g + math.log(q / p if mistake else (1 - q) / (1 - p)))
        self.wrong += mistake
        self.seen += 1
        if self.g > self.alarm:
            self.reset()
            return True
        if m < 1 - REACHED:
            n = len(self.S)
            k = self.kernel(self.S, x[None])[:, 0] if n else np.zeros(0)
            if n < self.budget and m < 1 - n / self.budget:
                d = self.Q @ k
                delta = 1 - float(k @ d)
                if delta > 0.001:
                    D = np.append(d, -1.0)
                    self.Q, self.C = (
                        np.pad(A, (0, 1)) + np.outer(D, D) / delta for A in (self.Q, self.C)
                    )
                    self.S, k = np.vstack((self.S, x)), np.append(k, 1.0)
                    self.a = np.vstack((self.a, np.zeros(self.a.shape[1])))
            u = self.C @ k
            v = float(k @ u)
            if v > 1e-250:
                self.updates += 1
                self.margin_updates += m > 0
                b = 1 / (v + r)
                self.a = self.a + np.outer(b * u, targets * hinges)
                self.C = self.C - b * np.outer(u, u)
        return False

    def distances(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.array([[math.sqrt(((self.P * (x - z)) ** 2).sum()) for z in Z] for x in X])

    def kernel(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        D = self.distances(X, Z)
        if self.smooth:
            return np.exp(-(D**2) / (2 * 1.5**2))
        D *= math.sqrt(3)
        return sum(w * (1 + D / c) * np.exp(-D / c) for w, c in SCALES)

    def change(self) -> None:
        """Steps 1 to 5 of the definition."""
        P = self.weights()
        n = len(self.S)
        K0 = self.kernel(self.S, self.S) + 1e-7 * np.eye(n)
        self.P = P
        if n >= 10:
            D = self.distances(self.S, self.S) + np.diag([math.inf] * n)
            self.smooth = np.median(D.min(axis=1)) > 1
        K1 = self.kernel(self.S, self.S)
        kept: list[int] = []
        for i in range(n):
            part = K1[np.ix_(kept, kept)]
            if K1[i, i] - K1[i, kept] @ np.linalg.solve(part, K1[kept, i]) > 0.001:
                kept.append(i)
        L0, L1 = np.linalg.cholesky(K0), np.linalg.cholesky(K1[np.ix_(kept, kept)])
        T = np.linalg.solve(L0, K1[:, kept]) @ np.linalg.inv(L1).T
        N = L0.T @ self.C @ L0
        w, V = np.linalg.eigh((N + N.T) / 2)
        w = np.clip(w, 1e-12, 1)
        M = np.eye(len(kept)) + T.T @ V @ np.diag(1 / w - 1) @ V.T @ T
        h = T.T @ V @ np.diag(1 / w) @ V.T @ L0.T @ self.a
        I1, J = np.linalg.inv(L1), np.linalg.inv(M)
        self.C, self.a, self.Q, self.S = I1.T @ J @ I1, I1.T @ J @ h, I1.T @ I1, self.S[kept]

    def weights(self) -> np.ndarray:
        X, t = np.array(self.rows), self.t
        Z = X - X[0]  # a variance does not depend on it, its digits do
        v = (Z**2).mean(axis=0) - Z.mean(axis=0) ** 2
        v[v <= 1e-12 * (Z**2).mean(axis=0)] = 0.0
        on = v > 0
        d = max(int(on.sum()), 1)
        s2 = v * t / np.maximum((X != 0).sum(axis=0), 1)
        for j in range(self.width):
            if not on[j]:
                s2[j] = X[0, j] ** 2 or 1.0  # the weight of a feature that is 0 has no effect
        R, off = np.full(self.width, 1 / d), 1 / d
        if len(self.S) >= 10:
            gradients = np.zeros((len(self.S), self.a.shape[1], self.width))
            D = math.sqrt(3) * self.distances(self.S, self.S)
            slopes = sum(3 * w / c**2 * np.exp(-D / c) for w, c in SCALES)
            if self.smooth:
                slopes = self.kernel(self.S, self.S) / 1.5**2
            for i, s in enumerate(self.S):
                for j, other in enumerate(self.S):
                    gradients[i] += np.outer(self.a[j] * slopes[i, j], self.P**2 * (other - s))
            g = (gradients**2).sum(axis=1).mean(axis=0) * s2
            if g[on].sum() > 0:
                much = math.sqrt(max(self.classes - 1, 1)) * t
                lam = max(0.1, 60 * d / (60 * d + much))
                R, off = (1 - lam) * g / g[on].sum() + lam / d, lam / d
        P: np.ndarray = np.sqrt(R / s2)
        norm = math.sqrt((v * P**2).sum()) or 1.0
        self.fresh = math.sqrt(off) / norm
        return P / norm


def metron(
    X: list[Row], Y: list[int], kernel: Any = None, *, budget: int, alarm: float = 12.0
) -> Trace:
    """Two classes; `kernel` has no effect."""
    learner = Metron(len(X[0]), budget, alarm)
    trace = Trace()
    for t, (x, y) in enumerate(zip(np.array(X, dtype=float), Y, strict=True)):
        before = learner.t
        (score,) = learner.round(x, y).tolist()
        trace.scores.append(score)
        trace.mistakes += (score >= 0) != (y > 0)
        trace.nonpositive_margins += y * score <= 0
        if learner.t <= before:
            trace.restarts.append(t)
    trace.updates, trace.margin_updates = learner.updates, learner.margin_updates
    trace.points, trace.coefficients = learner.S.tolist(), learner.a[:, 0].tolist()
    trace.norms.append(norms(learner)[0])
    return trace


def metron_classes(
    X: list[Row], Y: list[int], classes: int, *, budget: int, alarm: float = 12.0
) -> tuple[ClassTrace, list[float]]:
    """Several classes on one S; and ‖f‖ of each."""
    learner, trace = Metron(len(X[0]), budget, alarm, classes), ClassTrace(classes)
    for x, y in zip(np.array(X, dtype=float), Y, strict=True):
        before = learner.t
        f = learner.round(x, y)
        trace.scores.append(f.tolist())
        trace.mistakes += learner.margin(f, y)[1]
        trace.restarts += learner.t <= before
    trace.updates, trace.margin_updates = learner.updates, learner.margin_updates
    trace.points, trace.rows = learner.S.tolist(), learner.a.tolist()
    return trace, norms(learner)


def norms(learner: Metron) -> list[float]:
    if not len(learner.S):
        return [0.0] * learner.a.shape[1]
    K = learner.kernel(learner.S, learner.S)
    return [math.sqrt(max(float(a @ K @ a), 0.0)) for a in learner.a.T]
