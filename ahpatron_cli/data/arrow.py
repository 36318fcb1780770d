"""Reader of Parquet, Arrow and Feather files (with pyarrow): batches of named columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.data.cell_reader import CellReader
from ahpatron_cli.data.cells import Cells, Dates, Texts, Values, number, number_texts
from ahpatron_cli.data.source import cannot_open
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data

if TYPE_CHECKING:
    from pyarrow import Array, NativeFile, RecordBatch

ROWS = 1 << 13
"""Number of rows read at a time."""
_TEXT_TYPES = ("string", "large_string", "string_view")
_NOT_A_TIME = np.iinfo(np.int64).min
"""NumPy's NaT."""


class ArrowReader(CellReader):
    """Reader of a file supported by pyarrow; the "line" of a row is its number, from 1."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            hint = "install it: `pip install 'ahpatron-cli[arrow]'`"
            problem = "reading this file requires pyarrow"
            raise UserError(problem, place=Place(path), hint=hint) from None
        self._pa: Any = pyarrow
        try:
            file = pyarrow.OSFile(path)
        except OSError as error:
            raise cannot_open(path, error) from None
        try:
            self._content = self._opened(file)
            schema = self._content.schema
            if hasattr(self._content, "schema_arrow"):  # of Parquet, `schema` has other names
                schema = self._content.schema_arrow
            own_names: list[str] = schema.names
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(error) from None

        self.names = [name.strip() for name in own_names]  # as in the header of a CSV file
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise bad_data(f"two columns have the name {twice[0]!r}", path)
        self._own_names = dict(zip(self.names, own_names, strict=True))

    def _opened(self, file: NativeFile) -> Any:
        """The reader of pyarrow for this file: Parquet, Arrow or a stream of Arrow."""
        magic = file.read(6)
        file.seek(0)
        if magic.startswith(b"PAR1"):
            parquet = self._pa.parquet
            # with other settings whole columns are read
            return parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False)
        if magic == b"ARROW1":
            return self._pa.ipc.open_file(file)
        return self._pa.ipc.open_stream(file)

    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        """Batches of the `used` columns: as text if they are in `text`, else by their types."""
        names = [name for name in self.names if name in used]
        row = 1
        try:
            for part in self._parts(names):
                part.validate(full=True)  # wrong offsets would read any memory
                for start in range(0, part.num_rows, ROWS):
                    batch = part.slice(start, ROWS)
                    behind = row + batch.num_rows
                    columns: dict[str, Values] = {}
                    for name in names:
                        column = batch[self._own_names[name]]
                        columns[name] = self._values(name, column, as_text=name in text)
                    yield Cells(np.arange(row, behind), columns)
                    row = behind
        except (self._pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _parts(self, names: list[str]) -> Iterator[RecordBatch]:
        """The batches of the file as pyarrow reads them, with these columns at least."""
        content = self._content
        if hasattr(content, "iter_batches"):
            own_names = [self._own_names[name] for name in names]
            return iter(content.iter_batches(ROWS, columns=own_names, use_threads=False))
        if hasattr(content, "get_batch"):
            return map(content.get_batch, range(content.num_record_batches))
        return iter(content)

    def _values(self, name: str, column: Array, *, as_text: bool) -> Values:
        """Values of a column: numbers, dates or text, by its type; or as exact text."""
        pa = self._pa
        types = pa.types
        if types.is_dictionary(column.type):  # what a CSV file has instead, also for numbers
            column = column.cast(column.type.value_type)
        kind = column.type
        dates = self._dates(column)
        if dates is not None:
            return dates.texts() if as_text else dates
        if types.is_boolean(kind):
            numbers = column.cast(pa.int8()).fill_null(2)
            codes = numbers.to_numpy().astype(np.int64)
            return Texts(codes, ["False", "True", ""])
        if types.is_decimal(kind) and not as_text:
            floats, _ = self._texts(column).numbers(number)  # rounded as the text of a CSV file
            return floats
        has_exact_text = types.is_decimal(kind) or types.is_integer(kind)
        if str(kind) in _TEXT_TYPES or (has_exact_text and as_text):
            return self._texts(column)
        if types.is_floating(kind) and as_text:
            return number_texts(column.to_numpy(zero_copy_only=False))
        floats = self._floats(name, column)
        if as_text:  # a column of nulls
            return number_texts(floats)
        if np.isinf(floats).any():
            raise bad_data(f"column {name!r} has values that are not finite", self.path)
        return floats

    def _floats(self, name: str, column: Array) -> Floats:
        """A column of numbers as float64, NaN for nulls; other types are refused."""
        pa = self._pa
        try:
            floats = column.cast(pa.float64(), safe=False)
        except pa.ArrowException:
            problem = f"column {name!r} has the type {column.type}"
            hint = f"leave it out: --drop {name}"
            raise bad_data(problem, self.path, hint=hint) from None
        values = floats.to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    def _dates(self, column: Array) -> Dates | None:
        """A column of dates or times; None if its type is another one."""
        pa = self._pa
        types = pa.types
        if types.is_date(column.type):
            moments = column.cast(pa.date32()).to_numpy(zero_copy_only=False)
            return Dates(moments, "date")
        if types.is_timestamp(column.type):
            moments = column.to_numpy(zero_copy_only=False)
            has_zone = column.type.tz is not None
            return Dates(moments, "moment", has_zone=has_zone)
        if types.is_time(column.type):
            nanoseconds = column.cast(pa.time64("ns")).cast(pa.int64())
            since_midnight = nanoseconds.fill_null(_NOT_A_TIME).to_numpy()
            return Dates(since_midnight.view("datetime64[ns]"), "time")
        return None

    def _texts(self, column: Array) -> Texts:
        """A column as text, as Arrow writes it; empty for nulls."""
        filled = column.cast(self._pa.string()).fill_null("")
        coded = filled.dictionary_encode()
        codes = coded.indices.to_numpy().astype(np.int64)
        texts = [cell.strip() for cell in coded.dictionary.to_pylist()]
        return Texts(codes, texts)

    def _unreadable(self, error: Exception) -> UserError:
        """The error for a file that the machine cannot read, or whose content is damaged."""
        if isinstance(error, OSError) and error.errno is not None:
            problem = f"reading failed: {error.strerror or error}"
            return UserError(problem, code=ExitCode.IO_ERROR, place=Place(self.path))
        reason = str(error).partition("\n")[0][:200]
        problem = f"no Parquet or Arrow file, or it is damaged: {reason}"
        return bad_data(problem, self.path, hint="fetch or write the file again")
