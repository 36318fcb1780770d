"""Merging two examples into a point between them: the tables, the point, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import BSGD, Gaussian, Player, play
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.merging import MergingExpansion, best_point, cheapest, loss_of, tables
from ahpatron_cli.core.numerics import SLACK
from ahpatron_cli.core.points import NARROW
from ahpatron_cli.core.rows import compressed
from reference.span_twins import merged
from support.effort import examples
from support.streams import make_stream


def height(m: float, k: float, h: float) -> float:
    """g: the coefficient of the merged point in units of a_i + a_j."""
    return m * k ** ((1 - h) ** 2) + (1 - m) * k ** (h * h)


@examples(300)
@given(m=st.floats(0.001, 0.5), k=st.floats(1e-9, 1))
def test_the_point_is_nearly_the_best(m: float, k: float) -> None:
    h, g = best_point(m, k)
    loss, exact = merged(m, k)
    best = height(m, k, exact)
    assert 0 <= h <= 0.5
    assert g == pytest.approx(height(m, k, h), rel=1e-13)
    # the tables are close, except where two maxima become one
    close = 0.01 <= m <= 0.45 and k >= 0.01
    assert best - (2e-5 if close else 2e-4) <= g <= best + 1e-15
    assert loss_of(m, k) == pytest.approx(loss, abs=1e-3 if close else 4e-3)


@examples(300)
@given(seed=st.integers(0, 10**6), spread=st.floats(0, 40), equal=st.booleans())
def test_the_cheapest_partner_is_found_among_all(seed: int, spread: float, equal: bool) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    others = np.ones(size) if equal else 1 + rng.exponential(size=size)
    k = rng.random() ** (1 + spread * rng.random(size))
    k[rng.random(size) < 0.1] = k[0]
    pairs = zip(others.tolist(), k.tolist(), strict=True)
    losses = np.array([loss_of(1 / (1 + a), b) for a, b in pairs])
    wanted = int(np.argmax(losses <= losses.min() + SLACK))
    assert cheapest(1.0, others, k) == wanted
    assert cheapest(-1.0, -others, k) == wanted


def test_the_lowest_loss_falls_as_examples_become_more_similar() -> None:
    """What `cheapest` relies on to leave out partners that are far away."""
    lowest = tables().lowest
    assert lowest == sorted(lowest)


@pytest.mark.parametrize("m", [0.01, 0.2, 0.5])
def test_equal_examples_merge_without_loss(m: float) -> None:
    assert loss_of(m, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert best_point(m, 1.0)[1] == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("m", [0.01, 0.2, 0.5])
def test_examples_that_share_nothing_lose_the_smaller_one(m: float) -> None:
    assert loss_of(m, 0.0) == 1.0
    assert best_point(m, 0.0) == (0.0, 1 - m)


def opened(rows: list[list[float]], coefficients: list[float]) -> MergingExpansion:
    """An expansion in an open block, to which the first rows have been added."""
    f = MergingExpansion(KERNEL)
    f.open(KERNEL.points(np.array(rows)))
    f.evaluate()
    for t, coefficient in enumerate(coefficients):
        f.t = t
        f.add(coefficient)
    return f


KERNEL = Gaussian(sigma=0.7)
ROWS = [[0.0, 0.0], [3.0, 0.0], [0.4, 0.3], [0.2, 0.5], [2.5, 0.1]]


def test_the_smallest_and_its_nearest_become_a_point_between_them() -> None:
    f = opened(ROWS, [1.0, 0.9, 0.5])
    m = 0.5 / 1.5
    k = float(np.exp(-0.25 / (2 * 0.7**2)))  # of the rows 0 and 2
    h, g = best_point(m, k)
    f.merge_smallest()
    assert f.coefficients == pytest.approx([1.5 * g, 0.9])
    f.close()
    assert f.points is not None
    between = h * np.array(ROWS[2]) + (1 - h) * np.array(ROWS[0])
    assert f.points.coordinates[0] == pytest.approx(between / 0.7, abs=1e-12)


def test_a_merge_changes_f_by_the_loss_of_the_table() -> None:
    f = opened(ROWS, [1.0, 0.9, 0.5])
    a = f.coefficients
    points = KERNEL.points(np.array(ROWS[:3]))
    f.merge_smallest()
    both = f.points.subset(f.support)
    both.extend(points)
    change = np.concatenate((f.coefficients, -a))
    square = change @ KERNEL.between(both, both) @ change
    k = KERNEL.between(points, points)[0, 2]
    assert square == pytest.approx(0.5**2 * loss_of(0.5 / 1.5, k), abs=1e-3)


def test_the_values_of_later_rounds_are_those_of_the_merged_f() -> None:
    f = opened(ROWS, [1.0, 0.9, 0.5])
    f.merge_smallest()
    later = f.g[3:].copy()
    f.close()
    assert f.at(KERNEL.points(np.array(ROWS[3:]))) == pytest.approx(later, abs=1e-12)


def test_an_example_without_a_partner_of_its_sign_is_dropped() -> None:
    f = opened(ROWS, [1.0, 0.9, -0.5])
    f.merge_smallest()
    assert f.coefficients.tolist() == [1.0, 0.9]


def test_of_equal_partners_the_oldest_is_merged() -> None:
    rows = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [5.0, 0.0]]
    f = opened(rows, [1.0, 1.0, 0.5])
    f.merge_smallest()
    assert f.coefficients[0] != 1.0
    assert f.coefficients[1] == 1.0


def test_narrow_sparse_rows_merge_and_wide_ones_are_refused() -> None:
    stream = make_stream(seed=3, rounds=60, features=3)
    rows = np.pad(stream.X, ((0, 0), (0, NARROW - 2)))
    learner = BSGD(budget=4, maintenance="merge")
    Player(learner).feed(compressed(rows), stream.y)  # the last column is empty
    rows[40, NARROW] = 1.0
    wide = compressed(rows)
    with pytest.raises(NumericalError) as caught:
        Player(learner).feed(wide, stream.y)
    assert caught.value.row == 40
    Player(BSGD(budget=4)).feed(wide, stream.y)


def test_coefficients_that_overflow_are_refused() -> None:
    stream = make_stream(0, 60, 2, 0.3)
    with pytest.raises(NumericalError, match="not a finite number"):
        play(BSGD(budget=3, maintenance="merge", regularisation=1e-310), stream.X, stream.y)
