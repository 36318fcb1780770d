"""Schema: how the columns of a table become features and labels; saved with a model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.cells import (
    Cells,
    DateFormat,
    Dates,
    LabelKind,
    Spelling,
    Texts,
    Values,
    category_name,
    date_text,
    days_in,
    is_ambiguous_date,
    label_key,
    number,
    number_text,
    numbers_by_sign,
    readings,
)
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.settings import DecimalSign, SlashFormat, Tables

Flags: TypeAlias = NDArray[np.bool_]
Shape: TypeAlias = tuple[int, int]
"""Numbers of rows and columns."""

_UNKNOWN = -1.0
"""Code of a category that did not occur in training."""


class Column(msgspec.Struct, forbid_unknown_fields=True):
    """How a column of a table becomes one or more features."""

    name: str
    kind: Literal["number", "category", "date", "unknown"]
    """Type of its cells; unknown as long as all cells of an open schema are missing."""
    categories: list[str] = []
    """Categories, one feature each; empty for numbers and dates (days since 1970-01-01)."""
    indicator: bool = False
    """Whether a further feature is 1 for missing cells."""
    fill: float = 0.0
    """Value that replaces missing numbers and dates."""
    shares: list[float] = []
    """Values of the features of a missing category, its shares in training; if empty, all 0."""
    places: list[int] = []
    """Indices of the features of an open schema, in the order of `features`; else empty."""
    indicator_place: int = 0
    """Index of the indicator of an open schema, which has no entry in `places`."""
    other: bool = False
    """Whether a further feature stands for all other categories: there were too many."""
    date_format: DateFormat = "ISO"
    """How dates are written where they are text; ISO 8601 is always read."""

    @property
    def width(self) -> int:
        """Number of features of a cell that is not missing."""
        return max(len(self.categories), 1) + self.other

    @property
    def features(self) -> list[str]:
        """Names of the features of this column."""
        names = self.value_features
        if self.indicator:
            names.append(f"{self.name} missing")
        return names

    @property
    def value_features(self) -> list[str]:
        """Names of the features of this column without its indicator."""
        if self.kind == "unknown":
            return []
        names = [self.name]
        if self.categories:
            names = [f"{self.name}={category}" for category in self.categories]
        if self.other:
            names.append(f"{self.name} other")
        return names

    @property
    def all_places(self) -> list[int]:
        """Indices of all features of an open schema, in the order of `features`."""
        if not self.indicator:
            return self.places
        return [*self.places, self.indicator_place]

    @property
    def has_numbered_categories(self) -> bool:
        """Whether some of the categories are numbers: then --category has named this column."""
        return any(number(category) is not None for category in self.categories)

    def numbers(self, cells: Cells, path: str) -> Floats:
        """Number, days or category code of each row; NaN if missing."""
        if self.kind == "category":
            texts = cells.texts(self.name)
            code_of = self._category_codes()
            codes, _ = texts.numbers(code_of)
            return codes
        values = cells.columns[self.name]
        if self.kind == "unknown":
            return np.full(len(cells.lines), np.nan)
        if isinstance(values, Texts):
            return self._parsed(values, cells, path)
        if isinstance(values, Dates):
            kind = "date"
            found = values.days()
        else:
            kind = "number"
            found = values
        if kind != self.kind:
            is_present = ~np.isnan(found)
            if is_present.any():
                row = int(np.argmax(is_present))
                raise self._mixed(values, row, cells, path=path)
        return found

    def _parsed(self, texts: Texts, cells: Cells, path: str) -> Floats:
        """Number or days of each cell of a column of numbers or dates that has text."""
        read = cells.spelling.number
        if self.kind == "date":
            read = partial(days_in, cells.spelling.slash_format or self.date_format)
        found, wrong = texts.numbers(read)
        if wrong is not None:
            raise self._mixed(texts, wrong, cells, path=path)
        return found

    def _category_codes(self) -> Callable[[str], float]:
        """The function from a cell to the code of its category.

        Categories that are all numbers are compared by value: a column of integers is written
        with fractions if it once had a missing cell.
        """
        codes = {category: float(i) for i, category in enumerate(self.categories)}
        by_value = _by_value(codes)
        unknown = float(len(codes)) if self.other else _UNKNOWN

        def code_of(cell: str) -> float:
            if cell in codes:
                return codes[cell]
            name = category_name(cell)
            if name in codes:
                return codes[name]
            return by_value.get(number(cell), unknown)

        return code_of

    def _mixed(self, values: Values, row: int, cells: Cells, path: str) -> UserError:
        """The error for a cell of another type."""
        cell = cell_text(values, row)
        line = int(cells.lines[row])
        return mixed(self.name, self.kind, cell=cell, path=path, line=line)


def _by_value(codes: Mapping[str, float]) -> dict[float | None, float]:
    """Codes of categories by their values, if all are different numbers; else none."""
    found: dict[float | None, float] = {}
    for category, code in codes.items():
        value = number(category)
        if value is None or value in found:
            return {}
        found[value] = code
    return found


class Unseen:
    """Counts, by column, of cells that did not occur in training."""

    def __init__(self) -> None:
        self.categories: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.ambiguous_dates: Counter[str] = Counter()
        """Dates with slashes that could be written otherwise than those in training."""

    @property
    def notes(self) -> list[str]:
        """Notes for the user on what became of these cells."""
        found = []
        if self.categories:
            shown = _counted(self.categories)
            found.append(f"not seen in training, taken as no value: new categories of {shown}")
        if self.missing:
            shown = _counted(self.missing)
            found.append(
                "missing here and never in training, taken as the mean of the column or the shares "
                f"of its categories: {shown}"
            )
        if self.ambiguous_dates:
            shown = _counted(self.ambiguous_dates)
            found.append(
                "dates with day or month first, read as in training: "
                f"{shown}; --date-format says otherwise"
            )
        return found


class Feature(NamedTuple):
    """A feature, or that of the category of each row: its index (from 1) and its values."""

    indices: Integers | int
    values: Any
    """Numbers; of a column that is copied, its cells."""
    column: str

    def take(self, part: slice | Integers) -> Feature:
        """The feature of some of the rows, in this order."""
        indices = self.indices
        if not isinstance(indices, int):
            indices = indices[part]
        values = self.values[part]
        return Feature(indices, values, self.column)


class Shares(NamedTuple):
    """Values of all features of a category, in those rows where it is missing."""

    first: int
    """Index of the first of these features."""
    values: Floats
    rows: Flags
    """Which rows these are."""
    column: str

    @property
    def features(self) -> Integers:
        """Indices of these features."""
        behind = self.first + len(self.values)
        return np.arange(self.first, behind)

    def take(self, part: slice | Integers) -> Shares:
        """The shares in some of the rows, in this order."""
        return self._replace(rows=self.rows[part])


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The features of some rows of a table, column by column; rows are made of them when needed.

    They are about as large as the table: a column of categories has one feature per row here.
    """

    parts: Sequence[Feature | Shares]
    """What each column of the table gives, by increasing indices unless the schema is open."""
    count: int
    """Number of rows."""
    width: int
    """Number of columns of the rows, of which column 0 is empty."""

    def __len__(self) -> int:
        return self.count

    def take(self, part: slice | Integers) -> FeatureColumns:
        """Some of the rows, in this order."""
        parts = [one.take(part) for one in self.parts]
        count = len(np.arange(self.count)[part])
        return FeatureColumns(parts, count, self.width)

    def rows(self) -> Rows:
        """The rows, dense unless there are many categories."""
        features = [one for one in self.parts if isinstance(one, Feature)]
        shares = [one for one in self.parts if isinstance(one, Shares)]
        shape = (self.count, self.width)
        if self.width <= 4 * len(features):
            return _dense(features, shares, shape)
        rows = _sparse(features, shape)
        if not shares:
            return rows
        return _with_shares(rows, shares)


