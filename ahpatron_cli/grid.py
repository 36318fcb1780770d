"""Grids of parameter values.

    0.5,0.6,0.7          these values
    100:400:100          from, to (included), step
    log:50:3200:7        from, to, number of values: a geometric sequence
    10^[-3:3]            powers: 10^-3, 10^-2, ..., 10^3

Each may be followed by `/sqrt(T)` or `/T`, where T is the number of rounds of a data set:
`10^[-3:3]/sqrt(T)` is the grid of steps in the paper. `run` accepts grids with one value only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from itertools import product
from typing import TypeAlias

from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.parameters import Spec, Value
from ahpatron_cli.core.registry import find_learner, is_path
from ahpatron_cli.errors import suggestion, usage
from ahpatron_cli.number_text import int_if_integral
from ahpatron_cli.runner import AUTO, Setup, check

MOST_VALUES = 10_000
"""Largest number of values of a range; more are assumed to be a typing error."""
MOST_SETTINGS = 1_000_000
"""Largest number of settings of one learner."""
DIGITS = 12
"""Significant digits of the values of a logarithmic range."""
FORMS = "write values as 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T)"

_POWERS = re.compile(r"([^\^]+)\^\[([^\]:]+):([^\]:]+)\]")
_RELATIVE = re.compile(r"(.*?)\s*/\s*(sqrt\(T\)|T)")

Axis: TypeAlias = dict[Value, str | None]
"""Values of a parameter, each with its text in the grid if it depends on the data."""


@dataclass(frozen=True)
class Choice:
    """Values for a parameter, of one learner or (None) of all that have it."""

    learner: str | None
    name: str
    texts: tuple[str, ...]
    shown: str
    """Name in error messages: `-p epsilon`, `sweep.toml: grid.epsilon`."""


Layer: TypeAlias = Sequence[Choice]
"""Choices of equal rank; within a layer, choices for one learner override those for all."""


def expand(
    learner: str, kernel: str, layers: Sequence[Layer], rounds: int | None
) -> Iterator[Setup]:
    """All settings of one learner on a data set with `rounds` rounds; later layers win."""
    kind = find_learner(learner)
    specs = parameters([learner], kernel)
    chosen = _chosen(learner, layers)
    axes = {
        name: _axis(choice, specs[name], rounds) for name, choice in chosen.items() if name in specs
    }
    if math.prod(map(len, axes.values())) > MOST_SETTINGS:
        raise usage(f"{kind.name} is given more than {MOST_SETTINGS:,} settings")
    for values in product(*axes.values()):
        params = dict(zip(axes, values, strict=True))
        setup = _setup(learner, kernel, params, axes)
        check(setup)
        yield setup


def _chosen(learner: str, layers: Sequence[Layer]) -> dict[str, Choice]:
    """The choice for each parameter of a learner."""
    chosen: dict[str, Choice] = {}
    for layer in layers:
        for owner in (None, learner):  # choices for one learner override those for all
            chosen |= {one.name: one for one in layer if one.learner == owner}
    return chosen


def _axis(choice: Choice, spec: Spec, rounds: int | None) -> Axis:
    """The values of a choice, each once."""
    axis: Axis = {}
    for word in ",".join(choice.texts).split(","):
        for value, text in _values(word.strip(), spec, choice.shown, rounds):
            axis.setdefault(value, text)
    return axis


def _setup(learner: str, kernel: str, params: dict[str, Value], axes: dict[str, Axis]) -> Setup:
    """The setup with these values of the axes."""
    kind = find_learner(learner)
    own = kind.specs()
    texts = {}
    for name, value in params.items():
        text = axes[name][value]
        if text:
            texts[name] = text
    return Setup(
        kind.name,
        learner_params={name: value for name, value in params.items() if name in own},
        kernel=None if kind.own_kernel else kernel,
        kernel_params={name: value for name, value in params.items() if name not in own},
        source=learner if is_path(learner) else None,
        texts=texts,
    )


def parameters(learners: Iterable[str], kernel: str) -> dict[str, Spec]:
    """Parameters of the learners, and of the kernel unless all learners have their own."""
    kinds = [find_learner(learner) for learner in learners]
    specs = {name: spec for kind in kinds for name, spec in kind.specs().items()}
    if not all(kind.own_kernel for kind in kinds):
        specs |= KERNELS[kernel].specs()
    return specs


def _values(
    word: str, spec: Spec, shown: str, rounds: int | None
) -> Iterator[tuple[Value, str | None]]:
    """Values and texts of a grid word; `rounds` is T, or None if it is not known."""
    relative = _RELATIVE.fullmatch(word)
    if relative:
        yield from _relative_values(word, relative, spec, shown, rounds)
        return
    words = (AUTO,) if spec.symbol == "σ" else ()
    for text, _ in _spelled_out(word, spec, shown):
        if text in words:
            yield text, text
        else:
            yield parse(shown, spec, text, words), None


def _relative_values(
    word: str, relative: re.Match[str], spec: Spec, shown: str, rounds: int | None
) -> Iterator[tuple[Value, str]]:
    """Values and texts of a grid word that ends with `/sqrt(T)` or `/T`."""
    if spec.kind is not float or rounds is None:
        hint = "give a number, or use `ahpatron sweep`"
        raise usage(f"{shown}: {word} depends on T; give {spec.legal()}", hint)
    values, per = relative.groups()
    divisor = float(rounds)
    sign = "T"
    if per == "sqrt(T)":
        divisor = math.sqrt(rounds)
        sign = "√T"
    for text, written in _spelled_out(values, spec, shown):
        number = finite(text)
        if number is None:
            raise usage(f"{shown}={word}: {text!r} is not a number", FORMS)
        yield parse(shown, spec, repr(number / divisor)), f"{written}/{sign}"


def _spelled_out(word: str, spec: Spec, shown: str) -> list[tuple[str, str]]:
    """Values of a range as decimal text and display text; any other word is a single value.

    Arithmetic is exact, so that 0.5 + 0.1 + 0.1 is 0.7. For integer parameters, a logarithmic range
    is rounded to the nearest legal integers.
    """
    powers = _POWERS.fullmatch(word)
    first, *rest = word.split(":")
    try:
        if powers:
            return _powers(*powers.groups())
        if first == "log":
            low, high, count = map(_number, rest)
            return _geometric(low, high, count, spec=spec)
        if rest:
            low, high, step = map(_number, [first, *rest])
            return _steps(low, high, step)
    except (ValueError, DecimalException):
        problem = f"{shown}={word} is not a range of at most {MOST_VALUES:,} values"
        raise usage(problem, FORMS) from None
    return [(word, word)]


def _powers(base_text: str, low_text: str, high_text: str) -> list[tuple[str, str]]:
    """The values `base^[low:high]`; ValueError if they are not legal."""
    base = _number(base_text)
    low = _number(low_text)
    high = _number(high_text)
    if base <= 0 or low % 1 or high % 1:
        raise ValueError
    exponents = [low + number for number in range(_checked_count(high - low + 1))]
    return [(f"{base**one:.{DIGITS}g}", f"{base:f}^{one}") for one in exponents]


def _steps(low: Decimal, high: Decimal, step: Decimal) -> list[tuple[str, str]]:
    """The values `low:high:step`; ValueError if they are not legal."""
    if step <= 0:
        raise ValueError
    count = _checked_count((high - low) // step + 1)
    texts = [_exact(low + number * step) for number in range(count)]
    return [(text, text) for text in texts]


def _geometric(low: Decimal, high: Decimal, steps: Decimal, *, spec: Spec) -> list[tuple[str, str]]:
    """The values `log:low:high:steps`; ValueError if they are not legal."""
    if not 0 < low < high or steps % 1 or steps < 2:
        raise ValueError
    count = _checked_count(steps)
    ratio = math.log(high / low) / (count - 1)
    values = [float(low) * math.exp(number * ratio) for number in range(count - 1)]
    if spec.kind is int:
        values.append(float(high))
        texts = [str(_nearest_legal(value, spec)) for value in values]
    else:
        texts = [f"{value:.{DIGITS}g}" for value in values]
        texts.append(_exact(high))
    return [(text, text) for text in texts]


def _nearest_legal(value: float, spec: Spec) -> int:
    """The nearest legal integer."""
    unit = 2 if spec.even else 1
    least = int(spec.at_least or unit)
    return max(unit * round(value / unit), least)


def _checked_count(count: Decimal) -> int:
    """A number of values as an integer; ValueError if there are none, or too many."""
    if not 1 <= count <= MOST_VALUES:
        raise ValueError
    return int(count)


def _number(text: str) -> Decimal:
    number = Decimal(text.strip()) if "_" not in text else Decimal("nan")
    if not number.is_finite() or abs(number) > Decimal("1e300"):
        raise ValueError
    return number


def finite(text: str) -> float | None:
    """Parse a finite number; None if the text is not one."""
    try:
        return int_if_integral(float(_number(text)))
    except (ValueError, DecimalException):
        return None


def _exact(value: Decimal) -> str:
    """Decimal as text without trailing zeros: 400, not 400.0, which is no integer."""
    return format(value.normalize(), "f")


def parse(shown: str, spec: Spec, text: str, words: tuple[str, ...] = ()) -> Value:
    """Parse a value of a parameter; a usage error if it is illegal. `words` are for suggestions."""
    try:
        return spec.check(spec.parse(text))
    except ValueError as error:
        raise usage(f"{shown} {error}", suggestion(text, (*spec.words, *words))) from None
