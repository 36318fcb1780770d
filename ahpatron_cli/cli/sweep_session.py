"""Steps of `ahpatron sweep` and `ahpatron report`: run missing trials, warn, write outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.output.formats import FORMATS, summary_to_text, trials_to_text, write
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.records import Outcome, grouped
from ahpatron_cli.runner import near_tie_warning
from ahpatron_cli.sweep.plan import SHORT_ROUNDS, Search, estimated_seconds, learner_and_data
from ahpatron_cli.sweep.results_file import Contents, ResultsFile
from ahpatron_cli.sweep.summary import (
    METRICS,
    Criterion,
    Metric,
    SweepSummary,
    varied_numbers,
)
from ahpatron_cli.sweep.trial import Trial

Runner: TypeAlias = Callable[[Sequence[Trial]], Iterator[Outcome | None]]
"""A function that runs trials and yields outcomes as they finish, and None while waiting."""


class SummaryOutput(Struct, frozen=True):
    """Outputs of a summary: stdout in one format, and files."""

    format: str
    plot: str | None
    report: str | None
    x: str | None
    """The parameter on the x axis of plots."""
    matrix: bool
    """Whether to show only the matrix."""
    out: str | None = None
    trials: bool = False
    """Whether to show one row per trial in place of tables."""

    def check(self, inputs: Sequence[str], more: Mapping[str, str | None]) -> None:
        """Check all output paths before a long run; `more` are further outputs, by option."""
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

    def write(self, summary: SweepSummary, trials: Sequence[Outcome], stderr: Stderr) -> None:
        """Write the output files, then the summary to stdout."""
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
            write_atomically(self.out, self._text(summary, trials, format))
        write(lambda terminal: self._text(summary, trials, self.format, terminal), self.format)

    def _text(
        self,
        summary: SweepSummary,
        trials: Sequence[Outcome],
        format: str,
        terminal: Terminal | None = None,
    ) -> str:
        if self.trials:
            return trials_to_text(trials, format)
        return summary_to_text(summary, format, terminal, only_matrix=self.matrix)


def criterion_of(metric: str, tune_orders: int) -> Criterion:
    """The criterion given by --metric and --tune-orders."""
    return Criterion(METRICS[one_of("metric", metric, METRICS)], tune_orders)


def parse_shard(text: str | None) -> tuple[int, int]:
    """Parse the value `I/N` of --shard, I from 1 to N; (1, 1) if not given."""
    part, slash, parts = (text or "1/1").partition("/")
    digits = slash and all(word.isascii() and word.isdigit() for word in (part, parts))
    if not digits or not 1 <= int(part) <= int(parts) < 10**9:
        raise usage(f"--shard takes I/N with I from 1 to N, got {text!r}", "for example 1/4")
    return int(part), int(parts)


def check_axis_of(trials: Sequence[Trial], x: str) -> None:
    """Refuse a parameter for the x axis that is not varied in these trials."""
    from ahpatron_cli.output.pictures import check_axis

    groups = grouped(trials, learner_and_data)
    names = (name for group in groups for name in varied_numbers([one.params for one in group]))
    check_axis(x, list(dict.fromkeys(names)))


def run_missing(search: Search, results: ResultsFile, run: Runner, stderr: Stderr) -> list[Outcome]:
    """Run and store the trials missing from the results file; return all outcomes."""
    known, attempted = results.contents.trials, set[str]()

    def done() -> str:
        needed = search.needed(known)
        count = len(needed) - len(search.missing(needed, known))
        return f"{count} of {len(needed)} trials are in {results.path}" if count else ""

    if stored := done():
        stderr.note(f"{stored} already")
    try:
        while left := [
            trial
            for trial in search.missing(search.needed(known), known)
            if trial.id not in attempted
        ]:
            _run(left, search.criterion.metric, results, run, stderr)
            attempted.update(trial.id for trial in left)
    except BaseException:  # also a signal or a full disk
        stderr.note(f"{done() or 'no trial was stored'}; the same command continues from there")
        raise
    return [trial.stored(known[trial.id]) for trial in search.needed(known) if trial.id in known]


def _run(
    trials: Sequence[Trial], metric: Metric, results: ResultsFile, run: Runner, stderr: Stderr
) -> None:
    best, values = max if metric.larger_is_better else min, dict[str, Any]()
    done, failed, news = 0, 0, ""
    with stderr.progress(len(trials), "sweep") as show:
        for outcome in run(trials):
            if outcome is not None:
                results.add(outcome)
                done, failed = done + 1, failed + (outcome.run is None)
                value, shown = None, outcome.error
                if outcome.run is not None:
                    rate = percent(outcome.run.mistake_rate)
                    value, shown = metric.of(outcome.run), f"{rate} %"
                name = Path(outcome.data.path).name
                stderr.detail(f"{name}, {outcome.learner}, permutation {outcome.repeat}: {shown}")
                if value is not None:
                    values[outcome.learner] = best(value, values.get(outcome.learner, value))
                    name = best(values, key=values.__getitem__)
                    news = f"best {metric.short} {metric.text(values[name])} {name}"
            show(done, f"{done}/{len(trials)} trials" + f", {failed} failed" * bool(failed), news)


def print_estimate(search: Search, known: Mapping[str, Outcome], jobs: int) -> None:
    """Print the number of trials, done and left, and an estimate of the remaining time.

    For a search in stages, the largest possible number of trials is counted.
    """
    trials = replace(search, criterion=Criterion(), halving=False).needed({})
    left = search.missing(trials, known)
    print(f"{counted(len(trials), 'trial')}: {len(trials) - len(left):,} done, {len(left):,} left")
    if left and (seconds := estimated_seconds(left)) is not None:
        time = (
            f"{seconds / jobs:.1f} s" if seconds < 600 * jobs else f"{seconds / jobs / 60:.0f} min"
        )
        judged = f"the first {SHORT_ROUNDS:,} rounds of one trial of each learner"
        print(f"about {time} with --jobs {jobs}, judging by {judged}")


def warn_of_results(summary: SweepSummary, outcomes: Sequence[Outcome], stderr: Stderr) -> None:
    """Warn of near ties and of failed trials, which some formats omit."""
    if summary.failed:
        trial, total = summary.failed[0], len(summary.failed) + summary.trials
        stderr.warn(
            f"{len(summary.failed):,} of {counted(total, 'trial')} failed; the first, "
            f"{trial.learner} on {trial.data.path}: {trial.error}"
        )
    best = {setting.key for data in summary.datasets for setting in data.best}
    runs = (one.run for one in outcomes if one.run and one.key in best)
    for warning in near_tie_warning(runs):
        stderr.warn(warning)


def warn_of_unequal_trials(summary: SweepSummary, stderr: Stderr) -> None:
    """Warn, even with --quiet, of trials that are missing, and of several editions.

    Some formats have no room for footnotes.
    """
    for found in summary.datasets:
        lacking = [one for one in found.settings if one.missing]
        few = [one for one in lacking if not one.compared]
        if lacking:
            some = f"{len(lacking)} of {counted(len(found.settings), 'setting')}"
            text = f"{found.name}: {some} without all permutations; compared on those that all have"
            if few:
                text += f", except {len(few)} with too few"
            stderr.warn(text)
        if found.unreported:
            tune = f"only the {counted(found.criterion.tune_orders, 'permutation')} to choose on"
            stderr.warn(f"{found.name}: left out, with {tune}: {', '.join(found.unreported)}")
    names: dict[str, dict[str, None]] = {}
    for found in summary.datasets:
        for one in found.settings:
            names.setdefault(one.learner, {})[one.name] = None
    for learner, shown in names.items():
        if len(shown) > 1:
            stderr.warn(f"{learner} was run in several versions: {', '.join(shown)}")


def note_other_editions(
    known: Mapping[str, Outcome], outcomes: Sequence[Outcome], path: str, stderr: Stderr
) -> None:
    """Note trials in the results file of other versions of this sweep's own learners."""
    used = {trial.id for trial in outcomes}
    editions = {trial.learner: trial.edition for trial in outcomes}
    for learner, edition in sorted(editions.items()):
        others = [
            trial
            for trial in known.values()
            if trial.learner == learner and trial.edition != edition and trial.id not in used
        ]
        if others:
            trials = counted(len(others), "trial")
            text = f"{path} also has {trials} of another version of {learner}, not used here"
            stderr.note(f"{text}; `ahpatron report` shows both")


def warn_of_damaged_lines(stderr: Stderr, path: str, contents: Contents) -> None:
    """Warn, even with --quiet, of damaged lines and of an incomplete last line: lost results."""
    if contents.torn:
        stderr.warn(f"{path}: the last line is torn: {counted(contents.torn, 'byte')} not used")
    if contents.damaged:
        more = f" and {len(contents.damaged) - 1} more" * (len(contents.damaged) > 1)
        stderr.warn(f"{path}:{contents.damaged[0]}: this line is damaged and not used{more}")
