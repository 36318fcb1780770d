"""Statistical tests of differences, over permutations of a data set and over data sets.

Values are exact (fractions of counts), so that equal totals are ties. scipy is imported lazily,
because `scipy.stats` takes half a second.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from statistics import fmean, median, stdev
from typing import TypeAlias

SIGNIFICANCE = 0.05
FEWEST = 3
"""Smallest number of learners, and of data sets, for a test over data sets."""

Order: TypeAlias = tuple[int, int]
"""Seed and repeat, which determine a permutation."""
Exact: TypeAlias = Fraction | float
"""A value that is compared exactly: a fraction, or a float as it is."""


def common_orders(finished: Sequence[AbstractSet[Order]]) -> frozenset[Order]:
    """The permutations on which settings are compared; `finished` has those of each setting.

    All settings have them, except those that would leave fewer than half as many as the middle
    setting has: these cannot be compared.
    """
    frequency: Counter[Order] = Counter()
    for orders in finished:
        frequency.update(orders)
    enough = median(map(len, finished)) / 2
    common: frozenset[Order] = frozenset()

    def total_frequency(orders: AbstractSet[Order]) -> int:
        return sum(frequency[order] for order in orders)

    # those with the most frequent permutations come first, and decide which others fit
    for orders in sorted(finished, key=total_frequency, reverse=True):
        rest = frozenset(orders)
        if common:
            rest &= common
        if len(rest) >= enough:
            common = rest
    return common


@dataclass
class Difference:
    """Paired difference between a setting and the best one, over their common permutations."""

    mean: float
    se: float | None
    """Standard error of the mean; None for a single permutation."""
    orders: int
    p_value: float | None = None
    """p-value of Student's paired t-test; None if there are too few permutations."""
    p_holm: float | None = None
    """p-value corrected for the number of learners (Holm); only for the best of each learner."""
    more_than_noise: bool | None = None
    """Whether `p_holm` is below 0.05."""


def compare(
    values: Mapping[Order, Exact], best: Mapping[Order, Exact], *, sampled: bool = True
) -> Difference | None:
    """Paired difference `values - best` over the common permutations; None if there are none.

    `sampled=False`, for passes in file order, computes no p-value.
    """
    gaps = []
    for order in values:
        if order in best:
            own = Fraction(values[order])
            gap = own - Fraction(best[order])
            gaps.append(gap)
    if not gaps:
        return None
    count = len(gaps)
    mean = float(sum(gaps) / count)
    if count == 1 or not sampled:
        return Difference(mean, se=None, orders=count)
    sd = stdev(map(float, gaps))
    se = sd / math.sqrt(count)
    p_value = _student(mean, se, count)
    return Difference(mean, se=se, orders=count, p_value=p_value)


def _student(mean: float, se: float, count: int) -> float:
    """p-value of Student's t-test of `count` paired differences, by their mean and its error."""
    if se == 0:  # all differences are equal, exactly or as floats
        return 0.0 if mean else 1.0
    from scipy.special import stdtr  # Student's t without importing scipy.stats

    statistic = abs(mean) / se
    one_sided = stdtr(count - 1, -statistic)
    return 2 * float(one_sided)


def correct(differences: Sequence[Difference]) -> None:
    """Set the corrected p-values of these differences, as far as they have been tested."""
    tested: list[Difference] = []
    p_values: list[float] = []
    for one in differences:
        if one.p_value is not None:
            tested.append(one)
            p_values.append(one.p_value)
    corrected = holm(p_values)
    for one, p_holm in zip(tested, corrected, strict=True):
        one.p_holm = p_holm
        one.more_than_noise = p_holm < SIGNIFICANCE


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest p times m - i + 1, made monotone."""
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    corrected = [1.0] * count
    largest = 0.0
    left = count
    for number in order:
        step = left * p_values[number]
        largest = max(largest, step)
        corrected[number] = min(largest, 1.0)
        left -= 1
    return corrected


@dataclass(frozen=True)
class Pair:
    """Comparison of two learners over all data sets by Wilcoxon's signed-rank test."""

    learners: tuple[str, str]
    p_value: float
    p_holm: float
    """p-value corrected for the number of pairs (Holm)."""


@dataclass(frozen=True)
class OverDatasets:
    """Mean ranks of learners over data sets, with tests of significance."""

    mean_ranks: Mapping[str, float]
    """Mean rank of each learner; 1 is best, ties get the mean of their ranks."""
    datasets: int
    friedman: float | None = None
    """Friedman's χ², corrected for ties; None for fewer than three learners or data sets."""
    p_value: float | None = None
    iman_davenport: float | None = None
    """F of Iman and Davenport, `(N - 1)·χ²/(N·(k - 1) - χ²)` for k learners on N data sets; inf if
    the ranks are the same on all data sets."""
    iman_davenport_p_value: float | None = None
    """p-value of F, which is less conservative than that of χ² and decides."""
    critical_difference: float | None = None
    """Critical difference of mean ranks in the Nemenyi test (5 %)."""
    groups: Sequence[Sequence[str]] = ()
    """Maximal groups of learners that the Nemenyi test does not distinguish, by rank; empty if
    the test of Iman and Davenport does not reject."""
    pairs: Sequence[Pair] = ()

    @property
    def rejects(self) -> bool:
        """Whether the learners differ significantly, by the test of Iman and Davenport (5 %)."""
        p_value = self.iman_davenport_p_value
        return p_value is not None and p_value < SIGNIFICANCE


