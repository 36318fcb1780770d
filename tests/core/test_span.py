"""K^{-1} of S while examples join and leave: equal to NumPy's, never inverted at rounding level."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from ahpatron_cli.core import Expansion, Gaussian, Player, Projectron, play
from ahpatron_cli.core.numerics import DRIFT, SLACK, SPAN_ERROR
from ahpatron_cli.core.span import PrunedExpansion, SpanExpansion, Symmetric
from support.matrices import full
from support.streams import make_stream

KERNEL = Gaussian(sigma=0.7)


def gram_of(rows: np.ndarray) -> np.ndarray:
    points = KERNEL.points(rows)
    return KERNEL.between(points, points)


def grown(
    rows: np.ndarray, tolerance: float, *, gram: bool = False, block: int = 64
) -> tuple[SpanExpansion, list[int]]:
    """An expansion that every row joined whose δ² is above the tolerance; which rows did."""
    f, joined, points = SpanExpansion(KERNEL, gram=gram), list[int](), KERNEL.points(rows)
    for start in range(0, len(rows), block):
        f.open(points.slice(start, min(start + block, len(rows))))
        for t in range(f.m):
            f.t = t
            d, squared = f.projection()
            if squared > tolerance:
                f.join(1.0, d, squared)
                joined.append(start + f.t)
        f.close()
    return f, joined


@pytest.mark.parametrize("block", [1, 7, 64, 256])
@pytest.mark.parametrize("rounds", [1, 2, 63, 65, 300])
def test_growth_gives_the_inverse(rounds: int, block: int) -> None:
    rows = make_stream(seed=1, rounds=rounds, features=4).X
    f, joined = grown(rows, 0.01, block=block)
    K = gram_of(rows)[np.ix_(joined, joined)]
    np.testing.assert_allclose(full(f.Q), np.linalg.inv(K), rtol=1e-8, atol=1e-8)
    assert f.drift == 0.0


def test_projection_is_the_nearest_point_of_the_span() -> None:
    rows = make_stream(seed=2, rounds=41, features=3).X
    gram = gram_of(rows)
    f, joined = grown(rows[:40], 0.04)
    f.open(KERNEL.points(rows).slice(40, 41))
    f.t = 0
    d, squared = f.projection()
    K, k, d = gram[np.ix_(joined, joined)], gram[joined, 40], d[: len(joined)]
    np.testing.assert_allclose(K @ d, k, atol=1e-10)
    assert squared == pytest.approx(1.0 - 2 * d @ k + d @ K @ d, rel=1e-8)
    for direction in np.random.default_rng(0).normal(size=(20, len(joined))):
        other = d + 0.01 * direction
        assert 1.0 - 2 * other @ k + other @ K @ other > squared


@pytest.mark.parametrize("gram", [False, True])
def test_duplicates_are_in_the_span(gram: bool) -> None:
    rows = make_stream(seed=3, rounds=60, features=2).X
    f, joined = grown(np.concatenate([rows, rows[::-1]]), 0.0025, gram=gram)
    assert max(joined) < 60
    f.open(KERNEL.points(rows[joined]))
    for t in range(f.m):
        f.t = t
        d, squared = f.projection()
        assert squared == 0.0
        np.testing.assert_allclose(d[: f.n], np.arange(f.n) == f.t, atol=1e-8)


def test_nothing_is_inverted_at_rounding_level() -> None:
    """Points so close together that K is singular up to rounding: all but a few stay out."""
    rows = np.linspace(0, 0.1, 200)[:, None]
    f, joined = grown(rows, SLACK, gram=True)
    assert 1 < len(joined) < 6
    product = gram_of(rows)[np.ix_(joined, joined)] @ full(f.Q)
    np.testing.assert_allclose(product, np.eye(len(joined)), atol=1e-4)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("shuffled", [False, True])
def test_points_on_a_line_do_not_spoil_it(tolerance: float, shuffled: bool) -> None:
    """The worst case: neighbours in order, each nearly in the span of those before."""
    rows = np.linspace(0, 3, 200)[:, None]
    rows = np.random.default_rng(0).permutation(rows) if shuffled else rows
    f, joined = grown(rows, tolerance, gram=tolerance < 1e-2)
    gram = gram_of(rows)
    K, Q = gram[np.ix_(joined, joined)], full(f.Q)
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


def test_the_inverse_of_a_singular_matrix_is_finite() -> None:
    rows = make_stream(seed=5, rounds=20, features=2).X
    matrix = Symmetric()
    matrix.set_inverse(gram_of(np.concatenate([rows, rows])))
    assert np.abs(full(matrix)).max() < 1e12


def test_a_set_that_is_nearly_singular_is_reported() -> None:
    rows = np.linspace(0, 3, 400)[:, None]
    y = np.sign(np.sin(9 * rows[:, 0]) + 0.01)
    player = play(Projectron(), rows, y, KERNEL)
    assert player.warnings() == []
    player.f.drift = 1e-3
    assert "nearly singular" in " ".join(player.warnings())


@pytest.mark.parametrize("block", [1, 7, 64])
def test_the_inverse_is_right_while_examples_join_and_leave(block: int) -> None:
    """d and δ² of the next example, and the projection of the one that leaves."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 4))
    gram, points = gram_of(rows), KERNEL.points(rows)
    f, members = PrunedExpansion(KERNEL, in_span=1e-2), list[int]()
    for start in range(0, 300, block):
        f.open(points.slice(start, min(start + block, 300)))
        for t in range(f.m):
            f.t = t
            new = start + f.t
            column, K = gram[members, new], gram[np.ix_(members, members)]
            expected = np.linalg.solve(K, column) if members else np.empty(0)
            d, squared = f.projection()
            np.testing.assert_allclose(d[f.support], expected, atol=1e-8)
            assert squared == pytest.approx(1.0 - column @ expected, abs=1e-9)
            if squared > 1e-2:
                f.join(1.0, d, squared)
                members.append(new)
            if len(members) > 40:
                age = int(rng.integers(len(members)))
                gone, column = members.pop(age), f.support.item(age)
                expected = np.linalg.solve(gram[np.ix_(members, members)], gram[members, gone])
                Expansion.drop(f, column)
                np.testing.assert_allclose(f.Q.leave(column)[f.support], expected, atol=1e-8)
            diagonal = np.linalg.inv(gram[np.ix_(members, members)]).diagonal()
            np.testing.assert_allclose(f.Q.diagonal()[f.support], diagonal, rtol=1e-7)
        f.close()
    assert f.size == len(members) == 40


def test_changes_that_wait_count_as_those_that_were_applied() -> None:
    stream = make_stream(seed=4, rounds=200, features=4)
    player = Player(Projectron(tolerance=0.3), KERNEL)
    player.feed(stream.X, stream.y)
    settled = copy.deepcopy(player)
    assert len(player.f.Q.s)
    settled.f.Q.settle()
    more = make_stream(seed=5, rounds=100, features=4)
    scores = player.feed(more.X, more.y)
    np.testing.assert_allclose(settled.feed(more.X, more.y), scores, rtol=1e-9, atol=1e-9)
