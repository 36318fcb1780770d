"""Reports as text: the formats that scripts, spreadsheets and papers read.

Every function here is a pure function of the records. A text ends with one newline.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ahpatron_cli.records import Json, ParamValue, Report, run_to_json, to_json
from ahpatron_cli.render.markup import to_latex, to_markdown
from ahpatron_cli.render.safe import spreadsheet_text

FORMATS = ("table", "json", "jsonl", "csv", "markdown", "latex")


def to_text(reports: Sequence[Report], format: str) -> str:
    """All reports in one of `FORMATS`; "table" is the terminal's table without colour or limit."""
    match format:
        case "json":
            return _json(reports)
        case "jsonl":
            return _jsonl(reports)
        case "csv":
            return _csv(reports)
        case "markdown":
            return to_markdown(reports)
        case "latex":
            return to_latex(reports)
        case "table":
            from ahpatron_cli.render.table import to_plain_table  # rich is needed only here

            return to_plain_table(reports)
    raise ValueError(f"no such format: {format}")


def _json(reports: Sequence[Report]) -> str:
    """One document: the report, or an array of them where several files were played."""
    documents = [to_json(report) for report in reports]
    return _dumps(documents[0] if len(documents) == 1 else documents, indent=2) + "\n"


def _jsonl(reports: Sequence[Report]) -> str:
    return "".join(_dumps(row) + "\n" for row in _run_rows(reports))


def _csv(reports: Sequence[Report]) -> str:
    """One line per run, quoted by RFC 4180; each parameter is a column `param_NAME`.

    Columns are the union over all runs and empty where a run has no such value. A text that a
    spreadsheet would take for a formula (`=`, `+`, `-`, `@` first) gets a leading apostrophe, and
    control characters are shown as `\\x1b`; numbers are never touched.
    """
    rows = []
    for row in _run_rows(reports):
        params = row.pop("params")
        rows.append(row | {f"param_{name}": value for name, value in params.items()})
    columns = list(dict.fromkeys(name for row in rows for name in row))
    target = io.StringIO()
    writer = csv.DictWriter(target, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in rows)
    return target.getvalue()


def _run_rows(reports: Sequence[Report]) -> Iterator[Json]:
    for report in reports:
        for run in report.runs:
            yield {"data": report.data.path, **run_to_json(run)}


def _csv_cell(value: ParamValue | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return _dumps(value)
    if _is_number(value):
        return value
    return spreadsheet_text(value)


def _is_number(text: str) -> bool:
    """An infinite parameter, which JSON can only hold as text."""
    return text in {str(math.inf), str(-math.inf)}


def _dumps(value: Any, indent: int | None = None) -> str:
    """ASCII, exact floats; a NaN here is a fault of ours and must not get out."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True, indent=indent)
