"""Metrics against scikit-learn's; AUC by its definition."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from ahpatron_cli.metrics import Ranking, metrics_of
from ahpatron_cli.records import Metrics

scores = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0]),
)
rounds = st.lists(st.tuples(scores, st.sampled_from([-1.0, 1.0])), min_size=1, max_size=60)


def measured(f: np.ndarray, y: np.ndarray) -> Metrics:
    ranking = Ranking()
    for start in range(0, len(f), 7):
        ranking.add(f[start : start + 7], y[start : start + 7])
    said = f >= 0
    confusion = [[int(np.sum((said == p) & (y == t))) for p in (False, True)] for t in (-1, 1)]
    return metrics_of(confusion, ranking)


def pairs_won(f: list[float], y: list[float]) -> Fraction | None:
    """AUC by its definition, over all pairs."""
    above = [a for a, label in zip(f, y, strict=True) if label > 0]
    below = [b for b, label in zip(f, y, strict=True) if label < 0]
    if not above or not below:
        return None
    won = sum(2 * (a > b) + (a == b) for a in above for b in below)
    return Fraction(won, 2 * len(above) * len(below))


@given(rounds)
def test_auc_by_its_definition(stream: list[tuple[float, float]]) -> None:
    f, y = (list(column) for column in zip(*stream, strict=True))
    wanted = pairs_won(f, y)
    assert measured(np.array(f), np.array(y)).auc == (None if wanted is None else float(wanted))


def error_by_class(y: np.ndarray, said: np.ndarray) -> float:
    return float(1 - balanced_accuracy_score(y, said))


@pytest.mark.parametrize("share", [0.5, 0.03])
@pytest.mark.parametrize(
    ("name", "by_definition"),
    [
        ("precision", precision_score),
        ("recall", recall_score),
        ("f1", f1_score),
        ("balanced_error", error_by_class),
        ("kappa", cohen_kappa_score),
    ],
)
def test_metrics_of_predictions_are_those_of_scikit_learn(
    share: float, name: str, by_definition: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    f, y = noisy(share)
    said = np.where(f >= 0, 1, -1)
    assert getattr(measured(f, y), name) == pytest.approx(by_definition(y, said), abs=1e-14)


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_the_auc_is_that_of_scikit_learn(share: float) -> None:
    f, y = noisy(share)
    assert measured(f, y).auc == pytest.approx(roc_auc_score(y, f), abs=1e-14)


def noisy(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores with ties and labels, of which this share is positive."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < share, 1.0, -1.0)
    f = (0.7 * y + rng.normal(size=3000)).round(2) - (0.5 - share)
    return f, y


def test_auc_is_none_where_its_memory_is_bounded() -> None:
    ranking = Ranking(100)
    y = np.tile([-1.0, 1.0], 25)
    ranking.add(y, y)
    ranking.add(y, y)
    assert ranking.auc() == 1
    ranking.add(y, y)
    ranking.add(y, y)
    assert ranking.auc() is None


def test_what_is_undefined_is_none() -> None:
    nothing_said = metrics_of([[5, 0], [5, 0]])
    assert (nothing_said.precision, nothing_said.recall, nothing_said.auc) == (None, 0, None)
    one_class = metrics_of([[8, 2], [0, 0]])
    assert (one_class.recall, one_class.balanced_error) == (None, None)
    assert metrics_of([[7, 0], [0, 0]]) == Metrics(None, None, None, None, None, None)


def test_several_classes_are_averaged_as_by_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 500)
    y[y == 3] = 1  # the last class never occurs, but is predicted
    f = rng.normal(size=(500, 4)) + 0.7 * np.eye(4)[y]
    f[:, 2] -= 9  # and this one occurs, but is never predicted
    said = f.argmax(axis=1)
    confusion = [[int(np.sum((y == t) & (said == p))) for p in range(4)] for t in range(4)]
    ranking = Ranking()
    for start in range(0, 500, 64):
        part = slice(start, start + 64)
        ranking.add(f[part], y[part].astype(float))
    found = metrics_of(confusion, ranking)
    for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        wanted = score(y, said, average="macro", zero_division=0)
        assert getattr(found, name) == pytest.approx(wanted)
    areas = [roc_auc_score(y == number, f[:, number]) for number in range(3)]
    assert found.auc == pytest.approx(np.mean(areas), abs=1e-12)
