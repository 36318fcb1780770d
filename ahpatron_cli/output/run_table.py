"""Tables of a run, for each data file: learners, classes, metrics and certificates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
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
    support_text,
)
from ahpatron_cli.records import Report, RunRecord

if TYPE_CHECKING:
    from ahpatron_cli.core.certificates import Certificate

MAX_SHOWN_CLASSES = 20
"""Largest number of classes for which the confusion matrix is shown; else JSON only."""


def run_page(reports: Sequence[Report]) -> Page:
    """Page with a table per data file, and tables of classes, metrics and certificates, if any."""
    tables, uncertified = [], Counter[str]()
    for report in reports:
        tables.append(_run_table(report))
        if 2 < len(report.data.labels) <= MAX_SHOWN_CLASSES:
            tables += [_confusion_table(report, runs) for runs in report.by_learner()]
        if any(run.metrics for run in report.runs):
            tables.append(_metrics_table(report))
        if any(not isinstance(one, tuple) for one in report.certified or ()):
            tables.append(_certificate_table(report))
        for run, one in zip(report.runs, report.certified or (), strict=False):
            reasons = one if isinstance(one, tuple) else ()
            uncertified.update(f"{run.learner}: {why}" for why in reasons)
    items = [text + f" ({count} runs)" * (count > 1) for text, count in uncertified.items()]
    return Page(tables, ["Not certified:", *items] if items else [])


def _mean(runs: Sequence[RunRecord], name: str) -> float | None:
    """Mean of a count or metric over the repeats that have it; None if none has."""
    values = (getattr(run, name, getattr(run.metrics, name, None)) for run in runs)
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _means(
    report: Report,
    heading: str,
    name: str,
    priority: int,
    text: Callable[[float], str | None] = mean_count,
) -> Column:
    """Column with the mean of a count or metric, a row per learner."""
    means = [_mean(runs, name) for runs in report.by_learner()]
    return Column(heading, [None if mean is None else text(mean) for mean in means], priority)


def _learners(report: Report) -> Column:
    return Column("Learner", [runs[0].learner for runs in report.by_learner()], left=True)


def _over(what: str, report: Report) -> str:
    """Suffix of a title, such as `; mean over 10 permutations`; empty for a single repeat."""
    repeats = max(map(len, report.by_learner()), default=0)
    return f"; {what} {orders(repeats, report.shuffled)}" if repeats > 1 else ""


def _run_table(report: Report) -> Table:
    groups, summary = report.by_learner(), report.summary()
    lowest = min((line.mistake_rate_mean for line in summary), default=0.0)
    rates, parts, recent, baselines = list[Cell](), list[str | None](), [], list[float | None]()
    for runs, line in zip(groups, summary, strict=True):
        mistakes = _mean(runs, "baseline_mistakes")
        baselines.append(None if mistakes is None else mistakes / max(runs[0].rounds, 1))
        mean, sd = line.mistake_rate_mean, line.mistake_rate_sd
        marks = BEST if mean == lowest and len(groups) > 1 else ""  # not for a single learner
        marks += BELOW_BASELINE if baselines[-1] is not None and mean > baselines[-1] else ""
        rates.append(Cell(percent(mean), None if sd is None else percent(sd), marks))
        part = runs[0].this_file
        resumed = part is not None and 0 < part.rounds < runs[0].rounds
        parts.append(percent(part.mistake_rate) if part and resumed else None)
        known = [run.window.mistake_rate for run in runs if run.window]
        recent.append(percent(fmean(known)) if known else None)
    title = data_facts(report.data) + _over("mean ± sd over", report)
    in_all = max((runs[0].rounds for runs in groups), default=0)
    if in_all > report.data.rounds:
        title += f"; {counted(in_all, 'round')} in all"
    if report.runs and report.runs[0].unlabelled:
        title += f"; {counted(report.runs[0].unlabelled, 'row')} without a label"
    if baselines and baselines[0] is not None:
        title += f"; baseline {percent(baselines[0])} %"
    window = max((run.window.rounds for run in report.runs if run.window), default=0)
    columns = [
        _learners(report),
        Column("AMR %", rates),
        Column("This file %", parts, 1),
        Column(f"Last {window:,} %", recent, 1),
        _means(report, "|M_T|", "mistakes", 4),
        _means(report, "|N_T|", "margin_updates", 5),
        Column("Support", [support_text(line) for line in summary], 2),
        _means(report, "Halvings", "halvings", 7),
        _means(report, "ζ̂", "zeta", 8, "{:.4f}".format),
        _means(report, "Restarts", "restarts", 6, lambda mean: mean_count(mean) if mean else None),
        _means(report, "Metric changes", "metric_changes", 6),
        _means(report, "Seconds", "seconds", 3, seconds),
    ]
    notes = []
    several = len(report.data.labels) > 2
    if several and any(line.params.get("multiclass") != "shared" for line in summary):
        notes.append("One learner per class: support is the largest; |N_T| and halvings are sums.")
    return Table("run", report.data.path, title, columns, notes)


def _confusion_table(report: Report, runs: Sequence[RunRecord]) -> Table:
    """Confusion matrix: rounds by true class (rows) and predicted class, summed over repeats."""
    names = list(report.data.label_names or (str(label) for label in runs[0].classes or ()))
    columns = [Column("Label", names, left=True)]
    for at, name in enumerate(names):
        rows = zip(*(run.confusion or () for run in runs), strict=True)
        columns.append(Column(name, [str(sum(row[at] for row in same)) for same in rows], 1))
    title = f"confusion of {runs[0].learner}; rows are true, columns predicted labels"
    title += f"; sum over {orders(len(runs), report.shuffled)}" if runs[1:] else ""
    return Table(f"confusion-{runs[0].learner}", report.data.path, title, columns)


def _metrics_table(report: Report) -> Table:
    """Table of metrics, as means over the repeats."""
    name = report.data.label_names[-1] if report.data.label_names else "+1"
    title = "metrics" if len(report.data.labels) > 2 else f"metrics of label {name}"
    columns = [
        _learners(report),
        _means(report, "Precision %", "precision", 1, percent),
        _means(report, "Recall %", "recall", 1, percent),
        _means(report, "F1 %", "f1", 1, percent),
        _means(report, "Balanced error %", "balanced_error", 1, percent),
        _means(report, "Kappa", "kappa", 1, "{:.4f}".format),
        _means(report, "AUC", "auc", 1, "{:.4f}".format),
        _means(report, "Log loss", "log_loss", 1, "{:.4f}".format),
    ]
    return Table("metrics", report.data.path, title + _over("mean over", report), columns)


def _certificate_table(report: Report) -> Table:
    """Table of mistakes and their bounds; with several repeats, that of the largest bound."""
    largest: dict[str, Certificate | None] = {}
    for run, one in zip(report.runs, report.certified or (), strict=True):
        before = largest.setdefault(run.learner, None)
        if not isinstance(one, tuple) and (before is None or one.bound > before.bound):
            largest[run.learner] = one
    found = list(largest.values())

    def column(
        heading: str, priority: int, text: Callable[[Certificate], str | Cell], left: bool = False
    ) -> Column:
        return Column(
            heading, [None if one is None else text(one) for one in found], priority, left
        )

    counted = {"mistakes": "|M_T|", "failures": "|M'_T|"}
    columns = [
        Column("Learner", list(largest), left=True),
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
    title = "certified" + _over("the largest bound of", report)
    return Table("certificates", report.data.path, title, columns, notes)
