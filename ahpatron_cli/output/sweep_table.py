"""The tables of a sweep: learners x data sets, all settings, the best setting of each learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ahpatron_cli.numbers import counted, mean_count, orders, p_value, seconds
from ahpatron_cli.output.table import (
    BEST,
    CHOSEN,
    NOT_WORSE,
    WORSE,
    Cell,
    Column,
    Page,
    Table,
    data_facts,
    rate_cell,
    support_text,
)
from ahpatron_cli.sweep.statistics import SIGNIFICANCE, OverDatasets
from ahpatron_cli.sweep.summary import (
    MISTAKE_RATE,
    DatasetSummary,
    Setting,
    SweepSummary,
    best_of,
)

MAX_REASONS = 5
_VERDICTS = {"best": BEST, "worse": WORSE, "n.s.": NOT_WORSE}


def findings_page(findings: SweepSummary, *, only_matrix: bool = False) -> Page:
    """The matrix, if there are several data sets, and the tables of each."""
    tables: list[Table] = []
    if findings.datasets and (only_matrix or len(findings.datasets) > 1):
        tables.append(matrix_table(findings))
    if not only_matrix:
        tables += [table for found in findings.datasets for table in data_tables(found)]
    remark, failed = "" if findings.datasets else "no trials", len(findings.failed)
    if failed:
        remark = f"{failed:,} of {counted(findings.trials + failed, 'trial')} failed:"
    reasons = Counter(trial.error or "no reason given" for trial in findings.failed).most_common()
    items = [f"{counted(count, 'trial')}: {reason}" for reason, count in reasons[:MAX_REASONS]]
    if others := len(reasons) - len(items):
        items.append(f"and {counted(others, 'other reason')}")
    return Page(tables, remark, items, [] if only_matrix else list(_next(findings)))


def _next(findings: SweepSummary) -> Iterator[tuple[str, str]]:
    """The command that runs the best setting again, and whether the grid ends there."""
    from ahpatron_cli.sweep.plan import run_command  # which imports NumPy

    if findings.part:
        shows = "`ahpatron report` of all parts together shows the best"
        yield f"This is {findings.part}; {shows}.", ""
        return
    for found in findings.datasets:
        best = found.winner
        command = run_command(found.data, best)
        if command and found.settings[1:]:
            yield f"Best on {found.name}:", command
        for name, value in best.varied.items():
            tried = {params.get(name) for params in found.tried[best.learner]}
            numbers = [one for one in tried if isinstance(one, int | float)]
            if len(numbers) > 1 and value in (min(numbers), max(numbers)):
                low = value == min(numbers)
                end, beyond = ("smallest", "smaller") if low else ("largest", "larger")
                what = f"{best.learner}: {name}={best.texts[name]} is the {end}"
                yield f"{what} of {len(numbers)} values tried; {beyond} ones may do better.", ""


def matrix_table(findings: SweepSummary) -> Table:
    """One row per learner, one column per data set, and the mean rank."""
    datasets, ranks, metric = findings.datasets, findings.ranks, findings.criterion.metric
    matrix, ranked = findings.matrix, len(datasets) > 1 and len(ranks.mean_ranks) > 1

    def column(at: int, found: DatasetSummary) -> Column[str]:
        def cell(learner: str) -> Cell | None:
            setting = matrix[learner][at]
            if setting is None:
                return None
            mark = _VERDICTS.get(found.verdict(setting) or "", "") if found.best[1:] else ""
            return Cell(setting.mean_text, setting.sd_text, mark)

        return Column(found.short, cell, priority=1)

    def rank(learner: str) -> str | None:
        mean = ranks.mean_ranks.get(learner) if ranked else None
        return None if mean is None else f"{mean:.2f}"

    columns = [
        Column[str]("Learner", lambda learner: learner, left=True),
        *(column(at, found) for at, found in enumerate(datasets)),
        Column("Rank", rank),
    ]
    notes = []
    if any(one.sd is not None for found in datasets for one in found.best):
        notes.append("Mean ± standard deviation.")
    if ranked:
        which = (
            "of the learners that were run on all" if len(ranks.mean_ranks) < len(matrix) else ""
        )
        notes.append(f"Rank: mean rank over the data sets {which}".rstrip() + "; 1 is best.")
    if ranks.p_value is not None:
        notes.append(f"{friedman_text(ranks)} over {counted(ranks.datasets, 'data set')}.")
    texts = {_orders(found.best, found) for found in datasets}
    over = texts.pop() if len(texts) == 1 else "different numbers of permutations"
    title = f"{metric.short}{' in %' if metric.in_percent else ''} of the best setting of each "
    notes += _choice_notes(datasets)
    return Table("matrix", "", f"{title}learner; {over}", columns, list(matrix), notes)


def rejected(ranks: OverDatasets) -> bool:
    """Whether Friedman's test finds any difference between learners; else pairs prove nothing."""
    return ranks.p_value is not None and ranks.p_value < SIGNIFICANCE


