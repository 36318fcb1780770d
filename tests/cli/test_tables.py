"""Tables in every command: from CSV or Parquet to a model, named scores, and `convert`."""

import csv
import gzip
import json
import os
import random
import re
import shutil
from dataclasses import dataclass
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
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.tables import TableReader
from ahpatron_cli.model_file import load_model
from support.command import Ahpatron, rows_of

OPTIONS = ("--scale", "standard", "--sigma", 2, "-B", 50)


def customers(count: int, *, labels: bool = True, seed: int = 0) -> str:
    """Dates, ids, missing cells, text, 10 % positives."""
    draw = random.Random(seed)
    header = ",customer,since,plan,age,pays,city"
    lines = [header + ",churned" if labels else header]
    for number in range(count):
        plan = draw.choice(["basic", "plus"])
        age = draw.randint(18, 80)
        pays = draw.gauss(40, 12)
        since = f"202{draw.randint(0, 4)}-0{draw.randint(1, 9)}-15"
        shown_age = draw.choice([age] * 9 + ["NA"])
        city = draw.choice(["Köln", '"Bergen, NO"'])
        cells = f"{number},C{seed}{number:05},{since},{plan},{shown_age},{pays:.2f},{city}"
        if labels:
            cells += ",yes" if plan == "basic" and age < 32 else ",no"
        lines.append(cells)
    return "\n".join(lines) + "\n"


TABLE = ("--label", "churned", "--id", "customer")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with old.csv, new.csv, which has no labels, and the model m.npz of old.csv."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("model"))
    ahpatron.write("old.csv", customers(600))
    ahpatron.write("new.csv", customers(200, labels=False, seed=1))
    ahpatron.succeed("run", "old.csv", *TABLE, *OPTIONS, "-l", "arow", "--save", "m.npz")
    return ahpatron.folder


@pytest.fixture
def trained(ahpatron: Ahpatron, model: Path) -> Ahpatron:
    """A copy of the folder, to write to."""
    shutil.copytree(model, ahpatron.folder, dirs_exist_ok=True)
    return ahpatron


# A table and its LIBSVM text ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with a table in every form, and the LIBSVM text that `convert` makes of it."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("converted"))
    data = customers(600).encode()
    ahpatron.write("old.csv", data)
    ahpatron.write("old.csv.gz", gzip.compress(data))
    frame = pd.read_csv(ahpatron.folder / "old.csv", dtype={"age": "float64"}, na_values=["NA"])
    frame.drop(columns="Unnamed: 0").to_parquet(ahpatron.folder / "old.parquet")
    ahpatron.succeed("convert", "old.csv", *TABLE, "--out", "old.svm")
    return ahpatron


def test_convert_writes_the_same_to_a_file_and_to_standard_output(converted: Ahpatron) -> None:
    printed = converted.succeed("convert", "old.csv", *TABLE).out
    assert printed == converted.read("old.svm")


def test_convert_reads_the_same_numbers_from_a_pipe(converted: Ahpatron) -> None:
    """Only from a file are they copied as they are written."""
    data = converted.read("old.csv").encode()
    printed = converted.succeed("convert", "-", *TABLE, stdin=data).out
    written = converted.read("old.svm")
    from_pipe = [parse_line(line.encode(), 100) for line in printed.splitlines()]
    from_file = [parse_line(line.encode(), 100) for line in written.splitlines()]
    assert from_pipe == from_file


@pytest.mark.parametrize("name", ["old.csv", "old.parquet", "old.csv.gz", "-"])
def test_a_table_is_learned_as_its_libsvm_text(converted: Ahpatron, name: str) -> None:
    expected = converted.json("run", "old.svm", *OPTIONS, "-l", "ahpatron")
    data = converted.read("old.csv").encode()
    found = converted.json("run", name, *TABLE, *OPTIONS, "-l", "ahpatron", stdin=data)
    assert found["data"]["features"] == expected["data"]["features"] == 8
    assert found["runs"][0]["mistakes"] == expected["runs"][0]["mistakes"]
    assert found["data"]["labels"] == [-1, 1]


