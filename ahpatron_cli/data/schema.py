"""Schema: how the columns of a table become features and labels; saved with a model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.cells import (
    Cells,
    Dates,
    LabelKind,
    Texts,
    Values,
    category_name,
    days,
    label_key,
    number,
)
from ahpatron_cli.data.labels import show
from ahpatron_cli.errors import UserError, bad_data

_UNKNOWN = -1.0
"""Code of a category that did not occur in training."""


class Column(msgspec.Struct, forbid_unknown_fields=True):
    """How a column of a table becomes one or more features."""

    name: str
    kind: Literal["number", "category", "date"]
    categories: list[str] = []
    """Categories, one feature each; empty for numbers and dates (days since 1970-01-01)."""
    indicator: bool = False
    """Whether a further feature is 1 for missing cells."""
    fill: float = 0.0
    """Value that replaces missing numbers and dates."""
    shares: list[float] = []
    """Values of the features of a missing category, its shares in training; if empty, all 0."""

    @property
    def features(self) -> list[str]:
        """Names of the features of this column."""
        names = [f"{self.name}={category}" for category in self.categories] or [self.name]
        return [*names, f"{self.name} missing"] if self.indicator else names

    def numbers(self, cells: Cells, path: str) -> Floats:
        """Number, days or category code of each row; NaN if missing."""
        if self.kind == "category":
            return cells.texts(self.name).numbers(self._category_codes())[0]
        values = cells.columns[self.name]
        if isinstance(values, Texts):
            read = number if self.kind == "number" else days
            found, wrong = values.numbers(read)
            if wrong is not None:
                raise self._mixed(values, wrong, cells, path)
            return found
        found = values.days() if isinstance(values, Dates) else values
        if isinstance(values, Dates) != (self.kind == "date"):
            present = np.flatnonzero(~np.isnan(found))
            if len(present):
                raise self._mixed(values, int(present[0]), cells, path)
        return found

    def _category_codes(self) -> Callable[[str], float]:
        """The function from a cell to the code of its category.

        Categories that are all numbers are compared by value: a column of integers is written
        with fractions if it once had a missing cell.
        """
        codes = {category: float(i) for i, category in enumerate(self.categories)}
        by_value = _by_value(codes)

        def code_of(cell: str) -> float:
            name = cell if cell in codes else category_name(cell)
            return codes[name] if name in codes else by_value.get(number(cell), _UNKNOWN)

        return code_of

    def _mixed(self, values: Values, row: int, cells: Cells, path: str) -> UserError:
        cell = cell_text(values, row)
        return mixed(self.name, self.kind, cell, path, int(cells.lines[row]))


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

    @property
    def notes(self) -> list[str]:
        """Notes for the user on what became of these cells."""
        found = []
        if self.categories:
            shown = _counted(self.categories)
            found.append(f"not seen in training, taken as no value: new categories of {shown}")
        if self.missing:
            found.append(
                "missing here and never in training, taken as the mean of the column or the shares "
                f"of its categories: {_counted(self.missing)}"
            )
        return found


class Feature(NamedTuple):
    """A feature, or that of the category of each row: its index (from 1) and its values."""

    indices: Integers | int
    values: Any
    column: str


class Shares(NamedTuple):
    """Values of all features of a category, in those rows where it is missing."""

    first: int
    """Index of the first of these features."""
    values: Floats
    rows: NDArray[np.bool_]
    column: str


class Schema(msgspec.Struct, forbid_unknown_fields=True):
    """Schema of a table: its columns and labels; saved with the model that was trained on it."""

    columns: list[Column]
    label: str
    labels: dict[str, float]
    """Code of each label, by its text in the table."""
    missing: str = "indicator"
    positive: str | None = None
    """If given, this label is +1 and all others are -1."""
    id: str | None = None
    dropped: list[str] = []
    label_kind: LabelKind = "text"
    """What the labels are, which decides how they are compared, and their type in Python."""

    @property
    def features(self) -> list[str]:
        """Names of all features, in order."""
        return [name for column in self.columns for name in column.features]

    def label_names(self, labels: Iterable[float | None]) -> list[str | None]:
        """Names of label codes; None for a code that stands for several labels."""
        names: dict[float | None, list[str]] = {}
        for name, code in self.labels.items():
            names.setdefault(code, []).append(name)
        found = (names.get(label, []) for label in labels)
        return [same[0] if len(same) == 1 else None for same in found]

    def text_columns(self) -> set[str]:
        """Columns whose text is needed: label, id, categories."""
        categories = {column.name for column in self.columns if column.kind == "category"}
        return categories | {self.label} | ({self.id} if self.id else set())

    def check_columns(self, names: Collection[str], path: str) -> None:
        """Refuse a table without the columns of this schema."""
        asked = [column.name for column in self.columns] + ([self.id] if self.id else [])
        if lost := [name for name in asked if name not in names]:
            problem = f"columns are missing: {listed(lost)}"
            raise bad_data(problem, path, 1, f"the columns are {listed(names)}")

    def encode(self, cells: Cells, path: str, unseen: Unseen) -> Batch:
        """Convert cells to a batch of numeric rows; counts cells that are new in `unseen`."""
        encoded = list(self.encoded(cells, path, unseen))
        features = [one for one in encoded if isinstance(one, Feature)]
        shares = [one for one in encoded if isinstance(one, Shares)]
        count, width = len(cells.lines), len(self.features) + 1
        rows: Rows
        if width <= 4 * len(features):
            rows = _dense(features, shares, (count, width))
        else:
            stored = _sparse(features, (count, width))
            rows = _with_shares(stored, shares) if shares else stored
        ids = np.array(cells.texts(self.id).tolist(), dtype=object) if self.id else None
        return Batch(rows, self.label_numbers(cells, path), cells.lines, ids)

    def encoded(
        self, cells: Cells, path: str, unseen: Unseen, copied: Collection[str] = ()
    ) -> Iterator[Feature | Shares]:
        """Yield the features of each column, in increasing order of their indices.

        Values of the columns `copied` are returned unchanged.
        """
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
                raise no_value(name, path, int(cells.lines[np.argmax(absent)]))
            if column.kind == "category":
                known = found >= 0
                indices = start + np.where(known, found, 0).astype(np.int64)
                yield Feature(indices, known.astype(np.float64), name)
                if gaps and column.shares:
                    yield Shares(start, np.array(column.shares), absent, name)
                if strange := int(np.count_nonzero(found == _UNKNOWN)):
                    unseen.categories[name] += strange
            else:
                yield Feature(start, np.where(absent, column.fill, found) if gaps else found, name)
            start += len(column.categories) or 1
            if column.indicator:
                yield Feature(start, absent.astype(np.float64), name)
                start += 1
            elif gaps and self.missing == "indicator":
                unseen.missing[name] += gaps

    def label_numbers(self, cells: Cells, path: str) -> Floats:
        """Label code of each row; NaN if missing."""
        if self.label not in cells.columns:
            return np.full(len(cells.lines), np.nan)
        names = cells.texts(self.label)
        codes = {label_key(name, self.label_kind): code for name, code in self.labels.items()}
        other = None if self.positive is None else -1.0
        labels, wrong = names.numbers(
            lambda cell: codes.get(label_key(cell, self.label_kind), other)
        )
        if wrong is not None:
            hint = f"the labels are {listed(self.labels)}; ? stands for no label"
            hint += "; if a new class is in a pipe, `--labels A,B,C` must name all of them"
            problem = f"the label {names.tolist()[wrong]!r} is unknown"
            raise bad_data(problem, path, int(cells.lines[wrong]), hint)
        return labels

    def label_named(self, text: str) -> str | None:
        """The label that a text stands for, in whatever spelling; None if there is none."""
        key = label_key(text, self.label_kind)
        return next((name for name in self.labels if label_key(name, self.label_kind) == key), None)


def _dense(
    features: Sequence[Feature], shares: Sequence[Shares], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """A dense array of features; column 0 is empty."""
    rows = np.zeros(shape)
    for indices, values, _ in features:
        if isinstance(indices, int):
            rows[:, indices] = values
        else:
            rows[np.arange(len(rows)), indices] = values
    for one in shares:
        rows[one.rows, one.first : one.first + len(one.values)] = one.values
    return rows


def _sparse(features: Sequence[Feature], shape: tuple[int, int]) -> CsrRows:
    """Features without zeros; column 0 is empty."""
    count, width = shape
    values = np.column_stack([feature.values for feature in features])
    indices = [np.broadcast_to(feature.indices, count) for feature in features]
    stored = values != 0
    indptr = np.append(0, np.cumsum(np.count_nonzero(stored, axis=1)))
    columns = np.column_stack(indices)[stored].astype(np.int32)
    return CsrRows(indptr, columns, values[stored], width)


def _with_shares(rows: CsrRows, shares: Sequence[Shares]) -> CsrRows:
    """Rows with the shares of missing categories, which have no value there yet."""
    owners = [rows.owners]
    columns = [rows.columns]
    values = [rows.values]
    for one in shares:
        missing = np.flatnonzero(one.rows)
        features = np.arange(one.first, one.first + len(one.values), dtype=np.int32)
        owners.append(np.repeat(missing, len(features)))
        columns.append(np.tile(features, len(missing)))
        values.append(np.tile(one.values, len(missing)))
    owner = np.concatenate(owners)
    column = np.concatenate(columns)
    order = np.lexsort((column, owner))
    indptr = np.append(0, np.cumsum(np.bincount(owner, minlength=len(rows))))
    return CsrRows(indptr, column[order], np.concatenate(values)[order], rows.width)


def cell_text(values: Values, row: int) -> str:
    """The text of one cell."""
    one = values[row : row + 1]
    if isinstance(one, Dates):
        one = one.texts()
    return one.tolist()[0] if isinstance(one, Texts) else show(one.tolist()[0])


def _counted(counts: Counter[str]) -> str:
    """Names with their counts: `age (3), city (1)`."""
    return listed(f"{name} ({count:,})" for name, count in counts.items())


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names as a comma-separated list, cut after `most`."""
    names = [name for name in names if name]
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def no_value(name: str, path: str, line: int) -> UserError:
    """The error for a missing cell, with --missing refuse."""
    hint = "--missing indicator, zero or mean accepts such cells"
    return bad_data(f"column {name!r} has no value here", path, line, hint)


def mixed(name: str, kind: str, cell: str, path: str, line: int) -> UserError:
    """The error for a cell whose type is not that of its column (`kind`)."""
    shown, column = repr(cell if len(cell) <= 40 else cell[:40] + "…"), shlex.quote(name)
    hint = f"correct the cell, or train with --category {column} or --drop {column}"
    return bad_data(f"column {name!r} has {kind} values, and here {shown}", path, line, hint)
