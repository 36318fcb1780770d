"""Declared parameters: legal values, their description, defaults, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.parameters import (
    Declared,
    Spec,
    as_in,
    choice,
    integer,
    real,
    share_of_budget,
)

COUNT = Spec(int, "B", "a count", at_least=2)
EVEN = Spec(int, "B", "an even count", at_least=2, even=True)
SHARE = Spec(float, "ε", "a share", over=0, at_most=0.5)
RADIUS = Spec(float, "U", "a radius", over=0, infinite=True)
NORM = Spec(float, "c", "a norm", words=("keep",), under=1)
WORD = Spec(str, "s", "a word", words=("constant", "adaptive"))


@dataclass
class Example(Declared):
    """Parameters of each kind."""

    budget: int = integer("B", "a count", 100, at_least=2)
    radius: float = real("U", "a radius", over=0, formula="√B", derive=lambda own: own.budget**0.5)
    rank: int = share_of_budget("r", "a part of B", 0.2)
    horizon: int | None = integer("T", "rounds", at_least=1, optional=True)
    schedule: str = choice("λ_t", "how steps change", "constant", "adaptive")


@dataclass
class Required(Declared):
    """A parameter without a default."""

    step: float = real("λ", "a step", over=0)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (COUNT, "a whole number >= 2"),
        (EVEN, "an even whole number >= 2"),
        (SHARE, "a number > 0 and <= 0.5"),
        (RADIUS, "a number > 0 or inf"),
        (NORM, "a number < 1 or keep"),
        (WORD, "one of constant, adaptive"),
        (Spec(float, "x", "any number"), "a number"),
    ],
)
def test_legal_values_are_described(spec: Spec, text: str) -> None:
    assert spec.legal() == text


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (COUNT, 2),
        (EVEN, 4),
        (SHARE, 0.5),
        (RADIUS, math.inf),
        (NORM, "keep"),
        (NORM, -3.0),
        (WORD, "adaptive"),
    ],
)
def test_a_legal_value_is_accepted(spec: Spec, value: float | str) -> None:
    assert spec.check(value) == value


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (COUNT, 1),
        (COUNT, 2.5),
        (COUNT, True),
        (COUNT, 10**18),
        (COUNT, math.inf),
        (COUNT, "2"),
        (EVEN, 3),
        (SHARE, 0.0),
        (SHARE, 0.6),
        (SHARE, math.nan),
        (SHARE, math.inf),
        (RADIUS, -math.inf),
        (RADIUS, 2**1023),
        (NORM, 1.0),
        (NORM, "drop"),
        (WORD, "linear"),
        (WORD, 1),
    ],
)
def test_an_illegal_value_is_refused(spec: Spec, value: float | str) -> None:
    with pytest.raises(ValueError, match=f"must be {spec.legal()}"):
        spec.check(value)


def test_a_whole_float_becomes_an_int() -> None:
    assert type(COUNT.check(4.0)) is int


def test_an_int_becomes_a_float() -> None:
    assert type(RADIUS.check(4)) is float


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (COUNT, "12", 12),
        (SHARE, "1e-3", 0.001),
        (RADIUS, "inf", math.inf),
        (NORM, "keep", "keep"),
        (WORD, "constant", "constant"),
    ],
)
def test_text_is_parsed(spec: Spec, text: str, value: float | str) -> None:
    assert spec.parse(text) == value


@pytest.mark.parametrize(
    ("spec", "text"), [(COUNT, "1_000"), (COUNT, "1.5"), (SHARE, "half"), (WORD, "linear")]
)
def test_text_of_another_form_is_refused(spec: Spec, text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        spec.parse(text)


def test_a_default_is_derived_from_other_parameters() -> None:
    assert Example(budget=400).radius == 20.0


def test_a_given_value_replaces_a_derived_default() -> None:
    assert Example(budget=400, radius=3.0).radius == 3.0


def test_a_share_of_the_budget_is_at_least_one() -> None:
    assert [Example(budget=size).rank for size in (2, 100)] == [1, 20]


def test_a_parameter_without_a_default_must_be_given() -> None:
    with pytest.raises(ParameterError, match="step must be given: a number > 0") as caught:
        Required()
    assert caught.value.name == "step"


def test_an_error_names_the_parameter_and_its_legal_values() -> None:
    with pytest.raises(ParameterError, match="budget must be a whole number >= 2, got 1") as caught:
        Example(budget=1)
    assert caught.value.name == "budget"


def test_params_are_those_that_have_a_value() -> None:
    params = {"budget": 100, "radius": 10.0, "rank": 20, "schedule": "constant"}
    assert Example().params() == params
    assert Example(horizon=7).params() == {**params, "horizon": 7}


def test_an_object_is_made_again_from_its_params() -> None:
    made = Example(budget=30, schedule="adaptive")
    params: dict[str, Any] = made.params()
    assert Example(**params) == made


def test_specs_are_in_the_order_of_declaration() -> None:
    assert list(Example.specs()) == ["budget", "radius", "rank", "horizon", "schedule"]


def test_a_parameter_of_another_class_is_declared_again_with_changes() -> None:
    @dataclass
    class Other(Declared):
        budget: int = as_in(Example, "budget", 10, even=True)

    assert Other().budget == 10
    assert Other.specs()["budget"].legal() == "an even whole number >= 2"
    assert Other.specs()["budget"].meaning == Example.specs()["budget"].meaning
    assert not Example.specs()["budget"].even
