"""Delimited text (CSV, TSV, `;`) with a header, to LIBSVM text: what `ahpatron convert` does.

A first pass over a regular file finds out which columns hold numbers and which hold words; a second
pass writes a line per row. Numbers keep their spelling. A column of words becomes one feature per
word, 1 in the rows that hold it. Zeros are not written. Memory does not grow with the rows.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ahpatron_cli.data.source import MAX_LINE, STDIN_NAME, Source, foreign_encoding, whole_lines
from ahpatron_cli.errors import UserError, bad_data, suggestion

KIND = "delimited text"
BLOCK_BYTES = 1 << 18
DELIMITERS = {
    ",": "CSV",
    ";": "CSV with semicolons",
    "\t": "tab-separated text",
    "|": "text separated by |",
}
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"})
"""Cells that mean: no value."""
MAX_WORDS = 1000
"""Different words of a column. More of them are an identifier or a text, and no category."""
MAX_WORD_CHARACTERS = 1000
MAX_REMEMBERED_CELLS = 4096
"""Different cells of a column of words whose text is looked up, and not computed again."""
BATCH_ROWS, BATCH_CHARACTERS = 200, 1 << 20
"""Rows that are converted together, column by column, which is quicker than cell by cell."""
MAX_NAMED_IN_HINT = 12
NO_PIPE_HINT = "give a file in place of standard input, or an earlier mapping (--like MAP.json)"
CONVERT_STAGE = "ahpatron convert "
RUN_STAGE = " | ahpatron run - --sigma auto --scale standard"
"""The two ends of the command that plays delimited text."""
UNLABELLED = "?"
"""Stands for the label of a row that has none."""
MAX_COMMENT_CHARACTERS = 4096

_LABEL_NAMES = ("label", "labels", "class", "target", "y", "outcome", "response", "diagnosis")
_QUOTED = re.compile(r'"[^"]*"')
_LIBSVM_LINE = re.compile(
    r"(?:[^\s:]+\s+)?[0-9]+:[^\s:]+(?:\s+[0-9]+:[^\s:]+)*(?:\s*#.*)?|# (?:labels|features):.*"
)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")


@dataclass(frozen=True)
class Wanted:
    """What is asked for on the command line."""

    label: str
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Columns to be taken as words although they hold numbers."""
    positive: str | None = None
    missing_is_zero: bool = False
    like: str | None = None
    """The file of an earlier mapping that is applied."""


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


@dataclass(frozen=True)
class Layout:
    """What the cells of a row become."""

    label: str
    label_place: int | None
    """None: there is no column of labels, and rows are written without."""
    label_texts: dict[str, str] | None
    """How each label is written; None: labels stay as they are."""
    columns: tuple[Column, ...]

    @property
    def other_labels(self) -> str | None:
        """How labels that `label_texts` lacks are written, after --positive; None: not at all."""
        return "-1" if self.label_texts and [*self.label_texts.values()] == ["+1"] else None

    def describe(self) -> dict[str, object]:
        """What each feature index stands for, and how labels are written, for a JSON file."""
        features: list[dict[str, int | str]] = []
        for column in self.columns:
            if column.words is None:
                features.append({"index": column.index, "column": column.name})
            for i, word in enumerate(column.words or ()):
                features.append({"index": column.index + i, "column": column.name, "word": word})
        return {"label": self.label, "labels": self.label_texts, "features": features}

    def comments(self) -> Iterator[str]:
        """The same as lines of comment, none so long that a reader would refuse it."""
        if self.label_texts is not None:
            yield from _comments("labels", ((t, word) for word, t in self.label_texts.items()))
        names = (
            (str(column.index + i), f"{column.name}={word}" if word is not None else column.name)
            for column in self.columns
            for i, word in enumerate(column.words or (None,))
        )
        yield from _comments("features", names)


@dataclass(frozen=True)
class Batch:
    """Some rows: the line of each, and their cells by column."""

    lines: tuple[int, ...]
    cells: tuple[tuple[str, ...], ...]


