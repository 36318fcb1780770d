"""A sweep as one HTML page that needs nothing else: no network, no script, no font.

Every text from outside passes `text`; everything else is a constant of this module or a number.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ahpatron_cli.atomic import unknown_suffix, write_atomically
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.html_parts import Column, definitions, table, text
from ahpatron_cli.output.inline_svg import inline_svg
from ahpatron_cli.output.plots.drawing import INSTALL, Pen, has_matplotlib, picture
from ahpatron_cli.output.plots.panels import (
    all_learners,
    choice,
    parameter_panel,
    pareto_front,
    shown,
)
from ahpatron_cli.output.plots.sweep import draw_parameter, draw_tradeoff, learner_pens
from ahpatron_cli.output.wording import counted
from ahpatron_cli.records import ParamValue, whole
from ahpatron_cli.sweep.summary import DataFindings, Findings, Setting, TrialRecord

REPORT_SUFFIXES = (".html", ".htm")

_NONE = "–"
_TITLES = 3
"""So many data sets are named in the title."""

_MEANING = """\
<ul>
<li><strong>AMR</strong> is the average mistake rate: mistakes in percent of the rounds of one pass,
each example predicted before its label is seen. It is the mean over the orders; after ± stands its
standard deviation over them.</li>
<li><strong>Difference</strong> is the AMR minus that of the best setting on the same data, in
percentage points (pp), taken order by order, since all play the same orders; after ± stands the
standard error of its mean.</li>
<li><strong>Worse</strong> means that 0 lies outside the 95 % interval of Student’s t for that
difference. The intervals are not corrected for the number of comparisons.</li>
<li>The best of several settings is chosen in hindsight, on the very rates that are shown: a learner
with more settings had more chances.</li>
<li><strong>|N<sub>T</sub>|</strong> counts the rounds without a mistake that still led to an
update, <strong>support</strong> the examples kept at the end (of the budget), and
<strong>seconds</strong> the learning time of one pass; all are means over the orders.</li>
</ul>
"""


def check_report_path(path: str | Path) -> None:
    """Refuse a name that does not say HTML, before a long sweep and not after it."""
    if Path(path).suffix.lower() not in REPORT_SUFFIXES:
        raise unknown_suffix(path, REPORT_SUFFIXES)


def write_report(path: str | Path, findings: Findings) -> None:
    """Write the page."""
    check_report_path(path)
    write_atomically(path, to_html(findings))


def to_html(findings: Findings) -> str:
    """The page; without pictures where there is no matplotlib."""
    style = files("ahpatron_cli.output").joinpath("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = f"ahpatron sweep: {_enumerated([data.name for data in findings.datasets])}"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{text(title)}</h1>
{_overview(findings)}
</header>
<main>
{_datasets(findings)}
{_failures(findings.failed)}
<section aria-labelledby="meaning">
<h2 id="meaning">How to read the numbers</h2>
{_MEANING}</section>
{_origins(findings.origins)}
</main>
</body>
</html>
"""


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
        links = "".join(
            f'<li><a href="#data-{number}">{text(data.name)}</a>: {_winner(data)}</li>'
            for number, data in enumerate(findings.datasets, 1)
        )
        parts.append(f'<nav aria-label="Data sets"><ul>{links}</ul></nav>')
    if not has_matplotlib():
        parts.append(
            "<p><strong>Without pictures:</strong> they need matplotlib. Install it with "
            f"<code>{text(INSTALL)}</code> and write the report again.</p>"
        )
    return "\n".join(parts)


def _winner(data: DataFindings) -> str:
    """`lowest AMR 6.17 ± 0.15 % by ahpatron (budget=800)`."""
    best = next(setting for setting in data.settings if setting.best_of_data)
    chosen = choice(best)
    return f"lowest AMR {_rate(best)} % by <strong>{text(best.learner)}</strong>" + (
        f" ({text(chosen)})" if chosen else ""
    )


