"""Conversion of rows to points: what the first rows decide, and what becomes of later ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import (
    REGISTRY,
    CsrRows,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    NumericalError,
    Perceptron,
    Player,
)
from ahpatron_cli.core.conversion import Conversion
from ahpatron_cli.core.points import NARROW, DensePoints, SparsePoints
from support.streams import compress, make_stream

STREAM = make_stream(seed=8, rounds=40, features=3)
X = STREAM.X
y = STREAM.y
ANY = Gaussian(sigma=0.5)


def player(kernel: Kernel = ANY) -> Player:
    return Player(Perceptron(), kernel)


def scores_in_two_pieces(first: Any, second: Any, kernel: Kernel = ANY) -> np.ndarray:
    """The scores of a stream whose rows come in two pieces."""
    one = player(kernel)
    cut = len(first)
    scores = [one.feed(first, y[:cut]), one.feed(second, y[cut : cut + len(second)])]
    return np.concatenate(scores)


def wide_row(column: int) -> CsrRows:
    """One row with a single value, in this column."""
    return CsrRows(
        indptr=np.array([0, 1]),
        columns=np.array([column], dtype=np.int32),
        values=np.array([1.0]),
        width=column + 1,
    )


# A conversion -------------------------------------------------------------------------------------

ROWS = np.array([[3.0, 0.0], [0.0, 4.0]])


def test_the_first_piece_decides_that_points_are_sparse() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(compress(ROWS))
    assert isinstance(conversion.convert(ROWS), SparsePoints)


def test_the_first_piece_decides_that_points_are_dense() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS)
    assert isinstance(conversion.convert(compress(ROWS)), DensePoints)


def test_dense_points_are_made_of_sparse_rows_if_asked_for() -> None:
    assert isinstance(Conversion(Gaussian(), dense=True).convert(compress(ROWS)), DensePoints)


def test_the_first_row_is_the_centre_of_all_pieces() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS[:1])
    points = conversion.convert(ROWS[1:])
    assert isinstance(points, DensePoints)
    assert points.coordinates.tolist() == [[-3.0, 4.0]]


def test_kernels_that_depend_on_the_origin_are_not_centred() -> None:
    points = Conversion(Linear()).convert(ROWS)
    assert isinstance(points, DensePoints)
    assert points.coordinates.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_columns_that_turn_up_later_widen_the_centre_by_zeros() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS[:, :1])
    points = conversion.convert(ROWS)
    assert isinstance(points, DensePoints)
    assert points.coordinates.tolist() == [[0.0, 0.0], [-3.0, 4.0]]


def test_columns_that_are_missing_later_are_zero() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS)
    points = conversion.convert(ROWS[:, :1])
    assert isinstance(points, DensePoints)
    assert points.coordinates.tolist() == [[0.0, 0.0], [-3.0, 0.0]]


def test_rows_of_a_copy_decide_nothing() -> None:
    conversion = Conversion(Gaussian())
    conversion.copy().convert(ROWS)
    assert conversion.sparse is None
    assert conversion.centre is None


def test_a_dense_stream_refuses_sparse_rows_that_are_too_wide() -> None:
    wide = CsrRows(
        indptr=np.array([0, 1, 2]),
        columns=np.array([0, 4096], dtype=np.int32),
        values=np.array([1.0, 1.0]),
        width=4097,
    )
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS)
    with pytest.raises(NumericalError, match="at most 4,096 features") as error:
        conversion.convert(wide)
    assert error.value.row == 1


# Streams of a player ------------------------------------------------------------------------------


def test_sparse_rows_of_a_dense_stream_are_made_dense() -> None:
    expected = player().feed(X, y)
    found = scores_in_two_pieces(X[:20], compress(X[20:]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_dense_rows_of_a_sparse_stream_are_made_sparse() -> None:
    one = player()
    one.feed(compress(X[:20]), y[:20])
    one.feed(X[20:], y[20:])
    assert isinstance(one.f.points, SparsePoints)
    expected = player().feed(compress(X), y)
    found = scores_in_two_pieces(compress(X[:20]), X[20:])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_learner_that_needs_dense_points_has_them_from_sparse_rows_too() -> None:
    """Merged examples lie between others: they would not stay sparse."""
    merging = REGISTRY["bsgd"](budget=5, maintenance="merge")
    one = Player(merging, ANY)
    one.feed(compress(X), y)
    assert isinstance(one.f.points, DensePoints)


def test_a_sparse_row_of_the_largest_width_is_converted() -> None:
    one = player()
    one.feed(X, y)
    assert np.isfinite(one.score(wide_row(NARROW - 1)))


def test_a_sparse_stream_may_have_columns_of_any_number() -> None:
    one = player()
    one.feed(compress(X), y)
    assert one.score(wide_row(2**31 - 2)) == pytest.approx(one.score(wide_row(3)))


# Columns that come and go -------------------------------------------------------------------------


def widths(rows: np.ndarray) -> dict[str, Any]:
    return {"dense": rows, "sparse": compress(rows)}


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_column_that_comes_later_was_zero_before(form: str) -> None:
    late = X.copy()
    late[:20, 2] = 0.0
    expected = player().feed(widths(late)[form], y)
    found = scores_in_two_pieces(widths(late[:20, :2])[form], widths(late[20:])[form])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_column_that_later_rows_lack_is_zero_in_them(form: str) -> None:
    lacking = X.copy()
    lacking[20:, 2] = 0.0
    expected = player().feed(widths(lacking)[form], y)
    found = scores_in_two_pieces(widths(lacking[:20])[form], widths(lacking[20:, :2])[form])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# The centre ---------------------------------------------------------------------------------------

OFFSET = 2.0**27
"""A power of two: adding it to multiples of 2**-10 is exact."""


def test_an_offset_costs_no_digits_with_the_gaussian_kernel() -> None:
    """Dense rows are centred on the first one."""
    exact = np.round(X * 1024) / 1024
    expected = player().feed(exact, y)
    np.testing.assert_array_equal(player().feed(exact + OFFSET, y), expected)


def test_an_offset_is_a_difference_with_the_linear_kernel() -> None:
    """Its values depend on the origin: rows are not centred."""
    assert not np.allclose(player(Linear()).feed(X + OFFSET, y), player(Linear()).feed(X, y))


@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.5), Laplacian(sigma=0.5)], ids=["2", "1"])
def test_pieces_have_the_centre_of_the_first_row(kernel: Kernel) -> None:
    expected = player(kernel).feed(X + OFFSET, y)
    found = scores_in_two_pieces(X[:1] + OFFSET, X[1:] + OFFSET, kernel)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# What decides nothing -----------------------------------------------------------------------------


def test_rows_that_are_only_scored_decide_nothing() -> None:
    one = player()
    one.scores(compress(X))
    assert one.feed(X, y).tobytes() == player().feed(X, y).tobytes()


def test_rows_that_failed_decide_nothing() -> None:
    one = player()
    with pytest.raises(NumericalError):
        one.feed(compress(np.full((1, 3), np.nan)), y[:1])
    assert one.feed(X, y).tobytes() == player().feed(X, y).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_])
def test_numbers_of_any_type_are_computed_with_in_64_bits(kind: Any) -> None:
    rows = X.astype(kind)
    expected = player().feed(rows.astype(np.float64), y)
    np.testing.assert_array_equal(player().feed(rows, y), expected)
