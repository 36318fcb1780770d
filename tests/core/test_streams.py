"""What a stream may bring: new features, very wide rows, rows of other types, degenerate rows."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from ahpatron_cli.core import REGISTRY, CsrRows, Gaussian, Laplacian, Linear, Player, play
from ahpatron_cli.core.errors import NumericalError
from support.cases import Case
from support.streams import compress, full, make_stream

STREAM = make_stream(seed=4, rounds=300, features=3)
DEGENERATE = {
    "zeros": np.zeros((300, 3)),
    "constant": np.ones((300, 3)),
    "duplicates": np.tile(STREAM.X[:10], (30, 1)),
    "tiny": 1e-9 * STREAM.X,
    "far out": 1e8 + STREAM.X,
    "huge": 1e150 * STREAM.X,
    "no columns": np.zeros((300, 0)),
    "late": np.vstack((np.zeros((90, 3)), 1e9 * STREAM.X[90:])),
}
KINDS = [
    *map(Case, REGISTRY),
    Case("bsgd", {"maintenance": "project"}),
    Case("bsgd", {"maintenance": "merge"}),
]
SECOND_ORDER = [Case("arow"), Case("metron"), Case("metron", {"tracker": "off"})]
"""Learners with a covariance."""
every_kind = pytest.mark.parametrize("case", KINDS, ids=str)


def player_of(case: Case, kernel: Any = None, **params: Any) -> Player:
    kind = REGISTRY[case.name]
    own = {name: value for name, value in params.items() if name in kind.specs()}
    return Player(kind(**{**own, **case.params}), kernel, horizon=300)


@every_kind
def test_features_may_appear_later_and_rows_become_sparse(case: Case) -> None:
    X = np.where(np.abs(STREAM.X) < 0.3, 0.0, STREAM.X + 2.0)
    X[:64, 1:] = 0.0
    X[64:128, 2:] = 0.0
    whole = player_of(case, budget=20).feed(X, STREAM.y)
    player = player_of(case, budget=20)
    parts = [X[:64, :1], X[64:128, :2], X[128:192], compress(X[192:])]
    cuts = np.split(STREAM.y, [64, 128, 192])
    scores = [player.feed(rows, y) for rows, y in zip(parts, cuts, strict=True)]
    np.testing.assert_allclose(np.concatenate(scores), whole, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("case", "kernel"),
    [(case, Gaussian()) for case in KINDS]
    + [(case, Linear()) for case in KINDS if not case.only_gaussian],
    ids=str,
)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_finite_scores_within_the_budget(
    case: Case, kernel: Any, name: str
) -> None:
    """Every f(x) is finite, and S keeps to its budget."""
    rows = DEGENERATE[name]
    labels = np.random.default_rng(1).choice([-1.0, 1.0], 300)
    for form in (rows, compress(rows)):
        player = player_of(case, kernel, budget=30, features=30)
        assert np.isfinite(player.feed(form, labels)).all()
        assert np.isfinite(player.f.norm)
        most = player.learner.most_kept
        assert most is None or (player.f.size or 0) <= most


@pytest.mark.parametrize("case", SECOND_ORDER, ids=str)
@pytest.mark.parametrize("kernel", [Gaussian(), Linear()], ids=str)
@pytest.mark.parametrize("name", DEGENERATE)
def test_covariances_of_degenerate_rows_stay_positive_semidefinite(
    case: Case, kernel: Any, name: str
) -> None:
    rows = DEGENERATE[name]
    labels = np.random.default_rng(1).choice([-1.0, 1.0], 300)
    for form in (rows, compress(rows)):
        player = player_of(case, kernel, budget=30)
        player.feed(form, labels)
        for head in player.f.heads:
            C = full(head.C)
            least = -1e-12 * np.abs(C).max(initial=0.0)
            assert np.linalg.eigvalsh(C).min(initial=0.0) >= least


@pytest.mark.parametrize("name", ["ahpatron", "arow", "fogd", "metron"])
@pytest.mark.parametrize("width", [1_000_000, 2**31 - 1])
def test_wide_sparse_rows_take_memory_for_the_columns_in_use(name: str, width: int) -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, width - 10, size=(300, 10)), axis=1) + np.arange(10)
    rows = CsrRows(
        np.arange(0, 3001, 10), columns.astype(np.int32).ravel(), rng.normal(size=3000), width
    )
    numbers = np.unique(columns, return_inverse=True)[1].astype(np.int32)
    narrow = CsrRows(rows.indptr, numbers.ravel(), rows.values, int(numbers.max()) + 1)
    y = rng.choice([-1.0, 1.0], 300)
    case = Case(name, {"budget": 60})
    tracemalloc.start()
    wide = player_of(case, Gaussian(sigma=3.0)).feed(rows, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6  # one array with an entry per column would be 8 MB to 17 GB
    if name != "fogd":  # whose frequencies depend on the number of the column
        expected = player_of(case, Gaussian(sigma=3.0)).feed(narrow, y)
        np.testing.assert_allclose(wide, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(sigma=3), Laplacian(sigma=9), Linear()])
def test_sparse_rows_with_stored_zeros_are_dense_rows(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 30)) < 0.2, rng.normal(size=(120, 30)), 0.0)
    X[5], X[7] = 1e9, 1e9 + X[8]  # far away: doubtful exponents, computed by subtraction
    y = np.where(X[:, 0] + X[:, 1] >= 0, 1.0, -1.0)
    every = np.tile(np.arange(30, dtype=np.int32), 120)
    stored = CsrRows(np.arange(0, 120 * 30 + 1, 30), every, X.ravel(), 30)
    case = Case("ahpatron", {"budget": 20})
    dense, *sparse = (player_of(case, kernel).feed(rows, y) for rows in (X, compress(X), stored))
    for scores in sparse:
        np.testing.assert_allclose(scores, dense, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.3), Linear()])
def test_values_of_32_bits_are_computed_with_in_64(kernel: Any) -> None:
    X = (STREAM.X + 100.0).astype(np.float32)
    sparse = compress(X.astype(np.float64))
    single = dataclasses.replace(sparse, values=sparse.values.astype(np.float32))
    case = Case("ahpatron", {"budget": 20})
    for rows, double in ((X, X.astype(np.float64)), (single, sparse)):
        expected = player_of(case, kernel).feed(double, STREAM.y)
        np.testing.assert_array_equal(player_of(case, kernel).feed(rows, STREAM.y), expected)


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "coo_matrix", "csc_array"])
def test_sparse_matrices_of_scipy_are_learned_as_rows(kind: str) -> None:
    X = np.where(np.abs(STREAM.X) < 0.5, 0.0, STREAM.X)
    learner = Case("ahpatron", {"budget": 20})
    expected = play(learner.learner(), compress(X), STREAM.y)
    found = play(learner.learner(), getattr(scipy.sparse, kind)(X), STREAM.y)
    assert found.f.norm == expected.f.norm
    assert found.tally.mistakes == expected.tally.mistakes > 0
    np.testing.assert_array_equal(found.scores(scipy.sparse.csr_matrix(X)), found.scores(X))
    score = found.score(getattr(scipy.sparse, kind)(X[:1]))
    assert score == pytest.approx(found.score(X[0].tolist()), abs=1e-12)
    assert found.learn(X[0].tolist(), 1) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("name", ["ahpatron", "metron"])
@pytest.mark.parametrize("piece", [300, 64, 7])
@pytest.mark.parametrize("row", [0, 1, 131, 299])
@pytest.mark.parametrize("value", [np.nan, -1e308, 1e155])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_that_cannot_be_computed_is_counted_from_its_piece(
    name: str, piece: int, row: int, value: float, sparse: bool
) -> None:
    X = STREAM.X.copy()
    X[row, 1] = value
    player = player_of(Case(name, {"budget": 10}))
    last = row // piece * piece
    parts = [X[begin : begin + piece] for begin in range(0, last + 1, piece)]
    labels = [STREAM.y[begin : begin + piece] for begin in range(0, last + 1, piece)]
    *before, (part, y) = zip(parts, labels, strict=True)
    for rows, own in before:
        player.feed(compress(rows) if sparse else rows, own)
    with pytest.raises(NumericalError) as refusal:
        player.feed(compress(part) if sparse else part, y)
    assert refusal.value.row == row % piece
