"""Command lines from settings, with Typer below; all that works around Typer is in this file.

A command is a function of its arguments and of its settings; `for_typer` gives it the signature
that Typer expects, with a parameter per option.

Typer imports pydantic to convert values. All values here are text, flags, or integers with their
own parser, and importing pydantic takes longer than everything else that `ahpatron run --help`
does: 0.13 s with `without_pydantic`, 0.29 s without (medians of three on a shared machine, Python
3.11, Typer 0.29). Required values that are missing, and whatever else is unusual, are left to
Typer.

Typer has a copy of click. Whether a usage error is from that copy or from click itself depends on
Typer's version, so `UsageFault` is found as a base class of `typer.BadParameter`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeAlias, TypeVar, cast, get_type_hints

import typer

from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.settings import (
    Given,
    Option,
    Registered,
    Settings,
    all_options,
    alternatives,
    parts_of,
)

R = TypeVar("R")
Value: TypeAlias = bool | int | str | list[str] | None
"""A value as Typer has it."""
TypedValue: TypeAlias = bool | int | str | tuple[str, ...] | None
"""A value as a group has it."""

UsageFault = cast(
    type[Exception],
    next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)
"""Base class of Typer's usage errors."""


COMMAND_SETTINGS: dict[str, type[Settings]] = {}
"""The settings that each command takes, by its name."""


def _print_usual_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        command: Any = context.command
        print(command.usual_help(context))
        raise typer.Exit


_USUAL_HELP = Parameter(
    "usual_help",
    Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "-h", callback=_print_usual_help, is_eager=True, help="Show the usual options."
        ),
    ],
)


def for_typer(command: Callable[..., R]) -> Callable[..., Callable[[], R]]:
    """The function that Typer understands, of a command with a parameter `settings`.

    It has a parameter for each option. It returns the call of the command with the settings that
    are built from them, to be made when Typer has returned: on top of its frames, Python 3.11 spent
    a sixth of the start of `run` on mapping and unmapping a page of its own stack.
    """
    hints = get_type_hints(command, include_extras=True)
    kind: type[Settings] = hints["settings"]
    COMMAND_SETTINGS[command.__name__] = kind
    options = all_options(kind)

    @functools.wraps(command)
    def parsed(**values: Any) -> Callable[[], R]:
        given = _given(values.pop("context"), options)
        del values["usual_help"]
        check_combinations(options, given)
        typed = {}
        for name, option in options.items():
            typed[name] = _typed(option, values.pop(name))
        return functools.partial(command, **values, settings=_built(kind, typed, given))

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, argument in signature(command).parameters.items():
        if name != "settings":
            changed = argument.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
            parameters.append(changed)
    parameters += map(_parameter, options.values())
    parameters.append(_USUAL_HELP)
    parsed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    parsed.__annotations__ = {one.name: one.annotation for one in parameters}
    return parsed


def _built(kind: type[Settings], typed: dict[str, TypedValue], given: Given) -> Settings:
    """The settings of a command with these values; other options have their defaults."""
    groups = {}
    for name, part in parts_of(kind).items():
        values = {option: typed[option] for option in part.options}
        groups[name] = part.group(**values)
    return kind(given=given, **groups)


def check_combinations(options: dict[str, Option], given: Given) -> None:
    """Refuse options that contradict each other, or that have no effect without another."""
    for name, option in options.items():
        if name not in given:
            continue
        names = [name for name in option.requires if name in options]
        required = [options[name].flag for name in names]
        if required and given.isdisjoint(option.requires):
            raise usage(f"{option.flag} requires {alternatives(required)}")
        for other in option.excludes:
            if other in given:
                flag = options[other].flag
                raise usage(f"{option.flag} cannot be combined with {flag}")


def _given(context: typer.Context, options: Iterable[str]) -> Given:
    """Names of the options that are on the command line."""
    given = set[str]()
    for name in options:
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            given.add(name)
    return frozenset(given)


def _parameter(option: Option) -> Parameter:
    """The parameter by which Typer declares an option."""
    kind: object = str | None
    parser = None
    if option.is_repeatable:
        kind = list[str] | None
    elif option.counts:
        kind = int
    elif option.is_flag:
        kind = option.type
    elif option.is_integer:
        kind = option.type
        parser = _integer(option)
    default = option.default
    if default == ():
        default = None
    declared = typer.Option(
        *option.names,
        *option.old_names,
        help=option.help,
        metavar=option.metavar,
        rich_help_panel=option.panel,
        parser=parser,
        count=option.counts,
        autocompletion=_completion(option),
    )
    annotation = Annotated[kind, declared]  # type: ignore[valid-type]  # made here
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _integer(option: Option) -> Callable[[str | int], int]:
    """A parser for the integers that are legal; cheaper at start than a Typer callback."""

    def parse(text: str | int) -> int:
        try:
            value = int(text)
        except ValueError:
            raise usage(f"{option.flag} must be a whole number, got {text!r}") from None
        fault = option.fault_of(value)
        if fault is not None:
            raise usage(f"{option.flag} {fault}")
        return value

    return parse


def _typed(option: Option, value: Value) -> TypedValue:
    """A value as the group has it; a usage error if it is not one of the legal words."""
    names_content = option.belongs_to != "call" and option.names_a is None
    if isinstance(value, list | tuple):
        return tuple(_decoded(word) if names_content else word for word in value)
    if value is None and option.is_repeatable:
        return ()
    if option.legal and isinstance(value, str):
        return one_of(option.name, value, option.legal)
    if isinstance(value, str) and names_content:
        return _decoded(value)
    return value


def _decoded(word: str) -> str:
    """A word of the command line as UTF-8 text, as the data are, also in a plain locale.

    Python has other bytes than ASCII as surrogates there. Names of files keep them: so they are
    opened.
    """
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


# Shell completion (TAB); imports happen only when it is used.


def _completion(option: Option) -> Callable[[str], list[str]] | None:
    if not option.legal and option.names_a is None:
        return None

    def complete(incomplete: str) -> list[str]:
        words = option.legal or registered(option.names_a)
        return [word for word in words if word.startswith(incomplete)]

    return complete


def registered(kind: Registered | None) -> tuple[str, ...]:
    """All names of a kind that the core knows."""
    from ahpatron_cli.core import KERNELS, REGISTRY
    from ahpatron_cli.core.certificates import THEOREMS

    if kind == "learner":
        return (*REGISTRY, "all")
    if kind == "kernel":
        return tuple(KERNELS)
    return tuple(theorem.key for theorem in THEOREMS)


def complete_described(incomplete: str) -> list[str]:
    """Names of learners and kernels that begin like this."""
    names = [*registered("learner"), *registered("kernel")]
    return [name for name in names if name.startswith(incomplete)]


# Values ------------------------------------------------------------------------------------------


_PLAIN = (str, int, list, tuple)
"""Types of the values that need no conversion by Typer."""


def without_pydantic(param: Any) -> Any:
    """Patch a command's parameter so that it converts its value itself; return it."""
    described = getattr(param, "type_descriptor", None)
    if described is None or "process_value" in vars(param):  # another Typer, or patched
        return param
    by_typer = param.process_value
    parse = described.parameter_info.parser
    several = param.nargs == -1 or getattr(param, "multiple", False)

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not param.required:
            value = () if several else None
        elif value in (None, ()) or not isinstance(value, _PLAIN):
            return by_typer(ctx, value)
        elif isinstance(value, tuple):
            value = list(value)
        elif parse is not None:
            value = parse(value)
        if param.callback is None:
            return value
        return param.callback(ctx, param, value)

    param.process_value = process_value
    return param
