"""Which learners are played, and which values of which parameters are tried.

Learners are names in the registry, or classes in files of the user's own. Every setup comes from
a grid:

    0.5,0.6,0.7          these
    100:400:100          from, to (included), step
    log:50:3200:7        from, to, how many: each the same multiple of the one before
    10^[-3:3]            powers: 10^-3, 10^-2, ..., 10^3

Each may be followed by `/sqrt(T)` or `/T`, where T is the number of rounds of a data set:
`10^[-3:3]/sqrt(T)` are the steps that the paper chose from. `run` plays a grid of one value each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException, InvalidOperation
from itertools import product
from pathlib import Path
from typing import TypeAlias

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.learners import find_learner, is_path
from ahpatron_cli.core.parameters import Spec, Value
from ahpatron_cli.errors import learner_fault, one_of, suggestion, usage
from ahpatron_cli.runner import AUTO, Setup, check

MOST_VALUES = 10_000
"""A range with more is a slip of the finger."""
DIGITS = 12
"""Of the values of a logarithmic range: enough to play with, few enough to read."""

_POWERS = re.compile(r"([^\^]+)\^\[([^\]:]+):([^\]:]+)\]")
_RELATIVE = re.compile(r"(.*?)\s*/\s*(sqrt\(T\)|T)")

FORMS = "write values as 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T)"


def choose_learners(names: Sequence[str]) -> list[str]:
    """The learners asked for, each once, in the order of the command line.

    Those in files are given by absolute paths: `/path/to/file.py:ClassName`.
    """
    chosen: list[str] = []
    for name in names:
        if is_path(name):
            chosen.append(own_learner(name))
        else:
            chosen += REGISTRY if name == "all" else [one_of("learner", name, [*REGISTRY, "all"])]
    chosen = list(dict.fromkeys(chosen))
    shown = [learner_name(learner) for learner in chosen]
    for learner, name in zip(chosen, shown, strict=True):
        if is_path(learner) and (name in REGISTRY or shown.count(name) > 1):
            raise usage(f"{learner}: there is another learner {name!r}", "change its `name`")
    return chosen


def own_learner(name: str) -> str:
    """The absolute path of `path/to/file.py:ClassName`, which is loaded to see that it can be."""
    path, _, class_name = name.rpartition(":")
    file = str(Path(path).absolute())
    try:
        kind = find_learner(f"{file}:{class_name}")
    except LearnerLoadError as error:
        hint = "write the learner as path/to/file.py:ClassName"
        raise learner_fault(error.__cause__ or error, [file]) or usage(str(error), hint) from None
    if not re.fullmatch(r"[\w+-]+", kind.name):
        problem = f"{name}: `name` must consist of letters, digits, +, - and _, got {kind.name!r}"
        raise usage(problem)
    return f"{file}:{class_name}"


def learner_name(learner: str) -> str:
    """What tables call it."""
    return find_learner(learner).name if is_path(learner) else learner


@dataclass(frozen=True)
class Amount:
    """A value of a grid: as it stands, or divided by √T or T."""

    text: str
    per: str = ""

    def value(self, shown: str, spec: Spec, rounds: int | None) -> Value:
        """What the parameter is on a data set of so many rounds; None: nobody knows how many."""
        if not self.per:
            words = (AUTO,) if spec.symbol == "σ" else ()
            return parse(shown, spec, self.text, words)
        if rounds is None:
            problem = f"{shown}: {self.text}/{self.per} depends on T, the number of rounds"
            raise usage(problem, "give a number, or use `ahpatron sweep`")
        divisor = math.sqrt(rounds) if self.per == "sqrt(T)" else rounds
        return parse(shown, spec, repr(float(self.text) / divisor))


@dataclass(frozen=True)
class Choice:
    """The values that one parameter is given, of one learner or (None) of all that have it."""

    learner: str | None
    name: str
    texts: tuple[str, ...]
    shown: str
    """What error messages call it: `-g epsilon`, `sweep.toml: grid.epsilon`."""

    def amounts(self, spec: Spec) -> list[Amount]:
        """The values one by one, each once."""
        found = [amount for text in self.texts for amount in _amounts(text, spec, self.shown)]
        return list(dict.fromkeys(found))


Layer: TypeAlias = Sequence[Choice]
"""Choices of equal rank: those for one learner take precedence over those for all."""


def size_of(learner: str, kernel: str, layers: Sequence[Layer]) -> int:
    """How many settings `expand` gives."""
    size = 1
    for owner, specs in ((learner, find_learner(learner).specs()), (None, KERNELS[kernel].specs())):
        for name, choice in _chosen(owner, specs, layers).items():
            size *= len(choice.amounts(specs[name]))
    return size


def expand(
    learner: str, kernel: str, layers: Sequence[Layer], rounds: int | None
) -> Iterator[Setup]:
    """Every combination for one learner on a data set of so many rounds.

    Later layers take precedence.
    """
    kind = find_learner(learner)
    name, source = (kind.name, learner) if is_path(learner) else (learner, None)
    axes = _axes(learner, kind.specs(), layers, rounds)
    kernel_axes = _axes(None, KERNELS[kernel].specs(), layers, rounds)
    for values in product(*axes.values(), *kernel_axes.values()):
        own, others = values[: len(axes)], values[len(axes) :]
        setup = Setup(
            name,
            dict(zip(axes, own, strict=True)),
            kernel,
            dict(zip(kernel_axes, others, strict=True)),
            source,
        )
        check(setup)
        yield setup


def _axes(
    learner: str | None, specs: Mapping[str, Spec], layers: Sequence[Layer], rounds: int | None
) -> dict[str, list[Value]]:
    """The values of each parameter that was chosen; σ of the kernel may be left to the data."""
    return {
        name: [
            AUTO
            if learner is None and (name, amount) == ("sigma", Amount(AUTO))
            else amount.value(choice.shown, specs[name], rounds)
            for amount in choice.amounts(specs[name])
        ]
        for name, choice in _chosen(learner, specs, layers).items()
    }


def _chosen(
    learner: str | None, specs: Mapping[str, Spec], layers: Sequence[Layer]
) -> dict[str, Choice]:
    """The choice in force for each parameter; in each layer the learner's own."""
    chosen: dict[str, Choice] = {}
    for layer in layers:
        for owner in dict.fromkeys((None, learner)):
            mine = (one for one in layer if one.learner == owner and one.name in specs)
            chosen |= {one.name: one for one in mine}
    return chosen


