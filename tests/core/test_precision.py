"""Kernel values of 32 bits: near those of 64, refused where their digits are needed."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.parameters import ParameterError
from ahpatron_cli.core.rows import Rows, compressed
from ahpatron_cli.runner import Setup

ROWS = np.random.default_rng(5).normal(size=(300, 6))
LABELS = np.where(np.sin(3 * ROWS[:, 0]) + ROWS[:, 1] > 0, 1.0, -1.0)


def values(rows: Rows, precision: str, sigma: float = 1.0) -> np.ndarray:
    kernel = Gaussian(sigma=sigma, precision=precision)
    points = kernel.points(rows)
    return kernel.between(points, points)


@pytest.mark.parametrize("form", [np.asarray, compressed])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e3])
def test_values_are_those_of_64_bits_to_a_few_digits(form: type, offset: float) -> None:
    rows = form(ROWS + offset)
    single = values(rows, "single")
    assert single.dtype == np.float64
    assert (single == single.astype(np.float32)).all()  # they were computed in 32 bits
    np.testing.assert_allclose(single, values(rows, "double"), rtol=0, atol=1.5e-7)


def test_far_pairs_are_those_of_64_bits() -> None:
    rows = np.array([[0.0], [13.0], [20.0], [30.0], [50.0]])
    single, double = values(rows, "single"), values(rows, "double")
    far = double < 1e-35
    assert (double[far] > 0).any()
    np.testing.assert_array_equal(single[far], double[far])


def test_exponents_that_overflow_32_bits_still_give_values() -> None:
    rows = np.array([[1e25, 0.0], [1e25, 0.0], [-1e25, 1e25]])
    np.testing.assert_array_equal(values(rows, "single"), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", [name for name in REGISTRY if not REGISTRY[name].inverts])
def test_scores_stay_near_those_of_64_bits(name: str) -> None:
    scores = []
    for precision in ("double", "single"):
        learner, kernel = Setup(name, {}, "gaussian", {"precision": precision}).build()
        scores.append(Player(learner, kernel, horizon=300).feed(ROWS, LABELS))
    difference = np.abs(scores[0] - scores[1]).max()
    assert difference < 1e-4
    assert (difference > 0) == (name != "fogd")  # whose features are no kernel values


@pytest.mark.parametrize("name", [name for name in REGISTRY if REGISTRY[name].inverts])
def test_learners_that_invert_a_kernel_matrix_refuse_it(name: str) -> None:
    with pytest.raises(ParameterError, match="precision must be double"):
        Setup(name, {}, "gaussian", {"precision": "single"}).build()


def test_a_ridge_that_drowns_in_the_rounding_is_refused() -> None:
    with pytest.raises(ParameterError, match="ridge must be a number >= 1e-05"):
        Setup("ahpatron", {"ridge": 1e-6}, "gaussian", {"precision": "single"}).build()
