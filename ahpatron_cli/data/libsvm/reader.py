"""The reader of LIBSVM text: chunks of rows in bounded memory, exact, and several times as fast as
reading line by line.

A chunk of whole lines is read with vector operations (`fast.read_plain`). Those vouch for every
byte or give up; then the chunk is tidied (comments, blank lines, odd spaces) and tried again, and
at last read line by line by `grammar.parse_line`, which is the definition and finds the fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.libsvm.fast import read_plain
from ahpatron_cli.data.libsvm.grammar import (
    MAX_FEATURES,
    Fault,
    finite_number,
    parse_line,
    user_error,
)
from ahpatron_cli.data.source import MAX_LINE, Source, open_source, whole_lines
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.signals import StreamEnded

CHUNK_BYTES = 1 << 20
LARGEST_MAX_FEATURES = 2**31 - 2  # columns are int32, and the width is one more

_COMMENT = re.compile(rb"#[^\n]*")
_NO_LABEL = re.compile(rb"\n(?=[0-9]+:)")
_QUESTION = re.compile(rb"\n\?(?=[ \n])")
_QUERY = re.compile(rb"(\n[^ \n]+) qid:[0-9]+(?=[ \n])")
_FIRST_TOKEN = re.compile(rb"^[ \t]*([^\s#]+)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a file. A column is the index as written: column 0 is empty in 1-based files."""

    labels: Floats
    """NaN for rows without one."""
    rows: CsrRows
    lines: Integers
    """The line number of each row, from 1."""
    ids: NDArray[np.object_] | None = None
    """What identifies each row, if a column of a table does."""

    def slice(self, start: int, stop: int) -> Chunk:
        """Rows `start` to `stop`, sharing memory with this one."""
        part = slice(start, stop)
        ids = None if self.ids is None else self.ids[part]
        return Chunk(self.labels[part], self.rows.slice(start, stop), self.lines[part], ids)

    @staticmethod
    def concatenate(chunks: Sequence[Chunk]) -> Chunk:
        """All rows of all chunks, in order."""
        return Chunk(
            np.concatenate([chunk.labels for chunk in chunks]),
            CsrRows.concatenate([chunk.rows for chunk in chunks]),
            np.concatenate([chunk.lines for chunk in chunks]),
            None if chunks[0].ids is None else np.concatenate([chunk.ids for chunk in chunks]),
        )


