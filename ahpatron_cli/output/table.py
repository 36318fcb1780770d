"""Format-independent tables, and the marks used in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ahpatron_cli.data.labels import count_of_classes
from ahpatron_cli.number_text import counted, mean_count, short
from ahpatron_cli.records import DataRecord, LearnerMeans

BEST = "*"
CHOSEN = "▸"
BELOW_BASELINE = "!"
WORSE = "•"
NOT_WORSE = "≈"
VACUOUS = "○"
INCOMPLETE = "†"
NOT_COMPARED = "‡"
MARKS = {
    BEST: "best",
    CHOSEN: "best setting of its learner",
    BELOW_BASELINE: "worse than the baseline, which always predicts the most frequent label so far",
    WORSE: "significantly worse than the best (paired t-test over permutations, Holm, 5 %)",
    NOT_WORSE: "not significantly worse than the best",
    VACUOUS: "vacuous bound: not below the trivial one",
    INCOMPLETE: "lacks permutations that others have; all are compared on those that all have",
    NOT_COMPARED: "has too few permutations and is not compared with the others",
}
"""Meanings of all marks; each has one meaning in every table and format."""


class Cell(NamedTuple):
    """A cell of a table: text with an optional spread and marks."""

    text: str
    spread: str | None = None
    """Text after ±, if any."""
    marks: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: a heading and a cell per row; None if there is no value."""

    heading: str
    cells: Sequence[Cell | str | None]
    priority: int = 0
    """In a narrow terminal, columns with the highest number are hidden first; 0: never."""
    left: bool = False
    """Whether the column is left-aligned (text) rather than right-aligned (numbers)."""


class ColumnNote(NamedTuple):
    """A note that is shown only with its column."""

    heading: str
    text: str


@dataclass(frozen=True)
class Table:
    """A table: columns, title and notes; columns without any value are not shown."""

    kind: str
    """Kind of table, used in labels: `run`, `matrix`."""
    name: str
    """Name of the data set."""
    title: str
    columns: Sequence[Column]
    notes: Sequence[str | ColumnNote] = ()

    def notes_with(self, headings: Collection[str]) -> list[str]:
        """The notes, if these columns are shown."""
        texts = []
        for note in self.notes:
            if isinstance(note, str):
                texts.append(note)
            elif note.heading in headings:
                texts.append(note.text)
        return texts


@dataclass(frozen=True)
class Page:
    """All tables of a command, and the text below them."""

    tables: Sequence[Table]
    remarks: Sequence[str] = ()
    """A sentence, then the items that it lists."""
    commands: Sequence[tuple[str, str]] = ()
    """Suggested next commands, as pairs of reason and command; only shown at a terminal."""


def data_facts(data: DataRecord, *, are_classes: bool = False) -> str:
    """Text with rounds, features and, unless labels are -1 and +1, the encoding of labels.

    `are_classes` says that two labels are classes too, to which further ones may be added.
    """
    parts = [counted(data.rounds, "round"), counted(data.features, "feature")]
    if are_classes or len(data.labels) > 2:
        parts.append(count_of_classes(data.labels))
    elif data.rounds and data.labels != (-1, 1):
        numbers = ("others" if one is None else str(one) for one in data.labels)
        negative, positive = data.label_names or numbers
        parts.append(f"labels {negative} → -1, {positive} → +1")
    return ", ".join(parts)


def statistic_columns(lines: Sequence[LearnerMeans]) -> list[Column]:
    """A column for each statistic of learners of the user's own, with its mean."""
    every: dict[str, None] = {}
    for line in lines:
        every.update(dict.fromkeys(line.statistics_mean or ()))
    columns = []
    for name in every:
        means = [(line.statistics_mean or {}).get(name) for line in lines]
        cells = [None if mean is None else short(mean, 4) for mean in means]
        columns.append(Column(name, cells, 6))
    return columns


def support_text(line: LearnerMeans) -> str | None:
    """|S| as text, with the budget if there is one: `314/400`."""
    if line.support_size_mean is None:
        return None
    size = mean_count(line.support_size_mean)
    budget = line.params.get("budget")
    if budget is None:
        return size
    return f"{size}/{short(budget, 6)}"
