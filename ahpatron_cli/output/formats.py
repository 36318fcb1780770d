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
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from msgspec import to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.errors import usage
from ahpatron_cli.output import render
from ahpatron_cli.output.escape import spreadsheet_text, use_utf8, visible
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.table import Page
from ahpatron_cli.records import (
    DOCUMENT_VERSION,
    DataRecord,
    Json,
    RunDocument,
    plain_params,
    runs_to_json,
    to_json,
    with_params,
)
from ahpatron_cli.settings import Format

if TYPE_CHECKING:  # NumPy and modules that need it are imported lazily
    from ahpatron_cli.records import Outcome, TrialData
    from ahpatron_cli.sweep.summary import DatasetSummary, Setting, SweepSummary

T = TypeVar("T")
FORMATS: tuple[str, ...] = get_args(Format)


def write(text_for: Callable[[render.Terminal], str], format: str = "table") -> None:
    """Write a text to stdout and flush, so that errors such as a full disk are raised here.

    Only tables are adapted to the encoding of the locale; other formats are the same everywhere.
    """
    if format != "table":
        use_utf8(sys.stdout)
    render.print_to(sys.stdout, text_for)


def show_document(format: str, document: T, text: Callable[[T, render.Terminal], str]) -> None:
    """Write a document to stdout as JSON, or as text made by `text`."""
    if format == "json":
        as_json = json_text(to_builtins(document))
        write(lambda _: as_json)
    else:
        write(lambda terminal: text(document, terminal))


def to_text(
    documents: Sequence[RunDocument], format: str, terminal: render.Terminal | None = None
) -> str:
    """Documents in one of `FORMATS`; without `terminal`, no bold type and no width limit."""
    if format == "json":
        as_json = [to_json(document) for document in documents]
        if len(documents) == 1:
            return json_text(as_json[0])
        return json_text(as_json)
    if format in ("jsonl", "csv"):
        rows = [row for document in documents for row in _run_rows(document)]
        return rows_text(rows, format)
    return page_text(run_page(documents), format, terminal)


def _run_rows(document: RunDocument) -> Iterator[Json]:
    """One row per run, for csv and jsonl."""
    for run in runs_to_json(document):
        yield {
            "data": document.data.path,
            **run,
            **_label_names(document.data),
        }


def _label_names(data: DataRecord) -> Json:
    """The names of the labels as a field of a row; nothing if they have none."""
    if not data.label_names:
        return {}
    return {"label_names": list(data.label_names)}


def summary_to_text(
    summary: SweepSummary,
    format: str,
    terminal: render.Terminal | None = None,
    *,
    only_matrix: bool = False,
) -> str:
    """Summary of a sweep in one of `FORMATS`."""
    from ahpatron_cli.output.sweep_table import summary_page

    if format == "json":
        return json_text(_summary_to_json(summary, only_matrix))
    if format in ("jsonl", "csv"):
        rows = _matrix_rows(summary) if only_matrix else _setting_rows(summary)
        return rows_text(rows, format)
    return page_text(summary_page(summary, only_matrix=only_matrix), format, terminal)


def trials_to_text(trials: Sequence[Outcome], format: str) -> str:
    """Trials as json, jsonl or csv, one flat row per trial."""
    from ahpatron_cli.sweep.results_file import flat_trial

    if format not in ("json", "jsonl", "csv"):
        raise usage(f"--trials cannot be shown as {format}", "use --format csv, jsonl or json")
    rows = [flat_trial(trial) for trial in trials]
    if format == "json":
        return json_text(rows)
    return rows_text(rows, format)


def json_text(document: object, indent: int | None = 2) -> str:
    """JSON text: ASCII, exact floats; raises ValueError for NaN, which is not valid JSON."""
    return json.dumps(document, allow_nan=False, ensure_ascii=True, indent=indent) + "\n"


def page_text(page: Page, format: str, terminal: render.Terminal | None) -> str:
    """A page in a format for people; see `to_text`."""
    if terminal and format == "table":
        return terminal.page(page)
    renderer = render.FORMATS[format]()
    return renderer.page(page)


