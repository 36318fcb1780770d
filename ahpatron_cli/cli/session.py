"""The work of `ahpatron run`: learners on file after file, their reports, curves and messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import ProgressLine, Stderr, now
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.data.dataset import Dataset, DataSummary, Preparation, load, stream
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.numbers import short
from ahpatron_cli.output.formats import FORMATS, to_text, write_reports
from ahpatron_cli.output.predictions import (
    STDOUT,
    PredictionWriter,
    check_predictions_path,
    label_names,
)
from ahpatron_cli.records import Curve, DataRecord, Report, grouped
from ahpatron_cli.runner import (
    BatchResult,
    LearnerSpec,
    Observer,
    Run,
    RunOptions,
    RunResult,
    begin,
    near_tie_warning,
    run_batches,
    run_repeats,
    suggested_sigma,
)
from ahpatron_cli.signals import watch

if TYPE_CHECKING:
    from ahpatron_cli.models import SavedRun

_FIRST_MILESTONE = 1000
"""Rounds after which -v reports figures: at 1,000, 2,000, 4,000, …"""
_SECONDS_BETWEEN_NOTES = 10.0


@dataclass(frozen=True)
class RunOutput:
    """What `run` writes: the table on stdout, and files."""

    format: str
    out: str | None
    curve: str | None
    predictions: str | None

    def check(self, data: Sequence[str], others: dict[str, str | None]) -> None:
        """Refuse, before a long run, what could not be written; `others` are more files."""
        one_of("format", self.format, FORMATS)
        if self.out:
            format_of_suffix(self.out, self.format)
        if self.curve:
            from ahpatron_cli.output.pictures import picture_format

            picture_format(self.curve, "csv")
        if self.predictions:
            check_predictions_path(self.predictions)
        written = None if self.to_stdout else self.predictions
        files = {"--out": self.out, "--curve": self.curve, "--predictions": written, **others}
        check_outputs(files, data)

    @property
    def to_stdout(self) -> bool:
        """Whether stdout has the predictions, so that the table goes to stderr."""
        return self.predictions == STDOUT

    def show(self, reports: Sequence[Report], stderr: Stderr) -> None:
        """Print the reports."""
        if self.to_stdout:
            stderr.show(to_text(reports, self.format))
        else:
            write_reports(reports, self.format)
            sys.stdout.flush()

    def export(self, reports: Sequence[Report], curves: Sequence[Curve]) -> None:
        """Write the files."""
        if self.curve:
            from ahpatron_cli.output.pictures import write_curve

            write_curve(self.curve, curves)
        if self.out:
            write_atomically(self.out, to_text(reports, format_of_suffix(self.out, self.format)))


@dataclass(frozen=True)
class RunJob:
    """What is run: learners, files, and how."""

    paths: Sequence[str]
    specs: Sequence[LearnerSpec]
    preparation: Preparation
    options: RunOptions
    jobs: int
    certify: bool


class Session:
    """Runs the learners of a job on one file after the other."""

    def __init__(
        self,
        job: RunJob,
        stderr: Stderr,
        saved: SavedRun | None = None,
        predictions: PredictionWriter | None = None,
    ) -> None:
        """`saved`: the run continues a model, or is saved."""
        self._stderr, self._saved, self._predictions = stderr, saved, predictions
        self._specs, self._preparation, self._known = job.specs, job.preparation, None
        if saved:
            self._specs = [saved.setup()] if saved.resumes else self._specs
            self._preparation, self._known = saved.prepared(self._preparation)
        self._job, self._options = job, job.options
        self._monitor: _Monitor | None = None
        self.curves: list[Curve] = []
        """The learning curve of each learner on each file."""
        self.ended_by: str | None = None
        """The signal that ended the stream."""

    def run(self, path: str) -> Report:
        """Run all learners and repeats on one file."""
        started, in_memory = time.perf_counter(), self._options.in_memory
        if path == "-" and sys.stdin is not None and sys.stdin.isatty():
            self._stderr.note("reading standard input; Ctrl-D ends it")
        with ExitStack() as opened:
            if not in_memory:
                opened.enter_context(watch.ending_stream(self._figures_due))
            source = opened.enter_context(open_source(path))
            dataset = self._open(source)
            loaded = time.perf_counter() - started
            horizon = self._horizon(dataset)
            specs = self._usable_specs(dataset, horizon)
            results = self._learn(dataset, source, specs, horizon)
            self.ended_by, summary = watch.ended_by, dataset.facts()
        if not in_memory:  # reading and learning took turns
            learning = sum(result.seconds for result in results)
            loaded = max(time.perf_counter() - started - learning, 0.0)
        if self._options.curve:
            self._add_curves(dataset.name, results)
        self._report_remarks(dataset, summary, results)
        certificates = None
        if self._job.certify:
            from ahpatron_cli.certify import certified

            shared = next((spec for spec in specs if spec.kernel), specs[0])
            kernel = shared.build()[1]  # the same for all that have theorems
            certificates = certified(dataset, summary, results, kernel, self._options.seed)
        more = {"unlabelled": summary.unlabelled, "ended_by": self.ended_by}
        return Report(
            version=__version__,
            data=DataRecord(
                *(dataset.name, summary.rounds, summary.features),
                *(summary.labels, summary.sha256),
            ),
            runs=[structs.replace(result.record, **more) for result in results],
            load_seconds=loaded,
            shuffled=self._options.shuffle,
            certified=certificates,
        )

    def _open(self, source: Source) -> Dataset:
        """The rows of a file, in memory if they are needed in another order."""
        if self._options.in_memory:
            return load(source, self._preparation, self._known)
        preparation = replace(self._preparation, may_lack_labels=True)
        return stream(source, preparation, self._known, self._waiting_note())

    def _waiting_note(self) -> Callable[[int], None]:
        """Notes that a warm-up waits for rows of a pipe, every ten seconds."""
        due = 0.0

        def note(rows: int) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _SECONDS_BETWEEN_NOTES
                self._stderr.note(
                    "waiting for the first rows, which --scale or --sigma auto require: "
                    f"{rows:,} of them have come (--warm-up N requires fewer)"
                )

        return note

    def _horizon(self, dataset: Dataset) -> int | None:
        """The number of rounds, if it is known, or a learner requires it (the file is scanned)."""
        if self._saved is not None and self._saved.resumes:
            return None
        required = any("horizon" in spec.kind.specs() for spec in self._specs)
        return dataset.rounds if dataset.in_memory or required else None

    def _usable_specs(self, dataset: Dataset, horizon: int | None) -> Sequence[LearnerSpec]:
        """The learners that can run on this file, with σ chosen; warnings about the others."""
        specs = self._specs
        if auto := next((spec for spec in specs if spec.auto_sigma), None):
            sigma, note = suggested_sigma(auto, dataset.name, *dataset.warm_up())
            self._stderr.note(self._prefix(dataset.name) + note)
            specs = [spec.with_sigma(sigma) for spec in specs]
        if self._saved is not None and self._saved.resumes:
            return specs
        usable = []
        for spec in specs:
            try:
                Run(spec, dataset.name, 0, 0, horizon, classes=dataset.classes)
                usable.append(spec)
            except ParameterError as error:
                if len(specs) == 1:
                    hint = f"give `-p {error.name}=N`" if error.kind == "missing" else None
                    raise usage(str(error), hint) from None
                self._stderr.warn(f"{error}; left out: {spec.learner}")
        if not usable:
            raise usage("none of the chosen learners can run on this stream")
        if self._job.certify and dataset.classes:
            raise usage("--certify requires two classes", "--positive LABEL selects one of them")
        return usable

    def _learn(
        self, dataset: Dataset, source: Source, specs: Sequence[LearnerSpec], horizon: int | None
    ) -> list[RunResult]:
        """All passes over one file."""
        options, total = self._options, source.size
        if dataset.in_memory:
            total = (dataset.rounds or 0) * len(specs) * options.repeats
        with self._stderr.progress(total, Path(dataset.name).name) as line:
            position = None if dataset.in_memory else source
            self._monitor = _Monitor(self._stderr, self._prefix(dataset.name), line, position)
            observers: list[Observer] = [self._monitor]
            if self._predictions:
                observers.append(partial(_write_predictions, self._predictions, dataset))
            if self._saved is not None:
                return self._saved.play(
                    *(dataset, specs[0], options, horizon, observers), lambda run: None
                )
            if options.in_memory:
                return list(run_repeats(dataset, specs, options, self._job.jobs, observers))
            runs = [begin(dataset, spec, options, 0, horizon) for spec in specs]
            return run_batches(dataset.batches(), runs, observers)

    def _figures_due(self, asked: bool) -> None:
        """Print figures: once a minute with -v, and if SIGUSR1 asked for them."""
        if self._monitor is not None:
            self._monitor.figures(self._stderr.show if asked else self._stderr.detail)
        elif asked:
            self._stderr.show("no rows so far")

    def _add_curves(self, path: str, results: Sequence[RunResult]) -> None:
        """Mean and deviation over repeats, which all have the same rounds."""
        several = len(self._job.paths) > 1
        names = [Path(other).name for other in self._job.paths]
        name = path if len(set(names)) < len(names) else Path(path).name
        about = [Path(path).name]
        for param, symbol in (("budget", "B"), ("sigma", "σ")):
            values = {result.record.params.get(param) for result in results} - {None}
            if len(values) == 1:
                auto = param == "sigma" and self._specs[0].auto_sigma
                text = short(values.pop() or 0)
                about.append(f"{symbol} = {f'auto ({text})' if auto else text}")
        for group in grouped(results, lambda result: (result.record.learner,)):
            record = group[0].record
            rounds, mistakes, recent = np.stack([result.curve for result in group]).T
            self.curves.append(
                Curve(
                    f"{name}: {record.learner}" if several else record.learner,
                    rounds[:, 0].astype(np.int64),
                    mistakes.mean(axis=1),
                    recent.mean(axis=1) if self._options.window else None,
                    mistakes.std(axis=1, ddof=1) if len(group) > 1 else None,
                    (record.baseline_mistakes or 0) / max(record.rounds, 1),
                    ", ".join(about),
                )
            )

    def _report_remarks(
        self, dataset: Dataset, summary: DataSummary, results: Sequence[RunResult]
    ) -> None:
        """Notes on the data, warnings about what may spoil the results."""
        prefix = self._prefix(dataset.name)
        for note in summary.notes:
            self._stderr.note(prefix + note)
        warnings = [text for result in results for text in result.warnings]
        if summary.sorted_labels and not self._options.shuffle:
            warnings.insert(0, "the labels come sorted; --shuffle permutes the rows")
        if ties := near_tie_warning(result.record for result in results):
            warnings.append(ties)
        kernel, scale = self._specs[0].kernel, dataset.preparation.scale
        if not dataset.dense and dataset.scaler and kernel in ("linear", "polynomial"):
            shift = f"--scale {scale} divides sparse data and does not shift them"
            warnings.append(f"{shift}, which the {kernel} kernel notices")
        for warning in dict.fromkeys(warnings):
            self._stderr.warn(prefix + warning)
        self._stderr.detail(f"{prefix}sha256 {summary.sha256}")

    def _prefix(self, path: str) -> str:
        return f"{Path(path).name}: " if len(self._job.paths) > 1 else ""


def _write_predictions(writer: PredictionWriter, dataset: Dataset, batch: BatchResult) -> None:
    """Write the predictions of a batch, with the names of labels that the data have."""
    schema = dataset.traits.schema
    names = label_names(dataset.labels(), schema)
    writer.write_rounds(dataset.name, batch, names, schema.id if schema else None)


class _Monitor:
    """Messages while learners run: the progress line, drifts, and figures with -v."""

    def __init__(
        self, stderr: Stderr, prefix: str, line: ProgressLine, source: Source | None
    ) -> None:
        """The line shows the share of the `source` that was read, or of all rounds without one."""
        self._stderr, self._prefix, self._line, self._source = stderr, prefix, line, source
        self._rounds = self._mistakes = 0
        self._figures: dict[tuple[str, int], tuple[int, int]] = {}
        """Rounds and mistakes of each pass."""

    def __call__(self, batch: BatchResult) -> None:
        for number in batch.drifts:
            rose = f"{batch.learner}: the mistake rate rose, as of round {number:,}"
            self._stderr.warn(self._prefix + rose, timed=True)
        rounds = len(batch.mistaken)
        self._rounds += rounds
        self._mistakes += int(np.count_nonzero(batch.mistaken))
        done = self._source.position if self._source else self._rounds
        self._line.update(done, self._mistakes, self._rounds, batch.recent_rate)
        key, before = (batch.learner, batch.repeat), batch.first - 1
        due = _FIRST_MILESTONE << (before // _FIRST_MILESTONE).bit_length()
        while due <= before + rounds:
            later = int(np.count_nonzero(batch.mistaken[due - before :]))
            self._stderr.detail(self._text(*key, due, batch.mistakes - later))
            due *= 2
        self._figures[key] = before + rounds, batch.mistakes

    def figures(self, show: Callable[[str], None]) -> None:
        """Print the mistakes of each pass so far, with the time."""
        for key, counts in self._figures.items():
            show(f"{now()} {self._text(*key, *counts)}")

    def _text(self, learner: str, repeat: int, rounds: int, mistakes: int) -> str:
        which = f"{learner}, repeat {repeat}" if repeat else learner
        rate = f"{100 * mistakes / max(rounds, 1):.2f} %"
        return f"{self._prefix}{which}: {rounds:,} rounds, {mistakes:,} mistakes ({rate})"
