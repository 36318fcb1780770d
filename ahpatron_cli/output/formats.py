"""Results on standard output and as text: tables for people, json, jsonl and csv for programs.

Field names of json, jsonl and csv are a public contract, as in `records.py`. A text ends with one
newline.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ahpatron_cli import __version__
from ahpatron_cli.errors import usage
from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.output.render import Terminal, page_text, print_to
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.table import Page, render
from ahpatron_cli.records import (
    SCHEMA,
    Json,
    Metrics,
    ParamValue,
    Report,
    data_to_json,
    plain_params,
    runs_to_json,
    setting_key,
    summary_to_json,
    to_json,
    whole,
)

if TYPE_CHECKING:  # numpy and the modules that need it are imported when they are used
    from ahpatron_cli.sweep.summary import Outcome, Setting, SweepSummary, TrialData

_OF_FAILED = ("id", "data", "learner", "params", "seed", "repeat", "error")
FORMATS = ("table", "json", "jsonl", "csv", "markdown", "latex")


def write_reports(reports: Sequence[Report], format: str) -> None:
    """Write runs to standard output."""
    _write(_reports(reports, format), format)


def to_text(reports: Sequence[Report], format: str) -> str:
    """All reports in one of `FORMATS`; "table" is the terminal's table without colour or limit."""
    return _text(_reports(reports, format), format)


def write_findings(findings: SweepSummary, format: str, *, only_matrix: bool = False) -> None:
    """Write what a sweep found to standard output."""
    _write(_findings(findings, format, only_matrix), format)


def findings_to_text(findings: SweepSummary, format: str, *, only_matrix: bool = False) -> str:
    """What a sweep found in one of `FORMATS`."""
    return _text(_findings(findings, format, only_matrix), format)


def trials_to_text(trials: Sequence[Outcome], format: str) -> str:
    """One flat row per trial, as json, jsonl or csv."""
    from ahpatron_cli.sweep.results_file import flat_trial

    rows = [flat_trial(trial) for trial in trials]
    if format not in ("json", *_ROWS):
        raise usage(f"--trials cannot be shown as {format}", "use --format csv, jsonl or json")
    return _document(rows) if format == "json" else _ROWS[format](rows)


def _reports(reports: Sequence[Report], format: str) -> Page | str:
    if format == "json":
        documents = [to_json(report) for report in reports]
        return _document(documents[0] if len(documents) == 1 else documents)
    rows = ({"data": one.data.path, **run} for one in reports for run in runs_to_json(one))
    return _ROWS[format](rows) if format in _ROWS else run_page(reports)


def _findings(findings: SweepSummary, format: str, only_matrix: bool) -> Page | str:
    from ahpatron_cli.output.sweep_table import findings_page

    if format == "json":
        return _document(_findings_to_json(findings, only_matrix))
    if format in _ROWS:
        return _ROWS[format](_matrix_rows(findings) if only_matrix else _setting_rows(findings))
    return findings_page(findings, only_matrix=only_matrix)


def _write(shown: Page | str, format: str) -> None:
    """Write and flush, so that a full disk is noticed here."""
    if format == "table" and isinstance(shown, Page):
        print_to(sys.stdout, partial(render, shown))
    else:
        sys.stdout.write(_text(shown, format))
        sys.stdout.flush()


def _text(shown: Page | str, format: str) -> str:
    return shown if isinstance(shown, str) else page_text(shown, format)


def _findings_to_json(findings: SweepSummary, only_matrix: bool) -> Json:
    criterion = findings.criterion
    wide = findings.datasets and (only_matrix or len(findings.datasets) > 1)
    document: Json = {
        "schema": SCHEMA,
        "version": __version__,
        "metric": criterion.metric.name,
        "tune_orders": criterion.tune_orders,
        "matrix": _matrix_to_json(findings) if wide else None,
    }
    if only_matrix:
        return document
    return document | {
        "trials": findings.trials,
        "failed": [
            {name: getattr(trial, name) for name in _OF_FAILED}
            | {"data": trial.data.record.path, "params": plain_params(trial.params)}
            for trial in findings.failed
        ],
        "datasets": [
            {
                "data": data_to_json(found.data.record) | _preparation(found.data),
                "settings": [
                    _setting(one) | {"best_of_data": setting_key(one) == setting_key(found.winner)}
                    for one in found.settings
                ],
                "best": [
                    _setting(setting) | {"verdict": found.verdict(setting)}
                    for setting in found.best
                ],
            }
            for found in findings.datasets
        ],
        "origins": [dict(origin) for origin in findings.origins],
    }


