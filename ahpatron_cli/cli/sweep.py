"""`ahpatron sweep`: the command and its options. What it does is in `sweep_session.py`."""

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.signals import raise_on_signals


def sweep(
    context: typer.Context,
    data: options.SweepData = None,
    learner: options.Learner = None,
    grid: options.Grid = None,
    config: options.Config = None,
    budget: options.Budget = None,
    kernel: options.Kernel = "gaussian",
    sigma: options.Sigma = None,
    epsilon: options.Epsilon = None,
    param: options.Param = None,
    repeats: options.Repeats = 1,
    seed: options.Seed = 0,
    shuffle: options.Shuffle = None,
    limit: options.Limit = None,
    scale: options.Scale = "none",
    positive: options.Positive = None,
    cost: options.Cost = None,
    label: options.Label = None,
    id: options.Id = None,
    drop: options.Drop = None,
    category: options.Category = None,
    missing: options.Missing = "indicator",
    max_features: options.MaxFeatures = 10_000_000,
    layout: options.Layout = "auto",
    jobs: options.SweepJobs = 1,
    scheduler: options.Scheduler = None,
    wait: options.Wait = 120,
    shard: options.Shard = None,
    search: options.Search = "grid",
    retries: options.Retries = 2,
    dry_run: options.DryRun = False,
    out: options.SweepOut = None,
    plot: options.Plot = None,
    report: options.Report = None,
    x: options.X = None,
    metric: options.Metric = "mistake_rate",
    tune_orders: options.TuneOrders = 0,
    matrix: options.Matrix = False,
    format: options.Format = "table",
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
) -> ExitCode:
    """Run many trials: files x learners x settings x permutations.

    All learners and settings play the same orders, so they are compared order by order.
    Every result is on the disk before the next is counted: the same command again
    continues after a crash, a full disk or Ctrl-C, and only plays what is missing.
    """
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.cli.sweep_session import SummaryOutput, Sweep, criterion_of, parse_shard
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.errors import one_of, usage
    from ahpatron_cli.sweep.grid import parse_costs
    from ahpatron_cli.sweep.plan import make_job
    from ahpatron_cli.sweep.summary import SEARCHES

    raise_on_signals()
    stderr = Stderr(quiet=quiet, verbose=verbose)
    given = {  # a --config file may set these, too
        "kernel": kernel,
        "repeats": repeats,
        "seed": seed,
        "shuffle": shuffle,
        "limit": limit,
        "scale": scale,
        "positive": positive,
    }
    if options.given_by_user(context, "wait") and not scheduler:
        raise usage("--wait requires --scheduler ADDRESS")
    if out is None and not dry_run:
        hint = "add --out results.jsonl; the same command continues a sweep that was stopped"
        raise usage("a sweep requires --out FILE.jsonl", hint)
    job = make_job(
        data or [],
        learner or [],
        {"-p": param or [], "-g": grid or []},
        {"budget": budget, "sigma": sigma, "epsilon": epsilon},
        config,
        given,
        typed={name for name in given if options.given_by_user(context, name)},
        max_features=max_features,
        layout=layout,
        costs=parse_costs(cost or [], named=label is not None),
        table=TableOptions(label, id, tuple(drop or ()), tuple(category or ()), missing),
    )
    output = SummaryOutput(format, plot, report, only_matrix=matrix, x=x)
    output.check([*(file.path for file in job.files), *filter(None, [out])])
    criterion = criterion_of(metric, tune_orders)
    if tune_orders >= job.repeats and tune_orders:
        problem = f"--tune-orders {tune_orders} leaves no order to report on"
        raise usage(problem, f"play more than {tune_orders}: --repeats {2 * tune_orders}")
    if one_of("search", search, SEARCHES) == "halving" and shard:
        problem = "--search halving compares all settings, so it cannot be combined with --shard"
        raise usage(problem, "use --jobs N or --scheduler ADDRESS")
    how = jobs, scheduler, parse_shard(shard), retries, wait
    work = Sweep(job, criterion, search == "halving", out, output, stderr, *how)
    return work.dry_run() if dry_run else work.play()
