"""Faulty rows of streams: reported with their line, while all other rows are read."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from ahpatron_cli.data.faults import FaultyRow, RecentLines
from ahpatron_cli.data.opening import stream
from ahpatron_cli.data.preparation import Preparation
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


def test_a_line_of_a_table_that_is_too_long_is_left_out_and_counted() -> None:
    long = b"9" * (17 << 20)
    text = b"a,y\n1,0\n" + long + b"\n2,1\nx,0\n"
    lines, faulty = lines_of(text, TableOptions(label="y"))
    assert lines == [2, 4]
    assert [row.line for row in faulty] == [3, 5]


def test_each_line_that_was_read_last_is_found_by_its_number() -> None:
    recent = RecentLines()
    recent.add(1, b"a\nb\n")
    recent.add(3, b"c\r\n")
    recent.add(4, b"d\ne")
    assert [recent.line(number) for number in range(1, 7)] == [b"a", b"b", b"c", b"d", b"e", b""]


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


CORRUPT = {
    "svm": lambda i: b"%d 1:%d.5 2:-1e-2 7:3" % (i % 2, i),
    "csv": lambda i: b'%d.5,%d,"a, b",2024-01-%02d,%d' % (i, -i, 1 + i % 28, i % 2),
    "jsonl": lambda i: b'{"a": %d.5, "b": {"c": [1, %d]}, "d": "\\u00e9", "y": %d}' % (i, i, i % 2),
}
HEADERS = {"svm": b"", "csv": b"a,b,c,d,y\n", "jsonl": b""}


def corrupted(rng: np.random.Generator, line: bytes) -> bytes:
    """The line with a part removed, repeated or replaced by random bytes, without line feeds."""
    at, behind = np.sort(rng.integers(0, len(line) + 1, 2)).tolist()
    noise = rng.integers(0, 256, int(rng.integers(1, 4)), dtype=np.uint8)
    noise[noise == ord("\n")] = ord('"')
    ways = [
        line[:at] + line[behind:],
        line[:at] + line[at:behind] * 2 + line[behind:],
        line[:at] + noise.tobytes() + line[at:],
        line[:at] + b'"' + line[at:],
        line[:at],
    ]
    return ways[int(rng.integers(len(ways)))]


@pytest.mark.parametrize("form", CORRUPT)
def test_each_line_of_a_corrupted_stream_is_a_row_or_reported(form: str) -> None:
    """1,000 lines of 3,000 are damaged at random; those that nobody touched are all read."""
    rng = np.random.default_rng(7)
    good = [CORRUPT[form](i) for i in range(3000)]
    touched = set(rng.choice(np.arange(3, 3000), 1000, replace=False).tolist())
    lines = [corrupted(rng, line) if i in touched else line for i, line in enumerate(good)]
    table = None if form == "svm" else TableOptions(label="y")
    read, faulty = lines_of(HEADERS[form] + b"\n".join(lines) + b"\n", table)
    first = 1 + HEADERS[form].count(b"\n")
    reported = [row.line - first for row in faulty]
    rows = [line - first for line in read]
    assert not set(reported) & set(rows)
    assert set(range(3000)) - touched <= set(rows)
    blank = {i for i in touched if not lines[i].strip() or lines[i].lstrip()[:1] == b"#"}
    assert set(rows) | set(reported) | blank == set(range(3000))
    for row in faulty:
        assert row.raw == lines[row.line - first].removesuffix(b"\r")
    assert len(reported) > 100


def test_rows_that_are_read_together_make_the_schema_of_rows_that_are_read_one_by_one() -> None:
    text = b"a,c,when,y\n,red,,1\n2,blue,2024-01-05,0\n3,,2024-02-01,1\nx,green,,0\n4,green,,1\n"
    whole, faulty = lines_of(text, TableOptions(label="y"))
    assert (whole, [row.line for row in faulty]) == ([2, 3, 4, 6], [5])
    schemas = []
    for cut in (False, True):
        reading, writing = os.pipe()
        source_text = text if not cut else b""
        if not cut:
            os.write(writing, source_text)
            os.close(writing)
        else:

            def write(writing: int = writing) -> None:
                for line in text.splitlines(keepends=True):
                    os.write(writing, line)
                    time.sleep(0.05)
                os.close(writing)

            threading.Thread(target=write, daemon=True).start()
        with Source(os.fdopen(reading, "rb", buffering=0), "<stdin>", closes=True) as source:
            preparation = Preparation(may_lack_labels=True, table=TableOptions(label="y"))
            dataset = stream(source, preparation, on_faulty_row=lambda row: None)
            for _ in dataset.batches():
                pass
        schemas.append(dataset.encoder.schema)
    assert schemas[0] == schemas[1]
    assert schemas[0] is not None
    assert schemas[0].features[:2] == ["a missing", "c=red"]
