"""Results of a sweep, looked at again: what `sweep` ends with and `inspect` shows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ahpatron_cli.atomic import check_outputs
from ahpatron_cli.cli.console import Conversation
from ahpatron_cli.cli.shown import FindingsShown
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.output.formats import FORMATS
from ahpatron_cli.sweep.results_file import Contents, read_results
from ahpatron_cli.sweep.summary import Findings, TrialRecord, find

MOST_TOLD = 5
"""Damaged lines told one by one."""


def holds_results(path: str) -> bool:
    """Whether to read this as results: no line of a LIBSVM file begins with a brace."""
    with suppress(OSError):  # the reader of data files says what is wrong
        if path != "-" and stat.S_ISREG(Path(path).stat().st_mode):
            with Path(path).open("rb") as stream:
                return stream.read(1) == b"{"
    return False


def show_results(
    path: str, format: str, plot: str | None, report: str | None, talk: Conversation
) -> FindingsShown:
    """Everything a results file says, without running anything."""
    one_of("format", format, FORMATS)
    check_pictures(plot, report, [], path)
    contents = read_results(path)
    if contents.torn:
        talk.warn(f"{path}: the last line is torn: is a sweep still writing, or was it killed?")
    tell_damaged_lines(talk, path, contents)
    findings = find(_latest(contents.trials.values()), contents.headers)
    if not findings.trials and not findings.failed:
        raise UserError("no trial was finished yet", code=ExitCode.BAD_DATA, place=Place(path))
    write_pictures(findings, plot, report, talk)
    return FindingsShown(findings, format)


def _latest(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Each setting and order once: an older version of the algorithms may have played it, too."""
    latest = {}
    for trial in trials:
        params = tuple(sorted(trial.params.items()))
        key = trial.data.identity, trial.learner, params, trial.seed, trial.repeat
        latest[key] = trial
    return list(latest.values())


def check_pictures(
    plot: str | None, report: str | None, inputs: Sequence[str], results: str
) -> None:
    """Refuse, before a long run, what could not be written after it."""
    for option, path in (("--plot", plot), ("--report", report)):
        if path and os.path.realpath(path) == os.path.realpath(results):
            raise usage(f"{option} would overwrite the results", "choose another file name")
    if plot:
        from ahpatron_cli.output.plots.sweep import check_plot_path

        check_plot_path(plot)
    if report:
        from ahpatron_cli.output.html_report import check_report_path

        check_report_path(report)
    check_outputs({"--plot": plot, "--report": report}, inputs)


def tell_damaged_lines(talk: Conversation, path: str, contents: Contents) -> None:
    """Say which lines cannot be used; nobody deletes them."""
    for number, reason in contents.damaged[:MOST_TOLD]:
        talk.warn(f"{path}:{number}: this line is damaged and not used: {reason}")
    if len(contents.damaged) > MOST_TOLD:
        talk.warn(f"{path}: {len(contents.damaged) - MOST_TOLD} more lines are damaged")


def write_pictures(
    findings: Findings, plot: str | None, report: str | None, talk: Conversation
) -> None:
    """The files that `--plot` and `--report` ask for."""
    if plot and not findings.datasets:
        talk.warn(f"there is nothing to draw, so {plot} was not written")
    elif plot:
        from ahpatron_cli.output.plots.sweep import write_plot

        write_plot(plot, findings)
    if report:
        from ahpatron_cli.output.html_report import write_report

        write_report(report, findings)
