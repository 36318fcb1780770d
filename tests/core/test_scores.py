"""Reading f anywhere, without learning: `Player.scores`."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian, Player
from support.cases import CASES, Case
from support.streams import compress, make_stream

STREAM = make_stream(seed=5, rounds=300, features=3)
ELSEWHERE = make_stream(seed=6, rounds=150, features=3).X
WIDER = np.hstack([ELSEWHERE, np.ones((150, 2))])
ROUNDING = {"rtol": 1e-9, "atol": 1e-12}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("form", [np.asarray, compress])
def test_what_is_read_would_be_predicted_next_and_changes_nothing(case: Case, form: type) -> None:
    read, unread = (Player(case.learner(), Gaussian(sigma=0.7), seed=(3,)) for _ in range(2))
    for now in range(0, 200, 25):
        X = form(STREAM.X[now : now + 25])
        y = STREAM.y[now : now + 25]
        first = read.scores(X)[0]
        for rows in (ELSEWHERE, compress(WIDER)):
            read.scores(rows)
        scores = read.feed(X, y)
        np.testing.assert_allclose(scores[0], first, **ROUNDING)
        np.testing.assert_array_equal(scores, unread.feed(X, y))
    np.testing.assert_array_equal(read.tally.confusion, unread.tally.confusion)
    dense = read.scores(WIDER)
    np.testing.assert_allclose(read.scores(compress(WIDER)), dense, **ROUNDING)
    np.testing.assert_allclose(dense[7], read.scores(WIDER[7:8])[0], **ROUNDING)
    sparse = copy.deepcopy(read)
    sparse.feed(compress(STREAM.X[:0]), STREAM.y[:0])  # for good, from now on
    np.testing.assert_allclose(sparse.scores(WIDER), dense, **ROUNDING)
