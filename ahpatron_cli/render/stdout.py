"""Results on standard output: a table for the eye, or one of the text formats."""

import sys
from collections.abc import Sequence

from ahpatron_cli.records import Report
from ahpatron_cli.render.text import to_text


def write_reports(reports: Sequence[Report], format: str) -> None:
    """Write all of it, and flush, so that a full disk is noticed here."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.render.table import print_tables

        print_tables(reports, Console())
    else:
        sys.stdout.write(to_text(reports, format))
    sys.stdout.flush()
