"""K^{-1} of S while examples join and leave: equal to NumPy's, never inverted at rounding level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ahpatron_cli.core import AvpOgs, Expansion, Gaussian, Kernel, Learner, Player, play
from ahpatron_cli.core.errors import LimitReachedError, ParameterError
from ahpatron_cli.core.numerics import DRIFT, SPAN_ERROR
from ahpatron_cli.core.span import PrunedExpansion, SpanExpansion
from ahpatron_cli.testing import check_learner
from support.streams import full, make_stream

KERNEL = Gaussian(sigma=0.7)


def gram_of(rows: np.ndarray) -> np.ndarray:
    points = KERNEL.points(rows)
    return KERNEL.between(points, points)


def grown(
    rows: np.ndarray, tolerance: float, *, gram: bool = False
) -> tuple[SpanExpansion, list[int]]:
    """An expansion that every row joined whose δ² is above the tolerance; which rows did."""
    f = SpanExpansion(KERNEL, gram=gram)
    joined = list[int]()
    points = KERNEL.points(rows)
    for start in range(0, len(rows), 64):
        f.open(points.slice(start, min(start + 64, len(rows))))
        for t in range(f.m):
            f.t = t
            d, residual = f.projection()
            if residual > tolerance:
                f.add_example(1.0, d, residual)
                joined.append(start + f.t)
        f.close()
    return f, joined


@pytest.mark.parametrize("tolerance", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("shuffled", [False, True])
def test_points_on_a_line_do_not_spoil_it(tolerance: float, shuffled: bool) -> None:
    """The worst case: neighbours in order, each nearly in the span of those before."""
    rows = np.linspace(0, 3, 200)[:, None]
    rows = np.random.default_rng(0).permutation(rows) if shuffled else rows
    f, joined = grown(rows, tolerance, gram=tolerance < 1e-2)
    gram = gram_of(rows)
    K = gram[np.ix_(joined, joined)]
    Q = full(f.Q)
    assert np.abs(K @ Q - np.eye(len(K))).max() < 1e-3
    doubt = max(tolerance, SPAN_ERROR * Q.diagonal().max())
    for k in gram[joined].T:  # every example, in or out, is explained within the tolerance
        d = Q @ k
        assert 1 - 2 * d @ k + d @ K @ d <= 1.1 * doubt


@pytest.mark.parametrize("damage", [1e-3, np.nan, np.inf])
def test_a_damaged_inverse_is_computed_from_scratch(damage: float) -> None:
    rows = make_stream(seed=4, rounds=400, features=6).X
    f, _ = grown(rows[:120], 0.09)
    f.Q.settle()
    f.Q.A[1, 0] += damage
    f._joined = f.probe_every  # the next block ends with a comparison
    with np.errstate(invalid="ignore"):
        f.open(KERNEL.points(rows).slice(120, 121))
        f.close()
    assert f.points is not None
    K = KERNEL.between(f.points, f.points)
    assert np.abs(K @ full(f.Q) - np.eye(len(K))).max() < DRIFT
    assert f.drift < DRIFT


@pytest.mark.parametrize("block", [1, 7, 64])
def test_the_inverse_is_right_while_examples_join_and_leave(block: int) -> None:
    """d and δ² of the next example, and the projection of the one that leaves."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 4))
    gram = gram_of(rows)
    points = KERNEL.points(rows)
    f = PrunedExpansion(KERNEL, in_span=1e-2)
    members = list[int]()
    for start in range(0, 300, block):
        f.open(points.slice(start, min(start + block, 300)))
        for t in range(f.m):
            f.t = t
            new = start + f.t
            column = gram[members, new]
            K = gram[np.ix_(members, members)]
            expected = np.linalg.solve(K, column) if members else np.empty(0)
            d, residual = f.projection()
            np.testing.assert_allclose(d[f.support], expected, atol=1e-8)
            assert residual == pytest.approx(1.0 - column @ expected, abs=1e-9)
            if residual > 1e-2:
                f.add_example(1.0, d, residual)
                members.append(new)
            if len(members) > 40:
                age = int(rng.integers(len(members)))
                gone = members.pop(age)
                column = f.support.item(age)
                expected = np.linalg.solve(gram[np.ix_(members, members)], gram[members, gone])
                Expansion.drop(f, column)
                np.testing.assert_allclose(f.Q.leave(column)[f.support], expected, atol=1e-8)
            diagonal = np.linalg.inv(gram[np.ix_(members, members)]).diagonal()
            np.testing.assert_allclose(f.Q.diagonal()[f.support], diagonal, rtol=1e-7)
        f.close()
    assert f.size == len(members) == 40


@dataclass
class FullSpan(Learner):
    """Adds examples to a span of at most four; then, on mistakes, the oldest goes."""

    name = title = "full-span"
    state_fields = ("dropped",)
    dropped = 0

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> SpanExpansion:
        return SpanExpansion(kernel, limit=4)

    def update(self, f: SpanExpansion, y: float, margin: float) -> None:
        if f.spans:
            d, residual = f.projection()
            if residual > 0.1:
                f.add_example(y, d, residual)
            else:
                f.add_projection(y, d, residual)
            return
        if f.size == 4:
            f.drop(f.oldest)
            self.dropped += 1
        f.add(y)


def test_an_inverse_that_was_given_up_is_not_kept_again_after_a_removal() -> None:
    """Q is no longer that of S: whether it is kept is not decided by |S|."""
    stream = make_stream(seed=3, rounds=200, features=2)
    player = Player(FullSpan(), Gaussian(sigma=0.7))
    player.feed(stream.X, stream.y)
    assert player.learner.dropped > 10  # type: ignore[attr-defined]
    assert player.f.size == 4
    assert not player.f.spans
    check_learner(FullSpan)


def test_avp_ogs_finds_its_tolerance_or_says_what_it_lacks() -> None:
    assert Player(AvpOgs(), KERNEL, horizon=400).learner.params()["tolerance"] == 0.25
    assert Player(AvpOgs(horizon=200), KERNEL, horizon=400).learner.params()["tolerance"] == 0.5
    assert Player(AvpOgs(tolerance=0.1), KERNEL).learner.params()["tolerance"] == 0.1
    with pytest.raises(ParameterError, match="tolerance or horizon must be given"):
        Player(AvpOgs(), KERNEL)


def test_avp_ogs_keeps_one_example_of_a_stream_of_100_rounds() -> None:
    stream = make_stream(seed=3, rounds=100, features=3)
    player = play(AvpOgs(), stream.X, stream.y, KERNEL)
    assert player.f.size == 1


def test_avp_ogs_ends_before_s_is_larger_than_its_limit() -> None:
    stream = make_stream(seed=3, rounds=300, features=3)
    with pytest.raises(LimitReachedError, match="max_support=5"):
        play(AvpOgs(tolerance=0.001, max_support=5), stream.X, stream.y, KERNEL)
