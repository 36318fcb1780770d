"""The learners on explicit features once more, literally: one example at a time, from scratch.

Like `twins`, and as independent; only eigenvalues and pseudo-inverses are left to NumPy. Lots are
drawn as the learners' documentation says, from the generator that a pass starts with by default.
"""

from __future__ import annotations

import math

import numpy as np

from reference.choices import REACHED
from reference.kernels import KernelFunction, Row, dot
from reference.twins import Trace, count, count_update, evaluate, norm


def generator() -> np.random.Generator:
    return np.random.default_rng((0,))


def plus(u: list[float], factor: float, v: list[float]) -> list[float]:
    return [a + factor * b for a, b in zip(u, v, strict=True)]


def fogd(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    features: int,
    step: float,
) -> Trace:
    """One number is drawn; each column's frequencies come from a generator of it and the column."""
    sigma = 1 / math.sqrt(-2 * math.log(kernel([0.0], [1.0])))
    seed = int(generator().integers(2**63))
    U = [
        np.random.default_rng((seed, j)).standard_normal(features) / sigma for j in range(len(X[0]))
    ]
    trace = Trace()
    w = [0.0] * (2 * features)
    for x, y in zip(X, Y, strict=True):
        phases = [math.fsum(u[i] * v for u, v in zip(U, x, strict=True)) for i in range(features)]
        z = [math.cos(p) / math.sqrt(features) for p in phases]
        z += [math.sin(p) / math.sqrt(features) for p in phases]
        margin = count(trace, dot(w, z), y)
        if margin < 1 - REACHED:
            count_update(trace, margin)
            w = plus(w, step * y, z)
            trace.norms.append(math.sqrt(dot(w, w)))
    return trace


def nogd(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    step: float,
    rank: int | None = None,
) -> Trace:
    r = max(1, round(0.2 * budget)) if rank is None else rank
    trace = Trace()
    features: list[list[float]] | None = None  # rows: v_j/√λ_j
    w: list[float] = []
    for x, y in zip(X, Y, strict=True):
        if features is None:
            margin = count(trace, evaluate(trace.points, trace.coefficients, kernel, x), y)
            if margin < 1 - REACHED:
                count_update(trace, margin)
                trace.points.append(x)
                trace.coefficients.append(step * y)
                trace.norms.append(norm(trace.points, trace.coefficients, kernel))
                if len(trace.points) == budget:
                    features, w = nystroem(trace, kernel, r)
                    trace.norms.append(math.sqrt(dot(w, w)))
        else:
            k = [kernel(s, x) for s in trace.points]
            z = [dot(row, k) for row in features]
            margin = count(trace, dot(w, z), y)
            if margin < 1 - REACHED:
                count_update(trace, margin)
                w = plus(w, step * y, z)
                trace.norms.append(math.sqrt(dot(w, w)))
    return trace


def nystroem(
    trace: Trace, kernel: KernelFunction, rank: int
) -> tuple[list[list[float]], list[float]]:
    K = np.array([[kernel(s, r) for r in trace.points] for s in trace.points])
    values, vectors = np.linalg.eigh(K)
    features, w = [], []
    for j in sorted(range(len(values)), key=lambda j: -values[j])[:rank]:
        if values[j] > 1e-8 * max(values):
            root, v = math.sqrt(values[j]), vectors[:, j].tolist()
            features.append([entry / root for entry in v])
            w.append(root * dot(v, trace.coefficients))
    return features, w


def skegd(
    X: list[Row],
    Y: list[int],
    kernel: KernelFunction,
    *,
    budget: int,
    step: float,
    cycle: int,
    sketch: int | None = None,
    samples: int | None = None,
    rank: int | None = None,
) -> Trace:
    """The sketches are made from scratch, from the whole kernel matrix of E, at every admission."""
    s_p = max(1, round(0.75 * budget)) if sketch is None else sketch
    s_m = max(1, round(0.5 * budget)) if samples is None else samples
    k = max(1, round(0.2 * budget)) if rank is None else rank
    rng = generator()
    trace = Trace()
    E = trace.points
    S_p: list[list[float]] = []
    sampled: list[int] = []
    Z, w = np.empty((0, 0)), np.empty(0)
    since = 0
    for x, y in zip(X, Y, strict=True):
        if not sampled:
            margin = count(trace, evaluate(E, trace.coefficients, kernel, x), y)
            if margin < 1 - REACHED:
                count_update(trace, margin)
                E.append(x)
                trace.coefficients.append(step * y)
                trace.norms.append(norm(E, trace.coefficients, kernel))
                if len(E) == budget:
                    columns = rng.integers(s_p, size=budget)
                    signs = rng.integers(2, size=budget)
                    sampled = sorted(rng.choice(budget, size=s_m, replace=False).tolist())
                    S_p = [sketch_row(*lot, s_p) for lot in zip(columns, signs, strict=True)]
                    Z = sketched(E, S_p, sampled, kernel, k)
                    K = np.array([[kernel(s, r) for r in E] for s in E])
                    w = fit(K[:, sampled] @ Z, K @ np.array(trace.coefficients))
                    trace.norms.append(float(np.sqrt(w @ w)))
            continue
        margin = count(trace, float(w @ Z.T @ [kernel(E[j], x) for j in sampled]), y)
        since += 1
        if since % cycle == 0 and len(E) < 2 * budget:
            E.append(x)
            S_p.append(sketch_row(int(rng.integers(s_p)), int(rng.integers(2)), s_p))
            new = sketched(E, S_p, sampled, kernel, k)
            Z, w = new, fit(new, Z @ w)
        if margin < 1 - REACHED:
            count_update(trace, margin)
            w = w + step * y * (Z.T @ [kernel(E[j], x) for j in sampled])
        trace.norms.append(float(np.sqrt(w @ w)))
    return trace


def sketch_row(column: int, sign: int, s_p: int) -> list[float]:
    return [(1.0 if sign else -1.0) if j == column else 0.0 for j in range(s_p)]


def sketched(
    E: list[Row], S_p: list[list[float]], sampled: list[int], kernel: KernelFunction, rank: int
) -> np.ndarray:
    K = np.array([[kernel(s, r) for r in E] for s in E])
    S = np.array(S_p)
    values, vectors = np.linalg.eigh(S.T @ K @ S)
    kept = [j for j in np.argsort(-values)[:rank] if values[j] > 1e-8 * max(values)]
    root = vectors[:, kept] * np.sqrt(values[kept])
    return np.asarray(np.linalg.pinv(S.T @ K[:, sampled], rcond=1e-3) @ root)


def fit(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.pinv(matrix, rcond=1e-3) @ values)
