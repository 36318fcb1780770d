"""`ahpatron convert`: delimited text with a header, to LIBSVM text."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.data.delimited import Layout

_NAMED = 8
"""Columns and labels that a note names."""
_PACKERS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def convert(
    data: options.ConvertData,
    label: options.Label = None,
    positive: options.ConvertPositive = None,
    drop: options.Drop = None,
    words: options.Words = None,
    missing: options.Missing = "refuse",
    like: options.Like = None,
    map_file: options.MapFile = None,
    out: options.ConvertOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert CSV, TSV or `;` text with a header to LIBSVM text.

    Numbers stay as they are. A column of words becomes one feature per word; a first pass over the
    file finds them, so standard input may hold numbers only. Labels may be words. With --like, text
    is converted as an earlier file was, in one pass: do so before `ahpatron predict`.
    """
    from ahpatron_cli.atomic import check_outputs, open_atomically, write_atomically
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.delimited import (
        Wanted,
        find_layout,
        layout_like,
        layout_of_numbers,
        libsvm_lines,
        read_mapping,
    )
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.table import KIND, Table

    raise_on_signals()
    one_of("word after --missing", missing, ("zero", "refuse"))
    for option, names in (("--drop", drop or ()), ("--words", words or ())):
        if label in names:
            raise usage(f"{option} {label} names the column of the labels")
    if both := set(drop or ()) & set(words or ()):
        raise usage(f"--drop and --words both name {min(both)}")
    if out is not None and (packer := _PACKERS.get(Path(out).suffix.lower())):
        hint = f"leave out --out and pack standard output: `ahpatron convert ... | {packer} > "
        problem = f"--out writes plain text, and {out} names a compressed file"
        raise usage(problem, f"{hint}{shlex.quote(out)}`")
    check_outputs({"--out": out, "--map": map_file}, filter(None, [data, like]))
    given = {"--positive": positive, "--drop": drop, "--words": words, "--map": map_file}
    for option, value in given.items():
        if like is not None and value:
            raise usage(f"{option} has no effect with --like", "leave one of them out")
    if label is None and like is None:
        hint = "name the column of labels, or an earlier mapping: --like MAP.json"
        raise usage("missing option '--label'", hint)
    talk = Conversation(quiet)
    mapping = None if like is None else read_mapping(like)
    columns = label or "", tuple(drop or ()), tuple(words or ()), positive
    wanted = Wanted(*columns, missing_is_zero=missing == "zero", like=like)
    unknown: dict[str, None] = {}
    with ExitStack() as opened:
        source = opened.enter_context(open_source(data, KIND))
        table = Table(source)
        if mapping:
            layout = layout_like(table, mapping, label)
            used = {layout.label_place, *(column.place for column in layout.columns)}
            if rest := [name for i, name in enumerate(table.header) if i not in used]:
                talk.note(f"columns that {like} lacks are left out: {_listed(rest)}")
        elif source.rereadable:
            layout = find_layout(table, wanted)
            for note in _notes(layout, positive):
                talk.note(note)
            table = Table(opened.enter_context(open_source(data, KIND)))
        else:
            layout = layout_of_numbers(table, wanted)
        comments: Iterable[str] = [] if map_file else layout.comments()
        if mapping:  # one line, as the header is one: the rows keep their line numbers
            comments = ["# labels and features: see the mapping\n"]
        output = sys.stdout if out is None else opened.enter_context(open_atomically(out))
        for text in chain(comments, libsvm_lines(table, layout, wanted, unknown)):
            output.write(text)
    if unknown:
        talk.note(f"words that {like} lacks are written as 0: {_listed(list(unknown))}")
    if map_file:
        write_atomically(map_file, json.dumps(layout.describe(), indent=1) + "\n")


def _listed(names: list[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _notes(layout: Layout, positive: str | None) -> Iterator[str]:
    """What became of labels and words."""
    texts = layout.label_texts
    if texts is not None:
        shown = [f"{label} → {text}" for label, text in texts.items()]
        if positive is None:
            yield f"labels {_listed(shown)}"
        else:
            yield f"labels {', '.join([*shown[:_NAMED], 'all others → -1'])}"
    words = [column for column in layout.columns if column.words is not None]
    if words:
        shown = [f"{column.name} ({len(column.words or ())})" for column in words]
        yield f"columns of words, and how many words each: {_listed(shown)}"
