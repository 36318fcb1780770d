"""Reading tables of a pipe, CSV and JSON lines, row by row as they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.cells import Cells
from ahpatron_cli.data.faults import FaultyRow, OnFaultyRow
from ahpatron_cli.data.file_formats import open_live
from ahpatron_cli.data.growth import Growth
from ahpatron_cli.data.inference import pandas_index
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.late_labels import label_batch, split
from ahpatron_cli.data.layout import DENSE_WIDTH
from ahpatron_cli.data.schema import Schema, Unseen
from ahpatron_cli.data.source import MAX_LINE, Source
from ahpatron_cli.data.table_labels import infer_labels
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import TableStatistics, separators_note, suspicion_of
from ahpatron_cli.errors import NoRowsError, UserError, bad_data, usage
from ahpatron_cli.settings import Data
from ahpatron_cli.signals import StreamEnded


class LiveTableReader(Reader):
    """Reader of a table that passes on each row when it has arrived.

    Without a schema, or with an open one, what is new in a row is added to the schema. A chunk with
    a faulty row, or with a key that was not seen before, is read again in halves, until that row is
    alone; rows that are read together are thus the same as rows that are read one by one.
    """

    def __init__(
        self,
        source: Source,
        options: TableOptions,
        schema: Schema | None = None,
        data: Data = Data(),  # noqa: B008 - it cannot change
        *,
        on_wait: Callable[[int], None] = lambda rows: None,
        on_faulty_row: OnFaultyRow | None = None,
        may_grow: bool = True,
        has_late_labels: bool = False,
    ) -> None:
        super().__init__(source, data, on_wait=on_wait, on_faulty_row=on_faulty_row)
        self._has_late_labels = has_late_labels
        self._line = 1
        on_long_line = None if on_faulty_row is None else self._skip_long_line
        self._spelling = options.spelling_for(schema)
        self._reader = open_live(source, on_long_line, self._spelling)
        self._reader.undivided = options.undivided(schema)
        self.format = self._reader.row_format
        self.header_lines = self._reader.line - 1
        self._categories = frozenset(options.category)
        self.unseen = Unseen()
        """Counts of cells that did not occur in training."""
        if schema is None:
            self._check(options)
            schema = self._open_schema(options)
        self.schema: Schema = msgspec.structs.replace(schema, id=self._id_column(schema, options))
        self._growth: Growth | None = None
        if schema.is_open and may_grow:
            room = data.max_features
            if data.layout != "sparse":
                room = min(room, DENSE_WIDTH - 1)
            self._growth = Growth(self.schema, options, max_features=room, path=self._reader.path)
            if not self._reader.may_lack_columns:
                self.schema.check_any_column(self._reader.names, self._reader.path)
        elif not self._reader.may_lack_columns:
            self.schema.check_columns(self._reader.names, self._reader.path)
        self.info = FileInfo(len(self.schema.features), remarks=self._spelling.notes)

    def _id_column(self, schema: Schema, options: TableOptions) -> str | None:
        """The column of ids: that of --id, or that of the schema if the table has it."""
        name = options.id
        if name is None:
            has_it = self._reader.may_lack_columns or schema.id in self._reader.names
            return schema.id if has_it else None
        used = {column.name: "a feature of the model" for column in schema.columns}
        used[schema.label] = "the label of the model"
        if name in used:
            raise usage(
                f"--id: column {name!r} is {used[name]}, and cannot identify rows",
                "name another column, or train a model with this --id",
            )
        return name

    def _check(self, options: TableOptions) -> None:
        """Refuse options that do not fit this table."""
        names = list(self._reader.names)
        if self._reader.may_lack_columns:  # any column may still appear
            named = [options.label, options.id, *options.drop, *options.category]
            names += [name for name in named if name and name not in names]
            names = names or ["label"]
        options.check(names, self._reader.path)

    def _open_schema(self, options: TableOptions) -> Schema:
        """The schema before the first row."""
        schema = Schema(
            columns=[],
            label=options.label or "",
            labels={},
            missing=options.missing,
            id=options.id,
            na=list(options.na),
            decimal=options.decimal,
            dropped=[*options.drop, *pandas_index(self._reader.names)],
            is_open=True,
        )
        if options.positive is not None:
            schema.labels = {options.positive: 1.0}
            schema.positive = options.positive
        elif options.labels:
            seen = TableStatistics((), options)
            seen.labels = Counter(dict.fromkeys(options.labels, 1))
            labels = infer_labels(seen, options, self._reader.path)
            schema.labels = labels.codes
            schema.label_kind = labels.kind
        else:
            schema.has_open_labels = True
        return schema

    def __iter__(self) -> Iterator[Batch]:
        try:
            self._line = self._reader.line
            for raw in self._reader.chunks():
                self.recent.add(self._line, raw)
                behind = self._line + raw.count(b"\n")
                for batch in self._sound(raw, self._line):
                    self._note(batch)
                    yield batch
                if self.rows_in_use.ends_at(self.rows_seen):
                    return
                self._line = behind
        except StreamEnded:
            pass
        if not self.rows_read and not self.faults:
            raise NoRowsError(self._reader.path)
        self.info.remarks += (*self._suspicions(), *self.unseen.notes)

    def _suspicions(self) -> Iterator[str]:
        """Yield what columns may mean that they are not read as; see `suspicions` of files."""
        if self._growth is None:  # said when the model was made
            return
        for column in self.schema.columns:
            suspicion = suspicion_of(column.name, column.categories)
            if suspicion and column.name not in self._categories:
                yield suspicion
        for name in sorted(self._reader.thousands):
            yield separators_note(name)

    def _note(self, batch: Batch) -> None:
        super()._note(batch)
        self.info.max_index = len(self.schema.features)

    def _skip_long_line(self, start: bytes) -> None:
        """Report a line that is too long, of which this is the start."""
        problem = f"a line may hold {MAX_LINE >> 20} MiB at most"
        error = bad_data(problem, self.source.name, self._line)
        self._report(FaultyRow(self._line, start, error))
        self._line += 1

    def _sound(self, raw: bytes, line: int) -> Iterator[Batch]:
        """Yield the rows of these lines; a faulty one is refused after those before it.

        What cannot be read together is read in halves, until a row is alone.
        """
        if self.rows_in_use.ends_at(self.rows_seen):
            return
        middle = _middle(raw)
        is_whole = True
        cells = None
        try:
            cells = self._reader.parse(raw, line, self.schema.text_columns())
            if middle and self._has_new_keys(cells):
                is_whole = False
            else:
                yield from self._encoded(cells)
        except UserError as fault:
            if not middle:
                self._refuse(raw, line, fault, cells)
                return
            is_whole = False
        if not is_whole:
            yield from self._sound(raw[:middle], line)
            yield from self._sound(raw[middle:], line + raw.count(b"\n", 0, middle))

    def _has_new_keys(self, cells: Cells) -> bool:
        """Whether objects have keys that are not known, and that rows before them did not lack."""
        if self._growth is None or not self._reader.may_lack_columns:
            return False
        return not self._growth.has_columns(cells.columns)

    def _refuse(self, raw: bytes, line: int, fault: UserError, cells: Cells | None) -> None:
        """Report a faulty line, or raise its fault; with its cells if it has been parsed."""
        if self.on_faulty_row is None:
            raise fault
        text = raw.removesuffix(b"\n").removesuffix(b"\r")
        ids = None if cells is None else self.schema.ids(cells)
        id = None if ids is None else str(ids[0])
        self._report(FaultyRow(line, text, fault, id))

    def _encoded(self, cells: Cells) -> list[Batch]:
        """Those of these rows that are used, as batches; a `UserError` if one is faulty."""
        count = len(cells.lines)
        part = self.rows_in_use.part(self.rows_seen, count)
        batches = self._batches(cells.part(part)) if part.start < part.stop else []
        self.rows_seen += count
        return batches

    def _batches(self, cells: Cells) -> list[Batch]:
        """Rows as batches; labels without rows are in batches of their own."""
        exact = [self.schema.id or ""]
        by_name = self.schema.columns_of_names() | self._categories
        cells = self._spelling.cleaned(cells, exact, by_name)
        if not self._has_late_labels:
            return [self._batch(cells)]
        others = self.schema.columns_without_features()
        features = [name for name in cells.columns if name not in others]
        parts = split(cells, features, self.schema.label)
        return [
            self._label_batch(part) if is_label_only else self._batch(part)
            for part, is_label_only in parts
        ]

    def _label_batch(self, cells: Cells) -> Batch:
        """Labels without rows."""
        if self._growth is not None:
            self._growth.admit_labels(cells)
        return label_batch(cells, self.schema, self._reader.path)

    def _batch(self, cells: Cells) -> Batch:
        """Rows with features."""
        if self._growth is not None:
            self._growth.admit(cells)
        else:
            self._fill(cells)
        return self.schema.to_batch(cells, self._reader.path, self.unseen)

    def _fill(self, cells: Cells) -> None:
        """Add the columns of the schema that none of these rows has, with missing cells."""
        for column in self.schema.columns:
            if column.name not in cells.columns:
                cells.columns[column.name] = np.full(len(cells.lines), np.nan)

    def _count_labels(self) -> LabelTally:
        raise AssertionError("a stream cannot be read twice")


def _middle(raw: bytes) -> int:
    """The position behind a line end near the middle; 0 if there is only one line."""
    end = len(raw) - raw.endswith(b"\n")
    after = raw.find(b"\n", end // 2, end) + 1
    return after or raw.rfind(b"\n", 0, end // 2) + 1
