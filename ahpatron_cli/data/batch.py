"""Consecutive examples of a file, and what its reader notes about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, compressed, rows_of


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive examples: as they stand in the file, or encoded, scaled and ready to be learned.

    A column is the index as written: column 0 is empty in 1-based files.
    """

    rows: Rows
    labels: Floats
    """NaN for rows without one."""
    lines: Integers
    """The line of the file that each example stands on, from 1."""
    ids: NDArray[np.object_] | None = None
    """What identifies each example, if a column of a table does."""

    @property
    def stored(self) -> CsrRows:
        """The rows without their zeros."""
        return compressed(self.rows)

    def part(self, part: slice) -> Batch:
        """Consecutive examples of this batch, sharing memory with it."""
        ids = None if self.ids is None else self.ids[part]
        return Batch(rows_of(self.rows, part), self.labels[part], self.lines[part], ids)

    def runs(self) -> Iterator[tuple[bool, Batch]]:
        """Runs of consecutive rows with labels (True) and without."""
        labelled = ~np.isnan(self.labels)
        cuts = np.flatnonzero(labelled[1:] != labelled[:-1]) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(labelled)]):
            part = self if stop - start == len(labelled) else self.part(slice(start, stop))
            yield bool(labelled[start]), part

    @staticmethod
    def concatenate(batches: Sequence[Batch]) -> Batch:
        """All rows of all batches, in order, without their zeros."""
        return Batch(
            CsrRows.concatenate([batch.stored for batch in batches]),
            np.concatenate([batch.labels for batch in batches]),
            np.concatenate([batch.lines for batch in batches]),
            None if batches[0].ids is None else np.concatenate([batch.ids for batch in batches]),
        )


@dataclass
class FileInfo:
    """What a reader notes about a file besides its rows."""

    max_index: int = -1
    zero_based: bool = False
    saw_qid: bool = False
    no_final_newline: bool = False
    remarks: tuple[str, ...] = ()
    """On the columns of a table."""
    schema: Any = None
    """What became of them: a `Schema`."""

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
        return (*self.remarks, *(note for note, holds in notes.items() if holds))
