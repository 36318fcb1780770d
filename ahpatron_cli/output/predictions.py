"""What was predicted, written while it is: `run --predictions` and `predict`."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from ahpatron_cli.atomic import Output, format_of_suffix, open_at, open_atomically
from ahpatron_cli.core.tally import predicted
from ahpatron_cli.data.csv_text import number
from ahpatron_cli.data.labels import show
from ahpatron_cli.errors import usage
from ahpatron_cli.output.escape import spreadsheet_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ahpatron_cli.core.rows import Floats, Integers
    from ahpatron_cli.runner import BatchResult

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

    def write(self, path: str, played: BatchResult) -> None:
        """Write the rows of a batch, and pass them on; those without a label are no rounds."""
        self._output.write(self._header)
        self._header = ""
        start = _csv_cells(spreadsheet_text(path), played.learner, played.repeat)
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

    def __init__(
        self, output: Output, format: str, names: Sequence[str | None], *, several: bool
    ) -> None:
        """`names` are those of the model's labels; `several`: name the data, too."""
        self._output = output
        self._as_json = format == "jsonl"
        known = [OTHER if name is None else name for name in names]
        text = _json_text if self._as_json else _csv_cells
        self._names = [name if number(name) is not None else text(name) for name in known]
        self._several = several
        scores = ["score"] if len(names) == 2 else [f"score_{name}" for name in known]
        self._columns = [*(["data"] if several else []), "line", "prediction", *scores]

    def write(
        self,
        path: str,
        lines: Integers,
        scores: Floats,
        ids: NDArray[np.object_] | None = None,
        id_name: str | None = None,
    ) -> None:
        """Write the scores of rows, each with its line in the file, or with its id."""
        key = id_name or "line"
        keys = list(map(str, lines.tolist())) if ids is None else self._texts(ids.tolist())
        if self._columns:  # not before the first row: a refusal leaves standard output empty
            header = [key if name == "line" else name for name in self._columns]
            self._output.write("" if self._as_json else _csv_cells(*header) + "\n")
            self._columns = []
        start = "{" if self._as_json else ""
        if self._several:
            start += (
                f'"data": {json.dumps(path)}, '
                if self._as_json
                else f"{_csv_cells(spreadsheet_text(path))},"
            )
        for begin in range(0, len(scores), ROUNDS_AT_ONCE):
            part = slice(begin, begin + ROUNDS_AT_ONCE)
            values = scores[part]
            found = values >= 0 if values.ndim == 1 else predicted(values)
            # the shortest text of each number, ten times as fast as by repr
            numbers = msgspec.json.encode(values.tolist()).decode()[1:-1]
            texts = numbers.split(",") if values.ndim == 1 else numbers[1:-1].split("],[")
            rows = zip(keys[part], found.tolist(), texts, strict=True)
            names = self._names
            if self._as_json:
                first = json.dumps(key)
                last = '"score": %s' if values.ndim == 1 else '"scores": [%s]'
                form = f'{start}{first}: %s, "prediction": %s, {last}}}\n'.replace("%%", "%")
                text = "".join([form % (row, names[i], score) for row, i, score in rows])
            else:
                text = "".join([f"{start}{row},{names[i]},{score}\n" for row, i, score in rows])
            self._output.write(text)
        _pass_on(self._output)

    def _texts(self, ids: list[str]) -> list[str]:
        """Ids as cells; in JSON as strings, whatever they are."""
        if self._as_json:
            return list(map(_json_text, ids))
        plain = not set(',"\r\n') & set("".join(ids))
        return ids if plain else list(map(_csv_cells, ids))


def _csv_cells(*cells: str | int) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


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
