"""The same rows in every format of table: same counts, same predictions, and models for all."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.model_file import load_model
from support.command import Ahpatron
from support.effort import examples

FILES = ("t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.parquet", "t.arrow", "t.feather")
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": pa.Table.to_pandas,
    "polars": pl.from_arrow,
    "dicts": pa.Table.to_pylist,
}
FORMATS = (*FILES, *FRAMES)


def write(folder: Path, rows: pa.Table) -> None:
    """Write the rows in every format: CSV and TSV by pandas, JSON lines by Python."""
    frame = rows.to_pandas()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    lines = [json.dumps(row, default=as_json) for row in rows.to_pylist()]
    (folder / "t.jsonl").write_text("\n".join(lines))
    pa.parquet.write_table(rows, folder / "t.parquet", row_group_size=10)
    pa.feather.write_feather(rows, str(folder / "t.feather"))
    with (
        pa.OSFile(str(folder / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, rows.schema) as writer,
    ):
        writer.write_table(rows)


def as_json(cell: Any) -> float | str:
    """A cell of a type that JSON does not have: dates and times as ISO 8601."""
    return float(cell) if isinstance(cell, Decimal) else cell.isoformat()


# Labels -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Labels of a table, and what a model says of them."""

    values: tuple[Any, ...]
    kind: pa.DataType
    shown: tuple[str, ...]
    in_python: tuple[Any, ...]


def as_written(kind: pa.DataType, *values: Any) -> Labels:
    """Labels that a model has in Python as it shows them, which is as they are."""
    texts = tuple(str(value) for value in values)
    return Labels(values, kind, shown=texts, in_python=values)


def as_text(kind: pa.DataType, *values: Any) -> Labels:
    """Labels that a model has as text whatever they are in the file."""
    texts = tuple(str(value) for value in values)
    return Labels(values, kind, shown=texts, in_python=texts)


def is_written(kind: pa.DataType) -> bool:
    """Whether the installed pyarrow writes columns of this kind to Parquet."""
    empty = pa.table({"column": pa.array([], kind)})
    try:
        pa.parquet.write_table(empty, pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


TEXT_VIEW = pa.string_view() if is_written(pa.string_view()) else pa.string()

LABELS = (
    as_written(pa.int64(), 0, 1),
    as_written(pa.int8(), 1, 2),
    as_written(pa.int64(), -1, 1),
    as_written(pa.uint16(), 1, 2, 5),
    as_written(pa.float64(), 0.5, 1.25),
    as_written(pa.string(), "no", "yes"),
    as_written(pa.large_string(), "b", "a", "c"),
    Labels(("-1", "+1"), pa.string(), shown=("+1", "-1"), in_python=(-1, 1)),
    as_written(TEXT_VIEW, "007", "012"),
    as_written(pa.string(), "1E2", "100", "5"),
    as_text(pa.int64(), 2**53, 2**53 + 1),
    as_written(pa.bool_(), False, True),
    as_text(pa.date32(), date(2024, 5, 1), date(2025, 5, 1)),
)

# Columns ------------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "number": (pa.float64(), st.floats(-1e6, 1e6)),
    "whole": (pa.int64(), st.integers(-9, 9)),
    "day": (pa.date32(), st.dates(date(1960, 1, 1), date(2040, 1, 1))),
    "at": (pa.timestamp("us"), st.datetimes(datetime(1960, 1, 1), datetime(2040, 1, 1))),
    "at_ms": (
        pa.timestamp("ms"),
        st.datetimes(datetime(2024, 1, 1), datetime(2024, 1, 2)).map(
            lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
        ),
    ),
    "at_ns": (pa.timestamp("ns"), st.integers(17 * 10**17, 17 * 10**17 + 10**14)),
    "in_berlin": (
        pa.timestamp("us", "Europe/Berlin"),
        st.datetimes(datetime(1980, 1, 1), datetime(2030, 1, 1)),
    ),
    "german": (
        pa.string(),
        st.dates(date(1960, 1, 1), date(2040, 1, 1)).map(lambda day: f"{day:%d.%m.%Y}"),
    ),
    "price": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    "clock": (pa.time64("us"), st.times()),
    "flag": (pa.bool_(), st.booleans()),
    "job": (pa.string(), st.sampled_from(["boss", "clerk", "Köln, NRW", 'say "x"'])),
    "note": (pa.string(), st.sampled_from(["calm", " rough ", "", "NA", "n/a ", "None"])),
    "typed": (pa.string(), st.sampled_from(["1", "2.0", "-3.25", "1e2", " 5 ", "?"])),
    "code_word": (pa.string(), st.sampled_from(["1", "2.0", "007", "x"])),
    "answer": (pa.string(), st.sampled_from(["true", "False", "TRUE"])),
    "large": (pa.int64(), st.integers(2**53 - 3, 2**53 + 3)),
    "tiny": (pa.float64(), st.sampled_from([0.1 + 0.2, 5e-324, -1e-9, 0.0])),
    "kind": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["u", "v"])),
    "code": (pa.int64(), st.integers(0, 3)),
    "rank": (pa.dictionary(pa.int8(), pa.int64()), st.integers(0, 3)),
}


