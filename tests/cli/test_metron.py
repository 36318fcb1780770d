"""metron from the command line: no kernel, no σ, models with relevances."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

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


def test_a_record_of_metron_has_no_kernel_and_counts_changes_of_the_metric(
    ahpatron: Ahpatron, units: str
) -> None:
    record = ahpatron.run(units, *METRON)
    assert record["params"]["kernel"] is record["params"]["sigma"] is None
    assert record["metric_changes"] == 8
    assert 1 < record["effective_features"] <= 5


@pytest.mark.parametrize(
    ("option", "value"), [("--sigma", "0.01"), ("--sigma", "auto"), ("--kernel", "linear")]
)
def test_kernel_and_sigma_have_no_effect_on_metron(
    ahpatron: Ahpatron, units: str, option: str, value: str
) -> None:
    plain = ahpatron.run(units, *METRON)
    done = ahpatron.succeed("run", units, *METRON, "--json", option, value)
    assert f"{option} has no effect" in done.err
    assert json.loads(done.out)["runs"][0].items() >= plain.items()


def test_scaling_before_metron_is_noted(ahpatron: Ahpatron, units: str) -> None:
    assert "--scale standard" in ahpatron.succeed("run", units, *METRON, "--scale", "standard").err


def test_beside_metron_another_learner_has_the_kernel_that_was_asked_for(
    ahpatron: Ahpatron, units: str
) -> None:
    plain = ahpatron.run(units, *METRON)
    kernel = ("--kernel", "laplacian", "--sigma", "2")
    done = ahpatron.succeed("run", units, *METRON, "-l", "arow", *kernel, "--json")
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
def test_several_classes_are_learned_and_have_relevant_features(
    ahpatron: Ahpatron, multiclass: str
) -> None:
    X = np.random.default_rng(3).normal(size=(300, 2)) * np.array([1.0, 1e5])
    ahpatron.write("three.svm", to_text(X, np.digitize(X[:, 0] + X[:, 1] / 1e5, [-0.7, 0.7])))
    words = ("three.svm", *METRON, "-p", f"multiclass={multiclass}", "--save", "m.npz")
    assert ahpatron.run(*words)["mistake_rate"] < 0.25
    assert len(ahpatron.json("inspect", "m.npz")["relevance"]) == 2


def test_stored_zeros_change_nothing(ahpatron: Ahpatron) -> None:
    ahpatron.write("z.svm", "1 3:1 9:0\n-1 3:-1\n" * 40)
    ahpatron.write("plain.svm", "1 3:1\n-1 3:-1\n" * 40)
    for layout in ("sparse", "dense"):
        run = ahpatron.run("z.svm", *METRON, "--layout", layout)
        assert run == ahpatron.run("plain.svm", *METRON, "--layout", layout)
        assert run["mistakes"] <= 2


def latitudes() -> Iterator[str]:
    """Places within a few metres, and categories that say nothing."""
    rng = np.random.default_rng(1)
    yield "latitude,street,colour,label"
    for where, street, colour in zip(
        48.8566 + 2e-5 * rng.normal(size=400),
        rng.integers(20, size=400),
        rng.integers(20, size=400),
        strict=True,
    ):
        label = "north" if where > 48.8566 else "south"
        yield f"{where:.9f},street {street},colour {colour},{label}"


def quarter_of_an_hour() -> Iterator[str]:
    """Times within 15 minutes of one day, and a category that turns the label."""
    rng = np.random.default_rng(2)
    yield "time,machine,label"
    for second, machine in zip(
        rng.integers(900, size=400), rng.integers(30, size=400), strict=True
    ):
        time = datetime(2024, 5, 1, 12) + timedelta(seconds=int(second))
        label = "late" if (second > 450) != (machine == 7) else "early"
        yield f"{time.isoformat()},machine {machine},{label}"


@pytest.mark.parametrize("make", [latitudes, quarter_of_an_hour])
def test_a_column_with_an_offset_is_the_same_in_both_layouts(
    ahpatron: Ahpatron, make: Callable[[], Iterator[str]]
) -> None:
    ahpatron.write("table.csv", "\n".join(make()) + "\n")
    words = ("table.csv", "--label", "label", "-l", "metron", "-B", 100)
    sparse = ahpatron.run(*words, "--layout", "sparse")
    dense = ahpatron.run(*words, "--layout", "dense")
    assert sparse["mistakes"] == dense["mistakes"]
    assert sparse["mistake_rate"] < 0.2


def test_p_values_need_no_scaling(ahpatron: Ahpatron) -> None:
    values = np.random.default_rng(3).random(300)
    values[0] = 1e-200
    ahpatron.write("p.svm", to_text(values[:, None], np.where(values < 0.05, 1, -1)))
    for layout in ("sparse", "dense"):
        assert ahpatron.run("p.svm", *METRON, "--layout", layout)["mistake_rate"] < 0.1


def test_a_row_that_overflows_is_named_without_a_hint_about_sigma(ahpatron: Ahpatron) -> None:
    ahpatron.write("data.svm", "1 1:1\n-1 1:2\n1 1:1e200\n")
    told = ahpatron.refusal(65, "run", "data.svm", *METRON)
    assert "data.svm:3" in told
    assert "--scale standard" in told
    assert "--sigma" not in told
    assert "width" not in told
    assert "--sigma" in ahpatron.refusal(65, "run", "data.svm", "-l", "arow")
    assert ahpatron.run("data.svm", *METRON, "--scale", "standard")["rounds"] == 3
