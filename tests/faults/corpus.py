"""The corpus of faults: malformed, hostile and odd files, as many kinds as we could think of.

Each refusal has its kind and its place (`line:column`, from 1); `oddities` are files that look
wrong and must be read as scikit-learn's loader reads them.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

GOOD = b"1 1:0.5 2:1\n-1 2:0.25\n"
"""Lines around a faulty one: it is not the first, and rows were read before it."""


@dataclass(frozen=True)
class Case:
    """A file that `ahpatron run` refuses with 65."""

    name: str
    content: bytes = field(repr=False)
    place: str = ""
    """What stands behind the file's name: `:3:5`, or nothing."""
    options: tuple[str, ...] = ()
    bomb: bool = False
    """It may take 30 s, not 2."""


# kind of the fault, its column -> faulty lines
LINES: dict[tuple[str, int], list[bytes]] = {
    ("label", 1): [
        b"cat 1:2",
        b"1,3 1:2",
        b"0x1A 1:2",
        b"NaN 1:2",
        b"-nan 1:2",
        b"inf 1:2",
        b"1e400 1:2",
        b"-Infinity 1:2",
        b"Infinity",
        b"1_0 1:2",
        b"+ 1:2",
        b"1.2.3 1:2",
        b'"1" 1:2',
        b"1-2",
        b"true 1:2",
        b"1/2 1:2",
        b"--1 1:2",
        b"1; 1:2",
        b"50% 1:2",
        b"2024-01-01 1:2",
        b"(1) 1:2",
        b"e5 1:2",
        b"1,0.5,2",
        b"label,x1,x2",
        b"C:\\data\\x.svm",
        b"svm_type c_svc",
    ],
    ("feature", 3): [
        b"1 1 1:2",
        b"1 1:",
        b"1 :5",
        b"1 5",
        b"1 1:2:3",
        b"1 1 :5",
        b"1 1: 5",
        b"1 1=5",
        b"1 :",
        b"1 1:5,2:6",
        b"1 (1,2)",
        b"1 1:#DIV/0!",
        b"1 1::3",
        b"1\t0.5\t2",
    ],
    ("feature", 7): [b"1 1:1 5", b"1 1:1 ?"],
    ("value", 5): [
        b"1 1:abc",
        b"1 1:NaN",
        b"1 1:inf",
        b"1 1:-inf",
        b"1 1:1e400",
        b"1 1:1_000",
        b"1 1:0x10",
        b"1 1:0,5",
        b"1 1:5;",
        b'1 1:"5"',
        b"1 1:1e",
        b"1 1:.",
        b"1 1:--1",
        b"1 1:5%",
        b"1 1:$5",
        b"1 1:0b1",
        b"1 1:1d5",
        b"1 1:NA",
        b"1 1:None",
        b"1 1:null",
        b"1 1:TRUE",
        b"1 1:?",
        b"1 1:5f",
        b"1 1:1,000.5",
        b"1 1:2-1",
        b"1 1:5e-",
        b"1 1:1.2.3",
        b"1 1:+inf",
        b"1 1:" + b"9" * 1_000_000,
    ],
    ("character", 1): [b"\xd9\xa1 1:2", bytes(range(128, 256)) * 40],
    ("character", 4): [b"1 1\xef\xbc\x9a2"],
    ("character", 5): [b"1 1:\xe2\x88\x9e", b"1 1:\xe2\x88\x925"],
    ("character", 6): [
        b"1 1:2\xc2\xa02:3",
        b"1 1:2\xa02:3",
        b"1 1:2\xe2\x80\x8b",
        b"1 1:2\x0b2:3",
        b"1 1:2\x08",
        b"1 1:2\x7f",
        b"1 1:2\x1b[31mred",
    ],
    ("index", 3): [
        b"1 -1:5",
        b"1 a:5",
        b"1 1.5:5",
        b"1 1_0:5",
        b"1 +1:5",
        b"1 0x1:5",
        b"1 1e1:5",
        b"1 age:30",
    ],
    ("index-order", 7): [
        b"1 3:1 2:1",
        b"1 2:1 2:2",
        b"1 1:1 01:2",
        b"1 1:1 0:1",
        b"1 5:1 " + b"0" * 1_000_000 + b"4:1",
    ],
    ("index-order", 10): [b"1 " + b" ".join(b"%d:1" % i for i in range(3000, 0, -1))],
    ("index-limit", 3): [
        b"1 10000001:1",
        b"1 2000000000:1",
        b"1 99999999999:1",
        b"1 18446744073709551617:1",
        b"1 " + b"9" * 5000 + b":1",
    ],
    ("qid", 3): [b"1 qid:a 1:1"],
    ("qid", 7): [b"1 1:1 qid:3"],
    ("qid", 9): [b"1 qid:1 qid:2 1:1"],
}