class Schema(msgspec.Struct, forbid_unknown_fields=True):
    """Schema of a table: its columns and labels; saved with the model that was trained on it."""

    columns: list[Column]
    label: str
    labels: dict[str, float]
    """Code of each label, by its text in the table."""
    missing: str = Tables.missing
    positive: str | None = None
    """If given, this label is +1 and all others are -1."""
    id: str | None = None
    dropped: list[str] = []
    na: list[str] = []
    """Texts and numbers that stand for missing cells (--na)."""
    decimal: DecimalSign | None = None
    """Decimal sign of numbers that are written as text (--decimal)."""
    label_kind: LabelKind = "text"
    """What the labels are, which decides how they are compared, and their type in Python."""
    is_open: bool = False
    """Whether columns and categories of a live stream are added as they appear."""
    has_open_labels: bool = False
    """Whether labels of a live stream are added as they appear."""

    @property
    def features(self) -> list[str]:
        """Names of all features, in order."""
        if self.is_open:
            return self._features_by_place()
        names: list[str] = []
        for column in self.columns:
            names += column.features
        return names

    def columns_with_places(self) -> Iterator[tuple[Column, Sequence[int]]]:
        """Yield each column with the indices (from 1) of its features."""
        start = 1
        for column in self.columns:
            behind = start + len(column.features)
            yield column, column.all_places if self.is_open else range(start, behind)
            start = behind

    def _features_by_place(self) -> list[str]:
        """Names of the features of an open schema, in the order in which they were added."""
        found: dict[int, str] = {}
        for column in self.columns:
            found.update(zip(column.all_places, column.features, strict=True))
        return [found[place] for place in sorted(found)]

    def spelling(
        self, decimal: DecimalSign | None = None, slash_format: SlashFormat | None = None
    ) -> Spelling:
        """How the cells of a file are written, of which this may be said."""
        return Spelling(
            decimal=decimal,
            slash_format=slash_format,
            na=tuple(self.na),
            trained_decimal=self.decimal,
            by_model=True,
        )

    def columns_without_features(self) -> set[str | None]:
        """Columns of a table that become no features: label, id, and those that are left out."""
        return {self.label, self.id, *self.dropped}

    def columns_of_names(self) -> set[str]:
        """Columns whose cells are names, even if they look like numbers: label and --category."""
        numbered = {column.name for column in self.columns if column.has_numbered_categories}
        return {self.label, *numbered}

    @property
    def is_numeric(self) -> bool:
        """Whether the features are the columns, all of which have numbers."""
        return all(column.kind == "number" and not column.indicator for column in self.columns)

    def options_in_python(self) -> dict[str, Any]:
        """The options for tables that this schema was made with, as far as it knows them."""
        options: dict[str, Any] = {}
        if self.missing != Tables.missing:
            options["missing"] = self.missing
        dropped = [*self.dropped, self.id] if self.id else self.dropped
        if dropped:
            options["drop"] = list(dropped)
        numbered = [column.name for column in self.columns if column.has_numbered_categories]
        if numbered:
            options["category"] = numbered
        if self.na:
            options["na"] = list(self.na)
        if self.decimal:
            options["decimal"] = self.decimal
        for column in self.columns:
            if "/" in column.date_format:
                options["date_format"] = column.date_format
        return options

    def label_names(self, labels: Iterable[float | None]) -> list[str | None]:
        """Names of label codes; None for a code that stands for several labels."""
        names: dict[float | None, str | None] = {}
        for name, code in self.labels.items():
            names[code] = None if code in names else name
        return [names.get(label) for label in labels]

    def text_columns(self) -> set[str]:
        """Columns whose text is needed: label, id, categories."""
        names = {self.label}
        if self.id:
            names.add(self.id)
        for column in self.columns:
            if column.kind == "category":
                names.add(column.name)
        return names

    def check_columns(self, names: Collection[str], path: str) -> None:
        """Refuse a table without the columns of this schema."""
        asked = [column.name for column in self.columns]
        if self.id:
            asked.append(self.id)
        lost = [name for name in asked if name not in names]
        if lost:
            missing = listed(lost)
            hint = f"the columns are {listed(names)}"
            if len(lost) == len(asked):
                hint = f"the first line must name the columns; here it is {listed(names)}"
            raise bad_data(f"columns are missing: {missing}", path, line=1, hint=hint)

    def check_any_column(self, names: Collection[str], path: str) -> None:
        """Refuse a table without any column of this schema: its header is missing or damaged."""
        columns = [column.name for column in self.columns]
        expected = [*columns, self.label, self.id or ""]
        if columns and set(expected).isdisjoint(names):
            problem = f"the header has none of the columns {listed(expected)}"
            hint = f"the columns are {listed(names)}"
            raise bad_data(problem, path, line=1, hint=hint)

    def to_batch(self, cells: Cells, path: str, unseen: Unseen) -> Batch:
        """Convert cells to a batch of numeric rows; counts cells that are new in `unseen`."""
        rows = self.to_feature_columns(cells, path, unseen).rows()
        labels = self.label_numbers(cells, path)
        return Batch(rows, labels, cells.lines, ids=self.ids(cells))

    def ids(self, cells: Cells) -> NDArray[np.object_] | None:
        """The id of each row, empty if it has none; None without a column of ids."""
        if not self.id:
            return None
        if self.id not in cells.columns:  # no object of JSON lines has the key
            return np.full(len(cells.lines), "", dtype=object)
        return np.array(cells.texts(self.id).tolist(), dtype=object)

    def to_feature_columns(
        self, cells: Cells, path: str, unseen: Unseen, copied: Collection[str] = ()
    ) -> FeatureColumns:
        """Convert cells column by column; counts cells that are new in `unseen`.

        Values of the columns `copied` are those of the cells, unchanged.
        """
        parts = list(self._parts(cells, path, unseen=unseen, copied=copied))
        count = len(cells.lines)
        width = len(self.features) + 1
        return FeatureColumns(parts, count, width)

    def _parts(
        self, cells: Cells, path: str, unseen: Unseen, copied: Collection[str]
    ) -> Iterator[Feature | Shares]:
        """Yield what each column gives; see `to_feature_columns`."""
        start = 1
        for column in self.columns:
            name = column.name
            if name in copied:
                yield Feature(start, cells.columns[name], name)
                start += 1
                continue
            found = column.numbers(cells, path)
            absent = np.isnan(found)
            gaps = int(np.count_nonzero(absent))
            if gaps and self.missing == "refuse":
                row = np.argmax(absent)
                line = int(cells.lines[row])
                raise no_value(name, path, line)
            yield from self._features_of(column, found, absent=absent, start=start, gaps=gaps)
            if column.kind == "category":
                _count_unknown(found, name, unseen)
            elif column.kind == "date":
                _count_ambiguous(column, cells, unseen)
            start += column.width
            if column.indicator:
                indicator = absent.astype(np.float64)
                place = column.indicator_place or start
                yield Feature(place, indicator, name)
                start += 1
            elif gaps and self.missing == "indicator":
                unseen.missing[name] += gaps

    @staticmethod
    def _features_of(
        column: Column, found: Floats, absent: Flags, start: int, *, gaps: int
    ) -> Iterator[Feature | Shares]:
        """Yield the features of a column without its indicator; the first has the index `start`."""
        name = column.name
        if column.kind == "category":
            yield _category(column, found, start)
            if gaps and column.shares:
                shares = np.array(column.shares)
                yield Shares(start, shares, rows=absent, column=name)
        elif column.kind != "unknown":
            values = found
            if gaps:
                values = np.where(absent, column.fill, found)
            place = column.places[0] if column.places else start
            yield Feature(place, values, name)

    def label_numbers(self, cells: Cells, path: str) -> Floats:
        """Label code of each row; NaN if missing."""
        if self.label not in cells.columns:
            count = len(cells.lines)
            return np.full(count, np.nan)
        kind = self.label_kind
        codes = {label_key(name, kind): code for name, code in self.labels.items()}
        other = None if self.positive is None else -1.0

        def code_of(cell: str) -> float | None:
            key = label_key(cell, kind)
            return codes.get(key, other)

        names = cells.texts(self.label)
        labels, wrong = names.numbers(code_of)
        if wrong is not None:
            label = names.tolist()[wrong]
            hint = (
                f"the labels are {listed(self.labels)}; ? stands for no label"
                "; if a new class is in a pipe, `--classes A,B,C` must name all of them"
            )
            line = int(cells.lines[wrong])
            problem = f"the label {label!r} is unknown"
            raise bad_data(problem, path, line=line, hint=hint, field=self.label)
        return labels

    def label_named(self, text: str) -> str | None:
        """The label that a text stands for, in whatever spelling; None if there is none."""
        kind = self.label_kind
        key = label_key(text, kind)
        for name in self.labels:
            if label_key(name, kind) == key:
                return name
        return None


