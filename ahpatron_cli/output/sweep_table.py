"""The tables of a sweep: all settings, and the best setting of each learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from ahpatron_cli.numbers import assignment, counted, orders, percent, percentage_points
from ahpatron_cli.output.table import (
    Cell,
    Column,
    Field,
    Page,
    Table,
    data_facts,
    margin_updates_cell,
    optional,
    rate_cell,
    seconds_cell,
    support_cell,
    table_of,
)
from ahpatron_cli.sweep.summary import DataFindings, Findings, Setting, TrialRecord

MAX_REASONS = 5

_SettingField: TypeAlias = Field[Setting]

_LEARNER: _SettingField = (Column("Learner", words=True), lambda setting: Cell(setting.learner))
_SETTING: _SettingField = (
    Column("Setting", words=True),
    lambda setting: optional(setting.label),
)


def findings_page(findings: Findings, *, paper: bool = False) -> Page:
    """For each data set all settings, then the best setting of each learner.

    A paper gets one table per data set: the second, or the first if there is one learner only.
    """
    tables = [table for found in findings.datasets for table in _tables(found, paper)]
    return Page(tables, _remark(findings), _reasons(findings))


def _tables(found: DataFindings, paper: bool) -> list[Table]:
    several, rivals = _several_settings(found), len(found.best) > 1
    if not several:
        return [best_table(found, _played(found), notes=notes_of(found, differences=rivals))]
    best = "the best setting of each learner"
    if not paper:
        notes = notes_of(found, differences=rivals, stars=True)
        return [settings_table(found, notes=notes), best_table(found, best, notes=notes)]
    if rivals:
        notes = notes_of(found, differences=True)
        return [best_table(found, _played(found, f"{best}, "), notes=notes)]
    return [settings_table(found, notes=notes_of(found, differences=False, stars=True))]


def settings_table(found: DataFindings, *, notes: Sequence[str] = (), full: bool = False) -> Table:
    """Every setting; `full`: compared with the best, and with all its parameters."""
    rivals, stars = len(found.settings) > 1, _several_settings(found)
    lowest = _lowest(found) if rivals else None
    fields: list[_SettingField] = [
        _LEARNER,
        _SETTING,
        (
            Column("AMR %"),
            lambda setting: _rate(setting, lowest, mark=stars and setting.best_of_learner),
        ),
        *(_comparison(found) if full and rivals else []),
        *_costs(spare=False),
        # the title has it if it is the same for all
        (
            Column("Orders", spare=not _unlike_orders(found)),
            lambda setting: Cell(str(setting.summary.repeats)),
        ),
    ]
    if full:
        parameters = Column("All parameters", words=True, long=True)
        fields.append((parameters, lambda setting: optional(_assignments(setting))))
    about = _played(found, "all settings, ")
    return table_of(found.settings, fields, name=found.name, about=about, notes=notes)


def best_table(
    found: DataFindings, about: str, *, by_rate: bool = False, notes: Sequence[str] = ()
) -> Table:
    """The best setting of each learner, in the learners' order or the lowest rate first."""
    several, rivals = _several_settings(found), len(found.best) > 1
    lowest = _lowest(found) if rivals else None
    fields: list[_SettingField] = [
        _LEARNER,
        *([_SETTING] if several else []),
        (Column("AMR %"), lambda setting: _rate(setting, lowest)),
        *(_comparison(found) if rivals else []),
        *_costs(spare=several),
    ]
    settings = found.best
    if by_rate:
        settings = sorted(settings, key=lambda setting: setting.summary.mistake_rate_mean)
    return table_of(settings, fields, name=found.name, about=about, notes=notes)


def failures_table(failed: Sequence[TrialRecord]) -> Table:
    """One row per trial that failed."""
    fields: list[Field[TrialRecord]] = [
        (Column("Data", words=True), lambda trial: Cell(trial.data.record.path)),
        (Column("Learner", words=True), lambda trial: Cell(trial.learner)),
        (Column("Seed"), lambda trial: Cell(str(trial.seed))),
        (Column("Repeat"), lambda trial: Cell(str(trial.repeat))),
        (
            Column("Reason", words=True, long=True),
            lambda trial: Cell(trial.error or "not recorded"),
        ),
        (
            Column("All parameters", words=True, long=True),
            lambda trial: optional(_assignments(trial)),
        ),
    ]
    return table_of(failed, fields, about="Trials that ended with an error; no table counts them")


