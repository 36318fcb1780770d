"""Estimates of the time of sweeps, from times that were made up, and from a few rounds."""

import re
from pathlib import Path

import pytest

from ahpatron_cli.sweep import estimate
from ahpatron_cli.sweep.estimate import Prefix, growing_time, steady_time
from support.command import Ahpatron

LENGTHS = (250, 500, 1000, 2000, 4000, 8000)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_time_that_grows_as_a_power_of_the_rounds_is_found(power: int) -> None:
    measured = [Prefix(length, (length / 8000) ** power) for length in LENGTHS]
    found = growing_time(measured, 20_000)
    assert found.seconds == pytest.approx(2.5**power)
    assert found.is_known


def test_times_of_projectron_are_estimated_within_a_factor_of_two() -> None:
    """As measured on a9a: 0.7, 4.0 and 33.6 s for 5, 10 and 20 thousand rows."""
    measured = [Prefix(2500, 0.13), Prefix(5000, 0.7), Prefix(10_000, 4.0)]
    assert 33.6 / 2 < growing_time(measured, 20_000).seconds < 33.6 * 2


def test_a_growing_time_far_ahead_is_unknown() -> None:
    measured = [Prefix(length, (length / 8000) ** 3) for length in LENGTHS]
    assert not growing_time(measured, 100_000).is_known


def test_an_unknown_time_counts_the_rounds_to_come_as_if_s_grew_no_more() -> None:
    measured = [Prefix(length, (length / 8000) ** 3) for length in LENGTHS]
    measured_rounds = LENGTHS[-1]
    slowest_so_far = (1.0 - 0.5**3) / (measured_rounds / 2)  # seconds per round
    rounds = 100_000
    no_more_growth = 1.0 + (rounds - measured_rounds) * slowest_so_far
    assert growing_time(measured, rounds).seconds == pytest.approx(no_more_growth)


def test_a_time_that_hardly_grows_is_known_far_ahead() -> None:
    measured = [Prefix(length, length / 8000) for length in LENGTHS]
    assert growing_time(measured, 1_000_000).is_known


def test_a_single_prefix_does_not_show_how_a_time_grows() -> None:
    assert not growing_time([Prefix(1000, 1.5)], 2000).is_known


def test_a_trial_that_was_measured_to_its_end_is_known() -> None:
    assert growing_time([Prefix(250, 0.1)], 250) == (0.1, True)


def test_the_last_rounds_count_if_they_were_slower() -> None:
    assert steady_time([Prefix(1000, 1.0), Prefix(2000, 3.0)], 10_000) == 3.0 + 8000 * 2.0 / 1000
    assert steady_time([Prefix(1000, 1.0)], 10_000) == 10.0


def test_a_dry_run_says_what_it_cannot_estimate(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "MEASURED_SECONDS", 0.0)  # one prefix of 250 rounds
    done = ahpatron.sweep(rings, "-l", "perceptron", "-l", "rbp", "--dry-run")
    assert "at least" in done.out
    assert f"perceptron on {rings}" in done.out
    assert "rbp" not in done.out


def test_the_time_of_many_settings_is_estimated_from_a_few(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.sweep(rings, "-l", "rbp", "-g", "budget=5,10,20,40,80", "--dry-run")
    assert "5 trials" in done.out
    assert re.search(r"about .+ s", done.out)