def rows_text(rows: Iterable[Json], format: str) -> str:
    """Rows as JSON lines, or as CSV (RFC 4180) with nested fields in columns of their own.

    Columns are the union over all rows; missing values are empty. A text that a spreadsheet would
    interpret as a formula (starting with `=`, `+`, `-`, `@`) gets a leading apostrophe, and control
    characters are escaped as `\\x1b`; numbers are not changed.
    """
    if format == "jsonl":
        return "".join(json_text(row, indent=None) for row in rows)
    flat = [_flat(row) for row in rows]
    columns: dict[str, str] = {}
    for row in flat:
        for name in row:
            columns[name] = spreadsheet_text(name)
    target = io.StringIO()
    writer = csv.DictWriter(target, list(columns), restval="", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(flat)
    return target.getvalue()


def _flat(row: Json) -> dict[str, str]:
    """Flatten a row: nested fields become columns `PART_NAME`, parameters come last."""
    flat: Json = {}
    for name, value in row.items():
        if name in ("params", "varied"):
            continue
        if isinstance(value, dict):
            for key, part in value.items():
                flat[f"{name}_{key}"] = part
        elif name == "uncertified":
            flat[name] = "; ".join(value)
        elif name not in ("this_file", "difference", "certificate"):
            flat[name] = value
    params = row.get("params", {})
    for name, value in params.items():
        flat[f"param_{name}"] = value
    return {visible(name): _csv_cell(value) for name, value in flat.items()}


def _csv_cell(value: object) -> str:
    """A value as a cell of CSV."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    if value in ("inf", "-inf"):  # an infinite parameter is text in JSON
        return value
    return spreadsheet_text(value)


# Sweeps -------------------------------------------------------------------------------------------


def _summary_to_json(summary: SweepSummary, only_matrix: bool) -> Json:
    matrix = None
    several = len(summary.datasets) > 1
    if several or (only_matrix and summary.datasets):
        matrix = _matrix_to_json(summary)
    document: Json = {
        "schema": DOCUMENT_VERSION,
        "version": __version__,
        "metric": summary.criterion.metric.name,
        "tune_orders": summary.criterion.tune_orders,
        "matrix": matrix,
    }
    if only_matrix:
        return document
    return document | {
        "trials": summary.trials,
        "failed": [_failed_to_json(trial) for trial in summary.failed],
        "datasets": [_dataset_to_json(found) for found in summary.datasets],
        "origins": [dict(origin) for origin in summary.origins],
    }


def _failed_to_json(trial: Outcome) -> Json:
    """JSON of a trial that failed."""
    return {
        "id": trial.id,
        "data": trial.data.path,
        "learner": trial.learner,
        "params": plain_params(trial.params),
        "seed": trial.seed,
        "repeat": trial.repeat,
        "error": trial.error,
    }


def _dataset_to_json(found: DatasetSummary) -> Json:
    """JSON of a data set: facts on the data, all settings, the best of each learner."""
    facts = Json()
    for name in DataRecord.__struct_fields__:
        facts[name] = getattr(found.data, name)
    best = list[Json]()
    for setting in found.best:
        entry = _setting(setting)
        entry["verdict"] = found.verdict(setting)
        best.append(entry)
    return {
        "data": facts | _preparation(found.data),
        "settings": [_setting(setting) for setting in found.settings],
        "best": best,
    }


def _matrix_to_json(summary: SweepSummary) -> Json:
    """JSON of the matrix learners x data sets and the tests over data sets; null if missing."""
    from ahpatron_cli.sweep.summary import finite_number

    ranks = summary.ranks
    tables: dict[str, list[list[Any]]] = {name: [] for name in _OF_MATRIX}
    for row in summary.matrix.values():
        cells = list(map(_matrix_cell, summary.datasets, row))
        for name, table in tables.items():
            table.append([cell[name] for cell in cells])
    return {
        "data": [found.data.path for found in summary.datasets],
        "learners": list(summary.matrix),
        "fixed": summary.fixed,
        **tables,
        "mean_ranks": [ranks.mean_ranks.get(learner) for learner in summary.matrix],
        "friedman": ranks.friedman,
        "friedman_p_value": ranks.p_value,
        "iman_davenport": finite_number(ranks.iman_davenport),
        "iman_davenport_p_value": ranks.iman_davenport_p_value,
        "critical_difference": ranks.critical_difference,
        "groups": [list(group) for group in ranks.groups],
        "wilcoxon": [asdict(pair) for pair in ranks.pairs],
    }


_OF_MATRIX = ("mean", "sd", "verdict", "compared", "missing_permutations")
"""Fields of a cell of the matrix learners x data sets, in the order of JSON."""


def _matrix_cell(found: DatasetSummary, setting: Setting | None) -> Json:
    """The best setting of a learner on a data set; nulls if there is none."""
    if setting is None:
        return dict.fromkeys(_OF_MATRIX)
    return {
        "mean": setting.mean,
        "sd": setting.sd,
        "verdict": found.verdict(setting),
        "compared": setting.compared,
        "missing_permutations": setting.missing,
    }


def _matrix_rows(summary: SweepSummary) -> Iterator[Json]:
    """One row per learner, for csv and jsonl."""
    for learner, row in summary.matrix.items():
        line: Json = {"learner": learner}
        for found, one in zip(summary.datasets, row, strict=True):
            name = found.short
            cell = _matrix_cell(found, one)
            line[name] = cell["mean"]
            line[f"{name} sd"] = cell["sd"]
            line[f"{name} verdict"] = cell["verdict"]
            line[f"{name} compared"] = cell["compared"]
            line[f"{name} missing permutations"] = cell["missing_permutations"]
        mean_ranks = summary.ranks.mean_ranks
        line["mean_rank"] = mean_ranks.get(learner)
        yield line


def _setting_rows(summary: SweepSummary) -> Iterator[Json]:
    """One row per data set and setting; with --tune-repeats, per best setting of each learner."""
    for found in summary.datasets:
        settings = found.settings
        if found.criterion.tune_orders:
            settings = found.best
        for setting in settings:
            yield {
                "data": found.data.path,
                "sha256": found.data.sha256,
                **_preparation(found.data),
                **_setting(setting),
                **_label_names(found.data),
            }


_PREPARATION = (
    "limit",
    "scale",
    "positive",
    "max_features",
    "layout",
    "others",
    "shuffled",
    "table",
)
"""Fields of `TrialData` on the preparation of the data, in the order of JSON."""


def _preparation(data: TrialData) -> Json:
    """JSON of how the data of a trial were prepared."""
    fields = Json()
    for name in _PREPARATION:
        fields[name] = getattr(data, name)
    fields["costs"] = data.weights
    return {name: value for name, value in fields.items() if value != ()}


def _setting(setting: Setting) -> Json:
    """JSON of a setting: summary of its runs, metric, and comparison with the best."""
    return with_params(setting.means) | {
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
        "machines": setting.timed_on,
    }
