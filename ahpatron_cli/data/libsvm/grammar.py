"""What a line of LIBSVM text is: the slow, exact definition, which can say what is wrong and where.

The fast reader in `fast` must agree with `parse_line` on every byte; wherever it is not sure
it asks here. A line is

    label [qid:N] index:value index:value ...   [# comment]

Labels and values are decimal numbers as `float()` reads them, finite, without underscores. Indices
are digits, increase along the line, and stay within a limit, so that one forged index cannot ask
for gigabytes.

Rows to be predicted may lack a label: the line then starts with `index:value`, or with a `?`.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

import numpy as np

from ahpatron_cli.data.libsvm.fast import read_plain
from ahpatron_cli.data.source import MAX_LINE, STDIN_NAME, foreign_encoding
from ahpatron_cli.errors import ExitCode, Place, UserError

MAX_FEATURES = 10_000_000
EXCERPT = 100
CONTEXT = 40
LONG = 1 << 20
PIECE = 1 << 16
"""Bytes of a line that is looked through piece by piece, and of a piece."""

_TOKEN = re.compile(rb"[^ \t]+")
_DECIMAL = rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_NUMBER = re.compile(_DECIMAL)
# the next token: index and value, or else something that is not a feature
_FEATURE = re.compile(rb"[ \t]*+(?:([0-9]++):(" + _DECIMAL + rb")(?![^ \t])|([^ \t]++))")
_QUERY = re.compile(rb"qid:[0-9]++")
_NO_LABEL = re.compile(rb"\?|(?:[0-9]++|qid):.*+")
_INDEX = re.compile(rb"(?<![^ \t])[0-9]++:")
_FORBIDDEN = re.compile(rb"[^\t -~]")

_FROM_ARFF = (
    'make CSV of it: `awk \'tolower($1)=="@attribute"{h=h s $2;s=","} d&&NF&&!/^%/; '
    'tolower($1)=="@data"{print h;d=1}\' FILE > data.csv`; then name data.csv and --label COLUMN'
)
_JSON = "json", "JSON", "convert it: one line per example"
_ARFF = "arff", "an ARFF file", _FROM_ARFF
_NO_NAMES = "write each line as `label index:value ...`, without `|` and names"
_FOREIGN: dict[bytes, tuple[str, str, str]] = {
    b"<": ("html", "an HTML or XML page", "check the download link"),
    b"{": _JSON,
    b"[": _JSON,
    b"@": _ARFF,
    b"%": _ARFF,
    b"|": ("vowpal-wabbit", "Vowpal Wabbit text", _NO_NAMES),
}
"""Kind, name and hint of formats that the first byte of a line gives away."""


@dataclass(eq=False)
class Fault(Exception):  # noqa: N818 - caught inside the package, it never reaches the user
    """One thing wrong with one line: `width` bytes from `column` (from 1) on.

    `kind` is a short name that stays the same; `problem` is the rule that was broken, `note` how it
    was broken here. In `hint` the word FILE stands for the path. `whole_file` marks faults that
    make every other line meaningless too (another encoding, another format).
    """

    column: int
    width: int
    kind: str
    problem: str
    note: str
    hint: str | None = None
    whole_file: bool = False


class Line(NamedTuple):
    """A line that holds an example."""

    label: float
    """NaN if it has none."""
    indices: list[int]
    values: list[float]
    has_qid: bool


class _Token(NamedTuple):
    text: bytes
    column: int

    def fault(self, kind: str, problem: str, note: str, hint: str | None = None) -> Fault:
        return Fault(self.column, len(self.text), kind, problem, note, hint)

    def foreign(self, kind: str, what: str, hint: str) -> Fault:
        """The file is of another format."""
        problem = f"this is {what}, not LIBSVM text"
        note = "a line must start with a label, then index:value"
        return Fault(self.column, len(self.text), kind, problem, note, hint, whole_file=True)


def parse_line(
    text: bytes,
    max_features: int = MAX_FEATURES,
    *,
    in_pieces: bool = True,
    may_lack_label: bool = False,
) -> Line | None:
    """Read one line (without its line feed); None if it is blank or a comment.

    Raises `Fault` at the first thing that is wrong; that of a long line is looked for `in_pieces`.
    """
    data = _data_part(text)
    first = _TOKEN.search(data)
    if first is None:
        return None
    if may_lack_label and _NO_LABEL.fullmatch(first[0]):
        return _unlabelled(data, first.start(), max_features)
    label = _label(_Token(first[0], first.start() + 1), data)
    if in_pieces and len(data) > LONG:
        _refuse_in_pieces(data, max_features)
    indices: list[int] = []
    values: list[float] = []
    has_qid = False
    last = -1
    for match in _FEATURE.finditer(data, first.end()):
        digits, number, other = match.groups()
        if other is not None:
            if not indices and not has_qid and _QUERY.fullmatch(other):
                has_qid = True
                continue
            _refuse_feature(_Token(other, match.start(3) + 1))
        index = int(digits) if len(digits) <= 10 else _long_index(digits)
        if not last < index <= max_features:
            _refuse_index(digits, number, match.start(1) + 1, last, max_features)
        value = float(number)
        if math.isinf(value):
            raise _not_a_number(_Token(number, match.start(2) + 1), "value")
        indices.append(index)
        values.append(value)
        last = index
    return Line(label, indices, values, has_qid)


def _unlabelled(data: bytes, start: int, max_features: int) -> Line:
    """A line that lacks a label reads as the same line with some label in front."""
    label = b"0" if data[start : start + 1] == b"?" else b"0 "
    rest = data[start:].removeprefix(b"?")
    shift = len(data) - len(rest) - len(label)
    line = _parse_moved(label + rest, max_features, shift)
    assert line is not None
    return line._replace(label=math.nan)


def _parse_moved(
    text: bytes, max_features: int, shift: int, *, in_pieces: bool = True
) -> Line | None:
    """Read a line of which only a part stands in the file, `shift` bytes further right."""
    try:
        return parse_line(text, max_features, in_pieces=in_pieces)
    except Fault as fault:
        raise replace(fault, column=fault.column + shift) from None


def _refuse_in_pieces(data: bytes, max_features: int) -> None:
    """Find the fault of a long line in little time and memory: pass over the pieces without one.

    Each piece is read as a line of its own, with the last index before it in front.
    """
    begin, head = 0, b""
    while begin < len(data):
        end = data.find(b" ", begin + PIECE)
        end = len(data) if end < 0 else end
        read = read_plain(head + data[begin:end] + b"\n", max_features)
        if read is not None:
            columns = read[1].columns
        else:
            try:
                line = parse_line(head + data[begin:end], max_features, in_pieces=False)
            except Fault:  # what follows the piece may tell more about its last token
                more, shift = head + data[begin : end + CONTEXT], begin - len(head)
                _parse_moved(more, max_features, shift, in_pieces=False)
                raise AssertionError("a piece is faulty, and its line is not") from None
            columns = np.array(line.indices if line else [])
        if not len(columns):
            return  # nothing but a label, so far: too odd for this
        begin, head = end, b"0 %d:0" % int(columns[-1])


def finite_number(text: bytes) -> float | None:
    """The number that `text` spells, or None where a label or value may not be spelled so."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return None if math.isinf(value) else value


