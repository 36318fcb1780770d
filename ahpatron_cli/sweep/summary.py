"""The trials of a sweep summarised: means, best settings, paired comparisons.

Every learner and setting runs on the same permutations, so two of them are compared permutation by
permutation: the difference of a pair has far less noise than the two rates.
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
    ParamValue,
    RunRecord,
    SummaryRecord,
    grouped,
    mean_sd,
    setting_key,
    summarise,
    whole,
)
from ahpatron_cli.sweep.statistics import (
    SIGNIFICANCE,
    Difference,
    Order,
    OverDatasets,
    compare,
    holm,
    over_datasets,
)

Params: TypeAlias = Mapping[str, ParamValue]


class TrialData(Struct, frozen=True):
    """The data file of a trial, and how it was prepared."""

    record: DataRecord
    limit: Count | None = None
    scale: str = "none"
    positive: float | None = None
    shuffled: bool = True
    prefix: Count | None = None
    """Only so many rounds of each permutation were run, to choose between settings."""
    costs: tuple[tuple[float | str, float], ...] = ()
    """Labels in increasing order, each with the cost of its examples; others have the cost 1."""
    table: tuple[tuple[str, str], ...] = ()
    """Options that say which columns of a table are what, each with its text."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for trials of the same data set, whatever the file is called."""
        file = self.record.sha256 or self.record.path
        return file, self.limit, self.scale, self.positive, self.shuffled, self.costs, self.table

    @property
    def options(self) -> list[tuple[str, str]]:
        """The command-line options that prepare the data so, each with its text."""
        named = {"limit": self.limit, "scale": self.scale, "positive": self.positive}
        given = [
            (name, str(value if isinstance(value, str) else whole(value)))
            for name, value in named.items()
            if value not in (None, "none")
        ]
        costs = [
            f"{label if isinstance(label, str) else whole(label)}={whole(cost)}"
            for label, cost in self.costs
        ]
        return [*self.table, *given, *(("cost", text) for text in costs)]


class Outcome(Struct, frozen=True):
    """A trial that was run: its record, or why there is none."""

    id: str
    data: TrialData
    learner: str
    params: Mapping[str, ParamValue]
    seed: Count
    repeat: Count
    run: RunRecord | None
    """None: it failed."""
    error: str | None = None
    texts: Mapping[str, str] = {}
    """How the grid spells the parameters that depend on the data: `10^0/√T`, `auto`."""
    wall_seconds: float = 0.0
    """With reading and permuting; `run.seconds` is learning only."""


@dataclass(frozen=True)
class Metric:
    """What settings are compared by."""

    name: str
    head: str
    """Of its column; with a % the values are shown in percent."""
    larger_is_better: bool = False

    @property
    def in_percent(self) -> bool:
        """Whether it is shown in percent."""
        return "%" in self.head

    @property
    def short(self) -> str:
        """The head without a %."""
        return self.head.removesuffix(" %")

    def text(self, value: float, sign: str = "") -> str:
        """A value or its spread: `11.20` in percent, else `0.8312`; a difference has a sign, +."""
        number = float(value)  # a Fraction cannot be formatted before Python 3.12
        return f"{100 * number:{sign}.2f}" if self.in_percent else f"{number:{sign}.4f}"

    def of(self, run: RunRecord) -> Fraction | None:
        """Its exact value; None if the run was not measured so.

        Where the counts leave it undefined, as precision without a predicted +1, it is the worst.
        """
        if self.name == "mistake_rate":
            return run.counts.exact_rate
        measured, confusion = run.metrics, run.counts.confusion
        if measured is None and confusion and self.name not in ("auc", "log_loss"):
            from ahpatron_cli.metrics import metrics_of  # which imports NumPy

            measured = metrics_of(confusion)
        value: float | None = getattr(measured, self.name, None)
        if measured is None or (value is None and (confusion is None or self.name == "log_loss")):
            return None  # of earlier versions, which did not measure all
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
    """How the best setting of a learner is chosen."""

    metric: Metric = MISTAKE_RATE
    tune_orders: int = 0
    """Settings are chosen on repeats below this and reported on the others; 0: on the same."""


