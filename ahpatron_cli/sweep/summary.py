"""What the trials of a sweep say together: means, best settings, paired comparisons.

Every learner and setting plays the same permutations, so two of them are compared order by order:
the difference of a pair has far less noise than the two rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from statistics import fmean, stdev
from typing import Any, TypeAlias

from ahpatron_cli.numbers import assignment
from ahpatron_cli.records import (
    DataRecord,
    ParamValue,
    RunRecord,
    SummaryRecord,
    summarise,
    whole,
)

CONFIDENCE = 0.95

Order: TypeAlias = tuple[int, int]
"""Seed and repeat, which fix a permutation."""


@dataclass(frozen=True)
class TrialData:
    """The file that a trial played, and what was done to it first."""

    record: DataRecord
    limit: int | None = None
    scale: str = "none"
    positive: float | None = None
    shuffled: bool = True

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for trials that are comparable, whatever the file is called."""
        file = self.record.sha256 or self.record.path
        return file, self.limit, self.scale, self.positive, self.shuffled


@dataclass(frozen=True)
class TrialRecord:
    """One trial: what was played, and what came out or why nothing did."""

    id: str
    data: TrialData
    learner: str
    params: Mapping[str, ParamValue]
    seed: int
    repeat: int
    run: RunRecord | None
    """None: it failed."""
    error: str | None = None


@dataclass(frozen=True)
class Difference:
    """Mistake rate of a setting minus that of the best, over the orders that both played."""

    mean: float
    se: float | None
    """Standard error of the mean; None for a single order."""
    orders: int
    more_than_noise: bool | None
    """Whether 0 lies outside the 95 % interval (Student's t); None where that cannot be said."""


@dataclass(frozen=True)
class Setting:
    """One learner with one choice of parameters on one data set, over its orders."""

    learner: str
    params: Mapping[str, ParamValue]
    """All of them, also the kernel's."""
    varied: Mapping[str, ParamValue]
    """Those of them that tell it from the other settings of this learner on this data set."""
    rates: Mapping[Order, float]
    """Mistake rate of each order."""
    summary: SummaryRecord
    difference: Difference | None = None
    """To the best setting of the data set; None for that one itself, or with no order in common."""
    best_of_learner: bool = False
    best_of_data: bool = False

    @property
    def label(self) -> str:
        """`epsilon=0.5, budget=400`: what tells it from the learner's other settings."""
        return ", ".join(assignment(name, value) for name, value in self.varied.items())


@dataclass(frozen=True)
class DataFindings:
    """All settings that were played on one data set."""

    name: str
    """The file's name, with as much of its folder as tells it from the others."""
    data: TrialData
    settings: Sequence[Setting]
    """Learners in the order of the registry, the settings of each by value."""

    @property
    def best(self) -> list[Setting]:
        """The best setting of each learner, in the order in which the learners were asked for."""
        return [setting for setting in self.settings if setting.best_of_learner]


@dataclass(frozen=True)
class Findings:
    """What a results file says."""

    datasets: Sequence[DataFindings]
    trials: int
    """Trials that were played to the end."""
    failed: Sequence[TrialRecord] = ()
    """Trials that ended with an error and were not played to the end since."""
    origins: Sequence[Mapping[str, Any]] = field(default=())
    """The header lines: versions, BLAS and the command of each sweep that wrote to the file."""


def find(trials: Sequence[TrialRecord], origins: Sequence[Mapping[str, Any]] = ()) -> Findings:
    """Fold trials (each id once) into findings."""
    groups = _grouped(trials, lambda trial: trial.data.identity)
    names = _names([group[0].data for group in groups])
    datasets = [
        DataFindings(name, group[0].data, _settings(played, group[0].data.shuffled))
        for name, group in zip(names, groups, strict=True)
        if (played := [trial for trial in group if trial.run is not None])
    ]
    failed = [trial for trial in trials if trial.run is None]
    return Findings(datasets, len(trials) - len(failed), failed, origins)