def test_a_sweep_learns_a_table_as_run_does(converted: Ahpatron) -> None:
    words = ("old.csv", *TABLE, *OPTIONS, "-l", "ahpatron")
    grid = ("-g", "epsilon=0.5,0.9", "--no-shuffle", "--out", "learned.jsonl")
    swept = converted.json("sweep", *words, *grid)["datasets"][0]
    rates = {one["params"]["epsilon"]: one["mistake_rate_mean"] for one in swept["settings"]}
    for epsilon, rate in rates.items():
        assert rate == converted.run(*words, "--epsilon", epsilon)["mistake_rate"]


def test_a_sweep_recommends_a_command_with_the_options_of_the_table(converted: Ahpatron) -> None:
    grid = ("-g", "budget=20,50", "--out", "best.jsonl")
    swept = converted.succeed("sweep", "old.csv", *TABLE, *grid)
    assert "--label churned --id customer" in swept.out[swept.out.index("Best on") :]


def test_inspect_describes_a_table_and_recommends_a_command(converted: Ahpatron) -> None:
    profile = converted.json("inspect", "old.csv", *TABLE)
    assert profile["rows"] == 600
    assert profile["features"] == 8
    assert profile["next"][0].startswith("ahpatron run old.csv --label churned --id customer")


# Predictions --------------------------------------------------------------------------------------


def predicted(trained: Ahpatron, *words: object, **options: bytes) -> list[dict[str, str]]:
    """The rows that `predict` prints as CSV."""
    return rows_of(trained.succeed("predict", "m.npz", *words, **options).out)


def test_predictions_have_the_id_of_each_row(trained: Ahpatron) -> None:
    rows = predicted(trained, "new.csv", "--id", "customer")
    assert list(rows[0]) == ["customer", "prediction", "score"]
    assert [row["customer"] for row in rows] == [f"C1{i:05}" for i in range(200)]


def test_predictions_are_the_texts_of_the_labels(trained: Ahpatron) -> None:
    rows = predicted(trained, "new.csv")
    assert {row["prediction"] for row in rows} == {"no", "yes"}
    assert all((float(row["score"]) >= 0) == (row["prediction"] == "yes") for row in rows)


def test_predictions_are_the_same_in_json_lines(trained: Ahpatron) -> None:
    rows = predicted(trained, "new.csv")
    lines = trained.succeed("predict", "m.npz", "new.csv", "--format", "jsonl").out.splitlines()
    expected = [{**row, "score": float(row["score"])} for row in rows]
    assert [json.loads(line) for line in lines] == expected


def test_columns_of_new_data_may_have_another_order_and_company(trained: Ahpatron) -> None:
    scores = [row["score"] for row in predicted(trained, "new.csv")]
    frame = pd.read_csv(trained.folder / "new.csv")[::-1].assign(extra=1)
    frame[sorted(frame.columns)].to_csv(trained.folder / "other.csv")
    again = [row["score"] for row in predicted(trained, "other.csv")]
    assert again == scores[::-1]


def test_another_column_may_be_the_id_of_predictions(trained: Ahpatron) -> None:
    rows = predicted(trained, "new.csv", "--id", "city")
    assert {row["city"] for row in rows} == {"Köln", "Bergen, NO"}


def test_predictions_have_line_numbers_if_the_id_of_the_model_is_missing(trained: Ahpatron) -> None:
    anonymous = customers(3, seed=2).replace("customer", "client").encode()
    rows = predicted(trained, "-", stdin=anonymous)
    assert list(rows[0]) == ["line", "prediction", "score"]


def test_the_model_has_the_schema(trained: Ahpatron) -> None:
    schema = load_model(str(trained.folder / "m.npz")).header.schema
    assert schema is not None
    assert [column.name for column in schema.columns] == ["since", "plan", "age", "pays", "city"]
    assert schema.labels == {"no": -1.0, "yes": 1.0}


