"""Selection of learners, and grids of parameter values.

Learners are names in the registry or classes in files of the user. Values are written as a
grid:

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.parameters import Spec, Value
from ahpatron_cli.core.registry import GUIDE, find_learner, is_path
from ahpatron_cli.data.dataset import Preparation
from ahpatron_cli.data.layout import LAYOUTS
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.tables import TableOptions
from ahpatron_cli.errors import learner_fault, one_of, suggestion, usage
from ahpatron_cli.number_text import int_if_integral
from ahpatron_cli.runner import AUTO, LISTING, Setup, check

MOST_VALUES = 10_000
"""Largest number of values of a range; more are assumed to be a typing error."""
MOST_SETTINGS = 1_000_000
"""Largest number of settings of one learner."""
DIGITS = 12
"""Significant digits of the values of a logarithmic range."""
MIN_COST = 1e-6
FORMS = "write values as 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T)"

_POWERS = re.compile(r"([^\^]+)\^\[([^\]:]+):([^\]:]+)\]")
_RELATIVE = re.compile(r"(.*?)\s*/\s*(sqrt\(T\)|T)")


def choose_learners(names: Sequence[str]) -> list[str]:
    """The selected learners without duplicates, in the order of the command line.

    Learners in files are returned with absolute paths: `/path/to/file.py:ClassName`.
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
    """`/absolute/path/to/file.py:ClassName` of a learner in a file; loads it to check it."""
    path, _, class_name = name.rpartition(":")
    file = str(Path(path).absolute())
    try:
        kind = find_learner(f"{file}:{class_name}")
    except LearnerLoadError as error:
        hint = "write the learner as path/to/file.py:ClassName"
        if GUIDE in str(error):
            raise usage(str(error), f"{GUIDE} shows the old and the new form") from None
        raise learner_fault(error.__cause__ or error, [file]) or usage(str(error), hint) from None
    if not re.fullmatch(r"[\w+-]+", kind.name):
        raise usage(f"{name}: `name` may have letters, digits, +, - and _, got {kind.name!r}")
    return f"{file}:{class_name}"


def learner_name(learner: str) -> str:
    """Name of a learner in tables: its `name`, also if it is given as a path."""
    return find_learner(learner).name if is_path(learner) else learner


@dataclass(frozen=True)
class Choice:
    """Values for a parameter, of one learner or (None) of all that have it."""

    learner: str | None
    name: str
    texts: tuple[str, ...]
    shown: str
    """Name in error messages: `-g epsilon`, `sweep.toml: grid.epsilon`."""


Layer: TypeAlias = Sequence[Choice]
"""Choices of equal rank; within a layer, choices for one learner override those for all."""


def expand(
    learner: str, kernel: str, layers: Sequence[Layer], rounds: int | None
) -> Iterator[Setup]:
    """All settings of one learner on a data set with `rounds` rounds; later layers win."""
    kind = find_learner(learner)
    own, specs = kind.specs(), parameters([learner], kernel)
    chosen: dict[str, Choice] = {}
    for layer in layers:
        for owner in (None, learner):  # choices for one learner override those for all
            mine = (one for one in layer if one.learner == owner and one.name in specs)
            chosen |= {one.name: one for one in mine}
    axes: dict[str, dict[Value, str | None]] = {name: {} for name in chosen}  # each value once
    for name, choice in chosen.items():
        for word in ",".join(choice.texts).split(","):
            for value, text in _values(word.strip(), specs[name], choice.shown, rounds):
                axes[name].setdefault(value, text)
    if math.prod(map(len, axes.values())) > MOST_SETTINGS:
        raise usage(f"{kind.name} is given more than {MOST_SETTINGS:,} settings")
    source = learner if is_path(learner) else None
    for values in product(*axes.values()):
        params = dict(zip(axes, values, strict=True))
        given = {name: value for name, value in params.items() if name in own}
        kernels = {name: value for name, value in params.items() if name not in own}
        texts = {name: text for name, value in params.items() if (text := axes[name][value])}
        used = None if kind.own_kernel else kernel
        setup = Setup(kind.name, given, used, kernels, source, texts)
        check(setup)
        yield setup


