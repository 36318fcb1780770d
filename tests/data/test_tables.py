"""Tables: what the cells of CSV, Parquet and Arrow files become, and what is refused, where."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.data import csv_text
from ahpatron_cli.data.arrow import ArrowReader
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.csv_text import CsvReader
from ahpatron_cli.data.opening import stream
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.schema import Schema, Unseen
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.tables import TableReader
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.settings import Data


def table(text: str | bytes, schema: Schema | None = None, **options: Any) -> Table:
    """A table that cannot be read twice, and whose warm-up is all of it."""
    data = text.encode() if isinstance(text, str) else text
    source = Source(BytesIO(data), "d.csv", closes=True)
    warm_up = options.pop("warm_up", 10**9)
    chosen = TableOptions(**{"label": "y", **options})
    return Table(source, chosen, schema, Data(warm_up=warm_up))


class Table(TableReader):
    """A table that is read at once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.chunk = Batch.concatenate(list(self))
        self.notes = self.info.remarks

    @property
    def made(self) -> Schema:
        assert self.schema is not None
        return self.schema

    @property
    def labels(self) -> list[float]:
        return self.chunk.labels.tolist()

    @property
    def ids(self) -> list[str]:
        assert self.chunk.ids is not None
        return self.chunk.ids.tolist()

    @property
    def rows(self) -> list[list[float]]:
        """Without the empty column 0."""
        return self.chunk.stored.dense()[:, 1:].tolist()


def refusal(work: Callable[[], object]) -> tuple[int | None, str]:
    """The line and all text of an error in the data."""
    with pytest.raises(UserError) as caught:
        work()
    assert caught.value.code is ExitCode.BAD_DATA
    place = caught.value.place
    assert place is not None
    return place.line, f"{caught.value.problem}; {caught.value.hint}"


# Cells --------------------------------------------------------------------------------------------


COLUMNS = {
    "numbers": (["1.5", "-2", ".5"], ["c"], [[1.5], [-2], [0.5]]),
    "dates: days since 1970": (
        ["1970-01-02", "1970-01-03T06:00:00Z", "1970-01-01 00:00:00+01:00"],
        ["c"],
        [[1], [2.25], [-1 / 24]],
    ),
    "times of day: fractions": (["12:00", "06:00:00", "00:00"], ["c"], [[0.5], [0.25], [0]]),
    "text: a feature per category": (
        ["boss", "clerk", "boss"],
        ["c=boss", "c=clerk"],
        [[1, 0], [0, 1], [1, 0]],
    ),
    "truth values: categories": (
        ["true", "false", "true"],
        ["c=False", "c=True"],
        [[0, 1], [1, 0], [0, 1]],
    ),
}
"""For each kind of column: its cells, the names of its features, and their values."""


@pytest.mark.parametrize("kind", COLUMNS)
def test_each_kind_of_column_has_its_features(kind: str) -> None:
    cells, names, values = COLUMNS[kind]
    lines = [f"{cell},{label}" for cell, label in zip(cells, ("0", "1", "1"), strict=True)]
    found = table("\n".join(["c,y", *lines, ""]))
    assert found.made.features == names
    assert found.rows == values


def test_features_are_in_the_order_of_the_columns() -> None:
    found = table("job,n,flag,y\nboss,1,true,0\nclerk,2,false,1\n")
    assert found.made.features == ["job=boss", "job=clerk", "n", "flag=False", "flag=True"]
    assert found.rows == [[1, 0, 1, 0, 1], [0, 1, 2, 1, 0]]


def test_named_columns_are_dropped_categories_or_ids() -> None:
    text = "id,month,zip,a,y\nk1,3,01234,7,0\nk2,12,99999,8,1\nk3,3,01234,9,1\n"
    found = table(text, id="id", drop=("a",), category=("month", "zip"))
    assert found.made.features == ["month=12", "month=3", "zip=01234", "zip=99999"]
    assert found.made.dropped == ["a"]
    assert found.rows == [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]]
    assert found.ids == ["k1", "k2", "k3"]


MISSING = pytest.mark.parametrize(
    "cell", ["", "NA", "N/A", "n/a", "null", "?", " "], ids=lambda cell: repr(cell)
)
"""How tables spell a missing cell."""


def with_gaps(cell: str) -> str:
    """A table whose second row has this cell in both columns."""
    return f"a,b,y\n2,x,0\n{cell},{cell},1\n4,x,1\n"


@MISSING
@pytest.mark.parametrize(
    ("missing", "names", "row"),
    [
        ("indicator", ["a", "a missing", "b=x", "b missing"], [0, 1, 0, 1]),
        ("zero", ["a", "b=x"], [0, 0]),
        ("mean", ["a", "b=x"], [3, 0]),
    ],
    ids=["indicator", "zero", "mean"],
)
def test_a_missing_cell_becomes_what_was_asked_for(
    cell: str, missing: str, names: list[str], row: list[float]
) -> None:
    found = table(with_gaps(cell), missing=missing)
    assert found.made.features == names
    assert found.rows[1] == row


@MISSING
@pytest.mark.parametrize("missing", ["indicator", "zero", "mean"])
def test_missing_cells_are_counted_by_column(cell: str, missing: str) -> None:
    notes = table(with_gaps(cell), missing=missing).notes
    assert any("missing" in note and "a (1), b (1)" in note for note in notes)


@MISSING
def test_the_first_missing_cell_is_refused_if_asked(cell: str) -> None:
    line, error = refusal(lambda: table(with_gaps(cell), missing="refuse"))
    assert line == 3
    assert "'a'" in error
    assert "--missing" in error


LABELS: dict[str, tuple[list[str], list[float]]] = {
    "two texts": (["no", "no", "yes"], [-1, -1, 1]),
    "two texts: the rarer is positive": (["yes", "yes", "no"], [-1, -1, 1]),
    "two texts, equally frequent: the later in the alphabet": (["b", "a"], [1, -1]),
    "0 and 1": (["0", "1"], [0, 1]),
    "-1 and 1.0": (["1.0", "-1"], [1, -1]),
    "-1 and +1": (["-1", "+1"], [-1, 1]),
    "1 and 2, spelled in two ways": (["2", "1", "2.0"], [1, -1, 1]),
    "leading zeros are text": (["007", "012", "007"], [-1, 1, -1]),
    "two spellings of 100 are text": (["1E2", "100", "5"], [1, 0, 2]),
    "integers that no double tells apart are text": (
        ["9007199254740993", "9007199254740992"],
        [1, -1],
    ),
    "truth values in any case": (["TRUE", "False", "true", "False", "False"], [1, -1, 1, -1, -1]),
    "three texts": (["c", "a", "b"], [2, 0, 1]),
    "three numbers": (["30", "10", "20"], [30, 10, 20]),
    "missing labels": (["no", "?", "yes", ""], [-1, np.nan, 1, np.nan]),
}
"""Labels as they are written, and the numbers that they become."""


def labelled(labels: list[str]) -> Table:
    """A table with these labels."""
    return table("a,y\n" + "".join(f"1,{label}\n" for label in labels))


@pytest.mark.parametrize("kind", LABELS)
def test_labels_become_numbers(kind: str) -> None:
    written, numbers = LABELS[kind]
    np.testing.assert_array_equal(labelled(written).labels, numbers)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["007", "012"], ["007", "012"]),
        (["1E2", "100", "5"], ["100", "1E2", "5"]),
        (["-1", "+1"], ["-1", "+1"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["1", "1.0", "2"], ["1", "2"]),
        (["true", "FALSE"], ["False", "True"]),
    ],
    ids=[
        "leading zeros",
        "two spellings of 100",
        "a plus",
        "a point",
        "two spellings of 1: the first",
        "truth values",
    ],
)
def test_labels_are_shown_as_they_are_written(labels: list[str], names: list[str]) -> None:
    found = labelled(labels).made
    assert sorted(found.labels, key=found.labels.__getitem__) == names


def test_a_label_that_is_a_number_is_known_in_another_spelling() -> None:
    schema = table("a,y\n1,-1\n2,1\n").made
    assert table("a,y\n1,+1\n1,-1.0\n", schema).labels == [1, -1]
    assert schema.label_named("+1") == "1"


def test_a_label_that_is_text_is_unknown_in_another_spelling() -> None:
    schema = table("a,y\n1,007\n2,008\n").made
    assert refusal(lambda: table("a,y\n1,7\n", schema))[0] == 2
    assert schema.label_named("7") is None


def test_a_class_that_is_a_number_is_unknown_in_scientific_notation() -> None:
    schema = table("a,y\n1,5\n2,100\n3,7\n").made
    assert "1E2" in refusal(lambda: table("a,y\n1,1E2\n", schema))[1]


def test_positive_names_a_label_in_any_spelling() -> None:
    found = table("a,y\n1,1.0\n2,2.0\n3,3.0\n", positive="2")
    assert found.made.positive == "2.0"
    assert found.labels == [-1, 1, -1]


