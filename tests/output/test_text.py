"""Texts from outside made harmless; numbers and counts as people read them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ahpatron_cli
from ahpatron_cli.output.escape import ascii_signs, encodable, spreadsheet_text, visible

BEYOND = frozenset("−✗\ufeffòé\xa0€£")
"""Signs in HTML, byte order marks, names of people, spaces in the help until lines are broken, and
currencies in a pattern: none of them is printed in a terminal."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red] żółw ζ̂ C:\\data", "plain [red] żółw ζ̂ C:\\data"),
        ("\x1b[31m\x00\x7f\x9b", r"\x1b[31m\x00\x7f\x9b"),
        ("a\tb\r\n", r"a\tb\r\n"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("a\u202egpj\u2066\u200b\ufeff\u2028", r"a\u202egpj\u2066\u200b\ufeff\u2028"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_literal_shows_what_is_there(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_texts_are_one_harmless_line(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert visible(shown) == shown
    assert spreadsheet_text(text)[:1] not in set("=+-@\t\r\n")


def test_what_an_encoding_does_not_have_is_written_out() -> None:
    assert encodable("ζ ± a ł ─ √T", "latin-1") == r"zeta +- a \u0142 - sqrt(T)"
    assert encodable("ζ ± a ł ─ √T", "utf-8") == "ζ ± a ł ─ √T"


def texts_of(path: Path) -> Iterator[str]:
    """All string constants of a module; `ahpatron learners NAME` shows docstrings, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_sign_of_the_package_has_an_ascii_one() -> None:
    """So that no message is full of escapes in the C locale."""
    package = Path(ahpatron_cli.__file__).parent
    texts = [text for path in package.rglob("*.py") for text in texts_of(path)]
    lost = {sign for text in texts for sign in ascii_signs(text) if not sign.isascii()}
    assert lost <= BEYOND, lost - BEYOND
