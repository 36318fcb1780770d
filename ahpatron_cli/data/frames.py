"""DataFrames of pandas and polars as cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, time
from numbers import Real
from typing import Any, Protocol

import numpy as np

from ahpatron_cli.data.cells import Cells, Dates, Texts, Values, number_text
from ahpatron_cli.errors import bad_data


class Frame(Protocol):
    """What is used of a DataFrame, of pandas or polars."""

    @property
    def columns(self) -> Iterable[Any]:
        """Names of the columns."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: object, /) -> object: ...


def column_names(frame: Frame) -> dict[str, Any]:
    """The columns of a DataFrame by their names as text, as a file has them."""
    return {str(name).strip(): name for name in frame.columns}


def frame_cells(frame: Frame, used: Iterable[str], text: Collection[str], path: str) -> Cells:
    """The `used` columns of a DataFrame, as text if they are in `text`, else by their types.

    `path` is the name of the DataFrame in errors.
    """
    names = column_names(frame)
    columns: dict[str, Values] = {}
    for name in used:
        column = frame[names[name]]
        columns[name] = _values(column, name, path, as_text=name in text)
    return Cells(np.arange(len(frame)), columns)


def _values(column: object, name: str, path: str, *, as_text: bool) -> Values:
    """Values of a column: numbers, dates or text."""
    values = np.asarray(column)
    kind = values.dtype.kind
    if values.ndim != 1:
        raise bad_data(f"column {name!r} occurs twice", path)
    if kind not in "biufMOUT":
        raise bad_data(f"column {name!r} has the type {values.dtype}", path)
    if not as_text and kind in "iuf":
        if np.isinf(values).any():
            raise bad_data(f"column {name!r} has values that are not finite", path)
        return values.astype(np.float64)
    if not as_text and kind == "M":
        return Dates(values, "moment")
    cells = column.to_list() if hasattr(column, "to_list") else values.tolist()
    return Texts.of([_text(cell) for cell in cells])


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