def _rivals(data: DataFindings) -> str:
    """The learners whose best could as well be the best of all."""
    names = [
        text(setting.learner)
        for setting in data.best
        if setting.difference and setting.difference.more_than_noise is False
    ]
    return f" Not told apart from it: {', '.join(names)}." if names else ""


def _datasets(findings: Findings) -> str:
    by_learner = learner_pens(findings)
    return "\n".join(
        _dataset(data, number, by_learner) for number, data in enumerate(findings.datasets, 1)
    )


def _dataset(data: DataFindings, number: int, by_learner: Mapping[str, Pen]) -> str:
    anchor = f"data-{number}"
    count = len(data.settings)
    pictures = _pictures(data, anchor, by_learner) if has_matplotlib() else ""
    every = _settings_table(
        data, data.settings, "Every setting, with all its parameters", full=True
    )
    return f"""\
<section aria-labelledby="{anchor}">
<h2 id="{anchor}">{text(data.name)}</h2>
<p>{_winner(data).replace("lowest", "Lowest", 1)}.{_rivals(data)}</p>
{_facts(data)}
{pictures}
{_settings_table(data, data.best, "The best setting of each learner, lowest rate first")}
<details>
<summary>{"The only setting" if count == 1 else f"All {count:,} settings"} in full</summary>
{every}
</details>
</section>"""


def _facts(data: DataFindings) -> str:
    record, played = data.data.record, data.data
    negative, positive = record.labels
    minus = "every other label" if negative is None else str(whole(negative))
    usual = (negative, positive) == (-1, 1)
    rounds = f"{record.rounds:,}"
    if played.limit is not None:
        rounds += f" (limited to the first {played.limit:,} rows)"
    return definitions(
        {
            "Rounds": rounds,
            "Features": f"{record.features:,}" + _scaling(played.scale),
            "Labels": "−1 and +1" if usual else f"{minus} as −1, {whole(positive)} as +1",
            "Orders": "random permutations" if played.shuffled else "as in the file",
            "File": record.path,
            "SHA-256": record.sha256 or "not known: the file was not read to its end",
        }
    )


def _scaling(scale: str) -> str:
    return "" if scale == "none" else f", scaled ({scale})"


def _pictures(data: DataFindings, anchor: str, by_learner: Mapping[str, Pen]) -> str:
    figures = []
    panel = parameter_panel(data)
    if panel is not None:
        several = max(setting.summary.repeats for setting in data.settings) > 1
        caption = (
            f"AMR against {literal(panel.parameter)}"
            + (", other parameters at their best" if panel.others else "")
            + ("; bands: ± standard deviation" if several else "")
            + (
                f"; dashed: learners without {literal(panel.parameter)}"
                if any(line.level for line in panel.series)
                else ""
            )
            + "."
        )
        drawn = picture(lambda: draw_parameter(data, panel, by_learner), "svg", transparent=True)
        figures.append((drawn, caption))
    caption = "AMR against learning time, each setting a dot" + (
        "; on the line: no other is both faster and better."
        if len(pareto_front(data.settings)) > 1
        else "."
    )
    drawn = picture(lambda: draw_tradeoff(data, by_learner), "svg", transparent=True)
    figures.append((drawn, caption))
    inside = "\n".join(
        "<figure>"
        + inline_svg(svg, prefix=f"{anchor}-{number}-", description=f"{caption} See the tables.")
        + f"<figcaption>{text(caption)}</figcaption></figure>"
        for number, (svg, caption) in enumerate(figures, 1)
    )
    return f'<div class="pictures">\n{inside}\n</div>'