def friedman_text(ranks: OverDatasets) -> str:
    """What Friedman's test found, and which mean ranks differ significantly."""
    p = p_value(ranks.p_value or 0.0)
    test = f"Friedman's test: χ² = {ranks.friedman:.2f}, p {p if p[0] == '<' else f'= {p}'}"
    if not rejected(ranks):
        return f"{test}, no significant difference between the learners (5 %)"
    gap = f"{ranks.critical_difference:.2f}"
    return f"{test}; mean ranks less than {gap} apart do not differ significantly (Nemenyi, 5 %)"


def data_tables(found: DatasetSummary) -> list[Table]:
    """Of one data set: all settings, if a learner has several; then the best of each learner."""
    several, rivals, metric = found.several_settings, bool(found.best[1:]), found.criterion.metric

    def columns(every: bool) -> list[Column[Setting]]:
        shown = found.settings if every else found.best
        best = best_of(shown).rank[:2]  # permutations and mean

        def rate(one: Setting) -> Cell:
            marks = CHOSEN if every and one.best_of_learner else ""
            marks += BEST if one.rank[:2] == best and shown[1:] else ""
            return Cell(one.mean_text, one.sd_text, marks)

        made: list[Column[Setting]] = [
            Column("Learner", lambda one: one.learner, left=True),
            Column(metric.head, rate),
        ]
        if metric is not MISTAKE_RATE:
            made.append(Column(MISTAKE_RATE.head, _mistake_rate, 1))
        made.append(Column("Setting", lambda one: one.label or None, left=True))
        if every and len(_repeats(found.settings)) > 1:  # else the title has it
            made.append(Column("Permutations", lambda one: str(one.summary.repeats), 1))
        if rivals and not every:
            made.append(Column("vs best", _difference, 2))
            made.append(Column("Verdict", found.verdict, 1, left=True))
        return [*made, *_COSTS]

    facts, notes = data_facts(found.data.record), _notes(found)
    title = f"{facts}; all settings, {_orders(found.settings, found)}"
    every = Table("settings", found.name, title, columns(True), found.settings, notes)
    title = "the best setting of each learner, " if several else f"{facts}; "
    title += _orders(found.best, found)
    best = Table("learners", found.name, title, columns(False), found.best, notes)
    return [every, best] if several else [best]


_COSTS: list[Column[Setting]] = [
    Column("|N_T|", lambda one: mean_count(one.summary.margin_updates_mean), 5),
    Column("Support", lambda one: support_text(one.summary), 4),
    Column("Seconds", lambda one: seconds(one.summary.seconds_mean), 3),
]


def _mistake_rate(one: Setting) -> Cell:
    return rate_cell(one.summary.mistake_rate_mean, one.summary.mistake_rate_sd)


def _difference(one: Setting) -> Cell | None:
    gap, text = one.difference, one.metric.text
    if gap is None:
        return None
    return Cell(text(gap.mean, "+"), None if gap.se is None else text(gap.se))


def _repeats(settings: Sequence[Setting]) -> set[int]:
    return {setting.summary.repeats for setting in settings}


def _orders(settings: Sequence[Setting], found: DatasetSummary) -> str:
    repeats = _repeats(settings)
    return ("up to " if len(repeats) > 1 else "") + orders(max(repeats), found.data.shuffled)


def _notes(found: DatasetSummary) -> list[str]:
    """What ± and the verdicts mean, and how the best were chosen."""
    metric, shuffled = found.criterion.metric, found.data.shuffled
    points = ", in percentage points" if metric.in_percent else ""
    several = max(_repeats(found.best)) > 1
    notes = [f"{metric.short}: mean ± standard deviation."] if several else []
    if found.best[1:] and several and shuffled:
        notes += [
            "vs best: mean ± standard error of the difference to the best on the same "
            f"permutations{points}.",
            "worse: paired t-test, corrected for the number of learners (Holm), 5 %; "
            "n.s.: not significantly worse.",
        ]
    elif found.best[1:]:
        why = "one permutation allows" if shuffled else "file order is not a sample and allows"
        notes.append(f"vs best: difference to the best{points}; {why} no verdict.")
    notes += _choice_notes([found])
    if found.dropped:
        lost = "ran on the first rounds only and lost there (--search halving)"
        notes.append(f"{counted(found.dropped, 'setting')} more {lost}.")
    if len(_repeats(found.settings)) > 1:
        notes.append("The best is one of the settings with the most permutations.")
    return notes


def _choice_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """On which permutations the best of several settings were chosen."""
    if not any(found.several_settings for found in datasets):
        return []
    on = "in hindsight on these same permutations"
    if tune := datasets[0].criterion.tune_orders:
        on = f"on {counted(tune, 'permutation')}; the best are shown on the others"
    return [f"The best of several settings was chosen {on}."]
