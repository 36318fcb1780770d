"""`ahpatron sweep`: the command and checks of its options; the steps are in `sweep_session.py`."""

import shlex
import sys
from functools import partial

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, usage
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
    jobs: options.Jobs = 1,
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

    All learners and settings run on the same permutations, so that comparisons are paired.
    Every result is stored on disk at once: after a crash, a full disk or Ctrl-C,
    the same command runs only the missing trials.
    """
    from ahpatron_cli.atomic import exists, temporary_folder
    from ahpatron_cli.cli import sweep_session as session
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.errors import one_of
    from ahpatron_cli.sweep.config import make_job
    from ahpatron_cli.sweep.plan import SEARCHES, Search, plan
    from ahpatron_cli.sweep.results_file import ResultsFile, check_results_path, read_results
    from ahpatron_cli.sweep.summary import MISTAKE_RATE, summarise_trials
    from ahpatron_cli.sweep.trial import environment, run_trials

    raise_on_signals()
    stderr = Stderr(quiet=quiet, verbose=verbose)
    given = options.given_by_user(context)
    if "wait" in given and not scheduler:
        raise usage("--wait requires --scheduler ADDRESS")
    if "jobs" in given and scheduler:
        raise usage("--jobs has no effect with --scheduler: the cluster has its own workers")
    if {"quiet", "verbose"} <= given:
        raise usage("--quiet cannot be combined with --verbose")
    if out is None and not dry_run:
        hint = "add --out results.jsonl; the same command continues a sweep that was stopped"
        raise usage("a sweep requires --out FILE.jsonl", hint)
    run = partial(run_trials, jobs=jobs, retries=retries)
    if scheduler:
        from ahpatron_cli.sweep.dask_cluster import check_dask, run_on_cluster

        check_dask()
        run = partial(
            run_on_cluster, scheduler=scheduler, retries=retries, wait=wait, warn=stderr.warn
        )
    if out is not None:
        check_results_path(out)
    part, criterion = session.parse_shard(shard), session.criterion_of(metric, tune_orders)
    halving = one_of("search", search, SEARCHES) == "halving"
    if shard and (halving or tune_orders):  # parts of a job array cannot wait for each other
        problem = "--shard cannot be combined with --search halving or --tune-orders"
        raise usage(problem, "`report --tune-orders` takes the merged results of all parts")
    job = make_job(context.params, given, stderr.note)
    output = session.SummaryOutput(format, plot, report, x, matrix)
    output.check(list(job.files), {"--out": out})
    if tune_orders >= job.options["repeats"] and tune_orders:
        problem = f"--tune-orders {tune_orders} leaves no permutation to report on"
        raise usage(problem, f"run more than {tune_orders}: --repeats {2 * tune_orders}")
    with temporary_folder() as folder:
        measured = criterion.metric is not MISTAKE_RATE
        trials = plan(job, folder, stderr.note, stderr.warn, metrics=measured)
        if x:
            session.check_axis_of(trials, x)
        found = Search(trials, criterion, halving, part)
        if dry_run:
            known = read_results(out).trials if out and exists(out) else {}
            session.print_estimate(found, known, jobs)
            return ExitCode.OK
        facts = {**environment(), "command": shlex.join(["ahpatron", *sys.argv[1:]])}
        facts |= {"shard": list(part)} if part[1] > 1 else {}
        with ResultsFile(str(out), facts) as results:
            session.warn_of_damaged_lines(stderr, str(out), results.contents)
            outcomes = session.run_missing(found, results, run, stderr)
    summary = summarise_trials(outcomes, results.contents.headers, criterion)
    session.warn_of_results(summary, outcomes, stderr)
    session.warn_of_unequal_trials(summary, stderr)
    session.note_other_editions(results.contents.trials, outcomes, str(out), stderr)
    output.write(summary, outcomes, stderr)
    return ExitCode.FAILED_TRIALS if summary.failed else ExitCode.OK
