"""How rows of a source become rows of a learner: codes of labels, layout and scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Rows, compressed, unit_rows, width_of
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.label_codes import LabelCodes
from ahpatron_cli.data.labels import Labels, show
from ahpatron_cli.data.layout import DENSE_WIDTH
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.errors import UserError, bad_data, usage
from ahpatron_cli.settings import Data, Scale

Name: TypeAlias = float | str
"""A label as the user names it: a number, or text in a table."""
Weights: TypeAlias = Mapping[Name, float]
"""Weights of examples by label."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """How rows of a source become rows of a learner: labels, layout, scale, columns of a table.

    It is determined by the first rows, or by the model that is continued, and never changes.
    """

    labels: LabelCodes
    dense: bool
    """Whether rows are dense arrays; else they are sparse."""
    width: int = 0
    """Smallest number of columns: those of the model or of the table."""
    scale: Scale = Data.scale
    """Value of --scale."""
    scaler: Scaler | None = None
    """The scaling of the features, if `scale` is one of `LEARNED_SCALES`."""
    schema: Schema | None = None
    """How columns of a table become features and labels; None for LIBSVM text."""
    refuses_new_features: bool = False
    """Whether features beyond `width`, which the model does not know, are an error."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """Labels of all classes, in order, if there are more than two; else None."""
        return self.labels.classes

    def encode(self, batch: Batch, width: int = 0) -> Batch:
        """The examples with encoded labels and converted rows of at least `width` columns."""
        return Batch(
            rows=self.convert(batch.rows, width),
            labels=self.labels.encode(batch.labels),
            lines=batch.lines,
            ids=batch.ids,
            label_only=batch.label_only,
        )

    def convert(self, rows: Rows, width: int = 0) -> Rows:
        """Rows in this layout, scaled, with at least `width` columns."""
        converted = rows
        if self.scale == "unit":
            converted = unit_rows(rows)
        if not self._is_in_layout(converted, width):
            sparse = compressed(converted)
            converted = sparse = replace(sparse, width=max(width, sparse.width))
            if self.dense:
                converted = sparse.dense()
        if self.scaler is None:
            return converted
        return self.scaler(converted)

    def _is_in_layout(self, rows: Rows, width: int) -> bool:
        """Whether rows are dense arrays that are wide enough, and should be."""
        if not self.dense or isinstance(rows, CsrRows):
            return False
        return width_of(rows) >= width

    def check_width(self, batch: Batch, path: str) -> None:
        """Refuse features unknown to the model, and rows that are too wide to be dense."""
        width = width_of(batch.rows)
        if self.refuses_new_features and width > self.width:
            rows = batch.stored
            unknown = rows.columns >= self.width
            unknown &= rows.values != 0
            problem = "a feature that is not in the model"
            hint = "--allow-new-features accepts it"
            _refuse(unknown, batch, limit=self.width, problem=problem, path=path, hint=hint)
        if self.dense and width > DENSE_WIDTH:
            too_far = batch.stored.columns >= DENSE_WIDTH
            problem = "rows are too wide to be dense"
            hint = "use --layout sparse"
            _refuse(too_far, batch, limit=DENSE_WIDTH, problem=problem, path=path, hint=hint)

    def weights(self, by_label: Weights, labels: Labels) -> tuple[float, ...]:
        """Weights of examples (--weight) in the order of `labels`, those of the data so far.

        A label of a table is given by its name; labels that are not given have weight 1.
        """
        ordered: Labels = self.classes or labels
        names: Sequence[Name | None] = ordered
        given = dict(by_label)
        if self.schema:
            names = self.schema.label_names(ordered)
            given = _by_name(by_label, self.schema)
        for named in given:
            if named not in names:
                raise _unknown_label(named, names)
        weights = []
        for name in names:
            weight = 1.0 if name is None else given.get(name, 1.0)
            weights.append(float(weight))
        return tuple(weights)


def _by_name(by_label: Weights, schema: Schema) -> dict[Name, float]:
    """Weights by the names that the labels have in the schema of a table."""
    given = {}
    for name, weight in by_label.items():
        known = schema.label_named(str(name))
        given[known or name] = weight
    return given


def labelled_rows(head: Batch, count: int) -> Batch:
    """The first `count` rows with a label, with no more columns than they use."""
    is_labelled = ~np.isnan(head.labels)
    numbers = np.flatnonzero(is_labelled)
    labelled = head.take(numbers[:count])
    rows = as_wide_as_needed(labelled.rows)
    return replace(labelled, rows=rows)


def as_wide_as_needed(rows: Rows) -> Rows:
    """The same rows with no more columns than they use; a slice of sparse rows may be wider."""
    if not isinstance(rows, CsrRows):
        return rows
    last = int(rows.columns.max(initial=-1))
    return replace(rows, width=last + 1)


def _refuse(
    beyond: NDArray[np.bool_],
    batch: Batch,
    *,
    limit: int,
    problem: str,
    path: str,
    hint: str,
) -> None:
    """Raise an error for the first stored value that is `beyond` the limit, if there is one."""
    if not beyond.any():
        return
    rows = batch.stored
    position = int(np.argmax(beyond))
    index = int(rows.columns[position])
    after = np.searchsorted(rows.indptr, position, side="right")
    line = int(batch.lines[after - 1])
    largest = limit - 1
    text = f"{problem}: {index}, and {largest} is the largest"
    raise bad_data(text, path, line=line, hint=hint)


def _unknown_label(name: Name, names: Sequence[Name | None]) -> UserError:
    """The error for a label of --weight that the data do not have."""
    known = [_label_text(one) for one in names if one is not None]
    shown = _label_text(name)
    problem = f"--weight names the label {shown}, which the data do not have"
    return usage(problem, f"the labels are {listed(known)}")


def _label_text(label: Name) -> str:
    """A label as the user writes it."""
    if isinstance(label, str):
        return label
    return show(label)
