"""Overview of the columns of a table: `inspect TABLE`, in one pass with bounded memory.

Beside counts of its cells, each column has the mistakes of a rule on it alone: predict the most
frequent label so far among rows with the same value, or with a number in the same interval. A
column that gives the label away shows in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    Dates,
    Texts,
    Values,
    category_name,
    date_text,
    number_texts,
    readings,
)
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import ColumnStatistics, Kind, leading_zeros_note

ColumnType: TypeAlias = Literal["number", "date", "category", "empty"]

MOST_DISTINCT = 10_000
"""Largest number of distinct values that are counted exactly."""
MOST_INTERVALS = 64
"""Largest number of intervals into which the rule on a column divides numbers."""
MOST_VALUES = 1000
"""Largest number of different texts that the rule on a column distinguishes."""
MOST_COUNTS = 1 << 24
"""Largest number of counts that the rules of all columns keep together (64 MB)."""
FEWEST_ROWS = 20
"""Smallest number of rows for which a column can look like an id."""


class ColumnOverview(Struct, frozen=True, kw_only=True):
    """A column of a table: an entry of `columns` in the JSON document of `inspect`."""

    name: str
    role: str
    """`feature`, `label`, `id` or `dropped`, as the options say."""
    type: ColumnType
    """`number`, `date`, `category`, or `empty`; the most frequent type if there are several."""
    rows: int
    """Number of cells, missing ones and those of rows with a fault in another column included."""
    other_types: int
    """Number of cells of another type."""
    missing: int
    distinct: int | None
    """Number of different values; null if there are more than 10,000."""
    low: float | str | None
    """Smallest number or date."""
    high: float | str | None
    most_frequent: str | None
    """The most frequent text; null for numbers and dates."""
    most_frequent_rows: int | None
    constant: bool
    """Whether all cells have the same value, and none is missing."""
    like_id: bool
    """Whether all values are different, and texts or whole numbers."""
    like: str | None
    """`numbers` or `dates` if texts of the column look like these."""
    like_example: str | None
    mistake_rate: float | None
    """Mistake rate of a rule on this column alone; null without labels, and for label and id."""


class Overview:
    """Overview of the columns of a table, from batches of cells."""

    def __init__(
        self,
        names: Sequence[str],
        options: TableOptions,
        dropped: Iterable[str],
    ) -> None:
        label = options.label
        self.rows = 0
        self._label = label
        self._roles = dict.fromkeys(names, "feature")
        self._roles |= dict.fromkeys(dropped, "dropped")
        if label is not None:
            self._roles[label] = "label"
        if options.id is not None:
            self._roles[options.id] = "id"
        self._classes = Classes(options.positive)
        self._columns = {name: _Column(name, options) for name in names}
        self._rules: dict[str, Rule] = {}
        if label is not None:
            features = [name for name in names if self._roles[name] == "feature"]
            most = MOST_COUNTS // max(len(features), 1)
            for name in features:
                self._rules[name] = Rule(self._columns[name], most)

    def add(self, cells: Cells) -> None:
        """Add a batch of rows."""
        codes = None
        if self._label is not None and self._rules:
            labels = cells.texts(self._label)
            codes = self._classes.codes(labels)
        for name, column in self._columns.items():
            values = cells.columns.get(name)
            if values is None:
                continue
            column.add(values, cells.lines)
            if codes is not None and name in self._rules:
                rule = self._rules[name]
                rule.add(values, codes, len(self._classes))
        if len(self._classes) > MAX_CLASSES:
            self._rules.clear()
        self.rows += len(cells.lines)

    def columns(self) -> tuple[ColumnOverview, ...]:
        """The columns in the order of the table."""
        found = []
        for name, column in self._columns.items():
            rule = self._rules.get(name)
            rate = None
            if rule is not None:
                rate = rule.mistake_rate
            overview = column.overview(self._roles[name], rate)
            found.append(overview)
        return tuple(found)

    def suspicions(self, leading_zeros: Collection[str]) -> list[str]:
        """What columns may be meant as, with the options that say so.

        Columns that have been read as numbers and have some with `leading_zeros` are named here.
        """
        found = []
        for name, column in self._columns.items():
            if self._roles[name] != "feature":
                continue
            seen = column.statistics
            if column.type == "category" and seen.suspicion:
                found.append(seen.suspicion)
            if column.type == "number" and (seen.has_leading_zeros or name in leading_zeros):
                found.append(leading_zeros_note(name))
        return found


class Classes:
    """Numbers of the labels of a table, in the order of their first rows."""

    def __init__(self, positive: str | None) -> None:
        self._positive = positive
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def codes(self, labels: Texts) -> Integers:
        """Number of the label of each row; -1 without one."""
        numbers = [self._number(text) for text in labels.texts]
        numbers.append(-1)  # the code -1 is that of a row without a label
        by_code = np.array(numbers, dtype=np.int64)
        return by_code[labels.codes]

    def _number(self, text: str) -> int:
        if text in MISSING or len(self._numbers) > MAX_CLASSES:
            return -1
        name = text
        if self._positive is not None:
            name = str(text == self._positive)
        return self._numbers.setdefault(name, len(self._numbers))


class _Column:
    """What is known of the cells of a column."""

    def __init__(self, name: str, options: TableOptions) -> None:
        self.statistics = ColumnStatistics(name, options)
        self._options = options
        self._distinct: set[str | float] = set()
        self._repeats = False
        """Whether a value has occurred twice, among those that were counted."""
        self._is_whole = True
        self._low = np.inf
        self._high = -np.inf

    def add(self, values: Values, lines: Integers) -> None:
        """Add cells."""
        self.statistics.add(values, lines)
        if isinstance(values, Texts):
            self._add_texts(values)
        elif isinstance(values, Dates):
            self._add_numbers(values.days())
        else:
            self._add_numbers(values)

    def _add_texts(self, cells: Texts) -> None:
        found: list[float] = []
        for text, count, _ in cells.counts():
            if text in MISSING:
                continue
            value = self.read(text)
            if value is not None:
                found.append(value)
            repeats = count > 1
            if value is None:
                self._note(text, repeats=repeats)
            else:
                self._note(value, repeats=repeats)
        self._widen(np.array(found))

    def _add_numbers(self, values: Floats) -> None:
        present = values[~np.isnan(values)]
        self._widen(present)
        if len(self._distinct) > MOST_DISTINCT:
            return
        distinct, counts = np.unique(present, return_counts=True)
        repeats = bool(counts.max(initial=0) > 1)
        for value in distinct[: MOST_DISTINCT + 1].tolist():
            self._note(value, repeats=repeats)

    def _note(self, value: str | float, *, repeats: bool) -> None:
        """Count a value that comes in a batch, unless too many are known."""
        if len(self._distinct) > MOST_DISTINCT:
            return
        self._repeats |= repeats or value in self._distinct
        self._distinct.add(value)

    def _widen(self, values: Floats) -> None:
        if not len(values):
            return
        low = float(values.min())
        high = float(values.max())
        is_whole = values == np.floor(values)
        self._low = min(self._low, low)
        self._high = max(self._high, high)
        self._is_whole &= bool(is_whole.all())

    def read(self, text: str) -> float | None:
        """The number or date that a text is; None if it is neither."""
        if self.statistics.is_category:
            return None
        value = self._options.spelling.number(text)
        if value is not None:
            return value
        dates = readings(text)
        likely = next(iter(dates.values()), None)
        if self._options.date_format is None:
            return likely
        return dates.get(self._options.date_format, likely)

    @property
    def type(self) -> ColumnType:
        """The most frequent type of cells."""
        counts = self.statistics.counts
        kinds: tuple[Kind, ...] = ("number", "date", "category")
        most = max(kinds, key=lambda kind: counts[kind])
        if not counts[most] or most == "missing":
            return "empty"
        return most

    def overview(self, role: str, rate: float | None) -> ColumnOverview:
        """What is shown of the column."""
        kind = self.type
        counts = self.statistics.counts
        missing = counts["missing"]
        present = counts.total() - missing
        distinct: int | None = len(self._distinct)
        constant = distinct == 1 and not missing
        if len(self._distinct) > MOST_DISTINCT:
            distinct = None
        others = 0
        if kind != "empty":
            others = present - counts[kind]
        text = None
        rows = None
        seems = self.statistics.resemblance if kind == "category" else None
        is_id_type = kind == "number" and self._is_whole
        if kind == "category":
            ((text, rows),) = self.statistics.categories.most_common(1)
            is_id_type = True
        differ = present >= FEWEST_ROWS and not self._repeats
        return ColumnOverview(
            name=self.statistics.name,
            role=role,
            type=kind,
            rows=counts.total(),
            other_types=others,
            missing=missing,
            distinct=distinct,
            low=self._shown(self._low, kind),
            high=self._shown(self._high, kind),
            most_frequent=text,
            most_frequent_rows=rows,
            constant=constant,
            like_id=differ and is_id_type,
            like=seems.kind if seems else None,
            like_example=seems.example if seems else None,
            mistake_rate=rate,
        )

    def _shown(self, value: float, kind: str) -> float | str | None:
        """A number, or a date as text; None for other types."""
        if math.isinf(value):
            return None
        if kind == "number":
            return value
        if kind == "date":
            return date_text(value)
        return None


class Rule:
    """The rule on a column alone: the most frequent label so far among rows like this one.

    Rows are alike if their texts are equal, or their numbers in the same interval. The limits of
    the intervals come from the first batch, without its labels. A prediction depends on earlier
    rows only: on all but at most the last 1/16 of them, so that many rows are predicted at once.
    """

    def __init__(self, column: _Column, most: int) -> None:
        """`most` is the largest number of counts that are kept."""
        self._column = column
        self._most = most
        self._limits: Floats | None = None
        """Limits of intervals, if the column has numbers."""
        self._codes: dict[str, int] = {}
        """Number of each text, if it does not; 0 is for missing cells and other texts."""
        self._counts: NDArray[np.int32] = np.zeros((1, 1), dtype=np.int32)
        self.rounds = 0
        self.mistakes = 0

    @property
    def mistake_rate(self) -> float | None:
        """Share of mistakes; None without labelled rows."""
        if not self.rounds:
            return None
        return self.mistakes / self.rounds

    def add(self, values: Values, labels: Integers, classes: int) -> None:
        """Predict and count rows; `labels` are numbers of classes, -1 for none."""
        known = labels >= 0
        keys = self._keys(values, classes)[known]
        largest = int(keys.max(initial=0))
        self._grow(largest + 1, classes)
        own = labels[known]
        start = 0
        while start < len(own):
            stop = start + max(1, self.rounds // 16)
            part = slice(start, stop)
            self._count(keys[part], own[part])
            start = stop

    def _count(self, keys: Integers, labels: Integers) -> None:
        """Predict rows by the counts so far, then count them."""
        totals = self._counts.sum(axis=0)
        leaders = self._counts.argmax(axis=1)
        is_new = ~self._counts.any(axis=1)
        leaders[is_new] = totals.argmax()
        wrong = leaders[keys] != labels
        self.mistakes += int(np.count_nonzero(wrong))
        self.rounds += len(labels)
        np.add.at(self._counts, (keys, labels), 1)

    def _grow(self, keys: int, classes: int) -> None:
        rows, columns = self._counts.shape
        more_rows = max(keys - rows, 0)
        more_columns = max(classes - columns, 0)
        if more_rows or more_columns:
            self._counts = np.pad(self._counts, ((0, more_rows), (0, more_columns)))

    def _keys(self, values: Values, classes: int) -> Integers:
        """Number of the interval or text of each row."""
        numbers = self._numbers(values)
        if self._limits is None and not self._codes:
            self._begin(numbers)
        if self._limits is not None:
            places = np.searchsorted(self._limits, numbers, "right") + 1
            return np.where(np.isnan(numbers), 0, places)
        room = self._most // max(classes, 1)
        most = min(MOST_VALUES, room)
        texts = _texts(values)
        codes = [self._code(text, most) for text in texts.texts]
        codes.append(0)  # the code -1 is that of a missing cell
        by_code = np.array(codes, dtype=np.int64)
        return by_code[texts.codes]

    def _numbers(self, values: Values) -> Floats:
        """Numbers or days; NaN for texts and missing cells."""
        if isinstance(values, Dates):
            return values.days()
        if not isinstance(values, Texts):
            return values
        read: Callable[[str], float | None] = self._column.read
        numbers, _ = values.numbers(lambda text: _or_nan(read(text)))
        return numbers

    def _begin(self, numbers: Floats) -> None:
        """Decide from the first batch whether the column has numbers, and find intervals."""
        if self._column.type not in ("number", "date"):
            return
        present = numbers[~np.isnan(numbers)]
        distinct = np.unique(present)
        if len(distinct) > MOST_INTERVALS:
            ends = np.linspace(0, 1, MOST_INTERVALS + 1)
            quantiles = np.quantile(present, ends[1:-1])
            self._limits = np.unique(quantiles)
        else:
            left = distinct[:-1]
            right = distinct[1:]
            self._limits = left / 2 + right / 2

    def _code(self, text: str, most: int) -> int:
        if text in MISSING:
            return 0
        name = category_name(text)
        if name not in self._codes and len(self._codes) >= most:
            return 0
        return self._codes.setdefault(name, len(self._codes) + 1)


def _texts(values: Values) -> Texts:
    """Cells as text."""
    if isinstance(values, Texts):
        return values
    if isinstance(values, Dates):
        return values.texts()
    return number_texts(values)


def _or_nan(value: float | None) -> float:
    if value is None:
        return math.nan
    return value
