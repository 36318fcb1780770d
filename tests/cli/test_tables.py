"""Tables in every command: from CSV or Parquet to a model, and from the model to named scores."""

from __future__ import annotations

import csv
import gzip
import json
import random
import subprocess
from io import StringIO

import msgspec
import pandas as pd
import pytest

from ahpatron_cli.models import load_model
from support.command import COMMAND, Ahpatron

OPTIONS = ("--scale", "standard", "--sigma", 2, "-B", 50)


def customers(count: int, *, labels: bool = True, seed: int = 0) -> str:
    """Dates, ids, missing cells, text, 10 % positives."""
    draw = random.Random(seed)
    lines = [",customer,since,plan,age,pays,city" + (",churned" if labels else "")]
    for i in range(count):
        plan, age, pays = draw.choice(["basic", "plus"]), draw.randint(18, 80), draw.gauss(40, 12)
        cells = [i, f"C{seed}{i:05}", f"202{draw.randint(0, 4)}-0{draw.randint(1, 9)}-15", plan]
        cells += [draw.choice([age] * 9 + ["NA"]), f"{pays:.2f}"]
        cells += [draw.choice(["Köln", '"Bergen, NO"'])]
        cells += ["yes" if plan == "basic" and age < 32 else "no"] * labels
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


TABLE = ("--label", "churned", "--id", "customer")


@pytest.fixture
def trained(ahpatron: Ahpatron) -> Ahpatron:
    ahpatron.write("old.csv", customers(600))
    ahpatron.write("new.csv", customers(200, labels=False, seed=1))
    ahpatron.succeed("run", "old.csv", *TABLE, *OPTIONS, "-l", "arow", "--save", "m.npz")
    return ahpatron


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def test_a_table_is_learned_as_its_libsvm_text(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(600))
    ahpatron.succeed("convert", "old.csv", *TABLE, "--out", "old.svm")
    frame = pd.read_csv(ahpatron.folder / "old.csv", dtype={"age": "float64"}, na_values=["NA"])
    frame.drop(columns="Unnamed: 0").to_parquet(ahpatron.folder / "old.parquet")
    data = (ahpatron.folder / "old.csv").read_bytes()
    (ahpatron.folder / "old.csv.gz").write_bytes(gzip.compress(data))
    expected = ahpatron.json("run", "old.svm", *OPTIONS)
    for found in (
        ahpatron.json("run", "old.csv", *TABLE, *OPTIONS),
        ahpatron.json("run", "old.parquet", *TABLE, *OPTIONS),
        ahpatron.json("run", "old.csv.gz", *TABLE, *OPTIONS),
        ahpatron.json("run", "-", *TABLE, *OPTIONS, stdin=data),
    ):
        assert found["data"]["features"] == expected["data"]["features"] == 8
        assert found["runs"][0]["mistakes"] == expected["runs"][0]["mistakes"]
        assert found["data"]["labels"] == [-1, 1]


def test_scores_have_ids_and_names_of_labels(trained: Ahpatron) -> None:
    done = trained.succeed("predict", "m.npz", "new.csv", "--id", "customer")
    rows = rows_of(done.out)
    assert list(rows[0]) == ["customer", "prediction", "score"]
    assert [row["customer"] for row in rows] == [f"C1{i:05}" for i in range(200)]
    assert {row["prediction"] for row in rows} == {"no", "yes"}
    assert all((float(row["score"]) >= 0) == (row["prediction"] == "yes") for row in rows)
    lines = trained.succeed("predict", "m.npz", "new.csv", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {**row, "score": float(row["score"])} for row in rows
    ]
    # other columns, in another order; another id
    frame = pd.read_csv(trained.folder / "new.csv")[::-1]
    frame.assign(extra=1)[sorted([*frame.columns, "extra"])].to_csv(trained.folder / "other.csv")
    again = rows_of(trained.succeed("predict", "m.npz", "other.csv", "--id", "city").out)
    assert [row["score"] for row in again] == [row["score"] for row in rows[::-1]]
    assert {row["city"] for row in again} == {"Köln", "Bergen, NO"}
    no_id = trained.succeed(
        "predict", "m.npz", "-", stdin=customers(3, seed=2).replace("customer", "client").encode()
    )
    assert list(rows_of(no_id.out)[0]) == ["line", "prediction", "score"]
    assert "3 rows" in no_id.err


