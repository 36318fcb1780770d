"""`ahpatron convert`: any table to LIBSVM text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.data.batch import Batch
    from ahpatron_cli.data.schema import Schema

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
            for number, chunk in enumerate(reader):
                show(source.position)
                if reader.schema and not number:
                    output.write(_comments(reader.schema))
                output.write(libsvm_text(chunk))
                if out is None:
                    sys.stdout.flush()  # a pipe may be slow
    for note in reader.traits.remarks:
        stderr.note(note)


def _comments(schema: Schema) -> str:
    """Two lines that name labels and features; those of one name each if there are very many."""
    labels = " ".join(f"{value:+g}={name}" for name, value in schema.labels.items())
    features = [f"{i}={name}" for i, name in enumerate(schema.features, 1)]
    lines = [f"# labels: {labels}", "# features: " + " ".join(features)]
    if sum(map(len, lines)) > 1 << 16:
        lines = ["# feature " + feature for feature in features]
    shown = ("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines)
    return "".join(f"{line}\n" for line in shown)


def libsvm_text(chunk: Batch) -> str:
    """Rows as LIBSVM text; numbers are the shortest that are read as the same number again."""
    import msgspec
    import numpy as np

    rows = chunk.stored
    # label, index, value, index, value, … of all rows as one JSON list, because msgspec spells
    # numbers ten times as fast as Python; then its commas become spaces, colons and line ends
    size, starts = len(rows) + 2 * len(rows.values), 2 * rows.indptr[:-1] + np.arange(len(rows))
    features = np.delete(np.arange(size), starts)
    numbers = np.empty(size, dtype=object)
    numbers[starts], numbers[features[::2]] = chunk.labels, rows.columns
    numbers[features[1::2]] = rows.values
    ends = np.full(size, ord(" "), dtype=np.uint8)
    ends[features[::2]] = ord(":")
    ends[np.append(starts[1:], size) - 1] = ord("\n")
    text = bytearray(msgspec.json.encode(numbers.tolist())[1:-1] + b",")
    text = text.replace(b".0,", b",").replace(b"null,", b"?,")
    letters = np.frombuffer(text, dtype=np.uint8)
    letters[letters == ord(",")] = ends
    return text.decode("ascii")