FILES: list[tuple[str, str, bytes, int, int]] = [
    ("binary", "utf-16", "1 1:2\n-1 1:3\n".encode("utf-16"), 1, 1),
    ("binary", "utf-16-le", "1 1:2\n-1 1:3\n".encode("utf-16-le"), 1, 2),
    ("binary", "utf-16-be", "1 1:2\n-1 1:3\n".encode("utf-16-be"), 1, 1),
    ("binary", "utf-32", "1 1:2\n-1 1:3\n".encode("utf-32"), 1, 1),
    ("binary", "nul", GOOD + b"1 1:2\0\n" + GOOD, 3, 6),
    ("binary", "nul-in-comment", GOOD + b"1 1:2 # \0\n" + GOOD, 3, 9),
    ("binary", "zeros-at-the-end", GOOD + bytes(4096), 3, 1),
    ("line-end", "cr-only", b"1 1:2\r-1 1:3\r", 1, 6),
    ("line-end", "cr-first", b"\r 1 1:2\n", 1, 1),
    ("line-end", "cr-in-comment", b"# note\r1 1:2\r", 1, 7),
    ("foreign", "html", b"\n<!DOCTYPE html>\n<html>", 2, 1),
    ("foreign", "xml", b"<?xml version='1.0'?>\n", 1, 1),
    ("foreign", "merge-conflict", GOOD + b"<<<<<<< HEAD\n" + GOOD, 3, 1),
    ("foreign", "python-list", GOOD + b"[1, 2, 3]\n" + GOOD, 3, 1),
    ("foreign", "arff", b"@relation iris\n", 1, 1),
    ("foreign", "vowpal-wabbit", b"1 | a:1 b:2\n-1 | a:2\n", 1, 3),
    ("foreign", "vowpal-wabbit-named", b"|f a:1\n", 1, 1),
    ("label", "yaml", b"---\ny: 1\n", 1, 1),
    ("label", "diff", b"--- a/x\n+++ b/x\n", 1, 1),
    ("label", "script", b"#!/bin/sh\necho 1 1:2\n", 2, 1),
    ("label", "log-line", b"2024-01-01 12:00:00 INFO started\n", 1, 1),
    ("label", "a-fault-after-many-blank-lines", b"\n" * 100_000 + b"x\n", 100_001, 1),
    ("value", "a-fault-in-line-20001", b"1 1:2\n-1 1:3\n" * 10_000 + b"1 1:x\n", 20_001, 5),
    ("feature", "a-fault-without-line-end", GOOD + b"1 1:", 3, 3),
    ("feature", "a-fault-after-crlf", b"1 1:2\r\n-1 1:\r\n", 2, 4),
]
"""The kind of the fault, a name, the whole file, line and column of the fault."""

