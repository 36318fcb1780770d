"""The tables of a sweep: learners x data sets, all settings, the best setting of each learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ahpatron_cli.numbers import (
    assignment,
    counted,
    mean_count,
    measure,
    measured_difference,
    orders,
    p_value,
    seconds,
)
from ahpatron_cli.output.table import (
    NO_SIGN,
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
from ahpatron_cli.sweep.summary import (
    MISTAKE_RATE,
    DataFindings,
    Findings,
    Matrix,
    Setting,
    TrialRecord,
)

MAX_REASONS = 5
SIGNS = {"worse": "•", "n.s.": "≈"}
"""Of verdicts in the matrix."""

_SettingField: TypeAlias = Field[Setting]

_LEARNER: _SettingField = (Column("Learner", words=True), lambda setting: Cell(setting.learner))
_SETTING: _SettingField = (
    Column("Setting", words=True),
    lambda setting: optional(setting.label),
)


def findings_page(findings: Findings, *, paper: bool = False, only_matrix: bool = False) -> Page:
    """The matrix, if there are several data sets; for each all settings, then each learner's best.

    A paper gets one table per data set: the second, or the first if there is one learner only and
    its best setting was not chosen on other orders.
    """
    tables = []
    if findings.datasets and (only_matrix or len(findings.datasets) > 1):
        tables.append(matrix_table(findings.matrix(), paper=paper))
    if not only_matrix:
        tables += [table for found in findings.datasets for table in _tables(found, paper)]
    commands = [] if only_matrix else [one for found in findings.datasets for one in _next(found)]
    failed = len(findings.failed)
    remark = "" if findings.datasets else "no trials"
    if failed:
        remark = f"{failed:,} of {counted(findings.trials + failed, 'trial')} failed:"
    return Page(tables, remark, _reasons(findings), commands)


def _next(found: DataFindings) -> Iterator[tuple[str, str]]:
    """The command that plays the best setting again, and whether the grid ends there."""
    from ahpatron_cli.sweep.plan import run_command  # which imports NumPy

    best = found.winner
    command = run_command(found.data, best)
    if command and found.settings[1:]:
        yield f"Best on {found.name}:", command
    for name, value in best.varied.items():
        tried = {params.get(name) for params in found.tried[best.learner]}
        numbers = [one for one in tried if isinstance(one, int | float)]
        if len(numbers) > 1 and value in (min(numbers), max(numbers)):
            end, beyond = (
                ("smallest", "smaller") if value == min(numbers) else ("largest", "larger")
            )
            yield (
                f"{best.learner}: {name}={best.texts[name]} is the {end} of {len(numbers)} values "
                f"tried; {beyond} ones may do better.",
                "",
            )


def matrix_table(matrix: Matrix, *, paper: bool = False) -> Table:
    """One row per learner, one column per data set, and the mean rank.

    In a paper bold type shows the best; elsewhere they have a star, too.
    """
    datasets, ranks = matrix.datasets, matrix.ranks.mean_ranks
    metric = datasets[0].criterion.metric
    best = [_lowest(found) for found in datasets] if len(matrix.learners) > 1 else []

    signed = [any(found.verdict(one) in SIGNS for one in found.best) for found in datasets]

    def cell(row: int, column: int) -> Cell | None:
        setting, found = matrix.rows[row][column], datasets[column]
        if setting is None:
            return None
        rivals = len(found.best) > 1
        return rate_cell(
            setting.mean,
            setting.sd,
            best[column] if rivals else None,
            in_percent=metric.in_percent,
            mark=rivals and setting.best_of_data and not paper,
            sign=SIGNS.get(found.verdict(setting) or "", NO_SIGN if signed[column] else ""),
        )

    columns = [Column(found.short, outside=True) for found in datasets]
    rows: list[list[Cell | None]] = [
        [Cell(learner), *(cell(row, column) for column in range(len(datasets)))]
        for row, learner in enumerate(matrix.learners)
    ]
    if len(datasets) > 1 and len(ranks) > 1:
        columns.append(Column("Rank"))
        for learner, row_cells in zip(matrix.learners, rows, strict=True):
            row_cells.append(Cell(f"{ranks[learner]:.2f}") if learner in ranks else None)
    return Table(
        "",
        f"{metric.head.removesuffix(' %')}{' in %' if metric.in_percent else ''} of the best "
        f"setting of each learner; {_orders_of(datasets)}",
        [Column("Learner", words=True), *columns],
        rows,
        _matrix_notes(matrix, paper),
        alike=True,
    )


def _matrix_notes(matrix: Matrix, paper: bool) -> list[str]:
    datasets, ranks = matrix.datasets, matrix.ranks
    notes = []
    if any(setting and setting.sd is not None for row in matrix.rows for setting in row):
        notes.append("Mean ± standard deviation.")
    if len(matrix.learners) > 1:
        notes.append("Bold: the best of its column." if paper else "(*) the best of its column.")
    verdicts = {found.verdict(setting) for found in datasets for setting in found.best}
    if verdicts & set(SIGNS):
        notes.append(
            "• significantly worse than the best, ≈ not significantly worse: paired t-test over "
            "the orders, corrected for the number of learners (Holm), 5 %."
        )
    if len(datasets) > 1 and len(ranks.mean_ranks) > 1:
        missing = len(ranks.mean_ranks) < len(matrix.learners)
        some = " of the learners that were played on all" if missing else ""
        notes.append(f"Rank: mean rank over the data sets{some}; 1 is best.")
    if ranks.p_value is not None and ranks.critical_difference is not None:
        notes.append(
            f"Friedman: χ² = {ranks.friedman:.2f}, p {_p(ranks.p_value)} over "
            f"{counted(ranks.datasets, 'data set')}. Mean ranks that differ by less than "
            f"{ranks.critical_difference:.2f} do not differ significantly (Nemenyi, 5 %)."
        )
    return notes + _choice_notes(datasets)


def _p(value: float) -> str:
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"


def _tables(found: DataFindings, paper: bool) -> list[Table]:
    several, rivals = found.several_settings, len(found.best) > 1
    if not several:
        return [best_table(found, _played(found), notes=notes_of(found, differences=rivals))]
    best = "the best setting of each learner"
    if found.criterion.tune_orders:
        best += f", {_orders(found.best, found)}"
    if not paper:
        notes = notes_of(found, differences=rivals, stars=True)
        return [settings_table(found, notes=notes), best_table(found, best, notes=notes)]
    if rivals or found.criterion.tune_orders:
        notes = notes_of(found, differences=rivals)
        about = f"{data_facts(found.data.record)}; the best setting of each learner, "
        about += _orders(found.best, found)
        return [best_table(found, about, notes=notes)]
    return [settings_table(found, notes=notes_of(found, differences=False, stars=True))]


def settings_table(found: DataFindings, *, notes: Sequence[str] = (), full: bool = False) -> Table:
    """Every setting; `full`, for a page: with its difference to the best, and all parameters."""
    rivals, stars = len(found.settings) > 1, found.several_settings
    best = next((_shown(setting, found) for setting in found.settings if setting.best_of_data), "")
    lowest = best if rivals else None
    rates = _rates(found, lowest, stars=stars)
    fields: list[_SettingField] = [
        _LEARNER,
        # a narrow window shows the rate first, and a page scrolls
        *([*rates, _SETTING] if full else [_SETTING, *rates]),
        *([(Column("vs best"), _difference(found))] if full and rivals else []),
        *_costs(spare=False),
        # the title has it if it is the same for all
        (
            Column("Orders", spare=not _unlike_orders(found.settings)),
            lambda setting: Cell(str(setting.summary.repeats)),
        ),
    ]
    if full:
        parameters = Column("All parameters", words=True, long=True)
        fields.append((parameters, lambda setting: optional(_assignments(setting))))
    about = _played(found, "all settings, ")
    return table_of(found.settings, fields, name=found.name, about=about, notes=notes)


def best_table(
    found: DataFindings, about: str, *, page: bool = False, notes: Sequence[str] = ()
) -> Table:
    """The best setting of each learner; on a page the best learner and the rate come first."""
    several, rivals = found.several_settings, len(found.best) > 1
    rates, setting = _rates(found, _lowest(found) if rivals else None), [_SETTING] * several
    fields: list[_SettingField] = [_LEARNER, *([*rates, *setting] if page else [*setting, *rates])]
    if rivals:
        fields += [
            (Column("vs best"), _difference(found)),
            (Column("Verdict", words=True), lambda setting: optional(found.verdict(setting))),
        ]
    fields += _costs(spare=several)
    settings = sorted(found.best, key=lambda one: one.cost) if page else found.best
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


def _rates(found: DataFindings, lowest: str | None, *, stars: bool = False) -> list[_SettingField]:
    """The metric that decides, and the mistake rate if that is another."""
    metric = found.criterion.metric

    def rate(setting: Setting) -> Cell:
        mark = stars and setting.best_of_learner
        spread = setting.mean, setting.sd
        return rate_cell(*spread, lowest, in_percent=metric.in_percent, mark=mark)

    fields: list[_SettingField] = [(Column(metric.head), rate)]
    if metric is not MISTAKE_RATE:
        fields.append(
            (
                Column(MISTAKE_RATE.head),
                lambda one: rate_cell(one.summary.mistake_rate_mean, one.summary.mistake_rate_sd),
            )
        )
    return fields


def _costs(*, spare: bool) -> list[_SettingField]:
    return [
        (
            Column("|N_T|", spare=spare),
            lambda setting: Cell(mean_count(setting.summary.margin_updates_mean)),
        ),
        (Column("Support", spare=spare), lambda setting: support_cell(setting.summary)),
        (
            Column("Seconds", spare=spare),
            lambda setting: Cell(seconds(setting.summary.seconds_mean)),
        ),
    ]


def _played(found: DataFindings, which: str = "") -> str:
    """The data, which settings are shown, and what their means are taken over."""
    return f"{data_facts(found.data.record)}; {which}{_orders(found.settings, found)}"


def _difference(found: DataFindings) -> Callable[[Setting], Cell | None]:
    in_percent = found.criterion.metric.in_percent

    def cell(setting: Setting) -> Cell | None:
        gap = setting.difference
        if gap is None:
            return None
        spread = None if gap.se is None else measure(gap.se, in_percent)
        return Cell(measured_difference(gap.mean, in_percent), spread)

    return cell


def _shown(setting: Setting, found: DataFindings) -> str:
    return measure(setting.mean, found.criterion.metric.in_percent)


def _lowest(found: DataFindings) -> str:
    """The best value as shown."""
    return _shown(found.winner, found)


def _most_orders(settings: Sequence[Setting]) -> int:
    return max(setting.summary.repeats for setting in settings)


def _unlike_orders(settings: Sequence[Setting]) -> bool:
    return len({setting.summary.repeats for setting in settings}) > 1


def _orders(settings: Sequence[Setting], found: DataFindings) -> str:
    up_to = "up to " if _unlike_orders(settings) else ""
    return up_to + orders(_most_orders(settings), found.data.shuffled)


def _orders_of(datasets: Sequence[DataFindings]) -> str:
    """What the means of several data sets are taken over."""
    texts = {_orders(found.best, found) for found in datasets}
    if len(texts) == 1:
        return texts.pop()
    return f"up to {counted(max(_most_orders(found.best) for found in datasets), 'order')}"


def notes_of(found: DataFindings, *, differences: bool, stars: bool = False) -> list[str]:
    """What ± and the verdicts mean, and how the best were chosen."""
    notes = []
    metric, shuffled = found.criterion.metric, found.data.shuffled
    several_orders = _most_orders(found.best) > 1
    name = metric.head.removesuffix(" %")
    if several_orders:
        notes.append(f"{name}: mean ± standard deviation over {_orders(found.best, found)}.")
    points = ", in percentage points" if metric.in_percent else ""
    if differences and several_orders and shuffled:
        notes += [
            "vs best: mean ± standard error of the difference to the best, order by order"
            f"{points}.",
            "Worse: paired t-test, corrected for the number of learners (Holm), 5 %; "
            "n.s.: not significantly worse.",
        ]
    elif differences:
        why = (
            "one order allows no verdict"
            if shuffled
            else "passes in file order are not a sample of orders and allow no verdict"
        )
        notes.append(f"vs best: difference to the best{points}; {why}.")
    notes += _choice_notes([found], stars=stars)
    if found.dropped:
        notes.append(
            f"{counted(found.dropped, 'setting')} more played the first rounds only and lost there "
            "(--search halving)."
        )
    if _unlike_orders(found.settings):
        notes.append("The best is one of the settings with the most orders.")
    return notes


def _choice_notes(datasets: Sequence[DataFindings], *, stars: bool = False) -> list[str]:
    """On which orders the best of several settings were chosen."""
    if not any(found.several_settings for found in datasets):
        return []
    tune = datasets[0].criterion.tune_orders
    star = "(*) " if stars else ""
    if tune:
        others = f"on {counted(tune, 'order')} that {'does' if tune == 1 else 'do'} not count here"
        if stars:
            others = f"on {counted(tune, 'order')}, and the best are shown on others"
        return [f"The best of several settings {star}was chosen {others}."]
    return [f"The best of several settings {star}was chosen in hindsight on these same orders."]


def _reasons(findings: Findings) -> list[str]:
    """Equal ones together, the most frequent first."""
    reasons = Counter(trial.error or "no reason given" for trial in findings.failed)
    shown = [
        f"{counted(count, 'trial')}: {reason}" for reason, count in reasons.most_common(MAX_REASONS)
    ]
    others = len(reasons) - len(shown)
    return [*shown, f"and {counted(others, 'other reason')}"] if others else shown
