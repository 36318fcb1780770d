"""Delimited text to LIBSVM text: what each cell becomes, and what is refused, at which line."""

# ruff: noqa: E501 - the table below is read by row

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.delimited import (
    MAX_WORDS,
    Layout,
    Wanted,
    find_layout,
    layout_of_numbers,
    libsvm_lines,
)
from ahpatron_cli.data.libsvm.grammar import finite_number
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.table import BATCH_ROWS, KIND, Table, number, plain_numbers
from ahpatron_cli.errors import ExitCode, UserError


def of(content: str | bytes, name: str = "d.csv") -> Source:
    data = content.encode() if isinstance(content, str) else content
    return Source(BytesIO(data), name, closes=True, kind=KIND)


def layout_of(content: str | bytes, wanted: Wanted) -> Layout:
    return find_layout(Table(of(content)), wanted)


def converted(content: str | bytes, wanted: Wanted | None = None) -> str:
    wanted = wanted or Wanted("y")
    layout = layout_of(content, wanted)
    return "".join(libsvm_lines(Table(of(content)), layout, wanted))


def converted_once(content: str | bytes, wanted: Wanted | None = None) -> str:
    """As from a pipe."""
    wanted = wanted or Wanted("y")
    table = Table(of(content, "<stdin>"))
    return "".join(libsvm_lines(table, layout_of_numbers(table, wanted), wanted))


def refusal(convert: Callable[..., str], *arguments: object) -> tuple[int | None, str, str]:
    with pytest.raises(UserError) as caught:
        convert(*arguments)
    assert caught.value.code is ExitCode.BAD_DATA
    place = caught.value.place
    return (place and place.line), caught.value.problem, caught.value.hint or ""


def test_numbers_keep_their_spelling_and_zeros_are_left_out() -> None:
    text = "a,b,y,c\n1.50,-0,+1,0.0\n1e-3,+2,-1,.5\n"
    assert converted(text) == "+1 1:1.50\n-1 1:1e-3 2:+2 3:.5\n"


def test_words_become_a_feature_each_in_alphabetical_order() -> None:
    text = "job,age,y\nclerk,3,1\nboss,4,0\nclerk,5,1\n"
    assert converted(text) == "1 2:1 3:3\n0 1:1 3:4\n1 2:1 3:5\n"
    described = layout_of(text, Wanted("y")).describe()
    assert described["labels"] is None
    assert described["features"] == [
        {"index": 1, "column": "job", "word": "boss"},
        {"index": 2, "column": "job", "word": "clerk"},
        {"index": 3, "column": "age"},
    ]


def test_columns_are_dropped_or_taken_as_words() -> None:
    text = "id,month,y\nx1,3,1\nx2,12,0\nx3,3,0\n"
    wanted = Wanted("y", drop=("id",), words=("month",))
    assert converted(text, wanted) == "1 2:1\n0 1:1\n0 2:1\n"


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        (("no", "yes"), ("-1", "+1")),
        (("2", "1"), ("+1", "-1")),
        (("10", "9"), ("+1", "-1")),  # as numbers, not as words
        (("1", "1.0", "2"), ("-1", "-1", "+1")),
        (("0", "1"), ("0", "1")),
        (("-1", "+1", "1"), ("-1", "+1", "1")),
        (("b", "c", "a"), ("1", "2", "0")),
        (("3", "1", "2"), ("3", "1", "2")),
        (("1", "x", "2"), ("0", "2", "1")),
        (("only",), ("0",)),
    ],
)
def test_labels(labels: tuple[str, ...], written: tuple[str, ...]) -> None:
    text = "a,y\n" + "".join(f"1,{label}\n" for label in labels)
    assert tuple(line.split()[0] for line in converted(text).splitlines()) == written


@pytest.mark.parametrize("convert", [converted, converted_once])
def test_positive(convert: Callable[[str, Wanted], str]) -> None:
    text = "a,y\n1,x\n1,y\n1,z\n"
    assert convert(text, Wanted("y", positive="y")) == "-1 1:1\n+1 1:1\n-1 1:1\n"
    _, problem, _ = refusal(convert, text, Wanted("y", positive="w"))
    assert problem == "no row has the label 'w' that --positive names"


