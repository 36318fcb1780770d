"""`--metrics`, `--window`, and the figures so far."""

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import average_precision_score, cohen_kappa_score, f1_score, roc_auc_score

from support.command import Ahpatron
from support.labels import EVERY, table

NAMES = [
    "precision",
    "recall",
    "f1",
    "balanced_error",
    "kappa",
    "auc",
    "log_loss",
    "average_precision",
    "brier",
]


PAIRS = {kind: labels for kind, labels in EVERY.items() if len(labels) == 2}


@dataclass(frozen=True)
class Measured:
    """The metrics of a run, and what its predictions say of each row."""

    metrics: dict[str, Any]
    true: list[bool]
    predicted: list[bool]
    scores: list[float]


@pytest.fixture(scope="module", params=PAIRS)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A run on a table with two labels of this kind, the last of which is positive."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("measured"))
    positive = PAIRS[request.param][1]
    ahpatron.write("t.csv", table(PAIRS[request.param], rows=400))
    options = ("--label", "y", "--id", "name", "-l", "arow", "-B", 50, "--predictions", "p.csv")
    record = ahpatron.run("t.csv", *options, "--metrics")
    rows = ahpatron.table("p.csv")
    return Measured(
        metrics=record["metrics"],
        true=[row["label"] == positive for row in rows],
        predicted=[row["prediction"] == positive for row in rows],
        scores=[float(row["score"]) for row in rows],
    )


def test_a_run_has_all_metrics(measured: Measured) -> None:
    assert list(measured.metrics) == NAMES


def test_f1_and_kappa_are_those_of_the_predictions(measured: Measured) -> None:
    true = measured.true
    predicted = measured.predicted
    assert measured.metrics["f1"] == pytest.approx(f1_score(true, predicted))
    assert measured.metrics["kappa"] == pytest.approx(cohen_kappa_score(true, predicted))


def test_auc_and_average_precision_are_those_of_the_scores(measured: Measured) -> None:
    auc = roc_auc_score(measured.true, measured.scores)
    assert measured.metrics["auc"] == pytest.approx(auc, abs=1e-12)
    expected = average_precision_score(measured.true, measured.scores)
    assert measured.metrics["average_precision"] == pytest.approx(expected, abs=1e-12)


def test_shuffled_rows_have_metrics_of_their_predictions_too(
    ahpatron: Ahpatron, rings: Path
) -> None:
    options = ("-B", 50, "--sigma", 0.3, "--limit", 900, "--predictions", "p.csv", "--shuffle")
    metrics = ahpatron.run(rings, *options, "--metrics")["metrics"]
    rows = ahpatron.table("p.csv")
    y, predicted = ([int(row[name]) for row in rows] for name in ("label", "prediction"))
    assert metrics["f1"] == pytest.approx(f1_score(y, predicted))
    scores = [float(row["score"]) for row in rows]
    assert metrics["auc"] == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


def test_without_metrics_a_record_has_none(ahpatron: Ahpatron, rings: Path) -> None:
    assert "metrics" not in ahpatron.run(rings, "-B", 50, "--limit", 100)


def test_a_resumed_run_has_no_auc_and_predict_has(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.succeed("run", rings, "-B", 50, "--limit", 1000, "--save", "m.npz")
    resumed = ahpatron.run(rings, "--resume", "m.npz", "--metrics")["metrics"]
    assert resumed["auc"] is None
    assert resumed["f1"] is not None
    done = ahpatron.succeed(
        "predict", "m.npz", rings, "--metrics", "--out", "s.csv", "--format", "json"
    )
    (figures,) = json.loads(done.out)["files"]
    y = [int(line.split()[0]) for line in rings.read_text().splitlines()]
    scores = [float(row["score"]) for row in ahpatron.table("s.csv")]
    for name, wanted in (
        ("f1", f1_score(y, [1 if score >= 0 else -1 for score in scores])),
        ("auc", roc_auc_score(y, scores)),
    ):
        assert figures["metrics"][name] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_recent_rates_and_drifts_are_those_of_the_predictions(
    ahpatron: Ahpatron, way: tuple[str, ...]
) -> None:
    """Labels turn into their opposite after 3,000 rounds."""
    turn = 3000
    rng = random.Random(1)
    points = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(turn + 1000)]
    labels = (1 if (a * b > 0) == (t < turn) else -1 for t, (a, b) in enumerate(points))
    rows = zip(labels, points, strict=True)
    ahpatron.write("d.svm", "".join(f"{y} 1:{a:.3f} 2:{b:.3f}\n" for y, (a, b) in rows))
    options = ("--sigma", 0.4, "--window", 300, "--predictions", "p.csv", "--curve", "c.csv")
    done = ahpatron.succeed("run", "d.svm", *options, *way, "--json")
    (record,) = json.loads(done.out)["runs"]
    made = [int(row["mistake"]) for row in ahpatron.table("p.csv")]
    assert record["window"] == {"rounds": 300, "mistake_rate": sum(made[-300:]) / 300}
    for row in ahpatron.table("c.csv"):
        last = made[max(int(row["round"]) - 300, 0) : int(row["round"])]
        assert float(row["recent_rate"]) == pytest.approx(sum(last) / len(last), abs=1e-12)
    if way:
        assert record["drifts"] == []
    else:
        (drift,) = record["drifts"]
        assert turn < drift < turn + 30
        assert f"{drift:,}" in done.err


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_mistakes_so_far_are_printed_with_v(
    ahpatron: Ahpatron, rings: Path, way: tuple[str, ...]
) -> None:
    ahpatron.write("d.svm", rings.read_text() * 2 + "1 1:0\n")  # 4,001 rounds
    done = ahpatron("run", "d.svm", "-v", "-B", 20, "--predictions", "p.csv", *way)
    mistaken = [int(row["mistake"]) for row in ahpatron.table("p.csv")]
    text = done.err.replace(",", "")
    found = [(int(t), int(m)) for t, m in re.findall(r"(\d+) rounds (\d+) mistakes", text)]
    assert found == [(t, sum(mistaken[:t])) for t, _ in found]
    assert [t // 1000 for t, _ in found] == [1, 2, 4]


def test_figures_come_again_after_a_minute(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahpatron_cli.signals.HEARTBEAT", 0.0)
    done = ahpatron("run", rings, "-v", "-B", 20, "--sigma", 0.2)
    rounds = re.findall(r":\d\d \S+: ([\d,]+) rounds, [\d,]+ mistakes", done.err)
    assert len(rounds) > 2
