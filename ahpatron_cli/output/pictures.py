"""Learning curves, and what all pictures share: pens, names beside lines, reproducible bytes.

matplotlib is an extra and slow to import, so only the functions that draw import it. They use its
object interface: no global state, no window, no display.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import re
import warnings
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.errors import usage
from ahpatron_cli.numbers import percent
from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.records import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL = "pip install 'ahpatron-cli[plot]'"
INK = "#333333"
PALE = "#666666"
GRID = "#dddddd"
BLACK = "#000000"
LINE_WIDTH = 1.6
POINTS_PER_INCH = 72

# Okabe and Ito's colours, told apart by colour-blind eyes too; their yellow is lost on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", BLACK)
_STROKES = ("-", "--", ":", "-.")
"""The second round of colours is dashed, the third dotted."""
_MARKERS = ("o", "s", "^", "D")

_LINE_SPACING = 1.5
"""Between names one above the other, in font sizes."""
_THREAD = (0.025, 0.2, 0.42, 0.47)
"""Inches right of the axes: the thread begins, the stroke begins, it ends, the name begins."""

_METADATA: Mapping[str, Mapping[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

_FIRST_DRAWN = 0.01
"""The share of rounds that is left out on the left: one mistake in one round is 100 %, and such
swings would press everything else flat. The .csv has every round."""
_NAME_SIZE = 9.0

_OPACITY_OF_INK = {BLACK: "1", INK: "1", PALE: "0.75", GRID: "0.2"}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_PIXELS_PER_POINT = 4 / 3


@dataclass(frozen=True)
class Pen:
    """How one learner is drawn: as a line by colour and stroke, as dots by colour and marker."""

    colour: str
    stroke: str
    marker: str


@dataclass(frozen=True)
class Name:
    """A name to be written to the right of the axes, at the height where its line ends."""

    text: str
    end: float
    look: Mapping[str, Any]
    """The properties of the short stroke before the name, those of its line."""


def pens(count: int) -> list[Pen]:
    """A pen for each learner, no two alike among the first 28."""
    rounds = zip(_STROKES, _MARKERS, strict=True)
    kinds = [Pen(colour, *look) for look in rounds for colour in _COLOURS]
    return list(islice(cycle(kinds), count))


def has_matplotlib() -> bool:
    """Whether pictures can be drawn, found out without the slow import."""
    return importlib.util.find_spec("matplotlib") is not None


def picture_format(path: str | Path, *others: str) -> str:
    """The format that a file name asks for, a picture's or one of the `others`, such as csv.

    Refused before a long run, and not after it: other suffixes, and pictures without matplotlib.
    """
    formats = {f".{name}": name for name in (*others, *_METADATA)}
    format = format_of_suffix(path, formats=formats)
    if format not in others and not has_matplotlib():
        instead = "".join(f", or write a .{name} file" for name in others)
        raise usage(f"writing .{format} pictures needs matplotlib", INSTALL + instead)
    return format


def picture(draw: Callable[[], Figure], format: str, *, transparent: bool = False) -> bytes:
    """What `draw` draws as a png, svg or pdf: no date, no random identifiers."""
    from matplotlib import rc_context

    target = io.BytesIO()
    # publishers refuse matplotlib's usual Type 3 fonts
    fixed = rc_context({"svg.hashsalt": "ahpatron", "pdf.fonttype": 42})
    with fixed, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box
        look: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "transparent": transparent}
        draw().savefig(target, format=format, metadata=dict(_METADATA[format]), **look)
    return target.getvalue()


def rule(axes: Axes) -> None:
    """Faint lines across, behind everything."""
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def size_in_inches(axes: Axes) -> tuple[float, float]:
    """Width and height of the axes on paper."""
    box = axes.get_window_extent()  # in pixels, of which a figure knows how many make an inch
    return box.width / axes.figure.dpi, box.height / axes.figure.dpi


def name_lines(axes: Axes, names: Sequence[Name], *, size: float, threads: bool = True) -> None:
    """Write each name to the right of its line, none over another.

    A thin thread leads from the end of the line to a stroke in its own pen and the name.
    """
    low, high = axes.get_ylim()
    across, up = size_in_inches(axes)
    gap = (high - low) * inches_per_name(size) / up
    places = spread([name.end for name in names], gap=gap, low=low, high=high)
    start, left, right, text = (1 + inches / across for inches in _THREAD)
    beside = axes.get_yaxis_transform()  # across: 1 is the right edge; up: in data
    outside: dict[str, Any] = {"transform": beside, "clip_on": False}
    for name, place in zip(names, places, strict=True):
        if threads:
            colour = name.look["color"]
            axes.plot([start, left], [name.end, place], color=colour, linewidth=0.6, **outside)
        middle = (left + right) / 2  # where a marker goes, if the line has markers
        axes.plot([left, middle, right], [place] * 3, markevery=[1], **name.look, **outside)
        look: dict[str, Any] = {"color": INK, "fontsize": size, "parse_math": False}
        axes.text(text, place, name.text, transform=beside, va="center", **look)


def inches_per_name(size: float) -> float:
    """The height that one of several names at a line's end needs."""
    return _LINE_SPACING * size / POINTS_PER_INCH


def name_width(text: str, size: float) -> float:
    """Inches from the right edge of the axes to the end of a name beside it."""
    return _THREAD[-1] + text_width(text, size) / POINTS_PER_INCH


