"""Batches of consecutive examples, facts about a file, and the interface of readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, compressed, sliced
from ahpatron_cli.data.faults import FaultyRow, OnFaultyRow, RecentLines
from ahpatron_cli.data.hashes import RowHash
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.row_range import RowRange
from ahpatron_cli.data.source import Source, changed, first_batches
from ahpatron_cli.errors import NoRowsError, UserError
from ahpatron_cli.settings import Data, RowFormat
from ahpatron_cli.signals import StreamEnded, watch

if TYPE_CHECKING:
    from ahpatron_cli.data.schema import Schema


def runs_of(values: NDArray[Any]) -> Iterator[slice]:
    """Slices of the runs of consecutive values that are equal; one empty slice without values."""
    cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(values)]):
        yield slice(start, stop)


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive examples: raw as in the file, or encoded and scaled for learning.

    Column numbers are feature indices as written: column 0 is empty if indices start at 1.
    """

    rows: Rows
    labels: Floats
    """Label of each example; NaN for rows without a label."""
    lines: Integers
    """Line number (from 1) of each example in the file."""
    ids: NDArray[np.object_] | None = None
    """The id of each example, if a table has an id column (--id)."""
    label_only: NDArray[np.bool_] | None = None
    """Which rows of a live stream have a label and no other cell: the label of an earlier row."""

    @property
    def stored(self) -> CsrRows:
        """The rows as `CsrRows`."""
        return compressed(self.rows)

    @property
    def values(self) -> int:
        """Number of values that are not 0."""
        rows = self.rows
        values = rows.values if isinstance(rows, CsrRows) else rows
        return int(np.count_nonzero(values))

    @property
    def is_label_only(self) -> NDArray[np.bool_]:
        """`label_only` as an array, also if there are no such rows."""
        if self.label_only is None:
            return np.zeros(len(self.labels), dtype=bool)
        return self.label_only

    def labelled(self) -> int:
        """Number of examples with a label."""
        return int(np.count_nonzero(~np.isnan(self.labels)))

    def part(self, part: slice) -> Batch:
        """A slice of this batch, as views."""
        return Batch(
            rows=sliced(self.rows, part),
            labels=self.labels[part],
            lines=self.lines[part],
            ids=None if self.ids is None else self.ids[part],
            label_only=None if self.label_only is None else self.label_only[part],
        )

    def first(self, count: int) -> Batch:
        """The first `count` examples, or all if there are fewer, as views."""
        return self.part(slice(0, min(count, len(self.labels))))

    def take(self, numbers: Integers) -> Batch:
        """The examples with these numbers, in this order."""
        return Batch(
            rows=self.stored.take(numbers),
            labels=self.labels[numbers],
            lines=self.lines[numbers],
            ids=None if self.ids is None else self.ids[numbers],
            label_only=None if self.label_only is None else self.label_only[numbers],
        )

    def runs(self) -> Iterator[tuple[bool, Batch]]:
        """Split into runs of consecutive rows with labels (True) and without (False)."""
        labelled = ~np.isnan(self.labels)
        whole = slice(0, len(labelled))
        for run in runs_of(labelled):
            part = self if run == whole else self.part(run)
            yield bool(labelled[run.start]), part

    @staticmethod
    def concatenate(batches: Sequence[Batch]) -> Batch:
        """All rows of all batches in one batch, in order; dense if all are, and equally wide."""
        dense = [batch.rows for batch in batches if isinstance(batch.rows, np.ndarray)]
        widths = {rows.shape[1] for rows in dense}
        rows: Rows
        if len(dense) == len(batches) and len(widths) == 1:
            rows = np.concatenate(dense)
        else:
            rows = CsrRows.concatenate([batch.stored for batch in batches])
        labels = np.concatenate([batch.labels for batch in batches])
        lines = np.concatenate([batch.lines for batch in batches])
        ids = None
        if batches[0].ids is not None:
            ids = np.concatenate([batch.ids for batch in batches])
        label_only = None
        if any(batch.label_only is not None for batch in batches):
            label_only = np.concatenate([batch.is_label_only for batch in batches])
        return Batch(rows, labels, lines, ids=ids, label_only=label_only)


