"""Delimited text (CSV, TSV, `;`) with a header, to LIBSVM text: what `ahpatron convert` does.

A first pass over a regular file finds out which columns hold numbers and which hold words; a second
one writes a line per row. Numbers keep their spelling. A column of words becomes one feature per
word, 1 where the word stands. Zeros are not written. Memory does not grow with the rows.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ahpatron_cli.data.source import MAX_LINE, Source, whole_lines
from ahpatron_cli.errors import ExitCode, Place, UserError, suggestion

BLOCK_BYTES = 1 << 18
DELIMITERS = ",;\t|"
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"})
"""Cells that mean: no value."""
MAX_WORDS = 1000
"""Different words of a column. More of them are an identifier or a text, and no category."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for on the command line."""

    label: str
    drop: tuple[str, ...] = ()
    positive: str | None = None
    missing_is_zero: bool = False


@dataclass(frozen=True)
class Column:
    """A column of features, and the LIBSVM indices that it becomes."""

    name: str
    place: int
    """Which cell of a row it is, from 0."""
    index: int
    """The feature index of its number, or of the first of its words."""
    words: tuple[str, ...] | None = None
    """The words that get an index each, in this order; None: it holds numbers."""

    @property
    def features(self) -> dict[int, str]:
        """Its indices, and what each stands for: `age`, or `job=clerk`."""
        if self.words is None:
            return {self.index: self.name}
        return {self.index + i: f"{self.name}={word}" for i, word in enumerate(self.words)}


@dataclass(frozen=True)
class Layout:
    """What the cells of a row become."""

    label_place: int
    label_texts: dict[str, str] | None
    """How each label is written; None: labels are numbers, and stay as they are."""
    columns: tuple[Column, ...]

    def features(self) -> dict[int, str]:
        """All indices, and what each stands for."""
        return {index: name for one in self.columns for index, name in one.features.items()}

    def describe(self) -> dict[str, dict[str, str]]:
        """What each feature index stands for, and how labels are written that are no numbers."""
        features = {str(index): name for index, name in self.features().items()}
        return {"features": features, "labels": dict(self.label_texts or {})}


@dataclass
class _Contents:
    """What the first pass has seen of a column."""

    cells: set[str] = field(default_factory=set)
    """The different ones; no more are added once there are too many."""
    word: tuple[str, int] | None = None
    """The first that is no number, and its line."""


class Table:
    """The rows of delimited text after its header, one at a time, each with its line."""

    def __init__(self, source: Source) -> None:
        self._path = source.name
        lines = self._lines(source)
        first = next(lines, "")
        self._cells = csv.reader(_with(first, lines), delimiter=_delimiter(first), strict=True)
        self.header = [name.strip() for name in self._next() or []]
        if len(self.header) < 2:
            raise self.error(
                1, "the first line names fewer than two columns", "is it CSV, with a header?"
            )
        twice = next((name for name in self.header if self.header.count(name) > 1), None)
        if twice is not None:
            raise self.error(1, f"two columns have the name {twice!r}", "rename one of them")

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        while (row := self._next()) is not None:
            line = self._cells.line_num
            if not row:
                continue
            if len(row) != len(self.header):
                problem = f"this row has {len(row)} cells, the header has {len(self.header)}"
                raise self.error(line, problem, "put cells that hold the delimiter in quotes")
            yield line, [cell.strip() for cell in row]

    def place(self, name: str) -> int:
        """Which cell of a row the column of this name is."""
        if name not in self.header:
            hint = suggestion(name, self.header) or f"the columns are {', '.join(self.header[:12])}"
            raise self.error(1, f"no column has the name {name!r}", hint)
        return self.header.index(name)

    def error(self, line: int, problem: str, hint: str | None = None) -> UserError:
        """A fault of this text."""
        return UserError(problem, code=ExitCode.BAD_DATA, place=Place(self._path, line), hint=hint)

    def no_value(self, line: int, place: int) -> UserError:
        """The error for an empty cell."""
        problem = f"column {self.header[place]!r} has no value here"
        return self.error(line, problem, "`--missing zero` writes such cells as 0")

    def no_number(self, line: int, place: int, cell: str) -> UserError:
        """The error for a word in a column of numbers."""
        name = self.header[place]
        problem = f"column {name!r} holds numbers, and here {cell[:40]!r}"
        return self.error(
            line, problem, f"correct the cell, or leave the column out: --drop {name}"
        )

    def _next(self) -> list[str] | None:
        try:
            return next(self._cells, None)
        except csv.Error as fault:
            raise self.error(self._cells.line_num, f"this is not delimited text: {fault}") from None

    def _lines(self, source: Source) -> Iterator[str]:
        for number, text in whole_lines(source, BLOCK_BYTES):
            if len(text) > MAX_LINE and b"\n" not in text:
                raise self.error(number, f"a line has more than {MAX_LINE >> 20} MiB")
            if b"\0" in text:
                raise self.error(number, "this is not text: it holds NUL bytes")
            try:
                yield from io.StringIO(text.decode("utf-8"), newline="\n")
            except UnicodeDecodeError as fault:
                line = number + text.count(b"\n", 0, fault.start)
                hint = "convert it: `iconv -f latin1 -t utf-8 FILE`"
                raise self.error(line, "this text is not UTF-8", hint) from None


