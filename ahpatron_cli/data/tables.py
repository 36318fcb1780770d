"""Reading tables (CSV, TSV, Parquet, Arrow) as numeric rows with labels and ids.

A reader yields batches of named columns, which a `Schema` converts to rows. The schema is inferred
once, from all rows of a file or the first rows of a pipe, and saved with the model.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.arrow import ArrowReader
from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.cells import (
    MISSING,
    Cells,
    Dates,
    LabelKind,
    Texts,
    Values,
    category_name,
    days,
    label_key,
    label_kind,
    number,
)
from ahpatron_cli.data.csv_text import CsvReader, OnFault, delimiter_of
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally, class_fault
from ahpatron_cli.data.schema import (
    Column,
    Schema,
    Unseen,
    cell_text,
    listed,
    mixed,
    no_value,
)
from ahpatron_cli.data.source import (
    HEAD_BYTES,
    JSON_HINTS,
    PACKINGS,
    Source,
    as_word,
    first_batches,
    open_source,
)
from ahpatron_cli.errors import Place, UserError, bad_data, suggestion, usage
from ahpatron_cli.settings import Data, Tables
from ahpatron_cli.signals import StreamEnded

MAX_CATEGORIES = 1000
FEWEST_ROWS = 20
"""Smallest number of rows for which a text column with few repeated values is refused."""
_UNNAMED_INDEX = ("", "Unnamed: 0")
"""Names of the first column of a CSV file if it is the index of pandas."""
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__")
"""Names under which pandas writes its index to Parquet and Arrow files."""
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
TABLE_SUFFIXES = (".csv", ".tsv", *ARROW_SUFFIXES)


_ARROW_MAGIC = (b"PAR1", b"ARROW1")
"""First bytes of Parquet and of Arrow files."""
_NO_NAMES = "#<{[@%|"
"""Characters with which the header of a table does not begin."""
_NO_HEADER = re.compile(r"(^|\s)[0-9]+:|\0|\ufffd.")
"""What the header of a table does not contain: features of LIBSVM text, bytes that are no text."""
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(\{)\s*[\"}]|(\[)\s*[\[{])")
"""Start of JSON lines, or of a JSON list."""
_LIBSVM_ROW = re.compile(r"(\S+\s+)?(qid:\S+\s+)?[0-9]+:[-+.0-9eE]+(\s+[0-9]+:[-+.0-9eE]+)*")
"""A row of LIBSVM text: a label, which may be missing, and features."""


Kind: TypeAlias = Literal["number", "date", "category", "missing"]
"""Type of a cell."""
OptionText: TypeAlias = tuple[str, str]
"""The name of an option and its value as text."""


@dataclass(frozen=True)
class TableOptions(Tables):
    """Command-line options for tables, with those for their labels."""

    positive: str | None = None
    labels: tuple[str, ...] = ()
    """All labels, for pipes, whose later rows are not known when the schema is inferred."""
    given: tuple[str, ...] = ()
    """Options for tables only that the user has given, which LIBSVM text refuses."""

    @property
    def words(self) -> tuple[OptionText, ...]:
        """Options that differ from their defaults."""
        found: list[OptionText] = []
        if self.label:
            found.append(("label", self.label))
        if self.id:
            found.append(("id", self.id))
        if self.positive:
            found.append(("positive", self.positive))
        if self.missing != Tables.missing:
            found.append(("missing", self.missing))
        found += [("drop", name) for name in self.drop]
        found += [("category", name) for name in self.category]
        return tuple(found)

    def check(self, names: list[str], path: str) -> None:
        """Refuse options that do not fit a table with these columns."""
        if self.label is None:
            last = shlex.quote(names[-1])
            hint = f"the columns are {listed(names)}: often the last, --label {last}"
            raise bad_data("a table requires --label COLUMN", path, line=1, hint=hint)
        single = [name for name in (self.label, self.id) if name]
        named = Counter([*single, *self.drop, *self.category])
        for name, count in named.items():
            if name not in names:
                raise _no_column(name, names, path)
            if count > 1:
                raise usage(f"column {name!r} is named twice by --label, --id, --drop, --category")


def _no_column(name: str, names: list[str], path: str) -> UserError:
    """The error for an option that names a column which the table does not have."""
    problem = f"no column has the name {name!r}"
    hint = suggestion(name, names)
    parts = name.split(",")
    if set(parts) <= set(names):
        hint = "repeat the option for each column"
    elif not hint:
        hint = f"the columns are {listed(names)}"
    return bad_data(problem, path, line=1, hint=hint)


class TableReader(Reader):
    """Reader of a table.

    Without a schema, one is inferred first: from all rows if the source can be read twice, else
    from the first `warm_up` labelled rows. `on_wait` is called with the number of rows so far if
    reading has to wait for these. `on_fault` is called with each fault of a cell, row or column,
    which is then left out; without it, the first fault is raised.
    """

    def __init__(
        self,
        source: Source,
        options: TableOptions,
        schema: Schema | None = None,
        max_rows: int | None = None,
        may_lack_labels: bool = True,
        warm_up: int = Data.warm_up,
        on_wait: Callable[[int], None] = lambda rows: None,
        on_fault: OnFault = None,
    ) -> None:
        super().__init__(source, max_rows, on_wait)
        self._may_lack_labels = may_lack_labels
        self._on_fault = on_fault
        self._categories = frozenset(options.category)
        self._reader = open_reader(source, self._report_if_asked)
        reader = self._reader
        self.unseen = Unseen()
        """Counts of cells that did not occur in training."""
        self.numeric: dict[str, bool] = {}
        """Columns in which every cell is a number, each with whether many of them are 0."""
        self._head: list[Cells] = []
        """The first rows of a pipe, from which its schema was inferred."""
        remarks: tuple[str, ...] = ()
        if schema is None:
            options.check(reader.names, reader.path)
            if source.rereadable:
                found = self._infer_from_file(options)
            else:
                found = self._infer_from_pipe(options, warm_up)
            schema = found.schema
            remarks = found.notes
            _check_labels(schema, options.labels, reader.path)
        id_column = schema.id if schema.id in reader.names else None
        if options.id:
            id_column = options.id
        self.schema: Schema = msgspec.structs.replace(schema, id=id_column)
        """The schema of the table."""
        self.schema.check_columns(reader.names, reader.path)
        width = len(schema.features)
        self.info = FileInfo(width, remarks=remarks)

    def _infer_from_file(self, options: TableOptions) -> Inferred:
        """Infer the schema from all rows, which are read again later."""
        used = _columns_in_use(options, self._reader.names)
        no_numbers: set[str] = set()
        with open_source(self.source.name) as again:
            # faults of rows are reported when these are read again
            on_fault = None if self._on_fault is None else _ignore
            reader = open_reader(again, on_fault)
            text = _columns_of_text(options)
            batches = reader.batches(used, text, no_numbers)
            sound = self._sound_part(batches)
            found = infer(
                reader,
                options,
                _limited(sound, self._max_rows),
                no_numbers=no_numbers,
                on_fault=self._report_if_asked,
            )
            if self._max_rows is None:
                found.tally.sha256 = again.sha256()
        self.tally = found.tally
        for name, has_zeros in found.numeric.items():
            if name not in reader.padded:  # cells with spaces cannot be copied
                self.numeric[name] = has_zeros
        return found

    def _infer_from_pipe(self, options: TableOptions, warm_up: int) -> Inferred:
        """Infer the schema from the first rows, which are kept."""
        used = _columns_in_use(options, self._reader.names)
        text = _columns_of_text(options)
        batches = self._reader.batches(used, text)
        report = self._report_if_asked
        self._head = first_batches(
            self.source,
            self._sound_part(batches, report),
            rows=warm_up,
            labelled=partial(_labelled_rows, label=options.label or ""),
            on_wait=self._on_wait,
        )
        found = infer(self._reader, options, self._head, on_fault=report)
        schema = _with_both_labels(found.schema)
        return found._replace(schema=schema)

    def __iter__(self) -> Iterator[Batch]:
        path = self._reader.path
        batches = self._sound_part(self.cells(), self._report_if_asked)
        for cells in batches:
            if self._on_fault is not None:
                cells = self._without_faults(cells)
            batch = self.schema.encode(cells, path, self.unseen)
            if not self._may_lack_labels:
                self._check_labelled(batch)
            self._note(batch)
            yield batch

    @property
    def _report_if_asked(self) -> OnFault:
        """`_report` if faults do not end the reading; else None."""
        if self._on_fault is None:
            return None
        return self._report

    def _check_labelled(self, batch: Batch) -> None:
        """Refuse a batch with a row that has no label."""
        unlabelled = np.isnan(batch.labels)
        if unlabelled.any():
            row = np.argmax(unlabelled)
            line = int(batch.lines[row])
            hint = "rows without labels are predicted in one pass in file order only"
            raise bad_data("this row has no label", self._reader.path, line=line, hint=hint)

    def _report(self, fault: UserError) -> None:
        assert self._on_fault is not None
        self.faults += 1
        self._on_fault(fault)

    def _sound_part(self, batches: Iterator[Cells], report: OnFault = None) -> Iterator[Cells]:
        """Batches up to a fault that makes the rest of the file meaningless.

        It is raised, or passed to `report`, if faults of this reader do not end the reading.
        """
        try:
            yield from batches
        except UserError as fault:
            if self._on_fault is None:
                raise
            if report is not None:
                report(fault)
                self.stopped = True

    def _without_faults(self, cells: Cells) -> Cells:
        """The rows in which every cell fits its column; faults of the others are reported."""
        faults: list[UserError] = []
        count = len(cells.lines)
        sound = np.ones(count, dtype=bool)
        for column in self.schema.columns:
            rows = _faulty_rows(
                cells.columns[column.name],
                column.kind,
                missing=self.schema.missing,
                is_category=column.name in self._categories,
            )
            sound[rows] = False
            faults += [self._fault(cells, column, row) for row in rows]
        for fault in sorted(faults, key=_line_of):
            self._report(fault)
        if sound.all():
            return cells
        return _part(cells, np.flatnonzero(sound))

    def _fault(self, cells: Cells, column: Column, row: int) -> UserError:
        """The error for a cell that does not fit its column."""
        path = self._reader.path
        name = column.name
        line = int(cells.lines[row])
        values = cells.columns[name]
        cell = cell_text(values, row)
        if cell in MISSING:
            return no_value(name, path, line)
        return mixed(name, column.kind, cell=cell, path=path, line=line)

    def _count_labels(self) -> LabelTally:
        tally = LabelTally()
        label = {self.schema.label}
        with open_source(self.source.name) as again:
            batches = open_reader(again).batches(label, label)
            for cells in _limited(batches, self._max_rows):
                labels = self.schema.label_numbers(cells, self._reader.path)
                tally.add(labels)
            if self._max_rows is None:
                tally.sha256 = again.sha256()
        return tally

    def cells(self, copied: Collection[str] = ()) -> Iterator[Cells]:
        """Yield the cells of the table; columns `copied` of CSV as `Spans`."""
        with suppress(StreamEnded):
            batches = chain(self._head, self._batches(copied))
            is_empty = True
            for cells in _limited(batches, self._max_rows):
                is_empty = False
                yield cells
            if is_empty:
                raise no_rows(self._reader.path)
        self.info.remarks += tuple(self.unseen.notes)

    def _batches(self, copied: Collection[str]) -> Iterator[Cells]:
        """The cells that the schema needs, as the reader returns them."""
        columns = self.schema.columns
        text = self.schema.text_columns()
        used = text | {column.name for column in columns}
        dates = {column.name for column in columns if column.kind == "date"}
        return self._reader.batches(used, text, no_numbers=dates, copied=copied)


def _columns_in_use(options: TableOptions, names: Sequence[str]) -> set[str]:
    """The columns that are read to infer a schema."""
    index = pandas_index(names)
    return set(names).difference(options.drop, index)


def _columns_of_text(options: TableOptions) -> set[str]:
    """The columns whose text is needed to infer a schema."""
    names = (options.label, options.id, *options.category)
    return {name for name in names if name}


def _labelled_rows(cells: Cells, label: str) -> int:
    """Number of rows that have a label in this column."""
    labelled = 0
    for cell, count, _ in cells.texts(label).counts():
        if cell not in MISSING:
            labelled += count
    return labelled


def _ignore(fault: UserError) -> None:
    """Do nothing about a fault."""


def _line_of(fault: UserError) -> int:
    """Line of a fault; 0 if it is not known."""
    if fault.place is None:
        return 0
    return fault.place.line or 0


def _with_both_labels(schema: Schema) -> Schema:
    """The schema of a pipe, with 1 if all first rows have the other label of a plain pair."""
    if schema.positive is not None:
        return schema
    codes = list(schema.labels.values())
    for negative, _ in PLAIN_PAIRS:
        if codes == [negative]:
            labels = {**schema.labels, "1": 1.0}
            return msgspec.structs.replace(schema, labels=labels)
    return schema


def _check_labels(schema: Schema, named: Collection[str], path: str) -> None:
    """Refuse a table with a label that --classes does not name, if that is given."""
    if not named:
        return
    kind = schema.label_kind
    known = {label_key(name, kind) for name in named}
    for name in schema.labels:
        if label_key(name, kind) not in known:
            hint = f"--classes names {listed(named)}"
            raise bad_data(f"an unexpected label: {name}", path, hint=hint)


def is_table(source: Source, options: TableOptions) -> bool:
    """Whether a source should be read as a table; to be called before reading from it.

    Raises a usage error if options for tables are given with LIBSVM text.
    """
    name = source.name.lower()
    for packing in PACKINGS:
        name = name.removesuffix(packing)
    head = source.head
    if name.endswith(TABLE_SUFFIXES) or looks_like_table(head):
        return True
    if options.given and looks_like_libsvm(head):
        flags = [f"--{option}" for option in options.given]
        shown = ", ".join(flags)
        problem = f"for tables only: {shown}; this is LIBSVM text"
        hint = "leave it out; tables and LIBSVM files need commands of their own"
        place = Place(source.name)
        raise UserError(problem, place=place, hint=hint)
    return options.expect_table


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


def check_features(schema: Schema, max_features: int, path: str) -> None:
    """Refuse a table with more than `max_features` features."""
    count = len(schema.features)
    if count > max_features:
        problem = f"the table has {count:,} features, more than --max-features {max_features}"
        raise bad_data(problem, path, hint="leave out columns with many categories: --drop COLUMN")


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


def open_reader(source: Source, on_fault: OnFault = None) -> CsvReader | ArrowReader:
    """The reader for a table, chosen by its first bytes or its name."""
    name = source.name
    is_arrow = source.head.startswith(_ARROW_MAGIC)
    if is_arrow or name.lower().endswith(ARROW_SUFFIXES):
        return _open_arrow(source)
    json = _JSON.match(source.head)
    if json:
        bracket = json[1] or json[2]
        word = as_word(name)
        hint = JSON_HINTS[bracket].replace("FILE", word)
        raise bad_data("this is JSON, not CSV", name, line=1, hint=hint)
    return CsvReader(source.read1, name, on_fault)


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
    return ArrowReader(name)


def _limited(batches: Iterable[Cells], rows: int | None) -> Iterator[Cells]:
    """Batches cut after the first `rows` rows in total."""
    if rows is None:
        yield from batches
        return
    left = rows
    for cells in batches:
        count = len(cells.lines)
        if count >= left:
            yield _part(cells, slice(left))
            return
        left -= count
        yield cells


def _part(cells: Cells, rows: slice | Integers) -> Cells:
    """Some rows of a batch."""
    columns: dict[str, Values] = {}
    for name, values in cells.columns.items():
        columns[name] = values[rows]
    return Cells(cells.lines[rows], columns)


def pandas_index(names: Sequence[str]) -> list[str]:
    """Those of the columns that are an index which pandas has written, and no features."""
    index = [name for name in names if _INDEX_LEVEL.fullmatch(name)]
    if names and names[0] in _UNNAMED_INDEX:
        return [names[0], *index]
    return index


InferredColumns: TypeAlias = Mapping[str, Column | None]
"""Columns of a table by name; None for those without values."""


class _Seen:
    """Statistics of a column: counts of numbers, dates, texts and missing cells."""

    def __init__(self, name: str, is_category: bool) -> None:
        self.name = name
        self._is_category = is_category
        self.counts: Counter[Kind] = Counter()
        self.first: dict[Kind, tuple[int, str]] = {}
        """Line and text of the first cell of each type."""
        self.categories: Counter[str] = Counter()
        """Cells of each category, up to one more than the largest number of categories."""
        self._mean = 0.0
        self._averaged = 0
        """Mean of the numbers or dates so far, and how many they are."""
        self.zeros = 0

    def add(self, values: Values, lines: Integers) -> None:
        """Add the cells of a batch to the statistics."""
        if isinstance(values, Texts):
            self._add_texts(values, lines)
            return
        kind, found = _typed(values)
        absent = np.isnan(found)
        present = found[~absent]
        count = len(present)
        missing = len(found) - count
        self.counts["missing"] += missing
        self.counts[kind] += count
        if count == 0:
            return
        if kind not in self.first:
            row = int(np.argmin(absent))
            line = int(lines[row])
            cell = cell_text(values, row)
            self.first[kind] = (line, cell)
        zeros = np.count_nonzero(present == 0)
        self.zeros += int(zeros)
        self._average(present)

    def _add_texts(self, cells: Texts, lines: Integers) -> None:
        """Add the cells of a batch of text to the statistics."""
        values: dict[str, float] = {}
        for cell, count, row in cells.counts():
            kind, value = _kind_of(cell, is_category=self._is_category)
            self.counts[kind] += count
            line = int(lines[row])
            self._note_first(kind, line, cell)
            if kind == "category":
                self._add_category(cell, count)
            elif kind != "missing":
                values[cell] = value
                if value == 0:
                    self.zeros += count
        if values:
            found, _ = cells.numbers(lambda cell: values.get(cell, np.nan))
            present = ~np.isnan(found)
            self._average(found[present])

    def _note_first(self, kind: Kind, line: int, cell: str) -> None:
        """Note a cell if it is the first of its type."""
        first = self.first.get(kind)
        if first is None or line < first[0]:
            self.first[kind] = (line, cell)

    def _add_category(self, cell: str, count: int) -> None:
        """Count cells of a category, if it is known or there are not too many of them."""
        name = cell
        if cell not in self.categories:
            name = category_name(cell)
        known = self.categories
        if name in known or len(known) <= MAX_CATEGORIES:
            known[name] += count

    def _average(self, values: Floats) -> None:
        """Add numbers or dates to the mean, also if their sum would overflow."""
        count = len(values)
        with np.errstate(over="ignore"):
            mean = float(values.sum()) / count
        if not np.isfinite(mean):
            parts = values / count
            mean = float(parts.sum())
        self._averaged += count
        share = count / self._averaged
        earlier = self._mean * (1 - share)
        self._mean = earlier + mean * share

    def column(self, missing: str, path: str, *, may_be_mixed: bool = False) -> Column | None:
        """The inferred `Column`; None if all cells are missing.

        Cells of several types are refused, unless it `may_be_mixed`: the most frequent type counts.
        """
        counted = self.counts.most_common()
        kinds = [kind for kind, count in counted if count and kind != "missing"]
        if not kinds:
            return None
        kind = kinds[0]
        if len(kinds) > 1 and not may_be_mixed:
            rarest = kinds[-1]
            line, cell = self.first[rarest]
            raise mixed(self.name, kind, cell=cell, path=path, line=line)
        has_gaps = self.counts["missing"] > 0
        indicator = missing == "indicator" and has_gaps
        column = Column(self.name, kind, indicator=indicator)
        fills = missing in ("indicator", "mean") and not indicator
        if kind == "category":
            self._check_categories(path)
            column.categories = sorted(self.categories)
            if fills and not has_gaps:
                column.shares = self._shares(column.categories)
        elif fills or (indicator and kind == "date"):  # not 0, a date far from all others
            column.fill = self._mean
        return column

    def _shares(self, categories: Sequence[str]) -> list[float]:
        """Share of each category in the cells that have one."""
        rows = self.counts["category"]
        return [self.categories[name] / rows for name in categories]

    def _check_categories(self, path: str) -> None:
        """Refuse a text column with too many distinct values (ids, names, free text)."""
        rows = self.counts["category"]
        different = len(self.categories)
        hardly_repeats = rows >= FEWEST_ROWS and 2 * different > rows
        is_free_text = hardly_repeats and not self._is_category
        if different <= MAX_CATEGORIES and not is_free_text:
            return
        many = str(different)
        if different > MAX_CATEGORIES:
            many = f"more than {MAX_CATEGORIES:,}"
        problem = f"column {self.name!r} has {many} different texts in {rows:,} rows"
        name = shlex.quote(self.name)
        hint = (
            f"leave it out with --drop {name}, or with --id {name} if it identifies rows"
            "; dates must be written like 2024-05-31, numbers like 1.5"
        )
        line, _ = self.first["category"]
        raise bad_data(problem, path, line=line, hint=hint)


def _typed(values: Floats | Dates) -> tuple[Kind, Floats]:
    """Type of the cells of a column that is no text, and their numbers."""
    if isinstance(values, Dates):
        return "date", values.days()
    return "number", values


def _kind_of(cell: str, *, is_category: bool) -> tuple[Kind, float]:
    """Type of a cell, and its value if that is a number or a date."""
    if cell in MISSING:
        return "missing", 0.0
    if is_category:
        return "category", 0.0
    value = number(cell)
    if value is not None:
        return "number", value
    day = days(cell)
    if day is not None:
        return "date", day
    return "category", 0.0


def _faulty_rows(values: Values, kind: Kind, missing: str, is_category: bool) -> list[int]:
    """Rows whose cells have another type than their column, or are missing where none may be."""
    legal: set[Kind] = {kind}
    if missing != "refuse":
        legal.add("missing")
    if isinstance(values, Texts):
        is_wrong = []
        for text in values.texts:
            own, _ = _kind_of(text, is_category=is_category)
            is_wrong.append(own not in legal)
        wrong = np.array(is_wrong, dtype=bool)[values.codes]
    else:
        own, numbers = _typed(values)
        absent = np.isnan(numbers)
        wrong = np.where(absent, "missing" not in legal, own not in legal)
    rows: list[int] = np.flatnonzero(wrong).tolist()
    return rows


class _Statistics:
    """Statistics of a table: those of its columns of features, and counts of its labels."""

    def __init__(self, features: Iterable[str], options: TableOptions) -> None:
        self.columns = [_Seen(name, name in options.category) for name in features]
        self._label = options.label or ""
        self._positive = options.positive
        self.rows = 0
        self.labelled = 0
        """Number of rows with a label, also of those that are not counted."""
        self.labels: Counter[str] = Counter(dict.fromkeys(options.labels, 0))
        """Rows of each label, up to one more than the largest number of classes."""
        self.unlabelled: Counter[str] = Counter()
        """Rows without a label, by the cell that they have instead."""

    def add_all(self, batches: Iterable[Cells], no_numbers: set[str] | None = None) -> None:
        """Add batches to the statistics, and columns with text or dates to `no_numbers`."""
        for cells in batches:
            self._add(cells)
            if no_numbers is None:
                continue
            for column in self.columns:  # the reader looks at `no_numbers` before each batch
                if column.counts["category"] or column.counts["date"]:
                    no_numbers.add(column.name)

    def _add(self, cells: Cells) -> None:
        self.rows += len(cells.lines)
        for column in self.columns:
            values = cells.columns[column.name]
            column.add(values, cells.lines)
        labels = cells.texts(self._label)
        for cell, count, _ in labels.counts():
            if cell in MISSING:
                self.unlabelled[cell] += count
            else:
                self._add_label(cell, count)

    def _add_label(self, label: str, count: int) -> None:
        """Count rows with a label, if it is known or there are not too many of them."""
        self.labelled += count
        is_known = label in self.labels or label == self._positive
        if is_known or len(self.labels) <= MAX_CLASSES:
            self.labels[label] += count

    def numeric(self) -> dict[str, bool]:
        """Columns in which every cell is a number, with whether more than a tenth are 0."""
        found = {}
        for column in self.columns:
            cells = column.counts.total()
            if column.counts["number"] == cells:
                has_zeros = 10 * column.zeros > cells
                found[column.name] = has_zeros
        return found

    def check(self, path: str) -> None:
        """Refuse a table without rows or without labels."""
        if not self.rows:
            raise no_rows(path)
        if not self.labelled:
            problem = f"no row has a label in column {self._label!r}"
            hint = _no_labels(self.unlabelled)
            raise bad_data(problem, path, line=1, hint=hint)


class Inferred(NamedTuple):
    """What is inferred from the rows of a table."""

    schema: Schema
    notes: tuple[str, ...]
    """Notes for the user."""
    tally: LabelTally
    """Counts of the labels."""
    numeric: Mapping[str, bool]
    """Columns in which every cell is a number, with whether more than a tenth of them are 0."""


def infer(
    reader: CsvReader | ArrowReader,
    options: TableOptions,
    batches: Iterable[Cells],
    *,
    no_numbers: set[str] | None = None,
    on_fault: OnFault = None,
) -> Inferred:
    """Infer the schema of a table from these rows.

    With `on_fault`, columns that cannot be used are passed to it and left out, and those with
    cells of several types have the most frequent one.

    Columns with text or dates are added to `no_numbers`, which the reader looks at: it need not try
    to read them as numbers again.
    """
    path = reader.path
    index = pandas_index(reader.names)
    features = _feature_columns(reader.names, options)
    seen = _Statistics(features, options)
    seen.add_all(batches, no_numbers)
    seen.check(path)
    found = _infer_columns(seen.columns, options.missing, path, on_fault=on_fault)
    empty = [name for name, column in found.items() if column is None]
    labels = _infer_labels(seen, options, path)
    schema = Schema(
        columns=[column for column in found.values() if column],
        label=options.label or "",
        labels=labels.codes,
        missing=options.missing,
        positive=labels.positive,
        id=options.id,
        dropped=[*options.drop, *index, *empty],
        label_kind=labels.kind,
    )
    notes = _column_notes(seen.columns, found, index=index, missing=options.missing)
    return Inferred(
        schema,
        notes=(*labels.notes, *notes),
        tally=labels.tally(seen.labelled),
        numeric=seen.numeric(),
    )


def _feature_columns(names: Sequence[str], options: TableOptions) -> list[str]:
    """The columns that are neither label nor id, nor left out."""
    others = {options.label, options.id, *options.drop, *pandas_index(names)}
    return [name for name in names if name not in others]


def _infer_columns(
    seen: Sequence[_Seen],
    missing: str,
    path: str,
    *,
    on_fault: OnFault,
) -> InferredColumns:
    """The inferred columns by name, None for those without values.

    The faults of those that cannot be used are passed to `on_fault`, or raised without it. A table
    of which no column is left is refused.
    """
    found: dict[str, Column | None] = {}
    may_be_mixed = on_fault is not None
    for one in seen:
        try:
            found[one.name] = one.column(missing, path, may_be_mixed=may_be_mixed)
        except UserError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
    if not any(found.values()):
        raise bad_data("no columns of features are left", path, line=1)
    return found


def _column_notes(
    seen: Sequence[_Seen],
    found: InferredColumns,
    *,
    index: Sequence[str],
    missing: str,
) -> list[str]:
    """Notes for the user on columns that are left out or become features in a special way."""
    empty: list[str] = []
    categories: list[str] = []
    for name, column in found.items():
        if column is None:
            empty.append(name)
        elif column.categories:
            count = len(column.categories)
            categories.append(f"{name} ({count})")
    lists = {
        "the index that pandas has written is left out": [repr(name) for name in index],
        "columns without values are left out": empty,
        "one feature per category": categories,
        **_gaps(seen, found, missing),
    }
    notes = []
    for note, names in lists.items():
        if names:
            shown = listed(names)
            notes.append(f"{note}: {shown}")
    return notes


def _gaps(seen: Sequence[_Seen], found: InferredColumns, missing: str) -> dict[str, list[str]]:
    """Notes on what missing cells become, each with the columns that have some."""
    gaps: dict[str, list[str]] = {}
    if missing == "refuse":
        return gaps
    for one in seen:
        column = found.get(one.name)
        count = one.counts["missing"]
        if column and count:
            replacement = _replacement(column, missing)
            columns = gaps.setdefault(f"missing values become {replacement}", [])
            columns.append(f"{one.name} ({count:,})")
    return gaps


def _replacement(column: Column, missing: str) -> str:
    """What missing cells of a column become, for a note."""
    if column.indicator and column.kind == "date":
        return "the mean date, with an indicator feature"
    if column.indicator:
        return "0, with an indicator feature"
    if missing == "mean":
        return "the mean, or no category"
    return "0"


def no_rows(path: str) -> UserError:
    """The error for a table without rows."""
    return bad_data("there are no rows: the table has a header only", path, 1)


def _no_labels(cells: Counter[str]) -> str:
    """Hint on cells of the label column that count as no label, with their numbers."""
    shown = []
    for cell, count in cells.most_common():
        written = cell or "an empty cell"
        shown.append(f"{written} ({count:,})")
    return f"these cells are no labels: {listed(shown)}; if one of them is, write another word"


class _Labels(NamedTuple):
    """The labels of a table."""

    kind: LabelKind
    counts: Counter[str]
    """Rows of each label, by the text that is shown."""
    positive: str | None
    """The label that --positive names."""
    codes: dict[str, float]
    notes: list[str]
    """Notes for the user if codes differ from the labels."""

    def tally(self, rows: int) -> LabelTally:
        """Counts of the codes; `rows` is the number of rows with a label, counted or not."""
        tally = LabelTally()
        for name, count in self.counts.items():
            code = self.codes.get(name, -1.0)
            tally.count(code, count)
        tally.rows = rows
        return tally


def _infer_labels(seen: _Statistics, options: TableOptions, path: str) -> _Labels:
    """The labels of a table; refuses a table in which all rows have the same one."""
    kind = label_kind(seen.labels)
    counts = _label_names(seen.labels, kind)
    positive = _positive_label(options.positive, counts, kind=kind, path=path)
    if len(counts) == 1 and positive is None and kind != "number":
        (only,) = counts
        raise _one_label_only(only, seen.unlabelled, path)
    if positive is not None:
        codes, notes = _one_against_others(counts, positive)
    elif len(counts) > MAX_CLASSES:
        problem = f"column {options.label!r} has more than {MAX_CLASSES:,} different labels"
        raise bad_data(problem, path, hint="--positive VALUE runs one label against all others")
    else:
        codes, notes = _label_codes(counts, kind)
    return _Labels(kind, counts=counts, positive=positive, codes=codes, notes=notes)


def _one_label_only(label: str, unlabelled: Counter[str], path: str) -> UserError:
    """The error for a table in which all rows, or all with a label, have the same label."""
    which = "all rows"
    hint = None
    if unlabelled:
        which = "all rows with a label"
        hint = _no_labels(unlabelled)
    problem = f"there is nothing to learn: {which} have the same label, {label}"
    return bad_data(problem, path, hint=hint)


def _label_names(counts: Counter[str], kind: LabelKind) -> Counter[str]:
    """Counts of labels by the text that is shown: that of the table, unless it has several."""
    spellings: dict[str, list[str]] = {}
    for text in counts:
        key = label_key(text, kind) or text
        spellings.setdefault(key, []).append(text)
    names: Counter[str] = Counter()
    for key, texts in spellings.items():
        name = key
        if len(texts) == 1 and kind != "boolean":
            name = texts[0]
        names[name] = sum(counts[text] for text in texts)
    return names


def _positive_label(
    text: str | None, labels: Collection[str], kind: LabelKind, path: str
) -> str | None:
    """The label that --positive names, in whatever spelling."""
    if text is None:
        return None
    keys = {label_key(label, kind): label for label in labels}
    key = label_key(text, kind)
    label = keys.get(key)
    if label is None:
        shown = listed(sorted(labels))
        hint = suggestion(text, labels) or f"the labels are {shown}"
        raise bad_data(f"no row has the label {text!r}", path, hint=hint)
    return label


LabelCodes: TypeAlias = tuple[dict[str, float], list[str]]
"""Code of each label, and notes for the user."""


def _one_against_others(labels: Collection[str], positive: str) -> LabelCodes:
    """Codes of labels of which one is positive, and a note for the user.

    If there are too many labels, only the positive one has a code of its own.
    """
    codes: dict[str, float] = {}
    if len(labels) <= MAX_CLASSES:
        codes = dict.fromkeys(sorted(labels), -1.0)
    codes[positive] = 1.0
    return codes, [f"label {positive} is +1, every other label -1"]


def _label_codes(labels: Counter[str], kind: LabelKind) -> LabelCodes:
    """Code of each label, and notes for the user if codes differ from the labels."""
    values: dict[str, float] = {}
    for name in labels:
        value = number(name)
        if value is not None:
            values[name] = value
    if len(values) == len(labels):
        tally = _counted(values, labels)
        if class_fault(tally):
            return values, []  # numbers that hardly repeat, which `find_labels` refuses
    if kind == "number":
        return _number_codes(values)
    if len(labels) > 2:
        names = sorted(labels)
        codes = {name: float(i) for i, name in enumerate(names)}
        return codes, []
    return _rarer_is_positive(labels)


def _number_codes(values: Mapping[str, float]) -> LabelCodes:
    """Codes of labels that are numbers: the numbers, or -1 and +1 for two unusual ones."""
    ordered = sorted(values, key=values.__getitem__)
    codes = {name: values[name] for name in ordered}
    pair = tuple(codes.values())
    if len(ordered) != 2 or pair in PLAIN_PAIRS:
        return codes, []
    negative, positive = ordered
    return _pair(negative, positive)


def _rarer_is_positive(labels: Counter[str]) -> LabelCodes:
    """Codes of two labels: +1 for the rarer; if equal, for the later in alphabetical order."""
    by_name = sorted(labels)
    negative, positive = sorted(by_name, key=labels.__getitem__, reverse=True)
    rarer = labels[positive]
    if labels[negative] == rarer:
        return _pair(negative, positive)
    share = 100 * rarer / labels.total()
    return _pair(negative, positive, why=f", the rarer ({share:.3g} %)")


def _pair(negative: str, positive: str, why: str = "") -> LabelCodes:
    """Codes of two labels that are not -1 and +1 themselves."""
    note = f"label {negative} is -1, {positive} is +1{why}; --positive chooses another"
    return {negative: -1.0, positive: 1.0}, [note]


def _counted(values: Mapping[str, float], counts: Mapping[str, int]) -> LabelTally:
    """Counts of labels that are numbers."""
    tally = LabelTally()
    for name, value in values.items():
        tally.count(value, counts[name])
    return tally
