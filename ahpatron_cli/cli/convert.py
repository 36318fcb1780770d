"""`ahpatron convert`: convert a table to LIBSVM text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.data.csv_text import Cells
    from ahpatron_cli.data.schema import Schema
    from ahpatron_cli.data.tables import TableReader

_PACKERS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def convert(
    data: options.ConvertData,
    label: options.Label = None,
    positive: options.Positive = None,
    id: options.Id = None,
    drop: options.Drop = None,
    category: options.Category = None,
    missing: options.Missing = "indicator",
    out: options.ConvertOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert a table (CSV, Parquet, Arrow) to LIBSVM text.

    `run`, `sweep`, `inspect` and `predict` read tables themselves: convert them for other programs.
    Comment lines of the output name the features and labels.
    """
    from ahpatron_cli.atomic import check_outputs
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.dataset import changed
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableOptions, TableReader
    from ahpatron_cli.output.predictions import open_output

    raise_on_signals()
    stderr = Stderr(quiet)
    if out is not None and (packer := _PACKERS.get(Path(out).suffix.lower())):
        problem = f"--out writes plain text, and {out} names a compressed file"
        hint = f"pack standard output: `ahpatron convert … | {packer} > {shlex.quote(out)}`"
        raise usage(problem, hint)
    check_outputs({"--out": out}, [data])
    asked = TableOptions(label, id, tuple(drop or ()), tuple(category or ()), missing, positive)
    with open_source(data) as source:
        reader = TableReader(source, asked)
        progress = stderr.progress(source.size, data, beside_rows=out is None)
        with open_output(out) as output, progress as show:
            for number, cells in enumerate(reader.cells(as_text=bool(reader.numeric))):
                show(source.position)
                if not number:
                    output.write(_comments(reader.schema))
                output.write(libsvm_text(reader, cells, source.name))
                if out is None:
                    sys.stdout.flush()  # a pipe may be slow
            if reader.scan and source.sha256() != reader.scan.sha256:
                raise changed(data)
    for note in reader.traits.remarks:
        stderr.note(note)


def _comments(schema: Schema) -> str:
    """Comment lines that name labels and features; one line per name if there are very many."""
    labels = " ".join(f"{value:+g}={name}" for name, value in schema.labels.items())
    features = [f"{i}={name}" for i, name in enumerate(schema.features, 1)]
    lines = [f"# labels: {labels}", "# features: " + " ".join(features)]
    if sum(map(len, lines)) > 1 << 16:
        lines = ["# feature " + feature for feature in features]
    shown = ("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines)
    return "".join(f"{line}\n" for line in shown)


def libsvm_text(reader: TableReader, cells: Cells, path: str) -> str:
    """Convert a batch of cells to LIBSVM text.

    Cells of purely numeric columns are copied as they are; other numbers are written with the
    fewest digits that read back as the same double.
    """
    import numpy as np

    from ahpatron_cli.data.labels import show as spelled

    schema, numeric = reader.schema, reader.numeric
    labels = np.nan_to_num(schema.label_numbers(cells, path), nan=np.inf).tolist()
    shown = {label: "?" if label == np.inf else spelled(label) for label in set(labels)}
    form, columns = "%s", [[shown[label] for label in labels]]
    for index, values, name in schema.indexed(cells, path, reader.odd, numeric):
        if isinstance(values, list) and not numeric[name]:
            form += f" {index}:%s"
            columns.append(values)
            continue
        form += "%s"
        if isinstance(values, list):  # numbers as text: 0 if no digit other than 0 occurs
            columns.append([f" {index}:{cell}" if cell.strip("+-.0") else "" for cell in values])
        elif isinstance(index, int):
            numbers = values.tolist()
            texts = {value: f" {index}:{spelled(value)}" if value else "" for value in set(numbers)}
            columns.append([texts[value] for value in numbers])
        else:  # categories; index 0 stands for none
            indices = (index * values).tolist()
            texts = {one: f" {one:.0f}:1" if one else "" for one in set(indices)}
            columns.append([texts[one] for one in indices])
    flat = [""] * (len(labels) * len(columns))
    for number, column in enumerate(columns):
        flat[number :: len(columns)] = column
    return f"{form}\n" * len(labels) % tuple(flat)
