"""Runs and trials with round numbers, for the tests of what is stored, found and shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from ahpatron_cli.records import DataRecord, ParamValue, Report, RunRecord
from ahpatron_cli.sweep.summary import Outcome, TrialData


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
        "params": {"sigma": 1.0},
        "halvings": None,
        "zeta": None,
        "support_size": 2325,
        "mistakes": 140,
        "margin_updates": 0,
    }
    return make_run(**({"learner": "perceptron"} | fields | changes))


def make_report(
    *runs: RunRecord, path: str = "a.svm", labels: tuple[float, float] = (-1, 1)
) -> Report:
    data = DataRecord(path, rounds=1000, features=18, labels=labels, sha256="c0ffee")
    return Report("0.1.0", data, runs or (make_run(),), load_seconds=0.25)


def make_data(path: str = "a.svm", sha256: str | None = "c0ffee", **changes: Any) -> TrialData:
    labels = changes.pop("labels", (-1, 1))
    return TrialData(path, 1000, 18, labels, sha256, **changes)


def make_trial(
    learner: str,
    rate: float | None,
    repeat: int = 0,
    *,
    params: Mapping[str, ParamValue] | None = None,
    data: TrialData | None = None,
    error: str | None = None,
    **changes: Any,
) -> Outcome:
    """One trial; it failed if it has no rate."""
    params, data = params or {}, data or make_data()
    run = None
    if rate is not None:
        own = {"params": params, "repeat": repeat, "halvings": None, "zeta": None}
        rates = {"mistakes": round(1000 * rate)}
        run = make_run(learner, **(own | rates | changes))
    identity = f"{data.identity} {learner} {sorted(params.items())} {repeat}"
    return Outcome(identity, data, learner, params, 0, repeat, run, error)


def make_trials(
    learner: str,
    rates: Sequence[float],
    data: TrialData | None = None,
    **params: ParamValue,
) -> list[Outcome]:
    """One setting over several permutations."""
    return [
        make_trial(learner, rate, repeat, params=params, data=data)
        for repeat, rate in enumerate(rates)
    ]


def stored_trial(
    number: int = 0, *, error: str | None = None, path: str = "a.svm", **params: ParamValue
) -> Outcome:
    """One as a results file may hold it: labels, numbers and nulls of all kinds."""
    every: dict[str, ParamValue] = {"kernel": "gaussian", "sigma": 1.0, "budget": 400, **params}
    data = TrialData(path, 1000, 3, (None, 2.5), "ab" * 32, 1000, "unit", 2.5, True)
    rate = (100 + number) / 1000
    odd = {"zeta": 0.1 + 0.2, "norm": None, "seconds": 0.25}
    made = make_trial("ahpatron", rate, number, params=every, data=data, **odd)
    return replace(
        made, id=f"{number:020x}", run=None if error else made.run, error=error, wall_seconds=0.5
    )


def sweep(data: TrialData | None = None, repeats: int = 3) -> list[Outcome]:
    """Two settings of one learner, and two learners with one each."""
    return [
        *make_trials("ahpatron", [0.09, 0.10, 0.11][:repeats], data, budget=400, epsilon=0.5),
        *make_trials("ahpatron", [0.12, 0.13, 0.14][:repeats], data, budget=400, epsilon=0.6),
        *make_trials("avp", [0.09, 0.10, 0.113][:repeats], data, epsilon=0.5),
        *make_trials("perceptron", [0.13, 0.14, 0.151][:repeats], data),
    ]
