"""Examples ready to be learned: labelled, scaled, dense or sparse, in batches of any order.

A stream is read once, in file order; the rows of a pipe come as they arrive. Examples in memory can
be taken in any order, again and again. Both go through the same rules.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, joined_rows, rows_of, unit_rows
from ahpatron_cli.data.compact import CHUNK_ROWS, CompactRows, gather
from ahpatron_cli.data.labels import (
    LabelMap,
    Labels,
    LabelTally,
    describe,
    find_labels,
    show,
)
from ahpatron_cli.data.libsvm.reader import Chunk, Scan, SvmReader, Traits, scan
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.tables import TableOptions, TableReader, is_table
from ahpatron_cli.errors import UserError, bad_data, usage
from ahpatron_cli.signals import StreamEnded, watch

DENSE_WIDTH = 4096
DENSE_SHARE = 0.1
"""Rows are computed densely if the first block stores this share, and is at most so wide."""
WARM_UP = 1000
PATIENCE = 1.0
"""Seconds that a warm-up waits for rows of a pipe before it says so."""
LAYOUTS = ("auto", "dense", "sparse")


@dataclass(frozen=True)
class Preparation:
    """What is done to a file before learners run on it."""

    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    max_features: int = 10_000_000
    warm_up: int = WARM_UP
    """Labelled rows, the first of the file, from which scales and σ are learned before round 1."""
    labels: tuple[float, ...] | None = None
    """All labels in order, for pipes, which cannot be scanned."""
    layout: str = "auto"
    may_lack_labels: bool = False
    """Whether rows without a label are accepted; their label is NaN."""
    allow_new_features: bool = False
    """Whether rows may have features that the model was not trained on."""
    table: TableOptions = TableOptions()  # noqa: RUF009 - it cannot change
    """Which columns of a table are what."""

    @property
    def learned(self) -> str:
        """The scale, and the rows that it is learned from."""
        learned = self.scale in LEARNED_SCALES
        return f"{self.scale} of the first {self.warm_up}" if learned else self.scale


@dataclass(frozen=True)
class Known:
    """What is known of a stream from its earlier part, which this one continues."""

    labels: Labels
    scaler: Scaler | None = None
    dense: bool | None = None
    width: int = 0
    """Columns of the rows so far."""
    schema: Schema | None = None
    """What the columns of a table become."""


@dataclass(frozen=True)
class Batch:
    """Consecutive examples in the form they are computed in."""

    rows: Rows
    labels: Floats
    """-1 and +1, or numbers of classes; NaN for rows without a label."""
    lines: Integers
    """The line of the file that each example stands on."""
    stored: CsrRows
    """The rows as they stand in the file."""
    ids: NDArray[np.object_] | None = None
    """What identifies each example, if a column of a table does."""

    def part(self, part: slice) -> Batch:
        """Consecutive examples of this batch."""
        stored = self.stored.slice(part.start, part.stop)
        ids = None if self.ids is None else self.ids[part]
        return Batch(rows_of(self.rows, part), self.labels[part], self.lines[part], stored, ids)

    def runs(self) -> Iterator[tuple[bool, Batch]]:
        """Runs of consecutive rows with labels (True) and without."""
        labelled = ~np.isnan(self.labels)
        cuts = np.flatnonzero(labelled[1:] != labelled[:-1]) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(labelled)]):
            part = self if stop - start == len(labelled) else self.part(slice(start, stop))
            yield bool(labelled[start]), part


class Trail:
    """The number of rounds so far, and a checksum of them; rows without a label are no rounds."""

    def __init__(self) -> None:
        self.rounds = 0
        self._sums = [0, 0, 0, 0]

    def add(self, batch: Batch) -> None:
        """Continue the checksums with labelled rows, however these are cut into batches."""
        rows = batch.stored
        parts = (batch.labels, np.diff(rows.indptr), rows.columns, rows.values)
        for number, part in enumerate(parts):
            self._sums[number] = zlib.crc32(np.ascontiguousarray(part).data, self._sums[number])
        self.rounds += len(batch.labels)

    @property
    def digest(self) -> int:
        """All checksums in one."""
        return zlib.crc32(repr(self._sums).encode())


@dataclass(frozen=True)
class Facts:
    """What is known of a file once it was read."""

    rounds: int
    features: int
    labels: Labels
    sha256: str | None
    notes: tuple[str, ...]
    sorted_labels: bool
    unlabelled: int = 0


class Dataset:
    """The examples of a file, or of a stream; see `load` and `stream`."""

    def __init__(
        self,
        name: str,
        preparation: Preparation,
        examples: CompactRows | _Reading,
        known: Known | None = None,
    ) -> None:
        """`known` is the state of the stream that this one continues."""
        self.name = name
        self.preparation = preparation
        self._examples, self._known = examples, known
        self._labels: LabelMap | None = None
        self.dense = False
        """Whether rows are computed densely."""
        self.scaler = known.scaler if known else None
        """What is done to the features, once that is known."""
        self.width = 0
        """Columns of the rows so far, as of the last batch."""
        if isinstance(examples, CompactRows):
            self._begin()
            self._map().observe(examples.labels, examples.lines)

    def save(self, folder: Path) -> None:
        """Write examples in memory into an empty folder, for `CompactRows.mapped`."""
        assert isinstance(self._examples, CompactRows)
        self._examples.save(folder)

    @property
    def in_memory(self) -> bool:
        """Whether batches can be taken in any order, and again."""
        return isinstance(self._examples, CompactRows)

    @property
    def rounds(self) -> int | None:
        """The number of rounds, if it can be known before they are played; perhaps by a scan."""
        return self._examples.rounds

    def batches(self, order: Integers | None = None, first_round: int = 0) -> Iterator[Batch]:
        """The examples in file order, or those numbered in `order`.

        Batches of files end where blocks of the engine end, if the first example is that of
        `first_round` (from 0), and all blocks of a batch have the same width: bits then do not
        depend on rows to come. Batches of pipes are what has arrived.
        """
        self._begin()
        self.width = self._known.width if self._known else 0
        if self.traits.schema:  # which fixes it
            self.width = max(self.width, self.traits.max_index + 1)
        waits = isinstance(self._examples, _Reading) and self._examples.waits
        for chunk, open_rounds in _aligned(
            self._examples.chunks(order), first_round % BLOCK, waits
        ):
            for start, stop in self._parts(chunk, open_rounds):
                if self._ended():
                    return
                part = chunk.slice(start, stop)
                if not self.in_memory:
                    self._map().observe(part.labels, part.lines)
                labels = self._map().encode(part.labels)
                rows = self._as_played(replace(part.rows, width=self.width))
                yield Batch(rows, labels, part.lines, part.rows, part.ids)

    def _ended(self) -> bool:
        """Whether a signal ended the stream; figures that are due are given."""
        try:
            watch.look()
        except StreamEnded:
            return True
        return False

    def whole(self) -> Batch:
        """All examples at once, in file order: for programs that look at the data."""
        batches = list(self.batches())
        return Batch(
            reduce(joined_rows, [batch.rows for batch in batches]),
            np.concatenate([batch.labels for batch in batches]),
            np.concatenate([batch.lines for batch in batches]),
            CsrRows.concatenate([batch.stored for batch in batches]),
        )

    def _begin(self) -> None:
        """Settle labels, form and scale, from the first rows of the file."""
        if self._labels is not None:
            return
        preparation, known = self.preparation, self._known
        learns = preparation.scale in LEARNED_SCALES and self.scaler is None
        head = self._examples.head(preparation.warm_up if learns else BLOCK, wait=learns)
        self._labels = self._label_map()
        first = _first(head.rows, BLOCK)
        stored = len(first.values) >= DENSE_SHARE * len(first) * first.width
        self.dense = stored and first.width <= DENSE_WIDTH
        if preparation.layout != "auto":
            self.dense = preparation.layout == "dense"
        if known is not None and known.dense is not None:
            self.dense = known.dense
        if learns:
            labelled = _labelled(head, preparation.warm_up)
            self._check_width(labelled)
            self.scaler = Scaler.fitted(self._as_played(labelled.rows), preparation.scale)

    def warm_up(self) -> tuple[Rows, Floats]:
        """The first labelled rows of the file and their labels: what σ is chosen from.

        A stream is asked for them before its batches are taken.
        """
        self._begin()
        count = self.preparation.warm_up
        head = _labelled(self._examples.head(count, wait=True), count)
        self._check_width(head)
        self._map().observe(head.labels, head.lines, count=False)
        return self._as_played(head.rows), self._map().encode(head.labels)

    def _as_played(self, rows: CsrRows) -> Rows:
        """Dense or compressed, and scaled."""
        scaled = unit_rows(rows) if self.preparation.scale == "unit" else rows
        assert isinstance(scaled, CsrRows)
        formed = scaled.dense() if self.dense else scaled
        return formed if self.scaler is None else self.scaler(formed)

    def _check_width(self, chunk: Chunk) -> None:
        """Refuse features that the model was not trained on, and rows too wide to be dense."""
        known = self._known.width if self._known and not self.preparation.allow_new_features else 0
        limit = min(known or 2**31, DENSE_WIDTH if self.dense else 2**31)
        if chunk.rows.width <= limit:
            return
        rows = chunk.rows
        beyond = np.flatnonzero((rows.columns >= limit) & ((rows.values != 0) | (limit != known)))
        if not len(beyond):
            return
        index = int(rows.columns[beyond[0]])
        line = int(chunk.lines[np.searchsorted(rows.indptr, beyond[0], side="right") - 1])
        if limit == known:
            problem = (
                f"the row has feature {index}, and the features of the model end at {known - 1}"
            )
            hint = "--allow-new-features lets features that the model was not trained on in"
        else:
            problem = f"dense rows have features below {DENSE_WIDTH:,}, and this one has {index}"
            hint = "`--layout sparse` computes all rows sparsely"
        raise bad_data(problem, self.name, line, hint)

    def _label_map(self) -> LabelMap:
        """Labels are those of the model, of --labels or of the whole file, if it can be scanned."""
        name, positive, given = self.name, self.preparation.positive, self.preparation.labels
        if self._known is not None:
            labels = tuple(label for label in self._known.labels if label is not None)
            return LabelMap(name, positive, labels if len(labels) > 1 else None, from_model=True)
        if positive is not None or given is not None:
            return LabelMap(name, positive, given, all_known=given is not None)
        tally = self._examples.tally()
        found = None if tally is None else find_labels(name, tally)
        return LabelMap(name, None, found, all_known=tally is not None)

    def _map(self) -> LabelMap:
        assert self._labels is not None
        return self._labels

    def _parts(self, chunk: Chunk, open_rounds: int) -> Iterator[tuple[int, int]]:
        """Runs of blocks of one width, of at most `CHUNK_ROWS` rows: signals are heard between."""
        self._check_width(chunk)
        rows = chunk.rows
        starts = np.append(0, np.arange(BLOCK - open_rounds, len(rows), BLOCK))
        tops = np.zeros(len(rows), dtype=np.int64)
        filled = np.diff(rows.indptr) > 0
        tops[filled] = rows.columns[rows.indptr[1:][filled] - 1] + 1  # columns increase
        widths = np.maximum.accumulate(np.maximum(np.maximum.reduceat(tops, starts), self.width))
        cut = np.arange(len(starts)) % (CHUNK_ROWS // BLOCK) == 0
        if self.dense:
            cut |= np.diff(widths, prepend=-1) != 0
        ends = np.append(starts[1:], len(rows)).tolist()
        for first, after in pairwise([*np.flatnonzero(cut).tolist(), len(starts)]):
            self.width = int(widths[after - 1])
            yield int(starts[first]), ends[after - 1]

    def labels(self) -> Labels:
        """The labels by how they are played, as far as they were seen."""
        return self._map().labels()

    def costs(self, by_label: Mapping[float | str, float]) -> tuple[float, ...] | None:
        """The costs of examples in the order of `labels`; None if there are none."""
        if not by_label:
            return None
        labels = self.classes or self.labels()
        if schema := self.traits.schema:
            if unknown := [name for name in by_label if name not in schema.labels]:
                problem = f"--cost names the label {unknown[0]}, which the data do not have"
                raise usage(problem, f"the labels are {listed(schema.labels)}")
            by_label = {schema.labels[name]: cost for name, cost in by_label.items()}
        for label in by_label:
            if label not in labels:
                known = ", ".join("others" if one is None else show(one) for one in labels[:5])
                name = label if isinstance(label, str) else show(label)
                problem = f"--cost names the label {name}, which the data do not have"
                raise usage(problem, f"the labels are {known}")
        return tuple(1.0 if one is None else by_label.get(one, 1.0) for one in labels)

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two; known before the first round."""
        self._begin()
        return self._map().classes

    @property
    def traits(self) -> Traits:
        """What was noted about the file so far."""
        return self._examples.traits

    def facts(self) -> Facts:
        """Rows, features, labels and hash: complete once all batches of a stream were taken."""
        known, traits = self._map(), self.traits
        labels = known.finish(self.preparation.limit)
        notes = tuple(filter(None, (describe(labels), *traits.notes)))
        hashed, unlabelled = self._examples.sha256, known.unlabelled
        return Facts(known.rows, traits.features, labels, hashed, notes, known.sorted, unlabelled)


