"""Random streams for property tests: small, noisy, non-linear; and the matrices of expansions."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.core.symmetric import Symmetric


@dataclass(frozen=True)
class Example:
    """A stream, as arrays and as the plain lists that twins take."""

    X: np.ndarray
    y: np.ndarray

    @property
    def rows(self) -> list[list[float]]:
        return self.X.tolist()

    @property
    def labels(self) -> list[int]:
        return [int(label) for label in self.y]


def make_stream(seed: int, rounds: int, features: int, noise: float = 0.1) -> Example:
    """Points in a box, labelled by a wave through it, some labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, features)).round(3)
    score = np.sin(2 * X[:, 0]) + 0.5 * X.sum(axis=1)
    y = np.where(score + noise * rng.normal(size=rounds) >= 0, 1.0, -1.0)
    flips = rng.random(rounds) < noise
    return Example(X, np.where(flips, -y, y))


def streams(max_rounds: int = 80, max_features: int = 4) -> st.SearchStrategy[Example]:
    return st.builds(
        make_stream,
        st.integers(0, 2**32 - 1),
        st.integers(1, max_rounds),
        st.integers(1, max_features),
        st.floats(0, 0.5),
    )


def compress(X: np.ndarray) -> CsrRows:
    """The same rows, only their nonzeros stored."""
    owners, columns = np.nonzero(X)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(X)))))
    return CsrRows(indptr, columns.astype(np.int32), X[owners, columns], X.shape[1])


def full(matrix: Symmetric) -> np.ndarray:
    """The whole matrix of an expansion between two blocks."""
    matrix.settle()
    lower = np.tril(matrix.A)
    return lower + np.tril(lower, -1).T