def test_positive_among_a_million_labels_takes_no_memory_for_the_others() -> None:
    text = "a,y\n" + "".join(f"1,{i}\n" for i in range(5000))
    lines = converted(text, Wanted("y", positive="4999")).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("-1 1:1", "+1 1:1", 5000)


@pytest.mark.parametrize("cell", ["", "NA", "?", " ", "NaN", "null"])
@pytest.mark.parametrize("convert", [converted, converted_once])
def test_missing_cells_are_zero_or_refused(cell: str, convert: Callable[..., str]) -> None:
    text = f"a,b,y\n1,2,1\n{cell},3,0\n"
    assert convert(text, Wanted("y", missing_is_zero=True)) == "1 1:1 2:2\n0 2:3\n"
    line, problem, hint = refusal(convert, text)
    assert (line, problem) == (3, "column 'a' has no value here")
    assert "--missing zero" in hint


def test_a_missing_word_is_no_word() -> None:
    text = "a,y\nred,1\n,0\nblue,0\n"
    assert converted(text, Wanted("y", missing_is_zero=True)) == "1 2:1\n0\n0 1:1\n"


ODD = {
    "bom": "\ufeffa,b,y\n1,2,1\n3,4,0\n".encode(),
    "crlf": b"a,b,y\r\n1,2,1\r\n3,4,0\r\n",
    "no-final-newline": b"a,b,y\n1,2,1\n3,4,0",
    "blank-lines": b"a,b,y\n\n1,2,1\n\n3,4,0\n\n",
    "semicolons": b"a;b;y\n1;2;1\n3;4;0\n",
    "tabs": b"a\tb\ty\n1\t2\t1\n3\t4\t0\n",
    "bars": b"a|b|y\n1|2|1\n3|4|0\n",
    "spaces": b" a , b, y\n 1 ,2 , 1\n3, 4,0 \n",
    "quotes": b'"a","b","y"\n"1","2","1"\n"3","4","0"\n',
    "commas-in-names": b'"a, or b, or c";b;y\n1;2;1\n3;4;0\n',
    "gz": gzip.compress(b"a,b,y\n1,2,1\n3,4,0\n"),
    "bz2": bz2.compress(b"a,b,y\n1,2,1\n3,4,0\n"),
    "xz": lzma.compress(b"a,b,y\n1,2,1\n3,4,0\n"),
}


@pytest.mark.parametrize("convert", [converted, converted_once])
@pytest.mark.parametrize("name", ODD)
def test_odd_but_clear(name: str, convert: Callable[[bytes], str]) -> None:
    assert convert(ODD[name]) == "1 1:1 2:2\n0 1:3 2:4\n"


def test_quotes_may_hold_delimiters_quotes_and_line_ends() -> None:
    text = 'what,y\n"a,b",1\n"c""d",0\n"e\nf",1\nplain,0\nshort\n'
    line, problem, _ = refusal(converted, text)
    assert (line, problem) == (7, "this row has 1 cells, the header has 2")  # lines, not rows
    layout = layout_of(text.replace("short\n", ""), Wanted("y"))
    assert layout.columns[0].words == ("a,b", 'c"d', "e\nf", "plain")
    assert (
        "".join(layout.comments())
        == '# features: 1=what=a,b 2=what=c"d 3=what=e\\nf 4=what=plain\n'
    )


def test_comments_show_control_characters_and_stay_short() -> None:
    words = [f"\x1b[3{i}m{'w' * 900}" for i in range(9)]
    text = "é,y\n" + "".join(f"{word},{i % 2}\n" for i, word in enumerate(words))
    comments = list(layout_of(text, Wanted("y")).comments())
    assert comments[0].startswith("# features: 1=é=\\x1b[30mwww")
    assert len(comments) == 2
    assert all(line.count("\n") == 1 and line.endswith("\n") for line in comments)


NUMBERS_THEN_WORD = "a,y\n" + "".join(f"{i},1\n" for i in range(50)) + "oops,0\n"
MANY_NUMBERS_THEN_WORD = "a,y\n" + "".join(f"{i},1\n" for i in range(3000)) + "oops,0\n"
MANY_WORDS = "a,y\n" + "".join(f"w{i},1\n" for i in range(MAX_WORDS + 1))
MANY_LABELS = "a,y\n" + "".join(f"1,{i}\n" for i in range(MAX_WORDS + 1))