def _with(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def _delimiter(header: str) -> str:
    """The sign that parts the header's names."""
    return max(DELIMITERS, key=header.count)


def number(text: str) -> float | None:
    """The number that a cell spells, as LIBSVM text spells numbers; None for anything else."""
    try:
        value = float(text) if "_" not in text and text.isascii() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def find_layout(table: Table, wanted: Wanted) -> Layout:
    """Look at every row: which columns hold numbers, which words, and which labels there are."""
    label_place, places = _places(table, wanted)
    seen = {place: _Contents() for place in places}
    labels: set[str] = set()
    rows = 0
    for line, row in table:
        rows += 1
        labels.add(_label(table, row, label_place, line))
        if len(labels) > MAX_WORDS and wanted.positive is None and number(row[label_place]) is None:
            problem = f"column {wanted.label!r} holds more than {MAX_WORDS:,} different words"
            raise table.error(line, problem, "is it the column of labels?")
        for place, contents in seen.items():
            cell = row[place]
            if cell in contents.cells:
                continue
            if cell in MISSING:
                if not wanted.missing_is_zero:
                    raise table.no_value(line, place)
                continue
            if contents.word is None and number(cell) is None:
                if len(contents.cells) > MAX_WORDS:
                    raise table.no_number(line, place, cell)
                contents.word = cell, line
            if len(contents.cells) <= MAX_WORDS:
                contents.cells.add(cell)
            elif contents.word is not None:
                name = table.header[place]
                problem = f"column {name!r} holds more than {MAX_WORDS:,} different words"
                raise table.error(contents.word[1], problem, f"leave it out: --drop {name}")
    if not rows:
        raise table.error(1, "there are no rows after the header")
    words = {
        place: None if contents.word is None else tuple(sorted(contents.cells))
        for place, contents in seen.items()
    }
    return Layout(label_place, _label_texts(table, labels, wanted), _columns(table, words))


def layout_of_numbers(table: Table, wanted: Wanted) -> Layout:
    """The layout where nothing can be read twice: all columns hold numbers."""
    label_place, places = _places(table, wanted)
    texts = None if wanted.positive is None else {wanted.positive: "+1"}
    return Layout(label_place, texts, _columns(table, dict.fromkeys(places)))


def libsvm_lines(table: Table, layout: Layout, wanted: Wanted) -> Iterator[str]:
    """A line of LIBSVM text for each row, and a comment before them that names the features."""
    names = " ".join(f"{index}={name}" for index, name in layout.features().items())
    yield f"# {_one_line(names)}\n"
    columns = [
        (column.place, column.index, None if column.words is None else _indices(column))
        for column in layout.columns
    ]
    for line, row in table:
        parts = [_written_label(table, layout, _label(table, row, layout.label_place, line), line)]
        for place, index, indices in columns:
            cell = row[place]
            if cell in MISSING:
                if not wanted.missing_is_zero:
                    raise table.no_value(line, place)
            elif indices is not None:
                if cell not in indices:
                    problem = f"column {table.header[place]!r} holds {cell[:40]!r}, which is new"
                    raise table.error(line, problem, "the file changed: start again")
                parts.append(indices[cell])
            else:
                value = number(cell)
                if value is None:
                    raise table.no_number(line, place, cell)
                if value:
                    parts.append(f"{index}:{cell.lstrip('+')}")
        yield " ".join(parts) + "\n"


def _indices(column: Column) -> dict[str, str]:
    assert column.words is not None
    return {word: f"{column.index + i}:1" for i, word in enumerate(column.words)}


def _places(table: Table, wanted: Wanted) -> tuple[int, list[int]]:
    """Where the labels are, and where the features."""
    gone = {table.place(name) for name in (wanted.label, *wanted.drop)}
    places = [place for place in range(len(table.header)) if place not in gone]
    if not places:
        raise table.error(1, "no column is left for the features")
    return table.place(wanted.label), places


def _columns(table: Table, words: dict[int, tuple[str, ...] | None]) -> tuple[Column, ...]:
    """Indices from 1 on, in the order of the columns."""
    columns: list[Column] = []
    index = 1
    for place, some in words.items():
        columns.append(Column(table.header[place], place, index, some))
        index += 1 if some is None else len(some)
    return tuple(columns)


def _label(table: Table, row: list[str], place: int, line: int) -> str:
    if row[place] in MISSING:
        raise table.error(line, "this row has no label", "remove the row")
    return row[place]


def _label_texts(table: Table, labels: Collection[str], wanted: Wanted) -> dict[str, str] | None:
    """Numbers stay; words become 0, 1, 2, … in their order; with --positive, +1 and -1."""
    if wanted.positive is not None:
        if wanted.positive not in labels:
            problem = f"no row has the label {wanted.positive!r} that --positive names"
            raise table.error(1, problem, f"the labels are {', '.join(sorted(labels)[:5])}")
        return {wanted.positive: "+1"}
    if all(number(label) is not None for label in labels):
        return None
    return {label: str(i) for i, label in enumerate(sorted(labels))}


def _written_label(table: Table, layout: Layout, label: str, line: int) -> str:
    if layout.label_texts is not None:
        return layout.label_texts.get(label, "-1")
    if number(label) is None:
        problem = f"the label {label[:40]!r} is not a number"
        hint = f"a pipe cannot be read twice: give `--positive {label}`, or a file"
        raise table.error(line, problem, hint)
    return label


def _one_line(text: str) -> str:
    """Names may hold line ends, and signs that LIBSVM readers would not print."""
    return " ".join(text.split()).encode("ascii", "backslashreplace").decode()
