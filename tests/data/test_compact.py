"""Files in memory: in the smallest form, and exactly what was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.compact import exact_rows, smallest
from ahpatron_cli.data.dataset import Loaded, Preparation, load
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import open_source

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(SINGLE, max_size=20), st.lists(FINITE, max_size=2))
@example([1.0], [0.1])
@example([-0.0], [])
@example([], [1e39])
@example([1e-45], [1e-46])
@example([16777216.0], [16777217.0])
def test_the_smallest_form_loses_nothing(some: list[float], others: list[float]) -> None:
    values = np.array(some + others, dtype=np.float64)
    small = smallest(values)
    again = exact_rows(small)
    assert isinstance(again, np.ndarray)
    assert again.dtype == np.float64
    assert again.tobytes() == values.tobytes()
    if not others:
        assert small.dtype == np.float32


def loaded(folder: Path, text: str, preparation: Preparation) -> Loaded:
    path = folder / "data.svm"
    path.write_text(text)
    with open_source(str(path)) as source:
        return load(source, preparation)


DENSE = "".join(f"{2 * (n % 2) - 1} 1:{n % 7} 2:{n / 4} 3:-0\n" for n in range(60_000))
SPARSE = "".join(f"{2 * (n % 2) - 1} {1 + n % 900}:1 1000:{n % 5}\n" for n in range(60_000))


@pytest.mark.parametrize("text", [DENSE, SPARSE])
@pytest.mark.parametrize("odd", ["", "+1 1:0.1\n"])  # one value that float32 has not
@pytest.mark.parametrize("scale", ["none", "unit", "minmax"])
def test_what_is_played_is_what_was_read(tmp_path: Path, text: str, odd: str, scale: str) -> None:
    whole = loaded(tmp_path, text + odd, Preparation(scale=scale))
    held = whole.held.rows
    values = held.values if isinstance(held, CsrRows) else held
    assert isinstance(held, CsrRows) == (text is SPARSE)
    if scale == "none":
        assert values.dtype == (np.float64 if odd else np.float32)
        with open_source(str(tmp_path / "data.svm")) as source:
            rows = CsrRows.concatenate([chunk.rows for chunk in SvmReader(source)])
        taken = whole.whole.rows
        if isinstance(taken, CsrRows):
            for name in ("indptr", "columns", "values"):
                assert (getattr(taken, name) == getattr(rows, name)).all()
            assert taken.values.tobytes() == rows.values.tobytes()
        else:
            assert taken.tobytes() == rows.dense().tobytes()
    order = np.random.default_rng(0).permutation(whole.facts.rounds)[:1000]
    (piece,) = whole.pieces(order)
    played = piece.rows.dense() if isinstance(piece.rows, CsrRows) else piece.rows
    all_rows = whole.whole.rows
    if isinstance(all_rows, CsrRows):
        all_rows = all_rows.take(order).dense()
        order = np.arange(len(order))
    assert played.dtype == np.float64
    assert played.tobytes() == all_rows[order].tobytes()
