"""Grids: what the words after -g mean."""

from __future__ import annotations

import math

import pytest

from ahpatron_cli.core import REGISTRY
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.sweep.grid import (
    MOST_VALUES,
    Choice,
    check_names,
    expand,
    single_setups,
    size_of,
    typed_layer,
)


def choices(flag: str, words: list[str], learners: list[str]) -> list[Choice]:
    return typed_layer({}, {flag: words}, learners, "gaussian")[0]


def values(name: str, text: str, learner: str = "ahpatron", rounds: int = 10_000) -> list[object]:
    layer = [Choice(None, name, (text,), f"-g {name}")]
    return [setup.learner_params[name] for setup, _ in expand(learner, "gaussian", [layer], rounds)]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("epsilon", "0.5,0.6,0.7", [0.5, 0.6, 0.7]),
        ("epsilon", "0.5", [0.5]),
        ("epsilon", "0.5:0.9:0.1", [0.5, 0.6, 0.7, 0.8, 0.9]),
        ("epsilon", "0.5:0.95:0.2", [0.5, 0.7, 0.9]),
        ("budget", "100:400:100", [100, 200, 300, 400]),
        ("budget", "100:100:2", [100]),
        ("budget", "50,100:200:50", [50, 100, 150, 200]),
        ("budget", "50,50,100", [50, 100]),
        ("budget", "log:50:3200:7", [50, 100, 200, 400, 800, 1600, 3200]),
        ("budget", "log:10:100:3", [10, 32, 100]),
        ("budget", "log:1:10:3", [2, 4, 10]),
        ("ridge", "log:0.001:1:4", [0.001, 0.01, 0.1, 1.0]),
        ("ridge", "10^[-2:1]", [0.01, 0.1, 1.0, 10.0]),
        ("ridge", "2^[-1:1]", [0.5, 1.0, 2.0]),
        ("selection", "magnitude,greedy", ["magnitude", "greedy"]),
    ],
)
def test_forms(name: str, text: str, wanted: list[object]) -> None:
    assert values(name, text) == wanted


def test_values_that_depend_on_the_data_keep_the_text_of_the_grid() -> None:
    words = ["step=10^[-1:0]/sqrt(T),2/T,0.2236", "sigma=auto,2"]
    found = list(expand("nogd", "gaussian", [choices("-g", words, ["nogd"])], 2000))
    texts = [(one.get("step"), one.get("sigma")) for _, one in found]
    steps = ["10^-1/√T", "10^0/√T", "2/T", None]
    assert texts == [(step, sigma) for step in steps for sigma in ("auto", None)]
    assert found[-1][0].learner_params["step"] == 0.2236  # 10/√T, up to its digits


@pytest.mark.parametrize("rounds", [100, 12_345])
def test_steps_that_depend_on_the_number_of_rounds(rounds: int) -> None:
    wanted = [10.0**power / math.sqrt(rounds) for power in range(-3, 4)]
    assert values("step", "10^[-3:3]/sqrt(T)", "nogd", rounds) == pytest.approx(wanted, rel=1e-14)
    assert values("step", "2 / T, 0.5", "nogd", rounds) == [2 / rounds, 0.5]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("epsilon", "0.5:0.9", "not a range"),
        ("epsilon", "0.9:0.5:0.1", "LOW <= HIGH and STEP > 0"),
        ("epsilon", "0.5:0.9:0", "LOW <= HIGH and STEP > 0"),
        ("epsilon", "0.5:0.9:-0.1", "LOW <= HIGH and STEP > 0"),
        ("epsilon", "0.5,,0.6", "got ''"),
        ("epsilon", "a:b:c", "'a' is not a number"),
        ("epsilon", "0.1:nan:0.1", "'nan' is not a number"),
        ("epsilon", "0.1:1_0:0.1", "'1_0' is not a number"),
        ("epsilon", "0.5,1.5", "-g epsilon must be a number > 0 and < 1, got 1.5"),
        ("budget", "1:9:2", "an even whole number"),
        ("budget", "100:1e9:2", f"at most {MOST_VALUES:,}"),
        ("budget", "log:0:10:3", "0 < LOW < HIGH"),
        ("budget", "log:10:5:3", "0 < LOW < HIGH"),
        ("budget", "log:1:10:1", "at least 2"),
        ("budget", "log:2:1000:99999999", f"at most {MOST_VALUES:,}"),
        ("budget", "100/sqrt(T)", "depends on T"),
        ("ridge", "10^[0.5:2]", "requires BASE > 0 and whole LOW"),
        ("ridge", "-1^[1:2]", "requires BASE > 0 and whole LOW"),
        ("ridge", "10^[1:2:3]", "not a number"),
        ("ridge", "abc/sqrt(T)", "'abc' is not a number"),
        ("ridge", "10^[300:400]", "ridge"),
        ("ridge", "1e300^[1:5000]", "too large"),
    ],
)
def test_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(UserError) as refusal:
        values(name, text)
    assert said in refusal.value.problem
    assert refusal.value.code == ExitCode.USAGE


