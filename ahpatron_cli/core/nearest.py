"""Which examples can go because another stands in for them: the choice of `selection=nearest`."""

from __future__ import annotations

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers

SHARE = 4
"""One of so many goes."""
EQUAL, DIGITS = 1e-10, 10
TINY = float(np.finfo(np.float64).tiny)


def choose_nearest(gram: Floats, coefficients: Floats) -> Integers:
    """The three quarters that stay when those go which their neighbours replace best.

    The neighbour of s_i is the example j ≠ i with the largest `κ_ij²/κ_jj`, and what is lost where
    j takes over from i is the squared distance of `a_i κ(s_i,·)` to the span of `κ(s_j,·)`,

        loss_i = a_i²·(κ_ii - κ_ij²/κ_jj).

    From the smallest loss on, i goes unless its neighbour has gone, or has to stay for another one
    that went; if these are too few, the smallest losses among the rest go, too. (Budgeted SGD
    merges pairs by such a loss, one at a time.) What stands in for them is then found by the
    projection onto all that stay, not only onto the neighbour.

    Where equal but for rounding, the older is the neighbour, and the younger goes.
    """
    size = len(coefficients)
    diagonal = gram.diagonal()
    shared = gram * gram
    if (diagonal != 1).any():
        shared /= np.where(diagonal > 0, diagonal, np.inf)  # row i: κ_ij²/κ_jj
    np.fill_diagonal(shared, -1.0)
    closest = shared.max(axis=1)
    neighbours = (shared >= closest[:, None] - EQUAL).argmax(axis=1)
    losses = coefficients * coefficients * np.maximum(diagonal - np.maximum(closest, 0.0), 0.0)
    losses = np.round(losses / max(float(losses.max()), TINY), DIGITS)
    younger_first = size - 1 - np.argsort(losses[::-1], kind="stable")
    left = max(size // SHARE, 1)
    stays, needed = [True] * size, [False] * size
    nearest: list[int] = neighbours.tolist()
    for one in younger_first.tolist():
        if left and not needed[one] and stays[nearest[one]]:
            stays[one], needed[nearest[one]] = False, True
            left -= 1
    for one in younger_first.tolist():
        if left and stays[one]:
            stays[one] = False
            left -= 1
    return np.flatnonzero(stays)
