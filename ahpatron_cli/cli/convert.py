"""`ahpatron convert`: convert a table to LIBSVM text."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Sequence
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

_LONGEST_COMMENT = 1 << 16
"""Number of characters beyond which every feature has a comment line of its own."""


TablePath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .jsonl (also gz, bz2, xz), .parquet, .arrow, .feather; - for "
        "stdin.",
    ),
]

EXAMPLES = """
  ahpatron convert bank.csv --label y --drop id --out bank.svm
"""


def convert(path: TablePath, *, settings: ConvertSettings) -> None:
    """Convert a table (CSV, JSON lines, Parquet, Arrow) to LIBSVM text.

    `run`, `sweep`, `inspect` and `predict` read tables themselves: convert them for other programs.
    Comment lines of the output name the features and labels.
    """
    from ahpatron_cli.atomic import check_outputs
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.file_formats import is_table, looks_like_libsvm
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableReader
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
    from ahpatron_cli.data.source import PACKINGS

    if out is None:
        return
    suffix = Path(out).suffix.lower()
    if suffix in PACKINGS:
        problem = f"--out writes plain text, and {out} names a compressed file"
        packing = PACKINGS[suffix]
        command = f"ahpatron convert … | {packing} > {shlex.quote(out)}"
        raise usage(problem, f"pack standard output: `{command}`")


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
    labels = []
    for name, value in schema.labels.items():
        labels.append(f"{value:+g}={name}")
    features = []
    for index, name in enumerate(schema.features, 1):
        features.append(f"{index}={name}")
    lines = [
        "# labels: " + " ".join(labels),
        "# features: " + " ".join(features),
    ]
    lengths = map(len, lines)
    if sum(lengths) > _LONGEST_COMMENT:
        lines = [f"# feature {feature}" for feature in features]
    return "".join(f"{_printable(line)}\n" for line in lines)


def _printable(line: str) -> str:
    """A line without characters that end it or cannot be seen."""
    if line.isprintable():
        return line
    characters = []
    for character in line:
        shown = character
        if not character.isprintable():
            shown = ascii(character)[1:-1]  # without quotes
        characters.append(shown)
    return "".join(characters)


def libsvm_text(reader: TableReader, cells: Cells, path: str) -> str:
    """Convert a batch of cells to LIBSVM text.

    Cells of purely numeric columns are copied as they are; other numbers are written with the
    fewest digits that read back as the same double.
    """
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans
    from ahpatron_cli.data.schema import Shares

    schema = reader.schema
    labels = schema.label_numbers(cells, path)
    parts = [_written(labels, _label)]
    table = schema.to_feature_columns(cells, path, reader.unseen, copied=reader.numeric)
    for one in table.parts:
        if isinstance(one, Shares):
            parts.append(_shares(one))
            continue
        index, values, name = one
        if isinstance(values, Spans):
            parts += _copied(index, values, leaves_out_zeros=reader.numeric[name])
        elif isinstance(index, int):
            parts.append(_features(index, values))
        else:  # categories; index 0 stands for none
            parts.append(_written(index * values, _category))
    ends = np.zeros(len(cells.lines))
    parts.append(_written(ends, lambda _: "\n"))
    return Spans.joined(parts)


def _label(value: float) -> str:
    """A label as LIBSVM text; ? if it is missing."""
    from ahpatron_cli.data.labels import show

    if math.isnan(value):
        return "?"
    return show(value)


def _category(index: float) -> str:
    """The feature of a category as LIBSVM text; empty for index 0, which stands for none."""
    if not index:
        return ""
    return f" {index:.0f}:1"


def _copied(index: object, values: Spans, *, leaves_out_zeros: bool) -> list[Spans]:
    """The cells of a numeric column as LIBSVM text: index and number as it is written."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    rows = len(values.begins)
    stored = np.ones(rows, dtype=bool)
    if leaves_out_zeros:
        stored = values.nonzero()
    prefix = f" {index}:".encode()
    begins = np.zeros(rows, dtype=np.int64)
    lengths = np.where(stored, len(prefix), 0)
    prefixes = Spans(prefix, begins, lengths)
    ends = np.where(stored, values.ends, values.begins)
    numbers = Spans(values.data, values.begins, ends)
    return [prefixes, numbers]


def _features(index: int, values: Floats) -> Spans:
    """A feature of each row as LIBSVM text; empty where it is 0."""

    from ahpatron_cli.output.predictions import exact_texts

    cells = []
    texts = exact_texts(values)
    for value, text in zip(values.tolist(), texts, strict=True):
        cell = b""
        if value:
            number = text.removesuffix(".0")
            cell = f" {index}:{number}".encode()
        cells.append(cell)
    return _spans(cells)


def _shares(shares: Shares) -> Spans:
    """The features of a missing category as LIBSVM text; empty in the other rows."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    text = ""
    for index, value in enumerate(shares.values.tolist(), shares.first):
        text += f" {index}:{value!r}"
    begins = np.zeros(len(shares.rows), dtype=np.int64)
    ends = len(text) * shares.rows
    return Spans(text.encode(), begins, ends)


def _written(values: Floats, write: Callable[[float], str]) -> Spans:
    """`write(value)` of each value, called once for each distinct value."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    distinct, codes = np.unique(values, return_inverse=True)
    texts = [write(value).encode() for value in distinct.tolist()]
    spans = _spans(texts)
    begins = spans.begins[codes]
    ends = spans.ends[codes]
    return Spans(spans.data, begins, ends)


def _spans(cells: Sequence[bytes]) -> Spans:
    """Cells as spans of their joined text."""
    import numpy as np

    from ahpatron_cli.data.csv_text import Spans

    lengths = [len(cell) for cell in cells]
    bounds = np.cumsum([0, *lengths])
    begins = bounds[:-1]
    ends = bounds[1:]
    return Spans(b"".join(cells), begins, ends)
