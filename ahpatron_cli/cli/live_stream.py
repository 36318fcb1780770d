"""A live stream that has begun: rows are answered and learned until it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.cli.ending import Ending
from ahpatron_cli.cli.live_faults import FaultyLines, refusal_of
from ahpatron_cli.cli.live_figures import LiveFigures
from ahpatron_cli.cli.live_saving import Saving
from ahpatron_cli.cli.run_progress import RunProgress
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import StreamedRows
from ahpatron_cli.data.faults import FaultyRow
from ahpatron_cli.errors import NoRowsError, UserError
from ahpatron_cli.live.service import AnsweredRows, Refusal, Service
from ahpatron_cli.output.answers import AnswerWriter
from ahpatron_cli.output.predictions import label_names
from ahpatron_cli.records import DataRecord, RunDocument
from ahpatron_cli.signals import StreamEnded, watch


@dataclass
class LiveStream:
    """A stream whose rows are answered by a service, one line for each."""

    dataset: StreamedRows
    service: Service
    answers: AnswerWriter | None
    """Where the answers go; None if nobody asked for them."""
    faulty: FaultyLines
    skips: bool
    """Whether the stream goes on without its faulty lines."""
    saving: Saving
    figures: LiveFigures
    progress: RunProgress
    on_answers: Callable[[LiveStream, AnsweredRows], None]
    """What is called after answers were given, and their rows learned."""
    ending: Ending = field(default_factory=Ending, init=False)

    def __post_init__(self) -> None:
        self._is_reading = False
        """Whether the reader waits for rows, so that all rows before were answered."""
        self._lines_before = self.service.counts.lines
        """Input lines behind the state when this process began."""
        self._rounds = self.service.run.rounds
        """Rounds after which all was done that was due."""
        self._forgotten_before = self.service.remembered.forgotten
        """Rows that were forgotten when this process began."""

    # Rows -----------------------------------------------------------------------------------------

    def read(self) -> None:
        """Answer and learn all rows."""
        try:
            self._is_reading = True
            # without rows, a model is continued; any other stream has begun with some
            with suppress(NoRowsError, StreamEnded):
                self._read_rows()
            self.answer_faults()
        except BrokenPipeError:
            self._leave_reader()
        except UserError as error:
            self.ending.fault = error
        self._is_reading = False

    def _read_rows(self) -> None:
        for batch in self.dataset.batches(first_round=self.service.run.rounds):
            self._is_reading = False
            for part in self.faulty.among(batch):
                self._take(part)
            self._is_reading = True

    def answer_faults(self) -> None:
        """Answer faulty rows behind which no other rows have come yet."""
        if self._is_reading:
            for faulty in self.faulty.rest():
                self._take(faulty)

    def every_minute(self) -> None:
        """Show figures and save, if all rows that have come were answered."""
        self.figures.show()
        if self._is_reading:
            self.saving.save_state()

    def _take(self, part: Batch | FaultyRow) -> None:
        """Answer a part of the stream, and do what is due after each answer."""
        if isinstance(part, FaultyRow):
            self._leave_out(refusal_of(part))
            return
        for found in self.service.answers(part):
            if isinstance(found, Refusal):
                self._leave_out(found)
            else:
                self._give(found)

    def _give(self, answers: AnsweredRows) -> None:
        """Write the answers to some rows, and do what is due."""
        self._count_lines(int(answers.lines[-1]))
        if self.answers is not None:
            self.answers.write(answers, self.names())
        run = self.service.run
        self.progress.show(run)
        self.figures.log_changes()
        if run.rounds != self._rounds:
            self._rounds = run.rounds
            self.figures.show_if_due()
            self.saving.save_if_due()
        self.progress.show_leader(run)
        self.on_answers(self, answers)

    def note_refused(self, refusal: Refusal) -> None:
        """Count a faulty line that was answered."""
        self.service.leave_out(refusal)
        self._count_lines(refusal.line)

    def _leave_out(self, refusal: Refusal) -> None:
        """Skip a faulty line, or end the stream."""
        if not self.skips:
            raise refusal.error
        raw = refusal.raw
        if raw is None:
            raw = self.dataset.recent_line(refusal.line)
        self.faulty.report(refusal, raw)
        self.note_refused(refusal)
        if self.answers is not None:
            self.answers.refuse(refusal, self.names())

    def _count_lines(self, line: int) -> None:
        """Note that all lines up to this one are done."""
        self.service.counts.lines = self._lines_before + line - self.dataset.header_lines

    def names(self) -> list[str]:
        """Names of the labels so far."""
        return label_names(self.dataset.labels(), self.dataset.encoder.schema)

    def _leave_reader(self) -> None:
        """End the stream, as nobody reads its answers any more; silently if nothing is saved."""
        if not self.saving.is_asked:
            raise BrokenPipeError
        if self.answers is not None:
            self.answers.abandon()
        self.ending.reader_left = True
        watch.end_stream(signal.SIGPIPE)

    # The end --------------------------------------------------------------------------------------

    @property
    def forgotten(self) -> int:
        """Rows that this process has forgotten before their labels came."""
        return self.service.remembered.forgotten - self._forgotten_before

    def document(self, data: DataRecord) -> RunDocument:
        """The report of the stream; `data` is what was read of it."""
        record = self.service.record(self.ending.by)
        labels = self.service.labels()
        names = None
        if data.label_names:
            names = data.label_names[: len(labels)]
        data = structs.replace(
            data,
            rounds=record.rounds,
            features=self.saving.features,
            labels=labels,
            label_names=names,
        )
        return RunDocument(
            version=__version__,
            data=data,
            runs=[record],
            load_seconds=0.0,
            shuffled=False,
            certified=None,
        )
