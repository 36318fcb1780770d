"""`run --metrics`, in every way to play and every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, roc_auc_score

from support.command import Ahpatron

NAMES = [
    *("precision", "recall", "f1", "balanced_error", "kappa"),
    *("auc", "auc_error", "log_loss"),
]


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_metrics_are_those_of_the_predictions(
    ahpatron: Ahpatron, rings: Path, way: tuple[str, ...]
) -> None:
    options = ("-B", 50, "--sigma", 0.3, "--metrics", "--format", "json", "--predictions", "p.csv")
    done = ahpatron("run", rings, *options, *way)
    metrics = json.loads(done.out)["runs"][0]["metrics"]
    with (ahpatron.folder / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    y, said = ([int(row[name]) for row in rows] for name in ("label", "prediction"))
    assert list(metrics) == NAMES
    assert metrics["f1"] == pytest.approx(f1_score(y, said))
    assert metrics["kappa"] == pytest.approx(cohen_kappa_score(y, said))
    scores = [float(row["score"]) for row in rows]
    assert metrics["auc"] == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    assert metrics["auc_error"] == 0


def test_metrics_are_only_there_if_asked_for(ahpatron: Ahpatron, rings: Path) -> None:
    assert "metrics" not in ahpatron.json("run", rings, "-B", 50)["runs"][0]
    assert "AUC" not in ahpatron("run", rings, "-B", 50).out


def test_metrics_in_tables_and_csv(ahpatron: Ahpatron, rings: Path) -> None:
    options = ("-l", "ahpatron", "-l", "perceptron", "-B", 50, "--repeats", 2, "--metrics")
    table = ahpatron("run", rings, *options).out
    assert "metrics of label +1; mean over 2 permutations" in table
    head = next(line for line in table.splitlines() if "AUC" in line)
    assert head.split("  ")[0] == "Learner"
    assert r"AUC" in ahpatron("run", rings, *options, "--format", "latex").out
    rows = list(
        csv.DictReader(io.StringIO(ahpatron("run", rings, *options, "--format", "csv").out))
    )
    assert len(rows) == 4
    assert all(0.5 < float(row["metrics_auc"]) < 1 for row in rows)


def test_a_resumed_run_knows_no_auc_and_predict_does(ahpatron: Ahpatron, rings: Path) -> None:
    assert ahpatron("run", rings, "-B", 50, "--limit", 1000, "--save", "m.npz").code == 0
    resumed = ahpatron.json("run", rings, "--resume", "m.npz", "--metrics")["runs"][0]["metrics"]
    assert (resumed["auc"], resumed["auc_error"]) == (None, None)
    assert resumed["f1"] is not None
    done = ahpatron.succeed("predict", "m.npz", rings, "--metrics")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    y = np.array([int(line.split()[0]) for line in rings.read_text().splitlines()])
    scores = np.array([float(row["score"]) for row in rows])
    found = dict(
        part.split() for part in done.err.splitlines()[1].removeprefix("note: ").split(", ")
    )
    guesses = np.where(scores >= 0, 1, -1)
    assert float(found["f1"]) == pytest.approx(f1_score(y, guesses), abs=1e-4)
    assert float(found["auc"]) == pytest.approx(roc_auc_score(y, scores), abs=1e-4)