class _Reading:
    """The chunks of a source, read once, and what a scan of it found before."""

    def __init__(
        self,
        source: Source,
        preparation: Preparation,
        sha256: str | None = None,
        on_wait: Callable[[int], None] = lambda rows: None,
        known: Known | None = None,
    ) -> None:
        """`sha256` is the hash of the file, if it is known from a reading before this one."""
        self._source = source
        self._expected = sha256
        schema = known.schema if known else None
        table, limit = preparation.table, preparation.limit
        self._reader: SvmReader | TableReader
        if schema or is_table(source, table):
            if known and not schema:
                problem = "this is a table, and the model was trained on LIBSVM text"
                hint = "train a model on a table: `ahpatron run DATA --label COLUMN --save MODEL`"
                raise bad_data(problem, source.name, hint=hint)
            more = limit, preparation.may_lack_labels, preparation.warm_up, on_wait
            self._reader = TableReader(source, table, schema, *more)
        else:
            self._reader = SvmReader(
                source,
                max_features=preparation.max_features,
                max_rows=limit,
                may_lack_labels=preparation.may_lack_labels,
            )
        self._chunks = iter(self._reader)
        self._preparation, self._on_wait = preparation, on_wait
        self._scan: Scan | None = None

    def chunks(self, order: Integers | None) -> Iterator[Chunk]:
        """The rows, once, in file order."""
        assert order is None, "a stream has no order but its own"
        return self._chunks

    @property
    def waits(self) -> bool:
        """Whether rows may arrive slowly."""
        return self._source.waits

    def head(self, rows: int, *, wait: bool) -> Chunk:
        """The first rows, at least so many with labels if there are; `chunks` has them again.

        Those of a pipe that have arrived, unless the others are to be waited for.
        """
        held: list[Chunk] = []
        labelled = 0
        while not held or (labelled < rows and (wait or not self.waits)):
            if wait and not self._source.ready_within(PATIENCE):
                self._on_wait(labelled)
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            held.append(chunk)
            labelled += int(np.count_nonzero(~np.isnan(chunk.labels)))
        self._chunks = chain(held, self._chunks)
        if not held:
            raise StreamEnded
        return Chunk.concatenate(held)

    def gather(self) -> CompactRows:
        """All rows that are still to come, in memory."""
        return replace(gather(self._chunks, self._reader.traits), sha256=self.sha256)

    @property
    def rounds(self) -> int | None:
        """The number of rows, if the file can be read twice."""
        return found.rows if (found := self._scanned()) else None

    def tally(self) -> LabelTally | None:
        """All labels, if the file can be read twice."""
        return found.labels if (found := self._scanned()) else None

    def _scanned(self) -> Scan | None:
        """What one look through the file finds; None if it cannot be read twice."""
        if self._scan is None and self._source.rereadable:
            if isinstance(self._reader, TableReader):
                self._scan = self._reader.scan
            else:
                self._scan = scan(self._source.name, self._preparation.limit)
            if self._scan and self._scan.size != self._source.size:
                raise changed(self._source.name)
            if self._scan:
                self._expected = self._expected or self._scan.sha256
        return self._scan

    @property
    def traits(self) -> Traits:
        """What was noted about the file so far."""
        return self._reader.traits

    @property
    def sha256(self) -> str | None:
        """Hash of the file, which must be what it was at the readings before."""
        found = self._source.sha256()
        if self._expected not in (None, found) and not watch.ended_by:
            raise changed(self._source.name)
        return found


