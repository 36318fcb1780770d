"""File names with markup, escape codes, newlines and stray bytes, through every renderer.

Real files of these names are played; what comes out is read back by a parser of
each format. Nothing may act: no escape code, no tag, no macro, no formula, no cell or line of its
own.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ahpatron_cli.output.escape import literal
from support.command import Ahpatron, Outcome
from support.terminal import in_terminal

NAMES: list[bytes] = [
    b"a[/red].svm",
    b"data[train].svm",
    b"[bold]x[/bold].svm",
    b"\x1b[31mred.svm",
    b"\x1b]0;title\x07.svm",
    b"\x9b31m.svm",
    b"new\nline.svm",
    b"return\r.svm",
    b"\ttab.svm",
    b"stray\xff\xfebytes.svm",
    "right\u202eto left.svm".encode(),
    "zero\u200bwidth.svm".encode(),
    b"<script>alert(1)<.svm",
    b'"onload="x".svm',
    b"<img src=x onerror=alert(1)>.svm",
    b"&lt;b&gt;.svm",
    b"=cmd|' C'!A0.svm",
    b"@SUM(A1).svm",
    b"+1.svm",
    b"a|b`c`*d*_e_.svm",
    b"[link](javascript:x).svm",
    b"\\input{x}.svm",
    b"$x$ % & # _ ^ ~ { }.svm",
    b'comma,quote".svm',
    b"'; drop.svm",
    b"{{7*7}} ${x} %s %(x)s.svm",
    "größe ζ 数.svm".encode(),
]
SHOWN = [literal(os.fsdecode(name)) for name in NAMES]
OPTIONS = ["-B", "4", "-l", "ahpatron", "-l", "perceptron"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    for number, name in enumerate(NAMES):
        text = b"1 1:1\n-1 1:2\n1 1:3\n" + b"1 1:%d\n" % number
        write(folder, name, text)
    return folder


def write(folder: Path, name: bytes, content: bytes) -> None:
    path = folder / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)  # a closing tag of rich is a folder
    path.write_bytes(content)


def told(folder: Path, *arguments: str | bytes) -> str:
    """What a command writes, which must be harmless."""
    done = call(folder, *arguments)
    assert done.code == 0, done.err
    for text in (done.out, done.err):
        assert_harmless(text)
    return done.out


def call(folder: Path, *arguments: str | bytes) -> Outcome:
    return Ahpatron(folder)(*map(os.fsdecode, arguments))


def assert_harmless(text: str) -> None:
    for character in set(text) - {"\n"}:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), repr(
            character
        )


@pytest.fixture(scope="module", params=["run", "sweep"])
def commands(request: pytest.FixtureRequest) -> list[str | bytes]:
    """One command over all the files, up to its format."""
    if request.param == "run":
        return [
            "run",
            *OPTIONS,
            "--",
            *(b"./" + name if name[:1] in b"+-" else name for name in NAMES),
        ]
    return ["sweep", *OPTIONS, "--out", "r.jsonl", "--", *NAMES]


def in_format(folder: Path, commands: list[str | bytes], kind: str) -> str:
    return told(folder, commands[0], "--format", kind, *commands[1:])


def test_table(folder: Path, commands: list[str | bytes]) -> None:
    text = in_format(folder, commands, "table")
    for name in SHOWN:
        assert name.rpartition("/")[2] in text


def test_json(folder: Path, commands: list[str | bytes]) -> None:
    content = json.loads(in_format(folder, commands, "json"))
    found = {Path(text).name for text in texts_in(content)}
    assert found >= {Path(os.fsdecode(name)).name for name in NAMES}  # exact: data, not a display


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in texts_in(one)]


def test_jsonl(folder: Path, commands: list[str | bytes]) -> None:
    lines = in_format(folder, commands, "jsonl").splitlines()
    assert len(lines) >= 2 * len(NAMES)
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_csv(folder: Path, commands: list[str | bytes]) -> None:
    text = in_format(folder, commands, "csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == text.count("\n") == 1 + 2 * len(NAMES)
    assert {len(row) for row in rows} == {len(rows[0])}
    for row in rows:
        for cell in row:
            numeric = re.fullmatch(r"[+-]?[\d.e+-]+|-?inf", cell)
            assert numeric or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


def test_markdown(folder: Path, commands: list[str | bytes]) -> None:
    text = in_format(folder, commands, "markdown")
    for block in re.split(r"\n\n+", text):
        table = [line for line in block.splitlines() if line.startswith("|")]
        bars = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table}
        assert len(bars) <= 1
    assert "<script" not in text.replace("\\<", "")
    assert not re.search(r"(?<!\\)\]\(", text)  # no link


def test_latex(folder: Path, commands: list[str | bytes]) -> None:
    text = in_format(folder, commands, "latex")
    assert r"\input" not in text
    assert "$x$" not in text
    body = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)%(?!\n)", body)  # a comment would swallow the rest of the line
    assert text.count(r"\begin{") == text.count(r"\end{")
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")


class Page(HTMLParser):
    """The tags, attributes and words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {
            value or "" for name, value in attrs if name in ("href", "src", "xlink:href")
        }

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_report(folder: Path) -> None:
    arguments = ["sweep", *OPTIONS, "--out", "page.jsonl", "--report", "page.html", "--", *NAMES]
    told(folder, *arguments)
    text = (folder / "page.html").read_text()
    assert_harmless(text)
    page = Page()
    page.feed(text)
    assert not page.tags & {"script", "iframe", "object", "embed", "link", "base", "form"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in page.links)
    for name in SHOWN:
        assert name.rpartition("/")[2] in page.words


@pytest.mark.parametrize("name", NAMES[:12], ids=repr)
def test_refusals_and_notes(folder: Path, name: bytes, tmp_path: Path) -> None:
    """A missing file of that name, and one with a fault."""
    done = call(tmp_path, "run", name)
    assert done.code == 66
    assert_harmless(done.err)
    assert literal(os.fsdecode(name)) in done.err
    write(tmp_path, name, b"1 1:\x1b[31m\n")
    done = call(tmp_path, "run", name)
    assert done.code == 65
    assert_harmless(done.err)


def test_a_terminal_is_not_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are ours, the name is not; 40 columns."""
    monkeypatch.chdir(folder)
    text, code = in_terminal("run", os.fsdecode(NAMES[3]), "-B", 4, columns=40)
    assert code == 0
    assert "\x1b[31m" not in text
    assert r"\x1b[31mred.svm" in text.replace("\r\n", "")
