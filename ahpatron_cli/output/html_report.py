"""A sweep as one HTML page that needs nothing else: no network, no script, no font.

Every text from outside passes `html_text`; all else is our own text or a number.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from ahpatron_cli.atomic import format_of_suffix, write_atomically
from ahpatron_cli.data.labels import describe
from ahpatron_cli.numbers import counted
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.markup import html_ours, html_table, html_text
from ahpatron_cli.output.pictures import INSTALL, Pen, has_matplotlib, inline_svg, picture
from ahpatron_cli.output.sweep_pictures import (
    all_learners,
    check_axis,
    draw_parameter,
    draw_ranks,
    draw_tradeoff,
    drawable,
    learner_pens,
    parameter_panel,
    pareto_front,
)
from ahpatron_cli.output.sweep_table import (
    best_table,
    failures_table,
    matrix_table,
    notes_of,
    settings_table,
)
from ahpatron_cli.sweep.summary import DataFindings, Findings, TrialRecord

REPORT_SUFFIXES = (".html", ".htm")

_MAX_NAMES = 3
"""Data sets that the title names; of more it has the number."""

_MEANING = """\
<ul>
<li><strong>AMR</strong> is the average mistake rate: mistakes in percent of the rounds of one pass,
each example predicted before its label is seen.</li>
<li><strong>Vs best</strong> is the AMR minus that of the best setting on the same data, order by
order, since all settings play the same orders.</li>
<li>A learner with more settings had more chances to be the best in hindsight.</li>
<li><strong>|N<sub>T</sub>|</strong> counts the rounds without a mistake that still led to an
update, <strong>support</strong> the examples kept at the end (of the budget), and
<strong>seconds</strong> the learning time of one pass; all are means over the orders.</li>
</ul>
"""


def check_report_path(path: str | Path) -> None:
    """Refuse a name that does not say HTML, before a long sweep and not after it."""
    format_of_suffix(path, formats=dict.fromkeys(REPORT_SUFFIXES, "html"))


def write_report(path: str | Path, findings: Findings, x: str | None = None) -> None:
    """Write the page, with the date."""
    check_report_path(path)
    if x is not None and findings.datasets:
        check_axis(x, drawable(findings))
    written = datetime.now(UTC).strftime("%Y-%m-%d")
    write_atomically(path, to_html(findings, written, x))


def to_html(findings: Findings, written: str = "", x: str | None = None) -> str:
    """The page; without pictures where there is no matplotlib."""
    style = files("ahpatron_cli.output").joinpath("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    names = [data.short for data in findings.datasets] or ["nothing was played to the end"]
    if len(names) > _MAX_NAMES:
        names = [counted(len(names), "data set")]
    title = f"ahpatron sweep: {', '.join(names)}"
    pens = learner_pens(findings)
    parts = (_dataset(data, n, pens, x) for n, data in enumerate(findings.datasets, 1))
    sections = "\n".join(parts)
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html_text(title)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{html_text(title)}</h1>
{_made(findings.origins, written)}
{_overview(findings)}
</header>
<main>
{sections}
{_failures(findings.failed)}
<section aria-labelledby="meaning">
<h2 id="meaning">How to read the numbers</h2>
{_MEANING}</section>
{_origins(findings.origins)}
</main>
</body>
</html>
"""


def _made(origins: Sequence[Mapping[str, Any]], written: str) -> str:
    """The date, and the version and machine of the latest sweep."""
    last = origins[-1] if origins else {}
    machine = last.get("processor") or last.get("machine")
    facts = [
        f"written on {written}" if written else "",
        f"played by ahpatron {last['version']}" if "version" in last else "",
        f"on {machine}" if machine else "",
    ]
    text = ", ".join(filter(None, facts))
    return f'<p class="notes">{html_text(text[:1].upper() + text[1:])}.</p>' if text else ""


def _overview(findings: Findings) -> str:
    failed = len(findings.failed)
    parts = [
        f"<p>{counted(len(all_learners(findings)), 'learner')}, "
        f"{counted(sum(len(data.settings) for data in findings.datasets), 'setting')} on "
        f"{counted(len(findings.datasets), 'data set')}; "
        f"{counted(findings.trials, 'trial')} played to the end"
        + (f', <a href="#failed">{failed:,} failed</a>' if failed else "")
        + ".</p>"
    ]
    if len(findings.datasets) > 1:
        matrix, ranks = matrix_table(findings), findings.ranks
        notes = html_ours(" ".join(matrix.notes))
        parts += [html_table(matrix), f'<p class="notes">{notes}</p>']
        if ranks.critical_difference is not None and has_matplotlib():
            caption = "Mean ranks; bars join learners that do not differ significantly (Nemenyi)."
            drawn = picture(lambda: draw_ranks(ranks), "svg", transparent=True)
            parts.append(_figure(drawn, "ranks-", caption))
        links = "".join(
            f'<li><a href="#data-{number}">{html_text(data.name)}</a>: {_winner(data)}</li>'
            for number, data in enumerate(findings.datasets, 1)
        )
        parts.append(f'<nav aria-label="Data sets"><ul>{links}</ul></nav>')
    if not has_matplotlib():
        parts.append(
            "<p><strong>Without pictures:</strong> they need matplotlib. Install it with "
            f"<code>{html_text(INSTALL)}</code> and write the report again.</p>"
        )
    return "\n".join(parts)


