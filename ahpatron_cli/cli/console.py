"""The conversation on stderr: notes, warnings, errors and the progress bar.

stdout is data, stderr is conversation: whatever happens to stderr (closed, full, a terminal that
went away), the run goes on and its exit code stays that of the run.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from ahpatron_cli.errors import Place, UserError
from ahpatron_cli.numbers import percent
from ahpatron_cli.output.escape import literal

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_BETWEEN_REFRESHES = 0.1
_NARROWEST = 20
"""Columns; a terminal that says 0 has no size."""
_LONGEST_DESCRIPTION = 20
# Terminals narrower than this go without the times, then without the description.
_ROOM_FOR_TIMES = 78
_ROOM_FOR_DESCRIPTION = 66

_EXCERPT = 76
"""Characters of a long line that are shown."""
_BEFORE = 30
"""How many of them may stand before the fault."""
_CUT = "..."
_TAB = "    "

_BOLD = "\x1b[1m"
_RED = "\x1b[1;31m"
_BLUE = "\x1b[1;34m"
_RESET = "\x1b[0m"


class Stderr:
    """What is said to the user. `quiet` leaves only errors; `verbose` adds details."""

    def __init__(self, quiet: bool = False, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._verbose = verbose > 0 and not quiet
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self._bar: Progress | None = None

    def note(self, text: str) -> None:
        """Say something worth knowing, like how labels were mapped."""
        if not self._quiet:
            self._say(_wrapped(f"note: {literal(text)}", self._width()))

    def warn(self, text: str) -> None:
        """Say something that may spoil the result."""
        if not self._quiet:
            self.insist(text)

    def insist(self, text: str) -> None:
        """Say something that nobody may miss, also when quiet."""
        self._say(_wrapped(f"warning: {literal(text)}", self._width()))

    def show(self, text: str) -> None:
        """Show a text that is safe to show, such as a table."""
        if not self._quiet:
            self._say(text.rstrip("\n"))

    def detail(self, text: str) -> None:
        """Say something that only `-v` asks for."""
        if self._verbose:
            self._say(literal(text))

    def error(self, error: UserError) -> None:
        """Say why the run ends, also when quiet."""
        colour = _is_live_terminal(self._stream) and not os.environ.get("NO_COLOR")
        self._say(render_error(error, colour=colour, width=self._width()).removesuffix("\n"))

    @contextmanager
    def progress(
        self, total: int | None, description: str, *, ticks: bool = False
    ) -> Iterator[ProgressLine]:
        """A progress bar while the block runs, where somebody can see one.

        `ticks`: updates are rare, so the clock is redrawn by itself.
        `total` is in the unit of `update(completed)`, bytes or rounds; None if it is not known.
        """
        stream = self._stream
        hidden = self._quiet or self._bar is not None  # one bar is enough
        if hidden or stream is None or not _is_live_terminal(stream):
            yield ProgressLine()
            return
        bar = _make_bar(stream, known_total=total is not None, ticks=ticks)
        name = literal(description)
        if len(name) > _LONGEST_DESCRIPTION:
            name = _CUT + name[len(_CUT) - _LONGEST_DESCRIPTION :]  # the end of a path says most
        bar.add_task(name, total=total, played="", rate="")
        with suppress(OSError, ValueError):
            bar.start()
        self._bar = bar
        try:
            yield ProgressLine(bar)
        finally:
            self._bar = None
            with suppress(OSError, ValueError):
                bar.stop()

    def _width(self) -> int | None:
        """Columns of the terminal; None if there is none."""
        with suppress(OSError, ValueError):
            if self._stream is not None and _is_live_terminal(self._stream):
                return max(os.get_terminal_size(self._stream.fileno()).columns, _NARROWEST)
        return None

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


class ProgressLine:
    """How far a run has come; shown only where there is a bar."""

    def __init__(self, bar: Progress | None = None) -> None:
        self._bar = bar
        self._next_refresh = 0.0

    def update(
        self, completed: int, mistakes: int = 0, rounds: int = 0, recent: float | None = None
    ) -> None:
        """Say how much of the total is done, and the mistakes made in the rounds played so far.

        `recent` is the mistake rate of the last rounds, if it is asked for.
        """
        played = f"{rounds:,} rounds" if rounds else ""
        rate = f"{percent(mistakes / rounds)} % mistakes" if rounds else ""
        rate += "" if recent is None else f", now {percent(recent)} %"
        self.show(completed, played, rate)

    def show(self, completed: int, count: str, news: str) -> None:
        """The same in words of the caller's own; redraws at most ten times a second."""
        now = time.monotonic()
        if self._bar is None or now < self._next_refresh:
            return
        self._next_refresh = now + _SECONDS_BETWEEN_REFRESHES
        with suppress(OSError, ValueError):
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=completed, played=count, rate=news)
            self._bar.refresh()