def test_every_combination_of_learner_and_kernel() -> None:
    layer = choices("-g", ["budget=20,40", "sigma=1,2", "epsilon=0.5,0.6"], ["ahpatron"])
    setups = [setup for setup, _ in expand("ahpatron", "gaussian", [layer], 100)]
    assert len(setups) == 8
    assert {setup.kernel_params["sigma"] for setup in setups} == {1.0, 2.0}
    assert len(list(expand("perceptron", "gaussian", [layer], 100))) == 2  # only σ concerns it


def test_later_layers_win_and_a_learner_goes_before_all() -> None:
    low = [Choice(None, "budget", ("20",), ""), Choice("rbp", "budget", ("30",), "")]
    high = [Choice(None, "budget", ("40",), "")]

    def budget(learner: str, *layers: list[Choice]) -> object:
        ((setup, _),) = expand(learner, "gaussian", layers, 100)
        return setup.learner_params["budget"]

    assert budget("ahpatron", low) == 20
    assert budget("rbp", low) == 30
    assert budget("rbp", low, high) == 40
    assert budget("rbp", high, low) == 30


def test_names_that_nothing_has() -> None:
    with pytest.raises(UserError, match="'epsilo'") as refusal:
        choices("-g", ["epsilo=0.5"], ["ahpatron"])
    assert refusal.value.hint == "did you mean epsilon?"
    with pytest.raises(UserError, match="perceptron has no parameter 'budget'"):
        choices("-g", ["perceptron.budget=4"], list(REGISTRY))


def test_a_misspelt_name_in_a_configuration_says_where() -> None:
    layer = [Choice(None, "epsilo", ("1",), "sweep.toml: grid.epsilo")]
    with pytest.raises(UserError, match=r"sweep\.toml: grid\.epsilo: no learner") as refusal:
        check_names(layer, list(REGISTRY), "gaussian")
    assert refusal.value.hint == "did you mean epsilon?"


def test_a_learner_with_a_kernel_of_its_own_is_not_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(REGISTRY["rbp"], "own_kernel", True, raising=False)
    layer = choices("-g", ["sigma=1,2", "budget=4,6"], ["rbp", "ahpatron"])
    assert size_of("rbp", "gaussian", [layer]) == 2
    assert [setup.kernel_params for setup, _ in expand("rbp", "gaussian", [layer], 9)] == [{}, {}]
    assert size_of("ahpatron", "gaussian", [layer]) == 4


@pytest.mark.parametrize("learner", ["ahpatron", "perceptron", "nogd"])
def test_the_size_of_a_grid_is_known_beforehand(learner: str) -> None:
    layer = choices("-g", ["budget=20:100:20", "sigma=1,2", "epsilon=0.5,0.6,0.7"], ["ahpatron"])
    made = list(expand(learner, "gaussian", [layer], 100))
    assert size_of(learner, "gaussian", [layer]) == len(made)


def test_the_size_is_known_though_the_rounds_are_not() -> None:
    relative = [Choice(None, "epsilon", ("100/T,200/T",), "-g epsilon")]
    assert size_of("ahpatron", "gaussian", [relative]) == 2  # legal for large T


def test_a_parameter_named_twice() -> None:
    with pytest.raises(UserError, match="twice"):
        choices("-g", ["budget=4", "budget=6"], ["ahpatron"])


@pytest.mark.parametrize("word", ["budget", "budget=", "=4", ""])
def test_words_without_a_value(word: str) -> None:
    with pytest.raises(UserError, match="-g takes NAME=VALUES"):
        choices("-g", [word], ["ahpatron"])


def test_values_that_do_not_go_together_are_refused_before_anything_runs() -> None:
    layer = choices("-g", ["budget=3"], ["ahpatron"])
    with pytest.raises(UserError, match="even"):
        list(expand("ahpatron", "gaussian", [layer], 100))


def test_run_plays_a_grid_of_one_value_each() -> None:
    params = ["ridge=0.01", "ahpatron.budget=40"]
    (ahpatron, avp), remarks = single_setups(
        ["ahpatron", "avp"], "gaussian", params, {"epsilon": "0.25", "sigma": "auto"}
    )
    assert ahpatron.learner_params == {"epsilon": 0.25, "ridge": 0.01, "budget": 40}
    assert avp.learner_params == {"epsilon": 0.25}
    assert ahpatron.kernel_params == avp.kernel_params == {"sigma": "auto"}
    assert remarks == []
    _, remarks = single_setups(["perceptron"], "linear", [], {"sigma": "1", "budget": "4"})
    assert remarks == [
        "--sigma has no effect: the linear kernel has no such parameter",
        "--budget has no effect: perceptron has no such parameter",
    ]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("budget=20,40", "ahpatron is given 2 settings"),
        ("budget=20:40:10", "ahpatron is given 3 settings"),
        ("step=1/sqrt(T)", "-p step: 1/sqrt(T) depends on T"),
        ("budget", "-p takes NAME=VALUE"),
    ],
)
def test_run_refuses_more(word: str, said: str) -> None:
    with pytest.raises(UserError) as refusal:
        single_setups(["ahpatron"], "gaussian", [word], {})
    assert said in refusal.value.problem
    assert refusal.value.code == ExitCode.USAGE
