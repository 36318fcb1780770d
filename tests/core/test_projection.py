"""Projectron, Projectron++ and POMDR beyond the laws: limits, horizons, degenerate data."""

import math

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian, Linear, Player, play
from ahpatron_cli.core.errors import LimitReachedError, ParameterError
from ahpatron_cli.core.learners import POMDR, Projectron, ProjectronPlusPlus
from support.cases import PROJECTING, Case
from support.streams import compress, make_stream


@pytest.mark.parametrize("case", PROJECTING, ids=str)
@pytest.mark.parametrize("kernel", [Gaussian(), Linear()], ids=lambda kernel: kernel.name)
def test_rows_that_are_all_zero(case: Case, kernel: Gaussian | Linear) -> None:
    """One example spans them all; with the linear kernel, for which κ(0, 0) = 0, not even one."""
    y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    player = play(case.learner(), np.zeros((200, 3)), y, kernel)
    assert math.isfinite(player.f.norm)
    assert player.f.size <= 1 or case.name == "pomdr"


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


def test_points_in_a_row_cost_digits_and_that_is_said() -> None:
    X = np.linspace(0, 3, 400)[:, None]
    y = np.sign(np.sin(9 * X[:, 0]) + 0.01)
    player = play(ProjectronPlusPlus(tolerance=0.001, rule="full"), X, y, Gaussian(sigma=0.7))
    assert "nearly singular" in " ".join(player.learner.warnings(player.f))
    assert math.isfinite(player.f.norm)
    well = play(Projectron(), X, y, Gaussian(sigma=0.7))
    assert well.learner.warnings(well.f) == []


def test_pomdr_must_know_the_number_of_rounds() -> None:
    with pytest.raises(ParameterError, match="horizon must be given") as refusal:
        Player(POMDR())
    assert (refusal.value.name, refusal.value.kind) == ("horizon", "missing")
    assert Player(POMDR(), horizon=70).learner.params()["horizon"] == 70
    assert Player(POMDR(horizon=50), horizon=70).learner.params()["horizon"] == 50


def test_pomdr_on_a_stream_that_grows_wider() -> None:
    stream = make_stream(seed=8, rounds=256, features=6)
    X = stream.X.copy()
    X[:64, 2:] = 0.0
    X[64:128, 4:] = 0.0
    whole = Player(POMDR(budget=20, horizon=256)).feed(X, stream.y)
    player = Player(POMDR(budget=20, horizon=256))
    parts = [X[:64, :2], X[64:128, :4], X[128:192], compress(X[192:])]
    scores = [player.feed(p, stream.y[64 * i : 64 * i + 64]) for i, p in enumerate(parts)]
    np.testing.assert_allclose(np.concatenate(scores), whole, rtol=1e-7, atol=1e-9)