def test_fractions_that_hardly_repeat_are_no_classes(tmp_path: Path) -> None:
    """Also if they are written with digits that a number does not need."""
    lines = "".join(f"{i},{i}.50\n" for i in range(30))
    path = tmp_path / "d.csv"
    path.write_text("a,y\n" + lines)
    with open_source(str(path)) as source:
        preparation = Preparation(table=TableOptions(label="y"))
        assert "regression" in refusal(lambda: stream(source, preparation))[1]


def test_wide_tables_are_sparse() -> None:
    text = "n,c,y\n" + "".join(f"{i % 2},v{i % 100},{i % 2}\n" for i in range(300))
    found = table(text)
    assert found.chunk.stored.is_legal()
    assert np.array(found.rows).shape == (300, 101)
    assert np.sum(found.rows) == 450


@pytest.mark.parametrize("name", ["", "Unnamed: 0"], ids=["without a name", "as read again"])
def test_the_index_of_pandas_is_left_out(name: str) -> None:
    found = table(f"{name},a,y\n0,1.5,u\n1,2.5,v\n")
    assert found.made.features == ["a"]
    assert len(found.made.dropped) == 1
    assert any("index" in note for note in found.notes)


# New data -----------------------------------------------------------------------------------------


def trained() -> Schema:
    text = "id,a,job,d,y\nk1,1,boss,2020-01-01,no\nk2,,clerk,2020-01-03,no\nk3,3,boss,,yes\n"
    return table(text, id="id", missing="mean").made


def test_a_schema_survives_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(trained()), type=Schema) == trained()


NEW = "extra,d,job,id,a\n9,2020-01-02,pilot,k9,?\n"
"""One row: other columns in another order, an unknown job, a missing number, no label."""


def test_columns_of_new_data_are_found_by_name() -> None:
    found = table(NEW, trained())
    day = (date(2020, 1, 2) - date(1970, 1, 1)).days
    assert found.rows == [[2, 0, 0, day]]
    assert found.ids == ["k9"]
    assert found.chunk.lines.tolist() == [2]


def test_new_data_may_lack_labels() -> None:
    assert np.isnan(table(NEW, trained()).labels).all()


def test_an_unknown_category_is_counted() -> None:
    assert any("job (1)" in note for note in table(NEW, trained()).notes)


def test_new_data_must_have_all_columns() -> None:
    _, error = refusal(lambda: table("id,a\nk,1\n", trained()))
    assert "job, d" in error


def test_a_cell_of_new_data_must_be_of_the_kind_of_its_column() -> None:
    line, error = refusal(lambda: table("id,a,job,d\nk,1,boss,\nk,x,boss,\n", trained()))
    assert line == 3
    assert "'a'" in error


def test_a_label_of_new_data_must_be_known() -> None:
    line, error = refusal(lambda: table("id,a,job,d,y\nk,1,boss,,maybe\n", trained()))
    assert line == 2
    assert "no, yes" in error


def test_categories_that_are_numbers_are_compared_by_value() -> None:
    """A column of integers has fractions where pandas had a missing cell in it."""
    schema = table("code,y\n0,0\n1,1\n2,1\n", category=("code",)).made
    found = table("code\n0.0\n1.0\n02\n3\n", schema)
    assert found.rows == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert any("code (1)" in note for note in found.notes)


def test_categories_with_leading_zeros_are_compared_as_text() -> None:
    schema = table("code,y\n01,0\n1,1\n", category=("code",)).made
    assert schema.features == ["code=01", "code=1"]
    assert table("code\n01\n1\n001\n", schema).rows == [[1, 0], [0, 1], [0, 0]]


NEW_GAPS = "a,d,c,y\n1,2024-01-01,u,0\n2,2024-01-03,v,1\n6,2024-01-05,u,1\n1,2024-01-03,u,1\n"


@pytest.mark.parametrize("missing", ["indicator", "mean"])
def test_cells_missing_only_in_new_data_are_the_mean_or_the_shares(missing: str) -> None:
    schema = table(NEW_GAPS, missing=missing).made
    day = (date(2024, 1, 3) - date(1970, 1, 1)).days
    found = table("a,d,c\n,,\n5,2024-01-03,v\n", schema)
    assert found.rows == [[2.5, day, 0.75, 0.25], [5, day, 0, 1]]
    said = any("a (1), d (1), c (1)" in note for note in found.notes)
    assert said == (missing == "indicator")  # with mean it was asked for


