"""Learning curves: the mistake rate round by round, as numbers (.csv) or a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpatron_cli.atomic import unknown_suffix, write_atomically
from ahpatron_cli.numbers import percent
from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.output.plots.drawing import (
    INK,
    LINE_WIDTH,
    PALE,
    Name,
    inches_per_name,
    name_lines,
    pens,
    picture,
    require_matplotlib,
    rule,
)
from ahpatron_cli.records import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE_SUFFIXES = (".csv", ".png", ".svg", ".pdf")

_FIRST_DRAWN = 0.01
"""The share of rounds that is left out on the left: one mistake in one round is 100 %, and such
swings would press everything else flat. The .csv has every round."""
_NAME_SIZE = 9.0


def check_curve_path(path: str | Path) -> None:
    """Refuse what `write_curve` could not write, before a long run and not after it."""
    suffix = Path(path).suffix.lower()
    if suffix not in CURVE_SUFFIXES:
        raise unknown_suffix(path, CURVE_SUFFIXES)
    if suffix != ".csv":
        require_matplotlib(suffix, instead=", or write the curve as .csv")


def write_curve(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write the curves to a file whose suffix decides the format."""
    check_curve_path(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        write_atomically(path, _as_csv(curves))
    else:
        write_atomically(path, picture(lambda: draw_curves(curves), suffix.removeprefix(".")))


def _as_csv(curves: Sequence[Curve]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    recent = any(curve.recent_rate is not None for curve in curves)
    head = ["learner", "round", "mistakes", "mistake_rate", *(["recent_rate"] if recent else [])]
    writer.writerow(head)
    for curve in curves:
        columns = [curve.rounds.tolist(), curve.mistakes.tolist(), curve.mistake_rate.tolist()]
        if curve.recent_rate is not None:
            columns.append(curve.recent_rate.tolist())
        for number, mistakes, *rates in zip(*columns, strict=True):
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
        look: dict[str, Any] = {
            "color": pen.colour,
            "linestyle": pen.stroke,
            "linewidth": LINE_WIDTH,
        }
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
