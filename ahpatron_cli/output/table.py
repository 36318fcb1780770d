"""A table before any output format: what it contains, not how it is set.

The terminal, Markdown, LaTeX and HTML set the same tables. Our own texts (`about`, heads, notes)
may contain the signs ± → − ζ̂ – and *, which each format spells in its own way. Names and cells may
come from outside, and each format escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from ahpatron_cli.numbers import counted, mean_count, percent, seconds, short
from ahpatron_cli.records import DataRecord, SummaryRecord, whole


@dataclass(frozen=True)
class Column:
    """A head, and how a format may set the cells below it."""

    head: str
    words: bool = False
    """Set flush left; numbers are set flush right."""
    long: bool = False
    """Sentences, which a page may fold."""
    spare: bool = False
    """Left out if a window is too narrow for all columns; another table has the same values."""


@dataclass(frozen=True)
class Cell:
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    bold: bool = False
    mark: bool = False
    """A star before the text: bold type does not show in a pipe."""


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

    def without_spare(self) -> Table:
        """The table without its spare columns."""
        kept = [number for number, column in enumerate(self.columns) if not column.spare]
        return replace(
            self,
            columns=[self.columns[number] for number in kept],
            rows=[[row[number] for number in kept] for row in self.rows],
        )


@dataclass(frozen=True)
class Page:
    """All tables of a command, and one remark below them."""

    tables: Sequence[Table]
    remark: str = ""
    """Ours, without signs."""
    items: Sequence[str] = ()
    """What the remark lists; may quote text from outside."""


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
    """A text of ours with its signs as `signs` spells them; earlier ones of equal start win."""
    if not signs:
        return text
    return re.sub("|".join(map(re.escape, signs)), lambda sign: signs[sign[0]], text)


def data_facts(data: DataRecord) -> str:
    """Rounds, features, and how labels were mapped unless they are -1 and +1."""
    parts = [counted(data.rounds, "round"), counted(data.features, "feature")]
    negative, positive = data.labels
    if (negative, positive) != (-1, 1):
        others = "others" if negative is None else whole(negative)
        parts.append(f"labels {others} → -1, {whole(positive)} → +1")
    return ", ".join(parts).replace("-", "−")


def optional(text: str | None) -> Cell | None:
    """A cell, or none without a text."""
    return Cell(text) if text else None


def rate_cell(
    mean: float, sd: float | None, lowest: str | None = None, *, mark: bool = False
) -> Cell:
    """A mistake rate in percent; bold if it reads like the lowest."""
    rate = percent(mean)
    return Cell(rate, None if sd is None else percent(sd), bold=rate == lowest, mark=mark)


def margin_updates_cell(line: SummaryRecord) -> Cell:
    """Updates without a mistake."""
    return Cell(mean_count(line.margin_updates_mean))


def support_cell(line: SummaryRecord) -> Cell | None:
    """Size of the support, and of the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size, budget = mean_count(line.support_size_mean), line.params.get("budget")
    return Cell(size if budget is None else f"{size}/{short(budget, 6)}")


def seconds_cell(line: SummaryRecord) -> Cell:
    """Mean learning time of a pass."""
    return Cell(seconds(line.seconds_mean))
