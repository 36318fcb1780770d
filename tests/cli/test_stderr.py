"""Messages on stderr: errors with their place, notes, and the progress line on terminals."""

import io
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pexpect
import pytest

from ahpatron_cli.cli.stderr import Stderr, render_error
from ahpatron_cli.errors import ExitCode, Place, UserError
from support.command import Ahpatron

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def shown(problem: str = "it broke", *, hint: str | None = None, **place: Any) -> str:
    where = Place(**place) if place else None
    return render_error(UserError(problem, code=ExitCode.BAD_DATA, place=where, hint=hint))


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"hint": "try again"}, "hint: try again\n"),
        ({"path": "a.svm", "hint": "look"}, "  --> a.svm\n\nhint: look\n"),
        (
            {"path": "a.svm", "line": 123456, "column": 1, "text": "x", "note": "letter"},
            "      --> a.svm:123456:1\n       |\n123456 | x\n       | ^ letter\n",
        ),
        (
            {"path": "a", "line": 1, "column": 6, "width": 2, "text": "数据ζ̂ 据x"},
            "  --> a:1:6\n   |\n 1 | 数据ζ̂ 据x\n   |       ^^^\n",
        ),
    ],
)
def test_an_error_has_place_excerpt_and_hint(parts: dict[str, Any], wanted: str) -> None:
    """A whole one is in docs/data.md."""
    assert shown(**parts) == "error: it broke\n" + wanted


LETTERS = "".join(chr(ord("a") + number % 26) for number in range(1000))


@pytest.mark.parametrize(
    ("text", "column", "width", "fault"),
    [
        ("+1\t\t 1:x\t2:1", 6, 3, "1:x"),
        ("\x1b\x00+ 1:x", 5, 3, "1:x"),
        *((LETTERS, at, 4, LETTERS[at - 1 : at + 3]) for at in (1, 500, 985)),
        ("1 " + "9" * 5000, 3, 5000, "9" * 74),
    ],
)
def test_the_underline_keeps_its_place(text: str, column: int, width: int, fault: str) -> None:
    excerpt = shown(path="a", line=1, column=column, width=width, text=text)
    source, carets = excerpt.splitlines()[3:5]
    assert source[carets.index("^") : carets.rindex("^") + 1] == fault
    assert "\t" not in excerpt
    assert max(map(len, excerpt.splitlines())) < 95
    assert source.startswith(" 1 | ...") == (len(text) > 76 and column > 31)
    assert source.endswith("...") == (len(text) > 76 and column < 950)


def test_everything_from_outside_is_literal() -> None:
    text = shown(
        "bad \x1b[2J\nhint: run rm",
        path="\x1b]0;\udcff\u202e.svm",
        line=1,
        column=1,
        text="\x1b[31m\r\n",
        note="\x07",
        hint="\x9b",
    )
    assert text.isascii()
    assert "\x1b" not in text
    assert text.startswith(r"error: bad \x1b[2J\nhint: run rm")
    assert r"--> \x1b]0;\xff\u202e.svm:1:1" in text
    stream = io.StringIO()
    Stderr(stream=stream).note("[red]a\x1b[31m.svm\n")
    assert stream.getvalue() == "note: [red]a\\x1b[31m.svm\\n\n"


@pytest.mark.parametrize(
    ("quiet", "verbose", "wanted"),
    [
        (False, 0, "note: a note\nwarning: a warning\nerror: it broke\n"),
        (True, 2, "warning: a warning\nerror: it broke\n"),
        (False, 1, rf"note: a note\nwarning: {TIME} a warning\na detail\nerror: it broke\n"),
    ],
)
def test_quiet_and_verbose_decide_which_messages_are_written(
    quiet: bool, verbose: int, wanted: str
) -> None:
    stream = io.StringIO()
    stderr = Stderr(quiet, verbose, stream)
    stderr.note("a note")
    stderr.warn("a warning")
    stderr.detail("a detail")
    stderr.error(UserError("it broke", code=ExitCode.BAD_DATA))
    assert re.fullmatch(wanted, stream.getvalue())


SCRIPT = textwrap.dedent("""
    import sys, time
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.errors import UserError
    total = None if sys.argv[1] == "unknown" else 10
    stderr = Stderr(quiet=sys.argv[1] == "quiet")
    with stderr.progress(total, "da[ta].svm") as show:
        for completed in range(1, 11):
            time.sleep(0.11)
            show(completed, f"{completed * 200:,} rounds", "12.50 % mistakes")
            if completed == 5:
                stderr.note("half [of] it")
    stderr.error(UserError("done"))
""")


def on_a_terminal(mode: str, columns: int) -> str:
    surroundings = {"TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = f"{sys.executable} -c '{SCRIPT}' {mode}"
    options = {"env": {**os.environ, **surroundings}, "dimensions": (24, columns)}
    return str(pexpect.run(command, timeout=120, **options).decode())


def test_the_progress_line_is_redrawn_cut_and_cleared() -> None:
    screen = on_a_terminal("known", 120)
    drawn = [line for line in screen.split("\r\x1b[K") if "da[ta].svm" in line]
    assert len(drawn) <= 12  # a message draws it again
    assert any(line.startswith(" 50%  1,000 rounds  12.50 % mistakes  0:") for line in drawn)
    assert "\r\x1b[Knote: half [of] it\r\n" in screen
    assert screen.endswith("\r\x1b[Kerror: done\r\n")  # the line is cleared
    narrow = on_a_terminal("unknown", 40)
    assert "\r\x1b[K1,000 rounds  12.50 % mistakes  0:" in narrow
    assert "%  1," not in narrow


def test_quiet_hides_notes_and_no_learner_that_is_left_out(ahpatron: Ahpatron) -> None:
    """On a pipe T is unknown, which pomdr requires; labels 0 and 1 are worth a note only."""
    words = ("run", "-", "-l", "pomdr", "-l", "ahpatron")
    rows = b"0 1:1\n1 1:2\n" * 20
    assert "note: label 0 counts as -1" in ahpatron.succeed(*words, stdin=rows).err
    quiet = ahpatron.succeed(*words, "-q", stdin=rows)
    assert re.fullmatch("warning: .*left out: pomdr\n", quiet.err)


def test_quiet_hides_no_rise_of_the_mistake_rate(ahpatron: Ahpatron, rings: Path) -> None:
    lines = rings.read_text().splitlines(keepends=True)[:600]
    flipped = ["1" + line[2:] if line.startswith("-1") else "-1" + line[1:] for line in lines]
    ahpatron.write("d.svm", "".join([*lines, *flipped]))
    quiet = ahpatron.succeed("run", "d.svm", "--sigma", 0.1, "--window", 50, "-q")
    assert re.search("^warning: .*ahpatron: the mistake rate rose", quiet.err, re.MULTILINE)