def _category(column: Column, codes: Floats, start: int) -> Feature:
    """The feature of the category of each row, the first of which has the index `start`."""
    known = codes >= 0
    offsets = np.where(known, codes, 0).astype(np.int64)
    indices = start + offsets
    if column.places:
        indices = np.array(column.places)[offsets]
    values = known.astype(np.float64)
    return Feature(indices, values, column.name)


def _count_unknown(codes: Floats, name: str, unseen: Unseen) -> None:
    """Count cells of a column whose categories did not occur in training."""
    is_unknown = codes == _UNKNOWN
    count = int(np.count_nonzero(is_unknown))
    if count:
        unseen.categories[name] += count


def _count_ambiguous(column: Column, cells: Cells, unseen: Unseen) -> None:
    """Count dates that are read as in training because it is not said how they are written."""
    values = cells.columns[column.name]
    spelling = cells.spelling
    is_assumed = spelling.by_model and spelling.slash_format is None
    if not is_assumed or "/" not in column.date_format or not isinstance(values, Texts):
        return
    counts = [count for text, count, _ in values.counts() if is_ambiguous_date(text)]
    if counts:
        unseen.ambiguous_dates[column.name] += sum(counts)


def _dense(features: Sequence[Feature], shares: Sequence[Shares], shape: Shape) -> Floats:
    """A dense array of features; column 0 is empty."""
    rows = np.zeros(shape)
    every = np.arange(len(rows))
    for feature in features:
        if isinstance(feature.indices, int):
            rows[:, feature.indices] = feature.values
        else:
            rows[every, feature.indices] = feature.values
    for one in shares:
        behind = one.first + len(one.values)
        rows[one.rows, one.first : behind] = one.values
    return rows


