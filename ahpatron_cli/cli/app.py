"""The command line: three commands; errors and results become text here and only here."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import getdoc
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from ahpatron_cli import __version__
from ahpatron_cli.cli.inspect import inspect
from ahpatron_cli.cli.run import run
from ahpatron_cli.cli.shown import (
    FindingsShown,
    ProfileShown,
    ReferenceShown,
    Said,
    Shown,
)
from ahpatron_cli.cli.sweep import sweep
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.signals import Terminated, leave_at_once_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.console import Conversation

_TOP_HELP: tuple[list[str], ...] = ([], ["-h"], ["--help"])
_DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# The base of all usage errors: of Typer's own copy of click, or of click itself in older versions.
_UsageError = cast(
    type[Exception],
    next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)

app = typer.Typer(
    name="ahpatron",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Play budgeted online kernel learners over LIBSVM files and count their mistakes.",
    epilog="First steps:  ahpatron run sample_data/rings.svm --budget 100 --sigma 0.1",
)
app.command(no_args_is_help=True)(run)
app.command(no_args_is_help=True)(sweep)
app.command(no_args_is_help=True)(inspect)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ahpatron {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command of this process and end it; `entry.py` calls this."""
    _pin_blas_to_one_thread()
    code = _main(sys.argv[1:])
    leave_at_once_on_signals()
    sys.exit(code)


def _pin_blas_to_one_thread() -> None:
    """Whatever the user's environment says; BLAS reads it when NumPy is imported, so before that.

    The engine's products are small: one thread is 3 to 6 times faster than several, and results do
    not depend on the number of cores.
    """
    for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


def _main(arguments: list[str]) -> int:
    """Run a command and return its exit code; nothing escapes."""
    if len(arguments) <= 1 or not {"-h", "--help"}.isdisjoint(arguments):
        _spare_the_help_what_it_does_not_use()
    try:
        return _run_command(arguments)
    except UserError as error:
        _talk().error(error)
        return error.code
    except _UsageError as error:
        return _tell_usage_error(error, arguments)
    except BrokenPipeError:
        # The reader has seen enough.
        _abandon_stdout()
        return ExitCode.OK
    except (KeyboardInterrupt, typer.Abort):
        return _ended("interrupted", ExitCode.INTERRUPTED)
    except Terminated:
        return _ended("terminated", ExitCode.TERMINATED)
    except MemoryError:
        _talk().error(_out_of_memory())
        return ExitCode.BUG
    except Exception as error:  # said with all that is needed to mend it, unless it is the disk
        if isinstance(error, OSError) and error.errno in _DISK_FAULTS and error.filename is None:
            _abandon_stdout()
            problem = f"standard output cannot be written: {error.strerror}"
            _talk().error(UserError(problem, code=ExitCode.IO_ERROR))
            return ExitCode.IO_ERROR
        print(f"ahpatron {__version__}: this is a bug in ahpatron, please report", file=sys.stderr)
        traceback.print_exc()
        return ExitCode.BUG


def _spare_the_help_what_it_does_not_use() -> None:
    """Typer's help imports rich's Markdown and its tracebacks, which we switched off.

    Behind them are a Markdown parser and a syntax highlighter: a third of the time that the help
    takes. Empty classes stand in for them while Typer imports them, and only then.
    """
    unused = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
    made = [name for name in unused if name not in sys.modules]
    for name in made:
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], unused[name], type(unused[name], (), {}))
    try:
        import typer.rich_utils  # noqa: F401 - so that it is there when the help is shown
    except ImportError:  # a Typer that wants more of them gets all
        pass
    finally:
        for name in made:
            del sys.modules[name]


@contextmanager
def _commands_without_options() -> Iterator[None]:
    """The help above all commands shows no option of theirs: Typer need not look at them."""
    commands = [(info, info.callback) for info in app.registered_commands]
    try:
        for info, callback in commands:
            info.name = info.name or getattr(callback, "__name__", None)
            info.help = info.help or getdoc(callback)
            info.callback = lambda: None
        yield
    finally:
        for info, callback in commands:
            info.callback = callback


def _run_command(arguments: list[str]) -> int:
    """Run a command, write what it hands back to stdout, and see that it arrived."""
    if sys.stdout is None:
        raise UserError("standard output is closed", code=ExitCode.IO_ERROR)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for locales that lack a ζ
    try:
        helps = arguments in _TOP_HELP and "_AHPATRON_COMPLETE" not in os.environ
        with _commands_without_options() if helps else nullcontext():
            answer = app(arguments, prog_name="ahpatron", standalone_mode=False)
    except SystemExit as ended:
        # Typer's way of saying that the pipe its help went to was closed
        return ExitCode.OK if ended.code == 1 else int(ended.code or 0)
    if answer == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # which Typer had caught
    code = ExitCode.OK
    if isinstance(answer, Shown):
        from ahpatron_cli.output.formats import write_reports

        write_reports(answer.reports, answer.format)
    elif isinstance(answer, FindingsShown):
        from ahpatron_cli.output.formats import write_findings

        write_findings(answer.findings, answer.format)
        code = answer.code
    elif isinstance(answer, ProfileShown):
        from ahpatron_cli.output.formats import write_profile

        write_profile(answer.profile, answer.format)
        code = answer.code
    elif isinstance(answer, ReferenceShown):
        from ahpatron_cli.output.formats import write_reference

        write_reference(answer.format)
    elif isinstance(answer, Said):
        sys.stdout.write(answer.text)
        code = answer.code
    sys.stdout.flush()
    return code


def _abandon_stdout() -> None:
    """Send what is left in the buffer nowhere: Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _talk() -> Conversation:
    """Standard error, which the help does without."""
    from ahpatron_cli.cli.console import Conversation

    return Conversation()


def _tell_usage_error(error: Exception, arguments: list[str]) -> int:
    message = error.format_message()  # type: ignore[attr-defined]  # all of click's have it
    if message:  # it is empty where the help was shown instead
        command = arguments[0] if arguments and arguments[0] in ("run", "sweep", "inspect") else ""
        hint = f"`{' '.join(filter(None, ('ahpatron', command)))} --help` shows what is possible"
        if not command and arguments and Path(arguments[0]).is_file():
            hint = f"did you mean `ahpatron run {shlex.join(arguments)}`?"
        _talk().error(UserError(message, code=ExitCode.USAGE, hint=hint))
    return ExitCode.USAGE


def _out_of_memory() -> UserError:
    return UserError(
        "not enough memory",
        code=ExitCode.BUG,
        hint="a smaller --budget needs less, and so does one pass in file order, without --shuffle",
    )


def _ended(how: str, code: ExitCode) -> int:
    print(f"ahpatron: {how}", file=sys.stderr)
    return code