def test_inspect_shows_the_schema_of_a_model(trained: Ahpatron) -> None:
    schema = load_model(str(trained.folder / "m.npz")).header.schema
    assert trained.json("inspect", "m.npz")["data"]["schema"] == msgspec.to_builtins(schema)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("table", "svm.npz new.csv"),
        ("since, age", "m.npz few.csv"),
        ("text.csv:2", "m.npz text.csv"),
        ("name", "m.npz new.csv --id name"),
        ("d.svm", "m.npz d.svm"),
    ],
    ids=[
        "a table for a model of LIBSVM text",
        "columns are missing",
        "text in a column of numbers",
        "an unknown id",
        "LIBSVM text for a model of a table",
    ],
)
def test_data_that_do_not_fit_the_model_are_refused(
    trained: Ahpatron, named: str, words: str
) -> None:
    trained.write("d.svm", "1 1:1\n-1 2:1\n" * 20)
    trained.succeed("run", "d.svm", "--save", "svm.npz")
    trained.write("few.csv", "customer,plan\nC,basic\n")
    trained.write("text.csv", "since,plan,age,pays,city\n,plus,old,3,Köln\n")
    assert named in trained.refusal(65, "predict", *words.split())


@pytest.mark.parametrize("words", ["predict m.npz new.csv", "run new.csv --resume m.npz"])
def test_categories_that_did_not_occur_in_training_are_counted(
    trained: Ahpatron, words: str
) -> None:
    trained.write("new.csv", customers(50, seed=4).replace("Köln", "Wien"))
    count = trained.read("new.csv").count("Wien")
    assert f"city ({count})" in trained.succeed(*words.split()).err


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
    ids=["leading zeros", "two spellings of 100", "-1 and +1", "1 and 2", "truth values"],
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
    assert ahpatron.run(*words, "--weight", "+1=5")["costs"] == [1, 5]
    assert ahpatron.run(*words, "--weight", "-1.0=5")["costs"] == [5, 1]


LEARN = ("-l", "arow", *OPTIONS, *TABLE, "--warm-up", 600)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with two tables and both in one; a.npz is a model of the first, b.npz goes on."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("resumed"))
    first = customers(640)
    second = customers(300, seed=3)
    ahpatron.write("first.csv", first)
    ahpatron.write("second.csv", second)
    ahpatron.write("whole.csv", first + second.partition("\n")[2])
    ahpatron.succeed("run", "first.csv", *LEARN, "--save", "a.npz")
    ahpatron.succeed("run", "second.csv", "--resume", "a.npz", "--save", "b.npz")
    ahpatron.succeed("run", "whole.csv", *LEARN, "--checkpoint", "c.npz", "--save-every", 64)
    return ahpatron


def test_a_resumed_run_makes_the_mistakes_of_one_run_on_both_tables(resumed: Ahpatron) -> None:
    whole = resumed.run("whole.csv", *LEARN)
    again = resumed.run("second.csv", "--resume", "a.npz")
    assert again["mistakes"] == whole["mistakes"]


def test_a_checkpoint_of_a_table_makes_the_mistakes_of_a_run(resumed: Ahpatron) -> None:
    whole = resumed.run("whole.csv", *LEARN)
    again = resumed.run("whole.csv", *LEARN, "--checkpoint", "c.npz", "--save-every", 64)
    assert again["mistakes"] == whole["mistakes"]


def test_a_resumed_run_has_the_same_schema(resumed: Ahpatron) -> None:
    first = load_model(str(resumed.folder / "a.npz"))
    second = load_model(str(resumed.folder / "b.npz"))
    assert first.header.schema == second.header.schema


def test_a_resumed_run_refuses_another_label(resumed: Ahpatron) -> None:
    resumed.refusal(2, "run", "second.csv", "--resume", "a.npz", "--label", "plan")


