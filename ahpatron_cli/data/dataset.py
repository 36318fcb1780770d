"""Examples ready to be played: labelled, scaled, dense or sparse, in batches of any order.

A stream is read once, in file order. Examples in memory can be taken in any order, again and again.
Both go through the same rules, so the same rows in the same order give the same bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, joined_rows, rows_of, unit_rows
from ahpatron_cli.data.compact import CHUNK_ROWS, CompactRows, gather
from ahpatron_cli.data.labels import (
    PLAIN_PAIRS,
    LabelMap,
    Labels,
    LabelTally,
    describe,
    find_labels,
    show,
)
from ahpatron_cli.data.libsvm.reader import Chunk, Scan, SvmReader, Traits, scan
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import UserError, bad_data, usage

DENSE_WIDTH = 4096
DENSE_SHARE = 0.1
"""Rows are computed densely if the first block stores this share, while at most so wide."""
WARM_UP = 1000
"""Rows from which scales and σ are learned before round one."""


@dataclass(frozen=True)
class Preparation:
    """What is done to a file before it is played."""

    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    max_features: int = 10_000_000
    warm_up: bool = True
    """Scales are learned from the first `WARM_UP` rows, as in a stream; else from all rows."""
    may_lack_labels: bool = False
    """Rows are only to be predicted: their sign is NaN if they have no label."""

    @property
    def learned(self) -> str:
        """The scale, and the rows that it is learned from: what decides on the rows played."""
        early = self.warm_up and self.scale in LEARNED_SCALES
        return f"{self.scale} of the first {WARM_UP}" if early else self.scale


@dataclass(frozen=True)
class Known:
    """What is known of a stream from its earlier part, which this one continues."""

    labels: Labels
    scaler: Scaler | None = None
    dense: bool | None = None
    width: int = 0
    """Columns of the rows so far."""


@dataclass(frozen=True)
class Batch:
    """Consecutive examples in the form they are computed in."""

    rows: Rows
    labels: Floats
    """-1 and +1, or numbers of classes; NaN for rows that are only to be predicted."""
    lines: Integers
    """The line of the file that each example stands on."""
    stored: CsrRows
    """The rows as they stand in the file."""

    def part(self, part: slice) -> Batch:
        """Some of them."""
        stored = self.stored.slice(part.start, part.stop)
        return Batch(rows_of(self.rows, part), self.labels[part], self.lines[part], stored)


class Trail:
    """The number of rounds so far, and a checksum of them."""

    def __init__(self) -> None:
        self.rounds = 0
        self._sums = [0, 0, 0, 0]

    def add(self, batch: Batch) -> None:
        """Continue the checksums; they do not depend on how rounds are cut into batches."""
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


class Dataset:
    """The examples of a file, or of a stream; see `load` and `stream`."""

    def __init__(
        self,
        name: str,
        preparation: Preparation,
        examples: CompactRows | _Reading,
        known: Known | None = None,
    ) -> None:
        self.name = name
        self.preparation = preparation
        self._examples, self._known = examples, known
        self._labels: LabelMap | None = None
        self._mostly_stored = False
        self.scaler = known.scaler if known else None
        """What is done to the features, once that is known."""
        self.dense = False
        """Whether rows are computed densely, as of the last batch."""
        self.width = 0
        """Columns of the rows so far, as of the last batch."""
        if isinstance(examples, CompactRows):
            self._begin()
            self._map().meet(examples.labels, examples.lines)

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

        Batches end where blocks of the engine end, if the first example is that of `first_round`
        (from 0), and all blocks of a batch have the same width: bits then depend neither on how
        the bytes arrived nor on rows to come.
        """
        self._begin()
        self.dense = self._mostly_stored
        self.width = self._known.width if self._known else 0
        open_rounds = first_round % BLOCK
        for chunk in _aligned(self._chunks(order), open_rounds):
            for start, stop in self._parts(chunk.rows, open_rounds):
                part = chunk.slice(start, stop)
                rows = self._as_played(replace(part.rows, width=self.width))
                self.dense = not isinstance(rows, CsrRows)  # the width never falls: sparse stays so
                yield Batch(rows, part.labels, part.lines, part.rows)
            open_rounds = 0

    def whole(self) -> Batch:
        """All examples at once, in file order: for programs that look at the data."""
        batches = list(self.batches())
        return Batch(
            reduce(joined_rows, [batch.rows for batch in batches]),
            np.concatenate([batch.labels for batch in batches]),
            np.concatenate([batch.lines for batch in batches]),
            CsrRows.concatenate([batch.stored for batch in batches]),
        )

    def _chunks(self, order: Integers | None) -> Iterator[Chunk]:
        """The rows as the file has them, with labels as they are played."""
        for chunk in self._examples.chunks(order):
            if not self.in_memory:
                self._map().meet(chunk.labels, chunk.lines)
            yield replace(chunk, labels=self._map().played(chunk.labels))

    def _begin(self) -> None:
        """Settle labels, form and scale, from the first rows of the file, or from all."""
        if self._labels is not None:
            return
        learns = self.preparation.scale in LEARNED_SCALES and self.scaler is None
        count = WARM_UP if self.preparation.warm_up else None
        head = self._examples.head(count if learns else BLOCK)
        self._labels = self._label_map(head.labels)
        block = _first(head.rows, BLOCK)
        stored = len(block.values) >= DENSE_SHARE * len(block) * block.width
        known = self._known
        self._mostly_stored = stored if known is None or known.dense is None else known.dense
        if learns:
            rows = self._as_played(_first(head.rows, count or len(head.rows)))
            self.scaler = Scaler.fitted(rows, self.preparation.scale)

    def first_rows(self) -> Rows:
        """The first `WARM_UP` rows of the file, as they are played: what σ is chosen from.

        A stream is asked for them before its batches are taken.
        """
        self._begin()
        return self._as_played(_first(self._examples.head(WARM_UP).rows, WARM_UP))

    def _as_played(self, rows: CsrRows) -> Rows:
        """Dense or compressed, and scaled; rows too wide to be dense stay sparse."""
        scaled = unit_rows(rows) if self.preparation.scale == "unit" else rows
        assert isinstance(scaled, CsrRows)
        dense = self._mostly_stored and rows.width <= DENSE_WIDTH
        formed = scaled.dense() if dense else scaled
        if self.scaler is None:
            return formed
        if not dense and self.scaler.shift.any():
            raise bad_data(
                f"--scale was learned from rows of at most {DENSE_WIDTH - 1} features, and rows "
                f"with feature {rows.width - 1} are too wide to be shifted",
                self.name,
                hint="--shuffle learns the scale from all rows; or leave out --scale",
            )
        return self.scaler(formed)

    def _label_map(self, first: Floats) -> LabelMap:
        """Labels that are not plain are looked up beforehand, if the file allows that."""
        name, positive = self.name, self.preparation.positive
        if self._known is not None:
            labels = tuple(label for label in self._known.labels if label is not None)
            known = labels if len(labels) > 1 else None
            missing = self.preparation.may_lack_labels
            return LabelMap(name, positive, known, from_model=True, may_be_missing=missing)
        shown = tuple(sorted(set(first[:WARM_UP].tolist())))
        if positive is not None or (not self.in_memory and shown in PLAIN_PAIRS):
            return LabelMap(name, positive)
        tally = self._examples.tally()
        found = None if tally is None else find_labels(name, tally)
        return LabelMap(name, None, found, all_known=tally is not None)

    def _map(self) -> LabelMap:
        assert self._labels is not None
        return self._labels

    def _parts(self, rows: CsrRows, open_rounds: int) -> Iterator[tuple[int, int]]:
        """Runs of blocks that need no other width than the first of them; wide rows stay sparse.

        None is longer than `CHUNK_ROWS`: whoever looks on hears of it soon.
        """
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

    def costs(self, by_label: Mapping[float, float]) -> tuple[float, ...] | None:
        """The costs of examples in the order of `labels`; None if there are none."""
        if not by_label:
            return None
        labels = self.classes or self.labels()
        unknown = [label for label in by_label if label not in labels]
        if unknown:
            known = ", ".join("others" if one is None else show(one) for one in labels[:5])
            problem = f"--cost names the label {show(unknown[0])}, which the data do not have"
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
        hashed = self._examples.sha256
        return Facts(known.rows, traits.features, labels, hashed, notes, known.sorted)


