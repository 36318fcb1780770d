"""Results as text: tables for people; json, jsonl and csv for programs.

Field names of json, jsonl and csv are a public interface, as in `records.py`. Every text ends with
one newline.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ahpatron_cli import __version__
from ahpatron_cli.errors import usage
from ahpatron_cli.output import render
from ahpatron_cli.output.escape import literal, spreadsheet_text, use_utf8
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.table import Page
from ahpatron_cli.records import (
    SCHEMA,
    DataRecord,
    Json,
    Report,
    plain_params,
    runs_to_json,
    to_json,
    with_params,
)

if TYPE_CHECKING:  # NumPy and modules that need it are imported lazily
    from ahpatron_cli.sweep.summary import Outcome, Setting, SweepSummary, TrialData

FORMATS = ("table", "json", "jsonl", "csv", "markdown", "latex")


def write(text_for: Callable[[render.Terminal], str], format: str = "table") -> None:
    """Write a text to stdout and flush, so that errors such as a full disk are raised here.

    Only tables are adapted to the encoding of the locale; other formats are the same everywhere.
    """
    if format != "table":
        use_utf8(sys.stdout)
    render.print_to(sys.stdout, text_for)


def to_text(reports: Sequence[Report], format: str, terminal: render.Terminal | None = None) -> str:
    """Reports in one of `FORMATS`; without `terminal`, no bold type and no width limit."""
    if format == "json":
        documents = [to_json(report) for report in reports]
        return json_text(documents[0] if len(documents) == 1 else documents)
    if format in ("jsonl", "csv"):
        return rows_text(
            [
                {"data": report.data.path, **run, **_label_names(report.data)}
                for report in reports
                for run in runs_to_json(report)
            ],
            format,
        )
    return _page_text(run_page(reports), format, terminal)


def _label_names(data: DataRecord) -> Json:
    """The names of the labels as a field of a row; nothing if they have none."""
    return {"label_names": list(data.label_names)} if data.label_names else {}


def findings_to_text(
    findings: SweepSummary,
    format: str,
    terminal: render.Terminal | None = None,
    *,
    only_matrix: bool = False,
) -> str:
    """Summary of a sweep in one of `FORMATS`."""
    from ahpatron_cli.output.sweep_table import findings_page

    if format == "json":
        return json_text(_findings_to_json(findings, only_matrix))
    if format in ("jsonl", "csv"):
        rows = _matrix_rows(findings) if only_matrix else _setting_rows(findings)
        return rows_text(rows, format)
    return _page_text(findings_page(findings, only_matrix=only_matrix), format, terminal)


def trials_to_text(trials: Sequence[Outcome], format: str) -> str:
    """Trials as json, jsonl or csv, one flat row per trial."""
    from ahpatron_cli.sweep.results_file import flat_trial

    if format not in ("json", "jsonl", "csv"):
        raise usage(f"--trials cannot be shown as {format}", "use --format csv, jsonl or json")
    rows = [flat_trial(trial) for trial in trials]
    return json_text(rows) if format == "json" else rows_text(rows, format)


def json_text(document: Any, indent: int | None = 2) -> str:
    """JSON text: ASCII, exact floats; raises ValueError for NaN, which is not valid JSON."""
    return json.dumps(document, allow_nan=False, ensure_ascii=True, indent=indent) + "\n"


def _page_text(page: Page, format: str, terminal: render.Terminal | None) -> str:
    return (terminal if terminal and format == "table" else render.FORMATS[format]()).page(page)


def rows_text(rows: Iterable[Json], format: str) -> str:
    """Rows as JSON lines, or as CSV (RFC 4180) with nested fields in columns of their own.

    Columns are the union over all rows; missing values are empty. A text that a spreadsheet would
    interpret as a formula (starting with `=`, `+`, `-`, `@`) gets a leading apostrophe, and control
    characters are escaped as `\\x1b`; numbers are not changed.
    """
    if format == "jsonl":
        return "".join(json_text(row, indent=None) for row in rows)
    flat = [_flat(row) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    target = io.StringIO()
    writer = csv.DictWriter(target, columns, restval="", lineterminator="\n")
    writer.writerow({name: spreadsheet_text(name) for name in columns})
    writer.writerows(flat)
    return target.getvalue()


def _flat(row: Json) -> dict[str, str]:
    """Flatten a row: nested fields become columns `PART_NAME`, parameters come last."""
    flat: Json = {}
    for name, value in row.items():
        if isinstance(value, dict) and name not in ("params", "varied"):
            flat |= {f"{name}_{key}": part for key, part in value.items()}
        elif name not in ("params", "varied", "this_file", "difference", "certificate"):
            flat[name] = "; ".join(value) if name == "uncertified" else value
    flat |= {f"param_{name}": value for name, value in row.get("params", {}).items()}
    return {literal(name): _csv_cell(value) for name, value in flat.items()}


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    # an infinite parameter is text in JSON
    return value if value in ("inf", "-inf") else spreadsheet_text(value)


# Sweeps -------------------------------------------------------------------------------------------


def _findings_to_json(findings: SweepSummary, only_matrix: bool) -> Json:
    wide = findings.datasets and (only_matrix or len(findings.datasets) > 1)
    document: Json = {
        "schema": SCHEMA,
        "version": __version__,
        "metric": findings.criterion.metric.name,
        "tune_orders": findings.criterion.tune_orders,
        "matrix": _matrix_to_json(findings) if wide else None,
    }
    if only_matrix:
        return document
    of_failed = ("id", "data", "learner", "params", "seed", "repeat", "error")
    return document | {
        "trials": findings.trials,
        "failed": [
            {name: getattr(trial, name) for name in of_failed}
            | {"data": trial.data.path, "params": plain_params(trial.params)}
            for trial in findings.failed
        ],
        "datasets": [
            {
                "data": {name: getattr(found.data, name) for name in DataRecord.__struct_fields__}
                | _preparation(found.data),
                "settings": [_setting(one) for one in found.settings],
                "best": [_setting(one) | {"verdict": found.verdict(one)} for one in found.best],
            }
            for found in findings.datasets
        ],
        "origins": [dict(origin) for origin in findings.origins],
    }


def _matrix_to_json(findings: SweepSummary) -> Json:
    """JSON of the matrix learners x data sets and the tests over data sets; null if missing."""
    datasets, rows, ranks = findings.datasets, findings.matrix.values(), findings.ranks
    return {
        "data": [found.data.path for found in datasets],
        "learners": list(findings.matrix),
        "mean": [[one and one.mean for one in row] for row in rows],
        "sd": [[one and one.sd for one in row] for row in rows],
        "verdict": [
            [one and found.verdict(one) for one, found in zip(row, datasets, strict=True)]
            for row in rows
        ],
        "compared": [[one and one.compared for one in row] for row in rows],
        "missing_permutations": [[one and one.missing for one in row] for row in rows],
        "mean_ranks": [ranks.mean_ranks.get(learner) for learner in findings.matrix],
        "friedman": ranks.friedman,
        "friedman_p_value": ranks.p_value,
        "critical_difference": ranks.critical_difference,
        "groups": [list(group) for group in ranks.groups],
        "wilcoxon": [asdict(pair) for pair in ranks.pairs],
    }


def _matrix_rows(findings: SweepSummary) -> Iterator[Json]:
    """One row per learner, for csv and jsonl."""
    for learner, row in findings.matrix.items():
        line: Json = {"learner": learner}
        for found, one in zip(findings.datasets, row, strict=True):
            line[found.short] = one and one.mean
            line[f"{found.short} sd"] = one and one.sd
            line[f"{found.short} verdict"] = one and found.verdict(one)
            line[f"{found.short} compared"] = one and one.compared
            line[f"{found.short} missing permutations"] = one and one.missing
        yield line | {"mean_rank": findings.ranks.mean_ranks.get(learner)}


def _setting_rows(findings: SweepSummary) -> Iterator[Json]:
    """One row per data set and setting; with --tune-orders, per best setting of each learner."""
    for found in findings.datasets:
        data = {"data": found.data.path, "sha256": found.data.sha256}
        for setting in found.best if found.criterion.tune_orders else found.settings:
            row = data | _preparation(found.data) | _setting(setting)
            yield row | _label_names(found.data)


def _preparation(data: TrialData) -> Json:
    from ahpatron_cli.sweep.summary import PREPARED

    names = (*PREPARED, "shuffled", "table", "costs")
    return {name: getattr(data, name) for name in names if getattr(data, name) != ()}


def _setting(setting: Setting) -> Json:
    return with_params(setting.summary) | {
        "varied": plain_params(setting.varied),
        "metric_mean": setting.mean,
        "metric_sd": setting.sd,
        "best_of_learner": setting.best_of_learner,
        "best_of_data": setting.best_of_data,
        "difference": setting.difference and asdict(setting.difference),
        "compared": setting.compared,
        "finished_permutations": len(setting.finished),
        "missing_permutations": setting.missing,
        "algorithm": setting.edition.algorithm,
        "source": setting.edition.source,
    }
