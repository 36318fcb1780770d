"""Encoding of labels as -1 and +1, or as class numbers 0, 1, … if there are more than two."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.number_text import int_if_integral
from ahpatron_cli.signals import watch

PLAIN_PAIRS = ((-1, 1), (0, 1))
"""Pairs of labels that need no scan: 1 is encoded as +1, the other one as -1."""
UNDECIDED = (None, 1)
"""Labels as long as the rows do not show which of `PLAIN_PAIRS` it is."""
Labels: TypeAlias = tuple[float | None, ...]
"""The labels encoded as -1 (None: all others) and +1; or those of three or more classes."""
FEWEST_SORTED = 20
"""Smallest number of rows for which sorted labels cause a warning."""


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
        labels = labels[~np.isnan(labels)]
        distinct, counts = np.unique(labels, return_counts=True)
        for label, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            self.count(label, count)
        if len(labels) == 0:
            return self
        self._changes += int(np.count_nonzero(labels[1:] != labels[:-1]))
        first = float(labels[0])
        if self._last is not None and self._last != first:
            self._changes += 1
        self._last = float(labels[-1])
        return self


class LabelMap:
    """Encoder of labels: two labels as -1 and +1, more as class numbers from 0.

    Parameters
    ----------
    path : str
        The file, for error messages.
    origin : {"pipe", "file", "scan", "schema", "option", "model"}
        Where `labels` come from. For "pipe" and "file" they are unknown: the first rows must have
        labels of one of `PLAIN_PAIRS`, and any other label is an error for a pipe and raises
        `NewLabelError` for a file.
    labels : tuple of float, optional
        All labels in order, at least two.
    positive : float, optional
        The label encoded as +1; all other labels are encoded as -1.
    """

    def __init__(
        self,
        path: str,
        origin: str,
        labels: tuple[float, ...] | None = None,
        positive: float | None = None,
    ) -> None:
        self._path = path
        self._origin = origin
        self._positive = positive
        self._labels: tuple[float, ...] | None = None
        if labels:
            self._labels = tuple(map(int_if_integral, labels))
        self.unlabelled = 0
        """Number of rows without a label so far."""
        self._seen: dict[float, None] = {}
        self._expected: set[float] = set()
        """Labels that are known before their rows are encoded."""
        self._encoded = LabelTally()
        """The rows with a label so far, as encoded."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """Labels of all classes, if there are more than two; else None."""
        if self._labels is None or len(self._labels) <= 2:
            return None
        return self._labels

    @property
    def rows(self) -> int:
        """Number of rows with a label so far."""
        return self._encoded.rows

    @property
    def sorted(self) -> bool:
        """Whether the rows are grouped by label, and too many for that to be chance."""
        return self._encoded.grouped and self.rows >= FEWEST_SORTED

    def expect(self, labels: Iterable[float]) -> None:
        """Take note of labels before their rows are encoded.

        They decide which of `PLAIN_PAIRS` it is, unless they are of neither: the first row with
        another label is then an error.
        """
        expected = self._expected | set(labels)
        are_plain = bool(_plain_pairs(self._seen.keys() | expected))
        if self._positive is not None or are_plain:
            self._expected = expected

    def encode(self, labels: Floats, lines: Integers, *, count: bool = True) -> Floats:
        """Encode labels as -1 and +1, or as class numbers; NaN if missing.

        An unknown label is an error that names its line.
        """
        missing = np.isnan(labels)
        self.unlabelled += int(np.count_nonzero(missing))
        fresh = set(labels[~missing].tolist()) - self._seen.keys()
        first_rows = [(int(np.argmax(labels == label)), label) for label in fresh]
        for row, label in sorted(first_rows):
            self._seen[label] = None
            if not self._fits(label):
                raise self._unexpected(label, int(lines[row]))
        if self.classes:
            encoded = np.searchsorted(self.classes, labels).astype(np.float64)
        else:
            positive = self.labels()[1]
            encoded = np.where(labels == positive, 1.0, -1.0)
        encoded[missing] = np.nan
        if count:
            self._encoded.add(encoded)
        return encoded

    def _fits(self, label: float) -> bool:
        """Whether a label that was just seen for the first time may occur."""
        if self._positive is not None or self._origin == "scan":
            return True
        if self._labels:
            return label in self._labels
        return bool(self._pairs())

    def _pairs(self) -> list[tuple[float, float]]:
        """Those of `PLAIN_PAIRS` that contain all labels seen or expected."""
        return _plain_pairs(self._seen.keys() | self._expected)

    def labels(self) -> Labels:
        """Labels in the order of their codes, as far as they are known; None: not known yet."""
        if self._positive is not None:
            others = (self._seen.keys() | self._expected) - {self._positive}
            negative = None
            if len(others) == 1:
                negative = int_if_integral(others.pop())
            return negative, self._positive
        if self._labels:
            return self._labels
        pairs = self._pairs()
        if len(pairs) == 1:
            return pairs[0]
        return UNDECIDED

    def finish(self, limit: int | None = None, *, positive_named: bool = False) -> Labels:
        """Labels in the order of their codes; a UserError if there is only one class or none.

        `limit` is the value of --limit, for the hint. One class is enough if --positive names it:
        `positive_named` means that it did, of the labels of a table, and that +1 is its code.
        """
        positive = 1.0 if positive_named else self._positive
        has_positive = positive is not None and positive in self._seen
        has_both = self._positive is None and len(self._seen) >= 2
        if has_positive or has_both or self._origin == "model" or watch.ended_by:
            return self.labels()
        raise self._nothing_to_learn(limit)

    def _nothing_to_learn(self, limit: int | None) -> UserError:
        """The error for labels of one class or none."""
        if self._positive is not None:
            problem = f"no row has the label {show(self._positive)}"
            hint = f"the labels are {show_all(self._seen)}"
        elif self._seen:
            only = show_all(self._seen)
            which = "all rows with a label" if self.unlabelled else "all rows"
            problem = f"{which} have the same label, {only}"
            hint = f"if that is intended, `--positive {only}` runs on the file anyway"
        else:
            problem = "no row has a label"
            hint = "to predict only, use `ahpatron predict MODEL DATA`"
        if limit is not None and self.rows >= limit:
            hint = f"--limit read only the first {self.rows:,} rows"
        return bad_data(f"there is nothing to learn: {problem}", self._path, hint=hint)

    def _unexpected(self, label: float, line: int) -> UserError | NewLabelError:
        """The error for a label that does not fit."""
        if self._origin == "file":
            return NewLabelError(f"line {line:,} has the label {show(label)}")
        problem = "an unexpected label:"
        hint = f"the labels are {show_all(self._labels or ())}"
        if self._origin == "pipe":
            hint = self._hint_for_pipe(label)
        elif self._origin == "model":
            problem = "the model was not trained on the label"
            hint += "; ? stands for none"
        return bad_data(f"{problem} {show(label)}", self._path, line=line, hint=hint)

    def _hint_for_pipe(self, label: float) -> str:
        """How to read a pipe with a label that does not fit."""
        unseen = self._expected - self._seen.keys()
        if unseen:  # the first rows would have been seen
            return f"--cost names the label {show_all(unseen)}"
        names = ",".join(map(show, sorted(self._seen)))
        return (
            f"a pipe cannot be read ahead: name all labels (`--labels {names},…`) or one "
            f"against all others: `--positive {show(label)}`"
        )


def _plain_pairs(labels: Set[float]) -> list[tuple[float, float]]:
    """Those of `PLAIN_PAIRS` that contain all of these labels."""
    return [pair for pair in PLAIN_PAIRS if labels <= set(pair)]


def find_labels(path: str, tally: LabelTally) -> tuple[float, ...] | None:
    """The distinct labels of a file in increasing order; None if there are fewer than two."""
    labels = sorted(tally.counts)
    if fault := class_fault(tally):
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
    labels = tally.counts
    if tally.overflowed:
        return f"there may be {MAX_CLASSES:,} classes at most"
    hardly_repeat = len(labels) > 2 and 2 * len(labels) > tally.rows
    if hardly_repeat and any(label % 1 for label in labels):
        return "fractions that hardly repeat suggest regression, which is not supported"
    return None


OTHER = "other"
"""Name of the negative label if it stands for all labels but one (--positive)."""


def describe(labels: Labels) -> str | None:
    """Note on how the labels were encoded; None for -1 and +1."""
    if len(labels) > 2:
        known = [label for label in labels if label is not None]
        return f"{len(labels)} classes: {show_all(known)}"
    negative, positive = labels
    assert positive is not None
    if negative is None:
        return f"label {show(positive)} counts as +1, every other label as -1"
    if (negative, positive) == PLAIN_PAIRS[0]:
        return None
    return f"label {show(negative)} counts as -1, label {show(positive)} as +1"


def show(label: float) -> str:
    """A label as text: 1 rather than 1.0, and 1e+300 without trailing zeros."""
    return str(int_if_integral(label))


def show_all(labels: Iterable[float]) -> str:
    """The distinct labels as text; of many, the first few and their number."""
    distinct = sorted(labels)
    text = ", ".join(map(show, distinct[:5]))
    if len(distinct) > 5:
        text += f", … ({len(distinct)} in all)"
    return text
