"""Points: rows prepared for a kernel. Every way to store the same rows gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import CsrRows, Gaussian, NumericalError, Polynomial, StateError
from ahpatron_cli.core.points import INDEXED, NARROW, DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.core.state import StateReader
from support.cases import KERNEL_PAIRS
from support.streams import compress

ROWS = np.array(
    [
        [3.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0],
        [0.5, 2.0, 0.0, 0.0],
        [0.0, 0.0, 4.0, 1.0],
        [3.0, 0.0, 0.0, -1.0],
    ]
)
"""Five rows of four columns: the second has zeros only, the last equals the first."""


def with_stored_zeros(rows: np.ndarray) -> CsrRows:
    """Sparse rows that store every cell, also the zeros."""
    count, width = rows.shape
    return CsrRows(
        indptr=np.arange(0, rows.size + 1, width),
        columns=np.tile(np.arange(width, dtype=np.int32), count),
        values=rows.ravel(),
        width=width,
    )


def spread(rows: np.ndarray, width: int) -> CsrRows:
    """Sparse rows of this width, in whose columns those of the rows lie far apart."""
    narrow = compress(rows)
    apart = width // rows.shape[1]
    return replace(narrow, columns=narrow.columns * apart, width=width)


KINDS: dict[str, Callable[[np.ndarray], Rows]] = {
    "dense": np.asarray,
    "sparse": compress,
    "sparse with stored zeros": with_stored_zeros,
    "sparse and wide": lambda rows: spread(rows, NARROW + 1),
    "sparse and too wide to index": lambda rows: spread(rows, INDEXED + 1),
}
"""Each way to store rows."""


@pytest.fixture(params=KINDS)
def as_rows(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Rows]:
    """Stores an array in one of the ways."""
    return KINDS[request.param]


@pytest.fixture
def points_of(as_rows: Callable[[np.ndarray], Rows]) -> Callable[[np.ndarray], Points]:
    """Makes points of an array that is stored in one of the ways."""

    def make(rows: np.ndarray) -> Points:
        return Polynomial().points(as_rows(rows))  # a kernel without a unit

    return make


# One set of points --------------------------------------------------------------------------------


def test_a_dense_point_is_its_row_minus_the_centre_in_units_of_the_kernel() -> None:
    centre = np.array([1.0, 0.0, 2.0, 0.0])
    points = Gaussian(sigma=0.5).points(ROWS, centre)
    assert isinstance(points, DensePoints)
    np.testing.assert_array_equal(points.coordinates, (ROWS - centre) / 0.5)


def test_a_sparse_point_has_the_values_of_its_row_in_units_of_the_kernel() -> None:
    points = Gaussian(sigma=0.5).points(compress(ROWS))
    assert isinstance(points, SparsePoints)
    np.testing.assert_array_equal(points.csr.dense(), ROWS / 0.5)


def test_half_norms_are_half_the_squared_lengths(points_of: Any) -> None:
    points = points_of(ROWS)
    assert points.half_norms.tolist() == [5.0, 0.0, 2.125, 8.5, 5.0]
    assert points.largest == 8.5


def test_only_what_is_stored_counts_as_stored() -> None:
    assert DensePoints(ROWS).stored == 20
    assert SparsePoints(compress(ROWS)).stored == 8
    assert SparsePoints(with_stored_zeros(ROWS)).stored == 20


# Two sets of points -------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [1, 5], ids=["fewer on the right", "as many on the right"])
def test_products_are_inner_products(points_of: Any, others: int) -> None:
    found = points_of(ROWS).products(points_of(ROWS[:others]))
    np.testing.assert_array_equal(found, ROWS @ ROWS[:others].T)


def test_products_with_more_points_on_the_right_are_the_transposed_ones(points_of: Any) -> None:
    few = points_of(ROWS[:2])
    many = points_of(ROWS)
    np.testing.assert_array_equal(few.products(many), many.products(few).T)


def test_exponents_are_minus_half_the_squared_distances(points_of: Any) -> None:
    found = points_of(ROWS).exponents(points_of(ROWS[:3]))
    gaps = ROWS[:, None, :] - ROWS[None, :3, :]
    np.testing.assert_allclose(found, -0.5 * np.square(gaps).sum(axis=2), atol=1e-14)


@pytest.mark.parametrize("power", [1, 2])
def test_differences_are_sums_over_columns(points_of: Any, power: int) -> None:
    found = points_of(ROWS[:3]).differences(points_of(ROWS), power)
    gaps = np.abs(ROWS[:3, None, :] - ROWS[None, :, :])
    np.testing.assert_allclose(found, (gaps**power).sum(axis=2), rtol=1e-15)


def test_differences_of_points_far_from_the_origin_have_all_digits(points_of: Any) -> None:
    """Exponents have not: the squared lengths, 1e20 here, cancel."""
    far = np.array([[1e10, 1.0, 0.0, 0.0], [1e10, 0.0, 0.25, 0.0]])
    assert points_of(far).differences(points_of(far), 2).tolist() == [[0, 1.0625], [1.0625, 0]]


def test_a_product_with_points_without_values_is_zero(points_of: Any) -> None:
    nothing = points_of(np.zeros((2, 4)))
    assert points_of(ROWS).products(nothing).tolist() == [[0.0, 0.0]] * 5


def test_times_multiplies_each_row_by_the_rows_of_a_matrix_for_its_columns(points_of: Any) -> None:
    points = points_of(ROWS)
    table = np.arange(8.0).reshape(4, 2)
    apart = points.width // 4  # the matrix is asked for by the columns of the points

    def matrix(columns: np.ndarray) -> np.ndarray:
        known = np.minimum(columns // apart, 3)
        return np.where((columns % apart == 0)[:, None], table[known], 0.0)

    found = points.times(matrix, np.empty((5, 2)))
    np.testing.assert_array_equal(found, ROWS @ table)


@pytest.mark.parametrize("name", KERNEL_PAIRS)
def test_kernel_values_are_those_of_the_formula(as_rows: Any, name: str) -> None:
    kernel, formula = KERNEL_PAIRS[name]
    points = kernel.points(as_rows(ROWS))
    found = kernel.between(points, points)
    expected = [[formula(s, x) for x in ROWS.tolist()] for s in ROWS.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_a_centre_does_not_change_distances() -> None:
    kernel = Gaussian(sigma=2.0)
    plain = kernel.points(ROWS)
    moved = kernel.points(ROWS, ROWS[2])
    expected = kernel.between(plain, plain)
    np.testing.assert_allclose(kernel.between(moved, moved), expected, rtol=1e-14)


def test_sparse_points_of_different_widths_can_be_compared() -> None:
    narrow = SparsePoints(compress(ROWS[:, :2]))
    wide = SparsePoints(compress(ROWS))
    np.testing.assert_array_equal(narrow.products(wide), ROWS[:, :2] @ ROWS[:, :2].T)


# Sets that change ---------------------------------------------------------------------------------


def distances(points: Any) -> list[list[float]]:
    """All pairs: what can be said of a set whatever the way it is stored."""
    return points.differences(points, 1).tolist()


def test_a_slice_has_the_rows_from_start_to_stop(points_of: Any) -> None:
    assert distances(points_of(ROWS).slice(1, 4)) == distances(points_of(ROWS[1:4]))


def test_a_subset_has_the_chosen_rows_in_their_order(points_of: Any) -> None:
    chosen = np.array([3, 0, 2])
    assert distances(points_of(ROWS).subset(chosen)) == distances(points_of(ROWS[chosen]))


def test_a_subset_is_a_copy(points_of: Any) -> None:
    points = points_of(ROWS)
    part = points.subset(np.array([0, 2]))
    part.extend(points_of(ROWS[3:4]))
    assert distances(points) == distances(points_of(ROWS))


def test_a_set_is_extended_at_its_end(points_of: Any) -> None:
    points = points_of(ROWS[:1])
    for first in range(1, 5):  # beyond the capacity, more than once
        points.extend(points_of(ROWS[first : first + 1]))
    assert points.size == 5
    assert points.largest == 8.5
    assert distances(points) == distances(points_of(ROWS))


def test_the_points_that_stay_close_ranks(points_of: Any) -> None:
    points = points_of(ROWS)
    points.keep(np.array([0, 2, 4]), unmoved=1)
    assert points.size == 3
    assert points.largest == 5.0
    assert distances(points) == distances(points_of(ROWS[[0, 2, 4]]))


def test_an_extension_can_be_taken_back(points_of: Any) -> None:
    points = points_of(ROWS[:3])
    points.extend(points_of(ROWS[3:]))
    points.shorten(3)
    assert points.size == 3
    assert points.largest == 5.0
    assert distances(points) == distances(points_of(ROWS[:3]))


def test_a_dense_point_can_be_put_between_two_others() -> None:
    points = DensePoints(ROWS[[0, 2, 3]])
    points.put_between(0, 1, 0.25)
    between = 0.25 * ROWS[0] + 0.75 * ROWS[2]
    np.testing.assert_allclose(points.coordinates, [ROWS[0], between, ROWS[3]])
    np.testing.assert_allclose(points.half_norms[1], 0.5 * between @ between)


def test_new_columns_of_dense_points_are_zero() -> None:
    points = DensePoints(ROWS[:, :2]).widened(4)
    expected = np.pad(ROWS[:, :2], ((0, 0), (0, 2)))
    np.testing.assert_array_equal(points.coordinates, expected)


def test_points_are_never_made_narrower() -> None:
    assert DensePoints(ROWS).widened(2).width == 4


# Saved points -------------------------------------------------------------------------------------


def restored(state: dict[str, Any]) -> Any:
    reader = StateReader({"points": state}, context={})
    return reader.value("points", kinds=(Points,))


def test_points_are_saved_without_spare_capacity_and_restored(points_of: Any) -> None:
    points = points_of(ROWS[:3])
    points.extend(points_of(ROWS[3:4]))  # doubles the capacity
    again = restored(points.state_dict())
    assert type(again) is type(points)
    assert (again.size, again.width, again.largest) == (4, points.width, points.largest)
    assert distances(again) == distances(points_of(ROWS[:4]))


@pytest.mark.parametrize(
    "columns",
    [[3, 0], [0, 0], [-1, 3], [0, 4]],
    ids=["decreasing", "twice the same", "negative", "beyond the width"],
)
def test_columns_that_cannot_be_are_refused(columns: list[int]) -> None:
    state = SparsePoints(compress(ROWS[:1])).state_dict()
    state["columns"] = np.array(columns, dtype=np.int32)
    with pytest.raises(StateError, match="not valid column numbers"):
        restored(state)


def test_dense_rows_without_room_for_their_length_are_refused() -> None:
    with pytest.raises(StateError, match="not examples"):
        restored({"class": "DensePoints", "rows": np.zeros((3, 1))})


# Numbers without a square -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.nan, "not a number"), (1e200, "overflows a double")],
    ids=["NaN", "too large"],
)
def test_the_first_row_without_a_finite_length_is_named(
    points_of: Any, value: float, said: str
) -> None:
    rows = ROWS.copy()
    rows[2, 1] = value
    rows[4, 1] = value
    with np.errstate(over="ignore"), pytest.raises(NumericalError, match=said) as refusal:
        points_of(rows)
    assert refusal.value.row == 2
