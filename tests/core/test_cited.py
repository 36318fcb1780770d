"""What is proved, or plain by construction, of the learners that the paper cites."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import BSGD, REGISTRY, Gaussian, Player
from ahpatron_cli.core.expansion import Expansion
from support.effort import examples
from support.streams import Example, make_stream, streams

KERNEL = Gaussian(sigma=0.7)


@pytest.mark.parametrize("maintenance", ["remove", "project", "merge"])
@examples(15)
@given(stream=streams(), budget=st.integers(1, 12), strength=st.floats(0.01, 1))
def test_bsgd_stays_in_the_ball_of_pegasos(
    maintenance: str, stream: Example, budget: int, strength: float
) -> None:
    """‖f‖ <= 1/λ: steps are 1/(λt), f shrinks by 1 - 1/t, and no maintenance lengthens f."""
    learner = BSGD(budget=budget, regularisation=strength, maintenance=maintenance)
    player = Player(learner, KERNEL)
    for row, y in zip(stream.X, stream.y, strict=True):
        player.feed(row[None], np.array([y]))
        if maintenance == "project" or player.f.size <= 1:
            assert player.f.norm <= (1 + 1e-9) / strength
    assert isinstance(player.f, Expansion)
    if maintenance != "project":
        assert np.abs(player.f.coefficients).sum() <= (1 + 1e-9) / strength


@examples(20)
@given(seed=st.integers(0, 1000), times=st.integers(1, 6))
def test_krls_is_least_squares_where_all_rows_join(seed: int, times: int) -> None:
    """With the tolerance near 0: f is the mean of the labels at every row that came repeatedly."""
    rng = np.random.default_rng(seed)
    X = make_stream(seed=seed, rounds=12, features=6).X
    labels = rng.choice([-1.0, 1.0], (times, len(X)))
    player = Player(REGISTRY["krls"](tolerance=1e-6), KERNEL)
    player.feed(np.tile(X, (times, 1)), labels.ravel())
    assert player.f.size == len(X)
    np.testing.assert_allclose(player.scores(X), labels.mean(axis=0), atol=1e-6)
