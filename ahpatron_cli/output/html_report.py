"""A sweep as one HTML page that needs nothing else: no network, no script, no font.

Every text from outside passes `_text`; all else is our own text or a number.
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
from ahpatron_cli.numbers import counted
from ahpatron_cli.output import pictures
from ahpatron_cli.output.render import Html
from ahpatron_cli.output.sweep_table import data_tables, findings_page, matrix_table
from ahpatron_cli.output.table import Page, render
from ahpatron_cli.sweep.summary import DatasetSummary, SweepSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT_SUFFIXES = (".html", ".htm")
_MAX_NAMES = 3
"""Data sets that the title names; of more it has the number."""
_HTML = Html()
_PARTS = "html", "css"


def check_report_path(path: str | Path) -> None:
    """Refuse a name that does not end like HTML, before a long sweep and not after it."""
    format_of_suffix(path, formats=dict.fromkeys(REPORT_SUFFIXES, "html"))


def write_report(path: str | Path, findings: SweepSummary, x: str | None = None) -> None:
    """Write the page, with the date."""
    check_report_path(path)
    if x is not None and findings.datasets:
        pictures.check_axis(x, pictures.drawable(findings))
    written = datetime.now(UTC).strftime("%Y-%m-%d")
    write_atomically(path, to_html(findings, written, x))


def to_html(findings: SweepSummary, written: str = "", x: str | None = None) -> str:
    """The page; without pictures where there is no matplotlib."""
    page, style = (Path(__file__).with_name(f"report.{kind}").read_text("utf-8") for kind in _PARTS)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    names = [found.short for found in findings.datasets] or ["no trial was completed"]
    if len(names) > _MAX_NAMES:
        names = [counted(len(names), "data set")]
    looks = pictures.looks(pictures.learners_of(findings))
    sections = [_dataset(*one, looks, x) for one in enumerate(findings.datasets, 1)]
    return page.format(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=_text(f"ahpatron sweep: {', '.join(names)}"),
        style=style,
        overview="\n".join(_overview(findings, written)),
        sections="\n".join(sections),
        metric=findings.criterion.metric.short,
        origins=_section("origin", "How it was made", *_origins(findings.origins)),
    )


def _text(value: object) -> str:
    return _HTML.outside(str(value))


def _section(anchor: str, heading: str, *parts: str) -> str:
    inside = "\n".join([f'<h2 id="{anchor}">{heading}</h2>', *filter(None, parts)])
    return f'<section aria-labelledby="{anchor}">\n{inside}\n</section>'


def _overview(findings: SweepSummary, written: str) -> Iterator[str]:
    last = findings.origins[-1] if findings.origins else {}
    machine = last.get("processor") or last.get("machine")
    made = [
        f"Written on {written}" if written else "",
        f"run by ahpatron {_text(last['version'])}" if "version" in last else "",
        f"on {_text(machine)}" if machine else "",
        findings.part or "",
    ]
    yield f'<p class="notes">{", ".join(filter(None, made))}.</p>' if any(made) else ""
    if len(findings.datasets) > 1:
        yield render(Page([matrix_table(findings)]), _HTML)
        if findings.ranks.p_value is not None and pictures.has_matplotlib():
            drawn = partial(pictures.draw_ranks, findings.ranks)
            yield _figure(drawn, "Mean ranks of the learners over the data sets.")
    page = findings_page(findings)
    lines = [page.remark, *page.items, *(" ".join(command) for command in page.commands)]
    items = "".join(f"<li>{_text(line)}</li>" for line in lines if line)
    yield f"<ul>{items}</ul>" if items else ""
    if not pictures.has_matplotlib():
        yield (
            "<p><strong>Without pictures:</strong> they need matplotlib. Install it with "
            f"<code>{_text(pictures.INSTALL)}</code> and write the report again.</p>"
        )


def _dataset(
    number: int, found: DatasetSummary, looks: Mapping[str, pictures.Look], x: str | None
) -> str:
    *every, best = data_tables(found)
    drawn = "\n".join(_pictures(found, looks, x)) if pictures.has_matplotlib() else ""
    parts = [_facts(found), f'<div class="pictures">\n{drawn}\n</div>' if drawn else ""]
    parts.append(render(Page([best]), _HTML))
    if every:
        summary = f"<summary>All {len(found.settings):,} settings</summary>"
        parts.append(f"<details>\n{summary}\n{render(Page(every), _HTML)}\n</details>")
    return _section(f"data-{number}", _text(found.name), *parts)


def _facts(found: DatasetSummary) -> str:
    data, record = found.data, found.data.record
    limited = "" if data.limit is None else f" (limited to the first {data.limit:,} rows)"
    return _definitions(
        {
            "Rounds": f"{record.rounds:,}{limited}",
            "Features": f"{record.features:,}"
            + ("" if data.scale == "none" else f", scaled ({data.scale})"),
            "Labels": (describe(record.labels) or "-1 and +1").replace("-", "−"),
            "Order": "random permutations" if data.shuffled else "as in the file",
            "File": record.path,
            "SHA-256": record.sha256 or "not known: the file was not read to its end",
        }
    )


def _pictures(
    found: DatasetSummary, looks: Mapping[str, pictures.Look], x: str | None
) -> Iterator[str]:
    name, parameter = found.criterion.metric.short, pictures.axis_of(found, x)
    draw = partial(pictures.alone, list(looks))
    if parameter is not None:
        several = max(setting.summary.repeats for setting in found.settings) > 1
        flat = not all(pictures.series(found, parameter).values())
        caption = f"{name} against {parameter}"
        caption += "; bands: ± standard deviation" if several else ""
        caption += f"; dashed: learners without {parameter}" if flat else ""
        yield _figure(
            lambda: draw(lambda axes: pictures.draw_parameter(axes, found, parameter, looks)),
            f"{caption}.",
        )
    front = "; line: Pareto front" if len(pictures.pareto_front(found.settings)) > 1 else ""
    yield _figure(
        lambda: draw(lambda axes: pictures.draw_tradeoff(axes, found, looks, named=True)),
        f"{name} against learning time, each setting a dot{front}.",
    )


def _figure(draw: Callable[[], Figure], caption: str) -> str:
    """A picture in the colours of a light page, and in those of a dark one."""
    light = pictures.picture(draw, "svg", transparent=True)
    dark = light
    for colour, other in pictures.DARK.items():
        dark = dark.replace(colour.encode(), other.encode())
    sources = [
        f"data:image/svg+xml;base64,{base64.b64encode(one).decode()}" for one in (light, dark)
    ]
    return (
        f'<figure><picture><source media="screen and (prefers-color-scheme: dark)" '
        f'srcset="{sources[1]}"><img src="{sources[0]}" alt="{_text(caption)} See the tables.">'
        f"</picture><figcaption>{_text(caption)}</figcaption></figure>"
    )


def _origins(origins: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The command and the versions of each sweep that wrote to the results file."""
    for number, origin in enumerate(origins, 1):
        yield f"<h3>{f'Sweep {number}' if len(origins) > 1 else 'The sweep'}</h3>"
        if "command" in origin:
            yield f"<pre>{_text(origin['command'])}</pre>"
        yield _definitions({name: value for name, value in origin.items() if name != "command"})


def _definitions(facts: Mapping[str, Any]) -> str:
    """Names and facts, both still to be escaped."""
    items = "".join(f"<dt>{_text(name)}</dt><dd>{_text(fact)}</dd>" for name, fact in facts.items())
    return f'<dl class="facts">{items}</dl>'
