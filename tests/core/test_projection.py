"""Projectron, Projectron++ and POMDR beyond the laws: limits, horizons, degenerate data."""

import numpy as np
import pytest

from ahpatron_cli.core import Player, play
from ahpatron_cli.core.errors import LimitReachedError, ParameterError
from ahpatron_cli.core.learners import POMDR, Projectron, ProjectronPlusPlus
from support.streams import make_stream


@pytest.mark.parametrize("learner", [Projectron, ProjectronPlusPlus])
def test_max_support_ends_the_run_and_says_so(learner: type[Projectron]) -> None:
    stream = make_stream(seed=1, rounds=300, features=4)
    size = play(learner(), stream.X, stream.y).f.size
    assert size > 20
    assert play(learner(max_support=size), stream.X, stream.y).f.size == size
    with pytest.raises(LimitReachedError, match=f"max_support={size - 1}") as refusal:
        play(learner(max_support=size - 1), stream.X, stream.y)
    assert refusal.value.name == "max_support"


def test_rounds_that_change_nothing_are_no_updates() -> None:
    """A margin below 1, far from the span: no step is worth it."""
    X = np.array([[0.0], [1.0], [1.0]])
    player = play(ProjectronPlusPlus(tolerance=0.1), X, np.ones(3))
    assert player.tally.updates == 1
    assert player.tally.margin_updates == 0
    assert play(ProjectronPlusPlus(tolerance=0.1, rule="full"), X, np.ones(3)).tally.updates == 2


def test_pomdr_must_know_the_number_of_rounds() -> None:
    with pytest.raises(ParameterError, match="horizon must be given") as refusal:
        Player(POMDR())
    assert (refusal.value.name, refusal.value.kind) == ("horizon", "missing")
    assert Player(POMDR(), horizon=70).learner.params()["horizon"] == 70
    assert Player(POMDR(horizon=50), horizon=70).learner.params()["horizon"] == 50
