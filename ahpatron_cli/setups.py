"""Learners, parameters, weights and preparation of data from the settings of `run` and `sweep`."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeGuard

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.errors import LearnerLoadError, NoClassError
from ahpatron_cli.core.registry import GUIDE, find_learner, is_path, path_and_class
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.errors import learner_fault, one_of, suggestion, usage
from ahpatron_cli.grid import Choice, Layer, expand, finite, parameters
from ahpatron_cli.runner import LISTING, Setup
from ahpatron_cli.settings import Data, Given, Learning, SavedLearner, Tables, options_of

Note: TypeAlias = Callable[[str], None]
"""A function that prints a note."""
MIN_WEIGHT = 1e-6
MAX_WEIGHT = 1 / MIN_WEIGHT
DEFAULT_LEARNER = "ahpatron"
DEFAULT_OF_TABLES = "metron"
_WRITTEN = "write the learner as path/to/file.py:ClassName"
NOT_OF_METRON = ("sigma", "kernel", "epsilon", "theorem")
"""Options that the default learner of tables does not have."""


# Learners -----------------------------------------------------------------------------------------


def choose_learners(names: Sequence[str]) -> list[str]:
    """The selected learners without duplicates, in the order of the command line.

    Learners in files are returned with absolute paths: `/path/to/file.py:ClassName`.
    """
    chosen: list[str] = []
    for name in names:
        if is_path(name):
            chosen.append(own_learner(name))
        elif name == "all":
            chosen += REGISTRY
        elif name in REGISTRY:
            chosen.append(name)
        else:
            one_of("learner", name, [*REGISTRY, "all"])
    chosen = list(dict.fromkeys(chosen))
    shown = [learner_name(learner) for learner in chosen]
    for learner, name in zip(chosen, shown, strict=True):
        is_taken = name in REGISTRY or shown.count(name) > 1
        if is_path(learner) and is_taken:
            raise usage(f"{learner}: there is another learner {name!r}", "change its `name`")
    return chosen


def own_learner(name: str) -> str:
    """`/absolute/path/to/file.py:ClassName` of a learner in a file; loads it to check it."""
    path, class_name = path_and_class(name)
    file = str(Path(path).absolute())
    if not Path(file).exists():
        raise usage(f"{path}: no such file", _WRITTEN)
    try:
        kind = find_learner(f"{file}:{class_name}")
    except LearnerLoadError as error:
        if GUIDE in str(error):
            raise usage(str(error), f"{GUIDE} shows the old and the new form") from None
        hint = f"{GUIDE} shows whole learners"
        if isinstance(error, NoClassError) and not error.known:
            hint = _WRITTEN
        elif isinstance(error, NoClassError):
            close = difflib.get_close_matches(class_name, error.known, n=1, cutoff=0.0)
            hint = f"try -l {shlex.quote(f'{path}:{close[0]}')}"
        fault = learner_fault(error.__cause__ or error, [file])
        if fault is None:
            fault = usage(str(error), hint)
        raise fault from None
    if not re.fullmatch(r"[\w+-]+", kind.name):
        raise usage(f"{name}: `name` may have letters, digits, +, - and _, got {kind.name!r}")
    return f"{file}:{class_name}"


def learner_name(learner: str) -> str:
    """Name of a learner in tables: its `name`, also if it is given as a path."""
    if is_path(learner):
        return find_learner(learner).name
    return learner


def _listed(learners: Sequence[str]) -> str:
    """The names of learners in a sentence."""
    *first, last = map(learner_name, learners)
    if not first:
        return last
    return f"{', '.join(first)} and {last}"


def model_learner(saved: SavedLearner) -> str | None:
    """`FILE.py:Class` of a model's learner, if the user has named it."""
    if saved.learner is None:
        return None
    return choose_learners([saved.learner])[0]


def default_learner(learning: Learning, tables: Tables, given: Given) -> str:
    """The learner if none is named: metron for tables, ahpatron for LIBSVM text.

    Columns of a table have units of their own, for which metron finds the widths. Options that it
    does not have are refused: whoever gives them means another learner.
    """
    if not tables.expect_table:
        return DEFAULT_LEARNER
    asked = [f"--{name}" for name in NOT_OF_METRON if name in given]
    for word in learning.param:
        name, _, _ = word.partition("=")
        if name in NOT_OF_METRON:
            asked.append(f"-p {name}")
    if asked:
        problem = f"{asked[0]}: metron, the default learner of tables, has no such parameter"
        raise usage(problem, "name the learner that you mean, such as -l ahpatron")
    return DEFAULT_OF_TABLES