class Table:
    """The rows of delimited text after its header."""

    def __init__(self, source: Source, fewest_columns: int = 2) -> None:
        self._path = source.name
        self._fewest_columns = fewest_columns
        self._file = "FILE" if source.name == STDIN_NAME else shlex.quote(source.name)
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
        return bad_data(problem, self._path, line, hint)

    def no_value(self, line: int, place: int) -> UserError:
        """The error for an empty cell."""
        problem = f"column {self.header[place]!r} has no value here"
        return self.error(line, problem, "`--missing zero` writes such cells as 0")

    def no_number(self, line: int, place: int, cell: str) -> UserError:
        """The error for a word in a column of numbers."""
        problem = f"column {self.header[place]!r} holds numbers, and here {_short(cell)}"
        name = shlex.quote(self.header[place])
        if self._path == STDIN_NAME:
            hint = f"words need two passes: {NO_PIPE_HINT}"
            return self.error(line, problem, f"{hint}, or leave the column out (--drop {name})")
        hint = f"correct the cell, take all of the column as words (--words {name})"
        return self.error(line, problem, f"{hint} or leave it out (--drop {name})")

    def too_many_words(self, line: int, place: int) -> UserError:
        """The error for a column that is no category."""
        problem = f"column {self.header[place]!r} holds more than {MAX_WORDS:,} different words"
        return self.error(line, problem, f"leave it out: --drop {shlex.quote(self.header[place])}")

    def too_long(self, line: int, place: int) -> UserError:
        """The error for a cell that is a text, and no word."""
        limit = f"cells may hold {MAX_WORD_CHARACTERS:,} characters at most"
        problem = f"{limit}, and this one of column {self.header[place]!r} holds more"
        return self.error(line, problem, f"leave it out: --drop {shlex.quote(self.header[place])}")

    def decimal_comma(self, line: int, place: int, cell: str) -> UserError:
        """The error for numbers as they are written where `;` parts the cells."""
        name = self.header[place]
        problem = f"column {name!r} holds {_short(cell)}: numbers must have a decimal point"
        hint = f"or take it as words: --words {shlex.quote(name)}"
        if self.delimiter != ",":
            hint = f"convert them with `tr , . < {self._file} > fixed.csv`, {hint}"
        return self.error(line, problem, hint)

    def _next(self) -> list[str] | None:
        self._line = self._cells.line_num + 1  # a quoted cell may go on over several lines
        try:
            return next(self._cells, None)
        except csv.Error as fault:
            raise self._not_delimited(str(fault)) from None

    def _not_delimited(self, fault: str) -> UserError:
        if "new-line" in fault:
            hint = rf"convert it with `tr '\r' '\n' < {self._file} > fixed.csv`"
            return self.error(self._line, "lines must end in LF or CRLF, not in CR alone", hint)
        if "unexpected end" in fault or "field limit" in fault:
            hint = "close it, or double it if it is part of the text"
            return self.error(self._line, "a double quote opens here and does not close", hint)
        hint = "write a double quote inside a quoted cell twice"
        return self.error(self._line, f"a quoted cell must end at its closing quote: {fault}", hint)

    def _check_header(self) -> None:
        names = self.header
        if not names:
            holds = "starts with a blank line" if self._characters else "is empty"
            hint = "the first line must name the columns, such as `age,job,label`"
            raise self.error(1, f"there is no header: the file {holds}", hint)
        if len(names) < 2 and _LIBSVM_LINE.fullmatch(names[0]):
            hint = f"play it without converting: `ahpatron run {self._file}`"
            raise self.error(1, f"this is LIBSVM text, not {KIND}", hint)
        if len(names) < self._fewest_columns:
            problem = "the first line must name at least two columns"
            hint = "separate the names by a comma, a semicolon, a tab or a |"
            raise self.error(1, problem, hint)
        if nameless(names):
            hint = naming_hint(names, self.delimiter, self._file)
            raise self.error(1, "the first line must hold names, not numbers", hint)
        if twice := [name for name in names if names.count(name) > 1]:
            raise self.error(1, f"two columns have the name {twice[0]!r}", "rename one of them")

    def _lines(self, source: Source) -> Iterator[str]:
        number = 1
        for text in whole_lines(source, BLOCK_BYTES):
            if len(text) > MAX_LINE and b"\n" not in text:
                raise self.error(number, f"a line may hold {MAX_LINE >> 20} MiB at most")
            if (encoding := foreign_encoding(text)) is not None:
                hint = f"convert it with `iconv -f {encoding} -t UTF-8 {self._file} > fixed.csv`"
                raise self.error(number, f"the text must be UTF-8, not {encoding[:6]}", hint)
            if (nul := text.find(b"\0")) >= 0:
                line = number + text.count(b"\n", 0, nul)
                raise self.error(line, "this is a binary file: it holds NUL bytes")
            try:
                decoded = text.decode("utf-8")
            except UnicodeDecodeError as fault:
                line = number + text.count(b"\n", 0, fault.start)
                command = f"iconv -f WINDOWS-1252 -t UTF-8 {self._file} > fixed.csv"
                hint = f"convert it with `{command}`"
                raise self.error(line, "the text must be UTF-8", hint) from None
            for line_text in io.StringIO(decoded, newline="\n"):
                self._characters += len(line_text)
                number += 1
                yield line_text


