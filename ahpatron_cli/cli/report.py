"""`ahpatron report`: tables, plots and HTML reports of results files, without running trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import ExitCode, bad_data, usage
from ahpatron_cli.settings import ReportSettings
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.sweep.results_file import Contents

Results = Annotated[
    list[str],
    typer.Argument(metavar="RESULTS...", help="Results files that `sweep --out` wrote."),
]

EXAMPLES = """
  ahpatron report r.jsonl --plot r.svg --html r.html
  ahpatron report 1.jsonl 2.jsonl --merge all.jsonl
"""


def report(results: Results, *, settings: ReportSettings) -> ExitCode:
    """Show results of sweeps again: tables, matrix, plots, an HTML report.

    No trials are run. Several files are shown together; --merge writes them to one file.
    """
    from ahpatron_cli.atomic import write_atomically
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.cli.summary_output import export, print_summary
    from ahpatron_cli.cli.sweep_session import (
        criterion_of,
        warn_of_grid_ends,
        warn_of_unequal_trials,
    )
    from ahpatron_cli.sweep.summary import choose_trials, summarise_trials

    raise_on_signals()
    stderr = Stderr(settings.output.quiet)
    selection = settings.selection
    _check(results, settings)
    merged = _read(results, stderr)
    if selection.merge:
        write_atomically(selection.merge, merged.encoded())
    stored = list(merged.trials.values())
    trials = choose_trials(stored, selection.learner, selection.data)
    if not trials:
        raise bad_data("no trial was finished yet", results[0])
    criterion = criterion_of(settings.reporting)
    summary = summarise_trials(trials, merged.headers, criterion)
    warn_of_unequal_trials(summary, stderr)
    warn_of_grid_ends(summary, stderr)
    export(summary, trials, settings.reporting, output=settings.output, stderr=stderr)
    print_summary(summary, trials, settings.reporting, format=settings.output.format)
    return ExitCode.OK


def _check(results: list[str], settings: ReportSettings) -> None:
    """Check all outputs before the results are read."""
    from ahpatron_cli.atomic import exists
    from ahpatron_cli.cli.summary_output import check_summary_output
    from ahpatron_cli.sweep.results_file import check_results_path

    merge = settings.selection.merge
    if merge:
        check_results_path(merge, "--merge")
        if exists(merge):
            raise usage(f"{merge} exists already", "name a new file: --merge FILE.jsonl")
    check_summary_output(settings.reporting, settings.output, results, more={"--merge": merge})


def _read(paths: list[str], stderr: Stderr) -> Contents:
    """The contents of all results files together; warns of damaged lines."""
    from ahpatron_cli.cli.sweep_session import warn_of_damaged_lines
    from ahpatron_cli.sweep.results_file import merge_results, read_results

    files = {path: read_results(path) for path in paths}
    for path, contents in files.items():
        warn_of_damaged_lines(stderr, path, contents)
    return merge_results(files)
