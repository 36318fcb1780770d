"""Tables of a sweep: learners x data sets, all settings, the best setting of each learner."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ahpatron_cli.number_text import counted, mean_count, orders, p_value, seconds, short
from ahpatron_cli.output.table import (
    BEST,
    CHOSEN,
    INCOMPLETE,
    NOT_COMPARED,
    NOT_WORSE,
    WORSE,
    Cell,
    Column,
    ColumnNote,
    Page,
    Table,
    data_facts,
    statistic_columns,
    support_text,
)
from ahpatron_cli.sweep.statistics import OverDatasets
from ahpatron_cli.sweep.summary import (
    FIXED,
    MISTAKE_RATE,
    DatasetSummary,
    Metric,
    Setting,
    SweepSummary,
)

MAX_REASONS = 5
"""Largest number of reasons for failed trials that are listed."""
_VERDICTS = {"best": BEST, "worse": WORSE, "n.s.": NOT_WORSE}


def summary_page(summary: SweepSummary, *, only_matrix: bool = False) -> Page:
    """Page with the matrix, if there are several data sets, and the tables of each data set."""
    tables: list[Table] = []
    if summary.datasets and (only_matrix or len(summary.datasets) > 1):
        tables.append(matrix_table(summary))
    if not only_matrix:
        tables += [table for found in summary.datasets for table in data_tables(found)]
    remarks = []
    if summary.failed:
        remarks = _failures(summary)
    elif not summary.datasets:
        remarks = ["no trials"]
    commands = []
    if not only_matrix:
        commands = list(_next(summary))
    return Page(tables, remarks, commands)


def _failures(summary: SweepSummary) -> list[str]:
    """How many trials failed, then the most frequent reasons."""
    failed = len(summary.failed)
    every = counted(summary.trials + failed, "trial")
    remarks = [f"{failed:,} of {every} failed:"]
    given = [trial.error or "no reason given" for trial in summary.failed]
    reasons = Counter(given)
    for reason, count in reasons.most_common(MAX_REASONS):
        trials = counted(count, "trial")
        remarks.append(f"{trials}: {reason}")
    others = len(reasons) - MAX_REASONS
    if others > 0:
        more = counted(others, "other reason")
        remarks.append(f"and {more}")
    return remarks


def _next(summary: SweepSummary) -> Iterator[tuple[str, str]]:
    """Yield a text and the command that repeats the best setting of each data set."""
    from ahpatron_cli.sweep.plan import run_command  # lazy: imports NumPy

    if summary.part:
        shows = "`ahpatron report` of all parts together shows the best"
        yield f"This is {summary.part}; {shows}.", ""
        return
    for found in summary.datasets:
        command = run_command(found.data, found.winner)
        if command and len(found.settings) > 1:
            yield f"Best on {found.name}:", command


def matrix_table(summary: SweepSummary) -> Table:
    """Matrix with a row per learner, a column per data set, and the mean rank."""
    datasets = summary.datasets
    metric = summary.criterion.metric
    learners = list(summary.matrix)
    columns = [Column("Learner", learners, left=True)]
    for at, found in enumerate(datasets):
        settings = [row[at] for row in summary.matrix.values()]
        cells = [_matrix_cell(metric, found, setting) for setting in settings]
        columns.append(Column(found.short, cells, 1))
    notes: list[str | ColumnNote] = []
    if any(one.sd is not None for found in datasets for one in found.best):
        notes.append(f"{metric.short}: mean ± standard deviation.")
    ranks = summary.ranks
    if len(datasets) > 1 and len(ranks.mean_ranks) > 1:
        columns.append(_rank_column(learners, ranks))
        some = ""
        if len(ranks.mean_ranks) < len(learners):
            some = " of the learners that were compared on all"
        meaning = f"Rank: mean rank over the data sets{some}; 1 is best."
        notes.append(ColumnNote("Rank", meaning))
    if ranks.p_value is not None:
        notes += rank_notes(ranks)
    notes += _choice_notes(datasets)
    notes += _edition_notes(datasets)
    unit = " in %" if metric.in_percent else ""
    over = _orders_of_all(datasets)
    title = f"{metric.short}{unit} of the best setting of each learner; {over}"
    shared, rows = _fixed(summary)
    if shared:
        title += f"; {shared}"
    return Table(
        kind="matrix",
        name="",
        title=title,
        columns=_with_rows(columns, rows),
        notes=notes,
    )


def _fixed(summary: SweepSummary) -> tuple[str, dict[str, list[str | None]]]:
    """The fixed parameters that all data sets share, as text; of the others, a row each."""
    shared = []
    rows: dict[str, list[str | None]] = {}
    for name, values in summary.fixed.items():
        symbol = FIXED[name]
        texts = [None if value is None else short(value, 6) for value in values]
        different = set(texts)
        if len(different) > 1:
            rows[f"{symbol} ="] = texts
        elif texts and texts[0] is not None:
            shared.append(f"{symbol} = {texts[0]}")
    return ", ".join(shared), rows


def _with_rows(columns: Sequence[Column], rows: Mapping[str, Sequence[str | None]]) -> list[Column]:
    """The columns of the matrix with more rows below the learners, by what is in front of them."""
    first, *others = columns
    names = [*first.cells, *rows]
    extended = [replace(first, cells=names)]
    for at, column in enumerate(others):
        cells: list[Cell | str | None] = [*column.cells]
        for texts in rows.values():
            text: str | None = ""
            if at < len(texts):  # the column of ranks has none
                text = texts[at]
            cells.append(text)
        wider = replace(column, cells=cells)
        extended.append(wider)
    return extended


def _rank_column(learners: Sequence[str], ranks: OverDatasets) -> Column:
    """Column of mean ranks; learners that were not compared on all data sets have none."""
    texts: list[str | None] = []
    for learner in learners:
        mean = ranks.mean_ranks.get(learner)
        texts.append(None if mean is None else f"{mean:.2f}")
    return Column("Rank", texts)


def _matrix_cell(
    metric: Metric,
    found: DatasetSummary,
    setting: Setting | None,
) -> Cell | None:
    """Cell of a learner's best setting on a data set; None if it was not run there."""
    if setting is None:
        return None
    marks = ""
    if len(found.best) > 1:
        verdict = found.verdict(setting)
        marks = _VERDICTS.get(verdict or "", "")
    marks += _completeness(setting)
    return _cell(metric, setting.mean, setting.sd, marks=marks)


