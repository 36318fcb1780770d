"""From the labels of a file to -1 and +1, said aloud and never guessed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.errors import UserError, bad_data

PLAIN_PAIRS = ((-1.0, 1.0), (0.0, 1.0))
"""Pairs that need no look-ahead: which of the two counts as +1 is clear from either one."""
FEWEST_SORTED = 20
"""Rows from which on sorted labels are worth a warning."""


class LabelMap:
    """Maps labels as they arrive. The pair is given, found beforehand, or one of `PLAIN_PAIRS`.

    With `positive`, that label counts as +1 and every other as -1.
    """

    def __init__(
        self,
        path: str,
        positive: float | None = None,
        pair: tuple[float, float] | None = None,
        *,
        all_known: bool = False,
        from_model: bool = False,
        may_be_missing: bool = False,
    ) -> None:
        """`all_known`: all labels of the stream were looked at, and `pair` is what was found.

        `from_model`: they are those of a stream that this one goes on with, in whatever part.
        """
        self._path = path
        self._all_known = all_known or from_model
        self._from_model = from_model
        self._may_be_missing = may_be_missing
        self._positive = positive
        self._pair = pair
        self._seen: dict[float, None] = {}
        self._rows = 0
        self._changes = 0
        self._last = 0.0

    def signs(self, labels: Floats, lines: Integers) -> Floats:
        """-1 and +1 for these labels, which stand on these lines; NaN for missing labels."""
        if self._may_be_missing and (missing := np.isnan(labels)).any():
            signs = np.full(len(labels), np.nan)
            signs[~missing] = self.signs(labels[~missing], lines[~missing])
            return signs
        fresh = [label for label in np.unique(labels).tolist() if label not in self._seen]
        for label in sorted(fresh, key=lambda label: int(np.argmax(labels == label))):
            self._meet(label, int(lines[int(np.argmax(labels == label))]))
        top = self._positive if self._positive is not None else self._pair_or_plain()[1]
        signs = np.where(labels == top, 1.0, -1.0)
        if len(signs):
            self._changes += int(np.count_nonzero(signs[1:] != signs[:-1]))
            self._changes += bool(self._last and self._last != signs[0])
            self._last = float(signs[-1])
            self._rows += len(signs)
        return signs

    def _meet(self, label: float, line: int) -> None:
        """Take note of a label not seen before, or refuse it."""
        self._seen[label] = None
        if self._positive is not None:
            return
        if self._pair is None and len(self._seen) == 2:
            self._pair = next((p for p in PLAIN_PAIRS if self._seen.keys() == set(p)), None)
        if self._pair is not None:
            if label not in self._pair:
                raise self._third(label, line)
        elif not self._all_known and not self._fitting_pairs():
            raise self._unclear(label, line)

    def _fitting_pairs(self) -> list[tuple[float, float]]:
        return [pair for pair in PLAIN_PAIRS if self._seen.keys() <= set(pair)]

    def _pair_or_plain(self) -> tuple[float, float]:
        return self._pair or next(iter(self._fitting_pairs()), PLAIN_PAIRS[0])

    def pair(self) -> tuple[float | None, float]:
        """What counts as -1 (None: every other label) and as +1, by what was seen so far."""
        if self._positive is None:
            return self._pair_or_plain()
        others = [label for label in self._seen if label != self._positive]
        return (others[0] if len(others) == 1 else None), self._positive

    def finish(self) -> tuple[float | None, float]:
        """The label counted as -1 (None where it is several) and the one counted as +1."""
        if self._positive is None:
            if len(self._seen) < 2 and not self._from_model:
                raise self._one_class()
            return self.pair()
        if self._positive not in self._seen and not self._from_model:
            problem = f"no row has the label {show(self._positive)} that --positive names"
            raise bad_data(problem, self._path, hint=f"the labels are {show_all(self._seen)}")
        return self.pair()

    @property
    def sorted(self) -> bool:
        """Whether all rows of one class came before all rows of the other, and not by chance."""
        return self._changes == 1 and self._rows >= FEWEST_SORTED

    def _third(self, label: float, line: int) -> UserError:
        if self._from_model:
            hint = f"its labels are {show_all(self._pair or ())}"
            if self._may_be_missing:
                hint += "; write ? in place of labels that are not known"
            problem = f"a label that the model does not know: {show(label)}"
            return bad_data(problem, self._path, line, hint)
        hint = f"two classes are played; `--positive {show(label)}` plays this label as +1 "
        return bad_data(
            f"a third label: {show(label)}", self._path, line, hint + "against all others"
        )

    def _unclear(self, label: float, line: int) -> UserError:
        problem = f"it is not clear which label counts as +1: {show_all(self._seen)}"
        option = f"`--positive {show(max(self._seen))}`"
        hint = f"a pipe cannot be looked through beforehand: give {option}, or a file"
        return bad_data(problem, self._path, line, hint)

    def _one_class(self) -> UserError:
        only = next(iter(self._seen))
        problem = f"all rows have the same label, {show(only)}: nothing to tell apart"
        hint = f"if that is meant, `--positive {show(only)}` plays the file all the same"
        return bad_data(problem, self._path, hint=hint)


def find_pair(path: str, labels: Iterable[float], more: bool = False) -> tuple[float, float] | None:
    """The two labels of a file, smaller first; None where there are not two yet.

    `more`: there are others, which nobody counted.
    """
    distinct = sorted(set(labels))
    if len(distinct) > 2:
        count = f"more than {len(distinct)}" if more else f"{len(distinct)}"
        problem = f"{count} different labels: {show_all(distinct, more)}"
        option = f"`--positive {show(distinct[-1])}`"
        hint = f"two classes are played; {option} plays that label as +1 against all others"
        raise bad_data(problem, path, hint=hint)
    return (distinct[0], distinct[1]) if len(distinct) == 2 else None


def is_plain(labels: Floats) -> bool:
    """Whether the first two different labels are a pair that needs no look-ahead."""
    distinct, first = np.unique(labels, return_index=True)
    return tuple(sorted(distinct[np.argsort(first)[:2]].tolist())) in PLAIN_PAIRS


def describe(pair: tuple[float | None, float]) -> str | None:
    """How the labels were mapped, where that is not plain."""
    negative, positive = pair
    if (negative, positive) == PLAIN_PAIRS[0]:
        return None
    if negative is None:
        return f"label {show(positive)} is played as +1, every other label as -1"
    return f"label {show(negative)} is played as -1, label {show(positive)} as +1"


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
