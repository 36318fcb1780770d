"""Tables in every command: from CSV or Parquet to a model, named scores, and `convert`."""

import csv
import gzip
import json
import os
import random
import re
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.cli.convert import libsvm_text
from ahpatron_cli.data.libsvm.grammar import parse_line
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.tables import TableOptions, TableReader
from ahpatron_cli.model_file import load_model
from support.command import Ahpatron, rows_of

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


def test_a_table_is_learned_as_its_libsvm_text(ahpatron: Ahpatron) -> None:
    """From a file, packed, from a pipe, from Parquet, in a sweep."""
    data = customers(600).encode()
    ahpatron.write("old.csv", data)
    ahpatron.write("old.csv.gz", gzip.compress(data))
    frame = pd.read_csv(ahpatron.folder / "old.csv", dtype={"age": "float64"}, na_values=["NA"])
    frame.drop(columns="Unnamed: 0").to_parquet(ahpatron.folder / "old.parquet")
    written = ahpatron.succeed("convert", "old.csv", *TABLE)
    ahpatron.succeed("convert", "-", *TABLE, "--out", "old.svm", stdin=data)
    ahpatron.write("copied.svm", written.out)
    expected = ahpatron.json("run", "old.svm", *OPTIONS)
    (run,) = expected["runs"]
    assert ahpatron.run("copied.svm", *OPTIONS)["mistakes"] == run["mistakes"]
    for name in ("old.csv", "old.parquet", "old.csv.gz", "-"):
        found = ahpatron.json("run", name, *TABLE, *OPTIONS, "-l", "ahpatron", stdin=data)
        assert found["data"]["features"] == expected["data"]["features"] == 8
        assert found["runs"][0]["mistakes"] == run["mistakes"]
        assert found["data"]["labels"] == [-1, 1]
    grid = ("-l", "ahpatron", "-g", "epsilon=0.5,0.9", "--no-shuffle", "--out", "r.jsonl")
    swept = ahpatron.succeed("sweep", "old.csv", *TABLE, *OPTIONS, *grid)
    assert "--label churned --id customer" in swept.out[swept.out.index("Best on") :]
    settings = ahpatron.json("report", "r.jsonl")["datasets"][0]["settings"]
    rates = {one["params"]["epsilon"]: one["mistake_rate_mean"] for one in settings}
    assert rates[0.5] == run["mistake_rate"]
    profile = ahpatron.json("inspect", "old.csv", *TABLE)
    assert (profile["rows"], profile["features"]) == (600, 8)
    assert profile["next"][0].startswith("ahpatron run old.csv --label churned --id customer")


def test_scores_have_ids_and_names_of_labels(trained: Ahpatron) -> None:
    rows = rows_of(trained.succeed("predict", "m.npz", "new.csv", "--id", "customer").out)
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
    anonymous = customers(3, seed=2).replace("customer", "client").encode()
    no_id = trained.succeed("predict", "m.npz", "-", stdin=anonymous)
    assert list(rows_of(no_id.out)[0]) == ["line", "prediction", "score"]


def test_the_model_has_the_schema(trained: Ahpatron) -> None:
    schema = load_model(str(trained.folder / "m.npz")).header.schema
    assert schema is not None
    assert [column.name for column in schema.columns] == ["since", "plan", "age", "pays", "city"]
    assert schema.labels == {"no": -1.0, "yes": 1.0}
    document = trained.json("inspect", "m.npz")
    assert document["data"]["schema"] == msgspec.to_builtins(schema)
    trained.write("d.svm", "1 1:1\n-1 2:1\n" * 20)
    trained.succeed("run", "d.svm", "--save", "svm.npz")
    trained.write("few.csv", "customer,plan\nC,basic\n")
    trained.write("text.csv", "since,plan,age,pays,city\n,plus,old,3,Köln\n")
    for named, words in (
        ("table", "svm.npz new.csv"),
        ("since, age", "m.npz few.csv"),
        ("text.csv:2", "m.npz text.csv"),
        ("name", "m.npz new.csv --id name"),
        ("", "m.npz d.svm"),
    ):
        assert named in trained.refusal(65, "predict", *words.split())


