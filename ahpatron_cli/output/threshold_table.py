"""The table of `predict --metrics`: the same model at several thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.output.table import BEST, Cell, Column, Page, Table
from ahpatron_cli.thresholds import AtThreshold, FileFigures


def figures_page(files: Sequence[FileFigures]) -> Page:
    """Page with the metrics of each file, and with its thresholds."""
    tables = []
    for file in files:
        if file.rounds:
            tables.append(_metrics_table(file))
        if file.default is not None:
            tables.append(_threshold_table(file, file.default))
    return Page(tables)


def _metrics_table(file: FileFigures) -> Table:
    """Metrics of one file, one in each row."""
    measured = file.metrics
    shown = {
        "Mistakes %": _percent(file.mistake_rate),
        "Precision %": _percent(measured.precision),
        "Recall %": _percent(measured.recall),
        "F1 %": _percent(measured.f1),
        "Balanced error %": _percent(measured.balanced_error),
        "Kappa": _four_decimals(measured.kappa),
        "AUC": _four_decimals(measured.auc),
        "Average precision": _four_decimals(measured.average_precision),
        "Log loss": _four_decimals(measured.log_loss),
        "Brier score": _four_decimals(measured.brier),
    }
    title = counted(file.rounds, "row") + " with labels"
    if len(file.labels) == 2:
        title += f"; metrics of label {file.labels[1]}"
        if file.threshold is not None:
            title += f", predicted from probability {file.threshold:g} on"
    columns = [
        Column("Metric", list(shown), left=True),
        Column("Value", list(shown.values())),
    ]
    return Table(
        kind="metrics",
        name=file.path,
        title=title,
        columns=columns,
        notes=list(_reasons(file)),
    )


def _reasons(file: FileFigures) -> Iterator[str]:
    """Why values are missing."""
    measured = file.metrics
    if len(file.labels) != 2:
        return
    negative, positive = file.labels
    if not sum(file.confusion[1]):
        yield f"No row has the label {positive}: there is no recall, AUC or average precision."
    elif not sum(file.confusion[0]):
        yield f"No row has the label {negative}: there is no AUC."
    if measured.precision is None:
        yield f"{positive} is never predicted: there is no precision."


def _threshold_table(file: FileFigures, default: AtThreshold) -> Table:
    """The same model at several thresholds, and at that of the largest F1."""
    best = file.best_f1
    points = list(file.thresholds or ())
    shown = {one.threshold for one in points}
    if best is not None and best.threshold not in shown:
        points.append(best)
        points.sort(key=lambda one: one.threshold or 0.0)
    points.insert(0, default)

    def column(heading: str, text: Callable[[AtThreshold], str | Cell | None]) -> Column:
        cells = list(map(text, points))
        return Column(heading, cells)

    thresholds = list(map(_threshold, points))
    columns = [
        Column("Threshold", thresholds, left=True),
        column("Predicted", lambda one: str(one.predicted)),
        column("Right", lambda one: str(one.true_positives)),
        column("Precision %", lambda one: _percent(one.precision)),
        column("Recall %", lambda one: _percent(one.recall)),
        column("F1 %", lambda one: _f1(one, best)),
        column("Mistakes %", lambda one: percent(one.mistake_rate)),
    ]
    positive = file.labels[1]
    notes = []
    if best is not None and best.threshold is not None:
        notes.append(f"The largest F1 on these rows is that of --threshold {best.threshold:g}.")
    return Table(
        kind="thresholds",
        name=file.path,
        title=f"{positive} is predicted if its probability is at least the threshold",
        columns=columns,
        notes=notes,
    )


def _threshold(one: AtThreshold) -> str:
    if one.threshold is None:
        return "f(x) >= 0"
    return f"{one.threshold:g}"


def _f1(one: AtThreshold, best: AtThreshold | None) -> Cell | None:
    shown = _percent(one.f1)
    if shown is None:
        return None
    marks = ""
    if best is not None and one.threshold == best.threshold:
        marks = BEST
    return Cell(shown, marks=marks)


def _percent(value: float | None) -> str | None:
    if value is None:
        return None
    return percent(value)


def _four_decimals(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:.4f}"
