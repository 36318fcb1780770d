"""The corpus of faults: malformed, hostile and odd files, as many kinds as we could think of.

`python tests/faults/corpus.py FOLDER` writes them all. Each refusal has its exit code, its place
(`line:column`, from 1) and its sentence; `oddities.py` has the files that look wrong and are fine.
"""

# ruff: noqa: E501 - the tables below are read by row

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

GOOD = b"1 1:0.5 2:1\n-1 2:0.25\n"
"""Lines around a faulty one: it is not the first, and rows were read before it."""


@dataclass(frozen=True)
class Case:
    """A file, and what `ahpatron run` must say about it."""

    name: str
    content: bytes = field(repr=False)
    problem: str
    place: str = ""
    """What stands behind the file's name: `:3:5`, or nothing."""
    options: tuple[str, ...] = ()
    bomb: bool = False
    """It may take 30 s, not 2."""


# name, the faulty line, column, problem
LABELS = [
    ("word", b"cat 1:2", 1, "a label must be a finite decimal number"),
    ("two", b"1 1 1:2", 3, "a feature must be index:value"),
    ("comma", b"1,3 1:2", 1, "a label must be a finite decimal number"),
    ("hex", b"0x1A 1:2", 1, "a label must be a finite decimal number"),
    ("nan", b"NaN 1:2", 1, "a label must be a finite decimal number"),
    ("minus-nan", b"-nan 1:2", 1, "a label must be a finite decimal number"),
    ("inf", b"inf 1:2", 1, "a label must be a finite decimal number"),
    ("minus-infinity", b"-Infinity 1:2", 1, "a label must be a finite decimal number"),
    ("overflow", b"1e400 1:2", 1, "a label must be a finite decimal number"),
    ("underscore", b"1_0 1:2", 1, "a label must be a finite decimal number"),
    ("sign-alone", b"+ 1:2", 1, "a label must be a finite decimal number"),
    ("version", b"1.2.3 1:2", 1, "a label must be a finite decimal number"),
    ("quoted", b'"1" 1:2', 1, "a label must be a finite decimal number"),
    ("true", b"true 1:2", 1, "a label must be a finite decimal number"),
    ("half", b"1/2 1:2", 1, "a label must be a finite decimal number"),
    ("arabic-digit", b"\xd9\xa1 1:2", 1, "only comments may hold anything else than plain ASCII"),
    ("two-signs", b"--1 1:2", 1, "a label must be a finite decimal number"),
    ("semicolon", b"1; 1:2", 1, "a label must be a finite decimal number"),
    ("percent", b"50% 1:2", 1, "a label must be a finite decimal number"),
    ("date", b"2024-01-01 1:2", 1, "a label must be a finite decimal number"),
    ("brackets", b"(1) 1:2", 1, "a label must be a finite decimal number"),
    ("exponent-only", b"e5 1:2", 1, "a label must be a finite decimal number"),
]

