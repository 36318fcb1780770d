"""What is learned from the first rows of a stream, and from no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core.rows import CsrRows, Rows, compressed
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.opening import load, stream
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.source import open_source
from ahpatron_cli.settings import Data
from ahpatron_cli.sigma import auto_sigma, median_sigma, try_sigmas
from support.profiles import to_text

WARM_UP = Data.warm_up


def example(rows: int = 1500, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)) * [1.0, 300.0, 0.01] + [0.0, 50.0, 7.0]


def write(path: Path, X: np.ndarray) -> Path:
    path.write_bytes(to_text(X, np.where(np.arange(len(X)) % 3, 1.0, -1.0)))
    return path


def dense(rows: Rows) -> np.ndarray:
    return rows.dense() if isinstance(rows, CsrRows) else rows


def rows_of(dataset: Any) -> np.ndarray:
    return dense(Batch.concatenate(list(dataset.batches())).rows)


def streamed(path: Path, scale: str) -> np.ndarray:
    with open_source(str(path)) as source:
        return rows_of(stream(source, Preparation(Data(scale=scale))))


@pytest.mark.parametrize(("kernel", "power"), [("gaussian", 2), ("laplacian", 1)])
def test_sigma_is_the_median_distance_to_four_digits(kernel: str, power: int) -> None:
    X = example(200)
    X[40:80] = X[:40]  # equal rows say nothing about the width
    gaps = np.abs(X[:, None, :] - X[None, :, :]) ** power
    distances = gaps.sum(axis=2) ** (1 / power)
    apart = np.sort(distances[np.triu_indices(200, 1)])
    apart = apart[apart > 0]
    found = median_sigma(X, kernel)
    assert found == pytest.approx(np.median(apart), rel=1e-3)
    assert found == float(f"{found:.4g}")
    assert median_sigma(compressed(X), kernel) == found


def test_sigma_looks_at_the_first_rows_only() -> None:
    X = example()
    later = np.vstack([X[:WARM_UP], 1e6 * X[WARM_UP:]])
    assert median_sigma(X, "gaussian") == median_sigma(later, "gaussian")
    later[WARM_UP // 2 : WARM_UP] *= 1e6
    assert median_sigma(X, "gaussian") != median_sigma(later, "gaussian")


@pytest.mark.parametrize("scale", ["none", "unit", "standard"])
@pytest.mark.parametrize("share", [1.0, 0.05])
def test_the_first_rows_are_those_that_are_learned(
    tmp_path: Path, scale: str, share: float
) -> None:
    X = np.tile(example(), 10)
    X[np.random.default_rng(1).random(X.shape) >= share] = 0.0
    path = str(write(tmp_path / "a.svm", X))
    for open_dataset in (stream, load):
        with open_source(path) as source:
            dataset = open_dataset(source, Preparation(Data(scale=scale)))
            first = dense(dataset.warm_up()[0])
            learned = rows_of(dataset)
            assert first.shape == (WARM_UP, learned.shape[1])
            assert first.tobytes() == learned[:WARM_UP].tobytes()


@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_is_scaled_by_its_first_rows(tmp_path: Path, scale: str, sparse: bool) -> None:
    X = example(3000) if not sparse else np.tile(example(1200), 10)
    form = compressed if sparse else np.asarray
    X[np.random.default_rng(1).random(X.shape) < 0.95 * sparse] = 0.0
    found = streamed(write(tmp_path / "a.svm", X), scale)
    expected = dense(Scaler.fitted(form(X[:WARM_UP]), scale)(form(X)))
    np.testing.assert_allclose(found[:, 1:], expected, rtol=1e-9, atol=1e-9)
    with open_source(str(tmp_path / "a.svm")) as source:
        loaded = rows_of(load(source, Preparation(Data(scale=scale))))
    np.testing.assert_allclose(loaded, found, rtol=1e-12, atol=1e-12)


def test_features_that_come_later_stay_as_they_are(tmp_path: Path) -> None:
    for width in (3, 60):  # dense, and sparse
        X = np.hstack([example(1100), np.zeros((1100, width - 2))])
        X[1050:, width] = 123.0
        found = streamed(write(tmp_path / "a.svm", X), "standard")
        assert (found[1050:, width + 1] == 123.0).all()


def test_the_chosen_width_is_not_worse_than_the_median_in_its_own_trial() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 4)) * [1, 1, 10, 0.1]
        y = np.where((X[:, 0] ** 2 + X[:, 1] ** 2 < 1.3) ^ (rng.random(600) < 0.1), 1.0, -1.0)
        median = median_sigma(X, "gaussian")
        chosen = auto_sigma(X, y, "gaussian")
        assert isinstance(median, float)
        assert isinstance(chosen, float)
        rates = {one.sigma: one.mistake_rate for one in try_sigmas(X, y, median)}
        near = min(rates, key=lambda sigma: abs(sigma - chosen))
        assert near == pytest.approx(chosen, rel=1e-3)
        assert rates[near] <= rates[median]
