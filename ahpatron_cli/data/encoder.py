"""How rows of a source become rows of a learner: codes of labels, layout and scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
    scale: str = "none"
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
        )

    def convert(self, rows: Rows, width: int = 0) -> Rows:
        """Rows in this layout, scaled, with at least `width` columns."""
        converted = unit_rows(rows) if self.scale == "unit" else rows
        is_ready = not isinstance(converted, CsrRows) and width_of(converted) >= width
        if not (self.dense and is_ready):
            sparse = compressed(converted)
            sparse = replace(sparse, width=max(width, sparse.width))
            converted = sparse.dense() if self.dense else sparse
        if self.scaler is None:
            return converted
        return self.scaler(converted)

    def check_width(self, batch: Batch, path: str) -> None:
        """Refuse features unknown to the model, and rows that are too wide to be dense."""
        width = width_of(batch.rows)
        if self.refuses_new_features and width > self.width:
            rows = batch.stored
            unknown = (rows.columns >= self.width) & (rows.values != 0)
            problem = "a feature that is not in the model"
            hint = "--allow-new-features accepts it"
            _refuse(unknown, batch, limit=self.width, problem=problem, path=path, hint=hint)
        if self.dense and width > DENSE_WIDTH:
            too_far = batch.stored.columns >= DENSE_WIDTH
            problem = "rows are too wide to be dense"
            hint = "use --layout sparse"
            _refuse(too_far, batch, limit=DENSE_WIDTH, problem=problem, path=path, hint=hint)

    def weights(self, by_label: Mapping[float | str, float], labels: Labels) -> tuple[float, ...]:
        """Weights of examples (--cost) in the order of `labels`, those of the data so far.

        A label of a table is given by its name; labels that are not given have weight 1.
        """
        ordered: Labels = self.classes or labels
        names: list[float | str | None] = list(ordered)
        given = dict(by_label)
        if self.schema:
            names = list(self.schema.label_names(ordered))
            given = {}
            for name, weight in by_label.items():
                spelled = self.schema.label_named(str(name))
                given[spelled or name] = weight
        for name in given:
            if name not in names:
                raise _unknown_label(name, names)
        return tuple(1.0 if name is None else float(given.get(name, 1)) for name in names)


def labelled_rows(head: Batch, count: int) -> Batch:
    """The first `count` rows with a label, with no more columns than they use."""
    numbers = np.flatnonzero(~np.isnan(head.labels))[:count]
    labelled = head.take(numbers)
    return replace(labelled, rows=as_wide_as_needed(labelled.rows))


def as_wide_as_needed(rows: Rows) -> Rows:
    """The same rows with no more columns than they use; a slice of sparse rows may be wider."""
    if not isinstance(rows, CsrRows):
        return rows
    return replace(rows, width=int(rows.columns.max(initial=-1)) + 1)


def _refuse(
    beyond: NDArray[np.bool_], batch: Batch, *, limit: int, problem: str, path: str, hint: str
) -> None:
    """Raise an error for the first stored value that is `beyond` the limit, if there is one."""
    if not beyond.any():
        return
    rows = batch.stored
    position = int(np.argmax(beyond))
    index = int(rows.columns[position])
    row = int(np.searchsorted(rows.indptr, position, side="right")) - 1
    text = f"{problem}: {index}, and {limit - 1} is the largest"
    raise bad_data(text, path, line=int(batch.lines[row]), hint=hint)


def _unknown_label(name: float | str, names: list[float | str | None]) -> UserError:
    """The error for a label of --cost that the data do not have."""
    known = [_label_text(one) for one in names if one is not None]
    problem = f"--cost names the label {_label_text(name)}, which the data do not have"
    return usage(problem, f"the labels are {listed(known)}")


def _label_text(label: float | str) -> str:
    """A label as the user writes it."""
    if isinstance(label, str):
        return label
    return show(label)
