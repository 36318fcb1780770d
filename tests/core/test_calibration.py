"""The link from scores to probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ahpatron_cli.core.calibration import Calibration

RNG = np.random.default_rng(4)
SCORES = RNG.normal(size=20_000)
LABELS = np.where(RNG.random(20_000) < 1 / (1 + np.exp(0.7 - 2.5 * SCORES)), 1.0, -1.0)


def test_it_approaches_the_batch_fit() -> None:
    link = Calibration(2)
    link.add(SCORES, LABELS)
    link.fit()
    batch = LogisticRegression(C=1e9).fit(SCORES[-8000:, None], LABELS[-8000:])
    np.testing.assert_allclose(link.weights[0], batch.coef_[0, 0], rtol=0.05)
    np.testing.assert_allclose(link.weights[1], batch.intercept_[0], atol=0.1)


def test_the_log_loss_is_that_of_the_link_before_each_window() -> None:
    link = Calibration(2)
    losses = []
    for start in range(0, 2000, 256):
        part = slice(start, min(start + 256, 2000))
        p = link.probabilities(SCORES[part])
        losses.append(-np.log(np.where(LABELS[part] > 0, p[:, 1], p[:, 0])))
        link.add(SCORES[part], LABELS[part])
        link.fit()
    np.testing.assert_allclose(link.log_loss(2000), np.concatenate(losses).mean(), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_pieces_do_not_matter(classes: int) -> None:
    scores = SCORES[:3000] if classes == 2 else RNG.normal(size=(3000, 3))
    labels = LABELS[:3000] if classes == 2 else scores.argmax(axis=1).astype(float)
    whole = Calibration(classes)
    pieces = Calibration(classes)
    whole.add(scores, labels)
    for cut in np.split(np.arange(3000), [1, 2, 300, 1024, 1025, 2900]):
        pieces.add(scores[cut], labels[cut])
        pieces.fit()
    whole.fit()
    np.testing.assert_array_equal(whole.weights, pieces.weights)
    assert whole.log_loss(3000) == pieces.log_loss(3000)
    np.testing.assert_allclose(whole.probabilities(scores).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("score", [0.0, 1.0, 1e-300, 1e200, 50.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_that_never_change_leave_a_finite_link(score: float, classes: int) -> None:
    link = Calibration(classes)
    shape = (300_000,) if classes == 2 else (30_000, 3)
    link.add(np.full(shape, score), np.ones(shape[0]))
    assert np.isfinite(link.weights).all()
    assert link.weights[0] > 0
    assert 0 <= link.log_loss(shape[0]) < 50


def test_equal_scores_of_all_classes_say_nothing_about_the_link() -> None:
    link = Calibration(3)
    link.add(np.zeros((3000, 3)), np.ones(3000))
    link.fit()
    assert not link.is_fitted
