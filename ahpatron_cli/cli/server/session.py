"""The live session behind HTTP: its rows are requests, and its figures are also on the page."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from ahpatron_cli.cli.live import LiveSession
from ahpatron_cli.cli.server.exchange import NAME, Exchange, RequestAnswers
from ahpatron_cli.cli.server.history import History, Shown
from ahpatron_cli.cli.server.page import ClassFigures, Relevance, View
from ahpatron_cli.data.source import Source
from ahpatron_cli.errors import UserError
from ahpatron_cli.explanation import column_relevances
from ahpatron_cli.live.monitor import Monitor, exposition, timestamp
from ahpatron_cli.model_file import to_bytes
from ahpatron_cli.output.formats import json_text
from ahpatron_cli.output.inspect_text import model_document
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.data.dataset import StreamedRows
    from ahpatron_cli.live.service import AnsweredRows
    from ahpatron_cli.live.state_file import StateFile
    from ahpatron_cli.model_file import Model

MOST_COLUMNS = 10
"""Number of relevant columns on the page."""
MOST_CLASSES = 20
"""Number of labels on the page: the most frequent ones."""


class PageMonitor(Monitor):
    """A monitor that also keeps what the page shows."""

    def __init__(self, history: History, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._history = history
        self.not_saved: str | None = None
        """Why the state could not be saved the last time."""

    @property
    def is_needed(self) -> bool:
        """The page is always there."""
        return True

    def event(self, name: str, **fields: Any) -> None:
        if name == "drift":
            self._history.note_event(fields["round"], "drift")
        elif name == "reset":
            self._history.note_event(fields["round"], "reset")
        elif name == "not saved":
            self.not_saved = str(fields["reason"])
        elif name == "saved":
            self.not_saved = None
        super().event(name, **fields)


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
    """Has the server finish its requests, and then close the exchange."""

    def __post_init__(self) -> None:
        self.history = History()
        self.asked_by: str | None = None
        """Name of the signal that asked to stop."""
        self._since = timestamp()
        self._writer_of_states = ThreadPoolExecutor(1, "state")
        self._writing: Future[None] | None = None
        super().__post_init__()

    def run(self) -> None:
        """Run until the exchange is closed and all its lines are answered."""
        with self.exchange.lock:
            super().run()
        self._writer_of_states.shutdown()

    def end(self) -> str | None:
        return self.asked_by

    # In place of files and signals ----------------------------------------------------------------

    def watched(self) -> AbstractContextManager[None]:
        return watch.ending_stream(
            self._every_minute,
            self._answer_faults,
            waiting=self._free,
            on_signal=self._on_signal,
        )

    @contextmanager
    def _free(self) -> Iterator[None]:
        """Context manager: the lock is free."""
        self.exchange.lock.release()
        try:
            yield
        finally:
            self.exchange.lock.acquire()

    def _on_signal(self, number: int) -> None:
        """Finish the requests and stop; SIGHUP is only noted."""
        name = signal.Signals(number).name
        if number == signal.SIGHUP:
            self._monitor.event("ignored", signal=name)
            self.stderr.note("SIGHUP is ignored; SIGTERM stops the server")
            return
        self.asked_by = name
        raise_on_signals()  # a second signal ends at once
        self.on_stop()

    def open_source(self) -> Source:
        self.on_start()
        return Source(self.exchange.lines, NAME, closes=True)

    def open_answers(self, dataset: StreamedRows, opened: ExitStack) -> RequestAnswers:
        schema = dataset.encoder.schema
        return RequestAnswers(
            self.exchange,
            id_name=schema.id if schema else None,
            with_probabilities=self._with_probabilities,
        )

    def make_monitor(self) -> PageMonitor:
        live = self.settings.live
        return PageMonitor(
            self.history,
            live.log,
            live.prometheus,
            show=self.stderr.answer,
            warn=self.stderr.warn,
        )

    # Saving ---------------------------------------------------------------------------------------

    def write_state(self, state: StateFile, model: Model, progress: tuple[int, int]) -> None:
        """Write a copy of the state while requests are answered; the last time, wait for it."""
        if self._writing is not None and not self._writing.done():
            if not self.exchange.is_closed:
                return  # it is still behind, and will be asked for again
            self._writing.result()
        if self.exchange.is_closed:
            super().write_state(state, model, progress)
            return
        started = time.perf_counter()
        content = to_bytes(model)

        def note(written: Future[None]) -> None:
            error = written.exception()
            with self.exchange.lock:
                if isinstance(error, UserError):
                    self.log_not_saved(state, error)
                else:
                    self.log_saved(state, progress, time.perf_counter() - started)

        self._writing = self._writer_of_states.submit(state.write, content, progress=progress)
        self._writing.add_done_callback(note)

    # What requests see ----------------------------------------------------------------------------

    def answered(self, answers: AnsweredRows) -> None:
        super().answered(answers)
        service = self._begun(self._service)
        recent = service.run.recent
        if recent is not None and service.run.rounds >= recent.window().rounds:
            self.history.note_rate(service.run.rounds, recent.rate)
        self._note_answers(answers)

    def _note_answers(self, answers: AnsweredRows) -> None:
        """Note the last of these answers for the page."""
        count = len(answers.lines)
        names = self._names()
        now = datetime.now().strftime("%H:%M:%S")
        for number in range(max(0, count - self.history.most_answers), count):
            guess = int(answers.given.chosen[number])
            label = answers.labels[number]
            scores = answers.given.scores[number]
            true = None
            if not np.isnan(label):
                true = int(label > 0) if scores.ndim == 0 else int(label)
            key = answers.lines[number] if answers.ids is None else answers.ids[number]
            self.history.answers.append(
                Shown(
                    time=now,
                    key=str(key),
                    prediction=names[guess],
                    score=f"{float(np.max(scores)):.3g}",
                    label="" if true is None else names[true],
                    is_mistake=true is not None and true != guess,
                )
            )

    @property
    def has_begun(self) -> bool:
        """Whether the learner is there: without a state, it begins with the first row."""
        return self._service is not None

    def exposition(self) -> str:
        """The figures in the text format of Prometheus; empty before the first row."""
        if self._service is None:
            return ""
        saved_at = self.state.saved_at if self.state else None
        learner = self._service.run.setup.learner
        return exposition(self._service.figures(), learner, saved_at=saved_at)

    def description(self) -> bytes:
        """The model as `inspect --json` shows it."""
        service = self._begun(self._service)
        model = service.model(self._features(), self.options)
        path = self.state.path if self.state else ""
        document = model_document(model, service.run, path=path, written=None)
        return json_text(document).encode()

    def view(self) -> View:
        """What the page shows."""
        service = self._begun(self._service)
        run = service.run
        figures = service.figures()
        warnings = list(run.player.warnings())
        if isinstance(self._monitor, PageMonitor) and self._monitor.not_saved:
            warnings.append(f"the state could not be saved: {self._monitor.not_saved}")
        window = self.settings.output.window or 0
        dataset = self._begun(self._dataset)
        schema = dataset.encoder.schema
        details = [(name, _figure(value)) for name, value in _plain(figures)]
        return View(
            learner=run.setup.learner,
            since=self._since,
            state=self.state.path if self.state else None,
            warnings=warnings,
            window=window,
            window_rate=figures.recent_rate if run.rounds else None,
            rounds=run.rounds,
            mistake_rate=figures.mistake_rate if run.rounds else None,
            rows_per_second=self.history.rows_per_second,
            latency=self.history.latency,
            pending=figures.pending if schema is not None and schema.id else None,
            points=self.history.points,
            events=self.history.events,
            classes=_classes(run.player.tally.confusion, self._names()),
            relevances=[
                Relevance(one.column, one.relevance)
                for one in column_relevances(run.player, schema)[:MOST_COLUMNS]
            ],
            answers=self.history.answers,
            key=(schema.id if schema else None) or "line",
            details=details,
        )


def _plain(figures: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of figures that are numbers."""
    for name in figures.__struct_fields__:
        value = getattr(figures, name)
        if isinstance(value, int | float):
            yield name.replace("_", " "), value


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _classes(confusion: Any, names: Sequence[str]) -> list[ClassFigures]:
    """Precision and recall of the most frequent labels; rows of `confusion` are true labels."""
    rows = confusion.sum(axis=1)
    guesses = confusion.sum(axis=0)
    found = []
    for number, name in enumerate(names):
        right = int(confusion[number, number])
        guessed = int(guesses[number])
        true = int(rows[number])
        precision = right / guessed if guessed else None
        recall = right / true if true else None
        found.append(ClassFigures(name, true, precision, recall))
    found.sort(key=lambda one: -one.rows)
    return found[:MOST_CLASSES]
