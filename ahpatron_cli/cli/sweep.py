"""`ahpatron sweep`: the command and its options. What it does is in `planning` and `sweeping`."""

from typing import Annotated

import typer

from ahpatron_cli.cli import options, sweep_options
from ahpatron_cli.cli.shown import FindingsShown, Said
from ahpatron_cli.signals import raise_on_signals


def sweep(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="LIBSVM files (plain, gz, bz2 or xz).",
            show_default=False,
        ),
    ] = None,
    learner: options.Learners = None,
    grid: sweep_options.Grid = None,
    config: sweep_options.ConfigFile = None,
    budget: options.Budget = None,
    kernel: options.KernelName = "gaussian",
    sigma: options.Sigma = None,
    epsilon: options.Epsilon = None,
    param: options.Params = None,
    repeats: options.Repeats = 1,
    seed: options.Seed = 0,
    shuffle: options.Shuffle = None,
    limit: options.Limit = None,
    scale: options.Scale = "none",
    positive: options.Positive = None,
    max_features: options.MaxFeatures = 10_000_000,
    jobs: sweep_options.SweepJobs = 1,
    scheduler: sweep_options.Scheduler = None,
    shard: sweep_options.Shard = None,
    retries: sweep_options.Retries = 2,
    dry_run: sweep_options.DryRun = False,
    out: sweep_options.Results = None,
    plot: sweep_options.PlotFile = None,
    report: sweep_options.ReportFile = None,
    format: options.Format = "table",
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
) -> FindingsShown | Said:
    """Play many trials: files x learners x settings x random orders.

    All learners and settings play the same orders, so they are compared order by order.
    Every result is on the disk before the next is counted: the same command again goes on
    after a crash, a full disk or Ctrl-C, and only plays what is missing.
    """
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.plan import Asked, make_plan
    from ahpatron_cli.cli.sweep_session import Outputs, Running, Sweep, parse_shard

    raise_on_signals()
    talk = Conversation(quiet=quiet, verbose=verbose)
    given = {
        "kernel": kernel,
        "repeats": repeats,
        "seed": seed,
        "shuffle": shuffle,
        "limit": limit,
        "scale": scale,
        "positive": positive,
    }
    asked = Asked(
        data=data or [],
        learners=learner or [],
        grid=grid or [],
        params=param or [],
        named={"budget": budget, "sigma": sigma, "epsilon": epsilon},
        config=config,
        options=given,
        typed={name for name in given if options.typed(context, name)},
        max_features=max_features,
    )
    outputs = Outputs(out, plot, report, format)
    running = Running(jobs, scheduler, parse_shard(shard), retries)
    work = Sweep(make_plan(asked), outputs, running, talk)
    return work.foretell() if dry_run else work.play()
