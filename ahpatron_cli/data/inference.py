"""The schema of a table, inferred from the statistics of its cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ahpatron_cli.data.cell_reader import CellReader, OnFault
from ahpatron_cli.data.cells import Cells
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.schema import Column, Schema, listed
from ahpatron_cli.data.table_labels import TableLabels, infer_labels
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import (
    ColumnStatistics,
    TableStatistics,
    leading_zeros_note,
    no_rows,
    separators_note,
)
from ahpatron_cli.errors import UserError, bad_data

_UNNAMED_INDEX = ("", "Unnamed: 0")
"""Names of the first column of a CSV file if it is the index of pandas."""
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__")
"""Names under which pandas writes its index to Parquet and Arrow files."""
InferredColumns: TypeAlias = Mapping[str, Column | None]
"""Columns of a table by name; None for those without values."""


class Inferred(NamedTuple):
    """What is inferred from the rows of a table."""

    schema: Schema
    notes: tuple[str, ...]
    """Notes for the user."""
    tally: LabelTally
    """Counts of the labels."""
    numeric: Mapping[str, bool]
    """Columns in which every cell is a number, with whether more than a tenth of them are 0."""


def infer_schema(
    reader: CellReader,
    options: TableOptions,
    batches: Iterable[Cells],
    *,
    no_numbers: set[str] | None = None,
    on_fault: OnFault = None,
) -> Inferred:
    """Infer the schema of a table from these rows.

    With `on_fault`, columns that cannot be used are passed to it and left out, and those with
    cells of several types have the most frequent one.

    Columns with text or dates are added to `no_numbers`, which the reader looks at: it need not try
    to read them as numbers again.
    """
    path = reader.path
    index = pandas_index(reader.names)
    features = _feature_columns(reader.names, options)
    seen = TableStatistics(features, options)
    seen.add_all(batches, no_numbers)
    seen.check(path)
    found = _infer_columns(seen.columns, options.missing, path, on_fault=on_fault)
    labels = infer_labels(seen, options, path)
    for one in seen.columns:
        one.has_leading_zeros |= one.name in reader.leading_zeros
        one.has_thousands |= one.name in reader.thousands
    notes = _column_notes(seen.columns, found, index=index, missing=options.missing)
    notes += suspicions(seen.columns, found)
    return Inferred(
        _schema(found, options, labels, index=index),
        notes=(*labels.notes, *notes),
        tally=labels.tally(seen.labelled),
        numeric=seen.numeric(),
    )


def _schema(
    found: InferredColumns,
    options: TableOptions,
    labels: TableLabels,
    *,
    index: Sequence[str],
) -> Schema:
    """The schema of a table with these columns and labels; `index` is left out."""
    empty = [name for name, column in found.items() if column is None]
    return Schema(
        columns=[column for column in found.values() if column],
        label=options.label or "",
        labels=labels.codes,
        missing=options.missing,
        positive=labels.positive,
        id=options.id,
        dropped=[*options.drop, *index, *empty],
        na=list(options.na),
        decimal=options.decimal,
        label_kind=labels.kind,
    )


def infer_schema_without_labels(
    names: Sequence[str],
    options: TableOptions,
    batches: Iterable[Cells],
    path: str,
) -> tuple[Schema, list[str]]:
    """Infer the schema of a table whose labels are elsewhere, from these rows, and warnings."""
    features = _feature_columns(names, options)
    seen = TableStatistics(features, options)
    seen.add_all(batches)
    if not seen.rows:
        raise no_rows(path)
    found = _infer_columns(seen.columns, options.missing, path, on_fault=None)
    used = {column.name: column for column in found.values() if column}
    schema = Schema(
        columns=list(used.values()),
        label="",
        labels={},
        missing=options.missing,
        dropped=[name for name in names if name not in used],
        na=list(options.na),
        decimal=options.decimal,
    )
    return schema, suspicions(seen.columns, found)


def _feature_columns(names: Sequence[str], options: TableOptions) -> list[str]:
    """The columns that are neither label nor id, nor left out."""
    others = {options.label, options.id, *options.drop, *pandas_index(names)}
    return [name for name in names if name not in others]


def _infer_columns(
    seen: Sequence[ColumnStatistics],
    missing: str,
    path: str,
    *,
    on_fault: OnFault,
) -> InferredColumns:
    """The inferred columns by name, None for those without values.

    The faults of those that cannot be used are passed to `on_fault`, or raised without it. A table
    of which no column is left is refused.
    """
    found: dict[str, Column | None] = {}
    may_be_mixed = on_fault is not None
    for one in seen:
        try:
            found[one.name] = one.column(missing, path, may_be_mixed=may_be_mixed)
        except UserError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
    if not any(found.values()):
        raise bad_data("no columns of features are left", path, line=1)
    return found


def _column_notes(
    seen: Sequence[ColumnStatistics],
    found: InferredColumns,
    *,
    index: Sequence[str],
    missing: str,
) -> list[str]:
    """Notes for the user on columns that are left out or become features in a special way."""
    empty: list[str] = []
    categories: list[str] = []
    dates: list[str] = []
    for name, column in found.items():
        if column is None:
            empty.append(name)
        elif column.categories:
            count = f"{len(column.categories)}"
            if column.other:
                count = f"the {len(column.categories):,} most frequent, and one for all others"
            categories.append(f"{name} ({count})")
        elif column.date_format != "ISO":
            dates.append(f"{name} ({column.date_format})")
    lists = {
        "the index that pandas has written is left out": [repr(name) for name in index],
        "columns without values are left out": empty,
        "one feature per category": categories,
        "dates": dates,
        **_gaps(seen, found, missing),
    }
    notes = []
    for note, names in lists.items():
        if names:
            shown = listed(names)
            notes.append(f"{note}: {shown}")
    return notes


def suspicions(seen: Sequence[ColumnStatistics], found: InferredColumns) -> list[str]:
    """What columns may mean that they are not taken as, with the options that say so."""
    notes = []
    for one in seen:
        column = found.get(one.name)
        if column is None:
            continue
        if column.kind == "category" and one.suspicion:
            notes.append(one.suspicion)
        if one.has_leading_zeros and column.kind == "number":
            notes.append(leading_zeros_note(one.name))
        if one.has_thousands and column.kind == "number":
            notes.append(separators_note(one.name))
    return notes


def _gaps(
    seen: Sequence[ColumnStatistics], found: InferredColumns, missing: str
) -> dict[str, list[str]]:
    """Notes on what missing cells become, each with the columns that have some."""
    gaps: dict[str, list[str]] = {}
    if missing == "refuse":
        return gaps
    for one in seen:
        column = found.get(one.name)
        count = one.counts["missing"]
        if column and count:
            replacement = _replacement(column, missing)
            columns = gaps.setdefault(f"missing values become {replacement}", [])
            columns.append(f"{one.name} ({count:,})")
    return gaps


def _replacement(column: Column, missing: str) -> str:
    """What missing cells of a column become, for a note."""
    if column.indicator and column.kind == "date":
        return "the mean date, with an indicator feature"
    if column.indicator:
        return "0, with an indicator feature"
    if missing == "mean":
        return "the mean, or no category"
    return "0"


def pandas_index(names: Sequence[str]) -> list[str]:
    """Those of the columns that are an index which pandas has written, and no features."""
    index = [name for name in names if _INDEX_LEVEL.fullmatch(name)]
    if names and names[0] in _UNNAMED_INDEX:
        return [names[0], *index]
    return index
