"""Parameter declarations, used for validation, reference tables and documentation."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ahpatron_cli.core.errors import ParameterError

Value: TypeAlias = int | float | str


class _Bound(NamedTuple):
    """A bound of a parameter: `holds(number, value)` is `number sign value`."""

    sign: str
    holds: Callable[[float, float], bool]
    value: float


def _shortest(number: float) -> float:
    """The number, as an integer if it is whole."""
    return int(number) if number == int(number) else number


@dataclass(frozen=True)
class Spec:
    """Specification of a parameter: symbol in papers, meaning, legal values, default."""

    kind: type[int] | type[float] | type[str]
    symbol: str
    meaning: str
    formula: str | None = None  # text of a default that depends on other parameters
    derive: Callable[[Any], Value] | None = None  # computes that default from the object
    words: tuple[str, ...] = ()  # legal words in place of a number, or all values of a choice
    over: float | None = None
    under: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    even: bool = False
    infinite: bool = False
    optional: bool = False  # None is legal: the learner sets the value when a run begins

    def legal(self) -> str:
        """Description of the legal values, such as `an even integer >= 2`."""
        if self.kind is str:
            return "one of " + ", ".join(self.words)
        text = "an even " if self.even else "a "
        text += "whole number" if self.kind is int else "number"
        bounds = [f"{bound.sign} {_shortest(bound.value)}" for bound in self._bounds()]
        if bounds:
            text += " " + " and ".join(bounds)
        alternatives = [text, *self.words]
        if self.infinite:
            alternatives.append("inf")
        return " or ".join(alternatives)

    def _bounds(self) -> list[_Bound]:
        """The bounds that this parameter has."""
        bounds = []
        if self.over is not None:
            bounds.append(_Bound(">", operator.gt, self.over))
        if self.at_least is not None:
            bounds.append(_Bound(">=", operator.ge, self.at_least))
        if self.under is not None:
            bounds.append(_Bound("<", operator.lt, self.under))
        if self.at_most is not None:
            bounds.append(_Bound("<=", operator.le, self.at_most))
        return bounds

    def parse(self, text: str) -> Value:
        """Parse the text of a value; underscores and NaN are refused."""
        if text in self.words:
            return text
        try:
            if "_" in text or self.kind is str:
                raise ValueError
            return self.kind(text)
        except ValueError:
            raise ValueError(f"must be {self.legal()}, got {text!r}") from None

    def check(self, value: Value) -> Value:
        """Validate a value and convert it to the type of the parameter; else raise ValueError."""
        if isinstance(value, str):
            if value in self.words:
                return value
        elif self._is_legal_number(value):
            return self.kind(value)
        raise ValueError(f"must be {self.legal()}, got {value!r}")

    def _is_legal_number(self, value: float) -> bool:
        if self.kind is str or isinstance(value, bool):
            return False
        if self.kind is int and abs(value) >= 10**18:
            return False
        if isinstance(value, int) and abs(value) >= 2**1023:  # may overflow a double
            return False
        if math.isinf(value):
            return self.infinite and value > 0
        if math.isnan(value) or (self.kind is int and value != int(value)):
            return False
        if self.even and value % 2 != 0:
            return False
        return all(bound.holds(value, bound.value) for bound in self._bounds())


def _declare(spec: Spec, default: Value | None) -> Any:
    return dataclasses.field(default=default, metadata={"spec": spec})


def integer(symbol: str, meaning: str, default: int | None = None, **options: Any) -> Any:
    """Declare an integer parameter; `options` are fields of `Spec`."""
    spec = Spec(int, symbol, meaning, **options)
    return _declare(spec, default)


def real(symbol: str, meaning: str, default: float | str | None = None, **options: Any) -> Any:
    """Declare a real parameter; `options` are fields of `Spec`."""
    spec = Spec(float, symbol, meaning, **options)
    return _declare(spec, default)


def share_of_budget(symbol: str, meaning: str, share: float) -> Any:
    """Declare an integer parameter whose default is `share` times the budget B."""

    def derive(learner: Any) -> int:
        size = round(share * learner.budget)
        return int(max(1, size))

    return integer(symbol, meaning, at_least=1, formula=f"{share}·B", derive=derive)


def as_in(kind: type[Declared], name: str, default: Value | None = None, **changes: Any) -> Any:
    """Declare a parameter like that of another class, with another default and changes."""
    spec = dataclasses.replace(kind.specs()[name], **changes)
    return _declare(spec, default)


def choice(symbol: str, meaning: str, *words: str) -> Any:
    """Declare a parameter that is one of several words; the first is the default."""
    spec = Spec(str, symbol, meaning, words=words)
    return _declare(spec, default=words[0])


class Declared:
    """Base of dataclasses with parameters declared by `integer`, `real` and `choice`."""

    def __post_init__(self) -> None:
        for name, spec in self.specs().items():
            value = getattr(self, name)
            if value is None and spec.derive is not None:
                value = spec.derive(self)
            if value is None and spec.optional:
                continue
            if value is None:
                raise ParameterError(f"{name} must be given: {spec.legal()}", name)
            try:
                checked = spec.check(value)
            except ValueError as error:
                raise ParameterError(f"{name} {error}", name) from None
            self.__dict__[name] = checked

    @classmethod
    def specs(cls) -> dict[str, Spec]:
        """Specifications of the parameters by name, in order of declaration."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
        return {field.name: field.metadata["spec"] for field in fields if "spec" in field.metadata}

    def params(self) -> dict[str, Value]:
        """Values of all parameters that are not None, by name."""
        values = {name: getattr(self, name) for name in self.specs()}
        return {name: value for name, value in values.items() if value is not None}