def _orders_of_all(datasets: Sequence[DatasetSummary]) -> str:
    """Text of the permutations that were run on each of several data sets."""
    texts = {_orders(found.best, found) for found in datasets}
    if len(texts) == 1:
        return texts.pop()
    return "different numbers of permutations"


def friedman_statistics(ranks: OverDatasets) -> str:
    """Friedman's χ² and the F of Iman and Davenport, with their p-values, as text."""
    friedman = _p_text(ranks.p_value)
    ratio = "∞"
    if ranks.iman_davenport is not None and math.isfinite(ranks.iman_davenport):
        ratio = f"{ranks.iman_davenport:.2f}"
    improved = _p_text(ranks.iman_davenport_p_value)
    chi_square = f"χ² = {ranks.friedman:.2f}, {friedman}"
    f_ratio = f"F = {ratio}, {improved}"
    return f"Friedman's test: {chi_square}; Iman-Davenport: {f_ratio}"


def _p_text(value: float | None) -> str:
    """Text such as `p = 0.032` or `p < 0.001`."""
    p = p_value(value or 0.0)
    if p.startswith("<"):
        return f"p {p}"
    return f"p = {p}"


def rank_notes(ranks: OverDatasets) -> list[str]:
    """The tests of mean ranks as sentences: whether learners differ, and by Nemenyi's test which.

    Groups that Nemenyi's test does not distinguish are listed if there is a difference at all.
    """
    datasets = counted(ranks.datasets, "data set")
    test = f"{friedman_statistics(ranks)} over {datasets}"
    if not ranks.rejects:
        return [f"{test}: no significant difference between the learners (5 %)."]
    gap = f"{ranks.critical_difference:.2f}"
    nemenyi = f"Nemenyi's test (5 %): mean ranks less than {gap} apart do not differ significantly"
    groups = "; ".join(", ".join(group) for group in ranks.groups)
    if groups:
        nemenyi += f": {groups}"
    return [f"{test}.", f"{nemenyi}."]


