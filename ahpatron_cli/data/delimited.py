"""From the cells of delimited text to LIBSVM text: what `ahpatron convert` does.

A first pass over a regular file finds out which columns hold numbers and which hold words; a second
pass writes a line per row. Numbers keep their spelling. A column of words becomes one feature per
word, 1 in the rows that hold it. Zeros are not written. Memory does not grow with the rows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from ahpatron_cli.data.layout import Column, Layout, Wanted, numbered
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.data.table import MAX_NAMED_IN_HINT, Batch, Table, number, plain_numbers
from ahpatron_cli.errors import UserError, suggestion

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"})
"""Cells that mean: no value."""
MAX_WORDS = 1000
"""Different words of a column. More of them are an identifier or a text, and no category."""
MAX_WORD_CHARACTERS = 1000
MAX_REMEMBERED_CELLS = 4096
"""Different cells of a column of words whose text is looked up, and not computed again."""
NO_PIPE_HINT = "give a file in place of standard input, or an earlier mapping (--like MAP.json)"
UNLABELLED = "?"
"""Stands for the label of a row that has none."""

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")


# The first pass: which columns hold numbers, and which words


def find_layout(table: Table, wanted: Wanted) -> Layout:
    """Look at every row: which columns hold numbers, which words, and which labels there are."""
    label_place, places = _places(table, wanted)
    forced = {table.place(name) for name in wanted.words}
    labels = _LabelsSeen(table, wanted, label_place)
    seen = [_CellsSeen(table, wanted, place, place in forced) for place in places]
    has_rows = False
    for batch in table.batches():
        has_rows = True
        faults = []
        for column in (labels, *seen):
            try:
                column.add(batch)
            except UserError as fault:
                faults.append(fault)
        if faults:
            raise min(faults, key=lambda fault: (fault.place and fault.place.line) or 0)
    if not has_rows:
        raise table.error(1, "there are no rows after the header")
    columns = numbered((one.name, one.place, one.words()) for one in seen)
    return Layout(wanted.label, label_place, _label_texts(table, labels.met, wanted), columns)


def layout_of_numbers(table: Table, wanted: Wanted) -> Layout:
    """The layout of text that cannot be read twice: all columns hold numbers."""
    label_place, places = _places(table, wanted)
    if wanted.words:
        raise table.error(1, "words need two passes over the text", NO_PIPE_HINT)
    texts = None if wanted.positive is None else {wanted.positive: "+1"}
    columns = numbered((table.header[place], place, None) for place in places)
    return Layout(wanted.label, label_place, texts, columns)


def _places(table: Table, wanted: Wanted) -> tuple[int, list[int]]:
    """Where the labels are, and where the features."""
    if len(table.header) < 2:
        problem = "the first line must name at least two columns"
        hint = "separate the names by a comma, a semicolon, a tab or a |"
        raise table.error(1, problem, hint)
    gone = {table.place(name) for name in (wanted.label, *wanted.drop)}
    places = [place for place in range(len(table.header)) if place not in gone]
    if not places:
        raise table.error(1, "no column is left for the features")
    return table.place(wanted.label), places


class _CellsSeen:
    """What the first pass has seen of a column of features."""

    def __init__(
        self, table: Table, wanted: Wanted, place: int, forced_to_words: bool = False
    ) -> None:
        self._table, self._wanted = table, wanted
        self.place, self.name = place, table.header[place]
        self._forced_to_words = forced_to_words
        self.met: set[str] = set()  # different cells; no more are added once there are many
        self._words: set[str] = set()
        self._numbers = 0  # how many of these cells are numbers
        self._first_word: tuple[int, str] | None = None  # the line of the first cell that is none

    def add(self, batch: Batch) -> None:
        """Look at the cells that were not met before; the first fault of them is raised."""
        cells = batch.cells[self.place]
        if self._numbers > MAX_WORDS and plain_numbers(cells) is not None:
            return
        fresh = set(cells).difference(self.met)
        for line, cell in zip(batch.lines, cells, strict=True) if fresh else ():
            if cell in fresh:
                fresh.discard(cell)
                if len(cell) > MAX_WORD_CHARACTERS:
                    limit = f"cells may hold {MAX_WORD_CHARACTERS:,} characters at most"
                    problem = f"{limit}, and this one of column {self.name!r} holds more"
                    raise self._useless(line, problem)
                self._meet(line, cell, cell.strip())

    def _meet(self, line: int, cell: str, bare: str) -> None:
        table = self._table
        if bare in MISSING:
            if not self._wanted.missing_is_zero:
                raise _no_value(table, line, self.place)
            return
        is_number = not self._forced_to_words and number(bare) is not None
        if is_number and self._numbers > MAX_WORDS:
            return
        if not is_number:
            if not self._forced_to_words and _DECIMAL_COMMA.fullmatch(bare):
                raise self._decimal_comma(line, bare)
            self._first_word = self._first_word or (line, bare)
            self._words.add(bare)
            if len(self._words) > MAX_WORDS:
                problem = f"column {self.name!r} holds more than {MAX_WORDS:,} different words"
                raise self._useless(self._first_word[0], problem)
        self._numbers += is_number
        if len(self.met) < MAX_REMEMBERED_CELLS:
            self.met.add(cell)

    def words(self) -> tuple[str, ...] | None:
        """The words of the column, numbers among them; None: it holds numbers.

        A word among more numbers than words is a slip, and not a category.
        """
        if self._first_word is None:
            return None
        if self._numbers > len(self._words):
            raise _no_number(self._table, *self._first_word, self.place)
        return tuple(sorted({*self._words, *(cell.strip() for cell in self.met)}))

    def _useless(self, line: int, problem: str) -> UserError:
        """The error for a column that is no category."""
        return self._table.error(line, problem, f"leave it out: --drop {shlex.quote(self.name)}")

    def _decimal_comma(self, line: int, cell: str) -> UserError:
        """The error for numbers as they are written where `;` parts the cells."""
        problem = f"column {self.name!r} holds {_short(cell)}: numbers must have a decimal point"
        hint = f"or take it as words: --words {shlex.quote(self.name)}"
        if self._table.delimiter != ",":
            hint = f"convert them with `tr , . < {self._table.file} > fixed.csv`, {hint}"
        return self._table.error(line, problem, hint)


class _LabelsSeen(_CellsSeen):
    """The labels that the first pass has met; with --positive, that one and a few others."""

    def _meet(self, line: int, cell: str, bare: str) -> None:
        if bare in MISSING:
            raise _no_label(self._table, line)
        if self._wanted.positive in (None, bare) or len(self.met) < MAX_NAMED_IN_HINT:
            self.met.add(bare)
        if len(self.met) > MAX_WORDS:
            problem = f"column {self.name!r} holds more than {MAX_WORDS:,} different labels"
            hint = "choose the column of labels, or play one against all others: --positive VALUE"
            raise self._table.error(line, problem, hint)


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


# The second pass, or the only one: a line of LIBSVM text for each row


def libsvm_lines(
    table: Table, layout: Layout, wanted: Wanted, unknown: dict[str, None] | None = None
) -> Iterator[str]:
    """A line of LIBSVM text for each row; the lines of a batch come together.

    Some words that an earlier mapping lacks, if they are written as 0, are added to `unknown`.
    """
    unknown = {} if unknown is None else unknown
    columns = [
        _Texts(one.place, partial(_feature_text, one, wanted, unknown), one)
        for one in layout.columns
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
    column: Column, wanted: Wanted, unknown: dict[str, None], cell: str
) -> str | None:
    """A number as it is spelled, but for zero: ` 7:0.5`; or one feature per word: ` 7:1`."""
    if cell in MISSING:
        return "" if wanted.missing_is_zero else None
    if column.words is None:
        value = number(cell)
        return None if value is None else f" {column.index}:{cell}" if value else ""
    if cell in column.words:
        return f" {column.index + column.words.index(cell)}:1"
    if wanted.like is None or not wanted.missing_is_zero:
        return None
    if len(unknown) <= MAX_NAMED_IN_HINT:
        unknown[f"{column.name}={cell}"] = None
    return ""


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
    is_label, like = place == layout.label_place, wanted.like
    if cell in MISSING:
        return _no_label(table, line) if is_label else _no_value(table, line, place)
    name, held = f"column {table.header[place]!r}", _short(cell)
    if is_label and like:
        labels = ", ".join(list(layout.label_texts or ())[:MAX_NAMED_IN_HINT]) or "numbers"
        hint = f"its labels are {labels}; `?` stands for no label"
        return table.error(line, f"the label {held} is not in {like}", hint)
    if is_label and layout.label_texts is None:
        problem = f"the label {held} is not a number, and a pipe cannot be read twice"
        return table.error(line, problem, NO_PIPE_HINT)
    if any(column.place == place and column.words is None for column in layout.columns):
        return _no_number(table, line, cell, place, like)
    if like:
        hint = "`--missing zero` writes such cells as 0"
        return table.error(line, f"{name} holds {held}, which is not in {like}", hint)
    hint = "the file changed meanwhile: start again"
    return table.error(line, f"{name} holds {held}, which is new", hint)


def _no_label(table: Table, line: int) -> UserError:
    return table.error(line, "this row has no label", "remove the row")


def _no_value(table: Table, line: int, place: int) -> UserError:
    problem = f"column {table.header[place]!r} has no value here"
    return table.error(line, problem, "`--missing zero` writes such cells as 0")


def _no_number(
    table: Table, line: int, cell: str, place: int, like: str | None = None
) -> UserError:
    """The error for a word in a column of numbers."""
    where = f" in {like}" if like else ""
    problem = f"column {table.header[place]!r} holds numbers{where}, and here {_short(cell)}"
    name = shlex.quote(table.header[place])
    if like:
        hint = "correct the cell"
    elif table.path == STDIN_NAME:
        hint = f"words need two passes: {NO_PIPE_HINT}, or leave the column out (--drop {name})"
    else:
        hint = f"correct the cell, take all of the column as words (--words {name}) "
        hint += f"or leave it out (--drop {name})"
    return table.error(line, problem, hint)


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:40] + "…")
