"""Sparse rows: what products could not handle is refused; zeros are stored or left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import CsrRows, Perceptron, Player
from ahpatron_cli.core.rows import compressed

ROWS: dict[str, Any] = {
    "indptr": np.array([0, 2, 2, 3]),
    "columns": np.array([1, 4, 0], dtype=np.int32),
    "values": np.array([0.5, 2.0, 1.0]),
    "width": 5,
}
"""Three rows, the second of zeros only."""


def feed(**changes: Any) -> None:
    rows = CsrRows(**{**ROWS, **changes})
    Player(Perceptron()).feed(rows, np.ones(len(rows)))


def test_legal_rows_are_accepted() -> None:
    feed()
    feed(width=1000)
    feed(indptr=np.array([0, 0, 0, 0]), columns=ROWS["columns"][:0], values=ROWS["values"][:0])
    feed(indptr=np.array([0, 2]), columns=ROWS["columns"][:2], values=ROWS["values"][:2])


ILLEGAL: list[dict[str, Any]] = [
    {"columns": np.array([4, 1, 0], dtype=np.int32)},
    {"columns": np.array([1, 1, 0], dtype=np.int32)},
    {"columns": np.array([-1, 4, 0], dtype=np.int32)},
    {"columns": np.array([1, 5, 0], dtype=np.int32)},
    {"columns": np.array([1, 4, 0])},
    {"columns": [1, 4, 0]},
    {"indptr": np.array([0, 2, 1, 3])},
    {"indptr": np.array([1, 2, 2, 3])},
    {"indptr": np.array([0, 2, 2, 4])},
    {"indptr": np.array([0.0, 2.0, 2.0, 3.0])},
    {"indptr": np.array([0, 3])},  # one row, whose columns do not increase
    {"indptr": np.array([0, 3]), "columns": np.array([-1, 1, 4], dtype=np.int32)},
    {"indptr": np.array([0, 3]), "columns": np.array([0, 1, 5], dtype=np.int32)},
    {"values": np.array([0.5, 2.0])},
    {"values": np.array([1, 2, 3])},
    {"values": np.ones((3, 1))},
    {"width": 4},
    {"width": 2**31},
    {"width": -1},
]


@pytest.mark.parametrize("changes", ILLEGAL, ids=str)
def test_illegal_rows_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="CsrRows"):
        feed(**changes)
    with pytest.raises(ValueError, match="CsrRows"):
        Player(Perceptron()).scores(CsrRows(**{**ROWS, **changes}))


# Zeros --------------------------------------------------------------------------------------------


def test_zeros_that_are_stored_can_be_left_out() -> None:
    X = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    columns = np.array([0, 2, 1, 0, 1, 2], dtype=np.int32)
    values = np.array([0.0, 2.0, 0.0, 1.0, 0.0, 3.0])
    found = CsrRows(np.array([0, 2, 3, 6]), columns, values, 3).without_zeros()
    assert found.is_legal()
    assert found.values.tolist() == [2.0, 1.0, 3.0]
    np.testing.assert_array_equal(found.dense(), X)


def test_columns_can_be_stored_even_where_they_are_0() -> None:
    X = np.array([[0.0, 5.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 6.0, 0.0, 7.0]])
    rows = compressed(X)
    for columns in ([], [1], [0, 3], [2, 9]):
        found = rows.storing(np.array(columns, dtype=np.int32))
        assert found.is_legal()
        np.testing.assert_array_equal(found.dense(10)[:, :4], X)
        for row in range(3):
            assert set(columns) <= set(found.slice(row, row + 1).columns.tolist())