OTHERS = [
    Case("empty", b""),
    Case("only-bom", b"\xef\xbb\xbf"),
    Case("blank-lines", b"\n \t\n\r\n\n"),
    Case("comments", b"# a\n#b\n\n # c"),
    Case("bom-and-comment", b"\xef\xbb\xbf# a\n"),
    Case("csv", b"1,0.5,2\n0,1,2\n", ":1"),
    Case("csv-with-names", b"label,x1,x2\n1,2,3\n", ":1"),
    Case("csv-semicolons", b"1;0.5;2\n", ":1"),
    Case("tsv-with-names", b"age\tjob\ty\n1\t2\t3\n", ":1"),
    Case("json", b'[{"y": 1}]\n', ":1"),
    Case("json-lines", b'{"y": 1, "x": [1, 2]}\n', ":1"),
    Case("not-found", b"404: Not Found", ":1:1"),
    Case("xgboost-groups", b"1:2 1:3\n", ":1:5"),
    Case("matrix-market", b"%%MatrixMarket matrix coordinate real general\n", ":1:1"),
    Case("git-lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", ":1:1"),
    Case("one-class", b"2 1:2\n2 1:3\n"),
    Case("one-class-scaled", b"1 1:2\n1 1:3\n", options=("--scale", "standard")),
    Case("a-short-regression", b"0.5 1:2\n1.5 1:3\n2.5 1:4\n"),
    Case("a-regression", b"".join(b"%d.5 1:2\n" % i for i in range(3000))),
    Case("1001-classes", b"".join(b"%d 1:2\n" % i for i in range(1001)), options=("--shuffle",)),
    Case("squares-that-overflow", GOOD + b"1 1:1e160\n", ":3"),
    Case("infinite", b"1 1:1e308\n-1 1:-1e308\n1 1:1e-308\n", ":1", ("--sigma", "1e-300")),
    Case("unlabelled--shuffle", GOOD + b" 1:2 3:4\n", ":3:2", ("--shuffle",)),
    Case("unlabelled--repeats", GOOD + b"? 1:2\n", ":3:1", ("--repeats", "2")),
    Case("unlabelled-all", b"? 1:2\n1:3\n"),
    Case("no-such-positive", GOOD, options=("--positive", "7")),
    Case("max-features-4", b"1 5:1\n", ":1:3", ("--max-features", "4")),
    Case("a-fault-in-memory", GOOD + b"1 1:x\n", ":3:5", ("--shuffle",)),
]
"""Files with other faults, and options that lead down other ways through the program."""


@cache
def refusals() -> list[Case]:
    """All plain files that are refused with exit code 65."""
    lines = [
        Case(f"{kind}-{column}-{number}", GOOD + line + b"\n" + GOOD, f":3:{column}")
        for (kind, column), lines in LINES.items()
        for number, line in enumerate(lines)
    ]
    files = [Case(name, content, f":{line}:{at}") for _, name, content, line, at in FILES]
    return [*lines, *files, *OTHERS]


