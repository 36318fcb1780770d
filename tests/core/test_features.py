"""Hypotheses on explicit features: the maps approximate κ, and survive what streams do to them."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Gaussian, Learner, Linear, Player
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.linear import (
    FourierFeatures,
    LinearModel,
    Sketches,
    cos_sin_by_table,
    cos_sin_by_tangent,
)
from ahpatron_cli.core.rows import CsrRows, Floats, Integers
from support.streams import compress, make_stream

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("fogd", {"features": 30, "step": 0.37}),
    ("nogd", {"budget": 20, "step": 0.37}),
    ("skegd", {"budget": 20, "step": 0.37, "cycle": 10}),
]
every_setting = pytest.mark.parametrize(("name", "params"), SETTINGS)


def test_fourier_features_approximate_the_gaussian_kernel() -> None:
    kernel, X = Gaussian(sigma=0.8), make_stream(seed=1, rounds=40, features=3).X
    points = kernel.points(X)
    exact = kernel.between(points, points)
    z = FourierFeatures(40_000, np.random.default_rng(7))(points)
    # each entry is a mean of 40,000 cosines: its standard deviation is below 0.005
    assert np.abs(z @ z.T - exact).max() < 0.025
    np.testing.assert_allclose((z * z).sum(axis=1), 1.0, rtol=1e-12)
    draws = [FourierFeatures(50, np.random.default_rng(seed))(points) for seed in range(200)]
    assert np.abs(np.mean([z @ z.T for z in draws], axis=0) - exact).max() < 0.035


@pytest.mark.parametrize("compute", [cos_sin_by_tangent, cos_sin_by_table])
def test_cosines_and_sines_of_any_angle(compute: Callable[..., None]) -> None:
    rng = np.random.default_rng(0)
    angles = np.concatenate([rng.normal(0, size, 500) for size in (1e-9, 1.0, 100.0, 1e5)])
    angles = np.concatenate((angles, np.arange(-8, 9) * np.pi / 2)).reshape(1, -1)
    out = np.empty((1, 2 * angles.size))
    compute(angles.copy(), 0.5, out)
    expected = 0.5 * np.hstack((np.cos(angles), np.sin(angles)))
    np.testing.assert_allclose(out, expected, atol=1e-11)


@pytest.mark.parametrize("largest", [0.0, 1e-9, 0.1, 3.2, 50.0, 1e6])
@pytest.mark.parametrize("count", [1, 30, 40_000])  # all rows at once, or one at a time
def test_fourier_features_are_cosines_and_sines(largest: float, count: int) -> None:
    """As they are of angles that are known only up to their own rounding."""
    points = Gaussian().points(np.linspace(-largest, largest, 7)[:, None])
    features = FourierFeatures(count, np.random.default_rng(7))
    angles = points.coordinates @ drawn(features, np.arange(1))
    z = features(points) * np.sqrt(count)
    expected = np.hstack((np.cos(angles), np.sin(angles)))
    assert (np.abs(z - expected) <= 1e-15 + 4e-16 * np.abs(np.tile(angles, 2))).all()


def test_fourier_features_of_any_angle_have_length_one() -> None:
    """Even where the angle has no digits left behind the point."""
    points = Gaussian().points(np.array([[1e15], [-1e18], [1e30], [-1e150]]))
    z = FourierFeatures(30, np.random.default_rng(7))(points)
    np.testing.assert_allclose((z * z).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1e9, 1e12, 1e13, 1e14])
def test_fourier_features_far_from_the_origin_approximate_the_kernel(far: float) -> None:
    points = Gaussian().points(np.array([[far], [far + 1.0], [far + 2.0]]))
    z = FourierFeatures(20_000, np.random.default_rng(7))(points)
    np.testing.assert_allclose(z[0] @ z[1:].T, [np.exp(-0.5), np.exp(-2.0)], atol=0.03)


def test_fourier_features_of_two_maps_do_not_meet() -> None:
    """They share room for what they compute, but not for what they hand out."""
    points = Gaussian().points(make_stream(seed=1, rounds=40, features=3).X)
    maps = [FourierFeatures(20, np.random.default_rng(seed)) for seed in range(2)]
    first, second = (features(points) for features in maps)
    np.testing.assert_array_equal(first, maps[0](points))
    np.testing.assert_array_equal(second, maps[1](points))


def drawn(features: FourierFeatures, columns: Integers) -> Floats:
    return features.frequencies(columns)


def test_frequencies_do_not_depend_on_the_order_of_columns() -> None:
    one = FourierFeatures(5, np.random.default_rng(3))
    other = FourierFeatures(5, np.random.default_rng(3))
    whole = drawn(one, np.arange(40))
    later = np.array([31, 2, 17])
    np.testing.assert_array_equal(drawn(other, later), whole[later])
    np.testing.assert_array_equal(drawn(other, np.arange(40)), whole)


def test_wide_sparse_rows_draw_only_the_columns_in_use() -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(1_000_000, size=(64, 5)), axis=1).astype(np.int32)
    rows = CsrRows(np.arange(65) * 5, columns.ravel(), rng.normal(size=320), 1_000_000)
    player = Player(REGISTRY["fogd"](features=400, step=0.1), Gaussian())
    tracemalloc.start()
    player.feed(rows, rng.choice([-1.0, 1.0], size=64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6  # all columns would be 3.2 GB


@every_setting
def test_a_stream_that_widens_or_becomes_sparse_changes_nothing(
    name: str, params: dict[str, Any]
) -> None:
    stream = make_stream(seed=2, rounds=300, features=4)
    X = np.where(np.abs(stream.X) < 0.3, 0.0, stream.X + 2.0)
    X[:128, 3:] = 0.0
    expected = Player(REGISTRY[name](**params), Gaussian()).feed(X, stream.y)
    player = Player(REGISTRY[name](**params), Gaussian())
    scores = [
        player.feed(X[:128, :3], stream.y[:128]),
        player.feed(X[128:192], stream.y[128:192]),
        player.feed(compress(X[192:]), stream.y[192:]),
    ]
    np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-7, atol=1e-9)


def test_nogd_of_full_rank_keeps_f_where_it_switches() -> None:
    stream = make_stream(seed=9, rounds=400, features=3)
    plain = Player(REGISTRY["nogd"](budget=400, step=0.37), Gaussian(sigma=0.5))
    scores = plain.feed(stream.X, stream.y)
    player = Player(REGISTRY["nogd"](budget=30, rank=30, step=0.37), Gaussian(sigma=0.5))
    switched = player.feed(stream.X, stream.y)
    taken = np.flatnonzero(scores * stream.y < 1)
    # Up to the switch and in the round after it, f is that of kernel gradient descent ...
    until = int(taken[29]) + 2
    np.testing.assert_allclose(switched[:until], scores[:until], rtol=1e-9, atol=1e-12)
    assert not np.allclose(switched[until:], scores[until:])
    assert isinstance(player.f, LinearModel)
    assert player.f.size == 30


def test_nogd_of_full_rank_keeps_f_on_its_span() -> None:
    """f at its own examples after the switch is what its kernel expansion says."""
    stream = make_stream(seed=9, rounds=60, features=3)
    learner = REGISTRY["nogd"](budget=60, rank=60, step=0.37).resolved(None)
    kernel = Gaussian(sigma=0.5)
    f = learner.begin(kernel)
    points = kernel.points(stream.X)
    f.open(points)
    for t, y in enumerate(stream.y.tolist()):
        f.t = t
        learner.update(f, y, 0.0)
    assert isinstance(f.successor, LinearModel)
    expected = kernel.between(points, points) @ (0.37 * stream.y)
    np.testing.assert_allclose(f.successor.at(points), expected, rtol=1e-9, atol=1e-9)


@every_setting
def test_the_step_follows_from_the_number_of_rounds(name: str, params: dict[str, Any]) -> None:
    def begun(rounds: int | None, **more: Any) -> Learner:
        given = {key: value for key, value in params.items() if key != "step"}
        return Player(REGISTRY[name](**given, **more), Gaussian(), horizon=rounds).learner

    assert begun(None).params()["step"] == 0.1
    assert begun(400).params()["step"] == 0.5
    assert begun(400, horizon=100).params()["step"] == 1.0
    assert begun(400, step=0.2).params()["step"] == 0.2


def test_sketches_changed_by_admissions_equal_those_from_scratch() -> None:
    stream = make_stream(seed=11, rounds=300, features=3)
    player = Player(REGISTRY["skegd"](budget=30, step=0.37, cycle=7), Gaussian(sigma=0.7))
    player.feed(stream.X, stream.y)
    sketches = player.f.features
    assert isinstance(sketches, Sketches)
    E = sketches.admitted
    assert 30 < E.size == player.f.size <= 60
    S_p = np.zeros((E.size, 22))
    S_p[np.arange(E.size), sketches.columns] = sketches.signs
    K = player.kernel.between(E, E)
    np.testing.assert_allclose(sketches.pp, S_p.T @ K @ S_p, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        sketches.pm, S_p.T @ player.kernel.between(E, sketches.points), rtol=1e-9, atol=1e-11
    )


def test_skegd_finds_its_cycle_or_says_what_it_lacks() -> None:
    player = Player(REGISTRY["skegd"](budget=30), Gaussian(), horizon=100)
    assert player.learner.params()["cycle"] == 4
    with pytest.raises(ParameterError, match="cycle or horizon must be given"):
        Player(REGISTRY["skegd"](budget=30, step=0.1), Gaussian())
    with pytest.raises(ParameterError, match="samples must be at most 30 here, got 31"):
        REGISTRY["skegd"](budget=30, samples=31)
    with pytest.raises(ParameterError, match="rank must be at most 15 here, got 16"):
        REGISTRY["skegd"](budget=30, rank=16)


@every_setting
def test_rows_that_are_all_alike_or_all_zero_are_played(name: str, params: dict[str, Any]) -> None:
    labels = np.where(np.arange(90) % 2 == 0, 1.0, -1.0)
    for kernel in (Gaussian(), Linear()):
        if name == "fogd" and not isinstance(kernel, Gaussian):
            continue
        player = Player(REGISTRY[name](**params), kernel)
        scores = player.feed(np.zeros((90, 2)), labels)
        assert np.isfinite(scores).all()
        assert isinstance(kernel, Gaussian) or not scores.any()  # κ(0, 0) = 0: nothing to learn


def test_a_rank_above_the_budget_is_refused() -> None:
    with pytest.raises(ParameterError, match="rank must be at most the budget, 8, got 9"):
        REGISTRY["nogd"](budget=8, rank=9)
