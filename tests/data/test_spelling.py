"""How cells are written: decimal signs, dates, missing cells; and columns of many categories."""

from __future__ import annotations

import json
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.cells import Spelling, days, readings
from ahpatron_cli.data.csv_text import delimiter_of
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.tables import TableReader
from ahpatron_cli.errors import UserError


def opened(text: str, schema: Schema | None = None, **options: Any) -> TableReader:
    """A table that cannot be read twice."""
    source = Source(BytesIO(text.encode()), "d.csv", closes=True)
    return TableReader(source, TableOptions(label="y", **options), schema)


def column(cells: list[str], schema: Schema | None = None, **options: Any) -> list[float]:
    """The values of the first feature of a column with these cells."""
    reader = opened(as_csv(cells), schema, **options)
    rows = Batch.concatenate(list(reader)).stored.dense()
    return rows[:, 1].tolist()


def as_csv(cells: list[str]) -> str:
    lines = [f"{cell};{i % 2}" for i, cell in enumerate(cells)]
    return "\n".join(["c;y", *lines, ""])


def refusal(cells: list[str], schema: Schema | None = None, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        column(cells, schema, **options)
    return f"{caught.value.problem}; {caught.value.hint}"


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decimal", "cell", "value"),
    [
        (",", "1,5", 1.5),
        (",", "-1.234.567,25", -1234567.25),
        (",", "1.500", 1500.0),
        (",", "7", 7.0),
        (",", ",5", 0.5),
        (",", "3,2e-1", 0.32),
        (".", "1,234.5", 1234.5),
        (".", "1,500", 1500.0),
        (".", "1.5", 1.5),
        (None, "1.5", 1.5),
    ],
)
def test_a_number_is_read_by_its_decimal_sign(decimal: Any, cell: str, value: float) -> None:
    assert Spelling(decimal).number(cell) == value
    assert column([cell, "2", "3"], decimal=decimal)[0] == value


@pytest.mark.parametrize(
    ("decimal", "cell"),
    [(",", "1.5"), (",", "1.23,4"), (",", "1,2,3"), (".", "1,5"), (None, "1,5"), (",", "")],
)
def test_another_spelling_is_no_number(decimal: Any, cell: str) -> None:
    assert Spelling(decimal).number(cell) is None


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=30))
def test_decimal_commas_give_the_numbers_of_decimal_points(numbers: list[float]) -> None:
    points = [repr(value) for value in numbers]
    commas = [cell.replace(".", ",") for cell in points]
    assert column(commas, decimal=",") == column(points)


@pytest.mark.parametrize("count", [4, 400])
def test_decimal_commas_are_suspected(count: int) -> None:
    cells = [f"{i % 4},5" for i in range(count)]
    (note,) = [note for note in opened(as_csv(cells)).info.remarks if "looks like" in note]
    assert "--decimal ," in note


@pytest.mark.parametrize(
    ("cells", "meant"),
    [
        (["31.05.24", "01.06.24"], "dates"),
        (["2024/05/31", "2024/06/01"], "dates"),
        (["31-05-2024", "1-6-2024"], "dates"),
        (["31 May 2024", "May 31, 2024"], "dates"),
        (["5 %", "10 %"], "numbers"),
        (["€5.50", "€7"], "numbers"),
        (["1 234", "7 654 321"], "numbers"),
    ],
)
def test_text_that_looks_like_numbers_or_dates_is_noted(cells: list[str], meant: str) -> None:
    (note,) = [note for note in opened(as_csv(cells)).info.remarks if "looks like" in note]
    assert f"looks like {meant} ({min(cells)})" in note
    silenced = opened(as_csv(cells), category=("c",)).info.remarks
    assert not any("looks like" in note for note in silenced)


@pytest.mark.parametrize("cells", [["a", "b"], ["2 rooms", "3 rooms"], ["1.2.3.4", "1.2.3.5"]])
def test_other_text_is_not_suspected(cells: list[str]) -> None:
    assert not any("looks like" in note for note in opened(as_csv(cells)).info.remarks)


