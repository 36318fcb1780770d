"""The tables of a sweep: learners x data sets, all settings, the best setting of each learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ahpatron_cli.numbers import assignment, counted, mean_count, orders, p_value, seconds
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
from ahpatron_cli.sweep.summary import MISTAKE_RATE, DataFindings, Findings, Setting, TrialRecord

MAX_REASONS = 5
SIGNS = {"worse": "•", "n.s.": "≈"}
"""Of verdicts in the matrix."""

_LEARNER: Field[Setting] = Column("Learner", words=True), lambda one: Cell(one.learner)
_SETTING: Field[Setting] = Column("Setting", words=True), lambda one: optional(one.label)


def findings_page(findings: Findings, *, paper: bool = False, only_matrix: bool = False) -> Page:
    """The matrix, if there are several data sets; for each all settings, then each learner's best.

    A paper gets one table per data set: the second, or the first if there is one learner only and
    its best setting was not chosen on other orders.
    """
    tables = []
    if findings.datasets and (only_matrix or len(findings.datasets) > 1):
        tables.append(matrix_table(findings, paper=paper))
    if not only_matrix:
        tables += [table for found in findings.datasets for table in _tables(found, paper)]
    alone = only_matrix or findings.part  # a part of a sweep recommends nothing
    commands = [] if alone else [one for found in findings.datasets for one in _next(found)]
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
            low = value == min(numbers)
            end, beyond = ("smallest", "smaller") if low else ("largest", "larger")
            what = f"{best.learner}: {name}={best.texts[name]} is the {end}"
            yield f"{what} of {len(numbers)} values tried; {beyond} ones may do better.", ""


def matrix_table(findings: Findings, *, paper: bool = False) -> Table:
    """One row per learner, one column per data set, and the mean rank.

    In a paper bold type shows the best; elsewhere they have a star, too.
    """
    datasets, ranks, metric = findings.datasets, findings.ranks, findings.criterion.metric

    def cell(setting: Setting | None, found: DataFindings) -> Cell | None:
        if setting is None:
            return None
        rivals = len(found.best) > 1
        signed = any(found.verdict(one) in SIGNS for one in found.best)
        return Cell(
            setting.mean_text,
            setting.sd_text,
            bold=rivals and setting.mean_text == found.winner.mean_text,
            mark=rivals and setting.best_of_data and not paper,
            sign=SIGNS.get(found.verdict(setting) or "", NO_SIGN if signed else ""),
        )

    columns = [Column(found.short, outside=True) for found in datasets]
    rows = [
        [Cell(learner), *(cell(*pair) for pair in zip(row, datasets, strict=True))]
        for learner, row in findings.matrix.items()
    ]
    if len(datasets) > 1 and len(ranks.mean_ranks) > 1:
        columns.append(Column("Rank"))
        for learner, cells in zip(findings.matrix, rows, strict=True):
            cells.append(optional(ranks.mean_ranks.get(learner), "{:.2f}".format))
    texts = {_orders(found.best, found) for found in datasets}
    most = max(repeats for found in datasets for repeats in _repeats(found.best))
    played = texts.pop() if len(texts) == 1 else f"up to {counted(most, 'order')}"
    return Table(
        "",
        f"{metric.short}{' in %' if metric.in_percent else ''} of the best "
        f"setting of each learner; {played}",
        [Column("Learner", words=True), *columns],
        rows,
        _matrix_notes(findings, paper),
        alike=True,
    )


def _matrix_notes(findings: Findings, paper: bool) -> list[str]:
    datasets, ranks = findings.datasets, findings.ranks
    notes = []
    if any(one.sd is not None for found in datasets for one in found.best):
        notes.append("Mean ± standard deviation.")
    if len(findings.matrix) > 1:
        notes.append("Bold: the best of its column." if paper else "(*) the best of its column.")
    verdicts = {found.verdict(setting) for found in datasets for setting in found.best}
    if verdicts & set(SIGNS):
        notes.append(
            "• significantly worse than the best, ≈ not significantly worse: paired t-test over "
            "the orders, corrected for the number of learners (Holm), 5 %."
        )
    if len(datasets) > 1 and len(ranks.mean_ranks) > 1:
        missing = len(ranks.mean_ranks) < len(findings.matrix)
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
    rivals = len(found.best) > 1
    if not found.several_settings:
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
    lowest = next((one.mean_text for one in found.settings if one.best_of_data and rivals), None)
    rates = _rates(found, lowest, stars=stars)
    fields: list[Field[Setting]] = [
        _LEARNER,
        # a narrow window shows the rate first, and a page scrolls
        *([*rates, _SETTING] if full else [_SETTING, *rates]),
        *([(Column("vs best"), _difference)] if full and rivals else []),
        *_costs(spare=False),
        # the title has it if it is the same for all
        (
            Column("Orders", spare=len(_repeats(found.settings)) == 1),
            lambda setting: Cell(str(setting.summary.repeats)),
        ),
    ]
    if full:
        fields.append(_ALL_PARAMETERS)
    about = _played(found, "all settings, ")
    return table_of(found.settings, fields, name=found.name, about=about, notes=notes)


def best_table(
    found: DataFindings, about: str, *, page: bool = False, notes: Sequence[str] = ()
) -> Table:
    """The best setting of each learner; on a page the best learner and the rate come first."""
    several, rivals = found.several_settings, len(found.best) > 1
    rates, setting = _rates(found, found.winner.mean_text if rivals else None), [_SETTING] * several
    fields: list[Field[Setting]] = [_LEARNER, *([*rates, *setting] if page else [*setting, *rates])]
    if rivals:
        fields += [
            (Column("vs best"), _difference),
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
        (Column("Reason", words=True, long=True), lambda one: Cell(one.error or "not recorded")),
        _ALL_PARAMETERS,
    ]
    return table_of(failed, fields, about="Trials that ended with an error; no table counts them")


def _assignments(played: Setting | TrialRecord) -> Cell | None:
    return optional(", ".join(assignment(name, value) for name, value in played.params.items()))


_ALL_PARAMETERS = Column("All parameters", words=True, long=True), _assignments


def _rates(found: DataFindings, lowest: str | None, *, stars: bool = False) -> list[Field[Setting]]:
    """The metric that decides, and the mistake rate if that is another."""

    def rate(one: Setting) -> Cell:
        mark = stars and one.best_of_learner
        return Cell(one.mean_text, one.sd_text, bold=one.mean_text == lowest, mark=mark)

    def mistake_rate(one: Setting) -> Cell:
        return rate_cell(one.summary.mistake_rate_mean, one.summary.mistake_rate_sd)

    metric = found.criterion.metric
    others = [] if metric is MISTAKE_RATE else [(Column(MISTAKE_RATE.head), mistake_rate)]
    return [(Column(metric.head), rate), *others]


def _costs(*, spare: bool) -> list[Field[Setting]]:
    heads = [Column(head, spare=spare) for head in ("|N_T|", "Support", "Seconds")]
    return [
        (heads[0], lambda one: Cell(mean_count(one.summary.margin_updates_mean))),
        (heads[1], lambda one: support_cell(one.summary)),
        (heads[2], lambda one: Cell(seconds(one.summary.seconds_mean))),
    ]


def _played(found: DataFindings, which: str = "") -> str:
    """The data, which settings are shown, and what their means are taken over."""
    return f"{data_facts(found.data.record)}; {which}{_orders(found.settings, found)}"


def _difference(setting: Setting) -> Cell | None:
    gap, metric = setting.difference, setting.metric
    if gap is None:
        return None
    return Cell(metric.text(gap.mean, "+"), None if gap.se is None else metric.text(gap.se))


def _repeats(settings: Sequence[Setting]) -> set[int]:
    return {setting.summary.repeats for setting in settings}


def _orders(settings: Sequence[Setting], found: DataFindings) -> str:
    repeats = _repeats(settings)
    return ("up to " if len(repeats) > 1 else "") + orders(max(repeats), found.data.shuffled)


def notes_of(found: DataFindings, *, differences: bool, stars: bool = False) -> list[str]:
    """What ± and the verdicts mean, and how the best were chosen."""
    notes = []
    metric, shuffled = found.criterion.metric, found.data.shuffled
    several_orders = max(_repeats(found.best)) > 1
    if several_orders:
        notes.append(
            f"{metric.short}: mean ± standard deviation over {_orders(found.best, found)}."
        )
    points = ", in percentage points" if metric.in_percent else ""
    if differences and several_orders and shuffled:
        what = "mean ± standard error of the difference to the best, order by order"
        notes += [
            f"vs best: {what}{points}.",
            "Worse: paired t-test, corrected for the number of learners (Holm), 5 %; "
            "n.s.: not significantly worse.",
        ]
    elif differences:
        why = "passes in file order are not a sample of orders and allow"
        why = "one order allows" if shuffled else why
        notes.append(f"vs best: difference to the best{points}; {why} no verdict.")
    notes += _choice_notes([found], stars=stars)
    if found.dropped:
        notes.append(
            f"{counted(found.dropped, 'setting')} more played the first rounds only and lost there "
            "(--search halving)."
        )
    if len(_repeats(found.settings)) > 1:
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
