"""What a model has learned, in the columns of its table: their relevance, and stored examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from ahpatron_cli.core import Player
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.metric_expansion import MetricExpansion, relevances
from ahpatron_cli.core.points import DensePoints, Points, SparsePoints
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.cells import date_text
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Column, Schema
from ahpatron_cli.errors import usage
from ahpatron_cli.model_file import Model

CellValue: TypeAlias = float | str | None
Example: TypeAlias = Mapping[int, float]
"""Features of an example by their index."""


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
    """The label in favour of which it counts: that of the coefficient's sign, or of its class."""
    cells: dict[str, CellValue]
    """The example in the columns of the table; of LIBSVM text, features that are not 0."""


def column_relevances(player: Player, schema: Schema | None) -> list[ColumnRelevance]:
    """Relevance of each column, the largest first; empty if the learner learns no metric."""
    fs = [loop.f for loop in player.loops]
    names = _columns_of_features(schema)
    values: defaultdict[str, float] = defaultdict(float)
    above: defaultdict[str, float] = defaultdict(float)
    for feature, one in relevances(fs).items():
        name = names.get(feature, str(feature))
        values[name] += one.value
        above[name] += one.above_uniform
    total = sum(above.values()) or 1.0
    columns = []
    for name, value in values.items():
        share = above[name] / total
        columns.append(ColumnRelevance(name, value, share))
    columns.sort(key=_importance, reverse=True)
    return columns


def _importance(one: ColumnRelevance) -> tuple[float, float]:
    """By what columns are sorted."""
    return one.above_uniform, one.relevance


def _columns_of_features(schema: Schema | None) -> dict[int, str]:
    """The column of each feature of a table, by its index."""
    names: dict[int, str] = {}
    if schema is None:
        return names
    for column, places in schema.columns_with_places():
        for place in places:
            names[place] = column.name
    return names


# Stored examples ----------------------------------------------------------------------------------


def stored_examples(
    model: Model, player: Player, names: Sequence[str], most: int
) -> list[StoredExample]:
    """The `most` stored examples with the largest coefficients, of all classes together."""
    found: list[StoredExample] = []
    loops = player.loops
    own_labels: Sequence[str | None] = names if len(loops) > 1 else [None]
    for loop, own_label in zip(loops, own_labels, strict=False):
        f = loop.f
        if not isinstance(f, Expansion):
            learner = player.learner.name
            raise usage(f"--examples: {learner} stores no examples", "metron and arow do")
        found += _examples_of(f, model, player, names=names, own_label=own_label, most=most)
    found.sort(key=_size, reverse=True)
    return found[:most]


def _examples_of(
    f: Expansion,
    model: Model,
    player: Player,
    *,
    names: Sequence[str],
    own_label: str | None,
    most: int,
) -> list[StoredExample]:
    """The `most` stored examples of f with the largest coefficients, without those of 0.

    `own_label` is that of the learner, if there is one per class.
    """
    coefficients = f.coefficients
    if own_label is not None:  # one learner per class: only what is in favour of it
        coefficients = np.maximum(coefficients, 0.0)
    largest = _largest(coefficients, most)
    rows = _as_came(f, player, model.scaler, chosen=largest)
    found = []
    for row, coefficient in zip(rows, coefficients[largest], strict=True):
        value, label = _favoured(coefficient, names, own_label)
        if value:
            cells = _cells(row, model.header.schema)
            found.append(StoredExample(value, label, cells))
    return found


def _size(example: StoredExample) -> float:
    """By what stored examples are sorted."""
    return abs(example.coefficient)


def _largest(coefficients: Floats, most: int) -> Integers:
    """The `most` examples with the largest coefficients, each that of any class."""
    sizes = np.abs(coefficients)
    if sizes.ndim > 1:
        sizes = sizes.max(axis=1)
    by_size = np.argsort(-sizes, kind="stable")
    return by_size[:most]


def _favoured(
    coefficient: Floats, names: Sequence[str], own_label: str | None
) -> tuple[float, str]:
    """The coefficient, and the name of the label in favour of which it counts.

    `own_label` is that of the learner, if there is one per class. With several classes on one
    active set, it is the largest of a row of coefficients.
    """
    if coefficient.ndim:
        largest = int(np.abs(coefficient).argmax())
        value = float(coefficient[largest])
        label = names[largest]
        if value <= 0:
            label = f"not {label}"
        return value, label
    value = float(coefficient)
    if own_label is not None:
        return value, own_label
    return value, names[value > 0]


def _as_came(
    f: Expansion, player: Player, scaler: Scaler | None, *, chosen: Integers
) -> list[Example]:
    """Examples as they came: without kernel width, centre and scale."""
    if not len(chosen):
        return []
    width = 1.0
    centre = None
    points: Points | None
    if isinstance(f, MetricExpansion):
        points = f.examples
    else:
        points = f.points
        width = float(getattr(player.kernel, "sigma", 1.0))
        if player.kernel.centred:
            centre = player.conversion.centre
    assert points is not None
    part = points.subset(chosen)
    if isinstance(part, SparsePoints):
        return _sparse_examples(part.csr, width, scaler)
    assert isinstance(part, DensePoints)
    rows: Floats = part.coordinates * width
    if centre is not None:
        columns = rows.shape[1]
        rows = rows + centre[:columns]
    return _dense_examples(rows, scaler)


def _dense_examples(rows: Floats, scaler: Scaler | None) -> list[Example]:
    """Dense rows without their scale; changes the rows."""
    columns = rows.shape[1]
    if scaler is not None:
        known = slice(0, len(scaler.largest))
        behind = slice(0, columns)  # either may have more columns
        spread = scaler.spread[behind]
        shifted = rows[:, known] * spread + scaler.shift[behind]
        rows[:, known] = shifted * scaler.largest[behind]
    return [_example(range(columns), row.tolist()) for row in rows]


def _sparse_examples(rows: CsrRows, width: float, scaler: Scaler | None) -> list[Example]:
    """Sparse rows, which are not shifted, without kernel width and scale."""
    columns = rows.columns
    values = rows.values * width
    if scaler is not None:
        known = np.minimum(columns, len(scaler.largest))
        spread = np.append(scaler.spread, 1.0)
        largest = np.append(scaler.largest, 1.0)
        values = values * spread[known] * largest[known]
    found = []
    for start, stop in pairwise(rows.indptr.tolist()):
        part = slice(start, stop)
        own_columns = columns[part].tolist()
        own_values = values[part].tolist()
        example = _example(own_columns, own_values)
        found.append(example)
    return found


def _example(columns: Iterable[int], values: Iterable[float]) -> Example:
    """The features of an example that are not 0."""
    pairs = zip(columns, values, strict=True)
    return {column: value for column, value in pairs if value}


def _cells(row: Example, schema: Schema | None) -> dict[str, CellValue]:
    """The features of an example as cells of its table."""
    cells: dict[str, CellValue] = {}
    if schema is None:
        for feature in sorted(row):
            cells[str(feature)] = row[feature]
        return cells
    for column, places in schema.columns_with_places():
        values = [row.get(place, 0.0) for place in places]
        cells[column.name] = _cell(column, values)
    return cells


def _cell(column: Column, values: Sequence[float]) -> CellValue:
    """The cell of a column whose features have these values; None if it is missing."""
    is_missing = column.indicator and values[-1] > 0.5
    if is_missing or not values:
        return None
    if column.kind == "category":
        for category, value in zip(column.categories, values, strict=False):
            if value > 0.5:
                return category
        return None
    if column.kind == "date":
        return date_text(values[0])
    return values[0]
