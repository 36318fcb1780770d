"""The packed part of the corpus: archives of the wrong kind, damaged ones, and bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import cache

from faults.corpus import GOOD, Case

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda text: gzip.compress(text, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@cache
def packed() -> list[Case]:
    """All packed files that are refused."""
    return [*_foreign(), *_damaged(), *_bombs()]


def _foreign() -> list[Case]:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as archive:
        member = tarfile.TarInfo("data.svm")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    tar = inner.getvalue()
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as folder:
        folder.writestr("data.svm", GOOD)
    zipped = inner.getvalue()
    gz, xz = PACKERS["gzip"], PACKERS["xz"]
    rows = [
        ("zstd", b"\x28\xb5\x2f\xfd\x04\x00", ""),
        ("7z", b"7z\xbc\xaf\x27\x1c\0\4", ":1:7"),
        ("pdf", b"%PDF-1.7\n", ":1:1"),
        ("npy", b"\x93NUMPY\x01\0", ""),
        ("hdf5", b"\x89HDF\r\n\x1a\n", ""),
        ("pickle", b"\x80\x04\x95", ":1:1"),
        ("sqlite", b"SQLite format 3\0", ":1:16"),
        ("png", b"\x89PNG\r\n\x1a\n\0", ":1:1"),
        ("program", b"\x7fELF\2\1", ":1:1"),
        ("tar", tar, ":1:9"),
        ("tar-gz", gz(tar), ":1:9"),
        ("tar-xz", xz(tar), ":1:9"),
        ("zip", zipped, ""),
        ("zip-gz", gz(zipped), ""),
        ("gzip-twice", gz(gz(GOOD)), ":1:4"),
        ("xz-in-gzip", gz(xz(GOOD)), ":1:6"),
        ("lzma-alone", lzma.compress(GOOD, format=lzma.FORMAT_ALONE), ":1:2"),
        ("zlib", zlib.compress(GOOD, 0), ":1:5"),
    ]
    for kind, pack in PACKERS.items():
        rows.append((f"{kind}-of-nothing", pack(b""), ""))
        rows.append((f"{kind}-of-a-fault", pack(GOOD + b"1 1:x\n"), ":3:5"))
    return [Case(f"packed-{name}", data, place) for name, data, place in rows]


def _damaged() -> list[Case]:
    cases = []
    for kind, pack in PACKERS.items():
        data = pack(GOOD * 500)
        half = len(data) // 2
        flipped = bytearray(data)
        flipped[half] ^= 4
        for name, content in (
            ("cut", data[:half]),
            ("magic-alone", data[:6]),
            ("second-part-cut", data + data[:half]),
            ("flipped", bytes(flipped)),
            ("then-rubbish", data + b"rubbish"),
            ("then-text", data + GOOD),
        ):
            cases.append(Case(f"packed-{kind}-{name}", content))
    for name, place in (("checksum", -6), ("length", -1)):
        wrong = bytearray(PACKERS["gzip"](GOOD))
        wrong[place] ^= 1
        cases.append(Case(f"packed-gzip-wrong-{name}", bytes(wrong)))
    return cases


def _bombs() -> list[Case]:
    dictionary = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 << 20}]
    rows = _repeated(b"1 1:1\n" * 100_000, 10) + PACKERS["gzip"](b"-1 1:x\n")
    labels = _repeated(b"1\n" * 500_000, 4) + PACKERS["gzip"](b"x\n")
    blanks = _repeated(b"\n" * (1 << 20), 30) + PACKERS["gzip"](b"x\n")
    # a line of nearly 16 MiB that is fine except for its last feature
    line = b"1 " + b" ".join(map(b"%d:1".__mod__, range(1, 1_750_000)))
    # two lines of 15 MiB that are long and fine, then a faulty one
    long = b"1 1:1 #".ljust(15 << 20, b"x") + b"\n"
    bombs = [
        ("line-of-4-gib", _repeated(b"1" * (1 << 20), 4096), ":1:1"),
        ("comment-of-1-gib", _repeated(b"#" * (1 << 20), 1024), ":1:1"),
        ("spaces", _repeated(b" " * (1 << 20), 20), ":1:1"),
        ("spaces-then-x", _repeated(b" " * (1 << 20), 9) + _repeated(b"x\n", 1), ":1:9437185"),
        ("zeros", _repeated(bytes(1 << 20), 1024), ":1:1"),
        ("bzip2", bz2.compress(bytes(45 << 20)), ":1:1"),
        ("rows", rows, ":1000001:6"),
        ("labels", labels, ":2000001:1"),
        ("blank-lines", blanks, ":31457281:1"),
        ("faulty-at-its-end", line + b" 5:1\n", f":1:{len(line) + 2}"),
        ("long-lines", gzip.compress(long + long + b"-1 1:x\n", 1, mtime=0), ":3:6"),
    ]
    return [
        Case("bomb-dictionary", lzma.compress(GOOD, filters=dictionary)),
        *(Case(f"bomb-{name}", content, place, bomb=True) for name, content, place in bombs),
    ]


def _repeated(block: bytes, times: int) -> bytes:
    """A gzip of `times` equal members: made in no time, whatever it unpacks to."""
    return gzip.compress(block, mtime=0) * times
