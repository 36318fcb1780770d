"""What a model has learned: relevance of columns, stored examples."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ahpatron_cli import OnlineKernelClassifier
from support.command import Ahpatron

TARGETS = {
    "sum": lambda a, b, rng: a + b > 0,
    "product": lambda a, b, rng: a * b > 0,
    "with noise": lambda a, b, rng: a + b + rng.normal(size=len(a)) > 0,
    "circle": lambda a, b, rng: a**2 + b**2 > 1.4,
}


@pytest.mark.parametrize("offset", [0, 1e5])
@pytest.mark.parametrize("target", TARGETS)
def test_two_informative_columns_among_six_of_noise_have_most_of_the_relevance(
    target: str, offset: float
) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5000, 8))
    y = TARGETS[target](X[:, 3], X[:, 5], rng)
    relevances = OnlineKernelClassifier().fit(X + offset, y.astype(int)).relevances_
    assert relevances.shape == (8,)
    assert relevances.sum() == pytest.approx(1)
    assert relevances[[3, 5]].sum() > 0.7


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("informative", "categories"),
    [("numbers", 3), ("numbers", 10), ("numbers", 50), ("categories", 3), ("categories", 20)],
)
def test_columns_of_noise_with_many_categories_have_little_relevance(
    informative: str, categories: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    noise = {f"noise {i}": rng.integers(categories, size=5000).astype(str) for i in range(6)}
    a, b = rng.integers(4, size=(2, 5000))
    columns = {"a": a.astype(str), "b": b.astype(str)}
    label = (a < 2) ^ (b < 2)
    if informative == "numbers":
        columns = dict(zip("ab", rng.normal(size=(2, 5000)), strict=True))
        label = columns["a"] + columns["b"] > 0
    frame = pd.DataFrame({**noise, **columns})
    table = {"category": [name for name in frame if frame[name].dtype.kind not in "iuf"]}
    relevances = OnlineKernelClassifier(table=table).fit(frame, label).relevances_
    found = dict(zip(frame.columns, relevances, strict=True))
    assert found["a"] + found["b"] > 0.7


def mixed(rows: int = 400, seed: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    amount = rng.normal(50, 20, rows).round(2)
    amount[::9] = np.nan
    return pd.DataFrame(
        {
            "kind": rng.choice(["a", "b", "c"], rows),
            "amount": amount,
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, rows), "D"),
            "noise": rng.normal(size=rows).round(3),
        }
    )


def labels(frame: pd.DataFrame) -> list[str]:
    positive = (frame["kind"] == "a") ^ (frame["amount"].fillna(0) > 50)
    return ["yes" if one else "no" for one in positive]


def test_relevances_of_a_data_frame_are_those_of_its_columns(ahpatron: Ahpatron) -> None:
    frame = mixed()
    model = OnlineKernelClassifier().fit(frame, labels(frame))
    assert model.relevances_.shape == (4,)
    found = dict(zip(model.feature_names_in_, model.relevances_, strict=True))
    assert found["kind"] + found["amount"] > found["since"] + found["noise"]
    model.save(ahpatron.write("m.npz", b""))
    document = ahpatron.json("inspect", "m.npz")
    shell = {one["column"]: one["above_uniform"] for one in document["relevance_by_column"]}
    assert shell == pytest.approx(found)
    above = list(shell.values())
    assert sum(above) == pytest.approx(1)
    assert above == sorted(above, reverse=True)


def test_columns_whose_names_have_spaces_around_them_have_their_relevance() -> None:
    frame = mixed().rename(columns={"kind": " kind ", "amount": "amount "})
    relevances = OnlineKernelClassifier().fit(frame, labels(mixed())).relevances_
    assert relevances.sum() == pytest.approx(1)


def test_other_learners_have_no_relevances() -> None:
    model = OnlineKernelClassifier(learner="arow").fit([[0.0], [1.0]] * 5, [0, 1] * 5)
    assert not hasattr(model, "relevances_")


@pytest.mark.parametrize(
    "options",
    [
        ("-l", "metron"),
        ("-l", "arow", "--scale", "standard", "--sigma", "0.7"),
        ("-l", "ahpatron", "--scale", "minmax"),
        ("-l", "metron", "--layout", "sparse"),
        ("-l", "ahpatron+", "--layout", "sparse", "--sigma", "20"),
    ],
)
def test_stored_examples_are_rows_of_the_table(
    ahpatron: Ahpatron, options: tuple[str, ...]
) -> None:
    frame = mixed()
    frame["y"] = labels(frame)
    text = frame.to_csv(index=False)
    ahpatron.write("t.csv", text)
    ahpatron.succeed("run", "t.csv", "--label", "y", *options, "--save", "m.npz")
    examples = ahpatron.json("inspect", "m.npz", "--examples", 7)["examples"]
    assert len(examples) == 7
    sizes = [abs(one["coefficient"]) for one in examples]
    assert sizes == sorted(sizes, reverse=True)
    rows = [_comparable(row) for row in csv.DictReader(io.StringIO(text))]
    for one in examples:
        assert one["label"] == ("yes" if one["coefficient"] > 0 else "no")
        assert _comparable(one["cells"]) in rows


def _comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    amount = row["amount"]
    return (
        row["kind"],
        None if amount in ("", None) else round(float(amount), 2),
        row["since"],
        round(float(row["noise"]), 3),
    )


def test_the_text_of_stored_examples_has_their_cells_and_a_dash_for_what_is_missing(
    ahpatron: Ahpatron,
) -> None:
    ahpatron.write("t.csv", "name,size,y\nann,1.5,yes\nbob,,no\neve,2.5,yes\n")
    ahpatron.succeed("run", "t.csv", "--label", "y", "-l", "ahpatron", "--save", "m.npz")
    text = ahpatron.succeed("inspect", "m.npz", "--examples", 3).out
    rows = [line.split()[1:] for line in text.partition("─\n")[2].splitlines()]
    assert sorted(rows) == [["no", "bob", "–"], ["yes", "ann", "1.5"], ["yes", "eve", "2.5"]]


@pytest.mark.parametrize("multiclass", ["shared", "rest"])
def test_examples_of_several_classes_name_a_class(ahpatron: Ahpatron, multiclass: str) -> None:
    rng = np.random.default_rng(1)
    rows = "".join(
        f"{x:.2f},{'low' if x < -0.5 else 'high' if x > 0.5 else 'mid'}\n"
        for x in rng.normal(size=200)
    )
    ahpatron.write("t.csv", "x,y\n" + rows)
    parameter = ("-p", f"multiclass={multiclass}")
    ahpatron.succeed("run", "t.csv", "--label", "y", *parameter, "--save", "m.npz")
    examples = ahpatron.json("inspect", "m.npz", "--examples", 5)["examples"]
    named = {one["label"].removeprefix("not ") for one in examples}
    assert named <= {"low", "mid", "high"}
    assert len(examples) == 5
    if multiclass == "rest":  # each learner has those that are in favour of its class
        assert min(one["coefficient"] for one in examples) > 0


def test_learners_without_stored_examples_say_so(ahpatron: Ahpatron) -> None:
    frame = mixed()
    frame["y"] = labels(frame)
    ahpatron.write("t.csv", frame.to_csv(index=False))
    ahpatron.succeed("run", "t.csv", "--label", "y", "-l", "fogd", "--save", "m.npz")
    done = ahpatron("inspect", "m.npz", "--examples", 3)
    assert done.code == 2
    assert "stores no examples" in done.err
    assert json.loads(ahpatron.succeed("inspect", "m.npz", "--json").out)["examples"] is None


@pytest.mark.parametrize(("columns", "others"), [(20, []), (21, ["1 more columns"])])
def test_the_text_lists_twenty_relevant_columns_and_counts_the_others(
    ahpatron: Ahpatron, columns: int, others: list[str]
) -> None:
    rows = np.random.default_rng(2).normal(size=(60, columns))
    frame = pd.DataFrame(rows, columns=[f"c{number}" for number in range(columns)])
    frame["y"] = np.where(rows[:, 0] > 0, "yes", "no")
    ahpatron.write("t.csv", frame.to_csv(index=False))
    ahpatron.succeed("run", "t.csv", "--label", "y", "-l", "metron", "--save", "m.npz")
    text = ahpatron.succeed("inspect", "m.npz").out.partition("Relevance of columns")[2]
    assert len(re.findall(r"^  c\d+ ", text, re.MULTILINE)) == 20
    assert re.findall(r"^  others +(.+)$", text, re.MULTILINE) == others


@pytest.fixture
def grown(ahpatron: Ahpatron) -> Ahpatron:
    """A model of a live stream whose columns and categories appeared one after the other."""
    rng = np.random.default_rng(4)
    lines = []
    for i in range(600):
        row = {"kind": "abcd"[min(i // 100, int(rng.integers(4)))], "x": round(rng.normal(), 3)}
        if i > 250:
            row["late"] = "uv"[int(rng.integers(2))]
        row["y"] = "yes" if row["x"] > 0 else "no"
        lines.append(json.dumps(row))
    options = ("--label", "y", "--classes", "no,yes", "--state", "s.npz")
    ahpatron.succeed("run", "-", *options, stdin="\n".join([*lines, ""]).encode())
    ahpatron.write("rows.jsonl", "\n".join(lines))
    return ahpatron


def test_the_relevance_of_a_live_stream_is_that_of_its_columns(grown: Ahpatron) -> None:
    largest, *_ = grown.json("inspect", "s.npz")["relevance_by_column"]
    assert largest["column"] == "x"
    assert largest["above_uniform"] > 0.7


def test_stored_examples_of_a_live_stream_are_rows_of_it(grown: Ahpatron) -> None:
    model = grown.json("inspect", "s.npz", "--examples", 50)
    rows = [json.loads(line) for line in (grown.folder / "rows.jsonl").read_text().splitlines()]
    known = {(row["kind"], row["x"], row.get("late")) for row in rows}
    for example in model["examples"]:
        cells = example["cells"]
        assert (cells["kind"], round(cells["x"], 3), cells["late"]) in known
