"""A table before any output format: what it contains, not how it is set.

Our own texts (`about`, heads, notes) may contain the signs ± → − ζ̂ – ≈ • χ² and *, which each
format spells in its own way. Names and cells may come from outside, and each format escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from ahpatron_cli.numbers import counted, mean_count, percent, short
from ahpatron_cli.records import DataRecord, SummaryRecord, whole


@dataclass(frozen=True)
class Column:
    """A head, and how a format may set the cells below it."""

    head: str
    words: bool = False
    """Set flush left; numbers are set flush right."""
    long: bool = False
    """Sentences, which a page may fold."""
    outside: bool = False
    """Whether the head is a name from outside."""
    spare: bool = False
    """Left out if a window is too narrow for all columns; another table has the same values."""


NO_SIGN = " "
"""In a column whose other cells have signs: as wide as one, so that numbers line up."""


@dataclass(frozen=True)
class Cell:
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    bold: bool = False
    mark: bool = False
    """A star before the text: bold type does not show in a pipe."""
    sign: str = ""
    """A sign of ours at the end."""


T = TypeVar("T")
Field: TypeAlias = tuple[Column, Callable[[T], Cell | None]]
"""A column, and the cell that an item has in it; None: there is no such value."""


@dataclass(frozen=True)
class Table:
    """One table, its title and its notes."""

    name: str
    """Of the data, from outside."""
    about: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | None]]
    notes: Sequence[str] = ()
    alike: bool = False
    """Whether all columns but the first mean the same: if there are too many, some go below."""

    def part(self, start: int, count: int) -> Table:
        """The first column, and so many others from `start` (0: the second) on."""
        return self._only([0, *range(len(self.columns))[1 + start : 1 + start + count]])

    def without_spare(self) -> Table:
        """The table without its spare columns."""
        return self._only([n for n, column in enumerate(self.columns) if not column.spare])

    def _only(self, kept: Sequence[int]) -> Table:
        rows = [[row[number] for number in kept] for row in self.rows]
        return replace(self, columns=[self.columns[number] for number in kept], rows=rows)


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


def table_of(
    items: Iterable[T],
    fields: Sequence[Field[T]],
    *,
    name: str = "",
    about: str,
    notes: Sequence[str] = (),
) -> Table:
    """One row per item, one column per field."""
    columns = [column for column, _ in fields]
    rows = [[cell(item) for _, cell in fields] for item in items]
    return Table(name, about, columns, rows, notes)


def spelled(text: str, signs: Mapping[str, str]) -> str:
    """A text of ours with its signs as `signs` (at least one) spells them; the first match wins."""
    return re.sub("|".join(map(re.escape, signs)), lambda sign: signs[sign[0]], text)


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


def rate_cell(
    mean: float, sd: float | None, lowest: str | None = None, *, mark: bool = False
) -> Cell:
    """A mistake rate in percent; bold if it reads like the best."""
    text = percent(mean)
    return Cell(text, None if sd is None else percent(sd), bold=text == lowest, mark=mark)


def support_cell(line: SummaryRecord) -> Cell | None:
    """Size of the support, and of the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size, budget = mean_count(line.support_size_mean), line.params.get("budget")
    return Cell(size if budget is None else f"{size}/{short(budget, 6)}")
