"""LIBSVM text: faults and their places, oddities that are fine, and what the reader notes."""

from __future__ import annotations

import gzip
import math
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from ahpatron_cli.data.batch import FileInfo
from ahpatron_cli.data.libsvm import reader as reader_module
from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import MAX_LINE, Source, open_source
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.settings import Data
from faults.corpus import FILES, GOOD, LINES
from faults.reading import Reading, check, read


def source(text: bytes) -> Source:
    return Source(BytesIO(text), "bad.svm", closes=True)


def refusal(text: bytes, chunk_bytes: int = 1 << 20) -> UserError:
    with pytest.raises(UserError) as caught:
        list(SvmReader(source(text), chunk_bytes=chunk_bytes))
    assert caught.value.code is ExitCode.BAD_DATA
    return caught.value


def faults(text: bytes) -> list[tuple[int, str]]:
    """Every faulty line and what is wrong with it."""
    found: list[tuple[int, str]] = []
    reader = SvmReader(source(text), on_fault=lambda line, fault: found.append((line, fault.kind)))
    list(reader)
    return found


@pytest.mark.parametrize(
    ("kind", "line", "column"),
    [(kind, line, column) for (kind, column), lines in LINES.items() for line in lines],
)
def test_a_faulty_line_is_refused_with_its_place(kind: str, line: bytes, column: int) -> None:
    with pytest.raises(Fault) as fault:
        parse_line(line)
    assert (fault.value.kind, fault.value.column) == (kind, column)
    for end in (b"\n", b"\r\n", b"", b" # comment\n"):
        for chunk_bytes in (1 << 20, 997):
            error = refusal(GOOD + line + end, chunk_bytes)
            assert error.place is not None
            assert str(error.place) == f"bad.svm:3:{column}"
            assert error.place.note
            assert error.place.text is not None
            assert error.place.text.startswith(line.decode("utf-8", "replace")[:50])
            assert "ahpatron inspect bad.svm" in str(error.hint)


@pytest.mark.parametrize(
    ("kind", "text", "line", "column"),
    [pytest.param(*row[:1], *row[2:], id=row[1]) for row in FILES],
)
def test_the_first_fault_of_a_file_is_refused_with_its_place(
    kind: str, text: bytes, line: int, column: int
) -> None:
    for chunk_bytes in (1 << 20, 509):
        assert str(refusal(text, chunk_bytes).place) == f"bad.svm:{line}:{column}"
    assert faults(text)[0] == (line, kind)


def test_every_faulty_line_is_listed() -> None:
    text = GOOD + b"1 a:1\n" + GOOD * 50_000 + b"1 2:1 1:1\nx\n# c\n1 1:1\n"
    assert faults(text) == [(3, "index"), (100_004, "index-order"), (100_005, "label")]
    assert len(faults(b"x\n" * 10)) == 10


def test_traits_of_a_file_are_noted() -> None:
    reader = SvmReader(source(b"1 qid:3 0:0 4:2\n# c\n-1"))
    assert [line for chunk in reader for line in chunk.lines.tolist()] == [1, 3]
    assert reader.info == FileInfo(4, zero_based=True, saw_qid=True, no_final_newline=True)


def test_a_usual_file_has_no_traits_but_its_width() -> None:
    reader = SvmReader(source(b"1 1:3\n"))
    list(reader)
    assert reader.info == FileInfo(1)


def test_rows_and_values_are_counted_without_comments_and_zeros() -> None:
    reader = SvmReader(source(b"1 qid:3 0:0 4:2\n# c\n-1"))
    list(reader)
    assert reader.rows_read == 2
    assert reader.values_read == 1
    assert reader.faults == 0


def test_faults_behind_the_last_row_in_use_do_not_matter() -> None:
    text = GOOD + b"1 5:1\nx\n"
    for chunk_bytes in (1 << 20, 3):
        reader = SvmReader(source(text), Data(max_features=5, limit=3), chunk_bytes=chunk_bytes)
        assert sum(len(batch.labels) for batch in reader) == 3


def test_a_feature_beyond_the_limit_is_refused() -> None:
    text = GOOD + b"1 5:1\n"
    with pytest.raises(UserError, match="must not exceed 4"):
        list(SvmReader(source(text), Data(max_features=4)))


# Rows without labels ------------------------------------------------------------------------------

PLAIN = b"1 1:2 3:4\n1:2 3:4\n? 1:2 3:4\n?\n-1 2:5\n2:5\n"
ODD = b"# head\n\n  1:2\t3:4 # one\r\n ? 1:2\n?#\nqid:3 1:2\n? qid:3 1:2\n1 qid:3 1:2\n"


def test_labels_are_missing_where_a_line_starts_with_an_index_or_a_question_mark() -> None:
    found = read(PLAIN, may_lack_labels=True)
    assert isinstance(found, Reading)
    assert [math.isnan(label) for label in found.labels] == [False, True, True, True, False, True]
    assert found.columns == [1, 3, 1, 3, 1, 3, 2, 2]
    assert found.lines == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("text", [PLAIN, ODD, PLAIN * 2000])
def test_unlabelled_rows_are_read_as_defined_and_fast(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(text)  # both with and without labels
    monkeypatch.setattr(reader_module, "parse_line", None)  # it is not needed
    assert isinstance(read(text, may_lack_labels=True), Reading)


@pytest.mark.parametrize(
    ("line", "kind", "column"),
    [
        (b"1:2 1:3", "index-order", 5),
        (b" 1:2 x", "feature", 6),
        (b"1:abc", "value", 3),
        (b"? 2:1 1:1", "index-order", 7),
        (b"? 1", "feature", 3),
        (b"?1:2", "label", 1),
        (b"?? 1:2", "label", 1),
        (b"1:2 qid:3", "qid", 5),
        (b'{"a": 1}', "foreign", 1),
        (b"\r1 1:2", "line-end", 1),
    ],
)
def test_faults_of_unlabelled_rows_stand_where_they_are(
    line: bytes, kind: str, column: int
) -> None:
    with pytest.raises(Fault) as fault:
        parse_line(line, may_lack_label=True)
    assert (fault.value.kind, fault.value.column) == (kind, column)


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "times"),
    [(b"1" * (1 << 20), 100), (b"<a href=x> " * 90_000, 20)],
    ids=("digits", "words"),
)
def test_an_endless_line_is_refused_in_little_memory(
    tmp_path: Path, block: bytes, times: int
) -> None:
    path = tmp_path / "d.svm"
    path.write_bytes(gzip.compress(GOOD) + gzip.compress(block, 1) * times)
    tracemalloc.start()
    try:
        with pytest.raises(UserError) as caught, open_source(str(path)) as opened:
            list(SvmReader(opened))
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert str(caught.value.place) == f"{path}:3:1"


def test_line_of_just_16_mib_is_read_and_one_more_byte_is_not() -> None:
    line = b"1 1:2 #".ljust(MAX_LINE, b"x")
    for chunk_bytes in (1 << 20, 999_983):
        text = GOOD + line + b"\n1 1:5\n"
        chunks = SvmReader(source(text), chunk_bytes=chunk_bytes)
        assert sum(len(chunk.labels) for chunk in chunks) == 4
        text = GOOD + line + b"x\n1 1:5\n"
        assert str(refusal(text, chunk_bytes).place) == "bad.svm:3:1"
