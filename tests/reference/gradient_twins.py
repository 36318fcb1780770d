"""The learners on explicit features: from scratch; eigenvalues and pseudo-inverses by NumPy.

Lots are drawn as the learners' documentation says, from the generator that a pass starts with by
default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference.kernels import Row
from reference.trace import Trace, reference


def step_on(f: Trace, w: np.ndarray, z: np.ndarray, y: int, step: float) -> np.ndarray:
    """w after gradient descent on w·z, which is predicted first."""
    margin = f.count(float(w @ z), y)
    if margin < 1 - f.reached:
        f.updated(margin)
        return w + step * y * z
    return w


def step_in_kernel_space(f: Trace, x: Row, y: int, step: float) -> bool:
    """Kernel gradient descent; whether x was added."""
    margin = f.count(f.at(x), y)
    if margin < 1 - f.reached:
        f.updated(margin)
        f.add(x, step * y)
        return True
    return False


@reference
def fogd(f: Trace, *, features: int, step: float) -> None:
    """One number is drawn; each column's frequencies come from a generator of it and the column."""
    sigma = 1 / math.sqrt(-2 * math.log(f.kernel([0.0], [1.0])))
    seed = int(np.random.default_rng((0,)).integers(2**63))
    columns = range(len(f.stream[0][0]))
    U = [np.random.default_rng((seed, j)).standard_normal(features) / sigma for j in columns]
    w = np.zeros(2 * features)
    for x, y in f.stream:
        phases = [math.fsum(u[i] * v for u, v in zip(U, x, strict=True)) for i in range(features)]
        z = np.array([g(p) for g in (math.cos, math.sin) for p in phases]) / math.sqrt(features)
        w = step_on(f, w, z, y, step)
    f.weights = w.tolist()


@reference
def nogd(f: Trace, *, budget: int, step: float, rank: int | None = None) -> None:
    r = max(1, round(0.2 * budget)) if rank is None else rank
    Z: np.ndarray | None = None  # its columns: v_j/√λ_j
    w = np.empty(0)
    for x, y in f.stream:
        if Z is not None:
            w = step_on(f, w, Z.T @ [f.kernel(s, x) for s in f.points], y, step)
        elif step_in_kernel_space(f, x, y, step) and len(f.points) == budget:
            values, vectors = largest_eigenvalues(np.array(f.gram()), r)
            Z = vectors / np.sqrt(values)
            w = np.sqrt(values) * (vectors.T @ f.coefficients)
    f.weights = None if Z is None else w.tolist()


