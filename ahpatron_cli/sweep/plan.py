"""Planning of a sweep: the trials of a job, and those selected by successive halving or tuning."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import asdict, replace

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.core.registry import learner_source
from ahpatron_cli.data.dataset import Dataset, Findings, RowsInMemory
from ahpatron_cli.data.opening import load
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.number_text import int_if_integral
from ahpatron_cli.records import DataRecord, Number, Outcome, TrialData, grouped, setting_key
from ahpatron_cli.runner import Setup, params_of, with_sigma
from ahpatron_cli.settings import Data, SweepSettings, all_options, deciding_texts
from ahpatron_cli.setups import parse_weight_grid, preparation_of
from ahpatron_cli.sweep.config import SweepJob
from ahpatron_cli.sweep.summary import (
    MISTAKE_RATE,
    Criterion,
    Params,
    Setting,
    settings_of,
)
from ahpatron_cli.sweep.trial import WEIGHT, Trial, weight_params

Outcomes: TypeAlias = Mapping[str, Outcome]
"""The outcome of each trial that was run, by its id."""
WeightGrid: TypeAlias = Mapping[float | str, Sequence[float]]
"""The weights to try, by label."""
Weights: TypeAlias = tuple[tuple[Number | str, float], ...]
"""Pairs of label and weight."""

WITH_A_FIELD = ("limit", "scale", "positive", "cost", "layout")
"""Options of the data that have a field of `TrialData`."""
KEPT = 3
"""Factor of successive halving: a third of the settings is kept, for three times the rounds."""
FEWEST_ROUNDS = 500
"""Smallest number of rounds of a prefix; shorter ones are not informative."""


def plan(
    job: SweepJob,
    folder: Path,
    note: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    metrics: bool = False,
) -> list[Trial]:
    """All trials of a job without duplicates, file by file; equal contents give equal trials.

    The parsed files are stored in `folder` for the worker processes.
    """
    settings = job.settings
    order = settings.order
    preparation = preparation_of(settings.data, settings.tables, settings.given)
    grid = parse_weight_grid(settings.data, settings.tables)
    weights = {label: values[0] for label, values in grid.items() if len(values) == 1}
    trials: dict[str, Trial] = {}
    seen: dict[str, str] = {}
    for number, path in enumerate(job.files):
        dataset = _read(path, preparation)
        dataset.weights({label: values[0] for label, values in grid.items()})  # refuses others
        findings = dataset.finish()
        record = findings.record
        assert record.sha256 is not None, "a file that was read to its end"
        twin = seen.setdefault(record.sha256, path)
        if twin != path:
            note(f"{path} has the same content as {twin}")
        setups = _setups_of(job, path, dataset, findings=findings, note=note)
        if findings.sorted_labels and not order.permutes:
            warn(f"{Path(path).name}: the rows are sorted by label; --shuffle permutes them")
        mapped = folder / str(number)
        _store(dataset, mapped)
        data = _data_of(dataset, record, shuffled=order.permutes, weights=weights)
        first = _first_trials(setups, data, preparation, grid=grid, seed=order.seed)
        # permutation by permutation, so that results of an interrupted sweep are comparable
        for repeat, one in product(range(order.repeats), first):
            trial = replace(one, repeat=repeat, metrics=metrics, mapped=str(mapped))
            trials.setdefault(trial.id, trial)
    return list(trials.values())


def _setups_of(
    job: SweepJob,
    path: str,
    dataset: RowsInMemory,
    *,
    findings: Findings,
    note: Callable[[str], None],
) -> list[Setup]:
    """The setups that are tried on a file; prints the notes on it."""
    notes = list(findings.notes)
    asked = list(job.setups(path, findings.record.rounds))
    setups = with_sigma(asked, dataset, notes.append)
    name = Path(path).name
    for text in notes:
        note(f"{name}: {text}")
    return setups


def _read(path: str, preparation: Preparation) -> RowsInMemory:
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


def _store(dataset: RowsInMemory, folder: Path) -> None:
    """Store a parsed file in a new folder, which is left out if the disk is full."""
    try:
        folder.mkdir()
        dataset.save(folder)
    except OSError:  # disk full: the processes parse the file themselves
        shutil.rmtree(folder, ignore_errors=True)


def _data_of(
    dataset: Dataset,
    record: DataRecord,
    *,
    shuffled: bool,
    weights: Mapping[float | str, float],
) -> TrialData:
    """The description of a data file in its trials."""
    preparation = dataset.preparation
    data = preparation.data
    others = [pair for pair in deciding_texts(data, Data) if pair[0] not in WITH_A_FIELD]
    return TrialData(
        **asdict(record),
        limit=data.limit,
        scale=data.scale,
        positive=preparation.positive,
        shuffled=shuffled,
        weights=tuple(sorted(weights.items())),
        table=preparation.table.words,
        max_features=data.max_features,
        layout=data.layout,
        others=tuple(others),
    )


def _first_trials(
    setups: Sequence[Setup],
    data: TrialData,
    preparation: Preparation,
    *,
    grid: WeightGrid,
    seed: int,
) -> list[Trial]:
    """The trials of all setups and weights on the first permutation."""
    varied = {label: values for label, values in grid.items() if len(values) > 1}
    trials = []
    for setup in setups:
        trial = _first_trial(setup, data, preparation, seed=seed)
        for weights in _combinations(varied):
            weighed = _weighed(trial, weights)
            trials.append(weighed)
    return trials


def _first_trial(setup: Setup, data: TrialData, preparation: Preparation, *, seed: int) -> Trial:
    """The trial of a setup on the first permutation."""
    learner, kernel = setup.build()
    path = Path(data.path).absolute()
    return Trial(
        data=data,
        setup=setup,
        seed=seed,
        repeat=0,
        params=params_of(learner, kernel),
        path=str(path),
        preparation=preparation,
        source=learner_source(setup.kind),
    )


def _combinations(weights: WeightGrid) -> Iterator[Weights]:
    """All combinations of weights, by label."""
    labels = sorted(weights, key=str)
    grids = [weights[label] for label in labels]
    for values in product(*grids):
        pairs = zip(labels, values, strict=True)
        yield tuple(pairs)


def _weighed(trial: Trial, weights: Weights) -> Trial:
    """A trial with these weights, of which each is a parameter of its setting."""
    if not weights:
        return trial
    params = {**trial.params, **weight_params(weights)}
    return replace(trial, params=params, weights=weights)


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
    options = all_options(SweepSettings).values()
    flags = {option.saved_as: option.flag for option in options}
    for name, text in data.all_options:
        words += [flags[name], text]
    for name, value in params.items():
        if name.startswith(WEIGHT):
            weight = int_if_integral(float(value))
            words += ["--weight", f"{name.removeprefix(WEIGHT)}={weight}"]
    seed, _ = min(setting.values)
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
        defaults = kind(**chosen).params()
        if name not in params:
            continue
        value = params[name]
        if defaults.get(name) != value:
            chosen[name] = value
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
    stages = min(by_settings, by_rounds)
    for left in range(stages, 0, -1):
        kept = math.ceil(kept / KEPT)
        part = KEPT**left
        prefix = math.ceil(rounds / part)
        yield prefix, kept


def _whole_log(number: float) -> int:
    """How often a number can be divided by `KEPT` and stay at least 1, despite rounding errors."""
    exact = math.log(max(number, 1), KEPT)
    return int(round(exact, 9))


@dataclass(frozen=True)
class Search:
    """A grid of trials and the strategy that decides which of them are run.

    Successive halving runs all settings of a learner on the first rounds of each permutation, keeps
    the best third, runs these on three times as many rounds, and so on; the last few are run in
    full. With --tune-repeats only the best setting is run on the other permutations. The next
    trials depend on the results alone, so the same command continues after any interruption.
    """

    trials: Sequence[Trial]
    """The whole grid on all permutations."""
    criterion: Criterion
    halving: bool = False
    shard: tuple[int, int] = (1, 1)
    """(I, N): run only the I-th of N parts."""

    @property
    def learners(self) -> list[str]:
        """The names of the learners, in the order in which they were given."""
        return list(dict.fromkeys(trial.learner for trial in self.trials))

    def needed(self, known: Outcomes, *, guess: bool = False) -> list[Trial]:
        """The trials to run given the results so far, including those that are done.

        With `guess`, those to come as well, as if the first setting were the best where that is not
        known yet; as many trials are needed whichever is.
        """
        if self.halving or self.criterion.tune_orders:
            selected: list[Trial] = []
            for group in grouped(self.trials, learner_and_data):
                settings = grouped(group, setting_key)
                selected += self._needed(settings, known, guess=guess)
            return selected
        # distributed in order of id, which mixes fast and slow trials
        part, parts = self.shard
        ids = sorted(trial.id for trial in self.trials)
        chosen = set(ids[part - 1 :: parts])
        return [trial for trial in self.trials if trial.id in chosen]

    def missing(self, trials: Sequence[Trial], known: Outcomes) -> list[Trial]:
        """Trials that were not run yet, or whose results do not have the metric."""
        left = []
        for trial in trials:
            outcome = known.get(trial.id)
            if not self._is_measured(outcome):
                left.append(trial)
        return left

    def _is_measured(self, outcome: Outcome | None) -> bool:
        """Whether there is a result, and it has the metric."""
        if outcome is None or outcome.run is None:
            return False
        return self.criterion.metric.of(outcome.run) is not None

    def _needed(
        self, settings: Sequence[list[Trial]], known: Outcomes, *, guess: bool
    ) -> Iterator[Trial]:
        """Trials of one learner on one data set; `settings` has a list of trials per setting."""
        tune = self.criterion.tune_orders
        rounds = settings[0][0].data.rounds
        left = list(settings)
        stages: list[tuple[int, int]] = []
        if self.halving:
            stages = list(rungs(len(settings), rounds))
        for prefix, kept in stages:
            stage = [_on_prefix(_below(some, tune), prefix) for some in left]
            yield from chain(*stage)
            order = self._ranked(stage, known, guess=guess)
            if order is None:
                return
            best = sorted(order[:kept])
            left = [left[number] for number in best]
        stage = [_below(some, tune) for some in left]
        yield from chain(*stage)
        if tune:
            order = self._ranked(stage, known, guess=guess)
            if order is None:
                return
            for trial in left[order[0]]:
                if trial.repeat >= tune:
                    yield trial

    def _ranked(
        self, stage: Sequence[Sequence[Trial]], known: Outcomes, *, guess: bool
    ) -> list[int] | None:
        """Indices of settings by rank, failed ones last.

        If trials are missing: None, or with `guess` the settings in their order.
        """
        if any(trial.id not in known for trial in chain(*stage)):
            return list(range(len(stage))) if guess else None
        finished: dict[int, list[Outcome]] = {}
        failed: list[int] = []
        for number, some in enumerate(stage):
            outcomes = [known[trial.id] for trial in some]
            done = [outcome for outcome in outcomes if outcome.run]
            if done:
                finished[number] = done
            else:
                failed.append(number)
        every = list(chain(*finished.values()))
        compared = settings_of(every, self.criterion.metric)
        rank_of = {setting.key: setting.rank for setting in compared}

        def rank(number: int) -> tuple[Any, ...]:
            first = finished[number][0]
            return rank_of[first.key]

        return sorted(finished, key=rank) + failed


def learner_and_data(trial: Trial) -> tuple[object, ...]:
    """Key that is equal for trials of the same learner on the same data set."""
    return *trial.data.identity, trial.learner


def _below(trials: Sequence[Trial], tune: int) -> list[Trial]:
    """Trials on the first `tune` permutations; all trials if `tune` is 0."""
    if tune == 0:
        return list(trials)
    return [trial for trial in trials if trial.repeat < tune]


def _on_prefix(trials: Sequence[Trial], rounds: int) -> list[Trial]:
    """These trials on so many first rounds only."""
    return [trial.on_prefix(rounds) for trial in trials]
