"""The same rows in every format of table: same counts, same predictions, and models for all."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.model_file import load_model
from support.command import Ahpatron
from support.effort import examples

FILES = ("t.csv", "t.tsv", "t.parquet", "t.arrow", "t.feather")
FRAMES: tuple[Callable[[pa.Table], Any], ...] = (pa.Table.to_pandas, pl.from_arrow)


def write(folder: Path, rows: pa.Table) -> None:
    """Write the rows in every format; text formats by pandas."""
    frame = rows.to_pandas()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    pa.parquet.write_table(rows, folder / "t.parquet", row_group_size=10)
    pa.feather.write_feather(rows, str(folder / "t.feather"))
    with (
        pa.OSFile(str(folder / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, rows.schema) as writer,
    ):
        writer.write_table(rows)


# Labels -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Labels of a table, and what a model says of them."""

    values: tuple[Any, ...]
    kind: pa.DataType
    shown: tuple[str, ...]
    in_python: tuple[Any, ...]


LABELS = (
    Labels((0, 1), pa.int64(), ("0", "1"), (0, 1)),
    Labels((1, 2), pa.int8(), ("1", "2"), (1, 2)),
    Labels((-1, 1), pa.int64(), ("-1", "1"), (-1, 1)),
    Labels((1, 2, 5), pa.uint16(), ("1", "2", "5"), (1, 2, 5)),
    Labels((0.5, 1.25), pa.float64(), ("0.5", "1.25"), (0.5, 1.25)),
    Labels(("no", "yes"), pa.string(), ("no", "yes"), ("no", "yes")),
    Labels(("b", "a", "c"), pa.large_string(), ("a", "b", "c"), ("a", "b", "c")),
    Labels(("-1", "+1"), pa.string(), ("+1", "-1"), (-1, 1)),
    Labels(("007", "012"), pa.string_view(), ("007", "012"), ("007", "012")),
    Labels(("1E2", "100", "5"), pa.string(), ("100", "1E2", "5"), ("100", "1E2", "5")),
    Labels((2**53, 2**53 + 1), pa.int64(), *[("9007199254740992", "9007199254740993")] * 2),
    Labels((False, True), pa.bool_(), ("False", "True"), (False, True)),
    Labels((date(2024, 5, 1), date(2025, 5, 1)), pa.date32(), *[("2024-05-01", "2025-05-01")] * 2),
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
    "price": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    "clock": (pa.time64("us"), st.times()),
    "flag": (pa.bool_(), st.booleans()),
    "job": (pa.string(), st.sampled_from(["boss", "clerk", "Köln, NRW", 'say "x"'])),
    "kind": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["u", "v"])),
    "code": (pa.int64(), st.integers(0, 3)),
    "rank": (pa.dictionary(pa.int8(), pa.int64()), st.integers(0, 3)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Labels]:
    """Some of the columns, with missing cells in some of them, an id and labels."""
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
        columns[name] = pa.array(drawn, kind)
    columns["who"] = pa.array(range(2**53, 2**53 + count))
    rest = draw(st.permutations([*labels.values, *draws(draw, labels, count)]))
    columns["y"] = pa.array(rest[:count], labels.kind)
    return pa.table(columns), labels


def draws(draw: st.DrawFn, labels: Labels, count: int) -> list[Any]:
    more = count - len(labels.values)
    return draw(st.lists(st.sampled_from(labels.values), min_size=more, max_size=more))


def run(ahpatron: Ahpatron, file: str, *options: str) -> dict[str, Any]:
    words = ("--label", "y", "--id", "who", "-l", "arow", "--sigma", 2, "-B", 20)
    return ahpatron.json("run", file, *words, *options)


def predictions(ahpatron: Ahpatron, model: str, data: str) -> pd.DataFrame:
    out = ahpatron.succeed("predict", model, data).out
    return pd.read_csv(io.StringIO(out), dtype={"who": str, "prediction": str})


@examples(40)
@given(tables(), st.sampled_from(FILES), st.sampled_from(["indicator", "mean", "zero"]))
def test_the_same_rows_give_the_same_model_in_every_format(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[pa.Table, Labels],
    made_from: str,
    missing: str,
) -> None:
    rows, labels = drawn
    ahpatron = Ahpatron(tmp_path_factory.mktemp("formats"))
    write(ahpatron.folder, rows)
    options = ["--missing", missing]
    options += ["--category", "code"] if "code" in rows.column_names else []
    counts = []
    for file in FILES:
        more = ["--save", "m.npz"] if file == made_from else []
        found = run(ahpatron, file, *options, *more)
        counts.append((found["data"]["features"], found["runs"][0]["mistakes"]))
    assert len({*counts}) == 1, dict(zip(FILES, counts, strict=True))
    schema = load_model(str(ahpatron.folder / "m.npz")).header.schema
    assert schema is not None
    assert tuple(sorted(schema.labels)) == tuple(sorted(labels.shown))
    expected = predictions(ahpatron, "m.npz", made_from)
    assert expected["who"].tolist() == [str(who) for who in rows["who"].to_pylist()]
    assert {*expected["prediction"]} <= {*labels.shown}
    for file in FILES:
        found = predictions(ahpatron, "m.npz", file)
        assert found[["who", "prediction"]].equals(expected[["who", "prediction"]]), file
        assert_close(found, expected)
    model = OnlineKernelClassifier.load(ahpatron.folder / "m.npz")
    assert {*model.classes_.tolist()} == {*labels.in_python}
    for frame in FRAMES:
        X = frame(rows)
        np.testing.assert_allclose(
            model.decision_function(X), scores(expected), rtol=0, atol=1e-9, err_msg=str(frame)
        )


def scores(found: pd.DataFrame) -> Any:
    return found[[name for name in found if name.startswith("score")]].to_numpy().squeeze()


def assert_close(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    names = [name for name in found if name.startswith("score")]
    np.testing.assert_allclose(found[names], expected[names], rtol=0, atol=1e-9)
