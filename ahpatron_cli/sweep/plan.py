"""Planning of a sweep: the trials of a job, and those selected by successive halving or tuning."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.core.registry import learner_source
from ahpatron_cli.data.dataset import Dataset, DataSummary, Preparation, load
from ahpatron_cli.data.labels import OTHER
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.records import PREPARED, Outcome, TrialData, grouped, setting_key
from ahpatron_cli.runner import Setup, params_of, with_sigma
from ahpatron_cli.sweep import grid
from ahpatron_cli.sweep.config import Job
from ahpatron_cli.sweep.summary import (
    MISTAKE_RATE,
    Criterion,
    Params,
    Setting,
    settings_of,
)
from ahpatron_cli.sweep.trial import Trial, run_trials

SEARCHES = ("grid", "halving")
"""Values of `--search`."""
KEPT = 3
"""Factor of successive halving: a third of the settings is kept, for three times the rounds."""
FEWEST_ROUNDS = 500
"""Smallest number of rounds of a prefix; shorter ones are not informative."""
SHORT_ROUNDS = 1000
"""Number of rounds of the trials from which the time of a sweep is estimated."""


def plan(
    job: Job,
    folder: Path,
    note: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    metrics: bool = False,
) -> list[Trial]:
    """All trials of a job without duplicates, file by file; equal contents give equal trials.

    The parsed files are stored in `folder` for the worker processes.
    """
    options = job.options
    preparation = grid.preparation(options, job.given)
    costs = grid.parse_costs(options)
    trials: dict[str, Trial] = {}
    seen: dict[str, str] = {}
    for number, path in enumerate(job.files):
        dataset = _read(path, preparation)
        dataset.costs(costs)  # refuses unknown labels
        facts = dataset.facts()
        assert facts.sha256 is not None, "a file that was read to its end"
        twin = seen.setdefault(facts.sha256, path)
        if twin != path:
            note(f"{path} has the same content as {twin}")
        notes = list(facts.notes)
        setups = with_sigma(list(job.setups(path, facts.rounds)), dataset, notes.append)
        for text in notes:
            note(f"{Path(path).name}: {text}")
        if facts.sorted_labels and not options["shuffle"]:
            warn(f"{Path(path).name}: the rows are sorted by label; --shuffle permutes them")
        mapped = folder / str(number)
        _store(dataset, mapped)
        data = _data_of(path, dataset, facts, shuffled=options["shuffle"], costs=costs)
        first = [_first_trial(setup, data, preparation, seed=options["seed"]) for setup in setups]
        # permutation by permutation, so that results of an interrupted sweep are comparable
        for repeat, one in product(range(options["repeats"]), first):
            trial = replace(one, repeat=repeat, metrics=metrics, mapped=str(mapped))
            trials.setdefault(trial.id, trial)
    return list(trials.values())


def _read(path: str, preparation: Preparation) -> Dataset:
    """Load a data file into memory; refuse a pipe."""
    with open_source(path) as source:
        if not source.rereadable:
            raise UserError(
                "a sweep reads its data more than once, so not from a pipe",
                code=ExitCode.NO_INPUT,
                place=Place(path),
                hint="save it to a file first",
            )
        return load(source, preparation)


def _store(dataset: Dataset, folder: Path) -> None:
    """Store a parsed file in a new folder, which is left out if the disk is full."""
    try:
        folder.mkdir()
        dataset.save(folder)
    except OSError:  # disk full: the processes parse the file themselves
        shutil.rmtree(folder, ignore_errors=True)


def _data_of(
    path: str,
    dataset: Dataset,
    facts: DataSummary,
    *,
    shuffled: bool,
    costs: Mapping[float | str, float],
) -> TrialData:
    """The description of a data file in its trials."""
    preparation = dataset.preparation
    schema = dataset.traits.schema
    label_names = None
    if schema:
        label_names = tuple(name or OTHER for name in schema.label_names(facts.labels))
    return TrialData(
        path=path,
        rounds=facts.rounds,
        features=facts.features,
        labels=facts.labels,
        sha256=facts.sha256,
        label_names=label_names,
        shuffled=shuffled,
        costs=tuple(sorted(costs.items())),
        table=preparation.table.words,
        **{name: getattr(preparation, name) for name in PREPARED},
    )


def _first_trial(setup: Setup, data: TrialData, preparation: Preparation, *, seed: int) -> Trial:
    """The trial of a setup on the first permutation."""
    return Trial(
        data=data,
        setup=setup,
        seed=seed,
        repeat=0,
        params=params_of(*setup.build()),
        path=str(Path(data.path).absolute()),
        preparation=preparation,
        source=learner_source(setup.kind),
    )


def run_command(data: TrialData, setting: Setting) -> str | None:
    """The `ahpatron run` command that repeats a setting on its first permutation (`--save FILE` can
    be added); None for a learner in a file."""
    params = dict(setting.params)
    kind = REGISTRY.get(setting.learner)
    kernel = str(params.pop("kernel", ""))
    if kind is None or (kind.own_kernel is None and kernel not in KERNELS):
        return None
    if params.get("horizon") == data.rounds:
        del params["horizon"]  # `run` computes it itself
    words = ["ahpatron", "run", data.path, "-l", setting.learner]
    if kernel not in ("gaussian", ""):
        words += ["--kernel", kernel]
    if kernel in KERNELS:
        words += _parameter_words(KERNELS[kernel], params)
    words += _parameter_words(kind, params)
    for name, text in data.all_options:
        words += [f"--{name}", text]
    seed = min(seed for seed, _ in setting.values)
    if seed:
        words += ["--seed", str(seed)]
    if data.shuffled:
        words.append("--shuffle")
    if setting.metric is not MISTAKE_RATE:
        words.append("--metrics")
    return shlex.join(words)


def _parameter_words(kind: type[Declared], params: Params) -> list[str]:
    """Options for those parameters of a kernel or learner that differ from their defaults."""
    chosen: dict[str, Any] = {}
    for name in kind.specs():
        # a default may be derived from the parameters before it
        if name in params and kind(**chosen).params().get(name) != params[name]:
            chosen[name] = params[name]
    words = []
    for name, value in chosen.items():
        if name in ("budget", "sigma", "epsilon"):
            words += [f"--{name}", str(value)]
        else:
            words += ["-p", f"{name}={value}"]
    return words


def rungs(settings: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Stages of halving: rounds of the prefix, number of settings kept; none for few settings."""
    by_settings = _whole_log(settings)
    by_rounds = _whole_log(rounds / FEWEST_ROUNDS)
    kept = settings
    for left in range(min(by_settings, by_rounds), 0, -1):
        kept = math.ceil(kept / KEPT)
        prefix = math.ceil(rounds / KEPT**left)
        yield prefix, kept


