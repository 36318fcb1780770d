"""Data sets ready for learning: encoded labels, scaled features, dense or sparse batches.

A stream is read once, in file order; rows of a pipe are passed on as they arrive. Examples in
memory can be read repeatedly and in any order. Both are prepared by the same rules.
"""

from __future__ import annotations

import pickle
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, compressed, unit_rows, width_of
from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.labels import (
    PLAIN_PAIRS,
    LabelMap,
    Labels,
    LabelTally,
    describe,
    find_labels,
    show,
)
from ahpatron_cli.data.layout import DENSE_WIDTH, is_dense
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.data.source import Source, changed
from ahpatron_cli.data.tables import TableOptions, TableReader, check_features, is_table
from ahpatron_cli.errors import bad_data, usage
from ahpatron_cli.signals import StreamEnded, watch

CHUNK_ROWS = 16 * BLOCK
"""Number of rows per batch: a multiple of the engine's block."""
WARM_UP = 1000


@dataclass(frozen=True)
class Preparation:
    """Options for preparing a file before learners run on it."""

    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    max_features: int = 10_000_000
    warm_up: int = WARM_UP
    """Number of labelled rows at the start from which scales and σ are computed before round 1."""
    labels: tuple[float, ...] | None = None
    """All labels in increasing order, for pipes, which cannot be scanned."""
    layout: str = "auto"
    may_lack_labels: bool = False
    """Whether rows without a label are accepted; their label is NaN."""
    allow_new_features: bool = False
    """Whether rows may have features that the model was not trained on."""
    table: TableOptions = TableOptions()  # noqa: RUF009 - it cannot change
    """Options for the columns of a table."""

    @property
    def learned(self) -> str:
        """The scale as text, with the number of rows from which it is computed."""
        learned = self.scale in LEARNED_SCALES
        return f"{self.scale} of the first {self.warm_up}" if learned else self.scale


@dataclass(frozen=True)
class StreamState:
    """State of an earlier stream that a new one continues."""

    labels: Labels
    scaler: Scaler | None = None
    dense: bool | None = None
    width: int = 0
    """Number of columns so far."""
    schema: Schema | None = None
    """How columns of a table become features and labels; None for LIBSVM text."""


@dataclass(frozen=True)
class DataSummary:
    """Summary of a file after it was read."""

    rounds: int
    features: int
    labels: Labels
    sha256: str | None
    notes: tuple[str, ...]
    sorted_labels: bool
    unlabelled: int = 0


