"""The open schema of a live stream, to which columns, categories and labels are added as they
appear.

The first value of a column decides its type. A new category adds a feature, as long as there is
room; so does the first missing cell. A feature that is added is the next one, and was 0 in all rows
before: learners that depend on distances or products of rows cannot tell it from one that was there
from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    DateFormat,
    LabelKind,
    Texts,
    Values,
    category_name,
    label_key,
    readings,
)
from ahpatron_cli.data.labels import PLAIN_PAIRS
from ahpatron_cli.data.schema import Column, Schema, cell_text, mixed, no_value
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import MAX_CATEGORIES, Kind, faulty_rows, kind_of
from ahpatron_cli.errors import UserError, bad_data

FIRST_CLASS = 2
"""Code of the first label that is text: those of `PLAIN_PAIRS` are never codes of classes."""


class _Event(NamedTuple):
    """A feature that has to be added, because of this row."""

    row: int
    number: int
    """Number of the column in the table: of the same row, the first column comes first."""
    column: Column
    category: str | None
    """The category that has to be added; None for the indicator or the value of the column."""
    is_indicator: bool = False


class Growth:
    """Adds to a schema what appears in the rows of a live stream.

    Parameters
    ----------
    schema : Schema
        An open schema; it is changed in place.
    options : TableOptions
        --category and --date-format decide types.
    max_features : int
    path : str
        The name of the stream, for errors.
    """

    def __init__(self, schema: Schema, options: TableOptions, max_features: int, path: str) -> None:
        self.schema = schema
        self._categories = frozenset(options.category)
        self._slash_format = options.date_format
        self._max_features = max_features
        self._path = path
        self._columns = {column.name: column for column in schema.columns}
        self._numbers = {column.name: number for number, column in enumerate(schema.columns)}
        self._known = {column.name: set(column.categories) for column in schema.columns}
        self._names: dict[str, dict[str, str]] = {}
        """Name of the category of each text that occurred, by column; of few texts."""
        places = [place for column in schema.columns for place in column.all_places]
        self._features = max(places, default=0)

    def admit_labels(self, cells: Cells) -> None:
        """Add the labels of rows that have no other cells."""
        self.schema.labels.update(self._new_labels(cells))

    def admit(self, cells: Cells) -> None:
        """Add what is new in these rows; a `UserError`, and nothing is added, if one is faulty."""
        others = {self.schema.label, self.schema.id, *self.schema.dropped}
        names = [name for name in cells.columns if name not in others]
        new: list[Column] = []
        kinds: dict[str, Kind] = {}
        for name in names:
            column = self._columns.get(name)
            if column is None:
                column = Column(name, "unknown")
                new.append(column)
            kinds[name] = self._checked(column, cells)
        labels = self._new_labels(cells)
        for name in self._columns:
            if name not in cells.columns:  # keys that none of these rows has
                cells.columns[name] = np.full(len(cells.lines), np.nan)
        self._check_room(len(self._columns) + len(new))
        for column in new:
            self.schema.columns.append(column)
            self._numbers[column.name] = len(self._columns)
            self._columns[column.name] = column
            self._known[column.name] = set()
        self._add_features(cells, kinds)
        self.schema.labels.update(labels)

    def _checked(self, column: Column, cells: Cells) -> Kind:
        """The type of a column after these rows; an error for a cell that does not fit it."""
        name = column.name
        values = cells.columns[name]
        kind: Kind = column.kind if column.kind != "unknown" else "missing"
        is_category = name in self._categories
        if kind == "missing":
            kind = self._first_kind(values, is_category=is_category)
        missing = self.schema.missing
        if kind == "missing" and missing == "refuse":
            raise no_value(name, self._path, int(cells.lines[0]))
        if kind == "category" and missing != "refuse":
            return kind  # any cell is one
        if kind == "number" and isinstance(values, np.ndarray) and missing != "refuse":
            return kind
        if kind == "missing":
            return kind
        as_read = msgspec.structs.replace(column, kind=kind)
        if kind == "date" and column.kind == "unknown":
            as_read.date_format = self._date_format(column, cells)
        rows = faulty_rows(values, as_read, self.schema, is_category=kind == "category")
        if rows:
            line = int(cells.lines[rows[0]])
            cell = cell_text(values, rows[0])
            if cell in MISSING:
                raise no_value(name, self._path, line)
            raise mixed(name, kind, cell=cell, path=self._path, line=line)
        return kind

    def _date_format(self, column: Column, cells: Cells) -> DateFormat:
        """How the first date of a column is written; an error if it can be read in two ways."""
        values = cells.columns[column.name]
        row = _first_row(values, is_missing=False)
        if row is None or not isinstance(values, Texts):
            return "ISO"
        cell = cell_text(values, row)
        formats = list(readings(cell))
        if self._slash_format in formats and self._slash_format is not None:
            return self._slash_format
        if len(formats) > 1:
            problem = f"column {column.name!r} has dates that can be read in two ways: {cell!r}"
            line = int(cells.lines[row])
            hint = f"give `--date-format {formats[0]}` or `--date-format {formats[1]}`"
            raise bad_data(problem, self._path, line=line, hint=hint)
        return formats[0]

    def _first_kind(self, values: Values, *, is_category: bool) -> Kind:
        """The type of the first cell with a value; `missing` if there is none."""
        row = _first_row(values, is_missing=False)
        if row is None:
            return "missing"
        if is_category:
            return "category"
        if isinstance(values, Texts):
            cell = cell_text(values, row)
            kind, _ = kind_of(cell, self.schema.spelling, is_category=False)
            return kind
        return "number" if isinstance(values, np.ndarray) else "date"

    def _check_room(self, columns: int) -> None:
        """Refuse a row with more columns than there may be features."""
        if columns > self._max_features:
            problem = f"more than {self._max_features:,} columns have appeared"
            raise bad_data(problem, self._path, hint="--drop COLUMN leaves columns out")

    # Features -------------------------------------------------------------------------------------

    def _add_features(self, cells: Cells, kinds: dict[str, Kind]) -> None:
        """Add the features that are missing, in the order in which rows need them."""
        events: list[_Event] = []
        for name, kind in kinds.items():
            column = self._columns[name]
            number = self._numbers[name]
            events += self._events(column, cells, kind, number=number)
        events.sort(key=lambda event: (event.row, event.number, event.is_indicator))
        for event in events:
            self._add(event)

    def _events(self, column: Column, cells: Cells, kind: Kind, *, number: int) -> list[_Event]:
        """The features that a column needs for these cells."""
        values = cells.columns[column.name]
        found: list[_Event] = []
        if kind == "category":
            column.kind = "category"
            texts = _as_texts(values)
            for text, _, row in texts.counts():
                name = self._category(column.name, text)
                if name is not None and name not in self._known[column.name]:
                    found.append(_Event(row, number, column=column, category=name))
        elif kind != "missing" and column.kind == "unknown":
            column.kind = kind
            first = _first_row(values, is_missing=False) or 0
            if kind == "date":
                column.date_format = self._date_format(column, cells)
                one = _one(column.name, values, first)
                day = column.numbers(one, self._path, self.schema.spelling)
                column.fill = float(day[0])
            found.append(_Event(first, number, column=column, category=None))
        if self.schema.missing == "indicator" and not column.indicator:
            gap = _first_row(values, is_missing=True)
            if gap is not None:
                found.append(_Event(gap, number, column=column, category=None, is_indicator=True))
        return found

    def _category(self, column: str, text: str) -> str | None:
        """The name of the category of a cell; None if it is missing."""
        if text in MISSING:
            return None
        known = self._names.setdefault(column, {})
        name = known.get(text)
        if name is None:
            name = category_name(text)
            if len(known) < 2 * MAX_CATEGORIES:
                known[text] = name
        return name

    def _add(self, event: _Event) -> None:
        """Add a feature."""
        column = event.column
        known = self._known[column.name]
        if event.is_indicator:
            column.indicator = True
            column.indicator_place = self._next_place()
        elif event.category is None:
            column.places.append(self._next_place())
        elif event.category in known or column.other:
            return
        elif len(known) < MAX_CATEGORIES and self._has_room():
            known.add(event.category)
            column.categories.append(event.category)
            column.places.append(self._next_place())
        else:
            column.other = True
            column.places.append(self._next_place())

    def _next_place(self) -> int:
        """The index of a further feature."""
        self._features += 1
        return self._features

    def _has_room(self) -> bool:
        """Whether there is room for a category beside all that other columns may need."""
        reserved = 2 * len(self._columns)
        return self._features + reserved < self._max_features

    # Labels ---------------------------------------------------------------------------------------

    def _new_labels(self, cells: Cells) -> dict[str, float]:
        """The labels that have no code yet, with their codes."""
        schema = self.schema
        if not schema.has_open_labels or schema.label not in cells.columns:
            return schema.labels
        texts = cells.texts(schema.label)
        firsts = sorted((row, text) for text, _, row in texts.counts() if text not in MISSING)
        codes = dict(schema.labels)
        kind = schema.label_kind
        for row, text in firsts:
            if not codes:
                kind = _kind_of_first(text)
            try:
                kind = self._add_label(text, codes, kind)
            except UserError as error:
                line = int(cells.lines[row])
                raise bad_data(error.problem, self._path, line=line, hint=error.hint) from None
        schema.label_kind = kind
        return codes

    def _add_label(self, text: str, codes: dict[str, float], kind: LabelKind) -> LabelKind:
        """Add the code of a label if it is new; return what the labels are then."""
        key = label_key(text, kind)
        known = {label_key(name, kind) for name in codes}
        if key is not None and key in known:
            return kind
        if kind == "boolean" and key is not None:
            codes[key] = 1.0 if key == "True" else -1.0
            return kind
        if kind == "boolean" or (_is_pair(codes) and len(codes) == 2):
            names = ", ".join(codes)
            hint = f"the labels are {names}; `--classes A,B,C` names all labels before"
            raise bad_data(f"a third label: {text!r}", self._path, hint=hint)
        if len(codes) >= MAX_CLASSES:
            raise bad_data(f"more than {MAX_CLASSES:,} different labels", self._path)
        if kind == "number" and key is not None:
            codes[key] = float(key)
            return kind
        codes[text] = float(_next_code(codes))
        return "text"


def _is_pair(codes: dict[str, float]) -> bool:
    """Whether labels are a pair that needs no declaration."""
    values = set(codes.values())
    return any(values <= set(pair) for pair in PLAIN_PAIRS)


def _next_code(codes: dict[str, float]) -> int:
    """A whole number that is no code yet."""
    return int(max([FIRST_CLASS - 1.0, *codes.values()])) + 1


def _kind_of_first(text: str) -> LabelKind:
    """What the labels are, of which this is the first."""
    kinds: tuple[LabelKind, ...] = ("boolean", "number")
    for kind in kinds:
        if label_key(text, kind) is not None:
            return kind
    return "text"


def _as_texts(values: Values) -> Texts:
    """The cells of a column as text."""
    return Cells(np.arange(len(values)), {"": values}).texts("")


def _one(name: str, values: Values, row: int) -> Cells:
    """One cell of a column."""
    return Cells(np.array([row]), {name: values[row : row + 1]})


def _first_row(values: Values, *, is_missing: bool) -> int | None:
    """The first row whose cell is missing, or has a value; None if there is none."""
    if isinstance(values, Texts):
        rows = [row for text, _, row in values.counts() if (text in MISSING) == is_missing]
        return min(rows, default=None)
    numbers = values if isinstance(values, np.ndarray) else values.days()
    wanted = np.isnan(numbers) == is_missing
    if not wanted.any():
        return None
    return int(wanted.argmax())