def test_cells_missing_only_in_new_data_are_0_if_asked() -> None:
    schema = table(NEW_GAPS, missing="zero").made
    assert table("a,d,c\n,,\n", schema).rows == [[0, 0, 0, 0]]


def test_cells_missing_only_in_new_data_are_refused_if_asked() -> None:
    schema = table(NEW_GAPS, missing="refuse").made
    assert refusal(lambda: table("a,d,c\n,,\n", schema))[0] == 2


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            "indicator",
            [
                "missing values become 0, with an indicator feature: a (1), c (1)",
                "missing values become the mean date, with an indicator feature: d (1)",
            ],
        ),
        ("mean", ["missing values become the mean, or no category: a (1), d (1), c (1)"]),
        ("zero", ["missing values become 0: a (1), d (1), c (1)"]),
    ],
    ids=["indicator", "mean", "zero"],
)
def test_notes_say_what_missing_cells_become(missing: str, said: list[str]) -> None:
    found = table("a,d,c,y\n1,2020-01-01,u,0\n,,,1\n3,2020-01-03,v,0\n", missing=missing)
    assert [note for note in found.notes if "missing values" in note] == said


def test_notes_name_columns_without_values() -> None:
    found = table("a,empty,y\n1,,0\n2,,1\n")
    assert "columns without values are left out: empty" in found.notes


def test_cells_missing_in_training_too_have_their_indicator_only() -> None:
    schema = table("a,c,y\n1,u,0\n,,1\n3,v,1\n").made
    assert schema.features == ["a", "a missing", "c=u", "c=v", "c missing"]
    found = table("a,c\n,\n", schema)
    assert found.rows == [[0, 1, 0, 0, 1]]
    assert not found.notes


def test_shares_are_sparse_in_a_wide_table() -> None:
    text = "n,c,y\n" + "".join(f"{i % 2},v{i % 100},{i % 2}\n" for i in range(300))
    found = table("c,n\nv7,1\n,0\nv8,0\n,1\n", table(text).made)
    assert found.chunk.stored.is_legal()
    assert found.rows[1] == [0, *[0.01] * 100]
    assert found.rows[3] == [1, *[0.01] * 100]
    assert np.sum(found.rows) == pytest.approx(1 + 1 + 1 + 1 + 2)


def test_the_mean_of_huge_numbers_is_finite() -> None:
    schema = table("a,y\n1.5e308,0\n1.7e308,1\n1.6e308,1\n").made
    assert schema.columns[0].fill == pytest.approx(1.6e308)


# Refusals -----------------------------------------------------------------------------------------

NAMES = "".join(f"name{i},{i},{i % 2}\n" for i in range(30))


REFUSED: dict[str, tuple[str | bytes, int | None, str]] = {
    "a column of names": ("name,a,y\n" + NAMES, 2, "--drop name"),
    "text among numbers": ("a,y\n1,0\n2,1\nx,1\n", 4, "--category a"),
    "a number among texts": ("a,y\nx,0\nx,1\n2,1\n", 4, "--category a"),
    "infinity": ("a,y\n1,0\n2,1\ninf,1\n", 4, "inf"),
    "digits with underscores": ("a,y\n1,0\n2,1\n1_0,1\n", 4, "1_0"),
    "a decimal comma": ("a;y\n1;0\n2;1\n1,5;1\n", 4, "1,5"),
    "a day that is not": ("d,y\n2020-01-01,0\n2020-02-01,1\n2020-02-31,1\n", 4, "2020-02-31"),
    "no rows": ("a,y\n", 1, "no rows"),
    "no labels": ("a,y\n1,\n", 1, "label"),
    "one label": ("a,y\n1,x\n2,x\n", None, "same label"),
    "one label and missing ones": ("a,y\n1,x\n2,NA\n3,NA\n", None, "NA (2)"),
    "missing labels only": ("a,y\n1,NA\n2,\n3,NA\n", 1, "NA (2), an empty cell (1)"),
    "no features": ("y\n1\n0\n", 1, "features"),
    "nothing": ("", 1, "header"),
    "an empty header": ("\n1,2\n", 1, "header"),
    "a header of data with text": ("5.1,3.5,setosa\n4.9,3,setosa\n", 1, "c1,c2,c3"),
    "a header of numbers": ("5,3,1\n4,3,2\n", 1, "c1,c2,c3"),
    "two columns of one name": ("a,a,y\n1,2,0\n", 1, "'a'"),
    "a cell too many": ("a,y\n1,0\n1,2,3\n", 3, "3 cells"),
    "a cell too few": ("a,b,y\n1,0\n", 2, "2 cells"),
    "a cell too few, then one too many": ("a,b,y\n1,0\n2,3,1,1\n", 2, "2 cells"),
    "a quote that is not closed": ('a,y\n1,0\n"2,1\n3,1\n', 3, "quote"),
    "text behind a quote": ('a,y\n1,0\n"2"x,1\n3,1\n', 3, "quote"),
    "lines that end in carriage returns": ("a,y\r1,0\r2,1\r", 1, "tr '"),
    "a NUL": ("a,y\n1,0\n2\0,1\n", 3, "NUL"),
    "latin-1": ("a,y\n1,0\n2\xff,1\n".encode("latin-1"), 3, "iconv"),
    "UTF-16": ("a,y\n1,0\n".encode("utf-16"), 1, "UTF-16"),
}
"""What is wrong: the text of a table, the line that the error names, and what it says."""


