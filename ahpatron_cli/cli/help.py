"""Help of the commands: `-h` shows the usual options and examples, `--help` all options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ahpatron_cli.cli.typer_bridge import COMMAND_SETTINGS, without_pydantic
from ahpatron_cli.settings import PANELS, all_options, old_names

WIDEST = 120
"""The help is as wide as the terminal, but not wider than this number of columns."""
NO_COLOUR = ("Options", "--no-color", "No colours, as with NO_COLOR=1.")
Row = tuple[str, str, str]
"""Heading, names with metavar, and help text of an argument or option."""


def describe(params: Iterable[Any]) -> Iterator[Row]:
    """Yield the row of each argument and option, in the order of the headings."""
    hidden = old_names()
    rows = [_row(param, hidden) for param in params]
    rows.sort(key=lambda row: PANELS.index(row[0]))
    yield from rows


def _row(param: Any, hidden: frozenset[str]) -> Row:
    """The row of an argument or option, without its `hidden` names."""
    text = param.help or ""
    if param.metavar and isinstance(param.default, int | str):
        text += f" [default: {param.default}]"
    if param.param_type_name == "argument":
        return "Arguments", param.metavar, text
    shown = sorted((name for name in param.opts if name not in hidden), key=len)
    left = " / ".join([", ".join(shown), *param.secondary_opts])
    if param.metavar:
        left += f" {param.metavar}"
    heading = getattr(param, "rich_help_panel", None) or "Options"
    return heading, left, text


class Command(TyperCommand):
    """A command whose help is written without rich: its import doubles the time."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [without_pydantic(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        kinds = ((param.param_type_name, param.metavar) for param in self.get_params(ctx))
        return ["[OPTIONS]", *(metavar or "" for kind, metavar in kinds if kind == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options under their headings."""
        _write(formatter, [*describe(self.get_params(ctx)), NO_COLOUR])

    def usual_help(self, ctx: Any) -> str:
        """The help of `-h`: the usual options, and examples."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text((self.help or "").partition("\n")[0])
        usual = [param for param in self.get_params(ctx) if self._is_usual(param)]
        rows = [row for row in describe(usual) if row[0] == "Arguments"]
        rows += [("Usual options", *row[1:]) for row in describe(usual) if row[0] != "Arguments"]
        _write(formatter, rows)
        self.format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(f"`ahpatron {self.name} --help` shows all options.")
        return str(formatter.getvalue()).rstrip("\n")

    def _is_usual(self, param: Any) -> bool:
        if param.param_type_name == "argument":
            return True
        options = all_options(COMMAND_SETTINGS[str(self.name)])
        return param.name in options and options[param.name].usual


class Commands(TyperGroup):
    """All commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [without_pydantic(param) for param in super().get_params(ctx)]


def _write(formatter: Any, rows: Iterable[Row]) -> None:
    """Write rows under their headings."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for heading, left, text in rows:
        panels.setdefault(heading, []).append((left, text))
    for heading, pairs in panels.items():
        with formatter.section(heading):
            formatter.write_dl(pairs)
