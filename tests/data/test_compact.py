"""Files in memory: in the smallest form, and exactly what was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.compact import CompactRows, gather, smallest
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
    assert small.astype(np.float64).tobytes() == values.tobytes()
    if not others:
        assert small.dtype == np.float32


def read(path: Path) -> tuple[CompactRows, CsrRows]:
    """A file in memory, and its rows as the reader gives them."""
    with open_source(str(path)) as source:
        reader = SvmReader(source, chunk_bytes=10_000)
        compact = gather(reader, reader)
    with open_source(str(path)) as source:
        rows = CsrRows.concatenate([chunk.rows for chunk in SvmReader(source)])
    return compact, rows


DENSE = "".join(f"{2 * (n % 2) - 1} 1:{n % 7} 2:{n / 4} 3:-0\n" for n in range(3000))
SPARSE = "".join(f"{2 * (n % 2) - 1} {1 + n % 900}:1 1000:{n % 5}\n" for n in range(3000))
EMPTY = "+1\n-1\n" * 1000


@pytest.mark.parametrize("text", [DENSE, SPARSE, EMPTY])
@pytest.mark.parametrize("odd", ["", "+1 1:0.1 2:0 3:0\n", "+1 3:0.1\n", "+1\n"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_what_is_taken_is_what_was_read(tmp_path: Path, text: str, odd: str, place: str) -> None:
    """`odd` has a value that float32 lacks, or other columns than the rows of dense data."""
    path = tmp_path / "data.svm"
    path.write_text(odd + text if place == "first" else text + odd)
    compact, rows = read(path)
    assert compact.values.dtype == (np.float64 if "0.1" in odd else np.float32)
    uniform = text is DENSE and odd in ("", "+1 1:0.1 2:0 3:0\n")
    assert (len(compact.columns) < len(compact.values)) == uniform
    order = np.random.default_rng(0).permutation(len(compact))
    for chosen in (slice(0, len(compact)), slice(5, 77), order[:1000]):
        taken = compact.chunk(chosen)
        numbers = np.arange(len(compact))[chosen]
        wanted = rows.take(numbers)
        assert taken.rows.values.dtype == np.float64
        assert taken.rows.width == wanted.width
        for name in ("indptr", "columns", "values"):
            assert getattr(taken.rows, name).tobytes() == getattr(wanted, name).tobytes()
        assert taken.lines.tolist() == (numbers + 1).tolist()
