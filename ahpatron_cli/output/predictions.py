"""What was predicted, written while it is: `run --predictions` and `predict`."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from ahpatron_cli.atomic import Output, format_of_suffix, open_at, open_atomically
from ahpatron_cli.core.tally import predicted
from ahpatron_cli.data.labels import Labels, show
from ahpatron_cli.errors import usage
from ahpatron_cli.output.escape import spreadsheet_text

if TYPE_CHECKING:
    from ahpatron_cli.core.rows import Floats, Integers
    from ahpatron_cli.runner import Played

STDOUT = "-"
OTHER = "other"
"""The prediction of a model that knows one label, and that it is not this one."""

ROUNDS_AT_ONCE = 4096
HEADER = "data,learner,repeat,round,line,label,score,prediction,mistake\n"


class PredictionWriter:
    """Appends rounds to an open file.

    Two labels are as played, -1 and +1. Of several classes labels are those of the file, and the
    score is that of the predicted class.
    """

    def __init__(self, output: Output, header: str = HEADER) -> None:
        """The header is written with the first rows: a refusal leaves standard output empty."""
        self._output, self._header = output, header

    def write(self, path: str, played: Played) -> None:
        """Write the rows of a batch, and pass them on; those without a label are no rounds."""
        self._output.write(self._header)
        self._header = ""
        start = _csv_cells(path, played.learner, played.repeat)
        number = played.first
        names = ["-1", "1"] if played.classes is None else list(map(show, played.classes))
        for begin in range(0, len(played.scores), ROUNDS_AT_ONCE):
            part = slice(begin, begin + ROUNDS_AT_ONCE)
            scores = played.scores[part]
            missing = np.isnan(played.labels[part])
            labels = np.where(missing, 0, played.labels[part])
            if played.classes is None:
                true, found = (labels > 0).astype(np.int64), (scores >= 0).astype(np.int64)
            else:
                true, found = labels.astype(np.int64), predicted(scores)
                scores = np.take_along_axis(scores, found[:, None], axis=1)[:, 0]
            columns = played.lines[part], true, scores, found
            rows = zip(*(column.tolist() for column in columns), strict=True)
            if missing.any():
                lines = []
                for unlabelled, (line, y, score, guess) in zip(missing.tolist(), rows, strict=True):
                    if unlabelled:
                        lines.append(f"{start},,{line},,{score!r},{names[guess]},\n")
                        continue
                    told = f"{names[y]},{score!r},{names[guess]},{int(guess != y)}"
                    lines.append(f"{start},{number},{line},{told}\n")
                    number += 1
            else:
                lines = [
                    f"{start},{t},{line},{names[y]},{score!r},{names[guess]},{int(guess != y)}\n"
                    for t, (line, y, score, guess) in enumerate(rows, number)
                ]
                number += len(lines)
            self._output.write("".join(lines))
        _pass_on(self._output)


def check_predictions_path(path: str) -> None:
    """Refuse a file name that promises another format, before a long run and not after it."""
    if path != STDOUT:
        format_of_suffix(path, "csv", {".csv": "csv"})


class ScoreWriter:
    """The score of each row and the label that it stands for, as CSV or JSON lines.

    Several classes have a score each: CSV in a column `score_LABEL`, JSON as `scores`.
    """

    def __init__(self, output: Output, format: str, labels: Labels, *, several: bool) -> None:
        """`labels` are those of the model's data; `several`: name the data, too."""
        self._output = output
        self._as_json = format == "jsonl"
        other = f'"{OTHER}"' if self._as_json else OTHER
        self._names = [other if one is None else show(one) for one in labels]
        self._several = several
        scores = ["score"] if len(labels) == 2 else [f"score_{name}" for name in self._names]
        columns = [*(["data"] if several else []), "line", "prediction", *scores]
        self._header = "" if self._as_json else ",".join(columns) + "\n"

    def write(self, path: str, lines: Integers, scores: Floats) -> None:
        """Write the scores of rows that stand on these lines of a file."""
        if self._header:  # not before the first row: a refusal leaves standard output empty
            self._output.write(self._header)
            self._header = ""
        start = "{" if self._as_json else ""
        if self._several:
            start += f'"data": {json.dumps(path)}, ' if self._as_json else f"{_csv_cells(path)},"
        for begin in range(0, len(scores), ROUNDS_AT_ONCE):
            part = slice(begin, begin + ROUNDS_AT_ONCE)
            values = scores[part]
            found = values >= 0 if values.ndim == 1 else predicted(values)
            columns = lines[part].tolist(), found.tolist(), values.tolist()
            rows = zip(*columns, strict=True)
            if self._as_json or values.ndim > 1:
                form = self._json_line if self._as_json else self._csv_line
                text = "".join([start + form(*row) for row in rows])
            else:  # the usual case, without a call per row
                names = self._names
                text = "".join([f"{start}{line},{names[i]},{f!r}\n" for line, i, f in rows])
            self._output.write(text)
        _pass_on(self._output)

    def _csv_line(self, line: int, found: int, scores: list[float]) -> str:
        return f"{line},{self._names[found]},{','.join(map(repr, scores))}\n"

    def _json_line(self, line: int, found: int, score: float | list[float]) -> str:
        name = "scores" if isinstance(score, list) else "score"
        return f'"line": {line}, "prediction": {self._names[found]}, "{name}": {score!r}}}\n'


def _csv_cells(path: str, *others: str | int) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([spreadsheet_text(path), *others])
    return text.getvalue().rstrip("\r\n")


def _pass_on(output: Output) -> None:
    """Rows on standard output are read by somebody who waits for them."""
    if not isinstance(output, Output):
        sys.stdout.flush()


def open_output(path: str | None) -> AbstractContextManager[Output]:
    """A file that is complete or absent, or standard output: `app.py` knows of its faults."""
    if path is None or path == STDOUT:
        return nullcontext(cast("Output", sys.stdout))  # our writers write text only
    return open_atomically(path)


@contextmanager
def open_predictions(
    path: str | None, checkpointed: int | None = None
) -> Iterator[PredictionWriter | None]:
    """A writer to `path` that leaves no file behind if the block fails; None without a path.

    With `checkpointed`, the rounds up to a checkpoint, rows stay in the file, whatever happens, and
    those after the checkpoint are written again.
    """
    if path is None:
        yield None
    elif checkpointed is None or (path == STDOUT and not checkpointed):
        with open_output(path) as output:
            yield PredictionWriter(output)
    elif path == STDOUT:
        yield PredictionWriter(cast("Output", sys.stdout), header="")
    else:
        size = _size_after(path, checkpointed) if checkpointed else 0
        with open_at(path, size) as output:
            yield PredictionWriter(output, header="" if size else HEADER)


def _size_after(path: str, rounds: int) -> int:
    """The size of a file of predictions up to this round."""
    size = 0
    with suppress(OSError), Path(path).open("rb") as file:
        for line in file:
            size += len(line)
            cells = line.rsplit(b",", 5)  # line, label, score, prediction, mistake
            if len(cells) == 6 and cells[0].endswith(b",%d" % rounds):
                return size
    problem = f"{path} does not have the {rounds:,} rounds of the checkpoint"
    raise usage(problem, "name the file of the run before, or delete the checkpoint")
