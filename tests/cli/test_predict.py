"""`ahpatron predict`: the scores of a model, for rows with and without labels."""

import json
import re

import numpy as np
import pytest

from support.command import Ahpatron, rows_of
from support.labels import EVERY, NUMBERS, drawn, libsvm, table

ROWS = "".join(
    f"{2 if (i * 7) % 11 > 4 else 1} 1:{(i * 7) % 11} 2:{i % 5 - 2}\n" for i in range(400)
)
CONTENTS = {
    "labels": ROWS,
    "none": re.sub(r"(?m)^\d ", "", ROWS),
    "?": re.sub(r"(?m)^\d ", "? ", ROWS),
    "half": ROWS[: len(ROWS) // 2] + re.sub(r"(?m)^\d ", "", ROWS[len(ROWS) // 2 :]),
}


@pytest.fixture
def trained(ahpatron: Ahpatron) -> Ahpatron:
    ahpatron.write("train.svm", ROWS)
    options = ("--sigma", "auto", "--scale", "standard", "-B", 20, "--save", "m.npz")
    ahpatron.succeed("run", "train.svm", *options)
    return ahpatron


def read(text: str) -> list[dict[str, str]]:
    """The rows of CSV, or of JSON lines."""
    return [*map(json.loads, text.splitlines())] if text.startswith("{") else rows_of(text)


def scores(text: str) -> list[tuple[int, str, float]]:
    return [(int(row["line"]), str(row["prediction"]), float(row["score"])) for row in read(text)]


@pytest.mark.parametrize("content", CONTENTS)
def test_scores_do_not_depend_on_labels(trained: Ahpatron, content: str) -> None:
    wanted = scores(trained.succeed("predict", "m.npz", "train.svm").out)
    labels = [line.split()[0] for line in ROWS.splitlines()]
    trained.write("new.svm", CONTENTS[content])
    data = CONTENTS[content].encode()
    for path in ("new.svm", "-"):
        done = trained.succeed("predict", "m.npz", path, stdin=data)
        assert scores(done.out) == wanted
        known = {"labels": 400, "half": 200}.get(content, 0)
        mistakes = sum(row[1] != label for row, label in zip(wanted[:known], labels, strict=False))
        numbers = [int(number) for number in re.findall(r"\b\d+\b(?!\.)", done.err)]
        assert numbers[:2] == [mistakes, known] if known else numbers == [400]
    quiet = trained.succeed("predict", "m.npz", "-", "-q", stdin=data)
    assert (scores(quiet.out), quiet.err) == (wanted, "")


def test_json_lines_and_files_have_the_same_scores(trained: Ahpatron) -> None:
    plain = scores(trained("predict", "m.npz", "train.svm").out)
    printed = trained("predict", "m.npz", "train.svm", "--format", "jsonl").out
    assert scores(printed) == plain
    done = trained("predict", "m.npz", "train.svm", "--out", "s.jsonl")
    assert (done.code, done.out) == (0, "")
    assert trained.read("s.jsonl") == printed


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_several_files_are_named(trained: Ahpatron, format: str) -> None:
    trained.write("b,c.svm", ROWS)
    done = trained("predict", "m.npz", "train.svm", "b,c.svm", "--format", format)
    assert [row["data"] for row in read(done.out)] == ["train.svm"] * 400 + ["b,c.svm"] * 400
    assert "b,c.svm: " in done.err


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_one_against_the_rest_predicts_other(ahpatron: Ahpatron, format: str) -> None:
    ahpatron.write("d.svm", "".join(f"{i % 3} 1:{i % 3} 2:{i % 2}\n" for i in range(90)))
    ahpatron.succeed("run", "d.svm", "--positive", 2, "--save", "m.npz")
    out = ahpatron.succeed("predict", "m.npz", "d.svm", "--format", format).out
    assert {str(row["prediction"]) for row in read(out)} == {"2", "other"}


def test_features_that_the_model_was_not_trained_on_are_refused(trained: Ahpatron) -> None:
    wide = trained.write("wide.svm", "1:1 2:1 500:0\n1:1 2:1 500:2\n")
    refused = trained.refusal(65, "predict", "m.npz", wide)
    assert "wide.svm:2" in refused
    assert "500" in refused
    done = trained.succeed("predict", "m.npz", wide, "--allow-new-features")
    (_, _, near), (_, _, far) = scores(done.out)
    assert abs(far) < abs(near)  # it enters the distance


def test_run_writes_predictions_to_stdout_and_the_table_to_stderr(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", ROWS)
    filed = ahpatron("run", "d.svm", "--predictions", "p.csv", "-B", 20)
    done = ahpatron.succeed("run", "d.svm", "--predictions", "-", "-B", 20)
    assert done.out == ahpatron.read("p.csv")
    assert "Mistakes %" in done.err
    assert "Mistakes %" in filed.out
    assert "Mistakes %" not in ahpatron("run", "d.svm", "--predictions", "-", "-q").err


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_add_up_and_agree_with_predictions(
    ahpatron: Ahpatron, classes: int, format: str
) -> None:
    """They add up to 1, and nearly always the predicted label is the most probable one."""
    names = ["n o", "yes", "zero"][:classes]
    rows = [(names[i % classes], i % classes + i * i % 7 / 9) for i in range(300)]
    ahpatron.write("t.csv", "y,x\n" + "".join(f"{y},{x}\n" for y, x in rows))
    options = ("--label", "y", "-l", "ahpatron", "--sigma", 0.3, "--save", "m.npz")
    ahpatron.succeed("run", "t.csv", *options, *(["--positive", "yes"] if classes == 2 else []))
    out = ahpatron.succeed("predict", "m.npz", "t.csv", "--probability", "--format", format).out
    found = read(out)
    shares = np.array([[float(row[f"probability_{name}"]) for name in names] for row in found])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    chosen = np.array([names.index(row["prediction"]) for row in found])
    assert np.mean(shares.argmax(axis=1) == chosen) > 0.95
    assert np.mean([row["prediction"] == y for row, (y, _) in zip(found, rows, strict=True)]) > 0.7
    if classes == 3 and format == "csv":
        assert list(found[0])[:5] == ["line", "prediction", *(f"score_{name}" for name in names)]


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_predictions_are_labels_of_the_training_data(
    ahpatron: Ahpatron, kind: str, format: str
) -> None:
    rows = drawn(EVERY[kind])
    ahpatron.write("t.csv", table(EVERY[kind]))
    ahpatron.succeed("run", "t.csv", "--label", "y", "--id", "name", "--save", "m.npz")
    done = ahpatron.succeed("predict", "m.npz", "t.csv", "--format", format)
    found = [(row["name"], str(row["prediction"])) for row in read(done.out)]
    assert [name for name, _ in found] == [f"row {number}" for number in range(len(rows))]
    assert {label for _, label in found} == {*EVERY[kind]}
    wrong = sum(label != row[0] for (_, label), row in zip(found, rows, strict=True))
    assert f"{wrong} mistakes in {len(rows)} rows" in done.err
    assert wrong < 0.3 * len(rows)


@pytest.mark.parametrize("kind", NUMBERS)
def test_libsvm_text_has_its_labels_back(ahpatron: Ahpatron, kind: str) -> None:
    ahpatron.write("d.svm", libsvm(NUMBERS[kind]))
    ahpatron.succeed("run", "d.svm", "--save", "m.npz")
    found = read(ahpatron.succeed("predict", "m.npz", "d.svm").out)
    assert {row["prediction"] for row in found} == {*NUMBERS[kind]}
