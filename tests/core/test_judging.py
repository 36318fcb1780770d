"""Hinge losses of several classes, and Page's test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ahpatron_cli.core.judging import hinge_steps, page_statistic


def test_the_true_class_is_raised_and_the_others_are_lowered_by_their_hinge_loss() -> None:
    values = np.array([0.25, 0.5, -3.0, -0.5])
    y = np.array([1.0, -1.0, 0.0, 0.0])  # class 0 is true, class 1 the best other one
    assert hinge_steps(values, y).tolist() == [0.75, -1.5, 0.0, -0.5]


def test_a_class_beyond_the_margin_has_no_step() -> None:
    values = np.array([2.0, -1.0])
    assert not hinge_steps(values, np.array([1.0, -1.0])).any()


def test_correct_rounds_lower_page_s_statistic_down_to_0() -> None:
    assert page_statistic(1.0, 2) == pytest.approx(1.0 + 2 * math.log(0.75))
    assert page_statistic(1.0, 100) == 0.0


def test_correct_rounds_may_be_told_one_by_one_or_at_once() -> None:
    one_by_one = 3.0
    for _ in range(5):
        one_by_one = page_statistic(one_by_one, 1)
    assert page_statistic(3.0, 5) == pytest.approx(one_by_one)


def test_a_mistake_counts_more_where_mistakes_were_rare() -> None:
    rare = page_statistic(0.0, 0, rate=0.01)
    assert rare == pytest.approx(math.log(0.2575 / 0.01))  # q = p + (1-p)/4
    assert rare > page_statistic(0.0, 0, rate=0.3) > 0.0
