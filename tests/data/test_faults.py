"""Faulty rows of streams: reported with their line, while all other rows are read."""

from __future__ import annotations

import os
import threading

import pytest

from ahpatron_cli.data.dataset import Preparation, stream
from ahpatron_cli.data.faults import FaultyRow
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import UserError


def piped(data: bytes) -> Source:
    """A source that reads these bytes from a pipe."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)

    threading.Thread(target=write, daemon=True).start()
    return Source(os.fdopen(reading, "rb", buffering=0), "<stdin>", closes=True)


def lines_of(data: bytes, table: TableOptions | None = None) -> tuple[list[int], list[FaultyRow]]:
    """The lines of the rows of a pipe that are sound, and its faulty rows."""
    faulty: list[FaultyRow] = []
    lines: list[int] = []
    preparation = Preparation(may_lack_labels=True, table=table or TableOptions())
    with piped(data) as source:
        for batch in stream(source, preparation, on_faulty_row=faulty.append).batches():
            lines += batch.lines.tolist()
    return lines, faulty


def test_a_faulty_line_of_libsvm_text_is_reported_and_left_out() -> None:
    lines, faulty = lines_of(b"1 1:1\n-1 1:x\n-1 1:2\r\nfoo 1:1\r\n\n1 2:3\n")
    assert lines == [1, 3, 6]
    assert [(row.line, row.raw) for row in faulty] == [(2, b"-1 1:x"), (4, b"foo 1:1")]
    assert "finite decimal number" in faulty[0].error.problem


def test_bytes_that_are_no_text_do_not_end_a_stream_whose_faults_are_reported() -> None:
    lines, faulty = lines_of(b"1 1:1\n\0\xff\n-1 1:2\n1 1:1\r2\n{}\n1 1:1\n")
    assert lines == [1, 3, 6]
    assert [row.line for row in faulty] == [2, 4, 5]


def test_a_line_that_is_too_long_is_left_out() -> None:
    long = b"1 " + b"9" * (17 << 20)
    lines, faulty = lines_of(b"1 1:1\n" + long + b"\n-1 1:1\n" + long)
    assert lines == [1, 3]
    assert [row.line for row in faulty] == [2, 4]
    assert len(faulty[0].raw) < 1 << 17


def test_the_rows_before_a_fault_are_yielded_before_it_is_raised() -> None:
    lines: list[int] = []
    with piped(b"1 1:1\n-1 1:1\n-1 1:x\n1 1:1\n") as source:
        batches = stream(source, Preparation(may_lack_labels=True)).batches()

        def read() -> None:
            for batch in batches:
                lines.extend(batch.lines.tolist())

        with pytest.raises(UserError, match="finite decimal number"):
            read()
    assert lines == [1, 2]
