"""Parquet, Arrow and Feather files as batches of named columns, read by pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ahpatron_cli.data.csv_text import Batch, Values
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data

ROWS = 1 << 14
"""Rows of a batch."""


class ArrowReader:
    """The rows of a file that pyarrow reads; lines are the numbers of rows, from 1."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            import pyarrow as pa
            import pyarrow.parquet as parquet
        except ImportError:
            hint = "install it: `pip install 'ahpatron-cli[arrow]'`"
            raise UserError(
                "reading this file requires pyarrow", place=Place(path), hint=hint
            ) from None
        self._pa = pa
        try:
            self._file = pa.memory_map(path)
            magic = self._file.read(6)
            self._file.seek(0)
            if magic.startswith(b"PAR1"):
                self._content: Any = parquet.ParquetFile(self._file, pre_buffer=False)
                names = self._content.schema_arrow.names
            else:
                is_file = magic == b"ARROW1"
                self._content = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(self._file)
                names = self._content.schema.names
        except OSError as error:
            problem = f"cannot be opened: {error.strerror or error}"
            raise UserError(problem, code=ExitCode.NO_INPUT, place=Place(path)) from None
        except pa.ArrowException as error:
            raise self._damaged(error) from None
        self.names = list(names)

    def batches(self, used: Collection[str], text: Collection[str]) -> Iterator[Batch]:
        """The `used` columns; strings and booleans are text, whether they are in `text` or not."""
        names, row = [name for name in self.names if name in used], 1
        try:
            for part in self._parts(names):
                for start in range(0, part.num_rows, ROWS):
                    batch = part.slice(start, ROWS)
                    lines = np.arange(row, row + batch.num_rows)
                    row += batch.num_rows
                    yield Batch(lines, {name: self._values(name, batch[name]) for name in names})
        except self._pa.ArrowException as error:
            raise self._damaged(error) from None

    def _parts(self, names: list[str]) -> Iterator[Any]:
        if hasattr(self._content, "iter_batches"):
            yield from self._content.iter_batches(ROWS, columns=names)
        elif hasattr(self._content, "num_record_batches"):
            for i in range(self._content.num_record_batches):
                yield self._content.get_batch(i)
        else:
            yield from self._content

    def _values(self, name: str, column: Any) -> Values:
        """Numbers; dates and times in days; text."""
        pa, kind = self._pa, column.type
        types = pa.types
        if types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if types.is_date(kind) or types.is_timestamp(kind):
            moments = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
            return _floats(moments.cast(pa.int64())) / 86_400e6
        if types.is_time(kind):
            ticks = column.cast(pa.time64("ns")).cast(pa.int64())
            return _floats(ticks) / 86_400e9
        if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
            return [(cell or "").strip() for cell in column.cast(pa.string()).to_pylist()]
        if not (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_decimal(kind)
            or types.is_null(kind)
        ):
            hint = f"leave it out: --drop {name}"
            raise bad_data(f"column {name!r} has the type {kind}", self.path, hint=hint)
        values = _floats(column.cast(pa.float64(), safe=False))
        if np.isinf(values).any():
            raise bad_data(f"column {name!r} has values that are not finite", self.path)
        return values

    def _damaged(self, error: Exception) -> UserError:
        first = str(error).partition("\n")[0][:200]
        return bad_data(
            f"this is not a Parquet or Arrow file, or it is damaged: {first}", self.path
        )


def _floats(column: Any) -> np.ndarray:
    """The numbers of an Arrow array, NaN where it has none."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
