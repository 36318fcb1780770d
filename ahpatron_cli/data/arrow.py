"""Reader of Parquet, Arrow and Feather files (with pyarrow): batches of named columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.data.csv_text import Cells, Texts, Values
from ahpatron_cli.data.source import cannot_open
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data

ROWS = 1 << 13
"""Number of rows read at a time."""


class ArrowReader:
    """Reader of a file supported by pyarrow; the "line" of a row is its number, from 1."""

    def __init__(self, path: str) -> None:
        self.path, self.padded = path, set[str]()
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
            magic = file.read(6)
            file.seek(0)
            if magic.startswith(b"PAR1"):
                small = {"buffer_size": 1 << 16, "pre_buffer": False}  # else whole columns are read
                self._content: Any = pyarrow.parquet.ParquetFile(file, **small)
                self.names: list[str] = self._content.schema_arrow.names
            else:
                ipc = pyarrow.ipc
                self._content = (ipc.open_file if magic == b"ARROW1" else ipc.open_stream)(file)
                self.names = self._content.schema.names
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def batches(
        self, used: set[str], text: set[str], copied: Collection[str] = ()
    ) -> Iterator[Cells]:
        """Batches of the `used` columns. Their types decide what is text; the rest is ignored."""
        names, row = [name for name in self.names if name in used], 1
        try:
            for part in self._parts(names):
                part.validate(full=True)  # wrong offsets would read any memory
                for start in range(0, part.num_rows, ROWS):
                    batch = part.slice(start, ROWS)
                    lines = np.arange(row, row + batch.num_rows)
                    row += batch.num_rows
                    yield Cells(lines, {name: self._values(name, batch[name]) for name in names})
        except (self._pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _parts(self, names: list[str]) -> Iterator[Any]:
        content = self._content
        if hasattr(content, "iter_batches"):
            return iter(content.iter_batches(ROWS, columns=names, use_threads=False))
        if hasattr(content, "get_batch"):
            return (content.get_batch(i) for i in range(content.num_record_batches))
        return iter(content)

    def _values(self, name: str, column: Any) -> Values:
        """Values of a column as floats (dates and times in days) or as text."""
        pa, kind, types = self._pa, column.type, self._pa.types
        if types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if types.is_date(kind) or types.is_timestamp(kind):
            moments = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
            return _floats(moments.cast(pa.int64())) / 86_400e6
        if types.is_time(kind):
            return _floats(column.cast(pa.time64("ns")).cast(pa.int64())) / 86_400e9
        if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
            coded = column.cast(pa.string()).fill_null("").dictionary_encode()
            texts = [cell.strip() for cell in coded.dictionary.to_pylist()]
            return Texts(coded.indices.to_numpy().astype(np.int64), texts)
        try:
            values = _floats(column.cast(pa.float64(), safe=False))
        except pa.ArrowException:
            problem = f"column {name!r} has the type {kind}"
            raise bad_data(problem, self.path, hint=f"leave it out: --drop {name}") from None
        if np.isinf(values).any():
            raise bad_data(f"column {name!r} has values that are not finite", self.path)
        return values

    def _unreadable(self, error: Exception) -> UserError:
        """The error for a file that the machine cannot read, or whose content is damaged."""
        if isinstance(error, OSError) and error.errno is not None:
            problem = f"reading failed: {error.strerror or error}"
            return UserError(problem, code=ExitCode.IO_ERROR, place=Place(self.path))
        reason = str(error).partition("\n")[0][:200]
        problem = f"no Parquet or Arrow file, or it is damaged: {reason}"
        return bad_data(problem, self.path, hint="fetch or write the file again")


def _floats(column: Any) -> Floats:
    """An Arrow array as float64, NaN for nulls."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
