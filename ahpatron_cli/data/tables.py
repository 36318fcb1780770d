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
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
from ahpatron_cli.data.csv_text import CsvReader, delimiter_of
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
    Source,
    as_word,
    first_batches,
    open_source,
)
from ahpatron_cli.errors import Place, UserError, bad_data, one_of, suggestion, usage
from ahpatron_cli.signals import StreamEnded

MAX_CATEGORIES = 1000
FEWEST_ROWS = 20
"""Smallest number of rows for which a text column with few repeated values is refused."""
WARM_UP = 1000
"""Number of rows from which the schema of a pipe is inferred."""
_UNNAMED_INDEX = ("", "Unnamed: 0")
"""Names of the first column of a CSV file if it is the index of pandas."""
_INDEX_LEVEL = re.compile(r"__index_level_[0-9]+__")
"""Names under which pandas writes its index to Parquet and Arrow files."""
POLICIES = ("indicator", "zero", "mean", "refuse")
"""Values of --missing."""
OF_TABLES = ("label", "id", "drop", "category", "missing")
"""Options for tables only."""
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
TABLE_SUFFIXES = (".csv", ".tsv", *ARROW_SUFFIXES)


_LIBSVM_ROW = re.compile(r"(\S+\s+)?(qid:\S+\s+)?[0-9]+:[-+.0-9eE]+(\s+[0-9]+:[-+.0-9eE]+)*")
"""A row of LIBSVM text: a label, which may be missing, and features."""
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(\{)\s*[\"}]|(\[)\s*[\[{])")
"""Start of JSON lines, or of a JSON list."""


Kind: TypeAlias = Literal["number", "date", "category", "missing"]
"""Type of a cell."""


class TableOptions(msgspec.Struct, frozen=True):
    """Command-line options for tables."""

    label: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    missing: str = "indicator"
    positive: str | None = None
    labels: tuple[str, ...] = ()
    """All labels, for pipes, whose later rows are not known when the schema is inferred."""
    given: tuple[str, ...] = ()
    """Options for tables only that the user has given, which LIBSVM text refuses."""

    @classmethod
    def of_command(
        cls,
        values: Mapping[str, Any],
        given: Collection[str],
        *,
        positive: str | None,
        labels: tuple[str, ...] = (),
    ) -> TableOptions:
        """The options of a command line; the user has given those that `given` names."""
        return cls(
            label=values["label"],
            id=values["id"],
            drop=tuple(values["drop"] or ()),
            category=tuple(values["category"] or ()),
            missing=values["missing"],
            positive=positive,
            labels=labels,
            given=tuple(name for name in OF_TABLES if name in given),
        )

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Options that differ from their defaults, as pairs of option name and text."""
        single = {"label": self.label, "id": self.id, "positive": self.positive}
        single["missing"] = self.missing if self.missing != "indicator" else None
        several = [("drop", name) for name in self.drop]
        several += [("category", name) for name in self.category]
        return (*((name, text) for name, text in single.items() if text), *several)

    def check(self, names: list[str], path: str) -> None:
        """Refuse options that do not fit a table with these columns."""
        one_of("value of --missing", self.missing, POLICIES)
        if self.label is None:
            hint = f"the columns are {listed(names)}: often the last, --label "
            raise bad_data(
                "a table requires --label COLUMN", path, 1, hint + shlex.quote(names[-1])
            )
        single = [name for name in (self.label, self.id) if name]
        for name, count in Counter([*single, *self.drop, *self.category]).items():
            if name not in names:
                hint = suggestion(name, names) or f"the columns are {listed(names)}"
                if set(name.split(",")) <= set(names):
                    hint = "repeat the option for each column"
                raise bad_data(f"no column has the name {name!r}", path, 1, hint)
            if count > 1:
                raise usage(f"column {name!r} is named twice by --label, --id, --drop, --category")


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
        warm_up: int = WARM_UP,
        on_wait: Callable[[int], None] = lambda rows: None,
        on_fault: Callable[[UserError], None] | None = None,
    ) -> None:
        super().__init__(source, max_rows, on_wait)
        self._may_lack_labels = may_lack_labels
        self._on_fault = on_fault
        self._categories = frozenset(options.category)
        report = None if on_fault is None else self._report
        self._reader = open_reader(source, report)
        reader = self._reader
        self.unseen = Unseen()
        """Counts of cells that did not occur in training."""
        self.numeric: dict[str, bool] = {}
        """Columns in which every cell is a number, each with whether many of them are 0."""
        self._head: list[Cells] = []
        remarks: tuple[str, ...] = ()
        if schema is None:
            options.check(reader.names, reader.path)
            used = set(reader.names) - {*options.drop, *pandas_index(reader.names)}
            text = {name for name in (options.label, options.id, *options.category) if name}
            no_numbers: set[str] = set()
            if source.rereadable:
                with open_source(source.name) as again:
                    # faults of rows are reported when these are read again
                    first = open_reader(again, report and (lambda fault: None))
                    batches = self._sound_part(first.batches(used, text, no_numbers))
                    rows = _limited(batches, max_rows)
                    schema, remarks, self.tally = infer(
                        first,
                        options,
                        rows,
                        no_numbers=no_numbers,
                        numeric=self.numeric,
                        on_fault=report,
                    )
                    for name in first.padded:  # their cells cannot be copied
                        self.numeric.pop(name, None)
                    if max_rows is None:
                        self.tally.sha256 = again.sha256()
            else:
                batches = self._sound_part(reader.batches(used, text), report)

                def labelled(cells: Cells) -> int:
                    counts = cells.texts(options.label or "").counts()
                    return sum(count for cell, count, _ in counts if cell not in MISSING)

                self._head = first_batches(source, batches, warm_up, labelled, on_wait)
                schema, remarks, _ = infer(
                    reader,
                    options,
                    self._head,
                    no_numbers=no_numbers,
                    numeric={},
                    on_fault=report,
                )
                schema = _with_both_labels(schema)
            _check_labels(schema, options.labels, reader.path)
        own = [schema.id] if schema.id in reader.names else [None]
        self.schema: Schema = msgspec.structs.replace(schema, id=options.id or own[0])
        """The schema of the table."""
        self.schema.check_columns(reader.names, reader.path)
        self.traits = FileInfo(len(schema.features), remarks=remarks, schema=self.schema)

    def __iter__(self) -> Iterator[Batch]:
        path = self._reader.path
        for cells in self._sound_part(self.cells(), self._on_fault and self._report):
            if self._on_fault is not None:
                cells = self._without_faults(cells)
            batch = self.schema.encode(cells, path, self.unseen)
            unlabelled = np.isnan(batch.labels)
            if not self._may_lack_labels and unlabelled.any():
                line = int(batch.lines[np.argmax(unlabelled)])
                hint = "rows without labels are predicted in one pass in file order only"
                raise bad_data("this row has no label", path, line, hint)
            self._note(batch)
            yield batch

    def _report(self, fault: UserError) -> None:
        assert self._on_fault is not None
        self.faults += 1
        self._on_fault(fault)

    def _sound_part(
        self, batches: Iterator[Cells], report: Callable[[UserError], None] | None = None
    ) -> Iterator[Cells]:
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
        faults = list[UserError]()
        sound = np.ones(len(cells.lines), dtype=bool)
        for column in self.schema.columns:
            values = cells.columns[column.name]
            is_category = column.name in self._categories
            for row in _faulty_rows(values, column.kind, self.schema.missing, is_category):
                sound[row] = False
                cell, line = cell_text(values, row), int(cells.lines[row])
                if cell in MISSING:
                    faults.append(no_value(column.name, self._reader.path, line))
                else:
                    faults.append(mixed(column.name, column.kind, cell, self._reader.path, line))
        for fault in sorted(faults, key=lambda one: (one.place and one.place.line) or 0):
            self._report(fault)
        if sound.all():
            return cells
        rows = np.flatnonzero(sound)
        columns: dict[str, Values] = {name: own[rows] for name, own in cells.columns.items()}
        return Cells(cells.lines[rows], columns)

    def _count_labels(self) -> LabelTally:
        tally, label = LabelTally(), {self.schema.label}
        with open_source(self.source.name) as again:
            for cells in _limited(open_reader(again).batches(label, label), self._max_rows):
                tally.add(self.schema.label_numbers(cells, self._reader.path))
            if self._max_rows is None:
                tally.sha256 = again.sha256()
        return tally

    def cells(self, copied: Collection[str] = ()) -> Iterator[Cells]:
        """Yield the cells of the table; columns `copied` of CSV as `Spans`."""
        schema = self.schema
        text = schema.text_columns()
        used = text | {column.name for column in schema.columns}
        dates = {column.name for column in schema.columns if column.kind == "date"}
        with suppress(StreamEnded):
            rows = self._reader.batches(used, text, no_numbers=dates, copied=copied)
            is_empty = True
            for cells in _limited(chain(self._head, rows), self._max_rows):
                is_empty = False
                yield cells
            if is_empty:
                raise no_rows(self._reader.path)
        self.traits.remarks += tuple(self.unseen.notes)


def _with_both_labels(schema: Schema) -> Schema:
    """The schema of a pipe, with 1 if all first rows have the other label of a plain pair."""
    codes = (*schema.labels.values(),)
    if schema.positive is None and any(codes == (negative,) for negative, _ in PLAIN_PAIRS):
        return msgspec.structs.replace(schema, labels={**schema.labels, "1": 1.0})
    return schema


def _check_labels(schema: Schema, named: Collection[str], path: str) -> None:
    """Refuse a table with a label that --labels does not name, if that is given."""
    kind = schema.label_kind
    known = {label_key(name, kind) for name in named}
    strange = [name for name in schema.labels if label_key(name, kind) not in known]
    if named and strange:
        hint = f"--labels names {listed(named)}"
        raise bad_data(f"an unexpected label: {strange[0]}", path, hint=hint)


def is_table(source: Source, options: TableOptions) -> bool:
    """Whether a source should be read as a table; to be called before reading from it.

    Raises a usage error if options for tables are given with LIBSVM text.
    """
    name = source.name.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz")
    if name.endswith(TABLE_SUFFIXES) or looks_like_table(source.head):
        return True
    if options.given and looks_like_libsvm(source.head):
        flags = ", ".join(f"--{name}" for name in options.given)
        problem = f"for tables only: {flags}; this is LIBSVM text"
        hint = "leave it out; tables and LIBSVM files need commands of their own"
        raise UserError(problem, place=Place(source.name), hint=hint)
    return options.label is not None


def looks_like_libsvm(head: bytes) -> bool:
    """Whether the first row of a file with these first bytes is LIBSVM text with features."""
    lines = head.decode("utf-8", "replace").removeprefix("\ufeff").splitlines(keepends=True)
    rows = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    row = next(rows, "")
    if len(head) >= HEAD_BYTES and not row.endswith("\n"):
        row = row.rpartition(" ")[0]  # the last feature may be cut
    return bool(_LIBSVM_ROW.fullmatch(row.partition("#")[0].strip()))


def check_features(schema: Schema, max_features: int, path: str) -> None:
    """Refuse a table with more than `max_features` features."""
    count = len(schema.features)
    if count > max_features:
        problem = f"the table has {count:,} features, more than --max-features {max_features}"
        raise bad_data(problem, path, hint="leave out columns with many categories: --drop COLUMN")


def looks_like_table(head: bytes) -> bool:
    """Whether a file with these first bytes is Parquet, Arrow or text with a header."""
    if head.startswith((b"PAR1", b"ARROW1")):
        return True
    line = head.decode("utf-8", "replace").partition("\n")[0].removeprefix("\ufeff").strip()
    if not line or line[0] in "#<{[@%|" or re.search(r"(^|\s)[0-9]+:|\0|\ufffd.", line):
        return False
    return delimiter_of(line) in line and number(line.split()[0]) is None


def open_reader(
    source: Source, on_fault: Callable[[UserError], None] | None = None
) -> CsvReader | ArrowReader:
    """The reader for a table, chosen by its first bytes or its name."""
    is_arrow = source.head.startswith((b"PAR1", b"ARROW1"))
    if is_arrow or source.name.lower().endswith(ARROW_SUFFIXES):
        if not source.rereadable:
            hint = "save it to a file, or write CSV"
            raise bad_data("Parquet and Arrow are not read from a pipe", source.name, hint=hint)
        if source.packing is not None:
            problem = f"Parquet and Arrow files packed with {source.packing} are not read"
            unpacked = f"unpacked{Path(source.name).with_suffix('').suffix}"
            command = f"{source.packing} -dc {shlex.quote(source.name)} > {unpacked}"
            raise bad_data(problem, source.name, hint=f"unpack it: `{command}`")
        return ArrowReader(source.name)
    if json := _JSON.match(source.head):
        hint = JSON_HINTS[json[1] or json[2]].replace("FILE", as_word(source.name))
        raise bad_data("this is JSON, not CSV", source.name, 1, hint)
    return CsvReader(source.read1, source.name, on_fault)


def _limited(batches: Iterable[Cells], rows: int | None) -> Iterator[Cells]:
    """Batches cut after the first `rows` rows in total."""
    for lines, columns in batches:
        if rows is not None and len(lines) >= rows:
            yield Cells(lines[:rows], {name: values[:rows] for name, values in columns.items()})
            return
        rows = None if rows is None else rows - len(lines)
        yield Cells(lines, columns)


def pandas_index(names: Sequence[str]) -> list[str]:
    """Those of the columns that are an index which pandas has written, and no features."""
    index = [name for name in names[:1] if name in _UNNAMED_INDEX]
    return index + [name for name in names if _INDEX_LEVEL.fullmatch(name)]


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
        kind: Kind = "date" if isinstance(values, Dates) else "number"
        found = values.days() if isinstance(values, Dates) else values
        absent = np.isnan(found)
        present = found[~absent]
        self.counts["missing"] += len(found) - len(present)
        self.counts[kind] += len(present)
        if not len(present):
            return
        if kind not in self.first:
            row = int(np.argmin(absent))
            self.first[kind] = int(lines[row]), cell_text(values, row)
        self.zeros += int(np.count_nonzero(present == 0))
        self._average(present)

    def _add_texts(self, cells: Texts, lines: Integers) -> None:
        values: dict[str, float] = {}
        for cell, count, row in cells.counts():
            kind, value = _kind_of(cell, is_category=self._is_category)
            if kind not in self.first or lines[row] < self.first[kind][0]:
                self.first[kind] = int(lines[row]), cell
            self.counts[kind] += count
            if kind in ("number", "date"):
                values[cell] = value
                self.zeros += count * (value == 0)
            elif kind == "category":
                name = cell if cell in self.categories else category_name(cell)
                if name in self.categories or len(self.categories) <= MAX_CATEGORIES:
                    self.categories[name] += count
        if values:
            found, _ = cells.numbers(lambda cell: values.get(cell, np.nan))
            self._average(found[~np.isnan(found)])

    def _average(self, values: Floats) -> None:
        """Add numbers or dates to the mean, also if their sum would overflow."""
        with np.errstate(over="ignore"):
            mean = float(values.sum()) / len(values)
        if not np.isfinite(mean):
            mean = float((values / len(values)).sum())
        self._averaged += len(values)
        share = len(values) / self._averaged
        self._mean = self._mean * (1 - share) + mean * share

    def column(self, missing: str, path: str, *, may_be_mixed: bool = False) -> Column | None:
        """The inferred `Column`; None if all cells are missing.

        Cells of several types are refused, unless it `may_be_mixed`: the most frequent type counts.
        """
        counted = self.counts.most_common()
        kinds = [kind for kind, count in counted if count and kind != "missing"]
        if not kinds:
            return None
        kind, rows = kinds[0], self.counts[kinds[0]]
        if len(kinds) > 1 and not may_be_mixed:
            line, cell = self.first[kinds[-1]]
            raise mixed(self.name, kind, cell, path, line)
        indicator = missing == "indicator" and self.counts["missing"] > 0
        column = Column(self.name, kind, indicator=indicator)
        fills = missing in ("indicator", "mean") and not indicator
        if kind == "category":
            self._check_categories(rows, path)
            column.categories = sorted(self.categories)
            if fills and not self.counts["missing"]:
                column.shares = [self.categories[name] / rows for name in column.categories]
        elif fills or (indicator and kind == "date"):  # not 0, a date far from all others
            column.fill = self._mean
        return column

    def _check_categories(self, rows: int, path: str) -> None:
        """Refuse a text column with too many distinct values (ids, names, free text)."""
        different, name = len(self.categories), shlex.quote(self.name)
        repeats = self._is_category or rows < FEWEST_ROWS or 2 * different <= rows
        if different > MAX_CATEGORIES or not repeats:
            many = f"more than {MAX_CATEGORIES:,}" if different > MAX_CATEGORIES else different
            problem = f"column {self.name!r} has {many} different texts in {rows:,} rows"
            hint = f"leave it out with --drop {name}, or with --id {name} if it identifies rows"
            hint += "; dates must be written like 2024-05-31, numbers like 1.5"
            raise bad_data(problem, path, self.first["category"][0], hint)


def _kind_of(cell: str, *, is_category: bool) -> tuple[Kind, float]:
    """Type of a cell, and its value if that is a number or a date."""
    if cell in MISSING or is_category:
        return ("missing" if cell in MISSING else "category"), 0.0
    if (value := number(cell)) is not None:
        return "number", value
    return ("category", 0.0) if (day := days(cell)) is None else ("date", day)


def _faulty_rows(values: Values, kind: Kind, missing: str, is_category: bool) -> list[int]:
    """Rows whose cells have another type than their column, or are missing where none may be."""
    legal: set[Kind] = {kind} if missing == "refuse" else {kind, "missing"}
    if isinstance(values, Texts):
        kinds = [_kind_of(text, is_category=is_category)[0] for text in values.texts]
        wrong = np.array([one not in legal for one in kinds], dtype=bool)[values.codes]
    else:
        own: Kind = "date" if isinstance(values, Dates) else "number"
        absent = np.isnan(values.days() if isinstance(values, Dates) else values)
        wrong = np.where(absent, "missing" not in legal, own not in legal)
    rows: list[int] = np.flatnonzero(wrong).tolist()
    return rows


def infer(
    reader: CsvReader | ArrowReader,
    options: TableOptions,
    batches: Iterable[Cells],
    *,
    no_numbers: set[str],
    numeric: dict[str, bool],
    on_fault: Callable[[UserError], None] | None = None,
) -> tuple[Schema, tuple[str, ...], LabelTally]:
    """Infer the schema of a table from these rows; returns the schema, notes and label counts.

    With `on_fault`, columns that cannot be used are passed to it and left out, and those with
    cells of several types have the most frequent one.

    Columns with text or dates are added to `no_numbers`, and columns in which every cell is a
    number to `numeric`, with whether more than a tenth of them are 0.
    """
    label, path = options.label or "", reader.path
    index = pandas_index(reader.names)
    others = {label, options.id, *options.drop, *index}
    seen = [_Seen(name, name in options.category) for name in reader.names if name not in others]
    counts = Counter(dict.fromkeys(options.labels, 0))
    labelled = 0
    unlabelled = Counter[str]()
    rows = 0
    for cells in batches:
        rows += len(cells.lines)
        for one in seen:
            one.add(cells.columns[one.name], cells.lines)
            if one.counts["category"] or one.counts["date"]:
                no_numbers.add(one.name)
        for cell, count, _ in cells.texts(label).counts():
            if cell in MISSING:
                unlabelled[cell] += count
                continue
            labelled += count
            if cell in counts or cell == options.positive or len(counts) <= MAX_CLASSES:
                counts[cell] += count
    if not rows:
        raise no_rows(path)
    if not labelled:
        problem = f"no row has a label in column {label!r}"
        raise bad_data(problem, path, 1, hint=_no_labels(unlabelled))
    found: dict[str, Column | None] = {}
    for one in seen:
        try:
            found[one.name] = one.column(options.missing, path, may_be_mixed=on_fault is not None)
        except UserError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
    columns = [column for column in found.values() if column]
    all_numbers = (one for one in seen if one.counts["number"] == one.counts.total())
    numeric |= {one.name: 10 * one.zeros > one.counts.total() for one in all_numbers}
    if not columns:
        raise bad_data("no columns of features are left", path, 1)
    kind = label_kind(counts)
    labels = _label_names(counts, kind)
    positive = _positive_label(options.positive, labels, kind, path)
    if len(labels) == 1 and positive is None and kind != "number":
        which = "all rows with a label" if unlabelled else "all rows"
        problem = f"there is nothing to learn: {which} have the same label, {next(iter(labels))}"
        raise bad_data(problem, path, hint=_no_labels(unlabelled) if unlabelled else None)
    numbers, notes = _label_numbers(labels, kind, positive, label, path)
    empty = [name for name, column in found.items() if column is None]
    gaps: dict[str, list[str]] = {}
    for one in seen:
        column = found.get(one.name)
        if column and one.counts["missing"] and options.missing != "refuse":
            shown = f"{one.name} ({one.counts['missing']:,})"
            gaps.setdefault(_replacement(column, options.missing), []).append(shown)
    for note, names in (
        ("the index that pandas has written is left out", [repr(name) for name in index]),
        ("columns without values are left out", empty),
        (
            "one feature per category",
            [f"{one.name} ({len(one.categories)})" for one in columns if one.categories],
        ),
        *((f"missing values become {what}", names) for what, names in gaps.items()),
    ):
        notes += [f"{note}: {listed(names)}"] if names else []
    scan = LabelTally()
    for name, count in labels.items():
        scan.count(numbers.get(name, -1.0), count)
    scan.rows = labelled  # with those that are not counted
    dropped = [*options.drop, *index, *empty]
    schema = Schema(
        columns=columns,
        label=label,
        labels=numbers,
        missing=options.missing,
        positive=positive,
        id=options.id,
        dropped=dropped,
        label_kind=kind,
    )
    return schema, tuple(notes), scan


def _replacement(column: Column, missing: str) -> str:
    """What missing cells of a column become, for a note."""
    if column.indicator:
        value = "the mean date" if column.kind == "date" else "0"
        return f"{value}, with an indicator feature"
    return "the mean, or no category" if missing == "mean" else "0"


def no_rows(path: str) -> UserError:
    """The error for a table without rows."""
    return bad_data("there are no rows: the table has a header only", path, 1)


def _no_labels(cells: Counter[str]) -> str:
    """Hint on cells of the label column that count as no label, with their numbers."""
    shown = [f"{cell or 'an empty cell'} ({count:,})" for cell, count in cells.most_common()]
    return f"these cells are no labels: {listed(shown)}; if one of them is, write another word"


def _label_names(counts: Counter[str], kind: LabelKind) -> Counter[str]:
    """Counts of labels by the text that is shown: that of the table, unless it has several."""
    spellings: dict[str, list[str]] = {}
    for text in counts:
        spellings.setdefault(label_key(text, kind) or text, []).append(text)
    names: Counter[str] = Counter()
    for key, texts in spellings.items():
        is_unique = len(texts) == 1 and kind != "boolean"
        names[texts[0] if is_unique else key] = sum(counts[text] for text in texts)
    return names


def _positive_label(
    text: str | None, labels: Collection[str], kind: LabelKind, path: str
) -> str | None:
    """The label that --positive names, in whatever spelling."""
    if text is None:
        return None
    keys = {label_key(label, kind): label for label in labels}
    label = keys.get(label_key(text, kind))
    if label is None:
        hint = suggestion(text, labels) or f"the labels are {listed(sorted(labels))}"
        raise bad_data(f"no row has the label {text!r}", path, hint=hint)
    return label


def _label_numbers(
    labels: Counter[str], kind: LabelKind, positive: str | None, column: str, path: str
) -> tuple[dict[str, float], list[str]]:
    """Code of each label, and notes for the user if codes differ from the labels."""
    if positive is not None:
        few = labels if len(labels) <= MAX_CLASSES else [positive]
        numbers = {name: 1.0 if name == positive else -1.0 for name in sorted(few)}
        return numbers, [f"label {positive} is +1, every other label -1"]
    if len(labels) > MAX_CLASSES:
        problem = f"column {column!r} has more than {MAX_CLASSES:,} different labels"
        raise bad_data(problem, path, hint="--positive VALUE runs one label against all others")
    is_numeric = kind == "number"
    values = {name: value for name in labels if (value := number(name)) is not None}
    if len(values) == len(labels) and class_fault(_counted(values, labels)):
        return values, []  # numbers that hardly repeat, which `find_labels` refuses
    if is_numeric:
        ordered = sorted(labels, key=values.__getitem__)
        if len(ordered) != 2 or tuple(sorted(values.values())) in PLAIN_PAIRS:
            return {name: values[name] for name in ordered}, []
    elif len(labels) > 2:
        return {name: float(i) for i, name in enumerate(sorted(labels))}, []
    else:  # the rarer label is positive; if equal, the later in alphabetical order
        ordered = sorted(labels, key=lambda name: (-labels[name], name))
    rarer = f", the rarer ({100 * labels[ordered[1]] / labels.total():.3g} %)"
    why = rarer if not is_numeric and labels[ordered[0]] > labels[ordered[1]] else ""
    note = f"label {ordered[0]} is -1, {ordered[1]} is +1{why}; --positive chooses another"
    return {ordered[0]: -1.0, ordered[1]: 1.0}, [note]


def _counted(values: Mapping[str, float], counts: Mapping[str, int]) -> LabelTally:
    """Counts of labels that are numbers."""
    tally = LabelTally()
    for name, value in values.items():
        tally.count(value, counts[name])
    return tally
