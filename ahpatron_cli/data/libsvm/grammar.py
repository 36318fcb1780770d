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

from ahpatron_cli.data.source import JSON_HINTS, MAX_LINE, STDIN_NAME, UTF_16_MARKS, as_word
from ahpatron_cli.errors import ExitCode, Place, UserError

MAX_FEATURES = 10_000_000
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
_VOWPAL = "Vowpal Wabbit text", "write each line as `label index:value ...`, without `|` and names"
_FOREIGN: dict[bytes, tuple[str, str]] = {
    b"<": ("an HTML or XML page", "check the download link"),
    b"{": ("JSON", JSON_HINTS[b"{"]),
    b"[": ("JSON", JSON_HINTS[b"["]),
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
    text: bytes, max_features: int = MAX_FEATURES, *, may_lack_label: bool = False
) -> Line | None:
    """Parse a line (without its line feed); None if it is blank or a comment.

    Raises `Fault` for the first fault in the line.
    """
    data = _data_part(text)
    tokens = _TOKEN.finditer(data)
    first = next(tokens, None)
    if first is None:
        return None
    label, has_qid, last = math.nan, False, -1
    if may_lack_label and _NO_LABEL.fullmatch(first[0]):
        if first[0] != b"?":
            tokens = _TOKEN.finditer(data)  # no label: start again with the first feature
    else:
        label = _label(first[0], first.start() + 1)
    indices, values = array("i"), array("d")
    for token in tokens:
        feature = _FEATURE.fullmatch(token[0])
        if feature is None:
            if indices or has_qid or not _QUERY.fullmatch(token[0]):
                raise _bad_feature(token[0], token.start() + 1)
            has_qid = True
            continue
        digits = feature[1].lstrip(b"0") or b"0"
        index = int(digits[:20])  # 20 digits exceed any limit
        if index > max_features:
            problem = f"feature indices must not exceed {max_features:,}"
            note, hint = f"{_show(digits)} is larger", "raise --max-features if that is intended"
            raise Fault(token.start() + 1, len(feature[1]), "index-limit", problem, note, hint)
        if index <= last:
            note = f"index {index} comes after index {last}"
            hint = "sort the features of each line by index, and write each of them once"
            problem = "feature indices must increase along a line"
            raise Fault(token.start() + 1, len(token[0]), "index-order", problem, note, hint)
        value = float(feature[2])
        if math.isinf(value):
            raise _not_a_number(feature[2], token.start() + len(feature[1]) + 2, "value")
        indices.append(index)
        values.append(value)
        last = index
    return Line(label, indices, values, has_qid)


def finite_number(text: bytes) -> float | None:
    """Parse a label or value; None if it is not a finite decimal number."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return None if math.isinf(value) else value


def user_error(fault: Fault, path: str, line: int, text: bytes) -> UserError:
    """Convert a fault to a `UserError` with position, excerpt of the line and hint."""
    start = fault.column - 1
    before = text[:start].decode("utf-8", "replace")
    marked = text[start:][: min(fault.width, EXCERPT)].decode("utf-8", "replace")
    after = text[start + fault.width :][:EXCERPT].rstrip(b"\r").decode("utf-8", "replace")
    shown = before + marked + after
    place = Place(path, line, len(before) + 1, max(1, len(marked)), shown, fault.note)
    hint = hint_of(fault, path)
    if not fault.whole_file and path != STDIN_NAME:
        listed = f"`ahpatron inspect {shlex.quote(path)}` lists every faulty line"
        hint = f"{hint}; {listed}" if hint else listed
    return UserError(fault.problem, code=ExitCode.BAD_DATA, place=place, hint=hint)


def hint_of(fault: Fault, path: str) -> str | None:
    """The hint of a fault, with FILE replaced by the path."""
    return fault.hint and fault.hint.replace("FILE", as_word(path), 1)


def _data_part(text: bytes) -> bytes:
    """The line without comment and carriage return; raises `Fault` if it is not ASCII text."""
    nul, begins = text.find(b"\0"), text.startswith(UTF_16_MARKS)
    if nul >= 0 or begins:
        problem = "the text must be ASCII or UTF-8, not UTF-16 or binary"
        note = "the mark of UTF-16" if begins else "a NUL byte"
        hint = "if it is text, convert it with `iconv -f UTF-16 -t UTF-8 FILE > fixed.svm`"
        raise Fault(1 if begins else nul + 1, 1, "binary", problem, note, hint, whole_file=True)
    if (at := text.removesuffix(b"\r").find(b"\r")) >= 0:
        problem = "lines must end in LF or CRLF, not in CR alone"
        note, hint = "a carriage return", r"convert it with `tr '\r' '\n' < FILE > fixed.svm`"
        raise Fault(at + 1, 1, "line-end", problem, note, hint, whole_file=True)
    if len(text) > MAX_LINE:
        problem, note = f"a line may hold {MAX_LINE >> 20} MiB at most", "this line is longer"
        hint = "check that this is LIBSVM text"
        raise Fault(1, 1, "line-too-long", problem, note, hint, whole_file=True)
    data = text.removesuffix(b"\r").partition(b"#")[0]
    if match := _FORBIDDEN.search(data):
        problem = "only comments may hold characters other than plain ASCII"
        note = f"the byte 0x{match[0][0]:02x}"
        raise Fault(match.start() + 1, len(match[0]), "character", problem, note)
    return data


def _label(text: bytes, column: int) -> float:
    value = finite_number(text)
    if value is not None:
        return value
    if text[:1] in _FOREIGN:
        raise _foreign(text, column, *_FOREIGN[text[:1]])
    raise _not_a_number(text, column, "label", "a table (CSV) is read with --label COLUMN")


def _foreign(text: bytes, column: int, what: str, hint: str) -> Fault:
    """The fault of a file in another format, named by `what`."""
    problem = f"this is {what}, not LIBSVM text"
    note = "a line must start with a label, then index:value"
    return Fault(column, len(text), "foreign", problem, note, hint, whole_file=True)


def _bad_feature(text: bytes, column: int) -> Fault:
    """The fault of a token that is not `index:value`."""
    index, _, value = text.partition(b":")
    if text.startswith(b"|"):
        return _foreign(text, column, *_VOWPAL)
    if index == b"qid":
        problem = "qid must be a whole number, right after the label"
        return Fault(column, len(text), "qid", problem, f"{_show(text)} is not")
    if not index or not value or b":" in value:
        hint = "a line has one label, and no space before or after a colon"
        problem = "a feature must be index:value"
        return Fault(column, len(text), "feature", problem, f"{_show(text)} is not", hint)
    if not index.isdigit():
        problem = "a feature index must be a whole number, from 0 on"
        return Fault(column, len(index), "index", problem, f"{_show(index)} is not")
    return _not_a_number(value, column + len(index) + 1, "value")


def _not_a_number(text: bytes, column: int, what: str, hint: str | None = None) -> Fault:
    """The fault of an invalid number; `what` is "label" or "value"."""
    note = f"{_show(text)} is " + ("over 1.8e308" if _NUMBER.fullmatch(text) else "not")
    return Fault(column, len(text), what, f"a {what} must be a finite decimal number", note, hint)


def _show(text: bytes) -> str:
    """A token as quoted in a note, shortened if it is long."""
    shown = text[:24].decode("ascii", "replace")
    return f"`{shown}...`" if len(text) > 24 else f"`{shown}`"