def _matrix_to_json(findings: SweepSummary) -> Json:
    """Learners x data sets, and the tests over data sets; null where there is no value."""
    from ahpatron_cli.output.sweep_table import rejected

    datasets, matrix, ranks = findings.datasets, findings.matrix, findings.ranks
    return {
        "data": [found.data.record.path for found in datasets],
        "learners": list(matrix),
        "mean": [[one and one.mean for one in row] for row in matrix.values()],
        "sd": [[one and one.sd for one in row] for row in matrix.values()],
        "verdict": [
            [one and found.verdict(one) for one, found in zip(row, datasets, strict=True)]
            for row in matrix.values()
        ],
        "mean_ranks": [ranks.mean_ranks.get(learner) for learner in matrix],
        "friedman": ranks.friedman,
        "friedman_p_value": ranks.p_value,
        "critical_difference": ranks.critical_difference,
        "groups": [list(group) for group in ranks.groups if rejected(ranks)],
        "wilcoxon": [dataclasses.asdict(pair) for pair in ranks.pairs],
    }


def _matrix_rows(findings: SweepSummary) -> Iterator[Json]:
    """One per learner."""
    for learner, row in findings.matrix.items():
        line: Json = {"learner": learner}
        for found, one in zip(findings.datasets, row, strict=True):
            name = literal(found.short)
            line[name] = one and one.mean
            line[f"{name} sd"] = one and one.sd
            line[f"{name} verdict"] = one and found.verdict(one)
        yield line | {"mean_rank": findings.ranks.mean_ranks.get(learner)}


def _setting_rows(findings: SweepSummary) -> Iterator[Json]:
    """One per data set and setting; with tuning orders the best of each learner on the others."""
    for found in findings.datasets:
        data = {"data": found.data.record.path, "sha256": found.data.record.sha256}
        for setting in found.best if found.criterion.tune_orders else found.settings:
            yield data | _preparation(found.data) | _setting(setting)


def _preparation(data: TrialData) -> Json:
    costs = [
        [label if isinstance(label, str) else whole(label), whole(cost)]
        for label, cost in data.costs
    ]
    preparation: Json = {
        "limit": data.limit,
        "scale": data.scale,
        "positive": None if data.positive is None else whole(data.positive),
        "shuffled": data.shuffled,
    }
    preparation |= {"table": data.table} if data.table else {}
    return preparation | ({"costs": costs} if costs else {})


def _setting(setting: Setting) -> Json:
    return summary_to_json(setting.summary) | {
        "varied": plain_params(setting.varied),
        "metric_mean": setting.mean,
        "metric_sd": setting.sd,
        "best_of_learner": setting.best_of_learner,
        "best_of_data": setting.best_of_data,
        "difference": setting.difference and dict(vars(setting.difference)),
    }


def write_inspected(
    format: str, text: Callable[[Terminal], str], document: Callable[[], Json]
) -> None:
    """Write to standard output what `text` says to people, or a JSON document."""
    if format == "json":
        _write(_document(document()), format)
    else:
        print_to(sys.stdout, text)


def _document(value: Json | Sequence[Json]) -> str:
    """One JSON document, for eyes and programs."""
    return _dumps(value, indent=2) + "\n"


def _jsonl(rows: Iterable[Json]) -> str:
    return "".join(_dumps(row) + "\n" for row in rows)


def _csv(rows: Iterable[Json]) -> str:
    """Quoted by RFC 4180; parts have columns of their own, such as `param_NAME`.

    Columns are the union over all rows and empty where a row has no such value. A text that a
    spreadsheet would take for a formula (`=`, `+`, `-`, `@` first) gets a leading apostrophe, and
    control characters are shown as `\\x1b`; numbers are never touched.
    """
    flat = [_flat(row) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    target = io.StringIO()
    writer = csv.DictWriter(target, columns, restval="", lineterminator="\n")
    writer.writerow({name: spreadsheet_text(name) for name in columns})
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in flat)
    return target.getvalue()


def _flat(row: Json) -> Json:
    """Parts as columns `PART_NAME`, the parameters last; reasons as one text."""
    flat: Json = {}
    for name, value in row.items():
        if name in ("this_file", "window", "metrics", "certificate", "difference"):
            value = _fields(name) | (value or {})
            flat |= {f"{name}_{key}": part for key, part in value.items()}
        elif name == "uncertified":
            flat[name] = "; ".join(value)
        elif name not in ("params", "varied"):
            flat[name] = value
    params: Json = row.get("params", {})
    return flat | {f"param_{literal(name)}": value for name, value in params.items()}


def _fields(part: str) -> dict[str, None]:
    """The columns of a part that a row does not have; None of those that few runs have."""
    from ahpatron_cli.core.certificates import Certificate
    from ahpatron_cli.sweep.statistics import Difference

    kinds: Any = {"metrics": Metrics, "certificate": Certificate, "difference": Difference}
    return dict.fromkeys(kinds[part].__match_args__) if part in kinds else {}


def _csv_cell(value: ParamValue | None) -> str:
    if value is None:
        return ""
    # JSON can hold an infinite parameter only as text
    if isinstance(value, str) and value not in {str(math.inf), str(-math.inf)}:
        return spreadsheet_text(value)
    return value if isinstance(value, str) else _dumps(value)


def _dumps(value: Any, indent: int | None = None) -> str:
    """ASCII, exact floats; a NaN here is a fault of ours and must not get out."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True, indent=indent)


_ROWS: Mapping[str, Callable[[Iterable[Json]], str]] = {"jsonl": _jsonl, "csv": _csv}