def parameters(learners: Iterable[str], kernel: str) -> dict[str, Spec]:
    """Parameters of the learners, and of the kernel unless all learners have their own."""
    kinds = [find_learner(learner) for learner in learners]
    specs = {name: spec for kind in kinds for name, spec in kind.specs().items()}
    return specs | ({} if all(kind.own_kernel for kind in kinds) else KERNELS[kernel].specs())


def _values(
    word: str, spec: Spec, shown: str, rounds: int | None
) -> Iterator[tuple[Value, str | None]]:
    """Values and texts of a grid word; `rounds` is T, or None if it is not known."""
    relative = _RELATIVE.fullmatch(word)
    if relative is None:
        words = (AUTO,) if spec.symbol == "σ" else ()
        for text, _ in _spelled_out(word, spec, shown):
            yield (text, text) if text in words else (parse(shown, spec, text, words), None)
        return
    if spec.kind is not float or rounds is None:
        hint = "give a number, or use `ahpatron sweep`"
        raise usage(f"{shown}: {word} depends on T; give {spec.legal()}", hint)
    values, per = relative.groups()
    divisor, sign = (math.sqrt(rounds), "√T") if per == "sqrt(T)" else (rounds, "T")
    for text, written in _spelled_out(values, spec, shown):
        number = _finite(text)
        if number is None:
            raise usage(f"{shown}={word}: {text!r} is not a number", FORMS)
        yield parse(shown, spec, repr(number / divisor)), f"{written}/{sign}"


def _spelled_out(word: str, spec: Spec, shown: str) -> list[tuple[str, str]]:
    """Values of a range as decimal text and display text; any other word is a single value.

    Arithmetic is exact, so that 0.5 + 0.1 + 0.1 is 0.7. For integer parameters, a logarithmic range
    is rounded to the nearest legal integers.
    """
    powers, (first, *rest) = _POWERS.fullmatch(word), word.split(":")
    if not powers and not rest:
        return [(word, word)]
    try:
        if powers:
            base, low, high = map(_number, powers.groups())
            step, legal = Decimal(1), base > 0 and low % 1 == high % 1 == 0
        else:
            low, high, step = map(_number, rest if first == "log" else (first, *rest))
            legal = first != "log" or (0 < low < high and step % 1 == 0 and step >= 2)
        count = step if first == "log" else (high - low) // step + 1
        if not legal or step <= 0 or not 1 <= count <= MOST_VALUES:
            raise ValueError
        if first == "log":
            return [(text, text) for text in _geometric(low, high, int(count), spec)]
        numbers = [low + number * step for number in range(int(count))]
        if powers:
            return [(f"{base**one:.{DIGITS}g}", f"{base:f}^{one}") for one in numbers]
        return [(_exact(value), _exact(value)) for value in numbers]
    except (ValueError, DecimalException):
        problem = f"{shown}={word} is not a range of at most {MOST_VALUES:,} values"
        raise usage(problem, FORMS) from None


def _geometric(low: Decimal, high: Decimal, count: int, spec: Spec) -> list[str]:
    ratio = math.log(high / low) / (count - 1)
    values = [float(low) * math.exp(number * ratio) for number in range(count - 1)]
    if spec.kind is int:
        unit = 2 if spec.even else 1
        least = int(spec.at_least or unit)
        return [str(max(unit * round(value / unit), least)) for value in [*values, float(high)]]
    return [*(f"{value:.{DIGITS}g}" for value in values), _exact(high)]


def _number(text: str) -> Decimal:
    number = Decimal(text.strip()) if "_" not in text else Decimal("nan")
    if not number.is_finite() or abs(number) > Decimal("1e300"):
        raise ValueError
    return number


