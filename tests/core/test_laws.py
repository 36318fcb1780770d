"""Laws that every registered learner obeys. A learner added to the registry gets them for free."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahpatron_cli.core import KERNELS, REGISTRY, Gaussian, Kernel, Player
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion
from reference import kernels as formulas
from support.cases import CASES, ONLY_GAUSSIAN, TWINS, Case
from support.streams import Example, compress, make_stream, streams

KERNEL_PAIRS = {
    "gaussian": (KERNELS["gaussian"](sigma=0.7), formulas.gaussian(0.7)),
    "laplacian": (KERNELS["laplacian"](sigma=1.3), formulas.laplacian(1.3)),
    "polynomial": (KERNELS["polynomial"](degree=3), formulas.polynomial(3, 1.0)),
    "linear": (KERNELS["linear"](), formulas.linear()),
}

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def scores_of(case: Case, stream: Example, kernel: Kernel, block: int = 64) -> np.ndarray:
    return Player(case.learner(), kernel, block=block).feed(stream.X, stream.y)


def test_every_learner_has_a_twin_and_a_case() -> None:
    assert set(TWINS) == set(REGISTRY) == {case.name for case in CASES}


@every_case
@settings(max_examples=25, deadline=None)
@given(stream=streams())
def test_engine_equals_twin(case: Case, stream: Example) -> None:
    kernel, formula = KERNEL_PAIRS["gaussian"]
    player = Player(case.learner(), kernel, block=16)
    scores = player.feed(stream.X, stream.y)
    trace = case.twin(stream.rows, stream.labels, formula)
    np.testing.assert_allclose(scores, trace.scores, rtol=1e-7, atol=1e-9)
    tally = player.tally
    assert tally.mistakes == trace.mistakes
    assert tally.failures == trace.failures
    assert tally.updates == trace.updates
    assert tally.margin_updates == trace.margin_updates
    assert player.f.size in (None, len(trace.points))
    if isinstance(player.f, Expansion):
        assert player.f.size == len(trace.points)
        np.testing.assert_allclose(player.f.coefficients, trace.coefficients, rtol=1e-7, atol=1e-9)
    else:
        assert player.f.norm == pytest.approx(trace.norms[-1], rel=1e-7, abs=1e-9)
    found = player.learner.statistics()
    assert found.get("halvings", trace.halvings) == trace.halvings
    if found.get("zeta") is not None:
        U = player.learner.params()["radius"]
        zeta = sum(trace.gaps) / (U * trace.halvings)
        assert found["zeta"] == pytest.approx(zeta, rel=1e-6, abs=1e-6)


@every_case
@pytest.mark.parametrize("kernel_name", [name for name in KERNEL_PAIRS if name != "gaussian"])
def test_engine_equals_twin_with_every_kernel(case: Case, kernel_name: str) -> None:
    kernel, formula = KERNEL_PAIRS[kernel_name]
    if case.name in ONLY_GAUSSIAN:
        with pytest.raises(ParameterError, match="gaussian kernel only"):
            Player(case.learner(), kernel)
        return
    stream = make_stream(seed=5, rounds=70, features=3)
    stream.X[17] = 0.0  # κ(0, 0) = 0 for the linear kernel
    trace = case.twin(stream.rows, stream.labels, formula)
    # Few features and a linear kernel give tiny f(x); what matters is that predictions agree.
    np.testing.assert_allclose(scores_of(case, stream, kernel), trace.scores, rtol=1e-6, atol=1e-7)


@every_case
@settings(max_examples=15, deadline=None)
@given(stream=streams(max_rounds=150), block=st.sampled_from([1, 2, 7, 33, 256]))
def test_block_size_never_matters(case: Case, stream: Example, block: int) -> None:
    expected = scores_of(case, stream, Gaussian(sigma=0.7))
    np.testing.assert_allclose(
        scores_of(case, stream, Gaussian(sigma=0.7), block), expected, rtol=1e-7, atol=1e-9
    )


@every_case
@settings(max_examples=15, deadline=None)
@given(stream=streams(max_rounds=150), data=st.data())
def test_no_round_sees_a_later_one(case: Case, stream: Example, data: st.DataObject) -> None:
    """Altering round t, label or features, changes nothing that was predicted before it."""
    t = data.draw(st.integers(0, len(stream.y) - 1))
    before = scores_of(case, stream, Gaussian())
    X, y = stream.X.copy(), stream.y.copy()
    y[t] = -y[t]
    flipped = scores_of(case, Example(X, y), Gaussian())
    np.testing.assert_allclose(flipped[: t + 1], before[: t + 1], rtol=1e-9, atol=1e-12)
    X[t:] = 2.5 - X[t:]
    altered = scores_of(case, Example(X, y), Gaussian())
    np.testing.assert_allclose(altered[:t], before[:t], rtol=1e-7, atol=1e-9)


@every_case
@settings(max_examples=15, deadline=None)
@given(stream=streams(max_rounds=200))
def test_budget_and_radius_hold(case: Case, stream: Example) -> None:
    player = Player(case.learner(), Gaussian(sigma=0.7), block=8)
    for t in range(0, len(stream.y), 8):
        player.feed(stream.X[t : t + 8], stream.y[t : t + 8])
        learner = player.learner
        budget = getattr(learner, "budget", len(stream.y))
        assert (player.f.size or 0) <= (learner.most_kept or budget)
        assert player.f.norm <= getattr(learner, "radius", np.inf) * (1 + 1e-12)


@every_case
@settings(max_examples=15, deadline=None)
@given(stream=streams(max_rounds=120))
def test_sparse_equals_dense(case: Case, stream: Example) -> None:
    X = np.where(np.abs(stream.X) < 0.5, 0.0, stream.X)
    dense = Player(case.learner(), Gaussian(sigma=0.7)).feed(X, stream.y)
    sparse = Player(case.learner(), Gaussian(sigma=0.7)).feed(compress(X), stream.y)
    np.testing.assert_allclose(sparse, dense, rtol=1e-7, atol=1e-9)


@every_case
def test_pieces_of_whole_blocks_give_the_same_bits(case: Case) -> None:
    stream = make_stream(seed=3, rounds=500, features=3)
    whole = Player(case.learner(), Gaussian()).feed(stream.X, stream.y)
    player = Player(case.learner(), Gaussian())
    cuts = [0, 64, 256, 320, 500]
    pieces = [
        player.feed(stream.X[start:stop], stream.y[start:stop]) for start, stop in pairwise(cuts)
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


@every_case
def test_tracked_norm_is_the_norm(case: Case) -> None:
    stream = make_stream(seed=4, rounds=300, features=2)
    player = Player(case.learner(), Gaussian(sigma=0.7))
    player.feed(stream.X, stream.y)
    f = player.f
    if not isinstance(f, Expansion):
        return  # ‖w‖ is not tracked but computed; test_engine_equals_twin compares it
    assert f.points is not None
    gram = player.kernel.between(f.points, f.points)
    exact = np.sqrt(f.coefficients @ gram @ f.coefficients)
    assert f.norm == pytest.approx(exact, rel=1e-9)
    assert f.norm_drift < 1e-9
