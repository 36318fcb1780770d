"""DataFrames of pandas and polars, and lists of dicts, as cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.data.cells import Cells, Dates, NumberText, Texts, Values, number_text
from ahpatron_cli.errors import bad_data

Record: TypeAlias = Mapping[str, Any]
"""A row: its cells by the names of their columns."""
_NUMBER_TYPES = {int, float, type(None)}
_PLAIN_NUMBERS = (float, int)
_TRUTH_TYPES = {bool, np.bool_, type(None)}


class Frame(Protocol):
    """What is used of a DataFrame, of pandas or polars."""

    @property
    def columns(self) -> Iterable[Any]:
        """Names of the columns."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: Any, /) -> object: ...


class Records:
    """Rows that are dicts, as a DataFrame.

    A key that a row does not have is a missing cell. Nested dicts and lists have columns `a.b` and
    `a.0`, as in JSON lines. Spaces around names are left out, as in the header of a CSV file.
    """

    def __init__(self, rows: Sequence[Record]) -> None:
        self._rows = rows
        if any(map(_has_nested_cells, rows)):
            self._rows = list(map(_flat, rows))
        names = _distinct(chain.from_iterable(self._rows))
        self.columns = [bare_name(name) for name in names]
        if self.columns != names:
            self._rows = [with_bare_names(row) for row in self._rows]
            self.columns = _distinct(chain.from_iterable(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def with_columns(self, names: Iterable[str]) -> None:
        """Add columns, whose cells are missing, unless the rows have none of them: it is an error.

        A single row often does not have all keys.
        """
        known = set(self.columns)
        if not known.isdisjoint(names):
            self.columns = _distinct([*self.columns, *names])

    def __getitem__(self, name: str) -> list[Any]:
        return [row.get(name) for row in self._rows]


def bare_name(name: object) -> str:
    """The name of a column as text without the spaces around it."""
    return str(name).strip()


def with_bare_names(row: Record) -> Record:
    """A row whose names have no spaces around them; two equal ones are refused."""
    bare: dict[str, Any] = {}
    for name, cell in row.items():
        text = bare_name(name)
        if text in bare:
            raise bad_data(f"column {text!r} occurs twice", "X")
        bare[text] = cell
    return bare


def _distinct(names: Iterable[str]) -> list[str]:
    """Each of these names once, in the order in which they occur."""
    distinct = dict.fromkeys(names)
    return list(distinct)


def _has_nested_cells(row: Record) -> bool:
    """Whether some cell of a row has cells of its own."""
    nested = (Mapping, list, tuple)
    return any(isinstance(cell, nested) for cell in row.values())


def _flat(row: Record) -> Record:
    """A row by the paths of its cells."""
    pairs = _flattened(row)
    return dict(pairs)


def _flattened(row: Record, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of a row, also those of nested dicts and lists."""
    for key, cell in row.items():
        name = f"{prefix}{key}"
        inner = cell
        if isinstance(cell, list | tuple):
            inner = dict(enumerate(cell))
        if isinstance(inner, Mapping):
            yield from _flattened(inner, prefix=f"{name}.")
        else:
            yield name, cell


def as_frame(X: object) -> Frame | None:
    """The DataFrame that X is, or that its dicts are; None for arrays and sparse matrices."""
    if hasattr(X, "tocsr"):  # some of these are mappings
        return None
    if isinstance(X, Mapping):
        return Records([X])
    if _are_records(X):
        return Records(X)
    if _is_frame(X):
        return X
    return None


def _are_records(X: object) -> TypeGuard[Sequence[Record]]:
    """Whether X is a list of dicts."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(isinstance(row, Mapping) for row in X)


def _is_frame(X: object) -> TypeGuard[Frame]:
    """Whether X is a DataFrame, whose columns have names."""
    return hasattr(X, "columns")


def column_names(frame: Frame) -> dict[str, Any]:
    """The columns of a DataFrame by their names as text, as a file has them."""
    names: dict[str, Any] = {}
    for name in frame.columns:
        text = bare_name(name)
        if text in names:
            raise bad_data(f"column {text!r} occurs twice", "X")
        names[text] = name
    return names


def frame_cells(frame: Frame, used: Iterable[str], text: Collection[str], path: str) -> Cells:
    """The `used` columns of a DataFrame, as text if they are in `text`, else by their types.

    `path` is the name of the DataFrame in errors. The "line" of a row is its number, from 0.
    """
    names = column_names(frame)
    columns: dict[str, Values] = {}
    for name in used:
        own_name = names[name]
        column = frame[own_name]
        columns[name] = _values(column, name, path, as_text=name in text)
    rows = np.arange(len(frame))
    return Cells(rows, columns)


def _values(column: object, name: str, path: str, *, as_text: bool) -> Values:
    """Values of a column: numbers, dates or text."""
    if isinstance(column, list):
        return list_values(column, name, path, as_text=as_text)
    values = np.asarray(column)
    kind = values.dtype.kind
    if kind not in "biufMOUT":
        problem = f"column {name!r} has the type {values.dtype}"
        raise bad_data(problem, path, field=name)
    if not as_text and kind in "iuf":
        numbers = values.astype(np.float64)
        return _finite(numbers, name, path)
    if not as_text and kind == "M":
        return Dates(values, "moment")
    cells = values.tolist()
    if hasattr(column, "to_list"):  # which keeps dates of nanoseconds
        cells = column.to_list()
    return _texts(cells, name, path, as_text=as_text)


def list_values(cells: Sequence[Any], name: str, path: str, *, as_text: bool) -> Values:
    """Values of a column of dicts: numbers if all of them are, else text."""
    types = set(map(type, cells))
    if as_text or not types <= _NUMBER_TYPES:
        return _texts(cells, name, path, as_text=as_text)
    try:
        numbers = np.array(cells, dtype=np.float64)  # None becomes NaN
    except OverflowError:
        problem = f"column {name!r} has integers that are too large"
        raise bad_data(problem, path, field=name) from None
    return _finite(numbers, name, path)


def _finite(numbers: Floats, name: str, path: str) -> Floats:
    """The numbers, which may be missing but not infinite."""
    is_infinite = np.isinf(numbers)
    if is_infinite.any():
        problem = f"column {name!r} has values that are not finite"
        raise bad_data(problem, path, field=name)
    return numbers


def _texts(cells: Sequence[Any], name: str, path: str, *, as_text: bool) -> Texts:
    """Cells of any types as text; numbers remain numbers, as `NumberText`, unless `as_text`.

    Each different cell is converted once. True equals 1, so cells of a column that has both are
    converted one by one.
    """
    types = set(map(type, cells))
    if _has_truth_values_and_others(types):
        return Texts.of([_text(cell, as_text) for cell in cells])
    try:
        distinct = list(dict.fromkeys(cells))
    except TypeError:
        names = sorted(kind.__name__ for kind in types)
        problem = f"column {name!r} has cells of the types {', '.join(names)}"
        raise bad_data(problem, path, field=name) from None
    texts = Texts.of([_text(cell, as_text) for cell in distinct])
    numbers = {cell: number for number, cell in enumerate(distinct)}
    of_cells = map(numbers.__getitem__, cells)
    codes = np.fromiter(of_cells, np.int64, len(cells))
    return Texts(texts.codes[codes], texts.texts)


def _has_truth_values_and_others(types: set[type]) -> bool:
    """Whether a column with these types of cells has truth values and other ones."""
    if types.isdisjoint((bool, np.bool_)):
        return False
    return not types <= _TRUTH_TYPES


def _text(cell: object, as_text: bool) -> str:
    """A cell as a CSV file would have it; empty if it is missing."""
    if isinstance(cell, str):
        return cell.strip()
    if type(cell) in _PLAIN_NUMBERS and cell == cell:  # as nearly always: what follows is slow
        return _number_text(number_text(cell), as_text)
    if _is_missing(cell):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(cell)
    if isinstance(cell, Decimal):
        return _number_text(str(cell), as_text)
    if isinstance(cell, Real):
        return _number_text(number_text(cell), as_text)
    if isinstance(cell, date | time):  # also datetime and pandas' Timestamp
        return cell.isoformat()
    return str(cell).strip()


def _number_text(text: str, as_text: bool) -> str:
    """The text of a number, which remains one unless `as_text`."""
    return text if as_text else NumberText(text)


def _is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    unequal = cell != cell
    if isinstance(unequal, bool | np.bool_):
        return bool(unequal)
    return unequal is cell  # as pandas' NA answers
