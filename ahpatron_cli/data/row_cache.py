"""The rows of a file as its text says them, kept on disk: what `run --cache` reads the second time.

An entry lies beside those of `decoded` and keeps the same promises: it is named by the hash of the
file's bytes, so it is never stale; every part carries its own hash, so damage is noticed; what was
used longest ago goes first. It is written while the rows stream past, and mapped when it is read:
neither needs memory that grows with the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data import cache as decoded
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader
from ahpatron_cli.data.source import Source

FORMAT = 1
"""Raised whenever the reader gives other rows than before."""
PARTS = {"labels": "<f8", "lines": "<i8", "lengths": "<i8", "columns": "<i4", "values": "<f8"}
ROWS_AT_ONCE = 4096


def kept_reader(
    source: Source, folder: Path, max_features: int, max_rows: int | None
) -> SvmReader | None:
    """A reader of what `folder` has of this file, which is read to its end for its hash."""
    sha256 = source.sha256()
    if sha256 is None:
        return None
    entry = folder / _key(sha256, max_rows)
    if not entry.exists():
        return None
    try:
        arrays, meta = _read(entry)
        os.utime(entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        shutil.rmtree(entry, ignore_errors=True)
        return None
    if meta["max_index"] > max_features:
        return None  # the text is read, for the place of what is refused
    return KeptReader(source, arrays, meta)


class KeptReader(SvmReader):
    """Hands out kept rows as `SvmReader` hands out those it reads."""

    def __init__(self, source: Source, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        super().__init__(source)
        self._arrays = arrays
        self._meta = meta

    def __iter__(self) -> Iterator[Chunk]:
        labels, lines, lengths, columns, values = (self._arrays[name] for name in PARTS)
        begin = 0
        for start in range(0, len(labels), ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, len(labels)))
            indptr = np.concatenate(([0], np.cumsum(lengths[part])))
            end = begin + int(indptr[-1])
            width = int(columns[begin:end].max(initial=-1)) + 1
            rows = CsrRows(indptr, columns[begin:end], values[begin:end], width)
            chunk = Chunk(labels[part], rows, lines[part])
            self._note(chunk)
            self._source.position = (self._source.size or 0) * part.stop // len(labels)
            begin = end
            yield chunk
        self.saw_qid = self._meta["saw_qid"]
        self.no_final_newline = self._meta["no_final_newline"]


class RecordingReader(SvmReader):
    """Reads a file, and keeps its rows once the last one has passed."""

    def __init__(
        self, source: Source, folder: Path, max_features: int, max_rows: int | None
    ) -> None:
        super().__init__(source, max_features=max_features, max_rows=max_rows)
        self._folder = folder

    def __iter__(self) -> Iterator[Chunk]:
        with _Draft(self._folder) as draft:
            for chunk in super().__iter__():
                draft.add(chunk)
                yield chunk
            sha256 = self._source.sha256()
            if sha256 is not None:
                meta = {
                    "max_index": self.max_index,
                    "saw_qid": self.saw_qid,
                    "no_final_newline": self.no_final_newline,
                }
                draft.keep(self._folder / _key(sha256, self._max_rows), meta)


class _Draft:
    """An entry on its way. Where it cannot be written it is given up, and nothing else changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._open = ExitStack()
        self._bytes = 0
        self._digests = {name: hashlib.sha256() for name in PARTS}
        self._counts = dict.fromkeys(PARTS, 0)

    def __enter__(self) -> _Draft:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._folder))
            self._files = {
                name: self._open.enter_context((self._path / name).open("wb")) for name in PARTS
            }
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
        rows = chunk.rows
        parts = (chunk.labels, chunk.lines, np.diff(rows.indptr), rows.columns, rows.values)
        try:
            for (name, dtype), part in zip(PARTS.items(), parts, strict=True):
                data = np.ascontiguousarray(part, dtype=dtype)
                self._files[name].write(data.data)
                self._digests[name].update(data.data)
                self._counts[name] += len(data)
                self._bytes += data.nbytes
        except OSError:
            self._give_up()
        if self._bytes > decoded.MOST_BYTES:
            self._give_up()

    def keep(self, entry: Path, meta: dict[str, Any]) -> None:
        """Give the finished draft its name: it is complete, or it is not there."""
        if self._path is None:
            return
        digests = {name: [self._counts[name], self._digests[name].hexdigest()] for name in PARTS}
        text = json.dumps({**meta, "parts": digests})
        try:
            self._open.close()
            (self._path / "meta.json").write_text(json.dumps([_digest(text.encode()), text]))
            os.utime(self._path)
            decoded.make_room(self._folder, 0)
            self._path.rename(entry)
        except OSError:  # the disk is full, or another process was first
            return
        self._path = None


def _key(sha256: str, max_rows: int | None) -> str:
    done = json.dumps(["rows", FORMAT, sha256, max_rows])
    return hashlib.sha256(done.encode()).hexdigest()[:32]


def _read(entry: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and what else is known; a ValueError where it is not as it was written."""
    digest, text = json.loads((entry / "meta.json").read_text())
    if _digest(text.encode()) != digest:
        raise ValueError("damaged")
    meta = json.loads(text)
    arrays: dict[str, np.ndarray] = {}
    for name, dtype in PARTS.items():
        count, digest = meta["parts"][name]
        array = np.zeros(0, dtype)  # nothing can be mapped of an empty file
        if (entry / name).stat().st_size:
            array = np.asarray(np.memmap(entry / name, dtype=dtype, mode="r"))
        if len(array) != count or _digest(array.data) != digest:
            raise ValueError("damaged")
        arrays[name] = array
    return arrays, meta


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
