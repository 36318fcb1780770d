"""The cache of parsed rows: what a file gives is what its text gives; damage is never trusted."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data import cache as module
from ahpatron_cli.data import dataset as readers
from ahpatron_cli.data.cache import (
    CompactRows,
    content_hash,
    default_folder,
    find,
    gather,
    smallest,
)
from ahpatron_cli.data.dataset import Dataset, Facts, Preparation, load, stream
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
TEXTS = {
    "odd": b"# a comment\n-1 qid:3 0:1.5 7:1e-3\n\n+1\n-1 2:0 900:-0.0\r\n+1 3:4",
    "binary": b"+1 1:1 4:1\n-1 2:1 3:1\n" * 3000,
    "wide": b"+1 5:0.25 9999999:1\n-1 5:1\n" * 2500,
    "labels": b"2 1:1\n1 1:2\n" * 40,
    "no features": b"1\n-1\n" * 200,
    "dense": b"+1 1:0.5 2:1\n-1 1:1 2:0\n" * 50_000,
    "dense but for the last": b"+1 1:0.5 2:1\n-1 1:1 2:0\n" * 50_000 + b"+1 1:1\n",
}
PREPARATIONS = [
    Preparation(),
    Preparation(limit=70),
    Preparation(scale="unit"),
    Preparation(positive=1.0, scale="minmax"),
]
Played = tuple[list[bytes], Facts]


@pytest.fixture(params=[*TEXTS, "rings.svm", "sparse_text.svm"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param not in TEXTS:
        return SAMPLES / request.param
    file = tmp_path / "data.svm"
    file.write_bytes(TEXTS[request.param])
    return file


def cached(path: Path, folder: Path, preparation: Preparation) -> bool:
    sha256 = content_hash(str(path))
    assert sha256 is not None
    return find(folder, sha256, preparation.limit, preparation.max_features) is not None


def played(
    path: Path, preparation: Preparation, folder: Path | None, *, kept: bool = False
) -> Played:
    """All that a data set gives; `kept` says whether the cache must have it already."""
    if folder is not None:
        assert cached(path, folder, preparation) == kept
    with open_source(str(path)) as source:
        dataset = load(source, preparation, folder=folder)
        return given_by(dataset)


def given_by(dataset: Dataset) -> Played:
    whole = dataset.whole()
    parts = [whole.stored.indptr, whole.stored.columns, whole.stored.values]
    parts += [whole.labels, whole.lines]
    rows = whole.rows
    parts += [rows] if isinstance(rows, np.ndarray) else [rows.indptr, rows.values]
    return [part.tobytes() for part in parts], dataset.facts()


@pytest.mark.parametrize("preparation", PREPARATIONS)
def test_one_entry_gives_what_the_text_gives(
    path: Path, preparation: Preparation, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    with open_source(str(path)) as source:
        plain = given_by(stream(source, preparation))
    assert played(path, preparation, None) == plain
    assert played(path, preparation, cache, kept=False) == plain
    assert played(path, preparation, cache, kept=True) == plain
    assert len(list(cache.iterdir())) == 1


def test_one_entry_serves_all_scales_and_labels(tmp_path: Path) -> None:
    path = SAMPLES / "sparse_text.svm"
    played(path, Preparation(), tmp_path, kept=False)
    for scale in ("unit", "minmax", "standard"):
        for positive in (None, 0.0):
            preparation = Preparation(scale=scale, positive=positive)
            plain = played(path, preparation, None)
            assert played(path, preparation, tmp_path, kept=True) == plain
    assert len(list(tmp_path.iterdir())) == 1


def test_it_is_mapped_and_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = SAMPLES / "breast_cancer.svm"
    before = played(path, Preparation(), tmp_path, kept=False)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(readers, "SvmReader", never)
    assert played(path, Preparation(), tmp_path, kept=True) == before
    sha256 = content_hash(str(path))
    assert sha256 is not None
    found = find(tmp_path, sha256, None, 30)
    assert isinstance(found, CompactRows)
    assert not found.values.flags.owndata
    assert not found.values.flags.writeable


def test_a_name_means_nothing_and_a_date_neither(tmp_path: Path) -> None:
    one, cache = tmp_path / "one.svm", tmp_path / "cache"
    one.write_bytes(b"+1 1:1\n-1 1:2\n")
    os.utime(one, (7, 7))
    played(one, Preparation(), cache, kept=False)
    two = one.rename(tmp_path / "two.svm")
    assert played(two, Preparation(), cache, kept=True)[1].rounds == 2
    two.write_bytes(b"+1 1:1\n-1 1:3\n")
    os.utime(two, (7, 7))
    changed = played(two, Preparation(), None)
    assert played(two, Preparation(), cache, kept=False) == changed
    assert played(two, Preparation(limit=2), cache, kept=False)[1].rounds == 2
    assert len(list(cache.iterdir())) == 3


def test_a_file_that_changed_since_it_was_hashed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("+1 1:1\n-1 1:2\n")
    with (
        open_source(str(path)) as source,
        pytest.raises(UserError, match="changed between two readings"),
    ):
        load(source, Preparation(), folder=tmp_path / "cache", sha256="0" * 64)


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    path, preparation = SAMPLES / "sparse_text.svm", Preparation(limit=300)
    plain = played(path, preparation, tmp_path, kept=False)
    (entry,) = tmp_path.iterdir()
    rng = random.Random(4)
    for name in sorted(file.name for file in entry.iterdir()):
        for _ in range(5):
            content = bytearray((entry / name).read_bytes())
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            (entry / name).write_bytes(content)
            assert played(path, preparation, tmp_path, kept=False) == plain
        os.truncate(entry / name, 11)
        assert played(path, preparation, tmp_path, kept=False) == plain
        (entry / name).unlink()
        assert played(path, preparation, tmp_path, kept=False) == plain
        (entry / name).write_bytes(b"\x80\x04K\x01.")  # a pickle
        assert played(path, preparation, tmp_path, kept=False) == plain
    assert played(path, preparation, tmp_path, kept=True) == plain


def test_what_is_refused_is_refused_again_and_not_kept(tmp_path: Path) -> None:
    path, cache = tmp_path / "data.svm", tmp_path / "cache"
    path.write_bytes(b"+1 1:1 50:2\n-1 1:2\n")
    played(path, Preparation(), cache, kept=False)
    with pytest.raises(UserError, match="must not exceed 10"):
        played(path, Preparation(max_features=10), cache, kept=False)
    path.write_bytes(b"+1 1:1\n-1 1:x\n")
    with pytest.raises(UserError, match="must be a number"):
        played(path, Preparation(), cache, kept=False)
    assert len(list(cache.iterdir())) == 1


def test_a_file_counted_from_0_is_served_at_the_limit_of_features(tmp_path: Path) -> None:
    path, cache = tmp_path / "data.svm", tmp_path / "cache"
    path.write_bytes(b"+1 0:1 9:2\n-1 0:2\n")
    preparation = Preparation(max_features=9)
    plain = played(path, preparation, cache, kept=False)
    assert plain[1].features == 10
    assert played(path, preparation, cache, kept=True) == plain


@pytest.mark.parametrize("folder", [Path("/proc/nowhere"), Path("/dev/null/x")])
def test_where_nothing_can_be_kept_nothing_else_changes(folder: Path) -> None:
    path = SAMPLES / "rings.svm"
    plain = played(path, Preparation(), None)
    assert played(path, Preparation(), folder, kept=False) == plain


def test_room_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    files = []
    for number in range(3):
        files.append(tmp_path / f"{number}.svm")
        files[-1].write_bytes(b"+1 1:%d\n-1 1:2\n" % number * 100)
    played(files[0], Preparation(), cache, kept=False)
    (entry,) = cache.iterdir()
    size = sum(file.stat().st_size for file in entry.iterdir())
    played(files[1], Preparation(), cache, kept=False)
    os.utime(entry, (1, 1))
    monkeypatch.setattr(module, "MOST_BYTES", int(2.5 * size))
    played(files[2], Preparation(), cache, kept=False)
    assert not entry.exists()
    for number in (1, 2):
        played(files[number], Preparation(), cache, kept=True)
    monkeypatch.setattr(module, "MOST_BYTES", size // 2)  # too large for any room
    played(files[0], Preparation(), cache, kept=False)
    assert not entry.exists()
    assert not [file for file in cache.iterdir() if file.name.startswith(".draft")]


def test_what_was_used_longest_ago_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, entries, files = tmp_path / "cache", [], []
    for number in range(3):
        files.append(tmp_path / f"{number}.svm")
        files[-1].write_bytes(b"+1 1:%d\n-1 1:2\n" % number * 100)
    for number, file in enumerate(files[:2]):
        played(file, Preparation(), cache, kept=False)
        entries += set(cache.iterdir()) - set(entries)
        os.utime(entries[-1], (number, number))
    played(files[0], Preparation(), cache, kept=True)  # now it is the youngest
    size = sum(file.stat().st_size for file in entries[0].iterdir())
    monkeypatch.setattr(module, "MOST_BYTES", int(2.5 * size))
    played(files[2], Preparation(), cache, kept=False)
    assert entries[0].exists()
    assert not entries[1].exists()


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


FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(SINGLE, max_size=20), st.lists(FINITE, max_size=2))
@example([1.0], [0.1])
@example([-0.0], [])
@example([], [1e39])
@example([1e-45], [1e-46])
@example([16777216.0], [16777217.0])
def test_the_smallest_form_loses_nothing(some: list[float], others: list[float]) -> None:
    values = np.array(some + others, dtype=np.float64)
    small = smallest(values)
    assert small.astype(np.float64).tobytes() == values.tobytes()
    if not others:
        assert small.dtype == np.float32


def read(path: Path) -> tuple[CompactRows, CsrRows]:
    """A file in memory, and its rows as the reader gives them."""
    with open_source(str(path)) as source:
        reader = SvmReader(source, chunk_bytes=10_000)
        compact = gather(reader, reader.traits)
    with open_source(str(path)) as source:
        rows = CsrRows.concatenate([chunk.rows for chunk in SvmReader(source)])
    return compact, rows


DENSE = "".join(f"{2 * (n % 2) - 1} 1:{n % 7} 2:{n / 4} 3:-0\n" for n in range(3000))
SPARSE = "".join(f"{2 * (n % 2) - 1} {1 + n % 900}:1 1000:{n % 5}\n" for n in range(3000))
EMPTY = "+1\n-1\n" * 1000


@pytest.mark.parametrize("text", [DENSE, SPARSE, EMPTY])
@pytest.mark.parametrize("odd", ["", "+1 1:0.1 2:0 3:0\n", "+1 3:0.1\n", "+1\n"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_what_is_taken_is_what_was_read(tmp_path: Path, text: str, odd: str, place: str) -> None:
    """`odd` has a value that float32 lacks, or other columns than the rows of dense data."""
    path = tmp_path / "data.svm"
    path.write_text(odd + text if place == "first" else text + odd)
    compact, rows = read(path)
    assert compact.values.dtype == (np.float64 if "0.1" in odd else np.float32)
    uniform = text is DENSE and odd in ("", "+1 1:0.1 2:0 3:0\n")
    assert (len(compact.columns) < len(compact.values)) == uniform
    order = np.random.default_rng(0).permutation(compact.rounds)
    for chosen in (slice(0, compact.rounds), slice(5, 77), order[:1000]):
        taken = compact.chunk(chosen)
        numbers = np.arange(compact.rounds)[chosen]
        wanted = rows.take(numbers)
        assert taken.rows.values.dtype == np.float64
        assert taken.rows.width == wanted.width
        for name in ("indptr", "columns", "values"):
            assert getattr(taken.rows, name).tobytes() == getattr(wanted, name).tobytes()
        assert taken.lines.tolist() == (numbers + 1).tolist()
