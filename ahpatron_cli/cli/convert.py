"""`ahpatron convert`: delimited text with a header, to LIBSVM text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.cli.answer import Answer
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.data.delimited import Layout, Table, Wanted

_LINES = 1000
"""Lines written together."""


def convert(
    data: options.DelimitedFile,
    label: options.LabelColumn,
    positive: options.PositiveValue = None,
    drop: options.DroppedColumns = None,
    missing: options.Missing = "refuse",
    map_file: options.MapFile = None,
    out: options.LibsvmFile = None,
) -> Answer:
    """Convert CSV, TSV or `;` text with a header to LIBSVM text.

    Numbers stay as they are. A column of words becomes one feature per word; a first pass over the
    file finds them, so standard input may hold numbers only. Labels may be words.
    """
    from ahpatron_cli.atomic import check_outputs, write_atomically
    from ahpatron_cli.data.delimited import Table, Wanted, find_layout, layout_of_numbers
    from ahpatron_cli.data.source import open_source

    raise_on_signals()
    one_of("word after --missing", missing, ("zero", "refuse"))
    if label in (drop or ()):
        raise usage(f"--drop {label} would drop the labels")
    check_outputs({"--out": out, "--map": map_file}, [data])
    wanted = Wanted(label, tuple(drop or ()), positive, missing_is_zero=missing == "zero")
    with open_source(data) as source:
        table = Table(source)
        if source.is_stdin or source.size is None:
            layout = layout_of_numbers(table, wanted)
            _write(table, layout, wanted, out)
        else:
            layout = find_layout(table, wanted)
            with open_source(data) as again:
                _write(Table(again), layout, wanted, out)
    if map_file:
        write_atomically(map_file, json.dumps(layout.describe(), indent=1) + "\n")
    return Answer(lambda: None)


def _write(table: Table, layout: Layout, wanted: Wanted, out: str | None) -> None:
    from ahpatron_cli.atomic import open_atomically

    if out is None:
        _write_lines(table, layout, wanted, sys.stdout.write)
        return
    with open_atomically(out) as output:
        _write_lines(table, layout, wanted, output.write)


def _write_lines(
    table: Table, layout: Layout, wanted: Wanted, write: Callable[[str], object]
) -> None:
    from ahpatron_cli.data.delimited import libsvm_lines

    held: list[str] = []
    for line in libsvm_lines(table, layout, wanted):
        held.append(line)
        if len(held) == _LINES:
            write("".join(held))
            held.clear()
    write("".join(held))