@pytest.mark.parametrize("fault", REFUSED)
def test_a_table_that_cannot_be_learned_is_refused_with_its_line(fault: str) -> None:
    text, line, named = REFUSED[fault]
    place, error = refusal(lambda: table(text))
    assert place == line
    assert named in error


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"label": None}, ExitCode.BAD_DATA, "--label y"),
        ({"label": "yy"}, ExitCode.BAD_DATA, "y"),
        ({"drop": ("b",)}, ExitCode.BAD_DATA, "a, y"),
        ({"drop": ("y",)}, ExitCode.USAGE, "'y'"),
        ({"drop": ("a",), "category": ("a",)}, ExitCode.USAGE, "'a'"),
    ],
    ids=[
        "no label named",
        "an unknown label",
        "an unknown column dropped",
        "the label dropped",
        "a column dropped and a category",
    ],
)
def test_options_must_fit_the_columns(options: dict[str, Any], code: ExitCode, named: str) -> None:
    with pytest.raises(UserError) as caught:
        table("a,y\n1,0\n", **options)
    assert caught.value.code is code
    assert named in f"{caught.value.problem} {caught.value.hint}"


def test_a_line_without_end_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "MAX_LINE", 1 << 21)
    asked = 0

    def read(size: int) -> bytes:
        nonlocal asked
        asked += size
        return b"x" * size

    assert refusal(lambda: CsvReader(read, "d.csv"))[0] == 1
    assert asked < 1 << 23


# How text is read ---------------------------------------------------------------------------------


SPELLINGS = {
    "plain": "a,job,y\n1,x,0\n2,z,1\n",
    "a byte order mark": "\ufeffa,job,y\n1,x,0\n2,z,1\n",
    "lines as on Windows": "a,job,y\r\n1,x,0\r\n2,z,1\r\n",
    "semicolons, no end of line at the end": "a;job;y\n1;x;0\n2;z;1",
    "tabs": "a\tjob\ty\n1\tx\t0\n2\tz\t1\n",
    "bars": "a|job|y\n1|x|0\n2|z|1\n",
    "blanks": "a, job, y\n1, x, 0\n2 ,z ,1 \n",
    "quotes": '"a","job","y"\n"1","x","0"\n2,"z",1\n',
    "empty lines": "a,job,y\n\n1,x,0\n\n2,z,1\n\n",
}
"""The same table in different spellings of CSV."""


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("size", [1, 3, 1 << 20], ids=lambda size: f"{size} bytes at once")
def test_a_table_is_read_in_every_spelling(
    spelling: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_text, "CHUNK_BYTES", size)
    found = table(SPELLINGS[spelling])
    assert found.rows == [[1, 1, 0], [2, 0, 1]]
    assert found.labels == [0, 1]


def test_quoted_cells_may_hold_anything_and_lines_are_counted() -> None:
    text = 'a,"the\njob",y\n1,"x, ""or""\ny",0\n2,"ü",1\n3,"ü",1\n'
    found = table(text)
    assert found.made.features == ["a", 'the\njob=x, "or"\ny', "the\njob=ü"]
    assert found.chunk.lines.tolist() == [3, 5, 6]


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False).map(repr)
            | st.integers(-(10**20), 10**20).map(str)
            | st.decimals(-1000, 1000, places=6).map(str),
            st.sampled_from(["x", "ö", "a b", 'q"q', "k,k", "l\nl"]),
        ),
        min_size=1,
    ),
    st.integers(1, 60),
    st.booleans(),
)
def test_numbers_are_read_as_python_does_wherever_pieces_end(
    cells: list[tuple[str, str]], size: int, quotes: bool
) -> None:
    frame = pd.DataFrame(cells, columns=["a", "c"], dtype=object)
    if not quotes:
        frame["c"] = "plain"
    data = BytesIO(frame.to_csv(index=False).encode())
    rows = CsvReader(lambda _: data.read(size), "d.csv")
    numbers: list[float] = []
    texts: list[str] = []
    for batch in rows.batches({"a", "c"}, {"c"}):
        numbers += np.asarray(batch.columns["a"], dtype=float).tolist()
        texts += batch.columns["c"].tolist()
    assert numbers == [float(cell) for cell, _ in cells]
    assert texts == frame["c"].tolist()