def test_decimal_commas_are_suspected_beside_a_few_other_texts() -> None:
    assert "--decimal , reads numbers" in refusal([*(f"{i},5" for i in range(100)), "n.a."])
    cells = [*(f"{i % 20},5" for i in range(100)), "-"]
    assert any("looks like numbers (0,5)" in note for note in opened(as_csv(cells)).info.remarks)


def test_decimal_commas_of_many_values_are_refused_with_the_option() -> None:
    assert "--decimal , reads numbers" in refusal([f"{i},5" for i in range(100)])


def test_a_decimal_comma_among_numbers_is_refused_with_the_option() -> None:
    assert "--decimal ," in refusal(["1", "2", "1,5"])


def test_separators_of_thousands_are_noted() -> None:
    notes = opened(as_csv(["1.234,5", "2,5", "1"]), decimal=",").info.remarks
    assert any("separators of thousands" in note for note in notes)


def test_leading_zeros_are_noted() -> None:
    notes = opened(as_csv(["0123", "1000", "0.5"])).info.remarks
    assert any("leading zeros" in note and "--category c" in note for note in notes)
    assert not any("leading" in note for note in opened(as_csv(["0.5", "0", "10"])).info.remarks)


# Missing cells ------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["n.a.", "-999", "-"])
def test_a_text_or_number_of_ones_own_stands_for_a_missing_cell(marker: str) -> None:
    reader = opened(f"c;d;y\n1;5;0\n{marker};5;1\n3;5;0\n", na=(marker,))
    assert reader.schema.features == ["c", "c missing", "d"]
    rows = Batch.concatenate(list(reader)).stored.dense()
    assert rows[:, 1:].tolist() == [[1, 0, 5], [0, 1, 5], [3, 0, 5]]


def test_a_number_that_stands_for_a_missing_cell_is_compared_by_value() -> None:
    assert column(["1", "-999.0", "3"], na=("-999",)) == [1, 0, 3]


def test_the_model_keeps_what_stands_for_a_missing_cell() -> None:
    schema = opened(as_csv(["1", "n.a.", "3"]), na=("n.a.",)).schema
    assert column(["5", "n.a."], schema) == [5, 0]


def test_an_unknown_word_among_numbers_is_refused_with_the_option() -> None:
    assert "--na n.a." in refusal(["1", "2", "n.a."])


def test_ids_keep_the_text_that_stands_for_a_missing_cell() -> None:
    text = "who;c;y\n-1;5;0\n2;-1;1\n"
    batch = Batch.concatenate(list(opened(text, id="who", na=("-1",))))
    assert batch.ids is not None
    assert batch.ids.tolist() == ["-1", "2"]


# Dates --------------------------------------------------------------------------------------------

DAY = days("2024-12-31")


@pytest.mark.parametrize(
    ("cell", "form", "iso"),
    [
        ("31.12.2024", "DD.MM.YYYY", "2024-12-31"),
        ("1.2.2024 8:30", "DD.MM.YYYY", "2024-02-01T08:30"),
        ("31/12/2024", "DD/MM/YYYY", "2024-12-31"),
        ("12/31/2024", "MM/DD/YYYY", "2024-12-31"),
        ("12/31/2024 12:05 AM", "MM/DD/YYYY", "2024-12-31T00:05"),
        ("12/31/2024 8:30:15 PM", "MM/DD/YYYY", "2024-12-31T20:30:15"),
        ("2024-12-31", "ISO", "2024-12-31"),
    ],
)
def test_a_date_is_read_in_its_format(cell: str, form: Any, iso: str) -> None:
    assert readings(cell) == {form: days(iso)}
    assert column([cell, cell]) == [days(iso)] * 2


@pytest.mark.parametrize("cell", ["31.13.2024", "12.31.2024", "31.12.24", "1/2/3", "30/30/2024"])
def test_other_texts_are_no_dates(cell: str) -> None:
    assert readings(cell) == {}


