"""The cache of decoded files: the same examples as reading gives, never stale, never damaged."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data import cache as module
from ahpatron_cli.data.cache import content_hash, decoded, default_folder
from ahpatron_cli.data.dataset import Loaded, Preparation, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
NAMES = ["breast_cancer.svm", "sparse_text.svm"]


def read(path: Path, preparation: Preparation) -> Loaded:
    with open_source(str(path)) as source:
        return load(source, preparation)


def taken(path: Path, folder: Path | None, preparation: Preparation | None = None) -> Loaded:
    sha256 = content_hash(str(path))
    assert sha256 is not None
    return decoded(str(path), sha256, preparation or Preparation(), folder)


def same(one: Loaded, other: Loaded) -> bool:
    def parts(loaded: Loaded) -> list[np.ndarray]:
        rows = loaded.held.rows
        own = [rows.indptr, rows.columns, rows.values] if isinstance(rows, CsrRows) else [rows]
        return [*own, loaded.held.labels, loaded.held.lines]

    return one.facts == other.facts and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(parts(one), parts(other), strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "preparation",
    [Preparation(), Preparation(limit=100, scale="unit"), Preparation(positive=1.0)],
)
def test_what_is_kept_is_what_was_read(tmp_path: Path, name: str, preparation: Preparation) -> None:
    path = SAMPLES / name
    plain = read(path, preparation)
    first, second = (taken(path, tmp_path, preparation) for _ in range(2))
    assert same(plain, first)
    assert same(plain, second)
    assert len(list(tmp_path.iterdir())) == 1


def test_it_is_mapped_and_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = SAMPLES / NAMES[0]
    before = taken(path, tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(module, "load", never)
    after = taken(path, tmp_path)
    assert same(before, after)
    rows = after.held.rows
    assert isinstance(rows, np.ndarray)
    assert not rows.flags.owndata
    assert not rows.flags.writeable


def test_settings_and_contents_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    cache = tmp_path / "cache"
    path.write_text("+1 1:1\n-1 1:2\n")
    assert taken(path, cache).facts.rounds == 2
    assert taken(path, cache, Preparation(limit=2, scale="minmax")).facts.rounds == 2
    path.write_text("+1 1:1\n-1 1:2\n+1 1:3\n")
    assert taken(path, cache).facts.rounds == 3
    assert len(list(cache.iterdir())) == 3


def test_a_file_that_changed_since_it_was_hashed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("+1 1:1\n-1 1:2\n")
    with pytest.raises(UserError, match="has changed"):
        decoded(str(path), "0" * 64, Preparation(), tmp_path / "cache")


def test_a_damaged_entry_is_made_again(tmp_path: Path) -> None:
    path = SAMPLES / NAMES[0]
    plain = read(path, Preparation())
    taken(path, tmp_path)
    (entry,) = tmp_path.iterdir()
    lots = random.Random(3)
    for file in sorted(entry.iterdir()):
        for _ in range(10):
            content = bytearray(file.read_bytes())
            place = lots.randrange(len(content))
            if file.suffix == ".npy" and place < 128:
                place += 128  # the head of .npy has blanks that mean nothing
            content[place] ^= 1 << lots.randrange(8)
            file.write_bytes(content)
            assert same(taken(path, tmp_path), plain)
        os.truncate(file, 10)
        assert same(taken(path, tmp_path), plain)
        file.unlink()
        assert same(taken(path, tmp_path), plain)
        file.write_bytes(b"\x80\x04K\x01.")  # a pickle
        assert same(taken(path, tmp_path), plain)


def test_what_is_refused_is_refused_from_the_cache_too(tmp_path: Path) -> None:
    path = SAMPLES / NAMES[0]
    taken(path, tmp_path)
    with pytest.raises(UserError, match="must not exceed 3"):
        taken(path, tmp_path, Preparation(max_features=3))


@pytest.mark.parametrize("folder", [None, Path("/proc/nowhere"), Path("/dev/null/x")])
def test_without_a_place_to_keep_it_nothing_is_kept(folder: Path | None) -> None:
    path = SAMPLES / NAMES[1]
    assert same(taken(path, folder), read(path, Preparation()))


def test_what_was_used_longest_ago_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    entries = []
    for number in range(3):
        path = tmp_path / f"{number}.svm"
        path.write_text(f"+1 1:{number}\n-1 1:2\n" * 100)
        before = set(cache.iterdir()) if cache.exists() else set()
        taken(path, cache)
        (entry,) = set(cache.iterdir()) - before
        os.utime(entry, (number, number))
        entries.append(entry)
    taken(tmp_path / "0.svm", cache)  # now it is the youngest
    size = sum(file.stat().st_size for file in entries[0].iterdir())
    monkeypatch.setattr(module, "MOST_BYTES", 3 * size)
    path = tmp_path / "new.svm"
    path.write_text("+1 1:9\n-1 1:2\n" * 100)
    taken(path, cache)
    assert not entries[1].exists()
    assert entries[0].exists()
    assert entries[2].exists()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "ahpatron"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "ahpatron"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "ahpatron"


def test_a_pipe_has_no_hash(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    if os.fork() == 0:
        fifo.write_bytes(b"+1 1:1\n")
        os._exit(0)
    assert content_hash(str(fifo)) is None
    os.wait()
