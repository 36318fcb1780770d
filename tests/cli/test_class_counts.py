"""Counts by class and the baseline, as users see them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from support.command import Ahpatron

ROUNDS = 700
RARE = "".join(  # 2.9 % positives, which the features do not tell apart
    f"{1 if i % 35 == 34 else -1} 1:{(i * 37) % 101} 2:{(i * 53) % 89}\n" for i in range(ROUNDS)
)
COUNTS = ("true_positives", "false_positives", "true_negatives", "false_negatives")


def test_counts_add_up_and_the_predictions_agree(ahpatron: Ahpatron, rings: Path) -> None:
    options = ("--sigma", 0.3, "-B", 50, "--format", "json", "--predictions", "p.csv")
    done = ahpatron("run", rings, *options)
    run = json.loads(done.out)["runs"][0]
    with (ahpatron.folder / "p.csv").open() as file:
        rows = [(int(row["prediction"]), int(row["label"])) for row in csv.DictReader(file)]
    wanted = [rows.count(pair) for pair in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    assert [run[name] for name in COUNTS] == wanted
    assert sum(wanted) == run["rounds"]
    assert run["false_positives"] + run["false_negatives"] == run["mistakes"]


def test_a_learner_worse_than_the_baseline_is_marked(ahpatron: Ahpatron) -> None:
    ahpatron.write("rare.svm", RARE)
    done = ahpatron("run", "rare.svm", "-l", "perceptron", "--sigma", 1)
    lines = done.out.splitlines()
    assert lines[0] == "rare.svm: 700 rounds, 2 features; baseline 3.00 %"  # +1 in round one
    assert lines[3].split()[1].endswith("!")
    assert any(line.startswith("! worse than the baseline") for line in lines)
    assert any("-l metron" in line for line in lines)
    table = ahpatron("run", "rare.svm", "-l", "perceptron", "--sigma", 1, "--format", "markdown")
    assert "baseline 3.00 %" in table.out


def test_a_learner_better_than_the_baseline_is_not(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron("run", rings, "--sigma", 0.3)
    assert "!" not in done.out
    assert "baseline 49.65 %" in done.out


@pytest.mark.parametrize("way", [(), ("--shuffle",), ("--repeats", 2, "-j", 1)])
def test_every_way_to_play_counts(ahpatron: Ahpatron, way: tuple[object, ...]) -> None:
    ahpatron.write("rare.svm", RARE)
    done = ahpatron("run", "rare.svm", "--format", "csv", *way)
    for row in csv.DictReader(io.StringIO(done.out)):
        assert int(row["true_positives"]) + int(row["false_negatives"]) == ROUNDS // 35
        assert 20 <= int(row["baseline_mistakes"]) <= 24


def test_resumed_runs_count_from_the_first_round(ahpatron: Ahpatron) -> None:
    lines = RARE.splitlines(keepends=True)
    for name, content in (("a", lines[:300]), ("b", lines[300:]), ("all", lines)):
        ahpatron.write(f"{name}.svm", "".join(content))
    assert ahpatron("run", "a.svm", "--save", "m.npz").code == 0
    resumed = ahpatron("run", "b.svm", "--resume", "m.npz", "--format", "json")
    whole = ahpatron("run", "all.svm", "--format", "json")
    for name in (*COUNTS, "baseline_mistakes"):
        found = [json.loads(one.out)["runs"][0][name] for one in (resumed, whole)]
        assert found[0] == found[1], name
