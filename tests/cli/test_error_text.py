"""The text of errors: the place, the excerpt, the underline."""

import pickle
from typing import Any

import pytest

from ahpatron_cli.cli.stderr import render_error
from ahpatron_cli.errors import ExitCode, Place, UserError


def shown(problem: str = "it broke", *, hint: str | None = None, **place: Any) -> str:
    where = Place(**place) if place else None
    return render_error(UserError(problem, code=ExitCode.BAD_DATA, place=where, hint=hint))


def underlined(text: str) -> str:
    """The characters above the carets (of a text without wide characters)."""
    source, carets = text.splitlines()[3:5]
    return source[carets.index("^") : carets.rindex("^") + 1]


def test_the_example_of_the_design() -> None:
    text = shown(
        "feature indices must increase along a line",
        path="bad.svm",
        line=17,
        column=10,
        width=6,
        text="-1 3:0.5 2:1.25",
        note="index 2 comes after index 3",
        hint="`ahpatron inspect bad.svm` lists every faulty line",
    )
    assert text == (
        "error: feature indices must increase along a line\n"
        "  --> bad.svm:17:10\n"
        "   |\n"
        "17 | -1 3:0.5 2:1.25\n"
        "   |          ^^^^^^ index 2 comes after index 3\n"
        "\n"
        "hint: `ahpatron inspect bad.svm` lists every faulty line\n"
    )


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"hint": "try again"}, "hint: try again\n"),
        ({"path": "a.svm", "hint": "look"}, "  --> a.svm\n\nhint: look\n"),
        (
            {"path": "a.svm", "line": 3, "text": "1 2", "note": "too short"},
            "  --> a.svm:3\n   |\n 3 | 1 2\n   | too short\n",
        ),
        (
            {"path": "a.svm", "line": 123456, "column": 1, "text": "x"},
            "      --> a.svm:123456:1\n       |\n123456 | x\n       | ^\n",
        ),
        (
            {"path": "a", "line": 1, "column": 4, "text": "1:2", "note": "value missing"},
            "  --> a:1:4\n   |\n 1 | 1:2\n   |    ^ value missing\n",
        ),
        (
            {"path": "a", "line": 1, "column": 6, "width": 2, "text": "数据ζ̂ 据x"},
            "  --> a:1:6\n   |\n 1 | 数据ζ̂ 据x\n   |       ^^^\n",
        ),
    ],
)
def test_what_is_known_of_the_place(parts: dict[str, Any], wanted: str) -> None:
    assert shown(**parts) == "error: it broke\n" + wanted


LETTERS = "".join(chr(ord("a") + number % 26) for number in range(1000))


@pytest.mark.parametrize(
    ("text", "column", "width", "fault"),
    [
        ("+1\t\t 1:x\t2:1", 6, 3, "1:x"),
        ("\x1b\x00+ 1:x", 5, 3, "1:x"),
        *((LETTERS, at, 4, LETTERS[at - 1 : at + 3]) for at in (1, 20, 500, 985)),
        ("1 " + "9" * 5000, 3, 5000, "9" * 74),
    ],
)
def test_the_underline_keeps_its_place(text: str, column: int, width: int, fault: str) -> None:
    excerpt = shown(path="a", line=1, column=column, width=width, text=text)
    assert underlined(excerpt) == fault
    assert "\t" not in excerpt
    assert max(map(len, excerpt.splitlines())) < 95
    cut = excerpt.splitlines()[3]
    assert cut.startswith(" 1 | ...") == (len(text) > 76 and column > 31)
    assert cut.endswith("...") == (len(text) > 76 and column < 950)


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


def test_errors_travel_between_processes() -> None:
    error = UserError("p", code=ExitCode.BAD_DATA, place=Place("a", 3), hint="h", details="d")
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)
