"""All examples of a file, held once and in the smallest form that loses nothing.

Values are float32 if every one of them is such a number (0 and 1, halves, small whole numbers),
and become float64 again, exactly, when they are taken. If all rows store the same columns, as in
dense data, these columns are held once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader

Columns = NDArray[np.int32]


@dataclass(frozen=True)
class Traits:
    """What a reader notes about a file besides its rows."""

    max_index: int
    zero_based: bool
    saw_qid: bool
    no_final_newline: bool

    @classmethod
    def of(cls, reader: SvmReader) -> Traits:
        """What this reader noted so far."""
        return cls(reader.max_index, reader.zero_based, reader.saw_qid, reader.no_final_newline)

    @property
    def features(self) -> int:
        """The number of features: the largest index, and one more if indices start at 0."""
        return max(self.max_index + self.zero_based, 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        notes = {
            "feature indices start at 0": self.zero_based,
            "qid fields are ignored": self.saw_qid,
            "the last line has no line end: the file may be incomplete": self.no_final_newline,
        }
        return tuple(note for note, holds in notes.items() if holds)


@dataclass(frozen=True, eq=False)
class CompactRows:
    """The examples of a file as its text states them: labels, lines and rows."""

    labels: Floats
    lines: Integers
    indptr: Integers
    columns: Columns
    """One for each value; or those of a single row, if all rows store the same."""
    values: NDArray[Any]
    traits: Traits
    sha256: str | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def chunk(self, chosen: Integers | slice) -> Chunk:
        """These examples, in this order."""
        return Chunk(self.labels[chosen], self.rows(chosen), self.lines[chosen])

    def rows(self, chosen: Integers | slice) -> CsrRows:
        """The rows of these examples, in this order."""
        width = self.traits.max_index + 1
        if len(self.columns) < len(self.values):
            values = self.values.reshape(len(self), -1)[chosen].astype(np.float64, copy=False)
            count, stored = values.shape
            indptr = np.arange(0, (count + 1) * stored, stored)
            return CsrRows(indptr, np.tile(self.columns, count), values.reshape(-1), width)
        whole = CsrRows(self.indptr, self.columns, self.values, width)
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(len(self))
            taken = whole.slice(start, stop)
        else:
            taken = whole.take(chosen)
        values = taken.values.astype(np.float64, copy=False)
        return CsrRows(taken.indptr, taken.columns, values, width)

    @classmethod
    def of_rows(cls, rows: CsrRows, labels: Floats) -> CompactRows:
        """Rows that are in memory already, numbered from 0."""
        traits = Traits(rows.width - 1, zero_based=True, saw_qid=False, no_final_newline=False)
        lines = np.arange(len(labels))
        return cls(labels, lines, rows.indptr, rows.columns, rows.values, traits)


def gather(chunks: Iterable[Chunk], reader: SvmReader) -> CompactRows:
    """All examples that a reader gives, of which `chunks` are the rows."""
    labels: list[Floats] = []
    lines: list[Integers] = []
    held: list[CsrRows] = []
    common = CommonColumns()
    for chunk in chunks:
        rows = chunk.rows
        common.add(rows)
        labels.append(chunk.labels)
        lines.append(chunk.lines)
        held.append(CsrRows(rows.indptr, rows.columns, smallest(rows.values), rows.width))
    indptr, columns, values = _joined(held, common.columns)
    return CompactRows(
        np.concatenate(labels), np.concatenate(lines), indptr, columns, values, Traits.of(reader)
    )


def _joined(held: list[CsrRows], shared: Columns | None) -> tuple[Integers, Columns, NDArray[Any]]:
    """One array of each kind. Each part is released once copied: both forms never exist at once."""
    kinds = {rows.values.dtype for rows in held}
    kind = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
    rows_in_all = sum(map(len, held))
    values_in_all = sum(len(rows.values) for rows in held)
    indptr = np.zeros(rows_in_all + 1, dtype=np.int64)
    columns = np.empty(values_in_all, dtype=np.int32) if shared is None else shared
    values: NDArray[Any] = np.empty(values_in_all, dtype=kind)
    row = start = 0
    held.reverse()
    while held:
        rows = held.pop()
        stop = start + len(rows.values)
        indptr[row + 1 : row + 1 + len(rows)] = rows.indptr[1:] + start
        values[start:stop] = rows.values
        if shared is None:
            columns[start:stop] = rows.columns
        row, start = row + len(rows), stop
    return indptr, columns, values


def smallest(values: Floats) -> NDArray[Any]:
    """The same numbers as float32, if all of them are; else as they are."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values) else values


class CommonColumns:
    """The columns that every row so far stores; None as soon as two rows differ."""

    def __init__(self) -> None:
        self.columns: Columns | None = None
        self._first = True

    def add(self, rows: CsrRows) -> None:
        """Compare these rows with those before."""
        known = rows.columns[: rows.indptr[1]] if self._first else self.columns
        self._first, self.columns = False, None
        if known is not None and len(known) and len(rows.columns) == len(known) * len(rows):
            alike = (rows.columns.reshape(-1, len(known)) == known).all()
            if alike and (np.diff(rows.indptr) == len(known)).all():
                self.columns = known
