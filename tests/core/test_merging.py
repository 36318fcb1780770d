"""Merging two examples into a point between them: the tables, the point, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import BSGD, Player, play
from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.merging import best_point, cheapest, loss_of
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
