"""`ahpatron sweep`: the command and checks of its options; the steps are in `sweep_session.py`."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.settings import SweepSettings
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.cli.sweep_session import Runner
    from ahpatron_cli.records import Outcome
    from ahpatron_cli.sweep.config import SweepJob
    from ahpatron_cli.sweep.plan import Search
    from ahpatron_cli.sweep.results_file import ResultsFile

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DATA...]", help="LIBSVM files or tables, as for `run`; no pipes."),
]

EXAMPLES = """
  ahpatron sweep data.svm -p budget=100:400:100 --repeats 10 --out r.jsonl
  ahpatron sweep a.svm b.svm -l all -B 200 --repeats 5 -j 4 --out r.jsonl
  ahpatron sweep data.svm -l nogd -p 'step=10^[-3:3]/sqrt(T)' --out r.jsonl
  ahpatron sweep --config sweep.toml --out r.jsonl --html r.html
"""


def sweep(paths: Paths = None, *, settings: SweepSettings) -> ExitCode:
    """Run many trials: files x learners x settings x permutations.

    All learners and settings run on the same permutations, so that comparisons are paired.
    Every result is stored on disk at once: after a crash, a full disk or Ctrl-C,
    the same command runs only the missing trials.
    """
    from ahpatron_cli.atomic import temporary_folder
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.cli.summary_output import check_summary_output
    from ahpatron_cli.cli.sweep_session import print_estimate, stored_trials
    from ahpatron_cli.sweep.config import make_job

    raise_on_signals()
    stderr = Stderr(settings.output.quiet, settings.output.verbose)
    path = settings.sweep.results
    _check(settings)
    run = _runner(settings, stderr)
    job = make_job(paths or [], settings, stderr.note)
    inputs = list(job.files)
    check_summary_output(settings.reporting, settings.output, inputs, more={"--out": path})
    _check_repeats(job)
    with temporary_folder() as folder:
        search = _search(job, folder, stderr)
        if settings.sweep.dry_run:
            print_estimate(search, stored_trials(path), settings.order.jobs)
            return ExitCode.OK
        with _results_file(settings, search) as results:
            outcomes = _run(search, results, run=run, stderr=stderr)
    return _show(search, results, outcomes=outcomes, settings=settings, stderr=stderr)


def _check(settings: SweepSettings) -> None:
    """Refuse options that cannot work, before anything is read."""
    from ahpatron_cli.sweep.results_file import check_results_path

    sweep = settings.sweep
    if sweep.results is not None:
        check_results_path(sweep.results)
    elif not sweep.dry_run:
        hint = "add --out results.jsonl; the same command continues a sweep that was stopped"
        raise usage("a sweep requires --out FILE.jsonl", hint)
    waits = sweep.search == "halving" or settings.reporting.tune_repeats
    if sweep.shard and waits:  # parts of a job array cannot wait for each other
        problem = "--shard cannot be combined with --search halving or --tune-repeats"
        raise usage(problem, "`report --tune-repeats` takes the merged results of all parts")


def _check_repeats(job: SweepJob) -> None:
    """Refuse --tune-repeats if no permutation is left to report on."""
    tune = job.settings.reporting.tune_repeats
    if tune and tune >= job.settings.order.repeats:
        problem = f"--tune-repeats {tune} leaves no permutation to report on"
        raise usage(problem, f"run more than {tune}: --repeats {2 * tune}")


def _runner(settings: SweepSettings, stderr: Stderr) -> Runner:
    """The function that runs trials: in processes, or on a cluster."""
    from ahpatron_cli.sweep.trial import run_trials

    sweep = settings.sweep
    if sweep.scheduler is None:
        return partial(run_trials, jobs=settings.order.jobs, retries=sweep.retries)
    from ahpatron_cli.sweep.dask_cluster import check_dask, run_on_cluster

    check_dask()
    return partial(
        run_on_cluster,
        scheduler=sweep.scheduler,
        retries=sweep.retries,
        wait=sweep.wait,
        warn=stderr.warn,
    )


def _search(job: SweepJob, folder: Path, stderr: Stderr) -> Search:
    """The trials of a job, and how they are searched; parsed files are stored in `folder`."""
    from ahpatron_cli.cli.sweep_session import check_plot_of, criterion_of, parse_shard
    from ahpatron_cli.sweep.plan import Search, plan
    from ahpatron_cli.sweep.summary import MISTAKE_RATE

    settings = job.settings
    criterion = criterion_of(settings.reporting)
    part = parse_shard(settings.sweep.shard)
    measured = criterion.metric is not MISTAKE_RATE
    trials = plan(job, folder, stderr.note, warn=stderr.warn, metrics=measured)
    if settings.reporting.x or settings.reporting.panels:
        check_plot_of(trials, settings.reporting)
    halving = settings.sweep.search == "halving"
    return Search(trials, criterion=criterion, halving=halving, shard=part)


def _results_file(settings: SweepSettings, search: Search) -> ResultsFile:
    """The results file, with a header that describes this call."""
    from ahpatron_cli.cli.sweep_session import parse_shard
    from ahpatron_cli.sweep.results_file import ResultsFile
    from ahpatron_cli.sweep.trial import environment

    started = datetime.now(UTC).isoformat(timespec="seconds")
    header: dict[str, Any] = {
        "date": started,
        **environment(),
        "command": shlex.join(["ahpatron", *sys.argv[1:]]),
    }
    header["learners"] = search.learners
    part = parse_shard(settings.sweep.shard)
    if part[1] > 1:
        header["shard"] = list(part)
    return ResultsFile(str(settings.sweep.results), header)


def _run(search: Search, results: ResultsFile, run: Runner, stderr: Stderr) -> list[Outcome]:
    """Run the trials that are missing in the results file; return all outcomes."""
    from ahpatron_cli.cli.sweep_session import run_missing, warn_of_damaged_lines

    warn_of_damaged_lines(stderr, results.path, results.contents)
    return run_missing(search, results, run, stderr=stderr)


def _show(
    search: Search,
    results: ResultsFile,
    outcomes: list[Outcome],
    settings: SweepSettings,
    stderr: Stderr,
) -> ExitCode:
    """Warn about the results, write and print their summary; the exit code."""
    from ahpatron_cli.cli import sweep_session as session
    from ahpatron_cli.cli.summary_output import export, print_summary
    from ahpatron_cli.sweep.summary import summarise_trials

    summary = summarise_trials(
        outcomes,
        results.contents.headers,
        search.criterion,
        order=search.learners,
    )
    session.warn_of_results(summary, outcomes, stderr)
    session.warn_of_unequal_trials(summary, stderr)
    session.warn_of_grid_ends(summary, stderr)
    session.note_other_editions(results.contents.trials, outcomes, path=results.path, stderr=stderr)
    export(summary, outcomes, settings.reporting, output=settings.output, stderr=stderr)
    print_summary(summary, outcomes, settings.reporting, format=settings.output.format)
    return ExitCode.FAILED_TRIALS if summary.failed else ExitCode.OK
