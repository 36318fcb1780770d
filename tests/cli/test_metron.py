"""metron from the command line: no kernel, no σ, models with relevances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli import OnlineKernelClassifier
from support.command import Ahpatron

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 5)) * np.array([1e-3, 1.0, 50.0, 1.0, 1e4])
Y = np.where(X[:, 0] / 1e-3 + X[:, 4] / 1e4 > 0, 1, -1)


@pytest.fixture
def units(ahpatron: Ahpatron) -> str:
    """Five features in different units; the first and the last decide."""
    lines = (
        f"{y} " + " ".join(f"{i}:{value!r}" for i, value in enumerate(row.tolist(), 1))
        for row, y in zip(X, Y.tolist(), strict=True)
    )
    ahpatron.write("units.svm", "\n".join(lines) + "\n")
    return "units.svm"


def test_kernel_and_sigma_have_no_effect_and_are_null(ahpatron: Ahpatron, units: str) -> None:
    plain = ahpatron.json("run", units, "-l", "metron", "-B", 30)["runs"][0]
    assert plain["params"]["kernel"] is plain["params"]["sigma"] is None
    assert plain["metric_changes"] == 8
    assert 1 < plain["effective_features"] <= 5
    words = ("run", units, "-l", "metron", "-B", 30, "--format", "json")
    for option, value in (("--sigma", "0.01"), ("--sigma", "auto"), ("--kernel", "linear")):
        done = ahpatron.succeed(*words, option, value)
        assert f"{option} has no effect" in done.err
        run = json.loads(done.out)["runs"][0]
        assert run | {"seconds": 0} == plain | {"seconds": 0}
    done = ahpatron.succeed(*words, "-l", "arow", "--kernel", "laplacian", "--sigma", "2")
    assert "no effect" not in done.err
    assert "`-l metron`" in done.err  # nearly all f(x) of arow are 0
    metron, arow = json.loads(done.out)["runs"]
    assert metron["mistakes"] == plain["mistakes"]
    assert (arow["params"]["kernel"], arow["params"]["sigma"]) == ("laplacian", 2)


def test_all_learners_include_it(ahpatron: Ahpatron, units: str) -> None:
    runs = ahpatron.json("run", units, "-l", "all", "-B", 20, "--limit", 60)["runs"]
    assert "metron" in [run["learner"] for run in runs]


def test_a_grid_of_sigma_does_not_multiply_its_trials(ahpatron: Ahpatron, units: str) -> None:
    learners = ("-l", "metron", "-l", "arow", "-B", 20)

    def ids(name: str, *words: str) -> dict[str, list[str]]:
        ahpatron.succeed("sweep", units, *learners, *words, "--repeats", 2, "--out", name)
        found: dict[str, list[str]] = {}
        for line in (ahpatron.folder / name).read_text().splitlines():
            trial: dict[str, Any] = json.loads(line)
            if "run" in trial:
                found.setdefault(trial["run"]["learner"], []).append(trial["id"])
        return found

    first = ids("a.jsonl", "-g", "sigma=0.5,1,auto")
    assert {name: len(trials) for name, trials in first.items()} == {"metron": 2, "arow": 6}
    second = ids("b.jsonl", "--kernel", "linear")
    assert sorted(second["metron"]) == sorted(first["metron"])
    (data,) = ahpatron.json("inspect", "a.jsonl")["datasets"]
    best = [one for one in data["settings"] if one["learner"] == "metron"]
    assert [one["params"]["sigma"] for one in best] == [None]
    done = ahpatron("sweep", units, "-l", "metron", "-g", "sigma=1,2", "--out", "c.jsonl")
    assert done.code == 2


def test_a_model_continues_and_lists_relevant_features(ahpatron: Ahpatron, units: str) -> None:
    whole = ahpatron.json("run", units, "-l", "metron", "-B", 30)["runs"][0]
    lines = (ahpatron.folder / units).read_text().splitlines(keepends=True)
    for cut in (5, 150):
        ahpatron.write("first.svm", "".join(lines[:cut]))
        ahpatron.write("rest.svm", "".join(lines[cut:]))
        ahpatron.succeed("run", "first.svm", "-l", "metron", "-B", 30, "--save", "m.npz")
        run = ahpatron.json("run", "rest.svm", "--resume", "m.npz", "--save", "m.npz")["runs"][0]
        assert (run["mistakes"], run["updates"]) == (whole["mistakes"], whole["updates"])
        model = ahpatron.json("inspect", "m.npz")
        assert model["kernel"] is None
        relevance = model["relevance"]
        assert {relevance[0]["feature"], relevance[1]["feature"]} == {1, 5}
        assert sum(one["relevance"] for one in relevance) == pytest.approx(1)
        assert "relevance" in ahpatron.succeed("inspect", "m.npz").out
    done = ahpatron.succeed("predict", "m.npz", units)
    assert len(done.out.splitlines()) >= 400


@pytest.mark.parametrize("multiclass", ["shared", "rest"])
def test_several_classes(ahpatron: Ahpatron, tmp_path: Path, multiclass: str) -> None:
    rows = RNG.normal(size=(300, 2)) * np.array([1.0, 1e5])
    classes = np.digitize(rows[:, 0] + rows[:, 1] / 1e5, [-0.7, 0.7])
    lines = [f"{c} 1:{a} 2:{b}" for (a, b), c in zip(rows.tolist(), classes.tolist(), strict=True)]
    ahpatron.write("three.svm", "\n".join(lines) + "\n")
    words = ("run", "three.svm", "-l", "metron", "-p", f"multiclass={multiclass}", "-B", 40)
    run = ahpatron.json(*words, "--save", "m.npz")["runs"][0]
    assert run["mistake_rate"] < 0.2
    assert len(ahpatron.json("inspect", "m.npz")["relevance"]) == 2


def test_the_estimator() -> None:
    model = OnlineKernelClassifier("metron", budget=30, sigma="auto", random_state=0)
    model.partial_fit(X[:200], Y[:200], classes=[-1, 1])
    for row, y in zip(X[200:], Y[200:], strict=True):
        model.partial_fit(row[None], [y])
    assert model.sigma_ is None
    assert model.mistake_rate_ < 0.2
    assert (model.predict(X) == Y).mean() > 0.9