# name, the faulty line, column, problem
FEATURES = [
    ("no-value", b"1 1:", 3, "a feature must be index:value"),
    ("no-index", b"1 :5", 3, "a feature must be index:value"),
    ("no-colon", b"1 5", 3, "a feature must be index:value"),
    ("two-colons", b"1 1:2:3", 3, "a feature must be index:value"),
    ("word", b"1 1:abc", 5, "a value must be a finite decimal number"),
    ("nan", b"1 1:NaN", 5, "a value must be a finite decimal number"),
    ("inf", b"1 1:inf", 5, "a value must be a finite decimal number"),
    ("minus-inf", b"1 1:-inf", 5, "a value must be a finite decimal number"),
    ("overflow", b"1 1:1e400", 5, "a value must be a finite decimal number"),
    ("underscore", b"1 1:1_000", 5, "a value must be a finite decimal number"),
    ("hex", b"1 1:0x10", 5, "a value must be a finite decimal number"),
    ("comma", b"1 1:0,5", 5, "a value must be a finite decimal number"),
    ("space-before", b"1 1 :5", 3, "a feature must be index:value"),
    ("space-after", b"1 1: 5", 3, "a feature must be index:value"),
    ("equals", b"1 1=5", 3, "a feature must be index:value"),
    ("comma-list", b"1 1:5,2:6", 3, "a feature must be index:value"),
    ("semicolon", b"1 1:5;", 5, "a value must be a finite decimal number"),
    ("quoted", b'1 1:"5"', 5, "a value must be a finite decimal number"),
    ("bare-exponent", b"1 1:1e", 5, "a value must be a finite decimal number"),
    ("point", b"1 1:.", 5, "a value must be a finite decimal number"),
    ("two-signs", b"1 1:--1", 5, "a value must be a finite decimal number"),
    ("percent", b"1 1:5%", 5, "a value must be a finite decimal number"),
    ("dollar", b"1 1:$5", 5, "a value must be a finite decimal number"),
    ("binary", b"1 1:0b1", 5, "a value must be a finite decimal number"),
    ("fortran", b"1 1:1d5", 5, "a value must be a finite decimal number"),
    (
        "infinity-sign",
        b"1 1:\xe2\x88\x9e",
        5,
        "only comments may hold anything else than plain ASCII",
    ),
    (
        "unicode-minus",
        b"1 1:\xe2\x88\x925",
        5,
        "only comments may hold anything else than plain ASCII",
    ),
    (
        "no-break-space",
        b"1 1:2\xc2\xa02:3",
        6,
        "only comments may hold anything else than plain ASCII",
    ),
    ("latin-1-space", b"1 1:2\xa02:3", 6, "only comments may hold anything else than plain ASCII"),
    ("NA", b"1 1:NA", 5, "a value must be a finite decimal number"),
    ("None", b"1 1:None", 5, "a value must be a finite decimal number"),
    ("null", b"1 1:null", 5, "a value must be a finite decimal number"),
    ("TRUE", b"1 1:TRUE", 5, "a value must be a finite decimal number"),
    ("question-mark", b"1 1:?", 5, "a value must be a finite decimal number"),
    ("tuple", b"1 (1,2)", 3, "a feature must be index:value"),
    ("suffix", b"1 1:5f", 5, "a value must be a finite decimal number"),
    ("thousands", b"1 1:1,000.5", 5, "a value must be a finite decimal number"),
    ("vertical-tab", b"1 1:2\x0b2:3", 6, "a line must not hold control characters"),
    ("escape", b"1 1:2 \x1b[31mred", 7, "a line must not hold control characters"),
    ("backspace", b"1 1:2\x08", 6, "a line must not hold control characters"),
    ("delete", b"1 1:2\x7f", 6, "a line must not hold control characters"),
    ("only-a-colon", b"1 :", 3, "a feature must be index:value"),
    ("named", b"1 age:30", 3, "a feature index must be a whole number, from 0 on"),
    (
        "zero-width",
        b"1 1:2\xe2\x80\x8b",
        6,
        "only comments may hold anything else than plain ASCII",
    ),
    (
        "full-width-colon",
        b"1 1\xef\xbc\x9a2",
        4,
        "only comments may hold anything else than plain ASCII",
    ),
    ("glued-rows", b"1 1:2-1 1:3", 5, "a value must be a finite decimal number"),
    ("cut-in-exponent", b"1 1:5e-", 5, "a value must be a finite decimal number"),
    ("excel-error", b"1 1:#DIV/0!", 3, "a feature must be index:value"),
    ("million-digits", b"1 1:" + b"9" * 1_000_000, 5, "a value must be a finite decimal number"),
]

