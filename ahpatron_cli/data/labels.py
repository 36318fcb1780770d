"""From the labels of a file to -1 and +1, or to numbers of classes: one map, made once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.signals import watch

PLAIN_PAIRS = ((-1.0, 1.0), (0.0, 1.0))
"""Pairs that need no look-ahead: which of the two counts as +1 is clear from either one."""
Labels: TypeAlias = tuple[float | None, ...]
"""The labels of -1 (None: every other one) and +1; or those of at least three classes."""
FEWEST_SORTED = 20
"""Rows from which on sorted labels are worth a warning."""


class NewLabelError(Exception):
    """A file that began with the labels of a plain pair has another one: it must be scanned."""


class LabelTally:
    """How often each of at most `MAX_CLASSES` labels came, and whether equal ones came together."""

    def __init__(self) -> None:
        self.counts: dict[float, int] = {}
        self.overflowed = False
        """There are more labels, which nobody counted."""
        self._changes = 0
        self._last: float | None = None

    @property
    def rows(self) -> int:
        """How many labels were counted."""
        return sum(self.counts.values())

    @property
    def grouped(self) -> bool:
        """Whether the rows of each label stand together: the label changes once per class."""
        several = len(self.counts) > 1 and not self.overflowed
        return several and self._changes == len(self.counts) - 1

    def count(self, label: float, times: int) -> None:
        """Count a label, wherever it stands."""
        if label in self.counts or len(self.counts) < MAX_CLASSES:
            self.counts[label] = self.counts.get(label, 0) + times
        else:
            self.overflowed = True

    def add(self, labels: Floats) -> LabelTally:
        """Count these labels, which follow those before."""
        for label, count in Counter(labels.tolist()).items():
            self.count(label, count)
        if len(labels):
            self._changes += int(np.count_nonzero(labels[1:] != labels[:-1]))
            self._changes += self._last not in (None, float(labels[0]))
            self._last = float(labels[-1])
        return self


class LabelMap:
    """Maps labels as they arrive: two to -1 and +1, more to the numbers of their classes, from 0.

    Parameters
    ----------
    path : str
        The file, for errors.
    origin : {"pipe", "file", "scan", "option", "model"}
        Where `labels` come from. Of a pipe and of a file that was not scanned they are unknown: the
        first rows decide, and must have those of one of `PLAIN_PAIRS`. Another label is an error
        of a pipe, and raises `NewLabelError` for a file.
    labels : tuple of float, optional
        All labels in order, at least two.
    positive : float, optional
        Counts as +1, and every other label as -1.
    """

    def __init__(
        self,
        path: str,
        origin: str,
        labels: tuple[float, ...] | None = None,
        positive: float | None = None,
    ) -> None:
        self._path, self._origin, self._labels, self._positive = path, origin, labels, positive
        self.unlabelled = 0
        """Rows without a label so far."""
        self.rows = 0
        """Rows with a label so far."""
        self._seen: dict[float, None] = {}
        self._last, self._changes = math.nan, 0
        """The last encoded label, and how often it changed."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two."""
        return self._labels if self._labels and len(self._labels) > 2 else None

    @property
    def sorted(self) -> bool:
        """Whether all rows of each class came together, and not by chance."""
        values = len(self._seen) if self._positive is None else min(len(self._seen), 2)
        return self._changes + 1 == values > 1 and self.rows >= FEWEST_SORTED

    def encode(self, labels: Floats, lines: Integers, *, count: bool = True) -> Floats:
        """-1 and +1, or numbers of classes; NaN if missing.

        A label that the map does not have is an error with its line.
        """
        missing = np.isnan(labels)
        present = labels[~missing]
        fresh = set(present.tolist()) - self._seen.keys()
        for place, label in sorted((int(np.argmax(labels == label)), label) for label in fresh):
            self._seen[label] = None
            if not self._fits(label):
                raise self._unexpected(label, int(lines[place]))
        if self.classes:
            encoded = np.searchsorted(self.classes, labels).astype(np.float64)
        else:
            encoded = np.where(labels == self.labels()[1], 1.0, -1.0)
        encoded[missing] = np.nan
        if count and len(present):
            known = encoded[~missing]
            self._changes += int(np.count_nonzero(known[1:] != known[:-1]))
            self._changes += self.rows > 0 and known[0] != self._last
            self._last, self.rows = known[-1], self.rows + len(known)
        self.unlabelled += len(labels) - len(present)
        return encoded

    def _fits(self, label: float) -> bool:
        if self._positive is not None or self._origin == "scan":
            return True
        return label in self._labels if self._labels else self._pair() is not None

    def _pair(self) -> tuple[float, float] | None:
        """The first of `PLAIN_PAIRS` that has all labels seen."""
        pairs = (pair for pair in PLAIN_PAIRS if self._seen.keys() <= set(pair))
        return next(pairs, None)

    def labels(self) -> Labels:
        """The labels by how they are encoded, as far as they were seen."""
        if self._positive is not None:
            others = [label for label in self._seen if label != self._positive]
            return (others[0] if len(others) == 1 else None), self._positive
        return self._labels or self._pair() or PLAIN_PAIRS[0]

    def finish(self, limit: int | None = None) -> Labels:
        """The labels by how they were encoded; refused if there was nothing to learn.

        `limit`: how many rows of the file were asked for.
        """
        enough = len(self._seen) >= 2 if self._positive is None else self._positive in self._seen
        if enough or self._origin == "model" or watch.ended_by:
            return self.labels()
        problem, hint = "no row has a label", "to predict only, use `ahpatron predict MODEL DATA`"
        if self._positive is not None:
            problem = f"no row has the label {show(self._positive)}"
            hint = f"the labels are {show_all(self._seen)}"
        elif self._seen:
            only = show_all(self._seen)
            problem = f"all rows have the same label, {only}"
            hint = f"if that is intended, `--positive {only}` runs on the file anyway"
        if limit is not None and self.rows >= limit:
            hint = f"--limit read only the first {self.rows:,} rows"
        raise bad_data(f"there is nothing to learn: {problem}", self._path, hint=hint)

    def _unexpected(self, label: float, line: int) -> UserError | NewLabelError:
        if self._origin == "file":
            return NewLabelError(f"line {line:,} has the label {show(label)}")
        problem, hint = "an unexpected label:", f"the labels are {show_all(self._labels or ())}"
        if self._origin == "pipe":
            names = ",".join(map(show, sorted(self._seen)))
            hint = f"a pipe cannot be read ahead: name all labels (`--labels {names}`) or one "
            hint += f"against all others: `--positive {show(label)}`"
        elif self._origin == "model":
            problem, hint = "the model was not trained on the label", f"{hint}; ? stands for none"
        return bad_data(f"{problem} {show(label)}", self._path, line, hint)