class Dataset:
    """Examples of a file in memory (from `load` or `mapped`), or of a stream (from `stream`).

    `known` is the state of an earlier stream that is continued, if any.
    """

    def __init__(
        self,
        name: str,
        preparation: Preparation,
        traits: FileInfo,
        rows: Batch | Reader,
        known: StreamState | None = None,
        sha256: str | None = None,
        *,
        may_restart: bool = False,
    ) -> None:
        self.name, self.preparation = name, preparation
        self.traits = traits
        """Facts about the file, as far as it was read."""
        self._rows, self._known, self._sha256 = rows, known, sha256
        self._may_restart = may_restart
        self._labels: LabelMap | None = None
        self.dense = False
        """Whether rows are dense; decided by the first rows."""
        self.scaler = known.scaler if known else None
        """The scaling of the features; None before it is fitted, or without scaling."""
        self.width = 0
        """Number of columns so far, as of the last batch."""
        if isinstance(rows, Batch):
            self._map().encode(rows.labels, rows.lines)

    @property
    def in_memory(self) -> bool:
        """Whether the examples are in memory, and can be read repeatedly and in any order."""
        return isinstance(self._rows, Batch)

    @property
    def rounds(self) -> int | None:
        """Number of rounds, by a scan if necessary; None if it cannot be known in advance."""
        if isinstance(self._rows, Batch):
            return len(self._rows.labels)
        found = self._rows.scan()
        return found.rows if found else None

    @property
    def classes(self) -> tuple[float, ...] | None:
        """Labels of all classes, in order, if there are more than two; else None."""
        return self._map().classes

    def labels(self) -> Labels:
        """Labels in the order of their codes, as far as they were seen."""
        return self._map().labels()

    def batches(
        self, order: Integers | None = None, first_round: int = 0, rows: int = CHUNK_ROWS
    ) -> Iterator[Batch]:
        """Yield the examples in file order, or in the order of these row numbers.

        Batches of files end at block boundaries of the engine, if the first example is round
        `first_round` (from 0); each block is only as wide as the rows so far require, so that bits
        do not depend on later rows. Batches have at most `rows` rows; those of pipes are the rows
        that have arrived.
        """
        labels = self._map()
        self.width = self._known.width if self._known else 0
        if self.traits.schema:  # the schema fixes the width
            self.width = max(self.width, self.traits.max_index + 1)
        waits = isinstance(self._rows, Reader) and self._rows.source.waits
        for batch, open_rounds in _aligned(self._taken(order), first_round % BLOCK, waits):
            self._check_width(batch)
            widens = self.dense and width_of(batch.rows) > self.width
            step = BLOCK if widens else rows  # signals are handled between batches
            count = len(batch.labels)
            for start, stop in pairwise([0, *range(step - open_rounds, count, step), count]):
                try:
                    if not waits:  # rows of a pipe are gone once they are read: they are still run
                        watch.look()
                except StreamEnded:
                    return
                part = batch.part(slice(start, stop))
                used = _as_wide_as_needed(part.rows)
                self.width = max(self.width, width_of(used))
                encoded = labels.encode(part.labels, part.lines, count=not self.in_memory)
                yield Batch(self._ready(used, self.width), encoded, part.lines, part.ids)

    def _taken(self, order: Integers | None) -> Iterator[Batch]:
        """Yield the raw examples, in file order or in the order of these row numbers."""
        if isinstance(self._rows, Reader):
            assert order is None, "a stream has no order except its own"
            yield from self._rows.batches
            return
        order = np.arange(len(self._rows.labels)) if order is None else order
        for start in range(0, len(order), CHUNK_ROWS):
            yield self._rows.take(order[start : start + CHUNK_ROWS])

    def warm_up(self) -> tuple[Rows, Floats]:
        """The first labelled rows and their labels, from which σ is selected.

        For a stream, call this before `batches`.
        """
        labels, head = self._map(), self._labelled(self._head(self.preparation.warm_up, wait=True))
        return self._ready(head.stored), labels.encode(head.labels, head.lines, count=False)

    def _head(self, rows: int, *, wait: bool) -> Batch:
        """The first rows, at least `rows` of them with labels if possible; see `Reader.head`."""
        if isinstance(self._rows, Batch):
            return self._rows.part(slice(0, min(rows, len(self._rows.labels))))
        return self._rows.head(rows, wait=wait)

    def _map(self) -> LabelMap:
        """Create the map of labels; the first rows also decide layout and scale."""
        if self._labels is not None:
            return self._labels
        preparation, known = self.preparation, self._known
        learns = preparation.scale in LEARNED_SCALES and self.scaler is None
        head = self._head(preparation.warm_up if learns else BLOCK, wait=learns)
        self._labels = self._label_map(head.labels)
        first = head.part(slice(0, min(BLOCK, len(head.labels))))
        width = width_of(_as_wide_as_needed(first.stored))
        self.dense = is_dense(len(first.labels), width, stored=first.values)
        if preparation.layout != "auto":
            self.dense = preparation.layout == "dense"
        if known is not None and known.dense is not None:
            self.dense = known.dense
        if learns:
            labelled = self._labelled(head).stored
            self.scaler = Scaler.fitted(self._ready(labelled), preparation.scale)
        return self._labels

    def _label_map(self, first: Floats) -> LabelMap:
        """Label map from the model, --labels or a scan; no scan if the `first` labels are plain."""
        name, positive, given = self.name, self.preparation.positive, self.preparation.labels
        if self._known is not None:
            labels = tuple(label for label in self._known.labels if label is not None)
            return LabelMap(name, "model", labels if len(labels) > 1 else None, positive)
        if positive is not None or given is not None:
            return LabelMap(name, "option", given, positive)
        if isinstance(self._rows, Batch):
            tally = LabelTally().add(self._rows.labels)
            return LabelMap(name, "scan", find_labels(name, tally))
        plain = any(set(first[~np.isnan(first)].tolist()) <= set(pair) for pair in PLAIN_PAIRS)
        if plain and self._may_restart:
            return LabelMap(name, "file")
        if (found := self._rows.scan()) is not None:
            return LabelMap(name, "scan", find_labels(name, found))
        if self.traits.schema and (codes := self._codes_of_a_pipe(self.traits.schema)):
            return LabelMap(name, "schema", codes)
        of_pipe = LabelMap(name, "pipe")
        of_pipe.expect(first[~np.isnan(first)].tolist())
        return of_pipe

    def _codes_of_a_pipe(self, schema: Schema) -> tuple[float, ...] | None:
        """Codes of the labels of a table that is read from a pipe; None if there is only one.

        Text has a code for each label, so classes that appear later would change those before:
        all classes must be named.
        """
        if schema.positive is not None:
            return PLAIN_PAIRS[0]
        codes = tuple(sorted({*schema.labels.values()}))
        if len(codes) > 2 and not self.preparation.table.labels:
            problem = f"{len(codes)} classes in the first rows: {listed(schema.labels)}"
            named = shlex.quote(",".join(schema.labels))
            hint = f"a pipe cannot be read ahead: name all labels (`--labels {named}`) or one "
            hint += "against all others: `--positive LABEL`"
            raise bad_data(problem, self.name, hint=hint)
        return codes if len(codes) > 1 else None

    def _labelled(self, head: Batch) -> Batch:
        """Those of the first rows that have labels, with no more columns than they use."""
        numbers = np.flatnonzero(~np.isnan(head.labels))[: self.preparation.warm_up]
        labelled = head.take(numbers)
        labelled = replace(labelled, rows=_as_wide_as_needed(labelled.rows))
        self._check_width(labelled)
        return labelled

    def _ready(self, rows: Rows, width: int = 0) -> Rows:
        """Convert rows to the dense or sparse layout with at least `width` columns; scale them."""
        formed = unit_rows(rows) if self.preparation.scale == "unit" else rows
        if not self.dense or width_of(formed) < width or isinstance(formed, CsrRows):
            formed = compressed(formed)
            formed = replace(formed, width=max(width, formed.width))
            formed = formed.dense() if self.dense else formed
        return formed if self.scaler is None else self.scaler(formed)

    def _check_width(self, batch: Batch) -> None:
        """Refuse features unknown to the model, and rows that are too wide to be dense."""
        known = self._known.width if self._known and not self.preparation.allow_new_features else 0
        if width_of(batch.rows) <= min(known or DENSE_WIDTH, DENSE_WIDTH):
            return
        rows = batch.stored
        for limit, problem, hint in (
            (known, "a feature that is not in the model", "--allow-new-features accepts it"),
            (DENSE_WIDTH * self.dense, "rows are too wide to be dense", "use --layout sparse"),
        ):
            if limit and rows.width > limit:
                counts = (rows.values != 0) | (limit != known)
                beyond = np.flatnonzero((rows.columns >= limit) & counts)
                if len(beyond):
                    index = int(rows.columns[beyond[0]])
                    row = np.searchsorted(rows.indptr, beyond[0], side="right") - 1
                    problem = f"{problem}: {index}, and {limit - 1} is the largest"
                    raise bad_data(problem, self.name, int(batch.lines[row]), hint)

    def costs(self, by_label: Mapping[float | str, float]) -> tuple[float, ...] | None:
        """Weights of examples in the order of the labels, from --cost; None if there are none."""
        if not by_label:
            return None
        schema = self.traits.schema
        if schema is None:
            self._expect(by_label)
        labels: Labels = self.classes or self.labels()
        names: list[float | str | None] = list(labels)
        if schema:
            names = schema.label_names(labels)
            by_label = {schema.label_named(str(name)) or name: w for name, w in by_label.items()}
        if unknown := [name for name in by_label if name not in names]:
            every = [unknown[0], *(name for name in names if name is not None)]
            shown = [name if isinstance(name, str) else show(name) for name in every]
            problem = f"--cost names the label {shown[0]}, which the data do not have"
            raise usage(problem, f"the labels are {listed(shown[1:])}")
        return tuple(1.0 if name is None else float(by_label.get(name, 1)) for name in names)

    def _expect(self, named: Iterable[float | str]) -> None:
        """Let the labels of the whole file, or these of a pipe, decide what -1 stands for."""
        found = self._rows.scan() if isinstance(self._rows, Reader) else None
        if found is not None:
            self._map().expect(found.counts)
        elif self.preparation.positive is None:
            self._map().expect(label for label in named if not isinstance(label, str))

    def facts(self) -> DataSummary:
        """Rows, features, labels and hash; for a stream, call this after all batches were read."""
        known, traits = self._map(), self.traits
        positive_named = traits.schema is not None and traits.schema.positive is not None
        labels = known.finish(self.preparation.limit, positive_named=positive_named)
        encoding = describe(labels)
        if traits.schema and len(labels) > 2:
            encoding = (
                f"{len(labels)} classes: {listed(filter(None, traits.schema.label_names(labels)))}"
            )
        notes = tuple(filter(None, (encoding, *traits.notes)))
        hashed = self._rows.sha256() if isinstance(self._rows, Reader) else self._sha256
        return DataSummary(
            known.rows, traits.features, labels, hashed, notes, known.sorted, known.unlabelled
        )

    def save(self, folder: Path) -> None:
        """Write the examples to an empty folder, from which `mapped` reads them."""
        assert isinstance(self._rows, Batch)
        rows = self._rows.stored
        of_rows: list[Any] = [rows.indptr, rows.columns, rows.values]
        for number, array in enumerate([self._rows.labels, self._rows.lines, *of_rows]):
            np.save(folder / f"{number}.npy", array)
        (folder / "others").write_bytes(pickle.dumps((rows.width, self.traits, self._sha256)))


