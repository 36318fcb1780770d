"""What there is to see in a sweep, before anything is drawn.

The parameter that was varied decides the picture: the budget before ε before any other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ahpatron_cli.numbers import short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.records import ParamValue
from ahpatron_cli.sweep.summary import DataFindings, Findings, Metric, Setting, best_of

_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
_FIRST_CHOICES = ("budget", "epsilon")
_LOG_OVER = {"budget": 8.0}
"""A logarithmic axis where the ratio of largest to smallest value is above this; else above 50."""


@dataclass(frozen=True)
class Series:
    """One learner against the parameter: its best setting for each value, in growing order."""

    learner: str
    points: Sequence[tuple[float, Setting]]
    level: Setting | None
    """The best setting of a learner that does not have the parameter, which has no points."""

    @property
    def metric(self) -> Metric:
        """What is drawn."""
        return (self.level or self.points[0][1]).metric


@dataclass(frozen=True)
class ParameterPanel:
    """Mistake rates against one parameter."""

    parameter: str
    series: Sequence[Series]
    log: bool
    others: bool
    """Whether other parameters varied too, so that each point is a choice among settings."""

    @property
    def values(self) -> list[float]:
        """All values that were played."""
        return sorted({value for series in self.series for value, _ in series.points})


def learners(settings: Sequence[Setting]) -> list[str]:
    """Their names, each once, in order of first appearance."""
    return list(dict.fromkeys(setting.learner for setting in settings))


def all_learners(findings: Findings) -> list[str]:
    """Those of every data set."""
    return learners([setting for data in findings.datasets for setting in data.settings])


def telling(settings: Sequence[Setting]) -> list[str]:
    """The parameters that tell these settings of one learner apart."""
    return list(dict.fromkeys(name for setting in settings for name in setting.varied))


def parameter_panel(data: DataFindings) -> ParameterPanel | None:
    """Rates against what was varied; None if every learner was played with one setting."""
    groups = {
        learner: [setting for setting in data.settings if setting.learner == learner]
        for learner in learners(data.settings)
    }
    parameter = _varied(list(groups.values()))
    if parameter is None:
        return None
    series = [_series(learner, group, parameter) for learner, group in groups.items()]
    values = [value for line in series for value, _ in line.points]
    ratio = max(values) / min(values) if min(values) > 0 else 0.0
    return ParameterPanel(
        parameter,
        series,
        log=ratio > _LOG_OVER.get(parameter, 50.0),
        others=any(
            set(telling(groups[line.learner])) - {parameter} for line in series if line.points
        ),
    )


def _varied(groups: Sequence[Sequence[Setting]]) -> str | None:
    """The parameter to draw against: of several, the one that most learners were varied in."""
    counts: dict[str, int] = {}
    for group in groups:
        for name in telling(group):
            if len({_number(setting.params.get(name)) for setting in group} - {None}) > 1:
                counts[name] = counts.get(name, 0) + 1
    for name in _FIRST_CHOICES:
        if name in counts:
            return name
    return max(counts, key=lambda name: counts[name], default=None)


def _series(learner: str, settings: Sequence[Setting], parameter: str) -> Series:
    by_value: dict[float, list[Setting]] = {}
    for setting in settings:
        value = _number(setting.params.get(parameter))
        if value is not None:
            by_value.setdefault(value, []).append(setting)
    points = [(value, best_of(by_value[value])) for value in sorted(by_value)]
    return Series(learner, points, level=None if points else best_of(settings))


def _number(value: ParamValue | None) -> float | None:
    """A place on an axis; words such as "keep" and infinity have none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def axis_name(parameter: str) -> str:
    """`budget B`, `epsilon ε`, `step`."""
    symbol = _SYMBOLS.get(parameter)
    return f"{literal(parameter)} {symbol}" if symbol else literal(parameter)


def pareto_front(settings: Sequence[Setting]) -> list[Setting]:
    """The settings that no other beats in time or metric without losing in the other.

    The fastest first. Of settings equal in both the first is taken.
    """
    front: list[Setting] = []
    for setting in sorted(settings, key=lambda each: (each.summary.seconds_mean, each.cost)):
        if not front or setting.cost < front[-1].cost:
            front.append(setting)
    return front


def short_label(setting: Setting) -> str:
    """`ahpatron B=400, ε=0.5`: the learner, and what tells the setting from its others."""
    varied = ", ".join(
        f"{_SYMBOLS.get(name, name)}={short(value)}" for name, value in setting.varied.items()
    )
    return literal(f"{setting.learner} {varied}".rstrip())
