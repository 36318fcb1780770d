"""The grammar of LIBSVM text: a line parser that reports faults and their positions.

The fast reader in `fast` agrees with `parse_line` on every byte, or leaves the text to it. A line:

    label [qid:N] index:value index:value ...   [# comment]

Labels and values are decimal numbers as `float()` reads them, finite, without underscores. Indices
are digits, increase along the line, and stay within a limit, so that one forged index cannot ask
for gigabytes. Where labels may be missing, a line may start with `index:value`, or with a `?`.
"""

from __future__ import annotations

import math
import re
import shlex
from array import array
from dataclasses import dataclass
from typing import NamedTuple

from ahpatron_cli.data.source import MAX_LINE, STDIN_NAME, UTF_16_MARKS, as_word, json_list_hint
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.settings import Data

EXCERPT = 100
"""Number of bytes of a line shown after a fault."""

_NUMBER = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_TOKEN = re.compile(rb"[^ \t]+")
_FEATURE = re.compile(rb"([0-9]++):(" + _NUMBER.pattern + rb")")
_QUERY = re.compile(rb"qid:[0-9]++")
_NO_LABEL = re.compile(rb"\?|(?:[0-9]++|qid):.*+")
_FORBIDDEN = re.compile(rb"[^\t -~]+")

_ARFF = (
    "an ARFF file",
    'make CSV of it: `awk \'tolower($1)=="@attribute"{h=h s $2;s=","} d&&NF&&!/^%/; '
    'tolower($1)=="@data"{print h;d=1}\' FILE > data.csv`; then name data.csv and --label COLUMN',
)
_VOWPAL = (
    "Vowpal Wabbit text",
    "write each line as `label index:value ...`, without `|` and names",
)
_FOREIGN: dict[bytes, tuple[str, str]] = {
    b"<": ("an HTML or XML page", "check the download link"),
    b"{": ("JSON", "JSON lines have an object per line, from the first line on"),
    b"[": ("JSON", json_list_hint("FILE")),
    b"@": _ARFF,
    b"|": _VOWPAL,
}
"""Foreign formats by the first byte of a token: name and hint."""


@dataclass(eq=False)
class Fault(Exception):  # noqa: N818 - caught inside the package, it never reaches the user
    """A fault in a line, at `width` bytes starting at `column` (from 1).

    `kind` is a stable short name; `problem` is the rule that was violated, `note` how it was
    violated here. In `hint` the word FILE stands for the path. `whole_file` marks faults that make
    all other lines meaningless too (another encoding or format).
    """

    column: int
    width: int
    kind: str
    problem: str
    note: str
    hint: str | None = None
    whole_file: bool = False


class Line(NamedTuple):
    """The parsed content of a line with an example."""

    label: float
    """The label; NaN if the line has none."""
    indices: array[int]
    values: array[float]
    has_qid: bool


def parse_line(
    text: bytes, max_features: int = Data.max_features, *, may_lack_label: bool = False
) -> Line | None:
    """Parse a line (without its line feed); None if it is blank or a comment.

    Raises `Fault` for the first fault in the line.
    """
    data = _data_part(text)
    tokens = _TOKEN.finditer(data)
    first = next(tokens, None)
    if first is None:
        return None
    label = math.nan
    if not may_lack_label or not _NO_LABEL.fullmatch(first[0]):
        label = _label(first[0], first.start() + 1)
    elif first[0] != b"?":
        tokens = _TOKEN.finditer(data)  # no label: start again with the first feature
    indices = array("i")
    values = array("d")
    has_qid = False
    for token in tokens:
        column = token.start() + 1
        feature = _FEATURE.fullmatch(token[0])
        if feature is None:
            if indices or has_qid or not _QUERY.fullmatch(token[0]):
                raise _bad_feature(token[0], column)
            has_qid = True
            continue
        digits = feature[1].lstrip(b"0") or b"0"
        index = int(digits[:20])  # 20 digits exceed any limit
        if index > max_features:
            raise _large_index(digits, column, width=len(feature[1]), limit=max_features)
        if indices and index <= indices[-1]:
            raise _index_order(index, indices[-1], column=column, width=len(token[0]))
        value = float(feature[2])
        if math.isinf(value):
            raise _not_a_number(feature[2], column + len(feature[1]) + 1, "value")
        indices.append(index)
        values.append(value)
    return Line(label, indices=indices, values=values, has_qid=has_qid)


