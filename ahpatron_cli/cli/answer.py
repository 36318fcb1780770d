"""What a command hands to `app.py`: how to write it to standard output, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ahpatron_cli.errors import ExitCode


@dataclass(frozen=True)
class Answer:
    """The result of a command; `write` writes it to standard output."""

    write: Callable[[], None]
    code: ExitCode = ExitCode.OK
