"""The live session behind HTTP: its rows are requests, and its figures are also on the page."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ahpatron_cli.cli.live import FinishedStream, LiveSession
from ahpatron_cli.cli.live_saving import SavingBeside, released
from ahpatron_cli.cli.server.exchange import NAME, Exchange, RequestAnswers
from ahpatron_cli.cli.server.history import History
from ahpatron_cli.data.source import Source
from ahpatron_cli.live.monitor import Listener, exposition
from ahpatron_cli.output.formats import json_text
from ahpatron_cli.output.inspect_text import model_document
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.cli.live_stream import LiveStream
    from ahpatron_cli.data.batch import Reader
    from ahpatron_cli.data.dataset import StreamedRows
    from ahpatron_cli.live.service import AnsweredRows, Service


@dataclass
class ServedSession(LiveSession):
    """A live session whose rows are requests.

    The lock of the exchange is held by this session's thread, except while it waits for rows: then
    requests can look at the learner.
    """

    exchange: Exchange = field(kw_only=True)
    on_start: Callable[[], None] = field(kw_only=True)
    """Has the server take requests, once signals are handled."""
    on_stop: Callable[[], None] = field(kw_only=True)
    """Has the server close the exchange; it is called by a signal handler."""

    def __post_init__(self) -> None:
        self.history = History()
        self.asked_by: str | None = None
        """Name of the signal that asked to stop."""
        super().__post_init__()

    def run(self) -> FinishedStream:
        """Run until the exchange is closed and all its lines are answered."""
        with self.exchange.lock:
            return super().run()

    def end(self) -> str | None:
        return self.asked_by

    @property
    def first_rows(self) -> int:
        """Number of rows with labels that the learner still has to see before its first answer."""
        preparation = self.job.stream_preparation
        if self.stream is not None or self.beginning.model is not None or not preparation.waits:
            return 0
        return preparation.data.warm_up

    # In place of files and signals ----------------------------------------------------------------

    def watched(self) -> AbstractContextManager[None]:
        return watch.ending_stream(
            self.every_minute,
            self.answer_faults,
            waiting=partial(released, self.exchange.lock),
            on_signal=self._on_signal,
        )

    def _on_signal(self, number: int) -> None:
        """Finish the requests and stop; SIGHUP is only noted."""
        name = signal.Signals(number).name
        if number == signal.SIGHUP:
            self.monitor.event("ignored", signal=name)
            self.stderr.note("SIGHUP is ignored; SIGTERM stops the server")
            return
        self.asked_by = name
        raise_on_signals()  # a second signal ends at once
        self.on_stop()

    def open_source(self) -> Source:
        self.on_start()
        return Source(self.exchange.lines, NAME, closes=True)

    def open_answers(self, reader: Reader, opened: ExitStack) -> RequestAnswers:
        return RequestAnswers(
            self.exchange,
            id_name=reader.schema.id if reader.schema else None,
            with_probabilities=self.settings.operating_point.probability,
        )

    def listener(self) -> Listener:
        return self.history.note_event

    def make_saving(self, service: Service, dataset: StreamedRows) -> SavingBeside:
        return SavingBeside(
            service,
            dataset.info,
            state=self.beginning.state,
            save_to=self.settings.models.save,
            options=self.beginning.options,
            monitor=self.monitor,
            stderr=self.stderr,
            lock=self.exchange.lock,
        )

    def note_answers(self, stream: LiveStream, answers: AnsweredRows) -> None:
        self.history.note_answers(stream.service.run, answers, stream.names())

    # What requests see ----------------------------------------------------------------------------

    def exposition(self, stream: LiveStream) -> str:
        """The figures in the text format of Prometheus."""
        service = stream.service
        learner = service.run.setup.learner
        return exposition(service.figures(), learner, saved_at=stream.saving.saved_at)

    def description(self, stream: LiveStream) -> bytes:
        """The model as `inspect --json` shows it."""
        state = self.beginning.state
        path = "" if state is None else state.path
        document = model_document(
            stream.saving.model(), stream.service.run, path=path, written=None
        )
        return json_text(document).encode()