def find_labels(path: str, tally: LabelTally) -> tuple[float, ...] | None:
    """The labels of a file in order; None if there are fewer than two."""
    labels = sorted(tally.counts)
    if fault := class_fault(tally):
        hint = f"{fault}; `--positive {show(labels[-1])}` runs that label against all others"
        more = "more than " if tally.overflowed else ""
        problem = f"{more}{len(labels)} different labels: {show_all(labels)}"
        raise bad_data(problem, path, hint=hint)
    return tuple(labels) if len(labels) > 1 else None


def class_fault(tally: LabelTally) -> str | None:
    """Why these labels are not classes, if they are not."""
    labels = tally.counts
    if tally.overflowed:
        return f"there may be {MAX_CLASSES:,} classes at most"
    if len(labels) > 2 and 2 * len(labels) > tally.rows and any(label % 1 for label in labels):
        return "fractions that hardly repeat suggest regression, which is not supported"
    return None


def describe(labels: Labels) -> str | None:
    """How the labels were mapped, where that is not plain."""
    if len(labels) > 2:
        return f"{len(labels)} classes: {show_all(label for label in labels if label is not None)}"
    negative, positive = labels
    assert positive is not None
    if negative is None:
        return f"label {show(positive)} counts as +1, every other label as -1"
    if (negative, positive) == PLAIN_PAIRS[0]:
        return None
    return f"label {show(negative)} counts as -1, label {show(positive)} as +1"


def show(label: float) -> str:
    """A label as people write it: 1, not 1.0; and 1e+300 without its zeros."""
    return str(int(label)) if label == int(label) and abs(label) < 1e16 else repr(label)


def show_all(labels: Iterable[float]) -> str:
    """The first few labels of many."""
    distinct = sorted(labels)
    text = ", ".join(show(label) for label in distinct[:5])
    return text + (f", … ({len(distinct)} in all)" if len(distinct) > 5 else "")