def _amounts(text: str, spec: Spec, shown: str) -> Iterator[Amount]:
    for word in text.split(","):
        relative = _RELATIVE.fullmatch(word.strip())
        values, per = relative.groups() if relative else (word.strip(), "")
        if per and spec.kind is not float:
            raise usage(f"{shown}: {word} depends on T, but this must be {spec.legal()}")
        for value in _spelt_out(values, spec, shown):
            if per:
                _number(value, f"{shown}={word}")
            yield Amount(value, per)


def _spelt_out(word: str, spec: Spec, shown: str) -> list[str]:
    """The values of a range; a word that is none stands for itself."""
    whole = f"{shown}={word}"
    powers = _POWERS.fullmatch(word)
    if powers:
        base, low, high = (_number(part, whole) for part in powers.groups())
        if low != int(low) or high != int(high) or base <= 0:
            needs = "BASE^[LOW:HIGH] requires BASE > 0 and whole LOW and HIGH"
            raise usage(f"{whole}: {needs}", FORMS)
        exponents = _steps(low, high, Decimal(1), whole)
        try:
            return [_short(base**exponent) for exponent in exponents]
        except (DecimalException, OverflowError):
            raise usage(f"{whole}: a power is too large", FORMS) from None
    parts = word.split(":")
    if len(parts) == 4 and parts[0] == "log":
        low, high, count = (_number(part, whole) for part in parts[1:])
        return _geometric(low, high, count, spec, whole)
    if len(parts) == 3:
        low, high, step = (_number(part, whole) for part in parts)
        return [_plain(value) for value in _steps(low, high, step, whole)]
    if len(parts) > 1:
        raise usage(f"{whole} is not a range", FORMS)
    return [word]


def _steps(low: Decimal, high: Decimal, step: Decimal, whole: str) -> list[Decimal]:
    """From low to high, both included; exact, because 0.5 + 0.1 + 0.1 is to be 0.7."""
    if step <= 0 or high < low:
        raise usage(f"{whole}: a range requires LOW <= HIGH and STEP > 0", FORMS)
    count = int((high - low) / step) + 1
    _refuse_many(count, whole)
    return [low + number * step for number in range(count)]


def _geometric(low: Decimal, high: Decimal, count: Decimal, spec: Spec, whole: str) -> list[str]:
    if not 0 < low < high or count != int(count) or count < 2:
        needs = "log:LOW:HIGH:COUNT requires 0 < LOW < HIGH and a whole COUNT of at least 2"
        raise usage(f"{whole}: {needs}", FORMS)
    _refuse_many(int(count), whole)
    ratio = math.log(high / low) / (int(count) - 1)
    values = [float(low) * math.exp(number * ratio) for number in range(int(count) - 1)]
    if spec.kind is int:  # the nearest that is legal
        unit = 2 if spec.even else 1
        least = int(spec.at_least or unit)
        return [str(max(unit * round(value / unit), least)) for value in [*values, float(high)]]
    return [*(_short(value) for value in values), _plain(high)]


def _refuse_many(count: int, whole: str) -> None:
    if count > MOST_VALUES:
        raise usage(f"{whole} has too many values: at most {MOST_VALUES:,}")


def _number(text: str, whole: str) -> Decimal:
    try:
        number = Decimal(text.strip()) if "_" not in text else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number) > Decimal("1e300"):
        raise usage(f"{whole}: {text!r} is not a number", FORMS)
    return number


def _short(value: float | Decimal) -> str:
    return f"{float(value):.{DIGITS}g}"


def _plain(value: Decimal) -> str:
    """Without a fraction of zeros: 400, not 400.0, which would not be a whole number."""
    return str(int(value)) if value == value.to_integral_value() else str(value)


def parse(shown: str, spec: Spec, text: str, words: tuple[str, ...] = ()) -> Value:
    """The value that `text` spells, if the parameter may have it; `words` may have been meant."""
    try:
        return spec.check(spec.parse(text))
    except ValueError as error:
        raise usage(f"{shown} {error}", _nearby(spec, text) or suggestion(text, words)) from None


def _nearby(spec: Spec, text: str) -> str | None:
    """The two even numbers around an odd one; the word that a misspelt one resembles."""
    if spec.even and text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 2:
        return f"try {int(text) - 1} or {int(text) + 1}"
    return suggestion(text, spec.words)
