"""Results on standard output: a table for the eye, or one of the text formats."""

import sys
from collections.abc import Sequence

from ahpatron_cli.findings import Findings
from ahpatron_cli.records import Report
from ahpatron_cli.render.text import findings_to_text, to_text


def write_reports(reports: Sequence[Report], format: str) -> None:
    """Write all of it, and flush, so that a full disk is noticed here."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.render.table import print_tables

        print_tables(reports, Console())
    else:
        sys.stdout.write(to_text(reports, format))
    sys.stdout.flush()


def write_findings(findings: Findings, format: str) -> None:
    """The same for what a sweep found."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.render.sweep_sheets import findings_page
        from ahpatron_cli.render.table import print_page

        print_page(findings_page(findings), Console())
    else:
        sys.stdout.write(findings_to_text(findings, format))
    sys.stdout.flush()
