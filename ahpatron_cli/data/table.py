"""Delimited text (CSV, TSV, `;`) with a header, read as cells in bounded memory."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ahpatron_cli.data.source import MAX_LINE, STDIN_NAME, Source, foreign_encoding, whole_lines
from ahpatron_cli.errors import Remedy, UserError, bad_data, suggestion

KIND = "delimited text"
BLOCK_BYTES = 1 << 18
DELIMITERS = {
    ",": "CSV",
    ";": "CSV with semicolons",
    "\t": "tab-separated text",
    "|": "text separated by |",
}
BATCH_ROWS, BATCH_CHARACTERS = 200, 1 << 20
"""Rows that are converted together, column by column, which is quicker than cell by cell."""
MAX_NAMED_IN_HINT = 12

_LABEL_NAMES = ("label", "labels", "class", "target", "y", "outcome", "response", "diagnosis")
_QUOTED = re.compile(r'"[^"]*"')
_LIBSVM_LINE = re.compile(
    r"(?:[^\s:]+\s+)?[0-9]+:[^\s:]+(?:\s+[0-9]+:[^\s:]+)*(?:\s*#.*)?|# (?:labels|features):.*"
)


class Batch(NamedTuple):
    """Some rows: the line of each, and their cells by column."""

    lines: tuple[int, ...]
    cells: tuple[tuple[str, ...], ...]


class Table:
    """The rows of delimited text after its header."""

    def __init__(self, source: Source) -> None:
        self.path = source.name
        self.file = "FILE" if source.name == STDIN_NAME else shlex.quote(source.name)
        """The path in commands that hints give."""
        self._line = 1
        self._characters = 0
        """Read so far."""
        lines = self._lines(source)
        first = next(lines, "")
        self.delimiter = delimiter_of(first)
        self._cells = csv.reader(
            chain([first] if first else [], lines),
            delimiter=self.delimiter,
            strict=True,
            skipinitialspace=True,
        )
        self.header = [name.strip() for name in self._next() or []]
        self._check_header()

    def batches(self) -> Iterator[Batch]:
        """All rows, a limited number at a time."""
        while lines_and_rows := list(self._some_rows()):
            lines, rows = zip(*lines_and_rows, strict=True)
            yield Batch(lines, tuple(zip(*rows, strict=True)))

    def _some_rows(self) -> Iterator[tuple[int, list[str]]]:
        width = len(self.header)
        end = self._characters + BATCH_CHARACTERS
        for _ in range(BATCH_ROWS):
            row = self._next()
            if row is None:
                return
            if len(row) == width:
                yield self._line, row
            elif row:
                problem = f"this row has {len(row)} cells, the header has {width}"
                hint = f"put cells that hold {self.delimiter!r} in double quotes"
                raise self.error(self._line, problem, hint if len(row) > width else None)
            if self._characters > end:
                return

    def place(self, name: str) -> int:
        """Which cell of a row the column of this name is."""
        if name not in self.header:
            names = ", ".join(self.header[:MAX_NAMED_IN_HINT])
            more = ", …" if len(self.header) > MAX_NAMED_IN_HINT else ""
            hint = suggestion(name, self.header) or f"the columns are {names}{more}"
            raise self.error(1, f"no column has the name {name!r}", hint)
        return self.header.index(name)

    def error(self, line: int, problem: str, hint: str | None = None) -> UserError:
        """A fault of this text."""
        return bad_data(problem, self.path, line, hint)

    def _next(self) -> list[str] | None:
        self._line = self._cells.line_num + 1  # a quoted cell may go on over several lines
        try:
            return next(self._cells, None)
        except csv.Error as error:
            fault = str(error)
        problem = f"a quoted cell must end at its closing quote: {fault}"
        hint = "write a double quote inside a quoted cell twice"
        if "new-line" in fault:
            problem = "lines must end in LF or CRLF, not in CR alone"
            hint = rf"convert it with `tr '\r' '\n' < {self.file} > fixed.csv`"
        if "unexpected end" in fault or "field limit" in fault:
            problem = "a double quote opens here and does not close"
            hint = "close it, or double it if it is part of the text"
        raise self.error(self._line, problem, hint)

    def _check_header(self) -> None:
        names = self.header
        if not names:
            holds = "starts with a blank line" if self._characters else "is empty"
            hint = "the first line must name the columns, such as `age,job,label`"
            raise self.error(1, f"there is no header: the file {holds}", hint)
        if len(names) < 2 and _LIBSVM_LINE.fullmatch(names[0]):
            hint = f"play it without converting: `ahpatron run {self.file}`"
            raise self.error(1, f"this is LIBSVM text, not {KIND}", hint)
        if _nameless(names):
            hint = _naming_hint(names, self.delimiter, self.file)
            raise self.error(1, "the first line must hold names, not numbers", hint)
        if twice := [name for name in names if names.count(name) > 1]:
            raise self.error(1, f"two columns have the name {twice[0]!r}", "rename one of them")

    def _lines(self, source: Source) -> Iterator[str]:
        number = 1
        for text in whole_lines(source, BLOCK_BYTES):
            if len(text) > MAX_LINE and b"\n" not in text:
                raise self.error(number, f"a line may hold {MAX_LINE >> 20} MiB at most")
            if (encoding := foreign_encoding(text)) is not None:
                raise self._not_utf_8(number, encoding, f", not {encoding[:6]}")
            if (nul := text.find(b"\0")) >= 0:
                line = number + text.count(b"\n", 0, nul)
                raise self.error(line, "this is a binary file: it holds NUL bytes")
            try:
                decoded = text.decode("utf-8")
            except UnicodeDecodeError as fault:
                line = number + text.count(b"\n", 0, fault.start)
                raise self._not_utf_8(line, "WINDOWS-1252") from None
            for line_text in io.StringIO(decoded, newline="\n"):
                self._characters += len(line_text)
                number += 1
                yield line_text

    def _not_utf_8(self, line: int, encoding: str, but: str = "") -> UserError:
        hint = f"convert it with `iconv -f {encoding} -t UTF-8 {self.file} > fixed.csv`"
        return self.error(line, f"the text must be UTF-8{but}", hint)


def delimiter_of(header: str) -> str:
    """The sign that parts the names of a header."""
    return max(DELIMITERS, key=_QUOTED.sub("", header).count)


def _nameless(header: list[str]) -> bool:
    """Whether the first line is a row: all numbers, but for 0, 1, 2, … (which pandas writes)."""
    if any(number(name) is None for name in header):
        return False
    return not any(header == [str(i + start) for i in range(len(header))] for start in (0, 1))


def _naming_hint(header: list[str], delimiter: str, file: str) -> str:
    """How to put names before the rows of a file."""
    names = shlex.quote(delimiter.join(f"c{i + 1}" for i in range(len(header))))
    return f"name the columns first: `(echo {names}; cat {file}) > named.csv`"


def conversion(header: str) -> Remedy:
    """How to make LIBSVM text of delimited text with this first line."""
    delimiter = delimiter_of(header)
    cells = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True))
    names = [name.strip() for name in cells]
    if _nameless(names):
        before = _naming_hint(names, delimiter, "FILE") + "; then convert it: "
        return Remedy(before, "ahpatron convert", "named.csv", label=f"c{len(names)}")
    found = [name for name in names if name.lower() in _LABEL_NAMES]
    label = shlex.quote((found or names[-1:])[0])
    return Remedy("convert it: ", "ahpatron convert", label=label)


def number(text: str) -> float | None:
    """The number that a cell spells, as LIBSVM text spells numbers; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value) or "_" in text or not text.isascii():
        return None
    return value


def plain_numbers(cells: Sequence[str]) -> list[float] | None:
    """`number` of all of these cells, quickly; None where that takes a look at each of them."""
    text = "".join(cells)
    if not (text.isascii() and text.isprintable()) or " " in text or "_" in text:
        return None
    try:
        values = list(map(float, cells))
    except ValueError:
        return None
    return values if math.isfinite(sum(values)) else None
