"""The tables of a run, for each data file: one row per learner, and one of certificates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from ahpatron_cli.numbers import assignment, counted, mean_count, orders, percent, seconds
from ahpatron_cli.output.table import (
    Cell,
    Column,
    Field,
    Page,
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
_CERTIFICATE_NOTES = (
    "The theorem guarantees Made <= Bound. Made cannot exceed Trivial in any case.",
    "|M'_T| counts the rounds with y f(x) at most 0; all mistakes are among them.",
)
_PER_CLASS_NOTE = (
    "one learner per class; support and budget are those of one, |N_T| and halvings sums over all."
)
_SHARED_NOTE = "support and budget are those of all classes together."
_VACUOUS_NOTE = "Vacuous (*): the bound is not below the trivial one."


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
        """Mistake rate of always predicting the more frequent label so far."""
        mistakes = self.mean("baseline_mistakes")
        return None if mistakes is None else mistakes / max(self.runs[0].rounds, 1)

    @property
    def worse(self) -> bool:
        """Than this baseline."""
        baseline = self.baseline_rate
        return baseline is not None and self.summary.mistake_rate_mean > baseline

    @property
    def certificates(self) -> list[Certificate]:
        return [one for one in self.certified if not isinstance(one, tuple)]


def _mean_field(head: str, name: str, text: Callable[[float], str] = mean_count) -> Field[_Line]:
    return Column(head), lambda line: optional(line.mean(name), text)


_LEARNER: Field[_Line] = Column("Learner", words=True), lambda line: Cell(line.name)


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
        if report.certified is not None:
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
    """The learner; if it was played with several settings, followed by what differs."""
    rivals = [other[0].params for other in groups if other[0].learner == run.learner]
    differing = [
        assignment(name, value)
        for name, value in run.params.items()
        if any(params.get(name) != value for params in rivals)
    ]
    return f"{run.learner} ({', '.join(differing)})" if differing else run.learner


def _run_table(report: Report, lines: Sequence[_Line]) -> Table:
    about = data_facts(report.data)
    repeats = max((line.summary.repeats for line in lines), default=0)
    if repeats > 1:
        about += f"; mean ± sd over {orders(repeats, report.shuffled)}"
    baseline = lines[0].baseline_rate if lines else None
    resumed = any(map(_this_file, lines))
    if report.runs and report.runs[0].unlabelled:
        about += f"; {counted(report.runs[0].unlabelled, 'row')} without a label"
    if baseline is not None and not resumed:
        about += f"; baseline {percent(baseline)} %"
    # the lowest rate as shown; nothing is best without a rival
    lowest = percent(min(line.summary.mistake_rate_mean for line in lines)) if lines[1:] else None

    def rate(line: _Line) -> Cell:
        found = line.summary
        return rate_cell(found.mistake_rate_mean, found.mistake_rate_sd, lowest, mark=line.worse)

    fields: list[Field[_Line]] = [
        _LEARNER,
        (Column("AMR %"), rate),
        _mean_field("|M_T|", "mistakes"),
        _mean_field("|N_T|", "margin_updates"),
        (Column("Support"), lambda line: support_cell(line.summary)),
        _mean_field("Halvings", "halvings"),
        _mean_field("ζ̂", "zeta", "{:.4f}".format),
        _mean_field("Seconds", "seconds", seconds),
    ]
    windows = [run.window.rounds for run in report.runs if run.window]
    if windows:
        fields.insert(2, (Column(f"Last {max(windows):,} %"), _recent_rate))
    if any(run.restarts for run in report.runs):
        fields.insert(-1, _mean_field("Restarts", "restarts"))
    notes = [_worse_note(report)] if any(line.worse for line in lines) else []
    if len(report.data.labels) > 2:
        alone = [line.name for line in lines if line.runs[0].params.get("multiclass") != "shared"]
        shared = [line.name for line in lines if line.name not in alone]
        notes += [f"{', '.join(alone)}: {_PER_CLASS_NOTE}"] if alone else []
        notes += [f"{', '.join(shared)}: {_SHARED_NOTE}"] if shared else []
    table = table_of(lines, fields, name=report.data.path, about=about, notes=notes)
    return _with_this_file(table, lines) if resumed else table


def _recent_rate(line: _Line) -> Cell | None:
    """Of the last rounds; mean over the repeats."""
    rates = [run.window.mistake_rate for run in line.runs if run.window]
    return Cell(percent(fmean(rates))) if rates else None


def _this_file(line: _Line) -> ThisFile | None:
    """The part of a resumed run that belongs to this file; None if that is all of it."""
    part = line.runs[0].this_file
    return part if part and part.rounds < line.runs[0].rounds else None


def _with_this_file(table: Table, lines: Sequence[_Line]) -> Table:
    """A row for this file's part of each resumed run, above the row for all of its rounds."""
    rows: list[Sequence[Cell | None]] = []
    for line, row in zip(lines, table.rows, strict=True):
        part = _this_file(line)
        if part is None:
            rows.append(row)
            continue
        figures = [rate_cell(part.mistake_rate, None), Cell(mean_count(part.mistakes))]
        unknown = [None] * (len(row) - len(figures) - 1)
        rows.append([Cell(f"{line.name}, this file"), *figures, *unknown])
        rows.append([Cell(f"{line.name}, in all"), *row[1:]])
    rounds = max(line.runs[0].rounds for line in lines)
    in_all = f"{counted(rounds, 'round')} in all"
    if lines[0].baseline_rate is not None:
        in_all += f" with baseline {percent(lines[0].baseline_rate)} %"
    return replace(table, rows=rows, about=f"{table.about}; {in_all}")


