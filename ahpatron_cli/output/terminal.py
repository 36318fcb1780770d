"""Tables and running text as people read them, on a terminal, in a pipe or in a file.

On a terminal they have bold type and fit the window; a table that is too wide becomes a list. In a
pipe or a file they are as wide as they need to be: nothing is cut, nothing is coloured.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from ahpatron_cli.output.escape import can_encode, encodable, literal
from ahpatron_cli.output.table import Cell, Page, Table, spelled

_UNLIMITED = 1_000_000
"""Columns of a pipe or a file."""

_ASCII = {
    **{"±": "+-", "ζ̂": "zeta", "–": "-", "→": "->", "─": "-", "−": "-", "‖": "||", "≈": "~"},
    **{"•": "!", "χ²": "chi2", "√T": "sqrt(T)", "√": "sqrt", "·": "*", "²": "^2", "₁": "_1"},
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "η": "eta"},
    **{"κ": "k", "λ": "lambda", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau"},
    **{"⟨": "<", "⟩": ">", "█": "#", "▏": ":"},
}
"""All signs that our texts may have; earlier ones of equal start win."""
_HYPHEN = {"−": "-"}
"""A terminal shows a minus as it is typed."""

_NO_BREAK = "\N{NO-BREAK SPACE}"
_FILLER = "\N{BRAILLE PATTERN BLANK}"
"""For a blank at the end of a cell, where rich strips blanks."""
_CLOSE = re.compile(r" (?=[%→])|(?<=→) ")
"""Blanks at which no line breaks: `5 %`, `0 → -1`."""


class Window:
    """The width that lines may have, and how signs are spelled that the stream cannot show."""

    def __init__(self, width: int, signs: Mapping[str, str]) -> None:
        self.width = width
        self._signs = signs

    def ours(self, text: str) -> str:
        """A text of ours, with its signs as this window spells them."""
        return spelled(text, self._signs)

    def folded(self, text: str, first: str = "", rest: str = "", style: str = "") -> Iterator[Text]:
        """A text of ours in lines, the first of which begins with `first`, others with `rest`."""
        folder = textwrap.TextWrapper(
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in folder.wrap(self.ours(_CLOSE.sub(_NO_BREAK, text))):
            yield Text(line.replace(_NO_BREAK, " "), style=style)

    def title(self, name: str, about: str) -> Iterator[Text]:
        """A name from outside, in bold, and a text of ours; on lines of their own if need be."""
        if not name:
            yield from self.folded(about)
            return
        shown, ours = literal(name), self.ours(about)
        if cell_len(shown) + 2 + cell_len(ours) <= self.width:
            yield Text.assemble((shown, "bold"), f": {ours}")
        else:
            yield Text.assemble((shown, "bold"), ":")
            yield from self.folded(about, "  ", "  ")


def print_lines(lines: Callable[[Window], Iterable[RenderableType]], console: Console) -> None:
    """Write lines to the console's stream.

    All signs are spelled in ASCII if the stream lacks any of them. The text is written in one
    piece and by us: rich would end the process on a closed pipe, but the app decides that.
    """
    width = console.width if console.file.isatty() else _UNLIMITED
    unicode = can_encode("".join(_ASCII), console.encoding)
    window = Window(width, _HYPHEN if unicode else _ASCII)
    console.width = max(width, console.width)
    with console.capture() as capture:
        for line in lines(window):
            # soft_wrap: a long file name runs on into the next terminal line, it is never cut
            console.print(line, soft_wrap=True)
    lines_written = capture.get().replace(_FILLER, " ").splitlines()
    text = "".join(line.rstrip() + "\n" for line in lines_written)
    console.file.write(encodable(text, console.encoding))
    console.file.flush()


def print_page(page: Page, console: Console) -> None:
    """Write all tables of a page to the console's stream."""
    print_lines(lambda window: _page_lines(page, window, console), console)


