"""The tables of a run, for each data file: one row per learner, and one of certificates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING

from ahpatron_cli.numbers import counted, mean_count, orders, percent, seconds
from ahpatron_cli.output.table import (
    BELOW_BASELINE,
    BEST,
    VACUOUS,
    Cell,
    Column,
    Page,
    Table,
    data_facts,
    rate_cell,
    support_text,
)
from ahpatron_cli.records import Report, RunRecord, SummaryRecord, summarise, whole

if TYPE_CHECKING:
    from ahpatron_cli.core.certificates import Certificate

MAX_SHOWN_CLASSES = 20
"""Confusion matrices of more classes are in JSON only."""


@dataclass(frozen=True)
class _Line:
    """One learner over its repeats."""

    summary: SummaryRecord
    runs: Sequence[RunRecord]
    certified: Sequence[Certificate | tuple[str, ...]]

    @property
    def name(self) -> str:
        return self.summary.learner

    def mean(self, name: str) -> float | None:
        """A count or a metric, over the repeats that have it."""
        values = [
            getattr(run, name, getattr(run.counts, name, getattr(run.metrics, name, None)))
            for run in self.runs
        ]
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    @property
    def baseline(self) -> float | None:
        """Mistake rate of always predicting the most frequent label so far, over the repeats."""
        mistakes = self.mean("baseline_mistakes")
        return None if mistakes is None else mistakes / max(self.runs[0].counts.rounds, 1)

    @property
    def below_baseline(self) -> bool:
        return self.baseline is not None and self.summary.mistake_rate_mean > self.baseline

    @property
    def resumed(self) -> bool:
        part = self.runs[0].this_file
        return part is not None and part.rounds < self.runs[0].counts.rounds

    @property
    def certificate(self) -> Certificate | None:
        """That of the largest bound."""
        known = [one for one in self.certified if not isinstance(one, tuple)]
        return max(known, key=lambda one: one.bound, default=None)


def _mean_column(
    heading: str,
    name: str,
    priority: int,
    text: Callable[[float], str] = mean_count,
    *,
    zero: bool = True,
) -> Column[_Line]:
    """The means of a count or a metric; unless `zero`, a mean of 0 is not shown."""

    def cell(line: _Line) -> str | None:
        mean = line.mean(name)
        return None if mean is None or not (mean or zero) else text(mean)

    return Column(heading, cell, priority)


_LEARNER: Column[_Line] = Column("Learner", lambda line: line.name, left=True)
_METRICS = (
    _mean_column("Precision %", "precision", 1, percent),
    _mean_column("Recall %", "recall", 1, percent),
    _mean_column("F1 %", "f1", 1, percent),
    _mean_column("Balanced error %", "balanced_error", 1, percent),
    _mean_column("Kappa", "kappa", 1, "{:.4f}".format),
    _mean_column("AUC", "auc", 1, "{:.4f}".format),
    _mean_column("Log loss", "log_loss", 1, "{:.4f}".format),
)


def run_page(reports: Sequence[Report]) -> Page:
    """One table per data file; after it those of classes, metrics and certificates, if any."""
    tables, uncertified = [], []
    for report in reports:
        certified = dict(zip(map(id, report.runs), report.certified or (), strict=False))
        lines = [
            _Line(
                summarise(runs), runs, [certified[id(one)] for one in runs if id(one) in certified]
            )
            for runs in report.by_learner()
        ]
        tables.append(_run_table(report, lines))
        if 2 < len(report.data.labels) <= MAX_SHOWN_CLASSES:
            tables += [_confusion_table(report, line) for line in lines]
        if any(run.metrics for run in report.runs):
            tables.append(_metrics_table(report, lines))
        if any(line.certificate for line in lines):
            tables.append(_certificate_table(report, lines))
        for line in lines:
            missing = [one for one in line.certified if isinstance(one, tuple)]
            which = f" ({len(missing)} of {len(line.runs)} repeats)" if line.runs[1:] else ""
            uncertified += [f"{line.name}{which}: {why}" for why in next(iter(missing), ())]
    return Page(tables, "Not certified:" if uncertified else "", uncertified)


def _over(what: str, report: Report, lines: Sequence[_Line]) -> str:
    """`; mean over 10 permutations`, if there are several repeats."""
    repeats = max((len(line.runs) for line in lines), default=0)
    return f"; {what} {orders(repeats, report.shuffled)}" if repeats > 1 else ""


def _run_table(report: Report, lines: Sequence[_Line]) -> Table:
    resumed = any(line.resumed for line in lines)
    title = data_facts(report.data) + _over("mean ± sd over", report, lines)
    if resumed:
        title += f"; {counted(max(line.runs[0].counts.rounds for line in lines), 'round')} in all"
    if report.runs and report.runs[0].unlabelled:
        title += f"; {counted(report.runs[0].unlabelled, 'row')} without a label"
    if lines and lines[0].baseline is not None:
        title += f"; baseline {percent(lines[0].baseline)} %"
    lowest = min((line.summary.mistake_rate_mean for line in lines), default=0.0)

    def rate(line: _Line) -> Cell:
        mean = line.summary.mistake_rate_mean
        marks = BEST if mean == lowest and len(lines) > 1 else ""  # none is best without a rival
        marks += BELOW_BASELINE if line.below_baseline else ""
        return rate_cell(mean, line.summary.mistake_rate_sd, marks)

    def this_file(line: _Line) -> str | None:
        part = line.runs[0].this_file
        return percent(part.mistake_rate) if part and line.resumed else None

    def recent(line: _Line) -> str | None:
        rates = [run.window.mistake_rate for run in line.runs if run.window]
        return percent(fmean(rates)) if rates else None

    window = max((run.window.rounds for run in report.runs if run.window), default=0)
    columns: list[Column[_Line]] = [
        _LEARNER,
        Column("AMR %", rate),
        Column("This file %", this_file, 1),
        Column(f"Last {window:,} %", recent, 1),
        _mean_column("|M_T|", "mistakes", 4),
        _mean_column("|N_T|", "margin_updates", 5),
        Column("Support", lambda line: support_text(line.summary), 2),
        _mean_column("Halvings", "halvings", 7),
        _mean_column("ζ̂", "zeta", 8, "{:.4f}".format),
        _mean_column("Unlabelled", "unlabelled", 6, zero=False),
        _mean_column("Restarts", "restarts", 6, zero=False),
        _mean_column("Metric changes", "metric_changes", 6, zero=False),
        _mean_column("Seconds", "seconds", 3, seconds),
    ]
    notes = []
    if any(line.below_baseline for line in lines) and all(one.name != "metron" for one in lines):
        notes.append("Worse than the baseline: try `-l metron`, which needs no σ and no scaling.")
    several = len(report.data.labels) > 2
    if several and any(one.summary.params.get("multiclass") != "shared" for one in lines):
        notes.append("One learner per class: support is the largest; |N_T| and halvings are sums.")
    return Table("run", report.data.path, title, columns, lines, notes)


def _confusion_table(report: Report, line: _Line) -> Table:
    """Rounds by true class (rows) and predicted class (columns), summed over the repeats."""
    names = [str(whole(label)) for label in line.runs[0].classes or ()]
    matrices = [run.counts.confusion or () for run in line.runs]
    rows = [
        [name, *(str(sum(entries)) for entries in zip(*rows, strict=True))]
        for name, *rows in zip(names, *matrices, strict=True)
    ]
    title = f"confusion of {line.name}; rows are true, columns predicted labels"
    columns: list[Column[list[str]]] = [
        Column(name, itemgetter(at), priority=min(at, 1), left=not at)
        for at, name in enumerate(["Label", *names])
    ]
    title += _over("sum over", report, [line])
    return Table(f"confusion-{line.name}", report.data.path, title, columns, rows)


def _metrics_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Means over the repeats."""
    title = "metrics" if len(report.data.labels) > 2 else "metrics of label +1"
    title += _over("mean over", report, lines)
    return Table("metrics", report.data.path, title, [_LEARNER, *_METRICS], lines)


