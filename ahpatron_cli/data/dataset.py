"""Examples ready to be played: read, labelled, scaled; as a stream of pieces, or all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_in, rows_of
from ahpatron_cli.data.compact import Gathered, exact_rows, small_rows
from ahpatron_cli.data.labels import LabelMap, describe, find_pair, is_plain
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader
from ahpatron_cli.data.libsvm.scan import scan
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler, unit_rows
from ahpatron_cli.data.source import Source
from ahpatron_cli.errors import ExitCode, Place, UserError

DENSE_WIDTH = 4096
DENSE_SHARE = 0.1
"""Rows are computed densely where at most so wide, and where at least this share is stored."""


WARM_UP = 1000
"""So many first rows are held back, where something is to be found from them before round one."""


@dataclass(frozen=True)
class Known:
    """What a kept model knows of its stream; the stream that it goes on with must fit."""

    labels: tuple[float | None, float]
    scaler: Scaler | None
    dense: bool | None
    width: int
    """Of dense rows so far."""
    open_rounds: int = 0
    """Rounds of the block that was open when it was kept."""


@dataclass(frozen=True)
class Preparation:
    """What is done to a file before it is played."""

    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    max_features: int = 10_000_000
    warm_up: bool = True
    """Scales are learned from the first `WARM_UP` rows, as in a stream; else from all rows."""
    known: Known | None = field(default=None, compare=False)

    @property
    def learned(self) -> str:
        """The scale, and what it is learned from: all that decides what becomes of the rows."""
        early = self.warm_up and self.scale in LEARNED_SCALES
        return f"{self.scale} of the first {WARM_UP}" if early else self.scale


@dataclass(frozen=True)
class Piece:
    """Consecutive examples, in the form they are computed in."""

    rows: Rows
    labels: Floats
    """-1 and +1."""
    lines: Integers
    """Which line of the file each example stands on."""
    stored: CsrRows | None = None
    """The rows as they stand in the file, where a stream read them."""


@dataclass(frozen=True)
class Facts:
    """What is known of a file once it was read."""

    rounds: int
    features: int
    labels: tuple[float | None, float]
    sha256: str | None
    notes: tuple[str, ...]
    sorted_labels: bool
    zero_based: bool = False
    """Feature indices start at 0."""


class Stream:
    """A file's examples in pieces, read once, in file order; `facts` are known at the end.

    Pieces end where blocks of the engine end, and all blocks of a piece have the same width: bits
    then depend neither on how the bytes arrived nor on rows to come.
    """

    def __init__(
        self, source: Source, preparation: Preparation, reader: SvmReader | None = None
    ) -> None:
        """`reader` is where the rows come from, if not from the text of `source`."""
        self._source = source
        self._preparation = preparation
        self._reader = reader or _reader(source, preparation)
        self._map: LabelMap | None = None
        known = preparation.known
        self.dense: bool | None = known.dense if known else None
        """Whether rows are computed densely; the first block decides."""
        self.width = known.width if known else 0
        """Of dense rows so far."""
        self.scaler = known.scaler if known else None
        """What is done to the features, once that is known."""
        self._rounds = 0

    def __iter__(self) -> Iterator[Piece]:
        known = self._preparation.known
        chunks = _aligned(iter(self._reader), known.open_rounds if known else 0)
        if self._preparation.scale in LEARNED_SCALES and self.scaler is None:
            chunks = self._warmed_up(chunks)
        for chunk in chunks:
            if self._map is None:
                self._map = self._label_map(chunk)
            labels = self._map.signs(chunk.labels, chunk.lines)
            for start, stop in self._parts(chunk.rows):
                self._rounds += stop - start
                stored = chunk.rows.slice(start, stop)
                rows = unit_rows(stored) if self._preparation.scale == "unit" else stored
                lines = chunk.lines[start:stop]
                yield Piece(self._in_form(rows), labels[start:stop], lines, stored)

    def _warmed_up(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Learn the scale from the first rows, which then come like all others."""
        held: list[Chunk] = []
        while sum(len(chunk.labels) for chunk in held) < WARM_UP:
            chunk = next(chunks, None)
            if chunk is None:
                break
            held.append(chunk)
        if held:
            rows = _narrowed(CsrRows.concatenate([chunk.rows for chunk in held]), WARM_UP)
            block = _narrowed(rows, BLOCK)
            dense = _mostly_stored(block, block.width) and rows.width <= DENSE_WIDTH
            self.scaler = Scaler.fitted(rows.dense() if dense else rows, self._preparation.scale)
        return chain(held, chunks)

    def _label_map(self, first: Chunk) -> LabelMap:
        """Labels that are not plain are looked up in a first pass, where the file allows one."""
        source, positive = self._source, self._preparation.positive
        known = self._preparation.known
        if known is not None:
            return LabelMap(source.name, positive, _pair(known.labels), from_model=True)
        twice = source.size is not None and not source.is_stdin
        if positive is None and twice and not is_plain(first.labels.tolist()):
            found = scan(source.name, self._preparation.limit)
            pair = find_pair(source.name, found.labels, found.more_labels)
            return LabelMap(source.name, None, pair, all_known=True)
        return LabelMap(source.name, positive)

    def _parts(self, rows: CsrRows) -> Iterator[tuple[int, int]]:
        """Runs of blocks that need no other width than the first of them; wide rows stay sparse."""
        known = self._preparation.known
        cut = known.open_rounds if known and not self._rounds else 0
        starts = np.append(0, np.arange(BLOCK - cut, len(rows), BLOCK))
        tops = np.zeros(len(rows), dtype=np.int64)
        filled = np.diff(rows.indptr) > 0
        tops[filled] = rows.columns[rows.indptr[1:][filled] - 1] + 1  # columns increase
        if self.dense is None:
            block = _narrowed(rows, BLOCK)
            self.dense = _mostly_stored(block, block.width)
        widths = np.maximum.accumulate(np.maximum(np.maximum.reduceat(tops, starts), self.width))
        firsts = np.flatnonzero(np.diff(widths, prepend=-1)) if self.dense else np.zeros(1, int)
        for number, first in enumerate(firsts.tolist()):
            last = firsts[number + 1] if number + 1 < len(firsts) else len(starts)
            self.width = int(widths[last - 1])
            yield int(starts[first]), int(starts[last]) if last < len(starts) else len(rows)

    def _in_form(self, rows: Rows) -> Rows:
        """Dense or compressed, as decided; wide rows are never made dense."""
        assert isinstance(rows, CsrRows)
        self.dense = bool(self.dense) and self.width <= DENSE_WIDTH
        # a slice has the width of its chunk, which rows to come may have widened
        own = CsrRows(rows.indptr, rows.columns, rows.values, self.width)
        formed: Rows = own.dense() if self.dense else own
        if self.scaler is None:
            return formed
        if not self.dense and self.scaler.shift.any():
            raise _too_wide(self._source.name, self.width)
        return self.scaler(formed)

    @property
    def features(self) -> int:
        """The largest feature index so far."""
        return max(self._reader.max_index + self._reader.zero_based, 0)

    @property
    def zero_based(self) -> bool:
        """Whether a feature 0 was seen."""
        return self._reader.zero_based

    def labels(self) -> tuple[float | None, float]:
        """The labels counted as -1 and as +1, as far as they were seen."""
        assert self._map is not None
        return self._map.pair()

    def facts(self) -> Facts:
        """Rows, features, labels and hash: complete once all pieces were taken."""
        assert self._map is not None
        return _facts(self._source, self._reader, self._map, self._rounds)


