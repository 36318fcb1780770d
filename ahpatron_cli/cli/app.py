"""The command-line application: commands, help, and exit codes for exceptions."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from ahpatron_cli import __version__
from ahpatron_cli.atomic import DISK_FAULTS, is_file
from ahpatron_cli.cli.convert import convert
from ahpatron_cli.cli.inspect import inspect
from ahpatron_cli.cli.learners import learners
from ahpatron_cli.cli.predict import predict
from ahpatron_cli.cli.report import report
from ahpatron_cli.cli.run import run
from ahpatron_cli.cli.sweep import sweep
from ahpatron_cli.cli.values import without_pydantic
from ahpatron_cli.errors import ExitCode, UserError, learner_fault, suggestion, usage
from ahpatron_cli.signals import ENDING, Terminated, leave_at_once_on_signals

# Base class of usage errors, in Typer's own copy of click or (older versions) in click itself.
_UsageError = cast(
    type[Exception],
    next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)

# Examples below the help of each command; also shown if it is called without arguments.
_EXAMPLES: dict[Callable[..., Any], str] = {
    run: """
  ahpatron run --demo -l metron
  ahpatron run data.svm -l arow -l ahpatron+ --sigma auto --scale minmax
  ahpatron run data.svm.gz -l all --budget 200 --repeats 10 --jobs 4
  ahpatron run bank.csv --label y --drop id -l metron --save model.npz
  zcat data.svm.gz | ahpatron run - --scale unit --predictions -
""",
    sweep: """
  ahpatron sweep data.svm -g budget=100:400:100 --repeats 10 --out r.jsonl
  ahpatron sweep a.svm b.svm -l all -B 200 --repeats 5 -j 4 --out r.jsonl
  ahpatron sweep data.svm -l nogd -g 'step=10^[-3:3]/sqrt(T)' --out r.jsonl
  ahpatron sweep --config sweep.toml --out r.jsonl --report r.html
""",
    inspect: """
  ahpatron inspect bank.csv --label y
  ahpatron inspect model.npz
""",
    report: """
  ahpatron report r.jsonl --plot r.svg --report r.html
  ahpatron report 1.jsonl 2.jsonl --merge all.jsonl
""",
    predict: """
  ahpatron predict model.npz test.svm --out scores.csv
  zcat new.svm.gz | ahpatron predict model.npz - --format jsonl
  ahpatron predict churn.npz new.csv --id customer --out scores.csv
""",
    convert: """
  ahpatron convert bank.csv --label y --drop id --out bank.svm
""",
    learners: """
  ahpatron learners ahpatron
  ahpatron learners nogd fogd --bibtex > references.bib
