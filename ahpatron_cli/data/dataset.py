"""Data sets ready for learning: encoded labels, scaled features, dense or sparse batches.

The rows of a stream are read once, in file order; those of a pipe are passed on as they arrive.
Rows in memory can be read repeatedly and in any order. An `Encoder` prepares both.
"""

from __future__ import annotations

import pickle
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, width_of
from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.cells import number
from ahpatron_cli.data.encoder import Encoder, Name, Weights, as_wide_as_needed, labelled_rows
from ahpatron_cli.data.faults import OnFaultyRow
from ahpatron_cli.data.file_formats import is_arrow, is_table
from ahpatron_cli.data.label_codes import AppearingLabels, LabelCodes, SeenLabels
from ahpatron_cli.data.labels import (
    OTHER,
    PLAIN_PAIRS,
    Labels,
    LabelTally,
    count_of_classes,
    describe,
    find_labels,
)
from ahpatron_cli.data.layout import is_dense
from ahpatron_cli.data.libsvm.grammar import Fault
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.data.source import Source, changed
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import UserError, bad_data, usage
from ahpatron_cli.records import DataRecord
from ahpatron_cli.settings import Data, Layout
from ahpatron_cli.signals import StreamEnded, watch

CHUNK_ROWS = 16 * BLOCK
"""Number of rows per batch: a multiple of the engine's block."""


@dataclass(frozen=True)
class Preparation:
    """Options for preparing a file before learners run on it."""

    data: Data = Data()  # noqa: RUF009 - it cannot change
    positive: float | None = None
    """The label that is +1 for LIBSVM text; every other one is then -1."""
    labels: tuple[float, ...] | None = None
    """All labels in increasing order, for pipes, which cannot be scanned."""
    may_lack_labels: bool = False
    """Whether rows without a label are accepted; their label is NaN."""
    table: TableOptions = TableOptions()  # noqa: RUF009 - it cannot change
    """Options for the columns of a table."""
    requires_rows: bool = False
    """Whether --sigma auto or --warm-up asks for the first rows of a stream before round 1."""
    may_grow: bool = True
    """Whether columns and categories are added to an open schema as they appear."""
    has_late_labels: bool = False
    """Whether a line with a label and no other cell is the label of an earlier row."""

    @property
    def learns_scale(self) -> bool:
        """Whether the scale is computed from the first rows."""
        return self.data.scale in LEARNED_SCALES

    @property
    def waits(self) -> bool:
        """Whether a stream has to wait for its first rows: for the scale, σ or means."""
        return self.requires_rows or self.learns_scale or self.table.missing == "mean"

    @property
    def learned(self) -> str:
        """The scale as text, with the number of rows from which it is computed."""
        if self.learns_scale:
            return f"{self.data.scale} of the first {self.data.warm_up}"
        return self.data.scale


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
        self, order: Integers | None = None, first_round: int = 0, rows: int = CHUNK_ROWS
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
        self, order: Integers | None = None, first_round: int = 0, rows: int = CHUNK_ROWS
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
        head = labelled_rows(_first_rows(self._whole, count), count)
        self.encoder.check_width(head, self.name)
        encoded = self.encoder.encode(head)
        return encoded.rows, encoded.labels

    def batches(
        self, order: Integers | None = None, first_round: int = 0, rows: int = CHUNK_ROWS
    ) -> Iterator[Batch]:
        if order is None:
            order = np.arange(self.count_rounds())
        taken = self._taken(order)
        for part in self._parts(taken, first_round=first_round, rows=rows, waits=False):
            yield self.encoder.encode(part, self.width)

    def _taken(self, order: Integers) -> Iterator[Batch]:
        """Yield the raw examples in the order of these row numbers."""
        for start in range(0, len(order), CHUNK_ROWS):
            stop = start + CHUNK_ROWS
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


def _ignore_waiting(rows: int) -> None:
    """Do not tell anybody that a pipe has to be waited for."""


def stream(
    source: Source,
    preparation: Preparation,
    continued: Encoder | None = None,
    on_wait: Callable[[int], None] = _ignore_waiting,
    *,
    may_restart: bool = False,
    on_faulty_row: OnFaultyRow | None = None,
) -> StreamedRows:
    """The rows of a source as a stream; the first rows are read now and held.

    `continued` is the encoder of a model that is continued: then no row is read yet. `on_wait` is
    called with the number of labelled rows so far if the warm-up has to wait for a pipe. With
    `may_restart`, a file whose first labels are a plain pair is not scanned; if another label
    follows, `batches` raises `NewLabelError` and the caller must start again. `on_faulty_row` is
    called with each faulty row, which is then left out; without it, the first one is raised after
    all rows before it.
    """
    reader = reader_of(source, preparation, continued, on_wait=on_wait, on_faulty_row=on_faulty_row)
    return stream_of(reader, preparation, continued, may_restart=may_restart)