@dataclass(frozen=True)
class Loaded:
    """A whole file in memory, held once: each pass takes rows from it in its own order."""

    held: Piece
    """All examples, their values perhaps as float32."""
    facts: Facts
    scaler: Scaler | None = None
    """What was done to the features, where that was found from the data."""

    @property
    def whole(self) -> Piece:
        """All examples in the form they are computed in; a second copy where that is another."""
        return Piece(exact_rows(self.held.rows), self.held.labels, self.held.lines)

    def first_rows(self) -> Rows:
        """Those that something may be found out from before the first round."""
        count = min(len(self.held.labels), WARM_UP)
        return exact_rows(rows_of(self.held.rows, slice(0, count)))

    def pieces(self, order: Integers | None, size: int = 64 * BLOCK) -> Iterator[Piece]:
        """The examples in file order, or those of `order`, `size` rows at a time."""
        rows, labels, lines = self.held.rows, self.held.labels, self.held.lines
        count = len(labels) if order is None else len(order)
        for start in range(0, count, size):
            stop = min(start + size, count)
            chosen = np.arange(start, stop) if order is None else order[start:stop]
            taken = exact_rows(rows_in(rows, chosen))
            yield Piece(taken, labels[chosen], lines[chosen])


def load(source: Source, preparation: Preparation) -> Loaded:
    """Read a whole file. Any two labels will do: all are known before the first round."""
    known = preparation.known
    reader = _reader(source, preparation)
    gathered = Gathered.of(reader)
    found, lines = gathered.labels, gathered.lines
    positive = preparation.positive
    if known is not None:
        pair = _pair(known.labels)
    else:
        pair = None if positive is not None else find_pair(source.name, found.tolist())
    label_map = LabelMap(source.name, positive, pair, all_known=True, from_model=known is not None)
    labels = label_map.signs(found, lines)
    facts = _facts(source, reader, label_map, len(labels))
    stored_width = gathered.width
    dense = known.dense if known else None
    if dense is None:
        dense = gathered.values >= DENSE_SHARE * len(labels) * stored_width
    width = max(stored_width, known.width if known else 0)
    rows = gathered.rows(dense=dense and width <= DENSE_WIDTH, width=width)
    scaler = known.scaler if known else None
    if preparation.scale == "unit":
        rows = small_rows(unit_rows(exact_rows(rows)))
    elif preparation.scale in LEARNED_SCALES:
        rows = exact_rows(rows)
        seen = min(len(labels), WARM_UP) if preparation.warm_up else len(labels)
        scaler = scaler or Scaler.fitted(rows_of(rows, slice(0, seen)), preparation.scale)
        if isinstance(rows, CsrRows) and scaler.shift.any():
            raise _too_wide(source.name, rows.width)
        rows = small_rows(scaler(rows))
    return Loaded(Piece(rows, labels, lines), facts, scaler)


