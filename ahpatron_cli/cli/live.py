"""`run` on a live stream: reading, answering, saving, and all the ways in which it can end."""

from __future__ import annotations

import signal
import time
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs, to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.atomic import exists, is_file, open_at, write_atomically
from ahpatron_cli.cli.run_job import RunJob
from ahpatron_cli.cli.run_output import check_output, export, print_documents, rate_code
from ahpatron_cli.cli.run_progress import RunProgress
from ahpatron_cli.cli.session import no_learner, warn_about
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.core.errors import ParameterError, StateError
from ahpatron_cli.core.registry import find_learner
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Preparation, StreamedRows, stream
from ahpatron_cli.data.faults import FaultyRow
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.live.monitor import FIGURES_EVERY, AppendedLines, Monitor, timestamp
from ahpatron_cli.live.service import AnsweredRows, Refusal, Service
from ahpatron_cli.live.state_file import StateFile
from ahpatron_cli.model_file import Model, OptionValue, damaged, to_bytes
from ahpatron_cli.output.answers import AnswerWriter
from ahpatron_cli.output.predictions import STDOUT, label_names, open_output
from ahpatron_cli.records import DataRecord, RunDocument
from ahpatron_cli.runner import Run, begin, with_sigma
from ahpatron_cli.settings import all_options, listed
from ahpatron_cli.signals import deferred, watch

if TYPE_CHECKING:
    from ahpatron_cli.settings import RowFormat, RunSettings

T = TypeVar("T")
SHOWN_FAULTS = 10
"""Number of faults that are reported one by one; then those at powers of ten."""


