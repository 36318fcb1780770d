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
from ahpatron_cli.sweep.statistics import SIGNIFICANCE, OverDatasets
from ahpatron_cli.sweep.summary import MISTAKE_RATE, DatasetSummary, Setting, SweepSummary

MAX_REASONS = 5
_VERDICTS = {"best": BEST, "worse": WORSE, "n.s.": NOT_WORSE}

_LEARNER: Field[Setting] = Column("learner", "Learner", True), lambda one: Cell(one.learner)
_SETTING: Field[Setting] = Column("setting", "Setting", True), lambda one: optional(one.label)


def findings_page(findings: SweepSummary, *, only_matrix: bool = False) -> Page:
    """The matrix, if there are several data sets, and the tables of each."""
    tables: list[Table] = []
    if findings.datasets and (only_matrix or len(findings.datasets) > 1):
        tables.append(matrix_table(findings))
    if not only_matrix:
        tables += [table for found in findings.datasets for table in data_tables(found)]
    failed = len(findings.failed)
    remark = "" if findings.datasets else "no trials"
    if failed:
        remark = f"{failed:,} of {counted(findings.trials + failed, 'trial')} failed:"
    return Page(tables, remark, _reasons(findings), [] if only_matrix else list(_next(findings)))


def _next(findings: SweepSummary) -> Iterator[tuple[str, str]]:
    """The command that runs the best setting again, and whether the grid ends there."""
    from ahpatron_cli.sweep.plan import run_command  # which imports NumPy

    if findings.part:
        yield (
            f"This is {findings.part}; `ahpatron inspect` of all parts together shows the best.",
            "",
        )
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
    rows: list[Row] = []
    for learner, settings in findings.matrix.items():
        row: dict[str, Cell | None] = {"learner": Cell(learner)}
        for found, setting in zip(datasets, settings, strict=True):
            if setting:
                mark = _VERDICTS.get(found.verdict(setting) or "", "") if found.best[1:] else ""
                row[f"data {found.short}"] = Cell(setting.mean_text, setting.sd_text, mark)
        row["rank"] = optional(ranks.mean_ranks.get(learner) if _ranked(findings) else None, _rank)
        rows.append(row)
    columns = [
        Column("learner", "Learner", left=True),
        *(Column(f"data {one.short}", one.short, priority=1, outside=True) for one in datasets),
        Column("rank", "Rank"),
    ]
    texts = {_orders(found.best, found) for found in datasets}
    most = max(repeats for found in datasets for repeats in _repeats(found.best))
    over = texts.pop() if len(texts) == 1 else f"up to {counted(most, 'permutation')}"
    title = f"{metric.short}{' in %' if metric.in_percent else ''} of the best setting of each "
    return Table("matrix", "", f"{title}learner; {over}", columns, rows, _matrix_notes(findings))


def _rank(value: float) -> str:
    return f"{value:.2f}"


def _ranked(findings: SweepSummary) -> bool:
    return len(findings.datasets) > 1 and len(findings.ranks.mean_ranks) > 1


def rejected(ranks: OverDatasets) -> bool:
    """Whether Friedman's test finds any difference between learners; else pairs prove nothing."""
    return ranks.p_value is not None and ranks.p_value < SIGNIFICANCE


def _matrix_notes(findings: SweepSummary) -> list[str]:
    datasets, ranks, notes = findings.datasets, findings.ranks, []
    if any(one.sd is not None for found in datasets for one in found.best):
        notes.append("Mean ± standard deviation.")
    if _ranked(findings):
        missing = len(ranks.mean_ranks) < len(findings.matrix)
        which = " of the learners that were run on all" if missing else ""
        notes.append(f"Rank: mean rank over the data sets{which}; 1 is best.")
    if ranks.p_value is not None and ranks.critical_difference is not None:
        p = p_value(ranks.p_value)
        conclusion = ": no significant difference between the learners (5 %)."
        if rejected(ranks):
            conclusion = (
                f". Mean ranks that differ by less than {ranks.critical_difference:.2f} do not "
                "differ significantly (Nemenyi, 5 %)."
            )
        notes.append(
            f"Friedman: χ² = {ranks.friedman:.2f}, p {p if p.startswith('<') else f'= {p}'} over "
            f"{counted(ranks.datasets, 'data set')}{conclusion}"
        )
    return notes + _choice_notes(datasets)


