"""Reader of CSV and TSV text: batches of named columns."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers, distinct
from ahpatron_cli.data.cell_reader import OnFault, TextReader
from ahpatron_cli.data.cells import DEFAULT_SPELLING, Cells, Spelling, Texts, number
from ahpatron_cli.data.libsvm.fast import MARGIN, Places, decimals, keep_freed_memory
from ahpatron_cli.data.source import BYTE_ORDER_MARK, MAX_LINE, as_word, utf8_hint
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.number_text import counted

Columns: TypeAlias = dict[str, Any]
"""Columns by name: `Values`, or `Spans` if their cells are copied."""
Record: TypeAlias = tuple[int, list[str]]
"""The cells of a record, after a number of lines."""
Flags: TypeAlias = NDArray[np.bool_]

DELIMITERS = ";,|"
"""Delimiters besides the tab; of equally frequent ones the first counts."""
CHUNK_BYTES = 1 << 18
"""Number of bytes requested at a time, for each `CHUNK_COLUMNS` columns."""
CHUNK_COLUMNS = 256
"""Each chunk has a cost per column: wide tables have larger chunks, not fewer rows in each."""
_PRINTABLE = bytes([ord("\n"), *range(ord(" "), 127)])
"""ASCII without characters that NumPy's parser might skip."""
_MARKUP = ("<!doctype", "<html", "<?xml")
"""What an HTML or XML page starts with, in lower case."""
_COMMA_TO_POINT = np.arange(256, dtype=np.uint8)
"""Bytes with which numbers with decimal commas are parsed: points are for slower functions."""
_COMMA_TO_POINT[ord(",")] = ord(".")
_COMMA_TO_POINT[ord(".")] = ord("x")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Spans:
    """Cells of a column as they are written: data[begin:end] of each row."""

    data: bytes
    begins: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, part: slice | Integers) -> Spans:
        begins = self.begins[part]
        ends = self.ends[part]
        return Spans(self.data, begins, ends)

    def nonzero(self) -> Flags:
        """Whether each cell, which is a number, has a digit other than 0."""
        letters = np.frombuffer(self.data, np.uint8)
        is_counted = letters - ord("1") < 9
        counts = np.append(0, np.cumsum(is_counted))
        at_end = counts[self.ends]
        at_begin = counts[self.begins]
        return np.asarray(at_end > at_begin)

    @classmethod
    def of(cls, cells: Sequence[str]) -> Spans:
        """The cells of a list."""
        written = [cell.encode() for cell in cells]
        lengths = [len(cell) for cell in written]
        bounds = np.cumsum([0, *lengths])
        begins = bounds[:-1]
        ends = bounds[1:]
        return cls(b"".join(written), begins, ends)

    @staticmethod
    def joined(columns: Sequence[Spans]) -> str:
        """The cells of all columns, concatenated row by row."""
        data, offsets = _joined_data(columns)
        begins = []
        lengths = []
        for column in columns:
            offset = offsets[id(column.data)]
            begins.append(column.begins + offset)
            lengths.append(column.ends - column.begins)
        sources = np.column_stack(begins).ravel()
        sizes = np.column_stack(lengths).ravel()
        ends = np.cumsum(sizes)
        targets = ends - sizes
        shifts = np.repeat(sources - targets, sizes)
        total = ends[-1]
        at = np.arange(total) + shifts
        letters = np.frombuffer(data, np.uint8)
        joined = bytes(letters[at])
        return joined.decode()


def _joined_data(columns: Sequence[Spans]) -> tuple[bytes, dict[int, int]]:
    """The bytes of all columns, each once, and the position of each by its id."""
    sources: list[bytes] = []
    offsets: dict[int, int] = {}
    size = 0
    for column in columns:
        key = id(column.data)
        if key not in offsets:
            sources.append(column.data)
            offsets[key] = size
            size += len(column.data)
    return b"".join(sources), offsets


