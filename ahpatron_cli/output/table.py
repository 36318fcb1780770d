"""Tables before any output format, and the marks that they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ahpatron_cli.numbers import counted, mean_count, short
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


class Cell(NamedTuple):
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    marks: str = ""


@dataclass(frozen=True)
class Column:
    """A heading, and a cell for each row; None where there is no value."""

    heading: str
    cells: Sequence[Cell | str | None]
    priority: int = 0
    """In a narrow terminal the column of highest priority number is hidden first; 0: never."""
    left: bool = False
    """Text is set flush left, numbers flush right."""


@dataclass(frozen=True)
class Table:
    """Columns, a title and notes; columns without any value are not shown."""

    kind: str
    """For a label: `run`, `matrix`."""
    name: str
    """Of the data."""
    title: str
    columns: Sequence[Column]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """All tables of a command, and what stands below them."""

    tables: Sequence[Table]
    remarks: Sequence[str] = ()
    """A sentence, and what it lists."""
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


def support_text(line: SummaryRecord) -> str | None:
    """Size of the support, and of the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size, budget = mean_count(line.support_size_mean), line.params.get("budget")
    return size if budget is None else f"{size}/{short(budget, 6)}"
