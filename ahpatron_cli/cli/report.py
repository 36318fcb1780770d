"""`ahpatron report`: tables, pictures and pages of results files, without running anything."""

from __future__ import annotations

from pathlib import Path

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, bad_data, one_of, usage
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
    """Show results of sweeps again: tables, matrix, pictures, a page.

    Nothing is run. Several files are shown together; --merge writes them as one.
    """
    from ahpatron_cli.atomic import check_outputs, write_atomically
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.cli.sweep_session import SummaryOutput, criterion_of, warn_of_damaged_lines
    from ahpatron_cli.output.formats import FORMATS
    from ahpatron_cli.sweep.results_file import (
        check_results_path,
        looks_like_json,
        merge_results,
        read_results,
    )
    from ahpatron_cli.sweep.summary import choose_trials, summarise_trials

    raise_on_signals()
    one_of("format", format, FORMATS)
    paths, stderr = results, Stderr(quiet=quiet)
    output = SummaryOutput(format, plot, report, out, matrix, trials, x)
    criterion = criterion_of(metric, tune_orders)
    output.check(paths)
    for path in paths:
        if Path(path).is_file() and Path(path).stat().st_size and not looks_like_json(path):
            raise usage(f"{path} is not a results file", "`ahpatron inspect` shows data and models")
    if merge:
        check_results_path(merge, "--merge")
        if Path(merge).exists():
            raise usage(f"{merge} exists already", "name a new file: --merge FILE.jsonl")
        check_outputs({"--merge": merge}, paths)
    each = [read_results(path) for path in paths]
    for path, contents in zip(paths, each, strict=True):
        torn = "is torn: a sweep is still writing, or was killed"
        warn_of_damaged_lines(stderr, path, contents, torn)
    contents = each[0]
    if len(paths) > 1 or merge:
        content, contents = merge_results(paths)
        if merge:
            write_atomically(merge, content)
    chosen = choose_trials(list(contents.trials.values()), learner or [], data or [])
    findings = summarise_trials(chosen, contents.headers, criterion)
    if not findings.trials and not findings.failed:
        raise bad_data("no trial was finished yet", paths[0])
    output.write(findings, chosen, stderr)
    return ExitCode.OK
