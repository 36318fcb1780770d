"""What there is to see in a sweep, before anything is drawn.

The parameter that was varied decides the picture: the budget first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.output.escape import literal
from ahpatron_cli.records import ParamValue
from ahpatron_cli.sweep.summary import (
    DataFindings,
    Findings,
    Metric,
    Setting,
    best_of,
    varied_numbers,
)

_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
_FIRST_CHOICES = ("budget", "epsilon", "sigma")
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
    rounds: int = 0
    """T of the data set."""

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


def parameter_panel(data: DataFindings, x: str | None = None) -> ParameterPanel | None:
    """Rates against what was varied, or against `x`; None if that was not varied."""
    groups = {
        learner: [setting for setting in data.settings if setting.learner == learner]
        for learner in learners(data.settings)
    }
    counts = _varied(list(groups.values()))
    parameter = _choice(counts, len(groups)) if x is None else x if x in counts else None
    if parameter is None:
        return None
    series = [_series(learner, group, parameter) for learner, group in groups.items()]
    values = sorted({value for line in series for value, _ in line.points})
    return ParameterPanel(
        parameter,
        series,
        log=_is_log(values, _LOG_OVER.get(parameter, 50.0)),
        others=any(
            set(telling(groups[line.learner])) - {parameter} for line in series if line.points
        ),
        rounds=data.data.record.rounds,
    )


def _is_log(values: Sequence[float], limit: float) -> bool:
    """Whether values spread widely, or each is the same multiple of the one before."""
    if values[0] <= 0:
        return False
    ratios = [high / low for low, high in pairwise(values)]
    even = len(ratios) > 1 and max(ratios) < 1.05 * min(ratios) and max(ratios) > 1.2
    return even or values[-1] / values[0] > limit


def drawable(findings: Findings) -> list[str]:
    """The parameters that could be drawn against."""
    tried = [settings for data in findings.datasets for settings in data.tried.values()]
    return list(dict.fromkeys(name for settings in tried for name in varied_numbers(settings)))


def check_axis(x: str, names: Sequence[str]) -> None:
    """Refuse to draw against a parameter that was not varied."""
    if not names:
        raise usage(f"--x {x}: no parameter is varied", "vary it: -g NAME=V1,V2")
    if x not in names:
        hint = suggestion(x, names) or f"use one of {', '.join(names)}"
        raise usage(f"--x {x}: no such parameter is varied", hint)


def _varied(groups: Sequence[Sequence[Setting]]) -> dict[str, int]:
    """The parameters that were varied over numbers, and for how many learners."""
    counts: dict[str, int] = {}
    for group in groups:
        for name in telling(group):
            if len({_number(setting.params.get(name)) for setting in group} - {None}) > 1:
                counts[name] = counts.get(name, 0) + 1
    return counts


def _choice(counts: Mapping[str, int], count: int) -> str | None:
    """The budget; else what all learners were varied in; else ε or σ, of those that have it."""
    known = [name for name in _FIRST_CHOICES if name in counts]
    of_all = [name for name in (*known, *counts) if counts[name] == count]
    return next(iter([*(name for name in known if name == "budget"), *of_all, *known]), None)


def _series(learner: str, settings: Sequence[Setting], parameter: str) -> Series:
    by_value: dict[float, list[Setting]] = {}
    for setting in settings:
        value = _number(setting.params.get(parameter))
        if value is not None:
            by_value.setdefault(value, []).append(setting)
    if len(by_value) == 1 and parameter not in _FIRST_CHOICES:
        by_value = {}  # it was not varied
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
    varied = ", ".join(f"{_SYMBOLS.get(name, name)}={text}" for name, text in setting.texts.items())
    return literal(f"{setting.learner} {varied}".rstrip())
