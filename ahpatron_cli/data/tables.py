"""Reading tables (CSV, JSON lines, Parquet, Arrow) as numeric rows with labels and ids.

A reader yields batches of named columns, which a `Schema` converts to rows. The schema is inferred
once, from all rows of a file or the first rows of a pipe, and saved with the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

import msgspec
import numpy as np

from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.cell_reader import CellReader, OnFault, TextReader
from ahpatron_cli.data.cells import (
    DEFAULT_SPELLING,
    MISSING,
    Cells,
    label_key,
)
from ahpatron_cli.data.file_formats import open_reader
from ahpatron_cli.data.inference import Inferred, infer_schema, pandas_index
from ahpatron_cli.data.json_lines import JsonReader, NewColumnError
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally
from ahpatron_cli.data.late_labels import are_labels_alone, label_batch, split
from ahpatron_cli.data.row_range import RowRange
from ahpatron_cli.data.schema import (
    Column,
    Schema,
    Unseen,
    cell_text,
    listed,
    mixed,
    no_value,
)
from ahpatron_cli.data.source import Source, first_batches, open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import faulty_rows, no_rows
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.number_text import counted
from ahpatron_cli.settings import Data
from ahpatron_cli.signals import StreamEnded


class TableReader(Reader):
    """Reader of a table.

    Without a schema, one is inferred first: from all rows if the source can be read twice, else
    from the first labelled rows (--warm-up). `on_wait` is called with the number of rows so far if
    reading has to wait for these. `on_fault` is called with each fault of a cell, row or column,
    which is then left out; without it, the first fault is raised.
    """

    def __init__(
        self,
        source: Source,
        options: TableOptions,
        schema: Schema | None = None,
        data: Data = Data(),  # noqa: B008 - it cannot change
        *,
        may_lack_labels: bool = True,
        has_late_labels: bool = False,
        on_wait: Callable[[int], None] = lambda rows: None,
        on_fault: OnFault = None,
    ) -> None:
        super().__init__(source, data, on_wait)
        self._may_lack_labels = may_lack_labels
        self._has_late_labels = has_late_labels
        self._on_fault = on_fault
        self._categories = frozenset(options.category)
        self._spelling = options.spelling_for(schema)
        self._reader = open_reader(source, self._report_if_asked, self._spelling)
        self._reader.undivided = options.undivided(schema)
        self.unseen = Unseen()
        """Counts of cells that did not occur in training."""
        self.numeric: dict[str, bool] = {}
        """Columns in which every cell is a number, each with whether many of them are 0."""
        self.on_cells: Callable[[Cells], None] = lambda cells: None
        """Called with the cells of each batch before they become features."""
        self._labels_alone = 0
        """Number of rows with an id, a label and no other cell, which are not late labels here."""
        self._head: list[Cells] = []
        """The first rows of a pipe, from which its schema was inferred."""
        self.format = self._reader.row_format
        remarks = self._remarks()
        if schema is None:
            found = self._infer(options)
            schema = found.schema
            remarks = found.notes
        self.schema: Schema = msgspec.structs.replace(schema, id=self._id_column(schema, options))
        """The schema of the table."""
        self._check_columns()
        self.info = FileInfo(len(schema.features), remarks=remarks)

    def _remarks(self) -> tuple[str, ...]:
        """Notes on how numbers and dates are written, which only formats of text have."""
        if isinstance(self._reader, TextReader):
            return self._spelling.notes
        return ()

    def _check_columns(self) -> None:
        """Refuse a table without the columns of the schema."""
        if not self._reader.may_lack_columns:
            self.schema.check_columns(self._reader.names, self._reader.path)

    def _id_column(self, schema: Schema, options: TableOptions) -> str | None:
        """The column of ids: that of --id, or that of the schema if rows may have it."""
        if options.id:
            return options.id
        if self._reader.may_lack_columns or schema.id in self._reader.names:
            return schema.id
        return None

    def _infer(self, options: TableOptions) -> Inferred:
        """Infer the schema from the rows."""
        reader = self._reader
        found = None
        if isinstance(reader, JsonReader) and self.source.rereadable and self._on_fault is None:
            found = self._infer_by_first_names(reader, options)
        if found is None:
            read_names(self.source, reader, None if self._on_fault is None else _ignore)
            options.check(reader.names, reader.path)
            if self.source.rereadable:
                found = self._infer_from_file(options)
            else:
                found = self._infer_from_pipe(options)
        _check_labels(found.schema, options.labels, reader.path)
        return found

    def _infer_by_first_names(self, reader: JsonReader, options: TableOptions) -> Inferred | None:
        """Infer the schema from JSON lines whose columns are all in the first ones; else None.

        This saves reading the file just for the names of its columns.
        """
        reader.read_first_names()
        with suppress(NewColumnError):
            if options.names.issubset(reader.names):
                options.check(reader.names, reader.path)
                return self._infer_from_file(options)
        return None

    def _infer_from_file(self, options: TableOptions) -> Inferred:
        """Infer the schema from all rows, which are read again later."""
        used = _columns_in_use(options, self._reader.names)
        no_numbers: set[str] = set()
        with open_source(self.source.name) as again:
            # faults of rows are reported when these are read again
            on_fault = None if self._on_fault is None else _ignore
            reader = open_reader(again, on_fault, self._spelling)
            reader.names = self._reader.names
            reader.undivided = self._reader.undivided
            if isinstance(reader, JsonReader):
                reader.expected = set(reader.names)
            text = _columns_of_text(options)
            exact = [options.id or ""]
            batches = self._cleaned(reader.batches(used, text, no_numbers), exact, text)
            sound = self._sound_part(batches)
            found = infer_schema(
                reader,
                options,
                _used(sound, self.rows_in_use),
                no_numbers=no_numbers,
                on_fault=self._report_if_asked,
            )
            if self.rows_in_use.is_everything:
                found.tally.sha256 = again.sha256()
        self.tally = found.tally
        for name, has_zeros in found.numeric.items():
            # cells with spaces cannot be copied, nor those that are not written as usual
            if name not in reader.padded and self._spelling == DEFAULT_SPELLING:
                self.numeric[name] = has_zeros
        return found

    def _infer_from_pipe(self, options: TableOptions) -> Inferred:
        """Infer the schema from the first rows, which are kept."""
        used = _columns_in_use(options, self._reader.names)
        text = _columns_of_text(options)
        exact = [options.id or ""]
        batches = self._cleaned(self._reader.batches(used, text), exact, text)
        report = self._report_if_asked
        self._head = first_batches(
            self.source,
            self._sound_part(batches, report),
            rows=self._data.warm_up,
            labelled=partial(_labelled_rows, label=options.label or ""),
            on_wait=self._on_wait,
        )
        found = infer_schema(self._reader, options, self._head, on_fault=report)
        schema = _with_both_labels(found.schema)
        return found._replace(schema=schema)

    def __iter__(self) -> Iterator[Batch]:
        path = self._reader.path
        batches = self._sound_part(self.cells(), self._report_if_asked)
        for cells in batches:
            self.on_cells(cells)
            if self._on_fault is not None:
                cells = self._without_faults(cells)
            for batch in self._encoded(cells, path):
                if not self._may_lack_labels:
                    self._check_labelled(batch)
                self._note(batch)
                yield batch

    def _encoded(self, cells: Cells, path: str) -> Iterator[Batch]:
        """The rows as batches; late labels, which have no other cells, in their own."""
        features = [column.name for column in self.schema.columns]
        if not self._has_late_labels:
            if self.schema.id:
                alone = are_labels_alone(cells, features, self.schema.label)
                self._labels_alone += int(np.count_nonzero(alone))
            yield self.schema.to_batch(cells, path, self.unseen)
            return
        for part, is_label_only in split(cells, features, self.schema.label):
            if is_label_only:
                yield label_batch(part, self.schema, path)
            else:
                yield self.schema.to_batch(part, path, self.unseen)

    @property
    def _report_if_asked(self) -> OnFault:
        """`_report` if faults do not end the reading; else None."""
        if self._on_fault is None:
            return None
        return self._report_fault

    def _check_labelled(self, batch: Batch) -> None:
        """Refuse a batch with a row that has no label."""
        unlabelled = np.isnan(batch.labels)
        if unlabelled.any():
            row = np.argmax(unlabelled)
            line = int(batch.lines[row])
            hint = "rows without labels are predicted in one pass in file order only"
            raise bad_data("this row has no label", self._reader.path, line=line, hint=hint)

    def _report_fault(self, fault: UserError) -> None:
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
            rows = faulty_rows(
                cells.columns[column.name],
                column,
                cells.spelling,
                may_be_missing=self.schema.missing != "refuse",
                is_category=column.name in self._categories,
            )
            sound[rows] = False
            faults += [self._fault(cells, column, row) for row in rows]
        for fault in sorted(faults, key=_line_of):
            self._report_fault(fault)
        if sound.all():
            return cells
        return cells.part(np.flatnonzero(sound))

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
            batches = open_reader(again, None, self._spelling).batches(label, label)
            for cells in _used(self._cleaned(batches, (), label), self.rows_in_use):
                labels = self.schema.label_numbers(cells, self._reader.path)
                tally.add(labels)
            if self.rows_in_use.is_everything:
                tally.sha256 = again.sha256()
        return tally

    def cells(self, copied: Collection[str] = ()) -> Iterator[Cells]:
        """Yield the cells of the table; columns `copied` of CSV as `Spans`."""
        with suppress(StreamEnded):
            batches = chain(self._head, self._batches(copied))
            is_empty = True
            for cells in _used(batches, self.rows_in_use):
                is_empty = False
                yield cells
            if is_empty:
                raise no_rows(self._reader.path)
        self.info.remarks += tuple(self.unseen.notes)
        if self._labels_alone:
            rows = counted(self._labels_alone, "row")
            note = f"{rows} with an id, a label and no other cell: late labels join their rows only"
            self.info.remarks += (f"{note} on a stream, `ahpatron run -`",)

    def _batches(self, copied: Collection[str]) -> Iterator[Cells]:
        """The cells that the schema needs, as the reader returns them."""
        columns = self.schema.columns
        text = self.schema.text_columns()
        used = text | {column.name for column in columns}
        dates = {column.name for column in columns if column.kind == "date"}
        batches = self._reader.batches(used, text, no_numbers=dates, copied=copied)
        exact = [self.schema.id or ""]
        return self._cleaned(batches, exact, self.schema.columns_of_names())

    def _cleaned(
        self, batches: Iterator[Cells], exact: Collection[str], by_name: Collection[str]
    ) -> Iterator[Cells]:
        """Batches without the cells that stand for missing ones; see `Spelling.cleaned`."""
        for cells in batches:
            yield self._spelling.cleaned(cells, exact, by_name)


def read_names(source: Source, reader: CellReader, on_fault: OnFault) -> None:
    """Have the names of all columns ready, if these are not in a header."""
    if not isinstance(reader, JsonReader):
        return
    if not source.rereadable:
        reader.read_first_names()
        return
    with open_source(source.name) as again:
        whole = JsonReader(again, on_fault)
        whole.undivided = reader.undivided
        whole.read_names()
    reader.names = whole.names


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


def check_features(schema: Schema, max_features: int, path: str) -> None:
    """Refuse a table with more than `max_features` features."""
    count = len(schema.features)
    if count > max_features:
        problem = f"the table has {count:,} features, more than --max-features {max_features}"
        raise bad_data(problem, path, hint="leave out columns with many categories: --drop COLUMN")


def _used(batches: Iterable[Cells], in_use: RowRange) -> Iterator[Cells]:
    """The rows that are used."""
    seen = 0
    for cells in batches:
        count = len(cells.lines)
        part = in_use.part(seen, count)
        seen += count
        if part.start < part.stop:
            yield cells.part(part)
        if in_use.ends_at(seen):
            return
