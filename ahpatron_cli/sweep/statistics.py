"""Which differences are more than noise: over permutations of a data set, and over data sets.

Values are exact (fractions of counts), so that equal totals are ties. scipy does the arithmetic; it
is imported where it is used, because `scipy.stats` takes half a second.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations
from statistics import fmean, stdev
from typing import TypeAlias

SIGNIFICANCE = 0.05
FEWEST = 3
"""Learners, and data sets, for a test over data sets."""

Order: TypeAlias = tuple[int, int]
"""Seed and repeat, which fix a permutation."""
Exact: TypeAlias = Fraction | float
"""A value whose comparison with another is exact; a float stands for itself."""


@dataclass(frozen=True)
class Difference:
    """A value of a setting minus that of the best, over the permutations that both have."""

    mean: float
    se: float | None
    """Standard error of the mean; None for a single permutation."""
    orders: int
    p_value: float | None = None
    """Of Student's paired t-test; None where nothing can be said of noise."""
    p_holm: float | None = None
    """Corrected for the number of learners; None for settings that are not their learner's best."""
    more_than_noise: bool | None = None
    """Whether `p_holm` is below 0.05."""


def compare(
    values: Mapping[Order, Exact], best: Mapping[Order, Exact], *, sampled: bool = True
) -> Difference | None:
    """The paired difference over the permutations that both have.

    Passes that all went in file order are not `sampled`: nothing can be said of noise.
    """
    gaps = [Fraction(values[order]) - Fraction(best[order]) for order in values if order in best]
    if not gaps:
        return None
    count, mean = len(gaps), float(sum(gaps) / len(gaps))
    if count == 1 or not sampled:
        return Difference(mean, None, count)
    if len(set(gaps)) == 1:
        return Difference(mean, 0.0, count, 0.0 if gaps[0] else 1.0)
    from scipy.special import stdtr  # Student's t without the weight of scipy.stats

    se = stdev(map(float, gaps)) / math.sqrt(count)
    return Difference(mean, se, count, 2 * float(stdtr(count - 1, -abs(mean) / se)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of m times m - i + 1, never falling."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    steps = ((len(order) - rank) * p_values[number] for rank, number in enumerate(order))
    corrected = dict(zip(order, accumulate(steps, max), strict=True))
    return [min(corrected[number], 1.0) for number in range(len(order))]


@dataclass(frozen=True)
class Pair:
    """Two learners over all data sets: Wilcoxon's signed-rank test."""

    learners: tuple[str, str]
    p_value: float
    p_holm: float
    """Corrected for the number of pairs."""


@dataclass(frozen=True)
class OverDatasets:
    """Ranks of learners over data sets, and which differences of ranks are more than noise."""

    mean_ranks: Mapping[str, float]
    """1 is best; equal values share the mean of their ranks."""
    datasets: int
    friedman: float | None = None
    """Friedman's χ², corrected for ties; None for fewer than three learners or data sets."""
    p_value: float | None = None
    critical_difference: float | None = None
    """Nemenyi: mean ranks that differ by less do not differ significantly."""
    groups: Sequence[Sequence[str]] = ()
    """The largest groups of learners that Nemenyi does not distinguish, by rank; none if Friedman's
    test does not reject."""
    pairs: Sequence[Pair] = ()

    @property
    def rejected(self) -> bool:
        """Whether Friedman's test finds that learners differ."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE


def over_datasets(
    values: Mapping[str, Sequence[Exact]], *, larger_is_better: bool = False
) -> OverDatasets:
    """Compare learners by their means on the same data sets."""
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    sign = -1 if larger_is_better else 1
    rows = list(zip(*values.values(), strict=True))
    table = [rankdata(_places([sign * value for value in row])).tolist() for row in rows]
    ranks = dict(zip(values, map(fmean, zip(*table, strict=True)), strict=bool(table)))
    count, datasets = len(values), len(rows)
    if min(count, datasets) < FEWEST:
        return OverDatasets(ranks, datasets)
    statistic, p_value = 0.0, 1.0
    if any(len(set(row)) > 1 for row in table):
        statistic, p_value = map(float, friedmanchisquare(*zip(*table, strict=True)))
    quantile = float(studentized_range.ppf(1 - SIGNIFICANCE, count, math.inf)) / math.sqrt(2)
    critical = quantile * math.sqrt(count * (count + 1) / (6 * datasets))
    groups = _groups(ranks, critical) if p_value < SIGNIFICANCE else []
    return OverDatasets(ranks, datasets, statistic, p_value, critical, groups, _pairs(values))


def _places(values: Sequence[Exact]) -> list[int]:
    """The place of each value among the different ones, from 1: small numbers that tie exactly."""
    place = {value: number for number, value in enumerate(sorted(set(values)), 1)}
    return [place[value] for value in values]


def _groups(ranks: Mapping[str, float], critical: float) -> list[list[str]]:
    """Runs of neighbours in the order of ranks, none inside another."""
    learners = sorted(ranks, key=ranks.__getitem__)
    groups: list[list[str]] = []
    for start, first in enumerate(learners):
        group = [one for one in learners[start:] if ranks[one] - ranks[first] < critical]
        if len(group) > 1 and not (groups and group[-1] == groups[-1][-1]):
            groups.append(group)
    return groups


def _pairs(values: Mapping[str, Sequence[Exact]]) -> list[Pair]:
    from scipy.stats import wilcoxon

    pairs, p_values = list(combinations(values, 2)), []
    for pair in pairs:
        gaps = [
            Fraction(a) - Fraction(b) for a, b in zip(*(values[one] for one in pair), strict=True)
        ]
        # Wilcoxon ranks |gaps|: their exact places have the same ranks, and tie where gaps do
        places = _places([abs(gap) for gap in gaps])
        signed = [place * ((gap > 0) - (gap < 0)) for place, gap in zip(places, gaps, strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a normal approximation, where values are equal
            p_values.append(float(wilcoxon(signed).pvalue) if any(signed) else 1.0)
    return [Pair(*one) for one in zip(pairs, p_values, holm(p_values), strict=True)]
