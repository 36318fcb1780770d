"""Grids: what the words after -p mean."""

import math

import pytest

from ahpatron_cli.core import REGISTRY
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.grid import MOST_VALUES, Choice, expand
from ahpatron_cli.settings import Learning
from ahpatron_cli.setups import typed_layer


def choices(words: list[str], learners: list[str]) -> list[Choice]:
    learning = Learning(param=tuple(words))
    return typed_layer(learning, frozenset(), learners, print, several=True)


def values(name: str, text: str, learner: str = "ahpatron", rounds: int = 10_000) -> list[object]:
    layer = [Choice(None, name, (text,), f"-p {name}")]
    return [setup.learner_params[name] for setup in expand(learner, "gaussian", [layer], rounds)]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("epsilon", "0.5,0.6,0.7", [0.5, 0.6, 0.7]),
        ("epsilon", "0.5:0.9:0.1", [0.5, 0.6, 0.7, 0.8, 0.9]),
        ("epsilon", "0.5:0.95:0.2", [0.5, 0.7, 0.9]),
        ("budget", "100:100:2", [100]),
        ("budget", "50,100:200:50,50", [50, 100, 150, 200]),
        ("budget", "log:50:3200:7", [50, 100, 200, 400, 800, 1600, 3200]),
        ("budget", "log:1:10:3", [2, 4, 10]),
        ("ridge", "log:0.001:1:4", [0.001, 0.01, 0.1, 1.0]),
        ("ridge", "10^[-2:1]", [0.01, 0.1, 1.0, 10.0]),
        ("ridge", "2^[-1:1]", [0.5, 1.0, 2.0]),
        ("ridge", "10^-2,10^1", [0.01, 10.0]),
        ("selection", "magnitude,greedy", ["magnitude", "greedy"]),
    ],
)
def test_each_form_of_a_grid_has_its_values(name: str, text: str, wanted: list[object]) -> None:
    assert values(name, text) == wanted


def test_values_that_depend_on_the_data_keep_the_text_of_the_grid() -> None:
    words = ["step=10^[-1:0]/sqrt(T),2/T,0.2236", "sigma=auto,2"]
    found = list(expand("nogd", "gaussian", [choices(words, ["nogd"])], 2000))
    texts = [(one.texts.get("step"), one.texts.get("sigma")) for one in found]
    steps = ["10^-1/√T", "10^0/√T", "2/T", None]
    assert texts == [(step, sigma) for step in steps for sigma in ("auto", None)]
    assert found[-1].learner_params["step"] == 0.2236  # 10/√T, up to its digits


@pytest.mark.parametrize("text", ["10^2/sqrt(T)", "10^2/√T", "10^-1/√T", "2/T"])
def test_a_value_is_accepted_as_tables_show_it(text: str) -> None:
    (found,) = expand("nogd", "gaussian", [choices([f"step={text}"], ["nogd"])], 2500)
    shown = found.texts["step"]
    (again,) = expand("nogd", "gaussian", [choices([f"step={shown}"], ["nogd"])], 2500)
    assert shown == text.replace("sqrt(T)", "√T")
    assert again == found


@pytest.mark.parametrize("rounds", [100, 12_345])
def test_steps_are_divided_by_the_number_of_rounds_or_its_root(rounds: int) -> None:
    wanted = [10.0**power / math.sqrt(rounds) for power in range(-3, 4)]
    assert values("step", "10^[-3:3]/sqrt(T)", "nogd", rounds) == pytest.approx(wanted, rel=1e-14)
    assert values("step", "2 / T, 0.5", "nogd", rounds) == [2 / rounds, 0.5]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("epsilon", text) for text in ("0.5:0.9", "0.9:0.5:0.1", "0.5:0.9:0", "0.5:0.9:-0.1")),
        *(("epsilon", text) for text in ("0.5,,0.6", "a:b:c", "0.1:nan:0.1", "0.1:1_0:0.1", "1.5")),
        *(("budget", text) for text in ("1:9:2", "100:1e9:2", "log:0:10:3", "log:10:5:3")),
        *(("budget", text) for text in ("log:1:10:1", "log:2:1000:99999999", "100/sqrt(T)", "3")),
        *(("ridge", text) for text in ("10^[0.5:2]", "-1^[1:2]", "10^[1:2:3]", "abc/sqrt(T)")),
        *(("ridge", text) for text in ("10^[300:400]", "1e300^[1:5000]")),
    ],
)
def test_values_that_cannot_be_are_refused_with_their_option(name: str, text: str) -> None:
    with pytest.raises(UserError) as refusal:
        values(name, text)
    assert f"-p {name}" in refusal.value.problem
    assert refusal.value.code == ExitCode.USAGE


def test_a_grid_too_large_is_refused_before_it_is_written_out() -> None:
    words = [f"budget=2:{2 * MOST_VALUES}:2", f"sigma=1:{MOST_VALUES}:1"]
    with pytest.raises(UserError, match="settings"):
        next(expand("ahpatron", "gaussian", [choices(words, ["ahpatron"])], 100))


def test_every_combination_of_learner_and_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = choices(["budget=20,40", "sigma=1,2", "epsilon=0.5,0.6"], ["ahpatron"])
    setups = list(expand("ahpatron", "gaussian", [layer], 100))
    assert len(setups) == 8
    assert {setup.kernel_params["sigma"] for setup in setups} == {1.0, 2.0}
    assert len(list(expand("perceptron", "gaussian", [layer], 100))) == 2  # only σ concerns it
    monkeypatch.setattr(REGISTRY["rbp"], "own_kernel", True, raising=False)
    assert [one.kernel_params for one in expand("rbp", "gaussian", [layer], 9)] == [{}, {}]


def test_later_layers_win_and_a_learner_goes_before_all() -> None:
    low = [Choice(None, "budget", ("20",), ""), Choice("rbp", "budget", ("30",), "")]
    high = [Choice(None, "budget", ("40",), "")]

    def budget(learner: str, *layers: list[Choice]) -> object:
        (setup,) = expand(learner, "gaussian", layers, 100)
        return setup.learner_params["budget"]

    assert (budget("ahpatron", low), budget("rbp", low)) == (20, 30)
    assert (budget("rbp", low, high), budget("rbp", high, low)) == (40, 30)


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["epsilo=0.5"], "no parameter 'epsilo'", "did you mean epsilon?"),
        (["perceptron.budget=4"], "perceptron has no parameter 'budget'", ""),
        (["avp.epsilon=0.5"], "avp is not among", "-l avp"),
        (["ahpatron.sigma=0.5"], "ahpatron has no parameter 'sigma'", "-p sigma=…"),
        (["ahpatrn.epsilon=0.5"], "'ahpatrn'", "did you mean ahpatron?"),
        (["budget=4", "budget=6"], "budget is given twice", ""),
        *(([word], "-p takes NAME=VALUES", "") for word in ("budget", "budget=", "=4", "")),
    ],
)
def test_an_illegal_word_is_refused_with_a_hint(words: list[str], problem: str, hint: str) -> None:
    with pytest.raises(UserError) as refusal:
        choices(words, ["ahpatron", "perceptron"])
    assert problem in refusal.value.problem
    assert hint in (refusal.value.hint or "")
