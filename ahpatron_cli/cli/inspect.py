"""`ahpatron inspect`: look before and after running. What it does is in `looking`, `results`."""

from typing import Annotated

import typer

from ahpatron_cli.cli import options, sweep_options
from ahpatron_cli.cli.shown import FindingsShown, ProfileShown, ReferenceShown, Said
from ahpatron_cli.signals import raise_on_signals


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
            parser=options.not_negative,
            help="Show at most N faulty lines.",
            rich_help_panel=options.DATA,
        ),
    ] = 20,
    max_features: options.MaxFeatures = 10_000_000,
    positive: options.Positive = None,
    scale: options.LookedAtScale = None,
    sigma: options.AlignmentSigma = None,
    seed: options.SampleSeed = 0,
    format: options.Format = "table",
    plot: sweep_options.PlotFile = None,
    report: sweep_options.ReportFile = None,
    quiet: options.Quiet = False,
) -> ProfileShown | FindingsShown | ReferenceShown | Said:
    """Look at a data file, a kept model, the results of a sweep, or the learners.

    Data: size, labels, ranges, duplicates, distances, which σ and scaling fit, every faulty line;
    in one pass, with little memory, however large the file.
    Model: what it is, its parameters, what it keeps.
    Results: the tables and pictures again, without running anything.
    """
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.inspect_data import check_format, look, wanted
    from ahpatron_cli.cli.inspect_model import describe_model
    from ahpatron_cli.cli.inspect_results import holds_results, show_results
    from ahpatron_cli.errors import usage
    from ahpatron_cli.models.file import looks_like_model

    raise_on_signals()
    if learners == (path is not None):
        raise usage("give a PATH, or --learners", "for example `ahpatron inspect data.svm`")
    if path is None:
        check_format(format, "the list of learners")
        return ReferenceShown(format)
    if looks_like_model(path):
        if plot or report or format != "table":
            raise usage("--format, --plot and --report are not for models")
        return describe_model(path)
    talk = Conversation(quiet=quiet)
    asked = wanted(max_faults, max_features, positive, scale, sigma, seed)
    if holds_results(path):
        if positive or scale or sigma:
            raise usage("--positive, --scale and --sigma are for data, and these are results")
        return show_results(path, format, plot, report, talk)
    if plot or report:
        raise usage("--plot and --report are for results of a sweep")
    check_format(format, "data")
    return look(path, asked, format, talk)
