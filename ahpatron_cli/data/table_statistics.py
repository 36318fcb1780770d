"""Statistics of the cells of a table, from which its schema is inferred."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    DateFormat,
    Dates,
    Spelling,
    Texts,
    Values,
    category_name,
    days_in,
    readings,
)
from ahpatron_cli.data.schema import (
    Column,
    cell_text,
    listed,
    mixed,
)
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.settings import DecimalSign

MAX_CATEGORIES = 1000
"""Largest number of categories of a column with features of their own."""
MOST_COUNTED = 100_000
"""Largest number of categories of a column that are counted; later ones are others."""
FEWEST_ROWS = 20
"""Smallest number of rows for which a text column with few repeated values is refused."""
_LIKE = 0.9
"""Share of the texts of a column that must look like numbers or dates."""
_NUMBER_LIKE = re.compile(
    r"(?=.*[0-9])[-+]?[€$£]?\s?([0-9]{1,3}([., '][0-9]{3})*|[0-9]+)([.,][0-9]+)?\s?[%€$£]?"
)
_DATE_LIKE = re.compile(
    r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}([ T][0-9]{1,2}:[0-9]{2}.*)?"
    r"|[0-9]{1,2}[. -]+[A-Za-z]{3,9}[. -]+[0-9]{2,4}.*|[A-Za-z]{3,9} [0-9]{1,2},? [0-9]{4}.*"
)
DATE_FORMATS: tuple[DateFormat, ...] = get_args(DateFormat)
Kind: TypeAlias = Literal["number", "date", "category", "missing"]
"""Type of a cell."""


class Resemblance(NamedTuple):
    """What the texts of a column look like although each of them is a category."""

    kind: Literal["numbers", "dates"]
    example: str
    options: str = ""
    """The options with which they would be numbers; empty if there is none."""


class _Mean:
    """Mean of the values so far, and how many they are."""

    def __init__(self) -> None:
        self.value = 0.0
        self.count = 0

    def add(self, values: Floats) -> None:
        """Add values to the mean, also if their sum would overflow."""
        count = len(values)
        with np.errstate(over="ignore"):
            mean = float(values.sum()) / count
        if not np.isfinite(mean):
            parts = values / count
            mean = float(parts.sum())
        self.count += count
        share = count / self.count
        earlier = self.value * (1 - share)
        self.value = earlier + mean * share


class ColumnStatistics:
    """Statistics of a column: counts of numbers, dates, texts and missing cells."""

    def __init__(self, name: str, options: TableOptions) -> None:
        self.name = name
        self.is_category = name in options.category
        self._spelling = options.spelling
        self._slash_format = options.date_format
        self.counts: Counter[Kind] = Counter()
        self.first: dict[Kind, tuple[int, str]] = {}
        """Line and text of the first cell of each type."""
        self.categories: Counter[str] = Counter()
        """Cells of each category, of `MOST_COUNTED` at most."""
        self._rows_at_limit = 0
        """Number of cells with text when `MOST_COUNTED` was reached; 0 if it was not."""
        self._mean = _Mean()
        """Mean of the numbers."""
        self._dates: dict[DateFormat, _Mean] = {}
        """Mean of the dates in each format in which there is one."""
        self._unlike: dict[DateFormat, tuple[int, str]] = {}
        """Line and text of the first date that is none in this format."""
        self.has_leading_zeros = False
        self.has_thousands = False
        """Whether some numbers have leading zeros or separators of thousands."""
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
        mean = self._mean if kind == "number" else self._mean_of("ISO")
        mean.add(present)

    def _mean_of(self, form: DateFormat) -> _Mean:
        """Mean of the dates in this format."""
        return self._dates.setdefault(form, _Mean())

    def _add_texts(self, cells: Texts, lines: Integers) -> None:
        """Add the cells of a batch of text to the statistics."""
        numbers: dict[str, float] = {}
        dates: dict[DateFormat, dict[str, float]] = {}
        counts = cells.counts()
        if len(self.categories) + len(cells.texts) > MOST_COUNTED:
            counts = iter(sorted(counts, key=itemgetter(2)))  # the same in batches of any size
        for cell, count, row in counts:
            line = int(lines[row])
            kind, value = kind_of(cell, self._spelling, is_category=self.is_category)
            self.counts[kind] += count
            self._note_first(kind, line, cell)
            if kind == "category":
                self._add_category(cell, count)
            elif kind == "number":
                numbers[cell] = value
                self._note_number(cell)
                if value == 0:
                    self.zeros += count
            elif kind == "date":
                self._note_date(cell, line, dates)
        if numbers:
            self._mean.add(_present(cells, numbers))
        for form, by_text in dates.items():
            self._mean_of(form).add(_present(cells, by_text))

    def _note_first(self, kind: Kind, line: int, cell: str) -> None:
        """Note a cell if it is the first of its type."""
        first = self.first.get(kind)
        if first is None or line < first[0]:
            self.first[kind] = (line, cell)

    def _note_number(self, cell: str) -> None:
        """Note how a number is written."""
        if cell[0] == "0" and cell[1:2].isdigit():
            self.has_leading_zeros = True
        if self._spelling.has_thousands(cell):
            self.has_thousands = True

    def _note_date(self, cell: str, line: int, dates: dict[DateFormat, dict[str, float]]) -> None:
        """Add a date to `dates`, in each format in which it is one."""
        found = readings(cell)
        for form, value in found.items():
            dates.setdefault(form, {})[cell] = value
        for form in DATE_FORMATS:
            known = self._unlike.get(form)
            if form not in found and (known is None or line < known[0]):
                self._unlike[form] = (line, cell)

    def _add_category(self, cell: str, count: int) -> None:
        """Count cells of a category, if it is known or there are not too many of them."""
        name = cell
        if cell not in self.categories:
            name = category_name(cell)
        known = self.categories
        if name in known or len(known) < MOST_COUNTED:
            known[name] += count
        elif not self._rows_at_limit:
            self._rows_at_limit = known.total()

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
            column.categories = self._most_frequent()
            column.other = len(column.categories) < len(self.categories)
            if fills and not has_gaps:
                column.shares = self._shares(column)
            return column
        mean = self._mean
        if kind == "date":
            column.date_format = self._date_format(path)
            mean = self._dates[column.date_format]
        if fills or (indicator and kind == "date"):  # not 0, a date far from all others
            column.fill = mean.value
        return column

    def _date_format(self, path: str) -> DateFormat:
        """The one format in which all dates of this column are written."""
        most_frequent = max(self._dates, key=lambda form: self._dates[form].count)
        forms = [form for form in self._dates if form not in self._unlike]
        if self._slash_format and self._slash_format in self._dates:
            most_frequent = self._slash_format
            forms = [form for form in forms if form == self._slash_format]
        if len(forms) == 1:
            return forms[0]
        name = shlex.quote(self.name)
        if not forms:
            line, cell = self._unlike[most_frequent]
            problem = f"column {self.name!r} has dates like {most_frequent}, and here {cell!r}"
            hint = f"write all dates of a column alike, or train with --drop {name}"
            raise bad_data(problem, path, line=line, hint=hint, field=self.name)
        line, cell = self.first["date"]
        problem = f"column {self.name!r} has dates like {cell!r}, with the day or the month first"
        hint = "say which: --date-format DD/MM/YYYY, or --date-format MM/DD/YYYY"
        raise bad_data(problem, path, line=line, hint=hint, field=self.name)

    def _most_frequent(self) -> list[str]:
        """The categories with features of their own, in alphabetical order."""
        counts = self.categories
        by_count = sorted(counts, key=lambda name: (-counts[name], name))
        return sorted(by_count[:MAX_CATEGORIES])

    def _shares(self, column: Column) -> list[float]:
        """Share of each category in the cells that have one, and of the others."""
        rows = self.counts["category"]
        counts = [self.categories[name] for name in column.categories]
        if column.other:
            counts.append(rows - sum(counts))
        return [count / rows for count in counts]

    def _check_categories(self, path: str) -> None:
        """Refuse a text column in which nearly every row is different (ids, names, free text)."""
        rows = self._rows_at_limit or self.counts["category"]
        different = len(self.categories)
        hardly_repeats = rows >= FEWEST_ROWS and 10 * different > 9 * rows
        if not hardly_repeats or self.is_category:
            return
        problem = f"column {self.name!r} has {different:,} different texts in {rows:,} rows"
        name = shlex.quote(self.name)
        hint = (
            f"leave it out with --drop {name}, or with --id {name} if it identifies rows"
            "; dates must be written like 2024-05-31, 31.05.2024 or 05/31/2024, numbers like 1.5"
        )
        seems = self.resemblance
        if seems is not None and seems.options:
            hint = f"{seems.options} reads numbers; or leave the column out: --drop {name}"
        line, _ = self.first["category"]
        raise bad_data(problem, path, line=line, hint=hint, field=self.name)

    @property
    def resemblance(self) -> Resemblance | None:
        """What the texts look like, unless the column is said to have categories."""
        if self.is_category:
            return None
        return resemblance_of(self.categories)

    @property
    def suspicion(self) -> str | None:
        """That the texts may be meant as numbers or dates, and what reads them as these."""
        if self.is_category:
            return None
        return suspicion_of(self.name, self.categories)


def resemblance_of(categories: Collection[str]) -> Resemblance | None:
    """What nearly all of these texts look like, numbers or dates; None if neither."""
    if not categories:
        return None
    numbers = _numbers_by_option(categories)
    if numbers:
        example = min(min(texts) for texts in numbers.values())
        return Resemblance("numbers", example, " or ".join(numbers))
    date = _similar(categories, _DATE_LIKE)
    if date is not None:
        return Resemblance("dates", date)
    number = _similar(categories, _NUMBER_LIKE)
    if number is not None:
        return Resemblance("numbers", number)
    return None


def suspicion_of(name: str, categories: Collection[str]) -> str | None:
    """That the texts of a column may be meant as numbers or dates, and what reads them as these."""
    seems = resemblance_of(categories)
    if seems is None:
        return None
    way = "write dates like 2024-05-31"
    if seems.kind == "numbers":
        way = "write numbers like 1234.5"
    if seems.options:
        way = f"{seems.options} reads numbers"
    return (
        f"column {name!r} looks like {seems.kind} ({seems.example}), and each text is a category: "
        f"{way}, or --category {shlex.quote(name)} if categories are meant"
    )


def _numbers_by_option(categories: Collection[str]) -> dict[str, list[str]]:
    """Those of these texts that are numbers, by the options with which nearly all of them are."""
    found = {}
    for sign in get_args(DecimalSign):
        spelling = Spelling(sign)
        numbers = [text for text in categories if spelling.number(text) is not None]
        if len(numbers) >= _LIKE * len(categories):
            found[f"--decimal {sign}"] = numbers
    return found


def _similar(categories: Collection[str], form: re.Pattern[str]) -> str | None:
    """The first of these texts, by alphabet, that has a form, if nearly all have it."""
    similar = [text for text in categories if form.fullmatch(text)]
    if len(similar) < _LIKE * len(categories):
        return None
    return min(similar)


def _present(cells: Texts, values: Mapping[str, float]) -> Floats:
    """The values of the cells that have one."""
    found, _ = cells.numbers(lambda cell: values.get(cell, np.nan))
    return found[~np.isnan(found)]


def _typed(values: Floats | Dates) -> tuple[Kind, Floats]:
    """Type of the cells of a column that is no text, and their numbers."""
    if isinstance(values, Dates):
        return "date", values.days()
    return "number", values


def kind_of(cell: str, spelling: Spelling, *, is_category: bool) -> tuple[Kind, float]:
    """Type of a cell, and its value if that is a number."""
    if cell in MISSING:
        return "missing", 0.0
    if is_category:
        return "category", 0.0
    value = spelling.number(cell)
    if value is not None:
        return "number", value
    if readings(cell):
        return "date", 0.0
    return "category", 0.0


def faulty_rows(
    values: Values, column: Column, spelling: Spelling, *, may_be_missing: bool, is_category: bool
) -> list[int]:
    """Rows whose cells have another type than their column, or are missing where none may be."""
    legal: set[str] = {column.kind}
    if may_be_missing:
        legal.add("missing")
    if isinstance(values, Texts):
        is_wrong = []
        for text in values.texts:
            own, _ = kind_of(text, spelling, is_category=is_category)
            form = spelling.slash_format or column.date_format
            is_unlike = own == "date" and days_in(form, text) is None
            is_wrong.append(own not in legal or is_unlike)
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
        self.columns = [ColumnStatistics(name, options) for name in features]
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


def separators_note(name: str) -> str:
    """The note on a column of numbers with separators of thousands."""
    return f"column {name!r} has separators of thousands, which are left out"


def leading_zeros_note(name: str) -> str:
    """The note on a column of numbers like 007, which may be codes."""
    return (
        f"column {name!r} has numbers with leading zeros: if they are codes, "
        f"--category {shlex.quote(name)}"
    )


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
