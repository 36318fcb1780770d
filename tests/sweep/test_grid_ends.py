"""Best values at the end of their grid, found in trials with made-up mistakes."""

from collections.abc import Mapping
from pathlib import Path

from ahpatron_cli.records import Outcome
from ahpatron_cli.sweep.grid_ends import grid_ends
from ahpatron_cli.sweep.summary import Criterion, summarise_trials
from support.command import Ahpatron
from support.trials import make_trial

STEPS = (0.1, 1.0, 10.0, 100.0)


def trials(learner: str, name: str, rates: Mapping[float, float]) -> list[Outcome]:
    """A trial for each value of a parameter, with the mistake rate it made."""
    return [make_trial(learner, rate, params={name: value}) for value, rate in rates.items()]


def ends(*found: Outcome, tuned: int = 0) -> list[tuple[str, str, bool]]:
    """Learner, parameter and value of the ends that are found, and whether it is the smallest."""
    (summary,) = summarise_trials(found, criterion=Criterion(tune_orders=tuned)).datasets
    every = list(grid_ends(summary))
    return [(end.learner, f"{end.parameter}={end.value}", end.is_smallest) for end in every]


def test_a_best_value_at_either_end_is_found() -> None:
    rising = dict(zip(STEPS, (0.1, 0.2, 0.3, 0.4), strict=True))
    falling = dict(zip(STEPS, (0.4, 0.3, 0.2, 0.1), strict=True))
    found = [*trials("nogd", "step", rising), *trials("fogd", "step", falling)]
    assert sorted(ends(*found)) == [("fogd", "step=100", False), ("nogd", "step=0.1", True)]


def test_a_best_value_inside_is_not_found() -> None:
    inside = dict(zip(STEPS, (0.4, 0.1, 0.2, 0.3), strict=True))
    assert ends(*trials("nogd", "step", inside)) == []


def test_an_end_that_is_as_good_as_a_value_inside_is_not_found() -> None:
    equal = dict(zip(STEPS, (0.1, 0.1, 0.2, 0.3), strict=True))
    assert ends(*trials("nogd", "step", equal)) == []


def test_two_values_have_no_inside() -> None:
    assert ends(*trials("nogd", "step", {0.1: 0.1, 1.0: 0.2})) == []


def test_a_value_that_no_legal_one_exceeds_is_not_found() -> None:
    largest = {0.5: 0.3, 0.7: 0.2, 1.0: 0.1}
    assert ends(*trials("alma2", "alpha", largest)) == []
    smallest = {0.0: 0.1, 0.1: 0.2, 0.3: 0.3}
    assert ends(*trials("budget-perceptron", "threshold", smallest)) == []


def test_whole_numbers_such_as_budgets_are_not_tuned() -> None:
    assert ends(*trials("rbp", "budget", {50: 0.3, 100: 0.2, 200: 0.1})) == []


def test_the_settings_that_were_tuned_count() -> None:
    rising = dict(zip(STEPS, (0.1, 0.2, 0.3, 0.4), strict=True))
    reported = make_trial("nogd", 0.1, 1, params={"step": 0.1})
    assert ends(*trials("nogd", "step", rising), reported, tuned=1) == [("nogd", "step=0.1", True)]


def test_sweep_and_report_warn(ahpatron: Ahpatron, rings: Path) -> None:
    words = (rings, "-l", "krls", "--sigma", "0.25", "--limit", "200", "--shuffle")
    swept = ahpatron.sweep(*words, "-p", "tolerance=0.1,0.5,0.9")
    assert "krls.tolerance=0.1" in swept.err
    assert "krls.tolerance=0.1" in ahpatron.succeed("report", "r.jsonl", "--quiet").err