def page_to_plain_text(page: Page) -> str:
    """The tables of `print_page` for a text file: full width, no colour."""
    target = io.StringIO()
    print_page(page, Console(file=target, color_system=None, force_terminal=False))
    return target.getvalue()


def _page_lines(page: Page, window: Window, console: Console) -> Iterator[RenderableType]:
    notes = [table.notes for table in page.tables]
    dropped: dict[str, None] = {}
    for number, table in enumerate(page.tables):
        if number:
            yield ""
        yield from window.title(table.name, table.about)
        yield from _table_lines(table, window, console, dropped)
        # notes that hold for several tables stand once, below the last of them
        if table.notes and notes[number + 1 : number + 2] != [table.notes]:
            yield ""
            for note in table.notes:
                yield from window.folded(note)
    if dropped:
        yield ""
        columns = ", ".join(dropped)
        yield from window.folded(
            f"Left out for lack of width: {columns}; `--format markdown` shows their values."
        )
    if page.remark:
        if page.tables:
            yield ""
        yield Text(page.remark)
        for item in page.items:
            yield Text(f"  {literal(item)}")
    if page.commands:
        yield ""
    for why, command in page.commands:
        yield from window.folded(literal(why), rest="  ")
        if command:
            yield Text(f"  {literal(command)}")


def _table_lines(
    table: Table, window: Window, console: Console, dropped: dict[str, None]
) -> Iterator[RenderableType]:
    """The table; if it is too wide, without its spare columns, in blocks, or as a list.

    The heads of columns that are left out are added to `dropped`.
    """
    unlimited = console.options.update(width=_UNLIMITED)
    for shown in (table, table.without_spare()):
        set_table = _rich_table(shown, window)
        if Measurement.get(console, unlimited, set_table).maximum <= window.width:
            yield set_table
            break
        if shown is table and table.alike:
            yield from _column_blocks(table, window, console)
            break
    else:
        yield from _list_lines(shown, window)
    dropped |= dict.fromkeys(one.head for one in table.columns if one not in shown.columns)


def _list_lines(shown: Table, window: Window) -> Iterator[RenderableType]:
    """Each row in lines of its own, one for each column."""
    for row in shown.rows:
        first, *values = (_cell_text(cell, window) for cell in row)
        yield first
        for column, value in zip(shown.columns[1:], values, strict=True):
            yield Text.assemble(f"  {window.ours(column.head)}: ", value)


def _column_blocks(table: Table, window: Window, console: Console) -> Iterator[RenderableType]:
    """As many columns side by side as fit, the others below them."""
    unlimited = console.options.update(width=_UNLIMITED)
    start, last = 0, len(table.columns) - 1
    while start < last:
        count = last - start
        while True:
            block = _rich_table(table.part(start, count), window)
            if count == 1 or Measurement.get(console, unlimited, block).maximum <= window.width:
                break
            count -= 1
        if start:
            yield ""
        yield block
        start += count


def _rich_table(table: Table, window: Window) -> RichTable:
    """Columns parted by blanks, with one rule under the heads."""
    blank, stroke = "    \n", window.ours("─")
    rule = box.Box(blank * 2 + f" {stroke * 2} \n" + blank * 5, ascii=stroke.isascii())
    made = RichTable(box=rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        head = Text(literal(column.head) if column.outside else window.ours(column.head))
        made.add_column(head, justify="left" if column.words else "right", no_wrap=True)
    for row in table.rows:
        made.add_row(*(_cell_text(cell, window) for cell in row))
    return made


def _cell_text(cell: Cell | None, window: Window) -> Text:
    """As `Text`, which rich never searches for markup."""
    if cell is None:
        return Text(window.ours("–"))
    spread = "" if cell.spread is None else window.ours(f" ± {cell.spread}")
    text = literal(cell.text).replace("√T", window.ours("√T"))
    value = (text, "bold" if cell.bold else "")
    sign = window.ours(cell.sign).replace(" ", _FILLER)
    return Text.assemble("*" if cell.mark else "", value, spread, sign)