def data_tables(found: DatasetSummary) -> list[Table]:
    """Tables of a data set: all settings, if a learner has several; the best of each learner."""
    facts = data_facts(found.data)
    best_over = _orders(found.best, found)
    if not found.several_settings:
        return [_best_table(found, f"{facts}; {best_over}")]
    every = Table(
        kind="settings",
        name=found.name,
        title=f"{facts}; all settings, {_orders(found.settings, found)}",
        columns=_columns(found, found.settings),
        notes=_notes(found),
    )
    return [every, _best_table(found, f"the best setting of each learner, {best_over}")]


def _best_table(found: DatasetSummary, title: str) -> Table:
    """Table of the best setting of each learner."""
    return Table(
        kind="learners",
        name=found.name,
        title=title,
        columns=_columns(found, found.best),
        notes=_notes(found),
    )


def _columns(found: DatasetSummary, settings: Sequence[Setting]) -> list[Column]:
    """Columns of a table of all settings, or of the best setting of each learner."""
    metric = found.criterion.metric
    names = [one.name for one in settings]
    columns = [
        Column("Learner", names, left=True),
        Column(metric.head, _metric_cells(found, settings)),
    ]
    if metric is not MISTAKE_RATE:
        columns.append(Column(MISTAKE_RATE.head, _rate_cells(settings), 1))
    labels = [one.label or None for one in settings]
    columns.append(Column("Setting", labels, left=True))
    if any(one.missing for one in settings):  # otherwise it is in the title
        finished = [str(len(one.finished)) for one in settings]
        columns.append(Column("Finished", finished, 1))
    of_best = settings is found.best
    if of_best and len(settings) > 1:
        differences = [_difference_cell(metric, one) for one in settings]
        columns.append(Column("vs best", differences, 2))
        verdicts = [found.verdict(one) for one in settings]
        columns.append(Column("Verdict", verdicts, 1, left=True))
    means = [one.means for one in settings]
    updates = [mean_count(one.margin_updates_mean) for one in means]
    support = [support_text(one) for one in means]
    times = [seconds(one.seconds_mean) for one in means]
    return [
        *columns,
        Column("|N_T|", updates, 5),
        Column("Support", support, 4),
        Column("Seconds", times, 3),
        *statistic_columns(means),
    ]


def _rate_cells(settings: Sequence[Setting]) -> list[Cell]:
    """The mistake rate of each setting, beside another metric."""
    cells = []
    for one in settings:
        mean = one.means.mistake_rate_mean
        sd = one.means.mistake_rate_sd
        cells.append(_cell(MISTAKE_RATE, mean, sd))
    return cells


def _metric_cells(found: DatasetSummary, settings: Sequence[Setting]) -> list[Cell]:
    """The metric of each setting, with marks."""
    cells = []
    for one in settings:
        marks = ""
        if one.best_of_learner and settings is not found.best:
            marks += CHOSEN
        if one.best_of_data and len(settings) > 1:
            marks += BEST
        marks += _completeness(one)
        cells.append(_cell(found.criterion.metric, one.mean, one.sd, marks=marks))
    return cells


def _difference_cell(metric: Metric, setting: Setting) -> Cell | None:
    """Difference of a setting to the best; None if there is none."""
    difference = setting.difference
    if difference is None:
        return None
    return _cell(metric, difference.mean, difference.se, sign="+")


