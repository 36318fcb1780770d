"""Probabilities and thresholds: `run`, `predict` and their figures."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
)

from support.command import Ahpatron

ROWS = 1500
LABELS = {"text": ("no", "yes"), "01": ("0", "1"), "pair": ("-1", "1")}


def rare(labels: tuple[str, str], rows: int = ROWS, seed: int = 3) -> str:
    """A table in which about 8 % of the rows are positive, with categories and missing cells."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, rows)
    hour = rng.integers(0, 24, rows)
    country = rng.choice(["DE", "FR", "US"], rows, p=[0.6, 0.3, 0.1])
    logit = -4.5 + 0.03 * amount + 1.5 * (country == "US") + 1.0 * (hour < 6)
    positive = rng.random(rows) < 1 / (1 + np.exp(-logit))
    target = io.StringIO()
    writer = csv.writer(target)
    writer.writerow(["amount", "hour", "country", "y"])
    for a, h, c, p in zip(amount, hour, country, positive, strict=True):
        shown = "" if rng.random() < 0.05 else f"{a:.2f}"
        writer.writerow([shown, h, c, labels[int(p)]])
    return target.getvalue()


@pytest.fixture
def table(ahpatron: Ahpatron) -> str:
    ahpatron.write("rare.csv", rare(LABELS["text"]))
    return "rare.csv"


def run(ahpatron: Ahpatron, *arguments: Any) -> dict[str, Any]:
    done = ahpatron.succeed("run", *arguments, "--json")
    (record,) = json.loads(done.out)["runs"]
    found: dict[str, Any] = record
    return found


def figures(ahpatron: Ahpatron, *arguments: Any) -> dict[str, Any]:
    done = ahpatron.succeed("predict", *arguments, "--metrics", "--format", "json")
    (file,) = json.loads(done.out)["files"]
    found: dict[str, Any] = file
    return found


@dataclass(frozen=True)
class Thresholded:
    """A run with a threshold of 0.2, its predictions, and the same run without a threshold."""

    positive: str
    negative: str
    plain: dict[str, Any]
    record: dict[str, Any]
    rows: list[dict[str, str]]

    @property
    def probabilities(self) -> list[float]:
        return [float(row[f"probability_{self.positive}"]) for row in self.rows]

    @property
    def guesses(self) -> list[bool]:
        """Which rows the probabilities say are positive."""
        return [probability >= 0.2 for probability in self.probabilities]

    @property
    def true(self) -> list[bool]:
        return [row["label"] == self.positive for row in self.rows]


@pytest.fixture(
    scope="module",
    params=[(learner, kind) for learner in ("metron", "ahpatron") for kind in LABELS],
    ids=" ".join,
)
def thresholded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Thresholded:
    learner, kind = request.param
    ahpatron = Ahpatron(tmp_path_factory.mktemp("thresholded"))
    negative, positive = LABELS[kind]
    ahpatron.write("t.csv", rare(LABELS[kind]))
    options = ("t.csv", "--label", "y", "-l", learner, "--metrics", "--window", 100)
    plain = run(ahpatron, *options)
    point = ("--threshold", "0.2", "--probability", "--predictions", "p.csv")
    record = run(ahpatron, *options, *point)
    return Thresholded(positive, negative, plain, record, ahpatron.table("p.csv"))


def test_rows_are_predicted_to_be_positive_from_the_threshold_on(thresholded: Thresholded) -> None:
    found = [row["prediction"] == thresholded.positive for row in thresholded.rows]
    assert found == thresholded.guesses
    assert thresholded.record["threshold"] == 0.2


def test_counts_and_metrics_are_those_of_the_predictions_by_the_threshold(
    thresholded: Thresholded,
) -> None:
    record = thresholded.record
    guesses = thresholded.guesses
    true = thresholded.true
    wrong = [guess != label for guess, label in zip(guesses, true, strict=True)]
    assert record["mistakes"] == sum(wrong)
    assert record["true_positives"] == sum(map(min, guesses, true))
    assert record["window"] == {"rounds": 100, "mistake_rate": sum(wrong[-100:]) / 100}
    assert record["metrics"]["precision"] == pytest.approx(precision_score(true, guesses))
    assert record["metrics"]["recall"] == pytest.approx(recall_score(true, guesses))
    assert record["metrics"]["f1"] == pytest.approx(f1_score(true, guesses))


