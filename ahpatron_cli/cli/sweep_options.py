"""Options of `sweep` alone, and those that it shares with `inspect`. See `options`."""

from typing import Annotated

import typer

from ahpatron_cli.cli import completion
from ahpatron_cli.cli.options import (
    LEARNING,
    OUTPUT,
    not_negative,
    positive,
)

RUNNING = "Running"

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "-g",
        "--grid",
        metavar="NAME=VALUES",
        autocompletion=completion.parameters,
        help="Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T); of "
        "every chosen learner that has NAME, LEARNER.NAME=VALUES for one.",
        rich_help_panel=LEARNING,
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read the sweep from a .toml file; what is given here goes before it.",
        rich_help_panel=LEARNING,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Play on a Dask cluster, such as tcp://host:8786; its workers read the same paths.",
        rich_help_panel=RUNNING,
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Play only the I-th of N parts, for job arrays; `cat` merges the results.",
        rich_help_panel=RUNNING,
    ),
]
Retries = Annotated[
    int,
    typer.Option(
        "--retries",
        metavar="N",
        parser=not_negative,
        help="Play a trial whose process died up to N more times.",
        rich_help_panel=RUNNING,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only say how many trials there are, and how many are left.",
        rich_help_panel=RUNNING,
    ),
]
Results = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The results file (.jsonl). The same command again goes on where it ended.",
        rich_help_panel=OUTPUT,
    ),
]
PlotFile = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw mistakes against budget, ε or another parameter, and against time: .png, .svg "
        "or .pdf.",
        rich_help_panel=OUTPUT,
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write tables and plots as one self-contained .html page.",
        rich_help_panel=OUTPUT,
    ),
]
SweepJobs = Annotated[
    int,
    typer.Option(
        "-j",
        "--jobs",
        metavar="N",
        parser=positive,
        help="Processes; each plays one trial at a time.",
        rich_help_panel=RUNNING,
    ),
]