def test_one_unambiguous_date_decides_for_its_column() -> None:
    assert column(["01/02/2024", "31/12/2024"]) == [days("2024-02-01"), DAY]
    assert column(["01/02/2024", "12/31/2024"]) == [days("2024-01-02"), DAY]


def test_ambiguous_dates_are_refused_with_the_option() -> None:
    assert "--date-format DD/MM/YYYY" in refusal(["01/02/2024", "03/04/2024"])


@pytest.mark.parametrize(
    ("form", "iso"), [("DD/MM/YYYY", "2024-02-01"), ("MM/DD/YYYY", "2024-01-02")]
)
def test_the_option_decides_ambiguous_dates(form: Any, iso: str) -> None:
    assert column(["01/02/2024", "01/02/2024"], date_format=form) == [days(iso)] * 2


def test_dates_in_several_formats_are_refused() -> None:
    assert "here '2024-12-31'" in refusal(["31.12.2024", "30.12.2024", "2024-12-31"])


def test_a_model_reads_dates_in_its_format_and_in_iso_8601() -> None:
    schema = opened(as_csv(["01/02/2024", "31/12/2024"])).schema
    assert column(["01/02/2024", "2024-12-31"], schema) == [days("2024-02-01"), DAY]


def test_a_model_refuses_dates_in_another_format() -> None:
    schema = opened(as_csv(["01/02/2024", "31/12/2024"])).schema
    with pytest.raises(UserError, match="12/31/2024"):
        column(["12/31/2024", "01/01/2024"], schema)


# Files that are not written as the training data --------------------------------------------------

GERMAN = opened(as_csv(["1,5", "2,5", "1.125"]), decimal=",").schema


@pytest.mark.parametrize("cell", ["0,5", "0.5", "-1.234,5", "7", "1,125"])
def test_a_model_reads_numbers_that_can_be_one_number_only(cell: str) -> None:
    plain = cell.replace(".", "").replace(",", ".") if "," in cell else cell
    assert column([cell], GERMAN) == [float(plain)]


def test_a_model_refuses_a_number_that_its_own_sign_and_a_point_read_differently() -> None:
    shown = refusal(["1.125"], schema=GERMAN)
    assert "'1.125', which could be two numbers" in shown
    assert "--decimal , reads 1125 or --decimal . reads 1.125" in shown


def test_a_number_of_another_spelling_in_the_training_data_is_one_number() -> None:
    shown = refusal(["1,5", "2,5", "0.64"], decimal=",")
    assert "two numbers" not in shown
    assert "--decimal . reads 0.64" in shown


@pytest.mark.parametrize(("decimal", "value"), [(",", 1125), (".", 1.125)])
def test_the_option_says_how_the_file_of_a_model_is_written(decimal: Any, value: float) -> None:
    assert column(["1.125"], GERMAN, decimal=decimal) == [value]


@pytest.mark.parametrize("cell", [1.125, -1.125, 1e-300, 1125])
@pytest.mark.parametrize("others", [[], ["0,5"]], ids=["alone", "beside text"])
def test_numbers_of_json_have_no_decimal_sign(cell: float, others: list[str]) -> None:
    lines = [json.dumps({"c": value, "y": 0}) for value in [cell, *others]]
    source = Source(BytesIO("\n".join(lines).encode()), "d.jsonl", closes=True)
    rows = Batch.concatenate(list(TableReader(source, TableOptions(), GERMAN))).stored.dense()
    assert rows[0, 1] == cell


def test_decimals_of_parquet_have_no_decimal_sign(tmp_path: Path) -> None:
    path = str(tmp_path / "d.parquet")
    cells = pa.array([Decimal("1.125"), Decimal("-2.500")], pa.decimal128(9, 3))
    pa.parquet.write_table(pa.table({"c": cells, "y": [0, 1]}), path)
    with open_source(path) as source:
        reader = TableReader(source, TableOptions(), GERMAN)
        rows = Batch.concatenate(list(reader)).stored.dense()
    assert rows[:, 1].tolist() == [1.125, -2.5]