def _sparse(features: Sequence[Feature], shape: Shape) -> CsrRows:
    """Features without zeros; column 0 is empty."""
    count, width = shape
    values = np.column_stack([feature.values for feature in features])
    indices = [np.broadcast_to(feature.indices, count) for feature in features]
    columns = np.column_stack(indices)
    if (columns[:, 1:] < columns[:, :-1]).any():  # of an open schema
        order = columns.argsort(axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        values = np.take_along_axis(values, order, axis=1)
    stored = values != 0
    lengths = np.count_nonzero(stored, axis=1)
    starts = np.append(0, np.cumsum(lengths))
    stored_columns = columns[stored].astype(np.int32)
    stored_values = values[stored]
    return CsrRows(starts, stored_columns, stored_values, width=width)


def _with_shares(rows: CsrRows, shares: Sequence[Shares]) -> CsrRows:
    """Rows with the shares of missing categories, which have no value there yet."""
    owners = [rows.owners]
    columns = [rows.columns]
    values = [rows.values]
    for one in shares:
        missing = np.flatnonzero(one.rows)
        count = len(missing)
        features = one.features.astype(np.int32)
        owners.append(np.repeat(missing, len(features)))
        columns.append(np.tile(features, count))
        values.append(np.tile(one.values, count))
    owner = np.concatenate(owners)
    column = np.concatenate(columns)
    value = np.concatenate(values)
    order = np.lexsort((column, owner))
    lengths = np.bincount(owner, minlength=len(rows))
    starts = np.append(0, np.cumsum(lengths))
    return CsrRows(starts, column[order], value[order], width=rows.width)


def cell_text(values: Values, row: int) -> str:
    """The text of one cell; empty if it is missing."""
    one = values[row : row + 1]
    if isinstance(one, Dates):
        one = one.texts()
    [cell] = one.tolist()
    if isinstance(one, Texts):
        return str(cell)
    return number_text(cell)


def _counted(counts: Counter[str]) -> str:
    """Names with their counts: `age (3), city (1)`."""
    shown = [f"{name} ({count:,})" for name, count in counts.items()]
    return listed(shown)


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names as a comma-separated list, cut after `most`."""
    shown = [name for name in names if name]
    text = ", ".join(shown[:most])
    if len(shown) > most:
        text += ", …"
    return text


def no_value(name: str, path: str, line: int) -> UserError:
    """The error for a missing cell, with --missing refuse."""
    problem = f"column {name!r} has no value here"
    hint = "--missing indicator, zero or mean accepts such cells"
    return bad_data(problem, path, line=line, hint=hint, field=name)


def mixed(name: str, kind: str, cell: str, path: str, line: int) -> UserError:
    """The error for a cell whose type is not that of its column (`kind`)."""
    shown = cell
    if len(cell) > 40:
        shown = f"{cell[:40]}…"
    problem = f"column {name!r} has {kind} values, and here {shown!r}"
    if kind == "number" and len(numbers_by_sign(cell)) > 1:
        problem += ", which could be two numbers"
    column = shlex.quote(name)
    hint = f"correct the cell, or train with --category {column} or --drop {column}"
    options = _options_reading(kind, cell)
    if options:
        hint = f"how is it written? {' or '.join(options)}"
    elif kind != "category":
        hint += f"; if the cell means that there is no value, with --na {shlex.quote(shown)}"
    return bad_data(problem, path, line=line, hint=hint, field=name)


def _options_reading(kind: str, cell: str) -> list[str]:
    """The options with which a cell would be a number or date, and what it would be."""
    if kind == "number":
        values = numbers_by_sign(cell)
        return [f"--decimal {sign} reads {value:.15g}" for sign, value in values.items()]
    if kind == "date":
        dates = readings(cell)
        return [f"--date-format {form} reads {date_text(day)}" for form, day in dates.items()]
    return []
