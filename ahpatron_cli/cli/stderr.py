"""Messages on stderr: notes, warnings, errors and the progress line.

stdout is data, stderr is messages: whatever happens to stderr (closed, full, a terminal that went
away), the run goes on and its exit code stays that of the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TextIO

from ahpatron_cli.errors import Place, UserError
from ahpatron_cli.output.escape import encodable, has_signs, visible

if TYPE_CHECKING:
    from ahpatron_cli.output.render import Terminal

_SECONDS_BETWEEN_REFRESHES = 0.1
_CLEAR = "\r\x1b[K"
_EXCERPT = 76
"""Length of the excerpt of a long line, in characters."""
_BEFORE = 30
"""Length of the part of an excerpt before the fault, in characters."""
_CUT = "..."
_RED = "\x1b[1;31m"
_BLUE = "\x1b[1;34m"
_RESET = "\x1b[0m"


class Stderr:
    """Writer of messages on stderr.

    With `quiet`, only warnings and errors are written: whoever reads no notes must still hear of
    what was lost or left out. With `verbose`, also details and the time.
    """

    def __init__(self, quiet: bool = False, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._verbose = verbose > 0 and not quiet
        self._stream: TextIO | None = sys.stderr
        if stream is not None:
            self._stream = stream
        self.prefix = ""
        """Text before notes and warnings, such as `data.svm: `."""
        self._line = ""
        """The progress line that is currently shown."""

    def note(self, text: str) -> None:
        """Print a note, such as how labels were mapped."""
        if not self._quiet:
            shown = visible(self.prefix + text)
            self._print(f"note: {shown}")

    def warn(self, text: str, *, timed: bool = False) -> None:
        """Print a warning, even with --quiet; with the time of day if `timed`, or with -v."""
        shown = visible(self.prefix + text)
        if timed or self._verbose:
            shown = f"{now()} {shown}"
        self._print(f"warning: {shown}")

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
        is_terminal = self._width() is not None
        no_colour = os.environ.get("NO_COLOR")
        text = render_error(error, colour=is_terminal and not no_colour)
        self._print(text.removesuffix("\n"))

    @contextmanager
    def progress(
        self, total: int | None, name: str, *, beside_rows: bool = False
    ) -> Iterator[Callable[..., None]]:
        """Context manager: show a progress line, redrawn at most ten times a second.

        Yields a function of the amount done (out of `total`; None if unknown) and of further texts,
        the last of which are cut if the terminal is narrow. `beside_rows`: rows are written to
        stdout meanwhile; if that is the same terminal, no progress line is shown.
        """
        is_terminal = self._width() is not None
        in_the_way = beside_rows and sys.stdout.isatty()
        is_shown = is_terminal and not self._quiet and not in_the_way
        started = time.monotonic()
        last = started

        def show(done: int, *texts: str) -> None:
            nonlocal last
            now = time.monotonic()
            if not is_shown or now < last + _SECONDS_BETWEEN_REFRESHES:
                return
            last = now
            elapsed = now - started
            parts = _progress(done, total, texts, elapsed=elapsed)
            parts.append(visible(name))
            line = "  ".join(parts)
            self._draw(line)

        try:
            yield show
        finally:
            if self._line:
                self._draw("")

    def _draw(self, line: str) -> None:
        width = self._width() or 80
        self._line = line[: width - 1]
        self._write(_CLEAR + self._line)

    def _print(self, text: str) -> None:
        if self._line:
            self._write(f"{_CLEAR}{text}\n{self._line}")
        else:
            self._write(f"{text}\n")

    def _width(self) -> int | None:
        """Width of the terminal in columns; None if stderr is not a terminal."""
        kind = os.environ.get("TERM", "dumb")
        if self._stream is None or kind in {"dumb", "unknown", ""}:
            return None
        with suppress(OSError, ValueError):  # closed
            if self._stream.isatty():
                size = os.get_terminal_size(self._stream.fileno())
                return size.columns or 80
        return None

    def _encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        shown = encodable(text, self._encoding())
        try:
            self._stream.write(shown)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # stderr is closed: drop all further messages


def now() -> str:
    """The current time of day as text, for messages."""
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return str(timedelta(seconds=whole))


def _progress(done: int, total: int | None, texts: Sequence[str], *, elapsed: float) -> list[str]:
    """The parts of a progress line: percentage, texts, time so far and time left."""
    parts = [text for text in texts if text]
    parts.append(_clock(elapsed))
    if not total:
        return parts
    share = min(done / total, 1.0)
    parts.insert(0, f"{share:4.0%}")
    if share:
        left = elapsed / share - elapsed
        parts.append(f"{_clock(left)} left")
    return parts


def render_error(error: UserError, *, colour: bool = False) -> str:
    """The error message as text, ending with a newline; user-supplied text is escaped."""
    head = "error"
    hint = "hint"
    if colour:
        head = f"{_RED}{head}{_RESET}"
        hint = f"{_BLUE}{hint}{_RESET}"
    lines = [f"{head}: {visible(error.problem)}"]
    if error.place is not None:
        lines += _place_lines(error.place)
    if error.place is not None and error.hint:
        lines.append("")
    if error.hint:
        lines.append(f"{hint}: {visible(error.hint)}")
    if error.details:
        lines.append("")
        details = error.details.rstrip()
        lines += map(visible, details.split("\n"))
    text = "\n".join(lines)
    return f"{text}\n"


def _place_lines(place: Place) -> list[str]:
    """Lines that show the file, the faulty line and carets below the fault."""
    number = ""
    if place.line is not None:
        number = str(place.line)
    number = number.rjust(2)
    indent = " " * len(number)
    shown = visible(str(place))
    lines = [f"{indent}--> {shown}"]
    if place.text is None:
        return lines
    excerpt, carets = _excerpt(place, place.text)
    lines.append(f"{indent} |")
    lines.append(f"{number} | {excerpt}")
    marks = []
    if place.column is not None:
        marks.append(carets)
    if place.note:
        marks.append(visible(place.note))
    if marks:
        below = " ".join(marks)
        lines.append(f"{indent} | {below}")
    return lines


def _excerpt(place: Place, text: str) -> tuple[str, str]:
    """Excerpt of a line around its fault, and a line with carets below the fault."""
    from rich.cells import cell_len  # wide characters take two cells

    column = place.column or 1
    fault = min(column - 1, len(text))
    begin = 0
    if len(text) > _EXCERPT:
        begin = max(fault - _BEFORE, 0)
    end = min(begin + _EXCERPT, len(text))
    after_fault = min(fault + place.width, end)
    after_fault = max(after_fault, fault)
    before = _on_a_line(text[begin:fault])
    marked = _on_a_line(text[fault:after_fault])
    after = _on_a_line(text[after_fault:end])
    if begin:
        before = _CUT + before
    if end < len(text):
        after += _CUT
    indent = " " * cell_len(before)
    carets = "^" * max(cell_len(marked), 1)
    return before + marked + after, indent + carets


def _on_a_line(text: str) -> str:
    """A part of a line as it is shown: escaped, with tabs of four spaces."""
    return visible(text.replace("\t", "    "))
