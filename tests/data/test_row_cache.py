"""Rows kept on disk: the stream they give is that of the text, and damage is never trusted."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import CsrRows, Rows, rows_of
from ahpatron_cli.data import cache as decoded
from ahpatron_cli.data.dataset import Facts, Preparation, Stream
from ahpatron_cli.data.row_cache import KeptReader, RecordingReader, kept_reader
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
PIECES = tuple[list[bytes], Facts]
TEXTS = {
    "odd": b"# a comment\n-1 qid:3 0:1.5 7:1e-3\n\n+1\n-1 2:0 900:-0.0\r\n+1 3:4",
    "binary": b"+1 1:1 4:1\n-1 2:1 3:1\n" * 3000,
    "wide": b"+1 5:0.25 9999999:1\n-1 5:1\n" * 2500,
    "labels": b"2 1:1\n1 1:2\n" * 40,
    "no features": b"1\n-1\n" * 200,
}
PREPARATIONS = [Preparation(), Preparation(limit=70), Preparation(scale="unit")]


@pytest.fixture(params=[*TEXTS, "rings.svm", "sparse_text.svm"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param not in TEXTS:
        return SAMPLES / request.param
    file = tmp_path / "data.svm"
    file.write_bytes(TEXTS[request.param])
    return file


def played(path: Path, preparation: Preparation, folder: Path | None, *, kept: bool) -> PIECES:
    """All that a stream gives; `kept` says where its rows have to come from."""
    most = (preparation.max_features, preparation.limit)
    with open_source(str(path)) as source, open_source(str(path)) as again:
        found = kept_reader(source, folder, *most) if folder else None
        assert (found is not None) == kept
        if found is None:
            source = again
        reader = found or (RecordingReader(source, folder, *most) if folder else None)
        stream = Stream(source, preparation, reader)
        parts = []
        for piece in stream:
            for start in range(0, len(piece.labels), BLOCK):  # pieces end where blocks end
                part = slice(start, min(start + BLOCK, len(piece.labels)))
                parts += [*bits(rows_of(piece.rows, part))]
                parts += [piece.labels[part].tobytes(), piece.lines[part].tobytes()]
        return parts, stream.facts()


def bits(rows: Rows) -> list[bytes]:
    if isinstance(rows, CsrRows):
        width = str(rows.width).encode()
        return [rows.indptr.tobytes(), rows.columns.tobytes(), rows.values.tobytes(), width]
    return [rows.tobytes(), str(rows.shape).encode()]


@pytest.mark.parametrize("preparation", PREPARATIONS)
def test_kept_rows_stream_as_the_text_does(
    path: Path, preparation: Preparation, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    plain = played(path, preparation, None, kept=False)
    assert played(path, preparation, cache, kept=False) == plain
    assert played(path, preparation, cache, kept=True) == plain
    assert len(list(cache.iterdir())) == 1


def test_a_name_means_nothing_and_a_date_neither(tmp_path: Path) -> None:
    one, cache = tmp_path / "one.svm", tmp_path / "cache"
    one.write_bytes(b"+1 1:1\n-1 1:2\n")
    os.utime(one, (7, 7))
    played(one, Preparation(), cache, kept=False)
    two = one.rename(tmp_path / "two.svm")
    assert played(two, Preparation(), cache, kept=True)[1].rounds == 2
    two.write_bytes(b"+1 1:1\n-1 1:3\n")
    os.utime(two, (7, 7))
    changed = played(two, Preparation(), None, kept=False)
    assert played(two, Preparation(), cache, kept=False) == changed


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    path, preparation = SAMPLES / "sparse_text.svm", Preparation(limit=300)
    plain = played(path, preparation, tmp_path, kept=False)
    (entry,) = tmp_path.iterdir()
    lots = random.Random(4)
    for name in sorted(file.name for file in entry.iterdir()):
        for _ in range(5):
            content = bytearray((entry / name).read_bytes())
            content[lots.randrange(len(content))] ^= 1 << lots.randrange(8)
            (entry / name).write_bytes(content)
            assert played(path, preparation, tmp_path, kept=False) == plain
        os.truncate(entry / name, 11)
        assert played(path, preparation, tmp_path, kept=False) == plain
        (entry / name).unlink()
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


def test_a_stream_that_is_not_played_to_its_end_leaves_nothing(tmp_path: Path) -> None:
    with open_source(str(SAMPLES / "rings.svm")) as source:
        rows = iter(RecordingReader(source, tmp_path, 10, None))
        next(rows)
        rows.close()  # type: ignore[attr-defined]  # it is a generator
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_is_given_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "MOST_BYTES", 1000)
    with open_source(str(SAMPLES / "rings.svm")) as source:
        rows = iter(RecordingReader(source, tmp_path, 10, None))
        next(rows)
        assert not list(tmp_path.iterdir())
        assert list(rows) == []


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/x"])
def test_where_nothing_can_be_kept_nothing_else_changes(folder: str) -> None:
    path = SAMPLES / "rings.svm"
    plain = played(path, Preparation(), None, kept=False)
    assert played(path, Preparation(), Path(folder), kept=False) == plain


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
    monkeypatch.setattr(decoded, "MOST_BYTES", int(2.5 * size))
    played(files[2], Preparation(), cache, kept=False)
    assert not entry.exists()
    for number, kept in ((1, True), (2, True)):
        played(files[number], Preparation(), cache, kept=kept)
    monkeypatch.setattr(decoded, "MOST_BYTES", size // 2)  # too large for any room
    played(files[0], Preparation(), cache, kept=False)
    assert not entry.exists()
    assert not [file for file in cache.iterdir() if file.name.startswith(".draft")]


def test_rows_are_mapped_and_not_copied(tmp_path: Path) -> None:
    path = SAMPLES / "rings.svm"
    played(path, Preparation(), tmp_path, kept=False)
    with open_source(str(path)) as source:
        reader = kept_reader(source, tmp_path, 10, None)
        assert isinstance(reader, KeptReader)
        values = reader._arrays["values"]
        assert isinstance(values, np.ndarray)
        assert not values.flags.owndata
        assert not values.flags.writeable