def _winner(data: DataFindings) -> str:
    """`lowest AMR 6.17 ± 0.15 % by ahpatron (budget=800)`."""
    best, metric = data.winner, data.criterion.metric
    value = best.mean_text + (f" ± {best.sd_text}" if best.sd_text else "")
    value += " %" if metric.in_percent else ""
    which = "highest" if metric.larger_is_better else "lowest"
    setting = f" ({html_text(best.label)})" if best.label else ""
    return f"{which} {metric.short} {value} by <strong>{html_text(best.learner)}</strong>{setting}"


def _rivals(data: DataFindings) -> str:
    """The learners whose best setting is not significantly worse."""
    names = [
        html_text(setting.learner)
        for setting in data.best
        if setting.difference and setting.difference.more_than_noise is False
    ]
    return f" Not significantly worse: {', '.join(names)}." if names else ""


def _dataset(data: DataFindings, number: int, by_learner: Mapping[str, Pen], x: str | None) -> str:
    anchor, winner = f"data-{number}", _winner(data)
    count = len(data.settings)
    pictures = _pictures(data, anchor, by_learner, x) if has_matplotlib() else ""
    best = best_table(data, "The best setting of each learner, lowest rate first", page=True)
    notes = " ".join(notes_of(data, differences=count > 1, stars=True))
    return f"""\
<section aria-labelledby="{anchor}">
<h2 id="{anchor}">{html_text(data.name)}</h2>
<p>{winner[0].upper()}{winner[1:]}.{_rivals(data)}</p>
{_facts(data)}
{pictures}
{html_table(best)}
<details>
<summary>{"The only setting" if count == 1 else f"All {count:,} settings"} in full</summary>
{html_table(settings_table(data, full=True))}
</details>
{f'<p class="notes">{html_ours(notes)}</p>' if notes else ""}
</section>"""


def _facts(data: DataFindings) -> str:
    record, played = data.data.record, data.data
    scaled = "" if played.scale == "none" else f", scaled ({played.scale})"
    rounds = f"{record.rounds:,}"
    if played.limit is not None:
        rounds += f" (limited to the first {played.limit:,} rows)"
    return _definitions(
        {
            "Rounds": rounds,
            "Features": f"{record.features:,}" + scaled,
            "Labels": (describe(record.labels) or "-1 and +1").replace("-", "−"),
            "Orders": "random permutations" if played.shuffled else "as in the file",
            "File": record.path,
            "SHA-256": record.sha256 or "not known: the file was not read to its end",
        }
    )


def _pictures(data: DataFindings, anchor: str, by_learner: Mapping[str, Pen], x: str | None) -> str:
    figures, name = [], data.criterion.metric.short
    panel = parameter_panel(data, x)
    if panel is not None:
        several = max(setting.summary.repeats for setting in data.settings) > 1
        caption = (
            f"{name} against {literal(panel.parameter)}"
            + (", other parameters at their best" if panel.others else "")
            + ("; bands: ± standard deviation" if several else "")
            + (
                f"; dashed: learners without {literal(panel.parameter)}"
                if any(line.level for line in panel.series)
                else ""
            )
            + "."
        )
        drawn = picture(lambda: draw_parameter(panel, by_learner), "svg", transparent=True)
        figures.append((drawn, caption))
    caption = f"{name} against learning time, each setting a dot" + (
        "; on the line: no other is both faster and better."
        if len(pareto_front(data.settings)) > 1
        else "."
    )
    drawn = picture(lambda: draw_tradeoff(data, by_learner), "svg", transparent=True)
    figures.append((drawn, caption))
    inside = "\n".join(
        _figure(svg, f"{anchor}-{number}-", caption)
        for number, (svg, caption) in enumerate(figures, 1)
    )
    return f'<div class="pictures">\n{inside}\n</div>'


def _figure(svg: bytes, prefix: str, caption: str) -> str:
    drawn = inline_svg(svg, prefix=prefix, description=f"{caption} See the tables.")
    return f"<figure>{drawn}<figcaption>{html_text(caption)}</figcaption></figure>"


def _failures(failed: Sequence[TrialRecord]) -> str:
    if not failed:
        return ""
    return f"""\
<section aria-labelledby="failed">
<h2 id="failed">Failed trials</h2>
{html_table(failures_table(failed))}
</section>"""


def _origins(origins: Sequence[Mapping[str, Any]]) -> str:
    """The command and the versions of each sweep that wrote to the results file."""
    parts = []
    for number, origin in enumerate(origins, 1):
        which = f"Sweep {number}" if len(origins) > 1 else "The sweep"
        facts = {name: value for name, value in origin.items() if name != "command"}
        parts.append(f"<h3>{which}</h3>")
        if "command" in origin:
            parts.append(f"<pre>{html_text(origin['command'])}</pre>")
        parts.append(_definitions(facts))
    inside = "\n".join(parts)
    return f"""\
<section aria-labelledby="origin">
<h2 id="origin">How it was made</h2>
{inside}
</section>"""


def _definitions(facts: Mapping[str, Any]) -> str:
    """Names and facts, both still to be escaped."""
    items = "".join(
        f"<dt>{html_text(name)}</dt><dd>{html_text(fact)}</dd>" for name, fact in facts.items()
    )
    return f'<dl class="facts">{items}</dl>'
