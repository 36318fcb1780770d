"""Pictures with matplotlib: learning curves, a metric against a parameter and time, mean ranks.

matplotlib is an extra and slow to import, so only the functions that draw import it. They use its
object interface: no global state, no window, no display.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.numbers import counted, orders, percent, short
from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.output.sweep_table import friedman_text, rejected
from ahpatron_cli.records import Curve, grouped
from ahpatron_cli.sweep.statistics import OverDatasets
from ahpatron_cli.sweep.summary import (
    DatasetSummary,
    Setting,
    SweepSummary,
    best_of,
    finite_number,
    varied_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Look: TypeAlias = dict[str, Any]
"""Properties of a line."""
Panel: TypeAlias = tuple[str, "Callable[[Axes], None]"]
"""A caption, and a function that draws."""

INSTALL = "pip install 'ahpatron-cli[plot]'"
INK, PALE, GRID = "#333333", "#666666", "#dddddd"
DARK = {INK: "#e4e7eb", PALE: "#a3acb7", GRID: "#3a4149"}
"""What they are on a dark page."""
# Okabe and Ito's colours, which colour-blind readers can distinguish; their yellow is too pale.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK)
_STROKES, _MARKERS = ("-", "--", ":", "-."), "os^D"
_METADATA: Mapping[str, Mapping[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
"""Of the parameters that are drawn against first."""
_WIDTH, _HEIGHT, _LINE = 4.6, 3.2, 0.18
"""Inches of one panel with its labels, and of a line of text; panels grow with their names."""
_FIRST_DRAWN = 0.01
"""The share of rounds that is left out on the left: one mistake in one round is 100 %."""
_FASTEST = 1e-6
"""Seconds; a time of 0 has no place on a logarithmic axis."""


def has_matplotlib() -> bool:
    """Whether pictures can be drawn, found out without the slow import."""
    return importlib.util.find_spec("matplotlib") is not None


def picture_format(path: str | Path, *others: str) -> str:
    """The format that a file name asks for, a picture's or one of the `others`, such as csv.

    Refused before a long run, and not after it: other suffixes, and pictures without matplotlib.
    """
    format = format_of_suffix(path, formats={f".{name}": name for name in (*others, *_METADATA)})
    if format not in others and not has_matplotlib():
        instead = "".join(f", or write a .{name} file" for name in others)
        raise usage(f"writing .{format} pictures needs matplotlib", INSTALL + instead)
    return format


def picture(draw: Callable[[], Figure], format: str, *, transparent: bool = False) -> bytes:
    """What `draw` draws as a png, svg or pdf: no date, no random identifiers."""
    from matplotlib import rc_context

    target = io.BytesIO()
    style = Path(__file__).with_name("pictures.mplstyle")
    with rc_context(fname=style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box
        look: Look = {"dpi": 200, "transparent": transparent, "metadata": dict(_METADATA[format])}
        draw().savefig(target, format=format, **look)
    return target.getvalue()


def one_panel(draw: Callable[[Axes], None], names: int) -> Figure:
    """A figure of one panel with so many names beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, max(_HEIGHT, 0.9 + _LINE * names)), layout="constrained")
    draw(figure.add_subplot())
    return figure


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Colour, stroke and marker of each name; no two are alike among the first 28."""
    made = {}
    for number, name in enumerate(names):
        stroke, colour = divmod(number, len(_COLOURS))
        look = {"color": _COLOURS[colour], "linestyle": _STROKES[stroke % len(_STROKES)]}
        made[name] = look | {"marker": _MARKERS[stroke % len(_STROKES)], "markersize": 4}
    return made


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places near the `wanted`, in their order, `gap` apart, inside the limits if they all fit."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    places = [0.0] * len(wanted)
    last = low - gap
    for number in order:
        places[number] = last = max(wanted[number], last + gap)
    last = max(high, low + gap * (len(wanted) - 1)) + gap
    for number in reversed(order):
        places[number] = last = min(places[number], last - gap)
    return places


def _shown(name: str) -> str:
    text = literal(name)
    return text if len(text) <= 28 else f"{text[:27]}…"


def _name_lines(axes: Axes, names: Sequence[tuple[str, float, Look]]) -> None:
    """Write each name to the right of its line, none over another: no legend to look up."""
    low, high = axes.get_ylim()
    gap = (high - low) * _LINE / (axes.bbox.height / axes.figure.dpi)
    places = spread([end for _, end, _ in names], gap=gap, low=low, high=high)
    beside = axes.get_yaxis_transform()
    for (name, end, look), place in zip(names, places, strict=True):
        thread = None
        if look["linestyle"] == "none":  # dots end nowhere: one before the name
            axes.plot([1.06], [place], **look, transform=beside, clip_on=False)
        else:
            thread = {"arrowstyle": "-", "color": look["color"], "linestyle": look["linestyle"]}
            thread |= {"shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        where: Look = {"xycoords": beside, "va": "center", "annotation_clip": False}
        axes.annotate(name, (1.01, end), (1.09, place), arrowprops=thread, **where)


# Learning curves ----------------------------------------------------------------------------------


def write_curve(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write the curves to a file whose suffix decides the format."""
    format = picture_format(path, "csv")
    drawn = _as_csv(curves) if format == "csv" else picture(lambda: draw_curves(curves), format)
    write_atomically(path, drawn)


