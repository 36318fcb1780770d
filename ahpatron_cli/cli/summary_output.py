"""Outputs of `sweep` and `report`: the summary on stdout, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import usage
from ahpatron_cli.output.formats import summary_to_text, trials_to_text, write
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.records import Outcome
from ahpatron_cli.settings import Output, Summary
from ahpatron_cli.sweep.summary import SweepSummary


def check_summary_output(
    summary: Summary, output: Output, inputs: Sequence[str], more: Mapping[str, str | None]
) -> None:
    """Check all output paths before a long run; `more` are further outputs, by option."""
    if summary.x and not (summary.plot or summary.html):
        raise usage("--x requires --plot FILE or --html FILE")
    if summary.panels:
        if not (summary.plot or summary.html):
            raise usage("--panels requires --plot FILE or --html FILE")
        from ahpatron_cli.output.pictures import panels_of

        panels_of(summary.panels)  # refuses other names
    if summary.trials:
        trials_to_text([], output.format)  # refuses formats without rows
    if output.out:
        format = format_of_suffix(output.out, output.format)
        if summary.trials:
            trials_to_text([], format)
    if summary.plot:
        from ahpatron_cli.output.pictures import picture_format

        picture_format(summary.plot)
    if summary.html:
        from ahpatron_cli.output.html_page import check_page_path

        check_page_path(summary.html)
    files = {"--plot": summary.plot, "--html": summary.html, "--out": output.out}
    check_outputs({**files, **more}, inputs)


def export(
    results: SweepSummary,
    trials: Sequence[Outcome],
    summary: Summary,
    output: Output,
    *,
    stderr: Stderr,
) -> None:
    """Write the files of --plot, --html and --out."""
    if summary.plot and not results.datasets:
        stderr.warn(f"there is nothing to draw, so {summary.plot} was not written")
    elif summary.plot:
        from ahpatron_cli.output.pictures import panels_of, write_plot

        write_plot(summary.plot, results, summary.x, chosen=panels_of(summary.panels))
    if summary.html:
        from ahpatron_cli.output.html_page import write_page
        from ahpatron_cli.output.pictures import panels_of

        write_page(summary.html, results, summary.x, chosen=panels_of(summary.panels))
    if output.out:
        format = format_of_suffix(output.out, output.format)
        write_atomically(output.out, _text(results, trials, summary, format=format))


def print_summary(
    results: SweepSummary, trials: Sequence[Outcome], summary: Summary, format: str
) -> None:
    """Write the summary, or with --trials the trials, to stdout."""

    def text(terminal: Terminal) -> str:
        return _text(results, trials, summary, format=format, terminal=terminal)

    write(text, format)


def _text(
    results: SweepSummary,
    trials: Sequence[Outcome],
    summary: Summary,
    *,
    format: str,
    terminal: Terminal | None = None,
) -> str:
    if summary.trials:
        return trials_to_text(trials, format)
    return summary_to_text(results, format, terminal, only_matrix=summary.matrix)
