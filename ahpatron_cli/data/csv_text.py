"""Reader of CSV and TSV text: batches of named columns."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.data.cells import MISSING, Cells, Texts, number
from ahpatron_cli.data.libsvm.fast import MARGIN, decimals, keep_freed_memory
from ahpatron_cli.data.source import BYTE_ORDER_MARK, MAX_LINE, as_word
from ahpatron_cli.errors import UserError, bad_data

DELIMITERS = ",;\t|"
PIECE = 1 << 18
"""Number of bytes requested at a time, for each `PIECE_COLUMNS` columns."""
PIECE_COLUMNS = 256
"""Each piece has a cost per column: wide tables have larger pieces, not fewer rows in each."""
_PRINTABLE = bytes([ord("\n"), *range(ord(" "), 127)])
"""ASCII without characters that NumPy's parser might skip."""
_QUOTED = re.compile(r'"[^"]*"')


class Spans(NamedTuple):
    """Cells of a column as they are written: data[begin:end] of each row."""

    data: bytes
    begins: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, part: Any) -> Any:
        return Spans(self.data, self.begins[part], self.ends[part])

    def nonzero(self) -> NDArray[np.bool_]:
        """Whether each cell, which is a number, has a digit other than 0."""
        letters = np.frombuffer(self.data, np.uint8)
        counts = np.append(0, np.cumsum(letters - ord("1") < 9))
        return np.asarray(counts[self.ends] > counts[self.begins])

    @staticmethod
    def joined(columns: Sequence[Spans]) -> str:
        """The cells of all columns, concatenated row by row."""
        sources = {id(column.data): column.data for column in columns}
        sizes = np.cumsum([0, *map(len, sources.values())]).tolist()
        offsets = dict(zip(sources, sizes, strict=False))
        begins = np.column_stack([one.begins + offsets[id(one.data)] for one in columns]).ravel()
        lengths = np.column_stack([one.ends - one.begins for one in columns]).ravel()
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1]) + np.repeat(begins - ends + lengths, lengths)
        letters = np.frombuffer(b"".join(sources.values()), np.uint8)
        return bytes(letters[at]).decode()


