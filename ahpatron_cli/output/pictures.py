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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.numbers import counted, orders, p_value, percent, short
from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.output.sweep_table import rejected
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
_SIZE, _SMALL = 8.5, 7.0
_WIDTH, _HEIGHT = 3.2, 2.4
"""Inches of one panel; it grows taller where it has many names."""
_LEFT, _ABOVE, _BELOW = 0.6, 0.45, 0.55
_MOST_CHARACTERS = 28
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
        look: Look = {"dpi": 200, "bbox_inches": "tight", "transparent": transparent}
        draw().savefig(target, format=format, metadata=dict(_METADATA[format]), **look)
    return target.getvalue()


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Colour, stroke and marker of each name; no two are alike among the first 28."""
    rounds, colours = len(_STROKES), len(_COLOURS)
    made = {}
    for number, name in enumerate(names):
        stroke = number // colours % rounds
        look = {"color": _COLOURS[number % colours], "linestyle": _STROKES[stroke]}
        made[name] = look | {"marker": _MARKERS[stroke], "linewidth": 1.6, "markersize": 4}
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


def _inches(characters: int, size: float = _SIZE) -> float:
    """The width of a text, rather too much than too little."""
    return 0.65 * characters * size / 72


def _size(axes: Axes) -> tuple[float, float]:
    """Width and height of the axes in inches."""
    box = axes.get_window_extent()  # in pixels
    return box.width / axes.figure.dpi, box.height / axes.figure.dpi


def _shown(name: str) -> str:
    text = literal(name)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def _name_lines(axes: Axes, names: Sequence[tuple[str, float, Look]]) -> None:
    """Write each name to the right of its line, none over another: no legend to look up.

    A thin thread leads from the end of the line to a stroke in its own look and the name.
    """
    (low, high), (across, up) = axes.get_ylim(), _size(axes)
    gap = (high - low) * 1.5 * _SIZE / 72 / up
    places = spread([end for _, end, _ in names], gap=gap, low=low, high=high)
    start, left, middle, right, text = (1 + x / across for x in (0.03, 0.18, 0.29, 0.4, 0.45))
    beside: Look = {"transform": axes.get_yaxis_transform(), "clip_on": False}
    for (name, end, look), place in zip(names, places, strict=True):
        if look["linestyle"] != "none":  # dots end nowhere
            axes.plot([start, left], [end, place], color=look["color"], linewidth=0.6, **beside)
        axes.plot([left, middle, right], [place] * 3, markevery=[1], **look, **beside)
        axes.text(text, place, name, transform=beside["transform"], va="center")


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

    figure = Figure(figsize=(6.4, max(4.0, 0.6 + 0.18 * len(curves))))
    axes = figure.add_subplot()
    names, highest = [], 1.0
    numbered = looks([str(number) for number in range(len(curves))])
    for curve, look in zip(curves, numbered.values(), strict=True):
        look |= {"marker": None}
        drawn = curve.rounds >= _FIRST_DRAWN * curve.rounds[-1]
        rounds = curve.rounds[drawn]
        axes.plot(rounds, 100 * curve.mistake_rate[drawn], **look)
        highest = max(highest, 100 * float(curve.mistake_rate[drawn].max()))
        if curve.recent_rate is not None:
            axes.plot(rounds, 100 * curve.recent_rate[drawn], **look | {"linewidth": 0.5})
        if curve.sd is not None:
            low, high = (100 * (curve.mistakes + s * curve.sd)[drawn] / rounds for s in (-1, 1))
            axes.fill_between(rounds, low, high, color=look["color"], alpha=0.15, linewidth=0)
        rate = float(curve.mistake_rate[-1])
        names.append((f"{_shown(curve.label)}  {percent(rate)} %", 100 * rate, look))
    baselines = {curve.baseline for curve in curves}
    baseline = baselines.pop() if len(baselines) == 1 else None
    if baseline is not None:
        look = {"color": PALE, "linestyle": ":", "linewidth": 1.0}
        axes.axhline(100 * baseline, **look)
        names.append((f"baseline  {percent(baseline)} %", 100 * baseline, look))
    abouts = [about for about in dict.fromkeys(curve.about for curve in curves) if about]
    if len(abouts) == 1:
        axes.set_title(literal(abouts[0]) + (", mean ± sd" if curves[0].sd is not None else ""))
    axes.set_xlabel("round t")
    axes.set_ylabel("mistake rate |M_t| / t (%)")
    axes.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(0, min(1.1 * max(highest, 100 * (baseline or 0.0)), 100))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    _name_lines(axes, names)
    return figure


# Sweeps -------------------------------------------------------------------------------------------


def write_plot(path: str | Path, findings: SweepSummary, x: str | None = None) -> None:
    """Write one row of panels per data set to a file whose suffix decides the format."""
    format = picture_format(path)
    if x is not None:
        check_axis(x, drawable(findings))
    write_atomically(path, picture(lambda: draw_sweep(findings, x), format))


def drawable(findings: SweepSummary) -> list[str]:
    """The parameters that could be drawn against."""
    tried = [settings for found in findings.datasets for settings in found.tried.values()]
    return list(dict.fromkeys(name for settings in tried for name in varied_numbers(settings)))


def check_axis(x: str, names: Sequence[str]) -> None:
    """Refuse to draw against a parameter that was not varied."""
    if not names:
        raise usage(f"--x {x}: no parameter is varied", "vary it: -g NAME=V1,V2")
    if x not in names:
        hint = suggestion(x, names) or f"use one of {', '.join(names)}"
        raise usage(f"--x {x}: no such parameter is varied", hint)


def learners_of(findings: SweepSummary) -> list[str]:
    """The learners of every data set, in order of first appearance."""
    settings = (setting for found in findings.datasets for setting in found.settings)
    return list(dict.fromkeys(setting.learner for setting in settings))


def axis_of(found: DatasetSummary, x: str | None = None) -> str | None:
    """`x` if it was varied; else the budget, what all learners were varied in, ε or σ; or None."""
    groups = grouped(found.settings, lambda one: (one.learner,))
    counts = Counter(name for own in groups for name in varied_numbers([s.params for s in own]))
    known = [name for name in _SYMBOLS if name in counts]
    of_all = [name for name in (*known, *counts) if counts[name] == len(groups)]
    first = [name for name in known if name == "budget"] + of_all + known
    return next(iter(first), None) if x is None else x if x in counts else None


def series(found: DatasetSummary, parameter: str) -> dict[str, list[tuple[float, Setting]]]:
    """For each learner its best setting at each value; no value: it does not have the parameter."""
    made = {}
    for own in grouped(found.settings, lambda one: (one.learner,)):
        values = {finite_number(one.params.get(parameter)) for one in own} - {None}
        if len(values) == 1 and parameter not in _SYMBOLS:
            values = set()  # it was not varied
        at = {value: [s for s in own if s.params.get(parameter) == value] for value in values}
        points = [(value, best_of(at[value])) for value in sorted(v for v in at if v is not None)]
        made[own[0].learner] = points
    return made


def pareto_front(settings: Sequence[Setting]) -> list[Setting]:
    """The settings that no other beats in time or metric without losing in the other.

    The fastest first. Of settings equal in both the first is taken.
    """
    front: list[Setting] = []
    for setting in sorted(settings, key=lambda each: (each.summary.seconds_mean, each.cost)):
        if not front or setting.cost < front[-1].cost:
            front.append(setting)
    return front


def draw_sweep(findings: SweepSummary, x: str | None = None) -> Figure:
    """One row per data set: the metric against a parameter and time; above them the mean ranks."""
    from matplotlib.figure import Figure

    by_learner, ranks = looks(learners_of(findings)), findings.ranks
    ranked, rows = _ranks_height(ranks), len(findings.datasets)
    names = 0.5 + _inches(max(len(_shown(learner)) for learner in by_learner))
    height, gap = max(_HEIGHT, 0.19 * len(by_learner)), _ABOVE + _BELOW
    across, up = 2 * (_LEFT + _WIDTH + names), ranked + rows * (height + gap)
    figure = Figure(figsize=(across, up))
    box = {"left": _LEFT / across, "right": 1 - names / across, "bottom": _BELOW / up}
    box |= {"top": 1 - (ranked + _ABOVE) / up, "wspace": (names + _LEFT) / _WIDTH}
    grid = figure.add_gridspec(rows, 2, **box, hspace=gap / height)
    if ranked:
        draw_ranks(ranks, figure)
    for row, found in enumerate(findings.datasets):
        panel, repeats = axis_of(found, x), max(one.summary.repeats for one in found.settings)
        title = f"{_shown(found.short)}: {counted(found.data.record.rounds, 'round')}"
        if repeats > 1:
            what = "mean ± sd" if panel else "mean"
            title += f", {what} over {orders(repeats, found.data.shuffled)}"
        first = figure.add_subplot(grid[row, 0])
        first.set_title(title)
        if panel:
            draw_parameter(first, found, panel, by_learner)
        time = figure.add_subplot(grid[row, 1]) if panel else first
        draw_tradeoff(time, found, by_learner, named=not panel)
    return figure


def alone(names: Sequence[str], draw: Callable[[Axes], None]) -> Figure:
    """A figure of one panel, tall enough for these names beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_LEFT + _WIDTH, max(_HEIGHT, 0.19 * len(names))))
    draw(figure.add_subplot())
    return figure


