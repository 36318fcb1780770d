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

# name, first bytes, what they mean
HEADS = [
    ("zstd", b"\x28\xb5\x2f\xfd\x04\x00", "a zstd archive"),
    ("7z", b"7z\xbc\xaf\x27\x1c\0\4", "a 7z archive"),
    ("pdf", b"%PDF-1.7\n", "a PDF document"),
    ("npy", b"\x93NUMPY\x01\0", "a NumPy .npy array"),
    ("parquet", b"PAR1\x15\0", "a Parquet file"),
    ("pickle", b"\x80\x04\x95", "a Python pickle"),
    ("sqlite", b"SQLite format 3\0", "an SQLite database"),
    ("png", b"\x89PNG\r\n\x1a\n\0", "a PNG image"),
    ("program", b"\x7fELF\2\1", "an executable program"),
    ("hdf5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
]


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
        *((name, head, f"this is {what}") for name, head, what in HEADS),
        ("tar", tar, "this is a tar archive"),
        ("tar-gz", gz(tar), "inside the gzip data is a tar archive"),
        ("tar-xz", xz(tar), "inside the xz data is a tar archive"),
        ("zip", zipped, "this is a zip archive"),
        ("zip-gz", gz(zipped), "inside the gzip data is a zip archive"),
        ("gzip-twice", gz(gz(GOOD)), "inside the gzip data is gzip data once more"),
        ("xz-in-gzip", gz(xz(GOOD)), "inside the gzip data is xz data once more"),
    ]
    cases = [Case(f"packed-{name}", data, f"{what}, not LIBSVM text") for name, data, what in rows]
    binary = "this is a binary file, not LIBSVM text"
    lzma_alone = lzma.compress(GOOD, format=lzma.FORMAT_ALONE)
    cases.append(Case("packed-lzma-alone", lzma_alone, binary, ":1:2"))
    cases.append(Case("packed-zlib", zlib.compress(GOOD, 0), binary, ":1:5"))
    for kind, pack in PACKERS.items():
        empty = "there are no rows: the file is empty"
        cases.append(Case(f"packed-{kind}-of-nothing", pack(b""), empty))
        fault = "a value must be a finite decimal number"
        cases.append(Case(f"packed-{kind}-of-a-fault", pack(GOOD + b"1 1:x\n"), fault, ":3:5"))
    return cases


def _damaged() -> list[Case]:
    cases = []
    for kind, pack in PACKERS.items():
        data = pack(GOOD * 500)
        half = len(data) // 2
        flipped = bytearray(data)
        flipped[half] ^= 4
        early = f"the {kind} data end too early"
        more = f"the {kind} data are followed by something else"
        for name, content, problem in (
            ("cut", data[:half], early),
            ("magic-alone", data[:6], early),
            ("second-part-cut", data + data[:half], early),
            ("flipped", bytes(flipped), f"the {kind} data are damaged"),
            ("then-rubbish", data + b"rubbish", more),
            ("then-text", data + GOOD, more),
        ):
            cases.append(Case(f"packed-{kind}-{name}", content, problem))
    for name, place in (("checksum", -6), ("length", -1)):
        wrong = bytearray(PACKERS["gzip"](GOOD))
        wrong[place] ^= 1
        cases.append(Case(f"packed-gzip-wrong-{name}", bytes(wrong), "the gzip data are damaged"))
    return cases


def _bombs() -> list[Case]:
    dictionary = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 << 20}]
    giant = lzma.compress(GOOD, filters=dictionary)
    limit = "a line may hold 16 MiB at most"
    nul = "this is a binary file, not LIBSVM text"
    label, value = (f"a {what} must be a finite decimal number" for what in ("label", "value"))
    rows = _repeated(b"1 1:1\n" * 100_000, 10) + PACKERS["gzip"](b"-1 1:x\n")
    labels = _repeated(b"1\n" * 500_000, 4) + PACKERS["gzip"](b"x\n")
    blanks = _repeated(b"\n" * (1 << 20), 30) + PACKERS["gzip"](b"x\n")
    return [
        Case("bomb-dictionary", giant, "unpacking needs more than 128 MiB of memory"),
        Case("bomb-line-of-4-gib", _repeated(b"1" * (1 << 20), 4096), limit, ":1:1", bomb=True),
        Case("bomb-comment-of-1-gib", _repeated(b"#" * (1 << 20), 1024), limit, ":1:1", bomb=True),
        Case("bomb-zeros", _repeated(bytes(1 << 20), 1024), nul, ":1:1", bomb=True),
        Case("bomb-bzip2", bz2.compress(bytes(45 << 20)), nul, ":1:1", bomb=True),
        Case("bomb-rows", rows, value, ":1000001:6", bomb=True),
        Case(
            "bomb-labels",
            labels,
            label,
            ":2000001:1",
            bomb=True,
        ),
        Case(
            "bomb-blank-lines",
            blanks,
            label,
            ":31457281:1",
            bomb=True,
        ),
        Case("bomb-faulty-at-its-end", *_faulty_at_its_end(), bomb=True),
        Case(
            "bomb-long-lines",
            _long_lines(),
            "a value must be a finite decimal number",
            ":3:6",
            bomb=True,
        ),
    ]


def _repeated(block: bytes, times: int) -> bytes:
    """A gzip of `times` equal members: made in no time, whatever it unpacks to."""
    return gzip.compress(block, mtime=0) * times


def _faulty_at_its_end() -> tuple[bytes, str, str]:
    """A line of nearly 16 MiB that is fine but for its last feature."""
    line = b"1 " + b" ".join(map(b"%d:1".__mod__, range(1, 1_750_000)))
    return line + b" 5:1\n", "feature indices must increase along a line", f":1:{len(line) + 2}"


def _long_lines() -> bytes:
    """Two lines of 15 MiB that are fine but for being long, then a faulty one."""
    line = b"1 1:1 #".ljust(15 << 20, b"x") + b"\n"
    return gzip.compress(line + line + b"-1 1:x\n", 1, mtime=0)
