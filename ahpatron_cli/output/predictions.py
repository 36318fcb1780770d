"""Streaming output of predictions as CSV or JSON lines: `run --predictions`, `predict`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from ahpatron_cli.atomic import Output, format_of_suffix, open_at, open_atomically
from ahpatron_cli.data.cells import label_kind, number
from ahpatron_cli.data.labels import OTHER, Labels, show
from ahpatron_cli.errors import usage
from ahpatron_cli.output.escape import use_utf8, visible, without_formula

if TYPE_CHECKING:
    from ahpatron_cli.answers import Answers
    from ahpatron_cli.core.rows import Floats, Integers
    from ahpatron_cli.data.batch import Batch
    from ahpatron_cli.data.schema import Schema
    from ahpatron_cli.runner import Run

STDOUT = "-"
Columns: TypeAlias = dict[str, str | list[str]]
"""Columns by name: a list of cells, or a text that all rows share."""
_SPECIAL = re.compile('[,"\r\n]')
"""Characters for which a cell of CSV must be quoted."""


def label_names(labels: Labels, schema: Schema | None) -> list[str]:
    """Names of labels as in the data."""
    if schema is None:
        return [OTHER if label is None else show(label) for label in labels]
    names = schema.label_names(labels)
    return [OTHER if name is None else name for name in names]


def class_numbers(codes: Floats, *, classes: bool) -> Integers:
    """The number of the class of each row, 0 or 1 if there are two; 0 without a label."""
    known = np.where(np.isnan(codes), 0.0, codes)
    if classes:
        return known.astype(np.int64)
    return (known > 0).astype(np.int64)


class PredictionWriter:
    """Writer of rows with predictions, as CSV or JSON lines."""

    def __init__(self, output: Output, format: str = "csv", *, continued: bool = False) -> None:
        """`continued` means that the output already has a header."""
        self._output = output
        self._as_json = format == "jsonl"
        self._begun = continued
        self.to_stdout = output is sys.stdout

    def abandon(self) -> None:
        """Write no more rows: the reader has closed the pipe."""
        redirected_to_nowhere(self._output)

    def write_rounds(
        self,
        run: Run,
        batch: Batch,
        answers: Answers,
        names: Sequence[str],
        id_name: str | None = None,
        *,
        labels_may_appear: bool = False,
    ) -> None:
        """Write the rows of a batch of a run; rows without a label have no round number.

        `names` are the names of the labels. With several classes, the score is that of the
        predicted class. If `labels_may_appear`, CSV has one probability, that of the prediction.
        """
        guesses = answers.chosen
        missing = np.isnan(batch.labels)
        is_round = ~missing
        true = class_numbers(batch.labels, classes=answers.scores.ndim == 2)
        mistakes = (guesses != true).astype(int)
        shown = np.array(self._labels(names), dtype=object)
        predictions = np.append(shown, self._nothing)  # `NO_ANSWER` is the last one
        rounds_before = run.rounds - np.count_nonzero(is_round)
        rounds = rounds_before + np.cumsum(is_round)
        columns: Columns = {
            "data": self._text(visible(run.path)),
            "learner": self._text(run.setup.learner),
            "repeat": str(run.repeat),
            "round": np.where(missing, self._nothing, rounds.astype(str)).tolist(),
            **self._keys(batch, id_name),
            "label": np.where(missing, self._nothing, shown[true]).tolist(),
            "score": score_texts(answers.chosen_scores(), self._nothing),
            "prediction": predictions[guesses].tolist(),
            "mistake": np.where(missing, self._nothing, mistakes.astype(str)).tolist(),
        }
        columns |= self._probabilities(answers, names, labels_may_appear=labels_may_appear)
        self._write(columns, len(guesses))

    def _probabilities(
        self, answers: Answers, names: Sequence[str], *, labels_may_appear: bool
    ) -> Columns:
        """The columns of probabilities, of which there are none unless they are asked for."""
        if answers.probabilities is None:
            return {}
        if labels_may_appear and not self._as_json:  # columns cannot be added later
            probabilities = answers.chosen_probabilities()
            return {"probability": score_texts(probabilities, self._nothing)}
        return _by_label("probability", names, answers.probabilities)

    def write_scores(
        self,
        batch: Batch,
        answers: Answers,
        names: Sequence[str],
        id_name: str | None = None,
        path: str | None = None,
    ) -> None:
        """Write the predictions of a model, with the `path` of the data if given.

        With several classes there is a score per class: columns `score_LABEL` in CSV, a list
        `scores` in JSON. Probabilities are in columns `probability_LABEL`.
        """
        shown = np.array(self._labels(names), dtype=object)
        scores = answers.scores
        columns: Columns = {}
        if path is not None:
            columns["data"] = self._text(visible(path))
        columns |= self._keys(batch, id_name)
        columns["prediction"] = shown[answers.chosen].tolist()
        if scores.ndim == 1:
            columns["score"] = exact_texts(scores)
        elif self._as_json:
            columns["scores"] = [msgspec.json.encode(row).decode() for row in scores.tolist()]
        else:
            columns |= _by_label("score", names, scores)
        if answers.probabilities is not None:
            columns |= _by_label("probability", names, answers.probabilities)
        self._write(columns, len(scores))

    def _keys(self, batch: Batch, id_name: str | None) -> dict[str, list[str]]:
        """The column that identifies rows: line numbers, or the id column of a table."""
        if batch.ids is None:
            return {"line": exact_texts(batch.lines)}
        name = id_name or "id"
        cells = [self._text(cell) for cell in batch.ids.tolist()]
        return {name: cells}

    def _labels(self, names: Sequence[str]) -> list[str]:
        return label_cells(names, as_json=self._as_json)

    def _text(self, text: str) -> str:
        return text_cell(text, as_json=self._as_json)

    @property
    def _nothing(self) -> str:
        """What is written if no label was known."""
        return "null" if self._as_json else ""

    def _write(self, columns: Columns, count: int) -> None:
        """Write `count` rows; a column that is a text is the same for all rows."""
        cells = list[Iterable[str]]()
        for own in columns.values():
            if isinstance(own, str):
                cells.append(repeat(own, count))
            else:
                cells.append(own)
        rows = zip(*cells, strict=True)
        lines = list[str]()
        if self._as_json:
            form = _json_form(columns)
            lines += [form % row for row in rows]
        else:
            if not self._begun:  # delayed, so that an early error leaves stdout empty
                lines.append(",".join(map(_csv_cell, columns)))
            lines += map(",".join, rows)
        self._begun = True
        self._output.write("\n".join([*lines, ""]))
        self._output.flush()  # readers of stdout wait for rows


def label_cells(names: Sequence[str], *, as_json: bool) -> list[str]:
    """Labels as CSV cells or JSON values; in JSON they are numbers if all of them are."""
    known = [name for name in names if name != OTHER]
    if not as_json or label_kind(known) != "number":
        return [text_cell(name, as_json=as_json) for name in names]
    shown = list[str]()
    for name in names:
        if name == OTHER:
            shown.append(text_cell(name, as_json=True))
        else:
            shown.append(name.removeprefix("+"))
    return shown


def text_cell(text: str, *, as_json: bool) -> str:
    """A text as a CSV cell or JSON value."""
    if not as_json:
        return _csv_cell(text)
    return json.dumps(text, ensure_ascii=not text.isprintable())


def redirected_to_nowhere(output: Output) -> None:
    """Let all further writes succeed without effect: the reader has closed the pipe."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), output.fileno())  # what is buffered is lost, too


