"""Tables before any output format, and the one walk over them that all formats share.

Our own texts (titles, headings, notes) may contain the signs ± → − ζ̂ – χ² and the marks, which
each format spells in its own way. Names and cells may come from outside, and each format escapes
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ahpatron_cli.numbers import counted, mean_count, percent, short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.records import DataRecord, SummaryRecord, whole

BEST, CHOSEN, BELOW_BASELINE, WORSE, NOT_WORSE, VACUOUS = "*▸!•≈○"
MARKS = {
    BEST: "best",
    CHOSEN: "best setting of its learner",
    BELOW_BASELINE: "worse than the baseline, which always predicts the most frequent label so far",
    WORSE: "significantly worse than the best (paired t-test over permutations, Holm, 5 %)",
    NOT_WORSE: "not significantly worse than the best",
    VACUOUS: "vacuous bound: not below the trivial one",
}
"""All marks after values; each has one meaning, in every table and format."""


@dataclass(frozen=True)
class Column:
    """The key of its values in a row, a heading, and how a format may set the cells below it."""

    key: str
    heading: str
    left: bool = False
    """Text is set flush left, numbers flush right."""
    priority: int = 0
    """In a narrow terminal the column of highest priority number is hidden first; 0: never."""
    outside: bool = False
    """Whether the heading is a name from outside."""


@dataclass(frozen=True)
class Cell:
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    marks: str = ""


T = TypeVar("T")
Row: TypeAlias = Mapping[str, Cell | None]
"""Cells by the keys of their columns; None or absent: there is no such value."""
Field: TypeAlias = tuple[Column, Callable[[T], Cell | None]]
"""A column, and the cell that an item has in it."""


@dataclass(frozen=True)
class Table:
    """One table, its title and its notes; columns without any value are not shown."""

    kind: str
    """For a label: `run`, `matrix`."""
    name: str
    """Of the data, from outside."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """All tables of a command, and one remark below them."""

    tables: Sequence[Table]
    remark: str = ""
    """Ours, without signs."""
    items: Sequence[str] = ()
    """What the remark lists; may quote text from outside."""
    commands: Sequence[tuple[str, str]] = ()
    """What to do next, for people at a terminal: why, and the command."""


Written: TypeAlias = tuple[Column, Sequence[str]]
"""A column in the text of a format: its heading, then its cells."""


class Format:
    """How the parts of a page are written in one output format; this is the base of all."""

    signs: Mapping[str, str] = {"−": "-"}
    """Signs of our texts, and how the format spells them; the first match wins."""
    bold = "**", "**"
    """What stands around the value of a cell with the mark `BEST`."""
    shown_marks = "".join(MARKS).replace(BEST, "")
    """Those written after values; `BEST` is bold type where there is any."""

    def outside(self, text: str) -> str:
        """A text from outside, escaped."""
        return literal(text)

    def ours(self, text: str) -> str:
        """A text of ours, with its signs as this format spells them."""
        return spelled(text, self.signs)

    def best(self, text: str) -> str:
        """Bold type."""
        return text.join(self.bold)

    def value(self, text: str, column: Column) -> str:
        """The text of a cell in this column."""
        return self.outside(text)

    def padding(self, marks: str) -> str:
        """As wide as these marks, so that the numbers of a column line up."""
        return ""

    def table(self, table: Table, columns: Sequence[Written], last: bool) -> str:
        """A whole table; `last`: the one after it has other notes."""
        raise NotImplementedError

    def ending(self, page: Page) -> str:
        """What stands below all tables."""
        return ""

    def legend(self, tables: Sequence[Table]) -> str:
        """The meanings of the marks in these tables."""
        cells = [cell for table in tables for row in table.rows for cell in row.values() if cell]
        used = "".join(cell.marks for cell in cells)
        names = {mark: mark if mark in self.shown_marks else "Bold:" for mark in MARKS}
        text = "; ".join(f"{names[mark]} {MARKS[mark]}" for mark in MARKS if mark in used)
        return f"{text}." if text else ""

    def cell(self, cell: Cell | None, column: Column, slot: str) -> str:
        """A value, its spread and its marks; the longest marks of the column are the `slot`."""
        if cell is None:
            return self.ours("–") + self.padding(slot)
        text = self.value(cell.text, column)
        text = self.best(text) if BEST in cell.marks else text
        marks = self._shown(cell)
        spread = self.ours(f" ± {cell.spread}") if cell.spread else ""
        return text + spread + self.ours(marks) + self.padding(slot[len(marks) :])

    def _shown(self, cell: Cell | None) -> str:
        return "".join(mark for mark in (cell.marks if cell else "") if mark in self.shown_marks)

    def written(self, table: Table) -> list[Written]:
        """The columns that have a value in any row, in the text of this format."""
        columns: list[Written] = []
        for column in table.columns:
            cells = [row.get(column.key) for row in table.rows]
            if any(cells):
                slot = max(map(self._shown, cells), key=len)
                heading = (self.outside if column.outside else self.ours)(column.heading)
                texts = [heading, *(self.cell(cell, column, slot) for cell in cells)]
                columns.append((column, texts))
        return columns


def render(page: Page, format: Format) -> str:
    """A page in one output format: the walk over its tables, columns and cells."""
    parts = []
    for number, table in enumerate(page.tables, 1):
        last = [after.notes for after in page.tables[number : number + 1]] != [table.notes]
        parts.append(format.table(table, format.written(table), last))
    return "\n".join([*parts, *filter(None, [format.ending(page)])])


def table_of(
    items: Iterable[T],
    fields: Sequence[Field[T]],
    *,
    kind: str,
    name: str = "",
    title: str,
    notes: Sequence[str] = (),
) -> Table:
    """One row per item, one column per field."""
    rows = [{column.key: cell(item) for column, cell in fields} for item in items]
    return Table(kind, name, title, [column for column, _ in fields], rows, notes)


def spelled(text: str, signs: Mapping[str, str]) -> str:
    """A text of ours with its signs as `signs` (at least one) spells them; the first match wins."""
    return re.sub("|".join(map(re.escape, signs)), lambda sign: signs[sign[0]], text)


# Cells that several tables have -------------------------------------------------------------------


def data_facts(data: DataRecord) -> str:
    """Rounds, features, and how labels were mapped unless they are -1 and +1."""
    parts = [counted(data.rounds, "round"), counted(data.features, "feature")]
    if len(data.labels) > 2:
        parts.append(f"{len(data.labels)} classes")
    elif data.labels != (-1, 1):
        negative, positive = ("others" if one is None else str(whole(one)) for one in data.labels)
        parts.append(f"labels {negative} → -1, {positive} → +1")
    return ", ".join(parts).replace("-", "−")


def optional(value: T | None, text: Callable[[T], str] = str) -> Cell | None:
    """A cell, or none without a value or a text."""
    return None if value in (None, "") else Cell(text(value))


def rate_cell(mean: float, sd: float | None = None, marks: str = "") -> Cell:
    """A mistake rate in percent."""
    return Cell(percent(mean), None if sd is None else percent(sd), marks)


def support_cell(line: SummaryRecord) -> Cell | None:
    """Size of the support, and of the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size, budget = mean_count(line.support_size_mean), line.params.get("budget")
    return Cell(size if budget is None else f"{size}/{short(budget, 6)}")
