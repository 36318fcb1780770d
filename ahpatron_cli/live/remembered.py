"""Encoded rows that wait for their labels, and their place in a saved state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.answers import NO_ANSWER, Answers
from ahpatron_cli.core.rows import CsrRows, Floats, Rows
from ahpatron_cli.core.state import State, Stateful, StateReader
from ahpatron_cli.pending import Pending


class RememberedRow(NamedTuple):
    """A row that was answered, without its zeros."""

    columns: NDArray[np.int32]
    values: Floats
    scores: Floats
    """The scores with which it was answered: one, or one per class."""
    chosen: int
    """Number of the label that was predicted, or `NO_ANSWER`."""


class Remembered(Stateful):
    """Rows of a stream that wait for their labels, by id."""

    def __init__(self, limit: int) -> None:
        self._pending = Pending[RememberedRow](limit)

    @property
    def limit(self) -> int:
        return self._pending.limit

    @property
    def forgotten(self) -> int:
        return self._pending.forgotten

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, key: object) -> bool:
        return key in self._pending

    def add(self, key: str, row: RememberedRow) -> None:
        """Remember a row whose id is not pending."""
        self._pending.add(key, row)

    def take(self, key: str | None) -> RememberedRow | None:
        """The row with this id, which is no longer pending; None if there is none."""
        if key is None or key not in self._pending:
            return None
        return self._pending.take(key)

    @staticmethod
    def rows(taken: Sequence[RememberedRow], *, width: int, dense: bool) -> Rows:
        """These rows with at least `width` columns."""
        lengths = [len(row.columns) for row in taken]
        columns = np.concatenate([row.columns for row in taken])
        values = np.concatenate([row.values for row in taken])
        ends = np.cumsum(lengths)
        last = int(columns.max(initial=-1))
        rows = CsrRows(
            indptr=np.append(0, ends),
            columns=columns,
            values=values,
            width=max(width, last + 1),
        )
        if dense:
            return rows.dense()
        return rows

    @staticmethod
    def answers(taken: Sequence[RememberedRow], *, classes: int | None) -> Answers:
        """The answers that these rows were given; `classes` is None for labels -1 and +1.

        A class that appeared later was not the answer: it has the smallest score.
        """
        numbers = [row.chosen for row in taken]
        if classes is None:
            scores = [row.scores[0] for row in taken]
            return Answers(np.array(scores), np.array(numbers))
        padded = [_padded(row.scores, classes) for row in taken]
        chosen = np.array(numbers)
        was_of_pair = [row.chosen >= len(row.scores) for row in taken]
        chosen[was_of_pair] = 0  # +1, which has become the first class
        return Answers(np.stack(padded), chosen)

    def state_dict(self) -> State:
        """Ids and rows as arrays."""
        keys = []
        rows = []
        for key, row in self._pending.items():
            keys.append(key)
            rows.append(row)
        lengths = [len(row.columns) for row in rows]
        return {
            "class": self.state_name,
            "forgotten": self.forgotten,
            "ids": _as_integers(keys),
            "lengths": np.array(lengths, dtype=np.int64),
            "columns": _joined([row.columns for row in rows], np.int32),
            "values": _joined([row.values for row in rows], np.float64),
            "scores": _scores_of(rows),
            "chosen": np.array([row.chosen for row in rows], dtype=np.int64),
        }

    def load_state_dict(self, state: StateReader) -> None:
        keys = _as_texts(state.array("ids", "%n"))
        lengths = state.array("lengths", "#r")
        columns = state.array("columns", "%v")
        values = state.array("values", "v")
        scores = state.array("scores", "rk")
        chosen = state.array("chosen", "#r")
        forgotten = state.take("forgotten")
        labels = max(2, scores.shape[1])
        is_sound = (
            keys is not None
            and len(keys) == len(set(keys)) == len(lengths) == len(scores) == len(chosen)
            and lengths.min(initial=0) >= 0
            and lengths.sum() == len(columns) == len(values)
            and columns.min(initial=0) >= 0
            and chosen.min(initial=0) >= NO_ANSWER
            and chosen.max(initial=0) < labels
            and type(forgotten) is int
            and forgotten >= 0
        )
        if keys is None or not is_sound:
            raise state.refusal("ids", "are not those of rows that wait for labels")
        self._pending.forgotten = forgotten
        stop = 0
        for number, key in enumerate(keys):
            start = stop
            stop = start + int(lengths[number])
            own = slice(start, stop)
            row = RememberedRow(
                columns=columns[own].copy(),
                values=values[own].copy(),
                scores=scores[number].copy(),
                chosen=int(chosen[number]),
            )
            if row.chosen == NO_ANSWER:
                row.scores[:] = np.nan
            self._pending.add(key, row)


def _as_integers(keys: list[str]) -> NDArray[np.int32]:
    """Texts as an array, which a state can have."""
    text = json.dumps(keys).encode()
    missing = -len(text) % 4
    padded = text.ljust(len(text) + missing)
    return np.frombuffer(padded, dtype="<i4")


def _as_texts(array: NDArray[np.int32]) -> list[str] | None:
    """The texts that `_as_integers` was given; None if it was not."""
    try:
        keys = json.loads(array.astype("<i4").tobytes())
    except ValueError:
        return None
    if not isinstance(keys, list):
        return None
    if not all(isinstance(key, str) for key in keys):
        return None
    return keys


def _scores_of(rows: Sequence[RememberedRow]) -> Floats:
    """The scores of each row for as many classes as any of them has; 0 without an answer."""
    counts = [len(row.scores) for row in rows]
    most = max(counts, default=1)
    scores = np.zeros((len(rows), most))
    for number, row in enumerate(rows):
        if row.chosen != NO_ANSWER:  # a state has no NaN
            scores[number] = _padded(row.scores, most)
    return scores


def _padded(scores: Floats, count: int) -> Floats:
    """Scores of so many classes: those that are not known have the smallest one."""
    if len(scores) >= count:
        return scores
    smallest = scores.min()
    missing = np.full(count - len(scores), smallest)
    return np.append(scores, missing)


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """All arrays in one, which may be empty."""
    nothing = np.empty(0, dtype=dtype)
    return np.concatenate([nothing, *arrays])
