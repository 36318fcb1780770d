"""`--scale`: the three ways, dense and sparse, and the corners."""

import numpy as np
import pytest

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.scaling import scaled
from support.streams import compress


def example() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.5, rng.normal(size=(50, 6)) * [1, 5, 0.1, 1e3, 1, 1], 0.0)
    X[:, 4] = 0.1  # constant, everywhere stored
    X[:, 5] = 2 + rng.random(50)  # never zero
    return X


def test_minmax_brings_dense_features_to_0_and_1() -> None:
    found = np.asarray(scaled(example(), "minmax"))
    np.testing.assert_allclose(found.min(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.max(axis=0), [1, 1, 1, 1, 0, 1], atol=1e-12)


def test_standard_gives_dense_features_mean_0_and_deviation_1() -> None:
    standard = np.asarray(scaled(example(), "standard"))
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(standard.std(axis=0), [1, 1, 1, 1, 0, 1], atol=1e-12)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_sparse_rows_are_divided_by_the_same_spread(scale: str) -> None:
    X = example()
    dense = np.asarray(scaled(X, scale))
    sparse = scaled(compress(X), scale)
    assert isinstance(sparse, CsrRows)
    varying = [0, 1, 2, 3, 5]
    gaps = np.diff(dense, axis=0)[:, varying]
    np.testing.assert_allclose(np.diff(sparse.dense(), axis=0)[:, varying], gaps, atol=1e-9)
    assert np.abs(sparse.dense()[:, 4]).max() <= 1  # a constant is not blown up


@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize(("offset", "spread"), [(48.8566, 2e-5), (-1.7e9, 1.0), (1e-200, 1e-205)])
def test_offsets_stored_zeros_and_gaps_are_scaled_alike(
    scale: str, offset: float, spread: float
) -> None:
    X = np.zeros((50, 7))
    X[:, 1::2] = example()[:, :3]
    X[:, 6] = offset + spread * np.random.default_rng(1).normal(size=50)
    every = np.tile(np.arange(7, dtype=np.int32), 50)
    stored = CsrRows(np.arange(51) * 7, every, X.ravel(), 7)
    gaps = np.diff(np.asarray(scaled(X, scale)), axis=0)
    for rows in (compress(X), stored):
        found = scaled(rows, scale)
        assert isinstance(found, CsrRows)
        np.testing.assert_allclose(np.diff(found.dense(7), axis=0), gaps, atol=1e-5)
    assert np.abs(gaps[:, 6]).max() > 0.5


@pytest.mark.parametrize("scale", ["minmax", "standard", "unit"])
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_no_size_overflows(scale: str, size: float) -> None:
    X = example()
    ordinary, extreme = (np.asarray(scaled(rows, scale)) for rows in (X, X * size))
    np.testing.assert_allclose(extreme, ordinary, atol=1e-9)
    sparse = scaled(compress(X * size), scale)
    assert isinstance(sparse, CsrRows)
    assert np.isfinite(sparse.values).all()


def test_a_feature_that_is_constant_up_to_rounding_is_only_shifted() -> None:
    rows = np.full((1000, 1), 0.1)  # whose mean is not exactly 0.1
    rows[0] += 1e-16
    assert np.abs(np.asarray(scaled(rows, "standard"))).max() < 1e-12
