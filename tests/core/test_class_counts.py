"""True and false positives and negatives, and the baseline, against counting one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import Ahpatron, Perceptron, Player
from ahpatron_cli.core.engine import Tally
from support.streams import Example, streams


def counted(scores: list[float], labels: list[int]) -> tuple[int, int, int]:
    """Positives, false positives, and mistakes of the more frequent label so far."""
    positives = false_positives = baseline = 0
    seen = {1: 0, -1: 0}
    for score, y in zip(scores, labels, strict=True):
        baseline += (1 if seen[1] >= seen[-1] else -1) != y
        seen[y] += 1
        positives += y == 1
        false_positives += score >= 0 and y == -1
    return positives, false_positives, baseline


def counts(tally: Tally) -> tuple[int, int, int]:
    confusion = tally.confusion
    return int(confusion[1].sum()), int(confusion[0, 1]), tally.baseline_mistakes


@given(streams(), st.sampled_from([Ahpatron(budget=4), Perceptron()]), st.integers(1, 80))
def test_counts_are_those_of_a_loop_however_the_stream_is_cut(
    example: Example, learner: Ahpatron, piece: int
) -> None:
    player = Player(learner)
    scores = [
        player.feed(example.X[start : start + piece], example.y[start : start + piece])
        for start in range(0, len(example.y), piece)
    ]
    assert counts(player.tally) == counted(np.concatenate(scores).tolist(), example.labels)


def test_the_first_round_of_a_stream_is_no_near_tie() -> None:
    player = Player(Perceptron())
    player.feed([[0.0]], [-1.0])
    assert player.tally.near_ties == 0
    player.feed([[0.0]], [1.0])  # f(x) = -1, and then f = 0
    player.feed([[0.0]], [1.0])
    assert player.tally.near_ties == 1
