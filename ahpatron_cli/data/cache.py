"""The parsed rows of files, kept on disk and mapped into memory: parsed once, shared by processes.

An entry is a folder named by the hash of the file's bytes (and by `--limit`), so it is never stale.
It is written while the rows stream past, in memory that does not grow with the file. Every part
carries its own hash: a damaged entry is removed and made again. If the folder cannot be written,
nothing is kept and nothing else changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.data.compact import CommonColumns, CompactRows, Traits
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader
from ahpatron_cli.data.source import Source, open_source

FORMAT = 3
"""Raised whenever the reader gives other rows than before."""
MOST_BYTES = 4 << 30
"""The entries used longest ago are removed while all entries together are larger."""
PARTS = {"labels": "<f8", "lines": "<i8", "indptr": "<i8", "columns": "<i4", "values": "<f8"}
ROWS_AT_ONCE = 4096


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


def find(folder: Path, sha256: str, max_rows: int | None, max_features: int) -> CompactRows | None:
    """The rows of the file with this content, mapped; None if the text must be read."""
    entry = folder / _key(sha256, max_rows)
    if not entry.exists():
        return None
    try:
        found = _read(entry, sha256)
        os.utime(entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        shutil.rmtree(entry, ignore_errors=True)
        return None
    # what exceeds the limit is refused by the reader, which knows its place
    return found if found.traits.max_index <= max_features else None


def record(
    reader: SvmReader, source: Source, folder: Path, max_rows: int | None
) -> Iterator[Chunk]:
    """The chunks of a reader, kept in `folder` once the last one has passed."""
    with _Draft(folder) as draft:
        for chunk in reader:
            draft.add(chunk)
            yield chunk
        sha256 = source.sha256()
        if sha256 is not None:
            draft.keep(folder / _key(sha256, max_rows), Traits.of(reader))


class _Draft:
    """An entry in the making. If it cannot be written it is given up, and nothing else changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._open = ExitStack()
        self._bytes = 0
        self._digests = {name: hashlib.sha256() for name in PARTS}
        self._counts = dict.fromkeys(PARTS, 0)
        self._common = CommonColumns()

    def __enter__(self) -> _Draft:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._folder))
            self._files = {
                name: self._open.enter_context((self._path / name).open("wb")) for name in PARTS
            }
            self._write("indptr", np.zeros(1))
        except OSError:
            self._give_up()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_up()

    def _give_up(self) -> None:
        with suppress(OSError):  # what could not be written is not wanted any more
            self._open.close()
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None

    def add(self, chunk: Chunk) -> None:
        """Append these rows."""
        if self._path is None:
            return
        rows, before = chunk.rows, self._common.columns
        try:
            self._common.add(rows)
            if before is not None and self._common.columns is None:  # no longer common: all of them
                for start in range(0, self._counts["labels"], ROWS_AT_ONCE):
                    count = min(ROWS_AT_ONCE, self._counts["labels"] - start)
                    self._write("columns", np.tile(before, count))
            if self._common.columns is None:
                self._write("columns", rows.columns)
            self._write("labels", chunk.labels)
            self._write("lines", chunk.lines)
            self._write("indptr", rows.indptr[1:] + self._counts["values"])
            self._write("values", rows.values)
        except OSError:
            self._give_up()
        if self._bytes > MOST_BYTES:
            self._give_up()

    def _write(self, name: str, part: NDArray[Any]) -> None:
        data = np.ascontiguousarray(part, dtype=PARTS[name])
        self._files[name].write(data.data)
        self._digests[name].update(data.data)
        self._counts[name] += len(data)
        self._bytes += data.nbytes

    def keep(self, entry: Path, traits: Traits) -> None:
        """Give the finished draft its name: an entry is complete or absent."""
        if self._path is None:
            return
        try:
            if self._common.columns is not None:
                self._write("columns", self._common.columns)
            parts = {name: [self._counts[name], self._digests[name].hexdigest()] for name in PARTS}
            text = json.dumps({"traits": asdict(traits), "parts": parts})
            self._open.close()
            (self._path / "meta.json").write_text(json.dumps([_digest(text.encode()), text]))
            os.utime(self._path)
            _make_room(self._folder)
            self._path.rename(entry)
        except OSError:  # the disk is full, or another process was first
            return
        self._path = None


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
    for name, dtype in PARTS.items():
        count, digest = meta["parts"][name]
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
