"""Symmetric matrices that change by rank-one terms: equal to the sum of all terms, at any time."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core.symmetric import Symmetric
from support.streams import full

RNG = np.random.default_rng(6)
SIZE = 5
ROOT = RNG.normal(size=(SIZE, SIZE))
MATRIX = ROOT @ ROOT.T
VECTORS = RNG.normal(size=(3, SIZE + 2))
FACTORS = (0.5, -0.25, 2.0)
"""Three changes in a block with two rounds: vectors over the columns of the block, and factors."""


def opened(changes: int = 8) -> Symmetric:
    """The matrix in a block with two rounds."""
    matrix = Symmetric(np.asfortranarray(MATRIX))
    matrix.open(SIZE + 2, changes)
    return matrix


def changed(changes: int = 8) -> Symmetric:
    """The matrix after three changes in a block."""
    matrix = opened(changes)
    for v, s in zip(VECTORS, FACTORS, strict=True):
        matrix.change(v, s)
    return matrix


def expected() -> np.ndarray:
    """The same by its definition: the sum of A and of all terms, over the columns of the block."""
    total = np.zeros((SIZE + 2, SIZE + 2))
    total[:SIZE, :SIZE] = MATRIX
    for v, s in zip(VECTORS, FACTORS, strict=True):
        total += s * np.outer(v, v)
    return total


def test_a_product_includes_changes_that_are_pending() -> None:
    k = np.arange(1.0, SIZE + 3)
    np.testing.assert_allclose(changed().times(k), expected() @ k)


def test_the_diagonal_includes_changes_that_came_since_it_was_read() -> None:
    matrix = opened()
    matrix.change(VECTORS[0], FACTORS[0])
    matrix.diagonal()
    matrix.change(VECTORS[1], FACTORS[1])
    matrix.change(VECTORS[2], FACTORS[2])
    np.testing.assert_allclose(matrix.diagonal(), expected().diagonal())


def test_more_changes_than_expected_are_possible() -> None:
    k = np.ones(SIZE + 2)
    np.testing.assert_allclose(changed(changes=1).times(k), expected() @ k)


def test_products_with_the_base_leave_out_what_is_pending() -> None:
    k = np.arange(1.0, SIZE + 3)
    np.testing.assert_allclose(changed().times_base(k), MATRIX @ k[:SIZE])


def test_rows_are_multiplied_with_the_base_as_one_by_one() -> None:
    matrix = changed()
    rows = RNG.normal(size=(4, SIZE + 2))
    one_by_one = [matrix.times_base(row) for row in rows]
    np.testing.assert_allclose(matrix.rows_times_base(rows), one_by_one)


@pytest.mark.parametrize("waiting", [0, 32], ids=["applied", "pending"])
def test_columns_outside_s_are_gone_after_the_block(waiting: int) -> None:
    matrix = changed()
    matrix.waiting = waiting
    support = np.array([0, 1, 2, 3, 4, 6])
    matrix.close(support)
    np.testing.assert_allclose(full(matrix), expected()[np.ix_(support, support)])


def test_examples_of_the_base_may_leave() -> None:
    matrix = changed()
    support = np.array([1, 3, 5, 6])
    matrix.close(support)
    np.testing.assert_allclose(full(matrix), expected()[np.ix_(support, support)])


def test_changes_may_wait_over_several_blocks() -> None:
    matrix = changed()
    matrix.close(np.arange(SIZE + 2))
    assert len(matrix.A) == SIZE  # nothing was applied
    matrix.open(SIZE + 2, 1)
    k = np.arange(1.0, SIZE + 3)
    np.testing.assert_allclose(matrix.times(k), expected() @ k)


def test_an_example_that_leaves_an_inverse_is_projected_onto_the_others() -> None:
    K = MATRIX + np.eye(SIZE)
    inverse = Symmetric(np.asfortranarray(np.linalg.inv(K)))
    inverse.open(SIZE, 1)
    others = [0, 1, 3, 4]
    projection = inverse.leave(2)
    by_hand = np.linalg.solve(K[np.ix_(others, others)], K[others, 2])
    np.testing.assert_allclose(projection[others], by_hand)
    assert projection[2] == 0.0
    inverse.close(np.array(others))
    np.testing.assert_allclose(full(inverse), np.linalg.inv(K[np.ix_(others, others)]))


def test_a_singular_matrix_has_its_pseudo_inverse() -> None:
    twice = np.ones((2, 2))
    matrix = Symmetric()
    matrix.set_inverse(twice)
    np.testing.assert_allclose(full(matrix), np.linalg.pinv(twice))
