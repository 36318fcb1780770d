"""Pictures of a sweep: a metric against what was varied and against time; ranks of learners."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.numbers import counted, orders, short, value_text
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.pictures import (
    INK,
    LINE_WIDTH,
    PALE,
    POINTS_PER_INCH,
    Name,
    Pen,
    fitted,
    inches_per_name,
    name_lines,
    name_width,
    pens,
    picture,
    picture_format,
    rule,
    size_in_inches,
    text_width,
)
from ahpatron_cli.sweep.statistics import OverDatasets
from ahpatron_cli.sweep.summary import (
    DataFindings,
    Findings,
    Metric,
    Setting,
    best_of,
    finite_number,
    varied_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 3.1, 2.3
"""Inches of one panel; it grows taller where it holds many names."""
_LEFT, _ABOVE, _BELOW = 0.55, 0.44, 0.55
"""Inches around a panel: for the rates, the title, and the axis with its name."""
_GAP = 0.2
_SIZE = 8.0
_LABEL_SIZE = 7.0
_LABEL_GAP = 9.5
"""Points between labels of the front, one above the other."""
_LABEL_OFFSET = 6.0
"""Points that a label stands to the left of its dot and below it, at least."""
_WIDEST_LABEL = 0.45
"""Of the panel's width."""
_WIDEST_NAME = 130.0
"""Points."""
_TICK_GAP = 0.09
"""Of the panel's width, between two ticks."""
_FASTEST = 1e-6
"""Seconds; a time of 0 has no place on a logarithmic axis."""


_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
"""Of the parameters that are drawn against first."""
_LOG_OVER = {"budget": 8.0}
"""A logarithmic axis where the ratio of largest to smallest value is above this; else above 50."""


def write_plot(path: str | Path, findings: Findings, x: str | None = None) -> None:
    """Write one row of panels per data set to a file whose suffix decides the format."""
    format = picture_format(path)
    if x is not None:
        check_axis(x, drawable(findings))
    write_atomically(path, picture(lambda: draw_sweep(findings, x), format))


# What there is to see ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """One learner against the parameter: its best setting for each value, in growing order."""

    learner: str
    points: Sequence[tuple[float, Setting]]
    level: Setting | None
    """The best setting of a learner that does not have the parameter, which has no points."""


@dataclass(frozen=True)
class ParameterPanel:
    """A metric against one parameter."""

    data: DataFindings
    parameter: str
    series: Sequence[Series]

    @property
    def values(self) -> list[float]:
        """All values that were played."""
        return sorted({value for series in self.series for value, _ in series.points})

    @property
    def log(self) -> bool:
        """Whether values spread widely, or each is the same multiple of the one before."""
        low, high = self.values[0], self.values[-1]
        if low <= 0:
            return False
        ratios = [after / before for before, after in pairwise(self.values)]
        even = len(ratios) > 1 and max(ratios) < 1.05 * min(ratios) and max(ratios) > 1.2
        return even or high / low > _LOG_OVER.get(self.parameter, 50.0)

    @property
    def others(self) -> bool:
        """Whether other parameters varied too, so that each point is a choice among settings."""
        drawn = {line.learner for line in self.series if line.points}
        settings = [one for one in self.data.settings if one.learner in drawn]
        return any(set(one.varied) - {self.parameter} for one in settings)


def all_learners(findings: Findings) -> list[str]:
    """The learners of every data set, in order of first appearance."""
    return list(dict.fromkeys(name for data in findings.datasets for name in _by_learner(data)))


def _by_learner(data: DataFindings) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = {}
    for setting in data.settings:
        found.setdefault(setting.learner, []).append(setting)
    return found


def parameter_panel(data: DataFindings, x: str | None = None) -> ParameterPanel | None:
    """Rates against what was varied, or against `x`; None if that was not varied."""
    groups = _by_learner(data)
    varied = (varied_numbers([one.params for one in group]) for group in groups.values())
    counts = Counter(name for names in varied for name in names)
    parameter = _choice(counts, len(groups)) if x is None else x if x in counts else None
    if parameter is None:
        return None
    series = [_series(learner, group, parameter) for learner, group in groups.items()]
    return ParameterPanel(data, parameter, series)


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


