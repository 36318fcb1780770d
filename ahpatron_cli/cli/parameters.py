"""From what was typed to what is built: learners, kernel and their parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.parameters import Spec, Value
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.data.dataset import WARM_UP
from ahpatron_cli.data.sigma import median_sigma
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, suggestion, usage
from ahpatron_cli.runner import AUTO, LISTING, Setup, check


def choose_learners(names: Sequence[str]) -> list[str]:
    """The learners asked for, each once, in the order of the command line."""
    chosen: list[str] = []
    for name in names:
        chosen += REGISTRY if name == "all" else [one_of("learner", name, [*REGISTRY, "all"])]
    return list(dict.fromkeys(chosen))


def build_setups(
    learners: Sequence[str],
    kernel: str,
    params: Sequence[str],
    named: dict[str, str | None],
) -> tuple[list[Setup], list[str]]:
    """The setups to play, each checked by building it once, and remarks on what had no effect.

    `params` are the words after -p; `named` are options such as --budget, None where not given.
    """
    kernel_specs = KERNELS[one_of("kernel", kernel, KERNELS)].specs()
    kernel_params: dict[str, Value] = {}
    chosen: dict[str, dict[str, Value]] = {learner: {} for learner in learners}
    remarks: list[str] = []
    for name, text in named.items():
        if text is None:
            continue
        owners = takers(name, learners)
        for learner in owners:
            chosen[learner][name] = parse(f"--{name}", REGISTRY[learner].specs()[name], text)
        if name in kernel_specs:
            kernel_params[name] = parse_kernel(f"--{name}", name, kernel_specs[name], text)
        elif not owners:
            owner = f"the {kernel} kernel" if name == "sigma" else " and ".join(learners)
            remarks.append(f"--{name} has no effect: {owner} has no such parameter")
    given = {name for name, text in named.items() if text is not None}
    for word in params:
        learner_name, name, text = split("-p", word, learners)
        if word.partition("=")[0] in given:
            raise usage(f"{word.partition('=')[0]} is given twice")
        given.add(word.partition("=")[0])
        owners = takers(name, [learner_name] if learner_name else learners)
        for learner in owners:
            chosen[learner][name] = parse(name, REGISTRY[learner].specs()[name], text)
        if name in kernel_specs and not learner_name:
            kernel_params[name] = parse_kernel(name, name, kernel_specs[name], text)
        elif not owners:
            raise unknown(name, [learner_name] if learner_name else learners, kernel_specs)
    setups = [Setup(name, given, kernel, kernel_params) for name, given in chosen.items()]
    for setup in setups:
        check(setup)
    return setups, remarks


def takers(name: str, learners: Iterable[str]) -> list[str]:
    """Those of the learners that have a parameter of this name."""
    return [learner for learner in learners if name in REGISTRY[learner].specs()]


def split(flag: str, word: str, learners: Sequence[str]) -> tuple[str | None, str, str]:
    """The learner (None: every one), name and value in `LEARNER.NAME=VALUE`."""
    left, equals, text = word.partition("=")
    if not equals or not left or not text:
        example = "-p ridge=0.01" if flag == "-p" else "-g epsilon=0.5,0.6,0.7"
        raise usage(f"{flag} takes NAME=VALUE, got {word!r}", f"for example {example}")
    learner, dot, name = left.rpartition(".")
    if not dot:
        return None, left, text
    if learner in REGISTRY and learner not in learners:
        raise usage(
            f"{flag} {left}: {learner} is not among the chosen learners", f"add -l {learner}"
        )
    return one_of("learner", learner, REGISTRY), name, text


def parse(shown: str, spec: Spec, text: str) -> Value:
    """The value that `text` spells, if the parameter may have it."""
    try:
        return spec.check(spec.parse(text))
    except ValueError as error:
        raise usage(f"{shown} {error}", _nearby(spec, text)) from None


def parse_kernel(shown: str, name: str, spec: Spec, text: str) -> Value:
    """The value of a parameter of the kernel, whose σ may be left to the data."""
    return AUTO if (name, text) == ("sigma", AUTO) else parse(shown, spec, text)


def settle_sigma(setups: Sequence[Setup], path: str, rows: Rows) -> tuple[list[Setup], str]:
    """The setups with the σ that the first of these rows suggest, and what to say of it."""
    found = median_sigma(rows, setups[0].kernel)
    if isinstance(found, str):
        raise UserError(
            f"--sigma auto cannot choose: {found}",
            code=ExitCode.BAD_DATA,
            place=Place(path),
            hint="give a number: --sigma S",
        )
    said = f"σ = {found:g}, the median distance between the first {WARM_UP:,} rows (--sigma auto)"
    return [setup.with_sigma(found) for setup in setups], said


def _nearby(spec: Spec, text: str) -> str | None:
    """The two even numbers around an odd one; the word that a misspelt one resembles."""
    if spec.even and text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 2:
        return f"try {int(text) - 1} or {int(text) + 1}"
    return suggestion(text, spec.words)


def unknown(name: str, learners: Sequence[str], kernel_specs: Iterable[str]) -> UserError:
    """The error for a parameter that no chosen learner has, nor the kernel."""
    legal = dict.fromkeys([*(n for one in learners for n in REGISTRY[one].specs()), *kernel_specs])
    owners = [learner for learner in REGISTRY if name in REGISTRY[learner].specs()]
    owners += [f"the {kernel} kernel" for kernel in KERNELS if name in KERNELS[kernel].specs()]
    has = f"; {' and '.join(owners)} would have it" if owners else ""
    return usage(
        f"{' and '.join(learners)} has no parameter {name!r}{has}",
        suggestion(name, legal) or LISTING,
    )


def parse_label(text: str | None) -> float | None:
    """The label after --positive."""
    if text is None:
        return None
    try:
        label = float(text) if "_" not in text else math.nan
    except ValueError:
        label = math.nan
    if not math.isfinite(label):
        raise usage(f"--positive takes a label, which is a number, got {text!r}")
    return label
