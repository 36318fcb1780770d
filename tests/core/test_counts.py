"""Rounds that wait to be counted: when that is done, and that they can be undone before."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.counts import WAITING_BLOCKS, Counts
from ahpatron_cli.core.journal import Block
from ahpatron_cli.core.tally import Tally


def block(first: int, scores: list[float], labels: list[float], updates: int = 0) -> Block:
    """A block that was learned."""
    return Block(
        first=first,
        points=None,
        labels=np.array(labels),
        weights=None,
        scores=np.array(scores),
        updates=updates,
    )


@pytest.fixture
def counts() -> Counts:
    return Counts(Tally.of(2), Calibration(2))


def test_blocks_wait_until_they_are_counted(counts: Counts) -> None:
    counts.waiting.append(block(0, [0.5, -0.5], [1.0, 1.0], updates=1))
    counts.waiting.append(block(2, [0.25], [-1.0], updates=1))
    assert counts.tally.rounds == 0
    counts.count()
    assert counts.waiting == []
    assert (counts.tally.rounds, counts.tally.mistakes, counts.tally.updates) == (3, 2, 2)


def test_the_link_for_probabilities_gets_the_rounds_that_are_counted(counts: Counts) -> None:
    counts.waiting.append(block(0, [0.5] * 300, [1.0] * 300))
    counts.count()
    assert not counts.calibration.is_fitted
    counts.fit()
    assert counts.calibration.is_fitted


def test_a_tally_that_was_read_does_not_change_later(counts: Counts) -> None:
    counts.waiting.append(block(0, [0.5], [1.0]))
    counts.count()
    before = counts.tally
    counts.waiting.append(block(1, [0.5], [1.0]))
    counts.count()
    assert before.rounds == 1


def test_blocks_that_are_undone_are_not_counted(counts: Counts) -> None:
    counts.waiting.append(block(0, [0.5], [1.0]))
    counts.waiting.append(block(1, [0.5], [1.0]))
    counts.forget_from(1)
    counts.count()
    assert counts.tally.rounds == 1


def test_an_interruption_while_counting_changes_no_count(
    counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    counts.waiting.append(block(0, [0.5], [1.0]))
    with monkeypatch.context() as patched:
        patched.setattr(Calibration, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            counts.count()
    assert counts.tally.rounds == 0
    counts.count()
    assert counts.tally.rounds == 1


def test_many_blocks_do_not_wait_any_longer(counts: Counts) -> None:
    one = block(0, [0.5], [1.0])
    counts.waiting.extend([one] * (WAITING_BLOCKS - 1))
    assert not counts.are_many(one)
    counts.waiting.append(one)
    assert counts.are_many(one)


def test_few_blocks_with_many_scores_do_not_wait_any_longer(counts: Counts) -> None:
    wide = block(0, [], [])
    wide.scores = np.zeros((64, 2**13))
    counts.waiting.append(wide)
    assert not counts.are_many(wide)
    counts.waiting.append(wide)
    assert counts.are_many(wide)
