"""From the cells of delimited text to LIBSVM text: what `ahpatron convert` does.

A first pass over a regular file finds out which columns hold numbers and which hold words; a second
pass writes a line per row. Numbers keep their spelling. A column of words becomes one feature per
word, 1 in the rows that hold it. Zeros are not written. Memory does not grow with the rows.

`convert --map` writes the mapping of one file; `convert --like` applies it to others.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ahpatron_cli.data.source import STDIN_NAME, open_source
from ahpatron_cli.data.table import MAX_NAMED_IN_HINT, Batch, Table, number, plain_numbers
from ahpatron_cli.errors import UserError, bad_data, suggestion, usage

MAX_COMMENT_CHARACTERS = 4096
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
    """A column of features; feature indices count from 1 over all words of all columns."""

    name: str
    place: int
    """Which cell of a row it is, from 0."""
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

    def _features(self) -> Iterator[tuple[str, str | None]]:
        """The column, and the word if it holds words, of each feature index from 1 on."""
        for column in self.columns:
            for word in column.words or (None,):
                yield column.name, word

    def describe(self) -> dict[str, object]:
        """What each feature index stands for, and how labels are written, for a JSON file."""
        features = [
            {"index": index, "column": name} | ({} if word is None else {"word": word})
            for index, (name, word) in enumerate(self._features(), 1)
        ]
        return {"label": self.label, "labels": self.label_texts, "features": features}

    def comments(self) -> Iterator[str]:
        """The same as lines of comment, none so long that a reader would refuse it."""
        labels = ((text, word) for word, text in (self.label_texts or {}).items())
        yield from _comments("labels", labels)
        names = (name if word is None else f"{name}={word}" for name, word in self._features())
        yield from _comments("features", enumerate(names, 1))


def _comments(what: str, pairs: Iterable[tuple[object, str]]) -> Iterator[str]:
    """Lines of comment such as `# features: 1=age 2=job`, of a few thousand characters each."""
    text = ""
    for key, name in pairs:
        # names may hold line ends and control characters: `\n`, `\x1b`
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        text += f" {key}={''.join(shown)}"
        if len(text) > MAX_COMMENT_CHARACTERS:
            yield f"# {what}:{text}\n"
            text = ""
    if text:
        yield f"# {what}:{text}\n"


def read_mapping(path: str) -> Layout:
    """The layout that a mapping describes; its places are those in the mapping, from 0."""
    if path == "-":
        raise usage("--like requires a file", "name the file that `convert --map` wrote")
    with open_source(path, "a mapping") as source:
        text = b"".join(iter(lambda: source.read(1 << 20), b""))
    try:
        document = json.loads(text)
        layout = _mapped(document)
        known = {name: document[name] for name in layout.describe()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        known, layout = {}, None
    if layout is None or layout.describe() != known:
        hint = "name the file that `ahpatron convert DATA.csv --label COLUMN --map FILE.json` wrote"
        raise bad_data("this is not a mapping that `convert --map` wrote", path, hint=hint)
    return layout


def _mapped(document: dict[str, Any]) -> Layout:
    """What a document says, if it is a mapping; the caller sees whether it says all."""
    words: dict[str, tuple[str, ...] | None] = {}
    for feature in document["features"]:
        name = feature["column"]
        before = words.get(name, ())
        if "word" in feature and before is None:
            raise ValueError  # a column of numbers has no words
        words[name] = (*(before or ()), feature["word"]) if "word" in feature else None
    labels = document["labels"]
    if not words or not all(isinstance(name, str) for name in (document["label"], *words)):
        raise ValueError
    if labels is not None and any(number(text) is None for text in labels.values()):
        raise ValueError
    columns = (Column(name, place, some) for place, (name, some) in enumerate(words.items()))
    return Layout(document["label"], 0, labels, tuple(columns))


def layout_like(table: Table, mapping: Layout, label: str | None = None) -> Layout:
    """The same indices for the columns of this text, wherever they stand.

    Labels are in the column `label`, by default in that of the mapping if the text has one.
    """
    if any(column.name == label for column in mapping.columns):
        raise usage(f"--label {label} names a column of features", "choose another column")
    if label == "" or (label is None and mapping.label in table.header):
        label = mapping.label
    place = None if label is None else table.place(label)
    columns = tuple(replace(one, place=table.place(one.name)) for one in mapping.columns)
    return Layout(label or mapping.label, place, mapping.label_texts, columns)


# The first pass: which columns hold numbers, and which words


def find_layout(table: Table, wanted: Wanted) -> Layout:
    """Look at every row: which columns hold numbers, which words, and which labels there are."""
    label_place, places = _places(table, wanted)
    for name in wanted.words:
        table.place(name)  # refuses what no column is called
    labels = _LabelsSeen(table, wanted, label_place)
    seen = [_CellsSeen(table, wanted, place) for place in places]
    for batch in table.batches():
        faults = []
        for column in (labels, *seen):
            try:
                column.add(batch)
            except UserError as fault:
                faults.append(fault)
        if faults:
            raise min(faults, key=lambda fault: (fault.place and fault.place.line) or 0)
    if not labels.met:
        raise table.error(1, "there are no rows after the header")
    columns = tuple(Column(one.name, one.place, one.words()) for one in seen)
    return Layout(wanted.label, label_place, _label_texts(table, labels.met, wanted), columns)


def layout_of_numbers(table: Table, wanted: Wanted) -> Layout:
    """The layout of text that cannot be read twice: all columns hold numbers."""
    label_place, places = _places(table, wanted)
    if wanted.words:
        raise table.error(1, "words need two passes over the text", NO_PIPE_HINT)
    texts = None if wanted.positive is None else {wanted.positive: "+1"}
    columns = tuple(Column(table.header[place], place) for place in places)
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

    def __init__(self, table: Table, wanted: Wanted, place: int) -> None:
        self._table, self._wanted = table, wanted
        self.place, self.name = place, table.header[place]
        self._forced_to_words = self.name in wanted.words
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
        if bare in MISSING:
            if self._wanted.missing_is_zero:
                return
            raise _no_value(self._table, line, self.place)
        is_number = not self._forced_to_words and number(bare) is not None
        if is_number and self._numbers > MAX_WORDS:
            return
        if not is_number:
            if not self._forced_to_words and _DECIMAL_COMMA.fullmatch(bare):
                raise _decimal_comma(self._table, line, bare, self.name)
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
    columns = []
    if layout.label_place is not None:
        columns.append(_Texts(layout.label_place, partial(_label_text, layout, wanted)))
    index = 1
    for one in layout.columns:
        text = partial(_feature_text, one, index, wanted, unknown)
        columns.append(_Texts(one.place, text, f" {index}:" if one.words is None else None))
        index += len(one.words or (None,))
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


class _Texts(dict[str, str | None]):
    """What the cells of a column are written as; None for a cell that cannot be written."""

    def __init__(
        self, place: int, text: Callable[[str], str | None], prefix: str | None = None
    ) -> None:
        """`prefix` stands before the numbers of a column of numbers."""
        self.place, self.text, self._prefix = place, text, prefix

    def __missing__(self, cell: str) -> str | None:
        written = self[cell] = self.text(cell.strip())
        return written

    def texts(self, cells: Sequence[str]) -> list[str | None]:
        """The texts of many cells: all numbers, or cells most of which were met before."""
        prefix = self._prefix
        if prefix is not None and (values := plain_numbers(cells)) is not None:
            if 0.0 in values:
                return [prefix + c if value else "" for c, value in zip(cells, values, strict=True)]
            return [prefix + cell for cell in cells]
        written = [self[cell] for cell in cells]
        if len(self) > MAX_REMEMBERED_CELLS:
            self.clear()
        return written


def _label_text(layout: Layout, wanted: Wanted, cell: str) -> str | None:
    """Labels come first in the line."""
    texts = layout.label_texts
    if cell in MISSING:
        return UNLABELLED if wanted.like else None
    if texts is None:
        return None if number(cell) is None else cell
    only_positive = [*texts.values()] == ["+1"]  # as --positive leaves it
    return texts.get(cell, "-1" if only_positive else None)


def _feature_text(
    column: Column, index: int, wanted: Wanted, unknown: dict[str, None], cell: str
) -> str | None:
    """A number as it is spelled, but for zero: ` 7:0.5`; or one feature per word: ` 7:1`."""
    if cell in MISSING:
        return "" if wanted.missing_is_zero else None
    if column.words is None:
        value = number(cell)
        return None if value is None else f" {index}:{cell}" if value else ""
    if cell in column.words:
        return f" {index + column.words.index(cell)}:1"
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


def _decimal_comma(table: Table, line: int, cell: str, name: str) -> UserError:
    """The error for numbers as they are written where `;` parts the cells."""
    hint = f"or take it as words: --words {shlex.quote(name)}"
    if table.delimiter != ",":
        hint = f"convert them with `tr , . < {table.file} > fixed.csv`, {hint}"
    problem = f"column {name!r} holds {_short(cell)}: numbers must have a decimal point"
    return table.error(line, problem, hint)


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
