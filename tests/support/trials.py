"""Runs, trials and sweeps with made-up numbers, for tests of what is stored, found and shown."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from ahpatron_cli.records import DataRecord, Outcome, ParamValue, RunDocument, RunRecord, TrialData
from ahpatron_cli.sweep.summary import SweepSummary, summarise_trials

BUDGETS = (50, 100, 200, 400, 800)
FIVE = ("ahpatron", "pomdr", "nogd", "bogd++", "perceptron")
FOURTEEN = (
    *FIVE,
    "avp",
    "alma2",
    "forgetron",
    "rbp",
    "projectron",
    "projectron++",
    "bogd",
    "fogd",
    "skegd",
)
WITHOUT_BUDGET = frozenset({"perceptron", "avp", "alma2", "projectron", "projectron++"})
ORIGIN = {"version": "0.2.0", "numpy": "2.1.0", "blas": "openblas", "command": "ahpatron sweep a"}


def make_run(learner: str = "ahpatron", **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "learner": learner,
        "params": {"budget": 400, "epsilon": 0.5},
        "seed": 0,
        "repeat": 0,
        "rounds": 1000,
        "mistakes": 112,
        "margin_updates": 50,
        "updates": 162,
        "halvings": 3,
        "zeta": 0.01234,
        "support_size": 314,
        "norm": 1.5,
        "near_ties": 0,
        "seconds": 0.0512,
    } | changes
    return convert(fields | {"mistake_rate": fields["mistakes"] / fields["rounds"]}, RunRecord)


def make_perceptron(**changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "learner": "perceptron",
        "params": {"sigma": 1.0},
        "halvings": None,
        "zeta": None,
        "support_size": 2325,
        "mistakes": 140,
        "margin_updates": 0,
    }
    return make_run(**(fields | changes))


def make_document(
    *runs: RunRecord, path: str = "a.svm", labels: tuple[float, ...] = (-1, 1)
) -> RunDocument:
    data = DataRecord(path, rounds=1000, features=18, labels=labels, sha256="c0ffee")
    return RunDocument("0.1.0", data, runs or (make_run(),), load_seconds=0.25)


def make_data(path: str = "a.svm", **changes: Any) -> TrialData:
    labels = changes.pop("labels", (-1, 1))
    return TrialData(path, rounds=1000, features=18, labels=labels, sha256=path, **changes)


def make_trial(
    learner: str,
    rate: float | None,
    repeat: int = 0,
    *,
    params: Mapping[str, ParamValue] | None = None,
    data: TrialData | None = None,
    error: str | None = None,
    texts: Mapping[str, str] | None = None,
    **changes: Any,
) -> Outcome:
    """One trial of 1,000 rounds, which failed if it has no rate; `changes` of the run's record."""
    params = params or {}
    data = data or make_data()
    run = None
    if rate is not None:
        own = {"params": params, "repeat": repeat, "halvings": None, "zeta": None}
        mistakes = {"mistakes": round(changes.get("rounds", 1000) * rate)}
        run = make_run(learner, **(own | mistakes | changes))
    identity = f"{data.identity} {learner} {sorted(params.items())} {repeat}"
    return Outcome(
        id=identity,
        data=data,
        learner=learner,
        params=params,
        seed=0,
        repeat=repeat,
        run=run,
        error=error,
        texts=texts or {},
    )


def make_trials(
    learner: str, rates: Sequence[float], data: TrialData | None = None, **params: ParamValue
) -> list[Outcome]:
    """One setting over several permutations."""
    return [make_trial(learner, rate, k, params=params, data=data) for k, rate in enumerate(rates)]


def stored_trial(
    number: int = 0, *, error: str | None = None, path: str = "a.svm", **params: ParamValue
) -> Outcome:
    """One as a results file may hold it: labels, numbers and nulls of all kinds."""
    every: dict[str, ParamValue] = {"kernel": "gaussian", "sigma": 1.0, "budget": 400, **params}
    data = TrialData(
        path,
        rounds=1000,
        features=3,
        labels=(None, 2.5),
        sha256="ab" * 32,
        limit=1000,
        scale="unit",
        positive=2.5,
        shuffled=True,
    )
    rate = None if error else (100 + number) / 1000
    odd = {"zeta": 0.1 + 0.2, "norm": None, "seconds": 0.25}
    made = make_trial("ahpatron", rate, number, params=every, data=data, error=error, **odd)
    return replace(made, id=f"{number:020x}", wall_seconds=0.5, algorithm=8, header=1, version="1")


def small_sweep(data: TrialData | None = None, repeats: int = 3) -> list[Outcome]:
    """Two settings of one learner, and two learners with one each."""
    return [
        *make_trials("ahpatron", [0.09, 0.10, 0.11][:repeats], data, budget=400, epsilon=0.5),
        *make_trials("ahpatron", [0.12, 0.13, 0.14][:repeats], data, budget=400, epsilon=0.6),
        *make_trials("avp", [0.09, 0.10, 0.113][:repeats], data, epsilon=0.5),
        *make_trials("perceptron", [0.13, 0.14, 0.151][:repeats], data),
    ]


def large_sweep(
    learners: Sequence[str] = FIVE,
    budgets: Sequence[int] = BUDGETS,
    epsilons: Sequence[float] = (0.5,),
    *,
    paths: Sequence[str] = ("a9a.svm",),
    repeats: int = 3,
    failed: Sequence[Outcome] = (),
) -> SweepSummary:
    """Larger budgets are better and slower; radius follows from the budget, as for ahpatron."""
    rng = random.Random(7)
    trials = []
    for path in paths:
        data = make_data(path)
        for number, learner in enumerate(learners):
            for params in _settings(learner, budgets, epsilons):
                rate = _rate(number, params)
                seconds = _seconds(number, params)
                for repeat in range(repeats):
                    trial = make_trial(
                        learner,
                        rate + rng.gauss(0, 0.0015),
                        repeat,
                        params=params,
                        data=data,
                        rounds=30_000,
                        seconds=seconds * rng.uniform(0.9, 1.1),
                    )
                    trials.append(trial)
    return summarise_trials([*trials, *failed], [ORIGIN])


def _settings(
    learner: str, budgets: Sequence[int], epsilons: Sequence[float]
) -> Iterator[dict[str, ParamValue]]:
    """The parameters of each setting of a learner."""
    own_budgets: Sequence[int | None] = [None] if learner in WITHOUT_BUDGET else budgets
    own_epsilons: Sequence[float | None] = epsilons if learner in ("ahpatron", "avp") else [None]
    for budget in own_budgets:
        for epsilon in own_epsilons:
            params: dict[str, ParamValue] = {"kernel": "gaussian", "sigma": 1.0}
            if budget is not None:
                params |= {"budget": budget, "radius": math.sqrt(budget) / 2}
            if epsilon is not None:
                params["epsilon"] = epsilon
            yield params


def _rate(number: int, params: Mapping[str, Any]) -> float:
    """The mistake rate of the learner with this number, without noise."""
    rate = 0.05 + 0.006 * number
    if "budget" in params:
        rate += 0.35 / math.sqrt(params["budget"])
    if "epsilon" in params:
        rate += 0.1 * (params["epsilon"] - 0.5) ** 2
    return rate


def _seconds(number: int, params: Mapping[str, Any]) -> float:
    """The time of the learner with this number, without noise."""
    return (1 + 0.3 * number) * (0.02 + 0.0025 * params.get("budget", 900))
