"""Every kind of malformed file with its exact sentence and place, and every oddity that is fine."""

# ruff: noqa: E501 - the tables below are read by row

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ahpatron_cli
from ahpatron_cli.data.libsvm import grammar as strict
from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader, Traits, scan
from ahpatron_cli.data.source import MAX_LINE, Source, open_source
from ahpatron_cli.errors import ExitCode, UserError

ROOT = Path(ahpatron_cli.__file__).parents[1]
GOOD = b"1 1:0.5 2:1\n-1 2:0.25\n"

# kind, faulty line, problem, column, width
LINES = [
    ("label", b"cat 1:2", "a label must be a finite decimal number", 1, 3),
    ("label", b"+ 1:2", "a label must be a finite decimal number", 1, 1),
    ("label", b"1.2.3 1:2", "a label must be a finite decimal number", 1, 5),
    ("label", b"1-2 1:2", "a label must be a finite decimal number", 1, 3),
    ("label", b" 1:2 3:4", "a label must be a finite decimal number", 2, 3),
    ("label", b"1,3 1:2", "a label must be a finite decimal number", 1, 3),
    ("label", b"0x1A 1:2", "a label must be a finite decimal number", 1, 4),
    ("label", b"NaN 1:2", "a label must be a finite decimal number", 1, 3),
    ("label", b"-inf 1:2", "a label must be a finite decimal number", 1, 4),
    ("label", b"Infinity", "a label must be a finite decimal number", 1, 8),
    ("label", b"1e400 1:2", "a label must be a finite decimal number", 1, 5),
    ("label", b"1_0 1:2", "a label must be a finite decimal number", 1, 3),
    ("feature", b"1 2 1:0.5", "a feature must be index:value", 3, 1),
    ("feature", b"1 1:1 5", "a feature must be index:value", 7, 1),
    ("feature", b"1 1:", "a feature must be index:value", 3, 2),
    ("feature", b"1 1: 2:3", "a feature must be index:value", 3, 2),
    ("feature", b"1 :5", "a feature must be index:value", 3, 2),
    ("feature", b"1 :", "a feature must be index:value", 3, 1),
    ("feature", b"1 1:2:3", "a feature must be index:value", 3, 5),
    ("feature", b"1 1::3", "a feature must be index:value", 3, 4),
    ("feature", b"1 1 :5", "a feature must be index:value", 3, 1),
    ("feature", b"1 1: 5", "a feature must be index:value", 3, 2),
    ("value", b"1 1:abc", "a value must be a finite decimal number", 5, 3),
    ("value", b"1 1:1e", "a value must be a finite decimal number", 5, 2),
    ("value", b"1 1:.", "a value must be a finite decimal number", 5, 1),
    ("value", b"1 1:1.2.3", "a value must be a finite decimal number", 5, 5),
    ("value", b"1 1:--1", "a value must be a finite decimal number", 5, 3),
    ("value", b"1 1:NaN", "a value must be a finite decimal number", 5, 3),
    ("value", b"1 1:+inf", "a value must be a finite decimal number", 5, 4),
    ("value", b"1 1:-1e400", "a value must be a finite decimal number", 5, 6),
    ("value", b"1 1:1_000", "a value must be a finite decimal number", 5, 5),
    ("value", b"1 1:0x10", "a value must be a finite decimal number", 5, 4),
    ("value", b"1 1:0,5", "a value must be a finite decimal number", 5, 3),
    ("index", b"1 -1:5", "a feature index must be a whole number, from 0 on", 3, 2),
    ("index", b"1 +1:5", "a feature index must be a whole number, from 0 on", 3, 2),
    ("index", b"1 a:5", "a feature index must be a whole number, from 0 on", 3, 1),
    ("index", b"1 1.5:5", "a feature index must be a whole number, from 0 on", 3, 3),
    ("index", b"1 1e1:5", "a feature index must be a whole number, from 0 on", 3, 3),
    ("index", b"1 1_0:5", "a feature index must be a whole number, from 0 on", 3, 3),
    ("index", b"1 0x1:5", "a feature index must be a whole number, from 0 on", 3, 3),
    ("index-order", b"-1 3:0.5 2:1.25", "feature indices must increase along a line", 10, 6),
    ("index-order", b"1 1:1 0:1", "feature indices must increase along a line", 7, 3),
    ("index-order", b"1 2:1 2:2", "feature indices must increase along a line", 7, 3),
    ("index-limit", b"1 10000001:1", "feature indices must not exceed 10,000,000", 3, 8),
    ("index-limit", b"1 2000000000:1", "feature indices must not exceed 10,000,000", 3, 10),
    ("index-limit", b"1 99999999999:1", "feature indices must not exceed 10,000,000", 3, 11),
    ("index-limit", b"1 18446744073709551617:1", "feature indices must not exceed 10,000,000", 3, 20),
    ("index-limit", b"1 " + b"9" * 5000 + b":1", "feature indices must not exceed 10,000,000", 3, 100),
    ("qid", b"1 1:1 qid:3", "qid must be a whole number, right after the label", 7, 5),
    ("qid", b"1 qid:a 1:1", "qid must be a whole number, right after the label", 3, 5),
    ("qid", b"1 qid:1 qid:2 1:1", "qid must be a whole number, right after the label", 9, 5),
    ("not-ascii", "1 1:−5".encode(), "only comments may hold anything else than plain ASCII", 5, 1),
    ("not-ascii", b"1 1:2\xa02:3", "only comments may hold anything else than plain ASCII", 6, 1),
    ("control", b"1 1:2\x0b2:3", "a line must not hold control characters", 6, 1),
    ("control", b"1 1:2 \x1b[0m", "a line must not hold control characters", 7, 1),
]  # fmt: skip

