"""Plots with matplotlib: learning curves, a metric against a parameter and time, mean ranks.

matplotlib is optional and slow to import, so only the functions that draw import it. They use its
object-oriented interface, which needs no display.
"""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.numbers import counted, int_if_integral, orders, percent
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.formats import rows_text
from ahpatron_cli.output.sweep_table import friedman_text
from ahpatron_cli.records import Curve, Json, grouped
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
"""Matplotlib properties of a line."""
Panel: TypeAlias = tuple[str, "Callable[[Axes], None]"]
"""A caption and a function that draws on axes."""

INSTALL = "pip install 'ahpatron-cli[plot]'"
INK, PALE, GRID = "#333333", "#666666", "#dddddd"
DARK = {INK: "#e4e7eb", PALE: "#a3acb7", GRID: "#3a4149"}
"""The colours that replace these on a dark page."""
# Okabe and Ito's colours, which colour-blind readers can distinguish; their yellow is too pale.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK)
_STROKES, _MARKERS = ("-", "--", ":", "-."), "os^D"
_UNDATED = {
    "png": ("Software",),
    "svg": ("Date", "Creator"),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""Metadata keys of each format to suppress, so that files are reproducible."""
_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
"""Symbols of parameters; these are preferred as x axis, in this order."""
_WIDTH, _HEIGHT, _LINE = 4.6, 3.2, 0.18
"""Width and height of a panel and height of a text line, in inches."""
_FIRST_DRAWN = 0.01
"""Share of the first rounds that is not drawn, where rates are extreme."""
_FASTEST = 1e-6
"""Smallest time in seconds that is drawn: 0 does not fit a logarithmic axis."""


def has_matplotlib() -> bool:
    """Whether matplotlib is installed, without importing it."""
    return importlib.util.find_spec("matplotlib") is not None


def picture_format(path: str | Path, *others: str) -> str:
    """Format of a file by its suffix: a plot format or one of the `others`, such as csv.

    A usage error for other suffixes, and for plots if matplotlib is not installed.
    """
    format = format_of_suffix(path, formats={f".{name}": name for name in (*others, *_UNDATED)})
    if format not in others and not has_matplotlib():
        instead = "".join(f", or write a .{name} file" for name in others)
        raise usage(f"writing .{format} pictures needs matplotlib", INSTALL + instead)
    return format


def picture(draw: Callable[[], Figure], format: str, *, transparent: bool = False) -> bytes:
    """Bytes of a figure as png, svg or pdf, reproducible: no date, no random identifiers."""
    from matplotlib import rc_context

    target = io.BytesIO()
    with rc_context(fname=Path(__file__).with_name("pictures.mplstyle")), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box
        look: Look = {"transparent": transparent, "metadata": dict.fromkeys(_UNDATED[format])}
        draw().savefig(target, format=format, dpi=200, **look)
    return target.getvalue()


def _figure(width: float, height: float, names: int, rows: int = 1) -> Figure:
    """An empty figure with room for `names` names beside each row of panels."""
    from matplotlib.figure import Figure

    size = width, rows * max(height, 0.9 + _LINE * names)
    return Figure(figsize=size, layout="constrained")


def one_panel(draw: Callable[[Axes], None], names: int) -> Figure:
    """A figure with one panel and room for `names` names beside it."""
    figure = _figure(_WIDTH, _HEIGHT, names)
    draw(figure.add_subplot())
    return figure


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Colour, line style and marker of each name; distinct for the first 28."""
    made = {}
    for number, name in enumerate(names):
        stroke, colour = divmod(number, len(_COLOURS))
        look = {"color": _COLOURS[colour], "linestyle": _STROKES[stroke % len(_STROKES)]}
        made[name] = look | {"marker": _MARKERS[stroke % len(_STROKES)], "markersize": 4}
    return made


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Positions close to `wanted`, in the same order, at least `gap` apart, within the limits."""
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
    """Write each name to the right of its line, without overlaps, in place of a legend."""
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
    """Write learning curves to a file; the suffix decides the format."""
    format = picture_format(path, "csv")
    drawn = _as_csv(curves) if format == "csv" else picture(lambda: draw_curves(curves), format)
    write_atomically(path, drawn)


def _as_csv(curves: Sequence[Curve]) -> str:
    rows = list[Json]()
    for curve in curves:
        columns: Json = {"round": curve.rounds, "mistakes": curve.mistakes}
        columns |= {"mistake_rate": curve.mistake_rate, "recent_rate": curve.recent_rate}
        known = {name: one.tolist() for name, one in columns.items() if one is not None}
        known["mistakes"] = map(int_if_integral, known["mistakes"])
        for values in zip(*known.values(), strict=True):
            rows.append({"learner": curve.label, **dict(zip(known, values, strict=True))})
    return rows_text(rows, "csv")


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Plot learning curves with bands of ± one standard deviation; dotted line: baseline."""
    figure = _figure(8.0, 4.0, len(curves))
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
    for baseline in {curve.baseline for curve in curves if curve.baseline is not None}:
        look = {"color": PALE, "linestyle": ":"}
        axes.axhline(100 * baseline, **look, linewidth=1.0)
        names.append((f"baseline  {percent(baseline)} %", 100 * baseline, look))
        highest = max(highest, 100 * baseline)
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
    """Write the plots of a sweep, a row of panels per data set; the suffix decides the format."""
    format = picture_format(path)
    check_axis(x, axes_of(findings.datasets))
    write_atomically(path, picture(lambda: draw_sweep(findings, x), format))


def check_axis(x: str | None, names: Sequence[str]) -> None:
    """Refuse a parameter for the x axis that is not varied; `names` are those that are."""
    if x is not None and x not in names:
        hint = suggestion(x, names) or f"use one of {', '.join(names)}"
        hint = hint if names else "vary it: -g NAME=V1,V2"
        raise usage(f"--x {x}: no such parameter is varied", hint)


def learners_of(findings: SweepSummary) -> list[str]:
    """Names of all learners, in order of first appearance."""
    settings = (setting for found in findings.datasets for setting in found.settings)
    return list(dict.fromkeys(setting.name for setting in settings))


def axes_of(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Varied parameters that can be the x axis, in order of preference."""
    tried = [own for found in datasets for own in found.tried.values()]
    names = {name: None for own in tried for name in varied_numbers(own)}
    return sorted(names, key=[*_SYMBOLS, *names].index)


def pareto_front(settings: Sequence[Setting]) -> list[Setting]:
    """Pareto-optimal settings in time and metric, the fastest first.

    Of settings that are equal in both, the first is taken.
    """
    front: list[Setting] = []
    for setting in sorted(settings, key=lambda each: (each.summary.seconds_mean, each.cost)):
        if not front or setting.cost < front[-1].cost:
            front.append(setting)
    return front


def panels(found: DatasetSummary, x: str | None, by_learner: Mapping[str, Look]) -> list[Panel]:
    """Panels of a data set: metric against a parameter (if varied) and against time."""
    names, metric = axes_of([found]), found.criterion.metric.short
    made: list[Panel] = []
    if drawn := [name for name in names if x in (None, name)]:
        caption = f"{metric} against {drawn[0]}"
        caption += "; bands: ± standard deviation" * any(one.sd for one in found.compared)
        made.append((caption, partial(_draw_parameter, found, drawn[0], by_learner)))
    caption = f"{metric} against learning time, each setting a dot; line: Pareto front"
    if few := len(found.settings) - len(found.compared):
        caption += f"; {counted(few, 'setting')} with too few permutations not drawn"
    return [*made, (caption, partial(_draw_tradeoff, found, by_learner))]


def draw_sweep(findings: SweepSummary, x: str | None = None) -> Figure:
    """Figure of a sweep: mean ranks on top, then a row per data set (parameter, time)."""
    by_learner, ranks = looks(learners_of(findings)), findings.ranks
    top = int(ranks.p_value is not None)
    rows = len(findings.datasets) + top
    figure = _figure(2 * _WIDTH, _HEIGHT, len(by_learner), rows)
    grid = figure.add_gridspec(rows, 2)
    if top:
        draw_ranks(ranks, figure.add_subplot(grid[0, :]))
    for row, found in enumerate(findings.datasets, top):
        repeats = max(one.summary.repeats for one in found.compared)
        title = f"{_shown(found.short)}: {counted(found.data.rounds, 'round')}"
        title += f", {orders(repeats, found.data.shuffled)}" * (repeats > 1)
        for column, (_, draw) in enumerate(panels(found, x, by_learner)):
            axes = figure.add_subplot(grid[row, column])
            axes.set_title("" if column else title)
            draw(axes)
    return figure


def _metric(settings: Sequence[Setting], deviations: int = 0) -> list[float]:
    """Mean metric of each setting plus `deviations` standard deviations, in plot units."""
    unit = 100 if settings[0].metric.in_percent else 1
    return [unit * (one.mean + deviations * (one.sd or 0)) for one in settings]


def _draw_parameter(
    found: DatasetSummary, name: str, by_learner: Mapping[str, Look], axes: Axes
) -> None:
    """Plot the metric of each learner's best setting per parameter value, with bands of ± sd.

    Learners without the parameter are dashed lines.
    """
    lines = list[tuple[str, list[float], list[Setting]]]()
    for own in grouped(found.compared, lambda one: (one.name,)):
        numbers = {finite_number(one.params.get(name)) for one in own}
        values = sorted(value for value in numbers if value is not None)
        values = values if values[1:] or name in _SYMBOLS else []
        best = [best_of([s for s in own if s.params.get(name) == value]) for value in values]
        lines.append((own[0].name, values, best or [best_of(own)] * 2))
    every, names = sorted({value for _, values, _ in lines for value in values}), []
    for learner, values, best in lines:
        look = by_learner[learner] | {"linestyle": "-"}
        if not values:
            values, look = [every[0], every[-1]], look | {"linestyle": "--", "marker": None}
        axes.plot(values, _metric(best), **look)
        low, high = _metric(best, -1), _metric(best, 1)
        axes.fill_between(values, low, high, color=look["color"], alpha=0.15, lw=0)
        names.append((_shown(learner), _metric(best)[-1], look))
    _value_axis(axes, log=every[0] > 0 and every[-1] >= 8 * every[0])
    axes.set_xlabel(f"{literal(name)} {_SYMBOLS.get(name, '')}".rstrip())
    axes.grid(axis="y")
    _metric_axis(axes, found, names)


def _draw_tradeoff(found: DatasetSummary, by_learner: Mapping[str, Look], axes: Axes) -> None:
    """Plot the metric against time, a dot per setting, and the Pareto front."""

    def dots(settings: Sequence[Setting], **look: Any) -> None:
        seconds = [max(one.summary.seconds_mean, _FASTEST) for one in settings]
        axes.plot(seconds, _metric(settings), **look)

    names = []
    for own in grouped(found.compared, lambda one: (one.name,)):
        look = by_learner[own[0].name] | {"linestyle": "none", "markeredgewidth": 0}
        dots(own, **look)
        names.append((_shown(own[0].name), _metric([best_of(own)])[0], look))
    dots(pareto_front(found.compared), color=INK, linewidth=0.8, zorder=1.5)  # under the others
    _value_axis(axes, log=True)
    axes.set_xlabel("learning time (s); line: Pareto front")
    _metric_axis(axes, found, names)


def _metric_axis(
    axes: Axes, found: DatasetSummary, names: Sequence[tuple[str, float, Look]]
) -> None:
    """Format the metric axis (rates start at 0) and write names beside it."""
    metric = found.criterion.metric
    axes.set_ylabel(metric.head.replace(" %", " (%)"))
    axes.margins(y=0.15)
    if metric.in_percent:
        axes.set_ylim(0, 110.0 if metric.larger_is_better else max(axes.get_ylim()[1], 0.1))
    _name_lines(axes, names)


def _value_axis(axes: Axes, *, log: bool) -> None:
    """Format the value axis: at least two ticks at round numbers, without overlaps."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    axes.set_xscale("log" if log else "linear")
    axes.margins(x=0.05)
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if log and high / low >= 6:
        subs = (1.0, 2.0, 5.0) if high / low < 50 else (1.0, 3.0) if high / low < 2000 else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def draw_ranks(ranks: OverDatasets, axes: Axes) -> None:
    """Plot mean ranks, a dot per learner, the best on top.

    If Friedman's test rejects, bars connect groups that do not differ significantly.
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
    axes.set_title(test + "\nbars: no significant difference (Nemenyi, 5 %)" * bool(finding))
    for number, group in enumerate(ranks.groups, 1):
        ends = [learners.index(name) for name in (group[0], group[-1])]
        axes.plot([count + 0.2 + 0.03 * count * number] * 2, ends, color=INK, linewidth=2.4)
