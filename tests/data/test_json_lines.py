"""JSON lines: what each line means, and what is refused."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest

from ahpatron_cli.data.cells import Texts
from ahpatron_cli.data.json_lines import CHUNK_BYTES, JsonReader
from ahpatron_cli.data.live_tables import LiveTableReader
from ahpatron_cli.data.source import open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.tables import TableReader
from ahpatron_cli.errors import UserError


def columns_of(folder: Path, text: bytes) -> dict[str, list[object]]:
    """The columns of a file with these lines."""
    path = folder / "rows.jsonl"
    path.write_bytes(text)
    with open_source(str(path)) as source:
        found = JsonReader(source).parse(text, 1, ())
    columns: dict[str, list[object]] = {}
    for name, values in found.columns.items():
        columns[name] = values.tolist()
        assert isinstance(values, Texts) == isinstance(columns[name][0], str)
    return columns


def test_nested_objects_and_lists_of_numbers_are_columns(tmp_path: Path) -> None:
    found = columns_of(tmp_path, b'{"a": {"b": 1, "c": {"d": "x"}}, "e": [1, 2.5]}')
    assert found == {"a.b": [1.0], "a.c.d": ["x"], "e.0": [1.0], "e.1": [2.5]}


def test_absent_keys_and_null_are_missing(tmp_path: Path) -> None:
    found = columns_of(tmp_path, b'{"a": "x", "b": true}\n\n{"a": null}\r\n {"b": false} ')
    assert found == {"a": ["x", "", ""], "b": ["True", "", "False"]}


def test_columns_that_appear_only_in_later_lines_of_a_file_are_features(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"a": 1.5, "y": 0}\n' * (CHUNK_BYTES // 10) + b'{"a": 1, "late": "x", "y": 1}\n'
    )
    with open_source(str(path)) as source:
        reader = TableReader(source, TableOptions(label="y"))
        batches = list(reader)
    assert len(batches) > 1
    assert [column.name for column in reader.schema.columns] == ["a", "late"]
    assert batches[-1].labels[-1] == 1.0


def test_a_label_that_appears_only_in_later_lines_of_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    labelled = b'{"a": 2, "y": 0}\n{"a": 3, "y": 1}\n'
    path.write_bytes(b'{"a": 1}\n' * (CHUNK_BYTES // 5) + labelled)
    with open_source(str(path)) as source:
        reader = TableReader(source, TableOptions(label="y"))
    assert reader.schema.labels == {"0": 0.0, "1": 1.0}


def test_braces_and_brackets_in_texts_are_text(tmp_path: Path) -> None:
    found = columns_of(tmp_path, b'{"a": "[1]", "b": 1}\n{"a": "{}", "b": 2}')
    assert found == {"a": ["[1]", "{}"], "b": [1.0, 2.0]}


def test_escapes_are_the_characters_that_they_stand_for(tmp_path: Path) -> None:
    found = columns_of(tmp_path, b'{"a": "\\u00e9\\ud83d\\ude00"}')
    assert found == {"a": ["\u00e9\U0001f600"]}


def test_integers_of_more_than_64_bits_are_rounded(tmp_path: Path) -> None:
    found = columns_of(tmp_path, b'{"b": 123456789012345678901}')
    assert found == {"b": [float(123456789012345678901)]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": "\\ud800"}', "no JSON"),
        (b'{"a": NaN}', "no JSON"),
        (b'{"a": 1e400}', "out of range"),
        (b'{"a": ' + b"9" * 400 + b"}", "too large"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b'{"a": 1, "\\u0061": 2, "b": "\\u003a"}', "occurs twice"),
        (b'{"a": {"b": 1}, "a.b": 2}', "two values"),
        (b'{"a": ["x"]}', "list of something else"),
        (b'{"a": 1} {"a": 2}', "no JSON"),
        (b'{"a": 1', "no JSON"),
        (b"3", "one JSON object"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "nested"),
    ],
)
def test_a_faulty_line_is_refused_with_its_number(tmp_path: Path, line: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refused:
        columns_of(tmp_path, b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    assert refused.value.place is not None
    assert refused.value.place.line == 2


@pytest.mark.parametrize(("encoding", "name"), [("latin-1", "WINDOWS-1252"), ("utf-16", "UTF-16")])
def test_text_in_another_encoding_is_refused_with_a_command(
    tmp_path: Path, encoding: str, name: str
) -> None:
    with pytest.raises(UserError, match="UTF-8") as refused:
        columns_of(tmp_path, '{"a": "\u00e9"}\n'.encode(encoding))
    assert f"iconv -f {name} -t UTF-8" in str(refused.value.hint)


def test_an_object_over_several_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        columns_of(tmp_path, b'{"a":\n1}\n{"b": 1} {"c": 2}\n')
    assert refused.value.place is not None
    assert refused.value.place.line == 1


def test_wide_lines_of_a_file_are_read_many_at_once(tmp_path: Path) -> None:
    """Each batch has a cost per column, which must not be that of a few rows."""
    path = tmp_path / "rows.jsonl"
    line = json.dumps({f"column {i}": i for i in range(1000)}) + "\n"
    path.write_text(line * 400)
    assert len(line) * 50 > CHUNK_BYTES
    with open_source(str(path)) as source:
        lines = [cells.lines.tolist() for cells in JsonReader(source).batches({"column 0"}, ())]
    assert [*chain.from_iterable(lines)] == [*range(1, 401)]
    assert len(lines[0]) >= 150


@pytest.mark.parametrize("cell", ['{"b": 1}', "[1]"])
@pytest.mark.parametrize("column", ["y", "key"])
def test_labels_and_ids_are_single_values(tmp_path: Path, column: str, cell: str) -> None:
    """Else the label of a row would become a feature of it."""
    path = tmp_path / "rows.jsonl"
    first = '{"a": 1, "y": 1, "key": "k1"}\n{"a": 2, "y": 0, "key": "k2"}\n'
    row = {"a": "3", "y": "1", "key": '"k3"', column: cell}
    cells = ", ".join(f'"{name}": {value}' for name, value in row.items())
    path.write_text(f"{first}{{{cells}}}\n")
    options = TableOptions(label="y", id="key")
    for kind in (TableReader, LiveTableReader):
        with (
            pytest.raises(UserError, match="one value") as refused,
            open_source(str(path)) as source,
        ):
            list(kind(source, options))
        place = refused.value.place
        assert place is not None
        assert (place.line, place.field) == (3, column)
