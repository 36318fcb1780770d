"""Decoded files, kept on disk and mapped into memory: parsed once, shared by all processes.

An entry is a folder named by the hash of the file's bytes and of what was done to them, so it can
never be stale. Every array carries the hash of its own bytes: a damaged entry is thrown away and
made again. Where no such folder can be written, nothing is kept and nothing else changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.dataset import Facts, Loaded, Piece, Preparation, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, Place, UserError

FORMAT = 2
"""Raised whenever reading, labelling or scaling give other arrays than before."""
MOST_BYTES = 4 << 30
"""What is used least recently goes when all entries together are larger."""


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
        return None if source.size is None or source.is_stdin else source.sha256()


def decoded(path: str, sha256: str, preparation: Preparation, folder: Path | None) -> Loaded:
    """The examples of the file with this content, mapped from `folder` where it has them."""
    entry = folder / _key(sha256, preparation) if folder else None
    if entry is not None:
        found = _read(entry)
        if found is not None and found.facts.features <= preparation.max_features:
            return found
    with open_source(path) as source:
        loaded = load(source, preparation)
    if loaded.facts.sha256 != sha256:
        raise UserError(
            "the file has changed since it was looked at",
            code=ExitCode.BAD_DATA,
            place=Place(path),
            hint="the same command again plays the file as it is now",
        )
    if entry is not None and _write(entry, loaded):
        return _read(entry) or loaded
    return loaded


def _key(sha256: str, preparation: Preparation) -> str:
    """`max_features` only says what is refused, not what comes out."""
    done = [FORMAT, sha256, preparation.limit, preparation.learned, preparation.positive]
    return hashlib.sha256(json.dumps(done).encode()).hexdigest()[:32]


def _arrays(loaded: Loaded) -> dict[str, np.ndarray]:
    whole = loaded.held
    arrays = {"labels": whole.labels, "lines": whole.lines}
    if isinstance(whole.rows, CsrRows):
        rows = whole.rows
        return {**arrays, "indptr": rows.indptr, "columns": rows.columns, "values": rows.values}
    return {**arrays, "dense": whole.rows}


def _write(entry: Path, loaded: Loaded) -> bool:
    """Keep an entry; False where that cannot be. It is complete, or it is not there."""
    arrays = _arrays(loaded)
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        return False
    meta: dict[str, Any] = {
        "facts": asdict(loaded.facts),
        "width": loaded.held.rows.width if isinstance(loaded.held.rows, CsrRows) else None,
        "arrays": {name: [a.dtype.str, a.shape, _digest(a)] for name, a in arrays.items()},
    }
    try:
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_room(entry.parent, sum(array.nbytes for array in arrays.values()))
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=entry.parent))
    except OSError:
        return False
    try:
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        text = json.dumps(meta)
        (draft / "meta.json").write_text(json.dumps([_digest_text(text), text]))
        draft.rename(entry)
    except OSError:  # the disk is full, or another process was first
        return entry.exists()
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _read(entry: Path) -> Loaded | None:
    """A kept entry, or None; one that is not as it was written is removed."""
    if not entry.exists():
        return None
    try:
        digest, text = json.loads((entry / "meta.json").read_text())
        if _digest_text(text) != digest:
            raise ValueError("damaged")
        meta = json.loads(text)
        arrays = {}
        for name, (dtype, shape, digest) in meta["arrays"].items():
            array = np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            if [array.dtype.str, list(array.shape), _digest(array)] != [dtype, shape, digest]:
                raise ValueError("damaged")
            arrays[name] = np.asarray(array)  # a plain view: no overhead of np.memmap
        facts = meta["facts"]
        for name in ("labels", "notes"):
            facts[name] = tuple(facts[name])
        rows = (
            arrays["dense"]
            if meta["width"] is None
            else CsrRows(arrays["indptr"], arrays["columns"], arrays["values"], meta["width"])
        )
        os.utime(entry)
        return Loaded(Piece(rows, arrays["labels"], arrays["lines"]), Facts(**facts))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        shutil.rmtree(entry, ignore_errors=True)
        return None


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_room(folder: Path, needed: int) -> None:
    """Remove the entries used longest ago until `needed` more bytes fit."""
    entries = []
    for entry in folder.iterdir():
        with suppress(OSError):  # another process may be removing it
            size = sum(file.stat().st_size for file in entry.iterdir())
            entries.append((entry.stat().st_mtime, size, entry))
    total = needed + sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries, key=lambda one: one[0]):
        if total <= MOST_BYTES:
            break
        shutil.rmtree(entry, ignore_errors=True)
        total -= size
