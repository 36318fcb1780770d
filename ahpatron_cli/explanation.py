"""What a model has learned, in the columns of its table: their relevance, and stored examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from ahpatron_cli.core import Player
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.metric_expansion import MetricExpansion, Relevance, relevances
from ahpatron_cli.core.points import DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.cells import date_text
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Column, Schema
from ahpatron_cli.errors import usage
from ahpatron_cli.model_file import Model

CellValue = float | str | None


class ColumnRelevance(Struct, frozen=True):
    """Relevance of a column: the sum over its features."""

    column: str
    relevance: float
    """Share of the squared gradients of f, with the part that all features get alike."""
    above_uniform: float
    """Share of what is above that part; 0 for all if nothing is."""


class StoredExample(Struct, frozen=True):
    """A stored example with a large coefficient."""

    coefficient: float
    label: str
    """The label for which it speaks: that of the coefficient's sign, or of its class."""
    cells: dict[str, CellValue]
    """The example in the columns of the table; of LIBSVM text, features that are not 0."""


def column_relevances(player: Player, schema: Schema | None) -> list[ColumnRelevance]:
    """Relevance of each column, the largest first; empty if the learner learns no metric."""
    found = relevances([loop.f for loop in player.loops])
    names = _columns_of_features(schema)
    sums: dict[str, Relevance] = {}
    for feature, one in found.items():
        name = names.get(feature, str(feature))
        before = sums.get(name, Relevance(0.0, 0.0))
        above = before.above_uniform + one.above_uniform
        sums[name] = Relevance(before.value + one.value, above)
    total = sum(one.above_uniform for one in sums.values())
    columns = []
    for name, one in sums.items():
        share = one.above_uniform / total if total > 0 else 0.0
        columns.append(ColumnRelevance(name, one.value, share))
    return sorted(columns, key=lambda one: (-one.above_uniform, -one.relevance))


def _columns_of_features(schema: Schema | None) -> dict[int, str]:
    """The column of each feature of a table, by its index."""
    names: dict[int, str] = {}
    for column in schema.columns if schema else ():
        for _ in column.features:
            names[len(names) + 1] = column.name
    return names


# Stored examples ----------------------------------------------------------------------------------


def stored_examples(
    model: Model, player: Player, names: Sequence[str], most: int
) -> list[StoredExample]:
    """The `most` stored examples with the largest coefficients, of all classes together."""
    found: list[StoredExample] = []
    for number, loop in enumerate(player.loops):
        f = loop.f
        if not isinstance(f, Expansion):
            learner = player.learner.name
            raise usage(f"--examples: {learner} stores no examples", "metron and arow do")
        if not f.size:
            continue
        coefficients = f.coefficients
        if len(player.loops) > 1:  # one learner per class: only what speaks for it
            coefficients = np.where(coefficients > 0, coefficients, 0.0)
        sizes = np.abs(coefficients.reshape(f.size, -1)).max(axis=1)
        largest = np.argsort(-sizes, kind="stable")[:most]
        rows = _as_came(f, player, scaler=model.scaler, chosen=largest)
        own_label = names[number] if len(player.loops) > 1 else None
        for row, place in zip(rows, largest.tolist(), strict=True):
            value, label = _spoken_for(coefficients[place], names, own_label)
            if value:
                cells = _cells(row, model.header.schema)
                found.append(StoredExample(value, label, cells))
    found.sort(key=lambda one: -abs(one.coefficient))
    return found[:most]


def _spoken_for(
    coefficient: Floats | float, names: Sequence[str], own_label: str | None
) -> tuple[float, str]:
    """The coefficient, and the name of the label for which it speaks.

    `own_label` is that of the learner, if there is one per class.
    """
    if own_label is not None:
        return float(coefficient), own_label
    if isinstance(coefficient, np.ndarray) and coefficient.ndim:
        largest = int(np.argmax(np.abs(coefficient)))
        value = float(coefficient[largest])
        label = names[largest]
        return value, label if value > 0 else f"not {label}"
    value = float(coefficient)
    return value, names[1 if value > 0 else 0]


def _as_came(
    f: Expansion, player: Player, *, scaler: Scaler | None, chosen: Integers
) -> list[dict[int, float]]:
    """Examples as features by their index, as they came: without kernel width, centre and scale."""
    points: Points | None = f.examples if isinstance(f, MetricExpansion) else f.points
    assert points is not None
    part = points.subset(chosen)
    width = 1.0
    centre = None
    if not isinstance(f, MetricExpansion):
        width = float(getattr(player.kernel, "sigma", 1.0))
        centre = player.conversion.centre if player.kernel.centred else None
    if isinstance(part, SparsePoints):
        return _sparse(part.csr, width, scaler)
    assert isinstance(part, DensePoints)
    rows: Floats = part.coordinates * width
    if centre is not None:
        rows = rows + centre[: rows.shape[1]]
    if scaler is not None:
        known = min(rows.shape[1], len(scaler.largest))
        unscaled = rows[:, :known] * scaler.spread[:known] + scaler.shift[:known]
        rows[:, :known] = unscaled * scaler.largest[:known]
    return [{int(j): float(row[j]) for j in np.flatnonzero(row)} for row in rows]


def _sparse(rows: CsrRows, width: float, scaler: Scaler | None) -> list[dict[int, float]]:
    """The same for sparse rows, which are not shifted."""
    found = []
    for number in range(len(rows)):
        part = slice(int(rows.indptr[number]), int(rows.indptr[number + 1]))
        columns = rows.columns[part]
        values = rows.values[part] * width
        if scaler is not None:
            known = np.minimum(columns, len(scaler.largest))
            values = values * np.append(scaler.spread, 1.0)[known]
            values = values * np.append(scaler.largest, 1.0)[known]
        pairs = zip(columns.tolist(), values.tolist(), strict=True)
        found.append({column: value for column, value in pairs if value})
    return found


def _cells(row: Mapping[int, float], schema: Schema | None) -> dict[str, CellValue]:
    """The features of an example as cells of its table."""
    if schema is None:
        return {str(feature): value for feature, value in sorted(row.items())}
    cells: dict[str, CellValue] = {}
    start = 1
    for column in schema.columns:
        cells[column.name] = _cell(row, column, start)
        start += len(column.features)
    return cells


def _cell(row: Mapping[int, float], column: Column, start: int) -> CellValue:
    """The cell of a column whose first feature has the index `start`; None if it is missing."""
    if column.indicator and row.get(start + len(column.features) - 1, 0.0) > 0.5:
        return None
    if column.kind == "category":
        values = [row.get(start + i, 0.0) for i in range(len(column.categories))]
        largest = max(range(len(values)), key=values.__getitem__)
        return column.categories[largest] if values[largest] > 0.5 else None
    value = row.get(start, 0.0)
    if column.kind == "date":
        return date_text(value)
    return value
