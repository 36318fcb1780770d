"""Encoded rows that wait for their labels, and their place in a saved state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.answers import Answers
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
    """Number of the label that was predicted."""


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
        own_width = int(columns.max(initial=-1)) + 1
        rows = CsrRows(
            indptr=np.append(0, np.cumsum(lengths)),
            columns=columns,
            values=values,
            width=max(width, own_width),
        )
        return rows.dense() if dense else rows

    @staticmethod
    def answers(taken: Sequence[RememberedRow], *, classes: int | None) -> Answers:
        """The answers that these rows were given; `classes` is None for labels -1 and +1.

        A class that appeared later was not the answer: it has the smallest score.
        """
        chosen = np.array([row.chosen for row in taken])
        if classes is None:
            scores = np.array([row.scores[0] for row in taken])
        else:
            scores = np.stack([_padded(row.scores, classes) for row in taken])
        return Answers(scores, chosen)

    def state_dict(self) -> State:
        """Ids and rows as arrays."""
        items = list(self._pending.items())
        rows = [row for _, row in items]
        lengths = [len(row.columns) for row in rows]
        most = max((len(row.scores) for row in rows), default=1)
        text = json.dumps([key for key, _ in items]).encode()
        filled = text + b" " * (-len(text) % 4)
        scores = [_padded(row.scores, most) for row in rows]
        return {
            "class": self.state_name,
            "forgotten": self.forgotten,
            "ids": np.frombuffer(filled, dtype="<i4"),
            "lengths": np.array(lengths, dtype=np.int64),
            "columns": _joined([row.columns for row in rows], np.int32),
            "values": _joined([row.values for row in rows], np.float64),
            "scores": np.array(scores, dtype=np.float64).reshape(len(rows), most),
            "chosen": np.array([row.chosen for row in rows], dtype=np.int64),
        }

    def load_state_dict(self, state: StateReader) -> None:
        ids = state.array("ids", "%n")
        lengths = state.array("lengths", "#r").tolist()
        columns = state.array("columns", "%v")
        values = state.array("values", "v")
        scores = state.array("scores", "rk")
        chosen = state.array("chosen", "#r").tolist()
        forgotten = state.take("forgotten")
        try:
            keys = json.loads(ids.astype("<i4").tobytes())
            ends = np.cumsum(lengths, dtype=np.int64)
            sound = len(keys) == len(lengths) == len(scores) == len(chosen)
            sound &= min(lengths, default=0) >= 0
            sound &= int(sum(lengths)) == len(columns) == len(values)
            sound &= type(forgotten) is int and forgotten >= 0
            sound &= int(columns.min(initial=0)) >= 0 and len({*keys}) == len(keys)
            sound &= all(isinstance(key, str) for key in keys)
        except (ValueError, TypeError):
            sound = False
        if not sound:
            raise state.refusal("ids", "are not those of rows that wait for labels")
        self._pending.forgotten = forgotten
        every = zip(keys, lengths, ends.tolist(), scores, chosen, strict=True)
        for key, length, end, own, number in every:
            part = slice(end - length, end)
            row = RememberedRow(
                columns=columns[part].copy(),
                values=values[part].copy(),
                scores=own.copy(),
                chosen=number,
            )
            self._pending.add(key, row)


def _padded(scores: Floats, count: int) -> Floats:
    """Scores of so many classes: those that are not known have the smallest one."""
    if len(scores) >= count:
        return scores
    missing = np.full(count - len(scores), scores.min())
    return np.append(scores, missing)


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """All arrays in one, which may be empty."""
    return np.concatenate([np.empty(0, dtype=dtype), *arrays])
