"""Conversion of option values without pydantic, which Typer would otherwise import.

All values here are text, flags, or integers with their own parser, and importing
pydantic takes longer than everything else that `ahpatron run --help` does: 0.13 s with this file,
0.29 s without (medians of three on a shared machine, Python 3.11, Typer 0.29).
Required values that are missing, and whatever else is unusual, are left to Typer.
"""

from __future__ import annotations

from typing import Any


def without_pydantic(param: Any) -> Any:
    """Patch a command's parameter so that it converts its value itself; return it."""
    described = getattr(param, "type_descriptor", None)
    if described is None or "process_value" in vars(param):  # another Typer, or patched
        return param
    by_typer, parse = param.process_value, described.parameter_info.parser
    several = param.nargs == -1 or getattr(param, "multiple", False)

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not param.required:
            value = () if several else None
        elif value in (None, ()) or not isinstance(value, str | int | list | tuple):
            return by_typer(ctx, value)
        elif isinstance(value, tuple):
            value = list(value)
        elif parse is not None:
            value = parse(value)
        return value if param.callback is None else param.callback(ctx, param, value)

    param.process_value = process_value
    return param