class _Positions(NamedTuple):
    """Positions of the cells in plain text."""

    data: bytes
    letters: NDArray[np.uint8]
    marks: Integers
    """Positions of all bytes that are not digits."""
    kinds: NDArray[np.uint8]
    """The bytes at these positions."""
    gaps: Integers
    """Which marks are delimiters or line ends: one before the first cell, and one after each."""
    begins: Integers
    """Position of the first byte of each cell, in rows and columns."""
    ends: Integers
    """Position behind the last byte of each cell, in rows and columns."""

    def with_comma(self) -> _Positions:
        """The same text with points for decimal commas, and no number where there are points."""
        letters = _COMMA_TO_POINT[self.letters]
        kinds = _COMMA_TO_POINT[self.kinds]
        return self._replace(data=letters.tobytes(), letters=letters, kinds=kinds)

    def numbers(
        self, part: list[int] | slice, begins: Integers, ends: Integers
    ) -> tuple[Floats, Integers]:
        """Parse the cells of these columns, which are at data[begins:ends], as `decimals` does."""
        shape = self.ends.shape
        openings = self.gaps[:-1]
        closings = self.gaps[1:]
        before = openings.reshape(shape)[:, part].ravel()
        behind = closings.reshape(shape)[:, part].ravel()
        last = behind - 1  # last mark in or before a cell
        places = Places(
            begins=begins,
            ends=ends,
            marks=last - before,
            last=self.marks[last],
            has_point=self.kinds[last] == ord("."),
        )
        return decimals(self.data, self.letters, places)


