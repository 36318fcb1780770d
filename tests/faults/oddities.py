"""Files that look wrong and are fine: they must be read as scikit-learn's loader reads them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from dataclasses import dataclass, field
from functools import cache

from faults.corpus import GOOD

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


def _member(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


NO_LINE_END = "note: the last line has no line end: the file may be incomplete"
QID = "note: qid fields are ignored"


@cache
def oddities() -> list[Oddity]:
    """All of them; `said` is compared without the advice to shuffle sorted labels."""
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
        ("comment-of-15-mib", GOOD + b"1 1:1 #".ljust(15 << 20, b"#") + b"\n" + MANY, ""),
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
        (
            "tiny-values",
            MANY + b"1 1:1e-400 2:5e-324 3:2.2250738585072014e-308\n-1 1:-1e-320\n",
            "",
        ),
        ("17-digits", b"1 1:0.1234567890123456789\n-1 1:9007199254740993e-17\n" * 20, ""),
        ("400-digits", (b"1 1:0." + b"3" * 400 + b"\n-1 1:" + b"0" * 400 + b"2\n") * 9, ""),
        ("exponents", b"1 1:1E-1 2:.5 3:5. 4:+5e+0\n-1 1:-5e-1\n" * 20, ""),
        ("gzip", _member(MANY), ""),
        ("gzip-in-three-parts", _member(MANY) * 3, ""),
        ("gzip-with-padding", _member(MANY) + bytes(512), ""),
        ("gzip-with-empty-parts", _member(b"") + _member(MANY) + _member(b""), ""),
        ("gzip-split-in-a-line", _member(MANY[:1000]) + _member(MANY[1000:]), ""),
        ("bzip2", bz2.compress(MANY), ""),
        ("xz", lzma.compress(MANY), ""),
        ("xz-without-check", lzma.compress(MANY, check=lzma.CHECK_NONE), ""),
    ]
    cases = [Oddity(name, content, said) for name, content, said in rows]
    cases.append(Oddity("one-row", b"1 1:2\n", "label 1 counts as +1, every other", 1.0))
    three = MANY + b"3 1:1\n" * 20
    cases.append(Oddity("three-classes", three, "label 3 counts as +1, every other", 3.0))
    return cases
