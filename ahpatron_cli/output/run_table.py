"""Tables of a run, for each data file: learners, classes, metrics and certificates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from ahpatron_cli.number_text import counted, mean_count, orders, percent, seconds, short
from ahpatron_cli.output.table import (
    BELOW_BASELINE,
    BEST,
    VACUOUS,
    Cell,
    Column,
    ColumnNote,
    Page,
    Table,
    data_facts,
    statistic_columns,
    support_text,
)
from ahpatron_cli.records import LearnerMeans, RunDocument, RunRecord

if TYPE_CHECKING:
    from ahpatron_cli.core.certificates import Certificate

MAX_SHOWN_CLASSES = 20
"""Largest number of classes for which the confusion matrix is shown; else JSON only."""
_COUNT_SYMBOLS = {"mistakes": "|M_T|", "failures": "|M'_T|"}
"""Symbols of what a certificate counts."""


def run_page(documents: Sequence[RunDocument]) -> Page:
    """Page with a table per data file, and tables of classes, metrics and certificates, if any."""
    tables: list[Table] = []
    reasons: Counter[str] = Counter()
    for document in documents:
        tables += _tables(document)
        reasons.update(_reasons(document))
    remarks = ["Not certified:"] if reasons else []
    for reason, count in reasons.items():
        if count > 1:
            remarks.append(f"{reason} ({count} runs)")
        else:
            remarks.append(reason)
    return Page(tables, remarks)


def _tables(document: RunDocument) -> Iterator[Table]:
    """Tables of one data file."""
    classes = len(document.data.labels)
    yield _run_table(document)
    if 2 < classes <= MAX_SHOWN_CLASSES:
        for runs in document.by_learner():
            yield _confusion_table(document, runs)
    if any(run.metrics is not None for run in document.runs):
        yield _metrics_table(document)
    certified = document.certified or ()
    certificates = [one for one in certified if not isinstance(one, tuple)]
    if certificates:
        yield _certificate_table(document)
        yield _terms_table(document)


def _reasons(document: RunDocument) -> Iterator[str]:
    """Why runs have no certificate, with the name of the learner."""
    of_runs = document.certified or ()
    for run, certified in zip(document.runs, of_runs, strict=False):
        if isinstance(certified, tuple):
            for reason in certified:
                yield f"{run.learner}: {reason}"


def _mean(runs: Sequence[RunRecord], name: str) -> float | None:
    """Mean of a count or metric over the repeats that have it; None if none has."""
    known = []
    for run in runs:
        of_metrics = getattr(run.metrics, name, None)
        value = getattr(run, name, of_metrics)
        if value is not None:
            known.append(value)
    if not known:
        return None
    return fmean(known)


def _means(
    document: RunDocument,
    heading: str,
    name: str,
    *,
    priority: int = 1,
    text: Callable[[float], str | None] = mean_count,
) -> Column:
    """Column with the mean of a count or metric, a row per learner."""
    cells = list[str | None]()
    for runs in document.by_learner():
        mean = _mean(runs, name)
        cell = None
        if mean is not None:
            cell = text(mean)
        cells.append(cell)
    return Column(heading, cells, priority)


def _learners(document: RunDocument) -> Column:
    names = [runs[0].learner for runs in document.by_learner()]
    return Column("Learner", names, left=True)


def _over(what: str, document: RunDocument) -> str:
    """Suffix of a title, such as `; mean over 10 permutations`; empty for a single repeat."""
    repeats = max(map(len, document.by_learner()), default=0)
    if repeats <= 1:
        return ""
    return f"; {what} {orders(repeats, document.shuffled)}"


def _run_table(document: RunDocument) -> Table:
    """Table of the mistakes and counts of each learner."""
    means = document.means()
    windows = [run.window.rounds for run in document.runs if run.window]
    window = max(windows, default=0)
    sizes = [support_text(line) for line in means]
    columns = [
        _learners(document),
        Column("Mistakes %", _rates(document, means)),
        Column("This file %", _rates_of_file(document), 1),
        Column(f"Last {window:,} %", _recent_rates(document), 1),
        _means(document, "|M_T|", "mistakes", priority=4),
        _means(document, "|N_T|", "margin_updates", priority=5),
        Column("Support", sizes, 2),
        _means(document, "Halvings", "halvings", priority=7),
        _means(document, "ζ̂", "zeta", priority=8, text=_four_decimals),
        Column("Restarts", _restarts(document), 6),
        _means(document, "Alarms", "alarms", priority=6, text=_count_unless_zero),
        _means(document, "Tracker %", "tracker_share", priority=7, text=_percent_unless_zero),
        _means(document, "Metric changes", "metric_changes", priority=6),
        *statistic_columns(means),
        _means(document, "Seconds", "seconds", priority=3, text=seconds),
    ]
    notes = []
    several_classes = _has_classes(document)
    ways = {line.params.get("multiclass") for line in means}
    if several_classes and ways - {"shared"}:
        notes.append("One learner per class: support is the largest; |N_T| and halvings are sums.")
    thresholds = [run.threshold for run in document.runs if run.threshold is not None]
    if thresholds:
        threshold = thresholds[0]
        notes.append(f"{_positive(document)} is predicted from probability {threshold:g} on.")
    return Table(
        kind="run",
        name=document.data.path,
        title=_run_title(document),
        columns=columns,
        notes=notes,
    )


def _run_title(document: RunDocument) -> str:
    """Title of the table of a run: facts on the data, the repeats and the baseline."""
    groups = document.by_learner()
    facts = data_facts(document.data, are_classes=_has_classes(document))
    title = facts + _over("mean ± sd over", document)
    rounds = [runs[0].rounds for runs in groups]
    in_all = max(rounds, default=0)
    if in_all > document.data.rounds:
        title += f"; {counted(in_all, 'round')} in all"
    if document.runs and document.runs[0].unlabelled:
        unlabelled = document.runs[0].unlabelled
        title += f"; {counted(unlabelled, 'row')} without a label"
    baseline = None
    if groups:
        baseline = _baseline(groups[0])
    if baseline is not None:
        title += f"; baseline {percent(baseline)} %"
    return title


def _baseline(runs: Sequence[RunRecord]) -> float | None:
    """Mean mistake rate of always predicting the most frequent label so far."""
    mistakes = _mean(runs, "baseline_mistakes")
    if mistakes is None:
        return None
    return mistakes / max(runs[0].rounds, 1)


def _rates(document: RunDocument, means: Sequence[LearnerMeans]) -> list[Cell]:
    """Mistake rate of each learner; the best and those above the baseline are marked."""
    groups = document.by_learner()
    rates = [line.mistake_rate_mean for line in means]
    lowest = min(rates, default=0.0)
    cells = []
    for runs, line in zip(groups, means, strict=True):
        mean = line.mistake_rate_mean
        sd = line.mistake_rate_sd
        baseline = _baseline(runs)
        marks = ""
        if mean == lowest and len(groups) > 1:  # not for a single learner
            marks += BEST
        if baseline is not None and mean > baseline:
            marks += BELOW_BASELINE
        spread = None
        if sd is not None:
            spread = percent(sd)
        cell = Cell(percent(mean), spread, marks)
        cells.append(cell)
    return cells


def _rates_of_file(document: RunDocument) -> list[str | None]:
    """Mistake rate of each learner on this file alone, if the run was resumed."""
    cells = list[str | None]()
    for runs in document.by_learner():
        first = runs[0]
        part = first.this_file
        cell = None
        if part is not None and 0 < part.rounds < first.rounds:
            cell = percent(part.mistake_rate)
        cells.append(cell)
    return cells


def _recent_rates(document: RunDocument) -> list[str | None]:
    """Mistake rate of each learner in its last rounds, if it was recorded."""
    cells = list[str | None]()
    for runs in document.by_learner():
        known = [run.window.mistake_rate for run in runs if run.window]
        cell = None
        if known:
            cell = percent(fmean(known))
        cells.append(cell)
    return cells


def _restarts(document: RunDocument) -> list[str | None]:
    """Mean number of resets of each learner; empty if its restarts are alarms of a tracker."""
    cells = list[str | None]()
    for runs in document.by_learner():
        mean = _mean(runs, "restarts")
        cell = None
        if mean is not None and runs[0].alarms is None:
            cell = _count_unless_zero(mean)
        cells.append(cell)
    return cells


def _four_decimals(mean: float) -> str:
    return f"{mean:.4f}"


def _count_unless_zero(mean: float) -> str | None:
    """A mean count as text; None for 0, which leaves the cell empty."""
    if mean == 0:
        return None
    return mean_count(mean)


def _percent_unless_zero(mean: float) -> str | None:
    """A mean share in per cent; None for 0."""
    if mean == 0:
        return None
    return percent(mean)


def _confusion_table(document: RunDocument, runs: Sequence[RunRecord]) -> Table:
    """Confusion matrix: rounds by true class (rows) and predicted class, summed over repeats."""
    first = runs[0]
    names = [str(label) for label in first.classes or ()]
    if document.data.label_names:
        names = list(document.data.label_names)
    matrices = [run.confusion or () for run in runs]
    columns = [Column("Label", names, left=True)]
    for at, name in enumerate(names):
        cells = list[str]()
        for same_class in zip(*matrices, strict=True):  # one row of each repeat
            total = sum(row[at] for row in same_class)
            cells.append(str(total))
        columns.append(Column(name, cells, 1))
    title = f"confusion of {first.learner}; rows are true, columns predicted labels"
    if len(runs) > 1:
        repeats = orders(len(runs), document.shuffled)
        title += f"; sum over {repeats}"
    return Table(
        kind=f"confusion-{first.learner}",
        name=document.data.path,
        title=title,
        columns=columns,
    )


def _has_classes(document: RunDocument) -> bool:
    """Whether labels are classes, of which a stream may have had one or two so far."""
    return bool(document.runs) and document.runs[0].classes is not None


def _positive(document: RunDocument) -> str:
    """Name of the positive one of two labels."""
    names = document.data.label_names
    if names:
        return names[-1]
    return "+1"


def _metrics_table(document: RunDocument) -> Table:
    """Table of metrics, as means over the repeats."""
    title = "metrics"
    if not _has_classes(document):
        title = f"metrics of label {_positive(document)}"
    columns = [
        _learners(document),
        _means(document, "Precision %", "precision", text=percent),
        _means(document, "Recall %", "recall", text=percent),
        _means(document, "F1 %", "f1", text=percent),
        _means(document, "Balanced error %", "balanced_error", text=percent),
        _means(document, "Kappa", "kappa", text=_four_decimals),
        _means(document, "AUC", "auc", text=_four_decimals),
        _means(document, "Avg. precision", "average_precision", text=_four_decimals),
        _means(document, "Log loss", "log_loss", priority=2, text=_four_decimals),
        _means(document, "Brier", "brier", text=_four_decimals),
    ]
    return Table(
        kind="metrics",
        name=document.data.path,
        title=title + _over("mean over", document),
        columns=columns,
    )


def _certificate_table(document: RunDocument) -> Table:
    """Table of mistakes and their bounds; with several repeats, that of the largest bound."""
    largest = _largest_bounds(document)
    certificates = list(largest.values())

    def column(
        heading: str,
        text: Callable[[Certificate], str | Cell],
        priority: int = 0,
        *,
        left: bool = False,
    ) -> Column:
        cells = [None if one is None else text(one) for one in certificates]
        return Column(heading, cells, priority, left=left)

    columns = [
        Column("Learner", list(largest), left=True),
        column("Count", lambda one: _COUNT_SYMBOLS[one.counts], 5, left=True),
        column("Made", lambda one: str(one.count)),
        column("Bound", _bound_cell),
        column("Trivial", lambda one: str(one.trivial), 1),
        column("By", lambda one: one.theorem, 2, left=True),
        column("Comparator f", lambda one: one.comparator, 4, left=True),
        column("L_T(f)", lambda one: f"{one.loss:.1f}", 3),
        column("‖f‖", lambda one: f"{one.norm:.2f}", 3),
    ]
    notes: list[str | ColumnNote] = ["The theorem guarantees Made <= Bound."]
    notes.append(ColumnNote("Trivial", "Made cannot exceed Trivial in any case."))
    counts = {one.counts for one in certificates if one}
    if "failures" in counts:
        failures = "|M'_T| counts the rounds with y f(x) at most 0; all mistakes are among them."
        notes.append(ColumnNote("Count", failures))
    return Table(
        kind="certificates",
        name=document.data.path,
        title="certified" + _over("the largest bound of", document),
        columns=columns,
        notes=notes,
    )


def _terms_table(document: RunDocument) -> Table:
    """Table of the terms of the bounds, from which they can be computed again."""
    rows = list[_TermRow]()
    formulas = dict[str, None]()
    quantities = list[str]()
    for learner, one in _largest_bounds(document).items():
        if one is None:
            continue
        rows += _term_rows(learner, one)
        formula = f"{one.theorem}: {one.formula}."
        formulas[formula] = None
        known = []
        for name, number in one.quantities.items():
            text = short(number, 6)
            known.append(f"{name} = {text}")
        if known:
            listed = ", ".join(known)
            quantities.append(f"{learner}: {listed}.")
    learners = [row.learner for row in rows]
    symbols = [row.symbol for row in rows]
    factors = [row.factor for row in rows]
    values = [row.value for row in rows]
    products = [row.product for row in rows]
    columns = [
        Column("Learner", learners, left=True),
        Column("Term", symbols, left=True),
        Column("Factor", factors, 1),
        Column("Value", values, 1),
        Column("Product", products),
    ]
    return Table(
        kind="terms",
        name=document.data.path,
        title="terms of the bounds",
        columns=columns,
        notes=["Bound is the sum of Factor x Value, rounded up.", *formulas, *quantities],
    )


class _TermRow(NamedTuple):
    """The texts of a row of the table of terms."""

    learner: str
    symbol: str
    factor: str = ""
    value: str = ""
    product: str = ""


def _term_rows(learner: str, certificate: Certificate) -> Iterator[_TermRow]:
    """A row for each term of a bound, without the allowance for rounding errors; then their sum."""
    total = 0.0
    for term in certificate.terms[:-1]:
        factor = short(float(term.factor), 6)
        value = short(float(term.value), 6)
        yield _TermRow(
            learner,
            term.symbol,
            factor=factor,
            value=value,
            product=f"{term.product:.2f}",
        )
        learner = ""  # once is enough
        total += term.product
    yield _TermRow("", "sum", product=f"{total:.2f}")


def _largest_bounds(document: RunDocument) -> dict[str, Certificate | None]:
    """The certificate with the largest bound of each learner; None if it has none."""
    largest: dict[str, Certificate | None] = {}
    certified = document.certified or ()
    for run, one in zip(document.runs, certified, strict=True):
        before = largest.setdefault(run.learner, None)
        if isinstance(one, tuple):
            continue
        if before is None or one.bound > before.bound:
            largest[run.learner] = one
    return largest


def _bound_cell(certificate: Certificate) -> Cell:
    bound = math.ceil(certificate.bound)
    marks = VACUOUS if certificate.vacuous else ""
    return Cell(str(bound), marks=marks)
