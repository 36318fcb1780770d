"""Conversion of rows: what the first rows of a stream decide, and what becomes of later ones."""

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


# Dense or sparse ----------------------------------------------------------------------------------


def test_a_stream_is_dense_if_its_first_rows_are() -> None:
    one = player()
    one.feed(X[:1], y[:1])
    assert isinstance(one.f.points, DensePoints)


def test_a_stream_is_sparse_if_its_first_rows_are() -> None:
    one = player()
    one.feed(compress(X[:1]), y[:1])
    assert isinstance(one.f.points, SparsePoints)


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


@pytest.mark.parametrize("column", [NARROW, 10**6], ids=["just too wide", "far too wide"])
def test_a_sparse_row_that_is_too_wide_for_a_dense_stream_is_named(column: int) -> None:
    one = player()
    one.feed(X, y)
    rows = CsrRows.concatenate([compress(X[:2]), wide_row(column)])
    with pytest.raises(NumericalError, match="at most 4,096 features") as refusal:
        one.feed(rows, y[:3])
    assert refusal.value.row == 2


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
