"""All examples of a file in memory; processes share them by memory maps (`save`, `mapped`)."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.batch import Batch, FileInfo
from ahpatron_cli.data.labels import LabelTally

CHUNK_ROWS = 16 * BLOCK
"""Rows that are taken from memory at once: whole blocks of the engine."""


@dataclass(frozen=True, eq=False)
class CompactRows:
    """The examples of a file as its text states them: labels, lines and rows."""

    labels: Floats
    lines: Integers
    rows: CsrRows
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
        rows = min(rows, self.rounds)
        return Batch(self.rows.slice(0, rows), self.labels[:rows], self.lines[:rows])

    def batches(self, order: Integers | None) -> Iterator[Batch]:
        """All examples in file order, or those numbered in `order`."""
        order = np.arange(self.rounds) if order is None else order
        for start in range(0, len(order), CHUNK_ROWS):
            part = order[start : start + CHUNK_ROWS]
            yield Batch(self.rows.take(part), self.labels[part], self.lines[part])

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder, from which `mapped` reads it."""
        rows = self.rows
        arrays: list[Any] = [self.labels, self.lines, rows.indptr, rows.columns, rows.values]
        for number, array in enumerate(arrays):
            np.save(folder / f"{number}.npy", array)
        (folder / "others").write_bytes(pickle.dumps((rows.width, self.traits, self.sha256)))

    @classmethod
    def mapped(cls, folder: Path) -> CompactRows:
        """What `save` wrote, mapped into memory."""
        # plain views, without the overhead of np.memmap
        arrays = [np.asarray(np.load(folder / f"{n}.npy", mmap_mode="r")) for n in range(5)]
        width, *others = pickle.loads((folder / "others").read_bytes())
        indptr, columns, values = arrays[2:]
        return cls(arrays[0], arrays[1], CsrRows(indptr, columns, values, width), *others)

    @classmethod
    def of_rows(cls, rows: CsrRows, labels: Floats) -> CompactRows:
        """Rows that are in memory already, numbered from 0."""
        traits = FileInfo(rows.width - 1, zero_based=True)
        return cls(labels, np.arange(len(labels)), rows, traits)


def gather(batches: Iterable[Batch], traits: FileInfo) -> CompactRows:
    """All examples of these batches; `traits` are complete once the last batch was taken."""
    whole = Batch.concatenate(list(batches))
    return CompactRows(whole.labels, whole.lines, whole.stored, traits)