def _json_form(names: Iterable[str]) -> str:
    """A JSON object with these names, in which %s stands for each value."""
    fields = []
    for name in names:
        key = json.dumps(name).replace("%", "%%")
        fields.append(f"{key}: %s")
    return "{" + ", ".join(fields) + "}"


def _by_label(what: str, names: Sequence[str], values: Floats) -> Columns:
    """A column `WHAT_LABEL` of numbers for each label."""
    columns: Columns = {}
    for name, own in zip(names, values.T, strict=True):
        columns[f"{what}_{name}"] = exact_texts(own)
    return columns


def exact_texts(values: Floats | Integers) -> list[str]:
    """Shortest exact text of each number, ten times as fast as `repr`."""
    array = msgspec.json.encode(values.tolist()).decode()
    return array[1:-1].split(",")


def score_texts(values: Floats, nothing: str) -> list[str]:
    """As `exact_texts`, with another text for NaN."""
    texts = exact_texts(values)
    if not np.isnan(values).any():
        return texts
    return [nothing if text == "null" else text for text in texts]


def _csv_cell(text: str) -> str:
    """A cell of CSV (RFC 4180): quoted if necessary; text that looks like a formula is marked."""
    safe = text
    if number(text) is None:
        safe = without_formula(text)
    if _SPECIAL.search(safe):
        doubled = safe.replace('"', '""')
        return f'"{doubled}"'
    return safe


def predictions_format(path: str) -> str:
    """The format of a file of predictions, csv or jsonl; a path with another suffix is refused."""
    if path == STDOUT:
        return "csv"
    return format_of_suffix(path, "csv", {".csv": "csv", ".jsonl": "jsonl"})


def open_output(path: str | None) -> AbstractContextManager[Output]:
    """Open a file that is written atomically, or stdout if `path` is None or -."""
    if path is None or path == STDOUT:
        use_utf8(sys.stdout)
        return nullcontext(sys.stdout)
    return open_atomically(path)


@contextmanager
def open_predictions(
    path: str | None, checkpointed: int | None = None
) -> Iterator[PredictionWriter | None]:
    """Context manager: a writer to `path`, which is removed if the block fails; None without path.

    With `checkpointed`, the number of rows up to a checkpoint, the file is kept even if the block
    fails, and is continued after these rows.
    """
    if path is None:
        yield None
        return
    format = predictions_format(path)
    if checkpointed is None or path == STDOUT:
        with open_output(path) as output:
            yield PredictionWriter(output, format, continued=bool(checkpointed))
    else:
        size = _size_after(path, checkpointed, format) if checkpointed else 0
        with open_at(path, size) as output:
            yield PredictionWriter(output, format, continued=size > 0)


def _size_after(path: str, rows: int, format: str) -> int:
    """Size in bytes of the first `rows` rows of a predictions file, with the header of CSV."""
    is_csv = format == "csv"
    size = 0
    quotes = 0
    left = rows + is_csv
    with suppress(OSError), Path(path).open("rb") as file:
        for line in file:
            size += len(line)
            quotes += line.count(b'"')
            if not is_csv or quotes % 2 == 0:  # else a cell has a line break
                left -= 1
            if left == 0:
                return size
    problem = f"{path} does not have the {rows:,} rows of the checkpoint"
    raise usage(problem, "name the file of the run before, or delete the checkpoint")
