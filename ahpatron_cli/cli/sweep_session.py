"""Steps of `ahpatron sweep` and `ahpatron report`: run missing trials, warn about results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from ahpatron_cli.atomic import exists
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import usage
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.records import Outcome, grouped
from ahpatron_cli.runner import near_tie_warning
from ahpatron_cli.settings import Reporting
from ahpatron_cli.sweep.estimate import estimated_time
from ahpatron_cli.sweep.grid_ends import grid_ends
from ahpatron_cli.sweep.plan import Search, learner_and_data
from ahpatron_cli.sweep.results_file import Contents, ResultsFile, read_results
from ahpatron_cli.sweep.statistics import FEWEST
from ahpatron_cli.sweep.summary import (
    METRICS,
    Criterion,
    DatasetSummary,
    Metric,
    SweepSummary,
    varied_numbers,
)
from ahpatron_cli.sweep.trial import Trial

MOST_ENDS = 6
"""Number of ends of grids that a warning names."""
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
Runner: TypeAlias = Callable[[Sequence[Trial]], Iterator[Outcome | None]]
"""A function that runs trials and yields outcomes as they finish, and None while waiting."""


def criterion_of(reporting: Reporting) -> Criterion:
    """The criterion given by --best-by and --tune-repeats."""
    return Criterion(METRICS[reporting.best_by], reporting.tune_repeats)


def parse_shard(text: str | None) -> tuple[int, int]:
    """Parse the value `I/N` of --shard, I from 1 to N; (1, 1) if not given."""
    if text is None:
        return 1, 1
    found = _SHARD.fullmatch(text)
    if found:
        part = int(found[1])
        parts = int(found[2])
        if 1 <= part <= parts:
            return part, parts
    raise usage(f"--shard takes I/N with I from 1 to N, got {text!r}", "for example 1/4")


def check_plot_of(trials: Sequence[Trial], reporting: Reporting) -> None:
    """Refuse --x and --panels if a plot of these trials cannot have them, before they are run."""
    from ahpatron_cli.output.pictures import check_axis, check_panels, panels_of

    names: dict[str, None] = {}
    for group in grouped(trials, learner_and_data):
        varied = varied_numbers([trial.params for trial in group])
        names.update(dict.fromkeys(varied))
    axes = list(names)
    check_axis(reporting.x, axes)
    if reporting.plot:
        learners = {trial.learner for trial in trials}
        data = {trial.data.identity for trial in trials}
        ranked = min(len(learners), len(data)) >= FEWEST
        check_panels(panels_of(reporting.panels), ranked=ranked, axes=axes)


def stored_trials(path: str | None) -> Mapping[str, Outcome]:
    """The trials in a results file, which need not exist."""
    if path is None or not exists(path):
        return {}
    return read_results(path).trials


def run_missing(search: Search, results: ResultsFile, run: Runner, stderr: Stderr) -> list[Outcome]:
    """Run and store the trials missing from the results file; return all outcomes."""
    known = results.contents.trials
    attempted = set[str]()
    done = _done(search, results)
    if done:
        stderr.note(f"{done} already")
    try:
        while left := _left(search, known, attempted):
            _run(left, search.criterion.metric, results, run=run, stderr=stderr)
            attempted.update(trial.id for trial in left)
    except BaseException:  # also a signal or a full disk
        stored = _done(search, results) or "no trial was stored"
        stderr.note(f"{stored}; the same command continues from there")
        raise
    outcomes = []
    for trial in search.needed(known):
        outcome = known.get(trial.id)
        if outcome is not None:
            outcomes.append(trial.stored(outcome))
    return outcomes


def _done(search: Search, results: ResultsFile) -> str:
    """How many trials are stored, as text; empty if there are none."""
    known = results.contents.trials
    needed = search.needed(known)
    missing = search.missing(needed, known)
    count = len(needed) - len(missing)
    if not count:
        return ""
    return f"{count} of {len(needed)} trials are in {results.path}"


def _left(search: Search, known: Mapping[str, Outcome], attempted: set[str]) -> list[Trial]:
    """Trials that are missing and were not attempted by this command."""
    needed = search.needed(known)
    missing = search.missing(needed, known)
    return [trial for trial in missing if trial.id not in attempted]


def _run(
    trials: Sequence[Trial], metric: Metric, results: ResultsFile, *, run: Runner, stderr: Stderr
) -> None:
    """Run and store trials, with a progress line that names the best learner so far."""
    best = _Best(metric)
    done = 0
    failed = 0
    with stderr.progress(len(trials), "sweep") as show:
        for outcome in run(trials):
            if outcome is not None:
                results.add(outcome)
                done += 1
                failed += outcome.run is None
                best.add(outcome)
                stderr.detail(_detail(outcome))
            count = f"{done}/{len(trials)} trials"
            if failed:
                count += f", {failed} failed"
            show(done, count, best.text)


def _detail(outcome: Outcome) -> str:
    """A line of `-v` about an outcome."""
    shown = outcome.error
    if outcome.run is not None:
        shown = f"{percent(outcome.run.mistake_rate)} %"
    name = Path(outcome.data.path).name
    permutation = f"permutation {outcome.repeat}"
    return f"{name}, {outcome.learner}, {permutation}: {shown}"


class _Best:
    """The learner with the best value of a metric so far."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._values: dict[str, Fraction] = {}
        self.text = ""
        """Learner and value, for the progress line."""

    def add(self, outcome: Outcome) -> None:
        """Take an outcome into account; failed ones have no value."""
        if outcome.run is None:
            return
        value = self._metric.of(outcome.run)
        if value is None:
            return
        best = min
        if self._metric.larger_is_better:
            best = max
        values = self._values
        before = values.get(outcome.learner, value)
        values[outcome.learner] = best(value, before)
        learner = best(values, key=values.__getitem__)
        best_value = float(values[learner])
        shown = self._metric.text(best_value)
        self.text = f"best {self._metric.short} {shown} {learner}"


