"""Data sets ready for learning: encoded labels, scaled features, dense or sparse batches.

The rows of a stream are read once, in file order; those of a pipe are passed on as they arrive.
Rows in memory can be read repeatedly and in any order. An `Encoder` prepares both.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, width_of
from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.cells import number
from ahpatron_cli.data.encoder import Encoder, Name, Weights, as_wide_as_needed, labelled_rows
from ahpatron_cli.data.label_codes import SeenLabels
from ahpatron_cli.data.labels import (
    OTHER,
    Labels,
    count_of_classes,
    describe,
)
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.schema import listed
from ahpatron_cli.errors import UserError, usage
from ahpatron_cli.records import DataRecord
from ahpatron_cli.signals import StreamEnded, watch

BATCH_ROWS = 16 * BLOCK
"""Number of rows per batch: a multiple of the engine's block."""


@dataclass(frozen=True)
class Findings:
    """What was found in a data set while it was read."""

    record: DataRecord
    notes: tuple[str, ...]
    """Notes for the user, such as how labels were encoded."""
    sorted_labels: bool
    """Whether the rows are sorted by label."""
    unlabelled: int
    """Number of rows without a label."""


class Dataset(ABC):
    """Examples of a file, prepared for learners by an encoder."""

    in_memory: bool
    """Whether the examples can be read repeatedly and in any order."""

    def __init__(
        self, name: str, preparation: Preparation, *, info: FileInfo, encoder: Encoder
    ) -> None:
        self.name = name
        self.preparation = preparation
        self.info = info
        """Facts about the file, as far as it was read."""
        self.encoder = encoder
        self.width = encoder.width
        """Number of columns so far, as of the last batch."""
        self._seen = SeenLabels(encoder.labels, name)

    @abstractmethod
    def count_rounds(self) -> int | None:
        """Number of rounds, by a scan if necessary; None if it cannot be known in advance."""

    @abstractmethod
    def warm_up(self) -> tuple[Rows, Floats]:
        """The first labelled rows and their labels, from which σ is selected."""

    @abstractmethod
    def batches(
        self, order: Integers | None = None, first_round: int = 0, rows: int = BATCH_ROWS
    ) -> Iterator[Batch]:
        """Yield the examples in file order, or in the order of these row numbers.

        Batches of files end at block boundaries of the engine, if the first example is round
        `first_round` (from 0); each block is only as wide as the rows so far require, so that bits
        do not depend on later rows. Batches have at most `rows` rows; those of pipes are the rows
        that have arrived.
        """

    @abstractmethod
    def _sha256(self) -> str | None:
        """Hash of the file; see `Reader.sha256`."""

    def labels(self) -> Labels:
        """Labels in the order of their codes, as far as they were seen."""
        return self._seen.labels()

    def weights(self, by_label: Weights) -> tuple[float, ...] | None:
        """Weights of examples in the order of the labels, from --weight; None if there are none."""
        if not by_label:
            return None
        encoder = self.encoder
        schema = encoder.schema
        if schema is not None and schema.has_open_labels:
            by_label = _by_number(by_label)
            encoder = replace(encoder, schema=None)
        if encoder.schema is None:
            self._seen.expect_named(self._expected_labels(by_label))
        return encoder.weights(by_label, self.labels())

    def _expected_labels(self, named: Iterable[Name]) -> list[float]:
        """The labels that decide what -1 stands for: those that options name."""
        if self.encoder.labels.positive is not None:
            return []
        return [label for label in named if not isinstance(label, str)]

    def finish(self, *, requires_labels: bool = True) -> Findings:
        """What was found; for a stream, call this after all batches were read.

        A UserError if the file has changed meanwhile; also if there is nothing to learn, unless
        the stream is answered even so.
        """
        schema = self.encoder.schema
        positive_named = schema is not None and schema.positive is not None
        labels = self._seen.labels()
        if requires_labels:
            limit = self.preparation.data.limit
            labels = self._seen.finish(limit, positive_named=positive_named)
        has_labels = self._seen.rows > 0 or positive_named
        encoding = describe(labels) if has_labels else None
        label_names = None
        if schema:
            names = schema.label_names(labels)
            label_names = tuple(name or OTHER for name in names)
            if self.encoder.classes:
                known = [name for name in names if name]
                encoding = f"{count_of_classes(labels)}: {listed(known)}"
        notes = self.info.notes
        if encoding:
            notes = (encoding, *notes)
        record = DataRecord(
            path=self.name,
            rounds=self._seen.rows,
            features=self.info.features,
            labels=labels,
            sha256=self._sha256(),
            label_names=label_names,
        )
        return Findings(
            record=record,
            notes=notes,
            sorted_labels=self._seen.are_sorted,
            unlabelled=self._seen.unlabelled,
        )

    def _parts(
        self, batches: Iterable[Batch], *, first_round: int, rows: int, waits: bool
    ) -> Iterator[Batch]:
        """Yield raw examples in parts that are learned at once; sets `width` before each."""
        self.width = self.encoder.width
        for batch, open_rounds in _aligned(batches, first_round % BLOCK, waits):
            is_wider = width_of(batch.rows) > self.width
            step = rows  # signals are handled between batches
            if self.encoder.dense and is_wider:
                step = BLOCK
            count = len(batch.labels)
            inner = range(step - open_rounds, count, step)
            for start, stop in pairwise([0, *inner, count]):
                try:
                    if not waits:  # rows of a pipe are gone once they are read: they are still run
                        watch.look()
                except StreamEnded:
                    return
                part = batch.part(slice(start, stop))
                used = replace(part, rows=as_wide_as_needed(part.rows))
                self.width = max(self.width, width_of(used.rows))
                yield used


