"""Reader of JSON lines, an object per line: batches of named columns.

The text is decoded by msgspec, many lines at once. It accepts a few things that are refused here,
because they would be read as something else: a key that occurs twice (the last value would count),
several objects on a line or one on several lines (lines would be miscounted), and lists of anything
but numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from ahpatron_cli.data.cell_reader import OnFault, TextReader
from ahpatron_cli.data.cells import Cells, Values
from ahpatron_cli.data.frames import list_values
from ahpatron_cli.data.source import MAX_LINE, Source, json_list_hint, utf8_hint, whole_lines
from ahpatron_cli.errors import UserError, bad_data

CHUNK_BYTES = 1 << 18
"""Number of bytes that are read at a time."""
FEWEST_LINES = 256
"""Smallest number of lines of a file that are decoded together: each chunk has a cost per column,
so that wide tables would take a time in the square of their width."""
LARGEST_CHUNK = 1 << 22
"""Number of bytes from which a chunk of a file has enough lines in any case."""
MAX_DEPTH = 50
"""Largest number of objects inside each other."""
Row = dict[str, Any]
"""A decoded line."""
_NUMBER_TYPES = {int, float, type(None)}
"""Types of the cells that a list may have."""
_NESTED_TYPES = {dict, list}
_NO_UTF_8 = "the text must be UTF-8, without NUL bytes"


class NewColumnError(Exception):
    """JSON lines have a column that the first ones did not have."""


class JsonReader(TextReader):
    """Reader of JSON lines.

    A column is a path of keys, such as `a.b`, or `a.0` in a list. Columns are not known before they
    occur: `names` are those of a whole file, of the first lines of a pipe, or those that are given.
    """

    may_lack_columns = True
    row_format = "jsonl"
    expected: Set[str] | None = None
    """The columns that `batches` expects; any other one is a `NewColumnError`. None: all."""

    def __init__(
        self,
        source: Source,
        on_fault: OnFault = None,
        chunks: Iterator[bytes] | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(source.name)
        self._on_fault = on_fault
        if chunks is None:
            chunks = whole_lines(source, CHUNK_BYTES)
            if source.rereadable:  # lines of a pipe are not waited for
                chunks = _with_enough_lines(chunks)
        self._chunks = chunks
        self._line = 1
        self._decoder = msgspec.json.Decoder()
        self.names = list(names or ())

    def read_names(self) -> None:
        """Read all lines to know the names of all columns."""
        names = dict.fromkeys(self.names)
        for _, rows in self._sound_rows():
            found = _keys(rows)
            names |= dict.fromkeys(found)
        self.names = list(names)

    def read_first_names(self) -> None:
        """Read the first lines of a pipe to know the names of their columns."""
        first = next(self._chunks, b"")
        if first:
            rows, _ = self._rows(first, self._line)
            self.names = _keys(rows)
            self._chunks = chain([first], self._chunks)

    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        as_text = {*text, *copied}
        for lines, rows in self._sound_rows():
            if self.expected is not None:
                names = _keys(rows)
                if not self.expected >= set(names):
                    raise NewColumnError
            yield self._cells(rows, lines, used, text=as_text)

    @property
    def line(self) -> int:
        return self._line

    def chunks(self) -> Iterator[bytes]:
        return self._chunks

    def parse(self, raw: bytes, line: int, text: Collection[str]) -> Cells:
        rows, lines = self._rows(raw, line)
        names = _keys(rows)
        return self._cells(rows, lines, names, text=text)

    def _sound_rows(self) -> Iterator[tuple[list[int], list[Row]]]:
        """Yield the objects of each chunk of text with the numbers of their lines."""
        for raw in self._chunks:
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
        first_line = raw[: MAX_LINE + 1]
        if len(first_line) > MAX_LINE and b"\n" not in first_line:
            raise bad_data(f"a line may hold {MAX_LINE >> 20} MiB at most", self.path, first)
        whole = raw.removesuffix(b"\n")
        texts = whole.split(b"\n")
        lines = list(range(first, first + len(texts)))
        if not _are_braced(whole, len(texts)):
            texts, lines = _without_blanks(texts, first)
            whole = b"\n".join(texts)
            if texts and not _are_braced(whole, len(texts)):  # an object may go on in the next line
                raise self._fault(texts, lines)
        rows = self._decoded(whole, len(texts))
        if rows is None:
            raise self._fault(texts, lines)
        flat = rows
        if _has_nested(raw, rows):  # checked first: objects that are nested too deeply end here
            flat = [self._flat(row, line) for row, line in zip(rows, lines, strict=True)]
        if _may_have_duplicates(raw, rows):
            for text, line in zip(texts, lines, strict=True):
                self._refuse_duplicates(text, line)
        if any(name != name.strip() for name in _keys(flat)):
            flat = [self._with_bare_names(row, line) for row, line in zip(flat, lines, strict=True)]
        return flat, lines

    def _with_bare_names(self, row: Row, line: int) -> Row:
        """The cells of an object by names without spaces around them, as in a CSV header."""
        bare: Row = {}
        for name, cell in row.items():
            text = name.strip()
            if text in bare:
                raise self._two_values(text, line)
            bare[text] = cell
        return bare

    def _two_values(self, name: str, line: int) -> UserError:
        """The error for an object with two values for one column."""
        return bad_data(f"two values have the name {name!r}", self.path, line, field=name)

    def _decoded(self, text: bytes, lines: int) -> list[Row] | None:
        """The objects of so many lines, none of them blank; None if a line is not one object."""
        try:
            rows: list[Any] = self._decoder.decode_lines(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        types = set(map(type, rows))
        are_objects = types.issubset({dict})
        return rows if are_objects and len(rows) == lines else None

    def _fault(self, texts: Sequence[bytes], lines: Sequence[int]) -> UserError:
        """The error of the first of these lines that is no object."""
        for text, line in zip(texts, lines, strict=True):
            problem = self._problem(text)
            if problem:
                hint = None
                if text.startswith(b"["):
                    hint = json_list_hint("FILE")
                elif problem == _NO_UTF_8:
                    hint = utf8_hint(text, self.path, "utf8.jsonl")
                return bad_data(problem, self.path, line=line, hint=hint)
        return bad_data("each line must be one JSON object", self.path, lines[0])

    def _problem(self, text: bytes) -> str | None:
        """What is wrong with a line; None if nothing is."""
        if b"\0" in text:
            return _NO_UTF_8
        try:
            row = self._decoder.decode(text)
        except RecursionError:
            return f"objects may be nested {MAX_DEPTH} times at most"
        except UnicodeDecodeError:
            return _NO_UTF_8
        except msgspec.MsgspecError as error:
            reason = str(error).removeprefix("JSON is malformed: ").removesuffix(" - at `$[...]`")
            return f"this is no JSON object: {reason[:1].lower()}{reason[1:]}"
        if not isinstance(row, dict):
            return "each line must be one JSON object"
        return None

    def _refuse_duplicates(self, text: bytes, line: int) -> None:
        """Refuse an object with two equal keys."""

        def checked(pairs: list[tuple[str, Any]]) -> None:
            keys = [key for key, _ in pairs]
            for key, count in Counter(keys).items():
                if count > 1:
                    problem = f"the key {key!r} occurs twice"
                    raise bad_data(problem, self.path, line, field=key)

        json.loads(text, object_pairs_hook=checked, parse_int=_ignored, parse_float=_ignored)

    def _flat(self, row: Row, line: int) -> Row:
        """The cells of an object by their paths."""
        flat: Row = {}
        for name, cell in self._leaves(row, "", MAX_DEPTH, line=line):
            if name in flat:
                raise self._two_values(name, line)
            flat[name] = cell
        return flat

    def _leaves(self, row: Row, prefix: str, depth: int, *, line: int) -> Iterator[tuple[str, Any]]:
        """Yield the cells of an object, also those of nested ones, with their paths."""
        if not depth:
            problem = f"objects may be nested {MAX_DEPTH} times at most"
            raise bad_data(problem, self.path, line)
        for key, cell in row.items():
            name = prefix + key
            if isinstance(cell, dict | list) and name.strip() in self.undivided:
                problem = f"{name!r}, a label or an id, must be one value, not an object or a list"
                raise bad_data(problem, self.path, line, field=name)
            if isinstance(cell, dict):
                yield from self._leaves(cell, f"{name}.", depth - 1, line=line)
            elif isinstance(cell, list):
                if not _are_numbers(cell):
                    problem = f"{name!r} is a list of something else than numbers"
                    raise bad_data(problem, self.path, line, field=name)
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
            cells = _cells_of(rows, name)
            try:
                columns[name] = list_values(cells, name, self.path, as_text=name in text)
            except UserError as error:
                sizes = list(map(_size, cells))
                largest = sizes.index(max(sizes))
                raise bad_data(error.problem, self.path, lines[largest], field=name) from None
        numbers = np.array(lines, dtype=np.int64)
        return Cells(numbers, columns)


def _with_enough_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks of text that end at a line end, joined until they have enough lines."""
    held: list[bytes] = []
    lines = 0
    size = 0
    for chunk in chunks:
        held.append(chunk)
        lines += chunk.count(b"\n")
        size += len(chunk)
        if lines >= FEWEST_LINES or size >= LARGEST_CHUNK:
            yield b"".join(held)
            held = []
            lines = 0
            size = 0
    if held:
        yield b"".join(held)