class CsvReader:
    """Reader of CSV or TSV text with a header; yields records as soon as they are complete.

    `read(size)` returns up to `size` available bytes, and b"" at the end of the input. `on_fault`
    is called with the fault of a row that has too few or too many cells, which is then left out;
    without it, the fault is raised.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        path: str,
        on_fault: Callable[[UserError], None] | None = None,
    ) -> None:
        self.path, self._read, self._line = path, read, 1
        self.padded: set[str] = set()
        """Numeric columns with spaces around cells, as far as they were read."""
        self._on_fault = on_fault
        self._piece = PIECE
        pieces = self._records()
        first = next(pieces, b"\n")
        text = self._decoded(first)
        self._delimiter = delimiter_of(text.partition("\n")[0])
        lines, header = next(self._parsed(text))
        self.names = [name.strip() for name in header]
        self._check_header(lines)
        self._piece = min(PIECE * max(len(self.names) // PIECE_COLUMNS, 1), MAX_LINE)
        self._line += lines
        self._pieces = chain(filter(None, first.split(b"\n", lines)[-1:]), pieces)

    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        """Batches of the `used` columns: as floats if all cells are numbers, else as text.

        Columns in `text` are text in any case. So are those in `no_numbers`, a collection that may
        grow while batches are read. Columns that are `copied` are `Spans`.
        """
        keep_freed_memory()
        for raw in self._pieces:
            as_text = {*text, *no_numbers}
            cells = self._plain(raw, used, as_text, copied)
            count = len(cells.lines) if cells else raw.count(b"\n")
            cells = cells or self._any(raw, used, as_text, copied)
            self._line += count
            if len(cells.lines):
                yield cells

    def _records(self) -> Iterator[bytes]:
        """Yield pieces of text that end at a line end outside of quotes."""
        held, mark = b"", BYTE_ORDER_MARK
        while piece := self._read(self._piece):
            held += piece
            end = held.rfind(b"\n") + 1
            if end and b'"' in held:
                letters = np.frombuffer(held, np.uint8)
                inside = np.cumsum(letters == ord('"'), dtype=np.uint8) & 1
                end = int(np.flatnonzero((letters == ord("\n")) > inside).max(initial=-1)) + 1
            if end:
                yield held[:end].removeprefix(mark)
                held, mark = held[end:], b""
            elif len(held) > MAX_LINE:
                break
        if len(held) > MAX_LINE or held.count(b'"') % 2:
            size = f"a line may hold {MAX_LINE >> 20} MiB at most"
            problem = "a double quote opens here and does not close" if b'"' in held else size
            raise bad_data(problem, self.path, self._line)
        if held:
            yield held.removeprefix(mark) + b"\n"

    def _plain(
        self, raw: bytes, used: set[str], text: set[str], copied: Collection[str]
    ) -> Cells | None:
        """Parse text with vector operations; None if it is unusual (quotes inside cells, …)."""
        self._decoded(raw)
        data, sign = MARGIN + raw, self._delimiter.encode()
        if b"\r" in raw:
            data = data.replace(b"\r\n", b"\n")
        for _ in range(5):
            if b" " not in raw or not _padded(data, sign):
                break
            for space in (sign + b" ", b" " + sign, b"\n ", b" \n"):
                data = data.replace(space, space.strip(b" "))
        else:
            return None
        if b'"' in raw:
            if not _removable_quotes(data, sign):
                return None
            data = data.replace(b'"', b"")
        letters, width = np.frombuffer(data, np.uint8), len(self.names)
        marks = np.flatnonzero(letters - ord("0") > 9)  # all that are not digits
        kinds = letters[marks]
        line_ends = kinds == ord("\n")
        gaps = np.flatnonzero(line_ends | (kinds == ord(sign)))
        rows = int(np.count_nonzero(line_ends)) - 1
        if len(gaps) != rows * width + 1 or not line_ends[gaps[::width]].all() or b"\r" in data:
            return None
        at = marks[gaps]
        begins, ends = at[:-1].reshape(rows, width) + 1, at[1:].reshape(rows, width)
        if width == 1 and (begins == ends).any():
            return None  # a blank line is no row
        columns: dict[str, Any] = {}
        plain = used.difference(text, copied)
        numeric = [i for i, name in enumerate(self.names) if name in plain]
        if numeric:
            first, stop = numeric[0], numeric[-1] + 1  # a slice is faster than a list of columns
            own: Any = numeric if stop - first > len(numeric) else slice(first, stop)
            begin, end = begins[:, own].ravel(), ends[:, own].ravel()
            last = gaps[1:].reshape(rows, width)[:, own].ravel() - 1
            inside = last - gaps[:-1].reshape(rows, width)[:, own].ravel()
            point = kinds[last] == ord(".")
            values, others = None, np.empty(0, dtype=np.int64)
            if 4 * np.count_nonzero(kinds | 0x20 == ord("e")) > len(begin):
                values = self._by_numpy(data, numeric, rows)
            if values is None:
                values, others = decimals(data, letters, begin, end, inside, marks[last], point)
            spans = zip(begin[others].tolist(), end[others].tolist(), strict=True)
            cells = [data[start:stop].decode() for start, stop in spans]
            found = _numbers([cell.strip() for cell in cells])
            values[others] = np.array(found, dtype=np.float64)
            names = [self.names[numeric[i]] for i in (others % len(numeric)).tolist()]
            wrong = {name for name, value in zip(names, found, strict=True) if value is None}
            self.padded |= {n for n, cell in zip(names, cells, strict=True) if cell != cell.strip()}
            for i, number in enumerate(numeric):
                if self.names[number] not in wrong:
                    columns[self.names[number]] = values[i :: len(numeric)]
        for i, name in enumerate(self.names):
            if name in copied:
                columns[name] = Spans(data, begins[:, i], ends[:, i])
            elif name in used and name not in columns:
                columns[name] = _texts(data, begins[:, i], ends[:, i])
        return Cells(self._line + np.arange(rows), columns)

    def _by_numpy(self, data: bytes, columns: list[int], rows: int) -> Floats | None:
        """Numbers of these columns, row by row, if all are: faster if most have exponents."""
        if data.translate(None, _PRINTABLE + self._delimiter.encode()):
            return None
        lines, sign = data[len(MARGIN) :].decode().split("\n"), self._delimiter
        try:
            values: Floats = np.loadtxt(
                lines, delimiter=sign, usecols=columns, comments=None, ndmin=2
            )
        except ValueError:
            return None
        whole = values.shape == (rows, len(columns)) and np.isfinite(values).all()
        return values.ravel() if whole else None

    def _any(self, raw: bytes, used: set[str], text: set[str], copied: Collection[str]) -> Cells:
        """Parse any text by the csv module."""
        lines, rows, before = [], [], 0
        for after, row in self._parsed(self._decoded(raw)):
            if row and len(row) != len(self.names):
                problem = f"this row has {len(row)} cells, the header has {len(self.names)}"
                hint = f"put cells that contain {self._delimiter!r} in double quotes"
                if len(row) < len(self.names):
                    hint = "the line may be cut off; complete or delete it"
                fault = bad_data(problem, self.path, self._line + before, hint)
                if self._on_fault is None:
                    raise fault
                self._on_fault(fault)
            elif row:
                lines.append(self._line + before)
                rows.append([cell.strip() for cell in row])
            before = after
        columns: dict[str, Any] = {}
        for i, name in enumerate(self.names):
            if name in used:
                cells = [row[i] for row in rows]
                found = [None] if name in text or name in copied else _numbers(cells)
                columns[name] = Texts.of(cells)
                if None not in found:
                    columns[name] = np.array(found, dtype=np.float64)
                elif name in copied:
                    written = [cell.encode() for cell in cells]
                    ends = np.cumsum([0, *map(len, written)])
                    columns[name] = Spans(b"".join(written), ends[:-1], ends[1:])
        return Cells(np.array(lines, dtype=np.int64), columns)

    def _parsed(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of the text, each with the number of lines up to its end."""
        source = io.StringIO(text, newline="\n")
        reader = csv.reader(source, delimiter=self._delimiter, strict=True, skipinitialspace=True)
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            problem, hint = f"this is not CSV: {error}", "write a quote in a quoted cell twice"
            if "new-line" in str(error):
                hint = rf"convert it with `tr '\r' '\n' < {as_word(self.path)} > fixed.csv`"
            line = self._line + reader.line_num - 1
            raise bad_data(problem, self.path, line, hint) from None

    def _decoded(self, raw: bytes) -> str:
        """Decode bytes, which must be UTF-8 without NUL bytes."""
        at = raw.find(b"\0")
        try:
            text = raw.decode()
        except UnicodeDecodeError as fault:
            at = fault.start
        if at >= 0:
            encoding = "UTF-16" if b"\0" in raw else "WINDOWS-1252"
            command = f"iconv -f {encoding} -t UTF-8 {as_word(self.path)} > utf8.csv"
            hint = f"if it is {encoding} text, convert it: `{command}`"
            line = self._line + raw.count(b"\n", 0, at)
            raise bad_data("the text must be UTF-8, without NUL bytes", self.path, line, hint)
        return text

    def _check_header(self, lines: int) -> None:
        """Refuse a first record of so many lines that is no header with distinct names."""
        if not self.names:
            problem = "there is no header: the first line must name the columns"
            raise bad_data(problem, self.path, 1, "the file is empty, or its first line is blank")
        names, values = self.names, [number(name) for name in self.names]
        is_row = None not in values and names != [str(i) for i in range(len(names))]
        numbered = [f"c{i + 1}" for i in range(len(names))]
        if not any(names):
            problem = "there is no header: the first line must name the columns"
            renamed, kept = numbered, "tail -n +2"
        elif is_row or any(value is not None and value % 1 for value in values):
            problem = "the first line looks like a row: there is no header"
            renamed, kept = numbered, "cat"
        elif twice := [name for name, count in Counter(names).items() if count > 1]:
            problem = f"two columns have the name {twice[0]!r}"
            renamed, kept = _distinct(names), f"tail -n +{lines + 1}"
        else:
            return
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="").writerow(renamed)
        header = f"echo {shlex.quote(text.getvalue())}"
        if self._delimiter == "\t":  # messages show a tab as \t, which echo would not undo
            form = r"\t".join("%s" for _ in renamed)
            header = rf"printf '{form}\n' {shlex.join(renamed)}"
        hint = f"name the columns: `({header}; {kept} {as_word(self.path)}) > named.csv`"
        raise bad_data(problem, self.path, 1, hint)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names with numbers after those that occur before: a, a.2, a.3."""
    found: dict[str, None] = {}
    given = set(names)
    numbers = Counter[str]()
    for name in names:
        spelled = name
        while spelled in found or (spelled != name and spelled in given):
            numbers[name] += 1
            spelled = f"{name}.{numbers[name] + 1}"
        found[spelled] = None
    return list(found)


def delimiter_of(header: str) -> str:
    """The delimiter of a header line."""
    return max(DELIMITERS, key=_QUOTED.sub("", header).count)


def _numbers(cells: Sequence[str]) -> list[float | None]:
    """The number in each cell; NaN if missing, None if it is no number."""
    found = {cell: np.nan if cell in MISSING else number(cell) for cell in set(cells)}
    return [found[cell] for cell in cells]


def _texts(data: bytes, begins: Integers, ends: Integers) -> Texts:
    """Cells of text at data[begins:ends]."""
    lengths = ends - begins
    if lengths.max(initial=0) > 8:
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        return Texts.of([data[begin:end].decode().strip() for begin, end in spans])
    # up to 8 bytes are a number, which is faster to compare
    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))[ends - 8]
    words >>= (64 - 8 * lengths).astype(np.uint64)
    distinct, codes = np.unique(words, return_inverse=True)
    cells = [word.to_bytes(8, "little").rstrip(b"\0") for word in distinct.tolist()]
    texts = [cell.decode().strip() for cell in cells]
    return Texts(codes, texts)


def _padded(data: bytes, sign: bytes) -> bool:
    """Whether a cell begins or ends with a space."""
    letters = np.frombuffer(data, np.uint8)
    spaces = np.flatnonzero(letters == ord(" "))
    around = letters[np.append(spaces - 1, spaces + 1)]
    return bool(((around == ord(sign)) | (around == ord("\n"))).any())


def _removable_quotes(data: bytes, sign: bytes) -> bool:
    """Whether all quotes enclose whole cells that have no quote, delimiter or line end inside."""
    letters = np.frombuffer(data, np.uint8)
    ends_cell = (letters == ord(sign)) | (letters == ord("\n"))
    at, gaps = np.flatnonzero(letters == ord('"')), np.flatnonzero(ends_cell)
    first, last = at[::2], at[1::2]
    return bool(
        len(first) == len(last)
        and ends_cell[first - 1].all()
        and ends_cell[last + 1].all()
        and (np.searchsorted(gaps, first) == np.searchsorted(gaps, last)).all()
    )