def text_width(text: str, size: float) -> float:
    """The width of a text in points, mathematics not interpreted."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def fitted(text: str, points: float, size: float) -> str:
    """The text, or as much of it as fits into a width, with an ellipsis."""
    if text_width(text, size) <= points:
        return text
    lengths = range(1, len(text))
    fits = bisect(lengths, points, key=lambda length: text_width(text[:length] + "…", size))
    return text[:fits] + "…"


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """The places nearest to `wanted`, at least `gap` apart, inside the limits if they all fit.

    With i gaps taken off the i-th smallest, this is isotonic regression: neighbours in the wrong
    order are pooled at their mean.
    """
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    pools: list[list[float]] = []
    for rank, number in enumerate(order):
        pools.append([wanted[number] - rank * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    levels = [fmean(pool) for pool in pools for _ in pool]
    top = max(high - gap * (len(wanted) - 1), low)
    places = [0.0] * len(wanted)
    for rank, (number, level) in enumerate(zip(order, levels, strict=True)):
        places[number] = min(max(level, low), top) + rank * gap
    return places


def inline_svg(picture: bytes, *, prefix: str, description: str) -> str:
    """matplotlib's SVG as an element of an HTML page; its text is made of paths.

    Several pictures share one page, so all identifiers begin with `prefix`; the page's policy
    allows no style attributes, so they become plain ones; and what is black or grey takes the
    colour of the page's text, so that it can be read on a dark page too.
    """
    root = ElementTree.fromstring(picture)  # our own output: no entities to fear
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        declarations = filter(None, attributes.pop("style", "").split(";"))
        pairs = (one.split(":", 1) for one in declarations)
        attributes |= {name.strip(): value.strip() for name, value in pairs}
        element.attrib.clear()
        element.attrib.update(_unique(_in_ink(attributes), prefix))
        element.text = element.tail = None
    width = float(root.attrib["width"].removesuffix("pt"))
    root.attrib.pop("height")
    root.attrib |= {
        "width": f"{width * _PIXELS_PER_POINT:.0f}",
        "fill": "currentColor",  # black is the default, so matplotlib leaves it out
        "stroke-linejoin": "round",  # what the style element said
        "stroke-linecap": "butt",
        "role": "img",
        "aria-label": description,
    }
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """Without its namespace: HTML knows the elements of SVG, and `href` has replaced XLink."""
    return name.rpartition("}")[2]


def _in_ink(attributes: dict[str, str]) -> dict[str, str]:
    for paint in ("fill", "stroke"):
        opacity = _OPACITY_OF_INK.get(attributes.get(paint, ""))
        if opacity is not None:
            attributes[paint] = "currentColor"
            attributes.setdefault(f"{paint}-opacity", opacity)
    return attributes


def _unique(attributes: dict[str, str], prefix: str) -> dict[str, str]:
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if "href" in attributes:
        attributes["href"] = "#" + prefix + attributes["href"].removeprefix("#")
    if "clip-path" in attributes:
        attributes["clip-path"] = _REFERENCE.sub(rf"url(#{prefix}\1)", attributes["clip-path"])
    if "d" in attributes:
        attributes["d"] = " ".join(attributes["d"].split())
    return attributes


# Learning curves ----------------------------------------------------------------------------------


def write_curve(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write the curves to a file whose suffix decides the format."""
    format = picture_format(path, "csv")
    numbers = format == "csv"
    content = _as_csv(curves) if numbers else picture(lambda: draw_curves(curves), format)
    write_atomically(path, content)


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
    """One line per learner, each named at its right end: no legend to look up.

    Bands are ± one standard deviation over the repeats; a grey line is the baseline.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    height = max(4.0, 0.6 + inches_per_name(_NAME_SIZE) * len(curves))
    figure = Figure(figsize=(6.4, height))
    axes = figure.add_subplot()
    names = []
    for curve, pen in zip(curves, pens(len(curves)), strict=True):
        drawn = curve.rounds >= _FIRST_DRAWN * curve.rounds[-1]
        look: dict[str, Any] = {"color": pen.colour, "linestyle": pen.stroke}
        look["linewidth"] = LINE_WIDTH
        axes.plot(curve.rounds[drawn], 100 * curve.mistake_rate[drawn], **look)
        if curve.recent_rate is not None:
            thin = {**look, "linewidth": LINE_WIDTH / 3}
            axes.plot(curve.rounds[drawn], 100 * curve.recent_rate[drawn], **thin)
        if curve.sd is not None:
            low, high = (curve.mistakes + sign * curve.sd for sign in (-1, 1))
            edges = [100 * (edge / curve.rounds)[drawn] for edge in (low, high)]
            band: dict[str, Any] = {"color": pen.colour, "alpha": 0.15, "linewidth": 0}
            axes.fill_between(curve.rounds[drawn], *edges, **band)
        rate = float(curve.mistake_rate[-1])
        names.append(Name(f"{literal(curve.label)}  {percent(rate)} %", 100 * rate, look))
    baselines = {curve.baseline for curve in curves}
    baseline = baselines.pop() if len(baselines) == 1 else None
    if baseline is not None:
        look = {"color": PALE, "linestyle": ":", "linewidth": 1.0}
        axes.axhline(100 * baseline, **look)
        names.append(Name(f"baseline  {percent(baseline)} %", 100 * baseline, look))
    abouts = [about for about in dict.fromkeys(curve.about for curve in curves) if about]
    if len(abouts) == 1:
        text = literal(abouts[0]) + (", mean ± sd" if curves[0].sd is not None else "")
        axes.set_title(text, loc="left", fontsize=_NAME_SIZE + 1, color=INK, parse_math=False)
    axes.set_xlabel("round $t$")
    axes.set_ylabel("mistake rate $|M_t|\\;/\\;t$ (%)")
    axes.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    axes.margins(y=0.08)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    rule(axes)
    axes.spines[["top", "right"]].set_visible(False)
    name_lines(axes, names, size=_NAME_SIZE)
    return figure