@dataclass
class FileInfo:
    """Facts about a file that its reader collects while reading."""

    max_index: int = -1
    zero_based: bool = False
    saw_qid: bool = False
    no_final_newline: bool = False
    remarks: tuple[str, ...] = ()
    """Notes on the columns of a table, for the user."""

    @property
    def features(self) -> int:
        """Number of features: the largest index, plus one if indices start at 0."""
        return max(self.max_index + self.zero_based, 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about the file."""
        notes = {
            "feature indices start at 0": self.zero_based,
            "qid fields are ignored": self.saw_qid,
            "the last line has no line end: the file may be incomplete": self.no_final_newline,
        }
        found = [note for note, holds in notes.items() if holds]
        return (*self.remarks, *found)


class Reader(ABC):
    """Reader of the examples of a source: iterating over it yields batches, once.

    `on_wait` is called with the number of labelled rows so far if `head` has to wait for a pipe;
    `on_faulty_row` with each faulty row, which is then left out. Without it, the first one is
    raised.
    """

    format: RowFormat = "csv"
    """In which format rows of a live stream are answered."""
    header_lines = 0
    """Number of lines before the first row that name columns."""

    def __init__(
        self,
        source: Source,
        data: Data,
        on_wait: Callable[[int], None] = lambda rows: None,
        on_faulty_row: OnFaultyRow | None = None,
    ) -> None:
        self.source = source
        self._data = data
        self._on_wait = on_wait
        self.on_faulty_row = on_faulty_row
        self.rows_in_use = RowRange.of(data)
        """Which rows are yielded; the others are read and left out."""
        self.rows_seen = 0
        """Number of rows so far, also of those that are left out."""
        self.recent = RecentLines()
        """The lines that were read last."""
        self.rows_read = 0
        self.values_read = 0
        self.faults = 0
        self.stopped = False
        """Whether reading stopped at a fault that makes the rest of the file meaningless."""
        self.info = FileInfo()
        """Facts about the file so far."""
        self.schema: Schema | None = None
        """How columns of a table become features and labels; None for LIBSVM text."""
        self.tally: LabelTally | None = None
        """Counts of the labels of all rows, if these were read before."""
        self._row_hash = RowHash()
        """Hash of the rows so far; computed only if some rows are left out."""
        self.batches = iter(self)

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]: ...

    @abstractmethod
    def _count_labels(self) -> LabelTally:
        """Read a file a second time to count its labels."""

    def head(self, rows: int, *, wait: bool) -> Batch:
        """The first rows, at least `rows` of them with labels if possible; `batches` repeats them.

        For a pipe without `wait`, only the rows that have arrived. A `NoRowsError` if all lines are
        faulty, and were reported.
        """
        has_to_wait = self.source.waits
        held = first_batches(
            self.source,
            self.batches,
            rows=rows if wait or not has_to_wait else 0,
            labelled=Batch.labelled,
            on_wait=self._on_wait if wait else None,
        )
        self.batches = chain(held, self.batches)
        if not held:
            if watch.ended_by:
                raise StreamEnded
            raise NoRowsError(self.source.name)
        return Batch.concatenate(held)

    def scan(self) -> LabelTally | None:
        """Counts of the labels of the whole file; None if it cannot be read twice."""
        if self.tally is None and self.source.rereadable:
            self.tally = self._count_labels()
        return self.tally

    def sha256(self) -> str | None:
        """SHA-256 of the file; if rows are left out, that of the other rows alone.

        The rest of the file is read for it, unless rows are left out. A UserError if the file has
        changed since it was scanned; None if its end was not reached.
        """
        if not self.rows_in_use.is_everything:
            return None if watch.ended_by else self._row_hash.hexdigest()
        found = self.source.sha256()
        scanned = self.tally.sha256 if self.tally else None
        if scanned not in (None, found) and not watch.ended_by:
            raise changed(self.source.name)
        return found

    def refuse(self, line: int, error: UserError) -> None:
        """Report a row that turned out to be faulty after it was read, or raise the error."""
        if self.on_faulty_row is None:
            raise error
        raw = self.recent.line(line)
        self._report(FaultyRow(line, raw, error))

    def _report(self, row: FaultyRow) -> None:
        """Count and report a faulty row."""
        assert self.on_faulty_row is not None
        self.faults += 1
        self.on_faulty_row(row)

    def _note(self, batch: Batch) -> None:
        """Note what was read, before a batch is passed on."""
        self.rows_read += len(batch.labels)
        self.values_read += batch.values
        if not self.rows_in_use.is_everything:
            self._row_hash.add(batch)