def _settings_table(
    data: DataFindings, settings: Sequence[Setting], caption: str, *, full: bool = False
) -> str:
    columns = [
        Column("Learner"),
        Column("Setting"),
        Column("AMR %", "number"),
        Column("Difference (pp)", "number"),
        Column("Verdict"),
        Column("|N<sub>T</sub>|", "number"),
        Column("Support", "number"),
        Column("Seconds", "number"),
    ]
    if full:
        columns += [Column("Orders", "number"), Column("All parameters", "wide")]
    else:
        settings = sorted(settings, key=lambda setting: setting.summary.mistake_rate_mean)
    rows = []
    for setting in settings:
        summary = setting.summary
        row = [
            text(setting.learner),
            text(choice(setting) or _NONE),
            _rate(setting),
            _difference(setting),
            _verdict(setting, alone=len(data.settings) == 1),
            _number(summary.margin_updates_mean),
            _support(setting),
            f"{summary.seconds_mean:.3g}",
        ]
        if full:
            row += [f"{summary.repeats:,}", text(_params(setting.params))]
        rows.append((row, setting.best_of_data and len(settings) > 1))
    return table(caption, columns, rows)


def _rate(setting: Setting) -> str:
    summary = setting.summary
    sd = summary.mistake_rate_sd
    return f"{100 * summary.mistake_rate_mean:.2f}" + ("" if sd is None else f" ± {100 * sd:.2f}")


def _difference(setting: Setting) -> str:
    difference = setting.difference
    if difference is None:
        return _NONE
    mean = f"{100 * difference.mean:+.2f}".replace("-", "−")
    return mean + ("" if difference.se is None else f" ± {100 * difference.se:.2f}")


def _verdict(setting: Setting, *, alone: bool) -> str:
    """What the difference to the best says, in words."""
    difference = setting.difference
    if setting.best_of_data:
        return "the only one" if alone else "best"
    if difference is None:
        return "no order in common with the best"
    if difference.more_than_noise is None:
        return "one order in common: cannot be said"
    if not difference.more_than_noise:
        return "not told apart from the best"
    return "worse" if difference.mean > 0 else "better, but over fewer orders"


def _support(setting: Setting) -> str:
    size = setting.summary.support_size_mean
    if size is None:
        return _NONE
    budget = setting.params.get("budget")
    return _number(size) + ("" if budget is None else f" of {text(shown(budget))}")


def _failures(failed: Sequence[TrialRecord]) -> str:
    if not failed:
        return ""
    columns = [
        Column("Data"),
        Column("Learner"),
        Column("Seed", "number"),
        Column("Repeat", "number"),
        Column("Reason", "wide"),
        Column("All parameters", "wide"),
    ]
    rows = [
        (
            [
                text(trial.data.record.path),
                text(trial.learner),
                str(trial.seed),
                str(trial.repeat),
                text(trial.error or "not recorded"),
                text(_params(trial.params)),
            ],
            False,
        )
        for trial in failed
    ]
    return f"""\
<section aria-labelledby="failed">
<h2 id="failed">Failed trials</h2>
{table("Trials that ended with an error; they count nowhere above", columns, rows)}
</section>"""


def _origins(origins: Sequence[Mapping[str, Any]]) -> str:
    """The command and the versions of each sweep that wrote to the results file."""
    parts = []
    for number, origin in enumerate(origins, 1):
        which = f"Sweep {number}" if len(origins) > 1 else "The sweep"
        facts = {name: value for name, value in origin.items() if name != "command"}
        parts.append(f"<h3>{which}</h3>")
        if "command" in origin:
            parts.append(f"<pre>{text(origin['command'])}</pre>")
        parts.append(definitions(facts))
    inside = "\n".join(parts)
    return f"""\
<section aria-labelledby="origin">
<h2 id="origin">How it was made</h2>
{inside}
</section>"""


def _params(params: Mapping[str, ParamValue]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in params.items())


def _number(value: float) -> str:
    """A count, or the mean of counts."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _enumerated(names: Sequence[str]) -> str:
    if not names:
        return "nothing was played to the end"
    rest = len(names) - _TITLES
    return ", ".join(names[:_TITLES]) + (f" and {rest} more" if rest > 0 else "")
