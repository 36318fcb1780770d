"""Hypotheses on explicit features: the maps approximate κ, and parameters follow from others."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, CsrRows, Gaussian, Learner, Player
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.feature_map import FourierFeatures, cos_sin_by_table, cos_sin_by_tangent

SIZES = {"fogd": {"features": 30}, "nogd": {"budget": 20}, "skegd": {"budget": 20, "cycle": 10}}


@pytest.mark.parametrize("compute", [cos_sin_by_tangent, cos_sin_by_table])
def test_cosines_and_sines_of_any_angle(compute: Callable[..., None]) -> None:
    rng = np.random.default_rng(0)
    angles = np.concatenate([rng.normal(0, size, 500) for size in (1e-9, 1.0, 100.0, 1e5)])
    angles = np.concatenate((angles, np.arange(-8, 9) * np.pi / 2)).reshape(1, -1)
    out = np.empty((1, 2 * angles.size))
    compute(angles.copy(), 0.5, out)
    expected = 0.5 * np.hstack((np.cos(angles), np.sin(angles)))
    np.testing.assert_allclose(out, expected, atol=1e-11)


@pytest.mark.parametrize("name", SIZES)
def test_the_step_follows_from_the_number_of_rounds(name: str) -> None:
    def begun(rounds: int | None, **more: Any) -> Learner:
        return Player(REGISTRY[name](**SIZES[name], **more), Gaussian(), horizon=rounds).learner

    assert begun(None).params()["step"] == 0.1
    assert begun(400).params()["step"] == 0.5
    assert begun(400, horizon=100).params()["step"] == 1.0
    assert begun(400, step=0.2).params()["step"] == 0.2


def test_skegd_finds_its_cycle_or_says_what_it_lacks() -> None:
    player = Player(REGISTRY["skegd"](budget=30), Gaussian(), horizon=100)
    assert player.learner.params()["cycle"] == 4
    with pytest.raises(ParameterError, match="cycle or horizon must be given"):
        Player(REGISTRY["skegd"](budget=30, step=0.1), Gaussian())
    with pytest.raises(ParameterError, match="samples must be at most 30 here, got 31"):
        REGISTRY["skegd"](budget=30, samples=31)
    with pytest.raises(ParameterError, match="rank must be at most 15 here, got 16"):
        REGISTRY["skegd"](budget=30, rank=16)


def test_frequencies_that_were_forgotten_are_drawn_again() -> None:
    features = FourierFeatures(2**16, np.random.default_rng(0))
    columns = np.array([3, 70_000, 2**31 - 2])
    first = features.frequencies(columns).copy()
    for column in range(100, 200):  # more than are stored
        features.frequencies(np.array([column]))
    np.testing.assert_array_equal(features.frequencies(columns), first)


def test_memory_of_fogd_does_not_grow_with_the_columns_that_occurred() -> None:
    rounds, words = 1280, 10
    columns = np.arange(rounds * words, dtype=np.int32) + 5000  # each row has columns of its own
    indptr = np.arange(rounds + 1) * words
    rows = CsrRows(indptr, columns, np.ones(len(columns)), int(columns[-1]) + 1)
    player = Player(REGISTRY["fogd"](features=400), Gaussian(sigma=3.0), horizon=rounds)
    tracemalloc.start()
    player.feed(rows, np.where(np.arange(rounds) % 2, 1.0, -1.0))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 25e6  # 12,800 columns with 400 frequencies each would take 41 MB
