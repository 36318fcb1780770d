"""HTML report of a sweep: a self-contained page without network access, scripts or fonts.

All text passes through `_text`; the rest is markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.data.labels import describe
from ahpatron_cli.number_text import counted
from ahpatron_cli.output import pictures
from ahpatron_cli.output.render import Html
from ahpatron_cli.output.sweep_table import data_tables, matrix_table, summary_page
from ahpatron_cli.output.table import Page
from ahpatron_cli.records import DataRecord, TrialData
from ahpatron_cli.sweep.summary import DatasetSummary, SweepSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_NAMES = 3
"""Largest number of data sets named in the title; beyond, only their number is given."""
_HTML = Html()
_text = _HTML.escape


def check_page_path(path: str | Path) -> None:
    """Refuse a path without an HTML suffix; called before a long sweep."""
    format_of_suffix(path, formats={".html": "html", ".htm": "html"})


def write_page(
    path: str | Path,
    summary: SweepSummary,
    x: str | None = None,
    chosen: Sequence[str] = pictures.PANELS,
) -> None:
    """Write the report with the current date."""
    check_page_path(path)
    if summary.datasets:
        names = pictures.axes_of(summary.datasets)
        pictures.check_axis(x, names)
    today = datetime.now(UTC)
    page = to_html(summary, today.strftime("%Y-%m-%d"), x=x, chosen=chosen)
    write_atomically(path, page)


def to_html(
    summary: SweepSummary,
    written: str = "",
    x: str | None = None,
    chosen: Sequence[str] = pictures.PANELS,
) -> str:
    """The report as HTML text; without plots if matplotlib is not installed."""
    page = _resource("report.html")
    style = _resource("report.css")
    learners = pictures.learners_of(summary)
    looks = pictures.looks(learners)
    sections = list[str]()
    for number, found in enumerate(summary.datasets, start=1):
        heading = _text(found.name)
        parts = _dataset(found, looks, x, chosen=chosen)
        sections.append(_section(f"data-{number}", heading, parts))
    origins = map(_origin, summary.origins)
    return page.format(
        policy=_policy(style),
        title=_text(_title(summary)),
        style=style,
        overview="\n".join(_overview(summary, written, chosen)),
        sections="\n".join(sections),
        metric=summary.criterion.metric.short,
        origins=_section("origin", "How it was made", origins),
    )


def _resource(name: str) -> str:
    """Text of a file beside this module."""
    path = Path(__file__).with_name(name)
    return path.read_text("utf-8")


def _policy(style: str) -> str:
    """Content security policy that allows this style sheet and embedded pictures only."""
    digest = hashlib.sha256(style.encode()).digest()
    digest_text = base64.b64encode(digest).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest_text}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _title(summary: SweepSummary) -> str:
    """Title of the page, with the names or the number of the data sets."""
    names = [found.short for found in summary.datasets]
    if not names:
        return "ahpatron sweep: no trial was completed"
    shown = ", ".join(names)
    if len(names) > _MAX_NAMES:
        shown = counted(len(names), "data set")
    return f"ahpatron sweep: {shown}"


def _section(anchor: str, heading: str, parts: Iterator[str]) -> str:
    """HTML of a section of the page."""
    lines = [
        f'<section aria-labelledby="{anchor}">',
        f'<h2 id="{anchor}">{heading}</h2>',
        *parts,
        "</section>",
    ]
    return "\n".join(lines)


def _overview(summary: SweepSummary, written: str, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the parts of the overview: origin, matrix, mean ranks, remarks and commands."""
    made = _made(summary, written)
    if made:
        yield f'<p class="notes">{_text(made)}.</p>'
    has_matplotlib = pictures.has_matplotlib()
    if len(summary.datasets) > 1:
        matrix = matrix_table(summary)
        yield _HTML.page(Page([matrix]))
        has_ranks = summary.ranks.p_value is not None
        if "ranks" in chosen and has_ranks and has_matplotlib:
            draw = partial(pictures.draw_ranks, summary.ranks)
            draw_figure = partial(pictures.one_panel, draw, len(summary.matrix))
            yield _figure(draw_figure, "Mean ranks of the learners over the data sets")
    page = summary_page(summary)
    lines = list(page.remarks)
    lines += [" ".join(command) for command in page.commands]
    items = [f"<li>{_text(line)}</li>" for line in lines]
    listed = "".join(items)
    yield f"<ul>{listed}</ul>"
    if not has_matplotlib:
        yield f"<p>Pictures need matplotlib: <code>{_text(pictures.INSTALL)}</code></p>"


