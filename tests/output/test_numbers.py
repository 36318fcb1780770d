"""Numbers and counts as people read them."""

import math

import pytest

from ahpatron_cli.numbers import assignment, counted, mean_count, orders, percent, share, short


@pytest.mark.parametrize(
    ("value", "text"),
    [(581, "581"), (581.0, "581"), (581.26, "581.3"), (999.9, "999.9"), (12345.6, "12346")],
)
def test_means_of_counts_have_tenths_below_1000(value: float, text: str) -> None:
    assert mean_count(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.31249, 3, "0.312"),
        (1.5e160, 3, "1.5e+160"),
        (1e-3 / math.sqrt(7), 6, "0.000377964"),
        (1234567, 3, "1234567"),
        (math.inf, 6, "inf"),
        ("keep", 3, "keep"),
    ],
)
def test_only_floats_are_rounded(value: float | str, digits: int, text: str) -> None:
    assert short(value, digits) == text


def test_rates_shares_and_parameters() -> None:
    assert (percent(0.0725), percent(0.1), share(0.3449)) == ("7.25", "10.00", "34.5 %")
    assert (assignment("epsilon", 0.1 + 0.2), assignment("budget", 400)) == (
        "epsilon=0.3",
        "budget=400",
    )


def test_counts_agree_with_their_nouns() -> None:
    assert (counted(1, "round"), counted(1000, "round")) == ("1 round", "1,000 rounds")
    assert (orders(1, True), orders(10, True)) == ("1 permutation", "10 permutations")
    assert (orders(1, False), orders(2, False)) == (
        "1 pass in file order",
        "2 passes in file order",
    )