# name, the faulty line, column, problem
INDICES = [
    ("negative", b"1 -1:5", 3, "a feature index must be a whole number, from 0 on"),
    ("word", b"1 a:5", 3, "a feature index must be a whole number, from 0 on"),
    ("fraction", b"1 1.5:5", 3, "a feature index must be a whole number, from 0 on"),
    ("underscore", b"1 1_0:5", 3, "a feature index must be a whole number, from 0 on"),
    ("unsorted", b"1 3:1 2:1", 7, "feature indices must increase along a line"),
    ("duplicate", b"1 2:1 2:2", 7, "feature indices must increase along a line"),
    ("over-the-limit", b"1 10000001:1", 3, "feature indices must not exceed 10,000,000"),
    ("two-billion", b"1 2000000000:1", 3, "feature indices must not exceed 10,000,000"),
    ("eleven-digits", b"1 99999999999:1", 3, "feature indices must not exceed 10,000,000"),
    ("plus", b"1 +1:5", 3, "a feature index must be a whole number, from 0 on"),
    ("hex", b"1 0x1:5", 3, "a feature index must be a whole number, from 0 on"),
    ("exponent", b"1 1e1:5", 3, "a feature index must be a whole number, from 0 on"),
    ("two-to-the-64", b"1 18446744073709551617:1", 3, "feature indices must not exceed 10,000,000"),
    ("same-with-zeros", b"1 1:1 01:2", 7, "feature indices must increase along a line"),
    ("zero-last", b"1 1:1 0:1", 7, "feature indices must increase along a line"),
    ("qid-late", b"1 1:1 qid:3", 7, "qid must be a whole number, right after the label"),
    ("qid-word", b"1 qid:a 1:1", 3, "qid must be a whole number, right after the label"),
    ("qid-twice", b"1 qid:1 qid:2 1:1", 9, "qid must be a whole number, right after the label"),
    ("5000-digits", b"1 " + b"9" * 5000 + b":1", 3, "feature indices must not exceed 10,000,000"),
    (
        "million-zeros",
        b"1 5:1 " + b"0" * 1_000_000 + b"4:1",
        7,
        "feature indices must increase along a line",
    ),
    (
        "descending",
        b"1 " + b" ".join(b"%d:1" % i for i in range(3000, 0, -1)),
        10,
        "feature indices must increase along a line",
    ),
]

