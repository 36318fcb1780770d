"""The labels of a table: their type, names and codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import (
    LabelKind,
    label_key,
    label_kind,
    number,
)
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally, class_fault
from ahpatron_cli.data.schema import (
    listed,
)
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import TableStatistics, no_labels
from ahpatron_cli.errors import UserError, bad_data, suggestion

CodesAndNotes: TypeAlias = tuple[dict[str, float], list[str]]
"""Code of each label, and notes for the user."""


class TableLabels(NamedTuple):
    """The labels of a table."""

    kind: LabelKind
    counts: Counter[str]
    """Rows of each label, by the text that is shown."""
    positive: str | None
    """The label that --positive names."""
    codes: dict[str, float]
    notes: list[str]
    """Notes for the user if codes differ from the labels."""

    def tally(self, rows: int) -> LabelTally:
        """Counts of the codes; `rows` is the number of rows with a label, counted or not."""
        tally = LabelTally()
        for name, count in self.counts.items():
            code = self.codes.get(name, -1.0)
            tally.count(code, count)
        tally.rows = rows
        return tally


def infer_labels(seen: TableStatistics, options: TableOptions, path: str) -> TableLabels:
    """The labels of a table; refuses a table in which all rows have the same one."""
    kind = label_kind(seen.labels)
    counts = _label_names(seen.labels, kind)
    positive = _positive_label(options.positive, counts, kind=kind, path=path)
    if len(counts) == 1 and positive is None and kind != "number":
        (only,) = counts
        raise _one_label_only(only, seen.unlabelled, path)
    if positive is not None:
        codes, notes = _one_against_others(counts, positive)
    elif len(counts) > MAX_CLASSES:
        problem = f"column {options.label!r} has more than {MAX_CLASSES:,} different labels"
        raise bad_data(problem, path, hint="--positive VALUE runs one label against all others")
    else:
        codes, notes = _codes_of(counts, kind, are_named=bool(options.labels))
    return TableLabels(kind, counts=counts, positive=positive, codes=codes, notes=notes)


def _one_label_only(label: str, unlabelled: Counter[str], path: str) -> UserError:
    """The error for a table in which all rows, or all with a label, have the same label."""
    which = "all rows"
    hint = None
    if unlabelled:
        which = "all rows with a label"
        hint = no_labels(unlabelled)
    problem = f"there is nothing to learn: {which} have the same label, {label}"
    return bad_data(problem, path, hint=hint)


def _label_names(counts: Counter[str], kind: LabelKind) -> Counter[str]:
    """Counts of labels by the text that is shown: that of the table, unless it has several."""
    spellings: dict[str, list[str]] = {}
    for text in counts:
        key = label_key(text, kind) or text
        spellings.setdefault(key, []).append(text)
    names: Counter[str] = Counter()
    for key, texts in spellings.items():
        name = key
        if len(texts) == 1 and kind != "boolean":
            name = texts[0]
        names[name] = sum(counts[text] for text in texts)
    return names


def _positive_label(
    text: str | None, labels: Collection[str], kind: LabelKind, path: str
) -> str | None:
    """The label that --positive names, in whatever spelling."""
    if text is None:
        return None
    keys = {label_key(label, kind): label for label in labels}
    key = label_key(text, kind)
    label = keys.get(key)
    if label is None:
        shown = listed(sorted(labels))
        hint = suggestion(text, labels) or f"the labels are {shown}"
        raise bad_data(f"no row has the label {text!r}", path, hint=hint)
    return label


def _one_against_others(labels: Collection[str], positive: str) -> CodesAndNotes:
    """Codes of labels of which one is positive, and a note for the user.

    If there are too many labels, only the positive one has a code of its own.
    """
    codes: dict[str, float] = {}
    if len(labels) <= MAX_CLASSES:
        codes = dict.fromkeys(sorted(labels), -1.0)
    codes[positive] = 1.0
    return codes, [f"label {positive} is +1, every other label -1"]


def _codes_of(labels: Counter[str], kind: LabelKind, *, are_named: bool) -> CodesAndNotes:
    """Code of each label, and notes for the user if codes differ from the labels.

    Labels that --classes names have codes that do not depend on the rows, as a pipe has no others.
    """
    values: dict[str, float] = {}
    for name in labels:
        value = number(name)
        if value is not None:
            values[name] = value
    if len(values) == len(labels):
        tally = _counted(values, labels)
        if class_fault(tally):
            return values, []  # numbers that hardly repeat, which `find_labels` refuses
    if kind == "number":
        return _number_codes(values)
    if len(labels) > 2:
        names = sorted(labels)
        codes = {name: float(i) for i, name in enumerate(names)}
        return codes, []
    if are_named:
        negative, positive = sorted(labels)
        return _pair(negative, positive)
    return _rarer_is_positive(labels)


def _number_codes(values: Mapping[str, float]) -> CodesAndNotes:
    """Codes of labels that are numbers: the numbers, or -1 and +1 for two unusual ones."""
    ordered = sorted(values, key=values.__getitem__)
    codes = {name: values[name] for name in ordered}
    pair = tuple(codes.values())
    if len(ordered) != 2 or pair in PLAIN_PAIRS:
        return codes, []
    negative, positive = ordered
    return _pair(negative, positive)


def _rarer_is_positive(labels: Counter[str]) -> CodesAndNotes:
    """Codes of two labels: +1 for the rarer; if equal, for the later in alphabetical order."""
    by_name = sorted(labels)
    negative, positive = sorted(by_name, key=labels.__getitem__, reverse=True)
    rarer = labels[positive]
    if labels[negative] == rarer:
        return _pair(negative, positive)
    share = 100 * rarer / labels.total()
    return _pair(negative, positive, why=f", the rarer ({share:.3g} %)")


def _pair(negative: str, positive: str, why: str = "") -> CodesAndNotes:
    """Codes of two labels that are not -1 and +1 themselves."""
    note = f"label {negative} is -1, {positive} is +1{why}; --positive chooses another"
    return {negative: -1.0, positive: 1.0}, [note]


def _counted(values: Mapping[str, float], counts: Mapping[str, int]) -> LabelTally:
    """Counts of labels that are numbers."""
    tally = LabelTally()
    for name, value in values.items():
        tally.count(value, counts[name])
    return tally