def draw_parameter(
    axes: Axes, found: DatasetSummary, parameter: str, by_learner: Mapping[str, Look]
) -> None:
    """One line per learner with a band of ± sd; learners without the parameter lie flat."""
    drawn, names = series(found, parameter), []
    points = [point for own in drawn.values() for point in own]
    texts = {value: one.texts.get(parameter, short(value)) for value, one in points}
    for learner, own in drawn.items():
        flat: Look = {"linestyle": "--", "marker": None}
        look = by_learner[learner] | ({"linestyle": "-"} if own else flat)
        best = best_of([one for one in found.settings if one.learner == learner])
        values, settings = zip(*own or [(min(texts), best), (max(texts), best)], strict=True)
        mid, low, high = (
            [_scaled(one, one.mean + sd * (one.sd or 0)) for one in settings] for sd in (0, -1, 1)
        )
        axes.plot(values, mid, **look)
        axes.fill_between(values, low, high, color=look["color"], alpha=0.15, linewidth=0)
        names.append((_shown(learner), mid[-1], look))
    _value_axis(axes, texts, parameter)
    others = {name for one in found.settings if drawn[one.learner] for name in one.varied}
    label = f"{literal(parameter)} {_SYMBOLS.get(parameter, '')}".rstrip()
    axes.set_xlabel(label + (", others at their best" if others - {parameter} else ""))
    _metric_axis(axes, found)
    axes.grid(axis="y")
    _name_lines(axes, names)