def _cell(
    metric: Metric,
    mean: float,
    spread: float | None,
    *,
    marks: str = "",
    sign: str = "",
) -> Cell:
    text = metric.text(mean, sign)
    if spread is None:
        return Cell(text, marks=marks)
    return Cell(text, metric.text(spread), marks)


def _completeness(setting: Setting) -> str:
    """Mark of a setting that lacks permutations; empty if it is complete."""
    if not setting.compared:
        return NOT_COMPARED
    if setting.missing:
        return INCOMPLETE
    return ""


def _repeats(settings: Sequence[Setting]) -> set[int]:
    """Numbers of permutations on which settings are compared: one for each learner."""
    return {setting.means.repeats for setting in settings if setting.compared}


def _orders(settings: Sequence[Setting], found: DatasetSummary) -> str:
    """Text of the permutations of these settings: `10 permutations`, `up to 10 permutations`."""
    repeats = _repeats(settings)
    largest = orders(max(repeats), found.data.shuffled)
    if len(repeats) > 1:
        return f"up to {largest}"
    return largest


def _notes(found: DatasetSummary) -> list[str | ColumnNote]:
    """Notes on ±, on verdicts and on how the best settings were chosen."""
    notes: list[str | ColumnNote] = []
    several_repeats = max(_repeats(found.best)) > 1
    if several_repeats:
        metric = found.criterion.metric
        notes.append(f"{metric.short}: mean ± standard deviation.")
    if len(found.best) > 1:
        notes += _difference_notes(found, several_repeats)
    notes += _choice_notes([found])
    if found.dropped:
        dropped = counted(found.dropped, "setting")
        lost = "ran on the first rounds only and lost there (--search halving)"
        notes.append(f"{dropped} more {lost}.")
    notes += _edition_notes([found])
    if len(found.timed_on) > 1:
        machines = "; ".join(found.timed_on)
        text = f"Seconds: means over trials on several machines: {machines}."
        notes.append(ColumnNote("Seconds", text))
    return notes


def _difference_notes(found: DatasetSummary, several_repeats: bool) -> list[ColumnNote]:
    """Notes on differences to the best, and on verdicts or why there are none."""
    points = ", in percentage points" if found.criterion.metric.in_percent else ""
    if several_repeats and found.data.shuffled:
        gap = "mean ± standard error of the difference to the best on the same permutations"
        test = "paired t-test, corrected for the number of learners (Holm), 5 %"
        return [
            ColumnNote("vs best", f"vs best: {gap}{points}."),
            ColumnNote("Verdict", f"worse: {test}; n.s.: not significantly worse."),
        ]
    why = "file order is not a sample and allows"
    if found.data.shuffled:
        why = "one permutation allows"
    text = f"vs best: difference to the best{points}; {why} no verdict."
    return [ColumnNote("vs best", text)]


def _edition_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Notes on learners that were run with several sources or algorithms."""
    names: dict[str, set[str]] = {}
    for found in datasets:
        for setting in found.settings:
            own = names.setdefault(setting.learner, set())
            own.add(setting.name)
    notes = []
    for learner, shown in names.items():
        count = len(shown)
        if count > 1:
            notes.append(f"{learner}: results of {count} versions are shown apart.")
    return notes


def _choice_notes(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Note on the permutations on which the best settings were chosen."""
    if not any(found.several_settings for found in datasets):
        return []
    on = "in hindsight on these same permutations"
    tune_orders = datasets[0].criterion.tune_orders
    if tune_orders:
        on = f"on {counted(tune_orders, 'permutation')}; the best are shown on the others"
    notes = [f"The best of several settings was chosen {on}."]
    for found in datasets:
        if found.unreported:
            names = ", ".join(found.unreported)
            notes.append(f"{found.short}: no other permutation is there of {names}.")
    return notes
