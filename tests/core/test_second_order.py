"""arow and metron: resets, blocks, and a covariance that stays one."""

from collections.abc import Callable

import numpy as np
import pytest

from ahpatron_cli.core import Arow, Gaussian, Metron, Player
from ahpatron_cli.core.learners.arow import SecondOrder
from reference import kernels as formulas
from reference.second_order import arow, metron
from reference.trace import Trace
from support.matrices import full
from support.streams import compress, make_stream

X = np.random.default_rng(3).normal(size=(600, 2))
FLIPPED = np.where((X[:, 0] * X[:, 1] > 0) == (np.arange(600) < 300), 1.0, -1.0)


@pytest.mark.parametrize(("learner", "reference"), [(Arow, arow), (Metron, metron)])
def test_a_reset_is_counted_and_named_and_no_block_shows(
    learner: type[Arow], reference: Callable[..., Trace]
) -> None:
    kernel = formulas.gaussian(0.7)
    trace = reference(X.tolist(), FLIPPED.astype(int).tolist(), kernel, budget=20)
    assert trace.restarts
    for block in (1, 7, 64, 256):
        for rows in (X, compress(X)):
            player = Player(learner(budget=20), Gaussian(sigma=0.7), block=block)
            scores = player.feed(rows, FLIPPED)
            np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
            assert player.statistics()["restarts"] == len(trace.restarts)
            assert player.tally.mistakes == trace.mistakes
            assert player.tally.updates == trace.updates
            (warning,) = player.warnings()
            assert f"in round {trace.restarts[-1] + 1}" in warning


def test_a_covariance_that_lost_its_digits_is_repaired() -> None:
    stream = make_stream(seed=5, rounds=320, features=3)  # whole blocks
    player = Player(Arow(budget=30), Gaussian())
    player.feed(stream.X, stream.y)
    f = player.f
    assert isinstance(f, SecondOrder)
    f.C.settle()
    f.C.A[0, 0] = -1.0  # as if rounding had done it
    f.repair()
    assert np.linalg.eigvalsh(full(f.C)).min() > 0
    scores = player.feed(stream.X, stream.y)
    assert np.isfinite(scores).all()
