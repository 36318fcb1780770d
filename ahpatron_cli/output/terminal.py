"""The tables that people read.

On a terminal they have bold type and fit the window, or are stacked where the window is too narrow.
In a pipe or a file they are as wide as they need to be: nothing is cut, nothing is coloured.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ahpatron_cli.output.escape import can_encode, encodable, literal
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.table import Cell, Page, Sheet, spelled
from ahpatron_cli.records import Report

_UNLIMITED = 1_000_000
"""Columns of a pipe or a file."""

_Signs: TypeAlias = Mapping[str, str]
"""The few characters of a table that not every terminal has, and how they are spelled."""

_UNICODE: _Signs = {"±": "±", "ζ̂": "ζ̂", "–": "–", "→": "→", "─": "─", "−": "-", "‖": "‖"}
_ASCII: _Signs = {"±": "+-", "ζ̂": "zeta", "–": "-", "→": "->", "─": "-", "−": "-", "‖": "||"}


def print_tables(reports: Sequence[Report], console: Console) -> None:
    """Write one table per data file to the console's stream."""
    print_page(run_page(reports), console)


def print_page(page: Page, console: Console) -> None:
    """Write all tables of a page to the console's stream.

    The text is written in one piece and by us: rich would end the process on a closed pipe,
    and it is the app that decides what happens then.
    """
    room = console.width if console.file.isatty() else _UNLIMITED
    console.file.write(_rendered(page, console, room))
    console.file.flush()


def to_plain_table(reports: Sequence[Report]) -> str:
    """The tables of `print_tables` for a text file: full width, no colour."""
    return page_to_plain_text(run_page(reports))


def page_to_plain_text(page: Page) -> str:
    """The tables of `print_page` for a text file."""
    console = Console(file=io.StringIO(), color_system=None, force_terminal=False)
    return _rendered(page, console, _UNLIMITED)


def _rendered(page: Page, console: Console, room: int) -> str:
    signs = _UNICODE if can_encode("".join(_UNICODE.values()), console.encoding) else _ASCII
    console.width = max(room, console.width)
    notes = [sheet.notes for sheet in page.sheets]
    with console.capture() as capture:
        for number, sheet in enumerate(page.sheets):
            if number:
                console.print()
            # soft_wrap: a long file name runs on into the next terminal line, it is never cut
            console.print(_title(sheet, signs), soft_wrap=True)
            console.print(_body(sheet, signs, console, room), soft_wrap=True)
            # what holds for several tables is said once, below the last of them
            if sheet.notes and notes[number + 1 : number + 2] != [sheet.notes]:
                console.print()
                for note in sheet.notes:
                    console.print(Text(spelled(note, signs)))
        if page.remark:
            if page.sheets:
                console.print()
            console.print(Text(page.remark), soft_wrap=True)
            for item in page.items:
                console.print(Text(f"  {literal(item)}"), soft_wrap=True)
    lines = capture.get().splitlines()
    return encodable("".join(line.rstrip() + "\n" for line in lines), console.encoding)


def _title(sheet: Sheet, signs: _Signs) -> Text:
    return Text.assemble((literal(sheet.name), "bold"), ": ", spelled(sheet.about, signs))


def _body(sheet: Sheet, signs: _Signs, console: Console, room: int) -> RenderableType:
    unlimited = console.options.update(width=_UNLIMITED)
    for shown in (sheet, sheet.without_spare()):
        table = _table(shown, signs)
        if Measurement.get(console, unlimited, table).maximum <= room:
            return table
    return Group(*_stack(shown, signs))


def _one_rule(stroke: str) -> box.Box:
    """Columns parted by blanks, with one rule under the heads."""
    blank = "    \n"
    return box.Box(blank * 2 + f" {stroke * 2} \n" + blank * 5, ascii=stroke.isascii())


def _table(sheet: Sheet, signs: _Signs) -> Table:
    rule = _one_rule(signs["─"])
    table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in sheet.columns:
        head = Text(spelled(column.head, signs))
        table.add_column(head, justify="left" if column.words else "right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*(_text(cell, signs) for cell in row))
    return table


def _stack(sheet: Sheet, signs: _Signs) -> Iterator[Text]:
    """One block per row, for windows in which the table would be squeezed beyond reading."""
    for row in sheet.rows:
        first, *values = (_text(cell, signs) for cell in row)
        yield first
        for column, value in zip(sheet.columns[1:], values, strict=True):
            yield Text.assemble(f"  {spelled(column.head, signs)}: ", value)


def _text(cell: Cell | None, signs: _Signs) -> Text:
    """As `Text`, which rich never searches for markup."""
    if cell is None:
        return Text(signs["–"])
    spread = "" if cell.spread is None else f" {signs['±']} {cell.spread}"
    value = (literal(cell.text), "bold" if cell.bold else "")
    return Text.assemble("*" if cell.mark else "", value, spread)
