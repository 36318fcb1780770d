"""The tables of a run, for each data file: one row per learner, and one of certificates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ahpatron_cli.numbers import assignment, counted, mean_count, orders, percent, seconds
from ahpatron_cli.output.table import (
    BELOW_BASELINE,
    BEST,
    VACUOUS,
    Cell,
    Column,
    Field,
    Page,
    Row,
    Table,
    data_facts,
    optional,
    rate_cell,
    support_cell,
    table_of,
)
from ahpatron_cli.records import Report, RunRecord, SummaryRecord, ThisFile, whole
from ahpatron_cli.sweep.summary import METRICS

if TYPE_CHECKING:
    from ahpatron_cli.core.certificates import Certificate

MAX_SHOWN_CLASSES = 20
"""Confusion matrices of more classes are in JSON only."""
_SHOWN_METRICS = ("precision", "recall", "f1", "balanced_error", "kappa", "auc")
_COUNTED = {"mistakes": "|M_T|", "failures": "|M'_T|"}
_IF_ANY = {"unlabelled": "Unlabelled", "restarts": "Restarts", "metric_changes": "Metric changes"}
"""Counts that have a column only where one of them is not 0."""
_CERTIFICATE_NOTES = (
    "The theorem guarantees Made <= Bound. Made cannot exceed Trivial in any case.",
    "|M'_T| counts the rounds with y f(x) at most 0; all mistakes are among them.",
)
_PER_CLASS_NOTE = (
    "one learner per class; support and budget are those of one, |N_T| and halvings sums over all."
)
_SHARED_NOTE = "support and budget are those of all classes together."


@dataclass(frozen=True)
class _Line:
    """One learner and setting over its repeats."""

    name: str
    summary: SummaryRecord
    runs: Sequence[RunRecord]
    certified: Sequence[Certificate | tuple[str, ...]]

    def mean(self, name: str) -> float | None:
        """A count or a metric, over the repeats that have it."""
        values = [getattr(run, name, getattr(run.metrics, name, None)) for run in self.runs]
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    @property
    def baseline_rate(self) -> float | None:
        """Mistake rate of always predicting the most frequent label so far, over the repeats."""
        mistakes = self.mean("baseline_mistakes")
        return None if mistakes is None else mistakes / max(self.runs[0].rounds, 1)

    @property
    def this_file(self) -> ThisFile | None:
        """The part of a resumed run that belongs to this file; None if that is all of it."""
        part = self.runs[0].this_file
        return part if part and part.rounds < self.runs[0].rounds else None

    @property
    def certificates(self) -> list[Certificate]:
        return [one for one in self.certified if not isinstance(one, tuple)]


def _mean_field(
    heading: str, name: str, priority: int, text: Callable[[float], str] = mean_count
) -> Field[_Line]:
    return Column(name, heading, priority=priority), lambda line: optional(line.mean(name), text)


_LEARNER: Field[_Line] = Column("learner", "Learner", left=True), lambda line: Cell(line.name)


def run_page(reports: Sequence[Report]) -> Page:
    """One table per data file; after it one of certificates, if these were computed."""
    tables, uncertified = [], []
    for report in reports:
        lines = _lines(report)
        tables.append(_run_table(report, lines))
        if 2 < len(report.data.labels) <= MAX_SHOWN_CLASSES:
            tables += [_confusion_table(report, line) for line in lines]
        if any(run.metrics for run in report.runs):
            tables.append(_metrics_table(report, lines))
        if any(line.certificates for line in lines):
            tables.append(_certificate_table(report, lines))
        uncertified += [reason for line in lines for reason in _uncertified(line)]
    return Page(tables, "Not certified:" if uncertified else "", uncertified)


def _lines(report: Report) -> list[_Line]:
    """In the order in which learners and settings were chosen."""
    groups = report.by_learner()
    certified = dict(zip(map(id, report.runs), report.certified or (), strict=False))
    of_groups = [[certified[id(run)] for run in runs if id(run) in certified] for runs in groups]
    return [
        _Line(_name(runs[0], groups), summary, runs, own)
        for runs, summary, own in zip(groups, report.summary(), of_groups, strict=True)
    ]


def _name(run: RunRecord, groups: Sequence[Sequence[RunRecord]]) -> str:
    """The learner; if it was run with several settings, followed by what differs."""
    rivals = [other[0].params for other in groups if other[0].learner == run.learner]
    differing = [
        assignment(name, value)
        for name, value in run.params.items()
        if any(params.get(name) != value for params in rivals)
    ]
    return f"{run.learner} ({', '.join(differing)})" if differing else run.learner


def _run_table(report: Report, lines: Sequence[_Line]) -> Table:
    title = data_facts(report.data)
    repeats = max((line.summary.repeats for line in lines), default=0)
    if repeats > 1:
        title += f"; mean ± sd over {orders(repeats, report.shuffled)}"
    resumed = any(line.this_file for line in lines)
    if resumed:
        title += f"; {counted(max(line.runs[0].rounds for line in lines), 'round')} in all"
    baseline = lines[0].baseline_rate if lines else None
    if report.runs and report.runs[0].unlabelled:
        title += f"; {counted(report.runs[0].unlabelled, 'row')} without a label"
    if baseline is not None:
        title += f"{' with' if resumed else ';'} baseline {percent(baseline)} %"
    windows = [run.window.rounds for run in report.runs if run.window]
    # the lowest rate as shown; nothing is best without a rival
    lowest = percent(min(line.summary.mistake_rate_mean for line in lines)) if lines[1:] else None

    def rate(line: _Line) -> Cell:
        mean, own = line.summary.mistake_rate_mean, line.baseline_rate
        marks = BEST if percent(mean) == lowest else ""
        marks += BELOW_BASELINE if own is not None and mean > own else ""
        return rate_cell(mean, line.summary.mistake_rate_sd, marks)

    fields: list[Field[_Line]] = [
        _LEARNER,
        (Column("rate", "AMR %"), rate),
        (Column("recent", f"Last {max(windows, default=0):,} %", priority=1), _recent_rate),
        _mean_field("|M_T|", "mistakes", 4),
        _mean_field("|N_T|", "margin_updates", 5),
        (Column("support", "Support", priority=2), lambda line: support_cell(line.summary)),
        _mean_field("Halvings", "halvings", 7),
        _mean_field("ζ̂", "zeta", 8, "{:.4f}".format),
        *(
            _mean_field(heading, name, 6)
            for name, heading in _IF_ANY.items()
            if any(getattr(run, name, None) for run in report.runs)
        ),
        _mean_field("Seconds", "seconds", 3, seconds),
    ]
    notes = []
    worse = any(line.summary.mistake_rate_mean > (line.baseline_rate or 1.0) for line in lines)
    if worse and all(line.summary.learner != "metron" for line in lines):
        notes.append("Worse than the baseline: try `-l metron`, which needs no σ and no scaling.")
    if len(report.data.labels) > 2:
        alone = [line.name for line in lines if line.runs[0].params.get("multiclass") != "shared"]
        shared = [line.name for line in lines if line.name not in alone]
        notes += [f"{', '.join(alone)}: {_PER_CLASS_NOTE}"] if alone else []
        notes += [f"{', '.join(shared)}: {_SHARED_NOTE}"] if shared else []
    rows: list[Row] = []
    for line in lines:
        row: Row = {column.key: cell(line) for column, cell in fields}
        if part := line.this_file:
            figures = rate_cell(part.mistake_rate), Cell(mean_count(part.mistakes))
            names = (Cell(f"{line.name}, {which}") for which in ("this file", "in all"))
            rows.append({"learner": next(names), "rate": figures[0], "mistakes": figures[1]})
            row = {**row, "learner": next(names)}
        rows.append(row)
    columns = [column for column, _ in fields]
    return Table("run", report.data.path, title, columns, rows, notes)


def _recent_rate(line: _Line) -> Cell | None:
    """Of the last rounds; mean over the repeats."""
    rates = [run.window.mistake_rate for run in line.runs if run.window]
    return Cell(percent(fmean(rates))) if rates else None


def _confusion_table(report: Report, line: _Line) -> Table:
    """Rounds by true class (rows) and predicted class (columns), summed over the repeats."""
    names = [str(whole(label)) for label in line.runs[0].classes or ()]
    matrices = [run.confusion or () for run in line.runs]
    sums = [
        [sum(entries) for entries in zip(*rows, strict=True)]
        for rows in zip(*matrices, strict=True)
    ]
    title = f"confusion of {line.name}; rows are true, columns predicted labels"
    if len(line.runs) > 1:
        title += f"; sum over {orders(len(line.runs), report.shuffled)}"
    columns = [Column("", "Label", left=True), *(Column(name, name, priority=1) for name in names)]
    rows = [
        {"": Cell(name), **{other: Cell(str(n)) for other, n in zip(names, row, strict=True)}}
        for name, row in zip(names, sums, strict=True)
    ]
    return Table(f"confusion-{line.summary.learner}", report.data.path, title, columns, rows)


def _metrics_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Means over the repeats."""
    title = "metrics" if len(report.data.labels) > 2 else "metrics of label +1"
    if len(report.runs) > len(lines):
        title += f"; mean over {orders(max(len(line.runs) for line in lines), report.shuffled)}"
    metrics = [METRICS[name] for name in _SHOWN_METRICS]
    fields = [_LEARNER, *(_mean_field(one.head, one.name, 1, one.text) for one in metrics)]
    error = max((line.mean("auc_error") or 0.0 for line in lines), default=0.0)
    notes = [f"AUC was computed in bounded memory: off by at most {error:.1g}."] if error else []
    name = report.data.path
    return table_of(lines, fields, kind="metrics", name=name, title=title, notes=notes)