def _by_number(by_label: Weights) -> dict[Name, float]:
    """Weights by labels that are numbers: others of a live table have no codes yet."""
    found: dict[Name, float] = {}
    for name, weight in by_label.items():
        value = number(str(name))
        if value is None:
            problem = f"--weight names the label {name}, and those of a pipe are not known yet"
            raise usage(problem, "name all labels: `--classes A,B`")
        found[value] = weight
    return found


class StreamedRows(Dataset):
    """The rows of a stream, which are read once, in file order."""

    in_memory = False

    def __init__(
        self, reader: Reader, preparation: Preparation, encoder: Encoder, expected: Iterable[float]
    ) -> None:
        """`expected` are labels that are known before their rows are encoded."""
        name = reader.source.name
        super().__init__(name, preparation, info=reader.info, encoder=encoder)
        self._reader = reader
        self._seen.expect(expected)
        self.ends_at_fault = False
        """Whether a faulty row ends the stream as its end does, after the rows before it."""
        self.fault: UserError | None = None
        """What ended the stream, if it was a faulty row."""

    @property
    def header_lines(self) -> int:
        """Number of lines before the first row that name columns."""
        return self._reader.header_lines

    def recent_line(self, number: int) -> bytes:
        """The line with this number, if it was read a moment ago; else empty."""
        return self._reader.recent.line(number)

    def count_rounds(self) -> int | None:
        found = self._reader.scan()
        return found.rows if found else None

    def warm_up(self) -> tuple[Rows, Floats]:
        """The first labelled rows and their labels; call this before `batches`."""
        count = self.preparation.data.warm_up
        head = labelled_rows(self._reader.head(count, wait=True), count)
        self.encoder.check_width(head, self.name)
        self._seen.check(head.labels, head.lines)
        encoded = self.encoder.encode(head)
        return encoded.rows, encoded.labels

    def batches(
        self, order: Integers | None = None, first_round: int = 0, rows: int = BATCH_ROWS
    ) -> Iterator[Batch]:
        assert order is None, "a stream has no order except its own"
        self._reader.head(1, wait=False)  # raises `StreamEnded` if a signal came before
        waits = self._reader.source.waits
        sound = chain.from_iterable(map(self._sound, self._reader.batches))
        parts = self._parts(sound, first_round=first_round, rows=rows, waits=waits)
        while (part := self._next(parts)) is not None:
            encoded = self.encoder.encode(part, self.width)
            self._seen.count(encoded.labels)
            yield encoded

    def _next(self, parts: Iterator[Batch]) -> Batch | None:
        """The next part; None at the end, or at a faulty row that ends the stream."""
        try:
            return next(parts, None)
        except UserError as fault:
            if not self.ends_at_fault or not self._seen.rows:
                raise
            self.fault = fault
            return None

    def _sound(self, batch: Batch) -> Iterator[Batch]:
        """Yield the rows that can be learned; a faulty one is refused after those before it."""
        first = self._seen.first_of_classes(batch.labels)
        if first:
            yield from self._sound(batch.part(slice(0, first)))
            batch = batch.part(slice(first, len(batch.labels)))
        try:
            self.encoder.check_width(batch, self.name)
            self._seen.check(batch.labels, batch.lines)
        except UserError as fault:
            count = len(batch.labels)
            if count == 1:
                self._reader.refuse(int(batch.lines[0]), fault)
                return
            middle = count // 2
            yield from self._sound(batch.part(slice(0, middle)))
            yield from self._sound(batch.part(slice(middle, count)))
            return
        yield batch

    def _expected_labels(self, named: Iterable[Name]) -> list[float]:
        found = self._reader.scan()
        if found is not None:
            return list(found.counts)
        return super()._expected_labels(named)

    def _sha256(self) -> str | None:
        return self._reader.sha256()


