"""The mapping that `convert --map` wrote, applied to other text: `convert --like`."""

from __future__ import annotations

import json
from typing import Any

from ahpatron_cli.data.delimited import Column, Layout, Table, number
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import bad_data, usage

KIND = "a mapping"
_BLOCK_BYTES = 1 << 20


def read_mapping(path: str) -> Layout:
    """The layout that a mapping describes; its places are those in the mapping, from 0."""
    if path == "-":
        raise usage("--like requires a file", "name the file that `convert --map` wrote")
    with open_source(path, KIND) as source:
        text = b"".join(iter(lambda: source.read(_BLOCK_BYTES), b""))
    try:
        document = json.loads(text)
        layout = _layout(document)
        known = {name: document[name] for name in layout.describe()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        known, layout = {}, None
    if layout is None or layout.describe() != known:
        hint = "name the file that `ahpatron convert DATA.csv --label COLUMN --map FILE.json` wrote"
        raise bad_data("this is not a mapping that `convert --map` wrote", path, hint=hint)
    return layout


def layout_like(table: Table, mapping: Layout, label: str | None = None) -> Layout:
    """The same indices for the columns of this text, wherever they stand.

    Labels are in the column `label`, by default in that of the mapping if the text has one.
    """
    names = [column.name for column in mapping.columns]
    if label in names:
        raise usage(f"--label {label} names a column of features", "choose another column")
    place = None
    if label is not None or mapping.label in table.header:
        label = label or mapping.label
        place = table.place(label)
    columns = tuple(
        Column(one.name, table.place(one.name), one.index, one.words) for one in mapping.columns
    )
    return Layout(label or mapping.label, place, mapping.label_texts, columns)


def left_out(table: Table, layout: Layout) -> list[str]:
    """The columns of a text that become nothing."""
    used = {layout.label_place, *(column.place for column in layout.columns)}
    return [name for place, name in enumerate(table.header) if place not in used]


def _layout(document: dict[str, Any]) -> Layout:
    """What a document says, if it is a mapping; the caller sees whether it says all."""
    words: dict[str, list[str] | None] = {}
    for feature in document["features"]:
        if "word" in feature:
            words.setdefault(feature["column"], []).append(feature["word"])  # type: ignore[union-attr]  # None: caught
        else:
            words[feature["column"]] = None
    columns = []
    index = 1
    for place, (name, some) in enumerate(words.items()):
        columns.append(Column(name, place, index, None if some is None else tuple(some)))
        index += 1 if some is None else len(some)
    labels = document["labels"]
    if not columns or not all(isinstance(name, str) for name in (document["label"], *words)):
        raise ValueError
    if labels is not None and any(number(text) is None for text in labels.values()):
        raise ValueError
    return Layout(document["label"], 0, labels, tuple(columns))