def delimiter_of(header: str) -> str:
    """The sign that parts the names of a header."""
    return max(DELIMITERS, key=_QUOTED.sub("", header).count)


def nameless(header: list[str]) -> bool:
    """Whether the first line is a row: all numbers, but for 0, 1, 2, … (which pandas writes)."""
    if any(number(name) is None for name in header):
        return False
    return not any(header == [str(i + start) for i in range(len(header))] for start in (0, 1))


def naming_hint(header: list[str], delimiter: str, file: str = "FILE") -> str:
    """How to put names before the rows of a file."""
    names = shlex.quote(delimiter.join(f"c{i + 1}" for i in range(len(header))))
    return f"name the columns first: `(echo {names}; cat {file}) > named.csv`"


def playing_hint(header: str) -> str:
    """The command that plays delimited text with this first line; FILE stands for the path."""
    delimiter = delimiter_of(header)
    cells = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True))
    names = [name.strip() for name in cells]
    if nameless(names):
        label, file = f"c{len(names)}", "named.csv"
        before = naming_hint(names, delimiter) + "; then convert it: "
    else:
        found = [name for name in names if name.lower() in _LABEL_NAMES]
        label, file, before = (found or names[-1:])[0], "FILE", "convert it: "
    return (
        f"{before}`{CONVERT_STAGE}{file} --label {shlex.quote(label)}{RUN_STAGE}`, "
        "where --label names the column of labels"
    )


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


def find_layout(table: Table, wanted: Wanted) -> Layout:
    """Look at every row: which columns hold numbers, which words, and which labels there are."""
    label_place, places = _places(table, wanted)
    forced = {table.place(name) for name in wanted.words}
    labels = _LabelsSeen(table, wanted, label_place)
    seen = [_CellsSeen(table, wanted, place, place in forced) for place in places]
    columns: list[_LabelsSeen | _CellsSeen] = [labels, *seen]
    has_rows = False
    for batch in table.batches():
        has_rows = True
        faults = []
        for column in columns:
            try:
                column.add(batch)
            except UserError as fault:
                faults.append(fault)
        if faults:
            raise min(faults, key=lambda fault: (fault.place and fault.place.line) or 0)
    if not has_rows:
        raise table.error(1, "there are no rows after the header")
    words = {column.place: column.words() for column in seen}
    texts = _label_texts(table, labels.met, wanted)
    return Layout(wanted.label, label_place, texts, _columns(table, words))


class _CellsSeen:
    """What the first pass has seen of a column of features."""

    def __init__(self, table: Table, wanted: Wanted, place: int, forced_to_words: bool) -> None:
        self._table = table
        self._missing_is_zero = wanted.missing_is_zero
        self.place = place
        self._forced_to_words = forced_to_words
        self._cells: set[str] = set()  # different ones; no more are added once there are many
        self._words: set[str] = set()
        self._numbers = 0  # how many of these cells are numbers
        self._first_word: tuple[int, str] | None = None  # the line of the first cell that is none

    def add(self, batch: Batch) -> None:
        """Look at the cells that were not met before; the first fault of them is raised."""
        cells = batch.cells[self.place]
        saturated = self._numbers > MAX_WORDS and not self._forced_to_words
        if saturated and plain_numbers(cells) is not None:
            return
        fresh = set(cells).difference(self._cells)
        for line, cell in zip(batch.lines, cells, strict=True) if fresh else ():
            if cell in fresh:
                fresh.discard(cell)
                self._add_cell(line, cell)

    def _add_cell(self, line: int, cell: str) -> None:
        table, bare = self._table, cell.strip()
        if bare in MISSING:
            if not self._missing_is_zero:
                raise table.no_value(line, self.place)
            return
        is_number = not self._forced_to_words and number(bare) is not None
        if is_number and self._numbers > MAX_WORDS:
            return
        if not is_number:
            if not self._forced_to_words and _DECIMAL_COMMA.fullmatch(bare):
                raise table.decimal_comma(line, self.place, bare)
            self._first_word = self._first_word or (line, bare)
            self._words.add(bare)
            if len(self._words) > MAX_WORDS:
                raise table.too_many_words(self._first_word[0], self.place)
        if len(bare) > MAX_WORD_CHARACTERS:
            raise table.too_long(line, self.place)
        self._numbers += is_number
        if len(self._cells) < MAX_REMEMBERED_CELLS:
            self._cells.add(cell)

    def words(self) -> tuple[str, ...] | None:
        """The words of the column, numbers among them; None: it holds numbers.

        A word among more numbers than words is a slip, and not a category.
        """
        if self._first_word is None:
            return None
        if self._numbers > len(self._words):
            line, word = self._first_word
            raise self._table.no_number(line, self.place, word)
        return tuple(sorted({*self._words, *(cell.strip() for cell in self._cells)}))


