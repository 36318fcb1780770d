"""Schema: how the columns of a table become features and labels; saved with a model."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal

import msgspec
import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.csv_text import Cells, Texts, Values, number
from ahpatron_cli.data.labels import show
from ahpatron_cli.errors import UserError, bad_data

_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:.+)?|[0-9]{2}:[0-9]{2}(:.+)?")
_BOOLEANS = ("True", "TRUE", "False", "FALSE")
"""Booleans as pandas and R write them."""
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

    @property
    def features(self) -> list[str]:
        """Names of the features of this column."""
        names = [f"{self.name}={category}" for category in self.categories] or [self.name]
        return [*names, f"{self.name} missing"] if self.indicator else names

    def numbers(self, cells: Cells, path: str) -> Floats:
        """Number, days or category code of each row; NaN if missing."""
        values = cells.columns[self.name]
        if self.kind == "category":
            codes = {category: float(i) for i, category in enumerate(self.categories)}
            return texts(values).numbers(lambda cell: codes.get(category_name(cell), _UNKNOWN))[0]
        if not isinstance(values, Texts):
            return values
        found, wrong = values.numbers(number if self.kind == "number" else days)
        if wrong is not None:
            cell = values.tolist()[wrong]
            raise mixed(self.name, self.kind, cell, path, int(cells.lines[wrong]))
        return found


class Schema(msgspec.Struct, forbid_unknown_fields=True):
    """Schema of a table: its columns and labels; saved with the model that was trained on it."""

    columns: list[Column]
    label: str
    labels: dict[str, float]
    """Code of each label name."""
    missing: str = "indicator"
    positive: str | None = None
    """If given, this label is +1 and all others are -1."""
    id: str | None = None
    dropped: list[str] = []

    @property
    def features(self) -> list[str]:
        """Names of all features, in order."""
        return [name for column in self.columns for name in column.features]

    def label_names(self, labels: Iterable[float | None]) -> list[str | None]:
        """Names of label codes; None for a code that stands for several labels."""
        names = [[name for name, value in self.labels.items() if value == one] for one in labels]
        return [same[0] if len(same) == 1 else None for same in names]

    def encode(self, cells: Cells, path: str, odd: Counter[str]) -> Batch:
        """Convert cells to a batch of numeric rows; counts unseen categories etc. in `odd`."""
        columns = list(self.indexed(cells, path, odd))
        count, width = len(cells.lines), len(self.features) + 1
        encoded: Rows
        if width <= 4 * len(columns):
            encoded = np.zeros((count, width))
            for index, values, _ in columns:
                if isinstance(index, int):
                    encoded[:, index] = values
                else:
                    encoded[np.arange(count), index] = values
        else:
            rows = np.column_stack([values for _, values, _ in columns])
            indices = [np.broadcast_to(index, count) for index, _, _ in columns]
            stored = rows != 0
            indptr = np.append(0, np.cumsum(np.count_nonzero(stored, axis=1)))
            columns_ = np.column_stack(indices)[stored].astype(np.int32)
            encoded = CsrRows(indptr, columns_, rows[stored], width)
        ids = np.array(texts(cells.columns[self.id]).tolist(), dtype=object) if self.id else None
        return Batch(encoded, self.label_numbers(cells, path), cells.lines, ids)

    def indexed(
        self, cells: Cells, path: str, odd: Counter[str], copied: Collection[str] = ()
    ) -> Iterator[tuple[Integers | int, Any, str]]:
        """Yield, for each column, the feature index of each row (from 1), its value and the name.

        Values of the columns `copied` are returned unchanged.
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
                yield (
                    start + np.where(known, found, 0).astype(np.int64),
                    known.astype(np.float64),
                    column.name,
                )
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
        """Label code of each row; NaN if missing."""
        if self.label not in cells.columns:
            return np.full(len(cells.lines), np.nan)
        names = texts(cells.columns[self.label])
        labels, wrong = names.numbers(self._label_number)
        if wrong is not None:
            hint = f"the labels are {listed(self.labels)}; ? stands for no label"
            hint += "; if a new class is in a pipe, `--labels A,B,C` must name all of them"
            problem = f"the label {names.tolist()[wrong]!r} is unknown"
            raise bad_data(problem, path, int(cells.lines[wrong]), hint)
        return labels

    def _label_number(self, cell: str) -> float | None:
        name = label_name(cell)
        value = 1.0 if self.positive == name else None if self.positive is None else -1.0
        return self.labels.get(name, value)


def texts(values: Values) -> Texts:
    """Cells as text, also if the column is numeric in this file."""
    if isinstance(values, Texts):
        return values
    return Texts.of(["" if value != value else show(value) for value in values.tolist()])


def days(cell: str) -> float | None:
    """Parse an ISO 8601 date or time: days since 1970-01-01, with fractions; None if it is none."""
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
    """Normalised text of a category: true and false have one spelling."""
    return cell.lower() if cell in _BOOLEANS else cell


def label_name(cell: str) -> str:
    """Normalised text of a label: numbers have one spelling, 1 for 1.0 and +1."""
    value = number(cell)
    return cell if value is None else show(value)


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names as a comma-separated list, cut after `most`."""
    names = [name for name in names if name]
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def mixed(name: str, kind: str, cell: str, path: str, line: int) -> UserError:
    """The error for a cell whose type is not that of its column (`kind`)."""
    shown, column = repr(cell if len(cell) <= 40 else cell[:40] + "…"), shlex.quote(name)
    hint = f"correct the cell, or train with --category {column} or --drop {column}"
    return bad_data(f"column {name!r} has {kind} values, and here {shown}", path, line, hint)
