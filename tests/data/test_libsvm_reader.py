"""The fast reader, the strict definition and scikit-learn's loader agree bit for bit."""

import gzip
import io
import math
import random
import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.libsvm import fast as plain
from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import SvmReader, scan
from ahpatron_cli.data.source import Source
from ahpatron_cli.errors import UserError
from support.effort import examples


class Rows(NamedTuple):
    """All rows of a text; numbers as bytes, so that equal means equal in every bit."""

    labels: bytes
    indptr: list[int]
    columns: list[int]
    values: bytes
    lines: list[int]


def read(text: bytes, chunk_bytes: int = 1 << 20) -> Rows:
    source = Source(io.BytesIO(text), "data.svm", closes=True)
    chunks = list(SvmReader(source, chunk_bytes=chunk_bytes))
    assert all(len(chunk.labels) == len(chunk.stored) == len(chunk.lines) > 0 for chunk in chunks)
    rows = CsrRows.concatenate([chunk.stored for chunk in chunks])
    return Rows(
        np.concatenate([chunk.labels for chunk in chunks]).tobytes(),
        rows.indptr.tolist(),
        rows.columns.tolist(),
        rows.values.tobytes(),
        np.concatenate([chunk.lines for chunk in chunks]).tolist(),
    )


def read_strictly(text: bytes) -> Rows:
    """Line by line with the definition alone; raises `Fault`."""
    labels, values = b"", b""
    indptr, columns, lines = [0], list[int](), list[int]()
    text = text.removeprefix(b"\xef\xbb\xbf")
    for number, line_text in enumerate(text.removesuffix(b"\n").split(b"\n"), 1):
        if (line := parse_line(line_text)) is not None:
            labels += struct.pack("d", line.label)
            values += struct.pack(f"{len(line.values)}d", *line.values)
            columns += line.indices
            indptr.append(len(columns))
            lines.append(number)
    return Rows(labels, indptr, columns, values, lines)


def outcome(text: bytes, chunk_bytes: int) -> Rows | str:
    try:
        return read(text, chunk_bytes)
    except UserError as error:
        return error.problem


def assert_fast_accepts_iff_strict_does(text: bytes, chunk_bytes: int = 1 << 20) -> None:
    expected: Rows | str
    try:
        expected = read_strictly(text)
    except Fault as fault:
        expected = fault.problem
    found = outcome(text, chunk_bytes)
    if isinstance(expected, Rows) and not expected.lines:
        assert isinstance(found, str)
        assert found.startswith("there are no rows")
    else:
        assert found == expected


digits = st.text("0123456789", max_size=20)
spelled = st.builds(
    lambda sign, whole, point, part, exponent: f"{sign}{whole}{point}{part}{exponent}",
    st.sampled_from(["", "", "-", "+"]),
    digits,
    st.sampled_from(["", ".", "."]),
    digits,
    st.sampled_from(["", "", "", "e5", "E-7", "e+30", "e-300", "e-320", "e00"]),
).filter(lambda text: any(map(str.isdigit, text.lower().partition("e")[0])))
finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.one_of(
    spelled, finite.map(repr), finite.map("{:.17e}".format), st.integers(-999, 999).map(str)
).filter(lambda text: abs(float(text)) < float("inf"))
space = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
edge = st.sampled_from(["", "", "", " ", "\t"])
comment = st.sampled_from(["", "", "", "#", "# 1:2 a comment: ä", "#1 2:3"])
line_end = st.sampled_from(["\n", "\n", "\r\n"])
filler = st.sampled_from(["", "", "", "\n", "  \r\n", "# only a comment\n"])


@st.composite
def row(draw: st.DrawFn) -> str:
    indices = sorted(
        draw(st.sets(st.one_of(st.integers(0, 30), st.integers(0, 10**7)), max_size=5))
    )
    zeros = draw(st.sampled_from(["", "", "0", "00"]))
    text = draw(filler) + draw(edge) + draw(number)
    for index in indices:
        text += f"{draw(space)}{zeros}{index}:{draw(number)}"
    return text + draw(edge) + draw(comment) + draw(line_end)


valid = st.builds(
    lambda mark, rows, end: mark + "".join(rows).encode() + end,
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.lists(row(), min_size=1, max_size=6),
    st.sampled_from([b"", b"\n\n", b"1 1:5", b"# end"]),
)


