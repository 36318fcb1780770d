"""`ahpatron predict`: the scores of a model, for rows with and without labels."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from support.command import Ahpatron

ROWS = "".join(
    f"{2 if (i * 7) % 11 > 4 else 1} 1:{(i * 7) % 11} 2:{i % 5 - 2}\n" for i in range(400)
)
UNLABELLED = re.sub(r"(?m)^\d ", "", ROWS)
QUESTIONS = re.sub(r"(?m)^\d ", "? ", ROWS)


@pytest.fixture
def trained(ahpatron: Ahpatron) -> Ahpatron:
    ahpatron.write("train.svm", ROWS)
    options = ("--sigma", "auto", "--scale", "standard", "-B", 20, "--save", "m.npz")
    assert ahpatron("run", "train.svm", *options).code == 0
    return ahpatron


def scores(text: str) -> list[tuple[int, str, float]]:
    rows = csv.DictReader(io.StringIO(text))
    return [(int(row["line"]), row["prediction"], float(row["score"])) for row in rows]


@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize("content", [ROWS, UNLABELLED, QUESTIONS], ids=["labels", "none", "?"])
def test_scores_do_not_depend_on_labels(trained: Ahpatron, content: str, way: str) -> None:
    wanted = scores(trained.succeed("predict", "m.npz", "train.svm").out)
    labels = [line.split()[0] for line in ROWS.splitlines()]
    mistakes = sum(row[1] != label for row, label in zip(wanted, labels, strict=True))
    trained.write("new.svm", content)
    if way == "file":
        done = trained("predict", "m.npz", "new.svm")
    else:
        done = trained("predict", "m.npz", "-", stdin=content.encode())
    assert done.code == 0, done.err
    assert scores(done.out) == wanted
    assert 0 < mistakes < 100
    said = f"{mistakes} mistakes in 400 rows with labels ({mistakes / 4:.2f} %)"
    assert done.err == f"note: {said if content is ROWS else '400 rows without labels'}\n"


def test_some_rows_with_labels(trained: Ahpatron) -> None:
    half = ROWS.splitlines(keepends=True)[:200] + UNLABELLED.splitlines(keepends=True)[200:]
    done = trained("predict", "m.npz", "-", stdin="".join(half).encode())
    assert re.fullmatch(r"note: \d+ mistakes in 200 rows with labels of 400 \(.*\)\n", done.err)
    quiet = trained("predict", "m.npz", "-", "-q", stdin="".join(half).encode())
    assert (quiet.out, quiet.err) == (done.out, "")


def test_one_of_each_is_singular(trained: Ahpatron) -> None:
    features = ROWS.splitlines()[4][1:]
    said = {
        label: trained("predict", "m.npz", "-", stdin=f"{label}{features}\n".encode()).err
        for label in ("1", "2", "?")
    }
    assert said.pop("?") == "note: 1 row without labels\n"
    assert sorted(said.values()) == [
        "note: 0 mistakes in 1 row with labels (0.00 %)\n",
        "note: 1 mistake in 1 row with labels (100.00 %)\n",
    ]


def test_json_lines_and_files(trained: Ahpatron) -> None:
    plain = scores(trained("predict", "m.npz", "train.svm").out)
    printed = trained("predict", "m.npz", "train.svm", "--format", "jsonl").out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [(row["line"], str(row["prediction"]), row["score"]) for row in rows] == plain
    done = trained("predict", "m.npz", "train.svm", "--out", "s.jsonl")
    assert (done.code, done.out) == (0, "")
    assert (trained.folder / "s.jsonl").read_text() == printed


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_several_files_are_named(trained: Ahpatron, format: str) -> None:
    trained.write("b,c.svm", ROWS)
    done = trained("predict", "m.npz", "train.svm", "b,c.svm", "--format", format)
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(done.out)))
    else:
        rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["data"] for row in rows] == ["train.svm"] * 400 + ["b,c.svm"] * 400
    assert "note: b,c.svm: " in done.err


def test_one_against_the_rest_predicts_other(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", "".join(f"{i % 3} 1:{i % 3} 2:{i % 2}\n" for i in range(90)))
    assert ahpatron("run", "d.svm", "--positive", 2, "--save", "m.npz").code == 0
    done = ahpatron("predict", "m.npz", "d.svm")
    assert {prediction for _, prediction, _ in scores(done.out)} == {"2", "other"}
    rows = ahpatron("predict", "m.npz", "d.svm", "--format", "jsonl").out.splitlines()
    assert {json.loads(row)["prediction"] for row in rows} == {2, "other"}


def test_features_that_the_model_was_not_trained_on_are_refused(trained: Ahpatron) -> None:
    wide = trained.write("wide.svm", "1:1 2:1 500:0\n1:1 2:1 500:2\n")
    refused = trained("predict", "m.npz", wide)
    assert refused.code == 65
    assert "wide.svm:2" in refused.err
    assert "500" in refused.err
    done = trained.succeed("predict", "m.npz", wide, "--allow-new-features")
    (_, _, near), (_, _, far) = scores(done.out)
    assert abs(far) < abs(near)  # it enters the distance


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("m.npz", "none.svm"), 66, "no such file"),
        (("none.npz", "train.svm"), 66, "the model cannot be read"),
        (("train.svm", "m.npz"), 2, "`ahpatron predict MODEL DATA`"),
        (("cut.npz", "train.svm"), 65, "this is not a model of ahpatron, or it is damaged"),
        (("flipped.npz", "train.svm"), 65, "or it is damaged"),
        (("zip.npz", "train.svm"), 65, "this is not a model of ahpatron"),
        (("m.npz", "empty.svm"), 65, "there are no rows"),
        (("m.npz", "word.svm"), 65, "word.svm:2"),
        (("m.npz", "third.svm"), 65, "third.svm:2"),
        (("m.npz", "huge.svm"), 65, "f(x) cannot be computed"),
        (("m.npz", "data.csv"), 65, "this is a table"),
        (("m.npz", "-", "-"), 2, "standard input (-) can be read only once"),
        (("m.npz", "train.svm", "--format", "json"), 2, "unknown format 'json'"),
        (("m.npz", "train.svm", "--out", "s.txt"), 2, "suffix"),
        (("m.npz", "train.svm", "--out", "no/s.csv"), 73, "the output cannot be written"),
        (("m.npz", "train.svm", "--out", "/dev/full"), 74, "the output cannot be written"),
    ],
)
def test_refusal(trained: Ahpatron, arguments: tuple[str, ...], code: int, problem: str) -> None:
    trained.write("empty.svm", "# nothing\n")
    trained.write("word.svm", "? 1:2\nx 1:2\n")
    trained.write("third.svm", "1 1:2\n0 1:2\n")
    trained.write("huge.svm", "1:1e308 2:-1e308\n")
    trained.write("data.csv", "a,b\n1,2\n")
    whole = (trained.folder / "m.npz").read_bytes()
    (trained.folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    (trained.folder / "flipped.npz").write_bytes(flipped)
    np.savez(trained.folder / "zip.npz", x=np.zeros(3))
    before = trained.files()
    assert problem in trained.refusal(code, "predict", *arguments)
    assert trained.files() == before


def test_run_writes_predictions_to_stdout_and_the_table_to_stderr(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", ROWS)
    filed = ahpatron("run", "d.svm", "--predictions", "p.csv", "-B", 20)
    done = ahpatron.succeed("run", "d.svm", "--predictions", "-", "-B", 20)
    assert done.out == Path(ahpatron.folder / "p.csv").read_text()
    assert "AMR %" in done.err
    assert "AMR %" in filed.out
    assert "AMR %" not in ahpatron("run", "d.svm", "--predictions", "-", "-q").err
    err = ahpatron.refusal(2, "run", "d.svm", "--predictions", "-", "--format", "json")
    assert "--out FILE" in err


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(ahpatron: Ahpatron, classes: int, format: str) -> None:
    """They add up to 1, and nearly always the predicted label is the most probable one."""
    names = ["n o", "yes", "zero"][:classes]
    rows = [(names[i % classes], i % classes + i * i % 7 / 9) for i in range(300)]
    ahpatron.write("t.csv", "y,x\n" + "".join(f"{y},{x}\n" for y, x in rows))
    options = ("--label", "y", "--sigma", 0.3, "--save", "m.npz")
    ahpatron.succeed("run", "t.csv", *options, *(["--positive", "yes"] if classes == 2 else []))
    out = ahpatron.succeed("predict", "m.npz", "t.csv", "--probability", "--format", format).out
    if format == "csv":
        found = list(csv.DictReader(io.StringIO(out)))
    else:
        found = [json.loads(line) for line in out.splitlines()]
    shares = np.array([[float(row[f"probability_{name}"]) for name in names] for row in found])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    chosen = np.array([names.index(row["prediction"]) for row in found])
    assert np.mean(shares.argmax(axis=1) == chosen) > 0.95


def test_rounds_have_the_labels_and_ids_of_the_data(ahpatron: Ahpatron) -> None:
    rows = [(f'a,"\n{i}', "no" if i % 3 else "yes", i % 3) for i in range(90)]
    with (ahpatron.folder / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("who", "y", "x"), *rows])
    command = ("run", "t.csv", "--label", "y", "--id", "who", "--checkpoint", "c.npz")
    ahpatron.succeed(*command, "--predictions", "p.csv")
    with (ahpatron.folder / "p.csv").open(newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [(row["who"], row["label"]) for row in found] == [row[:2] for row in rows]
    assert {row["prediction"] for row in found} == {"yes", "no"}
    for row in found:
        assert row["mistake"] == str(int(row["label"] != row["prediction"]))
    before = (ahpatron.folder / "p.csv").read_bytes()
    ahpatron.succeed(*command, "--predictions", "p.csv")  # nothing is left to do
    assert (ahpatron.folder / "p.csv").read_bytes() == before
