"""Reading f anywhere, without learning: `Player.scores`."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian, Player
from ahpatron_cli.core.expansion import Expansion
from support.cases import CASES, Case
from support.streams import compress, make_stream

STREAM = make_stream(seed=5, rounds=300, features=3)
ELSEWHERE = make_stream(seed=6, rounds=150, features=3).X
WIDER = np.hstack([ELSEWHERE, np.ones((150, 2))])

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_form = pytest.mark.parametrize("form", [np.asarray, compress])


def begin(case: Case) -> Player:
    return Player(case.learner(), Gaussian(sigma=0.7), seed=(3,))


@every_case
@every_form
def test_what_is_read_is_what_would_be_predicted_next(case: Case, form: type) -> None:
    player = begin(case)
    for now in range(0, 140, 20):
        row = form(STREAM.X[now : now + 1])
        read = player.scores(row)
        assert player.feed(row, STREAM.y[now : now + 1]) == pytest.approx(read, rel=1e-9, abs=1e-12)
        player.feed(form(STREAM.X[now + 1 : now + 20]), STREAM.y[now + 1 : now + 20])


@every_case
@every_form
def test_reading_changes_nothing(case: Case, form: type) -> None:
    read, unread = begin(case), begin(case)
    for now in range(0, 200, 50):
        for rows in (ELSEWHERE, WIDER, compress(ELSEWHERE), compress(WIDER)):
            read.scores(rows)
        X, y = form(STREAM.X[now : now + 50]), STREAM.y[now : now + 50]
        np.testing.assert_array_equal(read.feed(X, y), unread.feed(X, y))
    assert read.tally.rounds == unread.tally.rounds
    np.testing.assert_array_equal(read.tally.confusion, unread.tally.confusion)
    assert read.f.norm == unread.f.norm


@every_case
def test_rows_may_be_read_in_any_form(case: Case) -> None:
    player = begin(case)
    player.feed(STREAM.X, STREAM.y)
    dense = player.scores(WIDER)
    np.testing.assert_allclose(player.scores(compress(WIDER)), dense, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense[7], player.scores(WIDER[7:8])[0], rtol=1e-9, atol=1e-12)
    sparse = copy.deepcopy(player)
    sparse.feed(compress(STREAM.X[:0]), STREAM.y[:0])  # for good, from now on
    np.testing.assert_allclose(sparse.scores(WIDER), dense, rtol=1e-9, atol=1e-12)


def test_terms_that_cancel_are_read_as_zero() -> None:
    player = begin(Case("perceptron"))
    x = np.array([[0.1, 0.2, 0.3]])
    player.feed(np.vstack([x, x, x]), np.array([1.0, -1.0, -1.0]))
    assert isinstance(player.f, Expansion)
    player.f.a[:] = [0.1, 0.2, -0.3]
    assert sum(player.f.coefficients) != 0
    assert player.scores(x)[0] == 0.0