def draw_tradeoff(
    axes: Axes, found: DatasetSummary, by_learner: Mapping[str, Look], *, named: bool
) -> None:
    """Every setting a dot, and the Pareto front of those that none beats in time and metric."""
    names = []
    for own in grouped(found.settings, lambda one: (one.learner,)):
        look = by_learner[own[0].learner] | {"linestyle": "none", "markeredgewidth": 0}
        axes.plot(*_places(own), **look)
        names.append((_shown(own[0].learner), _places([best_of(own)])[1][0], look))
    front = pareto_front(found.settings)
    axes.plot(*_places(front), color=INK, linewidth=0.8, zorder=1.5)  # under the dots
    axes.set_xscale("log")
    axes.set_xlabel("learning time (s)" + ("; line: Pareto front" if front[1:] else ""))
    _metric_axis(axes, found)
    _label_front(axes, front)
    _time_axis(axes)
    if named:
        _name_lines(axes, names)


def _label_front(axes: Axes, front: Sequence[Setting]) -> None:
    """Name the settings of the front, each on the side of its dot that is faster and better.

    There is no dot there, nor the line of the front. Labels only ever move away from the front to
    make room; those that would leave the panel are left out.
    """
    across, up = (72 * inches for inches in _size(axes))
    settings = (", ".join(f"{_SYMBOLS.get(n, n)}={t}" for n, t in s.texts.items()) for s in front)
    texts = [
        _shown(f"{s.learner} {text}".rstrip()) for s, text in zip(front, settings, strict=True)
    ]
    low, high = (math.log10(limit) for limit in axes.get_xlim())
    times, rates = _places(front)
    for text, seconds in zip(texts, times, strict=True):
        width = min(72 * _inches(len(text), _SMALL) + 6, 0.6 * across)
        low = min(low, (math.log10(seconds) * across - width * high) / (across - width))
    axes.set_xlim(left=10**low)
    bottom, top = axes.get_ylim()
    better = 1 if front[0].metric.larger_is_better else -1
    point, place = (top - bottom) / up, -better * math.inf
    for text, seconds, rate in zip(texts, times, rates, strict=True):
        wanted = [rate + better * 6 * point, place + better * 9.5 * point]
        place = max(wanted) if better > 0 else min(wanted)
        if not bottom + 4 * point <= place <= top - 4 * point:
            break
        axes.plot([seconds] * 2, [rate, place], color=INK, linewidth=0.4, zorder=1.4)
        look: Look = {"ha": "right", "va": "center", "fontsize": _SMALL}
        axes.annotate(text, (seconds, place), (-3, 0), textcoords="offset points", **look)