def data_tables(found: DatasetSummary) -> list[Table]:
    """Of one data set: all settings, if a learner has several; then the best of each learner."""
    notes, facts = _notes(found), data_facts(found.data.record)
    several, rivals = found.several_settings, len(found.best) > 1
    lowest = next((one.mean_text for one in found.settings if one.best_of_data), None)
    fields = [_LEARNER, *_rates(found, lowest if found.settings[1:] else None, several), _SETTING]
    if len(_repeats(found.settings)) > 1:  # else the title has it
        repeats = Column("repeats", "Permutations", priority=1)
        fields.append((repeats, lambda one: Cell(str(one.summary.repeats))))
    title = f"{facts}; all settings, {_orders(found.settings, found)}"
    rows = found.settings, [*fields, *_COSTS]
    every = table_of(*rows, kind="settings", name=found.name, title=title, notes=notes)
    fields = [_LEARNER, *_rates(found, found.winner.mean_text if rivals else None), _SETTING]
    if rivals:
        verdict = Column("verdict", "Verdict", left=True, priority=1)
        fields += [_VERSUS, (verdict, lambda setting: optional(found.verdict(setting)))]
    title = "the best setting of each learner, " if several else f"{facts}; "
    title += _orders(found.best, found)
    rows = found.best, [*fields, *_COSTS]
    best = table_of(*rows, kind="learners", name=found.name, title=title, notes=notes)
    return [every, best] if several else [best]


def _difference(setting: Setting) -> Cell | None:
    gap, metric = setting.difference, setting.metric
    if gap is None:
        return None
    return Cell(metric.text(gap.mean, "+"), None if gap.se is None else metric.text(gap.se))


_VERSUS: Field[Setting] = Column("difference", "vs best", priority=2), _difference
_COSTS: list[Field[Setting]] = [
    (
        Column("margin_updates", "|N_T|", priority=5),
        lambda one: Cell(mean_count(one.summary.margin_updates_mean)),
    ),
    (Column("support", "Support", priority=4), lambda one: support_cell(one.summary)),
    (Column("seconds", "Seconds", priority=3), lambda one: Cell(seconds(one.summary.seconds_mean))),
]


def _rates(found: DatasetSummary, lowest: str | None, chosen: bool = False) -> list[Field[Setting]]:
    """The metric that decides, and the mistake rate if that is another."""

    def rate(one: Setting) -> Cell:
        marks = CHOSEN if chosen and one.best_of_learner else ""
        marks += BEST if one.mean_text == lowest else ""
        return Cell(one.mean_text, one.sd_text, marks)

    def mistake_rate(one: Setting) -> Cell:
        return rate_cell(one.summary.mistake_rate_mean, one.summary.mistake_rate_sd)

    metric, other = found.criterion.metric, Column("mistake_rate", MISTAKE_RATE.head, priority=1)
    others = [] if metric is MISTAKE_RATE else [(other, mistake_rate)]
    return [(Column("metric", metric.head), rate), *others]


def _repeats(settings: Sequence[Setting]) -> set[int]:
    return {setting.summary.repeats for setting in settings}


def _orders(settings: Sequence[Setting], found: DatasetSummary) -> str:
    repeats = _repeats(settings)
    return ("up to " if len(repeats) > 1 else "") + orders(max(repeats), found.data.shuffled)


def _notes(found: DatasetSummary) -> list[str]:
    """What ± and the verdicts mean, and how the best were chosen."""
    notes, differences = [], len(found.best) > 1
    metric, shuffled = found.criterion.metric, found.data.shuffled
    several_orders = max(_repeats(found.best)) > 1
    if several_orders:
        over = _orders(found.best, found)
        notes.append(f"{metric.short}: mean ± standard deviation over {over}.")
    points = ", in percentage points" if metric.in_percent else ""
    if differences and several_orders and shuffled:
        notes += [
            "vs best: mean ± standard error of the difference to the best on the same "
            f"permutations{points}.",
            "worse: paired t-test, corrected for the number of learners (Holm), 5 %; "
            "n.s.: not significantly worse.",
        ]
    elif differences:
        why = "passes in file order are not a sample and allow"
        why = "one permutation allows" if shuffled else why
        notes.append(f"vs best: difference to the best{points}; {why} no verdict.")
    notes += _choice_notes([found])
    if found.dropped:
        notes.append(
            f"{counted(found.dropped, 'setting')} more ran on the first rounds only and lost there "
            "(--search halving)."
        )
    if len(_repeats(found.settings)) > 1:
        notes.append("The best is one of the settings with the most permutations.")
    return notes


def _choice_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """On which permutations the best of several settings were chosen."""
    if not any(found.several_settings for found in datasets):
        return []
    tune = datasets[0].criterion.tune_orders
    if tune:
        on = f"on {counted(tune, 'permutation')}; the best are shown on the others"
        return [f"The best of several settings was chosen {on}."]
    return ["The best of several settings was chosen in hindsight on these same permutations."]


def _reasons(findings: SweepSummary) -> list[str]:
    """Equal ones together, the most frequent first."""
    reasons = Counter(trial.error or "no reason given" for trial in findings.failed)
    shown = [
        f"{counted(count, 'trial')}: {reason}" for reason, count in reasons.most_common(MAX_REASONS)
    ]
    others = len(reasons) - len(shown)
    return [*shown, f"and {counted(others, 'other reason')}"] if others else shown