def test_log_loss_and_brier_score_are_those_of_the_probabilities(thresholded: Thresholded) -> None:
    metrics = thresholded.record["metrics"]
    true = thresholded.true
    probabilities = thresholded.probabilities
    expected = brier_score_loss(true, probabilities)
    assert metrics["brier"] == pytest.approx(expected, abs=1e-12)
    pairs = zip(probabilities, true, strict=True)
    losses = [-math.log(p if label else 1 - p) for p, label in pairs]
    assert metrics["log_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-9)


def test_a_threshold_does_not_change_what_is_learned(thresholded: Thresholded) -> None:
    names = ("updates", "support_size", "norm")
    learned = {name: thresholded.record[name] for name in names}
    assert learned == {name: thresholded.plain[name] for name in names}


def test_a_run_without_a_threshold_has_none_in_its_record(thresholded: Thresholded) -> None:
    assert "threshold" not in thresholded.plain


def test_the_probabilities_of_both_labels_sum_to_1(thresholded: Thresholded) -> None:
    negative = [float(row[f"probability_{thresholded.negative}"]) for row in thresholded.rows]
    sums = [sum(pair) for pair in zip(negative, thresholded.probabilities, strict=True)]
    assert sums == pytest.approx([1.0] * ROWS)


def test_probabilities_do_not_know_later_rows(ahpatron: Ahpatron) -> None:
    text = rare(LABELS["text"])
    ahpatron.write("whole.csv", text)
    head = "".join(line + "\n" for line in text.splitlines()[:701])
    changed = text.splitlines()[701:]
    for name in ("yes", "no"):
        lines = [line.rpartition(",")[0] + f",{name}\n" for line in changed]
        ahpatron.write(f"{name}.csv", head + "".join(lines))
        options = (f"{name}.csv", "--label", "y", "--positive", "yes", "--probability")
        ahpatron.succeed("run", *options, "--predictions", f"{name}-p.csv")
    one, other = (
        [row["probability_yes"] for row in ahpatron.table(f"{name}-p.csv")[:700]]
        for name in ("yes", "no")
    )
    assert one == other


def test_probabilities_of_rows_one_by_one_are_those_of_a_file(
    ahpatron: Ahpatron, rings: Path
) -> None:
    options = ("-B", 20, "--sigma", 0.3, "--limit", 600, "--probability", "--threshold", 0.4)
    ahpatron.succeed("run", rings, *options, "--predictions", "file.csv")
    whole = [row["prediction"] for row in ahpatron.table("file.csv")]
    lines = rings.read_text().splitlines(keepends=True)[:600]
    lines[100] = lines[100].partition(" ")[2]  # without a label: predicted only
    ahpatron.write("gap.svm", "".join(lines))
    ahpatron.succeed("run", "gap.svm", *options, "--predictions", "gap.csv")
    gap = ahpatron.table("gap.csv")
    assert gap[100]["label"] == ""
    assert 0 < float(gap[100]["probability_1"]) < 1
    assert [row["prediction"] for row in gap[:101]] == whole[:101]


def test_a_model_keeps_its_threshold(ahpatron: Ahpatron, table: str) -> None:
    options = ("--label", "y", "--threshold", "0.3", "--save", "m.npz")
    first = run(ahpatron, table, *options)
    assert figures(ahpatron, "m.npz", table)["threshold"] == 0.3
    found = figures(ahpatron, "m.npz", table, "--threshold", 0.1)
    assert found["threshold"] == 0.1
    at_ten = next(one for one in found["thresholds"] if one["threshold"] == 0.1)
    assert found["mistakes"] == at_ten["false_positives"] + at_ten["false_negatives"]
    ahpatron.write("more.csv", rare(LABELS["text"], rows=300, seed=9))
    resumed = run(ahpatron, "more.csv", "--resume", "m.npz")
    assert resumed["threshold"] == 0.3
    assert resumed["mistakes"] - resumed["this_file"]["mistakes"] == first["mistakes"]


def test_a_checkpoint_continues_with_its_threshold(ahpatron: Ahpatron, table: str) -> None:
    options = ("--label", "y", "--threshold", "0.3")
    whole = run(ahpatron, table, *options)
    first = "".join(rare(LABELS["text"]).splitlines(keepends=True)[:1001])
    ahpatron.write("part.csv", first)
    run(ahpatron, "part.csv", *options, "--checkpoint", "c.npz")
    # the same command with the whole file goes on after its first 1,000 rows
    ahpatron.write("part.csv", rare(LABELS["text"]))
    other = ahpatron("run", "part.csv", "--label", "y", "--checkpoint", "c.npz")
    assert other.code == 2
    again = run(ahpatron, "part.csv", *options, "--checkpoint", "c.npz")
    assert again["mistakes"] == whole["mistakes"]


def test_the_figures_of_predict_are_those_of_scikit_learn(ahpatron: Ahpatron, table: str) -> None:
    ahpatron.succeed("run", table, "--label", "y", "--limit", 900, "--save", "m.npz")
    found = figures(ahpatron, "m.npz", table, "--out", "s.csv", "--probability")
    rows = ahpatron.table("s.csv")
    lines = rare(LABELS["text"]).splitlines()[1:]
    true = np.array([line.endswith("yes") for line in lines])
    p = np.array([float(row["probability_yes"]) for row in rows])
    scores = [float(row["score"]) for row in rows]
    metrics = found["metrics"]
    assert metrics["average_precision"] == pytest.approx(average_precision_score(true, scores))
    assert metrics["brier"] == pytest.approx(brier_score_loss(true, p))
    for one in (*found["thresholds"], found["best_f1"]):
        guesses = p >= one["threshold"]
        assert one["f1"] == pytest.approx(f1_score(true, guesses))
        assert one["mistake_rate"] == pytest.approx(np.mean(guesses != true))
        if guesses.any():
            assert one["precision"] == pytest.approx(precision_score(true, guesses))
        else:
            assert one["precision"] is None
    best = max(f1_score(true, p >= threshold) for threshold in np.unique(p))
    assert found["best_f1"]["f1"] == pytest.approx(best)
    assert len(repr(found["best_f1"]["threshold"])) < 8


def test_figures_are_on_stdout_if_rows_are_not(ahpatron: Ahpatron, table: str) -> None:
    ahpatron.succeed("run", table, "--label", "y", "--save", "m.npz")
    alone = ahpatron.succeed("predict", "m.npz", table, "--metrics", "--format", "table")
    with_file = ahpatron.succeed("predict", "m.npz", table, "--metrics", "--out", "s.csv")
    beside_rows = ahpatron.succeed("predict", "m.npz", table, "--metrics")
    assert "Threshold" in alone.out
    assert with_file.out == alone.out
    assert beside_rows.out.startswith("line,prediction,score\n")
    assert alone.out.strip() in beside_rows.err
    assert ahpatron("predict", "m.npz", table, "--format", "json").code == 2


@pytest.mark.parametrize("label", ["yes", "no"])
def test_one_class_gives_empty_cells_and_never_nan(
    ahpatron: Ahpatron, table: str, label: str
) -> None:
    ahpatron.succeed("run", table, "--label", "y", "--save", "m.npz")
    rows = [
        line.rpartition(",")[0] + f",{label}\n" for line in rare(LABELS["text"]).splitlines()[1:]
    ]
    ahpatron.write("one.csv", "amount,hour,country,y\n" + "".join(rows))
    for format in ("json", "table"):
        done = ahpatron.succeed("predict", "m.npz", "one.csv", "--metrics", "--format", format)
        assert "nan" not in done.out.lower()
    metrics = figures(ahpatron, "m.npz", "one.csv")["metrics"]
    assert metrics["auc"] is None
    assert metrics["average_precision"] == (None if label == "no" else 1.0)
    assert metrics["recall"] is None if label == "no" else metrics["recall"] > 0


def test_without_a_predicted_positive_there_is_no_precision(ahpatron: Ahpatron, table: str) -> None:
    ahpatron.succeed("run", table, "--label", "y", "--save", "m.npz")
    found = figures(ahpatron, "m.npz", table, "--threshold", "0.9999999")
    assert found["metrics"]["precision"] is None
    assert found["metrics"]["f1"] == 0
    done = ahpatron.succeed(
        "predict", "m.npz", table, "--metrics", "--format", "table", "--threshold", "0.9999999"
    )
    assert "never predicted" in done.out


@pytest.mark.parametrize("command", ["run", "predict"])
def test_a_threshold_needs_two_classes(ahpatron: Ahpatron, command: str) -> None:
    iris = ahpatron.write(
        "c.csv", "a,y\n" + "".join(f"{i % 7},{'abc'[i % 3]}\n" for i in range(60))
    )
    if command == "run":
        done = ahpatron("run", iris, "--label", "y", "--threshold", "0.2")
    else:
        ahpatron.succeed("run", iris, "--label", "y", "--save", "m.npz")
        done = ahpatron("predict", "m.npz", iris, "--threshold", "0.2")
        assert figures(ahpatron, "m.npz", iris)["thresholds"] is None
    assert done.code == 2
    assert "--positive" in done.err


def test_weights_change_the_predictions_and_hardly_the_probabilities(
    ahpatron: Ahpatron, table: str
) -> None:
    found = {}
    for weight in (1, 5):
        weighed = ("--weight", f"yes={weight}", "--save", "m.npz")
        ahpatron.succeed(
            "run", table, "--label", "y", "-l", "arow", "--scale", "standard", *weighed
        )
        ahpatron.succeed("predict", "m.npz", table, "--probability", "--out", "p.csv")
        rows = ahpatron.table("p.csv")
        positive = sum(row["prediction"] == "yes" for row in rows)
        probabilities = [float(row["probability_yes"]) for row in rows]
        found[weight] = (positive, sum(probabilities) / len(rows))
    assert found[5][0] > 1.3 * found[1][0]
    assert found[5][1] == pytest.approx(found[1][1], rel=0.3)


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "1.5", "half", "nan"])
def test_a_threshold_is_a_probability(ahpatron: Ahpatron, table: str, value: str) -> None:
    assert ahpatron("run", table, "--label", "y", "--threshold", value).code == 2


@pytest.mark.parametrize("rows", [255, 256])
@pytest.mark.parametrize("asked", ["--probability", "--metrics", "--threshold 0.3"])
def test_probabilities_that_are_not_fitted_cause_a_warning(
    ahpatron: Ahpatron, asked: str, rows: int
) -> None:
    lines = [f"{i % 7},{'yes' if i % 7 > 4 else 'no'}" for i in range(rows)]
    ahpatron.write("t.csv", "\n".join(["x,y", *lines, ""]))
    run = ahpatron.succeed("run", "t.csv", "--label", "y", *asked.split(), "--save", "m.npz").err
    predict = ahpatron.succeed("predict", "m.npz", "t.csv", *asked.split()).err
    assert ("not fitted" in run, "not fitted" in predict) == (rows == 255, rows == 255)
