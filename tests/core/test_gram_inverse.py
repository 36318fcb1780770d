"""K^{-1} of a growing set: equal to numpy's, never inverted at rounding level, mended when bad."""

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian
from ahpatron_cli.core.span import DRIFT, IN_SPAN, PROBE_EVERY, Inverse, Slots
from support.streams import make_stream


def gram_of(rows: np.ndarray, sigma: float = 0.7) -> np.ndarray:
    kernel = Gaussian(sigma=sigma)
    points = kernel.points(rows)
    return kernel.between(points, points)


def grown(gram: np.ndarray, tolerance: float = 0.0) -> tuple[Inverse, list[int]]:
    """The inverse after every row further than `tolerance` from the span has joined; which did."""
    inverse, joined = Inverse(), []
    for i in range(len(gram)):
        d, squared = inverse.project(gram[joined, i], gram[i, i], gram[np.ix_(joined, joined)])
        if not inverse.holds(squared, tolerance):
            joined.append(i)
            inverse.grow(d, squared, gram[np.ix_(joined, joined)])
    return inverse, joined


def dense(inverse: Inverse) -> np.ndarray:
    return np.array([inverse.times(unit) for unit in np.eye(inverse.size)])


@pytest.mark.parametrize("rounds", [1, 2, 10, 63, 64, 65, 300])
def test_growth_gives_the_inverse(rounds: int) -> None:
    gram = gram_of(make_stream(seed=1, rounds=rounds, features=4).X)
    inverse, joined = grown(gram, tolerance=0.1)
    exact = np.linalg.inv(gram[np.ix_(joined, joined)])
    np.testing.assert_allclose(dense(inverse), exact, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(dense(inverse), dense(inverse).T)
    assert inverse.refreshes == 0


def test_projection_is_the_nearest_point_of_the_span() -> None:
    gram = gram_of(make_stream(seed=2, rounds=41, features=3).X)
    inverse, joined = grown(gram[:40, :40], tolerance=0.2)
    K, k = gram[np.ix_(joined, joined)], gram[joined, 40]
    d, squared = inverse.project(k, 1.0, K)
    np.testing.assert_allclose(K @ d, k, atol=1e-10)
    assert squared == pytest.approx(1.0 - 2 * d @ k + d @ K @ d, rel=1e-8)
    for direction in np.random.default_rng(0).normal(size=(20, len(joined))):
        other = d + 0.01 * direction
        assert 1.0 - 2 * other @ k + other @ K @ other > squared


def test_an_empty_set_explains_nothing() -> None:
    d, squared = Inverse().project(np.empty(0), 1.0, np.empty((0, 0)))
    assert (len(d), squared) == (0, 1.0)


def test_duplicates_are_in_the_span() -> None:
    X = make_stream(seed=3, rounds=60, features=2).X
    gram = gram_of(np.concatenate([X, X[::-1]]))
    inverse, joined = grown(gram, tolerance=0.05)
    assert max(joined) < 60
    for i in joined:
        d, squared = inverse.project(gram[joined, i], 1.0, gram[np.ix_(joined, joined)])
        assert squared == 0.0
        np.testing.assert_allclose(d, np.array(joined) == i, atol=1e-8)


def test_nothing_is_inverted_at_rounding_level() -> None:
    """Points so close together that K is singular but for rounding: all but a few stay out."""
    X = np.linspace(0, 0.1, 200)[:, None]
    gram = gram_of(X)
    inverse, joined = grown(gram)
    assert 1 < len(joined) < 5
    np.testing.assert_allclose(
        gram[np.ix_(joined, joined)] @ dense(inverse), np.eye(len(joined)), atol=1e-5
    )
    with pytest.raises(ValueError, match="singular"):
        inverse.grow(np.zeros(len(joined)), IN_SPAN / 2, gram_of(X[: len(joined) + 1]))


@pytest.mark.parametrize("tolerance", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("shuffled", [False, True])
def test_points_on_a_line_do_not_spoil_it(tolerance: float, shuffled: bool) -> None:
    """The worst there is: neighbours in order, each nearly in the span of those before."""
    X = np.linspace(0, 3, 200)[:, None]
    gram = gram_of(np.random.default_rng(0).permutation(X) if shuffled else X)
    inverse, joined = grown(gram, tolerance)
    K = gram[np.ix_(joined, joined)]
    drift = np.abs(K @ dense(inverse) - np.eye(len(K))).max()
    assert drift <= max(DRIFT, 10 * inverse.drift)
    assert drift < 1e-3
    for k in gram[joined].T:  # every example, in or out, is explained within its δ
        d, squared = inverse.project(k, 1.0, K)
        assert 1 - 2 * d @ k + d @ K @ d == pytest.approx(squared, abs=1e-3)


def test_a_damaged_inverse_is_refreshed_at_the_next_probe() -> None:
    gram = gram_of(make_stream(seed=4, rounds=400, features=6).X)
    inverse, joined = grown(gram[:120, :120], tolerance=0.3)
    inverse._packed[17] += 1e-3
    assert inverse.refreshes == 0
    for i in range(120, 400):
        d, squared = inverse.project(gram[joined, i], 1.0, gram[np.ix_(joined, joined)])
        if squared > 0.3**2:
            joined.append(i)
            inverse.grow(d, squared, gram[np.ix_(joined, joined)])
        if inverse.size % PROBE_EVERY == 0:
            break
    assert inverse.refreshes == 1
    K = gram[np.ix_(joined, joined)]
    assert np.abs(K @ dense(inverse) - np.eye(len(K))).max() < DRIFT
    assert inverse.drift < DRIFT
    inverse.mend(K)
    assert inverse.refreshes == 1  # what has not drifted is left alone


@pytest.mark.parametrize("damage", [np.nan, np.inf])
def test_an_inverse_that_is_not_finite_is_refreshed(damage: float) -> None:
    gram = gram_of(make_stream(seed=4, rounds=30, features=6).X)
    inverse, joined = grown(gram, tolerance=0.3)
    inverse._packed[3] = damage
    K = gram[np.ix_(joined, joined)]
    with np.errstate(invalid="ignore"):
        inverse.mend(K)
    np.testing.assert_allclose(dense(inverse), np.linalg.inv(K), rtol=1e-8, atol=1e-8)


def test_a_refresh_of_a_singular_matrix_stays_finite_and_says_so() -> None:
    X = make_stream(seed=5, rounds=20, features=2).X
    gram = gram_of(np.concatenate([X, X]))
    inverse, _ = grown(gram[:20, :20])
    for i in range(20, 40):  # claim, falsely, that the duplicates are far from the span
        inverse.grow(np.zeros(i), 1.0, gram[: i + 1, : i + 1])
    inverse.mend(gram)
    assert inverse.refreshes == 1
    assert inverse.drift > DRIFT
    assert np.abs(dense(inverse)).max() < 1e12


def test_drift_stays_small_over_many_growths() -> None:
    gram = gram_of(make_stream(seed=6, rounds=600, features=5).X, sigma=1.0)
    inverse, joined = grown(gram, tolerance=0.1)
    assert len(joined) > 200
    K = gram[np.ix_(joined, joined)]
    assert np.abs(K @ dense(inverse) - np.eye(len(K))).max() < 10 * DRIFT


def test_slots_hold_the_inverse_while_examples_come_and_go() -> None:
    """By age: d and δ² of the next one, and the projection of the one that leaves."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(300, 4))
    gram = np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2))
    slots, kept = Slots(), list[int]()
    for new in range(len(points)):
        column = gram[kept, new]
        k, d, squared = slots.project(column, 1.0)
        wanted = np.linalg.solve(gram[np.ix_(kept, kept)], column) if kept else np.empty(0)
        np.testing.assert_allclose(d[slots.slots], wanted, atol=1e-8)
        assert squared == pytest.approx(1.0 - column @ wanted, abs=1e-9)
        if squared > 1e-2:
            slots.join(k, 1.0, d, squared)
            kept.append(new)
        if len(kept) > 40:
            age = int(rng.integers(len(kept)))
            gone = kept.pop(age)
            wanted = np.linalg.solve(gram[np.ix_(kept, kept)], gram[kept, gone])
            np.testing.assert_allclose(slots.leave(age), wanted, atol=1e-8)
    assert len(slots.slots) == len(kept) == 40
    assert slots.state()["room"] == 48  # slots are taken again


def test_changes_that_wait_count_as_those_that_were_added() -> None:
    rng = np.random.default_rng(4)
    gram = gram_of(rng.normal(size=(200, 4)), sigma=1.0)
    slots, kept = Slots(), list[int]()
    for new in range(len(gram)):
        k, d, squared = slots.project(gram[kept, new], 1.0)
        if squared > 1e-2:
            slots.join(k, 1.0, d, squared)
            kept.append(new)
        if len(kept) > 20:
            age = int(rng.integers(len(kept)))
            del kept[age]
            slots.leave(age)
        wanted = np.linalg.inv(gram[np.ix_(kept, kept)]).diagonal()
        np.testing.assert_allclose(slots.diagonal(), wanted, rtol=1e-8)
    assert slots._waiting > 0
    slots.settle()
    np.testing.assert_allclose(slots.diagonal(), wanted, rtol=1e-8)
    assert np.count_nonzero(slots._Q.diagonal()) == len(kept)


def test_slots_that_drifted_are_mended() -> None:
    slots = Slots()
    for number in range(PROBE_EVERY):
        if number == PROBE_EVERY - 1:
            slots._Q[0, 0] += 1e-6
        k, d, squared = slots.project(np.zeros(number), 1.0)
        slots.join(k, 1.0, d, squared)
    np.testing.assert_allclose(slots.diagonal(), 1.0, atol=1e-12)
