"""Rows that are only to be predicted may lack labels; `faults/reading.py` fuzzes the same."""

from __future__ import annotations

import math
from io import BytesIO

import numpy as np
import pytest

from ahpatron_cli.data.libsvm import reader
from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import Source
from ahpatron_cli.errors import UserError
from faults.reading import Reading, check, read

PLAIN = b"1 1:2 3:4\n1:2 3:4\n? 1:2 3:4\n?\n-1 2:5\n2:5\n"
ODD = b"# head\n\n  1:2\t3:4 # one\r\n ? 1:2\n?#\nqid:3 1:2\n? qid:3 1:2\n1 qid:3 1:2\n"


def test_labels_are_missing_where_a_line_starts_with_an_index_or_a_question_mark() -> None:
    found = read(PLAIN, may_lack_labels=True)
    assert isinstance(found, Reading)
    assert [math.isnan(label) for label in found.labels] == [False, True, True, True, False, True]
    assert found.columns == [1, 3, 1, 3, 1, 3, 2, 2]
    assert found.lines == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("text", [PLAIN, ODD, PLAIN * 2000])
def test_the_reader_agrees_with_the_definition(text: bytes) -> None:
    check(text)  # both with and without labels
    assert isinstance(read(text, may_lack_labels=True), Reading)


def test_unlabelled_rows_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("line by line")

    monkeypatch.setattr(reader, "parse_line", never)
    chunks = list(SvmReader(Source(BytesIO(PLAIN), "d", closes=True), may_lack_labels=True))
    assert np.isnan(chunks[0].labels).tolist() == [False, True, True, True, False, True]


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
        (b"1:2 3:4 5:6 7:8 ?", "feature", 17),
        (b'{"a": 1}', "json", 1),
    ],
)
def test_faults_of_unlabelled_rows_stand_where_they_are(
    line: bytes, kind: str, column: int
) -> None:
    with pytest.raises(Fault) as fault:
        parse_line(line, may_lack_label=True)
    assert (fault.value.kind, fault.value.column) == (kind, column)


@pytest.mark.parametrize("line", [b"1:2 3:4", b"? 1:2", b"?"])
def test_labels_are_required_otherwise(line: bytes) -> None:
    with pytest.raises(UserError, match="label"):
        list(SvmReader(Source(BytesIO(line), "d", closes=True)))