def _pair(labels: tuple[float | None, float]) -> tuple[float, float] | None:
    negative, positive = labels
    return None if negative is None else (negative, positive)


def _too_wide(path: str, width: int) -> UserError:
    return UserError(
        f"feature {width - 1} turned up where the scale was learned from rows of at most "
        f"{DENSE_WIDTH - 1} features; rows so wide cannot be shifted as these were",
        code=ExitCode.BAD_DATA,
        place=Place(path),
        hint="--shuffle learns the scale from all rows; or leave out --scale",
    )


def _facts(source: Source, reader: SvmReader, label_map: LabelMap, rounds: int) -> Facts:
    labels = label_map.finish()
    notes = (
        describe(labels),
        "feature indices start at 0" if reader.zero_based else None,
        "qid fields are ignored" if reader.saw_qid else None,
        "the last line has no line end: is the file complete?" if reader.no_final_newline else None,
    )
    return Facts(
        rounds=rounds,
        features=max(reader.max_index + reader.zero_based, 0),
        labels=labels,
        sha256=source.sha256(),
        notes=tuple(note for note in notes if note is not None),
        sorted_labels=label_map.sorted,
        zero_based=reader.zero_based,
    )


def computed_densely(rows: CsrRows) -> bool:
    """Whether these rows, if they are all, are better made dense."""
    return _mostly_stored(rows, rows.width) and rows.width <= DENSE_WIDTH


def _mostly_stored(rows: CsrRows, width: int) -> bool:
    return len(rows.values) >= DENSE_SHARE * len(rows) * width


def _narrowed(rows: CsrRows, count: int) -> CsrRows:
    """The first rows, as wide as these alone are: a slice has the width of rows to come."""
    first = rows.slice(0, min(count, len(rows)))
    return replace(first, width=int(first.columns.max(initial=-1)) + 1)


def _reader(source: Source, preparation: Preparation) -> SvmReader:
    return SvmReader(source, max_features=preparation.max_features, max_rows=preparation.limit)


def _aligned(chunks: Iterator[Chunk], open_rounds: int) -> Iterator[Chunk]:
    """The same rows in chunks that end with a block; what is left over goes with the next one."""
    rest: Chunk | None = None
    for chunk in chunks:
        joined = chunk if rest is None else _join([rest, chunk])
        whole = (len(joined.labels) + open_rounds) // BLOCK * BLOCK - open_rounds
        if whole <= 0:
            rest = joined
            continue
        open_rounds = 0
        rest = _cut(joined, whole, len(joined.labels))
        if whole:
            yield _cut(joined, 0, whole)
    if rest is not None and len(rest.labels):
        yield rest


def _join(chunks: Sequence[Chunk]) -> Chunk:
    return Chunk(
        np.concatenate([chunk.labels for chunk in chunks]),
        CsrRows.concatenate([chunk.rows for chunk in chunks]),
        np.concatenate([chunk.lines for chunk in chunks]),
    )


def _cut(chunk: Chunk, start: int, stop: int) -> Chunk:
    rows = chunk.rows.slice(start, stop)
    return Chunk(chunk.labels[start:stop], rows, chunk.lines[start:stop])