class _LabelsSeen:
    """The labels that the first pass has met; with --positive, that one and a few others."""

    def __init__(self, table: Table, wanted: Wanted, place: int) -> None:
        self._table, self._wanted, self._place = table, wanted, place
        self.met: set[str] = set()

    def add(self, batch: Batch) -> None:
        """Look at labels that were not met before; the first fault of them is raised."""
        table, wanted, cells = self._table, self._wanted, batch.cells[self._place]
        fresh = set(cells).difference(self.met)
        for line, cell in zip(batch.lines, cells, strict=True) if fresh else ():
            label = cell.strip()
            if label in MISSING:
                raise _no_label(table, line)
            if len(label) > MAX_WORD_CHARACTERS:
                raise table.too_long(line, self._place)
            if wanted.positive in (None, label) or len(self.met) < MAX_NAMED_IN_HINT:
                self.met.add(label)
            if len(self.met) > MAX_WORDS:
                problem = f"column {wanted.label!r} holds more than {MAX_WORDS:,} different labels"
                hint = "choose the column of labels, or play one against all others: "
                raise table.error(line, problem, hint + "--positive VALUE")


def layout_of_numbers(table: Table, wanted: Wanted) -> Layout:
    """The layout of text that cannot be read twice: all columns hold numbers."""
    label_place, places = _places(table, wanted)
    if wanted.words:
        raise table.error(1, "words need two passes over the text", NO_PIPE_HINT)
    texts = None if wanted.positive is None else {wanted.positive: "+1"}
    columns = _columns(table, dict.fromkeys(places))
    return Layout(wanted.label, label_place, texts, columns)


def libsvm_lines(
    table: Table,
    layout: Layout,
    wanted: Wanted,
    on_unknown: Callable[[str, str], None] = lambda name, word: None,
) -> Iterator[str]:
    """A line of LIBSVM text for each row; the lines of a batch come together.

    `on_unknown` is told the column and the word of cells that an earlier mapping lacks, at least
    once each, if these are written as 0.
    """
    columns = [
        _Texts(one.place, _feature_text(one, wanted, on_unknown), one) for one in layout.columns
    ]
    if layout.label_place is not None:
        columns.insert(0, _Texts(layout.label_place, partial(_label_text, layout, wanted)))
    positive = wanted.positive
    for batch in table.batches():
        texts = [column.texts(batch.cells[column.place]) for column in columns]
        if layout.label_place is None:
            texts.insert(0, [UNLABELLED] * len(batch.lines))
        elif positive is not None and positive in map(str.strip, batch.cells[layout.label_place]):
            positive = None  # it was met
        if any(None in some for some in texts):
            raise _refusal(table, layout, wanted, columns, batch)
        yield "\n".join(map("".join, zip(*texts, strict=True))) + "\n"
    if positive is not None:
        raise table.error(1, f"no row has the label {positive!r} that --positive names")


class _Texts:
    """What the cells of a column are written as; None for a cell that cannot be written."""

    def __init__(
        self, place: int, text: Callable[[str], str | None], column: Column | None = None
    ) -> None:
        self.place = place
        self.text = text
        self._prefix = f" {column.index}:" if column and column.words is None else None
        self._remembered: dict[str, str | None] = {}

    def texts(self, cells: Sequence[str]) -> list[str | None]:
        """The texts of many cells: all numbers, or cells most of which were met before."""
        prefix = self._prefix
        if prefix is not None and (values := plain_numbers(cells)) is not None:
            if 0.0 in values:
                return [prefix + c if value else "" for c, value in zip(cells, values, strict=True)]
            return [prefix + cell for cell in cells]
        remembered = self._remembered
        for cell in set(cells).difference(remembered):
            remembered[cell] = self.text(cell.strip())
        written = [remembered[cell] for cell in cells]
        if len(remembered) > MAX_REMEMBERED_CELLS:
            remembered.clear()
        return written


def _label_text(layout: Layout, wanted: Wanted, cell: str) -> str | None:
    """Labels come first in the line."""
    texts = layout.label_texts
    if cell in MISSING:
        return UNLABELLED if wanted.like else None
    if texts is None:
        return None if number(cell) is None else cell
    return texts.get(cell, layout.other_labels)


