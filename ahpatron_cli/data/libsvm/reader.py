"""The reader of LIBSVM text: chunks of rows in bounded memory, exact, and several times as fast as
reading line by line.

A chunk of whole lines is read with vector operations (`fast.read_plain`). Those vouch for every
byte or give up; then the chunk is tidied (comments, blank lines, odd spaces) and tried again, and
at last read line by line by `grammar.parse_line`, which is the definition and finds the fault.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.batch import Batch, FileInfo
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
from ahpatron_cli.errors import bad_data
from ahpatron_cli.signals import StreamEnded

CHUNK_BYTES = 1 << 20

_SPACES = re.compile(rb"[ \t]{2,}|\t")
_LINE_END = re.compile(rb" ?(?:#[^\n]*)?\r?\n ?")
_BLANK_LINES = re.compile(rb"\n{2,}")
_NO_LABEL = re.compile(rb"\n(?:\?(?=[ \n])|(?=(?:[0-9]+|qid):))")
_QUERY = re.compile(rb"(\n[^ \n]+) qid:[0-9]+(?=[ \n])")
_FIRST_TOKEN = re.compile(rb"\n[ \t]*([^\s#]+)")


class SvmReader:
    """Iterate over a source once and get its rows in chunks.

    `chunk_bytes` more of the unpacked text are read, of a pipe what has arrived, and cut after the
    last complete line. The first fault is raised as a `UserError`, unless `on_fault` takes it: then
    faulty lines are skipped. Rows `may_lack_labels` if they are only to be predicted.
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
        self._source, self._chunk_bytes = source, chunk_bytes
        self._max_features, self._max_rows = max_features, max_rows
        self._on_fault, self._may_lack_labels = on_fault, may_lack_labels
        self._line = 1
        """The number of the line that is read next."""
        self.stopped = False
        """Whether a fault made the rest of the file meaningless."""
        self.rows_read = 0
        self.values_read = 0
        self.faults = 0
        self.traits = FileInfo()
        """What was noted so far."""
        self.scan: Scan | None = None
        """It is made only if somebody asks for it."""

    def __iter__(self) -> Iterator[Batch]:
        _keep_freed_memory()
        with suppress(StreamEnded):
            for text in whole_lines(self._source, self._chunk_bytes):
                for chunk in self._chunks(text):
                    self._note(chunk)
                    yield chunk
                if self.stopped or self.rows_read == self._max_rows:
                    return
            if not self.rows_read and not self.faults:
                hint = "a row is one line, `label index:value index:value ...`"
                raise bad_data("there are no rows in the file", self._source.name, hint=hint)

    def _chunks(self, text: bytes) -> Iterator[Batch]:
        """The rows of these lines, at most once."""
        if not text.endswith(b"\n"):
            self.traits.no_final_newline = True
            text += b"\n"
        while text and not self.stopped and self.rows_read != self._max_rows:
            part, text = text, b""
            if self._max_rows is not None:  # a fault in later rows is none of ours
                ends = np.flatnonzero(_line_ends(part))[: self._max_rows - self.rows_read]
                part, text = part[: ends[-1] + 1], part[ends[-1] + 1 :]
            chunk = self._fast(part) or self._strict(part)
            self._line += part.count(b"\n")
            if len(chunk.labels):
                yield chunk

    def _note(self, chunk: Batch) -> None:
        rows = chunk.stored
        self.rows_read += len(chunk.labels)
        self.values_read += len(rows.values)
        self.traits.max_index = max(self.traits.max_index, rows.width - 1)
        self.traits.zero_based = self.traits.zero_based or not rows.columns.all()

    def _fast(self, text: bytes) -> Batch | None:
        """The rows of these lines, or None if a single byte of them cannot be vouched for."""
        first_end = text.find(b"\n")
        if first_end > MAX_LINE:  # only the first line can be carried over from before
            return None
        plain = text
        if text[:first_end].endswith(b" "):  # LIBSVM's own files end every line so
            plain = text.replace(b" \n", b"\n")
        # a long comment would take 8 bytes of memory for each of its own
        if b"#" not in text and (read := read_plain(plain, self._max_features)):
            return Batch(read[1], read[0], np.arange(self._line, self._line + len(read[0])))
        return self._tidied(text)

    def _tidied(self, text: bytes) -> Batch | None:
        """The same in the plainest spelling: no comments, blank lines, needless spaces or qid."""
        if b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
            return None  # refused even inside a comment
        text = _LINE_END.sub(b"\n", _SPACES.sub(b" ", b"\n" + text))
        lines = np.flatnonzero(np.diff(np.flatnonzero(_line_ends(text))) > 1)
        text = _BLANK_LINES.sub(b"\n", text)
        unlabelled = np.zeros(0, dtype=np.int64)
        if self._may_lack_labels and (found := [m.start() for m in _NO_LABEL.finditer(text)]):
            unlabelled = np.searchsorted(np.flatnonzero(_line_ends(text)), found)
            text = _NO_LABEL.sub(rb"\n0 ", text).replace(b"\n0  ", b"\n0 ").replace(b" \n", b"\n")
        text, queries = _QUERY.subn(rb"\1", text)
        if (read := read_plain(text[1:], self._max_features)) is None:
            return None
        self.traits.saw_qid |= queries > 0
        labels, rows = read
        labels[unlabelled] = np.nan
        return Batch(rows, labels, self._line + lines)

    def _strict(self, text: bytes) -> Batch:
        """The rows of these lines, one by one; faulty lines raise, or are told to `on_fault`."""
        labels, values, columns = array("d"), array("d"), array("i")
        ends, lines = array("q", [0]), array("q")
        for number, line_text in enumerate(text.removesuffix(b"\n").split(b"\n"), self._line):
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
        width = max(columns, default=-1) + 1
        rows = CsrRows(np.array(ends), np.array(columns), np.array(values), width)
        return Batch(rows, np.array(labels), np.array(lines))


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


@dataclass
class Scan:
    """What a first look at a file found: its number of rows, and how often each label appears."""

    labels: LabelTally
    rows: int = 0
    """Those with labels; faulty ones are counted, too."""
    sha256: str | None = None
    """Hash of all bytes, by which a later reading can tell whether the file changed."""


def scan(path: str, max_rows: int | None = None) -> Scan:
    """Count rows and labels, of the first `max_rows` rows, without reading the features.

    Faulty labels are passed over, and a line without end stops the scan: the reader meets the
    same fault and reports it.
    """
    found, unlabelled = Scan(LabelTally()), 0
    with open_source(path) as source:
        for text in whole_lines(source, CHUNK_BYTES):
            tokens = _FIRST_TOKEN.findall(b"\n" + text)
            if max_rows is not None:
                del tokens[max_rows - found.rows - unlabelled :]
            for token, count in Counter(tokens).items():
                if token == b"?" or b":" in token:
                    unlabelled += count
                    continue
                found.rows += count
                label = finite_number(token)
                if label is not None:
                    found.labels.count(label, count)
            if found.rows + unlabelled == max_rows:
                break
        found.sha256 = source.sha256()
    return found