def _confusion_table(report: Report, line: _Line) -> Table:
    """Rounds by true class (rows) and predicted class (columns), summed over the repeats."""
    names = [str(whole(label)) for label in line.runs[0].classes or ()]
    matrices = [run.confusion or () for run in line.runs]
    sums = [
        [sum(entries) for entries in zip(*rows, strict=True)]
        for rows in zip(*matrices, strict=True)
    ]
    about = f"confusion of {line.name}; rows are true, columns predicted labels"
    if len(line.runs) > 1:
        about += f"; sum over {orders(len(line.runs), report.shuffled)}"
    columns = [Column("Label", words=True), *map(Column, names)]
    cells = [
        [Cell(name), *(Cell(str(n)) for n in row)] for name, row in zip(names, sums, strict=True)
    ]
    return Table(report.data.path, about, columns, cells)


def _metrics_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Means over the repeats."""
    about = "metrics" if len(report.data.labels) > 2 else "metrics of label +1"
    if len(report.runs) > len(lines):
        about += f"; mean over {orders(max(len(line.runs) for line in lines), report.shuffled)}"
    metrics = [METRICS[name] for name in _SHOWN_METRICS]
    fields = [_LEARNER, *(_mean_field(one.head, one.name, one.text) for one in metrics)]
    error = max((line.mean("auc_error") or 0.0 for line in lines), default=0.0)
    notes = [f"AUC was computed in bounded memory: off by at most {error:.1g}."] if error else []
    return table_of(lines, fields, name=report.data.path, about=about, notes=notes)


def _worse_note(report: Report) -> str:
    """What marked learners are worse than, with the label that it ended up with."""
    run = report.runs[0]
    if run.confusion is not None:
        seen = [sum(row) for row in run.confusion]
    else:
        negatives = (run.true_negatives or 0) + (run.false_positives or 0)
        seen = [negatives, (run.true_positives or 0) + (run.false_negatives or 0)]
    label = report.data.labels[seen.index(max(seen))]
    known = "" if label is None else f" ({whole(label)})"
    return f"Worse (*) than the baseline: always predicting the more frequent label so far{known}."


def _certificate_table(report: Report, lines: Sequence[_Line]) -> Table:
    """Mistakes made and mistakes allowed; of several repeats, those of the largest bound."""
    about = "certified"
    repeats = max(len(line.certified) for line in lines)
    if repeats > 1:
        about += f"; the largest bound of {orders(repeats, report.shuffled)}"
    vacuous = any(one.vacuous for line in lines for one in line.certificates)
    of_certificate: list[Field[Certificate]] = [
        (Column("Count", words=True), lambda one: Cell(_COUNTED[one.counts])),
        (Column("Made"), lambda one: Cell(str(one.count))),
        (Column("Bound"), lambda one: Cell(str(math.ceil(one.bound)), mark=one.vacuous)),
        (Column("Trivial"), lambda one: Cell(str(one.trivial))),
        (Column("By", words=True), lambda one: Cell(one.theorem)),
        (Column("Comparator f", words=True), lambda one: Cell(one.comparator)),
        (Column("L_T(f)"), lambda one: Cell(f"{one.loss:.1f}")),
        (Column("‖f‖"), lambda one: Cell(f"{one.norm:.2f}")),
    ]
    fields = [_LEARNER, *((column, _of_worst(cell)) for column, cell in of_certificate)]
    notes = [*_CERTIFICATE_NOTES, *([_VACUOUS_NOTE] if vacuous else [])]
    return table_of(lines, fields, name=report.data.path, about=about, notes=notes)


def _of_worst(cell: Callable[[Certificate], Cell | None]) -> Callable[[_Line], Cell | None]:
    """The cell of the certificate with the largest bound."""
    return lambda line: (
        cell(max(line.certificates, key=lambda one: one.bound)) if line.certificates else None
    )


def _uncertified(line: _Line) -> list[str]:
    """Why there is no certificate; of several repeats, the reasons of the first one without."""
    missing = [one for one in line.certified if isinstance(one, tuple)]
    if not missing:
        return []
    repeats = len(line.certified)
    which = f" ({len(missing)} of {repeats} repeats)" if repeats > 1 else ""
    return [f"{line.name}{which}: {reason}" for reason in missing[0]]