# kind, whole file, problem, line, column, words of the hint
FILES = [
    ("utf-16", "1 1:2\n".encode("utf-16"), "the text must be ASCII or UTF-8, not UTF-16", 1, 1),
    ("utf-16", "1 1:2\n".encode("utf-16-le"), "the text must be ASCII or UTF-8, not UTF-16", 1, 1),
    ("utf-16", "1 1:2\n".encode("utf-16-be"), "the text must be ASCII or UTF-8, not UTF-16", 1, 1),
    ("utf-32", "1 1:2\n".encode("utf-32"), "the text must be ASCII or UTF-8, not UTF-32", 1, 1),
    ("nul", GOOD + b"1 1:2\0\n", "this is a binary file, not LIBSVM text", 3, 6),
    ("nul", GOOD + b"# a comment\0\n", "this is a binary file, not LIBSVM text", 3, 12),
    ("cr-only", b"1 1:2\r-1 1:3\r", "lines must end in LF or CRLF, not in CR alone", 1, 6, r"tr '\r' '\n' <"),
    ("cr-only", b"# note\r1 1:2\r", "lines must end in LF or CRLF, not in CR alone", 1, 7, r"tr '\r' '\n' <"),
    ("csv", b"1,0.5,2\n", "this is CSV, not LIBSVM text", 1, 1),
    ("csv", b"label,x1,x2\n1,2,3\n", "this is CSV, not LIBSVM text", 1, 1),
    ("html", b"\n<!DOCTYPE html>\n", "this is an HTML or XML page, not LIBSVM text", 2, 1),
    ("html", b"<html>", "this is an HTML or XML page, not LIBSVM text", 1, 1),
    ("json", b'{"a": 1}\n', "this is JSON, not LIBSVM text", 1, 1),
    ("arff", b"@relation x\n", "this is an ARFF file, not LIBSVM text", 1, 1),
    ("vowpal-wabbit", b"1 | a:1\n", "this is Vowpal Wabbit text, not LIBSVM text", 1, 3),
    ("vowpal-wabbit", b"|f a:1\n", "this is Vowpal Wabbit text, not LIBSVM text", 1, 1),
]  # fmt: skip


def read(path: Path, chunk_bytes: int = 1 << 20) -> list[Chunk]:
    with open_source(str(path)) as source:
        return list(SvmReader(source, chunk_bytes=chunk_bytes))