CELLS = [
    "1",
    "-2.50",
    "+.5",
    "7.",
    "1e-3",
    "",
    "NA",
    "nan",
    " 3",
    "4 ",
    '"5"',
    '""',
    "-",
    "1-",
    "1.2.3",
    "inf",
    "1_0",
    "0x1",
    "word",
    "long word, 9",
    "ö",
    "+",
    "12345678901234567890",
    "1 2",
    "\xa06",
]


@given(
    st.lists(st.tuples(*[st.sampled_from(CELLS)] * 3), min_size=1), st.sampled_from([",", ";", "|"])
)
def test_vectorised_parsing_agrees_with_the_csv_module(
    rows: list[tuple[str, ...]], delimiter: str
) -> None:
    lines = [delimiter.join(row) for row in [("a", "b", "c"), *rows]]
    # the csv module reads the whole text if a cell has a quote inside
    both = ["\n".join([*lines, last]) for last in ("", delimiter.join(["1", "2", '"q""q"']))]

    def read(text: str) -> list[list[Any]]:
        data = BytesIO(text.encode())
        try:
            cells = next(CsvReader(data.read, "d.csv").batches({"a", "b", "c"}, {"c"}), None)
        except UserError as error:
            return [[error.problem]]
        columns = [] if cells is None else list(cells.columns.values())
        return [[str(cell) for cell in column.tolist()][: len(rows)] for column in columns]

    assert read(both[0]) == read(both[1])


def test_rows_are_yielded_as_soon_as_they_have_arrived() -> None:
    receive, send = os.pipe()
    schema = table("a,c,y\n1,x,0\n2,z,1\n").made

    def read(size: int) -> bytes:
        return os.read(receive, size)

    os.write(send, b"a,c,y\n")
    rows = CsvReader(read, "<stdin>").batches({"a", "c", "y"}, {"c", "y"})
    for text, lines in [
        (b"1,x,0\n2,", [2]),  # the second record is not complete
        (b'x,1\n3,"x\n', [3]),
        (b'",1\n', [4]),
    ]:
        os.write(send, text)
        assert schema.to_batch(next(rows), "d.csv", Unseen()).lines.tolist() == lines
    os.write(send, b"4,x,1")
    os.close(send)
    assert next(rows).lines.tolist() == [6]
    assert next(rows, None) is None
    os.close(receive)


