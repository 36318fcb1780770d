"""The journal: what restores a player after a block that failed."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ahpatron_cli.core.loop import Loop
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats

ASK_EVERY = 64
"""Rounds after which a journal is asked again whether it is over."""


@dataclass(slots=True, eq=False)
class Block:
    """A block of rounds, and what came of it once it was learned.

    One object serves both the journal and the counts: rows that arrive one by one need one each.
    """

    first: int
    """Number of rounds before the block."""
    points: Points | None
    """The examples; None once no journal needs them, so that their memory can be used again."""
    labels: Floats
    weights: list[float] | None
    scores: Floats
    """f(x) of each round before its update, until they are counted."""
    updates: int = 0
    """Updates in all loops."""
    margin_updates: int = 0
    answered: Floats | None = None
    """The scores to count instead, if the labels came late."""


class Journal:
    """What restores a player after a block that failed: a state, and the blocks learned since.

    A copy of the state before each block would be slow. One is made when learning has taken one
    second, and 300 times as long as the last copy, or when the blocks need too much memory. So
    copies take less than 1 % of the time, none in short streams, and learning the blocks again
    takes as long as that at most. (Both are looked at after 64 rounds or more, so there may be a
    few single rows in addition.) Only if the memory decides, as with 4,000 dense columns, and S has
    more than 1,000 examples, copies take a few per cent. When the state is copied has no effect on
    any result.
    """

    max_rounds = 2**15
    max_numbers = 2**23
    """Numbers in the examples of the blocks (64 MB): with 2**20, copies took 3 % of the time."""
    least_seconds = 1.0

    def __init__(self, loops: Sequence[Loop], rounds: int) -> None:
        begun = time.perf_counter()
        states = [loop.state_dict() for loop in loops]
        self.states = list(map(copy.deepcopy, states))
        self.first = rounds
        self.blocks: list[Block] = []
        self._numbers = 0
        # the round from which to ask `is_over`: asking before each single row would be slow
        self.ask_from = rounds + ASK_EVERY
        now = time.perf_counter()
        seconds = now - begun
        self._lasts_until = now + max(self.least_seconds, 300 * seconds)

    def add(self, block: Block, points: Points) -> None:
        """Note a block that was learned from these points."""
        self.blocks.append(block)
        self._numbers += points.stored

    def end(self) -> None:
        """Let go of the examples. The blocks themselves may be waiting to be counted."""
        for block in self.blocks:
            block.points = None

    def is_over(self, rounds: int) -> bool:
        """Whether another journal should begin, after `rounds` rounds."""
        self.ask_from = rounds + ASK_EVERY
        if rounds - self.first >= self.max_rounds:
            return True
        if self._numbers >= self.max_numbers:
            return True
        return time.perf_counter() >= self._lasts_until
