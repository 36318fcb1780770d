"""Examples ready to be played: read, labelled, scaled; as a stream of pieces, or all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_in
from ahpatron_cli.data.labels import LabelMap, describe, find_pair, is_plain
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler, unit_rows
from ahpatron_cli.data.scanning import scan
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.svm_format import Chunk, SvmReader
from ahpatron_cli.errors import ExitCode, Place, UserError

DENSE_WIDTH = 4096
DENSE_SHARE = 0.1
"""Rows are computed densely where at most so wide, and where at least this share is stored."""


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
    known: Known | None = field(default=None, compare=False)


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

    def __init__(self, source: Source, preparation: Preparation) -> None:
        self._source = source
        self._preparation = preparation
        self._reader = _reader(source, preparation)
        self._map: LabelMap | None = None
        known = preparation.known
        self.dense: bool | None = known.dense if known else None
        """Whether rows are computed densely; the first block decides."""
        self.width = known.width if known else 0
        """Of dense rows so far."""
        self._rounds = 0

    def __iter__(self) -> Iterator[Piece]:
        known = self._preparation.known
        for chunk in _aligned(iter(self._reader), known.open_rounds if known else 0):
            if self._map is None:
                self._map = self._label_map(chunk)
            labels = self._map.signs(chunk.labels, chunk.lines)
            for start, stop in self._parts(chunk.rows):
                self._rounds += stop - start
                stored = chunk.rows.slice(start, stop)
                rows = unit_rows(stored) if self._preparation.scale == "unit" else stored
                lines = chunk.lines[start:stop]
                yield Piece(self._in_form(rows), labels[start:stop], lines, stored)

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
            self.dense = _mostly_stored(
                rows.slice(0, min(BLOCK, len(rows))), int(tops[:BLOCK].max())
            )
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
        known = self._preparation.known
        if known is None or known.scaler is None:
            return formed
        if self.width > known.scaler.width:
            raise _unknown_features(self._source.name, self.width, known.scaler.width)
        return known.scaler(formed)

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

    whole: Piece
    facts: Facts
    scaler: Scaler | None = None
    """What was done to the features, where that was found from the data."""

    def pieces(self, order: Integers | None, size: int = 64 * BLOCK) -> Iterator[Piece]:
        """The examples in file order, or those of `order`, `size` rows at a time."""
        rows, labels, lines = self.whole.rows, self.whole.labels, self.whole.lines
        count = len(labels) if order is None else len(order)
        for start in range(0, count, size):
            stop = min(start + size, count)
            chosen = np.arange(start, stop) if order is None else order[start:stop]
            yield Piece(rows_in(rows, chosen), labels[chosen], lines[chosen])


def load(source: Source, preparation: Preparation) -> Loaded:
    """Read a whole file. Any two labels will do: all are known before the first round."""
    known = preparation.known
    reader = _reader(source, preparation)
    whole = _join(list(reader))
    positive = preparation.positive
    if known is not None:
        pair = _pair(known.labels)
    else:
        pair = None if positive is not None else find_pair(source.name, whole.labels.tolist())
    label_map = LabelMap(source.name, positive, pair, all_known=True, from_model=known is not None)
    labels = label_map.signs(whole.labels, whole.lines)
    facts = _facts(source, reader, label_map, len(labels))
    stored = whole.rows
    dense = known.dense if known else None
    if dense is None:
        dense = computed_densely(stored)
    narrow = dense and max(stored.width, known.width if known else 0) <= DENSE_WIDTH
    rows = stored.dense(known.width if known else None) if narrow else stored
    scaler = known.scaler if known else None
    if preparation.scale == "unit":
        rows = unit_rows(rows)
    elif preparation.scale in LEARNED_SCALES:
        scaler = scaler or Scaler.fitted(rows, preparation.scale)
        if stored.width > scaler.width:
            raise _unknown_features(source.name, stored.width, scaler.width)
        rows = scaler(rows)
    return Loaded(Piece(rows, labels, whole.lines), facts, scaler)


def _pair(labels: tuple[float | None, float]) -> tuple[float, float] | None:
    negative, positive = labels
    return None if negative is None else (negative, positive)


def _unknown_features(path: str, found: int, known: int) -> UserError:
    return UserError(
        f"the data have {found - 1} features; the model's scaling knows {known - 1}",
        code=ExitCode.BAD_DATA,
        place=Place(path),
        hint="a model with --scale minmax or standard goes on with the features it was made with",
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