def _certificate_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Mistakes made and mistakes allowed; of several repeats, those of the largest bound."""
    title = "certified"
    repeats = max(len(line.certified) for line in lines)
    if repeats > 1:
        title += f"; the largest bound of {orders(repeats, report.shuffled)}"
    of_certificate: list[tuple[str, bool, int, Callable[[Certificate], str]]] = [
        ("Count", True, 5, lambda one: _COUNTED[one.counts]),
        ("Made", False, 0, lambda one: str(one.count)),
        ("Bound", False, 0, lambda one: str(math.ceil(one.bound))),
        ("Trivial", False, 1, lambda one: str(one.trivial)),
        ("By", True, 2, lambda one: one.theorem),
        ("Comparator f", True, 4, lambda one: one.comparator),
        ("L_T(f)", False, 3, lambda one: f"{one.loss:.1f}"),
        ("‖f‖", False, 3, lambda one: f"{one.norm:.2f}"),
    ]
    rows: list[Row] = []
    for line in lines:
        row = {"learner": Cell(line.name)}
        if line.certificates:
            worst = max(line.certificates, key=lambda one: one.bound)
            row |= {head: Cell(text(worst)) for head, _, _, text in of_certificate}
            if worst.vacuous:
                row["Bound"] = Cell(row["Bound"].text, marks=VACUOUS)
        rows.append(row)
    columns = [Column(head, head, left, priority) for head, left, priority, _ in of_certificate]
    path = report.data.path
    notes = _CERTIFICATE_NOTES
    return Table("certificates", path, title, [_LEARNER[0], *columns], rows, notes)


def _uncertified(line: _Line) -> list[str]:
    """Why there is no certificate; of several repeats, the reasons of the first one without."""
    missing = [one for one in line.certified if isinstance(one, tuple)]
    if not missing:
        return []
    repeats = len(line.certified)
    which = f" ({len(missing)} of {repeats} repeats)" if repeats > 1 else ""
    return [f"{line.name}{which}: {reason}" for reason in missing[0]]
