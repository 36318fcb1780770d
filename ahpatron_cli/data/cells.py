"""Cells of tables: values of columns as every reader returns them, and what their texts mean.

A reader converts the columns of its format to numbers (an array of floats), `Dates` or `Texts`.
A `Schema` turns these into features and labels, and knows no format: the same rows give the same
model in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.data.labels import PLAIN_PAIRS, show
from ahpatron_cli.settings import DecimalSign, SlashFormat

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None", "?"})
"""Cells that stand for a missing value."""
LabelKind: TypeAlias = Literal["text", "number", "boolean", "date"]
"""What all labels of a table are: labels that are not plain text have several spellings."""
_BOOLEANS = {
    **dict.fromkeys(("True", "TRUE", "true"), "True"),
    **dict.fromkeys(("False", "FALSE", "false"), "False"),
}
"""Booleans as pandas, R and JSON write them, with the spelling that is shown."""
_PAIRS = tuple({show(label) for label in pair} for pair in PLAIN_PAIRS)
_EPOCH = datetime(1970, 1, 1)  # moments without a zone count as UTC
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_SECOND = 10**9
_DAY = 86_400 * _SECOND
"""Nanoseconds of a second and of a day."""
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:.+)?|[0-9]{2}:[0-9]{2}(:.+)?")
_FRACTION = re.compile(r"((?:.{10}[T ])?[0-9]{2}:[0-9]{2}:[0-9]{2})[.,]([0-9]+)(.*)")
"""A date and time, or a time, with a fraction of a second: before it, its digits, and the zone."""


# Columns ------------------------------------------------------------------------------------------


class Texts:
    """Cells of a text column: the number of each cell in a list of texts."""

    def __init__(self, codes: Integers, texts: list[str]) -> None:
        self.codes = codes
        self.texts = texts

    @classmethod
    def of(cls, cells: Sequence[str]) -> Texts:
        """The cells of a list."""
        texts = list(dict.fromkeys(cells))
        numbers = {text: number for number, text in enumerate(texts)}
        found = map(numbers.__getitem__, cells)
        codes = np.fromiter(found, np.int64, len(cells))
        return cls(codes, texts)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice | Integers) -> Texts:
        codes = self.codes[part]
        return Texts(codes, self.texts)

    def counts(self) -> Iterator[tuple[str, int, int]]:
        """Yield each text that occurs, with its number of cells and its first row."""
        texts = self.texts
        counts = self._cells_of_texts()
        rows = np.arange(len(self))
        backwards = self.codes[::-1]
        first = np.zeros(len(texts), dtype=np.int64)
        first[backwards] = rows[::-1]  # of several rows the last assigned one stays
        for text, count, row in zip(texts, counts, first.tolist(), strict=True):
            if count:
                yield text, count, row

    def _cells_of_texts(self) -> list[int]:
        """Number of cells of each text of the list."""
        different = len(self.texts)
        counts = np.bincount(self.codes, minlength=different)
        listed: list[int] = counts.tolist()
        return listed

    def tolist(self) -> list[str]:
        """All cells as text."""
        texts = np.array(self.texts, dtype=object)
        found: list[str] = texts[self.codes].tolist()
        return found

    def numbers(self, read: Callable[[str], float | None]) -> tuple[Floats, int | None]:
        """`read(cell)` of each cell (NaN if missing); also the first row where that is None."""
        values: list[float | None] = []
        counts = self._cells_of_texts()
        for text, count in zip(self.texts, counts, strict=True):
            if count == 0 or text in MISSING:
                values.append(np.nan)
            else:
                values.append(read(text))
        by_text = np.array(values, dtype=np.float64)
        numbers = by_text[self.codes]
        wrong = [code for code, value in enumerate(values) if value is None]
        if not wrong:
            return numbers, None
        is_wrong = np.isin(self.codes, wrong)
        first = int(np.argmax(is_wrong))
        return numbers, first


class Dates:
    """Cells of a column of dates, of dates with times, or of times of day.

    Only formats with types for these return them. CSV has ISO 8601 text instead, of which `days`
    makes the same numbers.

    Parameters
    ----------
    moments : array of datetime64
        NaT if missing. A time of day is on 1970-01-01. Moments with a time zone are in UTC.
    form : {"date", "moment", "time"}
    has_zone : bool
    """

    def __init__(
        self,
        moments: NDArray[np.datetime64],
        form: Literal["date", "moment", "time"],
        *,
        has_zone: bool = False,
    ) -> None:
        self.moments = moments
        self.form = form
        self.has_zone = has_zone

    def __len__(self) -> int:
        return len(self.moments)

    def __getitem__(self, part: slice | Integers) -> Dates:
        return Dates(self.moments[part], self.form, has_zone=self.has_zone)

    def days(self) -> Floats:
        """Days since 1970-01-01 with fractions, as `days` reads them; NaN if missing."""
        midnights = self.moments.astype("datetime64[D]")
        clocks = self.moments - midnights
        dates = midnights.astype(np.int64)
        nanoseconds = clocks.astype("timedelta64[ns]").astype(np.int64)
        days = _with_fraction(dates, nanoseconds)
        days[np.isnat(self.moments)] = np.nan
        return days

    def texts(self) -> Texts:
        """The cells as ISO 8601 text, with as many digits as they need; empty if missing."""
        distinct, codes = np.unique(self.moments, return_inverse=True)
        texts = [self._text(one) for one in distinct]
        return Texts(codes, texts)

    def _text(self, moment: np.datetime64) -> str:
        if np.isnat(moment):
            return ""
        written = str(np.datetime_as_string(moment))
        date, _, clock = written.partition("T")
        if self.form == "date":
            return date
        clock = _trimmed(clock or "00:00:00")
        if self.form == "time":
            return clock
        zone = "Z" if self.has_zone else ""
        return f"{date}T{clock}{zone}"


Values: TypeAlias = Floats | Dates | Texts
"""Values of a column: floats (NaN if missing), dates, or text without surrounding spaces."""


# Numbers ------------------------------------------------------------------------------------------


def _signed(decimal: str, thousands: str) -> re.Pattern[str]:
    """The pattern of numbers with this decimal sign and this separator of thousands."""
    whole = rf"(?:[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+|[0-9]*)"
    return re.compile(rf"(?=.*[0-9])[-+]?{whole}(?:{decimal}[0-9]*)?(?:[eE][-+]?[0-9]+)?")


_SIGNED: dict[DecimalSign, re.Pattern[str]] = {",": _signed(",", r"\."), ".": _signed(r"\.", ",")}
_SIGN_NAMES = {",": "decimal commas", ".": "decimal points, with commas between thousands"}
_THOUSANDS: dict[DecimalSign, DecimalSign] = {",": ".", ".": ","}
"""What separates thousands, by the decimal sign."""


@dataclass(frozen=True)
class Spelling:
    """How numbers, dates and missing cells of a file are written.

    That belongs to the file: the rows of which a model was made may be written in another way.
    """

    decimal: DecimalSign | None = None
    """The decimal sign, if the other one separates thousands; None: a point, and no separators."""
    slash_format: SlashFormat | None = None
    """How dates with slashes are written in all columns; None: as each column says."""
    na: tuple[str, ...] = ()
    """Texts and numbers that stand for missing cells, besides `MISSING`."""
    trained_decimal: DecimalSign | None = None
    """The decimal sign of `na` and of the rows from which the schema was made. If `decimal` is
    None, numbers may have it, unless they are plain ones with another value."""
    by_model: bool = False
    """Whether a model reads the file, which may be written otherwise than its training data."""

    @property
    def sign(self) -> DecimalSign | None:
        """The decimal sign that numbers may have, if they are no plain ones."""
        return self.decimal or self.trained_decimal

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user on what is not said of this file."""
        if not self.by_model or self.decimal is not None or self.trained_decimal is None:
            return ()
        written = _SIGN_NAMES[self.trained_decimal]
        other = _THOUSANDS[self.trained_decimal]
        return (f"{written} as in training: --decimal {other} says otherwise",)

    @cached_property
    def missing(self) -> frozenset[str]:
        """All texts that stand for a missing cell."""
        names = map(category_name, self.na)
        return MISSING.union(self.na, names)

    @cached_property
    def _missing_numbers(self) -> list[float]:
        """All numbers that stand for a missing cell."""
        values = [number_with(self.trained_decimal, text) for text in self.na]
        return [value for value in values if value is not None]

    def number(self, cell: str) -> float | None:
        """Parse a cell as a finite number; None if it is none, or two different ones."""
        if isinstance(cell, NumberText):
            return number(cell)
        if self.decimal is not None:
            return number_with(self.decimal, cell)
        plain = number(cell)
        if self.trained_decimal is None:
            return plain
        value = number_with(self.trained_decimal, cell)
        if value is None or plain is None:
            return plain if value is None else value
        return value if value == plain else None

    def has_thousands(self, cell: str) -> bool:
        """Whether a number has separators of thousands."""
        if self.sign is None or isinstance(cell, NumberText):
            return False
        return _THOUSANDS[self.sign] in cell

    def cleaned(
        self, cells: Cells, exact: Collection[str] = (), by_name: Collection[str] = ()
    ) -> Cells:
        """The cells, so spelled, without those that `na` says are missing.

        The columns `exact` keep all their cells. In the columns `by_name`, whose texts are names,
        a cell is missing if `na` has its text: 007 is not the number 7 there.
        """
        if not self.na:
            return cells._replace(spelling=self)
        columns: dict[str, Values] = {}
        for name, values in cells.columns.items():
            if name not in exact:
                values = self._without_na(values, are_names=name in by_name)
            columns[name] = values
        return Cells(cells.lines, columns, self)

    def _without_na(self, values: Values, *, are_names: bool) -> Values:
        """Values of a column without those that stand for missing cells."""
        if isinstance(values, Dates):
            return values
        if isinstance(values, Texts):
            texts = ["" if self._is_na(text, are_names) else text for text in values.texts]
            return Texts(values.codes, texts)
        is_na = np.isin(values, self._missing_numbers)
        return np.where(is_na, np.nan, values)

    def _is_na(self, text: str, is_name: bool) -> bool:
        """Whether a cell stands for a missing one, by its text or by its value."""
        if text in self.missing or category_name(text) in self.missing:
            return True
        return not is_name and self.number(text) in self._missing_numbers


