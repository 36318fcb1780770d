"""`ahpatron sweep`: the command and its options. What it does is in `planning` and `sweeping`."""

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.cli.answer import Answer
from ahpatron_cli.signals import raise_on_signals


def sweep(
    context: typer.Context,
    data: options.SweptFiles = None,
    learner: options.Learners = None,
    grid: options.Grid = None,
    config: options.ConfigFile = None,
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
    jobs: options.SweepJobs = 1,
    scheduler: options.Scheduler = None,
    wait: options.Wait = 120,
    shard: options.Shard = None,
    retries: options.Retries = 2,
    dry_run: options.DryRun = False,
    out: options.Results = None,
    plot: options.PlotFile = None,
    report: options.ReportFile = None,
    format: options.Format = "table",
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
) -> Answer:
    """Play many trials: files x learners x settings x random orders.

    All learners and settings play the same orders, so they are compared order by order.
    Every result is on the disk before the next is counted: the same command again goes on
    after a crash, a full disk or Ctrl-C, and only plays what is missing.
    """
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.sweep_session import Outputs, Running, Sweep, parse_shard
    from ahpatron_cli.errors import usage
    from ahpatron_cli.sweep.plan import Asked, make_plan

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
    if options.typed(context, "wait") and not scheduler:
        raise usage("--wait requires --scheduler ADDRESS")
    outputs = Outputs(out, plot, report, format)
    running = Running(jobs, scheduler, parse_shard(shard), retries, wait)
    work = Sweep(make_plan(asked), outputs, running, talk)
    return work.foretell() if dry_run else work.play()