def largest_eigenvalues(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(K)
    kept = [j for j in np.argsort(-values)[:rank] if values[j] > 1e-8 * max(values)]
    return values[kept], vectors[:, kept]


@reference
def skegd(
    f: Trace,
    *,
    budget: int,
    step: float,
    cycle: int,
    sketch: Any = None,
    samples: Any = None,
    rank: Any = None,
) -> None:
    """The sketches are made from scratch, from the whole kernel matrix of E, at every admission."""
    s_p = max(1, round(0.75 * budget)) if sketch is None else sketch
    s_m = max(1, round(0.5 * budget)) if samples is None else samples
    k = max(1, round(0.2 * budget)) if rank is None else rank
    rng = np.random.default_rng((0,))
    E = f.points
    S_p = list[Sequence[float]]()
    sampled = list[int]()
    since = 0
    Z = np.empty((0, 0))
    w = np.empty(0)
    for x, y in f.stream:
        if not sampled:
            if step_in_kernel_space(f, x, y, step) and len(E) == budget:
                columns = rng.integers(s_p, size=budget)
                signs = rng.integers(2, size=budget)
                sampled = sorted(rng.choice(budget, size=s_m, replace=False).tolist())
                S_p = [sketch_row(*lot, s_p) for lot in zip(columns, signs, strict=True)]
                K = np.array(f.gram())
                Z = sketched(K, S_p, sampled, k)
                w = fit(K[:, sampled] @ Z, K @ np.array(f.coefficients))
            continue
        since += 1
        z = np.array([f.kernel(E[j], x) for j in sampled])
        admitted = since % cycle == 0 and len(E) < 2 * budget
        margin = f.count(float(w @ Z.T @ z), y)
        if admitted:
            E.append(x)
            S_p.append(sketch_row(int(rng.integers(s_p)), int(rng.integers(2)), s_p))
            new = sketched(np.array(f.gram()), S_p, sampled, k)
            Z, w = new, fit(new, Z @ w)
        if margin < 1 - f.reached:
            f.updated(margin)
            w = w + step * y * (Z.T @ z)
    f.weights = w.tolist() if sampled else None


def sketch_row(column: int, sign: int, s_p: int) -> list[float]:
    return [(1.0 if sign else -1.0) if j == column else 0.0 for j in range(s_p)]


def sketched(
    K: np.ndarray, S_p: list[Sequence[float]], sampled: list[int], rank: int
) -> np.ndarray:
    S = np.array(S_p)
    values, vectors = largest_eigenvalues(S.T @ K @ S, rank)
    return fit(S.T @ K[:, sampled], vectors * np.sqrt(values))


def fit(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.pinv(matrix, rcond=1e-3) @ values)


@reference
def forks(
    f: Trace,
    *,
    budget: int,
    cycle: int | None = None,
    horizon: int | None = None,
    step: float = 0.2,
    ridge: float = 0.01,
    sketch: Any = None,
    samples: Any = None,
    rank: Any = None,
) -> None:
    """Updates of the sketches as products of whole matrices; pseudo-inverses term by term."""
    s_p = max(1, round(0.75 * budget)) if sketch is None else sketch
    s_m = max(1, round(0.5 * budget)) if samples is None else samples
    k = max(1, math.floor(s_p / 10)) if rank is None else rank
    if cycle is None:
        assert horizon is not None
        cycle = max(1, math.floor(0.3 * horizon))
    rng = np.random.default_rng((0,))
    S = f.points
    sampled: list[Row] = []
    violations = 0
    A = C = P = Z = G = np.empty((0, 0))
    w = np.empty(0)

    def newton(phi: np.ndarray, y: int, guard: float) -> None:
        nonlocal w, G
        u = G @ phi
        w = w + step * y * u
        value = float(w @ phi)
        if abs(value) > 1:
            w = w - math.copysign(abs(value) - 1, value) / (phi @ u + guard) * u
        G = G - step**2 * np.outer(u, u) / (1 + step**2 * (phi @ u))

    for x, y in f.stream:
        at_samples = np.array([f.kernel(s, x) for s in sampled])
        margin = f.count(float(w @ Z.T @ at_samples), y) if sampled else f.predict(x, y)
        if margin >= 1 - f.reached:
            continue
        f.updated(margin)
        violations += 1
        if len(S) < budget:
            f.add(x, step * y)
        elif not sampled:
            columns = rng.integers(s_p, size=budget)
            signs = 2 * rng.integers(2, size=budget) - 1
            sampled = [S[i] for i in rng.permutation(budget)[:s_m]]
            lots = zip(columns, signs, strict=True)
            P = np.array([[g * (h == j) for j in range(s_p)] for h, g in lots])
            A = P.T @ np.array(f.gram()) @ P
            C = P.T @ np.array([[f.kernel(s, r) for r in sampled] for s in S])
            Z = forks_matrix(A, C, k)
            phi = Z.T @ np.array([f.kernel(s, x) for s in sampled])
            squared = float(phi @ phi)
            w = y * margin * phi / squared if squared > 1e-16 else np.zeros(len(phi))
            G = np.eye(len(phi)) / ridge
            newton(phi, y, 0.0)
        else:
            if violations % cycle == 1:
                e = np.zeros(s_p)
                column = rng.integers(s_p)
                e[column] = 2 * rng.integers(2) - 1
                p = P.T @ np.array([f.kernel(s, x) for s in S])
                C = C + np.outer(e, at_samples)
                A = A + np.outer(e, p) + np.outer(p, e) + f.kernel(x, x) * np.outer(e, e)
                Z = forks_matrix(A, C, k)
                w = np.zeros(Z.shape[1])
                G = np.eye(len(w)) / ridge
            newton(Z.T @ at_samples, y, 1e-4)
    f.weights = w.tolist() if sampled else None


def forks_matrix(A: np.ndarray, C: np.ndarray, rank: int) -> np.ndarray:
    """`C^+ V_k |Λ_k|^{1/2}` with the k eigenvalues of A that are largest without their signs."""
    values, vectors = np.linalg.eigh(A)
    kept = sorted(range(len(values)), key=lambda j: -abs(values[j]))[:rank]
    left, singular, right = np.linalg.svd(C)
    inverse = np.zeros(C.T.shape)
    for j, value in enumerate(singular):
        if value > 1e-8:
            inverse += np.outer(right[j], left[:, j]) / value
    return np.asarray(inverse @ vectors[:, kept] * np.sqrt(np.abs(values[kept])))
