"""Outputs of `sweep` and `report`: the summary on stdout, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import usage
from ahpatron_cli.output.formats import summary_to_text, trials_to_text, write
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.records import Outcome
from ahpatron_cli.settings import Output, Reporting
from ahpatron_cli.sweep.summary import SweepSummary


def check_summary_output(
    reporting: Reporting, output: Output, inputs: Sequence[str], more: Mapping[str, str | None]
) -> None:
    """Check all output paths before a long run; `more` are further outputs, by option."""
    if reporting.x and not (reporting.plot or reporting.html):
        raise usage("--x requires --plot FILE or --html FILE")
    if reporting.panels:
        if not (reporting.plot or reporting.html):
            raise usage("--panels requires --plot FILE or --html FILE")
        from ahpatron_cli.output.pictures import panels_of

        panels_of(reporting.panels)  # refuses other names
    if reporting.trials:
        trials_to_text([], output.format)  # refuses formats without rows
    if output.out:
        format = format_of_suffix(output.out, output.format)
        if reporting.trials:
            trials_to_text([], format)
    if reporting.plot:
        from ahpatron_cli.output.pictures import picture_format

        picture_format(reporting.plot)
    if reporting.html:
        from ahpatron_cli.output.html_page import check_page_path

        check_page_path(reporting.html)
    files = {"--plot": reporting.plot, "--html": reporting.html, "--out": output.out}
    check_outputs({**files, **more}, inputs)


def export(
    summary: SweepSummary,
    trials: Sequence[Outcome],
    reporting: Reporting,
    output: Output,
    *,
    stderr: Stderr,
) -> None:
    """Write the files of --plot, --html and --out."""
    if reporting.plot and not summary.datasets:
        stderr.warn(f"there is nothing to draw, so {reporting.plot} was not written")
    elif reporting.plot:
        from ahpatron_cli.output.pictures import panels_of, write_plot

        panels = panels_of(reporting.panels)
        write_plot(reporting.plot, summary, reporting.x, chosen=panels)
    if reporting.html:
        from ahpatron_cli.output.html_page import write_page
        from ahpatron_cli.output.pictures import panels_of

        panels = panels_of(reporting.panels)
        write_page(reporting.html, summary, reporting.x, chosen=panels)
    if output.out:
        format = format_of_suffix(output.out, output.format)
        write_atomically(output.out, _text(summary, trials, reporting, format=format))


def print_summary(
    summary: SweepSummary, trials: Sequence[Outcome], reporting: Reporting, format: str
) -> None:
    """Write the summary, or with --trials the trials, to stdout."""

    def text(terminal: Terminal) -> str:
        return _text(summary, trials, reporting, format=format, terminal=terminal)

    write(text, format)


def _text(
    summary: SweepSummary,
    trials: Sequence[Outcome],
    reporting: Reporting,
    *,
    format: str,
    terminal: Terminal | None = None,
) -> str:
    if reporting.trials:
        return trials_to_text(trials, format)
    return summary_to_text(summary, format, terminal, only_matrix=reporting.matrix)