@dataclass
class FileInfo:
    """What a reader notes about a file besides its rows."""

    max_index: int = -1
    zero_based: bool = False
    saw_qid: bool = False
    no_final_newline: bool = False
    remarks: tuple[str, ...] = ()
    """On the columns of a table."""
    schema: Any = None
    """What became of them: a `Schema`."""

    @property
    def features(self) -> int:
        """The number of features: the largest index, and one more if indices start at 0."""
        return max(self.max_index + self.zero_based, 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        notes = {
            "feature indices start at 0": self.zero_based,
            "qid fields are ignored": self.saw_qid,
            "the last line has no line end: the file may be incomplete": self.no_final_newline,
        }
        return (*self.remarks, *(note for note, holds in notes.items() if holds))


class SvmReader:
    """Iterate over a source once and get its rows in chunks.

    `chunk_bytes` more of the unpacked text are read, of a pipe what has arrived, and cut after the
    last complete line. The first fault is raised as a
    `UserError`, unless `on_fault` takes it: then faulty lines are skipped. Rows `may_lack_labels`
    if they are only to be predicted.
    """

    def __init__(
        self,
        source: Source,
        *,
        max_features: int = MAX_FEATURES,
        chunk_bytes: int = CHUNK_BYTES,
        max_rows: int | None = None,
        on_fault: Callable[[int, Fault], None] | None = None,
        may_lack_labels: bool = False,
    ) -> None:
        if not 0 < chunk_bytes <= MAX_LINE:
            raise ValueError(f"chunk_bytes must be in 1..{MAX_LINE}")
        if not 0 <= max_features <= LARGEST_MAX_FEATURES:
            raise ValueError(f"max_features must be in 0..{LARGEST_MAX_FEATURES}")
        self._source, self._chunk_bytes = source, chunk_bytes
        self._max_features, self._max_rows = max_features, max_rows
        self._on_fault, self._may_lack_labels = on_fault, may_lack_labels
        self._saw_comment = False
        self._lines = 0
        self.stopped = False
        """Whether a fault made the rest of the file meaningless."""
        self.rows_read = 0
        self.values_read = 0
        self.faults = 0
        self.traits = FileInfo()
        """What was noted so far."""

    def __iter__(self) -> Iterator[Chunk]:
        _keep_freed_memory()
        with suppress(StreamEnded):
            yield from self._chunks()

    def _chunks(self) -> Iterator[Chunk]:
        for text in self._portions():
            if not text.endswith(b"\n"):
                self.traits.no_final_newline = True
                text += b"\n"
            self._saw_comment |= b"#" in text
            first_line = self._lines + 1
            chunk = self._fast(text, first_line)
            if chunk is None:
                chunk = self._strict(text, first_line)
            self._lines += int(np.count_nonzero(_line_ends(text)))
            if len(chunk.labels):
                self._note(chunk)
                yield chunk
            if self.stopped or self.rows_read == self._max_rows:
                return
        if not self.rows_read and not self.faults:
            raise self._no_rows()

    def _portions(self) -> Iterator[bytes]:
        """Whole lines, never more of them than rows are still wanted: the rest is none of ours."""
        for text in whole_lines(self._source, self._chunk_bytes):
            if self._max_rows is None:
                yield text
                continue
            while text and self.rows_read < self._max_rows:
                ends = np.append(np.flatnonzero(_line_ends(text)), len(text))
                end = int(ends[: self._max_rows - self.rows_read][-1]) + 1
                yield text[:end]
                text = text[end:]

    def _note(self, chunk: Chunk) -> None:
        rows = chunk.rows
        self.rows_read += len(chunk.labels)
        self.values_read += len(rows.values)
        self.traits.max_index = max(self.traits.max_index, rows.width - 1)
        self.traits.zero_based = self.traits.zero_based or not rows.columns.all()

    def _fast(self, text: bytes, first_line: int) -> Chunk | None:
        """The rows of these lines, or None if a single byte of them cannot be vouched for."""
        first_end = text.find(b"\n")
        if first_end > MAX_LINE:  # only the first line can be carried over from before
            return None
        if text[:first_end].endswith(b" "):  # LIBSVM's own files end every line so
            text = text.replace(b" \n", b"\n")
        # a long comment would take 8 bytes of memory for each of its own
        if b"#" not in text and (read := read_plain(text, self._max_features)):
            return Chunk(*read, np.arange(first_line, first_line + len(read[0])))
        tidy = _tidy(text, self._may_lack_labels)
        if tidy is None or tidy.text == text:
            return None
        if (read := read_plain(tidy.text, self._max_features)) is None:
            return None
        self.traits.saw_qid |= tidy.had_qid
        labels, rows = read
        if tidy.unlabelled is not None:
            labels[tidy.unlabelled] = np.nan
        return Chunk(labels, rows, first_line + tidy.lines)

    def _strict(self, text: bytes, first_line: int) -> Chunk:
        """The rows of these lines, one by one; faulty lines raise, or are told to `on_fault`."""
        labels: list[float] = []
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        lines: list[int] = []
        for number, line_text in enumerate(text.removesuffix(b"\n").split(b"\n"), first_line):
            if not line_text:
                continue  # at once: there may be a million of them before the fault
            try:
                line = parse_line(
                    line_text, self._max_features, may_lack_label=self._may_lack_labels
                )
            except Fault as fault:
                if self._on_fault is None:
                    raise user_error(fault, self._source.name, number, line_text) from None
                self.faults += 1
                self._on_fault(number, fault)
                self.stopped, line = fault.whole_file, None
            if self.stopped:
                break
            if line is None:
                continue
            self.traits.saw_qid |= line.has_qid
            labels.append(line.label)
            columns += line.indices
            values += line.values
            ends.append(len(columns))
            lines.append(number)
        rows = CsrRows(
            np.array(ends, dtype=np.int64),
            np.array(columns, dtype=np.int32),
            np.array(values, dtype=np.float64),
            max(columns, default=-1) + 1,
        )
        return Chunk(np.array(labels, dtype=np.float64), rows, np.array(lines, dtype=np.int64))

    def _no_rows(self) -> UserError:
        holds = "holds only blank lines" if self._lines else "is empty"
        if self._saw_comment:
            holds = "holds only comments"
        hint = "a row is one line, `label index:value index:value ...`"
        return bad_data(f"there are no rows: the file {holds}", self._source.name, hint=hint)


def _keep_freed_memory() -> None:
    """Let the C library keep what arrays give back, for the next chunk, up to 60 MB.

    By default glibc returns it to the system each time, and the page faults of asking again take a
    third of the reading time. It learns better from one large piece that comes and goes; no page
    of it is touched. Elsewhere this does nothing.
    """
    np.empty(31 << 20, dtype=np.uint8)


def _line_ends(text: bytes) -> NDArray[np.bool_]:
    """Which bytes are line ends."""
    return np.asarray(np.frombuffer(text, dtype=np.uint8) == ord("\n"))


class _Tidy(NamedTuple):
    text: bytes
    lines: Integers
    """For each line kept, how many lines stood before it."""
    had_qid: bool
    unlabelled: NDArray[np.bool_] | None
    """Lines that lack a label; 0 stands in its place."""


def _tidy(text: bytes, may_lack_labels: bool) -> _Tidy | None:
    """The same rows in the plainest spelling: no comments, blank lines, needless spaces or qid."""
    text = b"\n" + text.replace(b"\r\n", b"\n")
    if b"\r" in text or b"\0" in text:  # refused even inside a comment
        return None
    text = _COMMENT.sub(b"", text).replace(b"\t", b" ")
    text = _squeeze(text, b" ").replace(b" \n", b"\n").replace(b"\n ", b"\n")
    lines = np.flatnonzero(np.diff(np.flatnonzero(_line_ends(text))) > 1)
    text = _squeeze(text, b"\n")
    unlabelled = None
    if may_lack_labels:
        unlabelled = _unlabelled(text)
        text = _NO_LABEL.sub(b"\n0 ", _QUESTION.sub(b"\n0", text))
    text, queries = _QUERY.subn(rb"\1", text)
    return _Tidy(text[1:], lines, queries > 0, unlabelled)


def _unlabelled(text: bytes) -> NDArray[np.bool_]:
    """Which lines start with an index or a question mark; each has a line end before it."""
    letters = np.frombuffer(text, dtype=np.uint8)
    starts = np.flatnonzero(letters == ord("\n"))[:-1] + 1
    marks = np.flatnonzero(letters - ord("0") > 9)
    first_marks = letters[marks[np.searchsorted(marks, starts)]]
    return np.asarray((first_marks == ord(":")) | (letters[starts] == ord("?")))


def _squeeze(text: bytes, byte: bytes) -> bytes:
    """Every run of `byte` as a single one; each turn halves the runs."""
    while byte * 2 in text:
        text = text.replace(byte * 2, byte)
    return text


@dataclass
class Scan:
    """What a first look at a file found: its number of rows, and how often each label appears."""

    labels: LabelTally
    rows: int = 0
    """Those with labels; faulty ones are counted, too."""
    unlabelled: int = 0
    sha256: str | None = None
    """Hash of all bytes, by which a later reading can tell whether the file changed."""
    size: int | None = None
    """In bytes."""


def scan(path: str, max_rows: int | None = None) -> Scan:
    """Count rows and labels, of the first `max_rows` rows, without reading the features.

    Faulty labels are passed over, and a line without end stops the scan: the reader meets the
    same fault and reports it.
    """
    found = Scan(LabelTally())
    with open_source(path) as source:
        for text in whole_lines(source, CHUNK_BYTES):
            tokens = _FIRST_TOKEN.findall(text)
            if max_rows is not None:
                del tokens[max_rows - found.rows - found.unlabelled :]
            for token, count in Counter(tokens).items():
                if token == b"?" or b":" in token:
                    found.unlabelled += count
                    continue
                found.rows += count
                label = finite_number(token)
                if label is not None:
                    found.labels.count(label, count)
            if found.rows + found.unlabelled == max_rows:
                break
        found.sha256, found.size = source.sha256(), source.size
    return found
