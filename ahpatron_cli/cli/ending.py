"""How a stream ended, and the exit code that says so."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from ahpatron_cli.cli.run_output import rate_code
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.number_text import counted
from ahpatron_cli.records import RunDocument


@dataclass
class Ending:
    """What has ended a stream before its time; nothing if all fields are as they begin."""

    signal: str | None = None
    """Name of the signal; SIGPIPE if nobody reads the rows any more."""
    fault: UserError | None = None
    """The faulty row."""
    reader_left: bool = False
    """Whether the reader of the rows has closed the pipe."""
    not_saved: UserError | None = None
    """Why the state could not be saved at the end."""

    @property
    def by(self) -> str | None:
        """The field `ended_by` of a record."""
        return self.signal if self.fault is None else "fault"

    def exit_code(
        self, documents: Sequence[RunDocument], *, max_rate: str | None, stderr: Stderr
    ) -> ExitCode:
        """The exit code, once these documents are written; a fault is raised."""
        if self.fault is not None:
            stderr.note("a faulty row has ended the stream; everything before it is written")
            raise self.fault
        if self.not_saved is not None:
            raise self.not_saved
        if self.reader_left:
            text = "the reader of the predictions closed the pipe; all other results are written"
            stderr.note(text)
            return ExitCode.BROKEN_PIPE
        if self.signal is None:
            return rate_code(documents, max_rate, stderr)
        last = documents[-1].runs[0]
        rows = last.rounds - (last.late_labels or 0) + last.unlabelled
        stderr.note(f"ended by {self.signal} after {counted(rows, 'row')}; all results are written")
        return ExitCode(128 + signal.Signals[self.signal])
