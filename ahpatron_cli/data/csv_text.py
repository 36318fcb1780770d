"""Reader of CSV and TSV text: batches of named columns."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.data.source import BYTE_ORDER_MARK, MAX_LINE
from ahpatron_cli.errors import bad_data

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None", "?"})
"""Cells that stand for a missing value."""
DELIMITERS = ",;\t|"
PIECE = 1 << 19
"""Number of bytes requested at a time."""
_EMPTY = "-nan"
"""Placeholder for empty cells while NumPy parses."""
_ODD = '"\r\x0b\x0c\x1c\x1d\x1e\x1f'
"""Characters that NumPy's parser would misinterpret."""
_QUOTED = re.compile(r'"[^"]*"')

Values: TypeAlias = Floats | list[str]
"""Values of a column: floats (NaN if missing), or text without surrounding spaces."""


class Cells(NamedTuple):
    """Consecutive rows of a table: line number of each row, and columns by name."""

    lines: Integers
    columns: dict[str, Values]


class CsvReader:
    """Reader of CSV or TSV text with a header; yields records as soon as they are complete.

    `read(size)` returns up to `size` available bytes, and b"" at the end of the input.
    """

    def __init__(self, read: Callable[[int], bytes], path: str) -> None:
        self.path, self._read, self._line = path, read, 1
        pieces = self._records()
        first = next(pieces, b"\n")
        text = self._decoded(first)
        self._delimiter = delimiter_of(text.partition("\n")[0])
        lines, header = next(self._parsed(text))
        self.names = [name.strip() for name in header]
        self._check_header()
        self._line += lines
        self._pieces = chain(filter(None, first.split(b"\n", lines)[-1:]), pieces)

    def batches(self, used: set[str], text: set[str]) -> Iterator[Cells]:
        """Batches of the `used` columns, as floats if all cells are numbers and not in `text`."""
        for raw in self._pieces:
            cells, count = self._plain(raw, used, text), raw.count(b"\n")
            if cells is None or len(cells.lines) != count:  # blank lines, for example
                cells = self._any(raw, used, text)
            self._line += count
            if len(cells.lines):
                yield cells

    def _records(self) -> Iterator[bytes]:
        """Yield pieces of text that end at a line end outside of quotes."""
        held, mark = b"", BYTE_ORDER_MARK
        while piece := self._read(PIECE):
            held += piece
            end = held.rfind(b"\n") + 1
            if end and b'"' in held:
                letters = np.frombuffer(held, np.uint8)
                inside = np.cumsum(letters == ord('"'), dtype=np.uint8) & 1
                end = int(np.flatnonzero((letters == ord("\n")) > inside).max(initial=-1)) + 1
            if end:
                yield held[:end].removeprefix(mark)
                held, mark = held[end:], b""
            elif len(held) > MAX_LINE:
                break
        if len(held) > MAX_LINE or held.count(b'"') % 2:
            size = f"a line may hold {MAX_LINE >> 20} MiB at most"
            problem = "a double quote opens here and does not close" if b'"' in held else size
            raise bad_data(problem, self.path, self._line)
        if held:
            yield held.removeprefix(mark) + b"\n"

    def _plain(self, raw: bytes, used: set[str], text: set[str]) -> Cells | None:
        """Parse text without quotes by NumPy; None if it has anything unusual."""
        content, sign = self._decoded(raw), self._delimiter
        if "\r" in content:
            content = content.replace("\r\n", "\n")
        if any(odd in content for odd in _ODD) or content.isspace():
            return None
        columns: dict[str, Values] = {}
        spaces = " " in content
        if used <= text:  # all text: splitting is three times as fast
            letters, width = np.frombuffer(raw, np.uint8), len(self.names)
            ends = np.flatnonzero(letters[(letters == ord(sign)) | (letters == 10)] == 10)
            if (ends != width * np.arange(1, len(ends) + 1) - 1).any():
                return None
            cells = content.replace("\n", sign).split(sign)[:-1]
            cells = list(map(str.strip, cells)) if spaces else cells
            columns |= {name: cells[i::width] for i, name in enumerate(self.names) if name in used}
            return Cells(self._line + np.arange(len(ends)), columns)
        kinds = ["U1" if name not in used else "O" if name in text else "f8" for name in self.names]
        dtype = [(f"f{number}", kind) for number, kind in enumerate(kinds)]
        read: Callable[..., Any] = partial(
            np.loadtxt, dtype=dtype, delimiter=sign, comments=None, ndmin=1
        )
        filled = False
        try:
            found = read(content.split("\n"))
        except ValueError:  # often due to an empty cell
            for pair in (sign * 2, sign * 2, sign + "\n", "\n" + sign):
                content = content.replace(pair, f"{pair[0]}{_EMPTY}{pair[1]}")
            content, filled = (_EMPTY * content.startswith(sign)) + content, True
            try:
                found = read(content.split("\n"))
            except ValueError:
                return None
        for name, (field, kind) in zip(self.names, dtype, strict=True):
            if kind == "f8":
                columns[name] = values = np.ascontiguousarray(found[field])
                if np.isinf(values).any():
                    return None
            elif kind == "O":
                cells = found[field].tolist()
                if filled or spaces:
                    cells = [cell.strip().removeprefix(_EMPTY) for cell in cells]
                columns[name] = cells
        return Cells(self._line + np.arange(len(found)), columns)

    def _any(self, raw: bytes, used: set[str], text: set[str]) -> Cells:
        """Parse any text by the csv module."""
        lines, rows, before = [], [], 0
        for after, row in self._parsed(self._decoded(raw)):
            if row and len(row) != len(self.names):
                problem = f"this row has {len(row)} cells, the header has {len(self.names)}"
                hint = f"put cells that contain {self._delimiter!r} in double quotes"
                if len(row) < len(self.names):
                    hint = "the line may be cut off; complete or delete it"
                raise bad_data(problem, self.path, self._line + before, hint)
            if row:
                lines.append(self._line + before)
                rows.append([cell.strip() for cell in row])
            before = after
        columns: dict[str, Values] = {}
        for number, name in enumerate(self.names):
            if name in used:
                cells = [row[number] for row in rows]
                columns[name] = cells if name in text else _numbers_or_text(cells)
        return Cells(np.array(lines, dtype=np.int64), columns)

    def _parsed(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of the text, each with the number of lines up to its end."""
        source = io.StringIO(text, newline="\n")
        reader = csv.reader(source, delimiter=self._delimiter, strict=True, skipinitialspace=True)
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            problem, hint = f"this is not CSV: {error}", "write a quote in a quoted cell twice"
            if "new-line" in str(error):
                hint = rf"convert it with `tr '\r' '\n' < {shlex.quote(self.path)} > fixed.csv`"
            line = self._line + reader.line_num - 1
            raise bad_data(problem, self.path, line, hint) from None

    def _decoded(self, raw: bytes) -> str:
        """Decode bytes, which must be UTF-8 without NUL bytes."""
        at = raw.find(b"\0")
        try:
            text = raw.decode()
        except UnicodeDecodeError as fault:
            at = fault.start
        if at >= 0:
            encoding = "UTF-16" if b"\0" in raw else "WINDOWS-1252"
            command = f"iconv -f {encoding} -t UTF-8 {shlex.quote(self.path)} > utf8.csv"
            hint = f"if it is {encoding} text, convert it: `{command}`"
            line = self._line + raw.count(b"\n", 0, at)
            raise bad_data("the text must be UTF-8, without NUL bytes", self.path, line, hint)
        return text

    def _check_header(self) -> None:
        """Refuse a first line that is not a header with distinct column names."""
        names, values = self.names, [number(name) for name in self.names]
        is_row = None not in values and names != [str(i) for i in range(len(names))]
        if not any(names):
            problem = "there is no header: the first line must name the columns"
        elif is_row or any(value is not None and value % 1 for value in values):
            problem = "the first line looks like a row: there is no header"
        elif twice := [name for name, count in Counter(names).items() if count > 1]:
            problem = f"two columns have the name {twice[0]!r}"
        else:
            return
        header = shlex.quote(self._delimiter.join(f"c{i + 1}" for i in range(len(names))))
        hint = f"name the columns: `(echo {header}; cat {shlex.quote(self.path)}) > named.csv`"
        raise bad_data(problem, self.path, 1, hint)


def delimiter_of(header: str) -> str:
    """The delimiter of a header line."""
    return max(DELIMITERS, key=_QUOTED.sub("", header).count)


def number(cell: str) -> float | None:
    """Parse a cell as a finite number; None if it is none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) < np.inf and "_" not in cell and cell.isascii() else None


def _numbers_or_text(cells: Sequence[str]) -> Values:
    """Cells as floats (NaN if missing); the cells unchanged if one is not a number."""
    values = [np.nan if cell in MISSING else number(cell) for cell in cells]
    return list(cells) if None in values else np.array(values, dtype=np.float64)
