"""The corpus of faults: malformed, hostile and odd files, as many kinds as we could think of.

`python tests/faults/corpus.py FOLDER` writes them all. Each refusal has its kind and its place
(`line:column`, from 1); `oddities.py` has the files that look wrong and are fine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

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
        *(b"cat 1:2", b"1,3 1:2", b"0x1A 1:2", b"NaN 1:2", b"-nan 1:2", b"inf 1:2", b"1e400 1:2"),
        *(b"-Infinity 1:2", b"Infinity", b"1_0 1:2", b"+ 1:2", b"1.2.3 1:2", b'"1" 1:2', b"1-2"),
        *(b"true 1:2", b"1/2 1:2", b"--1 1:2", b"1; 1:2", b"50% 1:2", b"2024-01-01 1:2"),
        *(b"(1) 1:2", b"e5 1:2", b"1,0.5,2", b"label,x1,x2", b"C:\\data\\x.svm", b"svm_type c_svc"),
    ],
    ("feature", 3): [
        *(b"1 1 1:2", b"1 1:", b"1 :5", b"1 5", b"1 1:2:3", b"1 1 :5", b"1 1: 5", b"1 1=5", b"1 :"),
        *(b"1 1:5,2:6", b"1 (1,2)", b"1 1:#DIV/0!", b"1 1::3", b"1\t0.5\t2"),
    ],
    ("feature", 7): [b"1 1:1 5", b"1 1:1 ?"],
    ("value", 5): [
        *(b"1 1:abc", b"1 1:NaN", b"1 1:inf", b"1 1:-inf", b"1 1:1e400", b"1 1:1_000", b"1 1:0x10"),
        *(b"1 1:0,5", b"1 1:5;", b'1 1:"5"', b"1 1:1e", b"1 1:.", b"1 1:--1", b"1 1:5%", b"1 1:$5"),
        *(b"1 1:0b1", b"1 1:1d5", b"1 1:NA", b"1 1:None", b"1 1:null", b"1 1:TRUE", b"1 1:?"),
        *(b"1 1:5f", b"1 1:1,000.5", b"1 1:2-1", b"1 1:5e-", b"1 1:1.2.3", b"1 1:+inf"),
        b"1 1:" + b"9" * 1_000_000,
    ],
    ("character", 1): [b"\xd9\xa1 1:2", bytes(range(128, 256)) * 40],
    ("character", 4): [b"1 1\xef\xbc\x9a2"],
    ("character", 5): [b"1 1:\xe2\x88\x9e", b"1 1:\xe2\x88\x925"],
    ("character", 6): [
        *(b"1 1:2\xc2\xa02:3", b"1 1:2\xa02:3", b"1 1:2\xe2\x80\x8b", b"1 1:2\x0b2:3"),
        *(b"1 1:2\x08", b"1 1:2\x7f", b"1 1:2\x1b[31mred"),
    ],
    ("index", 3): [
        *(b"1 -1:5", b"1 a:5", b"1 1.5:5", b"1 1_0:5", b"1 +1:5", b"1 0x1:5", b"1 1e1:5"),
        b"1 age:30",
    ],
    ("index-order", 7): [
        *(b"1 3:1 2:1", b"1 2:1 2:2", b"1 1:1 01:2", b"1 1:1 0:1"),
        b"1 5:1 " + b"0" * 1_000_000 + b"4:1",
    ],
    ("index-order", 10): [b"1 " + b" ".join(b"%d:1" % i for i in range(3000, 0, -1))],
    ("index-limit", 3): [
        *(b"1 10000001:1", b"1 2000000000:1", b"1 99999999999:1", b"1 18446744073709551617:1"),
        b"1 " + b"9" * 5000 + b":1",
    ],
    ("qid", 3): [b"1 qid:a 1:1"],
    ("qid", 7): [b"1 1:1 qid:3"],
    ("qid", 9): [b"1 qid:1 qid:2 1:1"],
}

# kind -> name, the whole file, line and column
FILES: dict[str, list[tuple[str, bytes, int, int]]] = {
    "binary": [
        ("utf-16", "1 1:2\n-1 1:3\n".encode("utf-16"), 1, 1),
        ("utf-16-le", "1 1:2\n-1 1:3\n".encode("utf-16-le"), 1, 2),
        ("utf-16-be", "1 1:2\n-1 1:3\n".encode("utf-16-be"), 1, 1),
        ("utf-32", "1 1:2\n-1 1:3\n".encode("utf-32"), 1, 1),
        ("nul", GOOD + b"1 1:2\0\n" + GOOD, 3, 6),
        ("nul-in-comment", GOOD + b"1 1:2 # \0\n" + GOOD, 3, 9),
        ("zeros-at-the-end", GOOD + bytes(4096), 3, 1),
    ],
    "line-end": [
        ("cr-only", b"1 1:2\r-1 1:3\r", 1, 6),
        ("cr-in-comment", b"# note\r1 1:2\r", 1, 7),
    ],
    "foreign": [
        ("html", b"\n<!DOCTYPE html>\n<html>", 2, 1),
        ("xml", b"<?xml version='1.0'?>\n", 1, 1),
        ("merge-conflict", GOOD + b"<<<<<<< HEAD\n" + GOOD, 3, 1),
        ("json", b'[{"y": 1}]\n', 1, 1),
        ("json-lines", b'{"y": 1, "x": [1, 2]}\n', 1, 1),
        ("python-list", GOOD + b"[1, 2, 3]\n" + GOOD, 3, 1),
        ("arff", b"@relation iris\n", 1, 1),
        ("vowpal-wabbit", b"1 | a:1 b:2\n-1 | a:2\n", 1, 3),
        ("vowpal-wabbit-named", b"|f a:1\n", 1, 1),
    ],
    "label": [
        ("yaml", b"---\ny: 1\n", 1, 1),
        ("diff", b"--- a/x\n+++ b/x\n", 1, 1),
        ("script", b"#!/bin/sh\necho 1 1:2\n", 2, 1),
        ("log-line", b"2024-01-01 12:00:00 INFO started\n", 1, 1),
        ("a-fault-after-a-million-blank-lines", b"\n" * 1_000_000 + b"x\n", 1_000_001, 1),
    ],
    "value": [
        ("a-fault-in-line-100001", b"1 1:2\n-1 1:3\n" * 50_000 + b"1 1:x\n", 100_001, 5),
    ],
    "feature": [
        ("a-fault-without-line-end", GOOD + b"1 1:", 3, 3),
        ("a-fault-after-crlf", b"1 1:2\r\n-1 1:\r\n", 2, 4),
    ],
}

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
    Case(
        "infinite-after-scaling",
        b"1 1:1e308\n-1 1:-1e308\n1 1:1e-308\n",
        ":2",
        ("--sigma", "1e-300"),
    ),
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
    """All that are refused with exit code 65, except packed ones."""
    lines = [
        Case(f"{kind}-{column}-{number}", GOOD + line + b"\n" + GOOD, f":3:{column}")
        for (kind, column), lines in LINES.items()
        for number, line in enumerate(lines)
    ]
    files = [
        Case(name, content, f":{line}:{column}")
        for rows in FILES.values()
        for name, content, line, column in rows
    ]
    return [*lines, *files, *OTHERS]


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from faults.oddities import oddities
    from faults.packed import packed

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = [*refusals(), *packed(), *oddities()]
    for case in cases:
        (folder / f"{case.name}.svm").write_bytes(case.content)
    print(f"{len(cases)} files in {folder}")


if __name__ == "__main__":
    main()