def faults(source: Source) -> list[tuple[int, Fault]]:
    """Every faulty line and what is wrong with it."""
    found: list[tuple[int, Fault]] = []
    reader = SvmReader(source, on_fault=lambda line, fault: found.append((line, fault)))
    assert all(isinstance(chunk, Chunk) for chunk in reader)
    return found


def refusal(path: Path, chunk_bytes: int = 1 << 20) -> UserError:
    with pytest.raises(UserError) as caught:
        read(path, chunk_bytes)
    assert caught.value.code is ExitCode.BAD_DATA
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bad.svm"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b" # comment\n"])
@pytest.mark.parametrize(("kind", "line", "problem", "column", "width"), LINES)
def test_faulty_line(
    path: Path, kind: str, line: bytes, problem: str, column: int, width: int, end: bytes
) -> None:
    with pytest.raises(Fault) as fault:
        parse_line(line)
    assert fault.value.kind == kind
    path.write_bytes(GOOD + line + end)
    for chunk_bytes in (1 << 20, 7):
        error = refusal(path, chunk_bytes)
        assert error.place is not None
        assert error.problem == problem
        assert str(error.place) == f"{path}:3:{column}"
        assert error.place.note
        assert error.place.width == width
        assert error.place.text is not None
        assert error.place.text.startswith(line.decode("utf-8", "replace")[:50])
        assert error.hint is not None
        assert f"`ahpatron inspect {path}` lists every faulty line" in error.hint


@pytest.mark.parametrize(("kind", "text", "problem", "line", "column", "hint"), FILES)
def test_foreign_file(
    path: Path, kind: str, text: bytes, problem: str, line: int, column: int, hint: str
) -> None:
    path.write_bytes(text)
    for chunk_bytes in (1 << 20, 1):
        error = refusal(path, chunk_bytes)
        assert error.problem == problem
        assert str(error.place) == f"{path}:{line}:{column}"
        assert error.hint is not None
        assert hint in error.hint
        assert "inspect" not in error.hint
    with open_source(str(path)) as source:
        assert [(number, fault.kind) for number, fault in faults(source)] == [(line, kind)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\n \t\r\n\n", "holds only blank lines"),
        (b"# a\n\n # b", "holds only comments"),
    ],
)
def test_no_rows(path: Path, text: bytes, why: str) -> None:
    path.write_bytes(text)
    assert refusal(path).problem == f"there are no rows: the file {why}"


ONE_ROW: list[tuple[bytes, list[int], list[float]]] = [
    (b"1 1:2 3:4\r\n", [1, 3], [2, 4]),
    (b"1\t1:2\t \t3:4\t\n", [1, 3], [2, 4]),
    (b"\xef\xbb\xbf1 1:2\n", [1], [2]),
    (b"\n\n \n1 1:2\n\n", [1], [2]),
    ("# Größe\n1 1:2 # größer\n#\n".encode(), [1], [2]),
    (b"1 1:2#glued\n", [1], [2]),
    (b"1#glued\n", [], []),
    (b"1\n", [], []),
    (b"+1 1:0 2:-0\n", [1, 2], [0, 0]),
    (b"   1.0   1:2   \n", [1], [2]),
    (b"1e0 1:2", [1], [2]),
    (b"1 qid:7 1:2\n", [1], [2]),
    (b"1 qid:7\n", [], []),
    (b"1 0:1 01:2 002:3\n", [0, 1, 2], [1, 2, 3]),
    (b"1 1:.5 2:5. 3:+5 4:5e-1 5:5E+1\n", [1, 2, 3, 4, 5], [0.5, 5, 5, 0.5, 50]),
    (b"1 1:1e-400 2:5e-324 3:1.7976931348623157e308\n", [1, 2, 3], [0, 5e-324, sys.float_info.max]),
    (b"1 10000000:1\n", [10_000_000], [1]),
    (b"1 1:" + b"0" * 400 + b"1\n", [1], [1]),
    (b"1 1:0." + b"3" * 400 + b"\n", [1], [1 / 3]),
]