def test_the_sign_of_the_training_data_is_noted_unless_the_option_says_one() -> None:
    assert opened(as_csv(["1,5"]), GERMAN).info.remarks == (
        "decimal commas as in training: --decimal . says otherwise",
    )
    assert opened(as_csv(["1,5"]), GERMAN, decimal=",").info.remarks == ()


SLASHES = opened(as_csv(["01/02/2024", "31/12/2024"])).schema


def test_dates_that_can_be_two_are_read_as_in_training_and_counted() -> None:
    reader = opened(as_csv(["01/02/2024", "31/12/2024", "2024-02-01"]), SLASHES)
    rows = Batch.concatenate(list(reader)).stored.dense()
    assert rows[:, 1].tolist() == [days("2024-02-01"), DAY, days("2024-02-01")]
    (note,) = reader.info.remarks
    assert "read as in training: c (1); --date-format says otherwise" in note


@pytest.mark.parametrize("iso", ["2024-02-01", "2024-01-02"])
def test_the_option_says_how_the_dates_of_a_file_are_written(iso: str) -> None:
    form = "DD/MM/YYYY" if iso == "2024-02-01" else "MM/DD/YYYY"
    reader = opened(as_csv(["01/02/2024"]), SLASHES, date_format=form)
    assert Batch.concatenate(list(reader)).stored.dense()[:, 1].tolist() == [days(iso)]
    assert reader.info.remarks == ()


def test_a_model_of_iso_dates_asks_for_the_order_of_day_and_month() -> None:
    schema = opened(as_csv(["2024-01-31", "2024-02-01"])).schema
    assert "--date-format DD/MM/YYYY" in refusal(["01/02/2024"], schema=schema)
    assert column(["01/02/2024"], schema, date_format="MM/DD/YYYY") == [days("2024-01-02")]
    assert column(["01.02.2024"], schema) == [days("2024-02-01")]


@pytest.mark.parametrize("cell", ["-9,90", "-9.9", "-9,9"])
def test_what_stands_for_a_missing_number_does_so_in_files_of_another_spelling(cell: str) -> None:
    schema = opened(as_csv(["1,5", "-9,9", "2"]), decimal=",", na=("-9,9",)).schema
    assert schema.features == ["c", "c missing"]
    assert column([cell], schema) == [0]


@pytest.mark.parametrize("others", [[], ["n.a."]], ids=["alone", "beside text"])
def test_a_missing_number_is_one_whatever_else_is_in_its_batch(others: list[str]) -> None:
    cells = ["999.00", "5", *others]
    assert column(cells, na=("999", "n.a.")) == [0, 5, *[0] * len(others)]


def test_codes_with_zeros_are_no_missing_numbers() -> None:
    reader = opened(as_csv(["007", "7", "8"]), na=("7",), category=("c",))
    assert reader.schema.columns[0].categories == ["007", "8"]


# Categories ---------------------------------------------------------------------------------------


def test_of_many_categories_the_most_frequent_have_features() -> None:
    cells = ["a"] * 5 + ["b"] * 3 + [f"r{i % 2000}" for i in range(4000)]
    reader = opened(as_csv(cells))
    (made,) = reader.schema.columns
    assert made.other
    assert len(made.categories) == 1000
    assert {"a", "b"} < {*made.categories}
    assert made.features[-1] == "c other"
    rows = Batch.concatenate(list(reader)).stored.dense()
    assert (rows.sum(axis=1) == 1).all()
    (note,) = [note for note in reader.info.remarks if "one feature per category" in note]
    assert "1,000 most frequent" in note


def test_new_categories_are_others_if_there_are_others() -> None:
    schema = opened(as_csv([f"r{i % 2000}" for i in range(6000)])).schema
    rows = Batch.concatenate(list(opened(as_csv(["unseen"]), schema))).stored.dense()
    assert np.flatnonzero(rows[0]).tolist() == [1001]


