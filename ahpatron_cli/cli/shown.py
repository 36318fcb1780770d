"""What a command hands to `app.py` to be shown on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ahpatron_cli.errors import ExitCode

if TYPE_CHECKING:  # the help does without them
    from ahpatron_cli.profile.profile import Profile
    from ahpatron_cli.records import Report
    from ahpatron_cli.sweep.summary import Findings


@dataclass(frozen=True)
class Shown:
    """Reports, and the format that stdout shows them in."""

    reports: Sequence[Report]
    format: str


@dataclass(frozen=True)
class FindingsShown:
    """What a sweep found, the format that stdout shows it in, and the exit code."""

    findings: Findings
    format: str
    code: ExitCode = ExitCode.OK


@dataclass(frozen=True)
class Said:
    """Plain text, and the exit code that goes with it."""

    text: str
    code: ExitCode = ExitCode.OK


@dataclass(frozen=True)
class ProfileShown:
    """What a data file is like, the format that stdout shows it in, and the exit code."""

    profile: Profile
    format: str
    code: ExitCode = ExitCode.OK


@dataclass(frozen=True)
class ReferenceShown:
    """All learners and kernels, and the format that stdout shows them in."""

    format: str
