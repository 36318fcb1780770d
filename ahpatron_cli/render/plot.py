"""Learning curves: the mistake rate round by round, as numbers (.csv) or a picture (.png, .svg).

matplotlib is an extra (`ahpatron-cli[plot]`) and slow to import, so it is only met inside the
functions that draw. Its object interface is used: no global state, no window, no display.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import warnings
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.records import Curve
from ahpatron_cli.render.files import unknown_suffix, write_atomically
from ahpatron_cli.render.safe import literal, spreadsheet_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_SUFFIXES = (".csv", ".png", ".svg")

# Okabe and Ito's colours, told apart by colour-blind eyes too; their yellow is lost on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STROKES = ("-", "--", ":", "-.")
"""The second round of colours is dashed, the third dotted."""

_FIRST_DRAWN = 0.01
"""The share of rounds that is left out on the left: one mistake in one round is 100 %, and such
swings would press everything else flat. The .csv has every round."""
_INCHES_PER_LABEL = 0.19
_LINE_WIDTH = 1.6
_INK = "#333333"


def check_curve_path(path: str | Path) -> None:
    """Refuse what `write_curve` could not write, before a long run and not after it."""
    suffix = Path(path).suffix.lower()
    if suffix not in CURVE_SUFFIXES:
        raise unknown_suffix(path, CURVE_SUFFIXES)
    if suffix != ".csv" and importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            f"writing {suffix} pictures needs matplotlib",
            code=ExitCode.USAGE,
            hint="pip install 'ahpatron-cli[plot]', or write the curve as .csv",
        )


def write_curve(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write the curves to a file whose suffix decides the format."""
    check_curve_path(path)
    suffix = Path(path).suffix.lower()
    content = _as_csv(curves) if suffix == ".csv" else _as_picture(curves, suffix.removeprefix("."))
    write_atomically(path, content)


def _as_csv(curves: Sequence[Curve]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(("learner", "round", "mistakes", "mistake_rate"))
    for curve in curves:
        columns = (curve.rounds.tolist(), curve.mistakes.tolist(), curve.mistake_rate.tolist())
        for number, mistakes, rate in zip(*columns, strict=True):
            shown = int(mistakes) if mistakes == int(mistakes) else mistakes
            writer.writerow((spreadsheet_text(curve.label), number, shown, rate))
    return target.getvalue()


def _as_picture(curves: Sequence[Curve], format: str) -> bytes:
    """The same curves give the same bytes: no date, no random identifiers."""
    from matplotlib import rc_context

    target = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "ahpatron"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box
        figure = draw_curves(curves)
        figure.savefig(target, format=format, dpi=200, bbox_inches="tight", metadata=metadata)
    return target.getvalue()


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """One line per learner, each named at its right end: no legend to look up."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(6.4, max(4.0, 0.6 + _INCHES_PER_LABEL * len(curves))))
    axes = figure.add_subplot()
    for curve, colour, stroke in zip(curves, *_pens(len(curves)), strict=True):
        drawn = curve.rounds >= _FIRST_DRAWN * curve.rounds[-1]
        axes.plot(
            curve.rounds[drawn],
            100 * curve.mistake_rate[drawn],
            color=colour,
            linestyle=stroke,
            linewidth=_LINE_WIDTH,
        )
    axes.set_xlabel("round $t$")
    axes.set_ylabel("mistake rate $|M_t|\\;/\\;t$ (%)")
    axes.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    axes.margins(y=0.08)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _name_lines(axes, curves, figure.get_figheight())
    return figure


def _pens(count: int) -> tuple[list[str], list[str]]:
    """A colour and a stroke for each curve, no pair twice among the first 28."""
    colours = list(islice(cycle(_COLOURS), count))
    strokes = [_STROKES[number // len(_COLOURS) % len(_STROKES)] for number in range(count)]
    return colours, strokes


def _name_lines(axes: Axes, curves: Sequence[Curve], figure_inches: float) -> None:
    """Write each learner's name and final rate to the right of its line, none over another.

    A thin thread leads from the end of the line to a stroke in its own pen and the name.
    """
    low, high = axes.get_ylim()
    inches = figure_inches * axes.get_position().height
    ends = [100 * float(curve.mistake_rate[-1]) for curve in curves]
    places = _spread(ends, gap=(high - low) * _INCHES_PER_LABEL / inches, low=low, high=high)
    beside = axes.get_yaxis_transform()  # across: 1 is the right edge; up: percent
    for curve, end, place, colour, stroke in zip(
        curves, ends, places, *_pens(len(curves)), strict=True
    ):
        outside: dict[str, Any] = {"color": colour, "transform": beside, "clip_on": False}
        axes.plot([1.005, 1.04], [end, place], linewidth=0.6, **outside)
        axes.plot([1.04, 1.075], [place] * 2, linestyle=stroke, linewidth=_LINE_WIDTH, **outside)
        axes.text(
            1.085,
            place,
            f"{literal(curve.label)}  {end:.2f} %",
            transform=beside,
            color=_INK,
            fontsize=9,
            verticalalignment="center",
            parse_math=False,
        )


def _spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
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