def _choice(counts: Mapping[str, int], count: int) -> str | None:
    """The budget; else what all learners were varied in; else ε or σ, of those that have it."""
    known = [name for name in _SYMBOLS if name in counts]
    of_all = [name for name in (*known, *counts) if counts[name] == count]
    return next(iter([*(name for name in known if name == "budget"), *of_all, *known]), None)


def _series(learner: str, settings: Sequence[Setting], parameter: str) -> Series:
    by_value: dict[float, list[Setting]] = {}
    for setting in settings:
        value = finite_number(setting.params.get(parameter))
        if value is not None:
            by_value.setdefault(value, []).append(setting)
    if len(by_value) == 1 and parameter not in _SYMBOLS:
        by_value = {}  # it was not varied
    points = [(value, best_of(by_value[value])) for value in sorted(by_value)]
    return Series(learner, points, level=None if points else best_of(settings))


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


# The pictures -------------------------------------------------------------------------------------


def learner_pens(findings: Findings) -> dict[str, Pen]:
    """A pen for each learner, the same on every data set."""
    names = all_learners(findings)
    return dict(zip(names, pens(len(names)), strict=True))


def draw_sweep(findings: Findings, x: str | None = None) -> Figure:
    """One row per data set: on the left the parameter that was varied, on the right time.

    Above them the ranks over all data sets, if these are enough for a test.
    """
    by_learner = learner_pens(findings)
    ranks = findings.ranks
    ranked = ranks_height(ranks) + _ABOVE if ranks.groups or ranks.p_value is not None else 0.0
    panels = [parameter_panel(data, x) for data in findings.datasets]
    heights = [_height(data) for data in findings.datasets]
    names = max(name_width(_name(learner), _SIZE) for learner in by_learner)
    second = _LEFT + _WIDTH + names + _GAP + _LEFT if any(panels) else _LEFT
    across = second + _WIDTH + (0 if all(panels) else names) + _GAP
    up = ranked + sum(heights) + len(heights) * (_ABOVE + _BELOW)
    figure = _figure(across, up)
    if ranked:
        width = across - 2 * _GAP
        box = _GAP / across, 1 - (ranked - _ABOVE / 2) / up, width / across, (ranked - _ABOVE) / up
        _draw_ranks(figure.add_axes(box), ranks, width)
    top = up - ranked
    for data, panel, height in zip(findings.datasets, panels, heights, strict=True):
        bottom = top - _ABOVE - height
        left = _LEFT if panel else second
        metric = data.criterion.metric
        if panel:
            _draw_parameter(_axes(figure, _LEFT, bottom, height, metric), panel, by_learner)
        axes = _axes(figure, second, bottom, height, metric)
        _draw_tradeoff(axes, data, by_learner, named=panel is None)
        _title(figure, data, left, top, width=across - left - _GAP, bands=panel is not None)
        top = bottom - _BELOW
    return figure


def draw_parameter(panel: ParameterPanel, by_learner: Mapping[str, Pen]) -> Figure:
    """The left panel of a data set alone."""
    return _alone(panel.data, by_learner, lambda axes: _draw_parameter(axes, panel, by_learner))


def draw_tradeoff(data: DataFindings, by_learner: Mapping[str, Pen]) -> Figure:
    """The right panel of a data set alone, with the names of the learners."""
    return _alone(data, by_learner, lambda axes: _draw_tradeoff(axes, data, by_learner, named=True))


def ranks_height(ranks: OverDatasets) -> float:
    """Inches that a critical-difference diagram needs."""
    rows = math.ceil(len(ranks.mean_ranks) / 2)
    return 0.55 + 0.09 * len(ranks.groups) + rows * inches_per_name(_SIZE)


def draw_ranks(ranks: OverDatasets) -> Figure:
    """The critical-difference diagram alone."""
    width, height = 2 * _WIDTH, ranks_height(ranks)
    figure = _figure(width, height)
    _draw_ranks(figure.add_axes((0, 0, 1, 1)), ranks, width)
    return figure