# name, the whole file, place, problem
FILES = [
    ("empty", b"", "", "there are no rows: the file is empty"),
    ("only-bom", b"\xef\xbb\xbf", "", "there are no rows: the file is empty"),
    ("one-newline", b"\n", "", "there are no rows: the file holds only blank lines"),
    ("blank-lines", b"\n \t\n\r\n\n", "", "there are no rows: the file holds only blank lines"),
    ("comments", b"# a\n#b\n\n # c", "", "there are no rows: the file holds only comments"),
    (
        "bom-and-comment",
        b"\xef\xbb\xbf# a\n",
        "",
        "there are no rows: the file holds only comments",
    ),
    ("empty-gz-of-no-bytes", b"", "", "there are no rows: the file is empty"),
    (
        "utf-16",
        b"\xff\xfe1\x00 \x001\x00:\x002\x00\n\x00-\x001\x00 \x001\x00:\x003\x00\n\x00",
        ":1:1",
        "the text must be ASCII or UTF-8, not UTF-16",
    ),
    (
        "utf-16-le",
        b"1\x00 \x001\x00:\x002\x00\n\x00-\x001\x00 \x001\x00:\x003\x00\n\x00",
        ":1:1",
        "the text must be ASCII or UTF-8, not UTF-16",
    ),
    (
        "utf-16-be",
        b"\x001\x00 \x001\x00:\x002\x00\n\x00-\x001\x00 \x001\x00:\x003\x00\n",
        ":1:1",
        "the text must be ASCII or UTF-8, not UTF-16",
    ),
    (
        "utf-32",
        b"\xff\xfe\x00\x001\x00\x00\x00 \x00\x00\x001\x00\x00\x00:\x00\x00\x002\x00\x00\x00\n\x00\x00\x00-\x00\x00\x001\x00\x00\x00 \x00\x00\x001\x00\x00\x00:\x00\x00\x003\x00\x00\x00\n\x00\x00\x00",
        ":1:1",
        "the text must be ASCII or UTF-8, not UTF-32",
    ),
    (
        "nul",
        b"1 1:0.5 2:1\n-1 2:0.25\n1 1:2\x00\n1 1:0.5 2:1\n-1 2:0.25\n",
        ":3:6",
        "this is a binary file, not LIBSVM text",
    ),
    (
        "nul-in-comment",
        b"1 1:0.5 2:1\n-1 2:0.25\n1 1:2 # \x00\n1 1:0.5 2:1\n-1 2:0.25\n",
        ":3:9",
        "this is a binary file, not LIBSVM text",
    ),
    ("cr-only", b"1 1:2\r-1 1:3\r", ":1:6", "lines must end in LF or CRLF, not in CR alone"),
    ("csv", b"1,0.5,2\n0,1,2\n", ":1:1", "this is CSV, not LIBSVM text"),
    ("csv-with-names", b"label,x1,x2\n1,2,3\n", ":1:1", "this is CSV, not LIBSVM text"),
    ("csv-semicolons", b"1;0.5;2\n", ":1:1", "this is CSV with semicolons, not LIBSVM text"),
    (
        "tsv-with-names",
        b"age\tjob\ty\n1\t2\t3\n",
        ":1:1",
        "this is tab-separated text, not LIBSVM text",
    ),
    ("tsv", b"1\t0.5\t2\n", ":1:3", "a feature must be index:value"),
    ("html", b"<!DOCTYPE html>\n<html>", ":1:1", "this is an HTML or XML page, not LIBSVM text"),
    ("xml", b"<?xml version='1.0'?>\n", ":1:1", "this is an HTML or XML page, not LIBSVM text"),
    ("json", b'[{"y": 1}]\n', ":1:1", "this is JSON, not LIBSVM text"),
    ("json-lines", b'{"y": 1, "x": [1, 2]}\n', ":1:1", "this is JSON, not LIBSVM text"),
    ("arff", b"@relation iris\n", ":1:1", "this is an ARFF file, not LIBSVM text"),
    (
        "matrix-market",
        b"%%MatrixMarket matrix coordinate real general\n",
        "",
        "this is a Matrix Market file, not LIBSVM text",
    ),
    (
        "vowpal-wabbit",
        b"1 | a:1 b:2\n-1 | a:2\n",
        ":1:3",
        "this is Vowpal Wabbit text, not LIBSVM text",
    ),
    ("vowpal-wabbit-named", b"1 |f a:1\n", ":1:3", "this is Vowpal Wabbit text, not LIBSVM text"),
    ("yaml", b"---\ny: 1\n", ":1:1", "a label must be a finite decimal number"),
    (
        "git-lfs",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
        "",
        "this is a Git LFS pointer whose data were not fetched, not LIBSVM text",
    ),
    ("not-found", b"404: Not Found", ":1:1", "a feature must be index:value"),
    (
        "merge-conflict",
        b"1 1:0.5 2:1\n-1 2:0.25\n<<<<<<< HEAD\n1 1:0.5 2:1\n-1 2:0.25\n",
        ":3:1",
        "a merge conflict must be resolved first",
    ),
    ("diff", b"--- a/x\n+++ b/x\n", ":1:1", "a label must be a finite decimal number"),
    ("script", b"#!/bin/sh\necho 1 1:2\n", ":2:1", "a label must be a finite decimal number"),
    (
        "python-list",
        b"1 1:0.5 2:1\n-1 2:0.25\n[1, 2, 3]\n1 1:0.5 2:1\n-1 2:0.25\n",
        ":3:1",
        "this is JSON, not LIBSVM text",
    ),
    (
        "results-file",
        b'{"schema": 1, "kind": "ahpatron sweep results"}\n',
        ":1:1",
        "this is JSON, not LIBSVM text",
    ),
    (
        "libsvm-model",
        b"svm_type c_svc\nkernel_type rbf\n",
        ":1:1",
        "a label must be a finite decimal number",
    ),
    ("xgboost-groups", b"1:2 1:3\n", ":1:5", "feature indices must increase along a line"),
    (
        "log-line",
        b"2024-01-01 12:00:00 INFO started\n",
        ":1:1",
        "a label must be a finite decimal number",
    ),
    ("windows-path", b"C:\\data\\x.svm\n", ":1:1", "a label must be a finite decimal number"),
    ("zeros-at-the-end", GOOD + bytes(4096), ":3:1", "this is a binary file, not LIBSVM text"),
    (
        "random",
        bytes(range(128, 256)) * 40,
        ":1:1",
        "only comments may hold anything else than plain ASCII",
    ),
    (
        "a-fault-in-line-100001",
        b"1 1:2\n-1 1:3\n" * 50_000 + b"1 1:x\n",
        ":100001:5",
        "a value must be a finite decimal number",
    ),
    (
        "a-fault-without-line-end",
        GOOD + b"1 1:",
        ":3:3",
        "a feature must be index:value",
    ),
    (
        "a-fault-after-crlf",
        b"1 1:2\r\n-1 1:\r\n",
        ":2:4",
        "a feature must be index:value",
    ),
    (
        "a-fault-after-a-million-blank-lines",
        b"\n" * 1_000_000 + b"x\n",
        ":1000001:1",
        "a label must be a finite decimal number",
    ),
    (
        "one-class",
        b"1 1:2\n1 1:3\n",
        "",
        "all rows have the same label, 1: there is nothing to learn",
    ),
    (
        "one-class-of-2",
        b"2 1:2\n2 1:3\n",
        "",
        "all rows have the same label, 2: there is nothing to learn",
    ),
    (
        "a-short-regression",
        b"0.5 1:2\n1.5 1:3\n2.5 1:4\n",
        "",
        "3 different labels: 0.5, 1.5, 2.5",
    ),
    (
        "a-regression",
        b"".join(b"%d.5 1:2\n" % i for i in range(3000)),
        "",
        "more than 1000 different labels: 0.5, 1.5, 2.5, 3.5, 4.5, …",
    ),
    ("squares-that-overflow", GOOD + b"1 1:1e160\n", ":3", "round 3 cannot be computed: "),
]

