"""Summary of the trials of a sweep: means, best settings, paired comparisons.

All learners and settings run on the same permutations, so they are compared pairwise: paired
differences have far less noise than the rates themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.number_text import short
from ahpatron_cli.records import (
    Edition,
    LearnerMeans,
    Outcome,
    ParamValue,
    RunRecord,
    TrialData,
    grouped,
    mean_sd,
    means_of,
    setting_key,
)
from ahpatron_cli.sweep.names import EditionNames, dataset_names, edition_names
from ahpatron_cli.sweep.statistics import (
    Difference,
    Order,
    OverDatasets,
    common_orders,
    compare,
    correct,
    over_datasets,
)

Params: TypeAlias = Mapping[str, ParamValue]
Key: TypeAlias = tuple[Any, ...]
"""Values that are equal for equal things, to group these."""


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
        if self.in_percent:
            return f"{100 * number:{sign}.2f}"
        return f"{number:{sign}.4f}"

    def of(self, run: RunRecord) -> Fraction | None:
        """Exact value of the metric for a run; None if the run has no such measurement.

        Undefined values, such as precision without a predicted +1, count as the worst value.
        """
        if self.name == "mistake_rate":
            return run.exact_rate
        measured = run.metrics
        if measured is None and run.confusion and self.name not in OF_SCORES:
            from ahpatron_cli.metrics import metrics_of  # lazy: imports NumPy

            measured = metrics_of(run.confusion)
        if measured is None:
            return None
        value: float | None = getattr(measured, self.name, None)
        if value is not None:
            return Fraction(value)
        if run.confusion is None or self.name in NEWER:
            return None  # from an earlier version without this metric
        worst = 0 if self.larger_is_better else 1
        return Fraction(worst)


FIXED = {"sigma": "σ", "budget": "B", "features": "D"}
"""Parameters that the matrix shows if they were not varied, and their symbols."""
NOT_RECORDED = "not recorded"
"""The machine of trials of version 1.0, which did not store it."""
MISTAKE_RATE = Metric("mistake_rate", "Mistakes %")
_METRICS = (
    MISTAKE_RATE,
    Metric("balanced_error", "Balanced error %"),
    Metric("precision", "Precision %", larger_is_better=True),
    Metric("recall", "Recall %", larger_is_better=True),
    Metric("f1", "F1 %", larger_is_better=True),
    Metric("kappa", "Kappa", larger_is_better=True),
    Metric("auc", "AUC", larger_is_better=True),
    Metric("average_precision", "Average precision", larger_is_better=True),
    Metric("log_loss", "Log loss"),
    Metric("brier", "Brier score"),
)
OF_SCORES = ("auc", "average_precision", "log_loss", "brier")
"""Metrics that need the scores of all rounds."""
NEWER = ("average_precision", "log_loss", "brier")
"""Metrics that results files of earlier versions do not have."""
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
    finished: Mapping[Order, RunRecord]
    """Its run on each permutation that was finished."""
    metric: Metric
    name: str
    """Name of the learner in tables: with its edition, if there are several."""
    edition: Edition
    machines: Mapping[Order, str | None] = field(default_factory=dict)
    """The machine of each of its runs; None if it was not recorded."""
    orders: frozenset[Order] = frozenset()
    """The permutations that count: those on which all compared settings were finished."""
    compared: bool = True
    """Whether it is compared with others; it is not if it has too few permutations."""
    missing: int = 0
    """Number of permutations on which other settings were finished, but not this one."""
    difference: Difference | None = None
    """Difference to the best setting of the data set; None for that one, or if not comparable."""
    best_of_learner: bool = False
    best_of_data: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    """Display texts of the values in `varied`: `0.2236`, `10^0/√T`, `auto (0.44)`."""

    @cached_property
    def values(self) -> Mapping[Order, Fraction]:
        """Exact value of the metric on each permutation that counts."""
        values = {}
        for order in sorted(self.orders):
            value = self.metric.of(self.finished[order])
            if value is None:
                name = self.metric.name
                problem = f"--best-by {name}: some trials were not measured by it"
                raise usage(problem, f"`ahpatron sweep` with --best-by {name} runs them again")
            values[order] = value
        return values

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that is equal for the same setting and edition, like that of its trials."""
        return *self.edition, *setting_key(self)

    @property
    def exact_mean(self) -> Fraction:
        """The exact mean of the metric."""
        total = sum(self.values.values(), Fraction())
        return total / len(self.values)

    @cached_property
    def mean(self) -> float:
        """The mean of the metric, rounded once: equal totals have equal means."""
        mean, _ = mean_sd(list(self.values.values()))
        return mean

    @cached_property
    def sd(self) -> float | None:
        """Sample standard deviation of the metric; None for a single permutation."""
        _, sd = mean_sd(list(self.values.values()))
        return sd

    @cached_property
    def means(self) -> LearnerMeans:
        """Summary of the runs that count."""
        runs = [self.finished[order] for order in sorted(self.orders)]
        return means_of(runs)

    @property
    def timed_on(self) -> list[str]:
        """The machines of the runs that count, whose seconds `means` averages."""
        names = {self.machines.get(order) or NOT_RECORDED for order in self.orders}
        return sorted(names)

    @property
    def penalty(self) -> float:
        """The mean, negated if larger values are better, so that the smallest is best."""
        if self.metric.larger_is_better:
            return -self.mean
        return self.mean

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best first; it alone decides which setting is best.

        Settings that cannot be compared come last. Means are rounded once from exact values, so
        equal totals are ties; among these the setting with smaller parameters comes first.
        """
        params = []
        for name in sorted(self.params):
            value = _sortable(self.params[name])
            params.append((name, value))
        return not self.compared, self.penalty, _rank(self.learner), self.name, params

    @property
    def label(self) -> str:
        """Text of the varied parameters, such as `epsilon=0.5, budget=400`."""
        parts = [f"{name}={text}" for name, text in self.texts.items()]
        return ", ".join(parts)


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
    """The best setting of each learner; with --tune-repeats, on the other permutations."""
    tried: Mapping[str, Sequence[Params]]
    """Parameters of all settings of each learner, including those run on prefixes only."""
    criterion: Criterion = Criterion()

    @property
    def winner(self) -> Setting:
        """The best setting of all learners; the first one, if several are equally good."""
        return best_of(self.best)

    @property
    def unreported(self) -> list[str]:
        """Names of learners without a permutation beyond those of --tune-repeats."""
        reported = {setting.name for setting in self.best}
        names: dict[str, None] = {}
        for setting in self.settings:
            if setting.name not in reported:
                names[setting.name] = None
        return list(names)

    @property
    def compared(self) -> list[Setting]:
        """The settings that are compared with each other."""
        return [setting for setting in self.settings if setting.compared]

    @property
    def several_settings(self) -> bool:
        """Whether any learner has more than one setting."""
        return any(len(settings) > 1 for settings in self.tried.values())

    @property
    def dropped(self) -> int:
        """Number of settings that were run on prefixes only."""
        tried = sum(len(settings) for settings in self.tried.values())
        return tried - len(self.settings)

    @property
    def timed_on(self) -> list[str]:
        """The machines on which the seconds of all settings were measured."""
        names: set[str] = set()
        for setting in self.settings:
            names.update(setting.timed_on)
        return sorted(names)

    def fixed(self, name: str) -> float | None:
        """The value of a parameter that all settings with the parameter share; None if varied."""
        values = set()
        for setting in self.settings:
            value = finite_number(setting.params.get(name))
            if value is not None:
                values.add(value)
        if len(values) != 1:
            return None
        return values.pop()

    def verdict(self, setting: Setting) -> str | None:
        """Verdict on the difference to the best as text; None if there are too few permutations."""
        if setting.best_of_data:
            return "best"
        gap = setting.difference
        if gap is None or gap.more_than_noise is None:
            return None
        if gap.more_than_noise:
            return "worse"
        return "n.s."


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
    order: Sequence[str] = ()
    """The learners in the order in which they were given."""
    part: str | None = None
    """`part 1 of 3` if these are results of some shards only: then no setting is recommended."""

    @property
    def fixed(self) -> dict[str, list[float | None]]:
        """Value on each data set of σ, B and D, as far as all learners there have the same one."""
        return {name: [one.fixed(name) for one in self.datasets] for name in FIXED}

    @cached_property
    def matrix(self) -> dict[str, list[Setting | None]]:
        """Best setting of each learner, by name, on each data set; None if it was not run there."""
        learners: dict[str, str] = {}
        by_dataset: list[dict[str, Setting]] = []
        for data in self.datasets:
            best = {setting.name: setting for setting in data.best}
            by_dataset.append(best)
            learners |= {name: setting.learner for name, setting in best.items()}

        def place(name: str) -> tuple[Any, ...]:
            return _place(learners[name], self.order), name

        rows: dict[str, list[Setting | None]] = {}
        for name in sorted(learners, key=place):
            rows[name] = [best.get(name) for best in by_dataset]
        return rows

    @cached_property
    def ranks(self) -> OverDatasets:
        """Rank statistics of the learners that were compared on all data sets."""
        complete = {}
        for name, row in self.matrix.items():
            compared = [setting for setting in row if setting and setting.compared]
            if len(compared) < len(row):
                continue
            complete[name] = [setting.exact_mean for setting in compared]
        metric = self.criterion.metric
        return over_datasets(complete, larger_is_better=metric.larger_is_better)


def choose_trials(
    trials: Sequence[Outcome], learners: Sequence[str], data: Sequence[str]
) -> list[Outcome]:
    """Select the trials of these learners and data sets; an empty list selects all."""
    known = _identities_by_name(trials)
    wanted = set(known.values())
    if data:
        wanted = {known[one_of("data set", name, known)] for name in data}
    run = dict.fromkeys(trial.learner for trial in trials)
    named = set(run)
    if learners:
        named = {one_of("learner", learner, run) for learner in learners}
    of_data = [trial for trial in trials if trial.data.identity in wanted]
    return [trial for trial in of_data if trial.learner in named]


def _identities_by_name(trials: Sequence[Outcome]) -> dict[str, Key]:
    """The identity of each data set, by the names that --data accepts."""
    groups = _by_dataset(trials)
    files = [group[0].data for group in groups]
    known: dict[str, Key] = {}
    for file, names in zip(files, dataset_names(files), strict=True):
        known[names.short] = file.identity
        known[names.long] = file.identity
        known[file.path] = file.identity
    return known


def _by_dataset(trials: Sequence[Outcome]) -> list[list[Outcome]]:
    """The trials on each data set."""
    return grouped(trials, lambda trial: trial.data.identity)


def summarise_trials(
    trials: Sequence[Outcome],
    origins: Sequence[Mapping[str, Any]] = (),
    criterion: Criterion = Criterion(),
    order: Sequence[str] = (),
) -> SweepSummary:
    """Summarise trials; each id must occur only once.

    `order` has the names of learners in the order in which tables show them; others come last, in
    the order of the registry. By default it is that of the headers in `origins`.
    """
    order = order or _order_of(origins)
    groups = _by_dataset(trials)
    names = dataset_names([group[0].data for group in groups])
    learners = edition_names(trials)
    datasets = []
    for name, group in zip(names, groups, strict=True):
        done = [trial for trial in group if trial.run]
        if any(trial.data.prefix is None for trial in done):
            summary = _summarise_data(
                name=name.long,
                short=name.short,
                trials=done,
                learners=learners,
                criterion=criterion,
            )
            datasets.append(_as_given(summary, order))
    failed = [trial for trial in trials if trial.run is None]
    return SweepSummary(
        datasets=datasets,
        trials=len(trials) - len(failed),
        failed=failed,
        origins=origins,
        criterion=criterion,
        order=order,
        part=_part(origins),
    )


def _order_of(origins: Sequence[Mapping[str, Any]]) -> list[str]:
    """The learners of all headers, in the order in which they were given."""
    names: dict[str, None] = {}
    for origin in origins:
        names.update(dict.fromkeys(origin.get("learners", ())))
    return list(names)


def _as_given(found: DatasetSummary, order: Sequence[str]) -> DatasetSummary:
    """The summary of a data set with its learners in this order."""

    def place(setting: Setting) -> tuple[Any, ...]:
        return _place(setting.learner, order)

    settings = sorted(found.settings, key=place)
    best = sorted(found.best, key=place)
    return replace(found, settings=settings, best=best)


def _place(learner: str, order: Sequence[str]) -> tuple[Any, ...]:
    """Sort key of a learner in tables: its position in `order`, then in the registry."""
    place = len(order)
    if learner in order:
        place = order.index(learner)
    return place, _rank(learner)


def _part(origins: Sequence[Mapping[str, Any]]) -> str | None:
    """Text such as `part 1 of 3` if some shards are missing; else None."""
    parts = set()
    totals = set()
    for origin in origins:
        if "shard" not in origin:
            return None
        part, total = origin["shard"]
        parts.add(part)
        totals.add(total)
    if len(totals) != 1 or totals == {len(parts)}:
        return None
    numbers = [str(part) for part in sorted(parts)]
    noun = "part" if len(numbers) == 1 else "parts"
    return f"{noun} {', '.join(numbers)} of {total}"


def _summarise_data(
    name: str,
    short: str,
    trials: Sequence[Outcome],
    learners: EditionNames,
    criterion: Criterion,
) -> DatasetSummary:
    """Summarise the trials on one data set; `learners` are the names of editions."""
    tune = criterion.tune_orders
    by_learner = _by_learner(trials, learners)
    tried = {}
    for learner, group in by_learner:
        tried[learner] = [some[0].params for some in grouped(group, setting_key)]
    settings_on = partial(_settings_on, by_learner=by_learner, tried=tried, metric=criterion.metric)
    groups = settings_on(lambda trial: not tune or trial.repeat < tune)
    whole = [trial for trial in trials if trial.data.prefix is None]
    sampled = whole[0].data.shuffled
    leaders = _ranked([best_of(group) for group in groups], sampled=sampled)
    best = leaders
    if tune:
        keys = {leader.key for leader in leaders}
        others = settings_on(lambda trial: trial.repeat >= tune and trial.key in keys)
        if not others:
            problem = f"--tune-repeats {tune}: {name} has too few permutations"
            raise usage(problem, "run more --repeats")
        best = _ranked([group[0] for group in others], sampled=sampled)
    settings = _placed(groups, leaders, best, tuned=bool(tune), sampled=sampled)
    reported_with = best if tune else settings
    return DatasetSummary(
        name=name,
        short=short,
        data=whole[0].data,
        settings=_in_order(_with_missing(settings, settings)),
        best=_in_order(_with_missing(best, reported_with)),
        tried=tried,
        criterion=criterion,
    )


def _by_learner(trials: Sequence[Outcome], names: EditionNames) -> list[tuple[str, list[Outcome]]]:
    """Pairs of the name of each learner in tables and its trials."""
    found = []
    for group in grouped(trials, lambda trial: (trial.learner, trial.edition)):
        first = group[0]
        name = names[first.learner, first.edition]
        found.append((name, group))
    return found


def _settings_on(
    chosen: Callable[[Outcome], bool],
    *,
    by_learner: Sequence[tuple[str, Sequence[Outcome]]],
    tried: Mapping[str, Sequence[Params]],
    metric: Metric,
) -> list[list[Setting]]:
    """Settings of each learner from the chosen ones of its trials on all rounds.

    `by_learner` has pairs of the name of a learner in tables and its trials.
    """
    found = []
    for learner, group in by_learner:
        some = [trial for trial in group if trial.data.prefix is None and chosen(trial)]
        if not some:
            continue
        settings = settings_of(some, metric, tried=tried[learner], name=learner)
        found.append(settings)
    return found


def _placed(
    groups: Sequence[Sequence[Setting]],
    leaders: Sequence[Setting],
    best: Sequence[Setting],
    *,
    tuned: bool,
    sampled: bool,
) -> list[Setting]:
    """All settings, each with its difference to the best and with what it is the best of.

    `groups` and `leaders` are the settings of each learner and the best of them; `best` are the
    latter as reported, with --tune-repeats on other permutations.
    """
    winners = {one.key for one in best if one.best_of_data}
    overall = best_of(leaders)
    settings = []
    for group, leader in zip(groups, leaders, strict=True):
        # --tune-repeats reports on one setting of a learner; without it, others may be as good
        equal = [leader.key] if tuned else _equally_good(group)
        for one in group:
            leads = one.key == leader.key
            placed = replace(
                one,
                # with a learner, all of its settings are left out
                compared=one.compared and leader.compared,
                best_of_learner=one.key in equal,
                best_of_data=leader.key in winners and one.key in equal,
            )
            gap = leader.difference if leads else _gap(placed, overall, sampled=sampled)
            settings.append(replace(placed, difference=gap))
    return settings


def _equally_good(settings: Sequence[Setting]) -> list[Key]:
    """Keys of the best settings: more than one, if several have the same total."""
    lowest = best_of(settings).penalty
    return [one.key for one in settings if one.compared and one.penalty == lowest]


def _in_order(settings: Iterable[Setting]) -> list[Setting]:
    """Settings by learner and parameters, independent of the order in which trials finished."""

    def place(setting: Setting) -> tuple[Any, ...]:
        values = [_sortable(value) for value in setting.varied.values()]
        return _rank(setting.learner), setting.name, *values

    return sorted(settings, key=place)


def _with_missing(settings: Sequence[Setting], others: Sequence[Setting]) -> list[Setting]:
    """The settings, each with the number of permutations that only some of the others have."""
    every: set[Order] = set()
    for setting in others:
        every.update(setting.finished)
    found = []
    for setting in settings:
        missing = every - set(setting.finished)
        found.append(replace(setting, missing=len(missing)))
    return found


def _ranked(leaders: Sequence[Setting], *, sampled: bool) -> list[Setting]:
    """The best setting of each learner on common permutations, with its difference to the best.

    p-values are corrected for the number of learners. Several may be equally good.
    """
    leaders = on_common_orders(leaders)
    if not leaders:
        return []
    best = best_of(leaders)
    ranked = []
    differences = []
    for one in leaders:
        gap = _gap(one, best, sampled=sampled)
        if gap is not None:
            differences.append(gap)
        placed = replace(
            one,
            best_of_learner=True,
            best_of_data=one.compared and one.penalty == best.penalty,
            difference=gap,
        )
        ranked.append(placed)
    correct(differences)
    return ranked


def _gap(setting: Setting, best: Setting, *, sampled: bool) -> Difference | None:
    """Difference to the best; None for the best itself, and if they are not compared."""
    if setting.key == best.key or not setting.compared:
        return None
    return compare(setting.values, best.values, sampled=sampled)


def on_common_orders(settings: Sequence[Setting]) -> list[Setting]:
    """The settings on the permutations that all have; those with too few are not compared."""
    if not settings:
        return []
    common = common_orders([setting.finished.keys() for setting in settings])
    placed = []
    for setting in settings:
        compared = common <= setting.finished.keys()
        orders = common if compared else frozenset(setting.finished)
        placed.append(replace(setting, orders=orders, compared=compared))
    return placed


def settings_of(
    trials: Sequence[Outcome],
    metric: Metric,
    tried: Sequence[Params] = (),
    name: str = "",
) -> list[Setting]:
    """The settings of one learner on one data set, on common permutations.

    `tried` decides which parameters vary; `name` is the name of the learner in tables.
    """
    groups = grouped(trials, setting_key)
    tried = tried or [group[0].params for group in groups]
    names = _distinguishing(tried)
    written = {name: _texts(params.get(name) for params in tried) for name in names}
    settings = []
    for group in groups:
        first = group[0]
        varied = {name: first.params[name] for name in names if name in first.params}
        setting = Setting(
            learner=first.learner,
            params=first.params,
            varied=varied,
            # by permutation, to exclude duplicates
            finished={(one.seed, one.repeat): one.run for one in group if one.run},
            machines={(one.seed, one.repeat): one.machine for one in group if one.run},
            metric=metric,
            name=name or first.learner,
            edition=first.edition,
            texts=_texts_of(varied, first.texts, written),
        )
        settings.append(setting)
    # in an order that does not depend on which trial finished first
    return on_common_orders(_in_order(settings))


def _texts_of(
    varied: Params,
    given: Mapping[str, str],
    written: Mapping[str, Mapping[ParamValue, str]],
) -> dict[str, str]:
    """Texts of the varied parameters: as given in the grid, or else as written by their values."""
    texts = {}
    for name, value in varied.items():
        text = given.get(name)
        if text is None:
            texts[name] = written[name][value]
        elif text == "auto":
            texts[name] = f"auto ({short(value)})"
        else:
            texts[name] = text
    return texts


def _texts(values: Iterable[ParamValue | None]) -> dict[ParamValue, str]:
    """Text of each value of a parameter, with enough digits to distinguish them."""
    known = {value for value in values if value is not None}
    texts = {value: short(value, 6) for value in known}
    distinct = set(texts.values())
    if len(distinct) < len(known):
        return {value: str(value) for value in known}
    return texts


def _rank(learner: str) -> tuple[int, str]:
    """Sort key of a learner: its position in the registry; unknown names come last."""
    from ahpatron_cli.core import REGISTRY  # lazy: imports NumPy, too slow for --help

    names = list(REGISTRY)
    place = len(names)
    if learner in names:
        place = names.index(learner)
    return place, learner


def _sortable(value: ParamValue) -> tuple[bool, ParamValue]:
    """Sort key of a parameter value: words after numbers."""
    return isinstance(value, str), value


def _distinguishing(settings: Sequence[Params]) -> list[str]:
    """The parameters that distinguish a learner's settings, without derived ones.

    Later parameters may be derived from earlier ones, so these are left out first.
    """
    every = dict.fromkeys(name for params in settings for name in params)
    names = []
    for name in every:
        values = {params.get(name) for params in settings}
        if len(values) > 1:
            names.append(name)
    for name in reversed(names):
        others = [other for other in names if other != name]
        distinct = {tuple(map(params.get, others)) for params in settings}
        if len(distinct) == len(settings):
            names = others
    return names


def varied_numbers(settings: Sequence[Params]) -> list[str]:
    """The parameters that distinguish a learner's settings and have at least two finite values."""
    names = []
    for name in _distinguishing(settings):
        values = {finite_number(params.get(name)) for params in settings}
        if len(values - {None}) > 1:
            names.append(name)
    return names


def finite_number(value: ParamValue | None) -> float | None:
    """The value as a finite float; None for words such as "keep" and for infinity."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def best_of(settings: Sequence[Setting]) -> Setting:
    """The best setting by `Setting.rank`."""
    return min(settings, key=lambda one: one.rank)
