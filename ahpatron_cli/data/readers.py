"""The reader that a source needs: of LIBSVM text, of a table, or of one that arrives row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ahpatron_cli.data.batch import Reader
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.faults import OnFaultyRow
from ahpatron_cli.data.file_formats import is_arrow, is_table
from ahpatron_cli.data.libsvm.grammar import Fault
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import Source
from ahpatron_cli.errors import UserError, bad_data, usage


def ignore_waiting(rows: int) -> None:
    """Do not tell anybody that a pipe has to be waited for."""


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
    on_wait: Callable[[int], None] = ignore_waiting,
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
    if faults is None and _is_live(source, preparation, schema=schema, on_faulty_row=on_faulty_row):
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
        schema=schema,
        data=preparation.data,
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
