"""The steps of `ahpatron sweep` and `ahpatron report`: run what is missing, warn, write."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.numbers import counted, percent
from ahpatron_cli.output.formats import FORMATS, findings_to_text, trials_to_text, write_findings
from ahpatron_cli.records import plain, setting_key
from ahpatron_cli.runner import near_tie_warning
from ahpatron_cli.sweep.plan import share
from ahpatron_cli.sweep.results_file import Contents, ResultsFile
from ahpatron_cli.sweep.search import SHORT_ROUNDS, Search, estimated_seconds
from ahpatron_cli.sweep.summary import (
    METRICS,
    Criterion,
    Metric,
    Outcome,
    SweepSummary,
    varied_numbers,
)
from ahpatron_cli.sweep.trial import Trial, run_trials

MOST_WARNINGS = 5
"""Damaged lines that are named one by one."""


class Workers(Struct, frozen=True):
    """Where trials are run: in processes of this machine, or on a cluster."""

    jobs: int
    retries: int
    scheduler: str | None
    wait: int
    """Seconds that a cluster may have no worker."""

    def outcomes(self, trials: Sequence[Trial], stderr: Stderr) -> Iterator[Outcome | None]:
        """Outcomes as trials end; None now and then."""
        if not self.scheduler:
            return run_trials(trials, self.jobs, self.retries)
        from ahpatron_cli.sweep.dask_cluster import run_on_cluster

        return run_on_cluster(trials, self.scheduler, self.retries, self.wait, stderr.warn)


class SummaryOutput(Struct, frozen=True):
    """Where a summary goes: stdout in some format, and files."""

    format: str
    plot: str | None
    report: str | None
    x: str | None
    """The parameter that pictures draw against."""
    matrix: bool
    """Only the matrix."""
    out: str | None = None
    trials: bool = False
    """One row per trial in place of tables."""

    def check(self, inputs: Sequence[str], more: Mapping[str, str | None]) -> None:
        """Refuse, before a long run, what could not be written after it; `more` are outputs too."""
        one_of("format", self.format, FORMATS)
        if self.x and not (self.plot or self.report):
            raise usage("--x requires --plot FILE or --report FILE")
        if self.trials and self.matrix:
            raise usage("--trials and --matrix cannot be combined", "choose one of them")
        formats = [self.format, *([format_of_suffix(self.out, self.format)] if self.out else [])]
        for format in formats if self.trials else ():
            trials_to_text([], format)
        if self.plot:
            from ahpatron_cli.output.pictures import picture_format

            picture_format(self.plot)
        if self.report:
            from ahpatron_cli.output.html_report import check_report_path

            check_report_path(self.report)
        outputs = {"--plot": self.plot, "--report": self.report, "--out": self.out}
        check_outputs({**outputs, **more}, inputs)

    def check_axis(self, search: Search) -> None:
        """Refuse a parameter of --x that the grid does not vary."""
        if self.x is not None:
            from ahpatron_cli.output.pictures import check_axis

            grids = ([some[0].params for some in group] for group in search.groups())
            varied = dict.fromkeys(name for grid in grids for name in varied_numbers(grid))
            check_axis(self.x, list(varied))

    def write(self, summary: SweepSummary, trials: Sequence[Outcome], stderr: Stderr) -> None:
        """Write the files, then what goes to stdout."""
        if self.plot and not summary.datasets:
            stderr.warn(f"there is nothing to draw, so {self.plot} was not written")
        elif self.plot:
            from ahpatron_cli.output.pictures import write_plot

            write_plot(self.plot, summary, self.x)
        if self.report:
            from ahpatron_cli.output.html_report import write_report

            write_report(self.report, summary, self.x)
        if self.out:
            format = format_of_suffix(self.out, self.format)
            text = findings_to_text(summary, format, only_matrix=self.matrix)
            write_atomically(self.out, trials_to_text(trials, format) if self.trials else text)
        if self.trials:
            sys.stdout.write(trials_to_text(trials, self.format))
        else:
            write_findings(summary, self.format, only_matrix=self.matrix)


def criterion_of(metric: str, tune_orders: int) -> Criterion:
    """What --metric and --tune-orders ask for."""
    return Criterion(METRICS[one_of("metric", metric, METRICS)], tune_orders)


def parse_shard(text: str | None) -> tuple[int, int]:
    """`I/N`, I from 1 to N."""
    part, slash, parts = (text or "1/1").partition("/")
    digits = slash and all(word.isascii() and word.isdigit() for word in (part, parts))
    if not digits or not 1 <= int(part) <= int(parts) < 10**9:
        raise usage(f"--shard takes I/N with I from 1 to N, got {text!r}", "for example 1/4")
    return int(part), int(parts)


def run_missing(
    search: Search,
    shard: tuple[int, int],
    results: ResultsFile,
    workers: Workers,
    stderr: Stderr,
) -> list[Outcome]:
    """Run and store the trials that are not in the results file; all outcomes of the search."""
    known, metric = results.contents.trials, search.criterion.metric

    def done(needed: Sequence[Trial]) -> str:
        count = len(needed) - len(missing(needed, known, metric))
        return f"{count} of {len(needed)} trials are in {results.path}"

    needed = share(search.needed(known), *shard)
    if len(missing(needed, known, metric)) < len(needed):
        stderr.note(f"{done(needed)} already")
    attempted: set[str] = set()
    try:
        while left := [one for one in missing(needed, known, metric) if one.id not in attempted]:
            _run(left, metric, results, workers, stderr)
            attempted.update(trial.id for trial in left)
            needed = share(search.needed(known), *shard)
    except BaseException:  # a signal, a full disk: in any case
        stderr.note(f"{done(needed)}; the same command continues from there")
        raise
    return [
        structs.replace(known[trial.id], data=trial.data)  # by its name of today
        for trial in search.needed(known)
        if trial.id in known
    ]


def missing(trials: Sequence[Trial], known: Mapping[str, Outcome], metric: Metric) -> list[Trial]:
    """Those that were not run, or not measured by what is asked for."""
    runs = {outcome.id: outcome.run for outcome in known.values() if outcome.run is not None}
    return [one for one in trials if one.id not in runs or metric.of(runs[one.id]) is None]


def _run(
    trials: Sequence[Trial],
    metric: Metric,
    results: ResultsFile,
    workers: Workers,
    stderr: Stderr,
) -> None:
    waiting = {trial.id: trial for trial in trials}
    best, values = max if metric.larger_is_better else min, dict[str, Any]()
    failed, news = 0, ""
    with stderr.progress(len(trials), "sweep") as line:
        for outcome in workers.outcomes(trials, stderr):
            if outcome is not None:
                results.add(outcome)
                stderr.detail(_described(waiting.pop(outcome.id), outcome))
                failed += outcome.run is None
                value = None if outcome.run is None else metric.of(outcome.run)
                if value is not None:
                    values[outcome.learner] = best(value, values.get(outcome.learner, value))
                    name = best(values, key=values.__getitem__)
                    news = f"best {metric.short} {metric.text(values[name])} {name}"
            done = len(trials) - len(waiting)
            count = f"{done}/{len(trials)} trials" + (f", {failed} failed" if failed else "")
            line.show(done, count, news)


def _described(trial: Trial, outcome: Outcome) -> str:
    given = {**trial.setup.learner_params, **trial.setup.kernel_params}
    chosen = ", ".join(f"{name}={plain(value)}" for name, value in given.items()) or "defaults"
    where = f"{Path(trial.path).name}, {outcome.learner} ({chosen}), order {trial.repeat}"
    if outcome.run is None:
        return f"{where}: failed: {outcome.error}"
    return f"{where}: {percent(outcome.run.mistake_rate)} % in {outcome.run.seconds:.2f} s"


def print_estimate(
    search: Search, shard: tuple[int, int], known: Mapping[str, Outcome], repeats: int, jobs: int
) -> None:
    """Count the trials and those that are left, and estimate their time.

    Of a search in stages, all that may come are counted.
    """
    trials = share(search.trials, *shard)
    left = missing(trials, known, search.criterion.metric)
    text = (
        f"{counted(len(trials), 'trial')}: {counted(len(trials) // repeats, 'setting')} on "
        f"{counted(len({trial.path for trial in trials}), 'file')}, "
        f"{counted(repeats, 'order')}; {len(trials) - len(left):,} done, {len(left):,} left"
    )
    if {trial.id for trial in search.trials} - {trial.id for trial in search.needed({})}:
        text += "; not all of them are run, because settings that lose are dropped"
    print(text)
    if left and (seconds := estimated_seconds(left)) is not None:
        print(
            f"about {_duration(seconds / jobs)} with {jobs} process{'es' * (jobs > 1)}, judging by "
            f"the first {SHORT_ROUNDS:,} rounds of one trial of each learner"
        )


def _duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def warn_of_results(summary: SweepSummary, trials: Sequence[Outcome], stderr: Stderr) -> None:
    """Failed trials, also when quiet because not every format has room for it; and near ties."""
    if summary.failed:
        trial, total = summary.failed[0], len(summary.failed) + summary.trials
        stderr.insist(
            f"{len(summary.failed):,} of {counted(total, 'trial')} failed; the first, "
            f"{trial.learner} on {trial.data.record.path}: {trial.error}"
        )
    for data in summary.datasets:
        own = data.data.identity
        full = (one for one in trials if one.data.identity == own and one.data.prefix is None)
        runs = [one.run for one in full if one.run]
        names = {setting_key(one): f"{one.learner} {one.label}".rstrip() for one in data.settings}
        scale = " --scale minmax" if data.data.scale == "none" else ""
        path = shlex.quote(data.data.record.path)
        remedy = f"`-g sigma=auto{scale}` in place of this sigma, or see `ahpatron inspect {path}`"
        if warning := near_tie_warning(runs, lambda run: names[setting_key(run)], remedy):  # noqa: B023 - called here
            stderr.warn(f"{data.name}: {warning}")


def warn_of_damaged_lines(stderr: Stderr, path: str, contents: Contents) -> None:
    """Name the lines that cannot be used; a sweep cuts a torn last one, and deletes no other."""
    if contents.torn:
        stderr.warn(f"{path}: the last line is torn: {counted(contents.torn, 'byte')} not used")
    for number in contents.damaged[:MOST_WARNINGS]:
        stderr.warn(f"{path}:{number}: this line is damaged and not used")
    if len(contents.damaged) > MOST_WARNINGS:
        stderr.warn(f"{path}: {len(contents.damaged) - MOST_WARNINGS} more lines are damaged")