def mapped(name: str, preparation: Preparation, folder: Path) -> Dataset:
    """A data set written by `Dataset.save`, as a memory map that processes can share."""
    # as plain arrays, which are faster than np.memmap objects
    labels, lines, indptr, columns, values = (
        np.asarray(np.load(folder / f"{n}.npy", mmap_mode="r")) for n in range(5)
    )
    width, traits, sha256 = pickle.loads((folder / "others").read_bytes())
    whole = Batch(CsrRows(indptr, columns, values, width), labels, lines)
    return Dataset(name, preparation, traits, whole, sha256=sha256)


def stream(
    source: Source,
    preparation: Preparation,
    known: StreamState | None = None,
    on_wait: Callable[[int], None] = lambda rows: None,
    *,
    may_restart: bool = False,
) -> Dataset:
    """A data set that reads a source as a stream.

    `on_wait` is called with the number of labelled rows so far if the warm-up has to wait for a
    pipe. With `may_restart`, a file whose first labels are a plain pair is not scanned; if another
    label follows, `batches` raises `NewLabelError` and the caller must start again.
    """
    reader = _reader(source, preparation, known, on_wait)
    restarts = may_restart and source.rereadable and reader.tally is None
    return Dataset(source.name, preparation, reader.traits, reader, known, may_restart=restarts)