@examples(300)
@given(valid)
def test_valid_text_reads_alike_everywhere(text: bytes) -> None:
    expected = read_strictly(text)
    for chunk_bytes in (1 << 20, 64, 7, 1):
        assert read(text, chunk_bytes) == expected
    assert_vouched_for(text)
    X, y = load_svmlight_file(io.BytesIO(text.removeprefix(b"\xef\xbb\xbf")), zero_based=True)
    assert y.tobytes() == expected.labels
    assert X.indptr.tolist() == expected.indptr
    assert X.indices.tolist() == expected.columns
    assert X.data.tobytes() == expected.values


def assert_vouched_for(text: bytes) -> None:
    """Valid text never needs the slow reader: without it, everything is still read."""
    source = Source(io.BytesIO(text), "data.svm", closes=True)
    reader = SvmReader(source)
    reader._strict = None  # type: ignore[assignment, method-assign]
    assert sum(len(chunk.labels) for chunk in reader) > 0


@examples(300)
@given(st.lists(number, min_size=1, max_size=50))
@example(["9007199254740993", "9007199254740992", "0.1234567890123456", "00000000.00000001"])
@example(["12345678", "123456789", "1234567890123456", "12345678901234567", "0.000000000000000001"])
@example(["0.1257302210933933", "0.0001257302210933933", "0.0000000000000000000001", "1" * 25])
@example(["0.9007199254740991", "0.9007199254740993", "0.09999999999999999", "0." + "0" * 23 + "1"])
@example(["-0", "-0.0", "+.0", "1e-400", "-1e-400", "4.9e-324", "2.2250738585072011e-308"])
def test_numbers_are_those_of_float(numbers: list[str]) -> None:
    text = "".join(f"{text} 1:{text}\n" for text in numbers).encode()
    expected = struct.pack(f"{len(numbers)}d", *map(float, numbers))
    rows = read(text)
    assert rows.labels == expected
    assert rows.values == expected


@pytest.mark.parametrize("wide", [True, False])
def test_many_random_decimals_are_those_of_float(
    wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "_HAS_64_BIT_FLOATS", wide and plain._HAS_64_BIT_FLOATS)
    random.seed(5)
    numbers = [
        f"{random.choice(['', '-'])}{random.randrange(10 ** random.randrange(1, 12))}"
        f".{random.randrange(10**12):0{random.randrange(1, 13)}d}"
        for _ in range(15_000)
    ]
    numbers += [repr(random.gauss()) for _ in range(15_000)]
    numbers += [f"{random.gauss():.17g}" for _ in range(15_000)]
    numbers += list(half_way_cases())
    rows = read(("1 1:" + "\n1 1:".join(numbers) + "\n").encode())
    assert rows.values == struct.pack(f"{len(numbers)}d", *map(float, numbers))


def half_way_cases() -> Iterable[str]:
    """17 and 18 digits as near as can be to the middle of two doubles: rounding twice errs here."""
    for _ in range(20_000):
        decimals = random.randrange(14, 18)
        number = Fraction(random.uniform(2, 9))
        middle = (number + Fraction(math.nextafter(float(number), math.inf))) / 2
        near = round(middle * 10**decimals)
        whole, part = divmod(near, 10**decimals)
        yield f"{whole}.{part:0{decimals}d}"
    for exponent in range(54, 60):  # whole numbers in the middle, and beside it
        for _ in range(500):
            middle = (random.randrange(2**52, 2**53) * 2 + 1) * 2 ** (exponent - 54)
            yield from (str(middle - 1), str(middle), str(middle + 1))


mutation = st.tuples(
    st.integers(0, 10**6),
    st.sampled_from(["insert", "replace", "delete", "double"]),
    st.one_of(
        st.sampled_from([bytes([byte]) for byte in b" \t\n\r:.+-eE#0159,_x|\0"]),
        st.sampled_from([b"nan", b"inf", b"e999", b" qid:1", b"0x1", b"\r\n", b" :", b": "]),
        st.binary(min_size=1, max_size=2),
    ),
)


def mutate(text: bytes, mutations: Iterable[tuple[int, str, bytes]]) -> bytes:
    for place, action, piece in mutations:
        at = place % (len(text) + 1)
        rest = {"insert": at, "replace": at + len(piece), "delete": at + 1, "double": at}[action]
        new = {"delete": b"", "double": text[at : at + 4]}.get(action, piece)
        text = text[:at] + new + text[rest:]
    return text


