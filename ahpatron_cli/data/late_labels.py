"""Lines of a live table that have a label and no other cell: the labels of earlier rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.batch import Batch, runs_of
from ahpatron_cli.data.cells import MISSING, Cells, Dates, Texts, Values
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.errors import bad_data

Flags = NDArray[np.bool_]


def split(cells: Cells, features: Sequence[str], label: str) -> Iterator[tuple[Cells, bool]]:
    """Split rows into those with cells of features, and labels without any (True), in order."""
    alone = are_labels_alone(cells, features, label)
    if not alone.any():
        yield cells, False
        return
    for run in runs_of(alone):
        yield cells.part(run), bool(alone[run.start])


def are_labels_alone(cells: Cells, features: Sequence[str], label: str) -> Flags:
    """Which rows have a label and no cell of these features."""
    none = np.zeros(len(cells.lines), dtype=bool)
    if label not in cells.columns:
        return none
    is_empty = ~none
    for name in features:
        is_empty &= _missing(cells.columns[name])
        if not is_empty.any():
            return none
    return is_empty & ~_missing(cells.texts(label))


def _missing(values: Values) -> Flags:
    """Which cells of a column are missing."""
    if isinstance(values, Texts):
        are_missing = [text in MISSING for text in values.texts]
        by_text = np.array(are_missing, dtype=bool)
        return by_text[values.codes]
    if isinstance(values, Dates):
        return np.asarray(np.isnat(values.moments))
    return np.isnan(values)


def label_batch(cells: Cells, schema: Schema, path: str) -> Batch:
    """Labels without rows, as a batch; without ids, they belong to no row and are refused."""
    if schema.id is None:
        problem = "this line has a label and no other cell"
        hint = "`--id COLUMN` names the row to which the label belongs"
        raise bad_data(problem, path, int(cells.lines[0]), hint=hint)
    count = len(cells.lines)
    rows = CsrRows(
        indptr=np.zeros(count + 1, dtype=np.int64),
        columns=np.empty(0, dtype=np.int32),
        values=np.empty(0),
        width=1,
    )
    labels = schema.label_numbers(cells, path)
    alone = np.ones(count, dtype=bool)
    return Batch(rows, labels, cells.lines, ids=schema.ids(cells), label_only=alone)