# name, content, line, problem, words of the hint
BAD = [
    ("empty", b"", 1, "there is no header: the file is empty", "the first line must name the columns"),
    ("blank", b"\n\n", 1, "there is no header: the file starts with a blank line", "the first line must name the columns"),
    ("libsvm", b"1 1:3 2:4\n", 1, "this is LIBSVM text, not delimited text", "ahpatron run d.csv"),
    ("converted", b"# features: 1=a 2=b\n1 1:3 2:4\n", 1, "this is LIBSVM text, not delimited text", "ahpatron run d.csv"),
    ("one-column", b"y\n1\n", 1, "the first line must name at least two columns", "comma"),
    ("header-only", b"a,y\n", 1, "there are no rows after the header", ""),
    ("header-and-blanks", b"a,y\n\n\n", 1, "there are no rows after the header", ""),
    ("no-header", b"1,0.5,2\n0,1,2\n", 1, "the first line must hold names, not numbers", "echo c1,c2,c3"),
    ("ragged-short", b"a,b,y\n1,2,3\n1,2\n", 3, "this row has 2 cells, the header has 3", ""),
    ("ragged-long", b"a,b,y\n1,2,3,4\n", 2, "this row has 4 cells, the header has 3", "double quotes"),
    ("latin1", b"a,y\n1,1\ncaf\xe9,0\n", 3, "the text must be UTF-8", "iconv -f WINDOWS-1252 -t UTF-8 d.csv"),
    ("utf-16", "a,y\n1,1\n".encode("utf-16"), 1, "the text must be UTF-8, not UTF-16", "iconv -f UTF-16 "),
    ("utf-16-no-mark", "a,y\n1,1\n".encode("utf-16-le"), 1, "the text must be UTF-8, not UTF-16", "-f UTF-16LE"),
    ("nul", b"a,y\n1,1\n2,\0\n", 3, "this is a binary file: it holds NUL bytes", ""),
    ("cr-only", b"a,y\r1,1\r2,0\r", 1, "lines must end in LF or CRLF, not in CR alone", r"tr '\r' '\n' < d.csv"),
    ("two-names", b"a,a,y\n1,2,1\n", 1, "two columns have the name 'a'", "rename"),
    ("unknown-label", b"a,Y\n1,1\n", 1, "no column has the name 'y'", "did you mean Y?"),
    ("unknown-label-2", b"a,b\n1,1\n", 1, "no column has the name 'y'", "the columns are a, b"),
    ("no-features", b"y,\n1,\n", 2, "column '' has no value here", "--missing zero"),
    ("late-word", NUMBERS_THEN_WORD.encode(), 52, "column 'a' holds numbers, and here 'oops'", "--words a"),
    ("later-word", MANY_NUMBERS_THEN_WORD.encode(), 3002, "column 'a' holds numbers, and here 'oops'", "--drop a"),
    ("infinite", b"a,y\n1,1\n2,0\ninf,1\n", 4, "column 'a' holds numbers, and here 'inf'", "--drop a"),
    ("too-large", b"a,y\n1,1\n2,0\n1e999,1\n", 4, "column 'a' holds numbers, and here '1e999'", "--drop a"),
    ("many-words", MANY_WORDS.encode(), 2, "column 'a' holds more than 1,000 different words", "--drop a"),
    ("many-labels", MANY_LABELS.encode(), MAX_WORDS + 2, "column 'y' holds more than 1,000 different labels", "--positive"),
    ("no-label", b"a,y\n1,1\n2,\n", 3, "this row has no label", "remove"),
    ("decimal-comma", b"a;y\n0,5;1\n", 2, "column 'a' holds '0,5': numbers must have a decimal point", "tr , . < d.csv"),
    ("decimal-comma-quoted", b'a,y\n"0,5",1\n', 2, "column 'a' holds '0,5': numbers must have a decimal point", "--words a"),
    ("open-quote", b'a,y\n1,1\n"2,0\n3,1\n', 3, "a double quote opens here and does not close", "close"),
    ("open-quote-long", b'a,y\n"2,0\n' + b"3,1\n" * 50_000, 2, "a double quote opens here and does not close", "close"),
    ("text-after-quote", b'a,y\n"2"3,0\n', 2, "a quoted cell must end at its closing quote", "twice"),
    ("a-novel", b"a,y\n" + b"w" * 1001 + b",0\n", 2, "cells may hold 1,000 characters at most", "--drop a"),
    ("first-fault-first", b"a,b,y\n1,,1\n,2,1\n", 2, "column 'b' has no value here", "--missing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "line", "problem", "hint"),
    [case[1:] for case in BAD],
    ids=[case[0] for case in BAD],
)
def test_refusal(content: bytes, line: int, problem: str, hint: str) -> None:
    found = refusal(converted, content)
    assert found[0] == line
    assert found[1].startswith(problem)
    assert hint in found[2]


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        ("a,y\nred,yes\ngreen,no\n", "column 'a' holds 'green', which is new"),
        ("a,y\nred,yes\nblue,maybe\n", "column 'y' holds 'maybe', which is new"),
        ("a,y\nred,yes\nblue\n", "this row has 1 cells, the header has 2"),
    ],
)
def test_a_file_that_changes_between_the_passes_is_refused(later: str, problem: str) -> None:
    wanted = Wanted("y")
    layout = layout_of("a,y\nred,yes\nblue,no\n", wanted)
    lines = libsvm_lines(Table(of(later)), layout, wanted)
    assert refusal(lambda: "".join(lines))[:2] == (3, problem)


