"""Ahpatron as a NumPy loop, one example at a time: what the block engine is measured against.

The reference implementation with vectors: the distances to S, one `exp` and one product a round.
`tuned` keeps squared norms, so that the distances cost one matrix-vector product: the fastest such
loop that we know how to write.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ahpatron(
    X: Floats,
    y: Floats,
    *,
    sigma: float,
    budget: int,
    epsilon: float,
    ridge: float,
    tuned: bool = False,
) -> tuple[int, int]:
    """|M_T| and |N_T| of the paper's Ahpatron."""
    radius = math.sqrt(budget) / 2
    step = radius / math.sqrt(4 * budget)
    half = budget // 2
    S = np.zeros((budget, X.shape[1]))
    squares = np.zeros(budget)
    a = np.zeros(budget)
    gram = np.zeros((budget, budget))
    size, norm_squared, mistakes, margin_updates = 0, 0.0, 0, 0
    for x, label in zip(X, y.tolist(), strict=True):
        if tuned:
            square = x @ x
            k = S[:size] @ x
            k *= 2.0
            k -= squares[:size]
            k -= square
            np.minimum(k, 0.0, out=k)
            k /= 2 * sigma * sigma
            np.exp(k, out=k)
        else:
            square = 0.0
            k = np.exp(-((S[:size] - x) ** 2).sum(axis=1) / (2 * sigma**2))
        score = float(a[:size] @ k)
        margin = label * score
        mistakes += (score >= 0) != (label > 0)
        if margin >= (1 - epsilon) * (1 - 1e-10):  # 1 - ε up to rounding
            continue
        margin_updates += margin > 0
        if size == budget:
            sizes = np.abs(a)
            kept = np.sort(np.argsort(-np.round(sizes / sizes.max(), 10), kind="stable")[:half])
            gone = np.setdiff1d(np.arange(budget), kept)
            K2 = gram[np.ix_(kept, kept)]
            before = math.sqrt(a @ gram @ a)
            regular = K2 + ridge * np.eye(half)
            a2 = a[kept] + np.linalg.solve(regular, gram[np.ix_(kept, gone)] @ a[gone])
            a[:half] = a2 * (before / math.sqrt(a2 @ K2 @ a2))
            S[:half], squares[:half], gram[:half, :half] = S[kept], squares[kept], K2
            k, size, norm_squared = k[kept], half, before * before
            margin = label * float(a[:half] @ k)
        S[size], squares[size], a[size] = x, square, step * label
        gram[size, :size] = gram[:size, size] = k
        gram[size, size] = 1.0
        size += 1
        norm_squared += step * (2 * margin + step)
        if norm_squared > radius * radius:
            a[:size] *= radius / math.sqrt(norm_squared)
            norm_squared = radius * radius
    return mistakes, margin_updates
