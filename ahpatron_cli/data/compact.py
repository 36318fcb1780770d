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
from ahpatron_cli.data.batch import Batch, FileInfo
from ahpatron_cli.data.labels import LabelTally

ARRAYS = ("labels", "lines", "indptr", "columns", "values")
CHUNK_ROWS = 16 * BLOCK
"""Rows that are taken from memory at once: whole blocks of the engine."""


@dataclass(frozen=True, eq=False)
class CompactRows:
    """The examples of a file as its text states them: labels, lines and rows."""

    labels: Floats
    lines: Integers
    indptr: Integers
    columns: NDArray[np.int32]
    """One for each value; or those of a single row, if all rows store the same."""
    values: NDArray[Any]
    traits: FileInfo
    sha256: str | None = None
    waits = False
    """They are here."""

    @property
    def rounds(self) -> int:
        """The number of examples."""
        return len(self.labels)

    def tally(self) -> LabelTally:
        """All labels."""
        return LabelTally(limit=self.rounds).add(self.labels)

    def head(self, rows: int, *, wait: bool = True) -> Batch:
        """The first examples."""
        return self.batch(slice(0, rows))

    def batches(self, order: Integers | None) -> Iterator[Batch]:
        """All examples in file order, or those numbered in `order`."""
        for start in range(0, self.rounds if order is None else len(order), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            yield self.batch(part if order is None else order[part])

    def batch(self, chosen: Integers | slice) -> Batch:
        """These examples, in this order."""
        return Batch(self._rows(chosen), self.labels[chosen], self.lines[chosen])

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


def gather(batches: Iterable[Batch], traits: FileInfo) -> CompactRows:
    """All examples of these batches; `traits` are complete once the last batch was taken."""
    labels: list[Floats] = []
    lines: list[Integers] = []
    held: list[CsrRows] = []
    for batch in batches:
        rows = batch.stored
        labels.append(batch.labels)
        lines.append(batch.lines)
        held.append(replace(rows, values=_smallest(rows.values)))
    first = held[0].columns[: held[0].indptr[1]]
    shared = all(_all_store(rows, first) for rows in held)
    stored = sum(len(rows.values) for rows in held)
    single = all(rows.values.dtype == np.float32 for rows in held)
    values: NDArray[Any] = np.empty(stored, dtype=np.float32 if single else np.float64)
    columns = first if shared else np.empty(stored, dtype=np.int32)
    lengths: list[Integers] = []
    start = 0
    held.reverse()
    while held:  # each part is released once copied: rows are held once
        rows = held.pop()
        stop = start + len(rows.values)
        lengths.append(np.diff(rows.indptr))
        values[start:stop] = rows.values
        if not shared:
            columns[start:stop] = rows.columns
        start = stop
    indptr = np.append(0, np.cumsum(np.concatenate(lengths)))
    return CompactRows(
        np.concatenate(labels), np.concatenate(lines), indptr, columns, values, traits
    )


def _all_store(rows: CsrRows, columns: NDArray[np.int32]) -> bool:
    """Whether every row stores exactly these columns, at least one."""
    if not len(columns) or len(rows.columns) != len(columns) * len(rows):
        return False
    same_length = (np.diff(rows.indptr) == len(columns)).all()
    return bool(same_length and (rows.columns.reshape(-1, len(columns)) == columns).all())


def _smallest(values: Floats) -> NDArray[Any]:
    """The same numbers as float32, if all of them are; else as they are."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values) else values
