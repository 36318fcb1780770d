"""`ahpatron inspect`: look before and after running."""

from typing import Annotated

import typer

from ahpatron_cli.commands import options
from ahpatron_cli.commands.shown import FindingsShown, Said


def inspect(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="A LIBSVM file, - for standard input, a model, or results."
        ),
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
    format: options.Format = "table",
    plot: options.PlotFile = None,
    report: options.ReportFile = None,
    quiet: options.Quiet = False,
) -> Said | FindingsShown:
    """Look at a data file, a kept model, the results of a sweep, or the learners.

    Data: its size, its labels and every faulty line.
    Model: what it is, its parameters, what it keeps.
    Results: the tables and pictures again, without running anything.
    """
    from ahpatron_cli.commands.looking import describe_data, describe_learners
    from ahpatron_cli.commands.models import describe_model
    from ahpatron_cli.commands.results import holds_results, show_results
    from ahpatron_cli.commands.settings import usage
    from ahpatron_cli.model_file import looks_like_model
    from ahpatron_cli.render.console import Conversation

    if learners == (path is not None):
        raise usage("give a PATH, or --learners", "for example `ahpatron inspect data.svm`")
    if path is None:
        return Said(describe_learners())
    if looks_like_model(path):
        return describe_model(path)
    if holds_results(path):
        return show_results(path, format, plot, report, Conversation(quiet=quiet))
    if plot or report or format != "table":
        raise usage("--format, --plot and --report are for results of a sweep")
    return describe_data(path, max_faults, max_features)