def _settings(trials: Sequence[TrialRecord], shuffled: bool) -> list[Setting]:
    """The settings of one data set, compared with the best of them."""
    groups = _grouped(trials, lambda trial: (trial.learner, *sorted(trial.params.items())))
    # by order, so that none counts twice
    runs = [
        {(trial.seed, trial.repeat): trial.run for trial in group if trial.run} for group in groups
    ]
    summaries = [summarise(list(played.values())) for played in runs]
    rates = [{order: run.mistake_rate for order, run in played.items()} for played in runs]
    numbers: dict[str, list[int]] = {}
    for number, summary in enumerate(summaries):
        numbers.setdefault(summary.learner, []).append(number)
    best = best_of(summaries, range(len(summaries)))
    best_of_learner = {learner: best_of(summaries, own) for learner, own in numbers.items()}
    telling = {
        learner: _telling([summaries[number].params for number in own])
        for learner, own in numbers.items()
    }
    settings = []
    for number, summary in enumerate(summaries):
        learner, params = summary.learner, summary.params
        settings.append(
            Setting(
                learner,
                params,
                {name: params[name] for name in telling[learner] if name in params},
                rates[number],
                summary,
                difference=None
                if number == best
                else compare(rates[number], rates[best], sampled=shuffled),
                best_of_learner=number == best_of_learner[learner],
                best_of_data=number == best,
            )
        )
    # by value, and not by which process happened to be the first to finish
    return sorted(
        settings, key=lambda one: (_rank(one.learner), *map(_sortable, one.varied.values()))
    )


def _rank(learner: str) -> tuple[int, str]:
    """By the registry; names that it does not have come last."""
    from ahpatron_cli.core import REGISTRY  # NumPy comes with it, and --help must answer at once

    names = list(REGISTRY)
    return names.index(learner) if learner in names else len(names), learner


def _sortable(value: ParamValue) -> tuple[bool, ParamValue]:
    """Words after numbers."""
    return isinstance(value, str), value


def _telling(settings: Sequence[Mapping[str, ParamValue]]) -> list[str]:
    """The parameters that tell a learner's settings apart, without those that follow from them.

    Later parameters may have defaults computed from earlier ones, so these are left out first.
    """
    names = list(dict.fromkeys(name for params in settings for name in params))
    names = [name for name in names if len({params.get(name) for params in settings}) > 1]
    for name in reversed(names):
        others = [other for other in names if other != name]
        kinds = {tuple(params.get(other) for other in others) for params in settings}
        if len(kinds) == len(settings):
            names = others
    return names


def best_of(summaries: Sequence[SummaryRecord], among: Sequence[int]) -> int:
    """The number of the lowest mean among the settings with the most orders.

    Of equals it is the one with the smaller parameters, whichever was played first.
    """
    complete = max(summaries[number].repeats for number in among)
    full = [number for number in among if summaries[number].repeats == complete]

    def rank(number: int) -> tuple[Any, ...]:
        line = summaries[number]
        params = [(name, _sortable(value)) for name, value in sorted(line.params.items())]
        return line.mistake_rate_mean, _rank(line.learner), params

    return min(full, key=rank)


def compare(
    rates: Mapping[Order, float], best: Mapping[Order, float], *, sampled: bool = True
) -> Difference | None:
    """The paired difference over the orders that both have.

    Passes that all went in file order are not a sample of orders: nothing can be said of noise.
    """
    gaps = [rate - best[order] for order, rate in rates.items() if order in best]
    if not gaps:
        return None
    mean = fmean(gaps)
    if len(gaps) == 1 or not sampled:
        return Difference(mean, None, len(gaps), None)
    from scipy.special import stdtrit  # Student's t without the weight of scipy.stats

    se = stdev(gaps) / math.sqrt(len(gaps))
    limit = float(stdtrit(len(gaps) - 1, (1 + CONFIDENCE) / 2))
    return Difference(mean, se, len(gaps), abs(mean) > limit * se)


def distinct_names(paths: Sequence[str]) -> list[str]:
    """The shortest ends of these paths that tell them apart."""
    parts = [PurePath(path).parts or (path,) for path in paths]
    for depth in range(1, max((len(part) for part in parts), default=1) + 1):
        names = [str(PurePath(*part[-depth:])) for part in parts]
        if len(set(names)) == len(set(paths)):
            break
    return names


def _names(files: Sequence[TrialData]) -> list[str]:
    """What each data set is called: its file, what was done to it, and a number if need be."""
    shown = []
    for data, name in zip(files, distinct_names([one.record.path for one in files]), strict=True):
        done = [
            f"limit={data.limit}" if data.limit is not None else "",
            f"scale={data.scale}" if data.scale != "none" else "",
            f"positive={whole(data.positive)}" if data.positive is not None else "",
        ]
        shown.append(", ".join([name, *filter(None, done)]))
    seen: dict[str, int] = {}
    for number, name in enumerate(shown):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            shown[number] = f"{name} ({seen[name]})"
    return shown


def _grouped(
    trials: Sequence[TrialRecord], key: Callable[[TrialRecord], tuple[Any, ...]]
) -> list[list[TrialRecord]]:
    groups: dict[tuple[Any, ...], list[TrialRecord]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return list(groups.values())
