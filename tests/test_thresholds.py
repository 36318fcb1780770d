"""A model at several thresholds, on scores whose probabilities are known."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from ahpatron_cli.answers import answers
from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.metrics import Ranking
from ahpatron_cli.thresholds import Thresholds, at_thresholds, short_between


class Line:
    """A link by which P(+1) = 0.5 + 0.4·f(x)."""

    def probabilities(self, scores: Floats) -> Floats:
        positive = 0.5 + 0.4 * scores
        return np.column_stack((1.0 - positive, positive))


def thresholds_of(scores: list[float], labels: list[int]) -> Thresholds:
    ranking = Ranking()
    ranking.add(np.array(scores), np.array(labels, dtype=float))
    found = at_thresholds(ranking, cast(Calibration, Line()))
    assert found is not None
    return found


def test_rows_with_the_probability_of_the_threshold_are_predicted_to_be_positive() -> None:
    found = thresholds_of([-1.0, 0.0, 0.0, 1.0], [-1, 1, -1, 1])
    predicted = {one.threshold: one.predicted for one in found.shown}
    assert (predicted[0.4], predicted[0.5], predicted[0.6]) == (3, 3, 1)


def test_an_answer_with_the_probability_of_the_threshold_is_positive() -> None:
    scores = np.array([-1.0, 0.0, 1.0])
    given = answers(scores, Line().probabilities(scores), threshold=0.5)
    assert given.chosen.tolist() == [0, 1, 1]


def test_without_a_threshold_a_score_of_0_is_positive() -> None:
    found = thresholds_of([-1.0, 0.0, 1.0], [-1, 1, 1])
    assert (found.default.true_positives, found.default.false_positives) == (2, 0)


def test_the_threshold_of_the_largest_f1_separates_its_rows_from_the_others() -> None:
    found = thresholds_of([-0.9, -0.5, -0.25, 0.0, 0.75], [-1, -1, 1, 1, 1])
    assert found.best_f1 is not None
    assert (found.best_f1.threshold, found.best_f1.f1) == (0.4, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.3, 0.5, 0.5),
        (0.3, 0.31, 0.31),
        (0.0, 0.04, 0.04),
        (0.31, 1.0, 0.9),
        (0.9, 1.0, 0.99),
        (0.25, 0.3125, 0.3),
    ],
)
def test_the_shortest_number_between_is_above_the_lower_end(
    low: float, high: float, wanted: float
) -> None:
    assert short_between(low, high) == wanted
