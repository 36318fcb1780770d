"""Trials in processes of their own: outcomes for all of them, whatever happens to a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ahpatron_cli.data.dataset import Preparation, content_hash, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError
from ahpatron_cli.runner import LearnerSpec, params_of
from ahpatron_cli.sweep.summary import TrialData
from ahpatron_cli.sweep.trial import Trial, run_trial

RINGS = Path(__file__).resolve().parents[2] / "sample_data" / "rings.svm"


def tasks(count: int, learner: str = "ahpatron", **params: float) -> list[Trial]:
    sha256 = content_hash(str(RINGS))
    assert sha256 is not None
    with open_source(str(RINGS)) as source:
        facts = load(source, Preparation()).facts()
    data = TrialData("rings", facts.rounds, facts.features, facts.labels, sha256)
    made = []
    for repeat in range(count):
        setup = LearnerSpec(learner, params, "gaussian", {"sigma": 0.1})
        what = data, setup, 0, repeat, params_of(*setup.build())
        made.append(Trial(*what, str(RINGS), Preparation()))
    return made


def test_the_identity_of_a_trial() -> None:
    one, other = tasks(2)
    assert one.id != other.id
    renamed = replace(one.data, path="x")
    assert replace(one, data=renamed).id == one.id  # a name decides nothing
    spelt_out = LearnerSpec("ahpatron", {"epsilon": 0.5}, "gaussian", {"sigma": 0.1})
    assert params_of(*spelt_out.build()) == one.params  # nor does a default said aloud
    for changed in (
        replace(one, seed=1),
        replace(one, data=replace(one.data, limit=10)),
        replace(one, data=replace(one.data, scale="unit")),
        replace(one, data=replace(one.data, shuffled=False)),
        replace(one, setup=LearnerSpec("avp", {}, "gaussian", {"sigma": 0.1})),
        replace(one, params={**one.params, "sigma": 0.2}),
    ):
        assert changed.id != one.id


def test_a_worker_of_another_version_runs_nothing() -> None:
    (task,) = tasks(1)
    with pytest.raises(UserError, match=r"0\.0\.1"):
        run_trial(replace(task, version="0.0.1"))
    other = run_trial(replace(task, source="sha256:0"))
    assert "sha256:0" in (other.error or "")


def test_a_bug_in_one_trial_is_its_outcome() -> None:
    (task,) = tasks(1)
    broken = replace(task, setup=LearnerSpec("nobody", {}, "gaussian", {}))
    found = run_trial(broken)
    assert found.error is not None
    assert "bug in ahpatron" in found.error
    assert "KeyError" in found.error
