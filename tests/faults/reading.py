"""Texts that look like LIBSVM, good and bad, and what every reading of them must satisfy.

Only our own errors may escape. The fast reader and the definition (`strict.parse_line`, line by
line) must agree on every row, and on the place of the first fault. What is accepted must be what
scikit-learn's loader makes of the same text.
"""

import random
import zlib
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import BYTE_ORDER_MARK, Source
from ahpatron_cli.errors import UserError
from faults.corpus import PACKERS


@dataclass(frozen=True)
class Reading:
    """The rows of a text, flat, so that two readings can be compared."""

    labels: list[float]
    ends: list[int]
    columns: list[int]
    values: list[float]
    lines: list[int]


@dataclass(frozen=True)
class Refusal:
    """The first fault, and where it stands."""

    line: int | None
    column: int | None
    problem: str


def read(
    data: bytes, chunk_bytes: int = 1 << 20, *, may_lack_labels: bool = False
) -> Reading | Refusal:
    """What the reader makes of these bytes of a file."""
    found = Reading([], [0], [], [], [])
    try:
        source = Source(BytesIO(data), "bytes", closes=True)
        for chunk in SvmReader(source, chunk_bytes=chunk_bytes, may_lack_labels=may_lack_labels):
            found.labels.extend(chunk.labels.tolist())
            found.ends.extend((chunk.stored.indptr[1:] + found.ends[-1]).tolist())
            found.columns.extend(chunk.stored.columns.tolist())
            found.values.extend(chunk.stored.values.tolist())
            found.lines.extend(chunk.lines.tolist())
    except UserError as error:
        place = error.place
        assert place is not None, "a refusal without a place"
        return Refusal(place.line, place.column, error.problem)
    return found


def read_by_definition(text: bytes, *, may_lack_labels: bool = False) -> Reading | Refusal:
    """The same, line by line; `text` is unpacked and has no byte order mark."""
    found = Reading([], [0], [], [], [])
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), 1):
        try:
            row = parse_line(line, may_lack_label=may_lack_labels)
        except Fault as fault:
            before = line[: fault.column - 1].decode("utf-8", "replace")
            return Refusal(number, len(before) + 1, fault.problem)
        if row is not None:
            found.labels.append(row.label)
            found.columns.extend(row.indices)
            found.values.extend(row.values)
            found.ends.append(len(found.columns))
            found.lines.append(number)
    return found if found.labels else Refusal(None, None, "there are no rows")


