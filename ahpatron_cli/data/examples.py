"""Examples ready to be played: read, labelled, scaled; as a stream of pieces, or all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_in
from ahpatron_cli.data.labels import LabelMap, describe, find_pair, is_plain
from ahpatron_cli.data.scaling import scaled, unit_rows
from ahpatron_cli.data.scanning import scan
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.svm_format import Chunk, SvmReader

DENSE_WIDTH = 4096
DENSE_SHARE = 0.1
"""Rows are computed densely where at most so wide, and where at least this share is stored."""


@dataclass(frozen=True)
class Preparation:
    """What is done to a file before it is played."""

    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    max_features: int = 10_000_000


@dataclass(frozen=True)
class Piece:
    """Consecutive examples, in the form they are computed in."""

    rows: Rows
    labels: Floats
    """-1 and +1."""
    lines: Integers
    """Which line of the file each example stands on."""


@dataclass(frozen=True)
class Facts:
    """What is known of a file once it was read."""

    rounds: int
    features: int
    labels: tuple[float | None, float]
    sha256: str | None
    notes: tuple[str, ...]
    sorted_labels: bool


class Stream:
    """A file's examples in pieces, read once, in file order; `facts` are known at the end.

    All pieces but the last hold a multiple of `BLOCK` rows, so that the engine's blocks do not
    depend on how the bytes arrived.
    """

    def __init__(self, source: Source, preparation: Preparation) -> None:
        self._source = source
        self._preparation = preparation
        self._reader = _reader(source, preparation)
        self._map: LabelMap | None = None
        self._dense: bool | None = None
        self._rounds = 0

    def __iter__(self) -> Iterator[Piece]:
        for chunk in _aligned(iter(self._reader)):
            if self._map is None:
                self._map = self._label_map(chunk)
            labels = self._map.signs(chunk.labels, chunk.lines)
            self._rounds += len(labels)
            rows: Rows = chunk.rows
            if self._preparation.scale == "unit":
                rows = unit_rows(rows)
            yield Piece(self._in_form(rows), labels, chunk.lines)

    def _label_map(self, first: Chunk) -> LabelMap:
        """Labels that are not plain are looked up in a first pass, where the file allows one."""
        source, positive = self._source, self._preparation.positive
        twice = source.size is not None and not source.is_stdin
        if positive is None and twice and not is_plain(first.labels.tolist()):
            labels = scan(source.name, self._preparation.limit).labels
            return LabelMap(source.name, None, find_pair(source.name, labels), all_known=True)
        return LabelMap(source.name, positive)

    def _in_form(self, rows: Rows) -> Rows:
        """Dense or compressed, as the first piece suggests; wide rows are never made dense."""
        assert isinstance(rows, CsrRows)
        if self._dense is None:
            self._dense = _mostly_stored(rows)
        self._dense = self._dense and rows.width <= DENSE_WIDTH
        return rows.dense(self._reader.max_index + 1) if self._dense else rows

    def facts(self) -> Facts:
        """Rows, features, labels and hash: complete once all pieces were taken."""
        assert self._map is not None
        return _facts(self._source, self._reader, self._map, self._rounds)


@dataclass(frozen=True)
class Loaded:
    """A whole file in memory, held once: each pass takes rows from it in its own order."""

    whole: Piece
    facts: Facts

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
    reader = _reader(source, preparation)
    whole = _join(list(reader))
    positive = preparation.positive
    pair = None if positive is not None else find_pair(source.name, whole.labels.tolist())
    label_map = LabelMap(source.name, positive, pair, all_known=True)
    labels = label_map.signs(whole.labels, whole.lines)
    facts = _facts(source, reader, label_map, len(labels))
    stored = whole.rows
    rows = scaled(stored.dense() if computed_densely(stored) else stored, preparation.scale)
    return Loaded(Piece(rows, labels, whole.lines), facts)


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
    )


def computed_densely(rows: CsrRows) -> bool:
    """Whether these rows, if they are all, are better made dense."""
    return _mostly_stored(rows) and rows.width <= DENSE_WIDTH


def _mostly_stored(rows: CsrRows) -> bool:
    return len(rows.values) >= DENSE_SHARE * len(rows) * rows.width


def _reader(source: Source, preparation: Preparation) -> SvmReader:
    return SvmReader(source, max_features=preparation.max_features, max_rows=preparation.limit)


def _aligned(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same rows in chunks of whole blocks; what is left over goes with the next one."""
    rest: Chunk | None = None
    for chunk in chunks:
        joined = chunk if rest is None else _join([rest, chunk])
        whole = len(joined.labels) // BLOCK * BLOCK
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