LONG = "a,c,y\n" + "1,x,0\n2,z,1\n" * 1000
"""2,000 rows."""


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is read in pieces of 100 bytes."""
    monkeypatch.setattr(csv_text, "CHUNK_BYTES", 100)


@pytest.mark.usefixtures("small_chunks")
def test_the_first_rows_of_a_pipe_give_the_schema_that_all_would() -> None:
    assert table(LONG, warm_up=1000).rows == table(LONG).rows


@pytest.mark.usefixtures("small_chunks")
def test_a_category_after_the_first_rows_of_a_pipe_has_no_feature() -> None:
    late = table(LONG + "3,late,1\n", warm_up=1000)
    assert late.rows[-1] == [3, 0, 0]
    assert any("new categories of c (1)" in note for note in late.notes)


@pytest.mark.usefixtures("small_chunks")
def test_a_category_among_the_first_rows_of_a_pipe_has_a_feature() -> None:
    found = table(LONG + "3,late,1\n", warm_up=3000)
    assert found.made.features == ["a", "c=late", "c=x", "c=z"]


@pytest.mark.usefixtures("small_chunks")
def test_text_among_numbers_after_the_first_rows_of_a_pipe_is_refused() -> None:
    assert refusal(lambda: table(LONG + "oops,x,1\n", warm_up=1000))[0] == 2002


@pytest.fixture
def long_file(tmp_path: Path) -> str:
    """2,000 rows, then one with a new category and without a label."""
    path = tmp_path / "d.csv"
    path.write_text(LONG + "3,late,?\n")
    return str(path)


def test_all_rows_of_a_file_fix_its_schema(long_file: str) -> None:
    assert opened(long_file).made.features == ["a", "c=late", "c=x", "c=z"]


def test_labelled_rows_of_a_file_are_counted(long_file: str) -> None:
    found = opened(long_file)
    assert found.tally is not None
    assert found.tally.rows == 2000
    assert found.tally.counts == {0: 1000, 1: 1000}


def test_rows_behind_the_limit_do_not_count_for_the_schema(long_file: str) -> None:
    short = opened(long_file, max_rows=7)
    assert len(short.rows) == 7
    assert short.made.features == ["a", "c=x", "c=z"]


# Parquet, Arrow, Feather --------------------------------------------------------------------------


def opened(path: str, max_rows: int | None = None, **options: Any) -> Table:
    with open_source(path) as file:
        return Table(file, TableOptions(**{"label": "y", **options}), None, Data(limit=max_rows))


def content() -> pa.Table:
    return pa.table(
        {
            "n": pa.array([1.5, None, 3.0]),
            "i": pa.array([1, 2, None], pa.int64()),
            "job": pa.array(["boss", None, "clerk"]),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "flag": pa.array([True, False, None]),
            "day": pa.array([date(1970, 1, 2), None, date(1970, 1, 4)]),
            "at": pa.array([datetime(1970, 1, 1, 12), None, datetime(1970, 1, 2)]),
            "clock": pa.array([time(6), time(12), time(18)]),
            "y": pa.array(["no", "no", "yes"]),
        }
    )


def write(path: Path, rows: pa.Table) -> str:
    if path.suffix == ".parquet":
        pa.parquet.write_table(rows, path, row_group_size=2)
    elif path.suffix == ".feather":
        pa.feather.write_feather(rows, str(path))
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    return str(path)


@pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.feather", "d.csv"])
def test_files_of_every_format_give_the_same_rows(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    if name == "d.csv":
        pd.DataFrame(content().to_pylist()).to_csv(path, index=False)
    else:
        write(tmp_path / name, content())
    found = opened(path, missing="zero")
    assert found.made.features == [
        "n",
        "i",
        "job=boss",
        "job=clerk",
        "kind=u",
        "kind=v",
        "flag=False",
        "flag=True",
        "day",
        "at",
        "clock",
    ]
    assert found.rows == [
        [1.5, 1, 1, 0, 1, 0, 0, 1, 1, 0.5, 0.25],
        [0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0.5],
        [3, 0, 0, 1, 1, 0, 0, 0, 3, 1, 0.75],
    ]
    assert found.labels == [-1, -1, 1]


def test_missing_dates_are_the_mean_date_in_every_format(tmp_path: Path) -> None:
    rows = pa.table({"d": [date(2024, 1, 1), None, date(2024, 1, 3)], "y": ["u", "v", "u"]})
    pd.DataFrame(rows.to_pylist()).to_csv(tmp_path / "d.csv", index=False)
    paths = [str(tmp_path / "d.csv")]
    paths += [write(tmp_path / name, rows) for name in ("d.parquet", "d.arrow", "d.feather")]
    day = (date(2024, 1, 2) - date(1970, 1, 1)).days
    for path in paths:
        found = opened(path)
        assert found.made.columns[0].kind == "date"
        assert found.rows == [[day - 1, 0], [day, 1], [day + 1, 0]]


IDS: dict[str, tuple[pa.Array, list[str]]] = {
    "int64": (pa.array([2**53 + 1, None]), ["9007199254740993", ""]),
    "uint64": (pa.array([2**64 - 1, 5], pa.uint64()), ["18446744073709551615", "5"]),
    "decimal": (pa.array([Decimal("1.50"), Decimal("-20.00")]), ["1.50", "-20.00"]),
    "double": (pa.array([2.0, 0.5]), ["2", "0.5"]),
    "float": (pa.array([0.1, None], pa.float32()), ["0.1", ""]),
    "bool": (pa.array([True, False]), ["True", "False"]),
    "date": (pa.array([date(2024, 5, 31), None]), ["2024-05-31", ""]),
    "timestamp": (pa.array([datetime(2024, 5, 31, 8, 30), None]), ["2024-05-31T08:30:00", ""]),
    "timestamp with a zone": (
        pa.array([10**9 + 1, 0], pa.timestamp("ns", "UTC")),
        ["1970-01-01T00:00:01.000000001Z", "1970-01-01T00:00:00Z"],
    ),
    "time": (pa.array([time(8, 30), None]), ["08:30:00", ""]),
    "text": (pa.array([" k1 ", "007"], pa.string_view()), ["k1", "007"]),
    "dictionary": (pa.array([2**53 + 1, 7]).dictionary_encode(), ["9007199254740993", "7"]),
    "nothing": (pa.nulls(2), ["", ""]),
}
"""For each type of Arrow: two ids, and how they are written."""


@pytest.mark.parametrize("kind", IDS)
def test_ids_have_all_their_digits(kind: str, tmp_path: Path) -> None:
    column, texts = IDS[kind]
    rows = pa.table({"who": column, "x": [1, 2], "y": ["u", "v"]})
    found = opened(write(tmp_path / "d.arrow", rows), id="who")
    assert found.ids == texts


def test_the_index_of_pandas_is_left_out_of_parquet_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "y": ["u", "v", "u"]}).iloc[[0, 2, 1]]
    frame.to_parquet(tmp_path / "d.parquet")
    found = opened(str(tmp_path / "d.parquet"))
    assert found.made.features == ["a"]
    assert found.made.dropped == ["__index_level_0__"]


def test_two_columns_of_one_name_are_refused_in_arrow_too(tmp_path: Path) -> None:
    rows = pa.table([[1, 2], [3, 4], [0, 1]], names=["a", "a", "y"])
    path = write(tmp_path / "d.arrow", rows)
    assert "two columns have the name 'a'" in refusal(lambda: opened(path))[1]


DATES = pa.table({"a": [date(2024, 1, 1), date(2024, 1, 2)], "y": [0, 1]})
NUMBERS = pa.table({"a": [None, 19723], "y": [0, 1]})


@pytest.mark.parametrize(
    ("trained_on", "new", "line", "cell"),
    [(DATES, NUMBERS, 2, "19723"), (NUMBERS, DATES, 1, "2024-01-01")],
    ids=["a number for a date", "a date for a number"],
)
def test_numbers_are_no_dates_and_dates_are_no_numbers(
    tmp_path: Path, trained_on: pa.Table, new: pa.Table, line: int, cell: str
) -> None:
    schema = opened(write(tmp_path / "old.parquet", trained_on)).made
    with open_source(write(tmp_path / "new.parquet", new)) as file:
        found, error = refusal(lambda: Table(file, TableOptions(), schema))
    assert found == line
    assert cell in error


def test_a_column_of_lists_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "d.parquet", pa.table({"a": [[1], [2]], "y": [0, 1]}))
    assert "--drop a" in refusal(lambda: opened(path))[1]


def test_a_column_of_lists_can_be_dropped(tmp_path: Path) -> None:
    rows = pa.table({"a": [[1], [2]], "b": [1.0, 2.0], "y": [0, 1]})
    assert opened(write(tmp_path / "d.parquet", rows), drop=("a",)).rows == [[1.0], [2.0]]


def test_an_infinite_number_is_refused_in_parquet_too(tmp_path: Path) -> None:
    path = write(tmp_path / "d.parquet", pa.table({"b": [1.0, np.inf], "y": [0, 1]}))
    assert "'b'" in refusal(lambda: opened(path))[1]


def test_a_parquet_file_without_content_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    assert "damaged" in refusal(lambda: ArrowReader(str(path)))[1]


def test_a_parquet_file_that_is_not_there_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        ArrowReader(str(tmp_path / "none.parquet"))
    assert caught.value.code is ExitCode.NO_INPUT


@pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.feather"])
def test_whatever_is_damaged_is_reported_and_never_read_as_memory(
    name: str, tmp_path: Path
) -> None:
    """Wrong offsets in an Arrow file would end the process."""
    whole = Path(write(tmp_path / name, pa.concat_tables([content()] * 20))).read_bytes()
    draw = random.Random(0)
    damaged = tmp_path / f"damaged{Path(name).suffix}"
    codes = set()
    for _ in range(100):
        noise = bytearray(whole)
        for _ in range(5):
            noise[draw.randrange(len(noise))] = draw.randrange(256)
        damaged.write_bytes(noise)
        codes.add(code_of_reading(str(damaged)))
    assert ExitCode.BAD_DATA in codes
    assert codes <= {ExitCode.OK, ExitCode.BAD_DATA}


def code_of_reading(path: str) -> ExitCode:
    try:
        reader = ArrowReader(path)
        for _ in reader.batches(set(reader.names), set()):
            pass
    except UserError as error:
        return error.code
    return ExitCode.OK
