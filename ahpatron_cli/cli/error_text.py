"""A `UserError` as text: what is wrong, the place with the fault underlined, what to try."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ahpatron_cli.errors import Place, UserError
from ahpatron_cli.output.escape import cells, literal

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

_Paint: TypeAlias = Callable[[str, str], str]


def render_error(error: UserError, *, colour: bool = False) -> str:
    """The whole message, ending with a newline. Everything from outside is shown literally."""
    paint = _ansi if colour else _no_paint
    lines = [f"{paint('error', _RED)}: {paint(literal(error.problem), _BOLD)}"]
    if error.place is not None:
        lines += _place_lines(error.place, paint)
    if error.hint:
        if error.place is not None:
            lines.append("")
        lines.append(f"{paint('hint', _BLUE)}: {literal(error.hint)}")
    return "\n".join(lines) + "\n"


def _ansi(text: str, style: str) -> str:
    return f"{style}{text}{_RESET}"


def _no_paint(text: str, style: str) -> str:
    return text


def _place_lines(place: Place, paint: _Paint) -> list[str]:
    number = "" if place.line is None else str(place.line)
    indent = " " * max(len(number), 2)
    lines = [f"{indent}{paint('-->', _BLUE)} {literal(str(place))}"]
    if place.text is None:
        return lines
    bar = paint("|", _BLUE)
    excerpt = _excerpt(place)
    lines += [f"{indent} {bar}", f"{paint(number.rjust(len(indent)), _BLUE)} {bar} {excerpt.text}"]
    if place.column is not None:
        carets = paint("^" * excerpt.width, _RED)
        note = f" {paint(literal(place.note), _RED)}" if place.note else ""
        lines.append(f"{indent} {bar} {' ' * excerpt.start}{carets}{note}")
    elif place.note:
        lines.append(f"{indent} {bar} {paint(literal(place.note), _RED)}")
    return lines


@dataclass(frozen=True)
class _Excerpt:
    """The part of a line around its fault; `start` and `width` are terminal cells."""

    text: str
    start: int
    width: int


def _excerpt(place: Place) -> _Excerpt:
    text = place.text or ""
    # Where the fault is in `text`: the reader may already have cut characters from its left.
    already_cut = place.offset
    fault = min(max((place.column or 1) - 1 - already_cut, 0), len(text))
    begin = max(fault - _BEFORE, 0) if len(text) > _EXCERPT else 0
    end = min(begin + _EXCERPT, len(text))
    left = _CUT if begin or already_cut else ""
    right = _CUT if end < len(text) else ""
    before, marked = _shown(text[begin:fault]), _shown(text[fault : min(fault + place.width, end)])
    return _Excerpt(
        text=left + _shown(text[begin:end]) + right,
        start=len(left) + cells(before),
        width=max(cells(marked), 1),
    )


def _shown(text: str) -> str:
    """Tabs as blanks of a fixed width, so that the underline keeps its place on any terminal."""
    return _TAB.join(literal(part) for part in text.split("\t"))
