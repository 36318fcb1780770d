"""How the columns of a table become features and labels: the schema that a model carries."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Literal

import msgspec
import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.csv_text import MISSING, Cells, Values, number
from ahpatron_cli.data.labels import show
from ahpatron_cli.errors import UserError, bad_data

_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:.+)?|[0-9]{2}:[0-9]{2}(:.+)?")
_BOOLEANS = ("True", "TRUE", "False", "FALSE")
"""Spellings of pandas and R."""
_UNKNOWN = -1.0
"""Stands for a category that no training row had."""


class Column(msgspec.Struct, forbid_unknown_fields=True):
    """How a column of a table becomes features."""

    name: str
    kind: Literal["number", "category", "date"]
    categories: list[str] = []
    """One feature each. Numbers and dates (days since 1970-01-01) are one feature."""
    indicator: bool = False
    """Whether one more feature is 1 where the cell is missing."""
    fill: float = 0.0
    """The value of missing numbers and dates."""

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        names = [f"{self.name}={category}" for category in self.categories] or [self.name]
        return [*names, f"{self.name} missing"] if self.indicator else names

    def numbers(self, cells: Cells, path: str) -> Floats:
        """Numbers, days or numbers of categories, one per row; NaN if missing."""
        values = cells.columns[self.name]
        if self.kind == "category":
            codes = {category: float(i) for i, category in enumerate(self.categories)}
            return _mapped(texts(values), lambda cell: codes.get(category_name(cell), _UNKNOWN))[0]
        if not isinstance(values, list):
            return values
        found, wrong = _mapped(values, number if self.kind == "number" else days)
        if wrong is not None:
            raise mixed(self.name, self.kind, values[wrong], path, int(cells.lines[wrong]))
        return found


class Schema(msgspec.Struct, forbid_unknown_fields=True):
    """What the columns of a table become; saved with the model that was trained on it."""

    columns: list[Column]
    label: str
    labels: dict[str, float]
    """Names of labels, and the number that stands for each."""
    missing: str = "indicator"
    positive: str | None = None
    """If given, this label is +1 and every other -1."""
    id: str | None = None
    dropped: list[str] = []

    @property
    def features(self) -> list[str]:
        """The names of all features."""
        return [name for column in self.columns for name in column.features]

    def label_names(self, labels: Iterable[float | None]) -> list[str | None]:
        """The names of labels; None for one that stands for several."""
        names = [[name for name, value in self.labels.items() if value == one] for one in labels]
        return [same[0] if len(same) == 1 else None for same in names]

    def encode(self, cells: Cells, path: str, odd: Counter[str]) -> Batch:
        """Rows as numbers. Cells that training rows did not have count as `odd`."""
        columns = list(self.indexed(cells, path, odd))
        rows = np.column_stack([values for _, values, _ in columns])
        stored = rows != 0
        indices = np.empty(rows.shape, dtype=np.int32)
        for number_, (index, _, _) in enumerate(columns):
            indices[:, number_] = index
        indptr = np.append(0, np.cumsum(np.count_nonzero(stored, axis=1)))
        encoded = CsrRows(indptr, indices[stored], rows[stored], len(self.features) + 1)
        ids = np.array(texts(cells.columns[self.id]), dtype=object) if self.id else None
        return Batch(encoded, self.label_numbers(cells, path), cells.lines, ids)

    def indexed(
        self, cells: Cells, path: str, odd: Counter[str], copied: Collection[str] = ()
    ) -> Iterator[tuple[Floats | int, Values, str]]:
        """Features by column: the index of each row's feature, from 1, its value and the column.

        The columns `copied` are left as they are.
        """
        start = 1
        for column in self.columns:
            if column.name in copied:
                yield start, cells.columns[column.name], column.name
                start += 1
                continue
            found = column.numbers(cells, path)
            absent = np.isnan(found)
            gaps = int(np.count_nonzero(absent))
            if gaps and self.missing == "refuse":
                hint = "--missing indicator, zero or mean accepts such cells"
                line = int(cells.lines[np.argmax(absent)])
                raise bad_data(f"column {column.name!r} has no value here", path, line, hint)
            if column.kind == "category":
                known = found >= 0
                yield start + np.where(known, found, 0.0), known.astype(np.float64), column.name
                odd[f"new categories of {column.name}"] += int(np.count_nonzero(found == _UNKNOWN))
            else:
                values = np.where(absent, column.fill, found) if gaps else found
                yield start, values, column.name
            start += len(column.categories) or 1
            if column.indicator:
                yield start, absent.astype(np.float64), column.name
                start += 1
            elif self.missing == "indicator":
                odd[f"missing cells of {column.name}"] += gaps

    def label_numbers(self, cells: Cells, path: str) -> Floats:
        """The number of each row's label; NaN if missing."""
        if self.label not in cells.columns:
            return np.full(len(cells.lines), np.nan)
        names = texts(cells.columns[self.label])
        labels, wrong = _mapped(names, self._label_number)
        if wrong is not None:
            hint = f"the labels are {listed(self.labels)}; ? stands for no label"
            problem = f"the label {names[wrong]!r} is unknown"
            raise bad_data(problem, path, int(cells.lines[wrong]), hint)
        return labels

    def _label_number(self, cell: str) -> float | None:
        name = label_name(cell)
        value = 1.0 if self.positive == name else None if self.positive is None else -1.0
        return self.labels.get(name, value)


def texts(values: Values) -> list[str]:
    """Cells as text, also those of a column that has numbers in this file."""
    if isinstance(values, list):
        return values
    return ["" if value != value else show(value) for value in values.tolist()]


def days(cell: str) -> float | None:
    """A date or time of ISO 8601 in days since 1970-01-01; a time of day is a part of a day."""
    if not _MOMENT.fullmatch(cell):
        return None
    try:
        if cell[2] == ":":
            moment = datetime.combine(_EPOCH, time.fromisoformat(cell))
        else:
            moment = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / _DAY


def category_name(cell: str) -> str:
    """A category as text; true and false have one spelling."""
    return cell.lower() if cell in _BOOLEANS else cell


def label_name(cell: str) -> str:
    """A label as text; numbers have one spelling, 1 for 1.0 and +1."""
    value = number(cell)
    return cell if value is None else show(value)


def listed(names: Iterable[str], most: int = 8) -> str:
    """The first few names of many."""
    names = [name for name in names if name]
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def mixed(name: str, kind: str, cell: str, path: str, line: int) -> UserError:
    """The error for a cell that is not of its column's kind."""
    shown, column = repr(cell if len(cell) <= 40 else cell[:40] + "…"), shlex.quote(name)
    hint = f"correct the cell, or train with --category {column} or --drop {column}"
    return bad_data(f"column {name!r} has {kind} values, and here {shown}", path, line, hint)


def _mapped(cells: list[str], read: Callable[[str], float | None]) -> tuple[Floats, int | None]:
    """What `read` makes of each cell, NaN if missing, and the first cell of which it is None."""
    found = {cell: np.nan if cell in MISSING else read(cell) for cell in set(cells)}
    values = [found[cell] for cell in cells]
    wrong = values.index(None) if None in found.values() else None
    return np.array(values, dtype=np.float64), wrong
