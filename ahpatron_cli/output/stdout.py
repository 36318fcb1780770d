"""Results on standard output: a table for the eye, or one of the text formats."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ahpatron_cli.output.formats import document, findings_to_text, to_text
from ahpatron_cli.records import Report

if TYPE_CHECKING:
    from ahpatron_cli.profile.profile import Profile
    from ahpatron_cli.sweep.summary import Findings


def write_reports(reports: Sequence[Report], format: str) -> None:
    """Write all of it, and flush, so that a full disk is noticed here."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.output.terminal import print_tables

        print_tables(reports, Console())
    else:
        sys.stdout.write(to_text(reports, format))
    sys.stdout.flush()


def write_findings(findings: Findings, format: str) -> None:
    """The same for what a sweep found."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.output.sweep_table import findings_page
        from ahpatron_cli.output.terminal import print_page

        print_page(findings_page(findings), Console())
    else:
        sys.stdout.write(findings_to_text(findings, format))
    sys.stdout.flush()


def write_profile(profile: Profile, format: str) -> None:
    """What a data file is like, as "table" or "json"."""
    if format == "table":
        from rich.console import Console

        from ahpatron_cli.output.profile_text import print_profile

        print_profile(profile, Console())
    else:
        from ahpatron_cli.output.profile_json import profile_to_json

        sys.stdout.write(document(profile_to_json(profile)))
    sys.stdout.flush()


def write_reference(format: str) -> None:
    """All learners, kernels and parameters, as "table" or "json"."""
    from ahpatron_cli.output.reference import print_reference, reference_to_json

    if format == "table":
        from rich.console import Console

        print_reference(Console())
    else:
        sys.stdout.write(document(reference_to_json()))
    sys.stdout.flush()
