"""All examples of a file, held once, in the smallest form that loses nothing.

Values are float32 if every one of them is such a number (0 and 1, halves, small integers), and
become float64 again, exactly, when they are taken. If all rows store the same columns, as in dense
data, these columns are held once. Processes share the arrays by memory maps (`save`, `mapped`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.libsvm.reader import Chunk, FileInfo

ARRAYS = ("labels", "lines", "indptr", "columns", "values")
CHUNK_ROWS = 16 * BLOCK
"""Rows that are taken from memory at once: whole blocks of the engine."""
Columns = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CompactRows:
    """The examples of a file as its text states them: labels, lines and rows."""

    labels: Floats
    lines: Integers
    indptr: Integers
    columns: Columns
    """One for each value; or those of a single row, if all rows store the same."""
    values: NDArray[Any]
    traits: FileInfo
    sha256: str | None = None

    @property
    def rounds(self) -> int:
        """The number of examples."""
        return len(self.labels)

    def tally(self) -> LabelTally:
        """All labels."""
        return LabelTally(limit=self.rounds).add(self.labels)

    def head(self, rows: int, *, wait: bool = True) -> Chunk:
        """The first examples."""
        return self.chunk(slice(0, rows))

    def chunks(self, order: Integers | None) -> Iterator[Chunk]:
        """All examples in file order, or those numbered in `order`."""
        for start in range(0, self.rounds if order is None else len(order), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            yield self.chunk(part if order is None else order[part])

    def chunk(self, chosen: Integers | slice) -> Chunk:
        """These examples, in this order."""
        return Chunk(self.labels[chosen], self._rows(chosen), self.lines[chosen])

    def _rows(self, chosen: Integers | slice) -> CsrRows:
        width = self.traits.max_index + 1
        if len(self.columns) < len(self.values):
            values = self.values.reshape(self.rounds, -1)[chosen].astype(np.float64, copy=False)
            count, stored = values.shape
            indptr = np.arange(0, (count + 1) * stored, stored)
            return CsrRows(indptr, np.tile(self.columns, count), values.reshape(-1), width)
        whole = CsrRows(self.indptr, self.columns, self.values, width)
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(self.rounds)
            taken = whole.slice(start, stop)
        else:
            taken = whole.take(chosen)
        return replace(taken, values=taken.values.astype(np.float64, copy=False))

    def save(self, folder: Path) -> None:
        """Write the arrays into an empty folder, from which `mapped` reads them."""
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        (folder / "others").write_bytes(pickle.dumps((self.traits, self.sha256)))

    @classmethod
    def mapped(cls, folder: Path) -> CompactRows:
        """What `save` wrote, mapped into memory."""
        # a plain view, without the overhead of np.memmap
        arrays: dict[str, Any] = {
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ARRAYS
        }
        traits, sha256 = pickle.loads((folder / "others").read_bytes())
        return cls(**arrays, traits=traits, sha256=sha256)

    @classmethod
    def of_rows(cls, rows: CsrRows, labels: Floats) -> CompactRows:
        """Rows that are in memory already, numbered from 0."""
        traits = FileInfo(rows.width - 1, zero_based=True)
        lines = np.arange(len(labels))
        return cls(labels, lines, rows.indptr, rows.columns, rows.values, traits)


def gather(chunks: Iterable[Chunk], traits: FileInfo) -> CompactRows:
    """All examples of these chunks; `traits` are complete once the last chunk was taken."""
    labels: list[Floats] = []
    lines: list[Integers] = []
    held: list[CsrRows] = []
    shared: Columns | None = None
    for chunk in chunks:
        rows = chunk.rows
        first = shared if held else rows.columns[: rows.indptr[1]]
        shared = first if first is not None and _all_store(rows, first) else None
        labels.append(chunk.labels)
        lines.append(chunk.lines)
        held.append(replace(rows, values=smallest(rows.values)))
    arrays = np.concatenate(labels), np.concatenate(lines), *_joined(held, shared)
    return CompactRows(*arrays, traits)


def _all_store(rows: CsrRows, columns: Columns) -> bool:
    """Whether every row stores exactly these columns, at least one."""
    if not len(columns) or len(rows.columns) != len(columns) * len(rows):
        return False
    same_length = (np.diff(rows.indptr) == len(columns)).all()
    return bool(same_length and (rows.columns.reshape(-1, len(columns)) == columns).all())


def _joined(held: list[CsrRows], shared: Columns | None) -> tuple[Integers, Columns, NDArray[Any]]:
    """One array of each kind. Each part is released once copied: both forms never exist at once."""
    single = all(rows.values.dtype == np.float32 for rows in held)
    stored = sum(len(rows.values) for rows in held)
    indptr = np.zeros(sum(map(len, held)) + 1, dtype=np.int64)
    columns = np.empty(stored, dtype=np.int32) if shared is None else shared
    values: NDArray[Any] = np.empty(stored, dtype=np.float32 if single else np.float64)
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
