"""What trials say together, against hand computations and scipy's paired t-test."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from scipy.stats import ttest_rel

from ahpatron_cli.sweep.statistics import compare
from ahpatron_cli.sweep.summary import DatasetSummary, Setting, distinct_names, summarise_trials
from support import sweeps
from support.trials import make_data, make_trial, make_trials


def found(*trials: Any) -> DatasetSummary:
    (only,) = summarise_trials(trials).datasets
    return only


def by_learner(findings: DatasetSummary) -> dict[str, Setting]:
    return {setting.learner: setting for setting in findings.settings}


def rates(values: Sequence[float]) -> dict[tuple[int, int], float]:
    return {(0, repeat): value for repeat, value in enumerate(values)}


def test_a_difference_worked_out_by_hand() -> None:
    # gaps 1, 2, 3: mean 2, sd 1, so the standard error is 1/√3
    gap = compare(rates([2.0, 4.0, 6.0]), rates([1.0, 2.0, 3.0]))
    assert gap is not None
    assert gap.mean == 2.0
    assert gap.se == pytest.approx(1 / math.sqrt(3))
    assert gap.orders == 3
    # t = 2√3 with two degrees of freedom, whose tails are known: p = 1 - t/√(2 + t²)
    assert gap.p_value == pytest.approx(1 - 2 * math.sqrt(3 / 14))


@pytest.mark.parametrize(
    "others",
    [
        [0.12, 0.13, 0.12, 0.14, 0.13],
        [0.1101, 0.1202, 0.0999, 0.1305, 0.1203],
        [0.11, 0.12, 0.10, 0.1301, 0.12],
        [0.2, 0.1, 0.2, 0.1, 0.2],
    ],
)
def test_noise_is_judged_as_by_the_paired_t_test(others: Sequence[float]) -> None:
    best = [0.11, 0.12, 0.10, 0.13, 0.12]
    gap = compare(rates(others), rates(best))
    test = ttest_rel(others, best)
    assert gap is not None
    assert gap.se is not None
    assert gap.mean / gap.se == pytest.approx(test.statistic)
    assert gap.p_value == pytest.approx(test.pvalue)


def test_orders_are_paired_by_seed_and_repeat_not_by_place() -> None:
    mine = {(0, 1): 0.3, (0, 0): 0.2, (1, 0): 0.5}
    best = {(0, 0): 0.1, (0, 1): 0.2, (2, 0): 0.9}
    gap = compare(mine, best)
    assert gap is not None
    assert (gap.mean, gap.orders) == (pytest.approx(0.1), 2)


def test_one_order_says_nothing_about_noise() -> None:
    gap = compare(rates([0.2]), rates([0.1]))
    assert gap is not None
    assert (gap.mean, gap.se, gap.orders, gap.p_value) == (0.1, None, 1, None)


def test_no_order_in_common_is_no_difference() -> None:
    assert compare({(0, 0): 0.2}, {(1, 0): 0.1}) is None


def test_the_same_rates_are_within_noise() -> None:
    gap = compare(rates([0.1, 0.2]), rates([0.1, 0.2]))
    assert gap is not None
    assert (gap.mean, gap.se, gap.p_value) == (0.0, 0.0, 1.0)


def test_a_gap_that_is_always_the_same_is_more_than_noise() -> None:
    gap = compare(rates([0.5, 0.75]), rates([0.25, 0.5]))
    assert gap is not None
    assert (gap.mean, gap.se, gap.p_value) == (0.25, 0.0, 0.0)


def test_means_and_the_best() -> None:
    findings = found(
        *make_trials("ahpatron", [0.10, 0.12], epsilon=0.5),
        *make_trials("ahpatron", [0.14, 0.16], epsilon=0.6),
        *make_trials("avp", [0.12, 0.13]),
    )
    first, second, avp = findings.settings
    assert first.summary.mistake_rate_mean == pytest.approx(0.11)
    assert first.summary.mistake_rate_sd == pytest.approx(0.02 / math.sqrt(2))
    assert (first.best_of_data, first.best_of_learner, first.difference) == (True, True, None)
    assert (second.best_of_data, second.best_of_learner) == (False, False)
    assert (avp.best_of_data, avp.best_of_learner) == (False, True)
    assert avp.difference is not None
    assert avp.difference.mean == pytest.approx(0.015)
    assert findings.best == [first, avp]


def test_of_equal_settings_the_first_is_best() -> None:
    findings = found(
        *make_trials("ahpatron", [0.1, 0.2], epsilon=0.5),
        *make_trials("ahpatron", [0.2, 0.1], epsilon=0.6),
        *make_trials("avp", [0.1, 0.2]),
    )
    assert [setting.best_of_data for setting in findings.settings] == [True, False, False]
    assert [setting.best_of_learner for setting in findings.settings] == [True, False, True]


def test_a_setting_with_fewer_orders_is_not_the_best() -> None:
    findings = found(
        *make_trials("ahpatron", [0.10, 0.30]),
        *make_trials("avp", [0.05]),
    )
    settings = by_learner(findings)
    assert settings["ahpatron"].best_of_data
    assert settings["avp"].best_of_learner
    gap = settings["avp"].difference
    assert gap is not None
    assert (gap.mean, gap.orders, gap.more_than_noise) == (pytest.approx(-0.05), 1, None)


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
        ([{"step": 0.0031622776601683794}, {"step": 0.01}], "step=0.00316"),  # no guess
        ([{"step": 0.2236}, {"step": 0.01}, {"step": 1.0}], "step=0.01"),
        ([{"step": 0.50001}, {"step": 0.50002}], "step=0.50001"),  # three digits are not enough
        ([{"rescale": "keep"}, {"rescale": 0.5}], "rescale=0.5"),
        ([{"epsilon": 0.7}, {"epsilon": 0.5}], "epsilon=0.5"),
        ([{"epsilon": 0.5}], ""),
    ],
)
def test_the_label_is_what_varies(params: Sequence[Mapping[str, Any]], label: str) -> None:
    findings = found(*(make_trial("ahpatron", 0.1, params=one) for one in params))
    assert findings.settings[0].label == label


def test_values_are_shown_as_they_were_written() -> None:
    """Steps that follow from T, and the σ that was left to the data."""
    step = 10 / math.sqrt(30_000)
    findings = sweeps.summarise_trials(
        [
            sweeps.trial(
                "nogd", {"step": step, "sigma": 0.4375}, texts={"step": "10^1/√T", "sigma": "auto"}
            ),
            sweeps.trial("nogd", {"step": step, "sigma": 2.0}, texts={"step": "10^1/√T"}),
            sweeps.trial("nogd", {"step": 0.2236, "sigma": 2.0}),
        ]
    )
    assert [one.label for one in findings.datasets[0].settings] == [
        "sigma=auto (0.438), step=10^1/√T",
        "sigma=2, step=10^1/√T",
        "sigma=2, step=0.2236",
    ]


def test_what_varies_is_a_matter_of_one_learner() -> None:
    findings = found(
        make_trial("ahpatron", 0.1, params={"epsilon": 0.5}),
        make_trial("avp", 0.1, params={"epsilon": 0.6}),
    )
    assert [setting.varied for setting in findings.settings] == [{}, {}]


def test_an_order_counts_once() -> None:
    twice = [make_trial("ahpatron", 0.1), make_trial("ahpatron", 0.1)]
    (setting,) = found(*twice).settings
    assert setting.summary.repeats == len(setting.values) == 1


def test_failed_trials_are_kept_apart() -> None:
    failed = make_trial("avp", None, error="no memory")
    findings = summarise_trials([make_trial("ahpatron", 0.1), failed])
    assert findings.trials == 1
    assert findings.failed == [failed]
    assert [setting.learner for setting in findings.datasets[0].settings] == ["ahpatron"]


def test_a_data_set_whose_trials_all_failed_is_left_out() -> None:
    findings = summarise_trials([make_trial("ahpatron", None, error="no memory")])
    assert (findings.datasets, findings.trials, len(findings.failed)) == ([], 0, 1)


def test_nothing_is_found_in_nothing() -> None:
    findings = summarise_trials([], [{"version": "0.1.0"}])
    assert (findings.datasets, findings.trials, findings.failed) == ([], 0, [])
    assert findings.origins == [{"version": "0.1.0"}]


def test_the_same_bytes_are_one_data_set_whatever_they_are_called() -> None:
    findings = found(
        make_trial("ahpatron", 0.1, data=make_data("x/a.svm", sha256="c0ffee")),
        make_trial("avp", 0.2, data=make_data("y/b.svm", sha256="c0ffee")),
    )
    assert findings.name == "a.svm"
    assert len(findings.settings) == 2


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"limit": 10}, "a.svm, limit=10"),
        ({"scale": "unit"}, "a.svm, scale=unit"),
        ({"positive": 2.0}, "a.svm, positive=2"),
        ({"shuffled": False}, "a.svm (2)"),
    ],
)
def test_the_same_bytes_played_otherwise_are_another_data_set(
    change: dict[str, Any], name: str
) -> None:
    findings = summarise_trials(
        [make_trial("ahpatron", 0.1), make_trial("ahpatron", 0.2, data=make_data(**change))]
    )
    assert [one.name for one in findings.datasets] == ["a.svm", name]


def test_files_without_a_hash_are_told_apart_by_path() -> None:
    findings = summarise_trials(
        [
            make_trial("ahpatron", 0.1, data=make_data("a.svm", sha256=None)),
            make_trial("ahpatron", 0.2, data=make_data("b.svm", sha256=None)),
        ]
    )
    assert [one.name for one in findings.datasets] == ["a.svm", "b.svm"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ([], []),
        (["data/a.svm"], ["a.svm"]),
        (["data/a.svm", "data/b.svm"], ["a.svm", "b.svm"]),
        (["x/a.svm", "y/a.svm"], ["x/a.svm", "y/a.svm"]),
        (["a.svm", "y/a.svm"], ["a.svm", "y/a.svm"]),
        (["1/x/a.svm", "2/x/a.svm"], ["1/x/a.svm", "2/x/a.svm"]),
        (["a.svm", "a.svm", "a.svm"], ["a.svm", "a.svm", "a.svm"]),
        (["", "a"], [".", "a"]),
    ],
)
def test_names_are_as_short_as_they_may_be(paths: list[str], names: list[str]) -> None:
    assert distinct_names(paths) == names


def test_equal_totals_are_ties_whatever_their_float_means_are() -> None:
    """The means of 0.253, 0.171, 0.125 and of 0.167, 0.033, 0.349 differ in the last bit."""
    totals = {"ahpatron": [0.253, 0.171, 0.125], "avp": [0.167, 0.033, 0.349], "rbp": [0.2] * 3}
    findings = summarise_trials(
        [
            one
            for name in "abc"
            for learner, values in totals.items()
            for one in make_trials(learner, values, make_data(f"{name}.svm", sha256=name))
        ]
    )
    for data in findings.datasets:
        settings = by_learner(data)
        assert settings["ahpatron"].mean == settings["avp"].mean == 0.183
        assert data.winner.learner == "ahpatron"  # the first of equals
        assert [one.ties_best for one in data.settings] == [True, True, False]
        gap = settings["avp"].difference
        assert gap is not None
        assert gap.mean == 0
    assert findings.ranks.mean_ranks == {"ahpatron": 1.5, "avp": 1.5, "rbp": 3.0}
    assert findings.ranks.pairs[0].p_value == 1


def test_a_value_of_several_data_sets_is_one_setting() -> None:
    findings = sweeps.summarise_trials(
        [
            sweeps.trial(
                "nogd",
                {"step": value / root},
                path=path,
                texts={"step": f"{value}/√T"},
            )
            for path, root in (("a.svm", 10), ("b.svm", 20))
            for value in (1, 2)
        ]
    )
    labels = [[one.label for one in data.settings] for data in findings.datasets]
    assert labels == [["step=1/√T", "step=2/√T"]] * 2


def test_seconds_are_means() -> None:
    runs = [make_trial("ahpatron", 0.1, number, seconds=number + 1.0) for number in range(2)]
    assert found(*runs).winner.summary.seconds_mean == 1.5


@pytest.mark.parametrize(
    ("shards", "part"),
    [
        ([], None),
        ([None], None),
        ([[2, 3]], "part 2 of 3"),
        ([[3, 3], [1, 3], [1, 3]], "parts 1, 3 of 3"),
        ([[1, 2], [2, 2]], None),
        ([[1, 2], None], None),
    ],
)
def test_the_part_of_a_sweep(shards: list[list[int] | None], part: str | None) -> None:
    headers = [{"shard": shard} if shard else {"version": "1"} for shard in shards]
    assert summarise_trials([make_trial("ahpatron", 0.1)], headers).part == part