def test_a_checkpoint_refuses_another_label(resumed: Ahpatron) -> None:
    other = [word if word != "churned" else "plan" for word in LEARN]
    said = resumed.refusal(
        2, "run", "whole.csv", *other, "--checkpoint", "c.npz", "--save-every", 64
    )
    assert "another run" in said


def test_a_checkpoint_of_a_table_continues_if_the_learner_requires_t(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", customers(300))
    command = ("d.csv", *TABLE, "-l", "pomdr", "-B", "20", "--checkpoint", "c.npz")
    assert ahpatron.run(*command) == ahpatron.run(*command)


BY_NAME = ("old.csv", *TABLE, *OPTIONS, "-l", "arow", "--metrics")


def test_a_cost_is_given_to_a_label_by_its_text(converted: Ahpatron) -> None:
    plain = converted.run(*BY_NAME)
    heavy = converted.run(*BY_NAME, "--weight", "yes=20")
    assert heavy["costs"] == [1, 20]
    assert heavy["metrics"]["recall"] > plain["metrics"]["recall"]


def test_the_positive_label_is_named_by_its_text(converted: Ahpatron) -> None:
    counts = converted.run(*BY_NAME, "--positive", "no")
    positives = counts["true_positives"] + counts["false_negatives"]
    assert positives == converted.read("old.csv").count(",no\n")


def test_the_table_of_classes_has_the_texts_of_the_labels(ahpatron: Ahpatron) -> None:
    ahpatron.write("three.csv", "x,color\n" + "1,red\n2,green\n3,blue\n" * 5)
    shown = ahpatron.succeed("run", "three.csv", "--label", "color").out
    assert {"blue", "green", "red"} <= set(shown.split())


@pytest.fixture
def one_label_missing(ahpatron: Ahpatron) -> Ahpatron:
    """A folder with a table of 200 rows; the one in line 6 has no label."""
    text = customers(200).splitlines(keepends=True)
    text[5] = text[5].rpartition(",")[0] + ",?\n"
    ahpatron.write("d.csv", "".join(text))
    return ahpatron


def test_rows_without_labels_are_predicted_only(one_label_missing: Ahpatron) -> None:
    run = one_label_missing.run("d.csv", *TABLE)
    assert run["rounds"] == 199
    assert run["unlabelled"] == 1


def test_rows_without_labels_are_refused_in_random_order(one_label_missing: Ahpatron) -> None:
    error = one_label_missing.refusal(65, "run", "d.csv", *TABLE, "--shuffle")
    assert "d.csv:6" in error


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


def test_convert_takes_the_options_of_tables(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "id,m,a,b,y\nk1,1,,5,x\nk2,2,7,5,?\nk3,1,8,5,z\n")
    options = ("--id", "id", "--category", "m", "--drop", "b", "--missing", "mean")
    done = ahpatron.succeed("convert", "d.csv", "--label", "y", *options, "--positive", "x")
    assert done.out.splitlines() == [
        "# labels: +1=x -1=z",
        "# features: 1=m=1 2=m=2 3=a",
        "1 1:1 3:7.5",
        "? 2:1 3:7",
        "-1 1:1 3:8",
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


WITHOUT_ROWS = {
    "predict": ("predict", "m.npz", "DATA"),
    "predict --out": ("predict", "m.npz", "DATA", "--out", "scores.csv"),
    "run --resume": ("run", "DATA", "--resume", "m.npz"),
    "run": ("run", "DATA", *TABLE),
    "inspect": ("inspect", "DATA", *TABLE),
    "convert": ("convert", "DATA", *TABLE),
}


@pytest.mark.parametrize("command", WITHOUT_ROWS)
@pytest.mark.parametrize("name", ["empty.csv", "empty.parquet", "empty.feather", "-"])
def test_a_table_without_rows_is_refused(trained: Ahpatron, name: str, command: str) -> None:
    header = customers(0)
    frame = pd.read_csv(trained.folder / "old.csv").iloc[:0]
    trained.write("empty.csv", header)
    frame.to_parquet(trained.folder / "empty.parquet")
    frame.to_feather(trained.folder / "empty.feather")
    words = [name if word == "DATA" else word for word in WITHOUT_ROWS[command]]
    assert "no rows" in trained.refusal(65, *words, stdin=header.encode())
    assert "scores.csv" not in trained.files()


@pytest.mark.parametrize("to_file", [False, True], ids=["to standard output", "to a file"])
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


@pytest.mark.parametrize(
    ("end", "code"),
    [("| head -n 1", 0), ("> /dev/full", 74)],
    ids=["a closed pipe is no error", "a full disk is one"],
)
def test_convert_ends_without_a_traceback(ahpatron: Ahpatron, end: str, code: int) -> None:
    ahpatron.write("d.csv", "a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(50_000)))
    done = ahpatron.shell(f"set -o pipefail; ahpatron convert d.csv --label y {end}")
    assert done.code == code
    assert "Traceback" not in done.err


# Names of labels ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A folder with a table, and a results file of a sweep on it."""

    ahpatron: Ahpatron
    codes: list[int]
    names: list[str]


NAMED = ("t.csv", "--label", "y", "-l", "arow")


@pytest.fixture(
    scope="module",
    params=[([-1, 1], ["no", "yes"]), ([0, 1, 2], ["a", "b", "c"])],
    ids=["two", "three"],
)
def named(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Named:
    codes, names = request.param
    ahpatron = Ahpatron(tmp_path_factory.mktemp("named"))
    rows = [f"{number % 7},{names[number % len(names)]}" for number in range(31)]
    ahpatron.write("t.csv", "\n".join(["x,y", *rows, f"1,{names[0]}"]) + "\n")
    assert ahpatron.sweep(*NAMED).code == 0
    return Named(ahpatron, codes, names)


def test_a_run_has_codes_and_names_of_labels(named: Named) -> None:
    data = named.ahpatron.json("run", *NAMED)["data"]
    assert data["labels"] == named.codes
    assert data["label_names"] == named.names


def test_json_lines_of_a_run_have_names_of_labels(named: Named) -> None:
    line = json.loads(named.ahpatron.succeed("run", *NAMED, "--format", "jsonl").out)
    assert line["label_names"] == named.names


def test_csv_of_a_run_has_names_of_labels(named: Named) -> None:
    (row,) = rows_of(named.ahpatron.succeed("run", *NAMED, "--format", "csv").out)
    assert json.loads(row["label_names"]) == named.names


def test_a_results_file_has_codes_and_names_of_labels(named: Named) -> None:
    (trial,) = named.ahpatron.trials()
    assert trial["data"]["labels"] == named.codes
    assert trial["data"]["label_names"] == named.names


def test_a_report_has_codes_and_names_of_labels(named: Named) -> None:
    (found,) = named.ahpatron.json("report", "r.jsonl")["datasets"]
    assert found["data"]["labels"] == named.codes
    assert found["data"]["label_names"] == named.names


@pytest.mark.parametrize("view", [(), ("--trials",)], ids=["settings", "trials"])
def test_csv_of_a_report_has_names_of_labels(named: Named, view: tuple[str, ...]) -> None:
    shown = named.ahpatron.succeed("report", "r.jsonl", *view, "--format", "csv")
    (row,) = rows_of(shown.out)
    assert json.loads(row["label_names"]) == named.names


def test_the_page_of_a_report_has_names_of_labels(named: Named) -> None:
    named.ahpatron.succeed("report", "r.jsonl", "--html", "page.html")
    (shown,) = re.findall("<dt>Labels</dt><dd>(.*?)</dd>", named.ahpatron.read("page.html"))
    assert all(name in shown for name in named.names)


def test_labels_of_libsvm_files_have_no_names(ahpatron: Ahpatron, rings: Path) -> None:
    assert ahpatron.json("run", rings, "--limit", 9)["data"]["label_names"] is None
    line = json.loads(ahpatron.succeed("run", rings, "--limit", 9, "--format", "jsonl").out)
    assert "label_names" not in line