@examples(500)
@given(valid, st.lists(mutation, min_size=1, max_size=3), st.sampled_from([1 << 20, 64, 3]))
def test_mutated_text_is_accepted_iff_strict_accepts(
    text: bytes, mutations: list[tuple[int, str, bytes]], chunk_bytes: int
) -> None:
    mutated = mutate(text, mutations)
    if not mutated.startswith((b"\x1f\x8b", b"BZh", b"\x1f\x9d")):
        assert_fast_accepts_iff_strict_does(mutated, chunk_bytes)


@st.composite
def rectangle(draw: st.DrawFn) -> str:
    """Dense data: every line spells the same indices."""
    width = draw(st.integers(1, 12))
    first, step = draw(st.integers(0, 100)), draw(st.integers(1, 40))
    spelling = draw(st.sampled_from(["{}", "{}", "{:02}", "{:05}"]))
    indices = [spelling.format(first + step * place) for place in range(width)]
    lines = [
        " ".join([draw(number), *(f"{index}:{draw(number)}" for index in indices)])
        for _ in range(draw(st.integers(2, 5)))
    ]
    return "\n".join(lines) + "\n"


@examples(200)
@given(rectangle())
def test_dense_lines_read_alike_everywhere(text: str) -> None:
    assert read(text.encode()) == read_strictly(text.encode())
    assert_vouched_for(text.encode())


@examples(500)
@given(rectangle(), st.integers(0, 10**6), st.sampled_from(b"0123456789 :.\n"))
@example("1 1:5 2:5\n1 1:5 3:5\n", 0, ord("1"))  # the same length, another index
@example("1 1:5 2:5\n1 1:5 12:5\n", 0, ord("1"))  # the same last digit
@example("1 1:5 10:5\n1 1:5 20:5\n", 0, ord("1"))
@example("1 1:5 10:5\n1 10:5 1:5\n", 0, ord("1"))
@example("1 1:5 2:5\n1 2:5 2:5\n", 0, ord("1"))
@example("1 1:5 2:5\n1\n1 1:1 2:1 3:1 4:1\n", 0, ord("1"))
def test_dense_lines_with_one_other_byte_read_as_strictly(text: str, place: int, byte: int) -> None:
    changed = bytearray(text.encode())
    changed[place % len(changed)] = byte
    assert_fast_accepts_iff_strict_does(bytes(changed))


@examples(500)
@given(st.text("1 :.-+e\n20\t#", max_size=40))
@example("1 :\n")
@example("1.2.3 :5\n")
@example("1 1 5 1:2:3\n")
@example("\n 1:5\n1")
@example("1-1 1:2\n")
@example("1 1:2-3\n")
@example("1 1:1\n1 0:1\n1\n1\n1 0:1 1:1\n")
def test_text_of_legal_bytes_is_accepted_iff_strict_accepts(text: str) -> None:
    assert_fast_accepts_iff_strict_does(text.encode())


@examples(500)
@given(st.binary(max_size=60))
def test_only_user_errors_escape(text: bytes) -> None:
    outcome(text, 1 << 20)


def test_scan_counts_rows_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    lines = b"+1 1:2\r\n\r\n# no\n 1.0\n-1 7:7\nword 1:1\n0#x\n\t-1e0 2:2\n" * 40_000
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + lines + b"0", 1))
    found = scan(str(path))
    assert found.rows == 240_001
    assert found.labels.counts == {1.0: 80_000, -1.0: 80_000, 0.0: 40_001}


def test_scan_stops_collecting_labels(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    for count, more in ((1000, False), (1001, True)):
        path.write_text("".join(f"{label} 1:1\n" for label in range(count)))
        found = scan(str(path))
        assert (found.rows, len(found.labels.counts)) == (count, 1000)
        assert found.labels.overflowed == more


@examples(100)
@given(valid)
def test_scan_agrees_with_the_reader(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "scanned.svm"
    path.write_bytes(text)
    found = scan(str(path))
    labels = np.frombuffer(read(text).labels)
    assert found.rows == len(labels)
    values, counts = np.unique(labels, return_counts=True)
    assert found.labels.counts == dict(zip(values.tolist(), counts.tolist(), strict=True))


def test_wide_and_empty_rows_keep_their_place() -> None:
    rows = read(b"1\n2 10000000:1\n\n3\n4 1:1 2:2\n5\n")
    assert rows.indptr == [0, 0, 1, 1, 3, 3]
    assert rows.lines == [1, 2, 4, 5, 6]
