"""DataFrames of pandas and polars, and lists of dicts, as cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from numbers import Real
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.data.cells import Cells, Dates, Texts, Values, number_text
from ahpatron_cli.errors import bad_data

Record: TypeAlias = Mapping[str, Any]
"""A row: its cells by the names of their columns."""


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
    `a.0`, as in JSON lines.
    """

    def __init__(self, rows: Sequence[Record]) -> None:
        self._rows = rows
        if any(_is_nested(cell) for row in rows for cell in row.values()):
            self._rows = [dict(_flattened(row)) for row in rows]
        self.columns = list(dict.fromkeys(name for row in self._rows for name in row))

    def __len__(self) -> int:
        return len(self._rows)

    def with_columns(self, names: Iterable[str]) -> None:
        """Add columns, whose cells are missing, unless the rows have none of them: it is an error.

        A single row often does not have all keys.
        """
        if not set(self.columns).isdisjoint(names):
            self.columns = list(dict.fromkeys([*self.columns, *names]))

    def __getitem__(self, name: str) -> list[Any]:
        return [row.get(name) for row in self._rows]


def _is_nested(cell: object) -> bool:
    """Whether a cell has cells of its own."""
    return isinstance(cell, Mapping | list | tuple)


def _flattened(row: Record, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of a row, also those of nested dicts and lists."""
    for key, cell in row.items():
        name = f"{prefix}{key}"
        if isinstance(cell, list | tuple):
            cell = {str(i): one for i, one in enumerate(cell)}
        if isinstance(cell, Mapping):
            yield from _flattened(cell, prefix=f"{name}.")
        else:
            yield name, cell


def as_frame(X: object) -> Frame | None:
    """The DataFrame that X is, or that its dicts are; None for arrays and sparse matrices."""
    if hasattr(X, "tocsr"):  # some of these are mappings
        return None
    if isinstance(X, Mapping):
        return Records([X])
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return Records(X)
    if _is_frame(X):
        return X
    return None


def _is_frame(X: object) -> TypeGuard[Frame]:
    """Whether X is a DataFrame, whose columns have names."""
    return hasattr(X, "columns")


def column_names(frame: Frame) -> dict[str, Any]:
    """The columns of a DataFrame by their names as text, as a file has them."""
    names: dict[str, Any] = {}
    for name in frame.columns:
        text = str(name).strip()
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
        column = frame[names[name]]
        columns[name] = _values(column, name, path, as_text=name in text)
    return Cells(np.arange(len(frame)), columns)


def _values(column: object, name: str, path: str, *, as_text: bool) -> Values:
    """Values of a column: numbers, dates or text."""
    if isinstance(column, list):
        return list_values(column, name, path, as_text=as_text)
    values = np.asarray(column)
    kind = values.dtype.kind
    if kind not in "biufMOUT":
        raise bad_data(f"column {name!r} has the type {values.dtype}", path)
    if not as_text and kind in "iuf":
        return _finite(values.astype(np.float64), name, path)
    if not as_text and kind == "M":
        return Dates(values, "moment")
    cells = column.to_list() if hasattr(column, "to_list") else values.tolist()
    return _texts(cells, name, path)


def list_values(cells: list[Any], name: str, path: str, *, as_text: bool) -> Values:
    """Values of a column of dicts: numbers if all of them are, else text."""
    types = set(map(type, cells))
    if as_text or not types <= {int, float, type(None)}:
        return _texts(cells, name, path)
    try:
        numbers = np.array(cells, dtype=np.float64)  # None becomes NaN
    except OverflowError:
        raise bad_data(f"column {name!r} has integers that are too large", path) from None
    return _finite(numbers, name, path)


def _finite(numbers: Floats, name: str, path: str) -> Floats:
    """The numbers, which may be missing but not infinite."""
    if np.isinf(numbers).any():
        raise bad_data(f"column {name!r} has values that are not finite", path)
    return numbers


def _texts(cells: Sequence[Any], name: str, path: str) -> Texts:
    """Cells of any types as text.

    Each different cell is converted once. True equals 1, so cells of a column that has both are
    converted one by one.
    """
    types = set(map(type, cells))
    has_truth_values = bool(types & {bool, np.bool_})
    if has_truth_values and len(types - {type(None)}) > 1:
        return Texts.of([_text(cell) for cell in cells])
    try:
        numbers = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    except TypeError:
        kinds = ", ".join(sorted(kind.__name__ for kind in types))
        raise bad_data(f"column {name!r} has cells of the types {kinds}", path) from None
    codes = np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells))
    found = Texts.of([_text(cell) for cell in numbers])
    return Texts(found.codes[codes], found.texts)


def _text(cell: object) -> str:
    """A cell as a CSV file would have it; empty if it is missing."""
    if isinstance(cell, str):
        return cell.strip()
    if _is_missing(cell):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(cell)
    if isinstance(cell, Real):
        return number_text(cell)
    if isinstance(cell, date | time):  # also datetime and pandas' Timestamp
        return cell.isoformat()
    return str(cell).strip()


def _is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    unequal = cell != cell
    if isinstance(unequal, bool | np.bool_):
        return bool(unequal)
    return unequal is cell  # as pandas' NA answers
