"""Files of more than two classes, in every command."""

import json
from typing import Any

import numpy as np
import pytest

from support.command import Ahpatron, rows_of

LABELS = (2.5, -3, 7, 10)
ROUNDS = 500
OPTIONS = ("--sigma", 0.5, "-B", 30)


def text(rounds: int = ROUNDS) -> str:
    rng = np.random.default_rng(4)
    lines = []
    for _ in range(ROUNDS):
        a, b = rng.uniform(-1, 1, 2).round(3)
        label = LABELS[int(np.digitize(a + 0.3 * np.sin(5 * b), [-0.5, 0.0, 0.4]))]
        lines.append(f"{label} 1:{a} 2:{b}\n")
    return "".join(lines[:rounds])


@pytest.fixture
def four(ahpatron: Ahpatron) -> str:
    ahpatron.write("four.svm", text())
    return "four.svm"


@pytest.fixture(scope="module")
def counted(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The record and the predictions of a run of four classes."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("counted"))
    ahpatron.write("four.svm", text())
    record = ahpatron.run("four.svm", *OPTIONS, "--metrics", "--predictions", "p.csv")
    return record, ahpatron.table("p.csv")


def test_the_confusion_matrix_of_several_classes_has_all_rounds_and_mistakes(
    counted: tuple[dict[str, Any], list[dict[str, str]]],
) -> None:
    record, _ = counted
    assert record["classes"] == sorted(LABELS)
    confusion = np.array(record["confusion"])
    assert confusion.sum() == record["rounds"] == ROUNDS
    assert ROUNDS - confusion.trace() == record["mistakes"] < record["baseline_mistakes"]


def test_counts_of_two_classes_are_null_for_several(
    counted: tuple[dict[str, Any], list[dict[str, str]]],
) -> None:
    record, _ = counted
    absent = ("true_positives", "false_positives", "true_negatives", "false_negatives", "zeta")
    assert {record[name] for name in absent} == {None}


def test_metrics_of_several_classes_are_better_than_chance(
    counted: tuple[dict[str, Any], list[dict[str, str]]],
) -> None:
    metrics = counted[0]["metrics"]
    assert all(0.5 < metrics[name] < 1 for name in ("precision", "recall", "f1", "auc"))
    assert 0 < metrics["balanced_error"] < 0.5 < metrics["kappa"] < 1


def test_the_confusion_matrix_of_several_classes_is_that_of_the_predictions(
    counted: tuple[dict[str, Any], list[dict[str, str]]],
) -> None:
    record, rows = counted
    found = np.zeros((len(LABELS), len(LABELS)), dtype=int)
    for row in rows:
        true, guess = (sorted(LABELS).index(float(row[key])) for key in ("label", "prediction"))
        found[true, guess] += 1
        assert int(row["mistake"]) == (true != guess)
    np.testing.assert_array_equal(found, record["confusion"])


@pytest.mark.parametrize(("classes", "shown"), [(4, True), (21, False)])
def test_confusion_is_shown_for_few_classes(ahpatron: Ahpatron, classes: int, shown: bool) -> None:
    lines = [f"{i % classes} 1:{i % classes} 2:{i % 5}\n" for i in range(210)]
    ahpatron.write("d.svm", "".join(lines))
    assert ("confusion" in ahpatron.succeed("run", "d.svm").out) == shown


@pytest.mark.parametrize("name", ["ahpatron", "ahpatron+ -p multiclass=shared", "arow"])
def test_predictions_are_the_largest_scores(ahpatron: Ahpatron, four: str, name: str) -> None:
    ahpatron.run(four, *OPTIONS, "-l", *name.split(), "--save", "m.npz")
    rows = rows_of(ahpatron.succeed("predict", "m.npz", four).out)
    scores = [[float(row[f"score_{label:g}"]) for label in sorted(LABELS)] for row in rows]
    guesses = [sorted(LABELS)[int(np.argmax(one))] for one in scores]
    assert [float(row["prediction"]) for row in rows] == guesses
    as_json = ahpatron("predict", "m.npz", four, "--format", "jsonl").out.splitlines()
    np.testing.assert_allclose([json.loads(line)["scores"] for line in as_json], scores, rtol=1e-7)


def test_every_way_gives_the_same(ahpatron: Ahpatron, four: str) -> None:
    learners = ("-l", "ahpatron", "-l", "rbp")
    words = ("run", four, *OPTIONS, *learners)
    counts = ("learner", "mistakes", "updates")
    wanted = [[one[name] for name in counts] for one in ahpatron.json(*words)["runs"]]
    held = ahpatron.json(*words, "--no-shuffle", "--repeats", 2)["runs"][::2]
    assert [[one[name] for name in counts] for one in held] == wanted
    ahpatron.sweep(*words[1:], "--no-shuffle")
    assert [[one["run"][name] for name in counts] for one in ahpatron.trials()] == wanted
    (command, *_) = ahpatron.json("inspect", four)["next"]
    ahpatron.succeed(*command.split()[1:])


def test_a_class_that_the_model_does_not_know_is_refused_at_its_line(
    ahpatron: Ahpatron, four: str
) -> None:
    ahpatron.succeed("run", four, *OPTIONS, "--save", "m.npz")
    ahpatron.write("other.svm", text(20) + "8 1:0.5\n")
    for words in ("run other.svm --resume m.npz --save n.npz", "predict m.npz other.svm"):
        done = ahpatron(*words.split())
        assert done.code == 65
        assert "other.svm:21" in done.err
        assert "-3, 2.5, 7, 10" in done.err
    assert "n.npz" not in ahpatron.files()


@pytest.mark.slow
def test_a_thousand_classes_can_be_learned_and_predicted(ahpatron: Ahpatron) -> None:
    ahpatron.write("k.svm", "".join(f"{i} 1:{i / 1000}\n" for i in range(1000)))
    options = ("-l", "fogd", "-p", "features=2", "--save", "m.npz")
    record = ahpatron.run("k.svm", *options)
    assert len(record["confusion"]) == len(record["classes"]) == 1000
    ahpatron.write("new.svm", "0 1:0.5\n")
    assert ahpatron("predict", "m.npz", "new.svm").out.count(",") == 2 * 1001
