"""The work of `ahpatron run`: learners on file after file, their reports, curves and messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import ProgressLine, Stderr, now
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.data.dataset import Dataset, DataSummary, Preparation, StreamState, load, stream
from ahpatron_cli.data.labels import NewLabelError
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import one_of, usage
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
    run_parallel,
    run_repeat,
    suggested_sigma,
)
from ahpatron_cli.signals import watch

if TYPE_CHECKING:
    from ahpatron_cli.models import SavedRun

_FIRST_MILESTONE = 1000
"""Rounds after which -v reports figures: at 1,000, 2,000, 4,000, …"""


@dataclass(frozen=True)
class RunOutput:
    """What `run` writes: the table on stdout, and files."""

    format: str
    out: str | None
    curve: str | None
    predictions: str | None

    @property
    def to_stdout(self) -> bool:
        """Whether stdout has the predictions, so that the table goes to stderr."""
        return self.predictions == STDOUT

    def check(self, data: Sequence[str], models: dict[str, str | None]) -> None:
        """Refuse, before a long run, what could not be written."""
        one_of("format", self.format, FORMATS)
        if self.out:
            format_of_suffix(self.out, self.format)
        if self.curve:
            from ahpatron_cli.output.pictures import picture_format

            picture_format(self.curve, "csv")
        if self.predictions:
            check_predictions_path(self.predictions)
        predictions = None if self.to_stdout else self.predictions
        files = {"--out": self.out, "--curve": self.curve, "--predictions": predictions}
        check_outputs(files | models, data)

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


@dataclass
class Session:
    """Runs learners on one file after the other."""

    paths: Sequence[str]
    specs: Sequence[LearnerSpec]
    preparation: Preparation
    options: RunOptions
    stderr: Stderr
    saved: SavedRun | None
    """For a run that continues a model, or is saved."""
    predictions: PredictionWriter | None
    curves: list[Curve] = field(default_factory=list, init=False)
    """The learning curve of each learner on each file."""
    ended_by: str | None = field(default=None, init=False)
    """The signal that ended the stream."""

    def __post_init__(self) -> None:
        self._resumes = self.saved is not None and self.saved.model is not None
        self._known: StreamState | None = None
        self._monitor = _Monitor(self.stderr)
        self._waits = False
        if self.saved:
            self.specs = [self.saved.model.spec] if self.saved.model else self.specs
            self.preparation, self._known = self.saved.prepared(self.preparation)

    def run(self, path: str) -> Report:
        """Run all learners and repeats on one file.

        A file is scanned for its labels if outputs are written row by row; otherwise the run starts
        again where the first rows had a plain pair of labels and a later row has another label.
        """
        if self.saved or self.predictions:
            return self._run(path, may_restart=False)
        try:
            return self._run(path, may_restart=True)
        except NewLabelError as found:
            self.stderr.note(f"{found}: the run starts again with all labels of the file")
            return self._run(path, may_restart=False)

    def _run(self, path: str, *, may_restart: bool) -> Report:
        started = time.perf_counter()
        self.stderr.prefix = f"{Path(path).name}: " if len(self.paths) > 1 else ""
        if path == "-" and sys.stdin is not None and sys.stdin.isatty():
            self.stderr.note("reading standard input; Ctrl-D ends it")
        with ExitStack() as opened:
            if not self.options.in_memory:
                opened.enter_context(watch.ending_stream(self._monitor.figures))
            source = opened.enter_context(open_source(path))
            dataset = self._open(source, may_restart)
            loaded = time.perf_counter() - started
            horizon = self._horizon(dataset)
            specs = self._usable(self._with_sigma(dataset), dataset, horizon)
            total = source.size  # of a stream; in memory passes are counted
            if self.options.in_memory:
                total = len(specs) * self.options.repeats
            rows = self.predictions is not None  # perhaps on the same terminal
            with self.stderr.progress(total, Path(path).name, beside_rows=rows) as line:
                self._monitor.begin(line, None if self.options.in_memory else source)
                results = self._learn(dataset, specs, horizon)
            self.ended_by, summary = watch.ended_by, dataset.facts()
        if not self.options.in_memory:  # reading and learning took turns
            learning = sum(result.seconds for result in results)
            loaded = max(time.perf_counter() - started - learning, 0.0)
        if self.options.curve:
            self._add_curves(path, results)
        self._print_remarks(dataset, summary, results)
        certificates = None
        if self.options.certify:
            from ahpatron_cli.certify import certified

            certificates = certified(dataset, summary, specs, results, self.options.seed)
        more = {"unlabelled": summary.unlabelled, "ended_by": self.ended_by}
        counts = summary.rounds, summary.features, summary.labels, summary.sha256
        return Report(
            version=__version__,
            data=DataRecord(dataset.name, *counts),
            runs=[structs.replace(result.record, **more) for result in results],
            load_seconds=loaded,
            shuffled=self.options.shuffle,
            certified=certificates,
        )

    def _open(self, source: Source, may_restart: bool) -> Dataset:
        """The rows of a file, in memory if they are needed in another order."""
        if self.options.in_memory:
            return load(source, self.preparation, self._known)
        preparation = replace(self.preparation, may_lack_labels=True)
        return stream(source, preparation, self._known, self._note_waiting, may_restart=may_restart)

    def _note_waiting(self, rows: int) -> None:
        if not self._waits:
            self.stderr.note(
                "waiting for the first rows, which --scale or --sigma auto require: "
                f"{rows:,} of them have come (--warm-up N requires fewer)"
            )
        self._waits = True

    def _with_sigma(self, dataset: Dataset) -> Sequence[LearnerSpec]:
        """The learners with the σ that the first rows suggest, if it is left to them."""
        auto = next((spec for spec in self.specs if spec.auto_sigma), None)
        if auto is None:
            return self.specs
        sigma, note = suggested_sigma(auto, dataset.name, *dataset.warm_up())
        self.stderr.note(note)
        return [spec.with_sigma(sigma) for spec in self.specs]

    def _horizon(self, dataset: Dataset) -> int | None:
        """The number of rounds, if it is known, or a learner requires it (the file is scanned)."""
        required = any("horizon" in spec.kind.specs() for spec in self.specs)
        known = dataset.in_memory or required
        return dataset.rounds if known and not self._resumes else None

    def _usable(
        self, specs: Sequence[LearnerSpec], dataset: Dataset, horizon: int | None
    ) -> Sequence[LearnerSpec]:
        """The learners that can run on this file; warnings about the others."""
        if self.options.certify and dataset.classes:
            raise usage("--certify requires two classes", "--positive LABEL selects one of them")
        usable = []
        for spec in () if self._resumes else specs:
            try:
                Run(spec, dataset.name, 0, 0, horizon, classes=dataset.classes)
                usable.append(spec)
            except ParameterError as error:
                if len(specs) == 1:
                    hint = f"give `-p {error.name}=N`" if error.kind == "missing" else None
                    raise usage(str(error), hint) from None
                self.stderr.warn(f"{error}; left out: {spec.learner}")
        return usable or specs

    def _learn(
        self, dataset: Dataset, specs: Sequence[LearnerSpec], horizon: int | None
    ) -> list[RunResult]:
        """All passes over one file."""
        options, tasks = self.options, list(product(specs, range(self.options.repeats)))
        observers: list[Observer] = [self._monitor]
        if self.predictions:
            observers.append(partial(_write_predictions, self.predictions, dataset))
        if self.saved is not None:
            return self.saved.run(dataset, specs[0], options, horizon, observers)
        if not options.in_memory:
            runs = [begin(dataset, spec, options, 0, horizon) for spec in specs]
            return run_batches(dataset.batches(), runs, observers)
        if options.jobs > 1 and len(tasks) > 1 and not self.predictions:
            return run_parallel(dataset, tasks, options, self._monitor.passes)
        return [run_repeat(dataset, spec, options, repeat, observers) for spec, repeat in tasks]

    def _add_curves(self, path: str, results: Sequence[RunResult]) -> None:
        """Mean and deviation over repeats, which all have the same rounds."""
        for group in grouped(results, lambda result: (result.record.learner,)):
            record = group[0].record
            rounds, mistakes, recent = np.stack([result.curve for result in group], axis=-1)
            self.curves.append(
                Curve(
                    f"{path}: {record.learner}" if len(self.paths) > 1 else record.learner,
                    rounds[:, 0].astype(np.int64),
                    mistakes.mean(axis=1),
                    recent.mean(axis=1) if self.options.window else None,
                    mistakes.std(axis=1, ddof=1) if len(group) > 1 else None,
                    (record.counts.baseline_mistakes or 0) / max(record.counts.rounds, 1),
                    Path(path).name,
                )
            )

    def _print_remarks(
        self, dataset: Dataset, summary: DataSummary, results: Sequence[RunResult]
    ) -> None:
        """Notes on the data, warnings about what may spoil the results."""
        for note in summary.notes:
            self.stderr.note(note)
        warnings = [text for result in results for text in result.warnings]
        if summary.sorted_labels and not self.options.shuffle:
            warnings.append("the labels come sorted; --shuffle permutes the rows")
        if ties := near_tie_warning(result.record for result in results):
            warnings.append(ties)
        kernel, scale = self.specs[0].kernel, dataset.preparation.scale
        if not dataset.dense and dataset.scaler and kernel in ("linear", "polynomial"):
            shift = f"--scale {scale} divides sparse data and does not shift them"
            warnings.append(f"{shift}, which the {kernel} kernel notices")
        for warning in dict.fromkeys(warnings):
            self.stderr.warn(warning)
        self.stderr.detail(f"sha256 {summary.sha256}")


def _write_predictions(writer: PredictionWriter, dataset: Dataset, batch: BatchResult) -> None:
    """Write the predictions of a batch, with the names of labels that the data have."""
    schema = dataset.traits.schema
    names = label_names(dataset.labels(), schema)
    writer.write_rounds(dataset.name, batch, names, schema.id if schema else None)


class _Monitor:
    """Messages while learners run: the progress line, drifts, and figures with -v."""

    def __init__(self, stderr: Stderr) -> None:
        self._stderr = stderr
        self._figures: dict[str, str] = {}
        """The latest of each pass."""

    def begin(self, line: ProgressLine, source: Source | None) -> None:
        """Show the share of a file that was read, or the passes that have ended."""
        self._line, self._source = line, source
        self._figures.clear()

    def __call__(self, batch: BatchResult) -> None:
        for number in batch.drifts:
            rose = f"{batch.learner}: the mistake rate rose, as of round {number:,}"
            self._stderr.warn(rose, timed=True)
        before, rounds = batch.first - 1, batch.first - 1 + len(batch.mistaken)
        done = self._source.position if self._source else max(len(self._figures) - 1, 0)
        self._line.update(done, batch.mistakes, rounds, batch.recent_rate)
        name = f"{batch.learner}, repeat {batch.repeat}" if batch.repeat else batch.learner
        due = _FIRST_MILESTONE << (before // _FIRST_MILESTONE).bit_length()
        while due <= rounds:
            later = int(np.count_nonzero(batch.mistaken[due - before :]))
            self._stderr.detail(_figure(name, due, batch.mistakes - later))
            due *= 2
        self._figures[name] = _figure(name, rounds, batch.mistakes)

    def passes(self, done: int, passes: int) -> None:
        """Show how many of the passes in other processes have ended."""
        self._line.show(done, f"{done} of {passes} passes", "")

    def figures(self, asked: bool) -> None:
        """Print the latest figures: if SIGUSR1 asked for them, or with -v once a minute."""
        show: Callable[[str], None] = self._stderr.show if asked else self._stderr.detail
        for text in self._figures.values() or ["no rows so far"]:
            show(f"{now()} {text}")


def _figure(name: str, rounds: int, mistakes: int) -> str:
    rate = f"{100 * mistakes / max(rounds, 1):.2f} %"
    return f"{name}: {rounds:,} rounds, {mistakes:,} mistakes ({rate})"
