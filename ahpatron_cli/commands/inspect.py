"""`ahpatron inspect`: look before running."""

from typing import Annotated

import typer

from ahpatron_cli.commands import options
from ahpatron_cli.commands.shown import Said


def inspect(
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="A LIBSVM file, or - for standard input."),
    ] = None,
    learners: Annotated[
        bool, typer.Option("--learners", help="List all learners, kernels and their parameters.")
    ] = False,
    max_faults: Annotated[
        int,
        typer.Option(
            "--max-faults",
            metavar="N",
            parser=options.whole_number,
            callback=options.not_negative,
            help="Show at most N faulty lines.",
        ),
    ] = 20,
    max_features: options.MaxFeatures = 10_000_000,
) -> Said:
    """Look at a data file: its size, its labels and every faulty line; or list the learners."""
    from ahpatron_cli.commands.looking import describe_data, describe_learners
    from ahpatron_cli.commands.settings import usage

    if learners == (path is not None):
        raise usage("give a PATH, or --learners", "for example `ahpatron inspect data.svm`")
    if path is None:
        return Said(describe_learners())
    return describe_data(path, max_faults, max_features)