def _made(summary: SweepSummary, written: str) -> str:
    """When, by which version and on which machine the results were made; empty if not known."""
    parts = list[str]()
    last: Mapping[str, Any] = {}
    if summary.origins:
        last = summary.origins[-1]
    if written:
        parts.append(f"Written on {written}")
    if "version" in last:
        parts.append(f"run by ahpatron {last['version']}")
    machine = last.get("processor") or last.get("machine")
    if machine:
        parts.append(f"on {machine}")
    if summary.part:
        parts.append(summary.part)
    return ", ".join(parts)


def _labels(data: DataRecord) -> str:
    """Text on the labels, with their names in a table."""
    names = data.label_names
    if names is None:
        return describe(data.labels) or "-1 and +1"
    if len(data.labels) > 2:
        listed = ", ".join(names)
        return f"{len(data.labels)} classes: {listed}"
    negative, positive = names
    return f"label {negative} counts as -1, label {positive} as +1"


def _dataset(
    found: DatasetSummary, looks: pictures.Looks, x: str | None, *, chosen: Sequence[str]
) -> Iterator[str]:
    """Yield the parts of the section of a data set: facts, plots and tables."""
    facts = _facts(found.data)
    yield _definitions(facts)
    if pictures.has_matplotlib():
        drawn = list[str]()
        for caption, draw in pictures.panels(found, x, by_learner=looks, chosen=chosen):
            draw_figure = partial(pictures.one_panel, draw, len(looks))
            drawn.append(_figure(draw_figure, caption))
        figures = "\n".join(drawn)
        yield f'<div class="pictures">\n{figures}\n</div>'
    *every, best = data_tables(found)
    yield _HTML.page(Page([best]))
    if every:
        count = len(found.settings)
        tables = _HTML.page(Page(every))
        yield f"<details>\n<summary>All {count:,} settings</summary>\n{tables}\n</details>"


def _facts(data: TrialData) -> dict[str, str]:
    """Facts on the data of a sweep, by name."""
    rounds = f"{data.rounds:,}"
    if data.limit is not None:
        rounds += f" (limited to the first {data.limit:,} rows)"
    features = f"{data.features:,}"
    if data.scale != "none":
        features += f", scaled ({data.scale})"
    order = "as in the file"
    if data.shuffled:
        order = "random permutations"
    return {
        "Rounds": rounds,
        "Features": features,
        "Labels": _labels(data),
        "Order": order,
        "File": data.path,
        "SHA-256": data.sha256 or "not known: the file was not read to its end",
    }


def _figure(draw: Callable[[], Figure], caption: str) -> str:
    """HTML of a plot, in a light and a dark version."""
    light = pictures.picture(draw, "svg", transparent=True)
    dark = light
    for colour, other in pictures.DARK.items():
        dark = dark.replace(colour.encode(), other.encode())
    text = _text(caption)
    return (
        '<figure><picture><source media="screen and (prefers-color-scheme: dark)" '
        f'srcset="{_embedded(dark)}"><img src="{_embedded(light)}" alt="{text}. See the tables.">'
        f"</picture><figcaption>{text}.</figcaption></figure>"
    )


def _embedded(svg: bytes) -> str:
    """URL that contains a picture."""
    encoded = base64.b64encode(svg).decode()
    return f"data:image/svg+xml;base64,{encoded}"


def _origin(origin: Mapping[str, Any]) -> str:
    """HTML of the command and versions of a sweep that wrote to the results file."""
    others = {name: fact for name, fact in origin.items() if name != "command"}
    versions = _definitions(others)
    if "command" not in origin:
        return versions
    command = _text(str(origin["command"]))
    return f"<pre>{command}</pre>\n{versions}"


def _definitions(facts: Mapping[str, Any]) -> str:
    """HTML definition list of names and facts."""
    items = ""
    for name, fact in facts.items():
        text = _text(str(fact))
        items += f"<dt>{_text(name)}</dt><dd>{text}</dd>"
    return f'<dl class="facts">{items}</dl>'