def over_datasets(
    values: Mapping[str, Sequence[Exact]], *, larger_is_better: bool = False
) -> OverDatasets:
    """Rank learners by their values on the same data sets and test the differences."""
    from scipy.stats import friedmanchisquare, rankdata

    sign = -1 if larger_is_better else 1
    table = []  # ranks of all learners on each data set
    for row in zip(*values.values(), strict=True):
        penalties = [sign * value for value in row]
        ranks = rankdata(_places(penalties))
        table.append(ranks.tolist())
    by_learner = list(zip(*table, strict=True))
    mean_ranks = {}
    if table:
        means = map(fmean, by_learner)
        mean_ranks = dict(zip(values, means, strict=True))
    datasets = len(table)
    if len(values) < FEWEST or datasets < FEWEST:
        return OverDatasets(mean_ranks, datasets)
    statistic = 0.0
    p_value = 1.0
    if any(len(set(row)) > 1 for row in table):
        statistic, p_value = map(float, friedmanchisquare(*by_learner))
    ratio, ratio_p_value = _iman_davenport(statistic, len(values), datasets)
    critical = _critical_difference(len(values), datasets)
    found = OverDatasets(
        mean_ranks,
        datasets,
        friedman=statistic,
        p_value=p_value,
        iman_davenport=ratio,
        iman_davenport_p_value=ratio_p_value,
        critical_difference=critical,
        pairs=_pairs(values),
    )
    if found.rejects:
        return replace(found, groups=_groups(mean_ranks, critical))
    return found


def _iman_davenport(friedman: float, learners: int, datasets: int) -> tuple[float, float]:
    """F of Iman and Davenport and its p-value, from Friedman's χ²."""
    from scipy.special import fdtrc

    between = learners - 1
    within = between * (datasets - 1)
    rest = datasets * between - friedman
    if rest <= 1e-9 * datasets:  # up to rounding: all data sets have the same ranks
        return math.inf, 0.0
    ratio = (datasets - 1) * friedman / rest
    return ratio, float(fdtrc(between, within, ratio))


def _critical_difference(learners: int, datasets: int) -> float:
    """Difference of mean ranks from which on it is significant by the Nemenyi test."""
    from scipy.stats import studentized_range

    level = 1 - SIGNIFICANCE
    quantile = float(studentized_range.ppf(level, learners, math.inf))
    variance = learners * (learners + 1) / (6 * datasets)  # of a difference of mean ranks
    factor = quantile / math.sqrt(2)
    return factor * math.sqrt(variance)


def _places(values: Sequence[Exact]) -> list[int]:
    """Dense rank of each value, from 1: small integers with exact ties."""
    distinct = sorted(set(values))
    place = {value: number for number, value in enumerate(distinct, start=1)}
    return [place[value] for value in values]


def _groups(ranks: Mapping[str, float], critical: float) -> list[list[str]]:
    """Maximal groups of learners whose mean ranks differ by less than `critical`."""
    learners = sorted(ranks, key=ranks.__getitem__)
    groups: list[list[str]] = []
    last = None  # the last learner of the last group
    for start, first in enumerate(learners):
        group = []
        for one in learners[start:]:
            gap = ranks[one] - ranks[first]
            if gap < critical:
                group.append(one)
        if len(group) > 1 and group[-1] != last:
            groups.append(group)
            last = group[-1]
    return groups


def _pairs(values: Mapping[str, Sequence[Exact]]) -> list[Pair]:
    """Comparisons of all pairs of learners."""
    pairs = list(combinations(values, 2))
    p_values = [_wilcoxon(values[one], values[other]) for one, other in pairs]
    corrected = holm(p_values)
    found = []
    for pair, p_value, p_holm in zip(pairs, p_values, corrected, strict=True):
        compared = Pair(pair, p_value, p_holm)
        found.append(compared)
    return found


def _wilcoxon(values: Sequence[Exact], others: Sequence[Exact]) -> float:
    """p-value of Wilcoxon's signed-rank test of paired values."""
    from scipy.stats import wilcoxon

    gaps = []
    for one, other in zip(values, others, strict=True):
        gap = Fraction(one) - Fraction(other)
        gaps.append(gap)
    if not any(gaps):
        return 1.0
    # Wilcoxon only uses ranks of |gaps|: dense ranks of exact values preserve order and ties
    sizes = [abs(gap) for gap in gaps]
    places = _places(sizes)
    signed = []
    for gap, place in zip(gaps, places, strict=True):
        if gap == 0:
            signed.append(0)
        elif gap > 0:
            signed.append(place)
        else:
            signed.append(-place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the normal approximation in case of ties
        test = wilcoxon(signed)
    return float(test.pvalue)
