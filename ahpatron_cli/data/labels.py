"""Labels of a file: their counts, which of them can be classes, and their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.errors import bad_data
from ahpatron_cli.number_text import int_if_integral

PLAIN_PAIRS = ((-1, 1), (0, 1))
"""Pairs of labels that need no scan: 1 is encoded as +1, the other one as -1."""
Labels: TypeAlias = tuple[float | None, ...]
"""The labels encoded as -1 (None: all others) and +1; or those of three or more classes."""


class NewLabelError(Exception):
    """A file whose first labels are a plain pair has another label, so it must be scanned."""


class LabelTally:
    """Counts of at most `MAX_CLASSES` distinct labels, and whether rows are grouped by label."""

    def __init__(self) -> None:
        self.counts: dict[float, int] = {}
        self.rows = 0
        """Number of labels, including those that are not counted."""
        self.overflowed = False
        """Whether there are more than `MAX_CLASSES` labels; the others are not counted."""
        self.sha256: str | None = None
        """SHA-256 of all bytes of the file, to detect later changes."""
        self._changes = 0
        self._last: float | None = None

    @property
    def grouped(self) -> bool:
        """Whether rows with equal labels are adjacent, i.e. the label changes once per class."""
        if len(self.counts) < 2 or self.overflowed:
            return False
        return self._changes == len(self.counts) - 1

    def count(self, label: float, times: int) -> None:
        """Count a label `times` times, without regard to its position."""
        self.rows += times
        if label in self.counts or len(self.counts) < MAX_CLASSES:
            self.counts[label] = self.counts.get(label, 0) + times
        else:
            self.overflowed = True

    def add(self, labels: Floats) -> LabelTally:
        """Count the labels of the next rows, leaving out NaN; returns self."""
        present = labels[~np.isnan(labels)]
        distinct, counts = np.unique(present, return_counts=True)
        for label, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            self.count(label, count)
        if len(present) == 0:
            return self
        changes = present[1:] != present[:-1]
        self._changes += int(np.count_nonzero(changes))
        first = float(present[0])
        if self._last is not None and self._last != first:
            self._changes += 1
        self._last = float(present[-1])
        return self


def find_labels(path: str, tally: LabelTally) -> tuple[float, ...] | None:
    """The distinct labels of a file in increasing order; None if there are fewer than two."""
    labels = sorted(tally.counts)
    fault = class_fault(tally)
    if fault:
        problem = f"{len(labels)} different labels: {show_all(labels)}"
        if tally.overflowed:
            problem = f"more than {problem}"
        hint = f"{fault}; `--positive {show(labels[-1])}` runs that label against all others"
        raise bad_data(problem, path, hint=hint)
    if len(labels) < 2:
        return None
    return tuple(labels)


def class_fault(tally: LabelTally) -> str | None:
    """The reason why these labels cannot be classes; None if they can."""
    if tally.overflowed:
        return f"there may be {MAX_CLASSES:,} classes at most"
    labels = tally.counts
    hardly_repeat = len(labels) > 2 and 2 * len(labels) > tally.rows
    has_fractions = any(label % 1 for label in labels)
    if hardly_repeat and has_fractions:
        return "fractions that hardly repeat suggest regression, which is not supported"
    return None


OTHER = "other"
"""Name of the negative label if it stands for all labels but one (--positive)."""


def describe(labels: Labels) -> str | None:
    """Note on how the labels were encoded; None for -1 and +1."""
    if len(labels) != 2:
        known = [label for label in labels if label is not None]
        return f"{count_of_classes(labels)}: {show_all(known)}"
    negative, positive = labels
    assert positive is not None
    if negative is None:
        return f"label {show(positive)} counts as +1, every other label as -1"
    if (negative, positive) == PLAIN_PAIRS[0]:
        return None
    return f"label {show(negative)} counts as -1, label {show(positive)} as +1"


def count_of_classes(labels: Labels) -> str:
    """The number of classes as text; on a stream there may be one so far."""
    return "1 class" if len(labels) == 1 else f"{len(labels):,} classes"


def show(label: float) -> str:
    """A label as text: 1 rather than 1.0, and 1e+300 without trailing zeros."""
    return str(int_if_integral(label))


def show_all(labels: Iterable[float]) -> str:
    """The distinct labels as text; of many, the first few and their number."""
    distinct = sorted(labels)
    first = [show(label) for label in distinct[:5]]
    text = ", ".join(first)
    if len(distinct) > 5:
        text += f", … ({len(distinct)} in all)"
    return text