def stream_of(
    reader: Reader,
    preparation: Preparation,
    continued: Encoder | None = None,
    *,
    may_restart: bool = False,
) -> StreamedRows:
    """The rows of a reader as a stream, as `stream` makes it."""
    if continued:
        encoder = _continuing(continued, reader, preparation)
        return StreamedRows(reader, preparation, encoder, expected=())
    head = reader.head(_deciding_rows(preparation), wait=preparation.learns_scale)
    first = head.labels[~np.isnan(head.labels)]
    may_restart = may_restart and reader.source.rereadable and reader.tally is None
    codes = _codes_of_stream(reader, preparation, first, may_restart=may_restart)
    encoder = _fitted(head, codes, reader=reader, preparation=preparation)
    expected = first.tolist() if codes.origin == "pipe" else []
    return StreamedRows(reader, preparation, encoder, expected=expected)


def load(
    source: Source,
    preparation: Preparation,
    continued: Encoder | None = None,
    sha256: str | None = None,
) -> RowsInMemory:
    """Load all examples of a source into memory.

    `continued` is the encoder of a model that is continued. `sha256` is the expected hash of the
    file (see `Reader.sha256`), if it was read before.
    """
    reader = reader_of(source, preparation, continued)
    parts = [replace(batch, rows=batch.stored) for batch in reader.batches]
    whole = Batch.concatenate(parts)
    found = reader.sha256()
    if sha256 not in (None, found):
        raise changed(source.name)
    if continued:
        encoder = _continuing(continued, reader, preparation)
    else:
        head = _first_rows(whole, _deciding_rows(preparation))
        codes = _codes_in_memory(whole.labels, preparation, source.name)
        encoder = _fitted(head, codes, reader=reader, preparation=preparation)
    return RowsInMemory(
        source.name, preparation, info=reader.info, encoder=encoder, whole=whole, sha256=found
    )


class FaultLog(Protocol):
    """Something that takes note of the faults of a file."""

    def add(self, line: int, fault: Fault) -> None:
        """Take note of a fault in LIBSVM text."""

    def add_of_table(self, fault: UserError) -> None:
        """Take note of a fault in a table."""


def reader_of(
    source: Source,
    preparation: Preparation,
    continued: Encoder | None = None,
    *,
    on_wait: Callable[[int], None] = _ignore_waiting,
    faults: FaultLog | None = None,
    on_faulty_row: OnFaultyRow | None = None,
) -> Reader:
    """The reader for a source, LIBSVM text or table, chosen by its content and name.

    `continued` is the encoder of a model that is continued. With `faults`, faulty lines are left
    out; without, the first one is an error.
    """
    schema = continued.schema if continued else None
    if not schema and not is_table(source, preparation.table):
        return SvmReader(
            source,
            preparation.data,
            on_fault=faults.add if faults else None,
            on_faulty_row=on_faulty_row,
            may_lack_labels=preparation.may_lack_labels,
            on_wait=on_wait,
        )
    if continued and not schema:
        problem = "this is a table, and the model was trained on LIBSVM text"
        hint = "train a model on a table: `ahpatron run DATA --label COLUMN --save MODEL`"
        raise bad_data(problem, source.name, hint=hint)
    if faults is None and _is_live(source, preparation, schema, on_faulty_row):
        return _live_reader(
            source, preparation, schema, on_wait=on_wait, on_faulty_row=on_faulty_row
        )
    return _table_reader(source, preparation, schema, on_wait=on_wait, faults=faults)


def _is_live(
    source: Source,
    preparation: Preparation,
    schema: Schema | None,
    on_faulty_row: OnFaultyRow | None,
) -> bool:
    """Whether rows of a table are read as they arrive, with a schema that need not be inferred."""
    if not preparation.may_lack_labels:
        return False
    if schema is not None and not is_arrow(source):
        return on_faulty_row is not None or not source.rereadable
    return not source.rereadable and not preparation.waits


def _live_reader(
    source: Source,
    preparation: Preparation,
    schema: Schema | None,
    *,
    on_wait: Callable[[int], None],
    on_faulty_row: OnFaultyRow | None,
) -> Reader:
    """The reader for a table that is read row by row; see `reader_of`."""
    from ahpatron_cli.data.live_tables import LiveTableReader  # LIBSVM text starts sooner

    return LiveTableReader(
        source,
        preparation.table,
        schema,
        preparation.data,
        on_wait=on_wait,
        on_faulty_row=on_faulty_row,
        may_grow=preparation.may_grow and not source.rereadable,
        has_late_labels=preparation.has_late_labels,
    )


def _table_reader(
    source: Source,
    preparation: Preparation,
    schema: Schema | None,
    *,
    on_wait: Callable[[int], None],
    faults: FaultLog | None,
) -> Reader:
    """The reader for a table; see `reader_of`."""
    from ahpatron_cli.data.tables import TableReader, check_features

    if preparation.data.allow_new_features:
        problem = "--allow-new-features is for LIBSVM text: the model has the columns of its table"
        raise usage(problem, "other columns are ignored")
    reader = TableReader(
        source,
        preparation.table,
        schema,
        data=preparation.data,
        may_lack_labels=preparation.may_lack_labels,
        has_late_labels=preparation.has_late_labels,
        on_wait=on_wait,
        on_fault=faults.add_of_table if faults else None,
    )
    check_features(reader.schema, preparation.data.max_features, source.name)
    return reader