DEFAULT_SPELLING = Spelling()


class Cells(NamedTuple):
    """Consecutive rows of a table: line number of each row, and columns by name.

    Columns that are to be copied as text are `Spans`.
    """

    lines: Integers
    columns: dict[str, Values]
    spelling: Spelling = DEFAULT_SPELLING
    """How cells are written that are text here, and numbers or dates by their meaning."""

    def part(self, rows: slice | Integers) -> Cells:
        """Some of the rows."""
        columns: dict[str, Values] = {}
        for name, values in self.columns.items():
            columns[name] = values[rows]
        return self._replace(lines=self.lines[rows], columns=columns)

    def texts(self, name: str) -> Texts:
        """The cells of a column as text.

        Of a pipe, the cells before the first text of a column have been read as numbers.
        """
        values = self.columns[name]
        if isinstance(values, Dates):
            return values.texts()
        if isinstance(values, Texts):
            return values
        return number_texts(values)


class NumberText(str):
    """A number of a format that has numbers, as text: its decimal sign is a point in any case."""

    __slots__ = ()


def number_with(decimal: DecimalSign | None, cell: str) -> float | None:
    """Parse a cell as a finite number with this decimal sign; None if it is none."""
    if decimal is None:
        return number(cell)
    if not _SIGNED[decimal].fullmatch(cell):
        return None
    plain = cell.replace(_THOUSANDS[decimal], "")
    return number(plain.replace(",", "."))