OPTIONS = [
    *(
        Case(f"{name}{option}", GOOD + line, problem, f":3:{column}", options=options)
        for option, options in (("--shuffle", ("--shuffle",)), ("--repeats", ("--repeats", "2")))
        for name, line, column, problem in (
            ("unlabelled", b" 1:2 3:4\n", 2, "a label must be a finite decimal number"),
            ("question-mark", b"? 1:2\n", 1, "a label must be a finite decimal number"),
        )
    ),
    Case("unlabelled-all", b"? 1:2\n1:3\n", "none of 2 rows has a label"),
    Case(
        "no-such-positive",
        GOOD,
        "no row has the label 7 that --positive names",
        options=("--positive", "7"),
    ),
    Case(
        "max-features-4",
        b"1 5:1\n",
        "feature indices must not exceed 4",
        ":1:3",
        options=("--max-features", "4"),
    ),
    Case(
        "a-fault-in-memory",
        GOOD + b"1 1:x\n",
        "a value must be a finite decimal number",
        ":3:5",
        options=("--shuffle",),
    ),
    Case(
        "1001-classes-in-memory",
        b"".join(b"%d 1:2\n" % i for i in range(1001)),
        "1001 different labels: 0, 1, 2, 3, 4, … (1001 in all)",
        options=("--repeats", "2"),
    ),
    Case(
        "one-class-in-memory",
        b"1 1:2\n1 1:3\n",
        "all rows have the same label, 1: there is nothing to learn",
        options=("--scale", "standard"),
    ),
    Case(
        "infinite-after-scaling",
        b"1 1:1e308\n-1 1:-1e308\n1 1:1e-308\n",
        "round ",
        ":2",
        options=("--sigma", "1e-300"),
    ),
]
"""Options that lead down other ways through the program, or that make a fault."""


@cache
def refusals() -> list[Case]:
    """All that are refused with exit code 65, but for packed ones."""
    lines = [
        Case(f"{kind}-{name}", GOOD + line + b"\n" + GOOD, problem, f":3:{column}")
        for kind, table in (("label", LABELS), ("feature", FEATURES), ("index", INDICES))
        for name, line, column, problem in table
    ]
    files = [
        Case(f"file-{name}", content, problem, place) for name, content, place, problem in FILES
    ]
    return [*lines, *files, *OPTIONS]


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
