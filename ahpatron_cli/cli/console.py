"""The conversation on stderr: notes, warnings, errors and the progress bar.

stdout is data, stderr is conversation: whatever happens to stderr (closed, full, a terminal that
went away), the run goes on and its exit code stays that of the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from ahpatron_cli.cli.error_text import render_error
from ahpatron_cli.errors import UserError
from ahpatron_cli.output.escape import literal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SECONDS_BETWEEN_REFRESHES = 0.1


class ProgressLine(Protocol):
    """How far a run has come."""

    def update(self, completed: int, mistakes: int = 0, rounds: int = 0) -> None:
        """Say how much of the total is done, and the mistakes made in the rounds played so far."""

    def show(self, completed: int, count: str, news: str) -> None:
        """The same in words of the caller's own."""


class Conversation:
    """What is said to the user. `quiet` leaves only errors; `verbose` adds details."""

    def __init__(self, quiet: bool = False, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._verbose = verbose
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self._bar: Progress | None = None

    def note(self, text: str) -> None:
        """Say something worth knowing, like how labels were mapped."""
        if not self._quiet:
            self._say(f"note: {literal(text)}")

    def warn(self, text: str) -> None:
        """Say something that may spoil the result."""
        if not self._quiet:
            self._say(f"warning: {literal(text)}")

    def insist(self, text: str) -> None:
        """Say something that nobody may miss, also when quiet."""
        self._say(f"warning: {literal(text)}")

    def detail(self, text: str, level: int = 1) -> None:
        """Say something that only `-v` (level 1) or `-vv` (level 2) asks for."""
        if self._verbose >= level and not self._quiet:
            self._say(literal(text))

    def error(self, error: UserError) -> None:
        """Say why the run ends, also when quiet."""
        self._say(render_error(error, colour=_shows_colour(self._stream)).removesuffix("\n"))

    @contextmanager
    def progress(self, total: int | None, description: str) -> Iterator[ProgressLine]:
        """A progress bar while the block runs, where somebody can see one.

        `total` is in the unit of `update(completed)`, bytes or rounds; None if it is not known.
        """
        stream = self._stream
        hidden = self._quiet or self._bar is not None  # one bar is enough
        if hidden or stream is None or not _is_live_terminal(stream):
            yield _NoBar()
            return
        from ahpatron_cli.cli.progress import make_bar, shorten  # rich takes 0.1 s to load

        bar = make_bar(stream, known_total=total is not None)
        task = bar.add_task(shorten(literal(description)), total=total, played="", rate="")
        with suppress(OSError, ValueError):
            bar.start()
        self._bar = bar
        try:
            yield _Bar(bar, task)
        finally:
            self._bar = None
            with suppress(OSError, ValueError):
                bar.stop()

    def _say(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            if self._bar is None:
                self._stream.write(text + "\n")
                self._stream.flush()
            else:
                self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        except (OSError, ValueError):
            self._stream = None  # nobody listens any more


class _NoBar:
    def update(self, completed: int, mistakes: int = 0, rounds: int = 0) -> None:
        """Nobody is looking."""

    def show(self, completed: int, count: str, news: str) -> None:
        """Nobody is looking."""


class _Bar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task
        self._next_refresh = 0.0

    def update(self, completed: int, mistakes: int = 0, rounds: int = 0) -> None:
        """How a run goes: called between redraws this costs next to nothing."""
        if time.monotonic() >= self._next_refresh:
            played = f"{rounds:,} rounds" if rounds else ""
            rate = f"{100 * mistakes / rounds:.2f} % mistakes" if rounds else ""
            self.show(completed, played, rate)

    def show(self, completed: int, count: str, news: str) -> None:
        """Redraw, at most ten times a second."""
        now = time.monotonic()
        if now < self._next_refresh:
            return
        self._next_refresh = now + _SECONDS_BETWEEN_REFRESHES
        with suppress(OSError, ValueError):
            self._bar.update(self._task, completed=completed, played=count, rate=news)
            self._bar.refresh()


def _is_live_terminal(stream: TextIO | None) -> bool:
    return _is_terminal(stream) and os.environ.get("TERM", "dumb") not in {"dumb", "unknown", ""}


def _shows_colour(stream: TextIO | None) -> bool:
    return _is_live_terminal(stream) and not os.environ.get("NO_COLOR")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