def finite_number(text: bytes) -> float | None:
    """Parse a label or value; None if it is not a finite decimal number."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return None if math.isinf(value) else value


def user_error(fault: Fault, path: str, line: int, text: bytes) -> UserError:
    """Convert a fault to a `UserError` with position, excerpt of the line and hint."""
    start = fault.column - 1
    stop = start + fault.width
    rest = text[stop:][:EXCERPT].rstrip(b"\r")
    before = text[:start].decode("utf-8", "replace")
    marked = text[start:stop][:EXCERPT].decode("utf-8", "replace")
    after = rest.decode("utf-8", "replace")
    place = Place(
        path,
        line=line,
        column=len(before) + 1,
        width=max(1, len(marked)),
        text=before + marked + after,
        note=fault.note,
    )
    hint = hint_of(fault, path)
    if not fault.whole_file and path != STDIN_NAME:
        listed = f"`ahpatron inspect {shlex.quote(path)}` lists every faulty line"
        hint = f"{hint}; {listed}" if hint else listed
    return UserError(fault.problem, code=ExitCode.BAD_DATA, place=place, hint=hint)


def hint_of(fault: Fault, path: str) -> str | None:
    """The hint of a fault, with FILE replaced by the path."""
    if fault.hint is None:
        return None
    return fault.hint.replace("FILE", as_word(path), 1)


def _data_part(text: bytes) -> bytes:
    """The line without comment and carriage return; raises `Fault` if it is not ASCII text."""
    line = text.removesuffix(b"\r")
    if b"\0" in text or text.startswith(UTF_16_MARKS):
        raise _binary(text)
    if b"\r" in line:
        raise Fault(
            column=line.find(b"\r") + 1,
            width=1,
            kind="line-end",
            problem="lines must end in LF or CRLF, not in CR alone",
            note="a carriage return",
            hint=r"convert it with `tr '\r' '\n' < FILE > fixed.svm`",
            whole_file=True,
        )
    if len(text) > MAX_LINE:
        raise too_long()
    data = line.partition(b"#")[0]
    if match := _FORBIDDEN.search(data):
        raise Fault(
            column=match.start() + 1,
            width=len(match[0]),
            kind="character",
            problem="only comments may hold characters other than plain ASCII",
            note=f"the byte 0x{match[0][0]:02x}",
        )
    return data


def too_long() -> Fault:
    """The fault of a line that is longer than `MAX_LINE`."""
    return Fault(
        column=1,
        width=1,
        kind="line-too-long",
        problem=f"a line may hold {MAX_LINE >> 20} MiB at most",
        note="this line is longer",
        hint="check that this is LIBSVM text",
        whole_file=True,
    )


def _binary(text: bytes) -> Fault:
    """The fault of a line that is UTF-16 or no text."""
    column = text.find(b"\0") + 1
    note = "a NUL byte"
    if text.startswith(UTF_16_MARKS):
        column = 1
        note = "the mark of UTF-16"
    return Fault(
        column,
        width=1,
        kind="binary",
        problem="the text must be ASCII or UTF-8, not UTF-16 or binary",
        note=note,
        hint="if it is text, convert it with `iconv -f UTF-16 -t UTF-8 FILE > fixed.svm`",
        whole_file=True,
    )


def _label(text: bytes, column: int) -> float:
    value = finite_number(text)
    if value is not None:
        return value
    if text[:1] in _FOREIGN:
        what, hint = _FOREIGN[text[:1]]
        raise _foreign(text, column, what=what, hint=hint)
    hint = "a table (CSV) is read with --label COLUMN"
    raise _not_a_number(text, column, "label", hint=hint)


def _large_index(digits: bytes, column: int, *, width: int, limit: int) -> Fault:
    """The fault of a feature index over the limit."""
    return Fault(
        column,
        width=width,
        kind="index-limit",
        problem=f"feature indices must not exceed {limit:,}",
        note=f"{_show(digits)} is larger",
        hint="raise --max-features if that is intended",
    )


def _index_order(index: int, last: int, *, column: int, width: int) -> Fault:
    """The fault of a feature index that is not larger than the one before it."""
    return Fault(
        column,
        width=width,
        kind="index-order",
        problem="feature indices must increase along a line",
        note=f"index {index} comes after index {last}",
        hint="sort the features of each line by index, and write each of them once",
    )


def _foreign(text: bytes, column: int, *, what: str, hint: str) -> Fault:
    """The fault of a file in another format, named by `what`."""
    return Fault(
        column,
        width=len(text),
        kind="foreign",
        problem=f"this is {what}, not LIBSVM text",
        note="a line must start with a label, then index:value",
        hint=hint,
        whole_file=True,
    )


def _bad_feature(text: bytes, column: int) -> Fault:
    """The fault of a token that is not `index:value`."""
    index, _, value = text.partition(b":")
    if text.startswith(b"|"):
        what, hint = _VOWPAL
        return _foreign(text, column, what=what, hint=hint)
    if index == b"qid":
        return Fault(
            column,
            width=len(text),
            kind="qid",
            problem="qid must be a whole number, right after the label",
            note=f"{_show(text)} is not",
        )
    if not index or not value or b":" in value:
        return Fault(
            column,
            width=len(text),
            kind="feature",
            problem="a feature must be index:value",
            note=f"{_show(text)} is not",
            hint="a line has one label, and no space before or after a colon",
        )
    if not index.isdigit():
        return Fault(
            column,
            width=len(index),
            kind="index",
            problem="a feature index must be a whole number, from 0 on",
            note=f"{_show(index)} is not",
        )
    return _not_a_number(value, column + len(index) + 1, "value")


def _not_a_number(text: bytes, column: int, what: str, hint: str | None = None) -> Fault:
    """The fault of an invalid number; `what` is "label" or "value"."""
    is_number = _NUMBER.fullmatch(text) is not None
    reason = "over 1.8e308" if is_number else "not"
    return Fault(
        column,
        width=len(text),
        kind=what,
        problem=f"a {what} must be a finite decimal number",
        note=f"{_show(text)} is {reason}",
        hint=hint,
    )


def _show(text: bytes) -> str:
    """A token as quoted in a note, shortened if it is long."""
    shown = text[:24].decode("ascii", "replace")
    return f"`{shown}...`" if len(text) > 24 else f"`{shown}`"
