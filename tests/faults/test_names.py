"""File names with markup, escape codes, newlines and stray bytes, through every format.

Real files of these names are run; what is printed is read back by a parser of each format. Nothing
may act: no escape code, no macro, no formula, no cell or line of its own. tests/output has pages.
"""

import csv
import io
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest

from ahpatron_cli.output.escape import visible
from support.command import Ahpatron, Outcome
from support.terminal import in_terminal

NAMES: list[bytes] = [
    *(b"a[/red].svm", b"[bold]x[/bold].svm", b"\x1b[31mred.svm", b"\x1b]0;title\x07.svm"),
    *(b"\x9b31m.svm", b"new\nline.svm", b"return\r.svm", b"\ttab.svm", b"stray\xff\xfebytes.svm"),
    *("right\u202eto left.svm".encode(), "zero\u200bwidth.svm".encode(), b"<script>alert(1)<.svm"),
    *(b'"onload="x".svm', b"&lt;b&gt;.svm", b"=cmd|' C'!A0.svm", b"@SUM(A1).svm", b"+1.svm"),
    *(b"a|b`c`*d*_e_.svm", b"[link](javascript:x).svm", b"\\input{x}.svm", b'comma,quote".svm'),
    *(b"$x$ % & # _ ^ ~ { }.svm", b"{{7*7}} ${x} %s %(x)s.svm", "größe ζ 数.svm".encode()),
]
OPTIONS = ["-B", "4", "-l", "ahpatron", "-l", "perceptron"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    for number, name in enumerate(NAMES):
        write(folder, name, b"1 1:1\n-1 1:2\n1 1:3\n" + b"1 1:%d\n" % number)
    return folder


def write(folder: Path, name: bytes, content: bytes) -> None:
    path = folder / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)  # a closing tag of rich is a folder
    path.write_bytes(content)


def call(folder: Path, *arguments: str | bytes) -> Outcome:
    """A command whose output must be harmless."""
    done = Ahpatron(folder)(*map(os.fsdecode, arguments))
    for character in set(done.out + done.err) - {"\n"}:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), character
    return done


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in texts_in(one)]


def check(format_: str, text: str) -> None:
    """What holds of a text in a format, whatever the names of the files are."""
    if format_ == "table":
        assert all(visible(os.fsdecode(name)).rpartition("/")[2] in text for name in NAMES)
    elif format_ == "json":  # exact: data, not a display
        found = {Path(each).name for each in texts_in(json.loads(text))}
        assert found >= {Path(os.fsdecode(name)).name for name in NAMES}
    elif format_ == "jsonl":
        lines = [json.loads(line) for line in text.splitlines()]
        assert len(lines) >= 2 * len(NAMES)
    elif format_ == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == text.count("\n") == 1 + 2 * len(NAMES)
        assert {len(row) for row in rows} == {len(rows[0])}
        for cell in (cell for row in rows for cell in row):
            numeric = re.fullmatch(r"[+-]?[\d.e+-]+|-?inf", cell)
            assert numeric or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
    elif format_ == "markdown":
        for block in re.split(r"\n\n+", text):
            table = [line for line in block.splitlines() if line.startswith("|")]
            assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table}) <= 1
        assert "<script" not in text.replace("\\<", "")
        assert not re.search(r"(?<!\\)\]\(", text)  # no link
    else:
        assert r"\input" not in text
        assert "$x$" not in text
        body = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
        assert not re.search(r"(?<!\\)%(?!\n)", body)  # no comment swallows the rest of a line
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}")


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "markdown", "latex"])
def test_formats(folder: Path, format_: str) -> None:
    options = [*OPTIONS, "--format", format_]
    paths = [b"./" + name if name[:1] in b"+-" else name for name in NAMES]
    for words in (["run", *options], ["sweep", *options, "--out", "r.jsonl"]):
        done = call(folder, *words, "--", *paths)
        assert done.code == 0, done.err
        check(format_, done.out)


@pytest.mark.parametrize("name", NAMES[:11], ids=repr)
def test_refusals_and_profiles(name: bytes, tmp_path: Path) -> None:
    """A missing file of that name, and one with a fault."""
    done = call(tmp_path, "run", name)
    assert done.code == 66
    assert visible(os.fsdecode(name)) in done.err
    write(tmp_path, name, b"1 1:\x1b[31m\n")
    for command in ("run", "inspect"):
        assert call(tmp_path, command, name).code == 65


def test_a_terminal_is_not_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are ours, the name is not; 40 columns."""
    monkeypatch.chdir(folder)
    text, code = in_terminal("run", os.fsdecode(NAMES[2]), "-B", 4, columns=40)
    assert code == 0
    assert "\x1b[31m" not in text
    assert r"\x1b[31mred.svm" in text.replace("\r\n", "")
