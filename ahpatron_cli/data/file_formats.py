"""Which format a file has: LIBSVM text or a table, and the reader of its cells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.data.cell_reader import CellReader, OnFault, TextReader
from ahpatron_cli.data.cells import DEFAULT_SPELLING, Spelling, number
from ahpatron_cli.data.csv_text import CsvReader, delimiter_of
from ahpatron_cli.data.source import (
    HEAD_BYTES,
    PACKINGS,
    Source,
    as_word,
    json_list_hint,
    sound_lines,
)
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import Place, UserError, bad_data

if TYPE_CHECKING:
    from ahpatron_cli.data.arrow import ArrowReader

LIVE_CHUNK_BYTES = 1 << 18
"""Largest number of bytes that are read at a time."""
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
JSON_SUFFIXES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = (".csv", ".tsv", *JSON_SUFFIXES, *ARROW_SUFFIXES)
_ARROW_MAGIC = (b"PAR1", b"ARROW1")
"""First bytes of Parquet and of Arrow files."""
_NO_NAMES = "#<{[@%|"
"""Characters with which the header of a table does not begin."""
_NO_HEADER = re.compile(r"(^|\s)[0-9]+:|\0|\ufffd.")
"""What the header of a table does not contain: features of LIBSVM text, bytes that are no text."""
_JSON = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:(\{)\s*[\"}]|(\[)\s*(?:[\[{\]\"\d-]|true\b|false\b|null\b|$))"
)
"""Start of JSON lines, or of a JSON list."""
_LIBSVM_ROW = re.compile(r"(\S+\s+)?(qid:\S+\s+)?[0-9]+:[-+.0-9eE]+(\s+[0-9]+:[-+.0-9eE]+)*")
"""A row of LIBSVM text: a label, which may be missing, and features."""


def is_table(source: Source, options: TableOptions) -> bool:
    """Whether a source should be read as a table; to be called before reading from it.

    Raises a usage error if options for tables are given with LIBSVM text.
    """
    name = _name_of(source)
    head = source.head
    if name.endswith(TABLE_SUFFIXES) or _JSON.match(head) or looks_like_table(head):
        return True
    if options.given and looks_like_libsvm(head):
        flags = [f"--{option}" for option in options.given]
        shown = ", ".join(flags)
        problem = f"for tables only: {shown}; this is LIBSVM text"
        hint = "leave it out; tables and LIBSVM files need commands of their own"
        place = Place(source.name)
        raise UserError(problem, place=place, hint=hint)
    return options.expect_table


def _name_of(source: Source) -> str:
    """The name of a source without the suffix of its compression, in lower case."""
    name = source.name.lower()
    for packing in PACKINGS:
        name = name.removesuffix(packing)
    return name


def looks_like_libsvm(head: bytes) -> bool:
    """Whether the first row of a file with these first bytes is LIBSVM text with features."""
    text = head.decode("utf-8", "replace")
    row = _first_row(text.removeprefix("\ufeff"))
    is_whole = len(head) < HEAD_BYTES or row.endswith("\n")
    if not is_whole:  # perhaps cut inside of its last feature
        row = row.rpartition(" ")[0]
    data = row.partition("#")[0].strip()
    return _LIBSVM_ROW.fullmatch(data) is not None


def _first_row(text: str) -> str:
    """The first line that is neither blank nor a comment; empty if there is none."""
    for line in text.splitlines(keepends=True):
        content = line.strip()
        if content and not content.startswith("#"):
            return line
    return ""


def looks_like_table(head: bytes) -> bool:
    """Whether a file with these first bytes is Parquet, Arrow or text with a header."""
    if head.startswith(_ARROW_MAGIC):
        return True
    text = head.decode("utf-8", "replace")
    first_line = text.partition("\n")[0]
    line = first_line.removeprefix("\ufeff").strip()
    if not line or line[0] in _NO_NAMES or _NO_HEADER.search(line):
        return False
    if delimiter_of(line) not in line:
        return False
    first_word = line.split()[0]
    return number(first_word) is None


def open_reader(
    source: Source, on_fault: OnFault = None, spelling: Spelling = DEFAULT_SPELLING
) -> CellReader:
    """The reader for a table, chosen by its first bytes or its name."""
    if is_arrow(source):
        return _open_arrow(source)
    if is_json(source):
        from ahpatron_cli.data.json_lines import JsonReader

        return JsonReader(source, on_fault)
    _refuse_json_list(source)
    return CsvReader(source.read1, source.name, on_fault, spelling=spelling)


def is_arrow(source: Source) -> bool:
    """Whether a source is a Parquet or Arrow file, by its first bytes or its name."""
    return source.head.startswith(_ARROW_MAGIC) or source.name.lower().endswith(ARROW_SUFFIXES)


def open_live(
    source: Source, on_long_line: Callable[[bytes], None] | None, spelling: Spelling
) -> TextReader:
    """The reader for a table of which rows are read as they arrive.

    With `on_long_line`, faulty lines do not end the stream: each row must be on a line of its own.
    """
    chunks = None
    if on_long_line is not None:
        chunks = sound_lines(source, LIVE_CHUNK_BYTES, on_long_line)
    if is_arrow(source):
        _open_arrow(source)  # refused
    if is_json(source) or not source.head:  # a pipe that ends at once has no header to miss
        from ahpatron_cli.data.json_lines import JsonReader

        return JsonReader(source, chunks=chunks)
    _refuse_json_list(source)
    return CsvReader(source.read1, source.name, chunks=chunks, spelling=spelling)


def is_json(source: Source) -> bool:
    """Whether a source has JSON lines, by its first bytes or its name."""
    found = _JSON.match(source.head)
    if found:
        return found[1] is not None
    return _name_of(source).endswith(JSON_SUFFIXES)


def _refuse_json_list(source: Source) -> None:
    """Refuse a JSON list of objects."""
    if _JSON.match(source.head):
        word = as_word(source.name)
        hint = json_list_hint(word)
        raise bad_data("this is a JSON list, not JSON lines", source.name, line=1, hint=hint)


def _open_arrow(source: Source) -> ArrowReader:
    """The reader for a Parquet or Arrow file, which must be a plain file."""
    name = source.name
    if not source.rereadable:
        hint = "save it to a file, or write CSV"
        raise bad_data("Parquet and Arrow are not read from a pipe", name, hint=hint)
    packing = source.packing
    if packing is not None:
        problem = f"Parquet and Arrow files packed with {packing} are not read"
        suffix = Path(name).with_suffix("").suffix
        word = shlex.quote(name)
        command = f"{packing} -dc {word} > unpacked{suffix}"
        raise bad_data(problem, name, hint=f"unpack it: `{command}`")
    from ahpatron_cli.data.arrow import ArrowReader

    return ArrowReader(name)
