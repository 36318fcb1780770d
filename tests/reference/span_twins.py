"""arow, literally: one example at a time, Q and C as they stand in its box."""

from __future__ import annotations

import math

import numpy as np

from reference.choices import REACHED
from reference.kernels import KernelFunction, Row
from reference.twins import Trace, count_update, norm, predict, sign


def arow(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    noise: float = 0.3,
    floor: float = 0.001,
    tolerance: float = 0.001,
    alarm: float = 12.0,
    caution: float = 0.0,
) -> Trace:
    trace = Trace()
    Q = C = np.zeros((0, 0))
    loss, rounds, wrong, seen, g = 1.0, 1, 1, 2, 0.0
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        m = predict(trace, kernel, x, y)
        mistake = sign(trace.scores[-1]) != y
        loss += max(0.0, 1 - m) ** 2
        rounds += 1
        e = loss / rounds
        share = min(1.0, len(trace.points) / rounds)
        more = caution * min(1.0, 8 * e**6 * math.sqrt(share))
        r = max(floor, noise * e**2 + more)
        p = wrong / seen
        q = p + (1 - p) / 4
        g = max(0.0, g + math.log(q / p if mistake else (1 - q) / (1 - p)))
        wrong += mistake
        seen += 1
        if g > alarm:
            trace.points, trace.coefficients = [], []
            Q = C = np.zeros((0, 0))
            loss, rounds, wrong, seen, g = 1.0, 1, 1, 2, 0.0
            trace.restarts.append(t)
        elif m < 1 - REACHED:
            n = len(trace.points)
            k = np.array([kernel(s, x) for s in trace.points])
            if n < budget and m < (1 - n / budget) * (1 - 0.8 * caution * e**4):
                d = Q @ k
                delta = kernel(x, x) - float(k @ d)
                if delta > tolerance:
                    D = np.append(d, -1.0)
                    Q, C = (np.pad(A, (0, 1)) + np.outer(D, D) / delta for A in (Q, C))
                    trace.points.append(x)
                    trace.coefficients.append(0.0)
                    k = np.append(k, kernel(x, x))
            u = C @ k
            v = max(float(k @ u), 0.0)
            if v > 1e-250:  # else x is orthogonal to all of S
                count_update(trace, m)
                b = 1 / (v + r)
                moved = np.array(trace.coefficients) + (1 - m) * y * b * u
                trace.coefficients = moved.tolist()
                C = C - b * np.outer(u, u)
        trace.sizes.append(len(trace.points))
    trace.norms.append(norm(trace.points, trace.coefficients, kernel))
    return trace