def test_the_model_has_the_schema(trained: Ahpatron) -> None:
    schema = load_model(str(trained.folder / "m.npz")).header.schema
    assert schema is not None
    assert [column.name for column in schema.columns] == ["since", "plan", "age", "pays", "city"]
    assert schema.labels == {"no": -1.0, "yes": 1.0}
    shown = trained.succeed("inspect", "m.npz").out
    assert "yes (1)" in shown
    assert "since (date)" in shown
    document = trained.json("inspect", "m.npz")
    assert document["data"]["schema"] == msgspec.to_builtins(schema)


def test_a_resumed_run_has_the_same_schema(trained: Ahpatron) -> None:
    first, second = customers(640), customers(300, seed=3)
    whole = first + second.partition("\n")[2]
    trained.write("first.csv", first)
    trained.write("second.csv", second)
    trained.write("whole.csv", whole)
    learn = ("-l", "arow", *OPTIONS, *TABLE, "--warm-up", 600)
    trained.succeed("run", "first.csv", *learn, "--save", "a.npz")
    resumed = trained.json("run", "second.csv", "--resume", "a.npz", "--save", "b.npz")
    alone = trained.json("run", "whole.csv", *learn)
    assert resumed["runs"][0]["mistakes"] == alone["runs"][0]["mistakes"]
    models = [load_model(str(trained.folder / name)) for name in ("a.npz", "b.npz")]
    assert models[0].header.schema == models[1].header.schema
    assert trained("run", "second.csv", "--resume", "a.npz", "--label", "plan").code == 2


def test_data_that_do_not_fit_the_model(trained: Ahpatron) -> None:
    trained.write("d.svm", "1 1:1\n-1 2:1\n" * 20)
    trained.succeed("run", "d.svm", "--save", "svm.npz")
    trained.write("few.csv", "customer,plan\nC,basic\n")
    trained.write("text.csv", "since,plan,age,pays,city\n,plus,old,3,Köln\n")
    assert "table" in trained.refusal(65, "predict", "svm.npz", "new.csv")
    assert "since, age" in trained.refusal(65, "predict", "m.npz", "few.csv")
    assert "text.csv:2" in trained.refusal(65, "predict", "m.npz", "text.csv")
    assert "name" in trained.refusal(65, "predict", "m.npz", "new.csv", "--id", "name")
    assert trained("predict", "m.npz", "d.svm").code == 65
    assert trained("predict", "svm.npz", "d.svm", "--id", "a").code == 2


def test_labels_by_name(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(600))
    plain, heavy = (
        ahpatron.json("run", "old.csv", *TABLE, *OPTIONS, "-l", "arow", "--metrics", *more)
        for more in ((), ("--cost", "yes=20"))
    )
    assert heavy["runs"][0]["costs"] == [1, 20]
    assert heavy["runs"][0]["metrics"]["recall"] > plain["runs"][0]["metrics"]["recall"]
    other = ahpatron.json("run", "old.csv", *TABLE, *OPTIONS, "-l", "arow", "--positive", "no")
    counts = other["runs"][0]
    positives = counts["true_positives"] + counts["false_negatives"]
    assert positives == (ahpatron.folder / "old.csv").read_text().count(",no\n")
    err = ahpatron.refusal(2, "run", "old.csv", *TABLE, "--cost", "maybe=2")
    assert "no, yes" in err
    assert "--label churned" in ahpatron.refusal(65, "run", "old.csv")


