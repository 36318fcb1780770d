"""A run of learners on one file after the other."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.answers import Answers
from ahpatron_cli.cli.ending import Ending
from ahpatron_cli.cli.run_job import RunJob
from ahpatron_cli.cli.run_output import curves_of
from ahpatron_cli.cli.run_progress import RunProgress
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset, Findings, RowsInMemory, StreamedRows
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.labels import NewLabelError
from ahpatron_cli.data.opening import load, stream
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import UserError, usage
from ahpatron_cli.output.predictions import PredictionWriter, label_names
from ahpatron_cli.records import Curve, RunDocument
from ahpatron_cli.runner import (
    Observer,
    Run,
    RunResult,
    Setup,
    begin,
    check_threshold,
    near_tie_warning,
    run_batches,
    run_parallel,
    run_pass,
    run_repeat,
    with_sigma,
)
from ahpatron_cli.signals import watch

if TYPE_CHECKING:
    from ahpatron_cli.checkpoints import SavedRun
    from ahpatron_cli.core.certificates import Certificate


@dataclass(frozen=True)
class _FinishedFile:
    """A file on which all learners have run."""

    path: str
    dataset: Dataset
    findings: Findings
    setups: Sequence[Setup]
    results: Sequence[RunResult]
    load_seconds: float


@dataclass
class FileSession:
    """A run of learners on one file after the other, with progress messages."""

    job: RunJob
    stderr: Stderr
    saved: SavedRun | None
    """Set if the run continues a model or is saved."""
    predictions: PredictionWriter | None
    keeps_results: bool
    """Whether anything but the predictions and the table is written."""
    documents: list[RunDocument] = field(default_factory=list, init=False)
    """The document of each file."""
    curves: list[Curve] = field(default_factory=list, init=False)
    """The learning curve of each learner on each file."""
    ending: Ending = field(default_factory=Ending, init=False)
    """What has ended the last stream before its time."""

    def __post_init__(self) -> None:
        self._continued: Encoder | None = None
        self._resumes = False
        if self.saved is None:
            return
        self._continued = self.saved.encoder
        if self.saved.model:
            self._resumes = True
            self.job = replace(self.job, setups=[self.saved.model.setup])

    def run(self) -> None:
        """Run on all files, or until a signal ends a stream."""
        for path in self.job.paths:
            self.documents.append(self._run_file(path))
            if self.ending.by:
                return

    def _run_file(self, path: str) -> RunDocument:
        """Run all learners and repeats on one file.

        A file is scanned for its labels first if outputs are written row by row, or if labels have
        weights. Otherwise the run assumes the labels of the first rows, and starts again if a later
        row has another label.
        """
        may_restart = not (self.saved or self.predictions or self.job.options.weights)
        try:
            finished = self._run_learners(path, may_restart=may_restart)
        except NewLabelError as found:
            if not may_restart:
                raise
            self.stderr.note(f"{found}: the run starts again with all labels of the file")
            finished = self._run_learners(path, may_restart=False)
        if self.job.options.curve:
            several = len(self.job.paths) > 1
            windowed = self.job.options.window > 0
            curves = curves_of(path, finished.results, names_path=several, windowed=windowed)
            self.curves += curves
        warn_about(
            self.job,
            finished.dataset,
            findings=finished.findings,
            setups=finished.setups,
            results=finished.results,
            stderr=self.stderr,
        )
        return self._report(finished)

    def _run_learners(self, path: str, *, may_restart: bool) -> _FinishedFile:
        """Open a file, let all learners run on it, and close it."""
        options = self.job.options
        started = time.perf_counter()
        self.stderr.prefix = f"{Path(path).name}: " if len(self.job.paths) > 1 else ""
        progress = RunProgress(self.stderr)
        with self._opened(path, progress) as source:
            dataset = self._read(source, progress, may_restart=may_restart)
            if isinstance(dataset, StreamedRows):
                dataset.ends_at_fault = source.waits
            load_seconds = time.perf_counter() - started
            horizon = self._horizon(dataset)
            runs = self._begin(dataset, horizon)
            setups = [run.setup for run in runs]
            passes = len(runs) * options.repeats if options.in_memory else None
            beside_rows = self.predictions is not None and self.predictions.to_stdout
            with progress.shown(source, passes=passes, beside_rows=beside_rows):
                results = self._learn(dataset, runs, progress)
            self.ending.signal = watch.ended_by
            if isinstance(dataset, StreamedRows):
                self.ending.fault = dataset.fault
            findings = dataset.finish(requires_labels=self.ending.fault is None)
        if not options.in_memory:  # reading alternated with learning: subtract the latter
            learning = sum(result.seconds for result in results)
            load_seconds = max(time.perf_counter() - started - learning, 0.0)
        return _FinishedFile(
            path=path,
            dataset=dataset,
            findings=findings,
            setups=setups,
            results=results,
            load_seconds=load_seconds,
        )

    # Reading --------------------------------------------------------------------------------------

    @contextmanager
    def _opened(self, path: str, progress: RunProgress) -> Iterator[Source]:
        """Context manager: the source of a file; if it is a stream, signals end it orderly."""
        progress.note_terminal(path)
        with ExitStack() as opened:
            if not self.job.options.in_memory:
                opened.enter_context(watch.ending_stream(progress.print_counts))
            yield opened.enter_context(open_source(path))

    def _read(self, source: Source, progress: RunProgress, *, may_restart: bool) -> Dataset:
        """The data set of a source: in memory, or a stream."""
        preparation = self.job.preparation
        if self.job.options.in_memory:
            return load(source, preparation, self._continued)
        return stream(
            source,
            self.job.stream_preparation,
            self._continued,
            on_wait=partial(progress.note_waiting, preparation.data.warm_up),
            may_restart=may_restart,
        )

    # Learning -------------------------------------------------------------------------------------

    def _horizon(self, dataset: Dataset) -> int | None:
        """The number of rounds, if it is known or a learner needs it."""
        if self._resumes:
            return None
        needed = any("horizon" in setup.kind.specs() for setup in self.job.setups)
        if not needed and not dataset.in_memory:
            return None
        return dataset.count_rounds()

    def _begin(self, dataset: Dataset, horizon: int | None) -> list[Run]:
        """The first pass of each learner that can run on this file; warns about the others."""
        options = self.job.options
        if options.threshold is not None:
            check_threshold(dataset.encoder.classes)
        if options.certify and dataset.encoder.classes:
            raise usage("--certify requires two classes", "--positive LABEL selects one of them")
        if self.saved and self.saved.model:
            run = self.saved.model.run(dataset.name, options)
            run.appearing = dataset.encoder.labels.appearing
            return [run]
        runs = list[Run]()
        faults = dict[str, ParameterError]()
        for setup in with_sigma(self.job.setups, dataset, self.stderr.note):
            try:
                runs.append(begin(dataset, setup, options, repeat=0, horizon=horizon))
            except ParameterError as error:
                faults[setup.learner] = error
        if not runs:
            raise no_learner(list(faults.values()))
        for learner, fault in faults.items():
            self.stderr.warn(f"{fault}; left out: {learner}")
        return runs

    def _learn(self, dataset: Dataset, runs: list[Run], progress: RunProgress) -> list[RunResult]:
        """Run all passes over one file and return their results; `runs` are the first ones."""
        options = self.job.options
        observers: list[Observer] = [progress.show]
        if self.predictions is not None:
            observers.append(partial(self._write_rounds, self.predictions, dataset))
        observers.append(progress.show_leader)
        if self.saved is not None:
            return self.saved.run(dataset, runs[0], options, observers=observers)
        if not isinstance(dataset, RowsInMemory):
            return run_batches(dataset.batches(), runs, observers)
        setups = [run.setup for run in runs]
        tasks = list(product(setups, range(options.repeats)))
        if options.jobs > 1 and len(tasks) > 1 and self.predictions is None:
            return run_parallel(dataset, tasks, options=options, show=progress.show_passes)
        begun = list(runs)
        runs.clear()  # a learner that has finished is let go
        results = []
        for setup in setups:
            results.append(run_pass(dataset, begun.pop(0), observers))
            for repeat in range(1, options.repeats):
                result = run_repeat(dataset, setup, options, repeat=repeat, observers=observers)
                results.append(result)
        return results

    def _write_rounds(
        self, writer: PredictionWriter, dataset: Dataset, run: Run, batch: Batch, answers: Answers
    ) -> None:
        """Write the predictions of a batch; if nobody reads them any more, end the stream."""
        schema = dataset.encoder.schema
        names = label_names(dataset.labels(), schema)
        id_name = schema.id if schema else None
        try:
            writer.write_rounds(
                run,
                batch,
                answers,
                names=names,
                id_name=id_name,
                labels_may_appear=dataset.encoder.labels.may_appear,
            )
        except BrokenPipeError:
            if not self.keeps_results:
                raise
            writer.abandon()
            self.ending.reader_left = True
            if not self.job.options.in_memory:
                watch.end_stream(signal.SIGPIPE)

    # Messages and the document --------------------------------------------------------------------

    def _report(self, finished: _FinishedFile) -> RunDocument:
        """The document of a file."""
        findings = finished.findings
        runs = [
            structs.replace(result.record, unlabelled=findings.unlabelled, ended_by=self.ending.by)
            for result in finished.results
        ]
        return RunDocument(
            version=__version__,
            data=findings.record,
            runs=runs,
            load_seconds=finished.load_seconds,
            shuffled=self.job.options.shuffle,
            certified=self._certificates(finished),
        )

    def _certificates(self, finished: _FinishedFile) -> list[Certificate | tuple[str, ...]] | None:
        """The certificates of all runs; None without --certify."""
        options = self.job.options
        if not options.certify:
            return None
        from ahpatron_cli.certify import certified

        return certified(
            dataset=finished.dataset,
            data=finished.findings.record,
            setups=finished.setups,
            results=finished.results,
            seed=options.seed,
            asked=options.theorem,
        )


def warn_about(
    job: RunJob,
    dataset: Dataset,
    *,
    findings: Findings,
    setups: Sequence[Setup],
    results: Sequence[RunResult],
    stderr: Stderr,
) -> None:
    """Print the notes and warnings about a file on which these setups have run."""
    encoder = dataset.encoder
    scale = encoder.scale
    for note in findings.notes:
        stderr.note(note)
    own_kernels = [setup.learner for setup in setups if setup.kind.own_kernel]
    for learner in own_kernels if scale != "none" else ():
        stderr.note(f"--scale {scale} is applied, but {learner} does not need it")
    warnings = [text for result in results for text in result.warnings]
    if findings.sorted_labels and not job.options.shuffle:
        warnings.append("the rows are sorted by label; --shuffle permutes them")
    warnings += near_tie_warning(result.record for result in results)
    kernels = {setup.kernel for setup in setups if setup.kernel}
    unshifted = any(KERNELS[name].distance is None for name in kernels)
    if encoder.scaler and not encoder.dense and unshifted:
        warnings.append(f"--scale {scale} divides sparse data and does not shift them")
    for warning in dict.fromkeys(warnings):
        stderr.warn(warning)


def no_learner(faults: Sequence[ParameterError]) -> UserError:
    """The error if no learner can run on a file."""
    problem = "; ".join(dict.fromkeys(map(str, faults)))
    names = [fault.name for fault in faults if fault.kind == "missing"]
    missing = " ".join(f"-p {name}=N" for name in dict.fromkeys(names))
    return usage(problem, f"give `{missing}`" if missing else None)