def _as_csv(curves: Sequence[Curve]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    recent = any(curve.recent_rate is not None for curve in curves)
    head = ["learner", "round", "mistakes", "mistake_rate", *(["recent_rate"] if recent else [])]
    writer.writerow(head)
    for curve in curves:
        columns = curve.rounds, curve.mistakes, curve.mistake_rate, curve.recent_rate
        known = (column.tolist() for column in columns if column is not None)
        for number, mistakes, *rates in zip(*known, strict=True):
            shown = int(mistakes) if mistakes == int(mistakes) else mistakes
            writer.writerow((spreadsheet_text(curve.label), number, shown, *rates))
    return target.getvalue()


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """One line per learner; bands are ± one standard deviation, a dotted line is the baseline."""
    from matplotlib.figure import Figure

    height = max(4.0, 0.9 + _LINE * len(curves))
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.add_subplot()
    names, highest = [], 1.0
    numbered = looks([str(number) for number in range(len(curves))])
    for curve, look in zip(curves, numbered.values(), strict=True):
        look |= {"marker": None}
        drawn = curve.rounds >= _FIRST_DRAWN * curve.rounds[-1]
        rounds, rates = curve.rounds[drawn], 100 * curve.mistake_rate[drawn]
        axes.plot(rounds, rates, **look)
        highest = max(highest, float(rates.max()))
        if curve.recent_rate is not None:
            axes.plot(rounds, 100 * curve.recent_rate[drawn], **look, linewidth=0.5)
        if curve.sd is not None:
            sd = 100 * curve.sd[drawn] / rounds
            axes.fill_between(rounds, rates - sd, rates + sd, color=look["color"], alpha=0.15, lw=0)
        label = f"{_shown(curve.label)}  {percent(curve.mistake_rate[-1])} %"
        names.append((label, float(rates[-1]), look))
    for baseline in {curve.baseline for curve in curves} - {None}:
        rate, look = 100 * (baseline or 0.0), {"color": PALE, "linestyle": ":"}
        axes.axhline(rate, **look, linewidth=1.0)
        names.append((f"baseline  {rate:.2f} %", rate, look))
        highest = max(highest, rate)
    abouts = {curve.about for curve in curves}
    if len(abouts) == 1:
        axes.set_title(literal(abouts.pop()) + (", mean ± sd" * (curves[0].sd is not None)))
    axes.set_xlabel("round t")
    axes.set_ylabel("mistake rate |M_t| / t (%)")
    axes.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(0, min(1.1 * highest, 100))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    _name_lines(axes, names)
    return figure


# Sweeps -------------------------------------------------------------------------------------------


def write_plot(path: str | Path, findings: SweepSummary, x: str | None = None) -> None:
    """Write one row of panels per data set to a file whose suffix decides the format."""
    format = picture_format(path)
    check_drawable(findings, x)
    write_atomically(path, picture(lambda: draw_sweep(findings, x), format))


def check_drawable(findings: SweepSummary, x: str | None) -> None:
    """Refuse to draw against a parameter that no learner was varied in."""
    if x is not None:
        check_axis(x, list(dict.fromkeys(n for one in findings.datasets for n in _axes_of(one))))


def check_axis(x: str, names: Sequence[str]) -> None:
    """Refuse to draw against a parameter that is not one of those varied."""
    if not names:
        raise usage(f"--x {x}: no parameter is varied", "vary it: -g NAME=V1,V2")
    if x not in names:
        hint = suggestion(x, names) or f"use one of {', '.join(names)}"
        raise usage(f"--x {x}: no such parameter is varied", hint)


def learners_of(findings: SweepSummary) -> list[str]:
    """The learners of every data set, in order of first appearance."""
    settings = (setting for found in findings.datasets for setting in found.settings)
    return list(dict.fromkeys(setting.learner for setting in settings))


def _axes_of(found: DatasetSummary) -> list[str]:
    """The parameters that could be drawn against, the best known first."""
    names = {name: None for own in found.tried.values() for name in varied_numbers(own)}
    return sorted(names, key=[*_SYMBOLS, *names].index)


def pareto_front(settings: Sequence[Setting]) -> list[Setting]:
    """The settings that no other beats in time or metric without losing in the other.

    The fastest first. Of settings equal in both the first is taken.
    """
    front: list[Setting] = []
    for setting in sorted(settings, key=lambda each: (each.summary.seconds_mean, each.cost)):
        if not front or setting.cost < front[-1].cost:
            front.append(setting)
    return front


def panels(found: DatasetSummary, x: str | None, by_learner: Mapping[str, Look]) -> list[Panel]:
    """The metric against a parameter, if any was varied, and against time."""
    names, metric = _axes_of(found), found.criterion.metric.short
    several = max(one.summary.repeats for one in found.settings) > 1
    parameter = x if x in names else next(iter(names), None) if x is None else None
    made: list[Panel] = []
    if parameter is not None:
        caption = f"{metric} against {parameter}{'; bands: ± standard deviation' * several}"
        flat = any(not _series(found, parameter, learner)[0] for learner in found.tried)
        caption += f"; dashed: learners without {parameter}" * flat
        made.append((caption, partial(_draw_parameter, found, parameter, by_learner)))
    front = "; line: Pareto front" * (len(pareto_front(found.settings)) > 1)
    caption = f"{metric} against learning time, each setting a dot{front}"
    return [*made, (caption, partial(_draw_tradeoff, found, by_learner))]


def draw_sweep(findings: SweepSummary, x: str | None = None) -> Figure:
    """One row per data set: the metric against a parameter and time; above them the mean ranks."""
    from matplotlib.figure import Figure

    by_learner, ranks = looks(learners_of(findings)), findings.ranks
    top = int(ranks.p_value is not None)
    rows = len(findings.datasets) + top
    height = rows * max(_HEIGHT, 0.9 + _LINE * len(by_learner))
    figure = Figure(figsize=(2 * _WIDTH, height), layout="constrained")
    grid = figure.add_gridspec(rows, 2)
    if top:
        draw_ranks(ranks, figure.add_subplot(grid[0, :]))
    for row, found in enumerate(findings.datasets, top):
        repeats = max(one.summary.repeats for one in found.settings)
        title = f"{_shown(found.short)}: {counted(found.data.record.rounds, 'round')}"
        title += f", {orders(repeats, found.data.shuffled)}" * (repeats > 1)
        for column, (_, draw) in enumerate(panels(found, x, by_learner)):
            axes = figure.add_subplot(grid[row, column])
            axes.set_title("" if column else title)
            draw(axes)
    return figure


def _series(found: DatasetSummary, name: str, learner: str) -> tuple[list[float], list[Setting]]:
    """The best setting of a learner at each value of a parameter; none if it was not varied."""
    own = [one for one in found.settings if one.learner == learner]
    numbers = {finite_number(one.params.get(name)) for one in own}
    values = sorted(value for value in numbers if value is not None)
    if len(values) == 1 and name not in _SYMBOLS:
        values = []
    return values, [best_of([s for s in own if s.params.get(name) == value]) for value in values]


def _draw_parameter(
    found: DatasetSummary, parameter: str, by_learner: Mapping[str, Look], axes: Axes
) -> None:
    """One line per learner with a band of ± sd; learners without the parameter lie flat."""
    drawn = {group[0].learner: group for group in grouped(found.settings, lambda s: (s.learner,))}
    series = {learner: _series(found, parameter, learner) for learner in drawn}
    texts = {
        value: setting.texts.get(parameter, short(value))
        for points in series.values()
        for value, setting in zip(*points, strict=True)
    }
    names = []
    for learner, (values, settings) in series.items():
        look = by_learner[learner] | {"linestyle": "-"}
        if not values:
            values, settings = [min(texts), max(texts)], [best_of(drawn[learner])] * 2
            look |= {"linestyle": "--", "marker": None}
        mid, low, high = (
            [_scaled(one, one.mean + k * (one.sd or 0)) for one in settings] for k in (0, -1, 1)
        )
        axes.plot(values, mid, **look)
        axes.fill_between(values, low, high, color=look["color"], alpha=0.15, lw=0)
        names.append((_shown(learner), mid[-1], look))
    _value_axis(axes, texts)
    axes.set_xlabel(f"{literal(parameter)} {_SYMBOLS.get(parameter, '')}".rstrip())
    axes.grid(axis="y")
    _metric_axis(axes, found)
    _name_lines(axes, names)


def _draw_tradeoff(found: DatasetSummary, by_learner: Mapping[str, Look], axes: Axes) -> None:
    """Every setting a dot, and the Pareto front of those that none beats in time and metric."""
    names = []
    for own in grouped(found.settings, lambda one: (one.learner,)):
        look = by_learner[own[0].learner] | {"linestyle": "none", "markeredgewidth": 0}
        axes.plot(*_places(own), **look)
        names.append((_shown(own[0].learner), _places([best_of(own)])[1][0], look))
    front = pareto_front(found.settings)
    axes.plot(*_places(front), color=INK, linewidth=0.8, zorder=1.5)  # under the dots
    axes.set_xscale("log")
    axes.set_xlabel("learning time (s)" + "; line: Pareto front" * bool(front[1:]))
    _metric_axis(axes, found)
    _time_axis(axes)
    _name_lines(axes, names)


def _scaled(setting: Setting, value: float) -> float:
    return 100 * value if setting.metric.in_percent else value


def _places(settings: Sequence[Setting]) -> tuple[list[float], list[float]]:
    """Time and metric of each."""
    seconds = [max(one.summary.seconds_mean, _FASTEST) for one in settings]
    return seconds, [_scaled(one, one.mean) for one in settings]


def _metric_axis(axes: Axes, found: DatasetSummary) -> None:
    """A rate starts at 0."""
    metric = found.criterion.metric
    axes.set_ylabel(metric.head.replace(" %", " (%)"))
    axes.margins(x=0.05, y=0.15)
    if metric.in_percent:
        top = 110.0 if metric.larger_is_better else max(axes.get_ylim()[1], 0.1)
        axes.set_ylim(0, top)


def _value_axis(axes: Axes, texts: Mapping[float, str]) -> None:
    """Ticks at values that were run, as many as there is room for, the outermost first."""
    values = sorted(texts)
    log = values[0] > 0 and values[-1] >= 8 * values[0]
    if log:
        axes.set_xscale("log")
    places = {value: math.log(value) if log else value for value in values}
    gap = 0.03 * max(map(len, texts.values()), default=1) + 0.03  # of the axis
    gap *= places[values[-1]] - places[values[0]]
    ticks = values[:1]
    for value in values[1:-1]:
        if min(places[value] - places[ticks[-1]], places[values[-1]] - places[value]) >= gap:
            ticks.append(value)
    ticks += values[1:][-1:]
    axes.set_xticks(ticks, [texts[tick] for tick in ticks])
    axes.set_xticks([], minor=True)


def _time_axis(axes: Axes) -> None:
    """Round numbers that do not collide, never fewer than two."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = axes.get_xlim()
    subs = (1.0, 2.0, 5.0) if high / low < 50 else (1.0, 3.0) if high / low < 2000 else (1.0,)
    axes.xaxis.set_major_locator(MaxNLocator(4) if high / low < 6 else LogLocator(subs=subs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def draw_ranks(ranks: OverDatasets, axes: Axes) -> None:
    """A dot per learner on an axis of mean ranks, the best above.

    Where Friedman's test rejects, a bar joins each group that does not differ significantly.
    """
    learners = sorted(ranks.mean_ranks, key=lambda learner: ranks.mean_ranks[learner])
    values, count = [ranks.mean_ranks[learner] for learner in learners], len(learners)
    axes.plot(values, range(count), "o", color=_COLOURS[0], markersize=5)
    named = zip(map(_shown, learners), values, strict=True)
    axes.set_yticks(range(count), [f"{name}  {rank:.2f}" for name, rank in named])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0.8, count + 0.2 + 0.03 * count * (len(ranks.groups) + 1))
    axes.set_xticks(range(1, count + 1))
    axes.grid(axis="x")
    axes.set_xlabel("mean rank; 1 is best")
    test, _, finding = friedman_text(ranks).partition(";")
    bars = "\nbars: no significant difference (Nemenyi, 5 %)"
    axes.set_title(test + bars * bool(finding))
    for number, group in enumerate(ranks.groups if rejected(ranks) else (), 1):
        ends = [learners.index(name) for name in (group[0], group[-1])]
        axes.plot([count + 0.2 + 0.03 * count * number] * 2, ends, color=INK, linewidth=2.4)