class _Reading:
    """The chunks of a source, read once, and what a scan of it found before."""

    def __init__(self, source: Source, preparation: Preparation, sha256: str | None = None) -> None:
        """`sha256` is the hash of the file, if it is known from a reading before this one."""
        self._source = source
        self._expected = sha256
        self._reader = SvmReader(
            source,
            max_features=preparation.max_features,
            max_rows=preparation.limit,
            may_lack_labels=preparation.may_lack_labels,
        )
        self._chunks = iter(self._reader)
        self._limit = preparation.limit
        self._scan: Scan | None = None

    def chunks(self, order: Integers | None) -> Iterator[Chunk]:
        """The rows, once, in file order."""
        assert order is None, "a stream has no order but its own"
        return self._chunks

    def head(self, rows: int | None) -> Chunk:
        """The first rows, at least so many if there are; `chunks` has them again."""
        held: list[Chunk] = []
        while rows is None or sum(len(chunk.labels) for chunk in held) < rows:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            held.append(chunk)
        self._chunks = chain(held, self._chunks)
        return held[0] if len(held) == 1 else Chunk.concatenate(held)

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
            self._scan = scan(self._source.name, self._limit)
            if self._scan.size != self._source.size:
                raise changed(self._source.name)
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
        if self._expected not in (None, found):
            raise changed(self._source.name)
        return found


def stream(source: Source, preparation: Preparation, known: Known | None = None) -> Dataset:
    """The examples of a source as they are read."""
    return Dataset(source.name, preparation, _Reading(source, preparation), known)


def load(
    source: Source,
    preparation: Preparation,
    known: Known | None = None,
    sha256: str | None = None,
) -> Dataset:
    """All examples of a source in memory.

    `sha256` is the hash of the bytes that are expected, if the file was looked at before.
    """
    rows = _Reading(source, preparation, sha256).gather()
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


def _aligned(chunks: Iterable[Chunk], open_rounds: int) -> Iterator[Chunk]:
    """The same rows in chunks that end with a block; the rest goes with the next chunk."""
    rest: Chunk | None = None
    for chunk in chunks:
        joined = chunk if rest is None else Chunk.concatenate([rest, chunk])
        count = len(joined.labels)
        whole = max((count + open_rounds) // BLOCK * BLOCK - open_rounds, 0)
        rest = joined.slice(whole, count) if whole < count else None
        if whole:
            open_rounds = 0
            yield joined.slice(0, whole)
    if rest is not None:
        yield rest
