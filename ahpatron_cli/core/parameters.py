"""Parameter declarations, used for validation, reference tables and documentation."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict, Unpack

from ahpatron_cli.core.errors import ParameterError

Value: TypeAlias = int | float | str


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class _Bound(NamedTuple):
    """A bound of a parameter, such as `>= 1`."""

    sign: str
    limit: float

    def __str__(self) -> str:
        shown = self.limit
        if _is_whole(shown):
            shown = int(shown)
        return f"{self.sign} {shown}"

    def holds(self, number: float) -> bool:
        compare = _COMPARISONS[self.sign]
        return compare(number, self.limit)


def _is_whole(number: float) -> bool:
    return number == int(number)


class SpecFields(TypedDict, total=False):
    """What a declaration may say of a parameter besides its kind: fields of `Spec`."""

    formula: str | None
    derive: Callable[[Any], Value] | None
    words: tuple[str, ...]
    over: float | None
    under: float | None
    at_least: float | None
    at_most: float | None
    even: bool
    infinite: bool
    optional: bool


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
        article = "an even" if self.even else "a"
        noun = "whole number" if self.kind is int else "number"
        text = f"{article} {noun}"
        bounds = map(str, self._bounds())
        limits = " and ".join(bounds)
        if limits:
            text += f" {limits}"
        alternatives = [text, *self.words]
        if self.infinite:
            alternatives.append("inf")
        return " or ".join(alternatives)

    def _bounds(self) -> list[_Bound]:
        """The bounds that this parameter has."""
        limits = {
            ">": self.over,
            ">=": self.at_least,
            "<": self.under,
            "<=": self.at_most,
        }
        given = []
        for sign, limit in limits.items():
            if limit is not None:
                bound = _Bound(sign, limit)
                given.append(bound)
        return given

    def parse(self, text: str) -> Value:
        """Parse the text of a value; underscores and NaN are refused."""
        if text in self.words:
            return text
        try:
            if "_" in text or self.kind is str:
                raise ValueError
            return self.kind(text)
        except ValueError:
            raise self._refusal(text) from None

    def check(self, value: Value) -> Value:
        """Validate a value and convert it to the type of the parameter; else raise ValueError."""
        if isinstance(value, str):
            if value in self.words:
                return value
        elif self._is_legal_number(value):
            return self.kind(value)
        raise self._refusal(value)

    def _refusal(self, value: Value) -> ValueError:
        return ValueError(f"must be {self.legal()}, got {value!r}")

    def _is_legal_number(self, value: float) -> bool:
        """Whether a value is a number within the bounds; True and False are no numbers."""
        if self.kind is str or isinstance(value, bool):
            return False
        magnitude = abs(value)
        if self.kind is int and magnitude >= 10**18:
            return False
        if isinstance(value, int) and magnitude >= 2**1023:  # may overflow a double
            return False
        if math.isinf(value):
            return self.infinite and value > 0
        if math.isnan(value):
            return False
        if self.kind is int and not _is_whole(value):
            return False
        if self.even and value % 2 != 0:
            return False
        kept = [bound.holds(value) for bound in self._bounds()]
        return all(kept)


def _declare(spec: Spec, default: Value | None) -> Any:
    """A field of a dataclass; typed as Any so that `budget: int = integer(…)` is legal."""
    return dataclasses.field(default=default, metadata={"spec": spec})


def integer(
    symbol: str, meaning: str, default: int | None = None, **options: Unpack[SpecFields]
) -> Any:
    """Declare an integer parameter; `options` are fields of `Spec`."""
    spec = Spec(int, symbol, meaning, **options)
    return _declare(spec, default)


def real(
    symbol: str, meaning: str, default: float | str | None = None, **options: Unpack[SpecFields]
) -> Any:
    """Declare a real parameter; `options` are fields of `Spec`."""
    spec = Spec(float, symbol, meaning, **options)
    return _declare(spec, default)


def share_of_budget(symbol: str, meaning: str, share: float) -> Any:
    """Declare an integer parameter whose default is `share` times the budget B."""

    def derive(learner: WithBudget) -> int:
        size = round(share * learner.budget)
        return max(1, size)

    formula = f"{share}·B"
    return integer(symbol, meaning, at_least=1, formula=formula, derive=derive)


class WithBudget(Protocol):
    """A learner with the parameter `budget` (B)."""

    budget: int


def as_in(
    kind: type[Declared], name: str, default: Value | None = None, **changes: Unpack[SpecFields]
) -> Any:
    """Declare a parameter like that of another class, with another default and changes."""
    declared = kind.specs()[name]
    spec = dataclasses.replace(declared, **changes)
    return _declare(spec, default)


def choice(symbol: str, meaning: str, *words: str) -> Any:
    """Declare a parameter that is one of several words; the first is the default."""
    spec = Spec(str, symbol, meaning, words=words)
    first = words[0]
    return _declare(spec, default=first)


class Declared:
    """Base of dataclasses with parameters declared by `integer`, `real` and `choice`."""

    def __post_init__(self) -> None:
        for name, spec in self.specs().items():
            value = getattr(self, name)
            if value is None and spec.derive is not None:
                value = spec.derive(self)
            if value is None:
                if spec.optional:
                    continue
                raise ParameterError(f"{name} must be given: {spec.legal()}", name)
            try:
                checked = spec.check(value)
            except ValueError as error:
                raise ParameterError(f"{name} {error}", name) from None
            # `__dict__` would become a real dict then, and attributes slow to read
            object.__setattr__(self, name, checked)

    @classmethod
    def specs(cls) -> dict[str, Spec]:
        """Specifications of the parameters by name, in order of declaration."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
        specs = {}
        for field in fields:
            if "spec" in field.metadata:
                specs[field.name] = field.metadata["spec"]
        return specs

    def params(self) -> dict[str, Value]:
        """Values of all parameters that are not None, by name."""
        params = {}
        for name in self.specs():
            value = getattr(self, name)
            if value is not None:
                params[name] = value
        return params
