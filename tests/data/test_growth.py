"""The open schema of a live stream: what rows add to it, and what they may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ahpatron_cli.data.cells import Cells, Texts, Values
from ahpatron_cli.data.growth import Growth
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import MAX_CATEGORIES
from ahpatron_cli.errors import UserError


def growth(max_features: int = 100, *, missing: str = "indicator", **options: Any) -> Growth:
    """The growth of a schema that has nothing yet, with the label `y`."""
    schema = Schema(
        columns=[], label="y", labels={}, missing=missing, is_open=True, has_open_labels=True
    )
    return Growth(schema, TableOptions(label="y", **options), max_features, "stream")


def cells(**columns: list[Any]) -> Cells:
    """Rows with these columns: lists of numbers, or of texts."""
    values: dict[str, Values] = {}
    for name, own in columns.items():
        is_text = any(isinstance(one, str) for one in own)
        values[name] = Texts.of(own) if is_text else np.array(own, dtype=float)
    count = len(next(iter(columns.values())))
    return Cells(np.arange(1, count + 1), values)


def features_of(growing: Growth) -> list[str]:
    return growing.schema.features


# Columns ------------------------------------------------------------------------------------------


def test_features_come_in_the_order_in_which_rows_need_them() -> None:
    growing = growth()
    growing.admit(cells(a=[1.0, 2.0], c=["red", "blue"], y=["0", "1"]))
    growing.admit(cells(a=[np.nan], c=["green"], b=[5.0], y=["0"]))
    assert features_of(growing) == ["a", "c=red", "c=blue", "a missing", "c=green", "b"]


def test_rows_one_by_one_add_the_features_of_rows_together() -> None:
    together = growth()
    columns = {
        "a": [np.nan, 1.0, 2.0, np.nan],
        "c": ["red", "", "blue", "red"],
        "y": ["yes", "no", "yes", "maybe"],
    }
    together.admit(cells(**columns))
    alone = growth()
    for row in range(4):
        alone.admit(cells(**{name: [values[row]] for name, values in columns.items()}))
    assert features_of(alone) == features_of(together)
    assert alone.schema.labels == together.schema.labels


@pytest.mark.parametrize(
    ("first", "kind"), [(3.0, "number"), ("red", "category"), ("2024-02-29", "date")]
)
def test_the_first_value_decides_the_type_of_a_column(first: Any, kind: str) -> None:
    growing = growth()
    missing = "" if isinstance(first, str) else np.nan
    growing.admit(cells(a=[missing], y=["0"]))
    growing.admit(cells(a=[first], y=["1"]))
    (column,) = growing.schema.columns
    assert column.kind == kind


def test_a_number_is_a_category_if_options_say_so() -> None:
    growing = growth(category=("zip",))
    growing.admit(cells(zip=["07", "7"], y=["0", "1"]))
    assert features_of(growing) == ["zip=07", "zip=7"]


def test_the_first_date_replaces_missing_ones() -> None:
    growing = growth()
    growing.admit(cells(a=["", "1970-01-11", "1980-01-01"], y=["0", "1", "0"]))
    (column,) = growing.schema.columns
    assert column.fill == 10.0


def test_a_column_without_values_has_only_an_indicator() -> None:
    growing = growth()
    growing.admit(cells(a=[np.nan], y=["0"]))
    assert features_of(growing) == ["a missing"]


def test_missing_cells_are_refused_if_options_say_so() -> None:
    growing = growth(missing="refuse")
    with pytest.raises(UserError, match="'a'"):
        growing.admit(cells(a=[np.nan], y=["0"]))


def test_a_cell_that_does_not_fit_its_column_adds_nothing() -> None:
    growing = growth()
    growing.admit(cells(a=[1.0], y=["0"]))
    with pytest.raises(UserError, match="'a'"):
        growing.admit(cells(a=["red"], b=[1.0], y=["1"]))
    assert features_of(growing) == ["a"]
    assert list(growing.schema.labels) == ["0"]


def test_categories_beyond_the_limit_share_one_feature() -> None:
    growing = growth(max_features=10 * MAX_CATEGORIES)
    names = [f"c{number}" for number in range(MAX_CATEGORIES + 2)]
    growing.admit(cells(c=names, y=["0", "1"] * (len(names) // 2)))
    assert features_of(growing)[-2:] == [f"c=c{MAX_CATEGORIES - 1}", "c other"]


def test_categories_leave_room_for_what_other_columns_may_need() -> None:
    growing = growth(max_features=6)
    growing.admit(cells(a=[1.0] * 9, c=list("rstuvwxyz"), y=["0"] * 9))
    growing.admit(cells(a=[np.nan], c=[""], y=["0"]))
    assert features_of(growing) == ["a", "c=r", "c other", "a missing", "c missing"]


def test_more_columns_than_features_are_refused() -> None:
    growing = growth(max_features=2)
    with pytest.raises(UserError, match="more than 2 columns"):
        growing.admit(cells(a=[1.0], b=[1.0], c=[1.0], y=["0"]))
    assert features_of(growing) == []


# Labels -------------------------------------------------------------------------------------------


def test_text_labels_are_classes_in_the_order_in_which_they_appear() -> None:
    growing = growth()
    growing.admit(cells(a=[1.0, 2.0, 3.0], y=["dog", "cat", "dog"]))
    growing.admit_labels(cells(y=["cow"]))
    assert growing.schema.labels == {"dog": 2.0, "cat": 3.0, "cow": 4.0}


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        (["1", "0"], {"1": 1.0, "0": 0.0}),
        (["-1", "1"], {"-1": -1.0, "1": 1.0}),
        (["True", "False"], {"True": 1.0, "False": -1.0}),
        (["3", "10"], {"3": 3.0, "10": 10.0}),
    ],
)
def test_codes_of_numbers_are_the_numbers(labels: list[str], codes: dict[str, float]) -> None:
    growing = growth()
    growing.admit(cells(a=[1.0, 2.0], y=labels))
    assert growing.schema.labels == codes


def test_a_missing_label_is_no_label() -> None:
    growing = growth()
    growing.admit(cells(a=[1.0, 2.0], y=["", "dog"]))
    assert list(growing.schema.labels) == ["dog"]


@pytest.mark.parametrize("pair", [["0", "1"], ["1", "-1"], ["True", "False"]])
def test_a_third_label_beside_a_pair_is_refused(pair: list[str]) -> None:
    growing = growth()
    growing.admit(cells(a=[1.0, 2.0], y=pair))
    with pytest.raises(UserError, match="third label"):
        growing.admit(cells(a=[1.0], y=["dog"]))


def test_a_refused_row_does_not_decide_what_labels_are() -> None:
    growing = growth(max_features=1)
    growing.admit(cells(a=[1.0, 2.0], y=["3", "4"]))
    with pytest.raises(UserError, match="columns"):
        growing.admit(cells(a=[1.0], b=[1.0], y=["dog"]))
    assert growing.schema.label_kind == "number"


def test_labels_that_options_name_do_not_grow() -> None:
    growing = growth()
    growing.schema.has_open_labels = False
    growing.schema.labels = {"yes": 1.0}
    growing.admit(cells(a=[1.0], y=["no"]))
    assert growing.schema.labels == {"yes": 1.0}