def test_a_line_without_end_is_refused() -> None:
    found = refusal(converted, b"a,y\n" + b"x" * (17 << 20))
    assert found[:2] == (2, "a line may hold 16 MiB at most")


@pytest.mark.parametrize(
    ("content", "problem", "hint"),
    [
        ("a,y\n1,1\nred,0\n", "column 'a' holds numbers, and here 'red'", "give a file"),
        ("a,y\n1,no\n", "the label 'no' is not a number", "--like MAP.json"),
    ],
)
def test_what_a_pipe_cannot_do(content: str, problem: str, hint: str) -> None:
    found = refusal(converted_once, content)
    assert found[1].startswith(problem)
    assert hint in found[2]
    found = refusal(converted_once, "a,y\n1,1\n", Wanted("y", words=("a",)))
    assert found[1] == "words need two passes over the text"


def test_known_other_formats_are_named(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(UserError, match="this is a zip archive, not delimited text") as caught:
        open_source(str(path), KIND)
    assert caught.value.hint == f"unpack it first: `unzip -p {path} > unpacked`"


spellings = st.one_of(
    st.floats().map(repr),
    st.integers(-5, 5).map(str),
    st.sampled_from(
        ["", "0", "-0.0", "1_0", "inf", "nan", ".5", "1.", "1e400", "0x1", " 1", "1\t"]
    ),
    st.text("0123456789.eE+-_ ", max_size=6),
    st.text(max_size=3),
)


@given(st.lists(spellings, max_size=8))
def test_numbers_are_those_of_libsvm_text_and_the_quick_way_agrees(cells: list[str]) -> None:
    for cell in cells:
        bare = cell.strip()
        assert number(bare) == finite_number(bare.encode("utf-8", "replace"))
    quick = plain_numbers(cells)
    if quick is not None:
        assert quick == [number(cell) for cell in cells]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=40))
def test_values_come_back_bit_by_bit(values: list[float]) -> None:
    rows = np.array(values[: len(values) // 4 * 4]).reshape(-1, 4)
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(["a", "b", "c", "d", "y"])
    writer.writerows([*map(repr, row), i % 2] for i, row in enumerate(rows.tolist()))
    X, y = load_svmlight_file(BytesIO(converted(out.getvalue()).encode()), n_features=4)
    assert np.array_equal(X.toarray(), rows)
    assert y.tolist() == [i % 2 for i in range(len(rows))]


def test_rows_of_several_batches_come_in_order() -> None:
    count = 3 * BATCH_ROWS + 1
    text = "a,b,y\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 2}\n" for i in range(count))
    lines = converted(text).splitlines()
    assert lines == [
        " ".join(filter(None, [str(i % 2), f"1:{i}" if i else "", f"{2 + i % 3}:1"]))
        for i in range(count)
    ]