@dataclass(frozen=True)
class Setting:
    """One learner with one choice of parameters on one data set, over its permutations."""

    learner: str
    params: Mapping[str, ParamValue]
    """All of them, also the kernel's."""
    varied: Mapping[str, ParamValue]
    """Those that distinguish it from the other settings of this learner on this data set."""
    values: Mapping[Order, Fraction]
    """The metric on each permutation, exactly."""
    mean: float
    sd: float | None
    metric: Metric
    summary: SummaryRecord
    difference: Difference | None = None
    """To the best setting of the data set; None for that one, or without a common permutation."""
    best_of_learner: bool = False
    best_of_data: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    """The values of `varied` as they were written: `0.2236`, `10^0/√T`, `auto (0.44)`."""

    @property
    def exact_mean(self) -> Fraction:
        """The mean without rounding."""
        return sum(self.values.values(), Fraction()) / len(self.values)

    @property
    def cost(self) -> float:
        """The mean with the sign that makes the lowest the best."""
        return -self.mean if self.metric.larger_is_better else self.mean

    @property
    def mean_text(self) -> str:
        """The mean as tables show it."""
        return self.metric.text(self.mean)

    @property
    def sd_text(self) -> str | None:
        """The standard deviation as tables show it."""
        return None if self.sd is None else self.metric.text(self.sd)

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the best first: this alone decides which setting is best.

        Settings with fewer permutations come last. Means are rounded once from exact values, so
        equal totals are equal; of these the one with the smaller parameters comes first.
        """
        params = [(name, _sortable(value)) for name, value in sorted(self.params.items())]
        return -len(self.values), self.cost, _rank(self.learner), params

    @property
    def label(self) -> str:
        """`epsilon=0.5, budget=400`: what distinguishes it from the learner's other settings."""
        return ", ".join(f"{name}={text}" for name, text in self.texts.items())


@dataclass(frozen=True)
class DatasetSummary:
    """All settings of one data set."""

    name: str
    """The file's name, with its folder where that is needed, and how it was prepared."""
    short: str
    """As a column's head: without suffixes, and without what all data sets have in common."""
    data: TrialData
    settings: Sequence[Setting]
    """Learners in the order of the registry, the settings of each by value."""
    best: Sequence[Setting]
    """The best setting of each learner; with tuning orders, as it did on the other orders."""
    tried: Mapping[str, Sequence[Params]]
    """The parameters of all settings of each learner, also of those run on prefixes only."""
    criterion: Criterion = Criterion()

    @property
    def winner(self) -> Setting:
        """The best of the best."""
        return next(setting for setting in self.best if setting.best_of_data)

    @property
    def several_settings(self) -> bool:
        """Whether any learner has more than one."""
        return any(len(settings) > 1 for settings in self.tried.values())

    @property
    def dropped(self) -> int:
        """Settings that were run on prefixes only."""
        return sum(map(len, self.tried.values())) - len(self.settings)

    def verdict(self, setting: Setting) -> str | None:
        """What the difference to the best says; None if the permutations allow no verdict."""
        if setting.best_of_data:
            return "best"
        gap = setting.difference
        if gap is None or gap.more_than_noise is None:
            return None
        if not gap.more_than_noise:
            return "n.s."
        # with fewer permutations it is never the best, yet may win on those shared with the best
        return "worse" if (gap.mean > 0) != self.criterion.metric.larger_is_better else "better"


@dataclass(frozen=True)
class SweepSummary:
    """The summary of a sweep."""

    datasets: Sequence[DatasetSummary]
    trials: int
    """Trials that were run to the end."""
    failed: Sequence[Outcome] = ()
    """Trials that ended with an error and were not run to the end since."""
    origins: Sequence[Mapping[str, Any]] = ()
    """The header lines: versions, BLAS and the command of each sweep that wrote to the file."""
    criterion: Criterion = Criterion()
    part: str | None = None
    """`part 1 of 3` if these are results of some shards only: then no setting is recommended."""

    @cached_property
    def matrix(self) -> dict[str, list[Setting | None]]:
        """For each learner its best setting on each data set; None: it was not run there."""
        best = [{setting.learner: setting for setting in data.best} for data in self.datasets]
        learners = sorted({learner for data in best for learner in data}, key=_rank)
        return {learner: [data.get(learner) for data in best] for learner in learners}

    @cached_property
    def ranks(self) -> OverDatasets:
        """Of the learners that were run on all data sets."""
        complete = {
            learner: [setting.exact_mean for setting in row if setting]
            for learner, row in self.matrix.items()
            if all(row)
        }
        return over_datasets(complete, larger_is_better=self.criterion.metric.larger_is_better)