def _feature_text(
    column: Column, wanted: Wanted, on_unknown: Callable[[str, str], None]
) -> Callable[[str], str | None]:
    """A number as it is spelled, but for zero: ` 7:0.5`; or one feature per word: ` 7:1`."""
    of_word = {word: f" {column.index + i}:1" for i, word in enumerate(column.words or ())}
    unknown_is_zero = wanted.like is not None and wanted.missing_is_zero

    def text(cell: str) -> str | None:
        if cell in of_word:
            return of_word[cell]
        if cell in MISSING:
            return "" if wanted.missing_is_zero else None
        if column.words is not None and unknown_is_zero:
            on_unknown(column.name, cell)
            return ""
        value = number(cell) if column.words is None else None
        if value is None:
            return None
        return f" {column.index}:{cell}" if value else ""

    return text


def _refusal(
    table: Table, layout: Layout, wanted: Wanted, columns: list[_Texts], batch: Batch
) -> UserError:
    """The error for the first cell that cannot be written, row by row."""
    line, place, cell = next(
        (line, column.place, cell)
        for i, line in enumerate(batch.lines)
        for column in columns
        if column.text(cell := batch.cells[column.place][i].strip()) is None
    )
    if place == layout.label_place and cell in MISSING:
        return _no_label(table, line)
    if cell in MISSING:
        return table.no_value(line, place)
    if wanted.like is not None:
        return _unlike(table, layout, wanted.like, (line, place, cell))
    if place == layout.label_place and layout.label_texts is None:
        problem = f"the label {_short(cell)} is not a number, and a pipe cannot be read twice"
        return table.error(line, problem, NO_PIPE_HINT)
    if any(column.place == place and column.words is None for column in layout.columns):
        return table.no_number(line, place, cell)
    problem = f"column {table.header[place]!r} holds {_short(cell)}, which is new"
    return table.error(line, problem, "the file changed meanwhile: start again")


def _unlike(table: Table, layout: Layout, like: str, at: tuple[int, int, str]) -> UserError:
    """The error for a cell that the mapping in the file `like` has no number for."""
    line, place, cell = at
    name = repr(table.header[place])
    if place == layout.label_place:
        labels = ", ".join(list(layout.label_texts or ())[:MAX_NAMED_IN_HINT]) or "numbers"
        problem = f"the label {_short(cell)} is not in {like}"
        return table.error(line, problem, f"its labels are {labels}; `?` stands for no label")
    if any(column.place == place and column.words is None for column in layout.columns):
        problem = f"column {name} holds numbers in {like}, and here {_short(cell)}"
        return table.error(line, problem, "correct the cell")
    problem = f"column {name} holds {_short(cell)}, which is not in {like}"
    return table.error(line, problem, "`--missing zero` writes such cells as 0")


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


def _no_label(table: Table, line: int) -> UserError:
    return table.error(line, "this row has no label", "remove the row")


def _label_texts(table: Table, labels: Collection[str], wanted: Wanted) -> dict[str, str] | None:
    """Two labels become -1 and +1 in their order; of more, words become 0, 1, 2, …

    Numbers that `ahpatron run` takes as they are stay: -1 and 1, 0 and 1, or more than two.
    """
    if wanted.positive is not None:
        if wanted.positive not in labels:
            problem = f"no row has the label {wanted.positive!r} that --positive names"
            hint = f"the labels are {', '.join(sorted(labels)[:MAX_NAMED_IN_HINT])}"
            raise table.error(1, problem, suggestion(wanted.positive, labels) or hint)
        return {wanted.positive: "+1"}
    values = {label: number(label) for label in labels}
    known = sorted({value for value in values.values() if value is not None})
    if None not in values.values():
        if len(known) != 2 or known in ([-1, 1], [0, 1]):
            return None
        return {label: "-1" if value == known[0] else "+1" for label, value in values.items()}
    signs = ("-1", "+1") if len(labels) == 2 else tuple(str(i) for i in range(len(labels)))
    return dict(zip(sorted(labels), signs, strict=True))


def _comments(what: str, pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Lines of comment such as `# features: 1=age 2=job`, of a few thousand characters each."""
    text = ""
    for key, name in pairs:
        text += f" {key}={_printable(name)}"
        if len(text) > MAX_COMMENT_CHARACTERS:
            yield f"# {what}:{text}\n"
            text = ""
    if text:
        yield f"# {what}:{text}\n"


def _printable(text: str) -> str:
    """Names may hold line ends and control characters: `\\n`, `\\x1b`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:40] + "…")
