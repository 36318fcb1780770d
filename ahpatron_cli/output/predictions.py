"""`--predictions`: what was predicted in every round, as CSV, written while it is played."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ahpatron_cli.atomic import Output, format_of_suffix, open_atomically
from ahpatron_cli.output.escape import spreadsheet_text

if TYPE_CHECKING:
    from ahpatron_cli.runner import Played

ROUNDS_AT_ONCE = 4096
HEADER = "data,learner,repeat,round,line,label,score,prediction,mistake\n"


class PredictionWriter:
    """Appends rounds to an open file. Labels are as played: -1 and +1."""

    def __init__(self, output: Output) -> None:
        self._output = output
        output.write(HEADER)

    def write(self, path: str, played: Played) -> None:
        """Write rounds that were just played over a file."""
        line = io.StringIO()
        csv.writer(line).writerow([spreadsheet_text(path), played.learner, played.repeat])
        start = line.getvalue().rstrip("\r\n")
        for begin in range(0, len(played.scores), ROUNDS_AT_ONCE):
            part = slice(begin, begin + ROUNDS_AT_ONCE)
            columns = (played.lines[part], played.labels[part], played.scores[part])
            rows = zip(*(column.tolist() for column in columns), strict=True)
            self._output.write(
                "".join(
                    f"{start},{number},{line},{label:.0f},{score!r},"
                    f"{1 if score >= 0 else -1},{int((score >= 0) != (label > 0))}\n"
                    for number, (line, label, score) in enumerate(rows, played.first + begin)
                )
            )


def check_predictions_path(path: str) -> None:
    """Refuse a file name that promises another format, before a long run and not after it."""
    format_of_suffix(path, "csv", {".csv": "csv"})


@contextmanager
def open_predictions(path: str | None) -> Iterator[PredictionWriter | None]:
    """A writer to `path` that leaves no file behind if the block fails; None without a path."""
    if path is None:
        yield None
        return
    with open_atomically(path) as output:
        yield PredictionWriter(output)
