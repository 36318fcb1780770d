"""Which learners are run, and which values of which parameters are tried.

Learners are names in the registry, or classes in the user's own files. Every setup comes from a
grid:

    0.5,0.6,0.7          these
    100:400:100          from, to (included), step
    log:50:3200:7        from, to, how many: each the same multiple of the one before
    10^[-3:3]            powers: 10^-3, 10^-2, ..., 10^3

Each may be followed by `/sqrt(T)` or `/T`, where T is the number of rounds of a data set:
`10^[-3:3]/sqrt(T)` are the steps that the paper chose from. `run` takes a grid of one value each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException, InvalidOperation
from itertools import product
from pathlib import Path
from typing import TypeAlias

from ahpatron_cli.core import KERNELS, REGISTRY, Learner
from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.learners import GUIDE, find_learner, is_path
from ahpatron_cli.core.parameters import Spec, Value
from ahpatron_cli.data.schema import label_name
from ahpatron_cli.errors import learner_fault, one_of, suggestion, usage
from ahpatron_cli.runner import AUTO, LISTING, LearnerSpec, check

MOST_VALUES = 10_000
"""A range with more is a typing error."""
DIGITS = 12
"""Of the values of a logarithmic range."""

_POWERS = re.compile(r"([^\^]+)\^\[([^\]:]+):([^\]:]+)\]")
_RELATIVE = re.compile(r"(.*?)\s*/\s*(sqrt\(T\)|T)")

_WORD_FORMS = {"-p": ("NAME=VALUE", "ridge=0.01"), "-g": ("NAME=VALUES", "epsilon=0.5,0.6,0.7")}
MIN_COST = 1e-6
ANY_ROUNDS = 1000
"""T, where any number shows whether values are legal."""
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
        message = str(error)
        if GUIDE in message:
            raise usage(message, f"{GUIDE} shows the old and the new form side by side") from None
        hint = "write the learner as path/to/file.py:ClassName"
        raise learner_fault(error.__cause__ or error, [file]) or usage(message, hint) from None
    if not re.fullmatch(r"[\w+-]+", kind.name):
        problem = f"{name}: `name` must consist of letters, digits, +, - and _, got {kind.name!r}"
        raise usage(problem)
    return f"{file}:{class_name}"


def learner_name(learner: str) -> str:
    """What tables call it."""
    return find_learner(learner).name if is_path(learner) else learner


@dataclass(frozen=True)
class Choice:
    """The values that one parameter is given, of one learner or (None) of all that have it."""

    learner: str | None
    name: str
    texts: tuple[str, ...]
    shown: str
    """What error messages call it: `-g epsilon`, `sweep.toml: grid.epsilon`."""


Layer: TypeAlias = Sequence[Choice]
"""Choices of equal rank: those for one learner take precedence over those for all."""
Texts: TypeAlias = Mapping[str, str]
"""How the grid spells the parameters that depend on the data: `10^0/√T`, `auto`."""


def uses_kernel(kind: type[Learner]) -> bool:
    """Whether a learner uses the chosen kernel; if not, σ is no parameter of its trials."""
    return kind.own_kernel is None


def size_of(learner: str, kernel: str, layers: Sequence[Layer]) -> int:
    """How many settings `expand` gives."""
    own = _axes(learner, find_learner(learner).specs(), layers, ANY_ROUNDS)
    kernels = _axes(None, kernel_specs(kernel, [learner]), layers, ANY_ROUNDS)
    return math.prod(map(len, (*own.values(), *kernels.values())))


def expand(
    learner: str, kernel: str, layers: Sequence[Layer], rounds: int | None
) -> Iterator[tuple[LearnerSpec, Texts]]:
    """Every combination for one learner on a data set of so many rounds; later layers win."""
    own = _axes(learner, find_learner(learner).specs(), layers, rounds)
    kernels = _axes(None, kernel_specs(kernel, [learner]), layers, rounds)
    source = learner if is_path(learner) else None
    chosen = kernel if uses_kernel(find_learner(learner)) else None
    for values, kernel_values in product(product(*own.values()), product(*kernels.values())):
        params = {name: value for name, (value, _) in zip(own, values, strict=True)}
        kernel_params = {name: one for name, (one, _) in zip(kernels, kernel_values, strict=True)}
        setup = LearnerSpec(learner_name(learner), params, chosen, kernel_params, source)
        check(setup)
        texts = zip((*own, *kernels), (*values, *kernel_values), strict=True)
        yield setup, {name: text for name, (_, text) in texts if text is not None}


def kernel_specs(kernel: str, learners: Sequence[str]) -> Mapping[str, Spec]:
    """Parameters of the kernel; none if all learners have a kernel of their own."""
    return {} if _all_own(learners) else KERNELS[kernel].specs()


def _all_own(learners: Sequence[str]) -> bool:
    return not any(uses_kernel(find_learner(learner)) for learner in learners)


def own_kernel_remarks(learners: Sequence[str], scale: str, *, typed_kernel: bool) -> list[str]:
    """Remarks on options that learners with a kernel of their own do not need."""
    own = [learner_name(one) for one in learners if not uses_kernel(find_learner(one))]
    remarks = []
    if typed_kernel and _all_own(learners):
        remarks.append(f"--kernel has no effect: {' and '.join(own)} has its own kernel")
    if own and scale != "none":
        remarks.append(f"--scale {scale} is applied, but {' and '.join(own)} does not need it")
    return remarks


def _axes(
    learner: str | None, specs: Mapping[str, Spec], layers: Sequence[Layer], rounds: int | None
) -> dict[str, list[tuple[Value, str | None]]]:
    """The values of each parameter that was chosen, each once, with texts as in `Texts`."""
    chosen: dict[str, Choice] = {}
    for layer in layers:
        for owner in (None, learner):  # in each layer a choice for one learner is the stronger
            mine = (one for one in layer if one.learner == owner and one.name in specs)
            chosen |= {one.name: one for one in mine}
    axes = {}
    for name, choice in chosen.items():
        words = (word.strip() for text in choice.texts for word in text.split(","))
        values: dict[Value, str | None] = {}
        for word in words:
            for value, text in _values(word, specs[name], choice.shown, rounds):
                values.setdefault(value, text)
        axes[name] = list(values.items())
    return axes


def _values(
    word: str, spec: Spec, shown: str, rounds: int | None
) -> Iterator[tuple[Value, str | None]]:
    """The values of a word on a data set of so many rounds; None: the number is not known."""
    relative = _RELATIVE.fullmatch(word)
    if relative is None:
        words = (AUTO,) if spec.symbol == "σ" else ()
        for text, _ in _spelt_out(word, spec, shown):
            yield (text, text) if text in words else (parse(shown, spec, text, words), None)
        return
    values, per = relative.groups()
    if spec.kind is not float:
        raise usage(f"{shown}: {word} depends on T, but this must be {spec.legal()}")
    if rounds is None:
        problem = f"{shown}: {word} depends on T, the number of rounds"
        raise usage(problem, "give a number, or use `ahpatron sweep`")
    divisor, sign = (math.sqrt(rounds), "√T") if per == "sqrt(T)" else (rounds, "T")
    for text, spelt in _spelt_out(values, spec, shown):
        value = float(_number(text, f"{shown}={word}")) / divisor
        yield parse(shown, spec, repr(value)), f"{spelt}/{sign}"


def _spelt_out(word: str, spec: Spec, shown: str) -> list[tuple[str, str]]:
    """The values of a range as numbers, and as people write them; another word is one value."""
    whole = f"{shown}={word}"
    powers = _POWERS.fullmatch(word)
    if powers:
        base, low, high = (_number(part, whole) for part in powers.groups())
        if low != int(low) or high != int(high) or base <= 0:
            needs = "BASE^[LOW:HIGH] requires BASE > 0 and whole LOW and HIGH"
            raise usage(f"{whole}: {needs}", FORMS)
        exponents = _steps(low, high, Decimal(1), whole)
        try:
            return [(_short(base**exponent), f"{base:f}^{exponent}") for exponent in exponents]
        except (DecimalException, OverflowError):
            raise usage(f"{whole}: a power is too large", FORMS) from None
    match word.split(":"):
        case [_]:
            return [(word, word)]
        case ["log", *parts] if len(parts) == 3:
            low, high, count = (_number(part, whole) for part in parts)
            return [(text, text) for text in _geometric(low, high, count, spec, whole)]
        case [*parts] if len(parts) == 3:
            low, high, step = (_number(part, whole) for part in parts)
            return [(_exact(value),) * 2 for value in _steps(low, high, step, whole)]
    raise usage(f"{whole} is not a range", FORMS)


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
    return [*(_short(value) for value in values), _exact(high)]


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


def _exact(value: Decimal) -> str:
    """Without a fraction of zeros: 400, not 400.0, which would not be a whole number."""
    return format(value.normalize(), "f")


def parse(shown: str, spec: Spec, text: str, words: tuple[str, ...] = ()) -> Value:
    """The value that `text` spells, if the parameter may have it; `words` may have been meant."""
    try:
        return spec.check(spec.parse(text))
    except ValueError as error:
        hint = suggestion(text, spec.words) or suggestion(text, words)
        if spec.even and text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 2:
            hint = f"try {int(text) - 1} or {int(text) + 1}"
        raise usage(f"{shown} {error}", hint) from None


def single_setups(
    learners: Sequence[str], kernel: str, params: Sequence[str], named: Mapping[str, str | None]
) -> tuple[list[LearnerSpec], list[str]]:
    """One setup for each learner of `run`, and remarks on what has no effect.

    `params` are the words after -p; `named` are options such as --budget, None where not given.
    """
    layer, remarks = typed_layer(named, {"-p": params}, learners, one_of("kernel", kernel, KERNELS))
    setups = []
    for learner in learners:
        found = [setup for setup, _ in expand(learner, kernel, [layer], rounds=None)]
        if len(found) > 1:
            problem = f"{learner_name(learner)} is given {len(found)} settings, and `run` takes one"
            hint = "`ahpatron sweep DATA -g NAME=V1,V2 --out FILE.jsonl` tries several"
            raise usage(problem, hint)
        setups += found
    return setups, remarks


def typed_layer(
    named: Mapping[str, str | None],
    words: Mapping[str, Sequence[str]],
    learners: Sequence[str],
    kernel: str,
) -> tuple[list[Choice], list[str]]:
    """What the command line chooses, each parameter once, and remarks on what has no effect.

    `words` are those after each flag, such as -p.
    """
    made, remarks = [], []
    for name, text in named.items():
        if text is None:
            continue
        if _owners(name, learners) or name in kernel_specs(kernel, learners):
            made.append(Choice(None, name, (text,), f"--{name}"))
            continue
        owner = " and ".join(map(learner_name, learners))
        if name == "sigma" and not _all_own(learners):
            owner = f"the {kernel} kernel"
        remarks.append(f"--{name} has no effect: {owner} has no such parameter")
    for flag, given in words.items():
        typed = [_choice(flag, word, learners) for word in given]
        check_names(typed, learners, kernel)
        made += typed
    seen: dict[tuple[str | None, str], Choice] = {}
    for choice in made:
        before = seen.setdefault((choice.learner, choice.name), choice)
        if before is not choice:
            one = "one" if before.shown == choice.shown else f"{before.shown} or"
            hint = f"leave out {one} {choice.shown}"
            if "-g" in words:
                hint = f"give all its values at once: {choice.shown}=V1,V2"
            raise usage(f"{choice.name} is given twice", hint)
    return made, remarks


def _choice(flag: str, word: str, learners: Sequence[str]) -> Choice:
    """The choice that `LEARNER.NAME=VALUES` or `NAME=VALUES` spells."""
    left, _, text = word.partition("=")
    if not left or not text:
        form, example = _WORD_FORMS[flag]
        raise usage(f"{flag} takes {form}, got {word!r}", f"use for example {flag} {example}")
    learner, dot, name = left.rpartition(".")
    chosen = {learner_name(one): one for one in learners}
    if dot and learner not in chosen:
        one_of("learner", learner, REGISTRY)
        problem = f"{flag} {left}: {learner} is not among the chosen learners"
        raise usage(problem, f"add -l {learner}")
    return Choice(chosen[learner] if dot else None, name, (text,), f"{flag} {left}")


def check_names(layer: Layer, learners: Sequence[str], kernel: str) -> None:
    """Refuse a parameter that none of these learners has, nor the kernel."""
    for choice in layer:
        among = [choice.learner] if choice.learner else learners
        kernels = {} if choice.learner else kernel_specs(kernel, learners)
        if _owners(choice.name, among) or choice.name in kernels:
            continue
        legal = [name for one in among for name in find_learner(one).specs()]
        hint = suggestion(choice.name, [*legal, *KERNELS[kernel].specs()]) or LISTING
        others = _owners(choice.name, REGISTRY)
        others += [f"the {one} kernel" for one in KERNELS if choice.name in KERNELS[one].specs()]
        has = f"; {' and '.join(others)} would have it" if others else ""
        who = " and ".join(map(learner_name, among)) + " has no"
        who = "no learner has a" if len(among) >= len(REGISTRY) else who
        where = "" if choice.shown.startswith("-") else f"{choice.shown}: "
        raise usage(f"{where}{who} parameter {choice.name!r}{has}", hint)


def _owners(name: str, learners: Iterable[str]) -> list[str]:
    """Those of the learners that have a parameter of this name."""
    return [learner for learner in learners if name in find_learner(learner).specs()]


def parse_labels(text: str | None) -> tuple[float, ...] | None:
    """The labels after --labels, at least two, in order."""
    if text is None:
        return None
    labels = {parse_label(word, "--labels") for word in text.split(",")}
    if len(labels) < 2 or len(labels) < len(text.split(",")):
        raise usage(f"--labels takes different labels, at least two, got {text!r}")
    return tuple(sorted(label for label in labels if label is not None))


def parse_label(text: str | None, option: str = "--positive") -> float | None:
    """A label on the command line."""
    label = None if text is None else _finite(text)
    if text is not None and label is None:
        raise usage(f"{option} takes labels, which are numbers, got {text!r}")
    return label


def parse_costs(words: Sequence[str], *, named: bool = False) -> dict[float | str, float]:
    """The costs of examples by label, from words LABEL=W; labels of tables are `named`."""
    costs: dict[float | str, float] = {}
    for word in words:
        left, _, right = word.rpartition("=")
        label, cost = label_name(left) if named else _finite(left), _finite(right)
        if label is None or cost is None or not MIN_COST <= cost <= 1 / MIN_COST:
            form = f"LABEL=W, W from {MIN_COST:g} to {1 / MIN_COST:g}"
            raise usage(f"--cost requires {form}, got {word!r}", "for example --cost 1=5")
        if label in costs:
            raise usage(f"--cost {left} is given twice")
        costs[label] = cost
    return costs


def check_costs(costs: Mapping[float | str, float], setups: Iterable[LearnerSpec]) -> None:
    """Refuse costs for a learner that cannot weigh examples."""
    unable = [setup.learner for setup in setups if not setup.kind.takes_costs]
    if costs and unable:
        able = [name for name, kind in REGISTRY.items() if kind.takes_costs]
        hint = f"use one of these: {', '.join(able)}"
        raise usage(f"--cost: {unable[0]} cannot weigh examples", hint)


def _finite(text: str) -> float | None:
    """The finite number that a text spells, if any."""
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