@dataclass
class LiveSession:
    """A run of one learner on a live stream."""

    job: RunJob
    settings: RunSettings
    stderr: Stderr
    state: StateFile | None
    options: dict[str, OptionValue]
    """The options that decide the rounds; a state keeps them."""
    ended_by: str | None = field(default=None, init=False)
    """Name of the signal that ended the stream, or "fault"."""
    fault: UserError | None = field(default=None, init=False)
    """What ended the stream, if it was a fault."""
    reader_left: bool = field(default=False, init=False)
    """Whether the reader of the answers has closed the pipe."""
    document: RunDocument | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        live = self.settings.live
        self._path = self.job.paths[0]
        self._skips = live.on_fault == "skip"
        self._rejects: AppendedLines | None = None
        self._faulty: list[FaultyRow] = []
        """Faulty rows that were not reached yet, in the order of their lines."""
        self._reported = 0
        """Faults reported so far in this process."""
        self._service: Service | None = None
        self._dataset: StreamedRows | None = None
        self._writer: AnswerWriter | None = None
        self._is_reading = False
        """Whether the reader waits for rows, so that all rows before were answered."""
        self._lines_before = 0
        """Input lines behind the state when this process began."""
        self._saved_round = 0
        self._drifts = 0
        self._mistakes = 0
        """Drifts and mistakes that the log has taken note of."""
        self._progress = RunProgress(self.stderr)
        self._monitor = self.make_monitor()

    def make_monitor(self) -> Monitor:
        """What tells others how the service is doing."""
        live = self.settings.live
        return Monitor(
            live.log,
            live.prometheus,
            show=self.stderr.answer,
            warn=self.stderr.warn,
        )

    # The stream -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until the stream ends, by itself, by a signal, or by a fault."""
        with ExitStack() as opened:
            opened.callback(self._monitor.close)
            opened.enter_context(self.watched())
            source = opened.enter_context(self.open_source())
            self._begin(source, opened)
            with self._shown(source):
                self._read()
            self.ended_by = self.end()
            if self.fault is not None:
                self.ended_by = "fault"
            self._finish()

    def watched(self) -> AbstractContextManager[None]:
        """Context manager of the stream: what signals do, and what is done each minute."""
        return watch.ending_stream(self._every_minute, self._answer_faults)

    def end(self) -> str | None:
        """Name of the signal that has ended the stream; None if none did."""
        return watch.ended_by

    def open_source(self) -> Source:
        """Where the rows come from."""
        return open_source(self._path)

    def _begin(self, source: Source, opened: ExitStack) -> None:
        """Read the first rows, and make or restore the learner."""
        continued = None
        model = self.state.model if self.state else None
        if model is not None:
            continued = replace(model.encoder, refuses_new_features=False)
        dataset = stream(
            source,
            self._preparation(),
            continued,
            on_wait=self._note_waiting,
            on_faulty_row=self._note_faulty if self._skips else None,
        )
        self._dataset = dataset
        self._open_outputs(dataset, opened)
        live = self.settings.live
        every = []
        if self.state is not None:
            every.append(self.state.every)
        if self._monitor.is_needed:
            every.append(self._figures_every)
        service = Service(
            self._first_run(dataset),
            dataset,
            pending=live.pending,
            every=every,
        )
        if model is not None and model.live is not None:
            try:
                service.restore(model.live)
            except StateError as error:
                raise damaged(str(error), model.path) from None
        if self.state is not None:
            self._check_savable(service)
        self._service = service
        self._begin_counting(service)

    def _preparation(self) -> Preparation:
        """How rows are prepared; the first ones are waited for only if options require it."""
        waits = any(setup.auto_sigma for setup in self.job.setups)
        return replace(
            self.job.preparation,
            may_lack_labels=True,
            has_late_labels=True,
            requires_rows=waits or self.job.preparation.requires_rows,
        )

    def _begin_counting(self, service: Service) -> None:
        """Note where the stream continues, and say so."""
        self._lines_before = service.counts.lines
        self._saved_round = service.run.rounds
        self._monitor.learner = service.run.setup.learner
        recent = service.run.recent
        self._drifts = len(recent.drifts) if recent else 0
        if self.state is not None and self.state.model is not None:
            figures = service.figures()
            self.stderr.note(
                f"the stream continues after {figures.lines:,} lines: {figures.rounds:,} rounds, "
                f"{figures.mistakes:,} mistakes, {figures.pending:,} rows wait for their labels"
            )
        dataset = self._begun(self._dataset)
        self._monitor.event(
            "start",
            version=__version__,
            data=dataset.name,
            state=self.state.path if self.state else None,
            learner=service.run.setup.learner,
            **to_builtins(service.figures()),
        )

    def _first_run(self, dataset: StreamedRows) -> Run:
        """The learner: that of the state, or a new one."""
        options = self.job.options
        if self.state is not None and self.state.model is not None:
            run = self.state.model.run(dataset.name, options, same_file=True)
            run.appearing = dataset.encoder.labels.appearing
            return run
        (setup,) = with_sigma(self.job.setups, dataset, self.stderr.note)
        try:
            return begin(dataset, setup, options, repeat=0, horizon=None)
        except ParameterError as error:
            raise no_learner([error]) from None

    @staticmethod
    def _check_savable(service: Service) -> None:
        """Refuse a learner that cannot be saved, before the first round."""
        try:
            service.run.player.state_dict()
        except StateError as error:
            raise usage(str(error)) from None

    def _note_faulty(self, row: FaultyRow) -> None:
        """Note a faulty row; a label that does not fit is found later than a number."""
        insort(self._faulty, row, key=attrgetter("line"))

    def _note_waiting(self, rows: int) -> None:
        warm_up = self.job.preparation.data.warm_up
        text = f"waiting for the first {warm_up:,} rows with labels: {rows:,} have arrived"
        self.stderr.note(text)

    @contextmanager
    def _shown(self, source: Source) -> Iterator[None]:
        """Context manager: show the progress line."""
        to_stdout = self.settings.output.predictions == STDOUT
        name = Path(source.name).name
        with self.stderr.progress(source.size, name, beside_rows=to_stdout) as draw:
            self._progress.begin(draw, source)
            yield

    def _read(self) -> None:
        """Answer and learn all rows."""
        dataset = self._begun(self._dataset)
        service = self._begun(self._service)
        try:
            self._is_reading = True
            for batch in dataset.batches(first_round=service.run.rounds):
                self._is_reading = False
                for piece in self._pieces(batch):
                    self._take(piece)
                self._is_reading = True
            self._answer_faults()
        except BrokenPipeError:
            self._leave_reader()
        except UserError as error:
            self.fault = error
        self._is_reading = False

    @staticmethod
    def _begun(one: T | None) -> T:
        assert one is not None, "the stream has begun"
        return one

    def _pieces(self, batch: Batch) -> Iterator[Batch | FaultyRow]:
        """Rows and faulty rows in the order of their lines."""
        start = 0
        lines = batch.lines
        while self._faulty and self._faulty[0].line < lines[-1]:
            faulty = self._faulty.pop(0)
            stop = int(lines.searchsorted(faulty.line))
            if stop > start:
                yield batch.part(slice(start, stop))
            yield faulty
            start = stop
        yield batch.part(slice(start, len(lines)))

    def _take(self, piece: Batch | FaultyRow) -> None:
        """Answer a piece of the stream, and do what is due after each answer."""
        service = self._begun(self._service)
        if isinstance(piece, FaultyRow):
            self._leave_out(Refusal(piece.line, None, piece.error, raw=piece.raw))
            return
        for found in service.answers(piece):
            if isinstance(found, Refusal):
                self._leave_out(found)
            else:
                self.answered(found)

    def _answer_faults(self) -> None:
        """Answer faulty rows behind which no other rows have come yet."""
        if self._is_reading:
            while self._faulty:
                self._take(self._faulty.pop(0))

    def _count_lines(self, line: int) -> None:
        """Note that all lines up to this one are done."""
        service = self._begun(self._service)
        headers = self._begun(self._dataset).header_lines
        service.counts.lines = self._lines_before + line - headers

    # Answers --------------------------------------------------------------------------------------

    def answered(self, answers: AnsweredRows) -> None:
        """Write the answers to some rows, and do what is due."""
        self._count_lines(int(answers.lines[-1]))
        if self._writer is not None:
            self._writer.write(answers, self._names())
        self._progress.show(self._begun(self._service).run)
        self._report_changes()
        self._act_if_due()

    def _names(self) -> list[str]:
        dataset = self._begun(self._dataset)
        return label_names(dataset.labels(), dataset.encoder.schema)

    def _report_changes(self) -> None:
        """Log drifts and resets."""
        service = self._begun(self._service)
        run = service.run
        if run.recent is not None:
            for number in run.recent.drifts[self._drifts :]:
                self._monitor.event("drift", round=number, mistake_rate=run.recent.rate)
            self._drifts = len(run.recent.drifts)
        if self._monitor.is_needed and run.mistakes != self._mistakes:
            self._mistakes = run.mistakes
            new = service.new_resets()
            if new:
                self._monitor.event("reset", round=run.rounds, resets=new)

    def _act_if_due(self) -> None:
        """Show figures and save, at multiples of their numbers of rounds."""
        service = self._begun(self._service)
        rounds = service.run.rounds
        if rounds == self._saved_round:
            return
        if self._monitor.is_needed and rounds % self._figures_every == 0:
            self._show_figures()
        if self.state is not None and rounds % self.state.every == 0:
            self._saved_round = rounds
            self._save()

    @property
    def _figures_every(self) -> int:
        return self.settings.output.window or FIGURES_EVERY

    def _show_figures(self, *, last: bool = False) -> None:
        service = self._begun(self._service)
        saved_at = self.state.saved_at if self.state else None
        self._monitor.figures(service.figures(), saved_at=saved_at, last=last)

    def _every_minute(self, asked: bool) -> None:
        """Show the counts; once a minute, not if they were asked for, also save."""
        self._progress.print_counts(asked)
        if self._service is None or asked:
            return
        if self._monitor.is_needed:
            self._show_figures()
        if self._is_reading:
            self._save()

    # Faults ---------------------------------------------------------------------------------------

    def _leave_out(self, refusal: Refusal) -> None:
        """Skip a faulty line, or end the stream."""
        service = self._begun(self._service)
        error = refusal.error
        if not self._skips:
            raise error
        service.leave_out(refusal)
        self._reported += 1
        place = str(error.place) if error.place else None
        is_power = self._reported == 10 ** (len(str(self._reported)) - 1)
        if self._reported <= SHOWN_FAULTS or is_power:
            text = f"{place}: {error.problem}" if place else error.problem
            count = f" ({self._reported:,} lines so far)" if self._reported > SHOWN_FAULTS else ""
            self.stderr.warn(f"left out: {text}{count}", timed=True)
        self._reject(refusal, place)
        self._monitor.event("fault", line=refusal.line, place=place, reason=error.problem)
        self._count_lines(refusal.line)
        if self._writer is not None:
            self._writer.refuse(refusal, self._names())

    def _reject(self, refusal: Refusal, place: str | None) -> None:
        """Write a line that is left out to --rejects."""
        if self._rejects is None:
            return
        raw = refusal.raw
        if raw is None:
            raw = self._begun(self._dataset).recent_line(refusal.line)
        document = {
            "time": timestamp(),
            "line": refusal.line,
            "place": place,
            "reason": refusal.error.problem,
            "raw": raw.decode("utf-8", "backslashreplace"),
        }
        try:
            self._rejects.add(document)
        except OSError as error:
            problem = f"the line cannot be written: {error.strerror or error}"
            raise UserError(
                problem, code=ExitCode.IO_ERROR, place=Place(self._rejects.path)
            ) from None

    def _leave_reader(self) -> None:
        """Go on without answers: nobody reads them any more."""
        if self.state is None and self.settings.models.save is None:
            raise BrokenPipeError
        if self._writer is not None:
            self._writer.abandon()
        self.reader_left = True
        watch.end_stream(signal.SIGPIPE)

    # Saving ---------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save the state; if that fails, say so and go on: it is tried again."""
        try:
            self._save_state()
        except UserError as error:
            assert self.state is not None
            self.log_not_saved(self.state, error)

    def _save_state(self) -> None:
        """Save the state if anything has happened since it was saved."""
        service = self._begun(self._service)
        if self.state is None:
            return
        rounds = service.run.rounds
        lines = service.counts.lines
        if not self.state.is_behind((rounds, lines)):
            return
        model = service.model(self._features(), self.options)
        self.write_state(self.state, model, (rounds, lines))

    def write_state(self, state: StateFile, model: Model, progress: tuple[int, int]) -> None:
        """Write the state, of which `progress` has the rounds and the lines, and log it."""
        started = time.perf_counter()
        state.save(model, progress=progress)
        self.log_saved(state, progress, time.perf_counter() - started)

    def log_saved(self, state: StateFile, progress: tuple[int, int], seconds: float) -> None:
        """Log that the state was saved."""
        rounds, lines = progress
        self._monitor.event(
            "saved", path=state.path, rounds=rounds, lines=lines, seconds=round(seconds, 3)
        )

    def log_not_saved(self, state: StateFile, error: UserError) -> None:
        """Say and log that the state could not be saved."""
        self.stderr.warn(
            f"the state is not saved, and saving it is tried again: {error}", timed=True
        )
        self._monitor.event("not saved", path=state.path, reason=error.problem)

    def _features(self) -> int:
        """Number of features that were seen, also by earlier processes."""
        features = self._begun(self._dataset).info.features
        if self.state is not None and self.state.model is not None:
            features = max(features, self.state.model.header.features)
        return features

    # Outputs and the end --------------------------------------------------------------------------

    def _open_outputs(self, dataset: StreamedRows, opened: ExitStack) -> None:
        """Open the files of answers and of rejected lines."""
        rejects = self.settings.live.rejects
        if rejects is not None:
            self._rejects = _appended(rejects)
            opened.callback(self._rejects.close)
        self._writer = self.open_answers(dataset, opened)

    def open_answers(self, dataset: StreamedRows, opened: ExitStack) -> AnswerWriter | None:
        """Where the answers go; None if nobody asked for them."""
        path = self.settings.output.predictions
        if path is None:
            return None
        size = 0
        if path == STDOUT:
            output = opened.enter_context(open_output(path))
        else:
            if self.state is not None and self.state.model is not None and Path(path).exists():
                size = Path(path).stat().st_size
            output = opened.enter_context(open_at(path, size))
        schema = dataset.encoder.schema
        return AnswerWriter(
            output,
            self._answer_format(dataset),
            id_name=schema.id if schema else None,
            with_probabilities=self._with_probabilities,
            continued=size > 0,
        )

    def _answer_format(self, dataset: StreamedRows) -> RowFormat:
        """CSV or JSON lines: as asked for, by the suffix, or as the input."""
        path = self.settings.output.predictions or ""
        if self.settings.live.answers is not None:
            return self.settings.live.answers
        if path.endswith(".jsonl"):
            return "jsonl"
        return dataset.format

    @property
    def _with_probabilities(self) -> bool:
        return self.settings.operating_point.probability

    def _finish(self) -> None:
        """Save the state and the model, and make the report."""
        service = self._begun(self._service)
        dataset = self._begun(self._dataset)
        failed: UserError | None = None
        try:
            self._save_state()
        except UserError as error:
            failed = error
            self._monitor.event("not saved", reason=error.problem)
        if self.settings.models.save is not None:
            model = service.model(self._features(), self.options)
            write_atomically(self.settings.models.save, to_bytes(model))
        read = dataset.finish(requires_labels=False)
        result = service.run.result()
        warn_about(
            self.job,
            dataset,
            read=read,
            setups=[service.run.setup],
            results=[result],
            stderr=self.stderr,
        )
        self.document = self._document_of(read.record)
        if self._monitor.is_needed:
            self._show_figures(last=True)
        reason = self.fault.problem if self.fault else None
        self._monitor.event(
            "ended", ended_by=self.ended_by, reason=reason, **to_builtins(service.figures())
        )
        if failed is not None and self.fault is None:
            self.fault = failed

    def _document_of(self, data: DataRecord) -> RunDocument:
        """The report of the stream; `data` is what was read of it."""
        service = self._begun(self._service)
        record = service.record(self.ended_by)
        labels = service.labels()
        names = None
        if data.label_names:
            names = data.label_names[: len(labels)]
        return RunDocument(
            version=__version__,
            data=structs.replace(data, rounds=record.rounds, labels=labels, label_names=names),
            runs=[record],
            load_seconds=0.0,
            shuffled=False,
            certified=None,
        )

    def exit_code(self) -> ExitCode:
        """The exit code; a fault that ended the stream is raised."""
        assert self.document is not None
        (record,) = self.document.runs
        if self.reader_left:
            self.stderr.note("the reader of the answers closed the pipe; all else is written")
            return ExitCode.BROKEN_PIPE
        if self.fault is not None:
            raise self.fault
        if self.ended_by is not None:
            rows = record.rounds - (record.late_labels or 0) + record.unlabelled
            self.stderr.note(f"ended by {self.ended_by} after {rows:,} rows; all is written")
            return ExitCode(128 + signal.Signals[self.ended_by])
        return rate_code([self.document], self.settings.live.max_rate, self.stderr)