def test_classes_have_names(ahpatron: Ahpatron) -> None:
    draw = random.Random(0)
    lines = [f"{(k := draw.randrange(3)) + draw.gauss(0, 0.1)},{'abc'[k]}\n" for _ in range(200)]
    ahpatron.write("d.csv", "x,kind\n" + "".join(lines))
    ahpatron.succeed("run", "d.csv", "--label", "kind", "--save", "m.npz")
    rows = rows_of(ahpatron.succeed("predict", "m.npz", "d.csv").out)
    assert list(rows[0]) == ["line", "prediction", "score_a", "score_b", "score_c"]
    right = sum(row["prediction"] == line[-2] for row, line in zip(rows, lines, strict=True))
    assert right > 150


def test_rows_without_labels_are_predicted_only(ahpatron: Ahpatron) -> None:
    text = customers(200).splitlines(keepends=True)
    text[5] = text[5].rpartition(",")[0] + ",?\n"
    ahpatron.write("d.csv", "".join(text))
    run = ahpatron.json("run", "d.csv", *TABLE)["runs"][0]
    assert (run["rounds"], run["unlabelled"]) == (199, 1)
    assert "d.csv:6" in ahpatron.refusal(65, "run", "d.csv", *TABLE, "--shuffle")


def test_a_sweep_reads_tables(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(300))
    command = ("sweep", "old.csv", *TABLE, "-g", "budget=10,20", "--repeats", 2, "--sigma", 2)
    done = ahpatron.succeed(*command, "--scale", "standard", "--out", "r.jsonl")
    assert "--label churned --id customer" in done.out
    again = ahpatron.succeed(*command, "--scale", "standard", "--out", "r.jsonl")
    assert len((ahpatron.folder / "r.jsonl").read_text().splitlines()) >= 5
    assert again.code == 0
    run = ahpatron.json("run", "old.csv", *TABLE, *OPTIONS[:4], "-B", 10, "--repeats", 2)
    trials = [json.loads(line) for line in (ahpatron.folder / "r.jsonl").read_text().splitlines()]
    played = {
        trial["run"]["repeat"]: trial["run"]["mistakes"]
        for trial in trials
        if "run" in trial and trial["run"]["params"]["budget"] == 10
    }
    assert played == {one["repeat"]: one["mistakes"] for one in run["runs"]}


def test_inspect_reads_tables(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(300))
    found = ahpatron.json("inspect", "old.csv", *TABLE)
    assert (found["rows"], found["features"]) == (300, 8)
    shown = ahpatron.succeed("inspect", "old.csv", *TABLE).out
    assert "ahpatron run old.csv --label churned --id customer" in shown
    assert ahpatron("inspect", "old.csv").code == 65


@pytest.mark.parametrize("command", ["run", "predict"])
def test_rows_of_a_slow_pipe_are_answered_at_once(trained: Ahpatron, command: str) -> None:
    words = [*COMMAND, "run", "-", "--resume", "m.npz", "--predictions", "-"]
    if command == "predict":
        words = [*COMMAND, "predict", "m.npz", "-"]
    header, *lines = customers(5, seed=4).splitlines(keepends=True)
    with subprocess.Popen(
        words, cwd=trained.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(header)
        for i, line in enumerate(lines):
            process.stdin.write(line)
            process.stdin.flush()
            if not i:
                assert "prediction" in process.stdout.readline()
            answer = process.stdout.readline()  # before the next row is written
            assert "," in answer
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_checkpoint_of_a_table_is_continued(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(600))
    command = ("run", "old.csv", *TABLE, "--checkpoint", "c.npz", "--every", 64)
    first = ahpatron.json(*command)
    again = ahpatron.json(*command)
    assert again["runs"][0]["mistakes"] == first["runs"][0]["mistakes"]
    other = ("run", "old.csv", "--label", "plan", "--id", "customer", "--checkpoint", "c.npz")
    assert ahpatron(*other).code == 2
