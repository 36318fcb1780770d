"""Texts from outside made harmless; numbers and counts as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.numbers import counted, mean_count, orders, short
from ahpatron_cli.output.escape import can_encode, encodable, literal, spreadsheet_text


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
    assert encodable("ζ ± a", "latin-1") == r"\u03b6 ± a"
    assert can_encode("±", "latin-1")
    assert not can_encode("±", "ascii")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.31249, 3, "0.312"), (1234567, 3, "1234567"), (math.inf, 6, "inf"), ("keep", 3, "keep")],
)
def test_only_floats_are_rounded(value: float | str, digits: int, text: str) -> None:
    assert short(value, digits) == text


def test_counts_agree_with_their_nouns() -> None:
    assert (counted(1, "round"), counted(1000, "round")) == ("1 round", "1,000 rounds")
    assert (orders(1, True), orders(2, False)) == ("1 permutation", "2 passes in file order")
    assert [mean_count(value) for value in (581.0, 581.26, 12345.6)] == ["581", "581.3", "12346"]
