"""What `sweep` ends with and `inspect RESULTS` shows: tables, pictures, warnings of damage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ahpatron_cli.atomic import check_outputs
from ahpatron_cli.cli.answer import Answer
from ahpatron_cli.cli.console import Conversation
from ahpatron_cli.errors import ExitCode, one_of
from ahpatron_cli.output.formats import FORMATS
from ahpatron_cli.sweep.results_file import Contents
from ahpatron_cli.sweep.summary import Findings

MOST_WARNINGS = 5
"""Damaged lines that are named one by one."""


class FindingsOutput:
    """Where findings go: stdout in some format, and the files of `--plot` and `--report`."""

    def __init__(
        self, format: str, plot: str | None, report: str | None, inputs: Sequence[str]
    ) -> None:
        """Refuse, before a long run, what could not be written after it."""
        self._format = one_of("format", format, FORMATS)
        self._plot = plot
        self._report = report
        if plot:
            from ahpatron_cli.output.plots.sweep import check_plot_path

            check_plot_path(plot)
        if report:
            from ahpatron_cli.output.html_report import check_report_path

            check_report_path(report)
        check_outputs({"--plot": plot, "--report": report}, inputs)

    def write(self, findings: Findings, talk: Conversation, code: ExitCode) -> Answer:
        """Write the files, and hand back what goes to stdout."""
        if self._plot and not findings.datasets:
            talk.warn(f"there is nothing to draw, so {self._plot} was not written")
        elif self._plot:
            from ahpatron_cli.output.plots.sweep import write_plot

            write_plot(self._plot, findings)
        if self._report:
            from ahpatron_cli.output.html_report import write_report

            write_report(self._report, findings)
        from ahpatron_cli.output.formats import write_findings

        return Answer(partial(write_findings, findings, self._format), code)


def warn_of_damaged_lines(talk: Conversation, path: str, contents: Contents) -> None:
    """Name the lines that cannot be used; nothing deletes them."""
    for number, reason in contents.damaged[:MOST_WARNINGS]:
        talk.warn(f"{path}:{number}: this line is damaged and not used: {reason}")
    if len(contents.damaged) > MOST_WARNINGS:
        talk.warn(f"{path}: {len(contents.damaged) - MOST_WARNINGS} more lines are damaged")