def user_error(fault: Fault, path: str, line: int, text: bytes) -> UserError:
    """The fault as the user sees it: with its place, a piece of the line, and what to try."""
    before = text[: fault.column - 1].decode("utf-8", "replace")
    marked = text[fault.column - 1 :][: fault.width].decode("utf-8", "replace")[:EXCERPT]
    after = text[fault.column - 1 + fault.width :][:EXCERPT].rstrip(b"\r")
    shown = before + marked + after.decode("utf-8", "replace")
    place = Place(path, line, len(before) + 1, max(1, len(marked)), shown, fault.note)
    hint = hint_of(fault, path)
    if not fault.whole_file and path != STDIN_NAME:
        listed = f"`ahpatron inspect {shlex.quote(path)}` lists every faulty line"
        hint = f"{hint}; {listed}" if hint else listed
    return UserError(fault.problem, code=ExitCode.BAD_DATA, place=place, hint=hint)


def hint_of(fault: Fault, path: str) -> str | None:
    """What to try, with the path in it."""
    hint = fault.hint
    if hint is None or path == STDIN_NAME:
        return hint
    return hint.replace("FILE", shlex.quote(path), 1)


def _data_part(text: bytes) -> bytes:
    """The line without its comment and carriage return, checked to be one line of plain text."""
    if len(text) > MAX_LINE:
        _refuse_long_line(text)
    _refuse_other_encodings(text)
    text = text.removesuffix(b"\r")
    if (at := text.find(b"\r")) >= 0:
        problem = "lines must end in LF or CRLF, not in CR alone"
        note = "a carriage return inside the line"
        hint = r"convert it with `tr '\r' '\n' < FILE > fixed.svm`"
        raise Fault(at + 1, 1, "cr-only", problem, note, hint, whole_file=True)
    data = text.partition(b"#")[0]
    if match := _FORBIDDEN.search(data):
        _refuse_delimited(data)  # other alphabets are common in its header
        _refuse_byte(data, match.start())
    return data


def _refuse_long_line(text: bytes) -> NoReturn:
    """Name the format if the beginning gives it away (HTML, JSON, old Mac), else the length."""
    try:
        head = text[:4096]
        parse_line(head.rpartition(b" ")[0] or head)
    except Fault as fault:
        if fault.whole_file:
            raise
    limit = f"a line may hold {MAX_LINE >> 20} MiB at most"
    note = "the line starts here, and its end was not found"
    raise Fault(
        1, 1, "line-too-long", limit, note, "check that this is LIBSVM text", whole_file=True
    )


