"""The command-line application: commands, help, and exit codes for exceptions."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import traceback
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer

from ahpatron_cli import __version__
from ahpatron_cli.cli.help import WIDEST, Command, Commands
from ahpatron_cli.cli.typer_bridge import COMMAND_SETTINGS, UsageFault, for_typer
from ahpatron_cli.errors import ExitCode, UserError, learner_fault, suggestion, usage
from ahpatron_cli.settings import old_names
from ahpatron_cli.signals import ENDING, Terminated, leave_at_once_on_signals

COMMANDS = {
    "run": "Run learners on LIBSVM files or tables and count their mistakes.",
    "serve": "Serve a learner over HTTP, with a page to look at.",
    "sweep": "Run many trials: files x learners x settings x permutations.",
    "inspect": "Describe a data file or a model.",
    "report": "Show results of sweeps again: tables, matrix, plots, an HTML report.",
    "predict": "Predict labels with a saved model, without learning.",
    "convert": "Convert a table (CSV, JSON lines, Parquet, Arrow) to LIBSVM text.",
    "learners": "List learners and kernels with their parameters, or describe some.",
}
"""The commands with their descriptions, as the list of commands shows them without importing them.

Each is a function of a module of its name, which also has EXAMPLES.
"""


def application(invoked: str | None = None) -> typer.Typer:
    """The command-line application.

    If `invoked` names a command, only this one can be called, and the others are only listed:
    importing and preparing them all would take a third of the time that `ahpatron --help` takes.
    """
    app = typer.Typer(
        name="ahpatron",
        cls=Commands,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
        help="Run budgeted online kernel learners on data and count their mistakes.",
        epilog="First steps:  ahpatron run --demo -l metron",
    )
    app.callback()(_top)
    for name, description in COMMANDS.items():
        if invoked in (name, None):
            module = _module(name)
            add = app.command(
                name,
                cls=Command,
                context_settings={"help_option_names": ["--help"]},  # -h is an option of its own
                epilog=f"\b\nExamples:{module.EXAMPLES}",
            )
            add(for_typer(getattr(module, name)))
        else:
            app.command(name, help=description)(_only_listed)
    return app


def _module(name: str) -> ModuleType:
    """The module of a command."""
    return import_module(f"ahpatron_cli.cli.{name}")


def _only_listed() -> None:
    pass


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ahpatron {__version__}")
        raise typer.Exit


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
    _keep_free_memory()
    code = run_command(sys.argv[1:])
    leave_at_once_on_signals()
    sys.exit(code)


def _keep_free_memory() -> None:
    """Have the C library keep freed memory for the next rows, instead of handing it back each time.

    Memory that comes back from the system is cleared, page by page: 5 % of the time of a fast pipe.
    glibc keeps up to twice the largest block that was ever freed; this one is never touched.
    """
    bytes(2**24)


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
        ending = ENDING[signal.Signals(ended.number)]
        print(f"ahpatron: {ending}", file=sys.stderr)
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
    completes = "_AHPATRON_COMPLETE" in os.environ  # set by shell completion
    is_name = len(words) == 1 and words[0] in COMMANDS
    bare = not words or (is_name and words != ["learners"])
    if bare and not completes:
        print(_short_usage(*words), file=sys.stderr)
        return ExitCode.USAGE
    invoked = None if completes else words[0]
    try:
        parsed = application(invoked)(words, prog_name="ahpatron", standalone_mode=False)
        code = parsed() if callable(parsed) else parsed  # after --help, it is an exit code
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
    words: list[str] = []
    for argument in arguments:
        words += spelled.get(argument, [argument])
    command = words[:1]
    rest = words[1:]
    if command == ["help"]:
        return [*rest[:1], "--help"]
    if command != ["inspect"]:
        return words
    if "--learners" in rest:
        names = [word for word in rest if word != "--learners"]
        return ["learners", *names]
    if any(map(_is_results_file, rest)):
        return ["report", *rest]
    return words


def _is_results_file(path: str) -> bool:
    """Whether there is a file that looks like results of a sweep."""
    from ahpatron_cli.atomic import is_file

    if not is_file(path):
        return False
    from ahpatron_cli.sweep.results_file import looks_like_results

    return looks_like_results(path)


def _short_usage(name: str = "") -> str:
    """Short usage of a command, or the list of commands, in at most 12 lines."""
    if not name:
        rows = [f"  {name:10}{about}" for name, about in COMMANDS.items()]
        listed = "\n".join(rows)
        return f"Usage: ahpatron COMMAND\n\n{listed}\n\n`ahpatron help COMMAND` shows all options."
    lines = [
        f"Usage: ahpatron {name} [OPTIONS] ...",
        COMMANDS[name],
        "",
        f"Examples:{_module(name).EXAMPLES}",
        f"`ahpatron {name} --help` shows all options.",
    ]
    return "\n".join(lines)


def _abandon_stdout() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _known_fault(error: Exception, arguments: list[str]) -> UserError | None:
    """The UserError for usage errors, a full disk or third-party learners; None for a bug."""
    if isinstance(error, UsageFault):
        return _usage_fault(error, arguments)
    from ahpatron_cli.atomic import DISK_FAULTS

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
    from ahpatron_cli.atomic import is_file

    message: str = error.format_message()
    first = arguments[0]
    if first == "help" and len(arguments) > 1:
        first = arguments[1]
    shown = "ahpatron"
    if first in COMMANDS:
        shown += f" {first}"
    hint = f"`{shown} --help` shows what is possible"
    option = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if option == "--format" and "--json" in arguments:
        option = "--json"  # as it was typed
    if option and context:
        message = f"unknown option {option}"
        known = {name for param in context.command.params for name in param.opts}
        known -= old_names(COMMAND_SETTINGS.values())
        long_names = [name for name in known if name.startswith("--")]
        hint = suggestion(option, long_names) or hint
    elif first not in COMMANDS and not first.startswith("-"):
        message = f"unknown command {first!r}"
        hint = suggestion(first, [*COMMANDS, "--version"]) or hint
        if is_file(first):
            hint = f"did you mean `ahpatron run {shlex.join(arguments)}`?"
    problem = message[:1].lower() + message[1:]
    return usage(problem.removesuffix("."), hint)
