"""Summaries of trials, against hand computations and scipy's paired t-test."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace
from scipy.stats import ttest_rel

from ahpatron_cli.output.formats import summary_to_text
from ahpatron_cli.records import Outcome
from ahpatron_cli.sweep.statistics import compare
from ahpatron_cli.sweep.summary import METRICS, DatasetSummary, summarise_trials
from support.trials import make_data, make_run, make_trial, make_trials


def found(*trials: Any) -> DatasetSummary:
    (only,) = summarise_trials(trials).datasets
    return only


def rates(values: Sequence[float]) -> dict[tuple[int, int], float]:
    return {(0, repeat): value for repeat, value in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "best", "mean", "se", "p_value"),
    [
        # gaps 1, 2, 3: mean 2, sd 1; t = 2√3 with two degrees of freedom, p = 1 - t/√(2 + t²)
        ([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], 2.0, 1 / math.sqrt(3), 1 - 2 * math.sqrt(3 / 14)),
        ([0.2], [0.1], 0.1, None, None),  # one permutation says nothing about noise
        ([0.1, 0.2], [0.1, 0.2], 0.0, 0.0, 1.0),
        ([0.5, 0.75], [0.25, 0.5], 0.25, 0.0, 0.0),  # the same gap always
    ],
)
def test_differences_are_those_worked_out_by_hand(
    values: list[float], best: list[float], mean: float, se: float | None, p_value: float | None
) -> None:
    gap = compare(rates(values), rates(best))
    assert gap is not None
    assert (gap.mean, gap.orders) == (pytest.approx(mean), len(values))
    assert (gap.se, gap.p_value) == (pytest.approx(se), pytest.approx(p_value))


@pytest.mark.parametrize("noise", [0.02, 0.0003, 0.0])
def test_noise_is_judged_as_by_the_paired_t_test(noise: float) -> None:
    best = [0.11, 0.12, 0.10, 0.13, 0.12]
    others = [0.002 + rate + noise * (-1) ** k for k, rate in enumerate(best, 1)]
    others[0] += 0.0001
    gap = compare(rates(others), rates(best))
    test = ttest_rel(others, best)
    assert gap is not None
    assert gap.se is not None
    assert gap.mean / gap.se == pytest.approx(test.statistic)
    assert gap.p_value == pytest.approx(test.pvalue)


def test_a_summary_has_means_and_marks_the_best() -> None:
    summary = found(
        *make_trials("ahpatron", [0.10, 0.12], epsilon=0.5),
        *make_trials("ahpatron", [0.14, 0.16], epsilon=0.6),
        *make_trials("avp", [0.12, 0.13]),
    )
    first, second, avp = summary.settings
    assert first.means.mistake_rate_mean == pytest.approx(0.11)
    assert first.means.mistake_rate_sd == pytest.approx(0.02 / math.sqrt(2))
    assert (first.best_of_data, first.best_of_learner, first.difference) == (True, True, None)
    assert (second.best_of_data, second.best_of_learner) == (False, False)
    assert (avp.best_of_data, avp.best_of_learner) == (False, True)
    assert avp.difference is not None
    assert avp.difference.mean == pytest.approx(0.015)
    assert avp.difference.p_holm == avp.difference.p_value  # of one rival
    assert summary.best == [first, avp]


TEN = [0.10 + 0.01 * repeat for repeat in range(10)]
"""Rates that depend on the permutation more than on the setting."""


def lacking(repeat: int, trials: Sequence[Outcome]) -> list[Outcome]:
    return [trial for trial in trials if trial.repeat != repeat]


@pytest.mark.parametrize("lost", range(10))
def test_the_best_setting_stays_the_best_if_any_of_its_trials_is_lost(lost: int) -> None:
    """And so do all other means and differences, on the other nine permutations."""
    best = make_trials("ahpatron", TEN, epsilon=0.5)
    others = [
        *make_trials("ahpatron", [rate + 0.001 for rate in TEN], epsilon=0.6),
        *make_trials("avp", [rate + 0.002 for rate in TEN]),
    ]
    summary = found(*lacking(lost, best), *others)
    first, second, avp = summary.settings
    assert (summary.winner.key, first.best_of_data) == (first.key, True)
    assert (first.missing, second.missing, avp.missing) == (1, 0, 0)
    assert all(setting.compared for setting in summary.settings)
    assert first.orders == second.orders
    assert second.mean - first.mean == pytest.approx(0.001)
    (_, rival) = summary.best
    assert rival.difference is not None
    assert (rival.difference.mean, rival.difference.orders) == (pytest.approx(0.002), 9)


def test_a_setting_with_too_few_permutations_is_not_compared() -> None:
    """Though its only permutation is the easiest one, and nobody is better on it."""
    summary = found(
        *make_trials("ahpatron", TEN, epsilon=0.5),
        *make_trials("ahpatron", [0.01], epsilon=0.6),
        *make_trials("avp", [0.02]),
    )
    first, second, avp = summary.settings
    assert summary.winner.key == first.key
    assert (second.compared, second.missing, second.mean) == (False, 9, 0.01)
    assert not second.best_of_learner
    assert (avp.compared, avp.best_of_learner, avp.difference) == (False, True, None)
    (_, rival) = summary.best
    assert (rival.compared, rival.best_of_data, rival.difference) == (False, False, None)
    assert summary.verdict(rival) is None


def test_ranks_and_marks_agree_on_incomplete_results() -> None:
    """Of learners that are compared on every data set; the others have no rank."""
    data = [make_data(f"{name}.svm") for name in "abc"]
    trials = [
        *(one for each in data for one in make_trials("ahpatron", TEN, each)),
        *(one for each in data for one in make_trials("avp", [r + 0.002 for r in TEN], each)),
        *(one for each in data for one in make_trials("rbp", [r + 0.001 for r in TEN], each)),
    ]
    easiest = trials[0]
    summary = summarise_trials([trial for trial in trials if trial is not easiest])
    assert summary.ranks.mean_ranks == {"ahpatron": 1.0, "rbp": 2.0, "avp": 3.0}
    assert [found.winner.learner for found in summary.datasets] == ["ahpatron"] * 3
    few = [one for one in trials if (one.learner, one.data) != ("rbp", data[0]) or one.repeat < 2]
    summary = summarise_trials(few)
    assert summary.ranks.mean_ranks == {"ahpatron": 1.0, "avp": 2.0}


def test_settings_that_are_equally_good_are_all_the_best() -> None:
    summary = found(
        *make_trials("ahpatron", [0.2, 0.1], epsilon=0.5),
        *make_trials("ahpatron", [0.1, 0.2], epsilon=0.6),
        *make_trials("avp", [0.1, 0.2]),
        *make_trials("rbp", [0.1, 0.3]),
    )
    assert [one.best_of_data for one in summary.settings] == [True, True, True, False]
    assert [one.best_of_learner for one in summary.settings] == [True, True, True, True]
    assert [summary.verdict(one) for one in summary.best] == ["best", "best", "n.s."]
    assert (summary.winner.learner, summary.winner.params) == ("ahpatron", {"epsilon": 0.5})


def test_learners_are_in_the_order_in_which_they_were_given() -> None:
    """By default that of the headers of a results file; others follow as in the registry."""
    names = ["perceptron", "avp", "ahpatron", "rbp"]
    trials = [one for name in names for one in make_trials(name, [0.1, 0.2])]
    origins = [{"learners": ["rbp"]}, {"learners": ["avp", "rbp"]}]
    for summary, order in (
        (summarise_trials(trials, origins), ["rbp", "avp", "ahpatron", "perceptron"]),
        (summarise_trials(trials, origins, order=names), names),
    ):
        (data,) = summary.datasets
        assert [one.name for one in data.settings] == order
        assert [one.name for one in data.best] == order
        assert list(summary.matrix) == order


def of_edition(trials: Sequence[Outcome], **edition: Any) -> list[Outcome]:
    return [structs.replace(one, id=f"{one.id} {edition}", **edition) for one in trials]


@pytest.mark.parametrize(
    ("editions", "names"),
    [
        (
            [{"source": f"sha256:{digit * 64}", "algorithm": 8} for digit in "ab"],
            ["mine (source aaaaaa)", "mine (source bbbbbb)"],
        ),
        ([{"algorithm": 7}, {"algorithm": 8}], ["mine (algorithm 7)", "mine (algorithm 8)"]),
        ([{"version": "0.1"}, {"version": "0.2"}], ["mine (version 0.1)", "mine (version 0.2)"]),
        (
            [{"source": "sha256:cc", "algorithm": 7}, {"source": "their 1.0", "algorithm": 8}],
            ["mine (source cc, algorithm 7)", "mine (their 1.0, algorithm 8)"],
        ),
    ],
)
def test_results_of_different_code_are_not_averaged(
    editions: list[dict[str, Any]], names: list[str]
) -> None:
    """The first has three permutations, the second only two of them yet."""
    summary = found(
        *of_edition(make_trials("mine", [0.3, 0.4, 0.5]), **editions[0]),
        *of_edition(make_trials("mine", [0.1, 0.2]), **editions[1]),
        *make_trials("rbp", [0.2, 0.2, 0.2]),
    )
    means = {one.name: one.mean for one in summary.best}
    assert means == pytest.approx({names[0]: 0.35, names[1]: 0.15, "rbp": 0.2})


def test_versions_with_the_same_algorithms_are_one() -> None:
    trials = make_trials("avp", [0.1, 0.3])
    first, second = (
        structs.replace(one, algorithm=8, version=version)
        for one, version in zip(trials, ("1.1.0", "1.1.1"), strict=True)
    )
    (setting,) = found(first, second).settings
    assert (setting.name, setting.mean) == ("avp", 0.2)


@pytest.mark.parametrize(
    ("params", "label"),
    [
        ([{"epsilon": 0.5, "sigma": 1.0}, {"epsilon": 0.6, "sigma": 1.0}], "epsilon=0.5"),
        (
            [{"budget": 8, "step": 0.5}, {"budget": 8, "step": 1.0}, {"budget": 9, "step": 1.0}],
            "budget=8, step=0.5",
        ),
        ([{"budget": 8, "radius": 2.5}, {"budget": 9, "radius": 2.7}], "budget=8"),  # it follows
        ([{"radius": math.inf}, {"radius": "keep"}], "radius=inf"),
        ([{"step": 0.0031622776601683794}, {"step": 0.01}], "step=0.00316228"),  # no guess
        ([{"step": 0.2236}, {"step": 1.0}], "step=0.2236"),
        ([{"step": 0.50000001}, {"step": 0.50000002}], "step=0.50000001"),
        ([{"rescale": "keep"}, {"rescale": 0.5}], "rescale=0.5"),
        ([{"epsilon": 0.7}, {"epsilon": 0.5}], "epsilon=0.5"),
        ([{"epsilon": 0.5}], ""),
    ],
)
def test_the_label_is_what_varies(params: Sequence[Mapping[str, Any]], label: str) -> None:
    summary = found(*(make_trial("ahpatron", 0.1, params=one) for one in params))
    assert summary.settings[0].label == label


def test_values_are_shown_as_they_were_written() -> None:
    """Steps that follow from T, of one label on all data sets, and the σ left to the data."""
    trials = [
        make_trial(
            "nogd",
            0.1,
            params={"sigma": sigma, "step": value / root},
            data=make_data(path),
            texts={"step": f"{value}/√T", **auto},
        )
        for path, root in (("a.svm", 10), ("b.svm", 20))
        for value in (1, 2)
        for sigma, auto in ((0.4375, {"sigma": "auto"}), (2.0, {}))
    ]
    labels = [[one.label for one in data.settings] for data in summarise_trials(trials).datasets]
    sigmas = ["sigma=auto (0.438)", "sigma=2"]
    assert labels == [[f"{sigma}, step={value}/√T" for sigma in sigmas for value in (1, 2)]] * 2


def test_failed_trials_are_kept_apart_and_no_permutation_counts_twice() -> None:
    failed = make_trial("avp", None, error="no memory")
    summary = summarise_trials([make_trial("ahpatron", 0.1)] * 2 + [failed])
    assert (summary.trials, summary.failed) == (2, [failed])
    (setting,) = summary.datasets[0].settings
    assert (setting.learner, setting.means.repeats, len(setting.values)) == ("ahpatron", 1, 1)
    nothing = summarise_trials([failed], [{"version": "0.1.0"}])
    assert (nothing.datasets, nothing.trials, len(nothing.failed)) == ([], 0, 1)
    assert nothing.origins == [{"version": "0.1.0"}]


def test_seconds_of_several_machines_are_said_to_be_such() -> None:
    here, there, unknown = (make_trial("ahpatron", 0.1, repeat) for repeat in range(3))
    trials = [replace(here, machine="a (x86)"), replace(there, machine="b (arm)"), unknown]
    summary = summarise_trials(trials)
    (data,) = summary.datasets
    assert data.timed_on == data.settings[0].timed_on == ["a (x86)", "b (arm)", "not recorded"]
    text = " ".join(summary_to_text(summary, "table").split())
    assert "Seconds: means over trials on several machines: a (x86); b (arm); not recorded." in text
    assert "machines" not in summary_to_text(summarise_trials([here, there]), "table")


def test_equal_totals_are_ties_whatever_their_float_means_are() -> None:
    """The means of 0.253, 0.171, 0.125 and of 0.167, 0.033, 0.349 differ in the last bit."""
    totals = {"ahpatron": [0.253, 0.171, 0.125], "avp": [0.167, 0.033, 0.349], "rbp": [0.2] * 3}
    summary = summarise_trials(
        [
            one
            for name in "abc"
            for learner, values in totals.items()
            for one in make_trials(learner, values, make_data(f"{name}.svm"))
        ]
    )
    for data in summary.datasets:
        ahpatron, avp, _ = data.settings
        assert ahpatron.mean == avp.mean == 0.183
        assert data.winner.learner == "ahpatron"  # the first of equals
        assert avp.difference is not None
        assert avp.difference.mean == 0
    assert summary.ranks.mean_ranks == {"ahpatron": 1.5, "avp": 1.5, "rbp": 3.0}
    assert summary.ranks.pairs[0].p_value == 1


@pytest.mark.parametrize(
    ("shards", "part"),
    [
        ([None], None),
        ([[2, 3]], "part 2 of 3"),
        ([[3, 3], [1, 3], [1, 3]], "parts 1, 3 of 3"),
        ([[1, 2], [2, 2]], None),
        ([[1, 2], None], None),
    ],
)
def test_a_summary_says_which_shards_it_has(
    shards: list[list[int] | None], part: str | None
) -> None:
    headers = [{"shard": shard} if shard else {"version": "1"} for shard in shards]
    assert summarise_trials([make_trial("ahpatron", 0.1)], headers).part == part


@pytest.mark.parametrize(("metric", "worst"), [("balanced_error", 1), ("f1", 0), ("kappa", 0)])
def test_a_metric_that_is_undefined_counts_as_the_worst(metric: str, worst: int) -> None:
    cells = {"true_positives": 0, "false_positives": 0, "false_negatives": 0}
    run = make_run(mistakes=0, true_negatives=1000, **cells)
    assert METRICS[metric].of(run) == worst
