"""Tables of a sweep: learners x data sets, all settings, the best setting of each learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ahpatron_cli.numbers import counted, mean_count, orders, p_value, seconds
from ahpatron_cli.output.table import (
    BEST,
    CHOSEN,
    INCOMPLETE,
    NOT_COMPARED,
    NOT_WORSE,
    WORSE,
    Cell,
    Column,
    Page,
    Table,
    data_facts,
    support_text,
)
from ahpatron_cli.sweep.statistics import SIGNIFICANCE, OverDatasets
from ahpatron_cli.sweep.summary import (
    MISTAKE_RATE,
    DatasetSummary,
    Metric,
    Setting,
    SweepSummary,
)

MAX_REASONS = 5
_VERDICTS = {"best": BEST, "worse": WORSE, "n.s.": NOT_WORSE}


def findings_page(findings: SweepSummary, *, only_matrix: bool = False) -> Page:
    """Page with the matrix, if there are several data sets, and the tables of each data set."""
    tables: list[Table] = []
    if findings.datasets and (only_matrix or len(findings.datasets) > 1):
        tables.append(matrix_table(findings))
    if not only_matrix:
        tables += [table for found in findings.datasets for table in data_tables(found)]
    remarks, failed = [] if findings.datasets else ["no trials"], len(findings.failed)
    if failed:
        reasons = Counter(trial.error or "no reason given" for trial in findings.failed)
        remarks = [f"{failed:,} of {counted(findings.trials + failed, 'trial')} failed:"]
        for reason, count in reasons.most_common(MAX_REASONS):
            remarks.append(f"{counted(count, 'trial')}: {reason}")
        if len(reasons) > MAX_REASONS:
            remarks.append(f"and {counted(len(reasons) - MAX_REASONS, 'other reason')}")
    return Page(tables, remarks, [] if only_matrix else list(_next(findings)))


def _next(findings: SweepSummary) -> Iterator[tuple[str, str]]:
    """Yield a text and the command that repeats the best setting of each data set."""
    from ahpatron_cli.sweep.plan import run_command  # lazy: imports NumPy

    if findings.part:
        shows = "`ahpatron report` of all parts together shows the best"
        yield f"This is {findings.part}; {shows}.", ""
        return
    for found in findings.datasets:
        command = run_command(found.data, found.winner)
        if command and found.settings[1:]:
            yield f"Best on {found.name}:", command


def matrix_table(findings: SweepSummary) -> Table:
    """Matrix with a row per learner, a column per data set, and the mean rank."""
    datasets, ranks, metric = findings.datasets, findings.ranks, findings.criterion.metric
    matrix, ranked = findings.matrix, len(datasets) > 1 and len(ranks.mean_ranks) > 1
    columns = [Column("Learner", list(matrix), left=True)]
    for at, found in enumerate(datasets):
        cells = list[Cell | None]()
        for row in matrix.values():
            if (setting := row[at]) is None:
                cells.append(None)
                continue
            marks = _VERDICTS.get(found.verdict(setting) or "", "") if found.best[1:] else ""
            marks += _completeness(setting)
            cells.append(_cell(metric, setting.mean, setting.sd, marks))
        columns.append(Column(found.short, cells, 1))
    notes = []
    if any(one.sd is not None for found in datasets for one in found.best):
        notes.append("Mean ± standard deviation.")
    if ranked:
        means = [ranks.mean_ranks.get(learner) for learner in matrix]
        columns.append(Column("Rank", [None if one is None else f"{one:.2f}" for one in means]))
        some = " of the learners that were compared on all" if None in means else ""
        notes.append(f"Rank: mean rank over the data sets{some}; 1 is best.")
    if ranks.p_value is not None:
        notes.append(f"{friedman_text(ranks)} over {counted(ranks.datasets, 'data set')}.")
    texts = {_orders(found.best, found) for found in datasets}
    over = texts.pop() if len(texts) == 1 else "different numbers of permutations"
    title = f"{metric.short}{' in %' if metric.in_percent else ''} of the best setting of each "
    notes += _choice_notes(datasets) + _edition_notes(datasets)
    return Table("matrix", "", f"{title}learner; {over}", columns, notes)


def friedman_text(ranks: OverDatasets) -> str:
    """Result of Friedman's test as text, with the critical difference of mean ranks."""
    p = p_value(ranks.p_value or 0)
    test = f"Friedman's test: χ² = {ranks.friedman:.2f}, p {p if p[0] == '<' else f'= {p}'}"
    if (ranks.p_value or 0) >= SIGNIFICANCE:
        return f"{test}, no significant difference between the learners (5 %)"
    gap = f"{ranks.critical_difference:.2f}"
    return f"{test}; mean ranks less than {gap} apart do not differ significantly (Nemenyi, 5 %)"


