"""What a model or a run answers for rows: scores, probabilities, and the predicted labels."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import chosen, has_answer

NO_ANSWER = -1
"""In place of the number of a label: no label was known when the row was answered."""


@dataclass(frozen=True)
class Answers:
    """Answers for consecutive rows, each given before its label was seen."""

    scores: Floats
    """f(x), with a column per class if there are more than two; NaN without an answer."""
    chosen: Integers
    """Number of the predicted label: 0 and 1 are -1 and +1; or `NO_ANSWER`."""
    probabilities: Floats | None = None
    """A column per label; None unless they are asked for."""

    def chosen_scores(self) -> Floats:
        """The score of each answer: f(x), or that of the predicted class."""
        if self.scores.ndim == 1:
            return self.scores
        return self._of_chosen(self.scores)

    def chosen_probabilities(self) -> Floats:
        """The probability of each predicted label."""
        assert self.probabilities is not None
        return self._of_chosen(self.probabilities)

    def _of_chosen(self, values: Floats) -> Floats:
        rows = np.arange(len(values))
        return values[rows, self.chosen]  # NaN without an answer, in whatever column

    def first(self, count: int) -> Answers:
        """The answers for the first rows."""
        probabilities = self.probabilities
        if probabilities is not None:
            probabilities = probabilities[:count]
        return Answers(self.scores[:count], self.chosen[:count], probabilities)


def answers(
    scores: Floats, probabilities: Floats | None = None, threshold: float | None = None
) -> Answers:
    """Answers with these scores; by P(+1) if there is a threshold."""
    numbers = chosen(scores)
    if threshold is not None:
        assert probabilities is not None
        numbers = (probabilities[:, 1] >= threshold).astype(np.int64)
    numbers[~has_answer(scores)] = NO_ANSWER
    return Answers(scores, numbers, probabilities)


class Following:
    """Probabilities during a run: those of a row by the link fitted to rows before it.

    It is fitted to the same rows as that of the player, whose rounds are counted late.
    """

    def __init__(self, link: Calibration) -> None:
        self._link = copy.deepcopy(link)

    def probabilities(self, scores: Floats, labels: Floats) -> Floats:
        """Probabilities of the next rows; the link is then fitted to those with labels."""
        return self._link.follow(scores, labels)