@pytest.mark.parametrize("chunk_bytes", [1 << 20, 5, 1])
@pytest.mark.parametrize(("text", "columns", "values"), ONE_ROW)
def test_accepted_oddity(
    path: Path, text: bytes, columns: list[int], values: list[float], chunk_bytes: int
) -> None:
    path.write_bytes(text)
    (chunk,) = read(path, chunk_bytes)
    assert chunk.labels.tolist() == [1.0]
    assert chunk.rows.columns.tolist() == columns
    assert chunk.rows.values.tolist() == values
    assert chunk.rows.width == max(columns, default=-1) + 1
    assert text[: text.find(b"1", text.rfind(b"\n\n1") + 1)].count(b"\n") < chunk.lines[0]
    assert chunk.rows.columns.dtype == np.int32
    assert chunk.lines.dtype == np.int64
    assert scan(str(path)).rows == 1


def test_what_is_noted(path: Path) -> None:
    path.write_bytes(b"1 qid:3 0:0 4:2\n# c\n-1")
    with open_source(str(path)) as source:
        reader = SvmReader(source)
        lines = [line for chunk in reader for line in chunk.lines.tolist()]
    assert lines == [1, 3]
    assert reader.traits == Traits(4, zero_based=True, saw_qid=True, no_final_newline=True)
    assert (reader.rows_read, reader.values_read, reader.faults) == (2, 2, 0)
    path.write_bytes(b"1 1:3\n")
    with open_source(str(path)) as source:
        reader = SvmReader(source)
        list(reader)
    assert reader.traits == Traits(1)


def test_max_features_is_a_parameter(path: Path) -> None:
    path.write_bytes(b"1 5:1\n")
    with open_source(str(path)) as source:
        assert sum(len(chunk.labels) for chunk in SvmReader(source, max_features=5)) == 1
    with open_source(str(path)) as source, pytest.raises(UserError, match="must not exceed 4"):
        list(SvmReader(source, max_features=4))


def test_impossible_arguments(path: Path) -> None:
    path.write_bytes(GOOD)
    with open_source(str(path)) as source:
        with pytest.raises(ValueError, match="chunk_bytes must be in"):
            SvmReader(source, chunk_bytes=0)
        with pytest.raises(ValueError, match="max_features must be in"):
            SvmReader(source, max_features=2**31)


def test_excerpt_of_a_long_line(path: Path) -> None:
    features = [f"{index}:1" for index in range(1, 400)]
    features[200] = "7:1"
    line = "1 " + " ".join(features)
    path.write_text(line + "\n")
    place = refusal(path).place
    assert place is not None
    assert place.text is not None
    assert place.column == line.index(" 7:1", 100) + 2
    assert len(place.text) < place.column + 110
    assert place.text[place.column - 1 :][: place.width] == "7:1"


