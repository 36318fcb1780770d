"""The work of `ahpatron run`: run learners on each file; reports, curves and messages."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr, now
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset, Preparation, StreamState, load, stream
from ahpatron_cli.data.labels import NewLabelError
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.output.formats import FORMATS, to_text, write
from ahpatron_cli.output.predictions import (
    STDOUT,
    PredictionWriter,
    check_predictions_path,
    label_names,
)
from ahpatron_cli.records import Curve, DataRecord, Report, grouped
from ahpatron_cli.runner import (
    Observer,
    Run,
    RunOptions,
    RunResult,
    Setup,
    begin,
    near_tie_warning,
    run_batches,
    run_parallel,
    run_repeat,
    with_sigma,
)
from ahpatron_cli.signals import watch

if TYPE_CHECKING:
    from ahpatron_cli.checkpoints import SavedRun

_FIRST_MILESTONE = 1000
"""Number of rounds after which -v prints the counts for the first time; it doubles each time."""


@dataclass(frozen=True)
class RunOutput:
    """Outputs of `run`: the table on stdout, and files."""

    format: str
    out: str | None
    curve: str | None
    predictions: str | None

    def check(self, data: Sequence[str], models: dict[str, str | None]) -> None:
        """Check all output paths before a long run; a UserError if one cannot be written."""
        one_of("format", self.format, FORMATS)
        if self.out:
            format_of_suffix(self.out, self.format)
        if self.curve:
            from ahpatron_cli.output.pictures import picture_format

            picture_format(self.curve, "csv")
        if self.predictions:
            check_predictions_path(self.predictions)
        predictions = None if self.predictions == STDOUT else self.predictions
        files = {"--out": self.out, "--curve": self.curve, "--predictions": predictions}
        check_outputs(files | models, data)

    def show(self, reports: Sequence[Report], stderr: Stderr) -> None:
        """Print the reports on stdout, or on stderr if stdout is used for the predictions."""
        if self.predictions == STDOUT:
            stderr.show(to_text(reports, self.format, stderr.terminal()))
        else:
            write(lambda terminal: to_text(reports, self.format, terminal), self.format)

    def export(self, reports: Sequence[Report], curves: Sequence[Curve]) -> None:
        """Write the files of --out and --curve."""
        if self.curve:
            from ahpatron_cli.output.pictures import write_curve

            write_curve(self.curve, curves)
        if self.out:
            write_atomically(self.out, to_text(reports, format_of_suffix(self.out, self.format)))


@dataclass
class Session:
    """A run of learners on one file after the other, with progress messages."""

    paths: Sequence[str]
    specs: Sequence[Setup]
    preparation: Preparation
    options: RunOptions
    stderr: Stderr
    saved: SavedRun | None
    """Set if the run continues a model or is saved."""
    predictions: PredictionWriter | None
    keeps_results: bool
    """Whether anything but the predictions and the table is written."""
    curves: list[Curve] = field(default_factory=list, init=False)
    """The learning curve of each learner on each file."""
    ended_by: str | None = field(default=None, init=False)
    """Name of the signal that ended the stream; None if none did."""
    reader_left: bool = field(default=False, init=False)
    """Whether the reader of the predictions has closed the pipe."""

    def __post_init__(self) -> None:
        self._known: StreamState | None = None
        self._resumes = self.saved is not None and self.saved.model is not None
        if self.saved:
            self.specs = [self.saved.model.setup] if self.saved.model else self.specs
            self.preparation, self._known = self.saved.prepared(self.preparation)
        self._waits = False
        # state of the file that is currently run
        self._source: Source | None = None
        self._progress: Callable[..., None]
        self._figures: dict[str, tuple[int, str]] = {}
        """Next milestone (in rounds) and latest counts as text, of each pass."""

    def run(self, path: str) -> Report:
        """Run all learners and repeats on one file.

        A file is scanned for its labels first if outputs are written row by row, or if labels have
        weights. Otherwise the run assumes the labels of the first rows, and starts again if a later
        row has another label.
        """
        if self.saved or self.predictions or self.options.costs:
            return self._run(path, may_restart=False)
        try:
            return self._run(path, may_restart=True)
        except NewLabelError as found:
            self.stderr.note(f"{found}: the run starts again with all labels of the file")
            return self._run(path, may_restart=False)

    def _run(self, path: str, *, may_restart: bool) -> Report:
        options, stderr, started = self.options, self.stderr, time.perf_counter()
        stderr.prefix = f"{Path(path).name}: " if len(self.paths) > 1 else ""
        if path == "-" and sys.stdin is not None and sys.stdin.isatty():
            stderr.note("reading standard input; Ctrl-D ends it")
        with ExitStack() as opened:
            if not options.in_memory:
                opened.enter_context(watch.ending_stream(self._print_figures))
            source = opened.enter_context(open_source(path))
            if options.in_memory:
                dataset = load(source, self.preparation, self._known)
            else:
                preparation = replace(self.preparation, may_lack_labels=True)
                dataset = stream(
                    source, preparation, self._known, self._note_waiting, may_restart=may_restart
                )
            loaded = time.perf_counter() - started
            needs_horizon = any("horizon" in spec.kind.specs() for spec in self.specs)
            known = (dataset.in_memory or needs_horizon) and not self._resumes
            horizon = dataset.rounds if known else None
            specs = self._usable(with_sigma(self.specs, dataset, stderr.note), dataset, horizon)
            self._source = None if options.in_memory else source
            total = len(specs) * options.repeats if options.in_memory else source.size
            rows = self.predictions is not None and self.predictions.to_stdout
            with stderr.progress(total, Path(path).name, beside_rows=rows) as self._progress:
                results = self._learn(dataset, specs, horizon)
            self.ended_by, summary = watch.ended_by, dataset.facts()
        if not options.in_memory:  # reading alternated with learning: subtract the latter
            learning = sum(result.seconds for result in results)
            loaded = max(time.perf_counter() - started - learning, 0.0)
        if options.curve:
            self._add_curves(path, results)
        own = [spec.learner for spec in specs if spec.kind.own_kernel]
        scale, kernels = self.preparation.scale, {spec.kernel for spec in specs}
        unneeded = [f"--scale {scale} is applied, but {name} does not need it" for name in own]
        for note in [*summary.notes, *(unneeded if scale != "none" else ())]:
            stderr.note(note)
        warnings = [text for result in results for text in result.warnings]
        if summary.sorted_labels and not options.shuffle:
            warnings.append("the rows are sorted by label; --shuffle permutes them")
        warnings += near_tie_warning(result.record for result in results)
        if dataset.scaler and not dataset.dense and kernels & {"linear", "polynomial"}:
            warnings.append(f"--scale {scale} divides sparse data and does not shift them")
        for warning in dict.fromkeys(warnings):
            stderr.warn(warning)
        certificates = None
        if options.certify:
            from ahpatron_cli.certify import certified

            certificates = certified(
                dataset, summary, specs, results, seed=options.seed, asked=options.theorem
            )
        more = {"unlabelled": summary.unlabelled, "ended_by": self.ended_by}
        counts = summary.rounds, summary.features, summary.labels, summary.sha256
        schema = dataset.traits.schema
        return Report(
            version=__version__,
            data=DataRecord(
                dataset.name,
                *counts,
                label_names=tuple(label_names(summary.labels, schema)) if schema else None,
            ),
            runs=[structs.replace(result.record, **more) for result in results],
            load_seconds=loaded,
            shuffled=options.shuffle,
            certified=certificates,
        )

    def _note_waiting(self, rows: int) -> None:
        if not self._waits:
            self.stderr.note(
                f"waiting for the first rows, {self.preparation.warm_up:,} with labels, which "
                f"tables, --scale and --sigma auto require: {rows:,} have arrived "
                "(a smaller --warm-up N requires fewer)"
            )
        self._waits = True

    def _usable(
        self, specs: Sequence[Setup], dataset: Dataset, horizon: int | None
    ) -> Sequence[Setup]:
        """The learners that can run on this file; warns about the others."""
        if self.options.certify and dataset.classes:
            raise usage("--certify requires two classes", "--positive LABEL selects one of them")
        if self._resumes:
            return specs
        usable = list[Setup]()
        faults = dict[str, ParameterError]()
        for spec in specs:
            try:
                Run(spec, dataset.name, self.options, 0, horizon, classes=dataset.classes)
                usable.append(spec)
            except ParameterError as error:
                faults[spec.learner] = error
        if not usable:
            problem = "; ".join(dict.fromkeys(map(str, faults.values())))
            names = [fault.name for fault in faults.values() if fault.kind == "missing"]
            missing = " ".join(f"-p {name}=N" for name in dict.fromkeys(names))
            raise usage(problem, f"give `{missing}`" if missing else None)
        for learner, fault in faults.items():
            self.stderr.warn(f"{fault}; left out: {learner}")
        return usable

    def _learn(
        self, dataset: Dataset, specs: Sequence[Setup], horizon: int | None
    ) -> list[RunResult]:
        """Run all passes over one file and return their results."""
        options, tasks = self.options, list(product(specs, range(self.options.repeats)))
        observers: list[Observer] = [self._show]
        self._figures.clear()
        if writer := self.predictions:

            def write(run: Run, batch: Batch, scores: Floats) -> None:
                schema = dataset.traits.schema
                names = label_names(dataset.labels(), schema)
                try:
                    writer.write_rounds(run, batch, scores, names, schema.id if schema else None)
                except BrokenPipeError:
                    if not self.keeps_results:
                        raise
                    writer.abandon()
                    self.reader_left = True
                    if not options.in_memory:
                        watch.end_stream(signal.SIGPIPE)

            observers.append(write)
        if self.saved is not None:
            return self.saved.run(dataset, specs[0], options, horizon, observers)
        if not options.in_memory:
            runs = [begin(dataset, spec, options, 0, horizon) for spec in specs]
            return run_batches(dataset.batches(), runs, observers)
        if options.jobs > 1 and len(tasks) > 1 and not self.predictions:
            return run_parallel(dataset, tasks, options, self._progress)
        return [run_repeat(dataset, spec, options, repeat, observers) for spec, repeat in tasks]

    def _add_curves(self, path: str, results: Sequence[RunResult]) -> None:
        """Add the learning curve of each learner: mean and standard deviation over its repeats."""
        for group in grouped(results, lambda result: (result.record.learner,)):
            first = group[0].record
            rounds, mistakes, recent = np.stack([result.curve for result in group], axis=-1)
            self.curves.append(
                Curve(
                    f"{path}: {first.learner}" if len(self.paths) > 1 else first.learner,
                    rounds[:, 0].astype(np.int64),
                    mistakes.mean(axis=1),
                    recent.mean(axis=1) if self.options.window else None,
                    mistakes.std(axis=1, ddof=1) if len(group) > 1 else None,
                    sum(one.record.baseline_mistakes or 0 for one in group)
                    / max(len(group) * first.rounds, 1),
                    Path(path).name,
                )
            )

    def _show(self, run: Run, *_: object) -> None:
        """Print messages after a batch: progress, rises of the mistake rate, counts with -v."""
        learner, rounds, mistakes = run.setup.learner, run.rounds, run.mistakes
        for number in run.drifts:
            rose = f"{learner}: the mistake rate rose; noticed in round {number:,}"
            self.stderr.warn(rose, timed=True)
        rate = f"{100 * mistakes / max(rounds, 1):.2f} %"
        recent = f", now {100 * run.recent.rate:.2f} %" if run.recent else ""
        done = self._source.position if self._source else max(len(self._figures) - 1, 0)
        self._progress(done, f"{rounds:,} rounds", f"{rate} mistakes{recent}")
        name = f"{learner}, repeat {run.repeat}" if run.repeat else learner
        figures = f"{name}: {rounds:,} rounds, {mistakes:,} mistakes ({rate})"
        due = self._figures.get(name, (_FIRST_MILESTONE, ""))[0]
        if rounds >= due:
            self.stderr.detail(figures)
            due = _FIRST_MILESTONE << (rounds // _FIRST_MILESTONE).bit_length()
        self._figures[name] = due, figures

    def _print_figures(self, asked: bool) -> None:
        """Print the latest counts: on SIGUSR1 (`asked`), or with -v once a minute."""
        show: Callable[[str], None] = self.stderr.answer if asked else self.stderr.detail
        for _, text in self._figures.values() or [(0, "no rows so far")]:
            show(f"{now()} {text}")
