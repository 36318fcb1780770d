"""Cells: what texts mean, whichever format they come from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.data.cells import (
    Dates,
    category_name,
    days,
    is_plain,
    label_key,
    label_kind,
    number_texts,
)

# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0", "7", "-3", "1.5", "2.0", "1e+16", "1e-07", "100"])
def test_a_number_that_comes_back_unchanged_is_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text", ["007", "1E2", "+1", ".5", "1.50", "9007199254740993", "1_0", "inf", "nan", "x", ""]
)
def test_any_other_text_is_not_plain(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([2.0, 0.5, np.nan]), ["2", "0.5", ""]),
        (np.array([0.1], dtype=np.float32), ["0.1"]),
        (np.array([2**64 - 1], dtype=np.uint64), ["18446744073709551615"]),
        (np.array([2**53 + 1]), ["9007199254740993"]),
    ],
)
def test_whole_numbers_are_written_as_integers_and_all_digits_are_kept(
    values: Any, texts: list[str]
) -> None:
    assert number_texts(values).tolist() == texts


# Dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-02", 1.0),
        ("1970-01-01T12:00:00.5", 0.5 + 0.5 / 86400),
        ("1970-01-01 00:00:00,000000001", 1e-9 / 86400),
        ("1970-01-01T00:00:00.000000001+00:00", 1e-9 / 86400),
        ("1970-01-01T00:00:00.0000000019", 1e-9 / 86400),
        ("1969-12-31T23:00:00Z", -1 / 24),
        ("12:00", 0.5),
        ("06:00:00.250", (21600 + 0.25) / 86400),
    ],
)
def test_dates_have_fractions_down_to_nanoseconds(text: str, found: float) -> None:
    assert days(text) == pytest.approx(found, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("text", ["12:00.5", "2024-02-31", "31.12.2024", "2024-05", "12", ""])
def test_other_texts_are_no_dates(text: str) -> None:
    assert days(text) is None


NANOSECONDS = st.integers(-(2**62), 2**62)


@given(st.lists(NANOSECONDS, min_size=1), st.sampled_from(["s", "ms", "us", "ns"]))
def test_typed_dates_are_the_numbers_of_their_text(moments: list[int], unit: str) -> None:
    """Bit for bit, so that a model does not depend on the format."""
    per_unit = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    values = np.array([one // per_unit for one in moments], dtype=f"datetime64[{unit}]")
    typed = Dates(values, "moment")
    assert typed.days().tolist() == [days(text) for text in typed.texts().tolist()]
    written = pd.Series(values).astype(str).tolist()  # as pandas writes CSV
    assert typed.days().tolist() == [days(text) for text in written]


def test_dates_are_written_in_iso_8601_without_needless_digits() -> None:
    moments = np.array(["2024-05-31T08:30:00.250", "NaT", "2024-05-31"], "datetime64[ms]")
    assert Dates(moments, "moment").texts().tolist() == [
        "2024-05-31T08:30:00.25",
        "",
        "2024-05-31T00:00:00",
    ]
    assert Dates(moments, "moment", has_zone=True).texts().tolist()[0].endswith("08:30:00.25Z")
    assert Dates(moments, "time").texts().tolist() == ["08:30:00.25", "", "00:00:00"]
    assert Dates(moments, "date").texts().tolist() == ["2024-05-31", "", "2024-05-31"]
    assert np.isnan(Dates(moments, "moment").days()).tolist() == [False, True, False]


# Labels and categories ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["0", "1"], "number"),
        (["-1", "+1"], "number"),
        (["-1.0", "1.0"], "number"),
        (["1", "2", "30"], "number"),
        (["0.5", "1.25"], "number"),
        (["1.0", "2.0", "3.0"], "number"),
        (["+1", "+2"], "text"),
        (["007", "012"], "text"),
        (["1E2", "100", "5"], "text"),
        (["9007199254740992", "9007199254740993"], "text"),
        (["00", "01"], "text"),
        (["1", "2", "x"], "text"),
        (["True", "FALSE"], "boolean"),
        (["true", "maybe"], "text"),
        (["2024-05-01", "2024-06-01"], "date"),
        (["no", "yes"], "text"),
    ],
)
def test_labels_are_text_unless_all_of_them_are_something_else(
    labels: list[str], kind: str
) -> None:
    assert label_kind(labels) == kind


def test_labels_of_a_kind_have_several_spellings() -> None:
    assert label_key("+1", "number") == label_key("1.0", "number") == "1"
    assert label_key("TRUE", "boolean") == label_key("true", "boolean") == "True"
    midnight = "2024-05-01 00:00:00"
    assert label_key(midnight, "date") == label_key("2024-05-01", "date") == "2024-05-01"
    assert label_key("007", "number") is None
    assert label_key("007", "text") == "007"


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("1.0", "1"),
        ("01", "01"),
        ("TRUE", "True"),
        ("false", "False"),
        ("2024-05-01 12:00:00.50", "2024-05-01T12:00:00.5"),
        ("2024-05-01T00:00:00Z", "2024-05-01"),
        ("08:30", "08:30:00"),
        ("boss", "boss"),
    ],
)
def test_a_category_has_one_name_in_every_format(cell: str, name: str) -> None:
    assert category_name(cell) == name


def test_a_moment_of_python_has_the_same_text_and_number() -> None:
    moment = datetime(2024, 5, 31, 8, 30, 0, 250_000)
    typed = Dates(np.array([moment], "datetime64[us]"), "moment")
    assert days(moment.isoformat()) == typed.days()[0]
