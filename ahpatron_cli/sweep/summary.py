"""Summary of the trials of a sweep: means, best settings, paired comparisons.

All learners and settings run on the same permutations, so they are compared pairwise: paired
differences have far less noise than the rates themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import PurePath
from typing import Any, TypeAlias

from msgspec import Struct

from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.numbers import short
from ahpatron_cli.records import (
    Count,
    DataRecord,
    Number,
    ParamValue,
    RunRecord,
    SummaryRecord,
    grouped,
    mean_sd,
    setting_key,
    summarise,
)
from ahpatron_cli.sweep.statistics import (
    Difference,
    Order,
    OverDatasets,
    compare,
    correct,
    over_datasets,
)

Params: TypeAlias = Mapping[str, ParamValue]


class TrialData(DataRecord, frozen=True):
    """The data file of a trial, and how it was prepared."""

    limit: Count | None = None
    scale: str = "none"
    positive: Number | None = None
    shuffled: bool = True
    prefix: Count | None = None
    """Number of rounds of each permutation that were run (successive halving); None: all."""
    costs: tuple[tuple[Number | str, Number], ...] = ()
    """Pairs of label and weight of its examples (--cost), by label; others have weight 1."""
    table: tuple[tuple[str, str], ...] = ()
    """Options for the columns of a table, as pairs of name and text."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """Key that is equal for trials on the same data set, whatever the file name is."""
        file = self.sha256 or self.path
        return file, self.limit, self.scale, self.positive, self.shuffled, self.costs, self.table

    @property
    def options(self) -> list[tuple[str, str]]:
        """The command-line options that prepare the data, as pairs of option and value."""
        named = {"limit": self.limit, "scale": self.scale, "positive": self.positive}
        given = [(name, str(value)) for name, value in named.items() if value not in (None, "none")]
        return [*self.table, *given, *(("cost", f"{label}={cost}") for label, cost in self.costs)]


class Outcome(Struct, frozen=True):
    """Result of a trial: its record, or the error."""

    id: str
    data: TrialData
    learner: str
    params: Mapping[str, ParamValue]
    seed: Count
    repeat: Count
    run: RunRecord | None
    """Record of the run; None if the trial failed."""
    error: str | None = None
    texts: Mapping[str, str] = {}
    """Texts of parameters that depend on the data, as in the grid: `10^0/√T`, `auto`."""
    wall_seconds: float = 0.0
    """Wall time including reading and permuting; `run.seconds` is learning time only."""


@dataclass(frozen=True)
class Metric:
    """A metric by which settings are compared."""

    name: str
    head: str
    """Column heading; if it contains %, values are shown in percent."""
    larger_is_better: bool = False

    @property
    def in_percent(self) -> bool:
        """Whether values are shown in percent."""
        return "%" in self.head

    @property
    def short(self) -> str:
        """The heading without %."""
        return self.head.removesuffix(" %")

    def text(self, value: float, sign: str = "") -> str:
        """A value as text: `11.20` in percent, else `0.8312`; `sign="+"` for differences."""
        number = float(value)  # a Fraction cannot be formatted before Python 3.12
        return f"{100 * number:{sign}.2f}" if self.in_percent else f"{number:{sign}.4f}"

    def of(self, run: RunRecord) -> Fraction | None:
        """Exact value of the metric for a run; None if the run has no such measurement.

        Undefined values, such as precision without a predicted +1, count as the worst value.
        """
        if self.name == "mistake_rate":
            return run.exact_rate
        measured, confusion = run.metrics, run.confusion
        if measured is None and confusion and self.name not in ("auc", "log_loss"):
            from ahpatron_cli.metrics import metrics_of  # lazy: imports NumPy

            measured = metrics_of(confusion)
        value: float | None = getattr(measured, self.name, None)
        if measured is None or (value is None and (confusion is None or self.name == "log_loss")):
            return None  # from an earlier version without this metric
        return Fraction((0 if self.larger_is_better else 1) if value is None else value)


MISTAKE_RATE = Metric("mistake_rate", "AMR %")
_METRICS = (
    MISTAKE_RATE,
    Metric("balanced_error", "Balanced error %"),
    *(Metric(name, f"{name.capitalize()} %", True) for name in ("precision", "recall", "f1")),
    *(Metric("kappa", "Kappa", True), Metric("auc", "AUC", True), Metric("log_loss", "Log loss")),
)
METRICS = {metric.name: metric for metric in _METRICS}


@dataclass(frozen=True)
class Criterion:
    """Criterion by which the best setting of a learner is chosen."""

    metric: Metric = MISTAKE_RATE
    tune_orders: int = 0
    """Number of first repeats on which settings are chosen; 0: choose and report on all."""


@dataclass(frozen=True)
class Setting:
    """Results of a learner with fixed parameters on one data set, over all permutations."""

    learner: str
    params: Mapping[str, ParamValue]
    """All parameters, including those of the kernel."""
    varied: Mapping[str, ParamValue]
    """Parameters that distinguish it from the learner's other settings on this data set."""
    values: Mapping[Order, Fraction]
    """Exact value of the metric on each permutation."""
    mean: float
    sd: float | None
    metric: Metric
    summary: SummaryRecord
    difference: Difference | None = None
    """Difference to the best setting of the data set; None for that one, or if not comparable."""
    best_of_learner: bool = False
    best_of_data: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    """Display texts of the values in `varied`: `0.2236`, `10^0/√T`, `auto (0.44)`."""

    @property
    def exact_mean(self) -> Fraction:
        """The exact mean of the metric."""
        return sum(self.values.values(), Fraction()) / len(self.values)

    @property
    def cost(self) -> float:
        """The mean, negated if larger values are better, so that the lowest cost is best."""
        return -self.mean if self.metric.larger_is_better else self.mean

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best first; it alone decides which setting is best.

        Settings with fewer permutations come last. Means are rounded once from exact values, so
        equal totals are ties; among these the setting with smaller parameters comes first.
        """
        params = [(name, _sortable(value)) for name, value in sorted(self.params.items())]
        return -len(self.values), self.cost, _rank(self.learner), params

    @property
    def label(self) -> str:
        """Text of the varied parameters, such as `epsilon=0.5, budget=400`."""
        return ", ".join(f"{name}={text}" for name, text in self.texts.items())


@dataclass(frozen=True)
class DatasetSummary:
    """Summary of all settings on one data set."""

    name: str
    """File name, with its folder if ambiguous, and preparation."""
    short: str
    """Short name for column headings, without suffixes and common parts."""
    data: TrialData
    settings: Sequence[Setting]
    """All settings: learners in the order of the registry, then by parameter values."""
    best: Sequence[Setting]
    """The best setting of each learner; with --tune-orders, on the other permutations."""
    tried: Mapping[str, Sequence[Params]]
    """Parameters of all settings of each learner, including those run on prefixes only."""
    criterion: Criterion = Criterion()

    @property
    def winner(self) -> Setting:
        """The best setting of all learners."""
        return next(setting for setting in self.best if setting.best_of_data)

    @property
    def several_settings(self) -> bool:
        """Whether any learner has more than one setting."""
        return any(len(settings) > 1 for settings in self.tried.values())

    @property
    def dropped(self) -> int:
        """Number of settings that were run on prefixes only."""
        return sum(map(len, self.tried.values())) - len(self.settings)

    def verdict(self, setting: Setting) -> str | None:
        """Verdict on the difference to the best as text; None if there are too few permutations."""
        if setting.best_of_data:
            return "best"
        gap = setting.difference
        if gap is None or gap.more_than_noise is None:
            return None
        if not gap.more_than_noise:
            return "n.s."
        # a setting with fewer permutations is never the best, but may win on the common ones
        return "worse" if (gap.mean > 0) != self.criterion.metric.larger_is_better else "better"


@dataclass(frozen=True)
class SweepSummary:
    """Summary of a sweep over all data sets."""

    datasets: Sequence[DatasetSummary]
    trials: int
    """Number of completed trials."""
    failed: Sequence[Outcome] = ()
    """Trials that failed and were not completed later."""
    origins: Sequence[Mapping[str, Any]] = ()
    """Header lines: versions, BLAS and command of each sweep that wrote to the file."""
    criterion: Criterion = Criterion()
    part: str | None = None
    """`part 1 of 3` if these are results of some shards only: then no setting is recommended."""

    @cached_property
    def matrix(self) -> dict[str, list[Setting | None]]:
        """Best setting of each learner on each data set; None if it was not run there."""
        best = [{setting.learner: setting for setting in data.best} for data in self.datasets]
        learners = sorted({learner for data in best for learner in data}, key=_rank)
        return {learner: [data.get(learner) for data in best] for learner in learners}

    @cached_property
    def ranks(self) -> OverDatasets:
        """Rank statistics of the learners that were run on all data sets."""
        complete = {
            learner: [setting.exact_mean for setting in row if setting]
            for learner, row in self.matrix.items()
            if all(row)
        }
        return over_datasets(complete, larger_is_better=self.criterion.metric.larger_is_better)


def choose_trials(
    trials: Sequence[Outcome], learners: Sequence[str], data: Sequence[str]
) -> list[Outcome]:
    """Select the trials of these learners and data sets; an empty list selects all."""
    groups = grouped(trials, lambda trial: trial.data.identity)
    names = _names([group[0].data for group in groups])
    known = {
        text: group[0].data.identity  # by the names accepted by --data
        for group, (name, short) in zip(groups, names, strict=True)
        for text in (short, name, group[0].data.path)
    }
    wanted = {known[one_of("data set", name, known)] for name in data} or set(known.values())
    runs = dict.fromkeys(trial.learner for trial in trials)
    named = {one_of("learner", learner, runs) for learner in learners} or runs
    return [one for one in trials if one.data.identity in wanted and one.learner in named]


def summarise_trials(
    trials: Sequence[Outcome],
    origins: Sequence[Mapping[str, Any]] = (),
    criterion: Criterion = Criterion(),
) -> SweepSummary:
    """Summarise trials; each id must occur only once."""
    groups = grouped(trials, lambda trial: trial.data.identity)
    names = _names([group[0].data for group in groups])
    datasets = [
        _summarise_data(*name, [trial for trial in group if trial.run], criterion)
        for name, group in zip(names, groups, strict=True)
        if any(trial.run and trial.data.prefix is None for trial in group)
    ]
    failed = [trial for trial in trials if trial.run is None]
    return SweepSummary(
        datasets, len(trials) - len(failed), failed, origins, criterion, _part(origins)
    )


def _part(origins: Sequence[Mapping[str, Any]]) -> str | None:
    """Text such as `part 1 of 3` if some shards are missing; else None."""
    shards = [origin["shard"] for origin in origins if "shard" in origin]
    parts, totals = ({shard[index] for shard in shards} for index in (0, 1))
    if len(totals) != 1 or len(shards) < len(origins) or len(parts) == max(totals):
        return None
    return f"part{'s' * (len(parts) > 1)} {', '.join(map(str, sorted(parts)))} of {max(totals)}"


def _summarise_data(
    name: str, short: str, trials: Sequence[Outcome], criterion: Criterion
) -> DatasetSummary:
    """Summarise the trials on one data set."""
    tune, by_learner = criterion.tune_orders, grouped(trials, lambda trial: (trial.learner,))
    tried = {
        group[0].learner: [some[0].params for some in grouped(group, setting_key)]
        for group in by_learner
    }
    trials = [trial for trial in trials if trial.data.prefix is None]
    chosen = [trial for trial in trials if not tune or trial.repeat < tune]
    settings = best = _compared(chosen, criterion.metric, tried)
    if tune:
        keys = {setting_key(setting) for setting in settings if setting.best_of_learner}
        others = [one for one in trials if one.repeat >= tune and setting_key(one) in keys]
        if not others:
            problem = f"--tune-orders {tune}: {name} has too few permutations"
            raise usage(problem, "run more --repeats")
        best = _compared(others, criterion.metric, tried)
        first = setting_key(best_of(best))  # the best learner on the reported permutations
        settings = [replace(one, best_of_data=setting_key(one) == first) for one in settings]
    best = [setting for setting in best if setting.best_of_learner]
    return DatasetSummary(name, short, trials[0].data, settings, best, tried, criterion)


def _compared(
    trials: Sequence[Outcome], metric: Metric, tried: Mapping[str, Sequence[Params]]
) -> list[Setting]:
    """The settings of one data set, each with its difference to the best.

    p-values of the best setting of each learner are corrected for the number of learners.
    """
    groups = [
        settings_of(group, metric, tried[group[0].learner])
        for group in grouped(trials, lambda trial: (trial.learner,))
    ]
    leaders = [best_of(group) for group in groups]
    best, settings = best_of(leaders) if leaders else None, list[Setting]()
    for group, leader in zip(groups, leaders, strict=True):
        for one in group:
            gap = None
            if best and one is not best:
                gap = compare(one.values, best.values, sampled=trials[0].data.shuffled)
            leads = replace(one, best_of_learner=one is leader, best_of_data=one is best)
            settings.append(replace(leads, difference=gap))
    correct([one.difference for one in settings if one.best_of_learner and one.difference])
    # by value, independent of the order in which trials finished
    return sorted(settings, key=lambda s: (_rank(s.learner), *map(_sortable, s.varied.values())))


def settings_of(
    trials: Sequence[Outcome],
    metric: Metric,
    tried: Sequence[Params] = (),
) -> list[Setting]:
    """The settings of one learner on one data set; `tried` decides which parameters vary."""
    groups = grouped(trials, setting_key)
    tried = tried or [group[0].params for group in groups]
    names = _distinguishing(tried)
    written = {name: _texts(params.get(name) for params in tried) for name in names}
    settings = []
    for group in groups:
        # by permutation, to exclude duplicates
        runs = {(trial.seed, trial.repeat): trial.run for trial in group if trial.run}
        known = {order: metric.of(run) for order, run in runs.items()}
        values = {order: value for order, value in known.items() if value is not None}
        if len(values) < len(runs):
            hint = f"`ahpatron sweep` with --metric {metric.name} runs them again"
            raise usage(f"--metric {metric.name}: some trials were not measured by it", hint)
        first = group[0]
        varied = {name: first.params[name] for name in names if name in first.params}
        texts = {name: written[name][value] for name, value in varied.items()}
        for name in texts.keys() & first.texts.keys():
            auto = first.texts[name] == "auto"
            texts[name] = f"auto ({short(varied[name])})" if auto else first.texts[name]
        what = first.learner, first.params, varied, values, *mean_sd(list(values.values()))
        settings.append(Setting(*what, metric, summarise(list(runs.values())), texts=texts))
    return settings


def _texts(values: Iterable[ParamValue | None]) -> dict[ParamValue, str]:
    """Text of each value of a parameter, with enough digits to distinguish them."""
    known = {value for value in values if value is not None}
    texts = {value: short(value, 6) for value in known}
    return texts if len(set(texts.values())) == len(known) else {one: str(one) for one in known}


def _rank(learner: str) -> tuple[int, str]:
    """Sort key of a learner: its position in the registry; unknown names come last."""
    from ahpatron_cli.core import REGISTRY  # lazy: imports NumPy, too slow for --help

    names = list(REGISTRY)
    return names.index(learner) if learner in names else len(names), learner


def _sortable(value: ParamValue) -> tuple[bool, ParamValue]:
    """Sort key of a parameter value: words after numbers."""
    return isinstance(value, str), value


def _distinguishing(settings: Sequence[Params]) -> list[str]:
    """The parameters that distinguish a learner's settings, without derived ones.

    Later parameters may be derived from earlier ones, so these are left out first.
    """
    names = list(dict.fromkeys(name for params in settings for name in params))
    names = [name for name in names if len({params.get(name) for params in settings}) > 1]
    for name in reversed(names):
        others = [other for other in names if other != name]
        if len({tuple(map(params.get, others)) for params in settings}) == len(settings):
            names = others
    return names


def varied_numbers(settings: Sequence[Params]) -> list[str]:
    """The parameters that distinguish a learner's settings and have at least two finite values."""
    return [
        name
        for name in _distinguishing(settings)
        if len({finite_number(params.get(name)) for params in settings} - {None}) > 1
    ]


