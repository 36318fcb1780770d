"""`ahpatron convert`: delimited text with a header, to LIBSVM text."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.delimited import Layout, Table, Wanted

_NAMED = 8
"""Columns and labels that a note names."""
_PACKERS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def convert(
    data: options.DelimitedFile,
    label: options.LabelColumn = None,
    positive: options.PositiveValue = None,
    drop: options.DroppedColumns = None,
    words: options.WordColumns = None,
    missing: options.Missing = "refuse",
    like: options.LikeFile = None,
    map_file: options.MapFile = None,
    out: options.LibsvmFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert CSV, TSV or `;` text with a header to LIBSVM text.

    Numbers stay as they are. A column of words becomes one feature per word; a first pass over the
    file finds them, so standard input may hold numbers only. Labels may be words. With --like, text
    is converted as an earlier file was, in one pass: do so before `ahpatron predict`.
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
    _refuse_packed(out)
    check_outputs({"--out": out, "--map": map_file}, filter(None, [data, like]))
    zero = missing == "zero"
    conversation = Conversation(quiet)
    if like is not None:
        given = {"--positive": positive, "--drop": drop, "--words": words, "--map": map_file}
        for option, value in given.items():
            if value:
                raise usage(f"{option} has no effect with --like", "leave one of them out")
        _convert_like(data, like, label, out, conversation, missing_is_zero=zero)
        return
    if label is None:
        hint = "name the column of labels, or an earlier mapping: --like MAP.json"
        raise usage("missing option '--label'", hint)
    wanted = Wanted(label, tuple(drop or ()), tuple(words or ()), positive, missing_is_zero=zero)
    with open_source(data, KIND) as source:
        table = Table(source)
        if not source.rereadable:
            layout = layout_of_numbers(table, wanted)
            _write(_lines(table, layout, wanted, commented=not map_file), out)
        else:
            layout = find_layout(table, wanted)
            for note in _notes(layout, positive):
                conversation.note(note)
            with open_source(data, KIND) as again:
                _write(_lines(Table(again), layout, wanted, commented=not map_file), out)
    if map_file:
        write_atomically(map_file, json.dumps(layout.describe(), indent=1) + "\n")


def _convert_like(
    data: str,
    like: str,
    label: str | None,
    out: str | None,
    conversation: Conversation,
    *,
    missing_is_zero: bool,
) -> None:
    """By an earlier mapping, in one pass."""
    from ahpatron_cli.data.delimited import KIND, Table, Wanted, libsvm_lines
    from ahpatron_cli.data.mapping import layout_like, left_out, read_mapping
    from ahpatron_cli.data.source import open_source

    mapping = read_mapping(like)
    unknown: dict[str, None] = {}

    def remember(name: str, word: str) -> None:
        if len(unknown) <= _NAMED:
            unknown[f"{name}={word}"] = None

    with open_source(data, KIND) as source:
        table = Table(source, fewest_columns=1)
        layout = layout_like(table, mapping, label)
        if rest := left_out(table, layout):
            conversation.note(f"columns that {like} lacks are left out: {_listed(rest)}")
        wanted = Wanted(layout.label, missing_is_zero=missing_is_zero, like=like)
        # one line, as the header is one: the rows keep their line numbers
        comment = "# labels and features: see the mapping\n"
        _write(chain([comment], libsvm_lines(table, layout, wanted, remember)), out)
    if unknown:
        conversation.note(f"words that {like} lacks are written as 0: {_listed(list(unknown))}")


def _refuse_packed(out: str | None) -> None:
    """Refuse names that promise compressed text."""
    if out is None or Path(out).suffix.lower() not in _PACKERS:
        return
    packer = _PACKERS[Path(out).suffix.lower()]
    hint = f"leave out --out and pack standard output: `ahpatron convert ... | {packer} > "
    problem = f"--out writes plain text, and {out} names a compressed file"
    raise usage(problem, f"{hint}{shlex.quote(out)}`")


def _listed(names: list[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


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


def _lines(table: Table, layout: Layout, wanted: Wanted, *, commented: bool) -> Iterator[str]:
    """LIBSVM text; `commented`: the mapping comes first, as comment lines."""
    from ahpatron_cli.data.delimited import libsvm_lines

    lines = libsvm_lines(table, layout, wanted)
    return chain(layout.comments(), lines) if commented else lines


def _write(lines: Iterator[str], out: str | None) -> None:
    """To `out` or standard output."""
    from ahpatron_cli.atomic import open_atomically

    if out is None:
        for text in lines:
            sys.stdout.write(text)
        return
    with open_atomically(out) as output:
        for text in lines:
            output.write(text)