def _scaled(setting: Setting, value: float) -> float:
    return 100 * value if setting.metric.in_percent else value


def _places(settings: Sequence[Setting]) -> tuple[list[float], list[float]]:
    """Time and metric of each."""
    seconds = [max(one.summary.seconds_mean, _FASTEST) for one in settings]
    return seconds, [_scaled(one, one.mean) for one in settings]


def _metric_axis(axes: Axes, found: DatasetSummary) -> None:
    """A rate starts at 0; with room for labels on the side of better values."""
    metric = found.criterion.metric
    axes.set_ylabel(metric.head.replace(" %", " (%)"))
    axes.margins(x=0.05, y=0.15)
    if metric.in_percent:
        top = 110.0 if metric.larger_is_better else max(axes.get_ylim()[1], 0.1)
        axes.set_ylim(0, top)


def _value_axis(axes: Axes, texts: Mapping[float, str], parameter: str) -> None:
    """Ticks at values that were run, as many as there is room for, the outermost first.

    Logarithmic where values spread widely, or each is the same multiple of the one before.
    """
    values = sorted(texts)
    ratios = [after / before for before, after in pairwise(values)] if values[0] > 0 else []
    even = len(ratios) > 1 and max(ratios) < 1.05 * min(ratios) and max(ratios) > 1.2
    wide = bool(ratios) and values[-1] / values[0] > (8 if parameter == "budget" else 50)
    if even or wide:
        axes.set_xscale("log")
    places = [math.log(value) if even or wide else value for value in values]
    room = max(0.09, 1.2 * _inches(max(map(len, texts.values()))) / _WIDTH)
    gap = room * (places[-1] - places[0])
    chosen = values[:1]
    last = places[0]
    for value, place in list(zip(values, places, strict=True))[1:-1]:
        if min(place - last, places[-1] - place) >= gap:
            chosen.append(value)
            last = place
    ticks = chosen + values[1:][-1:]
    axes.set_xticks(ticks, [texts[tick] for tick in ticks])
    axes.set_xticks([], minor=True)


def _time_axis(axes: Axes) -> None:
    """Round numbers that do not collide, never fewer than two."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = axes.get_xlim()
    subs = (1.0, 2.0, 5.0) if high / low < 50 else (1.0, 3.0) if high / low < 2000 else (1.0,)
    locator = MaxNLocator(4) if high / low < 6 else LogLocator(subs=subs)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def draw_ranks(ranks: OverDatasets, figure: Figure | None = None) -> Figure:
    """A dot per learner on an axis of mean ranks, the best above; on top of a figure or alone.

    Where Friedman's test rejects, a bar joins each group that does not differ significantly.
    """
    from matplotlib.figure import Figure

    learners = sorted(ranks.mean_ranks, key=lambda learner: ranks.mean_ranks[learner])
    values = [ranks.mean_ranks[learner] for learner in learners]
    count = len(learners)
    figure = figure or Figure(figsize=(2 * _WIDTH, _ranks_height(ranks)))
    across, up = figure.get_size_inches()
    left, height = _inches(_MOST_CHARACTERS - 8) / across, 0.18 * count / up
    axes = figure.add_axes((left, 1 - _ABOVE / up - height, 0.9 - left, height))
    axes.plot(values, range(count), "o", color=_COLOURS[0], markersize=5)
    named = zip(map(_shown, learners), values, strict=True)
    axes.set_yticks(range(count), [f"{name}  {rank:.2f}" for name, rank in named])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0.8, count + 0.2 + 0.15 * len(ranks.groups))
    axes.set_xticks(range(1, count + 1))
    axes.grid(axis="x")
    axes.set_xlabel("mean rank; 1 is best")
    p = p_value(ranks.p_value or 0.0)
    test = f"Friedman's test: p {p if p.startswith('<') else f'= {p}'}"
    if not rejected(ranks):
        axes.set_title(f"{test}, no significant difference between the learners")
        return figure
    axes.set_title(f"{test}; bars: no significant difference (Nemenyi, 5 %)")
    for number, group in enumerate(ranks.groups, 1):
        ends = [learners.index(name) for name in (group[0], group[-1])]
        axes.plot([count + 0.2 + 0.12 * number] * 2, ends, color=INK, linewidth=2.4)
    return figure


def _ranks_height(ranks: OverDatasets) -> float:
    return _ABOVE + 0.18 * len(ranks.mean_ranks) + _BELOW if ranks.p_value is not None else 0.0
