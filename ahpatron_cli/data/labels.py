"""From the labels of a file to -1 and +1, or to numbers of classes: one map, made once."""

from __future__ import annotations

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


class LabelTally:
    """How often each of at most `limit` labels came, and whether equal ones came together."""

    def __init__(self, limit: int = MAX_CLASSES) -> None:
        self._limit = limit
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
        if label in self.counts or len(self.counts) < self._limit:
            self.counts[label] = self.counts.get(label, 0) + times
        else:
            self.overflowed = True

    def add(self, labels: Floats) -> LabelTally:
        """Count these labels, which follow those before."""
        for label, count in _counts(labels).items():
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
    labels : tuple of float, optional
        All labels in order, at least two. Without them the first decide, as on a pipe: they must be
        one of `PLAIN_PAIRS`.
    positive : float, optional
        Counts as +1, and every other label as -1.
    origin : {"pipe", "file", "option", "model"}
        Where `labels` come from.
    """

    def __init__(
        self,
        path: str,
        labels: tuple[float, ...] | None = None,
        positive: float | None = None,
        origin: str = "pipe",
    ) -> None:
        self._path, self._labels, self._positive, self._origin = path, labels, positive, origin
        self.unlabelled = 0
        """Rows without a label so far."""
        self._seen: dict[float, None] = {}
        self._tally = LabelTally()
        """Of encoded labels."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two."""
        return self._labels if self._labels and len(self._labels) > 2 else None

    @property
    def rows(self) -> int:
        """How many rows with labels there were."""
        return self._tally.rows

    @property
    def sorted(self) -> bool:
        """Whether all rows of each class came together, and not by chance."""
        return self._tally.grouped and self.rows >= FEWEST_SORTED

    def encode(self, labels: Floats, lines: Integers, *, count: bool = True) -> Floats:
        """-1 and +1, or numbers of classes; NaN if missing.

        A label that the map does not have is an error with its line.
        """
        missing = np.isnan(labels)
        present = ~missing
        fresh = _counts(labels[present]).keys() - self._seen
        for place, label in sorted((int(np.argmax(labels == label)), label) for label in fresh):
            self._seen[label] = None
            if not self._fits(label):
                raise self._unexpected(label, int(lines[place]))
        if self.classes:
            encoded = np.searchsorted(self.classes, labels).astype(np.float64)
        else:
            top = self.labels()[1]
            encoded = np.where(labels == top, 1.0, -1.0)
        encoded[missing] = np.nan
        if count:
            self.unlabelled += int(np.count_nonzero(missing))
            self._tally.add(encoded[present])
        return encoded

    def _fits(self, label: float) -> bool:
        if self._positive is not None:
            return True
        if self._labels is not None:
            return label in self._labels
        if self._origin != "pipe":
            return True
        pairs = [pair for pair in PLAIN_PAIRS if self._seen.keys() <= set(pair)]
        if len(self._seen) == 2 and pairs:
            self._labels = pairs[0]
        return bool(pairs)

    def labels(self) -> Labels:
        """The labels by how they are encoded, as far as they were seen."""
        if self._positive is not None:
            others = [label for label in self._seen if label != self._positive]
            return (others[0] if len(others) == 1 else None), self._positive
        pairs = [pair for pair in PLAIN_PAIRS if self._seen.keys() <= set(pair)]
        return self._labels or (pairs or PLAIN_PAIRS)[0]

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

    def _unexpected(self, label: float, line: int) -> UserError:
        problem, hint = "an unexpected label:", f"the labels are {show_all(self._labels or ())}"
        if self._origin == "pipe":
            names = ",".join(map(show, sorted(self._seen)))
            hint = f"a pipe cannot be read ahead: name all labels (`--labels {names}`) or one "
            hint += f"against all others: `--positive {show(label)}`"
        elif self._origin == "model":
            problem, hint = "the model was not trained on the label", f"{hint}; ? stands for none"
        return bad_data(f"{problem} {show(label)}", self._path, line, hint)


def find_labels(path: str, tally: LabelTally) -> tuple[float, ...] | None:
    """The labels of a file in order; None where there are not two yet."""
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
    if tally.overflowed or len(labels) > MAX_CLASSES:
        return f"there may be {MAX_CLASSES:,} classes at most"
    if len(labels) > 2 and 2 * len(labels) > tally.rows and any(label % 1 for label in labels):
        return "fractions that hardly repeat suggest regression, which is not supported"
    return None


def _counts(labels: Floats) -> dict[float, int]:
    """How often each is there. `np.unique` would import `numpy.ma`, which nothing else needs."""
    ordered = np.sort(labels)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(labels)])
    counts = np.diff(np.append(starts, len(labels)))
    return dict(zip(ordered[starts].tolist(), counts.tolist(), strict=True))


def describe(labels: Labels) -> str | None:
    """How the labels were mapped, where that is not plain."""
    if len(labels) > 2:
        return f"{len(labels)} classes: {show_all(one for one in labels if one is not None)}"
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
