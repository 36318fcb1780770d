"""What the progress bar looks like. The only module of the conversation that needs rich."""

from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

_LONGEST_DESCRIPTION = 20
# Terminals narrower than this go without the times, then without the description.
_ROOM_FOR_TIMES = 78
_ROOM_FOR_DESCRIPTION = 66


def make_bar(stream: TextIO, *, known_total: bool) -> Progress:
    """A bar with percent and time left, or a spinner where nobody knows how long it will take.

    It redraws only when told to: a refreshing thread would be one thread too many before a fork.
    It leaves no trace when done, and keeps its hands off stdout, which belongs to the data.
    """
    console = Console(file=stream)
    return Progress(
        *_columns(console.width, known_total=known_total),
        console=console,
        auto_refresh=False,
        transient=True,
        expand=known_total,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def shorten(description: str) -> str:
    """The end of a long description: of a path, the end says most."""
    if len(description) <= _LONGEST_DESCRIPTION:
        return description
    return "..." + description[3 - _LONGEST_DESCRIPTION :]


def _columns(width: int, *, known_total: bool) -> list[ProgressColumn]:
    columns: list[ProgressColumn] = []
    if width >= _ROOM_FOR_DESCRIPTION:
        columns.append(TextColumn("{task.description}", markup=False))
    if known_total:
        columns += [BarColumn(bar_width=None, table_column=Column(ratio=1)), TaskProgressColumn()]
    else:
        columns.append(SpinnerColumn())
    columns.append(TextColumn("{task.fields[played]}", markup=False))
    columns.append(TextColumn("{task.fields[rate]}", markup=False))
    if width >= _ROOM_FOR_TIMES or not known_total:
        columns.append(TimeElapsedColumn())
    if known_total and width >= _ROOM_FOR_TIMES:
        columns.append(TimeRemainingColumn(compact=True))
    return columns
