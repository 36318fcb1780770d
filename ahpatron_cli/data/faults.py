"""Faulty rows: those that cannot be learned, and what becomes of them.

A reader that is given a function for faulty rows calls it with each of them, in the order of the
lines, and goes on with the next row. Without it, the first faulty row is raised as a `UserError`,
after all rows before it were passed on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ahpatron_cli.errors import UserError


class FaultyRow(NamedTuple):
    """A row that cannot be learned."""

    line: int
    """Number of its line, from 1."""
    raw: bytes
    """The line as it was read, without its line end; of a line that is too long, the start."""
    error: UserError
    """What is wrong, where, and what to try."""
    id: str | None = None
    """Its id, if the line could be read so far."""


OnFaultyRow: TypeAlias = Callable[[FaultyRow], None]
"""What is called with each faulty row, which is then left out."""


class RecentLines:
    """The lines that were read last, to show those that turn out to be faulty."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytes]] = deque(maxlen=3)

    def add(self, first: int, text: bytes) -> None:
        """Note text that begins with the line number `first`."""
        self._chunks.append((first, text))

    def line(self, number: int) -> bytes:
        """The line with this number, without its end; empty if it was read too long ago."""
        for first, text in reversed(self._chunks):
            behind = number - first
            if behind < 0:
                continue
            lines = text.split(b"\n", behind + 1)
            if behind < len(lines):
                return lines[behind].removesuffix(b"\r")
        return b""