# Parameters ---------------------------------------------------------------------------------------


def resumed_setup(learning: Learning) -> Setup:
    """The learner of a saved model, which has the parameters, also those without a default."""
    learners = choose_learners(learning.learner) or [DEFAULT_LEARNER]
    return Setup.of(learners[0], kernel=None, params={})


def single_setups(learning: Learning, tables: Tables, given: Given, note: Note) -> list[Setup]:
    """The single setting of each learner of `run`; see `typed_layer`."""
    learners = choose_learners(learning.learner)
    if not learners:
        learners = [default_learner(learning, tables, given)]
    kernel = one_of("kernel", learning.kernel, KERNELS)
    layer = typed_layer(learning, given, learners=learners, note=note)
    setups = []
    for learner in learners:
        settings = expand(learner, kernel, [layer], rounds=None)
        found = list(settings)
        if len(found) > 1:
            problem = f"{learner_name(learner)} is given {len(found)} settings, and `run` takes one"
            hint = "`ahpatron sweep DATA -p NAME=V1,V2 --out FILE.jsonl` tries several"
            raise usage(problem, hint)
        setups += found
    return setups


def typed_layer(
    learning: Learning,
    given: Given,
    learners: Sequence[str],
    note: Note,
    *,
    several: bool = False,
) -> list[Choice]:
    """Parameter values given on the command line; notes options without effect.

    `several`: a parameter may have several values, as in `sweep`.
    """
    choices = _from_options(learning, given, learners=learners, note=note)
    typed = [_choice(word, learners, several=several) for word in learning.param]
    check_names(typed, learners, learning.kernel)
    choices += typed
    seen = set[tuple[str | None, str]]()
    for choice in choices:
        key = (choice.learner, choice.name)
        if key in seen:
            hint = None
            if several:
                hint = f"give all its values at once: {choice.shown}=V1,V2"
            raise usage(f"{choice.name} is given twice", hint)
        seen.add(key)
    return choices


def _from_options(
    learning: Learning, given: Given, learners: Sequence[str], note: Note
) -> list[Choice]:
    """Parameter values of --budget, --sigma and --epsilon; notes those without effect."""
    legal = parameters(learners, learning.kernel)
    no_effect = f"has no effect: {_listed(learners)} with this kernel has no such parameter"
    texts = {
        "budget": learning.budget,
        "sigma": learning.sigma,
        "epsilon": learning.epsilon,
    }
    choices = []
    for name, text in texts.items():
        if name in given and name in legal and text is not None:
            choice = Choice(learner=None, name=name, texts=(text,), shown=f"--{name}")
            choices.append(choice)
        elif name in given:
            note(f"--{name} {no_effect}")
    own_kernels = [find_learner(one).own_kernel for one in learners]
    if "kernel" in given and all(own_kernels):
        note(f"--kernel {no_effect}")
    return choices


def _choice(word: str, learners: Sequence[str], *, several: bool) -> Choice:
    """Parse `LEARNER.NAME=VALUES` or `NAME=VALUES`."""
    left, _, text = word.partition("=")
    if not left or not text:
        form = "NAME=VALUE"
        if several:
            form = "NAME=VALUES"
        raise usage(f"-p takes {form}, got {word!r}", "for example -p epsilon=0.5")
    learner, dot, name = left.rpartition(".")
    shown = f"-p {left}"
    if not dot:
        return Choice(learner=None, name=name, texts=(text,), shown=shown)
    chosen = {learner_name(one): one for one in learners}
    if learner not in chosen:
        one_of("learner", learner, REGISTRY)
        problem = f"{shown}: {learner} is not among the chosen learners"
        raise usage(problem, f"add -l {learner}")
    return Choice(learner=chosen[learner], name=name, texts=(text,), shown=shown)


def check_names(layer: Layer, learners: Sequence[str], kernel: str) -> None:
    """Refuse a parameter that neither the kernel nor any of these learners has."""
    for choice in layer:
        concerned = learners
        legal = parameters(learners, kernel)
        if choice.learner:
            concerned = [choice.learner]
            legal = find_learner(choice.learner).specs()
        if choice.name not in legal:
            have = "has" if len(concerned) == 1 else "have"
            problem = f"{choice.shown}: {_listed(concerned)} {have} no parameter {choice.name!r}"
            hint = suggestion(choice.name, legal)
            if choice.name in parameters(concerned, kernel):
                hint = f"it is a parameter of the kernel: -p {choice.name}=…, without a learner"
            if not hint and len(concerned) == 1 and legal:
                hint = f"its parameters: {', '.join(legal)}"
            raise usage(problem, hint or LISTING)


