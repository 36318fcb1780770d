"""The learning curve of a pass: mistakes so far, at rounds that are evenly spaced."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats

MOST_POINTS = 2000
"""Number of points from which on the spacing doubles."""


class LearningCurve:
    """Learning curve at evenly spaced rounds; the spacing doubles if there are too many."""

    def __init__(self, rounds: int, mistakes: int) -> None:
        """`rounds` and `mistakes` are those before the start of the curve."""
        self._spacing = 1
        self._points = np.empty((3, 0))
        last = [rounds, mistakes, np.nan]
        self._last = np.array(last).reshape(3, 1)

    def extend(self, wrong: NDArray[np.bool_], rates: Floats | None) -> None:
        """Add rounds; `rates` are the recent mistake rates after them, if they are known."""
        last_round, last_mistakes, _ = self._last
        count = len(wrong)
        rounds = last_round + 1 + np.arange(count)
        mistakes = last_mistakes + np.cumsum(wrong)
        if rates is None:
            rates = np.full(count, np.nan)
        points = np.stack([rounds, mistakes, rates])
        self._last = points[:, -1:]
        spaced = self._spaced(points)
        self._points = np.hstack([self._points, spaced])
        while self._points.shape[1] > MOST_POINTS:
            self._spacing *= 2
            self._points = self._spaced(self._points)

    def _spaced(self, points: Floats) -> Floats:
        """The points whose rounds are multiples of the spacing."""
        rounds = points[0]
        is_due = rounds % self._spacing == 0
        chosen: Floats = points[:, is_due]
        return chosen

    def points(self) -> Floats:
        """The curve so far, with the last round."""
        last_round = self._points[0, -1:]
        if np.array_equal(last_round, self._last[0]):
            return self._points
        return np.hstack([self._points, self._last])