def load(
    source: Source,
    preparation: Preparation,
    known: StreamState | None = None,
    sha256: str | None = None,
) -> Dataset:
    """Load all examples of a source into memory.

    `sha256` is the expected hash of the file (see `Reader.sha256`), if it was read before.
    """
    reader = _reader(source, preparation, known)
    parts = [replace(batch, rows=batch.stored) for batch in reader]
    whole, found = Batch.concatenate(parts), reader.sha256()
    if sha256 not in (None, found):
        raise changed(source.name)
    return Dataset(source.name, preparation, reader.traits, whole, known, found)


def _reader(
    source: Source,
    preparation: Preparation,
    known: StreamState | None,
    on_wait: Callable[[int], None] = lambda rows: None,
) -> Reader:
    """The reader for a source (LIBSVM text or table), chosen by its content and name."""
    schema = known.schema if known else None
    limit, may_lack_labels = preparation.limit, preparation.may_lack_labels
    if not schema and not is_table(source, preparation.table):
        return SvmReader(
            source,
            max_features=preparation.max_features,
            max_rows=limit,
            may_lack_labels=may_lack_labels,
            on_wait=on_wait,
        )
    if known and not schema:
        problem = "this is a table, and the model was trained on LIBSVM text"
        hint = "train a model on a table: `ahpatron run DATA --label COLUMN --save MODEL`"
        raise bad_data(problem, source.name, hint=hint)
    if preparation.allow_new_features:
        problem = "--allow-new-features is for LIBSVM text: the model has the columns of its table"
        raise usage(problem, "other columns are ignored")
    reader = TableReader(
        source,
        preparation.table,
        schema,
        max_rows=limit,
        may_lack_labels=may_lack_labels,
        warm_up=preparation.warm_up,
        on_wait=on_wait,
    )
    check_features(reader.schema, preparation.max_features, source.name)
    return reader


def _as_wide_as_needed(rows: Rows) -> Rows:
    """The same rows with no more columns than they use; a slice of sparse rows may be wider."""
    if not isinstance(rows, CsrRows):
        return rows
    return replace(rows, width=int(rows.columns.max(initial=-1)) + 1)


def _aligned(
    batches: Iterable[Batch], open_rounds: int, waits: bool
) -> Iterator[tuple[Batch, int]]:
    """Re-batch rows so that batches end with a block of the engine; also yields the open rounds.

    The rest is added to the next batch, unless reading that may block (`waits`).
    """
    rest: Batch | None = None
    for batch in batches:
        joined = batch if rest is None else Batch.concatenate([rest, batch])
        count = len(joined.labels)
        end = count if waits else max((count + open_rounds) // BLOCK * BLOCK - open_rounds, 0)
        rest = joined.part(slice(end, count)) if end < count else None
        if end:
            yield joined.part(slice(0, end)), open_rounds
            open_rounds = (open_rounds + end) % BLOCK
    if rest is not None:
        yield rest, open_rounds
