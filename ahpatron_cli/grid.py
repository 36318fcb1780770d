"""Grids of parameter values.

    0.5,0.6,0.7          these values
    100:400:100          from, to (included), step
    log:50:3200:7        from, to, number of values: a geometric sequence
    10^[-3:3]            powers: 10^-3, 10^-2, ..., 10^3
    10^2                 one power

Each may be followed by `/sqrt(T)`, also written `/√T` as in tables, or `/T`, where T is the number
of rounds of a data set: `10^[-3:3]/sqrt(T)` is the grid of steps in the paper. `run` accepts grids
with one value only.
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
from ahpatron_cli.core.registry import find_learner
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

_LARGEST = Decimal("1e300")
_POWERS = re.compile(r"([^\^]+)\^\[([^\]:]+):([^\]:]+)\]")
_POWER = re.compile(r"([^\^]+)\^\s*(-?\d+)")
_RELATIVE = re.compile(r"(.*?)\s*/\s*(sqrt\(T\)|√T|T)")

Spelling: TypeAlias = tuple[str, str]
"""A value as decimal text, and as it is displayed."""
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
    specs = parameters([learner], kernel)
    axes = {}
    for name, choice in _chosen(learner, layers).items():
        if name in specs:
            axes[name] = _axis(choice, specs[name], rounds)
    lengths = map(len, axes.values())
    count = math.prod(lengths)
    if count > MOST_SETTINGS:
        name = find_learner(learner).name
        raise usage(f"{name} is given more than {MOST_SETTINGS:,} settings")
    for values in product(*axes.values()):
        params = dict(zip(axes, values, strict=True))
        texts = {}
        for name, value in params.items():
            text = axes[name][value]
            if text:
                texts[name] = text
        setup = Setup.of(learner, kernel, params=params, texts=texts)
        check(setup)
        yield setup


def _chosen(learner: str, layers: Sequence[Layer]) -> dict[str, Choice]:
    """The choice for each parameter of a learner."""
    chosen: dict[str, Choice] = {}
    for layer in layers:
        for owner in (None, learner):  # choices for one learner override those for all
            for choice in layer:
                if choice.learner == owner:
                    chosen[choice.name] = choice
    return chosen


def _axis(choice: Choice, spec: Spec, rounds: int | None) -> Axis:
    """The values of a choice, each once."""
    axis: Axis = {}
    words = ",".join(choice.texts)
    for word in words.split(","):
        stripped = word.strip()
        grid = _Grid(stripped, spec=spec, shown=choice.shown)
        for value, text in grid.values(rounds):
            axis.setdefault(value, text)
    return axis


def parameters(learners: Iterable[str], kernel: str) -> dict[str, Spec]:
    """Parameters of the learners, and of the kernel unless all learners have their own."""
    specs: dict[str, Spec] = {}
    has_kernel = False
    for learner in learners:
        kind = find_learner(learner)
        specs.update(kind.specs())
        if not kind.own_kernel:
            has_kernel = True
    if has_kernel:
        specs.update(KERNELS[kernel].specs())
    return specs


@dataclass(frozen=True)
class _Grid:
    """A word of a grid: a value, or a range of values of a parameter."""

    word: str
    spec: Spec
    shown: str
    """Name in error messages."""

    def values(self, rounds: int | None) -> Iterator[tuple[Value, str | None]]:
        """Values and texts; `rounds` is T, or None if it is not known."""
        relative = _RELATIVE.fullmatch(self.word)
        if relative:
            yield from self._relative_values(relative[1], relative[2], rounds)
            return
        words: tuple[str, ...] = ()
        if self.spec.symbol == "σ":
            words = (AUTO,)
        for text, _ in self._spelled_out(self.word):
            if text in words:
                yield text, text
            else:
                value = parse(self.shown, self.spec, text, words=words)
                yield value, None

    def _relative_values(
        self, values: str, per: str, rounds: int | None
    ) -> Iterator[tuple[Value, str]]:
        """Values and texts of a word that ends with `/sqrt(T)` or `/T`."""
        if self.spec.kind is not float or rounds is None:
            legal = self.spec.legal()
            given = f"{self.shown}: {self.word}"
            problem = f"{given} depends on T; give {legal}"
            raise usage(problem, "give a number, or use `ahpatron sweep`")
        divisor = float(rounds)
        sign = "T"
        if per != "T":
            divisor = math.sqrt(rounds)
            sign = "√T"
        for text, written in self._spelled_out(values):
            number = finite(text)
            if number is None:
                raise usage(f"{self.shown}={self.word}: {text!r} is not a number", FORMS)
            quotient = repr(number / divisor)
            value = parse(self.shown, self.spec, quotient)
            yield value, f"{written}/{sign}"

    def _spelled_out(self, word: str) -> list[Spelling]:
        """Values of a range; any other word is a single value.

        Arithmetic is exact, so that 0.5 + 0.1 + 0.1 is 0.7. For integer parameters, a logarithmic
        range is rounded to the nearest legal integers.
        """
        powers = _POWERS.fullmatch(word)
        power = _POWER.fullmatch(word)
        parts = word.split(":")
        try:
            if powers:
                return _powers(*powers.groups())
            if power:
                base = power[1]
                exponent = power[2]
                return _powers(base, exponent, exponent)
            if parts[0] == "log":
                low, high, count = map(_number, parts[1:])
                return _geometric(low, high, count, spec=self.spec)
            if len(parts) > 1:
                low, high, step = map(_number, parts)
                return _steps(low, high, step)
        except (ValueError, DecimalException):
            problem = f"{self.shown}={word} is not a range of at most {MOST_VALUES:,} values"
            raise usage(problem, FORMS) from None
        return [(word, word)]


def _powers(base_text: str, low_text: str, high_text: str) -> list[Spelling]:
    """The values `base^[low:high]`; ValueError if they are not legal."""
    base = _number(base_text)
    low = _number(low_text)
    high = _number(high_text)
    is_whole = low % 1 == 0 and high % 1 == 0
    if base <= 0 or not is_whole:
        raise ValueError
    difference = high - low
    count = _checked_count(difference + 1)
    spellings = []
    for number in range(count):
        exponent = low + number
        power = base**exponent
        text = f"{power:.{DIGITS}g}"
        shown = f"{base:f}^{exponent}"
        spellings.append((text, shown))
    return spellings


def _steps(low: Decimal, high: Decimal, step: Decimal) -> list[Spelling]:
    """The values `low:high:step`; ValueError if they are not legal."""
    if step <= 0:
        raise ValueError
    steps = (high - low) // step
    count = _checked_count(steps + 1)
    values = (low + number * step for number in range(count))
    return _as_displayed(map(_exact, values))


def _geometric(low: Decimal, high: Decimal, steps: Decimal, *, spec: Spec) -> list[Spelling]:
    """The values `log:low:high:steps`; ValueError if they are not legal."""
    is_range = 0 < low < high
    if not is_range or steps % 1 or steps < 2:
        raise ValueError
    last = _checked_count(steps) - 1
    start = float(low)
    ratio = float(high / low)
    log_ratio = math.log(ratio) / last
    factors = [math.exp(number * log_ratio) for number in range(last)]
    values = [start * factor for factor in factors]
    if spec.kind is int:
        values.append(float(high))
        integers = [_nearest_legal(value, spec) for value in values]
        texts = list(map(str, integers))
    else:
        texts = [f"{value:.{DIGITS}g}" for value in values]
        texts.append(_exact(high))
    return _as_displayed(texts)


def _as_displayed(texts: Iterable[str]) -> list[Spelling]:
    """Values that are displayed as their decimal texts."""
    return [(text, text) for text in texts]


def _nearest_legal(value: float, spec: Spec) -> int:
    """The nearest legal integer."""
    unit = 2 if spec.even else 1
    least = int(spec.at_least or unit)
    nearest = unit * round(value / unit)
    return max(nearest, least)


def _checked_count(count: Decimal) -> int:
    """A number of values as an integer; ValueError if there are none, or too many."""
    if not 1 <= count <= MOST_VALUES:
        raise ValueError
    return int(count)


def _number(text: str) -> Decimal:
    """A finite decimal number; ValueError or DecimalException if the text is not one."""
    if "_" in text:  # which Python accepts
        raise ValueError
    number = Decimal(text.strip())
    if not number.is_finite() or abs(number) > _LARGEST:
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
        hint = suggestion(text, (*spec.words, *words))
        raise usage(f"{shown} {error}", hint) from None