# Data ---------------------------------------------------------------------------------------------


def preparation_of(data: Data, tables: Tables, given: Given) -> Preparation:
    """The preparation of data by the settings of `run` or `sweep`."""
    positive = None
    classes = None
    if not tables.expect_table:
        positive = parse_label(data.positive)
        classes = _parse_classes(data.classes)
    return Preparation(
        data=data,
        positive=positive,
        labels=classes,
        requires_rows="warm_up" in given,
        table=table_options(tables, given, positive=data.positive, classes=data.classes),
    )


def table_options(
    tables: Tables, given: Given, *, positive: str | None, classes: str | None = None
) -> TableOptions:
    """The options for tables, in which labels are text."""
    if not tables.expect_table:
        positive = None
        classes = None
    given_names = tuple(name for name in options_of(Tables) if name in given)
    return TableOptions(
        **vars(tables),
        positive=positive,
        labels=_names_of_classes(classes),
        given=given_names,
    )


def _names_of_classes(text: str | None) -> tuple[str, ...]:
    """Parse the value of --classes for a table: at least two names."""
    if text is None:
        return ()
    names = tuple(text.split(","))
    distinct = {name for name in names if name}
    fewest = max(len(names), 2)
    if len(distinct) < fewest:
        raise usage(f"--classes takes different labels, at least two, got {text!r}")
    return names


def _parse_classes(text: str | None) -> tuple[float, ...] | None:
    """Parse the value of --classes: at least two labels, returned in increasing order."""
    if text is None:
        return None
    labels = [finite(word) for word in text.split(",")]
    known = {label for label in labels if label is not None}
    fewest = max(len(labels), 2)
    if len(known) < fewest:
        raise usage(f"--classes takes different numbers, at least two, got {text!r}")
    return tuple(sorted(known))


def parse_label(text: str | None) -> float | None:
    """Parse the value of --positive: a number."""
    if text is None:
        return None
    label = finite(text)
    if label is None:
        raise usage(f"--positive takes a label, which is a number, got {text!r}")
    return label


def parse_weights(data: Data, tables: Tables) -> dict[float | str, float]:
    """Parse values LABEL=W of --weight; labels of tables are names, others are numbers."""
    weights: dict[float | str, float] = {}
    for label, values in parse_weight_grid(data, tables).items():
        if len(values) > 1:
            problem = f"--weight of {label} has {len(values)} values, and one is possible here"
            raise usage(problem, "`ahpatron sweep` tries several")
        weights[label] = values[0]
    return weights


def parse_weight_grid(data: Data, tables: Tables) -> dict[float | str, tuple[float, ...]]:
    """Parse values LABEL=W1,W2 of --weight, of which a sweep tries all; see `parse_weights`."""
    weights: dict[float | str, tuple[float, ...]] = {}
    for word in data.weight:
        left, _, right = word.rpartition("=")
        label: float | str | None = left
        if not tables.expect_table:
            label = finite(left)
        values = [finite(text) for text in right.split(",")]
        legal = [value for value in values if _is_legal(value)]
        has_illegal = len(legal) < len(values)
        if not left or label is None or has_illegal:
            form = f"LABEL=W, W from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
            raise usage(f"--weight requires {form}, got {word!r}", "for example --weight 1=5")
        if label in weights:
            raise usage(f"--weight {left} is given twice")
        once = dict.fromkeys(legal)
        weights[label] = tuple(once)
    return weights


def parse_threshold(text: str | None) -> float | None:
    """Parse the value of --threshold: a probability between 0 and 1."""
    if text is None:
        return None
    threshold = finite(text)
    if threshold is None or not 0 < threshold < 1:
        raise usage(f"--threshold takes a probability between 0 and 1, got {text!r}")
    return threshold


def _is_legal(weight: float | None) -> TypeGuard[float]:
    """Whether a text was a number (None: it was not) that is a legal weight."""
    return weight is not None and MIN_WEIGHT <= weight <= MAX_WEIGHT


def check_weights(weights: Collection[float | str], setups: Iterable[Setup]) -> None:
    """Refuse --weight for learners that do not support weights."""
    unable = [setup.learner for setup in setups if not setup.kind.takes_costs]
    if weights and unable:
        able = [name for name, kind in REGISTRY.items() if kind.takes_costs]
        names = ", ".join(able)
        raise usage(f"--weight: {unable[0]} cannot weigh examples", f"use one of these: {names}")