ENDINGS = ("", " (€)", "=1", ", x", ' "q"', ".0", "|", " missing", "  ")
"""Ends of odd names of columns."""


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Labels]:
    """Some of the columns, with missing cells in some of them, odd names, an id and labels."""
    labels = draw(st.sampled_from(LABELS))
    count = draw(st.integers(12, 40))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True))
    columns: dict[str, pa.Array] = {}
    for name in names:
        kind, cells = COLUMNS[name]
        if draw(st.booleans()):
            cells = st.none() | cells
        drawn = draw(st.lists(cells, min_size=count, max_size=count))
        if not any(cell is not None for cell in drawn):
            drawn[0] = draw(COLUMNS[name][1])
        ending = draw(st.sampled_from(ENDINGS))
        columns[name + ending] = pa.array(drawn, kind)
    columns["who"] = pa.array(range(2**53, 2**53 + count))
    rest = draw(st.permutations([*labels.values, *draws(draw, labels, count)]))
    columns["y"] = pa.array(rest[:count], labels.kind)
    return pa.table(columns), labels


def draws(draw: st.DrawFn, labels: Labels, count: int) -> list[Any]:
    more = count - len(labels.values)
    return draw(st.lists(st.sampled_from(labels.values), min_size=more, max_size=more))


def test_spaces_around_names_are_left_out_in_every_format(tmp_path: Path) -> None:
    ahpatron = Ahpatron(tmp_path)
    rows = pa.table({" x": [*range(40)], "kind ": [*"ab" * 20], " y ": [*"nnyy" * 10]})
    write(tmp_path, rows)
    ahpatron.succeed("run", "t.csv", "--label", "y", "--save", "m.npz")
    expected = ahpatron.succeed("predict", "m.npz", "t.csv").out.splitlines()
    model = OnlineKernelClassifier.load(tmp_path / "m.npz")
    for file in FILES:
        out = ahpatron.succeed("predict", "m.npz", file).out
        assert scores(pd.read_csv(io.StringIO(out))).tolist() == pytest.approx(
            [float(line.split(",")[2]) for line in expected[1:]]
        )
        ahpatron.succeed("run", file, "--label", "y")
    for frame in FRAMES.values():
        assert model.predict(frame(rows)).tolist() == [line.split(",")[1] for line in expected[1:]]


def test_names_that_are_equal_without_spaces_are_refused_in_every_format(tmp_path: Path) -> None:
    ahpatron = Ahpatron(tmp_path)
    rows = pa.table({"x": [1, 2], " x": [1, 2], "y": ["n", "y"]})
    write(tmp_path, rows)
    for file in FILES:
        assert "the name 'x'" in ahpatron.refusal(65, "run", file, "--label", "y")
    for frame in FRAMES.values():
        with pytest.raises(ValueError, match="'x' occurs twice"):
            OnlineKernelClassifier(table={"category": ["x"]}).fit(frame(rows), ["n", "y"])


MISSING = st.sampled_from(["indicator", "mean", "zero"])
Drawn = tuple[pa.Table, Labels]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[pa.Table], Ahpatron]:
    """Writes rows in every format, to a new folder for each example."""

    def furnish(rows: pa.Table) -> Ahpatron:
        path = tmp_path_factory.mktemp("formats")
        write(path, rows)
        return Ahpatron(path)

    return furnish


def codes_of(rows: pa.Table) -> list[str]:
    """The columns of numbers that are categories, by their names without spaces around them."""
    return [name.strip() for name in rows.column_names if name.startswith("code")]


def run(ahpatron: Ahpatron, rows: pa.Table, file: str, *options: str) -> dict[str, Any]:
    words = ["--label", "y", "--id", "who", "-l", "arow", "--sigma", 2, "-B", 20]
    for name in codes_of(rows):
        words += ["--category", name]
    return ahpatron.json("run", file, *words, *options)


def predictions(ahpatron: Ahpatron, data: str) -> pd.DataFrame:
    out = ahpatron.succeed("predict", "m.npz", data).out
    return pd.read_csv(io.StringIO(out), dtype={"who": str, "prediction": str})