def test_the_shares_of_many_categories_add_up(tmp_path: Path) -> None:
    (made,) = opened(as_csv([f"r{i % 2000}" for i in range(6000)])).schema.columns
    assert len(made.shares) == 1001
    assert sum(made.shares) == pytest.approx(1)


def test_a_column_in_which_nearly_every_row_is_different_is_refused() -> None:
    assert "--drop c" in refusal([f"name{i}" for i in range(3000)])


def test_many_categories_are_the_same_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahpatron_cli.data.table_statistics.MOST_COUNTED", 3000)
    cells = [f"r{i * i % 9001}" for i in range(20_000)]
    rows = pd.DataFrame({"c": cells, "y": [i % 2 for i in range(20_000)]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    pa.parquet.write_table(pa.Table.from_pandas(rows), tmp_path / "t.parquet")
    found = []
    for name in ("t.csv", "t.parquet"):
        with open_source(str(tmp_path / name)) as source:
            found.append(TableReader(source, TableOptions(label="y")).schema.columns)
    model = OnlineKernelClassifier("perceptron").fit(rows[["c"]], rows["y"])
    assert model.schema_ is not None
    assert found == [model.schema_.columns] * 2


# Python -------------------------------------------------------------------------------------------


def test_a_data_frame_with_suspicious_text_causes_a_warning() -> None:
    rows = pd.DataFrame({"price": ["1,5", "2,5"] * 10})
    with pytest.warns(UserWarning, match="--decimal ,"):
        OnlineKernelClassifier().fit(rows, [0, 1] * 10)


@pytest.mark.parametrize("cell", [1.125, Decimal("1.125")])
def test_numbers_beside_text_keep_their_value(cell: Any) -> None:
    rows = [{"price": cell}, {"price": "2,5"}]
    model = OnlineKernelClassifier("perceptron", table={"decimal": ","}).fit(rows, [0, 1])
    alike = OnlineKernelClassifier("perceptron").fit([{"price": 1.125}, {"price": 2.5}], [0, 1])
    assert (
        model.decision_function(rows).tolist()
        == alike.decision_function([{"price": 1.125}, {"price": 2.5}]).tolist()
    )


def test_a_loaded_model_asks_how_ambiguous_text_is_written(tmp_path: Path) -> None:
    rows = pd.DataFrame({"price": ["1,5", "2,5", "1.125"]})
    model = OnlineKernelClassifier("perceptron", table={"decimal": ","}).fit(rows[:2], [0, 1])
    expected = model.decision_function(rows)
    model.save(tmp_path / "m.npz")
    loaded = OnlineKernelClassifier.load(tmp_path / "m.npz")
    np.testing.assert_allclose(loaded.decision_function(rows[:2]), expected[:2])
    with pytest.raises(ValueError, match=r"row 2 of X: .*'1.125', which could be two numbers"):
        loaded.predict(rows)
    loaded.set_params(table={"decimal": ","})
    np.testing.assert_allclose(loaded.decision_function(rows), expected)


def test_a_data_frame_with_text_is_read_as_the_options_say() -> None:
    rows = pd.DataFrame({"price": ["1,5", "n.a."] * 10, "on": ["01/02/2024", "03/04/2024"] * 10})
    options = {"decimal": ",", "na": "n.a.", "date_format": "DD/MM/YYYY"}
    model = OnlineKernelClassifier(table=options).fit(rows, [0, 1] * 10)
    assert model.schema_ is not None
    assert model.schema_.features == ["price", "price missing", "on"]
    assert model.schema_.columns[1].fill == pytest.approx(
        (days("2024-02-01") or 0) / 2 + (days("2024-04-03") or 0) / 2
    )


# Delimiters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("day, x\twho", "\t"),
        ('"at ""q"""\twho', "\t"),
        ("price, net;y", ";"),
        ("a,b;c,d", ","),
        ('"a;b;c",d', ","),
        ("a|b", "|"),
    ],
)
def test_the_delimiter_is_found_in_a_header_whose_names_have_others(
    header: str, delimiter: str
) -> None:
    assert delimiter_of(header) == delimiter
