"""Reading tables (CSV, TSV, Parquet, Arrow) as numeric rows with labels and ids.

A reader yields batches of named columns, which a `Schema` converts to rows. The schema is inferred
once, from all rows of a file or the first rows of a pipe, and saved with the model.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from ahpatron_cli.core.rows import Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.arrow import ArrowReader
from ahpatron_cli.data.batch import Batch, FileInfo, Reader
from ahpatron_cli.data.csv_text import (
    MISSING,
    Cells,
    CsvReader,
    Texts,
    Values,
    delimiter_of,
    number,
)
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally, show
from ahpatron_cli.data.schema import (
    Column,
    Schema,
    category_name,
    days,
    label_name,
    listed,
    mixed,
    texts,
)
from ahpatron_cli.data.source import Source, first_batches, open_source
from ahpatron_cli.errors import UserError, bad_data, one_of, suggestion, usage
from ahpatron_cli.signals import StreamEnded

MAX_CATEGORIES = 1000
FEWEST_ROWS = 20
"""Smallest number of rows for which a text column with few repeated values is refused."""
WARM_UP = 1000
"""Number of rows from which the schema of a pipe is inferred."""
PANDAS_INDEX = ("", "Unnamed: 0", "__index_level_0__")
"""Names under which pandas writes its index as the first column."""
POLICIES = ("indicator", "zero", "mean", "refuse")
"""Values of --missing."""
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
TABLE_SUFFIXES = (".csv", ".tsv", *ARROW_SUFFIXES)


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
    reading has to wait for these.
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
    ) -> None:
        super().__init__(source, max_rows, on_wait)
        self._reader, self._may_lack_labels = open_reader(source), may_lack_labels
        reader = self._reader
        self.odd: Counter[str] = Counter()
        """Counts of cells that did not occur in training, by description."""
        self.numeric: dict[str, bool] = {}
        """Columns in which every cell is a number, each with whether many of them are 0."""
        self._head: list[Cells] = []
        remarks: tuple[str, ...] = ()
        if schema is None:
            options.check(reader.names, reader.path)
            index = [name for name in reader.names[:1] if name in PANDAS_INDEX]
            used = set(reader.names) - {*options.drop, *index}
            text = {name for name in (options.label, options.id, *options.category) if name}
            if source.rereadable:
                with open_source(source.name) as again:
                    first = open_reader(again)
                    rows = _limited(first.batches(used, text), max_rows)
                    schema, remarks, self.tally = infer(first, options, rows, text, self.numeric)
                    for name in first.padded:  # their cells cannot be copied
                        self.numeric.pop(name, None)
                    self.tally.sha256 = again.sha256()
            else:
                batches = reader.batches(used, text)

                def labelled(cells: Cells) -> int:
                    counts = texts(cells.columns[options.label or ""]).counts()
                    return sum(count for cell, count, _ in counts if cell not in MISSING)

                self._head = first_batches(source, batches, warm_up, labelled, on_wait)
                schema, remarks, _ = infer(reader, options, self._head, text, {})
        own = [schema.id] if schema.id in reader.names else [None]
        self.schema: Schema = msgspec.structs.replace(schema, id=options.id or own[0])
        """The schema of the table."""
        asked = [*(column.name for column in schema.columns), *filter(None, [options.id])]
        if lost := [name for name in asked if name not in reader.names]:
            problem = f"columns are missing: {listed(lost)}"
            raise bad_data(problem, reader.path, 1, f"the columns are {listed(reader.names)}")
        self.traits = FileInfo(len(schema.features), remarks=remarks, schema=self.schema)

    def __iter__(self) -> Iterator[Batch]:
        path = self._reader.path
        for cells in self.cells():
            batch = self.schema.encode(cells, path, self.odd)
            unlabelled = np.isnan(batch.labels)
            if not self._may_lack_labels and unlabelled.any():
                line = int(batch.lines[np.argmax(unlabelled)])
                hint = "rows without labels are predicted in one pass in file order only"
                raise bad_data("this row has no label", path, line, hint)
            self.values_read += batch.values
            yield batch

    def _count_labels(self) -> LabelTally:
        tally, label = LabelTally(), {self.schema.label}
        with open_source(self.source.name) as again:
            for cells in _limited(open_reader(again).batches(label, label), self._max_rows):
                tally.add(self.schema.label_numbers(cells, self._reader.path))
            tally.sha256 = again.sha256()
        return tally

    def cells(self, copied: Collection[str] = ()) -> Iterator[Cells]:
        """Yield the cells of the table; columns `copied` of CSV as `Spans`."""
        schema = self.schema
        named = {schema.label, schema.id or ""}
        used = named | {column.name for column in schema.columns}
        text = named | {column.name for column in schema.columns if column.kind != "number"}
        with suppress(StreamEnded):
            batches = chain(self._head, self._reader.batches(used, text, copied))
            for cells in _limited(batches, self._max_rows):
                self.rows_read += len(cells.lines)
                yield cells
            if not self.rows_read:
                raise no_rows(self._reader.path)
        if found := [f"{what} ({count:,})" for what, count in self.odd.items() if count]:
            self.traits.remarks += (f"not seen in training, taken as no value: {listed(found)}",)


def is_table(source: Source, options: TableOptions) -> bool:
    """Whether a source should be read as a table; to be called before reading from it."""
    name = source.name.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz")
    return (
        options.label is not None or name.endswith(TABLE_SUFFIXES) or looks_like_table(source.head)
    )


def looks_like_table(head: bytes) -> bool:
    """Whether a file with these first bytes is Parquet, Arrow or text with a header."""
    if head.startswith((b"PAR1", b"ARROW1")):
        return True
    line = head.decode("utf-8", "replace").partition("\n")[0].removeprefix("\ufeff").strip()
    if not line or line[0] in "#<{[@%|" or re.search(r"(^|\s)[0-9]+:|\0|\ufffd.", line):
        return False
    return delimiter_of(line) in line and number(line.split()[0]) is None


def open_reader(source: Source) -> CsvReader | ArrowReader:
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
    return CsvReader(source.read1, source.name)


def _limited(batches: Iterable[Cells], rows: int | None) -> Iterator[Cells]:
    """Batches cut after the first `rows` rows in total."""
    for lines, columns in batches:
        if rows is not None and len(lines) >= rows:
            yield Cells(lines[:rows], {name: values[:rows] for name, values in columns.items()})
            return
        rows = None if rows is None else rows - len(lines)
        yield Cells(lines, columns)


class _Seen:
    """Statistics of a column: counts of numbers, dates, texts and missing cells."""

    def __init__(self, name: str, is_category: bool) -> None:
        self.name, self._is_category = name, is_category
        self.counts: Counter[Kind] = Counter()
        self.first: dict[Kind, tuple[int, str]] = {}
        """Line and text of the first cell of each type."""
        self.texts: set[str] = set()
        """Distinct texts, up to one more than the largest number of categories."""
        self._sum = 0.0
        self.zeros = 0

    def add(self, values: Values, lines: Integers) -> None:
        """Add the cells of a batch to the statistics."""
        if not isinstance(values, Texts) and not self._is_category:
            present = values[~np.isnan(values)]
            self.counts.update(number=len(present), missing=len(values) - len(present))
            with np.errstate(over="ignore"):  # an infinite mean is refused later
                self._sum += float(present.sum())
            self.zeros += int(np.count_nonzero(present == 0))
            if len(present):
                self.first.setdefault("number", (int(lines[0]), show(present[0])))
            return
        cells = texts(values)
        for cell, count, row in cells.counts():
            kind, value = self._kind(cell)
            if kind not in self.first or lines[row] < self.first[kind][0]:
                self.first[kind] = int(lines[row]), cell
            self.counts[kind] += count
            self.zeros += count * (kind == "number" and value == 0)
            self._sum += count * value
            if kind == "category" and len(self.texts) <= MAX_CATEGORIES:
                self.texts.add(category_name(cell))

    def _kind(self, cell: str) -> tuple[Kind, float]:
        if cell in MISSING or self._is_category:
            return ("missing" if cell in MISSING else "category"), 0.0
        if (value := number(cell)) is not None:
            return "number", value
        return ("category", 0.0) if (day := days(cell)) is None else ("date", day)

    def column(self, missing: str, path: str) -> Column | None:
        """The inferred `Column`; None if all cells are missing."""
        counted = self.counts.most_common()
        kinds = [kind for kind, count in counted if count and kind != "missing"]
        if not kinds:
            return None
        kind, rows = kinds[0], self.counts[kinds[0]]
        if len(kinds) > 1:
            line, cell = self.first[kinds[-1]]
            raise mixed(self.name, kind, cell, path, line)
        if kind == "category":
            self._check_categories(rows, path)
        # not 0, a date that would be far from all others
        uses_mean = missing == "mean" or (missing == "indicator" and kind == "date")
        fill = self._sum / rows if uses_mean and kind != "category" else 0.0
        indicator = missing == "indicator" and self.counts["missing"] > 0
        return Column(self.name, kind, sorted(self.texts), indicator, fill)

    def _check_categories(self, rows: int, path: str) -> None:
        """Refuse a text column with too many distinct values (ids, names, free text)."""
        different, name = len(self.texts), shlex.quote(self.name)
        repeats = self._is_category or rows < FEWEST_ROWS or 2 * different <= rows
        if different > MAX_CATEGORIES or not repeats:
            many = f"more than {MAX_CATEGORIES:,}" if different > MAX_CATEGORIES else different
            problem = f"column {self.name!r} has {many} different texts in {rows:,} rows"
            hint = f"leave it out with --drop {name}, or with --id {name} if it identifies rows"
            hint += "; dates must be written like 2024-05-31, numbers like 1.5"
            raise bad_data(problem, path, self.first["category"][0], hint)


def infer(
    reader: CsvReader | ArrowReader,
    options: TableOptions,
    batches: Iterable[Cells],
    text: set[str],
    numeric: dict[str, bool],
) -> tuple[Schema, tuple[str, ...], LabelTally]:
    """Infer the schema of a table from these rows; returns the schema, notes and label counts.

    Text columns are added to `text`, and columns in which every cell is a number to `numeric`, with
    whether more than a tenth of them are 0.
    """
    label, path = options.label or "", reader.path
    index = [name for name in reader.names[:1] if name in PANDAS_INDEX]
    others = {label, options.id, *options.drop, *index}
    seen = [_Seen(name, name in options.category) for name in reader.names if name not in others]
    positive = None if options.positive is None else label_name(options.positive)
    labels, labelled = Counter({label_name(name): 0 for name in options.labels}), 0
    rows = 0
    unlabelled = Counter[str]()
    for cells in batches:
        rows += len(cells.lines)
        for one in seen:
            one.add(cells.columns[one.name], cells.lines)
            if one.counts["category"] or one.counts["date"]:
                text.add(one.name)
        for cell, count, _ in texts(cells.columns[label]).counts():
            name = label_name(cell)
            if cell in MISSING:
                unlabelled[cell] += count
                continue
            labelled += count
            if name in labels or name == positive or len(labels) <= MAX_CLASSES:
                labels[name] += count
    if not rows:
        raise no_rows(path)
    if not labelled:
        problem = f"no row has a label in column {label!r}"
        raise bad_data(problem, path, 1, hint=_no_labels(unlabelled))
    found = {one.name: one.column(options.missing, path) for one in seen}
    columns = [column for column in found.values() if column]
    all_numbers = (one for one in seen if one.counts["number"] == one.counts.total())
    numeric |= {one.name: 10 * one.zeros > one.counts.total() for one in all_numbers}
    if not columns:
        raise bad_data("no columns of features are left", path, 1)
    numbers, notes = _label_numbers(labels, positive, unlabelled, label, path)
    empty = [name for name, column in found.items() if column is None]
    become = {"indicator": "0, with an indicator feature", "mean": "the mean"}
    for note, names in (
        ("the unnamed first column is left out", [repr(name) for name in index]),
        ("columns without values are left out", empty),
        (
            "one feature per category",
            [f"{one.name} ({len(one.categories)})" for one in columns if one.categories],
        ),
        (
            f"missing values become {become.get(options.missing, 0)}",
            [f"{one.name} ({one.counts['missing']:,})" for one in seen if one.counts["missing"]],
        ),
    ):
        notes += [f"{note}: {listed(names)}"] if names else []
    scan = LabelTally()
    for name, count in labels.items():
        scan.count(numbers.get(name, -1.0), count)
    scan.rows = labelled  # with those that are not counted
    dropped = [*options.drop, *index, *empty]
    schema = Schema(columns, label, numbers, options.missing, positive, options.id, dropped)
    return schema, tuple(notes), scan


def no_rows(path: str) -> UserError:
    """The error for a table without rows."""
    return bad_data("there are no rows: the table has a header only", path, 1)


def _no_labels(cells: Counter[str]) -> str:
    """Hint on cells of the label column that count as no label, with their numbers."""
    shown = [f"{cell or 'an empty cell'} ({count:,})" for cell, count in cells.most_common()]
    return f"these cells are no labels: {listed(shown)}; if one of them is, write another word"


def _label_numbers(
    labels: Counter[str],
    positive: str | None,
    unlabelled: Counter[str],
    column: str,
    path: str,
) -> tuple[dict[str, float], list[str]]:
    """Code of each label, and notes for the user if codes differ from the labels."""
    if positive is not None:
        if positive not in labels:
            hint = suggestion(positive, labels) or f"the labels are {listed(sorted(labels))}"
            raise bad_data(f"no row has the label {positive!r}", path, hint=hint)
        few = labels if len(labels) <= MAX_CLASSES else [positive]
        numbers = {name: 1.0 if name == positive else -1.0 for name in sorted(few)}
        return numbers, [f"label {positive} is +1, every other label -1"]
    if len(labels) > MAX_CLASSES:
        problem = f"column {column!r} has more than {MAX_CLASSES:,} different labels"
        raise bad_data(problem, path, hint="--positive VALUE runs one label against all others")
    values = {name: number(name) for name in labels}
    numeric = {name: value for name, value in values.items() if value is not None}
    is_numeric = len(numeric) == len(labels)
    if len(labels) == 1 and not is_numeric:
        which = "all rows with a label" if unlabelled else "all rows"
        problem = f"there is nothing to learn: {which} have the same label, {next(iter(labels))}"
        raise bad_data(problem, path, hint=_no_labels(unlabelled) if unlabelled else None)
    if is_numeric:
        ordered = sorted(numeric, key=numeric.__getitem__)
        if len(ordered) != 2 or tuple(sorted(numeric.values())) in PLAIN_PAIRS:
            return {name: numeric[name] for name in ordered}, []
    elif len(labels) > 2:
        return {name: float(i) for i, name in enumerate(sorted(labels))}, []
    else:  # the rarer label is positive; if equal, the later in alphabetical order
        ordered = sorted(labels, key=lambda name: (-labels[name], name))
    rarer = f", the rarer ({100 * labels[ordered[1]] / labels.total():.3g} %)"
    why = rarer if not is_numeric and labels[ordered[0]] > labels[ordered[1]] else ""
    note = f"label {ordered[0]} is -1, {ordered[1]} is +1{why}; --positive chooses another"
    return {ordered[0]: -1.0, ordered[1]: 1.0}, [note]
