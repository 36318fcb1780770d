"""Overview of the columns of a table: `inspect TABLE`, in one pass with bounded memory.

Beside counts of its cells, each column has the mistakes of a rule on it alone: predict the most
frequent label so far among rows with the same value, or with a number in the same interval. A
column that gives the label away shows in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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
from ahpatron_cli.data.table_statistics import ColumnStatistics, Kind

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
_LIKE = 0.9
"""Share of the texts of a column that must look like dates or numbers."""
_NUMBER_LIKE = re.compile(
    r"(?=.*[0-9])[-+]?[€$£]?\s?([0-9]{1,3}([., '][0-9]{3})*|[0-9]+)([.,][0-9]+)?\s?[%€$£]?"
)
_DATE_LIKE = re.compile(
    r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}([ T][0-9]{1,2}:[0-9]{2}.*)?"
    r"|[0-9]{1,2}[. -]+[A-Za-z]{3,9}[. -]+[0-9]{2,4}.*|[A-Za-z]{3,9} [0-9]{1,2},? [0-9]{4}.*"
)


class ColumnOverview(Struct, frozen=True, kw_only=True):
    """A column of a table: an entry of `columns` in the JSON document of `inspect`."""

    name: str
    role: str
    """`feature`, `label`, `id` or `dropped`, as the options say."""
    type: ColumnType
    """`number`, `date`, `category`, or `empty`; the most frequent type if there are several."""
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
            self._rules = {name: Rule(self._columns[name], most) for name in features}

    def add(self, cells: Cells) -> None:
        """Add a batch of rows."""
        codes = None
        if self._label is not None and self._rules:
            codes = self._classes.codes(cells.texts(self._label))
        for name, column in self._columns.items():
            values = cells.columns.get(name)
            if values is None:
                continue
            column.add(values, cells.lines)
            if codes is not None and name in self._rules:
                self._rules[name].add(values, codes, len(self._classes))
        if len(self._classes) > MAX_CLASSES:
            self._rules.clear()
        self.rows += len(cells.lines)

    def columns(self) -> tuple[ColumnOverview, ...]:
        """The columns in the order of the table."""
        found = []
        for name, column in self._columns.items():
            rule = self._rules.get(name)
            rate = rule.mistake_rate if rule else None
            found.append(column.overview(self._roles[name], rate))
        return tuple(found)


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
        return np.array([*numbers, -1], dtype=np.int64)[labels.codes]

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
        """Whether a value has come twice, as far as they were counted."""
        self._is_whole = True
        self._low = np.inf
        self._high = -np.inf

    def add(self, values: Values, lines: Integers) -> None:
        """Add cells."""
        self.statistics.add(values, lines)
        if isinstance(values, Texts):
            self._add_texts(values)
        else:
            numbers = values.days() if isinstance(values, Dates) else values
            self._add_numbers(numbers)

    def _add_texts(self, cells: Texts) -> None:
        found: list[float] = []
        for text, count, _ in cells.counts():
            if text in MISSING:
                continue
            value = self.read(text)
            if value is not None:
                found.append(value)
            self._note(text if value is None else value, repeats=count > 1)
        self._widen(np.array(found))

    def _add_numbers(self, values: Floats) -> None:
        present = values[~np.isnan(values)]
        self._widen(present)
        if len(self._distinct) > MOST_DISTINCT:
            return
        distinct, counts = np.unique(present, return_counts=True)
        repeats = bool((counts > 1).any())
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
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))
        self._is_whole &= bool((values == np.floor(values)).all())

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
        distinct = len(self._distinct)
        frequent = None
        if kind == "category":
            (frequent,) = self.statistics.categories.most_common(1)
        like, example = self._like() if kind == "category" else (None, None)
        differ = present >= FEWEST_ROWS and not self._repeats
        return ColumnOverview(
            name=self.statistics.name,
            role=role,
            type=kind,
            other_types=0 if kind == "empty" else present - counts[kind],
            missing=missing,
            distinct=None if distinct > MOST_DISTINCT else distinct,
            low=self._shown(self._low, kind),
            high=self._shown(self._high, kind),
            most_frequent=frequent[0] if frequent else None,
            most_frequent_rows=frequent[1] if frequent else None,
            constant=distinct == 1 and not missing,
            like_id=differ and (kind == "category" or (kind == "number" and self._is_whole)),
            like=like,
            like_example=example,
            mistake_rate=rate,
        )

    def _shown(self, value: float, kind: str) -> float | str | None:
        """A number, or a date as text; None for other types."""
        if kind == "number" and abs(value) < np.inf:
            return value
        if kind == "date" and abs(value) < np.inf:
            return date_text(value)
        return None

    def _like(self) -> tuple[str | None, str | None]:
        """What the texts look like, numbers or dates, with an example."""
        texts = list(self.statistics.categories)
        forms = {"dates": _DATE_LIKE, "numbers": _NUMBER_LIKE}
        for name, form in forms.items():
            similar = [text for text in texts if form.fullmatch(text)]
            if len(similar) >= _LIKE * len(texts):
                return name, similar[0]
        return None, None


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
        self._grow(int(keys.max(initial=0)) + 1, classes)
        own = labels[known]
        start = 0
        while start < len(own):
            stop = start + max(1, self.rounds // 16)
            self._count(keys[start:stop], own[start:stop])
            start = stop

    def _count(self, keys: Integers, labels: Integers) -> None:
        """Predict rows by the counts so far, then count them."""
        totals = self._counts.sum(axis=0)
        leaders = self._counts.argmax(axis=1)
        is_new = ~self._counts.any(axis=1)
        leaders[is_new] = totals.argmax()
        self.mistakes += int(np.count_nonzero(leaders[keys] != labels))
        self.rounds += len(labels)
        np.add.at(self._counts, (keys, labels), 1)

    def _grow(self, keys: int, classes: int) -> None:
        rows, columns = self._counts.shape
        more = (max(keys - rows, 0), max(classes - columns, 0))
        if any(more):
            self._counts = np.pad(self._counts, ((0, more[0]), (0, more[1])))

    def _keys(self, values: Values, classes: int) -> Integers:
        """Number of the interval or text of each row."""
        numbers = self._numbers(values)
        if self._limits is None and not self._codes:
            self._begin(numbers)
        if self._limits is not None:
            places = np.searchsorted(self._limits, numbers, "right") + 1
            return np.where(np.isnan(numbers), 0, places)
        most = min(MOST_VALUES, self._most // max(classes, 1))
        texts = _texts(values)
        codes = [self._code(text, most) for text in texts.texts]
        return np.array([*codes, 0], dtype=np.int64)[texts.codes]

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
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if len(distinct) > MOST_INTERVALS:
            shares = np.linspace(0, 1, MOST_INTERVALS + 1)[1:-1]
            present = numbers[~np.isnan(numbers)]
            self._limits = np.unique(np.quantile(present, shares))
        else:
            halves = distinct[:-1] / 2 + distinct[1:] / 2
            self._limits = halves

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
    return np.nan if value is None else value
