"""Data sets of sources: the encoder is made of the first rows, or is that of a model."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import Floats, width_of
from ahpatron_cli.data.batch import Batch, Reader
from ahpatron_cli.data.dataset import RowsInMemory, StreamedRows
from ahpatron_cli.data.encoder import Encoder, as_wide_as_needed, labelled_rows
from ahpatron_cli.data.faults import OnFaultyRow
from ahpatron_cli.data.label_codes import AppearingLabels, LabelCodes
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally, find_labels
from ahpatron_cli.data.layout import is_dense
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.readers import ignore_waiting, reader_of
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.data.source import Source, changed
from ahpatron_cli.errors import bad_data
from ahpatron_cli.settings import Layout


def stream(
    source: Source,
    preparation: Preparation,
    continued: Encoder | None = None,
    on_wait: Callable[[int], None] = ignore_waiting,
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
        head = whole.first(_deciding_rows(preparation))
        codes = _codes_in_memory(whole.labels, preparation, source.name)
        encoder = _fitted(head, codes, reader=reader, preparation=preparation)
    return RowsInMemory(
        source.name, preparation, info=reader.info, encoder=encoder, whole=whole, sha256=found
    )


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


def _is_dense(head: Batch, layout: Layout) -> bool:
    """Whether the rows are learned as dense ones: by the first block, unless --layout says it."""
    if layout != "auto":
        return layout == "dense"
    first = head.first(BLOCK)
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
