"""Texts from outside made harmless; numbers and counts as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.output.escape import encodable, literal, spreadsheet_text


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
    assert literal(text) == shown


@given(st.text())
def test_texts_are_one_harmless_line(text: str) -> None:
    shown = literal(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert literal(shown) == shown
    assert spreadsheet_text(text)[:1] not in set("=+-@\t\r\n")


def test_what_an_encoding_does_not_have_is_written_out() -> None:
    assert encodable("ζ ± a ł ─ √T", "latin-1") == r"zeta +- a \u0142 - sqrt(T)"
    assert encodable("ζ ± a ł ─ √T", "utf-8") == "ζ ± a ł ─ √T"