def choose_trials(
    trials: Sequence[Outcome], learners: Sequence[str], data: Sequence[str]
) -> list[Outcome]:
    """Those of these learners on these data sets; no names stand for all."""
    groups = grouped(trials, lambda trial: trial.data.identity)
    names = _names([group[0].data for group in groups])
    known = {
        text: group[0].data.identity  # by what the command line calls it
        for group, (name, short) in zip(groups, names, strict=True)
        for text in (short, name, group[0].data.record.path)
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
    """Summarise trials, each id once."""
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
    """Which shards wrote to the file, unless all did."""
    shards = [origin["shard"] for origin in origins if "shard" in origin]
    parts, totals = ({shard[index] for shard in shards} for index in (0, 1))
    if len(totals) != 1 or len(shards) < len(origins) or len(parts) == max(totals):
        return None
    return f"part{'s' * (len(parts) > 1)} {', '.join(map(str, sorted(parts)))} of {max(totals)}"


def _summarise_data(
    name: str, short: str, trials: Sequence[Outcome], criterion: Criterion
) -> DatasetSummary:
    """The settings of one data set, and the best of each learner."""
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
            problem = f"--tune-orders {tune}: {name} has no orders to choose on, or to report on"
            raise usage(problem, "run more --repeats")
        best = _compared(others, criterion.metric, tried)
        first = setting_key(best_of(best))  # which learner is best is known on the others only
        settings = [replace(one, best_of_data=setting_key(one) == first) for one in settings]
    best = [setting for setting in best if setting.best_of_learner]
    return DatasetSummary(name, short, trials[0].data, settings, best, tried, criterion)


def _compared(
    trials: Sequence[Outcome], metric: Metric, tried: Mapping[str, Sequence[Params]]
) -> list[Setting]:
    """The settings of one data set, compared with the best of them.

    p-values of each learner's best are corrected for the number of learners.
    """
    groups = [
        settings_of(group, metric, tried[group[0].learner])
        for group in grouped(trials, lambda trial: (trial.learner,))
    ]
    leaders = {setting_key(one): one for one in map(best_of, groups)}
    best = best_of(list(leaders.values())) if leaders else None
    gaps = {
        setting_key(one): compare(one.values, best.values, sampled=trials[0].data.shuffled)
        for group in groups
        for one in group
        if best and one is not best
    }
    tested = {key: gap for key in leaders if (gap := gaps.get(key)) and gap.p_value is not None}
    p_values = holm([gap.p_value or 0.0 for gap in tested.values()])
    for (key, gap), p_holm in zip(tested.items(), p_values, strict=True):
        gaps[key] = replace(gap, p_holm=p_holm, more_than_noise=p_holm < SIGNIFICANCE)
    settings = [
        replace(
            one,
            difference=gaps.get(setting_key(one)),
            best_of_learner=setting_key(one) in leaders,
            best_of_data=one is best,
        )
        for group in groups
        for one in group
    ]
    # by value, and not by which process happened to be the first to finish
    return sorted(settings, key=lambda s: (_rank(s.learner), *map(_sortable, s.varied.values())))


def settings_of(
    trials: Sequence[Outcome],
    metric: Metric,
    tried: Sequence[Params] = (),
) -> list[Setting]:
    """The settings of one learner on one data set, distinguished from all that were `tried`."""
    groups = grouped(trials, setting_key)
    tried = tried or [group[0].params for group in groups]
    names = _distinguishing(tried)
    written = {name: _texts(params.get(name) for params in tried) for name in names}
    settings = []
    for group in groups:
        # by permutation, so that none counts twice
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
    """The values of a parameter as texts, with as many digits as distinguish them."""
    known = {value for value in values if value is not None}
    texts = {value: short(value, 6) for value in known}
    return texts if len(set(texts.values())) == len(known) else {one: str(one) for one in known}


def _rank(learner: str) -> tuple[int, str]:
    """By the registry; names that it does not have come last."""
    from ahpatron_cli.core import REGISTRY  # NumPy comes with it, and --help must answer at once

    names = list(REGISTRY)
    return names.index(learner) if learner in names else len(names), learner


def _sortable(value: ParamValue) -> tuple[bool, ParamValue]:
    """Words after numbers."""
    return isinstance(value, str), value


def _distinguishing(settings: Sequence[Params]) -> list[str]:
    """The parameters that distinguish a learner's settings, without those that follow from them.

    Later parameters may have defaults computed from earlier ones, so these are left out first.
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
    """A finite number; None for words such as "keep" and for infinity."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def best_of(settings: Sequence[Setting]) -> Setting:
    """The lowest cost among the settings with the most permutations."""
    return min(settings, key=lambda one: one.rank)


_SUFFIXES = re.compile(r"(?<=[^/])(\.(svm|libsvm|svmlight|txt|dat|csv|tsv|gz|bz2|xz))+$")


def _names(files: Sequence[TrialData]) -> list[tuple[str, str]]:
    """What each data set is called: its file and what was done to it; and in short its file."""
    paths = [data.record.path for data in files]
    bases = [PurePath(path).name for path in paths]
    if len(set(bases)) < len(set(paths)):
        bases = paths
    names = [
        ", ".join(
            [base, *(f"{o} {text}" if "=" in text else f"{o}={text}" for o, text in data.options)]
        )
        for base, data in zip(bases, files, strict=True)
    ]
    if len(set(names)) < len(names):  # other content, or another order
        names = [
            f"{name} ({(data.record.sha256 or '')[:6]}{', shuffled' * data.shuffled})"
            for name, data in zip(names, files, strict=True)
        ]
    stems = [_SUFFIXES.sub("", base) for base in bases]
    return [
        (name, stem if stems.count(stem) == 1 else name)
        for name, stem in zip(names, stems, strict=True)
    ]