def _assignments(played: Setting | TrialRecord) -> str:
    return ", ".join(assignment(name, value) for name, value in played.params.items())


def _rate(setting: Setting, lowest: str | None, *, mark: bool = False) -> Cell:
    summary = setting.summary
    return rate_cell(summary.mistake_rate_mean, summary.mistake_rate_sd, lowest, mark=mark)


def _comparison(found: DataFindings) -> list[_SettingField]:
    return [
        (Column("vs best"), _difference),
        (
            Column("Verdict", words=True),
            lambda setting: optional(_verdict(setting, found)),
        ),
    ]


def _costs(*, spare: bool) -> list[_SettingField]:
    return [
        (Column("|N_T|", spare=spare), lambda setting: margin_updates_cell(setting.summary)),
        (Column("Support", spare=spare), lambda setting: support_cell(setting.summary)),
        (Column("Seconds", spare=spare), lambda setting: seconds_cell(setting.summary)),
    ]


def _played(found: DataFindings, which: str = "") -> str:
    """The data, which settings are shown, and what their means are taken over."""
    return f"{data_facts(found.data.record)}; {which}{_orders(found)}"


def _difference(setting: Setting) -> Cell | None:
    gap = setting.difference
    if gap is None:
        return None
    return Cell(percentage_points(gap.mean), None if gap.se is None else percent(gap.se))


def _verdict(setting: Setting, found: DataFindings) -> str | None:
    """What the difference to the best says; None if the orders of all settings allow no verdict."""
    if setting.best_of_data:
        return "best"
    gap = setting.difference
    if gap is None:
        return f"no common {'order' if found.data.shuffled else 'pass'}"
    if gap.more_than_noise is None:
        return "one common order" if found.data.shuffled and _most_orders(found) > 1 else None
    if not gap.more_than_noise:
        return "n.s."
    # A setting that lacks orders is never the best, yet may win on those it shares with the best.
    return "worse" if gap.mean > 0 else "better"


def _several_settings(found: DataFindings) -> bool:
    """Whether any learner was played with more than one."""
    return len(found.settings) > len(found.best)


def _lowest(found: DataFindings) -> str:
    """The best rate as shown."""
    best = next(setting for setting in found.settings if setting.best_of_data)
    return percent(best.summary.mistake_rate_mean)


def _most_orders(found: DataFindings) -> int:
    return max(setting.summary.repeats for setting in found.settings)


def _unlike_orders(found: DataFindings) -> bool:
    return len({setting.summary.repeats for setting in found.settings}) > 1


def _orders(found: DataFindings) -> str:
    up_to = "up to " if _unlike_orders(found) else ""
    return up_to + orders(_most_orders(found), found.data.shuffled)


def notes_of(found: DataFindings, *, differences: bool, stars: bool = False) -> list[str]:
    """What ± and the verdicts mean, and what was chosen in hindsight."""
    notes = []
    several_orders, shuffled = _most_orders(found) > 1, found.data.shuffled
    if several_orders:
        notes.append(f"AMR: mean ± standard deviation over {_orders(found)}.")
    if differences and several_orders and shuffled:
        notes += [
            "vs best: mean ± standard error of the difference to the best, order by order, "
            "in percentage points.",
            "Worse: 0 lies outside the 95 % interval of Student's t, not corrected for the number "
            "of comparisons; n.s.: not significantly worse.",
        ]
    elif differences:
        why = (
            "one order allows no verdict"
            if shuffled
            else "passes in file order are not a sample of orders and allow no verdict"
        )
        notes.append(f"vs best: difference to the best in percentage points; {why}.")
    if _several_settings(found):
        star = "(*) " if stars else ""
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
        f"{counted(count, 'trial')}: {reason}" for reason, count in reasons.most_common(MAX_REASONS)
    ]
    others = len(reasons) - len(shown)
    return [*shown, f"and {counted(others, 'other reason')}"] if others else shown