def _draw_ranks(axes: Axes, ranks: OverDatasets, width: float) -> None:
    """Mean ranks on a line, the best on the left; bars join those that do not differ significantly.

    The y axis is in inches below the line.
    """
    learners = sorted(ranks.mean_ranks, key=lambda learner: ranks.mean_ranks[learner])
    names = [f"{_name(learner)}  {ranks.mean_ranks[learner]:.2f}" for learner in learners]
    room = max(text_width(name, _SIZE) for name in names) / POINTS_PER_INCH + 0.15
    per_rank = (width - 2 * room) / (len(learners) - 1)
    axes.set_axis_off()
    axes.set_xlim(1 - room / per_rank, len(learners) + room / per_rank)
    axes.set_ylim(ranks_height(ranks) - 0.4, -0.4)
    line: dict[str, Any] = {"color": INK, "linewidth": 0.8, "solid_capstyle": "butt"}
    axes.plot([1, len(learners)], [0, 0], **line)
    for tick in range(1, len(learners) + 1):
        axes.plot([tick, tick], [-0.05, 0], **line)
        axes.text(tick, -0.08, str(tick), fontsize=_SIZE, color=INK, ha="center", va="bottom")
    if ranks.critical_difference is not None:
        end = min(1 + ranks.critical_difference, axes.get_xlim()[1])
        axes.plot([1, end], [-0.27, -0.27], **line | {"linewidth": LINE_WIDTH})
        text = f"critical difference {ranks.critical_difference:.2f}"
        axes.text(1, -0.3, text, fontsize=_LABEL_SIZE, color=PALE, ha="left", va="bottom")
    for number, group in enumerate(ranks.groups):
        ends = [ranks.mean_ranks[group[0]] - 0.04, ranks.mean_ranks[group[-1]] + 0.04]
        axes.plot(ends, [0.08 + 0.09 * number] * 2, **line | {"linewidth": 2.4})
    half = math.ceil(len(learners) / 2)
    for number, (learner, name) in enumerate(zip(learners, names, strict=True)):
        left = number < half
        row = number if left else len(learners) - 1 - number
        down = 0.15 + 0.09 * len(ranks.groups) + row * inches_per_name(_SIZE)
        edge = 1 - 0.1 / per_rank if left else len(learners) + 0.1 / per_rank
        rank = ranks.mean_ranks[learner]
        axes.plot([rank, rank, edge], [0, down, down], **line | {"linewidth": 0.6})
        axes.text(
            edge + (-0.04 if left else 0.04) / per_rank,
            down,
            name,
            fontsize=_SIZE,
            color=INK,
            ha="right" if left else "left",
            va="center",
            parse_math=False,
        )


def _alone(
    data: DataFindings, by_learner: Mapping[str, Pen], draw: Callable[[Axes], None]
) -> Figure:
    """A figure of one panel, as wide as any other of this sweep."""
    names = max(name_width(_name(learner), _SIZE) for learner in by_learner)
    height = _height(data)
    figure = _figure(_LEFT + _WIDTH + names, _BELOW + height + _GAP)
    draw(_axes(figure, _LEFT, _BELOW, height, data.criterion.metric))
    return figure


def _figure(across: float, up: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(across, up))


def _axes(figure: Figure, left: float, bottom: float, height: float, metric: Metric) -> Axes:
    """A panel at a place in inches."""
    from matplotlib.ticker import FuncFormatter

    across, up = figure.get_size_inches()
    axes = figure.add_axes((left / across, bottom / up, _WIDTH / across, height / up))
    axes.tick_params(labelsize=_SIZE, colors=INK)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):.6g}"))
    axes.set_ylabel(metric.head.replace(" %", " (%)"), fontsize=_SIZE, color=INK)
    return axes


def _height(data: DataFindings) -> float:
    """Tall enough for the names of the learners and for the labels of the front."""
    names = len(_by_learner(data)) * inches_per_name(_SIZE)
    labels = len(pareto_front(data.settings)) * _LABEL_GAP / POINTS_PER_INCH
    return max(_HEIGHT, names, 2 * labels)