def _whole_log(number: float) -> int:
    """How often a number can be divided by `KEPT` and stay at least 1, despite rounding errors."""
    return int(round(math.log(max(number, 1), KEPT), 9))


@dataclass(frozen=True)
class Search:
    """A grid of trials and the strategy that decides which of them are run.

    Successive halving runs all settings of a learner on the first rounds of each permutation, keeps
    the best third, runs these on three times as many rounds, and so on; the last few are run in
    full. With --tune-orders only the best setting is run on the other permutations. The next trials
    depend on the results alone, so the same command continues after any interruption.
    """

    trials: Sequence[Trial]
    """The whole grid on all permutations."""
    criterion: Criterion
    halving: bool = False
    shard: tuple[int, int] = (1, 1)
    """(I, N): run only the I-th of N parts."""

    def needed(self, known: Mapping[str, Outcome]) -> list[Trial]:
        """The trials to run given the results so far, including those that are done."""
        if self.halving or self.criterion.tune_orders:
            selected: list[Trial] = []
            for group in grouped(self.trials, learner_and_data):
                selected += self._needed(grouped(group, setting_key), known)
            return selected
        # distributed in order of id, which mixes fast and slow trials
        part, parts = self.shard
        ids = sorted(trial.id for trial in self.trials)
        chosen = set(ids[part - 1 :: parts])
        return [trial for trial in self.trials if trial.id in chosen]

    def missing(self, trials: Sequence[Trial], known: Mapping[str, Outcome]) -> list[Trial]:
        """Trials that were not run yet, or whose results do not have the metric."""
        return [trial for trial in trials if not self._is_measured(known.get(trial.id))]

    def _is_measured(self, outcome: Outcome | None) -> bool:
        """Whether there is a result, and it has the metric."""
        if outcome is None or outcome.run is None:
            return False
        return self.criterion.metric.of(outcome.run) is not None

    def _needed(
        self, settings: Sequence[list[Trial]], known: Mapping[str, Outcome]
    ) -> Iterator[Trial]:
        """Trials of one learner on one data set; `settings` has a list of trials per setting."""
        tune = self.criterion.tune_orders
        rounds = settings[0][0].data.rounds
        left = list(settings)
        stages = list(rungs(len(settings), rounds)) if self.halving else []
        for prefix, kept in stages:
            chosen = [_below(some, tune) for some in left]
            stage = [[trial.on_prefix(prefix) for trial in some] for some in chosen]
            yield from chain(*stage)
            order = self._ranked(stage, known)
            if order is None:
                return
            left = [left[number] for number in sorted(order[:kept])]
        stage = [_below(some, tune) for some in left]
        yield from chain(*stage)
        if tune:
            order = self._ranked(stage, known)
            if order is not None:
                best = left[order[0]]
                yield from (trial for trial in best if trial.repeat >= tune)

    def _ranked(
        self, stage: Sequence[Sequence[Trial]], known: Mapping[str, Outcome]
    ) -> list[int] | None:
        """Indices of settings by rank, failed ones last; None if trials are missing."""
        if any(trial.id not in known for trial in chain(*stage)):
            return None
        finished: dict[int, list[Outcome]] = {}
        failed: list[int] = []
        for number, some in enumerate(stage):
            done = [known[trial.id] for trial in some if known[trial.id].run]
            if done:
                finished[number] = done
            else:
                failed.append(number)
        outcomes = list(chain(*finished.values()))
        compared = settings_of(outcomes, self.criterion.metric)
        rank_of = {setting.key: setting.rank for setting in compared}

        def rank(number: int) -> tuple[Any, ...]:
            first = finished[number][0]
            return rank_of[first.key]

        return sorted(finished, key=rank) + failed


