"""`ahpatron convert`: convert a table to LIBSVM text."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import usage
from ahpatron_cli.settings import ConvertSettings
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.core.rows import Floats
    from ahpatron_cli.data.cells import Cells
    from ahpatron_cli.data.csv_text import Spans
    from ahpatron_cli.data.schema import Schema, Shares
    from ahpatron_cli.data.tables import TableReader

_PACKERS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


TablePath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv or .tsv (also gz, bz2, xz), .parquet, .arrow, .feather; - for stdin.",
    ),
]

EXAMPLES = """
  ahpatron convert bank.csv --label y --drop id --out bank.svm
"""


def convert(path: TablePath, *, settings: ConvertSettings) -> None:
    """Convert a table (CSV, Parquet, Arrow) to LIBSVM text.

    `run`, `sweep`, `inspect` and `predict` read tables themselves: convert them for other programs.
    Comment lines of the output name the features and labels.
    """
    from ahpatron_cli.atomic import check_outputs
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableReader, is_table, looks_like_libsvm
    from ahpatron_cli.setups import table_options

    raise_on_signals()
    stderr = Stderr(settings.output.quiet)
    out = settings.conversion.out
    _check_not_packed(out)
    check_outputs({"--out": out}, [path])
    positive = settings.data.positive
    options = table_options(settings.tables, settings.given, positive=positive)
    with open_source(path) as source:
        if not is_table(source, options) and looks_like_libsvm(source.head):
            raise usage(f"{path} is LIBSVM text already: there is nothing to convert")
        reader = TableReader(source, options)
        with stderr.progress(source.size, path, beside_rows=out is None) as show:
            _write(reader, out, lambda: show(source.position))
    for note in reader.info.remarks:
        stderr.note(note)


def _check_not_packed(out: str | None) -> None:
    """Refuse to write plain text to a file whose name promises compression."""
    packer = _PACKERS.get(Path(out).suffix.lower()) if out else None
    if out and packer:
        problem = f"--out writes plain text, and {out} names a compressed file"
        hint = f"pack standard output: `ahpatron convert … | {packer} > {shlex.quote(out)}`"
        raise usage(problem, hint)


def _write(reader: TableReader, out: str | None, show: Callable[[], None]) -> None:
    """Write all rows as LIBSVM text, after comments; `show` is called before each batch."""
    from ahpatron_cli.output.predictions import open_output

    with open_output(out) as output:
        for number, cells in enumerate(reader.cells(reader.numeric)):
            show()
            if number == 0:
                output.write(_comments(reader.schema))
            output.write(libsvm_text(reader, cells, reader.source.name))
            if out is None:
                sys.stdout.flush()  # a pipe may be slow
        reader.sha256()  # fails if the file has changed since it was checked


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

    from ahpatron_cli.data.csv_text import Spans
    from ahpatron_cli.data.labels import show as spelled
    from ahpatron_cli.data.schema import Shares

    schema, rows = reader.schema, len(cells.lines)
    labels = schema.label_numbers(cells, path)
    parts = [_written(labels, lambda y: "?" if y != y else spelled(y))]
    for one in schema.encoded(cells, path, reader.unseen, reader.numeric):
        if isinstance(one, Shares):
            parts.append(_shares(one))
            continue
        index, values, name = one
        if isinstance(values, Spans):
            stored = values.nonzero() if reader.numeric[name] else np.ones(rows, dtype=bool)
            prefix = f" {index}:".encode()
            parts.append(
                Spans(prefix, np.zeros(rows, dtype=np.int64), np.where(stored, len(prefix), 0))
            )
            parts.append(
                Spans(values.data, values.begins, np.where(stored, values.ends, values.begins))
            )
        elif isinstance(index, int):
            parts.append(_features(index, values))
        else:  # categories; index 0 stands for none
            parts.append(_written(index * values, lambda one: f" {one:.0f}:1" if one else ""))
    return Spans.joined([*parts, _written(np.zeros(rows), lambda _: "\n")])


def _features(index: int, values: Floats) -> Spans:
    """A feature of each row as LIBSVM text; empty where it is 0."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans
    from ahpatron_cli.output.predictions import exact_texts

    pairs = zip(values.tolist(), exact_texts(values), strict=True)
    cells = [f" {index}:{text.removesuffix('.0')}" if value else "" for value, text in pairs]
    ends = np.cumsum([0, *map(len, cells)])
    return Spans("".join(cells).encode(), ends[:-1], ends[1:])


def _shares(shares: Shares) -> Spans:
    """The features of a missing category as LIBSVM text; empty in the other rows."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    features = enumerate(shares.values.tolist(), shares.first)
    text = "".join(f" {index}:{value!r}" for index, value in features).encode()
    return Spans(text, np.zeros(len(shares.rows), dtype=np.int64), len(text) * shares.rows)


def _written(values: Floats, write: Callable[[float], str]) -> Spans:
    """`write(value)` of each value, called once for each distinct value."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    distinct, codes = np.unique(values, return_inverse=True)
    texts = [write(value).encode() for value in distinct.tolist()]
    ends = np.cumsum([0, *map(len, texts)])
    return Spans(b"".join(texts), ends[:-1][codes], ends[1:][codes])