def test_categories_that_did_not_occur_in_training_are_counted(trained: Ahpatron) -> None:
    trained.write("new.csv", customers(50, seed=4).replace("Köln", "Wien"))
    count = (trained.folder / "new.csv").read_text().count("Wien")
    for words in (("predict", "m.npz", "new.csv"), ("run", "new.csv", "--resume", "m.npz")):
        assert f"city ({count})" in trained.succeed(*words).err


def test_cells_missing_only_in_new_data_count_as_the_mean_and_are_said(ahpatron: Ahpatron) -> None:
    """Not as 0, which is far from all amounts."""
    draw = random.Random(0)
    rows = [(draw.gauss(1000, 10), draw.choice("uv")) for _ in range(400)]
    lines = [f"{amount!r},{kind},{'yes' if kind == 'u' else 'no'}\n" for amount, kind in rows]
    ahpatron.write("d.csv", "amount,kind,y\n" + "".join(lines))
    ahpatron.succeed("run", "d.csv", "--label", "y", "-l", "metron", "--save", "m.npz")
    mean = sum(amount for amount, _ in rows) / len(rows)
    ahpatron.write("new.csv", f"amount,kind\n,u\n{mean!r},u\n,v\n{mean!r},v\n")
    done = ahpatron.succeed("predict", "m.npz", "new.csv")
    scores = [float(row["score"]) for row in rows_of(done.out)]
    assert scores[0::2] == pytest.approx(scores[1::2], abs=1e-9)
    assert "amount (2)" in done.err
    assert "mean" in done.err


def test_a_pipe_may_have_gaps_after_its_first_rows(ahpatron: Ahpatron) -> None:
    text = "a,c,y\n" + "1,u,0\n3,v,1\n5,u,1\n7,u,0\n" * 20_000 + ",,1\n"
    done = ahpatron.succeed("convert", "-", "--label", "y", stdin=text.encode())
    label, *features = done.out.splitlines()[-1].replace(":", " ").split()
    assert label == "1"
    values = [float(cell) for cell in features]  # of the rows that arrived first
    assert values == pytest.approx([1, 4, 2, 0.75, 3, 0.25], abs=1e-3)
    assert "a (1), c (1)" in done.err


