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


def make_bar(stream: TextIO, *, known_total: bool) -> Progress:
    """A bar with percent and time left, or a spinner where nobody knows how long it will take.

    It redraws only when told to: a refreshing thread would be one thread too many before a fork.
    It leaves no trace when done, and keeps its hands off stdout, which belongs to the data.
    """
    head: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
    extent: list[ProgressColumn] = (
        [BarColumn(bar_width=24), TaskProgressColumn()] if known_total else [SpinnerColumn()]
    )
    counts: list[ProgressColumn] = [
        TextColumn("{task.fields[played]}", markup=False),
        TextColumn("{task.fields[rate]}", markup=False),
    ]
    times: list[ProgressColumn] = [TimeElapsedColumn()]
    if known_total:
        times.append(TimeRemainingColumn())
    return Progress(
        *head,
        *extent,
        *counts,
        *times,
        console=Console(file=stream),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