def _name(learner: str) -> str:
    return fitted(literal(learner), _WIDEST_NAME, _SIZE)


def _title(
    figure: Figure, data: DataFindings, left: float, top: float, *, width: float, bands: bool
) -> None:
    """The data set's name and, in grey, what its points are means of."""
    across, up = figure.get_size_inches()
    rounds = data.data.record.rounds
    repeats = max(setting.summary.repeats for setting in data.settings)
    facts = counted(rounds, "round")
    if repeats > 1:
        facts += f", mean{' ± sd' if bands else ''} over {orders(repeats, data.data.shuffled)}"
    room = width * POINTS_PER_INCH - text_width(facts, _SIZE) - 10
    name = fitted(literal(data.short), room, _SIZE + 1)
    beside = left + (text_width(name, _SIZE + 1) + 10) / POINTS_PER_INCH
    height = (top - 0.2) / up
    figure.text(left / across, height, name, fontsize=_SIZE + 1, color=INK, parse_math=False)
    figure.text(beside / across, height, facts, fontsize=_SIZE, color=PALE)


def _draw_parameter(axes: Axes, panel: ParameterPanel, by_learner: Mapping[str, Pen]) -> None:
    """One line per learner with a band of ± sd; learners without the parameter lie flat."""
    names = []
    for series in panel.series:
        look = _look(by_learner[series.learner], flat=series.level is not None)
        names.append(Name(_name(series.learner), _draw_series(axes, series, look), look))
    if panel.log:
        axes.set_xscale("log")
    _ticks_at(axes, panel.values, panel.data.data.record.rounds, log=panel.log)
    across = f"{literal(panel.parameter)} {_SYMBOLS.get(panel.parameter, '')}".rstrip()
    across += ", others at their best" if panel.others else ""
    axes.set_xlabel(across, fontsize=_SIZE, color=INK, parse_math=False)
    axes.margins(x=0.04, y=0.06)
    if not panel.data.criterion.metric.larger_is_better:
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    rule(axes)
    name_lines(axes, names, size=_SIZE)


