import pickle
from typing import Any

import pytest

from ahpatron_cli.cli.stderr import render_error
from ahpatron_cli.errors import ExitCode, Place, UserError


def shown(
    problem: str = "it broke", *, colour: bool = False, hint: str | None = None, **place: Any
) -> str:
    where = Place(**place) if place else None
    error = UserError(problem, code=ExitCode.BAD_DATA, place=where, hint=hint)
    return render_error(error, colour=colour)


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


def test_the_underline_counts_wide_and_combining_characters() -> None:
    text = shown(path="a.svm", line=1, column=6, width=2, text="数据ζ̂ 据x")
    assert text.splitlines()[4] == "   | " + " " * 6 + "^" * 3


def test_without_a_place() -> None:
    assert shown(hint="try again") == "error: it broke\nhint: try again\n"


def test_with_a_file_only() -> None:
    assert shown(path="a.svm", hint="look") == "error: it broke\n  --> a.svm\n\nhint: look\n"


def test_a_line_without_a_column() -> None:
    assert shown(path="a.svm", line=3, text="1 2", note="too short") == (
        "error: it broke\n  --> a.svm:3\n   |\n 3 | 1 2\n   | too short\n"
    )


def test_the_gutter_grows_with_the_line_number() -> None:
    assert shown(path="a.svm", line=123456, column=1, text="x") == (
        "error: it broke\n      --> a.svm:123456:1\n       |\n123456 | x\n       | ^\n"
    )


def test_tabs_keep_the_caret_in_place() -> None:
    text = shown(path="a", line=1, column=6, width=3, text="+1\t\t 1:x\t2:1")
    assert underlined(text) == "1:x"
    assert "\t" not in text


def test_a_control_character_keeps_the_caret_in_place() -> None:
    text = shown(path="a", line=1, column=5, width=3, text="\x1b\x00+ 1:x")
    assert r"\x1b\x00+ 1:x" in text
    assert underlined(text) == "1:x"


def test_wide_and_combining_characters_keep_the_caret_in_place() -> None:
    text = shown(path="a", line=1, column=5, text="数据e\u0301x")
    assert text.splitlines()[4] == "   | " + " " * 5 + "^"


def test_a_fault_at_the_end_of_the_line() -> None:
    text = shown(path="a", line=1, column=4, text="1:2", note="value missing")
    assert text.splitlines()[4] == "   |    ^ value missing"


@pytest.mark.parametrize("column", [1, 20, 500, 985, 1000])
def test_a_long_line_is_cut_around_the_fault(column: int) -> None:
    line = "".join(chr(ord("a") + number % 26) for number in range(1000))
    text = shown(path="a", line=1, column=column, width=4, text=line)
    assert max(map(len, text.splitlines())) < 95
    assert underlined(text) == line[column - 1 : column + 3]


def test_a_cut_is_marked_on_both_sides() -> None:
    text = shown(path="a", line=1, column=500, text="x" * 1000)
    assert text.splitlines()[3].startswith(" 1 | ...x")
    assert text.splitlines()[3].endswith("x...")


def test_a_huge_token_is_underlined_as_far_as_it_is_shown() -> None:
    text = shown(path="a", line=1, column=3, width=5000, text="1 " + "9" * 5000)
    assert set(underlined(text)) == {"9"}
    assert len(text) < 400


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


def test_colour_changes_nothing_but_colour() -> None:
    place = {"path": "a", "line": 1, "column": 1, "text": "x", "note": "here"}
    coloured = shown(colour=True, hint="look", **place)
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;34m"):
        assert code in coloured
        coloured = coloured.replace(code, "")
    assert coloured == shown(hint="look", **place)


def test_errors_travel_between_processes() -> None:
    for hint in (None, "try this"):
        error = UserError("p", code=ExitCode.BAD_DATA, place=Place("a", 3), hint=hint, details="d")
        again = pickle.loads(pickle.dumps(error))
        assert vars(again) == vars(error)
