"""From the labels of a file to -1 and +1, or to classes; said aloud and never guessed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from ahpatron_cli.core.multiclass import MAX_CLASSES
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.signals import watch

PLAIN_PAIRS = ((-1.0, 1.0), (0.0, 1.0))
"""Pairs that need no look-ahead: which of the two counts as +1 is clear from either one."""
Labels: TypeAlias = tuple[float | None, ...]
"""The labels played as -1 (None: every other one) and +1; or those of at least three classes."""
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

    They are given, found beforehand, or one of `PLAIN_PAIRS`. With `positive`, that label counts as
    +1 and every other as -1.
    """

    def __init__(
        self,
        path: str,
        positive: float | None = None,
        known: tuple[float, ...] | None = None,
        *,
        all_known: bool = False,
        from_model: bool = False,
    ) -> None:
        """`known` are the labels in order, at least two; `all_known`: there are no others.

        `from_model`: they are those of a stream that this one continues, in whatever part.
        """
        self._path, self._positive, self._known = path, positive, known
        self._all_known = all_known or from_model
        self._from_model = from_model
        self.unlabelled = 0
        """Rows without a label so far."""
        self._seen: dict[float, None] = {}
        self._tally = LabelTally()
        """Of the labels as they are played."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two."""
        return self._known if self._known and len(self._known) > 2 else None

    @property
    def rows(self) -> int:
        """How many labels were met."""
        return self._tally.rows

    def observe(self, labels: Floats, lines: Integers, *, count: bool = True) -> None:
        """Check the next labels, which stand on these lines, and count them; NaN if missing."""
        missing = np.isnan(labels)
        if missing.any():
            self.unlabelled += int(np.count_nonzero(missing)) if count else 0
            labels, lines = labels[~missing], lines[~missing]
        fresh = _counts(labels).keys() - self._seen
        for place, label in sorted((int(np.argmax(labels == label)), label) for label in fresh):
            self._observe(label, int(lines[place]))
        if count:
            self._tally.add(self.encode(labels))

    def encode(self, labels: Floats) -> Floats:
        """-1 and +1, or numbers of classes, for labels that were observed; NaN if missing."""
        if self.classes:
            encoded = np.searchsorted(self.classes, labels).astype(np.float64)
        else:
            top = self._positive if self._positive is not None else self._known_or_plain()[1]
            encoded = np.where(labels == top, 1.0, -1.0)
        encoded[np.isnan(labels)] = np.nan
        return encoded

    def _observe(self, label: float, line: int) -> None:
        """Take note of a label not seen before, or refuse it."""
        self._seen[label] = None
        if self._positive is not None:
            return
        if self._known is None and len(self._seen) == 2:
            self._known = next((p for p in PLAIN_PAIRS if self._seen.keys() == set(p)), None)
        if self._known is not None:
            if label not in self._known:
                raise self._third(label, line)
        elif not self._all_known and not self._fitting_pairs():
            raise self._unclear(line)

    def _fitting_pairs(self) -> list[tuple[float, float]]:
        return [pair for pair in PLAIN_PAIRS if self._seen.keys() <= set(pair)]

    def _known_or_plain(self) -> tuple[float, ...]:
        return self._known or next(iter(self._fitting_pairs()), PLAIN_PAIRS[0])

    def labels(self) -> Labels:
        """The labels by how they are played, as far as they were seen."""
        if self._positive is None:
            return self._known_or_plain()
        others = [label for label in self._seen if label != self._positive]
        return (others[0] if len(others) == 1 else None), self._positive

    def finish(self, limit: int | None = None) -> Labels:
        """The labels by how they were played; refused if there was nothing to tell apart.

        `limit`: how many rows of the file were asked for.
        """
        positive, enough = self._positive, len(self._seen) >= 2
        if self._from_model or watch.ended_by:
            return self.labels()
        if enough if positive is None else positive in self._seen:
            return self.labels()
        if not self._seen:
            problem = f"none of {self.unlabelled:,} rows has a label: there is nothing to learn"
            hint = "to predict only, use `ahpatron predict MODEL DATA`, or --resume MODEL"
        elif positive is None:
            only = show(next(iter(self._seen)))
            problem = f"all rows have the same label, {only}: there is nothing to learn"
            hint = f"if that is intended, `--positive {only}` plays the file anyway"
        else:
            problem = f"no row has the label {show(positive)} that --positive names"
            hint = f"the labels are {show_all(self._seen)}"
        if limit is not None and self.rows >= limit:
            hint = "give a larger --limit, or leave it out: "
            hint += f"only the first {self.rows:,} rows were read"
        raise bad_data(problem, self._path, hint=hint)

    @property
    def sorted(self) -> bool:
        """Whether all rows of each class came together, and not by chance."""
        return self._tally.grouped and self.rows >= FEWEST_SORTED

    def _third(self, label: float, line: int) -> UserError:
        if self._from_model:
            hint = f"its labels are {show_all(self._known or ())}"
            hint += "; write ? in place of labels that are not known"
            problem = f"the model was not trained on the label {show(label)}"
            return bad_data(problem, self._path, line, hint)
        if self._all_known:
            hint = f"the labels are {show_all(self._known or ())}"
            return bad_data(f"an unknown label: {show(label)}", self._path, line, hint)
        names = ",".join(map(show, sorted(self._seen)))
        hint = f"a pipe cannot be read ahead: name all classes, as in `--labels {names}`, or use "
        hint += f"`--positive {show(label)}` to separate this label from all others"
        return bad_data(f"a third label: {show(label)}", self._path, line, hint)

    def _unclear(self, line: int) -> UserError:
        problem = f"no rule decides which label counts as +1: {show_all(self._seen)}"
        hint = (
            "a pipe cannot be read ahead: name all labels, as in `--labels 1,2`, or the positive "
        )
        hint += f"one: `--positive {show(max(self._seen))}`"
        return bad_data(problem, self._path, line, hint)


def find_labels(path: str, tally: LabelTally) -> tuple[float, ...] | None:
    """The labels of a file in order; None where there are not two yet."""
    labels, more = sorted(tally.counts), tally.overflowed
    if fault := class_fault(tally):
        count = f"more than {len(labels)}" if more else f"{len(labels)}"
        option = f"`--positive {show(labels[-1])}`"
        hint = f"{fault}; {option} plays that label as +1 against all others"
        raise bad_data(f"{count} different labels: {show_all(labels, more)}", path, hint=hint)
    return tuple(labels) if len(labels) > 1 else None


def class_fault(tally: LabelTally) -> str | None:
    """Why these labels are not played as classes, if they are not."""
    labels = tally.counts
    if tally.overflowed or len(labels) > MAX_CLASSES:
        return f"at most {MAX_CLASSES:,} classes are played"
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


def show_all(labels: Iterable[float], more: bool = False) -> str:
    """The first few labels of many; `more`: there are others that were not counted."""
    distinct = sorted(labels)
    text = ", ".join(show(label) for label in distinct[:5])
    if more:
        return text + ", …"
    return text + (f", … ({len(distinct)} in all)" if len(distinct) > 5 else "")