def _draw_series(axes: Axes, series: Series, look: Mapping[str, Any]) -> float:
    """Draw one learner; returns the height at which it ends."""
    colour = look["color"]
    if series.level is not None:
        rate, sd = _level(series.level)
        axes.axhspan(rate - sd, rate + sd, color=colour, alpha=0.08, linewidth=0)
        axes.axhline(rate, **{**look, "marker": None})
        return rate
    values = [value for value, _ in series.points]
    levels = [_level(setting) for _, setting in series.points]
    rates = [rate for rate, _ in levels]
    lows, highs = ([rate + sign * sd for rate, sd in levels] for sign in (-1, 1))
    if len(values) > 1:
        axes.fill_between(values, lows, highs, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(values, lows, highs, color=colour, alpha=0.4)
    axes.plot(values, rates, **look)
    return rates[-1]


def _draw_tradeoff(
    axes: Axes, data: DataFindings, by_learner: Mapping[str, Pen], *, named: bool
) -> None:
    """Every setting a dot, and the front of those that none beats in both time and rate."""
    names = []
    for learner, own in _by_learner(data).items():
        look = _look(by_learner[learner]) | {"linestyle": "none", "markersize": 5}
        seconds, rates = _places(own)
        axes.plot(seconds, rates, markeredgewidth=0, **look)
        names.append(Name(_name(learner), min(rates), look))
    front = pareto_front(data.settings)
    axes.plot(*_places(front), color=INK, linewidth=0.8, zorder=1.5)  # under the dots
    axes.set_xscale("log")
    axes.set_xlabel("learning time (s)", fontsize=_SIZE, color=INK)
    if len(front) > 1:
        meaning = "joined: none is both faster and better"
        axes.set_title(meaning, loc="right", fontsize=_LABEL_SIZE, color=PALE, pad=3)
    axes.margins(x=0.05, y=0.06)
    _label_front(axes, front)
    _ticks_of_time(axes)
    if named:
        name_lines(axes, names, size=_SIZE, threads=False)


def _label_front(axes: Axes, front: Sequence[Setting]) -> None:
    """Name the settings of the front, each to the left of its dot and below it.

    There is no dot there, nor the line of the front: it would be faster and better. Labels only
    ever move down to make room, so they stay where nothing is, and threads straight down from
    the dots cross none of them.
    """
    across, up = (inches * POINTS_PER_INCH for inches in size_in_inches(axes))
    texts = [fitted(short_label(each), _WIDEST_LABEL * across, _LABEL_SIZE) for each in front]
    times, rates = _places(front)
    low, high = (math.log10(limit) for limit in axes.get_xlim())
    for text, seconds in zip(texts, times, strict=True):
        width = text_width(text, _LABEL_SIZE) + _LABEL_OFFSET
        low = min(low, (math.log10(seconds) * across - width * high) / (across - width))
    axes.set_xlim(left=10**low)
    bottom, top = axes.get_ylim()
    lowest = bottom
    while True:
        point = (top - lowest) / up
        gap, places = _LABEL_GAP * point, [math.inf]
        for rate in rates:
            places.append(min(rate - _LABEL_OFFSET * point, places[-1] - gap))
        if places[-1] - gap / 2 >= lowest:
            break
        lowest -= (top - bottom) / 50
    axes.set_ylim(lowest, top)
    for text, seconds, rate, place in zip(texts, times, rates, places[1:], strict=True):
        if place < rate - _LABEL_OFFSET * point:
            axes.plot([seconds, seconds], [rate, place], color=INK, linewidth=0.4, zorder=1.4)
        axes.annotate(
            text,
            (seconds, place),
            (-_LABEL_OFFSET / 2, 0),
            textcoords="offset points",
            horizontalalignment="right",
            verticalalignment="center",
            fontsize=_LABEL_SIZE,
            color=INK,
            parse_math=False,
        )
    axes.set_yticks(
        [tick for tick in axes.get_yticks() if lowest <= tick <= top and (tick >= 0 or top <= 0)]
    )


def _ticks_of_time(axes: Axes) -> None:
    """Round numbers, never fewer than two on an axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = axes.get_xlim()
    if high / low < 6:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    else:
        subs = (1.0, 2.0, 5.0) if high / low < 50 else (1.0, 3.0) if high / low < 2000 else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _ticks_at(axes: Axes, values: Sequence[float], rounds: int, *, log: bool) -> None:
    """Ticks at values that were played, as many as there is room for, the outermost first."""
    from matplotlib.ticker import NullLocator

    places = [math.log(value) if log else value for value in values]
    longest = max(text_width(_tick_text(value, rounds), _SIZE) for value in values)
    apart = max(_TICK_GAP, 1.2 * longest / (_WIDTH * POINTS_PER_INCH))
    gap = apart * (places[-1] - places[0])
    chosen = [0]
    for number in range(1, len(places) - 1):
        if min(places[number] - places[chosen[-1]], places[-1] - places[number]) >= gap:
            chosen.append(number)
    chosen += [len(places) - 1] if len(places) > 1 else []
    ticks = [values[number] for number in chosen]
    axes.set_xticks(ticks, [_tick_text(tick, rounds) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _tick_text(tick: float, rounds: int) -> str:
    text = value_text(tick, rounds)
    return text if "√" in text else short(tick, 4 if tick >= 1000 else 3)


def _look(pen: Pen, *, flat: bool = False) -> dict[str, Any]:
    return {
        "color": pen.colour,
        "linestyle": "--" if flat else "-",
        "linewidth": LINE_WIDTH,
        "marker": pen.marker,
        "markersize": 4,
    }


def _level(setting: Setting) -> tuple[float, float]:
    """Height and half the width of its band; lower is better, also where larger values are.

    Of a single pass the standard deviation is no width.
    """
    scale = 100 if setting.metric.in_percent else 1
    return scale * setting.cost, scale * (setting.sd or 0.0)


def _places(settings: Sequence[Setting]) -> tuple[list[float], list[float]]:
    """Time and height of each."""
    return [_seconds(one) for one in settings], [_level(one)[0] for one in settings]


def _seconds(setting: Setting) -> float:
    return max(setting.summary.seconds_mean, _FASTEST)