def numbers_by_sign(cell: str) -> dict[DecimalSign, float]:
    """The number that a cell is with each decimal sign with which it is one."""
    values = {sign: number_with(sign, cell) for sign in _SIGNED}
    return {sign: value for sign, value in values.items() if value is not None}


def number(cell: str) -> float | None:
    """Parse a cell as a finite number; None if it is none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    if "_" in cell or not cell.isascii():  # which `float` accepts
        return None
    if abs(value) < np.inf:
        return value
    return None


def is_plain(cell: str) -> bool:
    """Whether a cell is a number that is written as Python writes it: 7, 1.5, 2.0, not 007, 1E2."""
    value = number(cell)
    if value is None:
        return False
    return cell in (show(value), repr(value))


def number_texts(values: NDArray[Any]) -> Texts:
    """Numbers of any type as text: whole ones as integers, others with the digits they need."""
    distinct, codes = np.unique(values, return_inverse=True)
    texts = [number_text(value) for value in distinct]
    return Texts(codes, texts)


def number_text(value: Any) -> str:
    """A number as text: 1 for 1.0, with the fewest digits that its type needs; empty for NaN."""
    if value != value:
        return ""
    if abs(value) == np.inf:
        return str(value)
    return show(value)


# Dates --------------------------------------------------------------------------------------------

DateFormat: TypeAlias = Literal["ISO", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"]
"""How dates of a column are written."""
_LOCAL_DATE = re.compile(
    r"([0-9]{1,2})([./])([0-9]{1,2})\2([0-9]{4})"
    r"(?:[ T]([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)(?: ?([AaPp])[Mm])?)?"
)
"""A date that is not ISO 8601: first number, separator, second number, year; hour, rest of the
time, and the A or P of AM or PM."""


def readings(cell: str) -> dict[DateFormat, float]:
    """What `days` a date or time is, in each format in which it is one."""
    found: dict[DateFormat, float] = {}
    value = days(cell)
    if value is not None:
        return {"ISO": value}
    parts = _LOCAL_DATE.fullmatch(cell)
    if parts is None:
        return found
    first, separator, second, year, hour, clock, half = parts.groups()
    time_of_day = ""
    if hour:
        hours = int(hour)
        if half:
            hours = hours % 12 + (12 if half in "Pp" else 0)
        time_of_day = f"T{hours:02}{clock}"
    orders: dict[DateFormat, tuple[str, str]] = {"DD.MM.YYYY": (first, second)}
    if separator == "/":
        orders = {"DD/MM/YYYY": (first, second), "MM/DD/YYYY": (second, first)}
    for form, (day, month) in orders.items():
        value = days(f"{year}-{month:0>2}-{day:0>2}{time_of_day}")
        if value is not None:
            found[form] = value
    return found


def days_in(form: DateFormat, cell: str) -> float | None:
    """`days` of a date or time, with slashes in this format; None if it is none."""
    found = readings(cell)
    clear: tuple[DateFormat, ...] = ("ISO", "DD.MM.YYYY", form)
    for one in clear:
        if one in found:
            return found[one]
    return None


def is_ambiguous_date(cell: str) -> bool:
    """Whether a date has slashes and is another one with day and month exchanged."""
    return len(set(readings(cell).values())) > 1


def days(cell: str) -> float | None:
    """Parse an ISO 8601 date or time: days since 1970-01-01, with fractions; None if it is none."""
    found = _moment(cell)
    if found is None:
        return None
    date, nanoseconds = found
    return _with_fraction(date, nanoseconds)


@overload
def _with_fraction(date: int, nanoseconds: int) -> float: ...


@overload
def _with_fraction(date: Integers, nanoseconds: Integers) -> Floats: ...


def _with_fraction(date: int | Integers, nanoseconds: int | Integers) -> float | Floats:
    """Days since 1970-01-01, of whole days and nanoseconds: integers, or arrays of these."""
    is_before = date < 0  # then -1 hour is 0 days - 1 hour, not -1 day + 23 hours: rounded less
    whole = date + is_before
    left: Any = nanoseconds - _DAY * is_before
    days: float | Floats = whole + left / _DAY
    return days


def _moment(cell: str) -> tuple[int, int] | None:
    """Whole days since 1970-01-01 and nanoseconds of the last day, of an ISO 8601 date or time."""
    if not _MOMENT.fullmatch(cell):
        return None
    nanoseconds = 0
    has_fraction = "." in cell or "," in cell
    if has_fraction and (parts := _FRACTION.fullmatch(cell)):
        before, digits, zone = parts.groups()
        nine_digits = digits[:9].ljust(9, "0")  # datetime would cut it after six
        nanoseconds = int(nine_digits)
        cell = before + zone
    try:
        if cell[2] == ":":
            clock = time.fromisoformat(cell)
            moment = datetime.combine(_EPOCH, clock)
        else:
            moment = datetime.fromisoformat(cell)
    except ValueError:
        return None
    epoch = _EPOCH_UTC if moment.tzinfo else _EPOCH
    since = moment - epoch
    nanoseconds += since.seconds * _SECOND
    return since.days, nanoseconds


def date_text(value: float) -> str:
    """Days since 1970-01-01 as an ISO date, with the time if it is not midnight."""
    moment = _EPOCH + timedelta(days=value)
    if moment.time() == time.min:
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds")


def _date_text(cell: str) -> str | None:
    """The one spelling of a date or time, in UTC; midnight is written as a date."""
    found = _moment(cell)
    if found is None:
        return None
    date, nanoseconds = found
    seconds, fraction = divmod(nanoseconds, _SECOND)
    midnight = _EPOCH + timedelta(days=date)
    moment = midnight + timedelta(seconds=seconds)
    clock = _trimmed(f"{moment:%H:%M:%S}.{fraction:09}")
    if cell[2] == ":":
        return clock
    written = midnight.date().isoformat()
    if nanoseconds == 0:
        return written
    return f"{written}T{clock}"


def _trimmed(clock: str) -> str:
    """A time of day without zeros at the end of its fraction."""
    if "." not in clock:
        return clock
    return clock.rstrip("0").rstrip(".")


# Categories and labels ----------------------------------------------------------------------------


def category_name(cell: str) -> str:
    """The name of a category: booleans, whole numbers and dates have one spelling, 1 for 1.0."""
    if is_plain(cell):
        return show(float(cell))
    return _BOOLEANS.get(cell) or _date_text(cell) or str(cell)  # saved: no `NumberText`


def label_kind(labels: Collection[str]) -> LabelKind:
    """What these labels are: booleans, numbers or dates if all of them are; else text.

    Numbers must be plain, so that no two labels become one, and none is shown in another way: 1E2,
    007 and integers of more than 53 bits are text. The pairs -1/+1 and 0/1 may have a plus sign.
    """
    kinds: tuple[LabelKind, ...] = ("boolean", "number", "date")
    has_sign = any(label.startswith("+") for label in labels)
    for kind in kinds:
        spellings = {label_key(label, kind) for label in labels}
        if None in spellings:
            continue
        is_pair = any(spellings <= pair for pair in _PAIRS)
        if is_pair or kind != "number" or not has_sign:
            return kind
    return "text"


def label_key(label: str, kind: LabelKind) -> str | None:
    """The spelling by which labels of this kind are compared; None if this is of another kind."""
    if kind == "boolean":
        return _BOOLEANS.get(label)
    if kind == "date":
        return _date_text(label)
    if kind == "text":
        return label
    value = number(label)
    if value is None or not is_plain(label.removeprefix("+")):
        return None
    return show(value)
