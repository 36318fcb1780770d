"""Faulty lines of a live stream: kept in order, then left out and said."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from operator import attrgetter

from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.data.batch import Batch, Reader
from ahpatron_cli.data.faults import FaultyRow
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.live.monitor import AppendedLines, Monitor, timestamp
from ahpatron_cli.live.service import Refusal
from ahpatron_cli.output.answers import AnswerWriter

SHOWN_FAULTS = 10
"""Number of faults that are reported one by one; then those at powers of ten."""


def refusal_of(row: FaultyRow) -> Refusal:
    """The refusal of a faulty row."""
    return Refusal(row.line, row.id, row.error, raw=row.raw)


class FaultyLines:
    """The faulty lines of a stream that goes on without them (--on-fault skip)."""

    def __init__(self, stderr: Stderr, monitor: Monitor, rejects: AppendedLines | None) -> None:
        """`rejects` is the file of --rejects."""
        self._stderr = stderr
        self._monitor = monitor
        self._rejects = rejects
        self._ahead: list[FaultyRow] = []
        """Those that were not reached yet, in the order of their lines."""
        self._reported = 0

    def note(self, row: FaultyRow) -> None:
        """Note a faulty row; a label that does not fit is found later than a number."""
        insort(self._ahead, row, key=attrgetter("line"))

    def among(self, batch: Batch) -> Iterator[Batch | FaultyRow]:
        """Rows and faulty rows in the order of their lines."""
        start = 0
        lines = batch.lines
        while self._ahead and self._ahead[0].line < lines[-1]:
            faulty = self._ahead.pop(0)
            stop = int(lines.searchsorted(faulty.line))
            if stop > start:
                yield batch.part(slice(start, stop))
            yield faulty
            start = stop
        yield batch.part(slice(start, len(lines)))

    def rest(self) -> Iterator[FaultyRow]:
        """Faulty rows behind which no other rows have come yet."""
        while self._ahead:
            yield self._ahead.pop(0)

    @property
    def any_ahead(self) -> bool:
        """Whether there are any that were not reached yet."""
        return bool(self._ahead)

    def report_rest(self) -> None:
        """Report the faulty rows of a stream that has ended before its first row."""
        for row in self.rest():
            self.report(refusal_of(row), row.raw)

    def report(self, refusal: Refusal, raw: bytes) -> None:
        """Say that a line is left out, keep it in --rejects, and log it."""
        self._reported += 1
        error = refusal.error
        place = str(error.place) if error.place else None
        is_power = self._reported == 10 ** (len(str(self._reported)) - 1)
        if self._reported <= SHOWN_FAULTS or is_power:
            text = f"{place}: {error.problem}" if place else error.problem
            count = f" ({self._reported:,} lines so far)" if self._reported > SHOWN_FAULTS else ""
            self._stderr.warn(f"left out: {text}{count}", timed=True)
        if self._rejects is not None:
            _reject(self._rejects, refusal, place=place, raw=raw)
        self._monitor.event("fault", line=refusal.line, place=place, reason=error.problem)


class FirstFaults:
    """Faulty lines that come before the first row of a new stream: nobody waits for their answers.

    Parameters
    ----------
    faulty : FaultyLines
    reader : Reader
    open_answers : callable
        Opens the file of the answers; there is none if it returns None.
    """

    def __init__(
        self, faulty: FaultyLines, reader: Reader, open_answers: Callable[[], AnswerWriter | None]
    ) -> None:
        self._faulty = faulty
        self._reader = reader
        self._open_answers = open_answers
        self._is_opened = False
        self._answers: AnswerWriter | None = None
        self.refused: list[Refusal] = []
        """The lines that were answered."""

    @property
    def answers(self) -> AnswerWriter | None:
        """Where the answers go; opened when it is first asked for."""
        if not self._is_opened:
            self._is_opened = True
            self._answers = self._open_answers()
        return self._answers

    def answer(self) -> None:
        """Answer the faulty lines, unless a row came before them, which has no answer yet."""
        if self._reader.rows_read or not self._faulty.any_ahead:
            return
        answers = self.answers
        if answers is not None and answers.needs_labels:
            return
        for row in self._faulty.rest():
            refusal = refusal_of(row)
            self._faulty.report(refusal, row.raw)
            self.refused.append(refusal)
            if answers is not None:
                answers.refuse(refusal, ())


def _reject(rejects: AppendedLines, refusal: Refusal, *, place: str | None, raw: bytes) -> None:
    """Write a line that is left out to --rejects."""
    document = {
        "time": timestamp(),
        "line": refusal.line,
        "place": place,
        "reason": refusal.error.problem,
        "raw": raw.decode("utf-8", "backslashreplace"),
    }
    try:
        rejects.add(document)
    except OSError as error:
        problem = f"the line cannot be written: {error.strerror or error}"
        code = ExitCode.IO_ERROR
        raise UserError(problem, code=code, place=Place(rejects.path)) from None