def finite_number(value: ParamValue | None) -> float | None:
    """The value as a finite float; None for words such as "keep" and for infinity."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def best_of(settings: Sequence[Setting]) -> Setting:
    """The best setting by `Setting.rank`."""
    return min(settings, key=lambda one: one.rank)


_SUFFIXES = re.compile(r"(?<=[^/])(\.(svm|libsvm|svmlight|txt|dat|csv|tsv|gz|bz2|xz))+$")


def _names(files: Sequence[TrialData]) -> list[tuple[str, str]]:
    """Long name (file and preparation) and short name (file) of each data set."""
    paths = [data.path for data in files]
    bases = [PurePath(path).name for path in paths]
    if len(set(bases)) < len(set(paths)):
        bases = paths
    names = [
        ", ".join(
            [base, *(f"{o} {text}" if "=" in text else f"{o}={text}" for o, text in data.options)]
        )
        for base, data in zip(bases, files, strict=True)
    ]
    if len(set(names)) < len(names):  # same name, but other content or order
        names = [
            f"{name} ({(data.sha256 or '')[:6]}{', shuffled' * data.shuffled})"
            for name, data in zip(names, files, strict=True)
        ]
    stems = [_SUFFIXES.sub("", base) for base in bases]
    return [
        (name, stem if stems.count(stem) == 1 else name)
        for name, stem in zip(names, stems, strict=True)
    ]
