"""`--weight LABEL=W`: examples of some labels weigh more."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from support.command import Ahpatron

BOTH = ("--weight", "-1=2", "--weight", "1=2")


@pytest.mark.parametrize(
    ("learner", "doubled"),
    [
        ("ahpatron", ("-p", "step=0.5")),
        ("avp", ("-p", "step=2")),
        ("fogd", ("-p", "step=0.25")),
        ("nogd", ("-p", "step=0.25")),
        ("arow", ("-p", "noise=0.15", "-p", "floor=0.0005")),
    ],
)
def test_equal_costs_are_a_larger_step(
    ahpatron: Ahpatron, rings: Path, learner: str, doubled: tuple[str, ...]
) -> None:
    step = ("-p", "step=0.125") if learner in ("fogd", "nogd") else ()
    for way in (("--sigma", 0.3), ("--sigma", 0.3, "--shuffle")):
        weighed = ahpatron.run(rings, "-l", learner, *step, *BOTH, *way)
        assert weighed["costs"] == [2, 2]
        plain = ahpatron.run(rings, "-l", learner, *doubled, *way)
        assert "costs" not in plain
        for name in ("mistakes", "updates", "margin_updates", "support_size", "norm"):
            assert weighed[name] == plain[name]


@pytest.mark.parametrize("learner", ["ahpatron+", "arow", "fogd", "norma"])
def test_the_costly_class_is_missed_less_often(
    ahpatron: Ahpatron, rings: Path, learner: str
) -> None:
    plain, weighed = (
        ahpatron.run(rings, "-l", learner, "--sigma", 0.3, *cost)
        for cost in ((), ("--weight", "1=20"))
    )
    assert weighed["false_negatives"] < plain["false_negatives"]
    assert weighed["false_positives"] > plain["false_positives"]


@pytest.mark.parametrize("name", ["ahpatron", "ahpatron shared", "arow shared"])
def test_each_class_has_its_cost(name: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.digitize(X[:, 0] + rng.normal(0, 0.3, 300), [-0.3, 0.3]).astype(float)
    multiclass = "shared" if "shared" in name else "rest"

    def confusion(*costs: float, **params: float) -> Any:
        learner = REGISTRY[name.split()[0]](budget=30, multiclass=multiclass, **params)
        player: Any = Player(learner, Gaussian(sigma=0.5), classes=3)
        player.feed(X, y, np.array(costs)[y.astype(int)] if costs else None)
        return player.tally.confusion

    plain = confusion()
    np.testing.assert_array_equal(confusion(1, 1, 1), plain)
    doubled = {"noise": 0.15, "floor": 0.0005} if "arow" in name else {"step": 0.5}
    np.testing.assert_array_equal(confusion(2, 2, 2), confusion(**doubled))
    assert confusion(1, 20, 1)[1, 1] > plain[1, 1]


@pytest.mark.parametrize("data", ["table", "libsvm"])
def test_a_sweep_varies_the_weight_of_a_label(ahpatron: Ahpatron, rings: Path, data: str) -> None:
    if data == "table":
        lines = [line.split() for line in rings.read_text().splitlines()[:400]]
        rows = [
            ",".join([*(cell.split(":")[1] for cell in cells), "yes" if y == "1" else "no"])
            for y, *cells in lines
        ]
        words = [ahpatron.write("t.csv", "\n".join(["a,b,y", *rows]) + "\n"), "--label", "y"]
        label = "yes"
    else:
        words = [rings, "--limit", "400"]
        label = "1"
    sweep = (*words, "-l", "arow", "--sigma", "0.5", "--weight", f"{label}=1,5,20")
    ahpatron.succeed("sweep", *sweep, "--out", "r.jsonl")
    (found,) = ahpatron.json("report", "r.jsonl")["datasets"]
    by_weight = {one["params"][f"weight.{label}"]: one for one in found["settings"]}
    assert set(by_weight) == {1, 5, 20}
    for weight, one in by_weight.items():
        run = ahpatron.run(*sweep[:-1], f"{label}={weight}")
        assert one["mistake_rate_mean"] == run["mistake_rate"]
    again = ahpatron.succeed("sweep", *sweep, "--out", "r.jsonl")
    assert "3 of 3 trials" in again.err
    command = again.out[again.out.index("Best on") :].splitlines()[1].split()
    best = min(one["mistake_rate_mean"] for one in by_weight.values())
    assert ahpatron.json(*command[1:])["summary"][0]["mistake_rate_mean"] == best
    assert "sweep" in ahpatron.refusal(2, "run", *sweep)


def test_a_sweep_weighs_as_run_does(ahpatron: Ahpatron, rings: Path) -> None:
    grid = (rings, "-l", "arow", "-g", "budget=10,20", "--sigma", "0.3", "--out", "r.jsonl")
    costs = ("--weight", "1=5", "--weight", "-1=0.5")
    ahpatron.succeed("sweep", *grid)
    weighed = ahpatron.succeed("sweep", *grid, *costs)
    assert "already" not in weighed.err
    command = weighed.out[weighed.out.index("Best on") :].splitlines()[1].split()
    assert command[-4:] == ["--weight", "-1=0.5", "--weight", "1=5"]
    swapped = ahpatron.succeed("sweep", *grid, *costs[2:], *costs[:2])
    assert "2 of 2 trials" in swapped.err
    both = ahpatron.json("report", "r.jsonl")["datasets"]
    assert [one["data"].get("costs") for one in both] == [None, [[-1, 0.5], [1, 5]]]
    found = ahpatron.json(*command[1:])["summary"][0]
    (best,) = [one for one in both[1]["settings"] if one["best_of_data"]]
    assert found["params"] == best["params"]
    assert found["mistake_rate_mean"] == best["mistake_rate_mean"]