class CsvReader(TextReader):
    """Reader of CSV or TSV text with a header; yields records as soon as they are complete.

    `read(size)` returns up to `size` available bytes, and b"" at the end of the input. `on_fault`
    is called with the fault of a row that has too few or too many cells, which is then left out;
    without it, the fault is raised.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        path: str,
        on_fault: OnFault = None,
        chunks: Iterator[bytes] | None = None,
        spelling: Spelling = DEFAULT_SPELLING,
    ) -> None:
        """`chunks` are lines of text in place of `read`; each row must then be on one line."""
        super().__init__(path)
        self._has_one_line_per_row = chunks is not None
        self._spelling = spelling
        self._read = read
        self._line = 1
        """Number of the first line that was not parsed, from 1."""
        self._on_fault = on_fault
        self._chunk_bytes = CHUNK_BYTES
        if chunks is None:
            chunks = self._records()
        rest = self._read_header(next(chunks, b"\n"))
        self._chunks: Iterator[bytes] = chunks
        if rest:
            self._chunks = chain([rest], chunks)

    def _read_header(self, first: bytes) -> bytes:
        """Read the names of the columns; return what follows them in this chunk."""
        head = first
        if self._has_one_line_per_row:  # faults in later lines are not those of the header
            head = first.partition(b"\n")[0] + b"\n"
        text = self._decoded(head)
        first_line = text.partition("\n")[0]
        self._delimiter = delimiter_of(first_line)
        lines, header = next(self._parsed(text))
        self.names = [name.strip() for name in header]
        self._check_header(lines)
        times = len(self.names) // CHUNK_COLUMNS
        wanted = CHUNK_BYTES * max(times, 1)
        self._chunk_bytes = min(wanted, MAX_LINE)
        self._line += lines
        return first.split(b"\n", lines)[-1]

    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        keep_freed_memory()
        for raw in self._chunks:
            as_text = {*text, *no_numbers}
            cells = self._plain(raw, used, text=as_text, copied=copied)
            if cells is not None:
                count = len(cells.lines)
            else:
                count = raw.count(b"\n")
                cells = self._any(raw, used, text=as_text, copied=copied)
            self._line += count
            if len(cells.lines):
                yield cells

    @property
    def line(self) -> int:
        return self._line

    def chunks(self) -> Iterator[bytes]:
        return self._chunks

    def parse(self, raw: bytes, line: int, text: Collection[str]) -> Cells:
        self._line = line
        if not raw.endswith(b"\n"):
            raw += b"\n"
        used = set(self.names)
        cells = self._plain(raw, used, text=set(text), copied=())
        if cells is None:
            cells = self._any(raw, used, text=set(text), copied=())
            if self._has_one_line_per_row:
                self._check_lines(cells, raw)
        in_order = {name: cells.columns[name] for name in self.names}
        return Cells(cells.lines, in_order)

    def _check_lines(self, cells: Cells, raw: bytes) -> None:
        """Refuse rows that are not one line each: a quote has opened and not closed."""
        texts = raw.split(b"\n")
        found = [line for line, text in enumerate(texts, self._line) if text not in (b"", b"\r")]
        if cells.lines.tolist() != found:
            problem = "a double quote opens here and does not close"
            raise bad_data(problem, self.path, self._line)

    def _records(self) -> Iterator[bytes]:
        """Yield chunks of text that end at a line end outside of quotes."""
        held = b""
        mark = BYTE_ORDER_MARK
        while True:
            chunk = self._read(self._chunk_bytes)
            if not chunk:
                break
            held += chunk
            end = _end_of_records(held)
            if end:
                yield held[:end].removeprefix(mark)
                held = held[end:]
                mark = b""
            elif len(held) > MAX_LINE:
                break
        self._check_last(held)
        if held:
            yield held.removeprefix(mark) + b"\n"

    def _check_last(self, held: bytes) -> None:
        """Refuse a last line that is too long or in which a quote does not close."""
        is_open = held.count(b'"') % 2 == 1
        if len(held) <= MAX_LINE and not is_open:
            return
        problem = f"a line may hold {MAX_LINE >> 20} MiB at most"
        if b'"' in held:
            problem = "a double quote opens here and does not close"
        raise bad_data(problem, self.path, self._line)

    def _plain(
        self, raw: bytes, used: set[str], text: set[str], copied: Collection[str]
    ) -> Cells | None:
        """Parse text with vector operations; None if it is unusual (quotes inside cells, …)."""
        self._decoded(raw)
        names = self.names
        sign = self._delimiter.encode()
        data = _bare(raw, sign)
        if data is None:
            return None
        positions = _positions_of(data, sign, len(names))
        if positions is None:
            return None
        columns: Columns = {}
        plain = used.difference(text, copied)
        numeric = [i for i, name in enumerate(names) if name in plain]
        if numeric:
            columns = self._numeric(positions, numeric)
        for i, name in enumerate(names):
            begins = positions.begins[:, i]
            ends = positions.ends[:, i]
            if name in copied:
                columns[name] = Spans(data, begins, ends)
            elif name in used and name not in columns:
                columns[name] = _texts(data, begins, ends)
        rows = np.arange(len(positions.ends))
        return Cells(self._line + rows, columns)

    def _numeric(self, positions: _Positions, columns: list[int]) -> Columns:
        """Those of these columns in which every cell is a number or missing."""
        part = _as_slice(columns)
        begins = positions.begins[:, part].ravel()
        ends = positions.ends[:, part].ravel()
        names = [self.names[column] for column in columns]
        self._note_leading_zeros(positions, begins, ends, names=names)
        values = None
        others = np.empty(0, dtype=np.int64)
        if self._spelling.sign is None and _has_many_exponents(positions, len(begins)):
            rows = len(positions.ends)
            values = self._by_numpy(positions.data, columns, rows)
        if values is None:
            written = positions.with_comma() if self._spelling.sign == "," else positions
            values, others = written.numbers(part, begins, ends)
        cells = _decoded_cells(positions.data, begins[others], ends[others])
        stripped = [cell.strip() for cell in cells]
        found = _numbers(stripped, self._spelling)
        values[others] = np.array(found, dtype=np.float64)
        width = len(names)
        wrong: set[str] = set()
        for place, cell, bare, value in zip(others.tolist(), cells, stripped, found, strict=True):
            name = names[place % width]
            if cell != bare:
                self.padded.add(name)
            if value is None:
                wrong.add(name)
            elif self._spelling.has_thousands(cell):
                self.thousands.add(name)
        by_name: Columns = {}
        for i, name in enumerate(names):
            if name not in wrong:
                by_name[name] = values[i::width]
        return by_name

    def _note_leading_zeros(
        self, positions: _Positions, begins: Integers, ends: Integers, names: list[str]
    ) -> None:
        """Note columns with numbers like 007, which may be codes."""
        letters = positions.letters
        candidates = np.flatnonzero((letters[begins] == ord("0")) & (ends - begins > 1))
        after = letters[begins[candidates] + 1]
        zeros = candidates[after - ord("0") <= 9]
        of_columns = distinct(zeros % len(names))
        self.leading_zeros.update(names[i] for i in of_columns.tolist())

    def _by_numpy(self, data: bytes, columns: list[int], rows: int) -> Floats | None:
        """Numbers of these columns, row by row, if all are: faster if most have exponents."""
        plain = _PRINTABLE + self._delimiter.encode()
        if data.translate(None, plain):
            return None
        text = data[len(MARGIN) :].decode()
        try:
            values: Floats = np.loadtxt(
                text.split("\n"),
                delimiter=self._delimiter,
                usecols=columns,
                comments=None,
                ndmin=2,
            )
        except ValueError:
            return None
        expected = (rows, len(columns))
        if values.shape != expected or not np.isfinite(values).all():
            return None
        return values.ravel()

    def _any(self, raw: bytes, used: set[str], text: set[str], copied: Collection[str]) -> Cells:
        """Parse any text by the csv module."""
        lines: list[int] = []
        rows: list[list[str]] = []
        for line, row in self._sound_rows(raw):
            lines.append(line)
            rows.append([cell.strip() for cell in row])
        columns: Columns = {}
        for i, name in enumerate(self.names):
            if name not in used:
                continue
            cells = [row[i] for row in rows]
            if name in copied:
                columns[name] = Spans.of(cells)
            elif name in text:
                columns[name] = Texts.of(cells)
            else:
                columns[name] = self._numbers_or_texts(name, cells)
        numbers = np.array(lines, dtype=np.int64)
        return Cells(numbers, columns)

    def _numbers_or_texts(self, name: str, cells: Sequence[str]) -> Floats | Texts:
        """Cells as numbers if all of them are numbers or missing; else as text."""
        found = _numbers(cells, self._spelling)
        if None in found:
            return Texts.of(cells)
        if any(cell[:1] == "0" and cell[1:2].isdigit() for cell in cells):
            self.leading_zeros.add(name)
        if any(map(self._spelling.has_thousands, cells)):
            self.thousands.add(name)
        return np.array(found, dtype=np.float64)

    def _sound_rows(self, raw: bytes) -> Iterator[Record]:
        """Yield the rows with as many cells as the header, each with the number of its line."""
        width = len(self.names)
        before = 0
        text = self._decoded(raw)
        for after, row in self._parsed(text):
            line = self._line + before
            before = after
            if len(row) == width:
                yield line, row
            elif row:
                fault = self._wrong_length(row, line)
                if self._on_fault is None:
                    raise fault
                self._on_fault(fault)

    def _wrong_length(self, row: Sequence[str], line: int) -> UserError:
        """The error for a row with more or fewer cells than the header."""
        width = len(self.names)
        cells = counted(len(row), "cell")
        problem = f"this row has {cells}, the header has {width}"
        hint = f"put cells that contain {self._delimiter!r} in double quotes"
        if len(row) < width:
            hint = "the line may be cut off; complete or delete it"
        return bad_data(problem, self.path, line=line, hint=hint)

    def _parsed(self, text: str) -> Iterator[Record]:
        """Yield the records of the text, each with the number of lines up to its end."""
        source = io.StringIO(text, newline="\n")
        reader = csv.reader(
            source,
            delimiter=self._delimiter,
            strict=True,
            skipinitialspace=True,
        )
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            reason = str(error)
            hint = "write a quote in a quoted cell twice"
            if "new-line" in reason:
                hint = rf"convert it with `tr '\r' '\n' < {as_word(self.path)} > fixed.csv`"
            line = self._line + reader.line_num - 1
            problem = f"this is not CSV: {reason}"
            raise bad_data(problem, self.path, line=line, hint=hint) from None

    def _decoded(self, raw: bytes) -> str:
        """Decode bytes, which must be UTF-8 without NUL bytes."""
        at = raw.find(b"\0")
        try:
            text = raw.decode()
        except UnicodeDecodeError as fault:
            at = fault.start
        if at >= 0:
            raise self._no_utf8(raw, at)
        return text

    def _no_utf8(self, raw: bytes, at: int) -> UserError:
        """The error for bytes that are no text from this position on."""
        problem = "the text must be UTF-8, without NUL bytes"
        hint = utf8_hint(raw, self.path, "utf8.csv")
        before = raw.count(b"\n", 0, at)
        line = self._line + before
        return bad_data(problem, self.path, line=line, hint=hint)

    def _check_header(self, lines: int) -> None:
        """Refuse a first record of so many lines that is no header with distinct names."""
        names = self.names
        if not names:
            problem = "there is no header: the first line must name the columns"
            hint = "the file is empty, or its first line is blank"
            raise bad_data(problem, self.path, line=1, hint=hint)
        if names[0].lower().startswith(_MARKUP):
            problem = "this is an HTML or XML page, not a table"
            raise bad_data(problem, self.path, line=1, hint="check the download link")
        numbered = [f"c{i}" for i, _ in enumerate(names, start=1)]
        counts = Counter(names)
        twice = [name for name in names if counts[name] > 1]
        if not any(names):
            problem = "there is no header: the first line must name the columns"
            header = self._printing(numbered)
            rows = "tail -n +2"
        elif _looks_like_row(names):
            problem = "the first line looks like a row: there is no header"
            header = self._printing(numbered)
            rows = "cat"
        elif twice:
            problem = f"two columns have the name {twice[0]!r}"
            header = self._printing(_distinct(names))
            rows = f"tail -n +{lines + 1}"
        else:
            return
        path = as_word(self.path)
        hint = f"name the columns: `({header}; {rows} {path}) > named.csv`"
        raise bad_data(problem, self.path, line=1, hint=hint)

    def _printing(self, names: Sequence[str]) -> str:
        """The shell command that prints a header with these names."""
        if self._delimiter == "\t":  # messages show a tab as \t, which echo would not undo
            form = r"\t".join("%s" for _ in names)
            words = shlex.join(names)
            return rf"printf '{form}\n' {words}"
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="")
        writer.writerow(names)
        header = shlex.quote(text.getvalue())
        return f"echo {header}"


def _looks_like_row(names: Sequence[str]) -> bool:
    """Whether a header is a row: all are numbers, but not 0, 1, 2, …; or one has a fraction."""
    values = [number(name) for name in names]
    for value in values:
        if value is not None and value % 1:
            return True
    if None in values:
        return False
    counted = [str(i) for i in range(len(names))]
    return list(names) != counted


def _distinct(names: Sequence[str]) -> list[str]:
    """The names with numbers after those that occur before: a, a.2, a.3."""
    found: dict[str, None] = {}
    given = set(names)
    numbers: Counter[str] = Counter()
    for name in names:
        spelled = name
        while spelled in found or (spelled != name and spelled in given):
            numbers[name] += 1
            spelled = f"{name}.{numbers[name] + 1}"
        found[spelled] = None
    return list(found)


def delimiter_of(header: str) -> str:
    """The delimiter of a header line: a tab if there is one, because names may have the others.

    It is a comma if there is none at all: a quoted name may go on in the next line.
    """
    unquoted = _QUOTED.sub("", header)
    if "\t" in unquoted:
        return "\t"
    delimiter = max(DELIMITERS, key=unquoted.count)
    return delimiter if delimiter in unquoted else ","


def _numbers(cells: Sequence[str], spelling: Spelling) -> list[float | None]:
    """The number in each cell; NaN if missing, None if it is no number."""
    found: dict[str, float | None] = {}
    for cell in set(cells):
        if cell in spelling.missing:
            found[cell] = np.nan
        else:
            found[cell] = spelling.number(cell)
    return [found[cell] for cell in cells]


def _end_of_records(text: bytes) -> int:
    """Position behind the last line end outside of quotes; 0 if there is none."""
    end = text.rfind(b"\n") + 1
    if not end or b'"' not in text:
        return end
    letters = np.frombuffer(text, np.uint8)
    is_quote = letters == ord('"')
    is_line_end = letters == ord("\n")
    is_inside = np.cumsum(is_quote, dtype=np.uint8) & 1
    line_ends = np.flatnonzero(is_line_end > is_inside)
    last = line_ends.max(initial=-1)
    return int(last) + 1


def _bare(raw: bytes, sign: bytes) -> bytes | None:
    """Text after `MARGIN`, without CR, spaces around cells and quotes; None if it is unusual."""
    data: bytes | None = MARGIN + raw
    if b"\r" in raw:
        data = _without_returns(MARGIN + raw)
    if data is not None and b" " in raw:
        data = _without_padding(data, sign)
    if data is None or b'"' not in raw:
        return data
    if not _removable_quotes(data, sign):
        return None
    return data.replace(b'"', b"")


def _without_returns(data: bytes) -> bytes | None:
    """Text with line ends in place of CR LF; None if there are other CR."""
    plain = data.replace(b"\r\n", b"\n")
    if b"\r" in plain:
        return None
    return plain


def _without_padding(data: bytes, sign: bytes) -> bytes | None:
    """Text without spaces around cells; None if there are many in a row."""
    around = (sign + b" ", b" " + sign, b"\n ", b" \n")
    for _ in range(5):
        if not _padded(data, sign):
            return data
        for space in around:
            data = data.replace(space, space.strip(b" "))
    return None


def _positions_of(data: bytes, sign: bytes, width: int) -> _Positions | None:
    """Positions of the cells, if each line has `width` of them; else None."""
    letters = np.frombuffer(data, np.uint8)
    is_no_digit = letters - ord("0") > 9
    marks = np.flatnonzero(is_no_digit)
    kinds = letters[marks]
    line_ends = kinds == ord("\n")
    delimiters = kinds == ord(sign)
    gaps = np.flatnonzero(line_ends | delimiters)
    rows = int(np.count_nonzero(line_ends)) - 1
    cells = len(gaps) - 1
    if cells != rows * width:
        return None
    row_ends = gaps[::width]
    if not line_ends[row_ends].all():
        return None
    at = marks[gaps]
    begins = at[:-1].reshape(rows, width) + 1
    ends = at[1:].reshape(rows, width)
    if width == 1 and (begins == ends).any():
        return None  # a blank line is no row
    return _Positions(
        data=data,
        letters=letters,
        marks=marks,
        kinds=kinds,
        gaps=gaps,
        begins=begins,
        ends=ends,
    )


def _texts(data: bytes, begins: Integers, ends: Integers) -> Texts:
    """Cells of text at data[begins:ends]."""
    lengths = ends - begins
    if lengths.max(initial=0) > 8:
        cells = _decoded_cells(data, begins, ends)
        return Texts.of([cell.strip() for cell in cells])
    # up to 8 bytes are a number, which is faster to compare
    windows = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    words = windows[ends - 8]
    surplus = 64 - 8 * lengths
    words >>= surplus.astype(np.uint64)
    distinct, codes = np.unique(words, return_inverse=True)
    texts = [_word_text(word) for word in distinct.tolist()]
    return Texts(codes, texts)


def _padded(data: bytes, sign: bytes) -> bool:
    """Whether a cell begins or ends with a space."""
    letters = np.frombuffer(data, np.uint8)
    spaces = np.flatnonzero(letters == ord(" "))
    neighbours = np.append(spaces - 1, spaces + 1)
    around = letters[neighbours]
    is_delimiter = around == ord(sign)
    is_line_end = around == ord("\n")
    bounds = is_delimiter | is_line_end
    return bool(bounds.any())


def _word_text(word: int) -> str:
    """The text of up to 8 bytes that were read as a number."""
    written = word.to_bytes(8, "little").rstrip(b"\0")
    return written.decode().strip()


def _decoded_cells(data: bytes, begins: Integers, ends: Integers) -> list[str]:
    """Cells at data[begins:ends], with the spaces around them."""
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    return [data[begin:end].decode() for begin, end in spans]


def _as_slice(columns: list[int]) -> list[int] | slice:
    """Columns as a slice if they are adjacent, which is faster than a list of columns."""
    first = columns[0]
    stop = columns[-1] + 1
    if stop - first == len(columns):
        return slice(first, stop)
    return columns


def _has_many_exponents(positions: _Positions, cells: int) -> bool:
    """Whether more than a quarter of so many cells are numbers with exponents."""
    lower_case = positions.kinds | 0x20
    exponents = np.count_nonzero(lower_case == ord("e"))
    return bool(4 * exponents > cells)


def _removable_quotes(data: bytes, sign: bytes) -> bool:
    """Whether all quotes enclose whole cells that have no quote, delimiter or line end inside."""
    letters = np.frombuffer(data, np.uint8)
    is_delimiter = letters == ord(sign)
    is_line_end = letters == ord("\n")
    ends_cell = is_delimiter | is_line_end
    quotes = np.flatnonzero(letters == ord('"'))
    first = quotes[::2]
    last = quotes[1::2]
    if len(first) != len(last):
        return False
    if not ends_cell[first - 1].all() or not ends_cell[last + 1].all():
        return False
    gaps = np.flatnonzero(ends_cell)
    cell_of_first = np.searchsorted(gaps, first)
    cell_of_last = np.searchsorted(gaps, last)
    return np.array_equal(cell_of_first, cell_of_last)