def _keys(rows: Sequence[Row]) -> list[str]:
    """All keys of these objects, in the order in which they occur."""
    orders = dict.fromkeys(map(tuple, rows))  # usually one
    keys = chain.from_iterable(orders)
    return list(dict.fromkeys(keys))


def _cells_of(rows: Sequence[Row], name: str) -> list[Any]:
    """The cells of a column; None where it is absent."""
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]


def _without_blanks(texts: Sequence[bytes], first: int) -> tuple[list[bytes], list[int]]:
    """The lines that are not blank, without spaces around them, and their numbers."""
    found: list[bytes] = []
    lines: list[int] = []
    for line, text in enumerate(texts, first):
        bare = text.strip(b" \t\r")
        if bare:
            found.append(bare)
            lines.append(line)
    return found, lines


def _are_braced(text: bytes, lines: int) -> bool:
    """Whether each of these lines begins and ends with a brace."""
    if not text.startswith(b"{"):
        return False
    if not text.endswith(b"}"):
        return False
    between = text.count(b"}\n{")
    return between == lines - 1


def _has_nested(raw: bytes, rows: Sequence[Row]) -> bool:
    """Whether a cell is an object or a list."""
    if b"[" not in raw and raw.count(b"{") == len(rows):
        return False
    of_rows = map(dict.values, rows)
    types = map(type, chain.from_iterable(of_rows))
    return not _NESTED_TYPES.isdisjoint(types)


def _may_have_duplicates(raw: bytes, rows: Sequence[Row]) -> bool:
    """Whether keys may occur twice: if there are more colons than keys and colons in texts."""
    if b"\\u003" in raw:
        return True
    colons = raw.count(b":")
    keys = sum(map(len, rows))
    if keys == colons:
        return False
    return colons != sum(map(_colons, rows))


def _are_numbers(cells: Sequence[Any]) -> bool:
    """Whether these cells of a list are numbers or null."""
    types = set(map(type, cells))
    return types <= _NUMBER_TYPES


def _size(cell: object) -> int:
    """Size of an integer; 0 for all else."""
    if not isinstance(cell, int):
        return 0
    return abs(cell)


def _colons(cell: Any) -> int:
    """Number of colons in the text of a decoded value."""
    if isinstance(cell, str):
        return cell.count(":")
    if isinstance(cell, dict):
        of_keys = sum(map(_colons, cell))
        of_cells = sum(map(_colons, cell.values()))
        return len(cell) + of_keys + of_cells
    if isinstance(cell, list):
        return sum(map(_colons, cell))
    return 0


def _ignored(text: str) -> None:
    """In place of a number whose value does not matter."""
