"""Statistics of the cells of a table, from which its schema is inferred."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    Dates,
    Texts,
    Values,
    category_name,
    days,
    number,
)
from ahpatron_cli.data.schema import (
    Column,
    cell_text,
    listed,
    mixed,
)
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import UserError, bad_data

MAX_CATEGORIES = 1000
FEWEST_ROWS = 20
"""Smallest number of rows for which a text column with few repeated values is refused."""
Kind: TypeAlias = Literal["number", "date", "category", "missing"]
"""Type of a cell."""


class ColumnStatistics:
    """Statistics of a column: counts of numbers, dates, texts and missing cells."""

    def __init__(self, name: str, is_category: bool) -> None:
        self.name = name
        self.is_category = is_category
        self.counts: Counter[Kind] = Counter()
        self.first: dict[Kind, tuple[int, str]] = {}
        """Line and text of the first cell of each type."""
        self.categories: Counter[str] = Counter()
        """Cells of each category, up to one more than the largest number of categories."""
        self._mean = 0.0
        self._averaged = 0
        """Mean of the numbers or dates so far, and how many they are."""
        self.zeros = 0

    def add(self, values: Values, lines: Integers) -> None:
        """Add the cells of a batch to the statistics."""
        if isinstance(values, Texts):
            self._add_texts(values, lines)
            return
        kind, found = _typed(values)
        absent = np.isnan(found)
        present = found[~absent]
        count = len(present)
        missing = len(found) - count
        self.counts["missing"] += missing
        self.counts[kind] += count
        if count == 0:
            return
        if kind not in self.first:
            row = int(np.argmin(absent))
            line = int(lines[row])
            cell = cell_text(values, row)
            self.first[kind] = (line, cell)
        zeros = np.count_nonzero(present == 0)
        self.zeros += int(zeros)
        self._average(present)

    def _add_texts(self, cells: Texts, lines: Integers) -> None:
        """Add the cells of a batch of text to the statistics."""
        values: dict[str, float] = {}
        for cell, count, row in cells.counts():
            kind, value = kind_of(cell, is_category=self.is_category)
            self.counts[kind] += count
            line = int(lines[row])
            self._note_first(kind, line, cell)
            if kind == "category":
                self._add_category(cell, count)
            elif kind != "missing":
                values[cell] = value
                if value == 0:
                    self.zeros += count
        if values:
            found, _ = cells.numbers(lambda cell: values.get(cell, np.nan))
            present = ~np.isnan(found)
            self._average(found[present])

    def _note_first(self, kind: Kind, line: int, cell: str) -> None:
        """Note a cell if it is the first of its type."""
        first = self.first.get(kind)
        if first is None or line < first[0]:
            self.first[kind] = (line, cell)

    def _add_category(self, cell: str, count: int) -> None:
        """Count cells of a category, if it is known or there are not too many of them."""
        name = cell
        if cell not in self.categories:
            name = category_name(cell)
        known = self.categories
        if name in known or len(known) <= MAX_CATEGORIES:
            known[name] += count

    def _average(self, values: Floats) -> None:
        """Add numbers or dates to the mean, also if their sum would overflow."""
        count = len(values)
        with np.errstate(over="ignore"):
            mean = float(values.sum()) / count
        if not np.isfinite(mean):
            parts = values / count
            mean = float(parts.sum())
        self._averaged += count
        share = count / self._averaged
        earlier = self._mean * (1 - share)
        self._mean = earlier + mean * share

    def column(self, missing: str, path: str, *, may_be_mixed: bool = False) -> Column | None:
        """The inferred `Column`; None if all cells are missing.

        Cells of several types are refused, unless it `may_be_mixed`: the most frequent type counts.
        """
        counted = self.counts.most_common()
        kinds = [kind for kind, count in counted if count and kind != "missing"]
        if not kinds:
            return None
        kind = kinds[0]
        if len(kinds) > 1 and not may_be_mixed:
            rarest = kinds[-1]
            line, cell = self.first[rarest]
            raise mixed(self.name, kind, cell=cell, path=path, line=line)
        has_gaps = self.counts["missing"] > 0
        indicator = missing == "indicator" and has_gaps
        column = Column(self.name, kind, indicator=indicator)
        fills = missing in ("indicator", "mean") and not indicator
        if kind == "category":
            self._check_categories(path)
            column.categories = sorted(self.categories)
            if fills and not has_gaps:
                column.shares = self._shares(column.categories)
        elif fills or (indicator and kind == "date"):  # not 0, a date far from all others
            column.fill = self._mean
        return column

    def _shares(self, categories: Sequence[str]) -> list[float]:
        """Share of each category in the cells that have one."""
        rows = self.counts["category"]
        return [self.categories[name] / rows for name in categories]

    def _check_categories(self, path: str) -> None:
        """Refuse a text column with too many distinct values (ids, names, free text)."""
        rows = self.counts["category"]
        different = len(self.categories)
        hardly_repeats = rows >= FEWEST_ROWS and 2 * different > rows
        is_free_text = hardly_repeats and not self.is_category
        if different <= MAX_CATEGORIES and not is_free_text:
            return
        many = str(different)
        if different > MAX_CATEGORIES:
            many = f"more than {MAX_CATEGORIES:,}"
        problem = f"column {self.name!r} has {many} different texts in {rows:,} rows"
        name = shlex.quote(self.name)
        hint = (
            f"leave it out with --drop {name}, or with --id {name} if it identifies rows"
            "; dates must be written like 2024-05-31, numbers like 1.5"
        )
        line, _ = self.first["category"]
        raise bad_data(problem, path, line=line, hint=hint)


def _typed(values: Floats | Dates) -> tuple[Kind, Floats]:
    """Type of the cells of a column that is no text, and their numbers."""
    if isinstance(values, Dates):
        return "date", values.days()
    return "number", values


def kind_of(cell: str, *, is_category: bool) -> tuple[Kind, float]:
    """Type of a cell, and its value if that is a number or a date."""
    if cell in MISSING:
        return "missing", 0.0
    if is_category:
        return "category", 0.0
    value = number(cell)
    if value is not None:
        return "number", value
    day = days(cell)
    if day is not None:
        return "date", day
    return "category", 0.0


def faulty_rows(values: Values, kind: Kind, missing: str, is_category: bool) -> list[int]:
    """Rows whose cells have another type than their column, or are missing where none may be."""
    legal: set[Kind] = {kind}
    if missing != "refuse":
        legal.add("missing")
    if isinstance(values, Texts):
        is_wrong = []
        for text in values.texts:
            own, _ = kind_of(text, is_category=is_category)
            is_wrong.append(own not in legal)
        wrong = np.array(is_wrong, dtype=bool)[values.codes]
    else:
        own, numbers = _typed(values)
        absent = np.isnan(numbers)
        wrong = np.where(absent, "missing" not in legal, own not in legal)
    rows: list[int] = np.flatnonzero(wrong).tolist()
    return rows


class TableStatistics:
    """Statistics of a table: those of its columns of features, and counts of its labels."""

    def __init__(self, features: Iterable[str], options: TableOptions) -> None:
        self.columns = [ColumnStatistics(name, name in options.category) for name in features]
        self._label = options.label or ""
        self._positive = options.positive
        self.rows = 0
        self.labelled = 0
        """Number of rows with a label, also of those that are not counted."""
        self.labels: Counter[str] = Counter(dict.fromkeys(options.labels, 0))
        """Rows of each label, up to one more than the largest number of classes."""
        self.unlabelled: Counter[str] = Counter()
        """Rows without a label, by the cell that they have instead."""

    def add_all(self, batches: Iterable[Cells], no_numbers: set[str] | None = None) -> None:
        """Add batches to the statistics, and columns with text or dates to `no_numbers`."""
        for cells in batches:
            self._add(cells)
            if no_numbers is None:
                continue
            for column in self.columns:  # the reader looks at `no_numbers` before each batch
                if column.counts["category"] or column.counts["date"]:
                    no_numbers.add(column.name)

    def _add(self, cells: Cells) -> None:
        self.rows += len(cells.lines)
        for column in self.columns:
            values = cells.columns[column.name]
            column.add(values, cells.lines)
        if not self._label:
            return
        labels = cells.texts(self._label)
        for cell, count, _ in labels.counts():
            if cell in MISSING:
                self.unlabelled[cell] += count
            else:
                self._add_label(cell, count)

    def _add_label(self, label: str, count: int) -> None:
        """Count rows with a label, if it is known or there are not too many of them."""
        self.labelled += count
        is_known = label in self.labels or label == self._positive
        if is_known or len(self.labels) <= MAX_CLASSES:
            self.labels[label] += count

    def numeric(self) -> dict[str, bool]:
        """Columns in which every cell is a number, with whether more than a tenth are 0."""
        found = {}
        for column in self.columns:
            cells = column.counts.total()
            if column.counts["number"] == cells:
                has_zeros = 10 * column.zeros > cells
                found[column.name] = has_zeros
        return found

    def check(self, path: str) -> None:
        """Refuse a table without rows or without labels."""
        if not self.rows:
            raise no_rows(path)
        if not self.labelled:
            problem = f"no row has a label in column {self._label!r}"
            hint = no_labels(self.unlabelled)
            raise bad_data(problem, path, line=1, hint=hint)


def no_rows(path: str) -> UserError:
    """The error for a table without rows."""
    return bad_data("there are no rows: the table has a header only", path, 1)


def no_labels(cells: Counter[str]) -> str:
    """Hint on cells of the label column that count as no label, with their numbers."""
    shown = []
    for cell, count in cells.most_common():
        written = cell or "an empty cell"
        shown.append(f"{written} ({count:,})")
    return f"these cells are no labels: {listed(shown)}; if one of them is, write another word"
