"""metron from the command line: no kernel, no σ, models with relevances."""

import json

import numpy as np
import pytest

from support.command import Ahpatron
from support.profiles import to_text

METRON = ("-l", "metron", "-B", 30)


@pytest.fixture
def units(ahpatron: Ahpatron) -> str:
    """Five features in different units; the first and the last decide."""
    X = np.random.default_rng(3).normal(size=(400, 5)) * np.array([1e-3, 1.0, 50.0, 1.0, 1e4])
    ahpatron.write("units.svm", to_text(X, np.where(X[:, 0] / 1e-3 + X[:, 4] / 1e4 > 0, 1, -1)))
    return "units.svm"


def test_kernel_and_sigma_have_no_effect_and_are_null(ahpatron: Ahpatron, units: str) -> None:
    plain = ahpatron.run(units, *METRON)
    assert plain["params"]["kernel"] is plain["params"]["sigma"] is None
    assert plain["metric_changes"] == 8
    assert 1 < plain["effective_features"] <= 5
    words = ("run", units, *METRON, "--json")
    for option, value in (("--sigma", "0.01"), ("--sigma", "auto"), ("--kernel", "linear")):
        done = ahpatron.succeed(*words, option, value)
        assert f"{option} has no effect" in done.err
        assert json.loads(done.out)["runs"][0].items() >= plain.items()
    assert "--scale standard" in ahpatron.succeed(*words, "--scale", "standard").err
    done = ahpatron.succeed(*words, "-l", "arow", "--kernel", "laplacian", "--sigma", "2")
    assert "no effect" not in done.err
    metron, arow = json.loads(done.out)["runs"]
    assert metron["mistakes"] == plain["mistakes"]
    assert (arow["params"]["kernel"], arow["params"]["sigma"]) == ("laplacian", 2)


def test_a_grid_of_sigma_does_not_multiply_its_trials(ahpatron: Ahpatron, units: str) -> None:
    words = ("sweep", units, "-l", "metron", "-l", "arow", "-B", 20, "--repeats", 2, "--out")
    found = []
    for name, options in (("a.jsonl", "-g sigma=0.5,1,auto"), ("b.jsonl", "--kernel linear")):
        ahpatron.succeed(*words, name, *options.split())
        trials: dict[str, set[str]] = {"metron": set(), "arow": set()}
        for trial in ahpatron.trials(name):
            trials[trial["run"]["learner"]].add(trial["id"])
        found.append(trials)
    assert {name: len(ids) for name, ids in found[0].items()} == {"metron": 2, "arow": 6}
    assert found[0]["metron"] == found[1]["metron"]


def test_a_model_continues_and_lists_relevant_features(ahpatron: Ahpatron, units: str) -> None:
    """It is cut before the first change of the metric; tests/cli/test_models.py cuts it later."""
    whole = ahpatron.run(units, *METRON)
    rows = ahpatron.read(units).splitlines(keepends=True)
    ahpatron.write("first.svm", "".join(rows[:5]))
    ahpatron.write("rest.svm", "".join(rows[5:]))
    ahpatron.succeed("run", "first.svm", *METRON, "--save", "m.npz")
    run = ahpatron.run("rest.svm", "--resume", "m.npz", "--save", "m.npz")
    assert (run["mistakes"], run["updates"]) == (whole["mistakes"], whole["updates"])
    model = ahpatron.json("inspect", "m.npz")
    assert model["kernel"] is None
    relevance = model["relevance"]
    assert {relevance[0]["feature"], relevance[1]["feature"]} == {1, 5}
    assert sum(one["relevance"] for one in relevance) == pytest.approx(1)


@pytest.mark.parametrize("multiclass", ["shared", "rest"])
def test_several_classes(ahpatron: Ahpatron, multiclass: str) -> None:
    X = np.random.default_rng(3).normal(size=(300, 2)) * np.array([1.0, 1e5])
    ahpatron.write("three.svm", to_text(X, np.digitize(X[:, 0] + X[:, 1] / 1e5, [-0.7, 0.7])))
    words = ("three.svm", *METRON, "-p", f"multiclass={multiclass}", "--save", "m.npz")
    assert ahpatron.run(*words)["mistake_rate"] < 0.25
    assert len(ahpatron.json("inspect", "m.npz")["relevance"]) == 2