def check(data: bytes) -> Reading | Refusal:
    """Read these bytes in every way, and assert that all agree."""
    found = read(data)
    try:
        source = Source(BytesIO(data), "bytes", closes=True)
        text = b"".join(iter(lambda: source.read1(1 << 16), b""))
    except UserError:  # it cannot be unpacked: then it cannot be read either
        assert isinstance(found, Refusal)
        return found
    text = text.removeprefix(BYTE_ORDER_MARK)
    _agrees_with_definition(found, read_by_definition(text))
    unlabelled = read(data, may_lack_labels=True)
    _agrees_with_definition(unlabelled, read_by_definition(text, may_lack_labels=True))
    if isinstance(found, Reading):
        assert _same(found, unlabelled), "labelled rows read otherwise where labels may be missing"
    digest = zlib.crc32(data)
    if digest % 4 == 0:
        small = read(data, 1 + digest // 4 % 40)
        assert _same(small, found), f"in small chunks: {small}\nin one: {found}"
    if isinstance(found, Reading):
        _agrees_with_scikit_learn(found, text)
    return found


def _agrees_with_definition(found: Reading | Refusal, wanted: Reading | Refusal) -> None:
    if isinstance(wanted, Refusal) and wanted.line is None:
        assert isinstance(found, Refusal)
        assert found.problem.startswith(wanted.problem)
    else:
        assert _same(found, wanted), f"the reader: {found}\nby definition: {wanted}"


def _same(one: Reading | Refusal, other: Reading | Refusal) -> bool:
    """Equal to the bit: -0.0 is not 0.0, and NaN, a missing label, is NaN."""
    return repr(one) == repr(other)


def _agrees_with_scikit_learn(found: Reading, text: bytes) -> None:
    X, y = load_svmlight_file(BytesIO(text), zero_based=True, dtype=np.float64)
    loaded = Reading(
        y.tolist(), X.indptr.tolist(), X.indices.tolist(), X.data.tolist(), found.lines
    )
    assert _same(found, loaded), f"ours: {found}\nscikit-learn's: {loaded}"


LABELS = [b"1", b"-1", b"+1", b"0", b"2.5", b"1e0", b"-0", b"nan", b"inf", b"1e400", b"1_0", b"x"]
LABELS += [b"0x1", b"1,2", b"<a>", b"{", b"@r", b"|", b"", b".", b"1.", b".5", b"1e", b"--1"]
LABELS += [b"?", b"??", b"qid:1"]
INDICES = [b"1", b"2", b"3", b"7", b"0", b"01", b"10000000", b"10000001", b"-1", b"a", b"1.5"]
INDICES += [b"1_0", b"9" * 30, b"", b"qid", b"+1", b"4294967297", b"18446744073709551617"]
VALUES = [b"1", b"0.5", b"-2", b"+3", b"1e-400", b"5e-324", b"1.7976931348623157e308", b"1e309"]
VALUES += [b"0" * 30 + b"1", b"0." + b"3" * 30, b"9007199254740993", b"9007199254740993.0", b"nan"]
VALUES += [b"123456789012345678", b"1234567890123456789", b"0.1e1", b"1E5", b"-0", b"1,5", b"1_0"]
VALUES += [b"", b".", b"1.2.3", b"e5", b"0x10", b"4.35", b"2.675", b"18014398509481985.5"]
SPACES = [b" ", b" ", b" ", b" ", b"  ", b"\t", b"", b"\r", b"\x0b", b"\xa0", b"\xc2\xa0", b"\0"]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"#\n", b" # \xc3\xa4 1:2\n", b"", b"\r"]
HEADS = [b"", b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"#\n", b"\n", b"\x1f\x8b", b"BZh9"]


def made_up(generator: random.Random) -> bytes:
    """A text with the look of LIBSVM, good or bad."""
    hostility = generator.choice((0.0, 0.0, 0.02, 0.1, 0.5))
    labelled = generator.random() < 0.7

    def pick(choices: list[bytes], good: int) -> bytes:
        return generator.choice(choices if generator.random() < hostility else choices[:good])

    parts = [pick(HEADS, 4)]
    for _ in range(generator.choice((1, 1, 2, 3, 8))):
        parts.append(
            pick(LABELS, 7)
            if labelled or generator.random() < 0.5
            else generator.choice((b"?", b""))
        )
        index = 0
        if generator.random() < 0.1:
            parts.append(b" qid:%d" % generator.randrange(9))
        for _ in range(generator.choice((0, 1, 2, 3, 10))):
            index += generator.randrange(1, 5)
            spelled = pick(INDICES, 1) if generator.random() < hostility else b"%d" % index
            value = pick(VALUES, 7)
            if generator.random() < 0.5:
                value = f"{generator.uniform(-9, 9):.{generator.randrange(1, 20)}g}".encode()
            parts += [pick(SPACES, 4), spelled, b":", value]
        parts.append(pick(ENDS, 4))
    text = bytearray(b"".join(parts))
    while text and generator.random() < hostility:
        at = generator.randrange(len(text))
        match generator.randrange(4):
            case 0:
                text[at] = generator.randrange(256)
            case 1:
                del text[at]
            case 2:
                text[at:at] = text[generator.randrange(len(text)) :][: generator.randrange(20)]
            case _:
                del text[at:]
    data = bytes(text)
    if generator.random() < 0.02:
        data = generator.choice([*PACKERS.values()])(data)
        if generator.random() < 0.5:
            damaged = bytearray(data)
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
            data = bytes(damaged)
    return data
