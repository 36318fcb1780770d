"""Reader of JSON lines, an object per line: batches of named columns.

The text is decoded by msgspec, many lines at once. It accepts a few things that are refused here,
because they would be read as something else: a key that occurs twice (the last value would count),
several objects on a line or one on several lines (lines would be miscounted), and lists of anything
but numbers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from ahpatron_cli.data.cells import Cells, Values
from ahpatron_cli.data.csv_text import OnFault
from ahpatron_cli.data.frames import list_values
from ahpatron_cli.data.source import MAX_LINE, Source, json_list_hint, whole_lines
from ahpatron_cli.errors import UserError, bad_data

PIECE = 1 << 18
"""Number of bytes that are read at a time."""
MAX_DEPTH = 50
"""Largest number of objects inside each other."""
Row = dict[str, Any]
"""A decoded line."""


class JsonReader:
    """Reader of JSON lines with the interface of `CsvReader`.

    A column is a path of keys, such as `a.b`, or `a.0` in a list. Columns are not known before they
    occur: `names` are those of a whole file, of the first lines of a pipe, or those that are given.
    """

    may_lack_columns = True

    def __init__(
        self,
        source: Source,
        on_fault: OnFault = None,
        pieces: Iterator[bytes] | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        self.path = source.name
        self.padded: set[str] = set()
        self.leading_zeros: set[str] = set()
        self.thousands: set[str] = set()
        self._on_fault = on_fault
        self._pieces = pieces or whole_lines(source, PIECE)
        self._line = 1
        self._decoder = msgspec.json.Decoder()
        self.names = list(names or ())

    def read_names(self) -> None:
        """Read all lines to know the names of all columns."""
        names: dict[str, None] = dict.fromkeys(self.names)
        for _, rows in self._sound_rows():
            names.update(dict.fromkeys(_keys(rows)))
        self.names = list(names)

    def read_first_names(self) -> None:
        """Read the first lines of a pipe to know the names of their columns."""
        first = next(self._pieces, b"")
        if first:
            rows, _ = self._rows(first, self._line)
            self.names = _keys(rows)
            self._pieces = chain([first], self._pieces)

    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        """Batches of the `used` columns, those in `text` as text; see `CsvReader.batches`."""
        for lines, rows in self._sound_rows():
            yield self._cells(rows, lines, used, text={*text, *copied})

    def pieces(self) -> Iterator[bytes]:
        """The text in pieces that end at a line end, for `parse`."""
        return self._pieces

    def parse(self, raw: bytes, line: int, text: Collection[str]) -> Cells:
        """The cells of all columns in these lines; a `UserError` if one line is faulty."""
        rows, lines = self._rows(raw, line)
        return self._cells(rows, lines, _keys(rows), text)

    def _sound_rows(self) -> Iterator[tuple[list[int], list[Row]]]:
        """Yield the objects of each piece of text with the numbers of their lines."""
        for raw in self._pieces:
            if self._on_fault is None:
                rows, lines = self._rows(raw, self._line)
            else:
                rows, lines = self._rows_without_faults(raw)
            self._line += raw.count(b"\n")
            if rows:
                yield lines, rows

    def _rows_without_faults(self, raw: bytes) -> tuple[list[Row], list[int]]:
        """The objects of these lines, except of those that are faulty, which are reported."""
        assert self._on_fault is not None
        rows: list[Row] = []
        lines: list[int] = []
        for line, text in enumerate(raw.split(b"\n"), self._line):
            try:
                found, numbers = self._rows(text, line)
            except UserError as fault:
                self._on_fault(fault)
                continue
            rows += found
            lines += numbers
        return rows, lines

    def _rows(self, raw: bytes, first: int) -> tuple[list[Row], list[int]]:
        """The flat objects of these lines, with the numbers of their lines."""
        if len(raw) > MAX_LINE and raw.find(b"\n") % (len(raw) + 1) > MAX_LINE:
            raise bad_data(f"a line may hold {MAX_LINE >> 20} MiB at most", self.path, first)
        texts, lines = _separate(raw, first)
        try:
            rows: list[Any] = self._decoder.decode_lines(b"\n".join(texts))
            if len(rows) != len(texts) or set(map(type, rows)) - {dict}:
                raise ValueError
            if not all(map(_is_braced, texts)):  # else an object may go on in the next line
                raise ValueError
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._fault(texts, lines) from None
        if _may_have_duplicates(raw, rows):
            self._refuse_duplicates(texts, lines)
        types = {type(cell) for row in rows for cell in row.values()}
        if types & {dict, list}:
            rows = [self._flat(row, line) for row, line in zip(rows, lines, strict=True)]
        return rows, lines

    def _fault(self, texts: Sequence[bytes], lines: Sequence[int]) -> UserError:
        """The error of the first of these lines that is no object."""
        for text, line in zip(texts, lines, strict=True):
            problem = self._problem(text)
            if problem:
                hint = None
                if text.startswith(b"["):
                    hint = json_list_hint("FILE")
                return bad_data(problem, self.path, line=line, hint=hint)
        return bad_data("each line must be one JSON object", self.path, lines[0])

    def _problem(self, text: bytes) -> str | None:
        """What is wrong with a line; None if nothing is."""
        try:
            row = self._decoder.decode(text)
        except RecursionError:
            return f"objects may be nested {MAX_DEPTH} times at most"
        except UnicodeDecodeError:
            return "the text must be UTF-8"
        except msgspec.MsgspecError as error:
            reason = str(error).removeprefix("JSON is malformed: ").removesuffix(" - at `$[...]`")
            return f"this is no JSON object: {reason[:1].lower()}{reason[1:]}"
        if not isinstance(row, dict):
            return "each line must be one JSON object"
        return None

    def _refuse_duplicates(self, texts: Sequence[bytes], lines: Sequence[int]) -> None:
        """Refuse an object with two equal keys."""
        for text, line in zip(texts, lines, strict=True):

            def checked(pairs: list[tuple[str, Any]], line: int = line) -> None:
                keys = [key for key, _ in pairs]
                for key in keys:
                    if keys.count(key) > 1:
                        raise bad_data(f"the key {key!r} occurs twice", self.path, line)

            json.loads(text, object_pairs_hook=checked, parse_int=_ignored, parse_float=_ignored)

    def _flat(self, row: Row, line: int) -> Row:
        """The cells of an object by their paths."""
        flat: Row = {}
        for name, cell in self._leaves(row, "", MAX_DEPTH, line=line):
            if name in flat:
                raise bad_data(f"two values have the name {name!r}", self.path, line)
            flat[name] = cell
        return flat

    def _leaves(self, row: Row, prefix: str, depth: int, *, line: int) -> Iterator[tuple[str, Any]]:
        """Yield the cells of an object, also those of nested ones, with their paths."""
        if not depth:
            problem = f"objects may be nested {MAX_DEPTH} times at most"
            raise bad_data(problem, self.path, line)
        for key, cell in row.items():
            name = prefix + key
            if isinstance(cell, dict):
                yield from self._leaves(cell, f"{name}.", depth - 1, line=line)
            elif isinstance(cell, list):
                if set(map(type, cell)) - {int, float, type(None)}:
                    problem = f"{name!r} is a list of something else than numbers"
                    raise bad_data(problem, self.path, line)
                for number, one in enumerate(cell):
                    yield f"{name}.{number}", one
            else:
                yield name, cell

    def _cells(
        self, rows: Sequence[Row], lines: Sequence[int], used: Iterable[str], text: Collection[str]
    ) -> Cells:
        """The `used` columns of these objects."""
        columns: dict[str, Values] = {}
        for name in used:
            cells = [row.get(name) for row in rows]
            try:
                columns[name] = list_values(cells, name, self.path, as_text=name in text)
            except UserError as error:
                row = max(range(len(cells)), key=lambda row: _size(cells[row]))
                raise bad_data(error.problem, self.path, lines[row]) from None
        return Cells(np.array(lines, dtype=np.int64), columns)


def _keys(rows: Sequence[Row]) -> list[str]:
    """All keys of these objects, in the order in which they occur."""
    first = rows[0].keys() if rows else {}.keys()
    if all(row.keys() == first for row in rows):
        return list(first)
    return list(dict.fromkeys(key for row in rows for key in row))


def _separate(raw: bytes, first: int) -> tuple[list[bytes], list[int]]:
    """The lines that are not blank, without spaces around them, and their numbers."""
    texts = raw.split(b"\n")
    if not texts[-1]:
        texts.pop()
    count = len(texts)
    compact = raw.count(b"}\n{") == count - 1 and raw.startswith(b"{")
    if compact and texts and texts[-1].endswith(b"}"):
        return texts, list(range(first, first + count))
    found: list[bytes] = []
    lines: list[int] = []
    for line, text in enumerate(texts, first):
        bare = text.strip(b" \t\r")
        if bare:
            found.append(bare)
            lines.append(line)
    return found, lines


def _is_braced(text: bytes) -> bool:
    """Whether a line begins and ends with a brace."""
    return text.startswith(b"{") and text.endswith(b"}")


def _may_have_duplicates(raw: bytes, rows: Sequence[Row]) -> bool:
    """Whether keys may occur twice: if there are more colons than keys and colons in texts."""
    if b"\\u003" in raw.lower():
        return True
    colons = raw.count(b":")
    keys = sum(map(len, rows))
    if keys == colons:
        return False
    return colons != sum(map(_colons, rows))


def _size(cell: object) -> int:
    """Size of an integer; 0 for all else."""
    return abs(cell) if isinstance(cell, int) else 0


def _colons(cell: Any) -> int:
    """Number of colons in the text of a decoded value."""
    if isinstance(cell, str):
        return cell.count(":")
    if isinstance(cell, dict):
        inner = sum(map(_colons, cell.values())) + sum(key.count(":") for key in cell)
        return int(len(cell) + inner)
    if isinstance(cell, list):
        return sum(map(_colons, cell))
    return 0


def _ignored(text: str) -> None:
    """In place of a number whose value does not matter."""
