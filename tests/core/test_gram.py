"""The kernel matrix that expansions keep."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core.gram import Gram

RNG = np.random.default_rng(8)
ROWS = RNG.normal(size=(90, 3))
K = np.exp(-np.square(ROWS[:, None] - ROWS).sum(axis=2))
"""Kernel values of 50 examples of S and 40 rounds."""
N = 50


def opened() -> Gram:
    gram = Gram(K[:N, :N].copy())
    gram.open(N)
    return gram


def alive(*columns: int) -> np.ndarray:
    mask = np.zeros(len(K), dtype=bool)
    mask[:N] = True
    for column in columns:
        mask[column] = not mask[column]
    return mask


def lower(matrix: np.ndarray) -> np.ndarray:
    return np.tril(matrix)


@pytest.mark.parametrize("changed", [(), (51, 60), (0, 7, 49), (3, 55), range(N)])
def test_the_lower_triangle_is_that_of_the_examples_in_s(changed: tuple[int, ...]) -> None:
    gram = opened()
    mask = alive(*changed)
    if not mask[:N].all():
        gram.leave()
    expected = K[np.ix_(mask, mask)]
    assert np.array_equal(lower(gram.lower(mask, K[N:])), lower(expected))


def test_both_triangles_are_completed_after_examples_joined_and_left() -> None:
    gram = opened()
    joined = alive(*range(N, 88))
    gram.lower(joined, K[N:])
    mask = alive(4, 5, *range(N, 88))
    gram.leave()
    gram.lower(mask, K[N:])
    assert np.array_equal(gram.whole(int(mask.sum())), K[np.ix_(mask, mask)])


def test_examples_join_after_the_matrix_was_replaced() -> None:
    gram = opened()
    gram.lower(alive(), K[N:])
    half = np.arange(0, N, 2)
    gram.replace(K[np.ix_(half, half)], columns=half, before=N)
    mask = np.zeros(len(K), dtype=bool)
    mask[half] = True
    mask[70] = True
    gram.lower(mask, K[N:])
    assert np.array_equal(gram.whole(len(half) + 1), K[np.ix_(mask, mask)])