def print_estimate(search: Search, known: Mapping[str, Outcome], jobs: int) -> None:
    """Print the number of trials, done and left, and an estimate of the remaining time.

    For --search halving, the trials of the whole grid are counted.
    """
    whole = replace(search, halving=False)
    trials = whole.needed(known, guess=True)
    left = search.missing(trials, known)
    total = counted(len(trials), "trial")
    done = len(trials) - len(left)
    missing = len(left)
    print(f"{total}: {done:,} done, {missing:,} left")
    if not left:
        return
    estimate = estimated_time(left)
    if estimate is None:
        return
    seconds = estimate.seconds / jobs
    time = f"{seconds:.1f} s"
    if seconds >= 600:
        time = f"{seconds / 60:.0f} min"
    about = "about"
    if estimate.unknown:
        about = "at least"
    print(f"{about} {time} with --jobs {jobs}, judging by the first rounds of some trials")
    if estimate.unknown:
        listed = ", ".join(estimate.unknown)
        print(f"may take many times as long, as S grows with the rounds: {listed}")


def warn_of_results(summary: SweepSummary, outcomes: Sequence[Outcome], stderr: Stderr) -> None:
    """Warn of near ties and of failed trials, which some formats omit."""
    if summary.failed:
        failed = len(summary.failed)
        total = counted(failed + summary.trials, "trial")
        first = summary.failed[0]
        which = f"{first.learner} on {first.data.path}"
        text = f"{failed:,} of {total} failed"
        stderr.warn(f"{text}; the first, {which}: {first.error}")
    best = set[object]()
    for data in summary.datasets:
        best.update(setting.key for setting in data.best)
    chosen = [outcome for outcome in outcomes if outcome.key in best]
    runs = [outcome.run for outcome in chosen if outcome.run]
    for warning in near_tie_warning(runs):
        stderr.warn(warning)


def warn_of_unequal_trials(summary: SweepSummary, stderr: Stderr) -> None:
    """Warn, even with --quiet, of missing trials, and of several machines or editions.

    Some formats have no room for footnotes.
    """
    names: dict[str, list[str]] = {}
    for found in summary.datasets:
        _warn_of_missing_trials(found, stderr)
        if len(found.timed_on) > 1:
            machines = "; ".join(found.timed_on)
            stderr.warn(f"{found.name}: seconds of several machines are averaged: {machines}")
        for one in found.settings:
            editions = names.setdefault(one.learner, [])
            if one.name not in editions:
                editions.append(one.name)
    for learner, editions in names.items():
        if len(editions) > 1:
            listed = ", ".join(editions)
            stderr.warn(f"{learner} was run in several versions: {listed}")


def warn_of_grid_ends(summary: SweepSummary, stderr: Stderr) -> None:
    """Warn of best values that lie at the end of their grid, and so may not be the best."""
    ends: list[str] = []
    for found in summary.datasets:
        ends += map(str, grid_ends(found))
    if not ends:
        return
    shown = "; ".join(ends[:MOST_ENDS])
    if len(ends) > MOST_ENDS:
        shown += f"; and {len(ends) - MOST_ENDS} more"
    stderr.warn(f"best at the end of its grid, so a wider grid may be better: {shown}")


def _warn_of_missing_trials(found: DatasetSummary, stderr: Stderr) -> None:
    """Warn of settings on a data set that were not run on all permutations."""
    lacking = [one for one in found.settings if one.missing]
    few = [one for one in lacking if not one.compared]
    if lacking:
        total = counted(len(found.settings), "setting")
        some = f"{len(lacking)} of {total}"
        text = f"{found.name}: {some} without all permutations; compared on those that all have"
        if few:
            text += f", except {len(few)} with too few"
        stderr.warn(text)
    if found.unreported:
        few_orders = counted(found.criterion.tune_orders, "permutation")
        left_out = ", ".join(found.unreported)
        why = f"with only the {few_orders} to choose on"
        stderr.warn(f"{found.name}: left out, {why}: {left_out}")


def note_other_editions(
    known: Mapping[str, Outcome], outcomes: Sequence[Outcome], path: str, stderr: Stderr
) -> None:
    """Note trials in the results file of other versions of this sweep's own learners."""
    used = {trial.id for trial in outcomes}
    stored = known.values()
    unused = [trial for trial in stored if trial.id not in used]
    editions = {trial.learner: trial.edition for trial in outcomes}
    for learner, edition in sorted(editions.items()):
        others = [trial for trial in unused if trial.learner == learner]
        count = sum(trial.edition != edition for trial in others)
        if count:
            trials = counted(count, "trial")
            text = f"{path} also has {trials} of another version of {learner}, not used here"
            stderr.note(f"{text}; `ahpatron report` shows both")


def warn_of_damaged_lines(stderr: Stderr, path: str, contents: Contents) -> None:
    """Warn, even with --quiet, of damaged lines and of an incomplete last line: lost results."""
    if contents.torn:
        lost = counted(contents.torn, "byte")
        stderr.warn(f"{path}: the last line is torn: {lost} not used")
    if contents.damaged:
        first = contents.damaged[0]
        text = f"{path}:{first}: this line is damaged and not used"
        others = len(contents.damaged) - 1
        if others:
            text += f" and {others} more"
        stderr.warn(text)
