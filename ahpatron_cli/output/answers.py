"""Answers of a live stream: one line for each line that came in, as CSV or JSON lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ahpatron_cli.atomic import Output
from ahpatron_cli.output.predictions import (
    class_numbers,
    exact_texts,
    label_cells,
    redirected_to_nowhere,
    score_texts,
    text_cell,
)

if TYPE_CHECKING:
    from ahpatron_cli.answers import Answers
    from ahpatron_cli.live.service import AnsweredRows, Refusal
    from ahpatron_cli.settings import RowFormat


_PROBABILITY = "probability"
"""The column for the probability of the prediction; with `_LABEL`, for that of a label."""


class AnswerWriter:
    """Writer of answers: id or line, prediction, score, and what else is known of the row.

    A row of CSV has all cells, which may be empty. An object of JSON has no keys without a value,
    except that the answer to a row is null before the first label. With several classes, the
    score is that of the predicted class.

    Parameters
    ----------
    output : file
    format : {"csv", "jsonl"}
    id_name : str, optional
        Name of the id column; without it, rows are identified by their lines.
    with_probabilities : bool, default=False
    continued : sequence of str, default=()
        The header of a CSV file that is continued, whose columns are kept.
    """

    def __init__(
        self,
        output: Output,
        format: RowFormat,
        *,
        id_name: str | None = None,
        with_probabilities: bool = False,
        continued: Sequence[str] = (),
    ) -> None:
        self._output = output
        self._as_json = format == "jsonl"
        self._key = id_name or "line"
        self._by_line = id_name is None
        self._with_probabilities = with_probabilities
        self._one_probability = False
        self._columns: list[str] = []
        """Names of the columns of CSV, once the header is written."""
        if continued:
            before = list(continued[3:-3])
            self._one_probability = before == [_PROBABILITY]
            self._columns = self._columns_with(before)

    @property
    def needs_labels(self) -> bool:
        """Whether even the answer to a faulty line depends on the labels: by its columns."""
        return self._with_probabilities and not self._as_json and not self._columns

    def know_labels(self, *, may_appear: bool) -> None:
        """Note whether further labels may appear, before the first row is answered.

        As the first line of CSV fixes the columns, there is then one probability, that of the
        prediction.
        """
        if self.needs_labels:
            self._one_probability = may_appear

    def abandon(self) -> None:
        """Write no more rows: the reader has closed the pipe."""
        redirected_to_nowhere(self._output)

    def write(self, answers: AnsweredRows, names: Sequence[str]) -> None:
        """Write the answers to some rows; `names` are those of the labels."""
        cells = self._cells(answers, names)
        self._write_cells(cells, names)

    def refuse(self, refusal: Refusal, names: Sequence[str]) -> None:
        """Write that a row was not answered, and why."""
        key = str(refusal.line)
        if not self._by_line:
            key = self._text(refusal.id or "")
        reason = self._text(str(refusal.error))
        cells = {self._key: [key], "error": [reason]}
        self._write_cells(cells, names)

    def _cells(self, answers: AnsweredRows, names: Sequence[str]) -> dict[str, list[str]]:
        """The cells of the columns that have any; an empty text is no value."""
        given = answers.given
        known = ~np.isnan(answers.labels)
        true = class_numbers(answers.labels, classes=given.scores.ndim == 2)
        texts = label_cells(names, as_json=self._as_json)
        shown = np.array(texts, dtype=object)
        nothing = "null" if self._as_json else ""
        predictions = np.append(shown, nothing)  # `NO_ANSWER` is the last one
        is_wrong = given.chosen != true
        mistakes = np.where(is_wrong, "1", "0")
        cells = {
            self._key: self._keys(answers),
            "prediction": predictions[given.chosen].tolist(),
            "score": score_texts(given.chosen_scores(), nothing),
        }
        if self._with_probabilities and given.probabilities is not None:
            cells |= self._probabilities(given, names)
        cells["label"] = np.where(known, shown[true], "").tolist()
        cells["mistake"] = np.where(known, mistakes, "").tolist()
        return cells

    def _keys(self, answers: AnsweredRows) -> list[str]:
        if self._by_line or answers.ids is None:
            return exact_texts(answers.lines)
        return [self._text(key) for key in answers.ids.tolist()]

    def _probabilities(self, given: Answers, names: Sequence[str]) -> dict[str, list[str]]:
        """A column of probabilities for each label, or one for the predictions."""
        assert given.probabilities is not None
        if self._one_probability:
            probabilities = given.chosen_probabilities()
            return {_PROBABILITY: score_texts(probabilities, "")}
        columns = {}
        for name, own in zip(names, given.probabilities.T, strict=False):
            key = _probability_of(name)
            columns[key] = score_texts(own, "")
        return columns

    def _text(self, text: str) -> str:
        return text_cell(text, as_json=self._as_json)

    def _write_cells(self, cells: dict[str, list[str]], names: Sequence[str]) -> None:
        lines = _objects(cells) if self._as_json else self._rows(cells, names)
        text = "".join(f"{line}\n" for line in lines)
        self._output.write(text)
        self._output.flush()  # whoever asked is waiting

    def _rows(self, cells: dict[str, list[str]], names: Sequence[str]) -> Iterator[str]:
        """Rows of CSV, the first ones after a header, which fixes the columns."""
        if not self._columns:
            probabilities = self._probability_columns(names)
            self._columns = self._columns_with(probabilities)
            header = [text_cell(name, as_json=False) for name in self._columns]
            yield ",".join(header)
        count = len(cells[self._key])
        empty = [""] * count
        columns = [cells.get(name, empty) for name in self._columns]
        for row in zip(*columns, strict=True):
            yield ",".join(row)

    def _columns_with(self, probabilities: Sequence[str]) -> list[str]:
        """All columns of CSV."""
        first = [self._key, "prediction", "score", *probabilities]
        return [*first, "label", "mistake", "error"]

    def _probability_columns(self, names: Sequence[str]) -> list[str]:
        if not self._with_probabilities:
            return []
        if self._one_probability:
            return [_PROBABILITY]
        return list(map(_probability_of, names))


def _probability_of(label: str) -> str:
    """The column for the probability of a label."""
    return f"{_PROBABILITY}_{label}"


def _objects(cells: dict[str, list[str]]) -> Iterator[str]:
    """JSON objects of these cells, without those that are empty."""
    keys = [text_cell(name, as_json=True) for name in cells]
    columns = cells.values()
    for row in zip(*columns, strict=True):
        pairs = zip(keys, row, strict=True)
        filled = [f"{key}: {cell}" for key, cell in pairs if cell]
        text = ", ".join(filled)
        yield f"{{{text}}}"


def header_of(path: str) -> list[str]:
    """The names of the columns of a CSV file; empty if it is empty or absent."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace", newline="") as file:
            return next(csv.reader(file), [])
    except FileNotFoundError:
        return []
