"""Rows that wait for their labels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

Row = TypeVar("Row")
PENDING = 10_000
"""Number of rows that are remembered, unless --pending says otherwise."""


class Pending(Generic[Row]):
    """Rows that were answered and wait for their labels, by id; the oldest are forgotten.

    Labels often come later than rows: a payment is answered at once, and whether it was a fraud is
    known weeks later. The row must then be learned as it was when it was answered.

    Parameters
    ----------
    limit : int, default=10_000
        Number of rows that are remembered. One more forgets the oldest.

    Attributes
    ----------
    forgotten : int
        Number of rows that were forgotten before their label came.

    Examples
    --------
    >>> from ahpatron_cli import OnlineKernelClassifier, Pending
    >>> model = OnlineKernelClassifier()
    >>> model = model.partial_fit([[0.0], [9.0]], ["good", "fraud"], classes=["good", "fraud"])
    >>> pending = Pending(limit=1000)
    >>> mistakes = 0
    >>> for key, amount in [("p1", 1.0), ("p2", 8.0)]:  # payments arrive
    ...     answer = model.predict([[amount]])[0]
    ...     pending.add(key, ([amount], answer))
    >>> for key, label in [("p2", "fraud"), ("p1", "good")]:  # days later, in any order
    ...     row, answer = pending.take(key)
    ...     mistakes += answer != label
    ...     model = model.partial_fit([row], [label])
    >>> len(pending), mistakes
    (0, 0)
    """

    def __init__(self, limit: int = PENDING) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self.limit = limit
        self.forgotten = 0
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def add(self, key: str, row: Row) -> None:
        """Remember a row, and whatever belongs to it; a KeyError if its id is already pending."""
        if key in self._rows:
            raise KeyError(key)
        self._rows[key] = row
        if len(self._rows) > self.limit:
            self._rows.popitem(last=False)
            self.forgotten += 1

    def take(self, key: str) -> Row:
        """The row with this id, which is no longer pending; a KeyError if there is none."""
        return self._rows.pop(key)

    def items(self) -> Iterator[tuple[str, Row]]:
        """Ids and rows, the oldest first."""
        yield from self._rows.items()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows
