"""Which rows of a source are used."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.data.row_range import RowRange
from ahpatron_cli.settings import Data


@pytest.mark.parametrize("limit", [1, 5, 9, 10, 11])
@pytest.mark.parametrize("size", [1, 3, 10])
def test_the_parts_of_pieces_are_the_first_rows(limit: int, size: int) -> None:
    in_use = RowRange.of(Data(limit=limit))
    rows = np.arange(10)
    found: list[int] = []
    for start in range(0, 10, size):
        piece = rows[start : start + size]
        found += piece[in_use.part(start, len(piece))].tolist()
        if in_use.ends_at(start + len(piece)):
            break
    assert found == rows[:limit].tolist()


def test_without_options_all_rows_are_used() -> None:
    in_use = RowRange.of(Data())
    assert in_use.is_everything
    assert in_use.part(5, 3) == slice(0, 3)
    assert in_use.most_left(5) is None
    assert not in_use.ends_at(10**12)
