"""Encoding of labels as -1 and +1, or as class numbers 0, 1, … if there are more than two."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.labels import (
    PLAIN_PAIRS,
    Labels,
    LabelTally,
    NewLabelError,
    show,
    show_all,
)
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.number_text import int_if_integral
from ahpatron_cli.signals import watch

UNDECIDED = (None, 1)
"""Labels as long as the rows do not show which of `PLAIN_PAIRS` it is."""
FEWEST_SORTED = 20
"""Smallest number of rows for which sorted labels cause a warning."""
Origin: TypeAlias = Literal["pipe", "file", "scan", "schema", "option", "model"]
"""Where the labels of a `LabelCodes` come from."""


@dataclass
class AppearingLabels:
    """Labels of a stream that are not known before they appear.

    As long as all of them are of one of `PLAIN_PAIRS`, they are a pair. Otherwise they are classes,
    numbered as they appear; a label that would make classes of a pair is refused.
    """

    labels: list[float] = field(default_factory=list)
    """The labels so far, in the order in which they appeared."""
    are_classes: bool = False
    is_open: bool = True
    """Whether further labels may appear."""

    def admits(self, label: float) -> bool:
        """Whether this may be the next label that appears."""
        if label in self.labels:
            return True
        if not self.is_open or label % 1 or len(self.labels) >= MAX_CLASSES:
            return False
        return self.are_classes or len(self.labels) < 2 or self._is_pair(label)

    def makes_classes(self, label: float) -> bool:
        """Whether the labels are classes from this one on, and were a pair before."""
        return not self.are_classes and not self._is_pair(label)

    def add(self, label: float) -> None:
        """Note a label of a row."""
        if self.makes_classes(label):
            self.are_classes = True
        if label not in self.labels:
            self.labels.append(label)

    def _is_pair(self, label: float) -> bool:
        return bool(_plain_pairs({*self.labels, label}))


@dataclass(frozen=True)
class LabelCodes:
    """Codes of labels: -1 and +1 for two labels, numbers from 0 for more classes.

    Labels of a pipe and those of a file that was not scanned are not known: all rows must have
    labels of one of `PLAIN_PAIRS`.
    """

    origin: Origin
    labels: Labels = ()
    """All labels in the order of their codes; empty if they are not known."""
    positive: float | None = None
    """The label encoded as +1, if all other labels are encoded as -1 (--positive)."""
    appearing: AppearingLabels | None = None
    """The labels of a stream in which they may appear; else None."""

    @property
    def known(self) -> tuple[float, ...]:
        """The labels, integral ones as ints; empty if fewer than two are known."""
        if self.appearing is None:
            return self._fixed
        if not self.appearing.are_classes:
            return ()
        return tuple(map(int_if_integral, self.appearing.labels))

    @property
    def may_appear(self) -> bool:
        """Whether labels appear that nothing has named."""
        return self.appearing is not None and self.appearing.is_open

    @cached_property
    def _fixed(self) -> tuple[float, ...]:
        """The labels, integral ones as ints; empty if fewer than two are known."""
        known = [int_if_integral(label) for label in self.labels if label is not None]
        if len(known) < 2:
            return ()
        return tuple(known)

    @property
    def classes(self) -> tuple[float, ...] | None:
        """Labels of all classes, if there are more than two; else None."""
        known = self.known
        if self.appearing is None and len(known) <= 2:
            return None
        return known or None

    def encode(self, labels: Floats) -> Floats:
        """The codes of labels of these classes; NaN for rows without a label."""
        if self.classes:
            order = np.argsort(self.classes)
            by_value = np.array(self.classes)[order]
            places = np.searchsorted(by_value, labels)
            numbers = order[np.minimum(places, len(order) - 1)]
            encoded = numbers.astype(np.float64)
        else:
            is_one = labels == self._encoded_as_one
            encoded = np.where(is_one, 1.0, -1.0)
        is_missing = np.isnan(labels)
        encoded[is_missing] = np.nan
        return encoded

    @cached_property
    def _encoded_as_one(self) -> float:
        """The label encoded as +1."""
        if self.positive is not None:
            return self.positive
        if self.known:
            return self.known[1]
        return 1.0  # of all PLAIN_PAIRS


class SeenLabels:
    """The labels of the rows so far, each of which must have a code."""

    def __init__(self, codes: LabelCodes, path: str) -> None:
        """`path` is the file, for error messages."""
        self._codes = codes
        self._path = path
        self._seen: set[float] = set()
        self._expected: set[float] = set()
        """Labels that are known before their rows are read."""
        self._named: set[float] = set()
        """Those of them that options name: they are a pair."""
        self._encoded = LabelTally()
        """The rows with a label so far, as encoded."""
        self.unlabelled = 0
        """Number of rows without a label so far."""

    @property
    def rows(self) -> int:
        """Number of rows with a label so far."""
        return self._encoded.rows

    @property
    def are_sorted(self) -> bool:
        """Whether the rows are grouped by label, and too many for that to be chance."""
        return self._encoded.grouped and self.rows >= FEWEST_SORTED

    def expect(self, labels: Iterable[float]) -> None:
        """Take note of labels before their rows are read.

        They decide which of `PLAIN_PAIRS` it is, unless they are of neither: the first row with
        another label is then an error.
        """
        expected = self._expected | set(labels)
        are_plain = bool(_plain_pairs(self._seen | expected))
        if self._codes.positive is not None or are_plain:
            self._expected = expected

    def expect_named(self, labels: Iterable[float]) -> None:
        """As `expect`, of labels that options name."""
        named = set(labels)
        self.expect(named)
        self._named = named & self._expected

    def check(self, labels: Floats, lines: Integers) -> None:
        """Take note of the labels of rows; a label without a code is an error at its line."""
        given = labels[~np.isnan(labels)]
        new = set(given.tolist()) - self._seen
        first_rows = {int(np.argmax(labels == label)): label for label in new}
        for row, label in sorted(first_rows.items()):
            if not self._fits(label):
                line = int(lines[row])
                raise self._unexpected(label, line)
            self._seen.add(label)
            if self._codes.appearing is not None:
                self._codes.appearing.add(label)

    def first_of_classes(self, labels: Floats) -> int:
        """The first row from which on the labels of a pair are classes; 0 if there is none."""
        appearing = self._codes.appearing
        if appearing is None or appearing.are_classes:
            return 0
        so_far = AppearingLabels(list(appearing.labels))
        for row, label in enumerate(labels.tolist()):
            if label == label and label not in so_far.labels:
                if so_far.makes_classes(label):
                    return row if so_far.admits(label) else 0
                so_far.add(label)
        return 0

    def count(self, encoded: Floats) -> None:
        """Count rows by their encoded labels."""
        is_missing = np.isnan(encoded)
        self.unlabelled += int(np.count_nonzero(is_missing))
        self._encoded.add(encoded)

    def _fits(self, label: float) -> bool:
        """Whether a label that was not seen before may occur."""
        if self._codes.positive is not None or self._codes.origin == "scan":
            return True
        if self._codes.appearing is not None:
            return self._codes.appearing.admits(label) and self._is_allowed(label)
        if self._codes.known:
            return label in self._codes.known
        return bool(_plain_pairs(self._seen | self._expected | {label}))

    def _is_allowed(self, label: float) -> bool:
        """Whether a label may occur beside those that options name."""
        if not self._named:
            return True
        return bool(_plain_pairs(self._seen | self._named | {label}))

    def _pairs(self) -> list[tuple[float, float]]:
        """Those of `PLAIN_PAIRS` that contain all labels seen or expected."""
        return _plain_pairs(self._seen | self._expected)

    def labels(self) -> Labels:
        """Labels in the order of their codes, as far as they are known; None: not known yet."""
        positive = self._codes.positive
        if positive is not None:
            others = (self._seen | self._expected) - {positive}
            negative = None
            if len(others) == 1:
                negative = int_if_integral(others.pop())
            return negative, positive
        if self._codes.known:
            return self._codes.known
        pairs = self._pairs()
        if len(pairs) == 1:
            return pairs[0]
        return UNDECIDED

    def finish(self, limit: int | None = None, *, positive_named: bool = False) -> Labels:
        """Labels in the order of their codes; a UserError if there is only one class or none.

        `limit` is the value of --limit, for the hint. One class is enough if --positive names it:
        `positive_named` means that it did, of the labels of a table, and that +1 is its code.
        """
        positive = 1.0 if positive_named else self._codes.positive
        has_positive = positive is not None and positive in self._seen
        has_both = self._codes.positive is None and len(self._seen) >= 2
        continues = self._codes.origin == "model"
        if has_positive or has_both or continues or watch.ended_by:
            return self.labels()
        raise self._nothing_to_learn(limit)

    def _nothing_to_learn(self, limit: int | None) -> UserError:
        """The error for labels of one class or none."""
        positive = self._codes.positive
        if positive is not None:
            problem = f"no row has the label {show(positive)}"
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
        origin = self._codes.origin
        if origin == "file":
            return NewLabelError(f"line {line:,} has the label {show(label)}")
        problem = "an unexpected label:"
        hint = f"the labels are {show_all(self._codes.known)}"
        if origin == "pipe":
            hint = self._hint_for_pipe(label)
        elif origin == "model":
            problem = "the model was not trained on the label"
            hint += "; ? stands for none"
        return bad_data(f"{problem} {show(label)}", self._path, line=line, hint=hint)

    def _hint_for_pipe(self, label: float) -> str:
        """How to read a pipe with a label that does not fit."""
        unseen = self._expected - self._seen
        if unseen:  # the first rows would have been seen
            return f"--weight names the label {show_all(unseen)}"
        names = ",".join(map(show, sorted(self._seen | {label})))
        return (
            f"a pipe cannot be read ahead: name all labels (`--classes {names},…`) or one "
            f"against all others: `--positive {show(label)}`"
        )


def _plain_pairs(labels: Set[float]) -> list[tuple[float, float]]:
    """Those of `PLAIN_PAIRS` that contain all of these labels."""
    return [pair for pair in PLAIN_PAIRS if labels <= set(pair)]