def stream(
    source: Source,
    preparation: Preparation,
    known: Known | None = None,
    on_wait: Callable[[int], None] = lambda rows: None,
) -> Dataset:
    """The examples of a source as they are read.

    `on_wait` is called with the number of labelled rows before a warm-up waits for more of a pipe.
    """
    reading = _Reading(source, preparation, on_wait=on_wait, known=known)
    return Dataset(source.name, preparation, reading, known)


def load(
    source: Source,
    preparation: Preparation,
    known: Known | None = None,
    sha256: str | None = None,
) -> Dataset:
    """All examples of a source in memory.

    `sha256` is the hash of the bytes that are expected, if the file was looked at before.
    """
    rows = _Reading(source, preparation, sha256, known=known).gather()
    return Dataset(source.name, preparation, rows, known)


def content_hash(path: str) -> str | None:
    """SHA-256 of a file's bytes; None for a pipe, which cannot be read twice."""
    with open_source(path) as source:
        return source.sha256() if source.rereadable else None


def changed(path: str) -> UserError:
    """The error for a file that is not what it was when it was read before."""
    hint = "run the same command again to play the file as it is now"
    return bad_data("the file changed between two readings", path, hint=hint)


def _first(rows: CsrRows, count: int) -> CsrRows:
    """The first rows, as wide as these alone are: a slice has the width of rows to come."""
    first = rows.slice(0, min(count, len(rows)))
    return replace(first, width=int(first.columns.max(initial=-1)) + 1)


def _labelled(chunk: Chunk, count: int) -> Chunk:
    """The first rows with labels, as wide as these alone are."""
    numbers = np.flatnonzero(~np.isnan(chunk.labels))[:count]
    if len(numbers) == len(chunk.labels):
        return replace(chunk, rows=_first(chunk.rows, count))
    rows = _first(chunk.rows.take(numbers), count)
    return Chunk(chunk.labels[numbers], rows, chunk.lines[numbers])


def _aligned(chunks: Iterable[Chunk], open_rounds: int, waits: bool) -> Iterator[tuple[Chunk, int]]:
    """The same rows in chunks that end with a block, each with the rounds open before it.

    The rest goes with the next chunk, unless that may have to be waited for.
    """
    rest: Chunk | None = None
    for chunk in chunks:
        joined = chunk if rest is None else Chunk.concatenate([rest, chunk])
        count = len(joined.labels)
        end = count if waits else max((count + open_rounds) // BLOCK * BLOCK - open_rounds, 0)
        rest = joined.slice(end, count) if end < count else None
        if end:
            yield joined.slice(0, end), open_rounds
            open_rounds = (open_rounds + end) % BLOCK
    if rest is not None:
        yield rest, open_rounds
