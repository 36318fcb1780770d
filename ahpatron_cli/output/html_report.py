"""HTML report of a sweep: a self-contained page without network access, scripts or fonts.

All text passes through `_text`; the rest is markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.data.labels import describe
from ahpatron_cli.numbers import counted
from ahpatron_cli.output import pictures
from ahpatron_cli.output.render import Html
from ahpatron_cli.output.sweep_table import data_tables, findings_page, matrix_table
from ahpatron_cli.output.table import Page
from ahpatron_cli.records import DataRecord
from ahpatron_cli.sweep.summary import DatasetSummary, SweepSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_NAMES = 3
"""Largest number of data sets named in the title; beyond, only their number is given."""
_HTML = Html()
_text = _HTML.escape


def check_report_path(path: str | Path) -> None:
    """Refuse a path without an HTML suffix; called before a long sweep."""
    format_of_suffix(path, formats={".html": "html", ".htm": "html"})


def write_report(path: str | Path, findings: SweepSummary, x: str | None = None) -> None:
    """Write the report with the current date."""
    check_report_path(path)
    if findings.datasets:
        pictures.check_axis(x, pictures.axes_of(findings.datasets))
    written = datetime.now(UTC).strftime("%Y-%m-%d")
    write_atomically(path, to_html(findings, written, x))


def to_html(findings: SweepSummary, written: str = "", x: str | None = None) -> str:
    """The report as HTML text; without plots if matplotlib is not installed."""
    page, style = (
        Path(__file__).with_name(f"report.{kind}").read_text("utf-8") for kind in ("html", "css")
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    names = [found.short for found in findings.datasets] or ["no trial was completed"]
    if len(names) > _MAX_NAMES:
        names = [counted(len(names), "data set")]
    looks = pictures.looks(pictures.learners_of(findings))
    return page.format(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=_text(f"ahpatron sweep: {', '.join(names)}"),
        style=style,
        overview="\n".join(_overview(findings, written)),
        sections="\n".join(
            _section(f"data-{number}", _text(found.name), _dataset(found, looks, x))
            for number, found in enumerate(findings.datasets, 1)
        ),
        metric=findings.criterion.metric.short,
        origins=_section("origin", "How it was made", map(_origin, findings.origins)),
    )


def _section(anchor: str, heading: str, parts: Iterator[str]) -> str:
    inside = "\n".join([f'<h2 id="{anchor}">{heading}</h2>', *parts])
    return f'<section aria-labelledby="{anchor}">\n{inside}\n</section>'


def _overview(findings: SweepSummary, written: str) -> Iterator[str]:
    last = findings.origins[-1] if findings.origins else {}
    machine = last.get("processor") or last.get("machine")
    made = [
        f"Written on {written}" if written else "",
        f"run by ahpatron {last['version']}" if "version" in last else "",
        f"on {machine}" if machine else "",
        findings.part or "",
    ]
    if any(made):
        yield f'<p class="notes">{_text(", ".join(filter(None, made)))}.</p>'
    if len(findings.datasets) > 1:
        yield _HTML.page(Page([matrix_table(findings)]))
        if findings.ranks.p_value is not None and pictures.has_matplotlib():
            draw = partial(pictures.draw_ranks, findings.ranks)
            caption = "Mean ranks of the learners over the data sets"
            yield _figure(lambda: pictures.one_panel(draw, len(findings.matrix)), caption)
    page = findings_page(findings)
    lines = [*page.remarks, *(" ".join(command) for command in page.commands)]
    yield f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"
    if not pictures.has_matplotlib():
        yield f"<p>Pictures need matplotlib: <code>{_text(pictures.INSTALL)}</code></p>"


def _labels(data: DataRecord) -> str:
    """Text on the labels, with their names in a table."""
    if data.label_names is None:
        return describe(data.labels) or "-1 and +1"
    if len(data.labels) > 2:
        return f"{len(data.labels)} classes: {', '.join(data.label_names)}"
    negative, positive = data.label_names
    return f"label {negative} counts as -1, label {positive} as +1"


def _dataset(
    found: DatasetSummary, looks: Mapping[str, pictures.Look], x: str | None
) -> Iterator[str]:
    data = found.data
    limited = "" if data.limit is None else f" (limited to the first {data.limit:,} rows)"
    scale = "" if data.scale == "none" else f", scaled ({data.scale})"
    yield _definitions(
        {
            "Rounds": f"{data.rounds:,}{limited}",
            "Features": f"{data.features:,}{scale}",
            "Labels": _labels(data),
            "Order": "random permutations" if data.shuffled else "as in the file",
            "File": data.path,
            "SHA-256": data.sha256 or "not known: the file was not read to its end",
        }
    )
    if pictures.has_matplotlib():
        drawn = [
            _figure(partial(pictures.one_panel, draw, len(looks)), caption)
            for caption, draw in pictures.panels(found, x, looks)
        ]
        yield '<div class="pictures">\n{}\n</div>'.format("\n".join(drawn))
    *every, best = data_tables(found)
    yield _HTML.page(Page([best]))
    if every:
        summary = f"<summary>All {len(found.settings):,} settings</summary>"
        yield f"<details>\n{summary}\n{_HTML.page(Page(every))}\n</details>"


def _figure(draw: Callable[[], Figure], caption: str) -> str:
    """HTML of a plot, in a light and a dark version."""
    light = dark = pictures.picture(draw, "svg", transparent=True)
    for colour, other in pictures.DARK.items():
        dark = dark.replace(colour.encode(), other.encode())
    sources = [
        f"data:image/svg+xml;base64,{base64.b64encode(one).decode()}" for one in (light, dark)
    ]
    return (
        f'<figure><picture><source media="screen and (prefers-color-scheme: dark)" '
        f'srcset="{sources[1]}"><img src="{sources[0]}" alt="{_text(caption)}. See the tables.">'
        f"</picture><figcaption>{_text(caption)}.</figcaption></figure>"
    )


def _origin(origin: Mapping[str, Any]) -> str:
    """HTML of the command and versions of a sweep that wrote to the results file."""
    command = f"<pre>{_text(str(origin['command']))}</pre>\n" if "command" in origin else ""
    return command + _definitions({name: origin[name] for name in origin if name != "command"})


def _definitions(facts: Mapping[str, Any]) -> str:
    """HTML definition list of names and facts."""
    items = (f"<dt>{_text(name)}</dt><dd>{_text(str(fact))}</dd>" for name, fact in facts.items())
    return f'<dl class="facts">{"".join(items)}</dl>'
