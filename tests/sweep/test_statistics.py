"""Tests of significance against scipy and published examples."""

import math
import random
from fractions import Fraction
from itertools import combinations

import pytest
from scipy.stats import f, friedmanchisquare, rankdata, studentized_range, wilcoxon

from ahpatron_cli.sweep.statistics import (
    Order,
    _critical_difference,
    _iman_davenport,
    common_orders,
    compare,
    holm,
    over_datasets,
)

# Demšar (2006), Statistical comparisons of classifiers over multiple data sets, table 6:
# areas under the ROC curve of C4.5, with m, with cf, with both tuned, on 14 data sets. He ranks two
# values of the last row but one by digits that are not printed: 0.9751 stands for 0.975 here.
C45 = {
    "C4.5": [
        0.763,
        0.599,
        0.954,
        0.628,
        0.882,
        0.936,
        0.661,
        0.583,
        0.775,
        1.000,
        0.940,
        0.619,
        0.972,
        0.957,
    ],
    "C4.5+m": [
        0.768,
        0.591,
        0.971,
        0.661,
        0.888,
        0.931,
        0.668,
        0.583,
        0.838,
        1.000,
        0.962,
        0.666,
        0.981,
        0.978,
    ],
    "C4.5+cf": [
        0.771,
        0.590,
        0.968,
        0.654,
        0.886,
        0.916,
        0.609,
        0.563,
        0.866,
        1.000,
        0.965,
        0.614,
        0.9751,
        0.946,
    ],
    "C4.5+m+cf": [
        0.798,
        0.569,
        0.967,
        0.657,
        0.898,
        0.931,
        0.685,
        0.625,
        0.875,
        1.000,
        0.962,
        0.669,
        0.975,
        0.970,
    ],
}


def test_ranks_are_those_of_the_example_of_demsar() -> None:
    found = over_datasets(C45, larger_is_better=True)
    published = [3.143, 2.000, 2.893, 1.964]
    assert list(found.mean_ranks.values()) == pytest.approx(published, abs=5e-4)
    # he does not correct χ² = 9.28 for ties: the sum over ties of t³ - t is 6 + 6 + 60 + 6
    assert found.friedman == pytest.approx(9.28 / (1 - 78 / (14 * 60)), abs=0.01)
    assert found.critical_difference == pytest.approx(2.569 * math.sqrt(20 / 84), abs=1e-3)
    # the best and the worst differ by 1.18
    assert found.groups == [["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]]


def test_the_test_of_iman_and_davenport_is_an_analysis_of_variance_of_ranks() -> None:
    """F is that of two factors, learners and data sets; without ties Demšar's example has 3.69."""
    found = over_datasets(C45, larger_is_better=True)
    ranks = rankdata([[-value for value in row] for row in zip(*C45.values(), strict=True)], axis=1)
    datasets, learners = ranks.shape
    between = datasets * ((ranks.mean(axis=0) - ranks.mean()) ** 2).sum() / (learners - 1)
    rest = ranks - ranks.mean(axis=0) - ranks.mean(axis=1, keepdims=True) + ranks.mean()
    freedom = (learners - 1) * (datasets - 1)
    ratio = between / ((rest**2).sum() / freedom)
    assert found.iman_davenport == pytest.approx(ratio)
    assert found.iman_davenport_p_value == pytest.approx(f.sf(ratio, learners - 1, freedom))
    published, p_value = _iman_davenport(9.28, 4, 14)
    assert published == pytest.approx(3.69, abs=0.005)
    assert 0.01 < p_value < 0.05  # his critical value for 5 % is 2.85
    assert found.rejects


def test_equal_ranks_on_all_data_sets_leave_nothing_to_chance() -> None:
    found = over_datasets({"a": [1.0] * 4, "b": [2.0] * 4, "c": [3.0] * 4})
    assert (found.iman_davenport, found.iman_davenport_p_value) == (math.inf, 0.0)
    alike = over_datasets({"a": [1.0] * 4, "b": [1.0] * 4, "c": [1.0] * 4})
    assert (alike.iman_davenport, alike.iman_davenport_p_value) == (0.0, 1.0)
    assert not alike.rejects


def test_without_a_common_data_set_there_are_no_ranks() -> None:
    for values in ({}, {"a": [], "b": [], "c": []}):
        found = over_datasets(values)
        assert (found.mean_ranks, found.datasets, found.rejects) == ({}, 0, False)


@pytest.mark.parametrize(
    ("learners", "quantile"),
    [*enumerate((1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164), start=2)],
)
def test_critical_differences_are_those_of_demsar_and_of_the_studentized_range(
    learners: int, quantile: float
) -> None:
    """His table 5 (a), and the definition with 100,000 degrees of freedom."""
    scale = math.sqrt(learners * (learners + 1) / (6 * 14))
    found = _critical_difference(learners, 14)
    assert found == pytest.approx(quantile * scale, abs=1e-3 * scale)
    direct = studentized_range.isf(0.05, learners, 1e5) / math.sqrt(2)
    assert found == pytest.approx(direct * scale, rel=1e-3)


def test_friedman_and_wilcoxon_are_those_of_scipy() -> None:
    draws = random.Random(3)
    values = {name: [draws.random() + shift for _ in range(9)] for name, shift in
              (("a", 0.0), ("b", 0.3), ("c", 0.9))}  # fmt: skip
    found = over_datasets(values)
    test = friedmanchisquare(*values.values())
    assert (found.friedman, found.p_value) == (test.statistic, test.pvalue)
    pairs = [*combinations(values, 2)]
    expected = [wilcoxon(values[one], values[other]).pvalue for one, other in pairs]
    assert [pair.p_value for pair in found.pairs] == pytest.approx(expected)
    assert [pair.p_holm for pair in found.pairs] == holm(expected)
    assert [pair.learners for pair in found.pairs] == pairs


def test_groups_are_the_largest() -> None:
    # ranks 1, 2, 3 on 8 data sets: neighbours differ by 1, less than 1.17; the ends by 2
    found = over_datasets({"a": [1.0] * 8, "b": [2.0] * 8, "c": [3.0] * 8})
    assert found.critical_difference == pytest.approx(2.343 * math.sqrt(12 / 48), abs=1e-3)
    assert found.groups == [["a", "b"], ["b", "c"]]


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 3 · 0.01, then 2 · 0.03, which 0.04 keeps to
        ([0.04, 0.01, 0.02, 0.005], [0.04, 0.03, 0.04, 0.02]),
        ([0.9, 0.8], [1.0, 1.0]),
    ],
)
def test_corrections_of_holm_are_those_worked_out_by_hand(
    p_values: list[float], corrected: list[float]
) -> None:
    assert holm(p_values) == pytest.approx(corrected)