def _wrapped(text: str, width: int | None) -> str:
    """In lines of a terminal's width, which would break words; as it is elsewhere."""
    if width is None:
        return text
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _is_live_terminal(stream: TextIO | None) -> bool:
    if os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""}:
        return False
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _make_bar(stream: TextIO, *, known_total: bool, ticks: bool) -> Progress:
    """A bar with percent and time left, or a spinner where nobody knows how long it will take.

    Unless it `ticks`, it redraws only when told to: a refreshing thread would be one too many
    before a fork. (joblib starts its processes anew.)
    It leaves no trace when done, and keeps its hands off stdout, which belongs to the data.
    """
    from rich import progress  # rich takes 0.1 s to load
    from rich.console import Console
    from rich.table import Column

    console = Console(file=stream)
    named, timed = console.width >= _ROOM_FOR_DESCRIPTION, console.width >= _ROOM_FOR_TIMES
    bar = progress.BarColumn(bar_width=None, table_column=Column(ratio=1))
    columns: list[tuple[bool, progress.ProgressColumn]] = [
        (named, progress.TextColumn("{task.description}", markup=False)),
        (known_total, bar),
        (known_total, progress.TaskProgressColumn()),
        (not known_total, progress.SpinnerColumn()),
        (True, progress.TextColumn("{task.fields[played]}", markup=False)),
        (True, progress.TextColumn("{task.fields[rate]}", markup=False)),
        (timed or not known_total, progress.TimeElapsedColumn()),
        (timed and known_total, progress.TimeRemainingColumn(compact=True)),
    ]
    return progress.Progress(
        *(column for shown, column in columns if shown),
        console=console,
        auto_refresh=ticks,
        refresh_per_second=2,
        speed_estimate_period=3600.0,  # passes end together: the last seconds say little
        transient=True,
        expand=known_total,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def render_error(error: UserError, *, colour: bool = False, width: int | None = None) -> str:
    """The whole message, ending with a newline. Everything from outside is shown literally."""

    def paint(text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if colour else text

    problem = _wrapped(f"error: {literal(error.problem)}", width)
    lines = [f"{paint('error', _RED)}: {paint(problem.removeprefix('error: '), _BOLD)}"]
    if error.place is not None:
        lines += _place_lines(error.place, paint)
    if error.hint:
        if error.place is not None:
            lines.append("")
        hint = _wrapped(f"hint: {literal(error.hint)}", width)
        lines.append(f"{paint('hint', _BLUE)}: {hint.removeprefix('hint: ')}")
    if error.details:
        lines += ["", *map(literal, error.details.rstrip().split("\n"))]
    return "\n".join(lines) + "\n"


def _place_lines(place: Place, paint: Callable[[str, str], str]) -> list[str]:
    number = "" if place.line is None else str(place.line)
    indent = " " * max(len(number), 2)
    lines = [f"{indent}{paint('-->', _BLUE)} {literal(str(place))}"]
    if place.text is None:
        return lines
    bar = paint("|", _BLUE)
    excerpt, start, width = _excerpt(place, place.text)
    lines += [f"{indent} {bar}", f"{paint(number.rjust(len(indent)), _BLUE)} {bar} {excerpt}"]
    carets = "" if place.column is None else " " * start + paint("^" * width, _RED)
    note = paint(literal(place.note), _RED) if place.note else ""
    if carets or note:
        lines.append(f"{indent} {bar} {' '.join(filter(None, (carets, note)))}")
    return lines


def _excerpt(place: Place, text: str) -> tuple[str, int, int]:
    """The part of a line around its fault; where the fault starts and how wide it is, in cells."""
    from rich.cells import cell_len

    fault = min((place.column or 1) - 1, len(text))
    begin = max(fault - _BEFORE, 0) if len(text) > _EXCERPT else 0
    end = min(begin + _EXCERPT, len(text))
    left = _CUT if begin else ""
    right = _CUT if end < len(text) else ""
    before, marked = _shown(text[begin:fault]), _shown(text[fault : min(fault + place.width, end)])
    shown = left + _shown(text[begin:end]) + right
    return shown, len(left) + cell_len(before), max(cell_len(marked), 1)


def _shown(text: str) -> str:
    """Tabs as blanks of a fixed width, so that the underline keeps its place on any terminal."""
    return _TAB.join(literal(part) for part in text.split("\t"))
