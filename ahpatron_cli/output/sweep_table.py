"""The findings of a sweep as sheets: all settings, and the best setting of each learner."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ahpatron_cli.output.table import Cell, Column, Page, Sheet
from ahpatron_cli.output.wording import (
    counted,
    facts,
    number,
    optional_percent,
    orders,
    percent,
    rate_cell,
    seconds_cell,
    support_cell,
)
from ahpatron_cli.sweep.summary import DataFindings, Findings, Setting

REASONS_SHOWN = 5

_Field: TypeAlias = tuple[Column, Callable[[Setting], Cell | None]]

_LEARNER: _Field = (Column("Learner", words=True), lambda setting: Cell(setting.learner))
_SETTING: _Field = (
    Column("Setting", words=True),
    lambda setting: Cell(setting.label) if setting.label else None,
)


def findings_page(findings: Findings, *, paper: bool = False) -> Page:
    """For each data set all settings, then the best setting of each learner.

    For a paper it is one sheet per data set: the second, or the first if there is one learner only.
    """
    sheets = [sheet for found in findings.datasets for sheet in _sheets(found, paper)]
    return Page(sheets, _remark(findings), _reasons(findings))


def _sheets(found: DataFindings, paper: bool) -> list[Sheet]:
    several, rivals = len(found.settings) > len(found.best), len(found.best) > 1
    if not several:
        return [_best_of_each(found, _played(found), _notes(found, difference=rivals))]
    best = "the best setting of each learner"
    if not paper:
        notes = _notes(found, difference=rivals, star="(*) ")
        return [_all_settings(found, notes), _best_of_each(found, best, notes)]
    if rivals:
        notes = _notes(found, difference=True)
        return [_best_of_each(found, _played(found, f"{best}, "), notes)]
    return [_all_settings(found, _notes(found, difference=False, star="(*) "))]


def _all_settings(found: DataFindings, notes: Sequence[str]) -> Sheet:
    lowest = _lowest(found)
    fields: list[_Field] = [
        _LEARNER,
        _SETTING,
        (
            Column("AMR %"),
            lambda setting: rate_cell(setting.summary, lowest, mark=setting.best_of_learner),
        ),
        *_costs(spare=False),
        # the title says it where it is the same for all
        (
            Column("Orders", spare=not _unlike_orders(found)),
            lambda setting: Cell(str(setting.summary.repeats)),
        ),
    ]
    return _sheet(found, found.settings, _played(found, "all settings, "), fields, notes)


def _best_of_each(found: DataFindings, about: str, notes: Sequence[str]) -> Sheet:
    several, rivals = len(found.settings) > len(found.best), len(found.best) > 1
    lowest = _lowest(found) if rivals else None
    comparison: list[_Field] = [
        (Column("vs best"), _difference),
        (Column("Verdict", words=True), _verdict),
    ]
    fields: list[_Field] = [
        _LEARNER,
        *([_SETTING] if several else []),
        (Column("AMR %"), lambda setting: rate_cell(setting.summary, lowest)),
        *(comparison if rivals else []),
        *_costs(spare=several),
    ]
    return _sheet(found, found.best, about, fields, notes)


def _costs(*, spare: bool) -> list[_Field]:
    return [
        (
            Column("|N_T|", spare=spare),
            lambda setting: Cell(number(setting.summary.margin_updates_mean, coarse=True)),
        ),
        (
            Column("Support", spare=spare),
            lambda setting: support_cell(setting.summary, coarse=True),
        ),
        (Column("Seconds", spare=spare), lambda setting: seconds_cell(setting.summary)),
    ]


def _sheet(
    found: DataFindings,
    settings: Sequence[Setting],
    about: str,
    fields: Sequence[_Field],
    notes: Sequence[str],
) -> Sheet:
    return Sheet(
        name=found.name,
        about=about,
        columns=[column for column, _ in fields],
        rows=[[cell(setting) for _, cell in fields] for setting in settings],
        notes=notes,
    )


def _played(found: DataFindings, which: str = "") -> str:
    """The data, which settings are shown, and what their means are taken over."""
    return f"{facts(found.data.record)}; {which}{_orders(found)}"


def _difference(setting: Setting) -> Cell | None:
    gap = setting.difference
    return None if gap is None else Cell(f"{100 * gap.mean:+.2f}", optional_percent(gap.se))


def _verdict(setting: Setting) -> Cell | None:
    if setting.best_of_data:
        return Cell("best")
    gap = setting.difference
    if gap is None or gap.more_than_noise is None:
        return None
    if not gap.more_than_noise:
        return Cell("within noise")
    # A setting that lacks orders is never the best, yet may win on those it shares with the best.
    return Cell("worse" if gap.mean > 0 else "better")


def _lowest(found: DataFindings) -> str:
    """The best rate as shown."""
    return percent(
        next(one.summary.mistake_rate_mean for one in found.settings if one.best_of_data)
    )


def _most_orders(found: DataFindings) -> int:
    return max(setting.summary.repeats for setting in found.settings)


def _unlike_orders(found: DataFindings) -> bool:
    return len({setting.summary.repeats for setting in found.settings}) > 1


def _orders(found: DataFindings) -> str:
    up_to = "up to " if _unlike_orders(found) else ""
    return up_to + orders(_most_orders(found), found.data.shuffled)


def _notes(found: DataFindings, *, difference: bool, star: str = "") -> list[str]:
    """What ± and the verdicts mean, and what was chosen in hindsight."""
    notes = []
    if _most_orders(found) > 1:
        notes.append(f"AMR: mean ± standard deviation over {_orders(found)}.")
        if difference:
            notes += [
                "vs best: mean ± standard error of the difference to the best, order by order, "
                "in percentage points.",
                "Worse means that 0 lies outside the 95 % interval of Student's t, uncorrected for "
                "the number of comparisons.",
            ]
    elif difference:
        notes.append(
            "vs best: difference to the best in percentage points; with one order only, noise "
            "cannot be told."
        )
    if len(found.settings) > len(found.best):
        notes.append(
            f"The best of several settings {star}was chosen in hindsight on these same orders."
        )
    if _unlike_orders(found):
        notes.append("The best is sought among the settings with the most orders.")
    return notes


def _remark(findings: Findings) -> str:
    total = findings.trials + len(findings.failed)
    if findings.failed:
        return f"{len(findings.failed):,} of {counted(total, 'trial')} failed:"
    return "" if findings.datasets else "no trials"


def _reasons(findings: Findings) -> list[str]:
    """Equal ones together, the most frequent first."""
    reasons = Counter(trial.error or "no reason given" for trial in findings.failed)
    shown = [
        f"{counted(count, 'trial')}: {reason}"
        for reason, count in reasons.most_common(REASONS_SHOWN)
    ]
    others = len(reasons) - len(shown)
    return [*shown, f"and {counted(others, 'other reason')}"] if others else shown
