"""Files of more than two classes, through every door."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np
import pytest

from support.command import Ahpatron

LABELS = (2.5, -3, 7, 10)
ROUNDS = 500
OPTIONS = ("--sigma", 0.5, "-B", 30)


def text(rounds: int = ROUNDS, first: int = 0) -> str:
    rng = np.random.default_rng(4)
    lines = []
    for _ in range(ROUNDS):
        a, b = rng.uniform(-1, 1, 2).round(3)
        label = LABELS[int(np.digitize(a + 0.3 * np.sin(5 * b), [-0.5, 0.0, 0.4]))]
        lines.append(f"{label} 1:{a} 2:{b}\n")
    return "".join(lines[first : first + rounds])


@pytest.fixture
def four(ahpatron: Ahpatron) -> str:
    ahpatron.write("four.svm", text())
    return "four.svm"


def run(ahpatron: Ahpatron, *args: object) -> dict[str, Any]:
    document: dict[str, Any] = ahpatron.json("run", *args)
    return document


def without_time(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("seconds", "this_file")}


def test_the_record(ahpatron: Ahpatron, four: str) -> None:
    document = run(ahpatron, four, *OPTIONS, "--metrics", "--predictions", "p.csv")
    (record,) = document["runs"]
    assert document["data"]["labels"] == record["classes"] == sorted(LABELS)
    confusion = np.array(record["confusion"])
    assert confusion.sum() == record["rounds"] == ROUNDS
    assert ROUNDS - confusion.trace() == record["mistakes"] < record["baseline_mistakes"]
    absent = ("true_positives", "false_positives", "true_negatives", "false_negatives", "zeta")
    assert {record[name] for name in absent} == {None}
    assert all(0.5 < record["metrics"][name] < 1 for name in ("precision", "recall", "f1", "auc"))
    assert 0 < record["metrics"]["balanced_error"] < 0.5 < record["metrics"]["kappa"] < 1
    with (ahpatron.folder / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = np.zeros_like(confusion)
    for row in rows:
        true, guess = (sorted(LABELS).index(float(row[key])) for key in ("label", "prediction"))
        found[true, guess] += 1
        assert int(row["mistake"]) == (true != guess)
    np.testing.assert_array_equal(found, confusion)


def test_the_table(ahpatron: Ahpatron, four: str) -> None:
    done = ahpatron("run", four, *OPTIONS)
    assert done.err == "note: 4 classes: -3, 2.5, 7, 10\n"
    assert "500 rounds, 2 features, 4 classes; baseline" in done.out
    assert "One learner per class: " in done.out
    shared = ahpatron("run", four, *OPTIONS, "-p", "multiclass=shared")
    assert "One learner per class: " not in shared.out
    assert "confusion of ahpatron; rows are true, columns predicted labels" in done.out
    many = "".join(f"{i % 21} 1:{i % 21} 2:{i % 5}\n" for i in range(210))
    ahpatron.write("many.svm", many)
    done = ahpatron("run", "many.svm")
    assert (done.code, "confusion" in done.out) == (0, False)


@pytest.mark.parametrize("name", ["ahpatron", "ahpatron+ -p multiclass=shared", "arow"])
def test_saved_and_resumed_is_uninterrupted(ahpatron: Ahpatron, four: str, name: str) -> None:
    learner = ("-l", *name.split())
    whole = run(ahpatron, four, *OPTIONS, *learner, "--save", "whole.npz")["runs"][0]
    ahpatron.write("a.svm", text(201))
    ahpatron.write("b.svm", text(first=201))
    run(ahpatron, "a.svm", *OPTIONS, *learner, "--save", "a.npz")
    resumed = run(ahpatron, "b.svm", "--resume", "a.npz", "--save", "b.npz")["runs"][0]
    assert resumed.pop("norm") == pytest.approx(whole.pop("norm"))  # 201 is no multiple of 64
    assert without_time(resumed) == without_time(whole)
    predictions = ahpatron("predict", "whole.npz", four)
    rows = list(csv.DictReader(io.StringIO(predictions.out)))
    true = [float(line.split()[0]) for line in text().splitlines()]
    wrong = sum(float(row["prediction"]) != y for row, y in zip(rows, true, strict=True))
    assert f"{wrong} mistakes in 500 rows with labels" in predictions.err
    scores = [[float(row[f"score_{label:g}"]) for label in sorted(LABELS)] for row in rows]
    guesses = [sorted(LABELS)[int(np.argmax(one))] for one in scores]
    assert [float(row["prediction"]) for row in rows] == guesses
    as_json = ahpatron("predict", "b.npz", four, "--format", "jsonl").out.splitlines()
    read = [json.loads(line)["scores"] for line in as_json]
    np.testing.assert_allclose(read, scores, rtol=1e-7)
    shown = ahpatron("inspect", "b.npz")
    assert re.search(r"  labels +-3, 2.5, 7, 10\n", shown.out)


def test_a_checkpoint_goes_on(ahpatron: Ahpatron, four: str) -> None:
    options = (*OPTIONS, "--checkpoint", "c.npz", "--every", 128)
    first = run(ahpatron, four, *options)["runs"][0]
    again = run(ahpatron, four, *options)["runs"][0]
    assert without_time(again) == without_time(first)


def test_every_way_to_play_gives_the_same(ahpatron: Ahpatron, four: str) -> None:
    learners = ("-l", "ahpatron", "-l", "rbp")
    streamed = run(ahpatron, four, *OPTIONS, *learners)
    held = run(ahpatron, four, *OPTIONS, *learners, "--no-shuffle", "--repeats", 2)
    for one, other in zip(streamed["runs"], held["runs"][::2], strict=True):
        assert without_time(one) == without_time(other)
    shuffled = run(ahpatron, four, *OPTIONS, "--repeats", 2)
    apart = run(ahpatron, four, *OPTIONS, "--repeats", 2, "-j", 2)
    assert [*map(without_time, apart["runs"])] == [*map(without_time, shuffled["runs"])]
    swept = ahpatron(
        "sweep", four, *OPTIONS, "--repeats", 2, "--out", "r.jsonl", "--format", "json"
    )
    (setting,) = json.loads(swept.out)["datasets"][0]["settings"]
    assert setting["mistake_rate_mean"] == shuffled["summary"][0]["mistake_rate_mean"]
    assert "4 classes" in ahpatron("inspect", "r.jsonl").out


def test_inspect_says_how_to_go_on(ahpatron: Ahpatron, four: str) -> None:
    shown = ahpatron("inspect", four)
    assert re.search(r"  classes +4\n", shown.out)
    (command,) = [line for line in shown.out.splitlines() if "ahpatron run" in line]
    assert ahpatron(*command.split()[1:]).code == 0


def test_a_class_that_the_model_does_not_know(ahpatron: Ahpatron, four: str) -> None:
    run(ahpatron, four, *OPTIONS, "--save", "m.npz")
    ahpatron.write("other.svm", text(20) + "8 1:0.5\n")
    for refused in (
        ahpatron("run", "other.svm", "--resume", "m.npz", "--save", "n.npz"),
        ahpatron("predict", "m.npz", "other.svm"),
    ):
        assert refused.code == 65
        assert "the model was not trained on the label 8" in refused.err
        assert "other.svm:21" in refused.err
        assert "labels are -3, 2.5, 7, 10" in refused.err
    assert not (ahpatron.folder / "n.npz").exists()


@pytest.mark.slow
def test_a_thousand_classes_are_played_and_kept(ahpatron: Ahpatron) -> None:
    ahpatron.write("k.svm", "".join(f"{i} 1:{i / 1000}\n" for i in range(1000)))
    options = ("-l", "fogd", "-p", "features=2", "--save", "m.npz")
    (record,) = run(ahpatron, "k.svm", *options)["runs"]
    assert len(record["confusion"]) == len(record["classes"]) == 1000
    ahpatron.write("new.svm", "0 1:0.5\n")
    assert ahpatron("predict", "m.npz", "new.svm").out.count(",") == 2 * 1001
