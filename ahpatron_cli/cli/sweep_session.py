"""One call of `ahpatron sweep`: read the files, play what is missing, keep and show the results.

`ahpatron inspect RESULTS` shows them in the same way.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import ExitCode, one_of, usage
from ahpatron_cli.numbers import counted, percent
from ahpatron_cli.numbers import share as part_of_whole
from ahpatron_cli.output.formats import (
    FORMATS,
    findings_to_text,
    trials_to_text,
    write_findings,
)
from ahpatron_cli.records import RunRecord, plain, setting_key
from ahpatron_cli.runner import near_tie_warning
from ahpatron_cli.sweep.plan import Job, plan, share
from ahpatron_cli.sweep.results_file import (
    Contents,
    ResultsFile,
    check_results_path,
    read_results,
)
from ahpatron_cli.sweep.search import (
    FEWEST_ROUNDS,
    KEPT,
    SHORT_ROUNDS,
    Search,
    estimated_seconds,
    spared,
)
from ahpatron_cli.sweep.summary import (
    METRICS,
    MISTAKE_RATE,
    Criterion,
    Outcome,
    SweepSummary,
    summarise_trials,
    varied_numbers,
)
from ahpatron_cli.sweep.trial import Trial, environment, play_all


def parse_shard(text: str | None) -> tuple[int, int]:
    """`I/N`, I from 1 to N."""
    if text is None:
        return 0, 1
    part, slash, parts = text.partition("/")
    digits = slash and all(word.isascii() and word.isdigit() for word in (part, parts))
    if not digits or not 1 <= int(part) <= int(parts) < 10**9:
        raise usage(f"--shard takes I/N with I from 1 to N, got {text!r}", "for example 1/4")
    return int(part) - 1, int(parts)


@dataclass(frozen=True)
class Sweep:
    """A plan, and what it takes to carry it out."""

    job: Job
    criterion: Criterion
    halving: bool
    results: str | None
    """The results file; a dry run may do without."""
    output: SummaryOutput
    stderr: Stderr
    jobs: int
    scheduler: str | None
    shard: tuple[int, int]
    """The I-th (from 0) of N parts."""
    retries: int
    wait: int
    """Seconds that a cluster may have no worker."""

    def __post_init__(self) -> None:
        """Refuse, before anything is read or played, what could not be written later."""
        if self.scheduler:
            from ahpatron_cli.sweep.dask_cluster import check_dask

            check_dask()
        if self.results is not None:
            data = (os.path.realpath(file.path) for file in self.job.files)
            if os.path.realpath(self.results) in data:
                raise usage("--out would overwrite the data", "choose another file name")
            check_results_path(self.results)
        for remark in self.job.remarks:
            self.stderr.warn(remark)

    def _search(self, folder: Path | None = None) -> Search:
        """The trials of the plan, and how the best settings are sought among them."""
        metric, stderr = self.criterion.metric, self.stderr
        measured = metric is not MISTAKE_RATE
        trials = plan(self.job, stderr.note, stderr.warn, folder, metrics=measured)
        # the parts of a job array cannot wait for each other
        search = Search(trials, self.criterion, self.halving, staged=self.shard[1] == 1)
        if self.output.x is not None:
            from ahpatron_cli.output.pictures import check_axis

            grids = ([some[0].params for some in group] for group in search.groups())
            varied = dict.fromkeys(name for grid in grids for name in varied_numbers(grid))
            check_axis(self.output.x, list(varied))
        return search

    def _left(self, trials: Mapping[str, Outcome], tasks: Sequence[Trial]) -> list[Trial]:
        """Those that were not played, or not measured by what is asked for."""
        metric = self.criterion.metric
        runs = {trial.id: trial.run for trial in trials.values() if trial.run is not None}
        return [one for one in tasks if one.id not in runs or metric.of(runs[one.id]) is None]

    def _done(self, trials: Mapping[str, Outcome], tasks: Sequence[Trial]) -> str:
        done = len(tasks) - len(self._left(trials, tasks))
        return f"{done} of {len(tasks)} trials are in {self.results}"

    def dry_run(self) -> ExitCode:
        """Count the trials, and those that are left, and estimate their time.

        Of a search in stages, all that may come are counted.
        """
        with tempfile.TemporaryDirectory(prefix="ahpatron-", ignore_cleanup_errors=True) as folder:
            search = self._search(Path(folder))
            trials = share(search.trials, *self.shard)
            known: Mapping[str, Outcome] = {}
            if self.results is not None and Path(self.results).exists():
                known = read_results(self.results).trials
            left, orders = self._left(known, trials), self.job.repeats
            text = (
                f"{counted(len(trials), 'trial')}: {counted(len(trials) // orders, 'setting')} on "
                f"{counted(len({one.path for one in trials}), 'file')}, "
                f"{counted(orders, 'order')}; {len(trials) - len(left):,} done, {len(left):,} left"
            )
            first = {trial.id for trial in search.needed({})}
            if any(trial.id not in first for trial in search.trials):
                text += "; not all of them are run, because settings that lose are dropped"
            print(text)
            if left and (seconds := estimated_seconds(left)) is not None:
                print(
                    f"about {_duration(seconds / self.jobs)} with "
                    f"{self.jobs} process{'es' * (self.jobs > 1)}, judging by the first "
                    f"{SHORT_ROUNDS:,} rounds of one trial of each learner"
                )
        return ExitCode.OK

    def play(self) -> ExitCode:
        """Run what is not in the results file yet, and show all of it."""
        with tempfile.TemporaryDirectory(prefix="ahpatron-", ignore_cleanup_errors=True) as folder:
            return self._play_with(self._search(Path(folder)))

    def _play_with(self, search: Search) -> ExitCode:
        assert self.results is not None
        stderr = self.stderr
        facts = {**environment(), "command": shlex.join(["ahpatron", *sys.argv[1:]])}
        if self.shard[1] > 1:
            facts["shard"] = [self.shard[0] + 1, self.shard[1]]
        with ResultsFile(self.results, facts) as results:
            contents, trials = results.contents, results.contents.trials
            torn = f"was torn: {counted(contents.torn, 'byte')} cut off"
            warn_of_damaged_lines(stderr, self.results, contents, torn)
            mine = share(search.needed(trials), *self.shard)
            if len(self._left(trials, mine)) < len(mine):
                stderr.note(f"{self._done(trials, mine)} already")
            attempted: set[str] = set()
            try:
                while left := [
                    task for task in self._left(trials, mine) if task.id not in attempted
                ]:
                    self._play(left, results)
                    attempted.update(task.id for task in left)
                    mine = share(search.needed(trials), *self.shard)
            except BaseException:  # a signal, a full disk: in any case
                stderr.note(f"{self._done(trials, mine)}; the same command continues from there")
                raise
            known = [
                structs.replace(trials[task.id], data=task.data)  # by its name of today
                for task in search.needed(trials)
                if task.id in trials
            ]
        if whole := search.unhalved():
            more = f" and {len(whole) - 1} more" if whole[1:] else ""
            stderr.note(
                f"--search halving spared nothing of {whole[0]}{more}: it requires at least "
                f"{KEPT} settings and {KEPT * FEWEST_ROUNDS:,} rounds"
            )
        if (part := spared(search, trials)) > 0:
            stderr.note(f"{part_of_whole(part)} of the rounds of the whole grid were spared")
        criterion = self.criterion
        if self.shard[1] > 1 and criterion.tune_orders:
            stderr.note("--tune-orders takes effect on the merged results of all parts")
            criterion = replace(criterion, tune_orders=0)
        findings = summarise_trials(known, contents.headers, criterion)
        self._tell(findings, known)
        self.output.write(findings, known, stderr)
        return ExitCode.FAILED_TRIALS if findings.failed else ExitCode.OK

    def _play(self, tasks: Sequence[Trial], results: ResultsFile) -> None:
        waiting = {task.id: task for task in tasks}
        metric, values = self.criterion.metric, dict[str, Any]()
        best = max if metric.larger_is_better else min
        done = failed = 0
        with self.stderr.progress(len(tasks), "sweep") as line:
            for trial in self._outcomes(tasks):
                if trial is not None:
                    results.add(trial)
                    done += 1
                    failed += trial.run is None
                    self.stderr.detail(_line(waiting[trial.id], trial))
                    value = None if trial.run is None else metric.of(trial.run)
                    if value is not None:
                        known = values.get(trial.learner, value)
                        values[trial.learner] = best(value, known)
                name = best(values, key=values.__getitem__, default="")
                news = (
                    f"best {metric.short} {metric.text(float(values[name]))} {name}" if name else ""
                )
                count = f"{done}/{len(tasks)} trials" + (f", {failed} failed" if failed else "")
                line.show(done, count, news)

    def _outcomes(self, tasks: Sequence[Trial]) -> Iterator[Outcome | None]:
        if not self.scheduler:
            return play_all(tasks, self.jobs, self.retries)
        from ahpatron_cli.sweep.dask_cluster import play_on_cluster

        return play_on_cluster(tasks, self.scheduler, self.retries, self.wait, self.stderr.warn)

    def _tell(self, findings: SweepSummary, trials: Sequence[Outcome]) -> None:
        """What went wrong, on stderr, also when quiet: not every format has room for it."""
        if findings.failed:
            trial = findings.failed[0]
            total = len(findings.failed) + findings.trials
            self.stderr.insist(
                f"{len(findings.failed):,} of {counted(total, 'trial')} failed; the first, "
                f"{trial.learner} on {trial.data.record.path}: {trial.error}"
            )
        for data in findings.datasets:
            runs = (
                one.run for one in trials if one.data.identity == data.data.identity and one.run
            )
            scale = " --scale minmax" if data.data.scale == "none" else ""
            path = shlex.quote(data.data.record.path)
            auto = f"`-g sigma=auto{scale}` in place of this sigma"
            remedy = f"{auto}, or see `ahpatron inspect {path}`"
            labels = {setting_key(one): one.label for one in data.settings}
            if warning := near_tie_warning(runs, partial(_setting_name, labels), remedy):
                self.stderr.warn(f"{data.name}: {warning}")


def _setting_name(labels: Mapping[tuple[Any, ...], str], run: RunRecord) -> str:
    """What to call the setting of a run: `ahpatron (sigma=0.1)`."""
    label = labels.get(setting_key(run))
    return f"{run.learner} ({label})" if label else run.learner


def _line(task: Trial, trial: Outcome) -> str:
    setup = task.setup
    given = {**setup.learner_params, **setup.kernel_params}
    chosen = ", ".join(f"{name}={plain(value)}" for name, value in given.items())
    name = Path(trial.data.record.path).name
    where = f"{name}, {trial.learner} ({chosen or 'defaults'}), order {trial.repeat}"
    if trial.run is None:
        return f"{where}: failed: {trial.error}"
    return f"{where}: {percent(trial.run.mistake_rate)} % in {trial.run.seconds:.2f} s"


def _duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


MOST_WARNINGS = 5
"""Damaged lines that are named one by one."""


@dataclass(frozen=True)
class SummaryOutput:
    """Where findings go: stdout in some format, and files."""

    format: str
    plot: str | None = None
    report: str | None = None
    out: str | None = None
    only_matrix: bool = False
    trials: bool = False
    """One row per trial in place of tables."""
    x: str | None = None
    """The parameter that pictures draw against."""

    def check(self, inputs: Sequence[str]) -> None:
        """Refuse, before a long run, what could not be written after it."""
        one_of("format", self.format, FORMATS)
        if self.x and not (self.plot or self.report):
            raise usage("--x requires --plot FILE or --report FILE")
        if self.trials and self.only_matrix:
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
        check_outputs(outputs, inputs)

    def write(self, findings: SweepSummary, trials: Sequence[Outcome], stderr: Stderr) -> None:
        """Write the files, then what goes to stdout."""
        if self.plot and not findings.datasets:
            stderr.warn(f"there is nothing to draw, so {self.plot} was not written")
        elif self.plot:
            from ahpatron_cli.output.pictures import write_plot

            write_plot(self.plot, findings, self.x)
        if self.report:
            from ahpatron_cli.output.html_report import write_report

            write_report(self.report, findings, self.x)
        if self.out:
            format = format_of_suffix(self.out, self.format)
            if self.trials:
                text = trials_to_text(trials, format)
            else:
                text = findings_to_text(findings, format, only_matrix=self.only_matrix)
            write_atomically(self.out, text)
        if self.trials:
            sys.stdout.write(trials_to_text(trials, self.format))
        else:
            write_findings(findings, self.format, only_matrix=self.only_matrix)


def criterion_of(metric: str, tune_orders: int) -> Criterion:
    """What --metric and --tune-orders ask for."""
    return Criterion(METRICS[one_of("metric", metric, METRICS)], tune_orders)


def warn_of_damaged_lines(stderr: Stderr, path: str, contents: Contents, torn: str) -> None:
    """Name the lines that cannot be used; nothing deletes them, but for a `torn` last one."""
    if contents.torn:
        stderr.warn(f"{path}: the last line {torn}")
    for number, reason in contents.damaged[:MOST_WARNINGS]:
        stderr.warn(f"{path}:{number}: this line is damaged and not used: {reason}")
    if len(contents.damaged) > MOST_WARNINGS:
        stderr.warn(f"{path}: {len(contents.damaged) - MOST_WARNINGS} more lines are damaged")