def _appended(path: str) -> AppendedLines:
    """A file to which lines are appended; a UserError if it cannot be opened."""
    try:
        return AppendedLines(path)
    except OSError as error:
        problem = f"the output cannot be created: {error.strerror or error}"
        raise UserError(problem, code=ExitCode.CANNOT_CREATE, place=Place(path)) from None


# The command --------------------------------------------------------------------------------------

_OF_LIVE = ("state", "answers", "on_fault", "rejects", "pending", "log", "prometheus")
"""Options that make a run on a pipe a service."""


def is_live(paths: Sequence[str]) -> bool:
    """Whether the only input is a live stream: standard input, a pipe or a device."""
    return len(paths) == 1 and not is_regular(paths[0])


def is_regular(path: str) -> bool:
    """Whether a path is a file, which can be read again; or is absent, which is reported later."""
    return path != "-" and (is_file(path) or not exists(path))


def wants_service(settings: RunSettings) -> bool:
    """Whether options ask for what only a service does."""
    asked = settings.given.intersection(_OF_LIVE)
    return bool(asked) or settings.tables.id is not None


def check_live(settings: RunSettings, paths: Sequence[str]) -> None:
    """Refuse options of live streams for files, and what a service cannot do."""
    options = all_options(type(settings))
    asked = [options[name].flag for name in _OF_LIVE if name in settings.given]
    if asked and not is_live(paths):
        hint = "send the file through a pipe: `cat FILE | ahpatron run - …`"
        if asked == ["--state"]:
            hint += "; for a file, --checkpoint continues a run that was interrupted"
        raise usage(f"{asked[0]} is for live streams: -, or one named pipe", hint)
    if settings.models.checkpoint and not all(map(is_regular, paths)):
        problem = "--checkpoint reads the rows again, which a pipe does not have"
        raise usage(problem, "--state FILE saves a live stream, whose next rows are new rows")
    if settings.live.rejects and settings.live.on_fault != "skip":
        raise usage("--rejects requires --on-fault skip")
    if asked and settings.order.permutes:
        raise usage(f"{asked[0]} requires one pass in the order of the rows")


