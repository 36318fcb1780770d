"""arow: restarts, blocks, and a covariance that stays one."""

import numpy as np
import pytest

from ahpatron_cli.core import Arow, Gaussian, Linear, Player
from ahpatron_cli.core.learners.arow import SecondOrder
from reference import kernels as formulas
from reference.span_twins import arow
from support.matrices import full
from support.streams import compress, make_stream


def flipped(rounds: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Labels that turn into their opposites half-way."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rounds, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    y[rounds // 2 :] *= -1
    return X, y


def second_order(player: Player) -> SecondOrder:
    assert isinstance(player.f, SecondOrder)
    return player.f


@pytest.mark.parametrize("block", [1, 7, 64, 256])
def test_a_restart_is_counted_and_named_and_no_block_shows(block: int) -> None:
    X, y = flipped()
    trace = arow(X.tolist(), y.astype(int).tolist(), formulas.gaussian(0.7), budget=20)
    player = Player(Arow(budget=20), Gaussian(sigma=0.7), block=block)
    scores = player.feed(X, y)
    np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
    assert trace.restarts
    assert player.learner.statistics() == {"restarts": len(trace.restarts)}
    assert player.tally.mistakes == trace.mistakes
    assert player.tally.updates == trace.updates
    (warning,) = player.warnings()
    assert f"in round {trace.restarts[0] + 1}" in warning


def test_without_an_alarm_there_is_no_restart() -> None:
    player = Player(Arow(budget=20, alarm=np.inf), Gaussian(sigma=0.7))
    player.feed(*flipped())
    assert player.learner.statistics() == {"restarts": 0}


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((400, 3)),
        np.tile(make_stream(seed=2, rounds=10, features=3).X, (40, 1)),
        1e-9 * make_stream(seed=2, rounds=400, features=3).X,
        1e8 + make_stream(seed=2, rounds=400, features=3).X,
        1e150 * make_stream(seed=2, rounds=400, features=3).X,
    ],
    ids=["zeros", "duplicates", "all alike", "far out", "huge"],
)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(), Linear()], ids=["gaussian", "linear"])
def test_degenerate_rows(rows: np.ndarray, sparse: bool, kernel: Gaussian | Linear) -> None:
    """Every f(x) is finite, S keeps to its budget, and C stays positive semidefinite."""
    labels = np.random.default_rng(1).choice([-1.0, 1.0], len(rows))
    player = Player(Arow(budget=30), kernel)
    scores = player.feed(compress(rows) if sparse else rows, labels)
    f = second_order(player)
    assert np.isfinite(scores).all()
    assert f.size <= 30
    assert not f.mended
    C = full(f.C)
    largest = np.abs(C).max(initial=0.0)
    assert np.linalg.eigvalsh(C).min(initial=0.0) >= -1e-12 * largest


def test_a_covariance_that_lost_its_digits_is_repaired_and_reported() -> None:
    stream = make_stream(seed=5, rounds=320, features=3)  # whole blocks
    player = Player(Arow(budget=30), Gaussian())
    player.feed(stream.X, stream.y)
    f = second_order(player)
    f.C.settle()
    f.C.A[0, 0] = -1.0  # as if rounding had done it
    f._repair()
    assert np.linalg.eigvalsh(full(f.C)).min() > 0
    scores = player.feed(stream.X, stream.y)
    assert np.isfinite(scores).all()
    assert f.mended == 1
    assert any("repaired" in text for text in player.warnings())