def _certificate_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Mistakes made and mistakes allowed; of several repeats, those of the largest bound."""

    def column(
        heading: str, priority: int, text: Callable[[Certificate], str | Cell], left: bool = False
    ) -> Column[_Line]:
        return Column(
            heading, lambda one: one.certificate and text(one.certificate), priority, left
        )

    counted = {"mistakes": "|M_T|", "failures": "|M'_T|"}
    columns = [
        _LEARNER,
        column("Count", 5, lambda one: counted[one.counts], left=True),
        column("Made", 0, lambda one: str(one.count)),
        column(
            "Bound", 0, lambda one: Cell(str(math.ceil(one.bound)), None, VACUOUS * one.vacuous)
        ),
        column("Trivial", 1, lambda one: str(one.trivial)),
        column("By", 2, lambda one: one.theorem, left=True),
        column("Comparator f", 4, lambda one: one.comparator, left=True),
        column("L_T(f)", 3, lambda one: f"{one.loss:.1f}"),
        column("‖f‖", 3, lambda one: f"{one.norm:.2f}"),
    ]
    notes = (
        "The theorem guarantees Made <= Bound. Made cannot exceed Trivial in any case.",
        "|M'_T| counts the rounds with y f(x) at most 0; all mistakes are among them.",
    )
    title = "certified" + _over("the largest bound of", report, lines)
    return Table("certificates", report.data.path, title, columns, lines, notes)