@pytest.mark.parametrize(("shift", "p_value"), [(1, 0.0), (0, 1.0)])
def test_gaps_that_differ_by_less_than_floats_can_tell_are_equal(
    shift: int, p_value: float
) -> None:
    best = {(0, repeat): Fraction(0) for repeat in range(3)}
    tiny = Fraction(1, 10**400)
    values = {(0, repeat): shift + repeat * tiny for repeat in range(3)}
    difference = compare(values, best)
    assert difference is not None
    assert (difference.mean, difference.se, difference.p_value) == (shift, 0.0, p_value)


def test_gaps_that_are_equal_as_fractions_tie() -> None:
    """0.3 - 0.2 and 0.2 - 0.1 differ as floats, so the floats would have other ranks."""
    tenths = {"a": [3, 2, 5, 9, 4], "b": [2, 1, 7, 1, 3], "c": [1, 2, 3, 4, 5]}
    exact = {name: [Fraction(value, 10) for value in row] for name, row in tenths.items()}
    pairs = over_datasets(exact).pairs
    whole = over_datasets(tenths).pairs
    assert [pair.p_value for pair in pairs] == [pair.p_value for pair in whole]


def orders(*repeats: int, seed: int = 0) -> set[Order]:
    return {(seed, repeat) for repeat in repeats}


TEN = orders(*range(10))


@pytest.mark.parametrize(
    ("finished", "common"),
    [
        ([TEN, TEN], TEN),
        ([TEN], TEN),
        ([TEN, TEN - orders(3)], TEN - orders(3)),
        ([TEN - orders(1), TEN - orders(2), TEN - orders(3)], TEN - orders(1, 2, 3)),
        ([TEN, TEN, orders(0)], TEN),  # one is far behind
        ([orders(0), TEN, TEN], TEN),
        ([orders(*range(30)), TEN, TEN], TEN),  # one is far ahead
        ([orders(*range(30)), TEN], TEN),
        ([orders(*range(10), seed=1), TEN, TEN], TEN),  # one has nothing in common
        ([TEN, TEN, TEN, orders(*range(4))], TEN),
        ([TEN, TEN, TEN, orders(*range(5))], orders(*range(5))),
    ],
)
def test_permutations_that_enough_settings_have_are_common(
    finished: list[set[Order]], common: set[Order]
) -> None:
    """Settings with less than half of what the middle one has do not count."""
    assert common_orders(finished) == common