@pytest.mark.parametrize(
    ("labels", "in_json"),
    [
        (["007", "012"], ["007", "012"]),
        (["1E2", "100", "5"], ["100", "1E2", "5"]),
        (["-1", "+1"], [-1, 1]),
        (["1", "2"], [1, 2]),
        (["True", "False"], ["False", "True"]),
    ],
)
def test_predictions_are_labels_as_the_table_has_them(
    ahpatron: Ahpatron, labels: list[str], in_json: list[str | int]
) -> None:
    rows = [(i % len(labels), labels[i % len(labels)]) for i in range(90)]
    ahpatron.write("d.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    ahpatron.succeed("run", "d.csv", "--label", "y", "-l", "arow", "--save", "m.npz")
    written = rows_of(ahpatron.succeed("predict", "m.npz", "d.csv").out)
    assert [row["prediction"] for row in written] == [y for _, y in rows]
    lines = ahpatron.succeed("predict", "m.npz", "d.csv", "--format", "jsonl").out.splitlines()
    found = [json.loads(line)["prediction"] for line in lines]
    assert {str(one) for one in found} == {str(one) for one in in_json}
    assert {type(one) for one in found} == {type(one) for one in in_json}


def test_costs_name_labels_in_any_spelling(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "x,y\n" + "1,1.0\n2,-1.0\n" * 40)
    words = ("d.csv", "--label", "y", "-l", "arow", "--shuffle")
    assert ahpatron.run(*words, "--cost", "+1=5")["costs"] == [1, 5]
    assert ahpatron.run(*words, "--cost", "-1.0=5")["costs"] == [5, 1]


def test_a_resumed_run_has_the_same_schema(ahpatron: Ahpatron) -> None:
    first, second = customers(640), customers(300, seed=3)
    ahpatron.write("first.csv", first)
    ahpatron.write("second.csv", second)
    ahpatron.write("whole.csv", first + second.partition("\n")[2])
    learn = ("-l", "arow", *OPTIONS, *TABLE, "--warm-up", 600)
    ahpatron.succeed("run", "first.csv", *learn, "--save", "a.npz")
    resumed = ahpatron.run("second.csv", "--resume", "a.npz", "--save", "b.npz")
    checkpoint = ("whole.csv", *learn, "--checkpoint", "c.npz", "--every", 64)
    alone, again = (ahpatron.run(*checkpoint) for _ in range(2))
    assert resumed["mistakes"] == alone["mistakes"] == again["mistakes"]
    models = [load_model(str(ahpatron.folder / name)) for name in ("a.npz", "b.npz")]
    assert models[0].header.schema == models[1].header.schema
    ahpatron.refusal(2, "run", "second.csv", "--resume", "a.npz", "--label", "plan")
    other = (*learn[:-4], "--label", "plan", "--id", "customer", "--checkpoint", "c.npz")
    ahpatron.refusal(2, "run", "whole.csv", *other)


def test_a_checkpoint_of_a_table_continues_if_the_learner_requires_t(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", customers(300))
    command = ("d.csv", *TABLE, "-l", "pomdr", "-B", "20", "--checkpoint", "c.npz")
    assert ahpatron.run(*command) == ahpatron.run(*command)


def test_labels_by_name(ahpatron: Ahpatron) -> None:
    ahpatron.write("old.csv", customers(600))
    words = ("old.csv", *TABLE, *OPTIONS, "-l", "arow", "--metrics")
    plain, heavy = (ahpatron.run(*words, *more) for more in ((), ("--cost", "yes=20")))
    assert heavy["costs"] == [1, 20]
    assert heavy["metrics"]["recall"] > plain["metrics"]["recall"]
    counts = ahpatron.run(*words, "--positive", "no")
    positives = counts["true_positives"] + counts["false_negatives"]
    assert positives == ahpatron.read("old.csv").count(",no\n")
    ahpatron.write("three.csv", "x,color\n" + "1,red\n2,green\n3,blue\n" * 5)
    shown = ahpatron.succeed("run", "three.csv", "--label", "color").out
    assert {"blue", "green", "red"} <= set(shown.split())


def test_rows_without_labels_are_predicted_only(ahpatron: Ahpatron) -> None:
    text = customers(200).splitlines(keepends=True)
    text[5] = text[5].rpartition(",")[0] + ",?\n"
    ahpatron.write("d.csv", "".join(text))
    run = ahpatron.run("d.csv", *TABLE)
    assert (run["rounds"], run["unlabelled"]) == (199, 1)
    assert "d.csv:6" in ahpatron.refusal(65, "run", "d.csv", *TABLE, "--shuffle")


def test_rounds_have_the_labels_and_ids_of_the_data(ahpatron: Ahpatron) -> None:
    rows = [(f'a,"\n{i}', "no" if i % 3 else "yes", i % 3) for i in range(90)]
    with (ahpatron.folder / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("who", "y", "x"), *rows])
    words = ("run", "t.csv", "--label", "y", "--id", "who", "--checkpoint", "c.npz")
    for _ in range(2):  # the second time nothing is left to do
        ahpatron.succeed(*words, "--predictions", "p.csv")
        found = ahpatron.table("p.csv")
        assert [(row["who"], row["label"]) for row in found] == [row[:2] for row in rows]
        assert {row["prediction"] for row in found} == {"yes", "no"}
        assert all(row["mistake"] == str(int(row["label"] != row["prediction"])) for row in found)


def test_options_of_convert(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "id,m,a,b,y\nk1,1,,5,x\nk2,2,7,5,?\nk3,1,8,5,z\n")
    options = ("--id", "id", "--category", "m", "--drop", "b", "--missing", "mean")
    done = ahpatron.succeed("convert", "d.csv", "--label", "y", *options, "--positive", "x")
    assert done.out.splitlines() == [
        "# labels: +1=x -1=z",
        "# features: 1=m=1 2=m=2 3=a",
        *("1 1:1 3:7.5", "? 2:1 3:7", "-1 1:1 3:8"),
    ]


VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.just(0.0)
LABELS = st.sampled_from([-1.0, 1.0, 0.0, 7.0, np.nan])


@given(st.lists(st.tuples(LABELS, st.lists(VALUES, min_size=3, max_size=3)), min_size=1))
def test_numbers_are_read_back_exactly(content: list[tuple[float, list[float]]]) -> None:
    content += [(-1.0, [1.0, 2.0, 3.0]), (1.0, [1.0, 2.0, 3.0])]
    lines = [",".join(map(repr, [*row, label])) for label, row in content]
    text = "\n".join(["a,b,c,y", *lines, ""]).encode()
    with NamedTemporaryFile(suffix=".csv") as file:
        Path(file.name).write_bytes(text)
        # cells of a file are checked in a first pass and copied in a second, those of a pipe read
        for source in (open_source(file.name), Source(BytesIO(text), "d.csv", closes=True)):
            with source:
                reader = TableReader(source, TableOptions(label="y"))
                parts = reader.cells(reader.numeric)
                written = "".join(libsvm_text(reader, cells, "d.csv") for cells in parts)
            for line, (label, row) in zip(written.splitlines(), content, strict=True):
                found = parse_line(line.encode(), 100, may_lack_label=True)
                assert found is not None
                assert found.label == pytest.approx(label, rel=0, nan_ok=True)
                assert dict(zip(found.indices, found.values, strict=True)) == {
                    i: value for i, value in enumerate(row, 1) if value
                }


@pytest.mark.parametrize("name", ["empty.csv", "empty.parquet", "empty.feather", "-"])
def test_a_table_without_rows_is_refused_by_every_command(trained: Ahpatron, name: str) -> None:
    header = customers(0)
    frame = pd.read_csv(trained.folder / "old.csv").iloc[:0]
    trained.write("empty.csv", header)
    frame.to_parquet(trained.folder / "empty.parquet")
    frame.to_feather(trained.folder / "empty.feather")
    for words in (
        ("predict", "m.npz", name),
        ("predict", "m.npz", name, "--out", "scores.csv"),
        ("run", name, "--resume", "m.npz"),
        ("run", name, *TABLE),
        ("inspect", name, *TABLE),
        ("convert", name, *TABLE),
    ):
        assert "no rows" in trained.refusal(65, *words, stdin=header.encode())
    assert "scores.csv" not in trained.files()


@pytest.mark.parametrize("to_file", [False, True])
def test_a_damaged_parquet_file_is_a_fault_of_the_data(trained: Ahpatron, to_file: bool) -> None:
    frame = pd.DataFrame({"age": range(20_000), "churned": ["no", "yes"] * 10_000})
    frame.to_parquet(trained.folder / "whole.parquet")
    whole = (trained.folder / "whole.parquet").read_bytes()
    middle = len(whole) // 4
    noise = bytes(byte ^ 0x5A for byte in whole[middle : middle + 400])
    trained.write("bad.parquet", whole[:middle] + noise + whole[middle + 400 :])
    trained.succeed("run", "whole.parquet", "--label", "churned", "--limit", 100, "--save", "d.npz")
    out = ("--out", "scores.csv") if to_file else ()
    error = trained.refusal(65, "predict", "d.npz", "bad.parquet", *out)
    assert "bad.parquet" in error
    assert "damaged" in error
    assert "scores.csv" not in trained.files()


def test_parquet_from_a_named_pipe_is_refused(trained: Ahpatron) -> None:
    """It is read from its end: waiting for a second writer would last for ever."""
    pd.read_csv(trained.folder / "old.csv").to_parquet(trained.folder / "old.parquet")
    os.mkfifo(trained.folder / "pipe.parquet")
    writer = os.open(trained.folder / "pipe.parquet", os.O_RDWR)  # does not wait for a reader
    try:
        os.write(writer, (trained.folder / "old.parquet").read_bytes()[:4096])
        assert "pipe" in trained.refusal(65, "predict", "m.npz", "pipe.parquet")
    finally:
        os.close(writer)


def test_a_packed_parquet_file_is_unpacked_as_the_hint_says(trained: Ahpatron) -> None:
    frame = pd.read_csv(trained.folder / "old.csv")
    frame.to_parquet(trained.folder / "old.parquet")
    packed = gzip.compress((trained.folder / "old.parquet").read_bytes())
    trained.write("old.parquet.gz", packed)
    error = trained.refusal(65, "predict", "m.npz", "old.parquet.gz")
    (command,) = re.findall("`(.+)`", error)
    assert trained.shell(command).code == 0
    trained.succeed("predict", "m.npz", "unpacked.parquet")


def test_a_fault_late_in_a_pipe_leaves_no_file(ahpatron: Ahpatron) -> None:
    text = "a,y\n" + "1,1\n2,0\n" * 100_000 + "oops,1\n"
    command = ("convert", "-", "--label", "y", "--out", "d.svm")
    assert "<stdin>:200002" in ahpatron.refusal(65, *command, stdin=text.encode())
    assert ahpatron.files() == set()


def test_a_closed_pipe_ends_quietly_and_a_full_disk_does_not(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(50_000)))
    for end, code in (("| head -n 1", 0), ("> /dev/full", 74)):
        done = ahpatron.shell(f"set -o pipefail; ahpatron convert d.csv --label y {end}")
        assert done.code == code
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (["no", "yes"], [-1, 1], ["no", "yes"]),
        (["a", "b", "c"], [0, 1, 2], ["a", "b", "c"]),
    ],
)
def test_names_of_labels_are_in_every_format(
    ahpatron: Ahpatron, labels: list[str], codes: list[int], names: list[str]
) -> None:
    """In `run`, the results file, `sweep` and `report`; the codes stay as they are."""
    rows = [f"{number % 7},{labels[number % len(labels)]}" for number in range(31)]
    ahpatron.write("t.csv", "\n".join(["x,y", *rows, f"1,{labels[0]}"]) + "\n")
    words = ("t.csv", "--label", "y", "-l", "arow")
    document = ahpatron.json("run", *words)
    assert (document["data"]["labels"], document["data"]["label_names"]) == (codes, names)
    line = json.loads(ahpatron.succeed("run", *words, "--format", "jsonl").out)
    (row,) = rows_of(ahpatron.succeed("run", *words, "--format", "csv").out)
    assert line["label_names"] == json.loads(row["label_names"]) == names
    (swept,) = json.loads(ahpatron.sweep(*words, "--format", "json").out)["datasets"]
    (trial,) = ahpatron.trials()
    for data in (swept["data"], trial["data"]):
        assert (data["labels"], data["label_names"]) == (codes, names)
    for view in ((), ("--trials",)):
        (row,) = rows_of(ahpatron.succeed("report", "r.jsonl", *view, "--format", "csv").out)
        assert json.loads(row["label_names"]) == names
    ahpatron.succeed("report", "r.jsonl", "--report", "page.html")
    (shown,) = re.findall("<dt>Labels</dt><dd>(.*?)</dd>", ahpatron.read("page.html"))
    assert all(name in shown for name in names)


def test_labels_of_libsvm_files_have_no_names(ahpatron: Ahpatron, rings: Path) -> None:
    assert ahpatron.json("run", rings, "--limit", 9)["data"]["label_names"] is None
    line = json.loads(ahpatron.succeed("run", rings, "--limit", 9, "--format", "jsonl").out)
    assert "label_names" not in line
