"""One call of `ahpatron run`: runs learners on file after file, and reports what happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from ahpatron_cli import __version__
from ahpatron_cli.cli.console import ProgressLine, Stderr
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.data.dataset import Dataset, DataSummary, Preparation, load, stream
from ahpatron_cli.data.source import FROM_ARRAYS, Source, open_source
from ahpatron_cli.errors import bad_data, usage
from ahpatron_cli.numbers import short
from ahpatron_cli.output.predictions import PredictionWriter, label_names
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
    play,
    play_repeats,
    suggested_sigma,
)
from ahpatron_cli.signals import Terminated, watch

if TYPE_CHECKING:
    from ahpatron_cli.models import SavedRun

_FIRST_MILESTONE = 1000


@dataclass
class Session:
    """The settings that all files of a call share."""

    paths: Sequence[str]
    setups: Sequence[LearnerSpec]
    preparation: Preparation
    repetition: RunOptions
    jobs: int
    stderr: Stderr
    predictions: PredictionWriter | None
    saved: SavedRun | None
    certify: bool
    traced: bool
    """Whether predictions or curves are written, which a checkpoint would cut."""
    ended_by: str | None = field(default=None, init=False)
    """The signal that ended the stream."""
    curves: list[Curve] = field(default_factory=list, init=False)
    """The learning curve of each learner on each file played so far."""

    def __post_init__(self) -> None:
        """Take what a model fixes from it; refuse what cannot be played, before anything is."""
        self._known = None
        self._narrator: _Narrator | None = None
        if self.saved:
            self.setups = [self.saved.setup()] if self.saved.resumes else self.setups
            self.preparation, self._known = self.saved.prepared(self.preparation)
        if self.paths.count("-") > 1:
            raise usage("standard input (-) can be read only once")
        for path in self.paths:
            if path.endswith(".npz"):
                from ahpatron_cli.data.npz import entries, is_archive

                if is_archive(path) and {"header.npy", "meta.npy"} & {*entries(path)}:
                    hint = f"--resume {path} continues with it"
                    raise usage(f"{path} is a model, not data", hint)
                if is_archive(path):
                    raise bad_data("this is an archive of NumPy arrays", path, hint=FROM_ARRAYS)
        if self.certify:
            from ahpatron_cli.certify import check_rereadable

            check_rereadable(self.paths)
        self._several_files = len(self.paths) > 1
        self._full_names = len({Path(path).name for path in self.paths}) < len(self.paths)
        # Only one pass in file order needs no row twice.
        self._in_memory = self.repetition.repeats > 1 or self.repetition.shuffle

    def play(self, path: str) -> Report:
        """Play all learners and repeats over one file."""
        started = time.perf_counter()
        if path == "-" and sys.stdin is not None and sys.stdin.isatty():
            self.stderr.note("reading standard input; Ctrl-D ends it")
        with ExitStack() as opened:
            if not self._in_memory:
                opened.enter_context(watch.ending_stream(self._figures_due))
            source = opened.enter_context(open_source(path))
            if self._in_memory:
                dataset = load(source, self.preparation, self._known)
            else:
                preparation = replace(self.preparation, may_lack_labels=True)
                dataset = stream(source, preparation, self._known, _Waiting(self.stderr))
            loaded = time.perf_counter() - started
            setups = self._settled(dataset)
            if self.certify and dataset.classes:
                raise usage(
                    "--certify requires two classes", "--positive LABEL selects one of them"
                )
            results = self._play(dataset, source, setups)
            self.ended_by = watch.ended_by
            facts = dataset.facts()
        results = [
            replace(
                result,
                record=structs.replace(
                    result.record, unlabelled=facts.unlabelled, ended_by=self.ended_by
                ),
            )
            for result in results
        ]
        if not self._in_memory:
            learning = sum(result.seconds for result in results)
            loaded = max(time.perf_counter() - started - learning, 0.0)
        self._remember_curves(dataset.name, results)
        self._tell(dataset.name, facts, results)
        name, scale = setups[0].kernel, dataset.preparation.scale
        if not dataset.dense and dataset.scaler and name in ("linear", "polynomial"):
            self.stderr.warn(
                f"{self._prefix(dataset.name)}--scale {scale} divides sparse data and does not "
                f"shift them, which the {name} kernel notices"
            )
        certificates = None
        if self.certify:
            from ahpatron_cli.certify import certified

            shared = next((setup for setup in setups if setup.kernel), setups[0])
            kernel = shared.build()[1]  # the same for all that have theorems
            certificates = certified(dataset, facts, results, kernel, self.repetition.seed)
        return Report(
            version=__version__,
            data=DataRecord(dataset.name, facts.rounds, facts.features, facts.labels, facts.sha256),
            runs=[result.record for result in results],
            load_seconds=loaded,
            shuffled=self.repetition.shuffle,
            certified=certificates,
        )

    def _figures_due(self, asked: bool) -> None:
        """Once a minute with -v, and if a signal asked for them."""
        if self._narrator is not None:
            self._narrator.figures(self.stderr.show if asked else self.stderr.detail)
        elif asked:
            self.stderr.show("no rows so far")

    def _settled(self, dataset: Dataset) -> Sequence[LearnerSpec]:
        """The setups with the σ that the first rows of this file suggest, if it is left to them."""
        auto = next((setup for setup in self.setups if setup.auto_sigma), None)
        if auto is None:
            return self.setups
        sigma, said = suggested_sigma(auto, dataset.name, *dataset.warm_up())
        self.stderr.note(self._prefix(dataset.name) + said)
        return [setup.with_sigma(sigma) for setup in self.setups]

    def _play(
        self, dataset: Dataset, source: Source, setups: Sequence[LearnerSpec]
    ) -> list[RunResult]:
        """All passes over one file."""
        name, repetition, saved = dataset.name, self.repetition, self.saved
        horizon = None
        if saved is None or not saved.resumes:
            if dataset.in_memory or any("horizon" in setup.kind.specs() for setup in setups):
                horizon = dataset.rounds
            setups = self._playable(setups, dataset, horizon)
        total = source.size
        if dataset.in_memory:
            total = (dataset.rounds or 0) * len(setups) * repetition.repeats
        ticks = self._in_memory and self.jobs > 1  # then observers hear of whole passes only
        with self.stderr.progress(total, Path(name).name, ticks=ticks) as line:
            position = None if dataset.in_memory else source
            figures = self._narrator = _Narrator(self.stderr, self._prefix(name), line, position)
            observers: list[Observer] = [figures]
            if self.predictions:
                observers.append(partial(self._write_rounds, self.predictions, dataset))
            with figures.if_stopped(partial(self._how_to_go_on, setups)):
                if saved is not None:
                    begun = figures.begin
                    return saved.play(dataset, setups[0], repetition, horizon, observers, begun)
                if self._in_memory:
                    return list(play_repeats(dataset, setups, repetition, self.jobs, observers))
                passes = [begin(dataset, setup, repetition, 0, horizon) for setup in setups]
                return play(dataset.batches(), passes, observers)

    def _write_rounds(
        self, writer: PredictionWriter, dataset: Dataset, result: BatchResult
    ) -> None:
        """Write the predictions of a batch, with the names of labels that the data have."""
        schema = dataset.traits.schema
        names = label_names(dataset.labels(), schema)
        writer.write_rounds(dataset.name, result, names, schema.id if schema else None)

    def _how_to_go_on(self, setups: Sequence[LearnerSpec]) -> str | None:
        """What helps if a signal ends the run: --checkpoint, if it is possible here."""
        if self.saved is not None and self.saved.checkpointed:
            return f"the same command continues after round {self.saved.checkpointed:,}"
        one_pass = not self._in_memory and len(setups) == 1 and not self._several_files
        other = self.traced or self.certify or (self.saved and not self.saved.only_saves)
        return "--checkpoint FILE keeps what was learned" if one_pass and not other else None

    def _playable(
        self, setups: Sequence[LearnerSpec], dataset: Dataset, horizon: int | None
    ) -> list[LearnerSpec]:
        """The setups that can play this stream; warn what the others lack."""
        playable = []
        for setup in setups:
            try:
                Run(setup, dataset.name, 0, 0, horizon, classes=dataset.classes)
            except ParameterError as error:
                if len(setups) == 1:
                    hint = f"give `-p {error.name}=N`" if error.kind == "missing" else None
                    raise usage(str(error), hint) from None
                self.stderr.warn(f"{error}; left out: {setup.learner}")
            else:
                playable.append(setup)
        if not playable:
            raise usage("none of the chosen learners can play this stream")
        return playable

    def _remember_curves(self, path: str, results: Sequence[RunResult]) -> None:
        """Mean and deviation over repeats: all repeats of a file have the same rounds."""
        about = [Path(path).name]
        for name, symbol in (("budget", "B"), ("sigma", "σ")):
            values = {result.record.params.get(name) for result in results} - {None}
            if len(values) == 1:
                text = short(values.pop() or 0)
                auto = name == "sigma" and self.setups[0].auto_sigma
                about.append(f"{symbol} = {f'auto ({text})' if auto else text}")
        shown = path if self._full_names else Path(path).name
        for mine in grouped(results, lambda result: (result.record.learner,)):
            record, (rounds, _, recent) = mine[0].record, mine[0].curve
            if recent is not None:
                recent = np.stack([np.asarray(result.curve[2]) for result in mine]).mean(axis=0)
            counts = np.stack([result.curve[1] for result in mine])
            self.curves.append(
                Curve(
                    f"{shown}: {record.learner}" if self._several_files else record.learner,
                    rounds,
                    counts.mean(axis=0),
                    recent,
                    counts.std(axis=0, ddof=1) if len(mine) > 1 else None,
                    (record.baseline_mistakes or 0) / max(record.rounds, 1),
                    ", ".join(about),
                )
            )

    def _tell(self, path: str, facts: DataSummary, results: Sequence[RunResult]) -> None:
        prefix = self._prefix(path)
        for note in facts.notes:
            self.stderr.note(prefix + note)
        if facts.sorted_labels and not self.repetition.shuffle:
            self.stderr.warn(f"{prefix}the labels come sorted; --shuffle permutes the rows")
        for warning in dict.fromkeys(text for result in results for text in result.warnings):
            self.stderr.warn(prefix + warning)
        if ties := near_tie_warning(result.record for result in results):
            self.stderr.warn(prefix + ties)
        self.stderr.detail(f"{prefix}sha256 {facts.sha256}")

    def _prefix(self, path: str) -> str:
        return f"{Path(path).name}: " if self._several_files else ""


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


class _Waiting:
    """Says that a warm-up waits for rows of a pipe, and how many have come: every ten seconds."""

    def __init__(self, stderr: Stderr) -> None:
        self._talk, self._next = stderr, 0.0

    def __call__(self, rows: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 10
            self._talk.note(
                f"waiting for the first rows, which --scale or --sigma auto require: {rows:,} of "
                "them have come (--warm-up N requires fewer)"
            )


class _Narrator:
    """What the user is told while rounds are played: the progress bar, and rises of the rate.

    The mistakes so far of each pass are printed at 1,000, 2,000, 4,000, … rounds with -v, and when
    the run is stopped.
    """

    def __init__(
        self, stderr: Stderr, prefix: str, bar: ProgressLine, source: Source | None
    ) -> None:
        """The bar shows the share of the `source` that was read, or of all rounds without one."""
        self._talk = stderr
        self._prefix = prefix
        self._bar = bar
        self._source = source
        self._rounds = self._mistakes = 0
        self._passes: dict[tuple[str, int], tuple[int, int]] = {}
        """Rounds and mistakes of this file so far."""

    def figures(self, show: Callable[[str], None]) -> None:
        """Print the mistakes of each pass so far, with the time."""
        for key, counts in self._passes.items():
            show(f"{_now()} {self._line(*key, *counts)}")

    def begin(self, one: Run) -> None:
        """Count the rounds before a checkpoint, too."""
        self._passes[one.setup.learner, 0] = one.rounds, one.mistakes

    @contextmanager
    def if_stopped(self, hint: Callable[[], str | None]) -> Iterator[None]:
        """Print all figures, with a hint, if a signal ends the run."""
        try:
            yield
        except (KeyboardInterrupt, Terminated):
            for (learner, repeat), (rounds, mistakes) in self._passes.items():
                self._talk.note(f"stopped: {self._line(learner, repeat, rounds, mistakes)}")
            if not self._passes:
                self._talk.note(f"{self._prefix}stopped before the first figures")
            elif said := hint():
                self._talk.note(said)
            raise

    def _line(self, learner: str, repeat: int, rounds: int, mistakes: int) -> str:
        which = f"{learner}, repeat {repeat}" if repeat else learner
        rate = f"{100 * mistakes / rounds:.2f} %"
        return f"{self._prefix}{which}: {rounds:,} rounds, {mistakes:,} mistakes ({rate})"

    def __call__(self, played: BatchResult) -> None:
        for number in played.drifts:
            rose = f"{played.learner}: the mistake rate rose, as of round {number:,}"
            self._talk.warn(f"{_now()} {self._prefix}{rose}")
        self._rounds += len(played.mistaken)
        self._mistakes += int(np.count_nonzero(played.mistaken))
        if not len(played.mistaken):
            return
        done = self._source.position if self._source else self._rounds
        self._bar.update(done, self._mistakes, self._rounds, played.recent_rate)
        key = played.learner, played.repeat
        rounds, mistakes = self._passes.get(key, (0, 0))
        so_far = mistakes + np.cumsum(played.mistaken)
        due = _FIRST_MILESTONE << (rounds // _FIRST_MILESTONE).bit_length()
        while due <= rounds + len(so_far):
            self._talk.detail(self._line(*key, due, int(so_far[due - rounds - 1])))
            due *= 2
        self._passes[key] = rounds + len(so_far), int(so_far[-1])
