"""Ties that rounding must not decide: equal candidates, and sums and coefficients that cancel."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from ahpatron_cli.core import (
    REGISTRY,
    Expansion,
    Gaussian,
    Kernel,
    Learner,
    Player,
    Polynomial,
    choice,
    numerics,
    predicted,
)
from ahpatron_cli.core.reduction import choose_nearest
from ahpatron_cli.core.rows import rows_from
from reference import kernels as formulas
from reference.twins import budget_perceptron, tighter_perceptron


@pytest.mark.parametrize("name", ["budget-perceptron", "tighter-perceptron"])
@pytest.mark.parametrize("budget", [2, 5])
@pytest.mark.parametrize("seed", range(8))
def test_budget_perceptrons_follow_their_rule_in_exact_arithmetic(
    name: str, budget: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3)) * (1 + seed % 4)
    if seed % 2:  # duplicates
        X = X[rng.integers(12, size=120)]
    y = rng.choice([-1.0, 1.0], 120)
    reference: Any = tighter_perceptron if "tighter" in name else budget_perceptron
    trace = reference(X.tolist(), y.astype(int).tolist(), formulas.gaussian(0.7), budget=budget)
    for block in (1, 64):
        player = Player(REGISTRY[name](budget=budget), Gaussian(sigma=0.7), block=block)
        player.feed(X, y)
        assert player.tally.updates == trace.updates
        np.testing.assert_allclose(player.f.points.coordinates * 0.7 + X[0], trace.points)


CANCELLING: list[tuple[str, dict[str, Any], Kernel]] = [
    ("projectron", {"tolerance": 0.3}, Polynomial()),
    ("projectron", {"tolerance": 0.3}, Gaussian(sigma=0.7)),
    ("projectron++", {"tolerance": 0.3, "rule": "full"}, Polynomial()),
    ("bpa-s", {"budget": 1}, Polynomial()),
    ("perceptron", {}, Polynomial()),
]


@pytest.mark.parametrize(("name", "params", "kernel"), CANCELLING, ids=str)
def test_identical_rows_with_opposite_labels_cancel(
    name: str, params: dict[str, Any], kernel: Kernel
) -> None:
    """f is 0 then, and sign(0) = +1 decides, not the rounding of a coefficient."""
    for seed in range(50):
        x = np.random.default_rng(seed).normal(size=(1, 4))
        player = Player(REGISTRY[name](**params), kernel)
        player.feed(np.repeat(x, 2, axis=0), [1.0, -1.0])
        assert player.score(x[0]) == 0.0
        assert player.learn(x[0], 1.0) == 0.0


def test_a_coefficient_that_cancels_is_zero_in_bpa_s() -> None:
    """β = a·κ + τ·y with a·κ = -τ·y up to rounding: x joins with 0."""
    for k in np.random.default_rng(0).uniform(0.1, 0.9, 200):
        distance = np.sqrt(-2 * np.log(k))
        player = Player(REGISTRY["bpa-s"](budget=1, aggressiveness=k), Gaussian())
        player.feed(np.array([[0.0]]), [1.0])
        player.f.a[:] = 1.0
        player.feed(np.array([[distance]]), [-1.0])  # τ = C = κ, β = κ - κ
        assert player.score([distance]) == 0.0


@pytest.mark.parametrize("classes", [2, 3])
def test_terms_that_cancel_are_read_as_zero(classes: int) -> None:
    x = np.array([[0.1, 0.2, 0.3]])
    player = Player(REGISTRY["ahpatron"](multiclass="shared"), Gaussian(), classes=classes)
    player.feed(np.vstack([x, x, x]), [1.0, -1.0, 1.0] if classes == 2 else [1.0, 0.0, 2.0])
    player.f.a.T[:] = [0.1, 0.2, -0.3]  # whose sum is not 0 in doubles
    assert (player.scores(x) == 0.0).all()
    assert (player.feed(x, [1.0]) == 0.0).all()


def test_least_squares_that_fit_a_row_leave_it() -> None:
    """krls: 1 - y·f(x) = 0 up to rounding is no error, and moves no coefficient."""
    for seed in range(50):
        x = np.random.default_rng(seed).normal(size=(1, 4))
        player = Player(REGISTRY["krls"](), Polynomial())
        player.feed(np.repeat(x, 5, axis=0), np.ones(5))
        assert player.f.coefficients.tolist() == [1.0]


@dataclass
class SharedPerceptron(Learner):
    """Perceptron whose classes share one S: updates on mistakes only."""

    name = title = "shared-perceptron"
    multiclass: str = choice("", "classes on one S, or a learner for each", "shared", "rest")

    def update(self, f: Expansion, y: Any, margin: float) -> None:
        f.add(y)


@pytest.mark.parametrize("way", ["shared", "rest"])
def test_a_mistake_by_a_tie_is_learned_whatever_the_class(way: str) -> None:
    """Of equal f_c(x) the first class is predicted: wrong for all others, and only once."""
    X = np.tile(1e3 * np.arange(10.0), 5)[:, None]  # κ is 0 between different rows
    labels = np.tile([2.0, 1.0, 0.0, 2.0, 2.0, 1.0, 0.0, 1.0, 2.0, 1.0], 5)
    for block in (1, 7, 64):
        player = Player(SharedPerceptron(multiclass=way), Gaussian(), classes=3, block=block)
        player.feed(X, labels)
        assert player.tally.mistakes == 8
        np.testing.assert_array_equal(predicted(player.scores(X)), labels)


# The quarter that goes by `selection=nearest` ----------------------------------------------------


def gram(X: np.ndarray) -> np.ndarray:
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / 2))


def test_of_duplicates_the_younger_goes_and_the_older_stays_for_it() -> None:
    X = np.array([[0.0], [9.0], [0.0], [30.0], [9.0], [60.0], [0.0], [90.0]])
    np.testing.assert_array_equal(choose_nearest(gram(X), np.ones(8)), [0, 1, 2, 3, 5, 7])
    small = np.where(np.arange(8) == 3, 1e-3, 1.0)  # alone, but next to nothing; others are exact
    np.testing.assert_array_equal(choose_nearest(gram(X), small), [0, 1, 2, 3, 5, 7])


def test_rounding_does_not_choose_where_every_example_has_a_duplicate() -> None:
    """All losses are 0 up to the last digits of κ, which differ from CPU to CPU."""
    rng = np.random.default_rng(0)
    exact = gram(np.tile(rng.normal(size=(20, 2)), (2, 1)))
    a = rng.normal(size=40)
    for _ in range(5):
        noise = np.triu(rng.integers(-2, 3, size=(40, 40)), 1) * 2.0**-53
        noisy = np.minimum(exact * (1 + noise + noise.T), 1.0)
        np.testing.assert_array_equal(choose_nearest(noisy, a), np.arange(30))


# BLAS ---------------------------------------------------------------------------------------------


def test_sparse_rows_are_multiplied_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(40, 30, 0.2, "csr", random_state=rng)
    table = rng.standard_normal((50, 7))[:30]
    product = numerics.sparse_product(rows_from(matrix), table)
    np.testing.assert_array_equal(product, matrix @ table)


def test_sparse_rows_need_no_scipy_sparse() -> None:
    code = (
        "import sys; from ahpatron_cli.core import Ahpatron, play;"
        "from ahpatron_cli.core.rows import compressed; import numpy;"
        "play(Ahpatron(budget=4), compressed(numpy.eye(9)), [1.0, -1.0, 1.0] * 3);"
        "print('scipy.sparse' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_first_of_equal_values_is_the_smallest() -> None:
    """Equal up to rounding, which is measured by the terms before cancellation."""
    assert numerics.first_smallest(np.array([2.0, 1.0 + 1e-12, 1.0])) == 1
    assert numerics.first_smallest(np.array([2.0, 1.0 + 1e-9, 1.0])) == 2
    values = np.array([1e-12, 0.0])  # sums of terms of size 1
    assert numerics.first_smallest(values, scale=1.0) == 0
    assert numerics.first_smallest(values) == 1
