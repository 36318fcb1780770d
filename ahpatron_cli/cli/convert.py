"""`ahpatron convert`: delimited text with a header, to LIBSVM text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.data.delimited import Layout, Table, Wanted

_NAMED = 8
"""Columns and labels that a note names."""


def convert(
    data: options.DelimitedFile,
    label: options.LabelColumn,
    positive: options.PositiveValue = None,
    drop: options.DroppedColumns = None,
    words: options.WordColumns = None,
    missing: options.Missing = "refuse",
    map_file: options.MapFile = None,
    out: options.LibsvmFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert CSV, TSV or `;` text with a header to LIBSVM text.

    Numbers stay as they are. A column of words becomes one feature per word; a first pass over the
    file finds them, so standard input may hold numbers only. Labels may be words.
    """
    from ahpatron_cli.atomic import check_outputs, write_atomically
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.delimited import KIND, Table, Wanted, find_layout, layout_of_numbers
    from ahpatron_cli.data.source import open_source

    raise_on_signals()
    one_of("word after --missing", missing, ("zero", "refuse"))
    for option, names in (("--drop", drop or ()), ("--words", words or ())):
        if label in names:
            raise usage(f"{option} {label} names the column of the labels")
    if both := set(drop or ()) & set(words or ()):
        raise usage(f"--drop and --words both name {min(both)}")
    check_outputs({"--out": out, "--map": map_file}, [data])
    zero = missing == "zero"
    wanted = Wanted(label, tuple(drop or ()), tuple(words or ()), positive, missing_is_zero=zero)
    conversation = Conversation(quiet)
    with open_source(data, KIND) as source:
        table = Table(source)
        if not source.rereadable:
            layout = layout_of_numbers(table, wanted)
            _write(table, layout, wanted, out, commented=not map_file)
        else:
            layout = find_layout(table, wanted)
            for note in _notes(layout, positive):
                conversation.note(note)
            with open_source(data, KIND) as again:
                _write(Table(again), layout, wanted, out, commented=not map_file)
    if map_file:
        write_atomically(map_file, json.dumps(layout.describe(), indent=1) + "\n")


def _notes(layout: Layout, positive: str | None) -> Iterator[str]:
    """What became of labels and words."""
    texts = layout.label_texts
    if texts is not None:
        shown = [f"{label} → {text}" for label, text in list(texts.items())[:_NAMED]]
        others = "all others → -1" if positive is not None else "…" if len(texts) > _NAMED else ""
        yield f"labels {', '.join(filter(None, [*shown, others]))}"
    words = [column for column in layout.columns if column.words is not None]
    if words:
        shown = [f"{column.name} ({len(column.words or ())})" for column in words[:_NAMED]]
        more = ["…"] if len(words) > _NAMED else []
        yield f"columns of words, and how many words each: {', '.join(shown + more)}"


def _write(
    table: Table, layout: Layout, wanted: Wanted, out: str | None, *, commented: bool
) -> None:
    """To `out` or standard output; `commented`: the mapping comes first, as comment lines."""
    from ahpatron_cli.atomic import open_atomically
    from ahpatron_cli.data.delimited import libsvm_lines

    lines = libsvm_lines(table, layout, wanted)
    if commented:
        lines = chain(layout.comments(), lines)
    if out is None:
        for text in lines:
            sys.stdout.write(text)
        return
    with open_atomically(out) as output:
        for text in lines:
            output.write(text)
