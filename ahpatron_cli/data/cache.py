"""All examples of a file, held once, in the smallest form that loses nothing; and kept on disk.

Values are float32 if every one of them is such a number (0 and 1, halves, small whole numbers),
and become float64 again, exactly, when they are taken. If all rows store the same columns, as in
dense data, these columns are held once.

The cache on disk has the same arrays, mapped into memory: parsed once, shared by processes. An
entry is a folder named by the hash of the file's bytes (and by `--limit`), so it is never stale.
Every part carries its own hash: a damaged entry is removed and made again. If the folder cannot be
written, nothing is kept and nothing else changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from ahpatron_cli.data.labels import LabelTally
from ahpatron_cli.data.libsvm.reader import Chunk, Traits
from ahpatron_cli.data.source import open_source

FORMAT = 4
"""Raised whenever the reader gives other rows than before."""
MOST_BYTES = 4 << 30
"""The entries used longest ago are removed while all entries together are larger."""
PARTS = {
    "labels": ["<f8"],
    "lines": ["<i8"],
    "indptr": ["<i8"],
    "columns": ["<i4"],
    "values": ["<f4", "<f8"],
}
"""The arrays of an entry, and their legal types."""

CHUNK_ROWS = 64 * BLOCK
"""Rows that are taken from memory at once: whole blocks of the engine."""
Columns = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CompactRows:
    """The examples of a file as its text states them: labels, lines and rows."""

    labels: Floats
    lines: Integers
    indptr: Integers
    columns: Columns
    """One for each value; or those of a single row, if all rows store the same."""
    values: NDArray[Any]
    traits: Traits
    sha256: str | None = None

    @property
    def rounds(self) -> int:
        """The number of examples."""
        return len(self.labels)

    def tally(self) -> LabelTally:
        """All labels."""
        return LabelTally(limit=self.rounds).add(self.labels)

    def head(self, rows: int | None) -> Chunk:
        """The first examples."""
        return self.chunk(slice(0, rows))

    def chunks(self, order: Integers | None) -> Iterator[Chunk]:
        """All examples in file order, or those numbered in `order`."""
        for start in range(0, self.rounds if order is None else len(order), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            yield self.chunk(part if order is None else order[part])

    def chunk(self, chosen: Integers | slice) -> Chunk:
        """These examples, in this order."""
        return Chunk(self.labels[chosen], self._rows(chosen), self.lines[chosen])

    def _rows(self, chosen: Integers | slice) -> CsrRows:
        width = self.traits.max_index + 1
        if len(self.columns) < len(self.values):
            values = self.values.reshape(self.rounds, -1)[chosen].astype(np.float64, copy=False)
            count, stored = values.shape
            indptr = np.arange(0, (count + 1) * stored, stored)
            return CsrRows(indptr, np.tile(self.columns, count), values.reshape(-1), width)
        whole = CsrRows(self.indptr, self.columns, self.values, width)
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(self.rounds)
            taken = whole.slice(start, stop)
        else:
            taken = whole.take(chosen)
        return replace(taken, values=taken.values.astype(np.float64, copy=False))

    @classmethod
    def of_rows(cls, rows: CsrRows, labels: Floats) -> CompactRows:
        """Rows that are in memory already, numbered from 0."""
        traits = Traits(rows.width - 1, zero_based=True)
        lines = np.arange(len(labels))
        return cls(labels, lines, rows.indptr, rows.columns, rows.values, traits)


def gather(chunks: Iterable[Chunk], traits: Traits) -> CompactRows:
    """All examples of these chunks; `traits` are complete once the last chunk was taken."""
    labels: list[Floats] = []
    lines: list[Integers] = []
    held: list[CsrRows] = []
    shared: Columns | None = None
    for chunk in chunks:
        rows = chunk.rows
        first = shared if held else rows.columns[: rows.indptr[1]]
        shared = first if first is not None and _all_store(rows, first) else None
        labels.append(chunk.labels)
        lines.append(chunk.lines)
        held.append(replace(rows, values=smallest(rows.values)))
    arrays = np.concatenate(labels), np.concatenate(lines), *_joined(held, shared)
    return CompactRows(*arrays, traits)


def _all_store(rows: CsrRows, columns: Columns) -> bool:
    """Whether every row stores exactly these columns, at least one."""
    if not len(columns) or len(rows.columns) != len(columns) * len(rows):
        return False
    same_length = (np.diff(rows.indptr) == len(columns)).all()
    return bool(same_length and (rows.columns.reshape(-1, len(columns)) == columns).all())


def _joined(held: list[CsrRows], shared: Columns | None) -> tuple[Integers, Columns, NDArray[Any]]:
    """One array of each kind. Each part is released once copied: both forms never exist at once."""
    single = all(rows.values.dtype == np.float32 for rows in held)
    stored = sum(len(rows.values) for rows in held)
    indptr = np.zeros(sum(map(len, held)) + 1, dtype=np.int64)
    columns = np.empty(stored, dtype=np.int32) if shared is None else shared
    values: NDArray[Any] = np.empty(stored, dtype=np.float32 if single else np.float64)
    row = start = 0
    held.reverse()
    while held:
        rows = held.pop()
        stop = start + len(rows.values)
        indptr[row + 1 : row + 1 + len(rows)] = rows.indptr[1:] + start
        values[start:stop] = rows.values
        if shared is None:
            columns[start:stop] = rows.columns
        row, start = row + len(rows), stop
    return indptr, columns, values


def smallest(values: Floats) -> NDArray[Any]:
    """The same numbers as float32, if all of them are; else as they are."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values) else values


