"""Counts of a player: rounds are counted when somebody looks, or when many of them wait."""

from __future__ import annotations

import copy

import numpy as np

from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.journal import Block
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.tally import Tally

WAITING_BLOCKS = 1024
"""Scores are counted after so many blocks,"""
WAITING_SCORES = 2**20
"""or after so many numbers."""
NO_SCORES: Floats = np.empty(0)
"""In place of the scores of blocks that were counted."""


class Counts:
    """Tally and link for probabilities of a player, and the blocks that wait to be counted.

    Rows that arrive one by one would take twice as long if each was counted by itself.

    Attributes
    ----------
    tally : Tally
        Counts over the rounds that do not wait.
    calibration : Calibration
        Link from scores to probabilities, which has the same rounds.
    waiting : list of Block
        Blocks that were learned and not counted, the oldest first.
    """

    def __init__(self, tally: Tally, calibration: Calibration) -> None:
        self.tally = tally
        self.calibration = calibration
        self.waiting: list[Block] = []

    def are_many(self, next_block: Block) -> bool:
        """Whether what waits should be counted before another block is learned."""
        count = len(self.waiting)
        return count >= WAITING_BLOCKS or count * next_block.scores.size >= WAITING_SCORES

    def count(self) -> None:
        """Count the rounds that wait, and give them to the link for probabilities."""
        if not self.waiting:
            return
        counted = self.waiting
        scores = np.concatenate([block.scores for block in counted])
        labels = np.concatenate([block.labels for block in counted])
        tally = copy.copy(self.tally)
        tally.count(scores, labels)
        tally.updates += sum(block.updates for block in counted)
        tally.margin_updates += sum(block.margin_updates for block in counted)
        link = copy.copy(self.calibration)
        link.add(scores, labels)
        # all at once: Ctrl-C comes before or after a call, and never leaves half of the counts
        vars(self).update(tally=tally, calibration=link, waiting=[])
        for block in counted:
            block.scores = NO_SCORES  # the journal, which may still have it, does not need them

    def fit(self) -> None:
        """Fit the link to all rounds that were counted."""
        link = copy.copy(self.calibration)
        link.fit()
        self.calibration = link

    def forget_from(self, rounds: int) -> None:
        """Let go of the blocks that wait and begin after `rounds` rounds or later: undone ones."""
        self.waiting = [block for block in self.waiting if block.first < rounds]

    def add_class(self) -> None:
        """Add a class to tally and link."""
        self.tally = self.tally.with_class()
        self.calibration = self.calibration.with_class()