def run_live(
    job: RunJob, settings: RunSettings, options: dict[str, OptionValue], stderr: Stderr
) -> ExitCode:
    """Run one learner on a live stream, and write what remains at its end."""
    if len(job.setups) > 1:
        raise usage("a live stream with these options requires one learner", "use one -l")
    output = settings.output
    live = settings.live
    if output.predictions is None and (live.state or live.answers):
        output = replace(output, predictions=STDOUT)
    settings = replace(settings, output=output)
    check_output(settings, job.paths, is_service=True)
    with ExitStack() as opened:
        state = opened_state(job, settings, options, opened)
        job, options = continued(job, options, state)
        session = LiveSession(job, settings, stderr, state=state, options=options)
        session.run()
        assert session.document is not None
        with deferred():
            export(output, [session.document], [])
        print_documents(output, [session.document], stderr)
        return session.exit_code()


def opened_state(
    job: RunJob, settings: RunSettings, options: dict[str, OptionValue], opened: ExitStack
) -> StateFile | None:
    """The file of --state, locked, whose options agree with those given; None without --state."""
    path = settings.live.state
    if path is None:
        return None
    if len(job.setups) > 1:
        raise usage("a live stream with these options requires one learner", "use one -l")
    state = StateFile(path, job.setups[0].source, settings.models.save_every)
    opened.enter_context(state)
    if state.model is not None:
        _check_options(state.model, settings, options)
    return state


def continued(
    job: RunJob, options: dict[str, OptionValue], state: StateFile | None
) -> tuple[RunJob, dict[str, OptionValue]]:
    """Job and options of a live stream: those of the state, if there is one."""
    if state is None or state.model is None:
        return job, options
    return replace(job, setups=[state.model.setup]), state.model.header.options


def _check_options(model: Model, settings: RunSettings, options: dict[str, OptionValue]) -> None:
    """Refuse options that are given and differ from those with which the state was made."""
    header = model.header
    known = {**header.params, **header.kernel_params}
    changed = []
    for name, option in all_options(type(settings)).items():
        if name not in settings.given or option.belongs_to == "call":
            continue
        now = options.get(option.saved_as)
        before = header.options.get(option.saved_as)
        if name == "learner":
            now = [find_learner(learner).name for learner in settings.learning.learner]
            before = [header.learner]
        if before is None and str(now) == str(known.get(name)):
            continue
        if now != before:
            changed.append(option.flag)
    if changed:
        raise UserError(
            f"the state was made with other values of {listed(changed)}",
            code=ExitCode.USAGE,
            place=Place(model.path),
            hint="leave them out to go on with those of the state, or begin another state",
        )