""",
}


def describe(params: Iterable[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield heading, names with metavar, and help text of each argument and option."""
    for param in params:
        argument = param.param_type_name == "argument"
        heading = "Arguments" if argument else getattr(param, "rich_help_panel", None) or "Options"
        names = [] if argument else [", ".join(sorted(param.opts, key=len)), *param.secondary_opts]
        left = " ".join(filter(None, [" / ".join(names), param.metavar]))
        text = param.help or ""
        if param.metavar and isinstance(param.default, int | str):
            text += f" [default: {param.default}]"
        yield heading, left, text


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return [without_pydantic(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        kinds = ((param.param_type_name, param.metavar) for param in self.get_params(ctx))
        return ["[OPTIONS]", *(metavar or "" for kind, metavar in kinds if kind == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options under their headings, without rich: its import doubles the time."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for heading, left, text in describe(self.get_params(ctx)):
            panels.setdefault(heading, []).append((left, text))
        panels["Options"].insert(0, ("--no-color", "No colours, as with NO_COLOR=1."))
        for heading, rows in panels.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class _Commands(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return [without_pydantic(param) for param in super().get_params(ctx)]


app = typer.Typer(
    name="ahpatron",
    cls=_Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run budgeted online kernel learners on data and count their mistakes.",
    epilog="First steps:  ahpatron run --demo -l metron",
)
for _command, _examples in _EXAMPLES.items():
    app.command(cls=_Command, epilog=f"\b\nExamples:{_examples}")(_command)
_COMMANDS = {
    command.__name__: ((command.__doc__ or "").splitlines()[0], examples)
    for command, examples in _EXAMPLES.items()
}
"""Description and examples of each command, by name."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ahpatron {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command given in `sys.argv` and exit with its code; called by `__main__.py`."""
    # Before NumPy is imported, whatever the user's environment says: the engine's products are
    # small, so one thread is 3 to 6 times faster, and results do not depend on the number of cores.
    for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    code = run_command(sys.argv[1:])
    leave_at_once_on_signals()
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run a command and return its exit code; all exceptions are caught and reported."""
    try:
        return _answer(arguments)
    except UserError as error:
        fault = error
    except BrokenPipeError:  # the reader of stdout (such as `head`) has closed it
        _abandon_stdout()
        return ExitCode.OK
    except Terminated as ended:
        print(f"ahpatron: {ENDING[signal.Signals(ended.number)]}", file=sys.stderr)
        return 128 + ended.number
    except MemoryError:
        hint = "use a smaller --budget, or one pass in file order, without --shuffle"
        fault = UserError("not enough memory", code=ExitCode.BUG, hint=hint)
    except Exception as error:  # a bug here (with traceback) or in a third-party learner
        if (known := _known_fault(error, arguments)) is None:
            print(f"ahpatron {__version__}: this is a bug, please report it", file=sys.stderr)
            traceback.print_exc()
            return ExitCode.BUG
        fault = known
    from ahpatron_cli.cli.stderr import Stderr  # lazy: not needed for --help

    Stderr().error(fault)
    return fault.code


def _answer(arguments: list[str]) -> int:
    """Run a command, flush stdout, and return the exit code."""
    if sys.stdout is None:
        raise UserError("standard output is closed", code=ExitCode.IO_ERROR)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for locales without a ζ
    words = _forwarded(arguments)
    bare = words in ([], *([name] for name in _COMMANDS if name != "learners"))
    if bare and "_AHPATRON_COMPLETE" not in os.environ:  # set by shell completion
        print(_short_usage(*words), file=sys.stderr)
        return ExitCode.USAGE
    try:
        code = app(words, prog_name="ahpatron", standalone_mode=False)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer has caught it
            raise ended.__context__ from None
        if (fault := _learner_fault(ended)) is not None:
            raise fault from None
        code = ended.code
    sys.stdout.flush()
    return code or ExitCode.OK


def _forwarded(arguments: list[str]) -> list[str]:
    """Arguments with abbreviations expanded, and earlier names of commands replaced."""
    if "--no-color" in arguments:
        os.environ["NO_COLOR"] = "1"
    spelled = {"--no-color": [], "--json": ["--format", "json"]}
    words = [word for given in arguments for word in spelled.get(given, [given])]
    if words[:1] == ["help"]:
        return [*words[1:2], "--help"]
    if words[:1] == ["inspect"] and "--learners" in words:
        return ["learners", *(word for word in words[1:] if word != "--learners")]
    if words[:1] == ["inspect"] and any(map(is_file, words[1:])):
        from ahpatron_cli.sweep.results_file import looks_like_json

        if any(map(looks_like_json, words[1:])):
            return ["report", *words[1:]]
    return words


def _short_usage(name: str = "") -> str:
    """Short usage of a command, or the list of commands, in at most 12 lines."""
    if not name:
        listed = "\n".join(f"  {name:10}{about}" for name, (about, _) in _COMMANDS.items())
        return f"Usage: ahpatron COMMAND\n\n{listed}\n\n`ahpatron help COMMAND` shows all options."
    about, examples = _COMMANDS[name]
    head = f"Usage: ahpatron {name} [OPTIONS] ...\n{about}"
    return f"{head}\n\nExamples:{examples}\n`ahpatron {name} --help` shows all options."


def _abandon_stdout() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _known_fault(error: Exception, arguments: list[str]) -> UserError | None:
    """The UserError for usage errors, a full disk or third-party learners; None for a bug."""
    if isinstance(error, _UsageError):
        return _usage_fault(error, arguments)
    if isinstance(error, OSError) and error.errno in DISK_FAULTS and not error.filename:
        _abandon_stdout()
        problem = f"standard output cannot be written: {error.strerror}"
        return UserError(problem, code=ExitCode.IO_ERROR)
    return _learner_fault(error)


def _learner_fault(error: BaseException) -> UserError | None:
    """The UserError for a third-party learner that raised this, even SystemExit; else None."""
    if "ahpatron_cli.core.registry" not in sys.modules:
        return None
    from ahpatron_cli.core.errors import LearnerLoadError
    from ahpatron_cli.core.registry import third_party_files

    fault = learner_fault(error, third_party_files())
    if fault is None and isinstance(error, LearnerLoadError):
        return UserError(str(error), code=ExitCode.BUG, hint="update or uninstall it")
    return fault


def _usage_fault(error: Any, arguments: list[str]) -> UserError:
    """A UserError with click's message and suggestions for mistyped commands and options."""
    message: str = error.format_message()
    first = arguments[1] if arguments[0] == "help" and len(arguments) > 1 else arguments[0]
    command = [first] if first in _COMMANDS else []
    hint = f"`{' '.join(['ahpatron', *command])} --help` shows what is possible"
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option == "--format" and "--json" in arguments:
        option = "--json"  # as it was typed
    if option and context:
        message = f"unknown option {option}"
        known = (name for param in context.command.params for name in param.opts)
        hint = suggestion(option, [name for name in known if name.startswith("--")]) or hint
    elif not command and not first.startswith("-"):
        message = f"unknown command {first!r}"
        hint = suggestion(first, _COMMANDS) or hint
        if is_file(first):
            hint = f"did you mean `ahpatron run {shlex.join(arguments)}`?"
    return usage(message[:1].lower() + message[1:].removesuffix("."), hint)