def data_tables(found: DatasetSummary) -> list[Table]:
    """Tables of a data set: all settings, if a learner has several; the best of each learner."""
    facts, best = data_facts(found.data), found.best
    if not found.several_settings:
        title = f"{facts}; {_orders(best, found)}"
        return [Table("learners", found.name, title, _columns(found, best), _notes(found))]
    every, title = found.settings, f"{facts}; all settings, {_orders(found.settings, found)}"
    best_title = f"the best setting of each learner, {_orders(best, found)}"
    return [
        Table("settings", found.name, title, _columns(found, every), _notes(found)),
        Table("learners", found.name, best_title, _columns(found, best), _notes(found)),
    ]


def _columns(found: DatasetSummary, settings: Sequence[Setting]) -> list[Column]:
    """Columns of a table of all settings, or of the best setting of each learner."""
    metric, every = found.criterion.metric, settings is not found.best
    values, gaps, rates = list[Cell](), list[Cell | None](), list[Cell]()
    for one in settings:
        marks = CHOSEN if every and one.best_of_learner else ""
        marks += BEST if one.best_of_data and settings[1:] else ""
        marks += _completeness(one)
        values.append(_cell(metric, one.mean, one.sd, marks))
        line, gap = one.summary, one.difference
        rates.append(_cell(MISTAKE_RATE, line.mistake_rate_mean, line.mistake_rate_sd))
        gaps.append(None if gap is None else _cell(metric, gap.mean, gap.se, sign="+"))
    columns = [
        Column("Learner", [one.name for one in settings], left=True),
        Column(metric.head, values),
    ]
    if metric is not MISTAKE_RATE:
        columns.append(Column(MISTAKE_RATE.head, rates, 1))
    columns.append(Column("Setting", [one.label or None for one in settings], left=True))
    if any(one.missing for one in settings):  # otherwise it is in the title
        columns.append(Column("Finished", [str(len(one.finished)) for one in settings], 1))
    if not every and settings[1:]:
        columns.append(Column("vs best", gaps, 2))
        columns.append(Column("Verdict", [found.verdict(one) for one in settings], 1, left=True))
    lines = [one.summary for one in settings]
    return [
        *columns,
        Column("|N_T|", [mean_count(line.margin_updates_mean) for line in lines], 5),
        Column("Support", [support_text(line) for line in lines], 4),
        Column("Seconds", [seconds(line.seconds_mean) for line in lines], 3),
    ]


def _cell(metric: Metric, mean: float, sd: float | None, marks: str = "", sign: str = "") -> Cell:
    return Cell(metric.text(mean, sign), None if sd is None else metric.text(sd), marks)


def _completeness(setting: Setting) -> str:
    """Mark of a setting that lacks permutations; empty if it is complete."""
    if not setting.compared:
        return NOT_COMPARED
    return INCOMPLETE if setting.missing else ""


def _repeats(settings: Sequence[Setting]) -> set[int]:
    """Numbers of permutations on which settings are compared: one for each learner."""
    return {setting.summary.repeats for setting in settings if setting.compared}


def _orders(settings: Sequence[Setting], found: DatasetSummary) -> str:
    repeats = _repeats(settings)
    return ("up to " if len(repeats) > 1 else "") + orders(max(repeats), found.data.shuffled)


def _notes(found: DatasetSummary) -> list[str]:
    """Notes on ±, on verdicts and on how the best settings were chosen."""
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
    return notes + _edition_notes([found])


def _edition_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Notes on learners that were run with several sources or algorithms."""
    names: dict[str, set[str]] = {}
    for found in datasets:
        for setting in found.settings:
            names.setdefault(setting.learner, set()).add(setting.name)
    return [
        f"{learner}: results of {len(shown)} versions are shown apart."
        for learner, shown in names.items()
        if len(shown) > 1
    ]


def _choice_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Note on the permutations on which the best settings were chosen."""
    if not any(found.several_settings for found in datasets):
        return []
    on = "in hindsight on these same permutations"
    if tune := datasets[0].criterion.tune_orders:
        on = f"on {counted(tune, 'permutation')}; the best are shown on the others"
    notes = [f"The best of several settings was chosen {on}."]
    notes += [
        f"{found.short}: no other permutation is there of {', '.join(found.unreported)}."
        for found in datasets
        if found.unreported
    ]
    return notes