@pytest.mark.parametrize("at", [3, 40, 150, 299])
def test_a_long_line_has_the_fault_of_a_short_one(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Long lines are looked through in pieces; kind, place and words are the same."""
    monkeypatch.setattr(strict, "PIECE", 64)
    features = [b"%d:0.5" % index for index in range(1, 301)]
    for _, line, *_ in LINES:
        token = line.partition(b" ")[2]
        if not token:
            continue  # the fault was the label
        text = b" ".join([b"1 qid:3", *features[:at], token, *features[at:]])
        found = []
        for long in (256, 1 << 30):
            monkeypatch.setattr(strict, "LONG", long)
            with pytest.raises(Fault) as fault:
                parse_line(text)
            found.append(vars(fault.value))
        assert found[0] == found[1]


def test_a_long_line_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spelled so that the fast reader leaves it to the definition."""
    monkeypatch.setattr(strict, "LONG", 256)
    monkeypatch.setattr(strict, "PIECE", 64)
    text = b"1 " + b"\t".join(b"%d:5e-1 " % index for index in range(1, 301)) + b" # end"
    whole = parse_line(text)
    monkeypatch.setattr(strict, "LONG", 1 << 30)
    assert whole == parse_line(text)


def test_hint_quotes_the_path_and_knows_stdin(tmp_path: Path) -> None:
    odd = tmp_path / "a b.svm"
    odd.write_bytes(b"1 2:1 1:1\n")
    hint = refusal(odd).hint
    assert hint is not None
    assert f"`ahpatron inspect '{odd}'` lists every faulty line" in hint
    fault = Fault(1, 1, "kind", "problem", "note")
    assert strict.user_error(fault, "<stdin>", 1, b"x").hint is None


def test_every_faulty_line_is_listed(path: Path) -> None:
    path.write_bytes(GOOD + b"1 a:1\n" + GOOD * 50_000 + b"1 2:1 1:1\nx\n# c\n1 1:1\n")
    with open_source(str(path)) as source:
        found = [(line, fault.kind) for line, fault in faults(source)]
    assert found == [(3, "index"), (100_004, "index-order"), (100_005, "label")]


def test_only_faulty_lines(path: Path) -> None:
    path.write_bytes(b"x\n" * 10)
    with open_source(str(path)) as source:
        assert len(faults(source)) == 10


BOMBS = [
    (b"1" * (1 << 20), 512, "a line may hold 16 MiB at most"),
    (b" " * (1 << 20), 20, "a line may hold 16 MiB at most"),
    (b"#" * (1 << 20), 20, "a line may hold 16 MiB at most"),
    (b"<a href=x> " * 90_000, 20, "this is an HTML or XML page, not LIBSVM text"),
    (b"1 1:2\r" * 160_000, 20, "lines must end in LF or CRLF, not in CR alone"),
]


@pytest.mark.parametrize(
    ("block", "times", "problem"),
    [
        pytest.param(*bomb, id=bomb[2], marks=[pytest.mark.slow] if number else [])
        for number, bomb in enumerate(BOMBS)
    ],
)
def test_endless_line_in_little_memory(path: Path, block: bytes, times: int, problem: str) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(GOOD)
        for _ in range(times):
            file.write(block)
    started = children_seconds()
    shown = limited_read(path, megabytes=128)
    assert shown.startswith(f"65 {path}:3:")
    assert shown.endswith(problem)
    assert children_seconds() - started < 10


def test_line_of_just_16_mib_is_read_and_one_more_byte_is_not(path: Path) -> None:
    line = b"1 1:2 #".ljust(MAX_LINE, b"x")
    for chunk_bytes in (1 << 20, 999_983):
        path.write_bytes(GOOD + line + b"\n1 1:5\n")
        assert sum(len(chunk.labels) for chunk in read(path, chunk_bytes)) == 4
        path.write_bytes(GOOD + line + b"x\n1 1:5\n")
        assert str(refusal(path, chunk_bytes).place) == f"{path}:3:1"


def test_many_rows_stream_in_little_memory(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"1 1:1\n-1\n" * 100_000)
    assert limited_read(path, megabytes=256) == "8000000 rows"


def test_long_faulty_line_is_refused_quickly(path: Path) -> None:
    line = b"1 " + b" ".join(b"%d:0.5" % index for index in range(1_000_000, 2_300_000))
    path.write_bytes(line + b" 5:1\n")
    started = time.process_time()  # not that of a busy machine
    place = refusal(path).place
    assert place is not None
    assert place.note == "index 5 comes after index 2299999"
    assert time.process_time() - started < 10


LIMITED_READ = """
import resource, sys
import numpy
from ahpatron_cli.data.source import MAX_LINE, open_source
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.errors import UserError

with open("/proc/self/statm") as statm:  # what Python and NumPy have mapped before any reading
    base = int(statm.read().split()[0]) * resource.getpagesize()
limit = base + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
rows = 0
try:
    with open_source(sys.argv[1]) as source:
        for chunk in SvmReader(source):
            rows += len(chunk.labels)
    print(rows, "rows", end="")
except UserError as error:
    print(int(error.code), error.place, error.problem, end="")
"""


def children_seconds() -> float:
    """CPU time, which does not grow on a busy machine."""
    times = os.times()
    return times.children_user + times.children_system


def limited_read(path: Path, megabytes: int) -> str:
    """Read a file in a process that may map only so much memory beyond that of bare NumPy."""
    command = [sys.executable, "-c", LIMITED_READ, str(path), str(megabytes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_endless_device() -> None:
    error = refusal(Path("/dev/zero"))
    assert error.problem == "this is a binary file, not LIBSVM text"
