"""Bytes from files, pipes and archives: found by content, hashed, and refused by name."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ahpatron_cli.atomic import exists
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import (
    FOREIGN_FORMATS,
    MAX_LINE,
    Source,
    open_source,
    sound_lines,
)
from ahpatron_cli.errors import ExitCode, UserError

TEXT = b"".join(b"%d %d:0.%d\n" % (n % 2, n % 50 + 1, n * 7919) for n in range(20_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": partial(gzip.compress, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
kinds = pytest.mark.parametrize("kind", PACK)
packed_kinds = pytest.mark.parametrize("kind", [kind for kind in PACK if kind != "plain"])


def write(tmp_path: Path, data: bytes, name: str = "data.svm") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def unpack(path: str, size: int = 4096) -> bytes:
    with open_source(path) as source:
        return b"".join(iter(lambda: source.read1(size), b""))


def refused(path: str, code: ExitCode) -> UserError:
    with pytest.raises(UserError) as caught:
        unpack(path)
    assert caught.value.code is code
    assert caught.value.place is not None
    assert caught.value.place.path == path
    return caught.value


@kinds
@pytest.mark.parametrize("name", ["data.svm", "data.gz", "data.bz2", "data.xz"])
def test_compression_is_found_by_content(tmp_path: Path, kind: str, name: str) -> None:
    path = write(tmp_path, PACK[kind](TEXT), name)
    assert unpack(path) == TEXT
    assert unpack(path, 1 << 24) == TEXT


@packed_kinds
def test_members_are_unpacked_one_after_the_other(tmp_path: Path, kind: str) -> None:
    pack = PACK[kind]
    data = b"".join(pack(TEXT[at : at + 30_000]) for at in range(0, len(TEXT), 30_000))
    data = pack(b"") + data + pack(b"")
    assert unpack(write(tmp_path, data)) == TEXT


@packed_kinds
def test_zeros_behind_the_last_member_are_padding(tmp_path: Path, kind: str) -> None:
    data = PACK[kind](TEXT)
    assert unpack(write(tmp_path, data + bytes(512))) == TEXT


@packed_kinds
def test_a_packed_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path, kind: str) -> None:
    data = PACK[kind](TEXT[:3000])
    for length in {*range(6, 40), *range(40, len(data), 97), len(data) - 1}:
        refused(write(tmp_path, data[:length]), ExitCode.BAD_DATA)


@packed_kinds
def test_flipped_bits_never_give_other_text(tmp_path: Path, kind: str) -> None:
    data = PACK[kind](TEXT[:3000])
    for at in range(len(PACK[kind](b"")) // 2, len(data), 31):
        flipped = bytearray(data)
        flipped[at] ^= 0x10
        path = write(tmp_path, bytes(flipped))
        try:
            assert unpack(path) == TEXT[:3000]  # a flip in a field that means nothing
        except UserError as error:
            problem = error.problem
            assert kind in problem or "MiB of memory" in problem


@packed_kinds
@pytest.mark.parametrize("rubbish", [b"\0\0rubbish", b"r", TEXT])
def test_rubbish_after_the_end_is_refused(tmp_path: Path, kind: str, rubbish: bytes) -> None:
    refused(write(tmp_path, PACK[kind](TEXT) + rubbish), ExitCode.BAD_DATA)


@pytest.mark.parametrize("magic", FOREIGN_FORMATS)
def test_other_formats_are_named(tmp_path: Path, magic: bytes) -> None:
    for data in (magic + b"\x01\x02 and so on", gzip.compress(magic + b"\x01\x02 and so on")):
        error = refused(write(tmp_path, data), ExitCode.BAD_DATA)
        assert FOREIGN_FORMATS[magic][0] in error.problem
        assert error.hint


def test_what_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, TEXT)
    for name in (str(tmp_path), str(Path(path) / "x"), str(tmp_path / ("x" * 300)), ""):
        refused(name, ExitCode.NO_INPUT)
    refused("/proc/self/mem", ExitCode.IO_ERROR)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "ls -l" in str(refused(path, ExitCode.NO_INPUT).hint)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        open_source("-")


class Drip(io.RawIOBase):
    """A file that answers with one byte at a time, and fails or ends after the last."""

    def __init__(self, data: bytes, error: OSError | None = None) -> None:
        self._data = io.BytesIO(data)
        self._error = error

    def read(self, size: int = -1, /) -> bytes:
        data = self._data.read(1)
        if not data and self._error:
            raise self._error
        return data


@kinds
def test_a_failure_in_the_middle_of_a_file_is_reported(kind: str) -> None:
    data = PACK[kind](TEXT)[:2000]
    failing = Drip(data, OSError(5, "Input/output error"))
    with pytest.raises(UserError, match="reading failed: Input/output error") as caught:
        list(SvmReader(Source(failing, "drip", closes=True)))
    assert caught.value.code is ExitCode.IO_ERROR


def test_no_hash_of_a_pipe_that_was_not_read_to_its_end() -> None:
    source = Source(Drip(TEXT), "drip", closes=True)
    source.read1(5000)
    assert source.sha256() is None


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_all_rows_of_a_slow_writer_are_read_and_hashed(kind: str) -> None:
    data = PACK[kind](TEXT)
    receive, send = os.pipe()

    def write_slowly() -> None:
        with os.fdopen(send, "wb", buffering=0) as out:
            for at in range(0, len(data), 40_001):
                out.write(data[at : at + 40_001])
                time.sleep(0.005)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    with Source(os.fdopen(receive, "rb", buffering=0), "pipe", closes=True) as source:
        rows = sum(len(batch.labels) for batch in SvmReader(source, chunk_bytes=50_000))
        assert (rows, source.size, source.waits) == (TEXT.count(b"\n"), None, True)
        assert source.sha256() == hashlib.sha256(data).hexdigest()
    writer.join()


def test_a_folder_that_may_not_be_listed_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for mode in (0o311, 0o000):  # searched but not listed; neither
        folder.chmod(mode)
        with as_somebody(), pytest.raises(UserError) as caught:
            open_source("closed/data.svm")
        assert caught.value.code is ExitCode.NO_INPUT
        with as_somebody():
            assert not exists("closed/data.svm")
    folder.chmod(0o755)


@contextmanager
def as_somebody() -> Iterator[None]:
    """Without the rights of root, whom no folder is closed to."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("chunk_bytes", [1 << 20, 999_983])
@pytest.mark.parametrize("more", [0, 1])
def test_a_line_of_just_16_mib_is_sound_and_one_more_byte_is_not(
    tmp_path: Path, chunk_bytes: int, more: int
) -> None:
    line = b"x" * (MAX_LINE + more)
    path = write(tmp_path, b"a\n" + line + b"\nb\n")
    left_out: list[bytes] = []
    with open_source(path) as opened:
        text = b"".join(sound_lines(opened, chunk_bytes, left_out.append))
    assert text == (b"a\nb\n" if more else b"a\n" + line + b"\nb\n")
    assert len(left_out) == more
