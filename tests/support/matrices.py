"""The symmetric matrices of expansions."""

import numpy as np

from ahpatron_cli.core.span import Symmetric


def full(matrix: Symmetric) -> np.ndarray:
    """The whole matrix between two blocks."""
    matrix.settle()
    lower = np.tril(matrix.A)
    return lower + np.tril(lower, -1).T
