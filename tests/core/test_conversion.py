"""Conversion of rows to points."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian, Linear, NumericalError
from ahpatron_cli.core.conversion import Conversion
from ahpatron_cli.core.points import DensePoints, SparsePoints
from ahpatron_cli.core.rows import CsrRows, compressed

ROWS = np.array([[3.0, 0.0], [0.0, 4.0]])


def test_the_first_piece_decides_that_points_are_sparse() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(compressed(ROWS))
    assert isinstance(conversion.convert(ROWS), SparsePoints)


def test_the_first_piece_decides_that_points_are_dense() -> None:
    conversion = Conversion(Gaussian())
    conversion.convert(ROWS)
    assert isinstance(conversion.convert(compressed(ROWS)), DensePoints)


def test_dense_points_are_made_of_sparse_rows_if_asked_for() -> None:
    assert isinstance(Conversion(Gaussian(), dense=True).convert(compressed(ROWS)), DensePoints)


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
