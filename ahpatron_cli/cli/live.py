"""`run` on a live stream: where rows come from, where answers go, and what is left at the end."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ahpatron_cli.atomic import open_at
from ahpatron_cli.cli.ending import Ending
from ahpatron_cli.cli.live_beginning import Beginning, beginning_of, continued
from ahpatron_cli.cli.live_faults import FaultyLines, FirstFaults
from ahpatron_cli.cli.live_figures import LiveFigures
from ahpatron_cli.cli.live_saving import Saving
from ahpatron_cli.cli.live_stream import LiveStream
from ahpatron_cli.cli.run_job import RunJob
from ahpatron_cli.cli.run_output import check_output, curves_of, export, print_documents
from ahpatron_cli.cli.run_progress import RunProgress
from ahpatron_cli.cli.session import warn_about
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.data.batch import Reader
from ahpatron_cli.data.dataset import StreamedRows
from ahpatron_cli.data.opening import stream_of
from ahpatron_cli.data.readers import reader_of
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import ExitCode, NoRowsError
from ahpatron_cli.live.monitor import FIGURES_EVERY, AppendedLines, Listener, Monitor
from ahpatron_cli.live.service import AnsweredRows, Service
from ahpatron_cli.model_file import OptionValue
from ahpatron_cli.number_text import counted
from ahpatron_cli.output.answers import AnswerWriter, header_of
from ahpatron_cli.output.predictions import STDOUT, open_output
from ahpatron_cli.records import Curve, RunDocument
from ahpatron_cli.signals import StreamEnded, deferred, watch

if TYPE_CHECKING:
    from ahpatron_cli.settings import RowFormat, RunSettings


class FinishedStream(NamedTuple):
    """A live stream that has ended."""

    document: RunDocument
    ending: Ending
    curves: list[Curve]
    """The learning curve, if it is asked for."""


@dataclass
class LiveSession:
    """A run of one learner on a live stream, from its options to its report."""

    job: RunJob
    settings: RunSettings
    stderr: Stderr
    beginning: Beginning

    def __post_init__(self) -> None:
        self.progress = RunProgress(self.stderr)
        live = self.settings.live
        self.monitor = Monitor(
            live.log,
            live.prometheus,
            show=self.stderr.answer,
            warn=self.stderr.warn,
            listener=self.listener(),
        )
        """What tells others how the service is doing."""
        self.first_faults: FirstFaults | None = None
        """The faulty lines before the first row."""
        self.stream: LiveStream | None = None
        """The stream, once it has begun."""

    def run(self) -> FinishedStream:
        """Run until the stream ends, by itself, by a signal, or by a fault."""
        with ExitStack() as opened:
            opened.callback(self.monitor.close)
            opened.enter_context(self.watched())
            source = opened.enter_context(self.open_source())
            begun = self._begin(source, opened)
            self.stream = begun
            to_stdout = self.settings.output.predictions == STDOUT
            with self.progress.shown(source, beside_rows=to_stdout):
                begun.read()
            begun.ending.signal = self.end()
            return self._finish(begun)

    # What a server does in another way ------------------------------------------------------------

    def listener(self) -> Listener | None:
        """What listens to events, beside those who read the log."""
        return None

    def watched(self) -> AbstractContextManager[None]:
        """Context manager of the stream: what signals do, and what is done each minute."""
        return watch.ending_stream(self.every_minute, self.answer_faults)

    def end(self) -> str | None:
        """Name of the signal that has ended the stream; None if none did."""
        return watch.ended_by

    def open_source(self) -> Source:
        """Where the rows come from."""
        path = self.job.paths[0]
        self.progress.note_terminal(path)
        return open_source(path)

    def open_answers(self, reader: Reader, opened: ExitStack) -> AnswerWriter | None:
        """Where the answers go; None if nobody asked for them."""
        path = self.settings.output.predictions
        if path is None:
            return None
        header: list[str] = []
        format = _answer_format(self.settings, reader)
        if path == STDOUT:
            output = opened.enter_context(open_output(path))
        else:
            size = 0
            if self.beginning.continues_state and Path(path).exists():
                size = Path(path).stat().st_size
                if format == "csv":
                    header = header_of(path)
            output = opened.enter_context(open_at(path, size))
        return AnswerWriter(
            output,
            format,
            id_name=reader.schema.id if reader.schema else None,
            with_probabilities=self.settings.operating_point.probability,
            continued=header,
        )

    def note_answers(self, stream: LiveStream, answers: AnsweredRows) -> None:
        """Note answers that were given, and their rows learned."""

    def make_saving(self, service: Service, dataset: StreamedRows) -> Saving:
        """What saves the service."""
        return Saving(
            service,
            dataset.info,
            state=self.beginning.state,
            save_to=self.settings.models.save,
            options=self.beginning.options,
            monitor=self.monitor,
            stderr=self.stderr,
        )

    # While it waits -------------------------------------------------------------------------------

    def every_minute(self, asked: bool) -> None:
        """Show the counts; once a minute, not if they were asked for, also save."""
        self.progress.print_counts(asked)
        if self.stream is not None and not asked:
            self.stream.every_minute()

    def answer_faults(self) -> None:
        """Answer faulty rows behind which no other rows have come yet."""
        if self.stream is not None:
            self.stream.answer_faults()
        elif self.first_faults is not None:
            self.first_faults.answer()

    # The beginning --------------------------------------------------------------------------------

    def _begin(self, source: Source, opened: ExitStack) -> LiveStream:
        """Read the first rows, and make or restore the learner."""
        skips = self.settings.live.on_fault == "skip"
        faulty = self._faulty_lines(opened)
        preparation = replace(self.job.stream_preparation, has_late_labels=True)
        reader = reader_of(
            source,
            preparation,
            self.beginning.encoder,
            on_wait=partial(self.progress.note_waiting, self.job.preparation.data.warm_up),
            on_faulty_row=faulty.note if skips else None,
        )
        first_faults = FirstFaults(faulty, reader, partial(self.open_answers, reader, opened))
        self.first_faults = first_faults
        try:
            dataset = stream_of(reader, preparation, self.beginning.encoder)
        except (NoRowsError, StreamEnded):
            first_faults.answer()
            faulty.report_rest()
            raise
        if first_faults.answers is not None:
            first_faults.answers.know_labels(may_appear=dataset.encoder.labels.may_appear)
        begun = self._stream(dataset, first_faults.answers, faulty=faulty, skips=skips)
        for refusal in first_faults.refused:
            begun.note_refused(refusal)
        return begun

    def _stream(
        self,
        dataset: StreamedRows,
        answers: AnswerWriter | None,
        *,
        faulty: FaultyLines,
        skips: bool,
    ) -> LiveStream:
        """The stream that has begun, with its service."""
        figures_every = self.settings.output.window or FIGURES_EVERY
        service = self._service(dataset, figures_every)
        saving = self.make_saving(service, dataset)
        saving.check()
        figures = LiveFigures(self.monitor, service, saving, every=figures_every)
        self._note_continuing(service)
        figures.log_start()
        return LiveStream(
            dataset,
            service,
            answers=answers,
            faulty=faulty,
            skips=skips,
            saving=saving,
            figures=figures,
            progress=self.progress,
            on_answers=self.note_answers,
        )

    def _faulty_lines(self, opened: ExitStack) -> FaultyLines:
        """The faulty lines that are left out, with the file of --rejects if there is one."""
        path = self.settings.live.rejects
        rejects = None
        if path is not None:
            rejects = AppendedLines(path)
            opened.callback(rejects.close)
        return FaultyLines(self.stderr, self.monitor, rejects)

    def _service(self, dataset: StreamedRows, figures_every: int) -> Service:
        """The service, which stops at rounds at which something is due."""
        every = []
        if self.beginning.state is not None:
            every.append(self.beginning.state.every)
        if self.monitor.is_needed:
            every.append(figures_every)
        service = Service(
            self.beginning.first_run(self.job, dataset, self.stderr.note),
            dataset,
            pending=self.settings.live.pending,
            every=every,
        )
        self.beginning.restore(service)
        return service

    def _note_continuing(self, service: Service) -> None:
        """Say where the stream goes on."""
        if self.beginning.model is None:
            return
        figures = service.figures()
        self.stderr.note(
            f"the stream continues after {counted(figures.lines, 'line')}: "
            f"{counted(figures.rounds, 'round')}, {counted(figures.mistakes, 'mistake')}; "
            f"rows that wait for their labels: {figures.pending:,}"
        )

    # The end --------------------------------------------------------------------------------------

    def _finish(self, begun: LiveStream) -> FinishedStream:
        """Save the state and the model, and make the report."""
        begun.ending.not_saved = begun.saving.save_last()
        findings = begun.dataset.finish(requires_labels=False)
        run = begun.service.run
        result = run.result()
        warn_about(
            self.job,
            begun.dataset,
            findings=findings,
            setups=[run.setup],
            results=[result],
            stderr=self.stderr,
        )
        if begun.forgotten:
            rows = counted(begun.forgotten, "row")
            self.stderr.warn(f"forgotten before their labels came: {rows}; see --pending N")
        document = begun.document(findings.record)
        begun.figures.log_end(begun.ending)
        curves = []
        if self.job.options.curve:
            windowed = self.job.options.window > 0
            curves = curves_of(run.path, [result], names_path=False, windowed=windowed)
        return FinishedStream(document, begun.ending, curves)


def _answer_format(settings: RunSettings, reader: Reader) -> RowFormat:
    """CSV or JSON lines: as asked for, by the suffix, or as the input."""
    path = settings.output.predictions or ""
    if settings.live.answers is not None:
        return settings.live.answers
    if path.endswith(".jsonl"):
        return "jsonl"
    return reader.format


# The command --------------------------------------------------------------------------------------


def run_live(
    job: RunJob, settings: RunSettings, options: dict[str, OptionValue], stderr: Stderr
) -> ExitCode:
    """Run one learner on a live stream, and write what remains at its end."""
    output = settings.output
    live = settings.live
    if output.predictions is None and (live.state or live.answers):
        output = replace(output, predictions=STDOUT)
    settings = replace(settings, output=output)
    check_output(settings, job.paths)
    with ExitStack() as opened:
        beginning = beginning_of(job, settings, options=options, opened=opened)
        session = LiveSession(
            continued(job, beginning), settings, stderr=stderr, beginning=beginning
        )
        document, ending, curves = session.run()
        with deferred():
            export(output, [document], curves)
        print_documents(output, [document], stderr)
        return ending.exit_code([document], max_rate=live.max_rate, stderr=stderr)
