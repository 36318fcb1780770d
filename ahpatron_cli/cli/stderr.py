"""Messages on stderr: notes, warnings, errors and the progress line.

stdout is data, stderr is messages: whatever happens to stderr (closed, full, a terminal that went
away), the run goes on and its exit code stays that of the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from ahpatron_cli.errors import Place, UserError
from ahpatron_cli.output.escape import encodable, has_signs, visible

if TYPE_CHECKING:
    from ahpatron_cli.output.render import Terminal

_SECONDS_BETWEEN_REFRESHES = 0.1
_CLEAR = "\r\x1b[K"
_EXCERPT, _BEFORE = 76, 30
"""Length of the excerpt of a long line, and of its part before the fault, in characters."""
_CUT = "..."


class Stderr:
    """Writer of messages on stderr.

    With `quiet`, only warnings and errors are written: whoever reads no notes must still hear of
    what was lost or left out. With `verbose`, also details and the time.
    """

    def __init__(self, quiet: bool = False, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._verbose = verbose > 0 and not quiet
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self.prefix = ""
        """Text before notes and warnings, such as `data.svm: `."""
        self._line = ""
        """The progress line that is currently shown."""

    def note(self, text: str) -> None:
        """Print a note, such as how labels were mapped."""
        if not self._quiet:
            self._print(f"note: {visible(self.prefix + text)}")

    def warn(self, text: str, *, timed: bool = False) -> None:
        """Print a warning, even with --quiet; with the time of day if `timed`, or with -v."""
        time_of_day = f"{now()} " if timed or self._verbose else ""
        self._print(f"warning: {visible(time_of_day + self.prefix + text)}")

    def show(self, text: str) -> None:
        """Print a text that is already escaped, such as a table."""
        if not self._quiet:
            self._print(text.rstrip("\n"))

    def answer(self, text: str) -> None:
        """Print what the user has asked for by a signal, even with --quiet."""
        self._print(visible(text))

    @property
    def is_verbose(self) -> bool:
        """Whether details are printed."""
        return self._verbose

    def terminal(self) -> Terminal:
        """How to render a text for `show`: with all columns, and signs that stderr can show."""
        from ahpatron_cli.output.render import Terminal  # lazy: needs rich

        return Terminal(ascii=not has_signs(self._encoding()))

    def detail(self, text: str) -> None:
        """Print a detail, only with -v."""
        if self._verbose:
            self._print(visible(self.prefix + text))

    def error(self, error: UserError) -> None:
        """Print the error that ends the command, even with --quiet."""
        colour = self._width() is not None and not os.environ.get("NO_COLOR")
        self._print(render_error(error, colour=colour).removesuffix("\n"))

    @contextmanager
    def progress(
        self, total: int | None, name: str, *, beside_rows: bool = False
    ) -> Iterator[Callable[..., None]]:
        """Context manager: show a progress line, redrawn at most ten times a second.

        Yields a function of the amount done (out of `total`; None if unknown) and of further texts,
        the last of which are cut if the terminal is narrow. `beside_rows`: rows are written to
        stdout meanwhile; if that is the same terminal, no progress line is shown.
        """
        is_shown = not self._quiet and self._width() is not None
        is_shown &= not (beside_rows and sys.stdout.isatty())
        started = last = time.monotonic()

        def show(done: int, *texts: str) -> None:
            nonlocal last
            now = time.monotonic()
            if not is_shown or now < last + _SECONDS_BETWEEN_REFRESHES:
                return
            last, elapsed = now, now - started
            share = min(done / total, 1.0) if total else None
            percent = "" if share is None else f"{share:4.0%}"
            left = f"{_clock(elapsed / share - elapsed)} left" if share else ""
            shown = (percent, *texts, _clock(elapsed), left, visible(name))
            self._draw("  ".join(filter(None, shown)))

        try:
            yield show
        finally:
            if self._line:
                self._draw("")

    def _draw(self, line: str) -> None:
        self._line = line[: (self._width() or 80) - 1]
        self._write(_CLEAR + self._line)

    def _print(self, text: str) -> None:
        self._write(f"{_CLEAR}{text}\n{self._line}" if self._line else text + "\n")

    def _width(self) -> int | None:
        """Width of the terminal in columns; None if stderr is not a terminal."""
        if os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""} or self._stream is None:
            return None
        with suppress(OSError, ValueError):  # closed
            if self._stream.isatty():
                return os.get_terminal_size(self._stream.fileno()).columns or 80
        return None

    def _encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def _write(self, text: str) -> None:
        try:
            if self._stream is not None:
                self._stream.write(encodable(text, self._encoding()))
                self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # stderr is closed: drop all further messages


def now() -> str:
    """The current time of day as text, for messages."""
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def render_error(error: UserError, *, colour: bool = False) -> str:
    """The error message as text, ending with a newline; user-supplied text is escaped."""
    red, blue, reset = ("\x1b[1;31m", "\x1b[1;34m", "\x1b[0m") if colour else ("", "", "")
    lines = [f"{red}error{reset}: {visible(error.problem)}"]
    if error.place is not None:
        lines += [*_place_lines(error.place), *([""] if error.hint else [])]
    if error.hint:
        lines.append(f"{blue}hint{reset}: {visible(error.hint)}")
    if error.details:
        lines += ["", *map(visible, error.details.rstrip().split("\n"))]
    return "\n".join(lines) + "\n"


def _place_lines(place: Place) -> list[str]:
    """Lines that show the file, the faulty line and carets below the fault."""
    number = "" if place.line is None else str(place.line)
    indent = " " * max(len(number), 2)
    lines = [f"{indent}--> {visible(str(place))}"]
    if place.text is None:
        return lines
    excerpt, underline = _excerpt(place, place.text)
    lines += [f"{indent} |", f"{number.rjust(len(indent))} | {excerpt}"]
    marks = [underline] if place.column is not None else []
    marks += [visible(place.note)] if place.note else []
    return [*lines, f"{indent} | {' '.join(marks)}"] if marks else lines


def _excerpt(place: Place, text: str) -> tuple[str, str]:
    """Excerpt of a line around its fault, and a line with carets below the fault."""
    from rich.cells import cell_len  # wide characters take two cells

    fault = min((place.column or 1) - 1, len(text))
    begin = max(fault - _BEFORE, 0) if len(text) > _EXCERPT else 0
    end = min(begin + _EXCERPT, len(text))
    cuts = (begin, fault, max(min(fault + place.width, end), fault), end)
    before, marked, after = (
        visible(text[start:stop].replace("\t", "    ")) for start, stop in pairwise(cuts)
    )
    left, right = _CUT if begin else "", _CUT if end < len(text) else ""
    carets = " " * (len(left) + cell_len(before)) + "^" * max(cell_len(marked), 1)
    return f"{left}{before}{marked}{after}{right}", carets
