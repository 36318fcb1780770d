"""What every reading of LIBSVM text must satisfy, whatever the bytes: one check for all the tests.

Only our own errors may escape. The fast reader and the definition (`strict.parse_line`, line by
line) must agree on every row, and on the place of the first fault. What is accepted must be what
scikit-learn's loader makes of the same text.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.libsvm.grammar import Fault, parse_line
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import BYTE_ORDER_MARK, Source
from ahpatron_cli.errors import UserError


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
