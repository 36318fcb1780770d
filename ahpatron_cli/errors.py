"""Errors that are shown to users, and exit codes.

A `UserError` says what is wrong, where, and what to try; `cli/stderr.py` turns it into text. Any
other exception that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
import shlex
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes; the numbers above 63 follow BSD's sysexits.h."""

    OK = 0
    BUG = 1
    USAGE = 2
    FAILED_TRIALS = 3
    RATE_TOO_HIGH = 4
    BAD_DATA = 65
    NO_INPUT = 66
    CANNOT_CREATE = 73
    IO_ERROR = 74
    LOCKED = 75
    HUNG_UP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


@dataclass(frozen=True)
class Place:
    """Position of a fault: file and, if known, line, column (from 1) and text of the line.

    `width` characters from `column` on are underlined, with `note` after the underline. `field` is
    the name of the column of a table.
    """

    path: str
    line: int | None = None
    column: int | None = None
    width: int = 1
    text: str | None = None
    note: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number is not None]
        return ":".join([self.path, *numbers])


class UserError(Exception):
    """A fault of the input, the options or the machine, shown to the user without a traceback."""

    def __init__(
        self,
        problem: str,
        *,
        code: ExitCode = ExitCode.USAGE,  # pickle calls UserError(problem), then sets the rest
        place: Place | None = None,
        hint: str | None = None,
        details: str | None = None,
    ) -> None:
        """`details` are printed unchanged, after everything else."""
        super().__init__(problem)
        self.problem = problem
        self.code = code
        self.place = place
        self.hint = hint
        self.details = details


class NoRowsError(UserError):
    """An input without any row: a fault, unless a service goes on from its state."""

    def __init__(self, path: str, hint: str | None = None) -> None:
        super().__init__("there are no rows", code=ExitCode.BAD_DATA, place=Place(path), hint=hint)


def bad_data(
    problem: str,
    path: str,
    line: int | None = None,
    hint: str | None = None,
    *,
    field: str | None = None,
) -> UserError:
    """A `UserError` for a fault in an input file; `field` is the name of a column of a table."""
    place = Place(path, line, field=field)
    return UserError(problem, code=ExitCode.BAD_DATA, place=place, hint=hint)


def usage(problem: str, hint: str | None = None) -> UserError:
    """A `UserError` for a fault in the command line."""
    return UserError(problem, hint=hint)


def one_of(what: str, name: str, legal: Iterable[str]) -> str:
    """Return `name` if it is legal; else raise a usage error with a suggestion."""
    words = list(legal)
    if name in words:
        return name
    hint = suggestion(name, words)
    if hint is None:
        quoted = map(_quoted, words)
        hint = f"one of {', '.join(quoted)}"
    raise usage(f"unknown {what} {name!r}", hint)


def suggestion(name: str, legal: Iterable[str]) -> str | None:
    """The legal word that `name` closely resembles, as a question; None if there is none."""
    words = {_bare(word): word for word in legal}
    bare = _bare(name)
    looked_up = OTHER_NAMES.get(bare, bare)
    close = difflib.get_close_matches(looked_up, words, n=1, cutoff=0.65)
    if len(bare) > 2:
        close += [word for word in words if word.startswith(bare)]
    if not close:
        return None
    best = words[close[0]]
    return f"did you mean {_quoted(best)}?"


def _bare(word: str) -> str:
    """A word as it is compared: without dashes in front, in small letters."""
    return word.lower().lstrip("-")


OTHER_NAMES = {"rbf": "gaussian", "poly": "polynomial", "md": "markdown", "tex": "latex"}


def _quoted(word: str) -> str:
    """A word quoted for the shell, also if it contains a comma, the list separator."""
    quoted = shlex.quote(word)
    if quoted == word and "," in word:
        return f"'{word}'"
    return quoted


_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)


def learner_fault(error: BaseException, files: Iterable[str]) -> UserError | None:
    """The `UserError` if a learner in one of these files raised `error`; else None.

    The traceback is read as text, because it may have come from another process.
    """
    text = "".join(traceback.format_exception(error))
    own = set(files)
    places = [(file, line) for file, line in _FRAME.findall(text) if file in own]
    if not places:
        return None
    outermost, _ = places[0]
    file, line = places[-1]
    start = text.index(f'  File "{outermost}"')
    last_line = text.strip().splitlines()[-1].removeprefix("ahpatron_cli.core.errors.")
    return UserError(
        f"the learner raised {last_line}",
        code=ExitCode.BUG,
        place=Place(file, int(line)),
        details=text[start:],
    )
