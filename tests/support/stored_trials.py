"""Trial records to store, made up but of the real shape."""

from __future__ import annotations

from ahpatron_cli.records import DataRecord, ParamValue, RunRecord
from ahpatron_cli.sweep.summary import TrialData, TrialRecord


def trial(
    number: int = 0, *, error: str | None = None, path: str = "a.svm", **params: ParamValue
) -> TrialRecord:
    every: dict[str, ParamValue] = {"kernel": "gaussian", "sigma": 1.0, "budget": 400, **params}
    data = TrialData(DataRecord(path, 1000, 3, (None, 2.5), "ab" * 32), 1000, "unit", 2.5, True)
    run = RunRecord(
        learner="ahpatron",
        params=every,
        seed=0,
        repeat=number,
        rounds=1000,
        mistakes=100 + number,
        mistake_rate=(100 + number) / 1000,
        margin_updates=7,
        updates=9,
        halvings=1,
        zeta=0.1 + 0.2,
        support_size=200,
        norm=None,
        near_ties=0,
        seconds=0.25,
    )
    identity = f"{number:020x}"
    played = None if error else run
    return TrialRecord(identity, data, "ahpatron", every, 0, number, played, error)