def _refuse_other_encodings(text: bytes) -> None:
    if encoding := foreign_encoding(text):
        name = encoding[:6]
        problem = f"the text must be ASCII or UTF-8, not {name}"
        hint = f"convert it with `iconv -f {encoding} -t UTF-8 FILE > fixed.svm`"
        raise Fault(1, 2, name.lower(), problem, f"{name} text", hint, whole_file=True)
    if (nul := text.find(b"\0")) >= 0:
        problem = "this is a binary file, not LIBSVM text"
        hint = "check whether the file is damaged, or the wrong one"
        raise Fault(nul + 1, 1, "nul", problem, "a NUL byte", hint, whole_file=True)


def _refuse_byte(data: bytes, at: int) -> NoReturn:
    note, width = f"the byte 0x{data[at]:02x}", 1
    if data[at] < 0x80:
        raise Fault(at + 1, width, "control", "a line must not hold control characters", note)
    character = data[at : at + 4].decode("utf-8", "replace")[0]
    if data.startswith(character.encode(), at):  # else it stands for bytes that are none
        note, width = f"the character U+{ord(character):04X}", len(character.encode())
    problem = "only comments may hold anything else than plain ASCII"
    raise Fault(at + 1, width, "not-ascii", problem, note)


def _label(token: _Token, data: bytes) -> float:
    value = finite_number(token.text)
    if value is not None:
        return value
    text = token.text
    if text.startswith(b"<<<<<<<"):
        note = "both versions of some lines are in the file"
        raise token.fault("conflict", "a merge conflict must be resolved first", note)
    if text[:1] in _FOREIGN:
        raise token.foreign(*_FOREIGN[text[:1]])
    _refuse_delimited(data)
    raise _not_a_number(token, "label")


def _refuse_delimited(data: bytes) -> None:
    """Name CSV and its kin: a delimiter, no `index:`, and no number at the start of the line."""
    from ahpatron_cli.data.csv_text import delimiter_of

    header = data[:PIECE].decode("utf-8", "replace").rstrip()
    first = _TOKEN.search(data)
    if first is None or delimiter_of(header) not in header or _INDEX.search(data):
        return
    if finite_number(first[0]) is None:
        token = _Token(first[0], first.start() + 1)
        raise token.foreign("csv", "CSV", "--label COLUMN reads it as a table")


def _long_index(digits: bytes) -> int:
    """An index of any number of digits; ten significant ones and more all count as too many."""
    significant = digits.lstrip(b"0")
    return int(significant[:20] or b"0")


def _refuse_index(
    digits: bytes, number: bytes, column: int, last: int, max_features: int
) -> NoReturn:
    index = digits.lstrip(b"0") or b"0"
    if _long_index(digits) > max_features:
        problem = f"feature indices must not exceed {max_features:,}"
        note, hint = f"{_show(index)} is over the limit", "raise --max-features if that is intended"
        raise _Token(digits, column).fault("index-limit", problem, note, hint)
    note = f"index {int(index)} comes after index {last}"
    hint = "sort the features of each line by index, and write each of them once"
    token = _Token(digits + b":" + number, column)
    raise token.fault("index-order", "feature indices must increase along a line", note, hint)


def _refuse_feature(token: _Token) -> NoReturn:
    """Say what is wrong with a token that is not `index:value`."""
    text = token.text
    index, _, value = text.partition(b":")
    if text.startswith(b"|"):
        raise token.foreign(*_FOREIGN[b"|"])
    if text.startswith(b"qid:"):
        problem = "qid must be a whole number, right after the label"
        raise token.fault("qid", problem, f"{_show(text)} is not")
    if not index or not value or b":" in value:
        hint = "a line has one label, and no space before or after a colon"
        note = f"{_show(text)} is not"
        raise token.fault("feature", "a feature must be index:value", note, hint)
    if not index.isdigit():
        note = f"{_show(index)} is not"
        problem = "a feature index must be a whole number, from 0 on"
        raise _Token(index, token.column).fault("index", problem, note)
    raise _not_a_number(_Token(value, token.column + len(index) + 1), "value")


def _not_a_number(token: _Token, what: str) -> Fault:
    """The fault of a label or a value; `what` is one of these words."""
    note = f"{_show(token.text)} is over 1.8e308"
    if not _NUMBER.fullmatch(token.text):
        note = f"{_show(token.text)} is not"
    return token.fault(what, f"a {what} must be a finite decimal number", note)


def _show(text: bytes) -> str:
    """A piece of the line as it is quoted in a note, not longer than helps."""
    shown = text[:24].decode("ascii", "replace")
    return f"`{shown}...`" if len(text) > 24 else f"`{shown}`"
