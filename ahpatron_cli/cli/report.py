"""`ahpatron report`: tables, plots and HTML reports of results files, without running trials."""

from __future__ import annotations

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, bad_data, usage
from ahpatron_cli.signals import raise_on_signals


def report(
    results: options.Results,
    format: options.Format = "table",
    plot: options.Plot = None,
    report: options.Report = None,
    x: options.X = None,
    out: options.Out = None,
    learner: options.InspectLearner = None,
    data: options.InspectData = None,
    metric: options.Metric = "mistake_rate",
    tune_orders: options.TuneOrders = 0,
    matrix: options.Matrix = False,
    trials: options.Trials = False,
    merge: options.Merge = None,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Show results of sweeps again: tables, matrix, plots, an HTML report.

    No trials are run. Several files are shown together; --merge writes them to one file.
    """
    from ahpatron_cli.atomic import exists, write_atomically
    from ahpatron_cli.cli import sweep_session as session
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.sweep.results_file import check_results_path, merge_results, read_results
    from ahpatron_cli.sweep.summary import choose_trials, summarise_trials

    raise_on_signals()
    stderr = Stderr(quiet=quiet)
    output = session.SummaryOutput(format, plot, report, x, matrix, out, trials)
    criterion = session.criterion_of(metric, tune_orders)
    if merge:
        check_results_path(merge, "--merge")
        if exists(merge):
            raise usage(f"{merge} exists already", "name a new file: --merge FILE.jsonl")
    output.check(results, {"--merge": merge})
    files = {path: read_results(path) for path in results}
    for path, contents in files.items():
        session.warn_of_damaged_lines(stderr, path, contents)
    merged = merge_results(files)
    if merge:
        write_atomically(merge, merged.encoded())
    chosen = choose_trials(list(merged.trials.values()), learner or [], data or [])
    if not chosen:
        raise bad_data("no trial was finished yet", results[0])
    summary = summarise_trials(chosen, merged.headers, criterion)
    session.warn_of_unequal_trials(summary, stderr)
    output.write(summary, chosen, stderr)
    return ExitCode.OK