def _continuing(continued: Encoder, reader: Reader, preparation: Preparation) -> Encoder:
    """The encoder of a model for this source."""
    labels = continued.labels
    may_appear = preparation.may_grow and not reader.source.rereadable
    if labels.appearing is not None and not may_appear:
        closed = replace(labels.appearing, is_open=False)
        labels = replace(labels, appearing=closed if closed.are_classes else None)
    return replace(
        continued,
        labels=labels,
        width=max(continued.width, _width_of_table(reader.schema)),
        schema=reader.schema,
        refuses_new_features=continued.refuses_new_features
        and not preparation.data.allow_new_features,
    )


def _fitted(head: Batch, codes: LabelCodes, *, reader: Reader, preparation: Preparation) -> Encoder:
    """The encoder for a source with these first rows and codes of labels."""
    encoder = Encoder(
        labels=codes,
        dense=_is_dense(head, preparation.data.layout),
        width=_width_of_table(reader.schema),
        scale=preparation.data.scale,
        schema=reader.schema,
    )
    if not preparation.learns_scale:
        return encoder
    rows = labelled_rows(head, preparation.data.warm_up)
    encoder.check_width(rows, reader.source.name)
    converted = encoder.convert(rows.rows)
    scaler = Scaler.fitted(converted, preparation.data.scale)
    return replace(encoder, scaler=scaler)


def _deciding_rows(preparation: Preparation) -> int:
    """Number of first rows that decide on layout and scale."""
    if preparation.learns_scale:
        return preparation.data.warm_up
    return BLOCK


def _first_rows(batch: Batch, count: int) -> Batch:
    """The first `count` rows, or all if there are fewer."""
    stop = min(count, len(batch.labels))
    return batch.part(slice(0, stop))


def _is_dense(head: Batch, layout: Layout) -> bool:
    """Whether the rows are learned as dense ones: by the first block, unless --layout says it."""
    if layout != "auto":
        return layout == "dense"
    first = _first_rows(head, BLOCK)
    rows = as_wide_as_needed(first.stored)
    width = width_of(rows)
    return is_dense(len(first.labels), width, stored=first.values)


def _width_of_table(schema: Schema | None) -> int:
    """Number of columns that the schema of a table determines; 0 for LIBSVM text."""
    return len(schema.features) + 1 if schema else 0


def _codes_in_memory(labels: Floats, preparation: Preparation, path: str) -> LabelCodes:
    """Codes of the labels of a file, given all of its labels."""
    given = _codes_of_options(preparation)
    if given:
        return given
    tally = LabelTally().add(labels)
    return LabelCodes("scan", find_labels(path, tally) or ())


def _codes_of_options(preparation: Preparation) -> LabelCodes | None:
    """Codes of the labels that --positive or --classes names; None without these."""
    if preparation.positive is None and preparation.labels is None:
        return None
    return LabelCodes("option", preparation.labels or (), preparation.positive)


def _codes_of_stream(
    reader: Reader, preparation: Preparation, first: Floats, *, may_restart: bool
) -> LabelCodes:
    """Codes of the labels of a stream, by options, by its `first` labels or by a scan."""
    given = _codes_of_options(preparation)
    if given:
        return given
    distinct = set(first.tolist())
    are_plain = any(distinct <= set(pair) for pair in PLAIN_PAIRS)
    if are_plain and may_restart:
        return LabelCodes("file")
    found = reader.scan()
    if found is not None:
        return LabelCodes("scan", find_labels(reader.source.name, found) or ())
    if reader.schema and not reader.schema.has_open_labels:
        codes = _codes_of_table(reader.schema, preparation, reader.source.name)
        if len(codes) > 1:
            return LabelCodes("schema", codes)
    return LabelCodes("pipe", appearing=AppearingLabels())


def _codes_of_table(schema: Schema, preparation: Preparation, path: str) -> tuple[float, ...]:
    """Codes of the labels of a table that is read from a pipe, as far as they are known.

    Text has a code for each label, so classes that appear later would change those before:
    all classes must be named.
    """
    if schema.positive is not None:
        return PLAIN_PAIRS[0]
    codes = tuple(sorted({*schema.labels.values()}))
    if len(codes) > 2 and not preparation.table.labels:
        problem = f"{len(codes)} classes in the first rows: {listed(schema.labels)}"
        named = shlex.quote(",".join(schema.labels))
        hint = (
            f"a pipe cannot be read ahead: name all labels (`--classes {named}`) or one "
            "against all others: `--positive LABEL`"
        )
        raise bad_data(problem, path, hint=hint)
    return codes


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
