"""Answers of a live stream: one line for each line that came in, as CSV or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ahpatron_cli.atomic import Output
from ahpatron_cli.output.predictions import (
    exact_texts,
    label_texts,
    redirected_to_nowhere,
    text_cell,
)

if TYPE_CHECKING:
    from ahpatron_cli.core.rows import Floats
    from ahpatron_cli.live.service import AnsweredRows, Refusal
    from ahpatron_cli.settings import RowFormat


class AnswerWriter:
    """Writer of answers: id or line, prediction, score, and what else is known of the row.

    A row of CSV has all cells, which may be empty; an object of JSON has no keys without a value.
    With several classes, the score is that of the predicted class.

    Parameters
    ----------
    output : file
    format : {"csv", "jsonl"}
    id_name : str, optional
        Name of the id column; without it, rows are identified by their lines.
    with_probabilities : bool, default=False
    continued : bool, default=False
        Whether the output already has a header.
    """

    def __init__(
        self,
        output: Output,
        format: RowFormat,
        *,
        id_name: str | None = None,
        with_probabilities: bool = False,
        continued: bool = False,
    ) -> None:
        self._output = output
        self._as_json = format == "jsonl"
        self._key = id_name or "line"
        self._by_line = id_name is None
        self._with_probabilities = with_probabilities
        self._columns: list[str] = []
        """Names of the columns of CSV, once the header is due."""
        self._continued = continued

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
        labels = answers.labels
        scores = answers.given.scores
        guesses = answers.given.chosen
        known = ~np.isnan(labels)
        filled = np.where(known, labels, 0.0)
        if scores.ndim == 1:
            true = (filled > 0).astype(np.int64)
        else:
            true = filled.astype(np.int64)
            scores = scores[np.arange(len(scores)), guesses]
        shown = np.array(label_texts(names, as_json=self._as_json), dtype=object)
        wrong = (guesses != true).astype(int)
        cells = {
            self._key: self._keys(answers),
            "prediction": shown[guesses].tolist(),
            "score": exact_texts(scores),
        }
        if answers.given.probabilities is not None:
            cells |= self._probabilities(answers.given.probabilities, names)
        cells["label"] = np.where(known, shown[true], "").tolist()
        cells["mistake"] = np.where(known, wrong.astype(str), "").tolist()
        return cells

    def _keys(self, answers: AnsweredRows) -> list[str]:
        if self._by_line or answers.ids is None:
            return exact_texts(answers.lines)
        return [self._text(key) for key in answers.ids.tolist()]

    def _probabilities(self, values: Floats, names: Sequence[str]) -> dict[str, list[str]]:
        """A column of probabilities for each label."""
        columns = {}
        for name, own in zip(names, values.T, strict=False):
            columns[f"probability_{name}"] = exact_texts(own)
        return columns

    def _text(self, text: str) -> str:
        return text_cell(text, as_json=self._as_json)

    def _write_cells(self, cells: dict[str, list[str]], names: Sequence[str]) -> None:
        lines = list[str]()
        if self._as_json:
            heads = [f"{text_cell(name, as_json=True)}: " for name in cells]
            for row in zip(*cells.values(), strict=True):
                filled = [head + cell for head, cell in zip(heads, row, strict=True) if cell]
                lines.append("{" + ", ".join(filled) + "}")
        else:
            if not self._columns:
                lines += self._header(names)
            count = len(cells[self._key])
            empty = [""] * count
            rows = zip(*(cells.get(name, empty) for name in self._columns), strict=True)
            lines += map(",".join, rows)
        self._output.write("\n".join([*lines, ""]))
        self._output.flush()  # whoever asked is waiting

    def _header(self, names: Sequence[str]) -> list[str]:
        """The header of CSV, if it was not written before; the columns are fixed from now on."""
        probabilities = []
        if self._with_probabilities:
            probabilities = [f"probability_{name}" for name in names]
        first = [self._key, "prediction", "score", *probabilities]
        self._columns = [*first, "label", "mistake", "error"]
        if self._continued:
            return []
        return [",".join(text_cell(name, as_json=False) for name in self._columns)]
