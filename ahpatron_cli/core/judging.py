"""How second-order learners judge their predictions: hinge losses, and Page's test of mistakes."""

from __future__ import annotations

import math

import numpy as np

from ahpatron_cli.core.rows import Floats


def hinge_steps(values: Floats, y: Floats) -> Floats:
    """Hinge loss of each class times its target: +1 where y > 0 (the true class), else -1."""
    targets = np.where(y > 0, 1.0, -1.0)
    losses = np.maximum(1.0 - targets * values, 0.0)
    return np.asarray(targets * losses)


def page_statistic(g: float, right: int, rate: float | None = None) -> float:
    """Page's g after `right` correct rounds, and then a mistake if the rate p so far is given.

    g = max(0, g + log(q/p)) on a mistake, else max(0, g + log((1-q)/(1-p))), with q = p + (1-p)/4.
    """
    on_correct = math.log(0.75)  # (1-q)/(1-p) = 3/4
    g = max(0.0, g + right * on_correct)
    if rate is None:
        return g
    on_mistake = math.log(0.75 + 0.25 / rate)  # q/p
    return g + on_mistake
