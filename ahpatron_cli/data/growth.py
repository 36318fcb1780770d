"""The open schema of a live stream, to which columns, categories and labels are added as they
appear.

The first value of a column decides its type. A new category adds a feature, as long as there is
room; so does the first missing cell. A feature that is added is the next one, and was 0 in all rows
before: learners that depend on distances or products of rows cannot tell it from one that was there
from the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    DateFormat,
    LabelKind,
    Spelling,
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


@dataclass
class _Labels:
    """Labels up to some row, and what they are."""

    codes: dict[str, float]
    kind: LabelKind
    path: str
    """The name of the stream, for errors."""

    def add(self, text: str) -> None:
        """Add the code of a label if it is new."""
        if not self.codes:
            self.kind = _kind_of_first(text)
        key = label_key(text, self.kind)
        known = {label_key(name, self.kind) for name in self.codes}
        if key is not None and key in known:
            return
        if self.kind == "boolean" and key is not None:
            self.codes[key] = 1.0 if key == "True" else -1.0
            return
        self._check_room(text)
        if self.kind == "number" and key is not None:
            self.codes[key] = float(key)
            return
        code = _next_code(self.codes)
        self.codes[text] = float(code)
        self.kind = "text"

    def _check_room(self, text: str) -> None:
        """Refuse a further label if two are all there can be, or if there are too many."""
        count = len(self.codes)
        is_whole_pair = count == 2 and _is_pair(self.codes)
        if self.kind == "boolean" or is_whole_pair:
            names = ", ".join(self.codes)
            problem = f"a third label: {text!r}"
            hint = f"the labels are {names}; `--classes A,B,C` names all labels before"
            raise bad_data(problem, self.path, hint=hint)
        if count >= MAX_CLASSES:
            problem = f"more than {MAX_CLASSES:,} different labels"
            raise bad_data(problem, self.path)


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
        self._others = schema.columns_without_features()
        self._columns: dict[str, Column] = {}
        self._numbers: dict[str, int] = {}
        self._known: dict[str, set[str]] = {}
        """Categories by column."""
        self._names: dict[str, dict[str, str]] = {}
        """Name of the category of each text that occurred, by column; of few texts."""
        self._features = 0
        for column in schema.columns:
            self._register(column)
            self._features = max([self._features, *column.all_places])

    def _register(self, column: Column) -> None:
        """Take note of a column of the schema."""
        name = column.name
        self._numbers[name] = len(self._columns)
        self._columns[name] = column
        self._known[name] = set(column.categories)

    def has_columns(self, names: Iterable[str]) -> bool:
        """Whether all of these columns are known, or are no features."""
        return self._others.union(self._columns).issuperset(names)

    def admit_labels(self, cells: Cells) -> None:
        """Add the labels of rows that have no other cells."""
        labels = self._new_labels(cells)
        self._set_labels(labels)

    def admit(self, cells: Cells) -> None:
        """Add what is new in these rows; a `UserError`, and nothing is added, if one is faulty."""
        names = [name for name in cells.columns if name not in self._others]
        new = {name: Column(name, "unknown") for name in names if name not in self._columns}
        columns = self._columns | new
        kinds: dict[str, Kind] = {}
        for name in names:
            kinds[name] = self._checked(columns[name], cells)
        labels = self._new_labels(cells)
        for name, column in self._columns.items():
            if name not in cells.columns:  # a key that none of these rows has
                cells.columns[name] = np.full(len(cells.lines), np.nan)
                kinds[name] = self._checked(column, cells)
        self._check_room(len(columns))
        for column in new.values():
            self.schema.columns.append(column)
            self._register(column)
        self._add_features(cells, kinds)
        self._set_labels(labels)

    # Types ----------------------------------------------------------------------------------------

    def _checked(self, column: Column, cells: Cells) -> Kind:
        """The type of a column after these rows; an error for a cell that does not fit it."""
        kind = self._kind(column, cells)
        is_refused = self.schema.missing == "refuse"
        if kind == "missing" and is_refused:
            raise no_value(column.name, self._path, int(cells.lines[0]))
        if is_refused or not _fits_any_cell(kind, cells.columns[column.name]):
            self._check_cells(column, cells, kind)
        return kind

    def _kind(self, column: Column, cells: Cells) -> Kind:
        """The type of a column: as it is known, or that of its first cell."""
        if column.kind != "unknown":
            return column.kind
        name = column.name
        is_category = name in self._categories
        return self._first_kind(cells.columns[name], cells.spelling, is_category=is_category)

    def _check_cells(self, column: Column, cells: Cells, kind: Kind) -> None:
        """Refuse a cell that does not fit a column of this type."""
        name = column.name
        values = cells.columns[name]
        as_read = msgspec.structs.replace(column, kind=kind)
        if kind == "date" and column.kind == "unknown":
            as_read.date_format = self._date_format(column, cells)
        rows = faulty_rows(
            values,
            as_read,
            cells.spelling,
            may_be_missing=self.schema.missing != "refuse",
            is_category=kind == "category",
        )
        if not rows:
            return
        line = int(cells.lines[rows[0]])
        cell = cell_text(values, rows[0])
        if cell in MISSING:
            raise no_value(name, self._path, line)
        raise mixed(name, kind, cell=cell, path=self._path, line=line)

    def _date_format(self, column: Column, cells: Cells) -> DateFormat:
        """How the first date of a column is written; an error if it can be read in two ways."""
        values = cells.columns[column.name]
        row = _first_row(values, is_missing=False)
        if row is None or not isinstance(values, Texts):
            return "ISO"
        cell = cell_text(values, row)
        formats = list(readings(cell))
        said = self._slash_format
        if said is not None and said in formats:
            return said
        if len(formats) > 1:
            problem = f"column {column.name!r} has dates that can be read in two ways: {cell!r}"
            line = int(cells.lines[row])
            hint = f"give `--date-format {formats[0]}` or `--date-format {formats[1]}`"
            raise bad_data(problem, self._path, line=line, hint=hint, field=column.name)
        return formats[0]

    @staticmethod
    def _first_kind(values: Values, spelling: Spelling, *, is_category: bool) -> Kind:
        """The type of the first cell with a value; `missing` if there is none."""
        row = _first_row(values, is_missing=False)
        if row is None:
            return "missing"
        if is_category:
            return "category"
        if isinstance(values, Texts):
            cell = cell_text(values, row)
            kind, _ = kind_of(cell, spelling, is_category=False)
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
            events += self._events(column, cells, kind)
            events += self._indicator_events(column, cells)
        events.sort(key=_order)
        for event in events:
            self._add(event)

    def _events(self, column: Column, cells: Cells, kind: Kind) -> list[_Event]:
        """The features that a column needs for the values in these cells; sets its type."""
        if kind == "category":
            column.kind = kind
            return self._category_events(column, cells)
        if kind == "missing" or column.kind != "unknown":
            return []
        column.kind = kind
        values = cells.columns[column.name]
        first = _first_row(values, is_missing=False) or 0
        if kind == "date":
            column.date_format = self._date_format(column, cells)
            cell = values[first : first + 1]
            one = Cells(np.array([first]), {column.name: cell})
            day = column.numbers(one, self._path)
            column.fill = float(day[0])
        number = self._numbers[column.name]
        return [_Event(first, number, column=column, category=None)]

    def _category_events(self, column: Column, cells: Cells) -> list[_Event]:
        """The features of the categories that are new in these cells."""
        number = self._numbers[column.name]
        known = self._known[column.name]
        texts = _as_texts(cells.columns[column.name])
        found = []
        for text, _, row in texts.counts():
            name = self._category(column.name, text)
            if name is not None and name not in known:
                found.append(_Event(row, number, column=column, category=name))
        return found

    def _indicator_events(self, column: Column, cells: Cells) -> list[_Event]:
        """The indicator of a column, if the first of its cells is missing here."""
        if self.schema.missing != "indicator" or column.indicator:
            return []
        gap = _first_row(cells.columns[column.name], is_missing=True)
        if gap is None:
            return []
        number = self._numbers[column.name]
        return [_Event(gap, number, column=column, category=None, is_indicator=True)]

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

    def _set_labels(self, labels: _Labels) -> None:
        self.schema.labels.update(labels.codes)
        self.schema.label_kind = labels.kind

    def _new_labels(self, cells: Cells) -> _Labels:
        """The labels up to these rows; those that are new have codes now."""
        schema = self.schema
        labels = _Labels(dict(schema.labels), schema.label_kind, self._path)
        if not schema.has_open_labels or schema.label not in cells.columns:
            return labels
        texts = cells.texts(schema.label)
        found = [(row, text) for text, _, row in texts.counts() if text not in MISSING]
        for row, text in sorted(found):
            try:
                labels.add(text)
            except UserError as error:
                line = int(cells.lines[row])
                raise bad_data(
                    error.problem, self._path, line=line, hint=error.hint, field=schema.label
                ) from None
        return labels


def _order(event: _Event) -> tuple[int, int, bool]:
    """By what events are sorted."""
    return event.row, event.number, event.is_indicator


def _fits_any_cell(kind: Kind, values: Values) -> bool:
    """Whether no cell of these, missing or not, can be of another type than `kind`."""
    if kind == "number":
        return isinstance(values, np.ndarray)
    return kind in ("category", "missing")


def _is_pair(codes: dict[str, float]) -> bool:
    """Whether labels are a pair that needs no declaration."""
    values = set(codes.values())
    return any(map(values.issubset, PLAIN_PAIRS))


def _next_code(codes: dict[str, float]) -> int:
    """A whole number that is no code yet."""
    largest = max(codes.values(), default=0.0)
    return max(FIRST_CLASS, int(largest) + 1)


def _kind_of_first(text: str) -> LabelKind:
    """What the labels are, of which this is the first."""
    kinds: tuple[LabelKind, ...] = ("boolean", "number")
    for kind in kinds:
        if label_key(text, kind) is not None:
            return kind
    return "text"


def _as_texts(values: Values) -> Texts:
    """The cells of a column as text."""
    rows = np.arange(len(values))
    return Cells(rows, {"": values}).texts("")


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
