"""The table that people read.

On a terminal it has bold type and fits the window, or is stacked where the window is too narrow.
In a pipe or a file it is as wide as it needs to be: nothing is cut, nothing is coloured.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ahpatron_cli.records import Report
from ahpatron_cli.render.lines import Line, facts, repeats, summary_lines
from ahpatron_cli.render.safe import can_encode, encodable, literal

_UNLIMITED = 1_000_000
"""Columns of a pipe or a file."""


def _one_rule(stroke: str) -> box.Box:
    """Columns parted by blanks, with one rule under the heads."""
    blank = "    \n"
    return box.Box(blank * 2 + f" {stroke * 2} \n" + blank * 5, ascii=stroke.isascii())


@dataclass(frozen=True)
class _Signs:
    """The few characters of the table that not every terminal has."""

    plus_minus: str
    zeta: str
    missing: str
    arrow: str
    rule: str


_UNICODE = _Signs("±", "ζ̂", "–", "→", "─")
_ASCII = _Signs("+-", "zeta", "-", "->", "-")


def print_tables(reports: Sequence[Report], console: Console) -> None:
    """Write one table per data file to the console's stream.

    The text is written in one piece and by us: rich would end the process on a closed pipe,
    and it is the app that decides what happens then.
    """
    room = console.width if console.file.isatty() else _UNLIMITED
    console.file.write(_rendered(reports, console, room))
    console.file.flush()


def to_plain_table(reports: Sequence[Report]) -> str:
    """The same tables for a text file: full width, no colour."""
    console = Console(file=io.StringIO(), color_system=None, force_terminal=False)
    return _rendered(reports, console, _UNLIMITED)


def _rendered(reports: Sequence[Report], console: Console, room: int) -> str:
    signs = _UNICODE if can_encode("".join(vars(_UNICODE).values()), console.encoding) else _ASCII
    console.width = max(room, console.width)
    with console.capture() as capture:
        for number, report in enumerate(reports):
            if number:
                console.print()
            # soft_wrap: a long file name runs on into the next terminal line, it is never cut
            console.print(_title(report, signs), soft_wrap=True)
            console.print(_body(report, signs, console, room), soft_wrap=True)
    lines = capture.get().splitlines()
    return encodable("".join(line.rstrip() + "\n" for line in lines), console.encoding)


def _title(report: Report, signs: _Signs) -> Text:
    rest = f": {facts(report.data, arrow=signs.arrow)}"
    if repeats(report):
        rest += f"; mean {signs.plus_minus} sd over {repeats(report)}"
    return Text.assemble((literal(report.data.path), "bold"), rest)


def _body(report: Report, signs: _Signs, console: Console, room: int) -> RenderableType:
    lines = summary_lines(report)
    table = _table(lines, signs)
    unlimited = console.options.update(width=_UNLIMITED)
    if Measurement.get(console, unlimited, table).maximum <= room:
        return table
    return Group(*_stack(lines, signs))


def _table(lines: Sequence[Line], signs: _Signs) -> Table:
    table = Table(box=_one_rule(signs.rule), show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    first, *others = _heads(signs)
    table.add_column(Text(first), no_wrap=True)
    for head in others:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*_cells(line, signs))
    return table


def _stack(lines: Sequence[Line], signs: _Signs) -> Iterator[Text]:
    """One block per learner, for windows in which the table would be squeezed beyond reading."""
    for line in lines:
        name, *values = _cells(line, signs)
        yield name
        for head, value in zip(_heads(signs)[1:], values, strict=True):
            yield Text.assemble(f"  {head}: ", value)


def _heads(signs: _Signs) -> tuple[str, ...]:
    return ("Learner", "AMR %", "|M_T|", "|N_T|", "Support", "Halvings", signs.zeta, "Seconds")


def _cells(line: Line, signs: _Signs) -> list[Text]:
    """As `Text`, which rich never searches for markup."""
    spread = "" if line.spread is None else f" {signs.plus_minus} {line.spread}"
    rate = Text.assemble((line.rate, "bold" if line.best else ""), spread)
    others = [Text(signs.missing if cell is None else cell) for cell in line.after_rate()]
    return [Text(literal(line.learner)), rate, *others]
