"""Help of the commands: `-h` shows the usual options and examples, `--help` all options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from typer.core import TyperCommand, TyperGroup

from ahpatron_cli.cli.typer_bridge import COMMAND_SETTINGS, without_pydantic
from ahpatron_cli.settings import PANELS, all_options, old_names

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter

WIDEST = 120
"""The help is as wide as the terminal, but not wider than this number of columns."""
_DEFAULT = "[default: "
_UNBROKEN = "[default:\N{NO-BREAK SPACE}"
"""No line ends between the word and the value."""
_GROUPED_FROM = 10_000
"""The smallest default whose digits are grouped; smaller ones are read without."""


class Row(NamedTuple):
    """An argument or option as the help shows it."""

    heading: str
    names: str
    """Its names, with the metavar."""
    text: str


NO_COLOUR = Row("Options", "--no-color", "No colours, as with NO_COLOR=1.")


def describe(params: Iterable[Parameter]) -> list[Row]:
    """The row of each argument and option, in the order of the headings."""
    hidden = old_names(COMMAND_SETTINGS.values())
    rows = []
    for param in params:
        if param.param_type_name == "argument":
            name = param.metavar or ""
            rows.append(Row("Arguments", name, _text(param)))
        else:
            rows.append(_option_row(param, hidden))
    rows.sort(key=lambda row: PANELS.index(row.heading))
    return rows


def _option_row(param: Parameter, hidden: frozenset[str]) -> Row:
    """The row of an option, without its `hidden` names."""
    shown = [name for name in param.opts if name not in hidden]
    shown.sort(key=len)
    names = ", ".join(shown)
    for name in param.secondary_opts:
        names += f" / {name}"
    if param.metavar:
        names += f" {param.metavar}"
    heading = getattr(param, "rich_help_panel", None)
    return Row(heading or "Options", names, _text(param))


def _text(param: Parameter) -> str:
    """The help text of an argument or option, with its default."""
    text: str = getattr(param, "help", None) or ""
    default = param.default
    if isinstance(default, int) and default >= _GROUPED_FROM:
        default = f"{default:,}"
    if param.metavar and isinstance(default, int | str):
        text += f" {_DEFAULT}{default}]"
    return text


class Command(TyperCommand):
    """A command whose help is written without rich: its import doubles the time."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return [without_pydantic(param) for param in super().get_params(ctx)]

    def get_help(self, ctx: Context) -> str:
        return _with_plain_spaces(super().get_help(ctx))

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        params = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument"]
        names = [param.metavar or "" for param in arguments]
        return ["[OPTIONS]", *names]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write options under their headings."""
        rows = describe(self.get_params(ctx))
        rows.append(NO_COLOUR)
        _write(formatter, rows)

    def usual_help(self, ctx: Context) -> str:
        """The help of `-h`: the usual options, and examples."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            text = self.help or ""
            first_line = text.split("\n")[0]
            formatter.write_text(first_line)
        _write(formatter, self._usual_rows(ctx))
        self.format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(f"`ahpatron {self.name} --help` shows all options.")
        text = formatter.getvalue().rstrip("\n")
        return _with_plain_spaces(text)

    def _usual_rows(self, ctx: Context) -> list[Row]:
        """Rows of the arguments and of the usual options, which have one heading."""
        settings = COMMAND_SETTINGS[str(self.name)]
        options = all_options(settings).values()
        usual = {option.name for option in options if option.usual}
        shown = []
        for param in self.get_params(ctx):
            is_argument = param.param_type_name == "argument"
            if is_argument or param.name in usual:
                shown.append(param)
        rows = []
        for row in describe(shown):
            heading = row.heading
            if heading != "Arguments":
                heading = "Usual options"
            rows.append(row._replace(heading=heading))
        return rows


class Commands(TyperGroup):
    """All commands, each listed with the whole first line of its help."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return [without_pydantic(param) for param in super().get_params(ctx)]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands with their descriptions, which Typer would cut to one line."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            text = (command and command.help) or ""
            rows.append((name, text.split("\n")[0]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _write(formatter: HelpFormatter, rows: Iterable[Row]) -> None:
    """Write rows under their headings."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        text = row.text.replace(_DEFAULT, _UNBROKEN)
        pairs = panels.setdefault(row.heading, [])
        pairs.append((row.names, text))
    for heading, pairs in panels.items():
        with formatter.section(heading):
            formatter.write_dl(pairs)


def _with_plain_spaces(text: str) -> str:
    """The text of a help after its lines were broken, with plain spaces only."""
    return text.replace(_UNBROKEN, _DEFAULT)
