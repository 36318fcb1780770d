"""What the columns of delimited text become in LIBSVM text, and the mapping that keeps it.

`convert --map` writes the mapping of one file; `convert --like` applies it to others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ahpatron_cli.data.source import open_source
from ahpatron_cli.data.table import Table, number
from ahpatron_cli.errors import bad_data, usage

MAX_COMMENT_CHARACTERS = 4096


@dataclass(frozen=True)
class Wanted:
    """What is asked for on the command line."""

    label: str
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Columns to be taken as words although they hold numbers."""
    positive: str | None = None
    missing_is_zero: bool = False
    like: str | None = None
    """The file of an earlier mapping that is applied."""


@dataclass(frozen=True)
class Column:
    """A column of features, and the LIBSVM indices that it becomes."""

    name: str
    place: int
    """Which cell of a row it is, from 0."""
    index: int
    """The feature index of its number, or of the first of its words."""
    words: tuple[str, ...] | None = None
    """The words that get an index each, in this order; None: it holds numbers."""


@dataclass(frozen=True)
class Layout:
    """What the cells of a row become."""

    label: str
    label_place: int | None
    """None: there is no column of labels, and rows are written without."""
    label_texts: dict[str, str] | None
    """How each label is written; None: labels stay as they are."""
    columns: tuple[Column, ...]

    @property
    def other_labels(self) -> str | None:
        """How labels that `label_texts` lacks are written, after --positive; None: not at all."""
        return "-1" if self.label_texts and [*self.label_texts.values()] == ["+1"] else None

    def describe(self) -> dict[str, object]:
        """What each feature index stands for, and how labels are written, for a JSON file."""
        features: list[dict[str, int | str]] = []
        for column in self.columns:
            for i, word in enumerate(column.words or (None,)):
                feature: dict[str, int | str] = {"index": column.index + i, "column": column.name}
                features.append(feature if word is None else {**feature, "word": word})
        return {"label": self.label, "labels": self.label_texts, "features": features}

    def comments(self) -> Iterator[str]:
        """The same as lines of comment, none so long that a reader would refuse it."""
        if self.label_texts is not None:
            yield from _comments("labels", ((t, word) for word, t in self.label_texts.items()))
        names = (
            (str(column.index + i), f"{column.name}={word}" if word is not None else column.name)
            for column in self.columns
            for i, word in enumerate(column.words or (None,))
        )
        yield from _comments("features", names)


def numbered(
    columns: Iterable[tuple[str, int, tuple[str, ...] | None]],
) -> tuple[Column, ...]:
    """Indices from 1 on, for columns of these names, places and words."""
    numbered: list[Column] = []
    index = 1
    for name, place, words in columns:
        numbered.append(Column(name, place, index, words))
        index += 1 if words is None else len(words)
    return tuple(numbered)


def _comments(what: str, pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Lines of comment such as `# features: 1=age 2=job`, of a few thousand characters each."""
    text = ""
    for key, name in pairs:
        # names may hold line ends and control characters: `\n`, `\x1b`
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        text += f" {key}={''.join(shown)}"
        if len(text) > MAX_COMMENT_CHARACTERS:
            yield f"# {what}:{text}\n"
            text = ""
    if text:
        yield f"# {what}:{text}\n"


def read_mapping(path: str) -> Layout:
    """The layout that a mapping describes; its places are those in the mapping, from 0."""
    if path == "-":
        raise usage("--like requires a file", "name the file that `convert --map` wrote")
    with open_source(path, "a mapping") as source:
        text = b"".join(iter(lambda: source.read(1 << 20), b""))
    try:
        document = json.loads(text)
        layout = _mapped(document)
        known = {name: document[name] for name in layout.describe()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        known, layout = {}, None
    if layout is None or layout.describe() != known:
        hint = "name the file that `ahpatron convert DATA.csv --label COLUMN --map FILE.json` wrote"
        raise bad_data("this is not a mapping that `convert --map` wrote", path, hint=hint)
    return layout


def _mapped(document: dict[str, Any]) -> Layout:
    """What a document says, if it is a mapping; the caller sees whether it says all."""
    words: dict[str, tuple[str, ...] | None] = {}
    for feature in document["features"]:
        name = feature["column"]
        before = words.get(name, ())
        if "word" in feature and before is None:
            raise ValueError  # a column of numbers has no words
        words[name] = (*(before or ()), feature["word"]) if "word" in feature else None
    labels = document["labels"]
    if not words or not all(isinstance(name, str) for name in (document["label"], *words)):
        raise ValueError
    if labels is not None and any(number(text) is None for text in labels.values()):
        raise ValueError
    columns = numbered((name, i, some) for i, (name, some) in enumerate(words.items()))
    return Layout(document["label"], 0, labels, columns)


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
