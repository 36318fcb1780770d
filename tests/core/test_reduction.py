"""Reduction of S: which examples stay, and what becomes of f = Σ a_i κ(s_i,·), by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import reduction

RIDGE = 0.1


def gram_matrix(X: np.ndarray) -> np.ndarray:
    """The Gaussian kernel of width 1 between all rows."""
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / 2))


def norm_of(K: np.ndarray, a: np.ndarray) -> float:
    return math.sqrt(a @ K @ a)


@pytest.fixture(name="K")
def ten_examples() -> np.ndarray:
    """Ten examples in the plane, some close to each other."""
    return gram_matrix(np.random.default_rng(1).normal(size=(10, 2)))


@pytest.fixture(name="a")
def coefficients() -> np.ndarray:
    return np.random.default_rng(2).normal(size=10)


def keep(*chosen: int) -> Any:
    """A selection that keeps these examples whatever their coefficients."""
    return lambda *_: np.array(chosen)


# Projection ---------------------------------------------------------------------------------------


def test_what_goes_is_projected_onto_what_stays(K: np.ndarray, a: np.ndarray) -> None:
    """θ = (K_2 + ηI)^{-1} K_21 a_1 is added to a_2, and the sum is rescaled."""
    stay = [0, 3, 4, 7]
    go = [1, 2, 5, 6, 8, 9]
    K2 = K[np.ix_(stay, stay)]
    theta = np.linalg.solve(K2 + RIDGE * np.eye(4), K[np.ix_(stay, go)] @ a[go])
    expected = a[stay] + theta
    expected *= 1.5 / norm_of(K2, expected)
    found = reduction.project_onto(K, a, keep(*stay), ridge=RIDGE, norm=1.5)
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-10)


def test_the_gram_matrix_of_what_stays_is_returned(K: np.ndarray, a: np.ndarray) -> None:
    stay = [0, 3, 4, 7]
    found = reduction.project_onto(K, a, keep(*stay), ridge=RIDGE, norm=1.5)
    np.testing.assert_array_equal(found.gram, K[np.ix_(stay, stay)])


def test_f_has_the_given_norm_afterwards(K: np.ndarray, a: np.ndarray) -> None:
    found = reduction.project_onto(K, a, keep(0, 3, 4, 7), ridge=RIDGE, norm=1.5)
    assert found.norm == 1.5
    assert norm_of(found.gram, found.coefficients) == pytest.approx(1.5)


def test_f_keeps_its_norm_if_none_is_given(K: np.ndarray, a: np.ndarray) -> None:
    found = reduction.project_onto(K, a, keep(0, 3, 4, 7), ridge=RIDGE, norm=None)
    assert found.norm == found.norm_before == pytest.approx(norm_of(K, a))
    assert norm_of(found.gram, found.coefficients) == pytest.approx(norm_of(K, a))


def test_the_gap_is_the_distance_of_the_two_hypotheses(K: np.ndarray, a: np.ndarray) -> None:
    stay = [0, 3, 4, 7]
    found = reduction.project_onto(K, a, keep(*stay), ridge=RIDGE, norm=1.5)
    change = a.copy()
    change[stay] -= found.coefficients
    assert found.gap == pytest.approx(norm_of(K, change))


def test_nothing_is_lost_if_what_goes_has_no_weight(K: np.ndarray) -> None:
    a = np.where(np.arange(10) < 5, 1.0, 0.0)
    found = reduction.project_onto(K, a, keep(0, 1, 2, 3, 4), ridge=RIDGE, norm=None)
    np.testing.assert_allclose(found.coefficients, np.ones(5), rtol=1e-12)
    assert found.gap == pytest.approx(0.0, abs=1e-7)


def test_a_duplicate_that_goes_gives_its_coefficient_to_the_other() -> None:
    K = gram_matrix(np.array([[0.0], [9.0], [0.0], [90.0]]))
    found = reduction.project_onto(
        K, np.array([1.0, 2.0, 3.0, 4.0]), keep(0, 1, 3), ridge=0.0, norm=None
    )
    np.testing.assert_allclose(found.coefficients, [4.0, 2.0, 4.0], rtol=1e-12)


def test_duplicates_that_stay_share_what_goes_if_there_is_no_ridge() -> None:
    """K_2 is singular there, and its pseudo-inverse is used."""
    K = gram_matrix(np.zeros((3, 1)))
    found = reduction.project_onto(K, np.array([1.0, 1.0, 4.0]), keep(0, 1), ridge=0.0, norm=None)
    np.testing.assert_allclose(found.coefficients, [3.0, 3.0], rtol=1e-12)


def test_a_zero_is_not_rescaled() -> None:
    """The two that stay cancel, and the third is far from them."""
    K = gram_matrix(np.array([[0.0], [0.0], [90.0]]))
    found = reduction.project_onto(K, np.array([1.0, -1.0, 5.0]), keep(0, 1), ridge=RIDGE, norm=2.0)
    assert not found.rescaled
    assert found.norm == 0.0
    assert found.gap == pytest.approx(5.0)


def test_each_class_is_projected_and_rescaled_by_itself(K: np.ndarray, a: np.ndarray) -> None:
    classes = np.stack([a, a[::-1], np.ones(10)], axis=1)
    stay = keep(0, 3, 4, 7)
    together = reduction.project_onto(K, classes, stay, ridge=RIDGE, norm=1.5)
    alone = [reduction.project_onto(K, column, stay, ridge=RIDGE, norm=1.5) for column in classes.T]
    for c, one in enumerate(alone):
        np.testing.assert_allclose(together.coefficients[:, c], one.coefficients, rtol=1e-9)
    assert together.gap == pytest.approx(math.hypot(*[one.gap for one in alone]))


@pytest.mark.parametrize("selection", ["magnitude", "greedy"])
def test_only_the_lower_triangle_is_read(K: np.ndarray, a: np.ndarray, selection: str) -> None:
    choose = reduction.SELECT[selection]
    expected = reduction.project_onto(K, a, choose, ridge=RIDGE, norm=None)
    half = np.where(np.tri(10, dtype=bool), K, np.nan)
    found = reduction.project_onto(half, a, choose, ridge=RIDGE, norm=None)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_merging_gives_each_coefficient_to_the_most_similar_example() -> None:
    K = gram_matrix(np.array([[0.0], [5.0], [0.5], [4.0], [5.5]]))
    a = np.array([1.0, 2.0, 10.0, 20.0, 40.0])
    found = reduction.merge_into_nearest(K, a, 2, norm=1.0)
    merged = np.array([11.0, 62.0])
    expected = merged / norm_of(K[:2, :2], merged)
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-12)


def test_merging_gives_to_the_oldest_of_equally_similar_ones() -> None:
    K = gram_matrix(np.array([[-1.0], [1.0], [0.0]]))
    found = reduction.merge_into_nearest(K, np.array([1.0, 1.0, 5.0]), 2, norm=1.0)
    assert found.coefficients[0] == pytest.approx(6 * found.coefficients[1])


# Selection ----------------------------------------------------------------------------------------


def test_magnitude_keeps_the_half_with_the_largest_coefficients(K: np.ndarray) -> None:
    sizes = np.array([5.0, 1, 9, 2, 7, 3, 8, 4, 6, 0])
    assert reduction.choose_largest(K, sizes).tolist() == [0, 2, 4, 6, 8]


def test_magnitude_keeps_the_older_of_equal_coefficients(K: np.ndarray) -> None:
    sizes = np.array([1.0, 1, 1, 1, 1, 1, 1, 1, 2, 2])
    assert reduction.choose_largest(K, sizes).tolist() == [0, 1, 2, 8, 9]


def test_magnitude_does_not_let_rounding_choose(K: np.ndarray) -> None:
    """Coefficients that agree in ten digits count as equal."""
    sizes = 1.0 + 1e-13 * np.arange(10)
    assert reduction.choose_largest(K, sizes).tolist() == [0, 1, 2, 3, 4]


def pursuit(K: np.ndarray, values: np.ndarray, ridge: float) -> set[int]:
    """Orthogonal matching pursuit by its definition: solve again for each candidate."""
    taken: list[int] = []
    regular = K + ridge * np.eye(len(K))
    for _ in range(len(K) // 2):
        gains = {}
        for i in range(len(K)):
            if i in taken:
                continue
            chosen = [*taken, i]
            right = values[chosen]
            gains[i] = right @ np.linalg.solve(regular[np.ix_(chosen, chosen)], right)
        taken.append(max(gains, key=lambda i: gains[i]))
    return set(taken)


@pytest.mark.parametrize("size", [10, 80], ids=["one panel", "two panels"])
def test_greedy_takes_the_example_that_explains_most_of_f(size: int) -> None:
    rng = np.random.default_rng(size)
    K = gram_matrix(rng.normal(size=(size, 2)))
    a = rng.normal(size=size)
    found = reduction.choose_greedily(K, np.abs(a), K @ a, RIDGE)
    assert {*found.tolist()} == pursuit(K, K @ a, RIDGE)


def test_greedy_takes_the_oldest_if_f_is_zero(K: np.ndarray) -> None:
    zeros = np.zeros(10)
    assert reduction.choose_greedily(K, zeros, zeros, RIDGE).tolist() == [0, 1, 2, 3, 4]


def test_nearest_removes_a_quarter(K: np.ndarray, a: np.ndarray) -> None:
    assert len(reduction.choose_nearest(K, np.abs(a))) == 8


def test_nearest_removes_what_a_neighbour_replaces_best() -> None:
    """The third is close to the first, and the fourth alone."""
    K = gram_matrix(np.array([[0.0], [5.0], [0.1], [50.0]]))
    assert reduction.choose_nearest(K, np.array([1.0, 1.0, 0.9, 1.0])).tolist() == [0, 1, 3]


def test_nearest_removes_no_example_that_stands_in_for_another() -> None:
    """Both neighbours of the first would be removed with it if it could go."""
    K = gram_matrix(np.array([[0.0], [0.1], [-0.1], *[[10.0 * i] for i in range(1, 6)]]))
    found = reduction.choose_nearest(K, np.array([0.1, 0.05, 0.05, 1, 1, 1, 1, 1]))
    assert found.tolist() == [0, 3, 4, 5, 6, 7]
