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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.errors import one_of, suggestion, usage
from ahpatron_cli.number_text import counted, int_if_integral, orders, percent
from ahpatron_cli.output.escape import visible
from ahpatron_cli.output.formats import rows_text
from ahpatron_cli.output.sweep_table import friedman_statistics
from ahpatron_cli.records import Curve, Json
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

    from ahpatron_cli.core.rows import Floats

Look: TypeAlias = dict[str, Any]
"""Matplotlib properties of a line."""
Looks: TypeAlias = Mapping[str, Look]
"""The look of each learner, by its name in tables."""
ByValue: TypeAlias = dict[float, Setting]
"""Settings by the value of a parameter."""
Panel: TypeAlias = tuple[str, "Callable[[Axes], None]"]
"""A caption and a function that draws on axes."""


class NamedLine(NamedTuple):
    """The name of a line, the value at its end, and its properties."""

    name: str
    end: float
    look: Look


INSTALL = "pip install 'ahpatron-cli[plot]'"
INK = "#333333"
PALE = "#666666"
GRID = "#dddddd"
DARK = {INK: "#e4e7eb", PALE: "#a3acb7", GRID: "#3a4149"}
"""The colours that replace these on a dark page."""
# Okabe and Ito's colours, which colour-blind readers can distinguish, without their pale yellow;
# then dark ones of Tol's.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK),
    *("#882255", "#117733", "#332288", "#999933", "#661100"),
)
_STROKES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (1, 1.2)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
"""Line styles, which can be distinguished in grey: offset, then lengths of strokes and gaps."""
_MARKERS = "os^DvP<X>*h"
_OFTEN_COMPARED = (
    *("ahpatron", "ahpatron+", "metron", "arow", "nogd", "fogd", "pomdr", "bogd++"),
    *("projectron", "projectron++", "avp", "perceptron"),
)
"""The learners that have a colour of their own."""
PANELS = ("ranks", "parameter", "time")
"""What a plot of a sweep can show, for --panels."""
_UNDATED = {
    "png": ("Software",),
    "svg": ("Date", "Creator"),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""Metadata keys of each format to suppress, so that files are reproducible."""
_SYMBOLS = {"budget": "B", "epsilon": "ε", "sigma": "σ"}
"""Symbols of parameters; these are preferred as x axis, in this order."""
_WIDTH = 4.6
"""Width of a panel, in inches."""
_HEIGHT = 3.2
"""Height of a panel, in inches."""
_LINE = 0.18
"""Height of a text line, in inches."""
_BASELINE_ROOM = 1.25
"""By how much a learning curve's axis grows at most, so that the baseline is on it."""
_MARK_EVERY = 0.12
"""Distance of the markers of a learning curve, as a share of the axes."""
_BAR_GAP = 0.4
"""Distance of the bars of a critical-difference diagram, in lines of text."""
_BAND: Look = {"alpha": 0.15, "lw": 0}
"""Matplotlib properties of a band of ± one standard deviation."""
_FIRST_DRAWN = 0.01
"""Share of the first rounds that is not drawn, where rates are extreme."""
_SCALED_FROM = 0.1
"""Share of the first rounds to which the axis is not scaled: rates fall steeply there."""
_FASTEST = 1e-6
"""Smallest time in seconds that is drawn: 0 does not fit a logarithmic axis."""


def has_matplotlib() -> bool:
    """Whether matplotlib is installed, without importing it."""
    return importlib.util.find_spec("matplotlib") is not None


def picture_format(path: str | Path, *others: str) -> str:
    """Format of a file by its suffix: a plot format or one of the `others`, such as csv.

    A usage error for other suffixes, and for plots if matplotlib is not installed.
    """
    known = (*others, *_UNDATED)
    formats = {f".{name}": name for name in known}
    format = format_of_suffix(path, formats=formats)
    if format in others or has_matplotlib():
        return format
    hint = INSTALL
    for name in others:
        hint += f", or write a .{name} file"
    raise usage(f"writing .{format} pictures needs matplotlib", hint)


def picture(draw: Callable[[], Figure], format: str, *, transparent: bool = False) -> bytes:
    """Bytes of a figure as png, svg or pdf, reproducible: no date, no random identifiers."""
    from matplotlib import rc_context

    style = Path(__file__).with_name("pictures.mplstyle")
    target = io.BytesIO()
    with rc_context(fname=style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box
        figure = draw()
        figure.savefig(
            target,
            format=format,
            dpi=200,
            transparent=transparent,
            metadata=dict.fromkeys(_UNDATED[format]),
        )
    return target.getvalue()


def _figure(width: float, height: float, names: int, rows: int = 1) -> Figure:
    """An empty figure with room for `names` names beside each row of panels."""
    from matplotlib.figure import Figure

    names_height = 0.9 + _LINE * names
    row_height = max(height, names_height)
    size = (width, rows * row_height)
    return Figure(figsize=size, layout="constrained")


def one_panel(draw: Callable[[Axes], None], names: int) -> Figure:
    """A figure with one panel and room for `names` names beside it."""
    figure = _figure(_WIDTH, _HEIGHT, names)
    axes = figure.add_subplot()
    draw(axes)
    return figure


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Colour, line style and marker of each name, the same for a learner in all pictures.

    Learners that are often compared come first, then the others in the order of the registry, then
    other names. Numbers of colours, styles and markers have no common divisor, so 660 looks are
    distinct.
    """
    from ahpatron_cli.core.registry import BUILT_IN

    known = dict.fromkeys([*_OFTEN_COMPARED, *BUILT_IN])
    places = {name: place for place, name in enumerate(known)}
    made = {}
    for name in names:
        place = places.setdefault(name, len(places))
        look: Look = {
            "color": _COLOURS[place % len(_COLOURS)],
            "linestyle": _STROKES[place % len(_STROKES)],
            "marker": _MARKERS[place % len(_MARKERS)],
            "markersize": 4,
        }
        made[name] = look
    return made


def panels_of(text: str | None) -> tuple[str, ...]:
    """The panels that --panels names; all if it is not given."""
    if text is None:
        return PANELS
    known = dict.fromkeys(PANELS)
    return tuple(one_of("panel", word.strip(), known) for word in text.split(","))


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Positions close to `wanted`, in the same order, at least `gap` apart, within the limits."""
    count = len(wanted)
    order = sorted(range(count), key=wanted.__getitem__)
    places = [0.0] * count
    below = low - gap
    for number in order:
        below = max(wanted[number], below + gap)
        places[number] = below
    lowest_top = low + gap * (count - 1)
    top = max(high, lowest_top)
    above = top + gap
    for number in reversed(order):
        above = min(places[number], above - gap)
        places[number] = above
    return places


def _shown(name: str) -> str:
    """A name as text of at most 28 characters."""
    text = visible(name)
    if len(text) <= 28:
        return text
    return f"{text[:27]}…"


def _name_lines(axes: Axes, names: Sequence[NamedLine]) -> None:
    """Write each name to the right of its line, without overlaps, in place of a legend."""
    low, high = axes.get_ylim()
    inches = axes.bbox.height / axes.figure.dpi
    per_inch = (high - low) / inches
    gap = _LINE * per_inch
    ends = [line.end for line in names]
    places = spread(ends, gap=gap, low=low, high=high)
    beside = axes.get_yaxis_transform()
    for line, place in zip(names, places, strict=True):
        look = line.look
        thread = None
        if look["linestyle"] == "none":  # dots end nowhere: one before the name
            axes.plot([1.06], [place], **look, transform=beside, clip_on=False)
        else:
            thread = _thread(look)
        axes.annotate(
            line.name,
            xy=(1.01, line.end),
            xytext=(1.09, place),
            xycoords=beside,
            va="center",
            annotation_clip=False,
            arrowprops=thread,
        )


def _thread(look: Look) -> Look:
    """Matplotlib properties of the arrow from the end of a line to its name."""
    return {
        "arrowstyle": "-",
        "color": look["color"],
        "linestyle": look["linestyle"],
        "shrinkA": 0,
        "shrinkB": 0,
        "relpos": (0, 0.5),
    }


# Learning curves ----------------------------------------------------------------------------------


def write_curve(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write learning curves to a file; the suffix decides the format."""
    format = picture_format(path, "csv")
    if format == "csv":
        write_atomically(path, _as_csv(curves))
        return
    drawn = picture(lambda: draw_curves(curves), format)
    write_atomically(path, drawn)


def _as_csv(curves: Sequence[Curve]) -> str:
    """Learning curves as CSV text, with a row per point."""
    rows = list[Json]()
    for curve in curves:
        mistakes = curve.mistakes.tolist()
        columns: dict[str, list[float]] = {
            "round": curve.rounds.tolist(),
            "mistakes": [int_if_integral(count) for count in mistakes],
            "mistake_rate": curve.mistake_rate.tolist(),
        }
        if curve.recent_rate is not None:
            columns["recent_rate"] = curve.recent_rate.tolist()
        for values in zip(*columns.values(), strict=True):
            row: Json = {"learner": curve.label}
            row.update(zip(columns, values, strict=True))
            rows.append(row)
    return rows_text(rows, "csv")


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Plot learning curves with bands of ± one standard deviation; dotted line: baseline."""
    figure = _figure(8.0, 4.0, len(curves))
    axes = figure.add_subplot()
    names = list[NamedLine]()
    look_of = looks([curve.label for curve in curves])
    highest = 1.0
    for curve in curves:
        look = look_of[curve.label]
        rates = _draw_curve(axes, curve, look)
        highest = max(highest, float(rates.max()))
        name = _shown(curve.label)
        last = percent(curve.mistake_rate[-1])
        end = float(rates[-1])
        line = NamedLine(f"{name}  {last} %", end, look)
        names.append(line)
    top = min(1.1 * highest, 100)
    baselines = {curve.baseline for curve in curves if curve.baseline is not None}
    for baseline in baselines:
        highest_top = _BASELINE_ROOM * top
        line = _draw_baseline(axes, baseline, top=highest_top)
        room = min(1.05 * line.end, highest_top)
        top = max(top, room)
        names.append(line)
    axes.set_title(_title_of_curves(curves))
    axes.set_xlabel("round t")
    axes.set_ylabel("mistake rate |M_t| / t (%)")
    last_rounds = [int(curve.rounds[-1]) for curve in curves]
    axes.set_xlim(0, max(last_rounds))
    axes.set_ylim(0, min(top, 100))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    _name_lines(axes, names)
    return figure


def _draw_baseline(axes: Axes, rate: float, *, top: float) -> NamedLine:
    """Plot the mistake rate of a constant prediction as a dotted line, if it is below `top`.

    The axis is scaled to the learners: a baseline far above them is only named, at its upper end.
    """
    look: Look = {"color": PALE, "linestyle": ":"}
    height = 100 * rate
    shown = percent(rate)
    if height > top:
        return NamedLine(f"baseline  {shown} %, above", top / _BASELINE_ROOM, look)
    axes.axhline(height, **look, linewidth=1.0)
    return NamedLine(f"baseline  {shown} %", height, look)


def _draw_curve(axes: Axes, curve: Curve, look: Look) -> Floats:
    """Plot one learning curve; returns the rates, in percent, to which the axis is scaled."""
    first = _FIRST_DRAWN * curve.rounds[-1]
    drawn = curve.rounds >= first
    rounds = curve.rounds[drawn]
    rates: Floats = 100 * curve.mistake_rate[drawn]
    axes.plot(rounds, rates, **look, markevery=_MARK_EVERY)
    if curve.recent_rate is not None:
        recent = 100 * curve.recent_rate[drawn]
        thin = look | {"marker": None}
        axes.plot(rounds, recent, **thin, linewidth=0.5)
    if curve.sd is not None:
        sd = 100 * curve.sd[drawn] / rounds
        low = rates - sd
        high = rates + sd
        axes.fill_between(rounds, low, high, color=look["color"], **_BAND)
    settled = rounds >= _SCALED_FROM * curve.rounds[-1]
    settled_rates: Floats = rates[settled]
    return settled_rates


def _title_of_curves(curves: Sequence[Curve]) -> str:
    """Title of a plot of curves; empty if they are about different things."""
    abouts = {curve.about for curve in curves}
    if len(abouts) > 1:
        return ""
    title = visible(abouts.pop())
    if curves[0].sd is not None:
        title += ", mean ± sd"
    return title


# Sweeps -------------------------------------------------------------------------------------------


def write_plot(
    path: str | Path,
    summary: SweepSummary,
    x: str | None = None,
    chosen: Sequence[str] = PANELS,
) -> None:
    """Write the plots of a sweep, a row of panels per data set; the suffix decides the format."""
    format = picture_format(path)
    check_axis(x, axes_of(summary.datasets))
    check_panels(chosen, ranked=summary.ranks.p_value is not None, axes=axes_of(summary.datasets))
    content = picture(lambda: draw_sweep(summary, x, chosen), format)
    write_atomically(path, content)


def check_panels(chosen: Sequence[str], *, ranked: bool, axes: Sequence[str]) -> None:
    """Refuse a choice of panels of which there is none.

    `ranked` says whether the learners have mean ranks that can be tested; `axes` are the parameters
    that are varied.
    """
    if "ranks" in chosen and ranked:
        return
    if "time" in chosen or ("parameter" in chosen and axes):
        return
    problem = f"--panels {','.join(chosen)}: there is no such panel for these results"
    hint = "ranks needs three learners and three data sets, parameter one that is varied"
    raise usage(problem, hint)


def check_axis(x: str | None, names: Sequence[str]) -> None:
    """Refuse a parameter for the x axis that is not varied; `names` are those that are."""
    if x is None or x in names:
        return
    hint = "vary it: -p NAME=V1,V2"
    if names:
        any_of = ", ".join(names)
        hint = suggestion(x, names) or f"use one of {any_of}"
    raise usage(f"--x {x}: no such parameter is varied", hint)


def learners_of(summary: SweepSummary) -> list[str]:
    """Names of all learners, in order of first appearance."""
    names: dict[str, None] = {}
    for found in summary.datasets:
        for setting in found.settings:
            names[setting.name] = None
    return list(names)


def axes_of(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Varied parameters that can be the x axis, in order of preference."""
    names: dict[str, None] = {}
    for found in datasets:
        for own in found.tried.values():
            varied = varied_numbers(own)
            names.update(dict.fromkeys(varied))
    preference = [*_SYMBOLS, *names]
    return sorted(names, key=preference.index)


def pareto_front(settings: Sequence[Setting]) -> list[Setting]:
    """Pareto-optimal settings in time and metric, the fastest first.

    Of settings that are equal in both, the first is taken.
    """

    def by_time(setting: Setting) -> tuple[float, float]:
        return setting.means.seconds_mean, setting.penalty

    front: list[Setting] = []
    for setting in sorted(settings, key=by_time):
        if front and setting.penalty >= front[-1].penalty:
            continue
        front.append(setting)
    return front


def panels(
    found: DatasetSummary, x: str | None, by_learner: Looks, chosen: Sequence[str] = PANELS
) -> list[Panel]:
    """Chosen panels of a data set: metric against a parameter (if varied) and against time."""
    metric = found.criterion.metric.short
    made: list[Panel] = []
    parameter = _axis_of(found, x) if "parameter" in chosen else None
    if parameter is not None:
        caption = f"{metric} against {parameter}"
        if any(one.sd for one in found.compared):
            caption += "; bands: ± standard deviation"
        draw = partial(_draw_parameter, found=found, name=parameter, by_learner=by_learner)
        made.append((caption, draw))
    if "time" not in chosen:
        return made
    caption = f"{metric} against learning time, each setting a dot; line: Pareto front"
    hidden = len(found.settings) - len(found.compared)
    if hidden:
        caption += f"; {counted(hidden, 'setting')} with too few permutations not drawn"
    draw = partial(_draw_tradeoff, found=found, by_learner=by_learner)
    made.append((caption, draw))
    return made


def _axis_of(found: DatasetSummary, x: str | None) -> str | None:
    """The parameter on the x axis: the one asked for, or the first that has values to draw."""
    for name in axes_of([found]):
        if x in (None, name) and _best_by_value(found.compared, name):
            return name
    return None


def draw_sweep(
    summary: SweepSummary, x: str | None = None, chosen: Sequence[str] = PANELS
) -> Figure:
    """Figure of a sweep: mean ranks on top, then a row per data set (parameter, time)."""
    by_learner = looks(learners_of(summary))
    has_ranks = "ranks" in chosen and summary.ranks.p_value is not None
    drawn = [panels(found, x, by_learner=by_learner, chosen=chosen) for found in summary.datasets]
    widest = max(map(len, drawn))
    first = 1 if has_ranks else 0
    rows = first
    if widest:
        rows += len(drawn)
    columns = 2 if has_ranks else widest
    figure = _figure(columns * _WIDTH, _HEIGHT, names=len(by_learner), rows=rows)
    grid = figure.add_gridspec(rows, columns)
    if has_ranks:
        whole_row = figure.add_subplot(grid[0, :])
        draw_ranks(summary.ranks, whole_row)
    by_row = zip(summary.datasets, drawn, strict=True)
    for row, (found, own) in enumerate(by_row, start=first):
        for column, (_, draw) in enumerate(own):
            place = grid[row, column]
            axes = figure.add_subplot(place)
            if column == 0:
                title = _title_of_data(found)
                axes.set_title(title)
            draw(axes)
    return figure


def _title_of_data(found: DatasetSummary) -> str:
    """Title of the row of panels of a data set."""
    name = _shown(found.short)
    rounds = counted(found.data.rounds, "round")
    title = f"{name}: {rounds}"
    counts = [one.means.repeats for one in found.compared]
    repeats = max(counts)
    if repeats > 1:
        over = orders(repeats, found.data.shuffled)
        title += f", {over}"
    return title


def _metric(settings: Sequence[Setting], deviations: int = 0) -> list[float]:
    """Mean metric of each setting plus `deviations` standard deviations, in plot units."""
    unit = 100 if settings[0].metric.in_percent else 1
    values = []
    for one in settings:
        sd = one.sd or 0
        value = one.mean + deviations * sd
        values.append(unit * value)
    return values


def _draw_parameter(
    axes: Axes,
    *,
    found: DatasetSummary,
    name: str,
    by_learner: Looks,
) -> None:
    """Plot the metric of each learner's best setting per parameter value, with bands of ± sd.

    Learners without the parameter are lines without markers.
    """
    own_settings = _by_learner(found.compared)
    by_value = _varied_by_value(own_settings, name)
    every: set[float] = set()
    for best in by_value.values():
        every.update(best)
    lowest = min(every)
    highest = max(every)
    names = list[NamedLine]()
    for learner, best in by_value.items():
        look = by_learner[learner]
        if best:
            values = list(best)
            settings = list(best.values())
        else:
            look = look | {"marker": None}
            values = [lowest, highest]
            only = best_of(own_settings[learner])
            settings = [only, only]
        end = _draw_means(axes, values, settings, look=look)
        names.append(NamedLine(_shown(learner), end, look))
    log = lowest > 0 and highest >= 8 * lowest
    _value_axis(axes, log=log)
    symbol = _SYMBOLS.get(name, "")
    label = f"{visible(name)} {symbol}"
    axes.set_xlabel(label.rstrip())
    axes.grid(axis="y")
    _metric_axis(axes, found, names)


def _draw_means(
    axes: Axes,
    values: Sequence[float],
    settings: Sequence[Setting],
    *,
    look: Look,
) -> float:
    """Plot the metric of settings over values, with its band; return where the curve ends."""
    means = _metric(settings)
    axes.plot(values, means, **look)
    low = _metric(settings, -1)
    high = _metric(settings, 1)
    axes.fill_between(values, low, high, color=look["color"], **_BAND)
    return means[-1]


def _by_learner(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    """Settings of each learner, by its name, in order of first appearance."""
    groups: dict[str, list[Setting]] = {}
    for one in settings:
        groups.setdefault(one.name, []).append(one)
    return groups


def _varied_by_value(
    own_settings: Mapping[str, Sequence[Setting]], name: str
) -> dict[str, ByValue]:
    """The best setting of each learner for each value of a parameter.

    Empty for learners without the parameter, and for those with one value of an unusual one, unless
    all are such: a search by halving may leave one of the values.
    """
    every = {learner: _best_by_value(own, name) for learner, own in own_settings.items()}
    if name in _SYMBOLS:
        return every
    varied: dict[str, ByValue] = {}
    for learner, best in every.items():
        varied[learner] = {}
        if len(best) > 1:
            varied[learner] = best
    if any(varied.values()):
        return varied
    return every


def _best_by_value(own: Sequence[Setting], name: str) -> ByValue:
    """The best setting for each finite value of a parameter, in ascending order of the values."""
    settings: dict[float, list[Setting]] = {}
    for one in own:
        value = finite_number(one.params.get(name))
        if value is None:
            continue
        settings.setdefault(value, []).append(one)
    return {value: best_of(settings[value]) for value in sorted(settings)}


def _draw_tradeoff(
    axes: Axes,
    *,
    found: DatasetSummary,
    by_learner: Looks,
) -> None:
    """Plot the metric against time, a dot per setting, and the Pareto front."""

    def dots(settings: Sequence[Setting], **look: Any) -> None:
        times = [one.means.seconds_mean for one in settings]
        seconds = [max(time, _FASTEST) for time in times]
        values = _metric(settings)
        axes.plot(seconds, values, **look)

    names = list[NamedLine]()
    for learner, own in _by_learner(found.compared).items():
        look = by_learner[learner] | {"linestyle": "none", "markeredgewidth": 0}
        dots(own, **look)
        best = best_of(own)
        [end] = _metric([best])
        names.append(NamedLine(_shown(learner), end, look))
    front = pareto_front(found.compared)
    dots(front, color=INK, linewidth=0.8, zorder=1.5)  # under the others
    _value_axis(axes, log=True)
    axes.set_xlabel("learning time (s); line: Pareto front")
    _metric_axis(axes, found, names)


def _metric_axis(axes: Axes, found: DatasetSummary, names: Sequence[NamedLine]) -> None:
    """Format the metric axis (rates start at 0) and write names beside it."""
    metric = found.criterion.metric
    label = metric.head.replace(" %", " (%)")
    axes.set_ylabel(label)
    axes.margins(y=0.15)
    if metric.in_percent and metric.larger_is_better:
        axes.set_ylim(0, 110.0)
    elif metric.in_percent:
        _, top = axes.get_ylim()
        axes.set_ylim(0, max(top, 0.1))
    _name_lines(axes, names)


def _value_axis(axes: Axes, *, log: bool) -> None:
    """Format the value axis: at least two ticks at round numbers, without overlaps."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    axes.set_xscale("log" if log else "linear")
    axes.margins(x=0.05)
    low, high = axes.get_xlim()
    axis = axes.xaxis
    ratio = high / low if log else 1.0
    if ratio >= 6:
        subs = _log_ticks(ratio)
        axis.set_major_locator(LogLocator(subs=subs))
    else:
        axis.set_major_locator(MaxNLocator(4))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def _log_ticks(ratio: float) -> tuple[float, ...]:
    """Multiples of powers of ten that have a tick, by the ratio of the ends of the axis."""
    if ratio < 50:
        return 1.0, 2.0, 5.0
    if ratio < 2000:
        return 1.0, 3.0
    return (1.0,)


def draw_ranks(ranks: OverDatasets, axes: Axes) -> None:
    """Draw mean ranks as a critical-difference diagram (Demsar 2006): the best is on the left.

    If the learners differ significantly, bars connect those that Nemenyi's test does not
    distinguish, and the critical difference is shown above the axis.
    """
    means = ranks.mean_ranks
    learners = sorted(means, key=means.__getitem__)
    count = len(learners)
    on_left = (count + 1) // 2
    bars = _BAR_GAP * len(ranks.groups)
    margin = 0.45 * (count - 1)
    axes.set_xlim(1 - margin, count + margin)
    axes.set_ylim(bars + on_left + 0.6, -1.6)  # downwards, in lines of text
    axes.set_axis_off()
    _draw_rank_axis(axes, count)
    gap = 0.04 * (count - 1)
    for place, learner in enumerate(learners):
        is_left = place < on_left
        line = place if is_left else count - 1 - place
        _draw_rank(
            axes,
            learner,
            means[learner],
            depth=bars + line + 0.8,
            side=1 - gap if is_left else count + gap,
        )
    beyond = 0.02 * count
    for number, group in enumerate(ranks.groups):
        depth = 0.45 + _BAR_GAP * number
        left = means[group[0]] - beyond
        right = means[group[-1]] + beyond
        axes.plot([left, right], [depth, depth], color=INK, linewidth=3, solid_capstyle="butt")
    title = f"{friedman_statistics(ranks)}; {counted(ranks.datasets, 'data set')}"
    finding = "no significant difference (5 %)"
    if ranks.rejects:
        finding = "bars: no significant difference (Nemenyi, 5 %)"
        _draw_critical_difference(axes, ranks.critical_difference or 0.0)
    axes.set_title(f"{title}\n{finding}")


def _draw_rank(axes: Axes, learner: str, rank: float, *, depth: float, side: float) -> None:
    """Draw a line from a mean rank down to `depth` and to `side`, where the learner is named."""
    axes.plot([rank, rank, side], [0, depth, depth], color=INK, linewidth=0.8)
    name = _shown(learner)
    text = f"{rank:.2f}  {name}"
    alignment = "left"
    away = 3
    if side < rank:
        text = f"{name}  {rank:.2f}"
        alignment = "right"
        away = -3
    axes.annotate(
        text,
        xy=(side, depth),
        xytext=(away, 0),
        textcoords="offset points",
        ha=alignment,
        va="center",
    )


def _draw_rank_axis(axes: Axes, count: int) -> None:
    """Draw the axis of mean ranks from 1 to `count`, with its numbers above it."""
    axes.hlines(0, 1, count, color=INK, linewidth=0.8)
    for rank in range(1, count + 1):
        axes.vlines(rank, 0, -0.15, color=INK, linewidth=0.8)
        axes.annotate(str(rank), xy=(rank, -0.2), ha="center", va="bottom")


def _draw_critical_difference(axes: Axes, width: float) -> None:
    """Draw the critical difference as a bar above the axis."""
    height = -1.05
    end = 1 + width
    axes.hlines(height, 1, end, color=INK, linewidth=1.2)
    axes.vlines([1, end], height - 0.12, height + 0.12, color=INK, linewidth=1.2)
    text = f"critical difference {width:.2f}"
    axes.annotate(text, xy=(end, height), xytext=(4, 0), textcoords="offset points", va="center")