class RowsInMemory(Dataset):
    """All rows of a file in memory."""

    in_memory = True

    def __init__(
        self,
        name: str,
        preparation: Preparation,
        *,
        info: FileInfo,
        encoder: Encoder,
        whole: Batch,
        sha256: str | None,
    ) -> None:
        super().__init__(name, preparation, info=info, encoder=encoder)
        self._whole = whole
        self._hash = sha256
        self._seen.check(whole.labels, whole.lines)
        self._seen.count(encoder.labels.encode(whole.labels))

    def count_rounds(self) -> int:
        return len(self._whole.labels)

    def warm_up(self) -> tuple[Rows, Floats]:
        count = self.preparation.data.warm_up
        head = labelled_rows(self._whole.first(count), count)
        self.encoder.check_width(head, self.name)
        encoded = self.encoder.encode(head)
        return encoded.rows, encoded.labels

    def batches(
        self, order: Integers | None = None, first_round: int = 0, rows: int = BATCH_ROWS
    ) -> Iterator[Batch]:
        if order is None:
            order = np.arange(self.count_rounds())
        taken = self._taken(order)
        for part in self._parts(taken, first_round=first_round, rows=rows, waits=False):
            yield self.encoder.encode(part, self.width)

    def _taken(self, order: Integers) -> Iterator[Batch]:
        """Yield the raw examples in the order of these row numbers."""
        for start in range(0, len(order), BATCH_ROWS):
            stop = start + BATCH_ROWS
            batch = self._whole.take(order[start:stop])
            self.encoder.check_width(batch, self.name)
            yield batch

    def _sha256(self) -> str | None:
        return self._hash

    def save(self, folder: Path) -> None:
        """Write the examples to an empty folder, from which `mapped` reads them."""
        rows = self._whole.stored
        np.save(folder / "labels.npy", self._whole.labels)
        np.save(folder / "lines.npy", self._whole.lines)
        np.save(folder / "indptr.npy", rows.indptr)
        np.save(folder / "columns.npy", rows.columns)
        np.save(folder / "values.npy", rows.values)
        others = (self.preparation, self.info, self.encoder, rows.width, self._hash)
        (folder / "others").write_bytes(pickle.dumps(others))


def mapped(name: str, folder: Path) -> RowsInMemory:
    """Rows written by `RowsInMemory.save`, as a memory map that processes can share."""

    def load_array(part: str) -> np.ndarray:
        # as a plain array, which is faster than np.memmap
        stored = np.load(folder / f"{part}.npy", mmap_mode="r")
        return np.asarray(stored)

    others = (folder / "others").read_bytes()
    preparation, info, encoder, width, sha256 = pickle.loads(others)
    rows = CsrRows(
        indptr=load_array("indptr"),
        columns=load_array("columns"),
        values=load_array("values"),
        width=width,
    )
    whole = Batch(rows, labels=load_array("labels"), lines=load_array("lines"))
    return RowsInMemory(name, preparation, info=info, encoder=encoder, whole=whole, sha256=sha256)


def _aligned(
    batches: Iterable[Batch], open_rounds: int, waits: bool
) -> Iterator[tuple[Batch, int]]:
    """Re-batch rows so that batches end with a block of the engine; also yields the open rounds.

    The rest is added to the next batch, unless reading that may block (`waits`).
    """
    rest: Batch | None = None
    for batch in batches:
        joined = batch
        if rest is not None:
            joined = Batch.concatenate([rest, batch])
            rest = None
        count = len(joined.labels)
        end = count
        if not waits:
            whole_blocks = (count + open_rounds) // BLOCK
            end = max(whole_blocks * BLOCK - open_rounds, 0)
        if end < count:
            rest = joined.part(slice(end, count))
        if end:
            yield joined.part(slice(0, end)), open_rounds
            open_rounds = (open_rounds + end) % BLOCK
    if rest is not None:
        yield rest, open_rounds
