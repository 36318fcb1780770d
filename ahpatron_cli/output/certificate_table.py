"""Certificates as a sheet: mistakes made, and what a theorem allows on the same data."""

import math
from collections.abc import Iterator, Sequence

from ahpatron_cli.output.table import Cell, Column, Sheet
from ahpatron_cli.output.wording import orders
from ahpatron_cli.records import CertificateRecord, CertifiedRecord, Report

_COLUMNS = (
    Column("Learner", words=True),
    Column("Counted", words=True),
    Column("Made"),
    Column("Bound"),
    Column("Trivial"),
    Column("By", words=True),
    Column("Comparator f", words=True),
    Column("L_T(f)"),
    Column("‖f‖"),
)
_COUNTED = {"mistakes": "|M_T|", "failures": "|M'_T|"}
_NOTES = (
    "By the theorem, Made is at most Bound. Trivial is what it cannot exceed anyway.",
    "|M'_T| counts the rounds with y f(x) at most 0; all mistakes are among them.",
)


def certificate_sheet(report: Report, names: Sequence[str]) -> Sheet:
    """One row per learner and setting; of several repeats, the one with the largest bound."""
    groups = _groups(report)
    about = "certified"
    repeats = max(len(group) for group in groups)
    if repeats > 1:
        about += f"; the largest bound of {orders(repeats, report.shuffled)}"
    rows = [_row(name, _certificates(group)) for name, group in zip(names, groups, strict=True)]
    notes = [*_NOTES, *_vacuous(names, groups)]
    return Sheet(report.data.path, about, _COLUMNS, rows, notes)


def uncertified(report: Report, names: Sequence[str]) -> list[str]:
    """Which runs have no certificate, and why; for several repeats the first one's reasons."""
    items = []
    for name, group in zip(names, _groups(report), strict=True):
        missing = [one for one in group if one.certificate is None]
        if missing:
            share = f" ({len(missing)} of {len(group)} repeats)" if len(group) > 1 else ""
            items += [f"{name}{share}: {reason}" for reason in missing[0].reasons]
    return items


def _groups(report: Report) -> list[list[CertifiedRecord]]:
    """What `Report.by_learner` groups, for certificates."""
    of_run = {id(run): one for run, one in zip(report.runs, report.certified or (), strict=True)}
    return [[of_run[id(run)] for run in runs] for runs in report.by_learner()]


def _certificates(group: Sequence[CertifiedRecord]) -> list[CertificateRecord]:
    return [one.certificate for one in group if one.certificate is not None]


def _row(name: str, certificates: Sequence[CertificateRecord]) -> list[Cell | None]:
    if not certificates:
        return [Cell(name), *[None] * (len(_COLUMNS) - 1)]
    worst = max(certificates, key=lambda one: one.bound)
    return [
        Cell(name),
        Cell(_COUNTED[worst.counts]),
        Cell(str(worst.count)),
        Cell(str(math.ceil(worst.bound)), mark=worst.vacuous),
        Cell(str(worst.trivial)),
        Cell(worst.theorem),
        Cell(worst.comparator),
        Cell(f"{worst.loss:.1f}"),
        Cell(f"{worst.norm:.2f}"),
    ]


def _vacuous(names: Sequence[str], groups: Sequence[Sequence[CertifiedRecord]]) -> Iterator[str]:
    if any(one.vacuous for group in groups for one in _certificates(group)):
        yield "Vacuous (*): the bound is not below the trivial one, so it says nothing."
