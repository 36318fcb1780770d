"""Trials with round numbers, for the tests of what sweeps find and show."""

from collections.abc import Mapping, Sequence
from typing import Any

from ahpatron_cli.records import DataRecord, ParamValue, RunRecord
from ahpatron_cli.sweep.summary import TrialData, TrialRecord


def make_data(path: str = "a.svm", sha256: str | None = "c0ffee", **changes: Any) -> TrialData:
    labels = changes.pop("labels", (-1.0, 1.0))
    return TrialData(DataRecord(path, 1000, 18, labels, sha256), **changes)


def make_trial(
    learner: str,
    rate: float | None,
    repeat: int = 0,
    *,
    params: Mapping[str, ParamValue] | None = None,
    data: TrialData | None = None,
    error: str | None = None,
    **changes: Any,
) -> TrialRecord:
    """One trial; it failed if it has no rate."""
    params, data = params or {}, data or make_data()
    run = None
    if rate is not None:
        fields: dict[str, Any] = {
            "learner": learner,
            "params": params,
            "seed": 0,
            "repeat": repeat,
            "rounds": 1000,
            "mistakes": round(1000 * rate),
            "mistake_rate": rate,
            "margin_updates": 50,
            "updates": 162,
            "halvings": None,
            "zeta": None,
            "support_size": 314,
            "norm": 1.5,
            "near_ties": 0,
            "seconds": 0.0512,
        }
        run = RunRecord(**(fields | changes))
    identity = f"{data.identity} {learner} {sorted(params.items())} {repeat}"
    return TrialRecord(identity, data, learner, params, 0, repeat, run, error)


def make_trials(
    learner: str,
    rates: Sequence[float],
    data: TrialData | None = None,
    **params: ParamValue,
) -> list[TrialRecord]:
    """One setting over several orders."""
    return [
        make_trial(learner, rate, repeat, params=params, data=data)
        for repeat, rate in enumerate(rates)
    ]


def sweep(data: TrialData | None = None, repeats: int = 3) -> list[TrialRecord]:
    """Two settings of one learner, and two learners with one each."""
    return [
        *make_trials("ahpatron", [0.09, 0.10, 0.11][:repeats], data, budget=400, epsilon=0.5),
        *make_trials("ahpatron", [0.12, 0.13, 0.14][:repeats], data, budget=400, epsilon=0.6),
        *make_trials("avp", [0.09, 0.10, 0.113][:repeats], data, epsilon=0.5),
        *make_trials("perceptron", [0.13, 0.14, 0.151][:repeats], data),
    ]