def _finite(text: str) -> float | None:
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


def default_learner(options: Mapping[str, Any], given: Collection[str]) -> str:
    """The learner if none is named: metron for tables, ahpatron for LIBSVM text.

    Columns of a table have units of their own, for which metron finds the widths. Options that it
    does not have are refused: whoever gives them means another learner.
    """
    if options["label"] is None:  # which every table requires
        return "ahpatron"
    asked = [f"--{name}" for name in ("sigma", "kernel", "epsilon", "theorem") if name in given]
    for flag, name in (("-p", "param"), ("-g", "grid")):
        words = (word.partition("=")[0] for word in options.get(name) or ())
        asked += [f"{flag} {word}" for word in words if word in ("sigma", "epsilon")]
    if asked:
        problem = f"{asked[0]}: metron, the default learner of tables, has no such parameter"
        raise usage(problem, "name the learner that you mean, such as -l ahpatron")
    return "metron"


def single_setups(
    options: Mapping[str, Any], given: Collection[str], note: Callable[[str], None]
) -> list[Setup]:
    """The single setting of each learner of `run`; see `typed_layer`."""
    learners = choose_learners(options["learner"] or ())
    if options["resume"]:  # the model has the parameters, also those without a default
        return [
            Setup(learner_name(one), {}, None, {}, one if is_path(one) else None)
            for one in learners or ["ahpatron"]
        ]
    learners = learners or [default_learner(options, given)]
    kernel = one_of("kernel", options["kernel"], KERNELS)
    layer = typed_layer(options, given, learners, kernel, note)
    setups = []
    for learner in learners:
        found = list(expand(learner, kernel, [layer], rounds=None))
        if len(found) > 1:
            problem = f"{learner_name(learner)} is given {len(found)} settings, and `run` takes one"
            hint = "`ahpatron sweep DATA -g NAME=V1,V2 --out FILE.jsonl` tries several"
            raise usage(problem, hint)
        setups += found
    return setups


def typed_layer(
    options: Mapping[str, Any],
    given: Collection[str],
    learners: Sequence[str],
    kernel: str,
    note: Callable[[str], None],
) -> list[Choice]:
    """Parameter values given on the command line; notes options without effect.

    `options` are the values of all options of `run` or `sweep`; `given` names those that were given
    on the command line.
    """
    legal = parameters(learners, kernel)
    choices = []
    for name in ("budget", "sigma", "epsilon", "kernel"):
        if name in given and name in legal:
            choices.append(Choice(None, name, (options[name],), f"--{name}"))
        elif name in given and (
            name != "kernel" or all(find_learner(one).own_kernel for one in learners)
        ):
            who = " and ".join(map(learner_name, learners))
            note(f"--{name} has no effect: {who} with this kernel has no such parameter")
    for flag, name in (("-p", "param"), ("-g", "grid")):
        typed = [_choice(flag, word, learners) for word in options.get(name) or ()]
        check_names(typed, learners, kernel)
        choices += typed
    for number, choice in enumerate(choices):
        if (choice.learner, choice.name) in [(one.learner, one.name) for one in choices[:number]]:
            hint = f"give all its values at once: {choice.shown}=V1,V2" if "grid" in options else ""
            raise usage(f"{choice.name} is given twice", hint or None)
    return choices


def _choice(flag: str, word: str, learners: Sequence[str]) -> Choice:
    """Parse `LEARNER.NAME=VALUES` or `NAME=VALUES`."""
    left, _, text = word.partition("=")
    if not left or not text:
        hint = f"for example {flag} epsilon=0.5"
        raise usage(f"{flag} takes NAME=VALUE{'S' * (flag == '-g')}, got {word!r}", hint)
    learner, dot, name = left.rpartition(".")
    chosen = {learner_name(one): one for one in learners}
    if dot and learner not in chosen:
        one_of("learner", learner, REGISTRY)
        problem = f"{flag} {left}: {learner} is not among the chosen learners"
        raise usage(problem, f"add -l {learner}")
    return Choice(chosen[learner] if dot else None, name, (text,), f"{flag} {left}")