# Packed files ------------------------------------------------------------------------------------

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
    gz = PACKERS["gzip"]
    xz = PACKERS["xz"]
    rows = [
        ("zstd", b"\x28\xb5\x2f\xfd\x04\x00", ""),
        ("7z", b"7z\xbc\xaf\x27\x1c\0\4", ":1:7"),
        ("pdf", b"%PDF-1.7\n", ""),
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


# Files that look wrong and are fine ---------------------------------------------------------------

MANY = b"".join(
    b"%d %d:0.%d %d:%d\n" % ((-1) ** (n * n % 7), n % 5 + 1, n * 7919, n % 5 + 7, n % 11)
    for n in range(300)
)


@dataclass(frozen=True)
class Oddity:
    """A file, and what is said about it."""

    name: str
    content: bytes = field(repr=False)
    said: str = ""
    """On stderr; nothing else may be said."""
    positive: float | None = None


NO_LINE_END = "note: the last line has no line end: the file may be incomplete"
QID = "note: qid fields are ignored"


@cache
def oddities() -> list[Oddity]:
    """All of them; `said` is compared without the advice to shuffle sorted labels."""
    gz = PACKERS["gzip"]
    rows = [
        ("crlf", MANY.replace(b"\n", b"\r\n"), ""),
        ("crlf-here-and-there", MANY.replace(b"9\n", b"9\r\n"), ""),
        ("tabs", MANY.replace(b" ", b"\t"), ""),
        ("byte-order-mark", b"\xef\xbb\xbf" + MANY, ""),
        ("byte-order-mark-and-crlf", b"\xef\xbb\xbf" + MANY.replace(b"\n", b"\r\n"), ""),
        ("blank-lines", b"\n\n" + MANY.replace(b"3\n", b"3\n \t\n\n"), ""),
        ("comments", b"# head\n" + MANY.replace(b"5\n", b"5 # five\n#\n"), ""),
        ("glued-comments", MANY.replace(b"5\n", b"5#five\n"), ""),
        ("comments-in-utf-8", MANY.replace(b"5\n", "5 # fünf − ∞\n".encode()), ""),
        ("comments-in-latin-1", MANY.replace(b"5\n", b"5 # f\xfcnf\n"), ""),
        ("comment-of-3-mib", GOOD + b"1 1:1 #".ljust(3 << 20, b"#") + b"\n" + MANY, ""),
        ("spaces-everywhere", MANY.replace(b" ", b"   ").replace(b"\n", b"  \n"), ""),
        ("labels-only", b"1\n-1\n-1\n1\n1\n" * 20, ""),
        ("labels-only-here-and-there", MANY + b"1\n-1\n" * 30, ""),
        ("explicit-zeros", MANY.replace(b":0\n", b":0 20:0 21:-0\n"), ""),
        ("plus-signs", MANY.replace(b"1 ", b"+1 ", 1).replace(b"\n1 ", b"\n+1 "), ""),
        ("labels-spelled-in-many-ways", b"1e0 1:1\n-1 1:2\n+1.0 1:3\n-1.00 1:4\n01 1:5\n" * 9, ""),
        ("minus-zero", b"-0 1:1\n1 1:2\n0 1:3\n0.0 1:4\n" * 20, "0 counts as -1, label 1 as +1"),
        ("zero-and-one", MANY.replace(b"-1 ", b"0 "), "label 0 counts as -1, label 1 as +1"),
        ("one-and-two", MANY.replace(b"-1 ", b"2 "), "label 1 counts as -1, label 2 as +1"),
        ("halves", MANY.replace(b"-1 ", b"-2.5 "), "label -2.5 counts as -1, label 1 as +1"),
        ("huge-labels", MANY.replace(b"-1 ", b"1e300 "), "1 counts as -1, label 1e+300 as +1"),
        ("zero-based", MANY.replace(b" 1:", b" 0:"), "note: feature indices start at 0"),
        ("index-ten-million", b"1 10000000:1\n-1 2:2\n" + MANY, ""),
        ("leading-zeros", MANY.replace(b" 1:", b" 0001:"), ""),
        ("no-final-line-end", MANY[:-1], NO_LINE_END),
        ("qid", MANY.replace(b" ", b" qid:7 ", 1), QID),
        ("qid-everywhere", MANY.replace(b"\n1 ", b"\n1 qid:31 "), QID),
        ("tiny", MANY + b"1 1:1e-400 2:5e-324 3:2.2250738585072014e-308\n-1 1:-1e-320\n", ""),
        ("17-digits", b"1 1:0.1234567890123456789\n-1 1:9007199254740993e-17\n" * 20, ""),
        ("400-digits", (b"1 1:0." + b"3" * 400 + b"\n-1 1:" + b"0" * 400 + b"2\n") * 9, ""),
        ("exponents", b"1 1:1E-1 2:.5 3:5. 4:+5e+0\n-1 1:-5e-1\n" * 20, ""),
        ("gzip", gz(MANY), ""),
        ("gzip-in-three-parts", gz(MANY) * 3, ""),
        ("gzip-with-padding", gz(MANY) + bytes(512), ""),
        ("gzip-with-empty-parts", gz(b"") + gz(MANY) + gz(b""), ""),
        ("gzip-split-in-a-line", gz(MANY[:1000]) + gz(MANY[1000:]), ""),
        ("bzip2", bz2.compress(MANY), ""),
        ("xz", lzma.compress(MANY), ""),
        ("xz-without-check", lzma.compress(MANY, check=lzma.CHECK_NONE), ""),
    ]
    cases = [Oddity(name, content, said) for name, content, said in rows]
    cases.append(Oddity("one-row", b"1 1:2\n", "label 1 counts as +1, every other", 1.0))
    three = MANY + b"3 1:1\n" * 20
    cases.append(Oddity("three-classes", three, "label 3 counts as +1, every other", 3.0))
    return cases