def estimated_seconds(trials: Sequence[Trial]) -> float | None:
    """Estimated learning time of trials in seconds, from a short trial per learner and file.

    Too low if S keeps growing after the short trial; None if a short trial fails.
    """
    groups = grouped(trials, learner_and_data)
    chosen = [group[len(group) // 2] for group in groups]
    short = [trial.on_prefix(min(SHORT_ROUNDS, trial.data.rounds)) for trial in chosen]
    outcomes = [one for one in run_trials(short, jobs=1, retries=0) if one is not None]
    runs = {outcome.id: outcome.run for outcome in outcomes}
    total = 0.0
    for trial, group in zip(short, groups, strict=True):
        run = runs[trial.id]
        if run is None:
            return None
        rounds = sum(one.data.prefix or one.data.rounds for one in group)
        seconds_per_round = run.seconds / run.rounds
        total += seconds_per_round * rounds
    return total


def learner_and_data(trial: Trial) -> tuple[object, ...]:
    """Key that is equal for trials of the same learner on the same data set."""
    return *trial.data.identity, trial.learner


def _below(trials: Sequence[Trial], tune: int) -> list[Trial]:
    """Trials on the first `tune` permutations; all trials if `tune` is 0."""
    if tune == 0:
        return list(trials)
    return [trial for trial in trials if trial.repeat < tune]
