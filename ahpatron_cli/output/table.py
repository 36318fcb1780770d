"""Tables before any output format, and the marks that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ahpatron_cli.numbers import counted, mean_count, percent, short
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
"""All marks before values; each has one meaning, in every table and format."""

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    marks: str = ""


@dataclass(frozen=True)
class Column(Generic[T]):
    """A heading, and the cell that each item has below it."""

    heading: str
    cell: Callable[[T], Cell | str | None]
    """None: there is no such value."""
    priority: int = 0
    """In a narrow terminal the column of highest priority number is hidden first; 0: never."""
    left: bool = False
    """Text is set flush left, numbers flush right."""


@dataclass(frozen=True)
class Table:
    """One row per item, a title and notes; columns without any value are not shown."""

    kind: str
    """For a label: `run`, `matrix`."""
    name: str
    """Of the data."""
    title: str
    columns: Sequence[Column[Any]]
    items: Sequence[Any]
    notes: Sequence[str] = ()

    def cells(self) -> list[tuple[Column[Any], list[Cell | None]]]:
        """The columns that have a value in any row, each with its cells."""
        found = []
        for column in self.columns:
            texts = map(column.cell, self.items)
            cells = [Cell(one) if isinstance(one, str) else one for one in texts]
            if any(cell is not None for cell in cells):
                found.append((column, cells))
        return found


@dataclass(frozen=True)
class Page:
    """All tables of a command, and one remark below them."""

    tables: Sequence[Table]
    remark: str = ""
    items: Sequence[str] = ()
    """What the remark lists."""
    commands: Sequence[tuple[str, str]] = ()
    """What to do next, for people at a terminal: why, and the command."""


def data_facts(data: DataRecord) -> str:
    """Rounds, features, and how labels were mapped unless they are -1 and +1."""
    parts = [counted(data.rounds, "round"), counted(data.features, "feature")]
    if len(data.labels) > 2:
        parts.append(f"{len(data.labels)} classes")
    elif data.labels != (-1, 1):
        negative, positive = ("others" if one is None else str(whole(one)) for one in data.labels)
        parts.append(f"labels {negative} → -1, {positive} → +1")
    return ", ".join(parts)


def rate_cell(mean: float, sd: float | None = None, marks: str = "") -> Cell:
    """A mistake rate in percent."""
    return Cell(percent(mean), None if sd is None else percent(sd), marks)


def support_text(line: SummaryRecord) -> str | None:
    """Size of the support, and of the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size, budget = mean_count(line.support_size_mean), line.params.get("budget")
    return size if budget is None else f"{size}/{short(budget, 6)}"