def default_folder() -> Path | None:
    """Where entries are kept: the user's cache, if there is one."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (home if home.is_absolute() else Path.home() / ".cache") / "ahpatron"
    except RuntimeError:  # no home: a bare cron job
        return None


def content_hash(path: str) -> str | None:
    """SHA-256 of a file's bytes; None for a pipe, which cannot be read twice."""
    with open_source(path) as source:
        return source.sha256() if source.rereadable else None


def find(
    folder: Path, sha256: str | None, max_rows: int | None, max_features: int
) -> CompactRows | None:
    """The rows of the file with this content, mapped; None if the text must be read."""
    if sha256 is None or not (entry := folder / _key(sha256, max_rows)).exists():
        return None
    try:
        found = _read(entry, sha256)
        os.utime(entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        shutil.rmtree(entry, ignore_errors=True)
        return None
    # what exceeds the limit is refused by the reader, which knows its place
    return found if found.traits.max_index <= max_features else None


def keep(folder: Path, rows: CompactRows, max_rows: int | None) -> None:
    """Write an entry, which is complete or absent; if that fails, nothing else changes."""
    arrays = {name: np.ascontiguousarray(getattr(rows, name)) for name in PARTS}
    if rows.sha256 is None or sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        return
    with suppress(OSError), ExitStack() as last:  # the disk is full, or another process was first
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder))
        last.callback(shutil.rmtree, draft, ignore_errors=True)  # what could not be finished
        for name, array in arrays.items():
            (draft / name).write_bytes(array.data)
        parts = {name: [one.dtype.str, len(one), _digest(one.data)] for name, one in arrays.items()}
        text = json.dumps({"traits": asdict(rows.traits), "parts": parts})
        (draft / "meta.json").write_text(json.dumps([_digest(text.encode()), text]))
        _make_room(folder)
        draft.rename(folder / _key(rows.sha256, max_rows))


def _make_room(folder: Path) -> None:
    """Remove the entries used longest ago until the others fit."""
    entries = []
    for entry in folder.iterdir():
        with suppress(OSError):  # another process may be removing it
            size = sum(file.stat().st_size for file in entry.iterdir())
            entries.append((entry.stat().st_mtime, size, entry))
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries, key=lambda one: one[0]):
        if total <= MOST_BYTES:
            break
        shutil.rmtree(entry, ignore_errors=True)
        total -= size


def _key(sha256: str, max_rows: int | None) -> str:
    return hashlib.sha256(json.dumps([FORMAT, sha256, max_rows]).encode()).hexdigest()[:32]


def _read(entry: Path, sha256: str) -> CompactRows:
    """What an entry holds; a ValueError if it is not as it was written."""
    digest, text = json.loads((entry / "meta.json").read_text())
    if _digest(text.encode()) != digest:
        raise ValueError("damaged")
    meta = json.loads(text)
    arrays: dict[str, NDArray[Any]] = {}
    for name, kinds in PARTS.items():
        dtype, count, digest = meta["parts"][name]
        if dtype not in kinds:
            raise ValueError("damaged")
        array = np.zeros(0, dtype)  # an empty file cannot be mapped
        if (entry / name).stat().st_size:
            # a plain view, which lacks the overhead of np.memmap
            array = np.asarray(np.memmap(entry / name, dtype=dtype, mode="r"))
        if len(array) != count or _digest(array.data) != digest:
            raise ValueError("damaged")
        arrays[name] = array
    return CompactRows(**arrays, traits=Traits(**meta["traits"]), sha256=sha256)


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