def check_names(layer: Layer, learners: Sequence[str], kernel: str) -> None:
    """Refuse a parameter that neither the kernel nor any of these learners has."""
    for choice in layer:
        own = choice.learner
        legal = find_learner(own).specs() if own else parameters(learners, kernel)
        if choice.name not in legal:
            who = " and ".join(map(learner_name, [own] if own else learners))
            problem = f"{choice.shown}: {who} has no parameter {choice.name!r}"
            raise usage(problem, suggestion(choice.name, legal) or LISTING)


def preparation(options: Mapping[str, Any], given: Collection[str]) -> Preparation:
    """The preparation of data by the options of `run` or `sweep`.

    `given` names the options that were given on the command line.
    """
    positive, labels = options["positive"], options.get("labels")
    is_table = options["label"] is not None  # labels of tables are text
    table = TableOptions.of_command(
        options,
        given,
        positive=str(positive) if is_table and positive is not None else None,
        labels=_names_of_labels(labels) if is_table and labels is not None else (),
    )
    plain = ("limit", "max_features", "warm_up", "allow_new_features")
    return Preparation(
        **{name: options[name] for name in plain if name in options},
        scale=one_of("scale", options["scale"], SCALES),
        positive=None if is_table else parse_label(positive),
        labels=None if is_table or labels is None else _parse_labels(labels),
        layout=one_of("layout", options["layout"], LAYOUTS),
        table=table,
    )


def _names_of_labels(text: str) -> tuple[str, ...]:
    """Parse the value of --labels for a table: at least two names."""
    names = tuple(text.split(","))
    if len({*names} - {""}) < max(len(names), 2):
        raise usage(f"--labels takes different labels, at least two, got {text!r}")
    return names


def _parse_labels(text: str) -> tuple[float, ...]:
    """Parse the value of --labels: at least two labels, returned in increasing order."""
    labels = [_finite(word) for word in text.split(",")]
    known = sorted({label for label in labels if label is not None})
    if len(known) < max(len(labels), 2):
        raise usage(f"--labels takes different numbers, at least two, got {text!r}")
    return tuple(known)


def parse_label(text: str | float | None) -> float | None:
    """Parse the value of --positive: a number."""
    label = None if text is None else _finite(str(text))
    if text is not None and label is None:
        raise usage(f"--positive takes a label, which is a number, got {text!r}")
    return label


def parse_costs(options: Mapping[str, Any]) -> dict[float | str, float]:
    """Parse values LABEL=W of --cost; labels of tables are names, others are numbers."""
    costs: dict[float | str, float] = {}
    for word in options["cost"] or ():
        left, _, right = word.rpartition("=")
        named = options["label"] is not None
        label, cost = left if named else _finite(left), _finite(right)
        if not left or label is None or cost is None or not MIN_COST <= cost <= 1 / MIN_COST:
            form = f"LABEL=W, W from {MIN_COST:g} to {1 / MIN_COST:g}"
            raise usage(f"--cost requires {form}, got {word!r}", "for example --cost 1=5")
        if label in costs:
            raise usage(f"--cost {left} is given twice")
        costs[label] = cost
    return costs


def check_costs(costs: Mapping[float | str, float], setups: Iterable[Setup]) -> None:
    """Refuse --cost for learners that do not support weights."""
    unable = [setup.learner for setup in setups if not setup.kind.takes_costs]
    if costs and unable:
        able = [name for name, kind in REGISTRY.items() if kind.takes_costs]
        hint = f"use one of these: {', '.join(able)}"
        raise usage(f"--cost: {unable[0]} cannot weigh examples", hint)
