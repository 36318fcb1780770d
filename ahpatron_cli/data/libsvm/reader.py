"""Reader of LIBSVM text: yields batches of rows in bounded memory, several times as fast as a
reader line by line, with the same results.

A chunk of whole lines is first parsed with vector operations (`fast.read_plain`). If these fail,
the chunk is cleaned (comments, blank lines, extra spaces) and tried again; if that fails too, it is
parsed line by line with `grammar.parse_line`, which defines the format and reports faults.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.batch import Batch, Reader
from ahpatron_cli.data.faults import FaultyRow, OnFaultyRow
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.libsvm.fast import keep_freed_memory, read_plain
from ahpatron_cli.data.libsvm.grammar import (
    Fault,
    finite_number,
    parse_line,
    too_long,
    user_error,
)
from ahpatron_cli.data.row_range import RowRange
from ahpatron_cli.data.source import (
    MAX_LINE,
    Source,
    open_source,
    sound_lines,
    whole_lines,
)
from ahpatron_cli.errors import NoRowsError, UserError
from ahpatron_cli.settings import Data
from ahpatron_cli.signals import StreamEnded

CHUNK_BYTES = 1 << 20

_SPACES = re.compile(rb"[ \t]{2,}|\t")
_LINE_END = re.compile(rb" ?(?:#[^\n]*)?\r?\n ?")
_BLANK_LINES = re.compile(rb"\n{2,}")
_NO_LABEL = re.compile(rb"\n(?:\?(?=[ \n])|(?=(?:[0-9]+|qid):))")
_QUERY = re.compile(rb"(\n[^ \n]+) qid:[0-9]+(?=[ \n])")
_FIRST_TOKEN = re.compile(rb"\n[ \t]*([^\s#]+)")


class SvmReader(Reader):
    """Reader of LIBSVM text.

    Text is read in chunks of `chunk_bytes` (of a pipe: what has arrived), cut after the last
    complete line. The first fault is raised as a `UserError`, after the rows before it were
    yielded; with `on_fault`, that is called instead and faulty lines are skipped, up to one that
    makes the rest meaningless; with `on_faulty_row` all of them are. `may_lack_labels` accepts rows
    without labels.
    """

    def __init__(
        self,
        source: Source,
        data: Data = Data(),  # noqa: B008 - it cannot change
        *,
        chunk_bytes: int = CHUNK_BYTES,
        on_fault: Callable[[int, Fault], None] | None = None,
        on_faulty_row: OnFaultyRow | None = None,
        may_lack_labels: bool = False,
        on_wait: Callable[[int], None] = lambda rows: None,
    ) -> None:
        super().__init__(source, data, on_wait=on_wait, on_faulty_row=on_faulty_row)
        self._chunk_bytes = chunk_bytes
        self._on_fault = on_fault
        self._may_lack_labels = may_lack_labels
        self._line = 1
        """Number of the next line, from 1."""
        self._fault: UserError | None = None
        """A fault to be raised once the rows before it were yielded."""

    def __iter__(self) -> Iterator[Batch]:
        keep_freed_memory()
        with suppress(StreamEnded):
            for text in self._texts():
                for batch in self._batches(text):
                    self._note(batch)
                    yield batch
                if self._fault is not None:
                    raise self._fault
                if self.stopped or self.rows_in_use.ends_at(self.rows_seen):
                    return
            if not self.rows_read and not self.faults:
                hint = "a row is one line, `label index:value index:value ...`"
                raise NoRowsError(self.source.name, hint)

    def _texts(self) -> Iterator[bytes]:
        """Chunks of text that end at a line end; lines that are too long are left out if asked."""
        if self.on_faulty_row is None:
            return whole_lines(self.source, self._chunk_bytes)
        return sound_lines(self.source, self._chunk_bytes, self._skip_long_line)

    def _skip_long_line(self, start: bytes) -> None:
        """Report a line that is too long, of which this is the start."""
        fault = too_long()
        error = user_error(fault, self.source.name, line=self._line, text=start)
        self._report(FaultyRow(self._line, start, error))
        self._line += 1

    def _count_labels(self) -> LabelTally:
        return scan(self.source.name, self.rows_in_use)

    def _batches(self, text: bytes) -> Iterator[Batch]:
        """Yield the rows of these lines that are used."""
        if not text.endswith(b"\n"):
            self.info.no_final_newline = True
            text += b"\n"
        while text and not self._is_at_end():
            stop = len(text)
            left = self.rows_in_use.most_left(self.rows_seen)
            if left is not None:  # faults in later rows do not matter
                ends = np.flatnonzero(_line_ends(text))[:left]
                stop = int(ends[-1]) + 1
            part = text[:stop]
            text = text[stop:]
            self.recent.add(self._line, part)
            batch = self._fast(part) or self._strict(part)
            self._line += part.count(b"\n")
            count = len(batch.labels)
            used = batch.part(self.rows_in_use.part(self.rows_seen, count))
            self.rows_seen += count
            if len(used.labels):
                yield used

    def _is_at_end(self) -> bool:
        """Whether no further row is read: after a fault, or after the last row that is used."""
        has_fault = self.stopped or self._fault is not None
        return has_fault or self.rows_in_use.ends_at(self.rows_seen)

    def _note(self, batch: Batch) -> None:
        super()._note(batch)
        rows = batch.stored
        self.info.max_index = max(self.info.max_index, rows.width - 1)
        self.info.zero_based = self.info.zero_based or not rows.columns.all()

    def _fast(self, text: bytes) -> Batch | None:
        """Parse lines with vector operations; None if they are not plain enough."""
        first_end = text.find(b"\n")
        if first_end > MAX_LINE:  # only the first line can be carried over from before
            return None
        plain = text
        if text[:first_end].endswith(b" "):  # as in LIBSVM's own files
            plain = text.replace(b" \n", b"\n")
        # a long comment would need 8 bytes of memory per byte
        read = None if b"#" in text else read_plain(plain, self._data.max_features)
        if read is None:
            return self._tidied(text)
        labels, rows = read
        lines = np.arange(self._line, self._line + len(labels))
        return Batch(rows, labels, lines)

    def _tidied(self, text: bytes) -> Batch | None:
        """Remove comments, blank lines, extra spaces and qid, then parse with vector operations."""
        if b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
            return None  # invalid even inside a comment
        text = _SPACES.sub(b" ", b"\n" + text)
        text = _LINE_END.sub(b"\n", text)
        ends = np.flatnonzero(_line_ends(text))
        lines = np.flatnonzero(np.diff(ends) > 1)  # those that are not blank
        text = _BLANK_LINES.sub(b"\n", text)
        unlabelled = np.zeros(0, dtype=np.int64)
        if self._may_lack_labels:
            text, unlabelled = _with_labels(text)
        text, queries = _QUERY.subn(rb"\1", text)
        read = read_plain(text[1:], self._data.max_features)
        if read is None:
            return None
        self.info.saw_qid |= queries > 0
        labels, rows = read
        labels[unlabelled] = np.nan
        return Batch(rows, labels, self._line + lines)

    def _strict(self, text: bytes) -> Batch:
        """Parse line by line; faulty lines raise an error, or are passed to `on_fault`."""
        labels = array("d")
        values = array("d")
        columns = array("i")
        ends = array("q", [0])
        lines = array("q")
        for number, line_text in enumerate(text.removesuffix(b"\n").split(b"\n"), self._line):
            if not line_text:
                continue  # fast path: there may be a million blank lines
            try:
                line = parse_line(
                    line_text, self._data.max_features, may_lack_label=self._may_lack_labels
                )
            except Fault as fault:
                self._handle(fault, number, line_text, rows_before=len(lines))
                line = None
            if self.stopped or self._fault is not None:
                break
            if line is None:
                continue
            self.info.saw_qid |= line.has_qid
            labels.append(line.label)
            columns += line.indices
            values += line.values
            ends.append(len(columns))
            lines.append(number)
        width = max(columns, default=-1) + 1
        rows = CsrRows(np.array(ends), np.array(columns), np.array(values), width=width)
        return Batch(rows, np.array(labels), np.array(lines))

    def _handle(self, fault: Fault, line: int, text: bytes, *, rows_before: int) -> None:
        """Report a fault, or raise it: at once, or once the rows before it were yielded."""
        if self._on_fault is not None:
            self.faults += 1
            self._on_fault(line, fault)
            self.stopped = fault.whole_file
            return
        error = user_error(fault, self.source.name, line=line, text=text)
        if self.on_faulty_row is not None:
            self._report(FaultyRow(line, text.removesuffix(b"\r"), error))
        elif rows_before:
            self._fault = error
        else:
            raise error from None


def _line_ends(text: bytes) -> NDArray[np.bool_]:
    """Mask of the bytes that are line ends."""
    return np.asarray(np.frombuffer(text, dtype=np.uint8) == ord("\n"))


def _with_labels(text: bytes) -> tuple[bytes, NDArray[np.int64]]:
    """Tidied text with the label 0 in rows without a label, and the numbers of these rows."""
    found = [match.start() for match in _NO_LABEL.finditer(text)]
    if not found:
        return text, np.zeros(0, dtype=np.int64)
    unlabelled = np.searchsorted(np.flatnonzero(_line_ends(text)), found)
    text = _NO_LABEL.sub(rb"\n0 ", text)
    text = text.replace(b"\n0  ", b"\n0 ").replace(b" \n", b"\n")
    return text, unlabelled


def scan(path: str, in_use: RowRange = RowRange()) -> LabelTally:  # noqa: B008 - it is frozen
    """Count the rows that are used and their labels, without parsing the features.

    Faulty labels are skipped, and a line that is too long stops the scan: the reader will find and
    report the same fault.
    """
    found = LabelTally()
    seen = 0
    with open_source(path) as source:
        for text in whole_lines(source, CHUNK_BYTES):
            tokens = _FIRST_TOKEN.findall(b"\n" + text)
            used = tokens[in_use.part(seen, len(tokens))]
            seen += len(tokens)
            for token, count in Counter(used).items():
                if token == b"?" or b":" in token:
                    continue  # no label
                label = finite_number(token)
                if label is None:
                    found.rows += count
                else:
                    found.count(label, count)
            if in_use.ends_at(seen):
                break
        if in_use.is_everything:
            found.sha256 = source.sha256()
    return found
