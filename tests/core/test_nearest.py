"""The quarter that goes by `selection=nearest`."""

import numpy as np
import pytest

from ahpatron_cli.core import Ahpatron, Gaussian, Player
from ahpatron_cli.core.budget import SELECT
from support.streams import make_stream


def choose_nearest(gram: np.ndarray, a: np.ndarray) -> np.ndarray:
    return SELECT["nearest"](gram, a, gram @ a, 1.0)


def gram(X: np.ndarray) -> np.ndarray:
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / 2))


def test_of_duplicates_the_younger_goes_and_the_older_stays_for_it() -> None:
    X = np.array([[0.0], [9.0], [0.0], [30.0], [9.0], [60.0], [0.0], [90.0]])
    np.testing.assert_array_equal(choose_nearest(gram(X), np.ones(8)), [0, 1, 2, 3, 5, 7])
    small = np.where(np.arange(8) == 3, 1e-3, 1.0)  # alone, but next to nothing; others are exact
    np.testing.assert_array_equal(choose_nearest(gram(X), small), [0, 1, 2, 3, 5, 7])


def test_rounding_does_not_choose_where_every_example_has_a_duplicate() -> None:
    """All losses are 0 but for the last digits of κ, which differ from CPU to CPU."""
    rng = np.random.default_rng(0)
    exact = gram(np.tile(rng.normal(size=(20, 2)), (2, 1)))
    a = rng.normal(size=40)
    for _ in range(5):
        noise = np.triu(rng.integers(-2, 3, size=(40, 40)), 1) * 2.0**-53
        noisy = np.minimum(exact * (1 + noise + noise.T), 1.0)
        np.testing.assert_array_equal(choose_nearest(noisy, a), np.arange(30))


def test_where_none_stands_in_for_another_the_smallest_go() -> None:
    X = 50.0 * np.arange(8)[:, None]
    a = np.array([3.0, -1.0, 2.0, 5.0, -4.0, 1.0, 6.0, -7.0])
    np.testing.assert_array_equal(choose_nearest(gram(X), a), [0, 2, 3, 4, 6, 7])


def test_whoever_stands_in_for_another_stays() -> None:
    """All are nearest to the middle one, which has the smallest coefficient."""
    X = np.vstack([np.zeros(7), 0.4 * np.eye(7)])
    a = np.array([0.01, 1, 2, 3, 4, 5, 6, 7])
    assert 0 not in choose_nearest(gram(X), a)  # its own loss is the least: it goes first
    a[0] = 1.5
    kept = choose_nearest(gram(X), a)
    assert 0 in kept
    assert len(kept) == 6


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 150])
def test_a_quarter_goes_and_at_least_one(size: int) -> None:
    rng = np.random.default_rng(size)
    kept = choose_nearest(gram(rng.normal(size=(size, 3))), rng.normal(size=size))
    assert len(kept) == size - max(size // 4, 1)
    assert (np.diff(kept) > 0).all()
    assert len(choose_nearest(np.zeros((size, size)), np.zeros(size))) == len(kept)


def test_it_loses_less_of_f_than_halves_do() -> None:
    """ζ̂, the mean part of f that is lost each time, on one stream."""
    stream = make_stream(seed=8, rounds=2000, features=2)

    def lost(selection: str) -> float:
        player = Player(Ahpatron(budget=40, selection=selection), Gaussian(sigma=0.7))
        player.feed(stream.X, stream.y)
        found = player.learner.statistics()["zeta"]
        assert found is not None
        return found

    assert lost("nearest") < lost("greedy") < lost("magnitude")
