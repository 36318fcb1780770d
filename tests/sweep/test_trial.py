"""Trials: their identity, and what becomes of one that cannot be run."""

import pytest
from msgspec.structs import replace

from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.errors import UserError
from ahpatron_cli.runner import Setup, params_of
from ahpatron_cli.sweep.trial import Trial, run_trial
from support.trials import make_data

SETUP = Setup("ahpatron", {}, "gaussian", {"sigma": 0.1})
TASK = Trial(make_data(), SETUP, 0, 0, params_of(*SETUP.build()), "a.svm", Preparation())


def test_names_and_defaults_that_are_written_out_do_not_change_the_id_of_a_trial() -> None:
    assert replace(TASK, data=replace(TASK.data, path="x")).id == TASK.id  # a name decides nothing
    spelt_out = Setup("ahpatron", {"epsilon": 0.5}, "gaussian", {"sigma": 0.1})
    assert params_of(*spelt_out.build()) == TASK.params  # nor does a default said aloud


def test_all_that_decides_the_outcome_changes_the_id_of_a_trial() -> None:
    changes = [{"limit": 10}, {"scale": "unit"}, {"shuffled": False}, {"sha256": "0"}]
    for changed in (
        *(replace(TASK, data=replace(TASK.data, **change)) for change in changes),
        replace(TASK, seed=1),
        replace(TASK, repeat=1),
        replace(TASK, setup=Setup("avp", {}, "gaussian", {"sigma": 0.1})),
        replace(TASK, params={**TASK.params, "sigma": 0.2}),
    ):
        assert changed.id != TASK.id


def test_a_worker_of_another_version_runs_nothing() -> None:
    with pytest.raises(UserError, match=r"0\.0\.1"):
        run_trial(replace(TASK, version="0.0.1"))
    assert "sha256:0" in (run_trial(replace(TASK, source="sha256:0")).error or "")


def test_a_bug_in_one_trial_is_its_outcome() -> None:
    found = run_trial(replace(TASK, setup=Setup("nobody", {}, "gaussian", {})))
    assert "bug in ahpatron" in (found.error or "")
    assert "KeyError" in (found.error or "")
