"""Search in stages: what is run follows from the results alone, and the best survive."""

from collections.abc import Callable

import pytest

from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.records import Outcome, TrialData
from ahpatron_cli.runner import Setup
from ahpatron_cli.sweep.plan import Search, rungs
from ahpatron_cli.sweep.summary import Criterion, summarise_trials
from ahpatron_cli.sweep.trial import Trial
from support.trials import make_trial

ROUNDS = 9000
DATA = TrialData("a.svm", ROUNDS, 2, (-1, 1), "c0ffee")


def grid(settings: int, orders: int = 2) -> list[Trial]:
    tasks = []
    for repeat in range(orders):
        for number in range(1, settings + 1):
            params = {"kernel": "gaussian", "epsilon": number / (settings + 1)}
            setup = Setup("avp", {}, "gaussian", {})
            tasks.append(Trial(DATA, setup, 0, repeat, params, "/a.svm", Preparation()))
    return tasks


def run(
    search: Search, rate: Callable[[Trial], float | None], stop: int | None = None
) -> tuple[dict[str, Outcome], list[Trial]]:
    """Run what is needed until nothing is left, or `stop` trials; results, and trials in order."""
    known: dict[str, Outcome] = {}
    trials: list[Trial] = []
    while left := [task for task in search.needed(known) if task.id not in known]:
        for task in left:
            if len(trials) == stop:
                return known, trials
            known_as = {"params": task.params, "data": task.data}
            made = make_trial("avp", rate(task), task.repeat, **known_as)
            known[task.id] = task.outcome(made.run, made.error)
            trials.append(task)
    return known, trials


def epsilon(task: Trial) -> float:
    return float(task.params["epsilon"])


def rate_of(task: Trial) -> float:
    """Best near 0.7, more clearly so after more rounds."""
    rounds = task.data.prefix or ROUNDS
    return 0.1 + (epsilon(task) - 0.7) ** 2 * rounds / ROUNDS + 0.001 * task.repeat


@pytest.mark.parametrize(
    ("settings", "rounds", "stages"),
    [
        (27, 27_000, [(1000, 9), (3000, 3), (9000, 1)]),
        (25, 9000, [(1000, 9), (3000, 3)]),
        (9, 9000, [(1000, 3), (3000, 1)]),
        (9, 1500, [(500, 3)]),  # shorter prefixes say little
        (9, 1499, []),
        (3, 9000, [(3000, 1)]),
        (2, 9000, []),
        (1, 9000, []),
    ],
)
def test_rungs_of_halving_have_these_settings_and_rounds(
    settings: int, rounds: int, stages: list[tuple[int, int]]
) -> None:
    assert list(rungs(settings, rounds)) == stages


def test_halving_finds_what_the_grid_finds() -> None:
    full = Search(grid(9), Criterion())
    halving = Search(grid(9), Criterion(), halving=True)
    every, _ = run(full, rate_of)
    some, trials = run(halving, rate_of)
    assert len(every) == 18
    prefixes = [task.data.prefix for task in trials]
    assert prefixes == [1000] * 18 + [3000] * 6 + [None] * 2
    (best,), (found,) = (summarise_trials(list(known.values())).datasets for known in (every, some))
    assert found.winner.params == best.winner.params
    assert found.winner.label == best.winner.label == "epsilon=0.7"
    assert found.winner.means == best.winner.means
    assert (found.dropped, best.dropped) == (8, 0)
    assert found.several_settings


@pytest.mark.parametrize("stop", range(0, 26, 3))
def test_a_search_cut_short_goes_on_where_it_was(stop: int) -> None:
    search = Search(grid(9), Criterion(tune_orders=1), halving=True)
    whole, trials = run(search, rate_of)
    known, before = run(search, rate_of, stop)
    assert trials[: len(before)] == before
    left = [task for task in search.needed(known) if task.id not in known]
    assert all(task.id in whole for task in left)
    assert bool(left) == (len(known) < len(whole))


def test_tuning_runs_only_the_best_on_the_other_orders() -> None:
    search = Search(grid(5, orders=3), Criterion(tune_orders=2))
    _, trials = run(search, rate_of)
    assert len(trials) == 5 * 2 + 1
    assert (trials[-1].repeat, epsilon(trials[-1])) == (2, pytest.approx(4 / 6))
    assert len(run(Search(grid(5, orders=3), Criterion()), rate_of)[1]) == 15


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize("tune", [0, 1])
@pytest.mark.parametrize("stop", [0, 12])
def test_a_guess_counts_the_trials_to_come(halving: bool, tune: int, stop: int) -> None:
    search = Search(grid(9), Criterion(tune_orders=tune), halving=halving)
    _, whole = run(search, rate_of)
    known, _ = run(search, rate_of, stop)
    assert len(search.needed(known, guess=True)) == len(whole)


def test_settings_that_fail_are_dropped_first() -> None:
    search = Search(grid(9), Criterion(), halving=True)
    known, trials = run(search, lambda task: None if epsilon(task) < 0.75 else rate_of(task))
    survivors = {epsilon(task) for task in trials if task.data.prefix is None}
    assert survivors == {0.8}
    assert sum(trial.run is None for trial in known.values()) == 14 + 2  # one of the three kept
    nothing, trials = run(search, lambda task: None)
    assert len(trials) == 18 + 6 + 2  # it ends all the same
    assert summarise_trials(list(nothing.values())).datasets == []
