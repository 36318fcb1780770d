"""Reports and findings as text: the formats that scripts, spreadsheets and papers read.

Every function here is a pure function of the records. A text ends with one newline.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ahpatron_cli.output.escape import literal, spreadsheet_text
from ahpatron_cli.output.markup import to_latex, to_markdown
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.records import CertificateRecord, Json, ParamValue, Report, runs_to_json, to_json

if TYPE_CHECKING:
    from ahpatron_cli.sweep.summary import Findings

_CERTIFICATE_FIELDS = [field.name for field in dataclasses.fields(CertificateRecord)]

FORMATS = ("table", "json", "jsonl", "csv", "markdown", "latex")


def to_text(reports: Sequence[Report], format: str) -> str:
    """All reports in one of `FORMATS`; "table" is the terminal's table without colour or limit."""
    match format:
        case "json":
            return _json(reports)
        case "jsonl":
            return _jsonl(_run_rows(reports))
        case "csv":
            return _csv(_run_rows(reports))
        case "markdown":
            return to_markdown(run_page(reports))
        case "latex":
            return to_latex(run_page(reports))
        case "table":
            from ahpatron_cli.output.terminal import to_plain_table  # rich is needed only here

            return to_plain_table(reports)
    raise ValueError(f"no such format: {format}")


def findings_to_text(findings: Findings, format: str) -> str:
    """What a sweep found in one of `FORMATS`."""
    from ahpatron_cli.output.sweep_json import findings_to_json, flat_setting_rows, setting_rows
    from ahpatron_cli.output.sweep_table import findings_page

    match format:
        case "json":
            return document(findings_to_json(findings))
        case "jsonl":
            return _jsonl(setting_rows(findings))
        case "csv":
            return _csv(flat_setting_rows(findings))
        case "markdown":
            return to_markdown(findings_page(findings, paper=True))
        case "latex":
            return to_latex(findings_page(findings, paper=True))
        case "table":
            from ahpatron_cli.output.terminal import page_to_plain_text

            return page_to_plain_text(findings_page(findings))
    raise ValueError(f"no such format: {format}")


def document(value: Json | Sequence[Json]) -> str:
    """One JSON document, for eyes and programs."""
    return _dumps(value, indent=2) + "\n"


def _json(reports: Sequence[Report]) -> str:
    """One document: the report, or an array of them where several files were played."""
    documents = [to_json(report) for report in reports]
    return document(documents[0] if len(documents) == 1 else documents)


def _jsonl(rows: Iterable[Json]) -> str:
    return "".join(_dumps(row) + "\n" for row in rows)


def _csv(rows: Iterable[Json]) -> str:
    """Quoted by RFC 4180; each parameter is a column `param_NAME`.

    Columns are the union over all rows and empty where a row has no such value. A text that a
    spreadsheet would take for a formula (`=`, `+`, `-`, `@` first) gets a leading apostrophe, and
    control characters are shown as `\\x1b`; numbers are never touched.
    """
    flat = []
    for row in rows:
        params = row.pop("params")
        row |= _flat_certificate(row) if "certificate" in row else {}
        flat.append(row | {f"param_{literal(name)}": value for name, value in params.items()})
    columns = list(dict.fromkeys(name for row in flat for name in row))
    target = io.StringIO()
    writer = csv.DictWriter(target, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in flat)
    return target.getvalue()


def _flat_certificate(row: Json) -> Json:
    """A column `certificate_NAME` for each of its fields, and the reasons as one text."""
    certificate = row.pop("certificate") or {}
    fields = {f"certificate_{name}": certificate.get(name) for name in _CERTIFICATE_FIELDS}
    return fields | {"uncertified": "; ".join(row.pop("uncertified"))}


def _run_rows(reports: Sequence[Report]) -> Iterator[Json]:
    for report in reports:
        for run in runs_to_json(report):
            yield {"data": report.data.path, **run}


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
