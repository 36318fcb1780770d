"""Profiles of texts and matrices, and the same numbers by brute force."""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.data.source import Source
from ahpatron_cli.profile import Profile
from ahpatron_cli.profiling import profile_of

Matrix = NDArray[np.float64]


def to_text(X: Matrix, y: NDArray[np.float64]) -> bytes:
    """Column j of X is feature j + 1; zeros are not written."""
    lines = []
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        pairs = (f"{j}:{value!r}" for j, value in enumerate(row, 1) if value)
        lines.append(" ".join([f"{label:g}", *pairs]))
    return ("\n".join(lines) + "\n").encode()


def profile(text: bytes, **asked: Any) -> Profile:
    return profile_of(Source(io.BytesIO(text), "data.svm", closes=True), **asked)


def distances_of(X: Matrix) -> NDArray[np.float64]:
    """All pairs, by subtraction."""
    i, j = np.triu_indices(len(X), 1)
    return np.linalg.norm(X[i] - X[j], axis=1)


def alignment_of(X: Matrix, y: NDArray[np.float64], sigma: float) -> float:
    """The paper's formula, letter by letter."""
    T = len(X)
    total = 0.0
    quadratic = 0.0
    for i in range(T):
        total += 1.0
        for j in range(T):
            gap = X[i] - X[j]
            quadratic += y[i] * y[j] * math.exp(-float(gap @ gap) / (2 * sigma**2))
    return total - quadratic / T
