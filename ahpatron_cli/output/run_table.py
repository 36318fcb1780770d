"""The summary of a run as sheets: one per data file, one row per learner."""

from collections.abc import Sequence
from statistics import fmean

from ahpatron_cli.output.certificate_table import certificate_sheet, uncertified
from ahpatron_cli.output.table import Cell, Column, Page, Sheet
from ahpatron_cli.output.wording import (
    facts,
    number,
    orders,
    percent,
    rate_cell,
    seconds_cell,
    support_cell,
)
from ahpatron_cli.records import Report, RunRecord, SummaryRecord, plain

_COLUMNS = (
    Column("Learner", words=True),
    Column("AMR %"),
    Column("|M_T|"),
    Column("|N_T|"),
    Column("Support"),
    Column("Halvings"),
    Column("ζ̂"),
    Column("Seconds"),
)


def run_page(reports: Sequence[Report]) -> Page:
    """One sheet per data file, and below it one of certificates, where these were asked for."""
    sheets, missing = [], []
    for report in reports:
        sheets.append(_sheet(report))
        if report.certified is not None:
            names = _names(report.by_learner())
            sheets.append(certificate_sheet(report, names))
            missing += uncertified(report, names)
    return Page(sheets, "Not certified:" if missing else "", missing)


def _sheet(report: Report) -> Sheet:
    """One row per learner and setting, in the order in which they were asked for."""
    groups = report.by_learner()
    summaries = report.summary()
    about = facts(report.data)
    repeats = max((line.repeats for line in summaries), default=0)
    if repeats > 1:
        about += f"; mean ± sd over {orders(repeats, report.shuffled)}"
    # the lowest rate as shown; nothing is best where there is nothing to compare
    lowest = percent(min(line.mistake_rate_mean for line in summaries)) if summaries[1:] else None
    rows = [
        _row(name, line, runs, lowest)
        for name, line, runs in zip(_names(groups), summaries, groups, strict=True)
    ]
    return Sheet(report.data.path, about, _COLUMNS, rows)


def _row(
    name: str, line: SummaryRecord, runs: Sequence[RunRecord], lowest: str | None
) -> list[Cell | None]:
    halvings = _mean([run.halvings for run in runs])
    zeta = _mean([run.zeta for run in runs])
    return [
        Cell(name),
        rate_cell(line, lowest),
        Cell(number(fmean(run.mistakes for run in runs))),
        Cell(number(line.margin_updates_mean)),
        support_cell(line),
        None if halvings is None else Cell(number(halvings)),
        None if zeta is None else Cell(f"{zeta:.4f}"),
        seconds_cell(line),
    ]


def _names(groups: Sequence[Sequence[RunRecord]]) -> list[str]:
    """Learner names; where one was played with several settings, what differs follows."""
    names = []
    for runs in groups:
        first = runs[0]
        rivals = [other[0].params for other in groups if other[0].learner == first.learner]
        differing = [
            f"{name}={plain(value)}"
            for name, value in first.params.items()
            if any(params.get(name) != value for params in rivals)
        ]
        names.append(f"{first.learner} ({', '.join(differing)})" if differing else first.learner)
    return names


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
