"""Tables of a pipe, read row by row as they arrive."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.faults import FaultyRow
from ahpatron_cli.data.live_tables import LiveTableReader
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import NoRowsError, UserError
from ahpatron_cli.settings import Data

PETS = "name,age,pet,y\nann,1.5,dog,yes\nbob,2,cat,no\neve,,dog,yes\n"


def reader_of(
    text: str | bytes,
    schema: Schema | None = None,
    data: Data = Data(),  # noqa: B008 - it cannot change
    *,
    faulty: list[FaultyRow] | None = None,
    late: bool = False,
    may_grow: bool = True,
    **options: Any,
) -> LiveTableReader:
    """A reader of text on a pipe; `faulty` collects the rows that are left out."""
    content = text if isinstance(text, bytes) else text.encode()
    return LiveTableReader(
        Source(BytesIO(content), "stream", closes=True),
        TableOptions(label="y", **options),
        schema,
        data,
        on_faulty_row=None if faulty is None else faulty.append,
        has_late_labels=late,
        may_grow=may_grow,
    )


def whole(reader: LiveTableReader) -> Batch:
    return Batch.concatenate(list(reader))


# Rows ---------------------------------------------------------------------------------------------


def test_each_row_has_its_features_its_label_and_its_line() -> None:
    reader = reader_of(PETS)
    rows = whole(reader)
    assert reader.schema.features == [
        "name=ann",
        "age",
        "pet=dog",
        "name=bob",
        "pet=cat",
        "name=eve",
        "age missing",
    ]
    expected = [
        [0, 1, 1.5, 1, 0, 0, 0, 0],
        [0, 0, 2.0, 0, 1, 1, 0, 0],
        [0, 0, 0.0, 1, 0, 0, 1, 1],
    ]
    assert rows.stored.dense().tolist() == expected
    assert rows.lines.tolist() == [2, 3, 4]


def test_json_lines_are_the_rows_of_csv() -> None:
    lines = [
        '{"name": "ann", "age": 1.5, "pet": "dog", "y": "yes"}',
        '{"name": "bob", "age": 2, "pet": "cat", "y": "no"}',
        '{"name": "eve", "pet": "dog", "y": "yes"}',
    ]
    found = whole(reader_of("\n".join(lines)))
    wanted = whole(reader_of(PETS))
    assert found.stored.dense().tolist() == wanted.stored.dense().tolist()
    assert found.labels.tolist() == wanted.labels.tolist()


@pytest.mark.parametrize(
    "lines",
    [
        ['{"a": 1, "b": 2, "y": 0}', '{"a": 2, "y": 1}'],
        ['{"a": 1, "y": 0}', '{"a": 2, "y": 1}', '{"b": "red", "y": 1}', '{"a": 3, "y": 1}'],
        ['{"a": null, "y": 0}', '{"y": 1}', '{"a": 5, "c": "2024-01-01", "y": 1}', '{"y": 0}'],
        ['{"a": 1, "y": 0}', '{"a" 1}', '{"b": 1, "y": 1}', '{"a": 2, "b": 2, "y": 1}'],
    ],
)
def test_objects_that_lack_keys_are_the_same_together_and_alone(lines: list[str]) -> None:
    together = reader_of("".join(f"{line}\n" for line in lines), faulty=[])
    rows = whole(together)
    schema = None
    alone = []
    for line in lines:
        own = reader_of(f"{line}\n", schema, faulty=[])
        alone += [row.tolist() for batch in own for row in batch.stored.dense()]
        schema = own.schema
    assert schema is not None
    assert schema.features == together.schema.features
    for row, found in zip(alone, rows.stored.dense().tolist(), strict=True):
        assert found[: len(row)] == row
        assert not any(found[len(row) :])


def test_an_object_without_a_key_is_refused_if_no_cell_may_be_missing() -> None:
    faulty: list[FaultyRow] = []
    text = '{"a": 1, "b": 1, "y": 0}\n{"b": 2, "y": 1}\n'
    rows = whole(reader_of(text, faulty=faulty, missing="refuse"))
    assert len(rows.labels) == 1
    assert [row.line for row in faulty] == [2]


def test_ids_and_dropped_columns_are_no_features() -> None:
    reader = reader_of(PETS, id="name", drop=("pet",))
    rows = whole(reader)
    assert reader.schema.features == ["age", "age missing"]
    assert rows.ids is not None
    assert rows.ids.tolist() == ["ann", "bob", "eve"]


def test_a_limit_counts_rows() -> None:
    reader = reader_of(PETS, data=Data(limit=2))
    assert len(whole(reader).labels) == 2
    assert len(reader.schema.features) == 5


def test_the_header_is_counted_in_lines() -> None:
    assert reader_of(PETS).header_lines == 1
    assert reader_of('{"a": 1, "y": 0}\n').header_lines == 0


def test_a_row_without_a_label_has_none() -> None:
    rows = whole(reader_of("a,y\n1,\n2,dog\n"))
    assert np.isnan(rows.labels).tolist() == [True, False]


# Labels without rows ------------------------------------------------------------------------------


def test_a_label_alone_belongs_to_an_earlier_row() -> None:
    rows = whole(reader_of("key,a,y\n1,5,\n1,,dog\n2,6,cat\n", id="key", late=True))
    assert rows.is_label_only.tolist() == [False, True, False]
    assert rows.labels.tolist()[1:] == [2.0, 3.0]


def test_a_label_alone_is_a_row_of_missing_cells_unless_labels_may_be_late() -> None:
    rows = whole(reader_of("key,a,y\n1,5,dog\n1,,dog\n", id="key"))
    assert not rows.is_label_only.any()


# Faults -------------------------------------------------------------------------------------------


def test_a_faulty_row_is_raised_after_the_rows_before_it() -> None:
    batches = iter(reader_of("a,y\n1,0\n2,1\nred,0\n3,1\n"))
    assert next(batches).lines.tolist() == [2, 3]
    with pytest.raises(UserError, match="'a'") as caught:
        next(batches)
    assert caught.value.place is not None
    assert caught.value.place.line == 4


def test_faulty_rows_are_left_out_and_passed_on() -> None:
    faulty: list[FaultyRow] = []
    rows = whole(reader_of("a,y\n1,0\nred,0\n2,1\n3,1,9\n4,0\n", faulty=faulty))
    assert rows.lines.tolist() == [2, 4, 6]
    assert [(row.line, row.raw) for row in faulty] == [(3, b"red,0"), (5, b"3,1,9")]


def test_a_faulty_row_adds_nothing_to_the_schema() -> None:
    faulty: list[FaultyRow] = []
    reader = reader_of("a,c,y\n1,red,0\nx,blue,7\n2,green,1\n", faulty=faulty)
    whole(reader)
    assert reader.schema.features == ["a", "c=red", "c=green"]
    assert list(reader.schema.labels) == ["0", "1"]


@pytest.mark.parametrize("text", ["", "a,y\n", "a,y\n\n\n"])
def test_a_table_without_rows_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(NoRowsError):
        whole(reader_of(text))


@pytest.mark.parametrize("text", ["[]\n", "[1, 2]\n", '["a"]\n', '[{"y": 1}]\n', "[\n"])
def test_a_json_list_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="JSON list"):
        reader_of(text)


# A schema from before -----------------------------------------------------------------------------


def test_an_open_schema_goes_on_where_it_was() -> None:
    first = reader_of(PETS)
    whole(first)
    before = list(first.schema.features)
    second = reader_of("name,age,pet,y\nann,3,cow,no\n", first.schema)
    row = whole(second).stored.dense()
    assert second.schema.features == [*before, "pet=cow"]
    assert row.tolist() == [[0, 1, 3, 0, 0, 0, 0, 0, 1]]


def test_a_schema_that_may_not_grow_counts_what_it_does_not_know() -> None:
    first = reader_of(PETS)
    whole(first)
    second = reader_of("name,age,pet,y\nann,3,cow,no\n", first.schema, may_grow=False)
    row = whole(second).stored.dense()
    assert row[0, :4].tolist() == [0, 1, 3, 0]
    assert any("pet" in note for note in second.unseen.notes)


def test_a_table_lacks_a_column_of_a_schema_that_may_not_grow() -> None:
    first = reader_of(PETS)
    whole(first)
    with pytest.raises(UserError, match="pet"):
        reader_of("name,age,y\nann,3,no\n", first.schema, may_grow=False)


# Notes at the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "options", "note"),
    [
        ("1,5", {}, "--decimal , reads numbers"),
        ("31.05.24", {}, "looks like dates (31.05.24)"),
        ("1.234,5", {"decimal": ","}, "separators of thousands"),
    ],
)
def test_what_a_column_may_be_meant_as_is_noted(
    cell: str, options: dict[str, Any], note: str
) -> None:
    reader = reader_of(f"c;y\n{cell};0\n{cell};1\n", **options)
    whole(reader)
    (found,) = reader.info.remarks
    assert note in found


def test_a_column_that_is_said_to_have_categories_is_not_noted() -> None:
    reader = reader_of("c;y\n1,5;0\n2,5;1\n", category=("c",))
    whole(reader)
    assert reader.info.remarks == ()