@examples(40)
@given(tables(), MISSING)
def test_the_same_rows_give_the_same_counts_in_every_format(
    folder: Any, drawn: Drawn, missing: str
) -> None:
    rows, _ = drawn
    ahpatron = folder(rows)
    counts = {}
    for file in FILES:
        found = run(ahpatron, rows, file, "--missing", missing)
        counts[file] = (found["data"]["features"], found["runs"][0]["mistakes"])
    assert len(set(counts.values())) == 1, counts


@examples(40)
@given(tables(), st.sampled_from(FILES))
def test_a_model_has_the_labels_of_its_table(folder: Any, drawn: Drawn, made_from: str) -> None:
    rows, labels = drawn
    ahpatron = folder(rows)
    run(ahpatron, rows, made_from, "--save", "m.npz")
    schema = load_model(str(ahpatron.folder / "m.npz")).header.schema
    assert schema is not None
    assert sorted(schema.labels) == sorted(labels.shown)
    in_python = OnlineKernelClassifier.load(ahpatron.folder / "m.npz").classes_.tolist()
    assert {*in_python} == {*labels.in_python}


@examples(40)
@given(tables(), st.sampled_from(FILES), MISSING)
def test_a_model_of_one_format_predicts_the_same_in_every_format(
    folder: Any, drawn: Drawn, made_from: str, missing: str
) -> None:
    rows, labels = drawn
    ahpatron = folder(rows)
    run(ahpatron, rows, made_from, "--missing", missing, "--save", "m.npz")
    expected = predictions(ahpatron, made_from)
    assert expected["who"].tolist() == [str(who) for who in rows["who"].to_pylist()]
    assert {*expected["prediction"]} <= {*labels.shown}
    for file in FILES:
        found = predictions(ahpatron, file)
        assert found[["who", "prediction"]].equals(expected[["who", "prediction"]]), file
        np.testing.assert_allclose(scores(found), scores(expected), rtol=0, atol=1e-9, err_msg=file)


def trained_on_frame(rows: pa.Table, form: str, missing: str) -> OnlineKernelClassifier:
    """A model that Python made of these rows, with the settings of `run`."""
    table = {"missing": missing, "category": codes_of(rows)}
    model = OnlineKernelClassifier("arow", sigma=2, budget=20, random_state=0, table=table)
    labels = rows["y"].to_pandas().astype(str)
    return model.fit(FRAMES[form](rows.drop_columns(["y", "who"])), labels)


@examples(20)
@given(tables(), st.sampled_from(FORMATS), MISSING)
def test_a_model_made_from_any_format_scores_the_same_rows_in_all(
    folder: Any, drawn: Drawn, made_from: str, missing: str
) -> None:
    check_scores_of_all_formats(folder, drawn, made_from, missing)


@pytest.mark.slow
@settings(max_examples=400, phases=[Phase.generate])  # to shrink them would take hours
@given(tables(), st.sampled_from(FORMATS), MISSING)
def test_models_made_from_any_format_score_400_tables_the_same_in_all(
    folder: Any, drawn: Drawn, made_from: str, missing: str
) -> None:
    check_scores_of_all_formats(folder, drawn, made_from, missing)


def check_scores_of_all_formats(folder: Any, drawn: Drawn, made_from: str, missing: str) -> None:
    """A model made from one format has the same scores for the rows in every format."""
    rows, _ = drawn
    ahpatron = folder(rows)
    if made_from in FILES:
        run(ahpatron, rows, made_from, "--missing", missing, "--save", "m.npz")
    else:
        trained_on_frame(rows, made_from, missing).save(ahpatron.folder / "m.npz")
    model = OnlineKernelClassifier.load(ahpatron.folder / "m.npz")
    found = {name: model.decision_function(frame(rows)) for name, frame in FRAMES.items()}
    unlabelled = folder(rows.drop_columns(["y"]))
    for file in FILES:
        out = ahpatron.succeed("predict", "m.npz", unlabelled.folder / file).out
        found[file] = scores(pd.read_csv(io.StringIO(out)))
    expected = found[made_from]
    for name, values in found.items():
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=name)


@examples(20)
@given(tables(), MISSING)
def test_fit_makes_of_a_data_frame_what_run_makes_of_its_file(
    folder: Any, drawn: Drawn, missing: str
) -> None:
    rows, _ = drawn
    ahpatron = folder(rows)
    run(ahpatron, rows, "t.parquet", "--missing", missing, "--save", "m.npz")
    expected = OnlineKernelClassifier.load(ahpatron.folder / "m.npz").schema_
    assert expected is not None
    for form in FRAMES:
        found = trained_on_frame(rows, form, missing).schema_
        assert found is not None
        assert found.features == expected.features, form


def scores(found: pd.DataFrame) -> Any:
    return found[[name for name in found if name.startswith("score")]].to_numpy().squeeze()
