"""The command line: three commands; errors and results become text here and only here."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, NoReturn, cast

import typer

from ahpatron_cli import __version__
from ahpatron_cli.commands.inspect import inspect
from ahpatron_cli.commands.run import run
from ahpatron_cli.commands.shown import Shown
from ahpatron_cli.errors import ExitCode, UserError

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
    epilog="First steps:  ahpatron run sample_data/rings.svm --budget 100 --sigma 0.3",
)
app.command(no_args_is_help=True)(run)
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


class Terminated(BaseException):
    """SIGTERM arrived; raised so that unfinished files are removed on the way out."""


def _on_sigterm(signum: int, frame: object) -> NoReturn:
    raise Terminated


def main() -> NoReturn:
    """Entry point of the `ahpatron` command."""
    _pin_blas_to_one_thread()
    signal.signal(signal.SIGTERM, _on_sigterm)
    sys.exit(_main(sys.argv[1:]))


def _pin_blas_to_one_thread() -> None:
    """Whatever the user's environment says; BLAS reads it when NumPy is imported, so before that.

    The engine's products are small: one thread is 3 to 6 times faster than several, and results do
    not depend on the number of cores.
    """
    for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


def _main(arguments: list[str]) -> int:
    """Run a command and return its exit code; nothing but SystemExit escapes."""
    from ahpatron_cli.render.console import Conversation

    talk = Conversation()
    try:
        answer = app(arguments, prog_name="ahpatron", standalone_mode=False)
        if isinstance(answer, Shown):
            _show(answer)
            return ExitCode.OK
        return int(answer or 0)
    except UserError as error:
        talk.error(error)
        return error.code
    except _UsageError as error:
        talk.error(_from_usage_error(error))
        return ExitCode.USAGE
    except BrokenPipeError:
        # The reader has seen enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except (KeyboardInterrupt, typer.Abort):
        return _ended("interrupted", ExitCode.INTERRUPTED)
    except Terminated:
        return _ended("terminated", ExitCode.TERMINATED)
    except MemoryError:
        talk.error(_out_of_memory())
        return ExitCode.BUG
    except Exception:  # whatever this is, it is ours: say so, with all that is needed to mend it
        print(f"ahpatron {__version__}: this is a bug in ahpatron, please report", file=sys.stderr)
        traceback.print_exc()
        return ExitCode.BUG


def _show(shown: Shown) -> None:
    """Write the result to stdout, all of it or an error."""
    from ahpatron_cli.render.stdout import write_reports

    try:
        write_reports(shown.reports, shown.format)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UserError(
            f"the result could not be written to standard output: {error.strerror}",
            code=ExitCode.IO_ERROR,
        ) from None


def _from_usage_error(error: BaseException) -> UserError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "ahpatron"
    message = error.format_message()  # type: ignore[attr-defined]
    return UserError(
        message, code=ExitCode.USAGE, hint=f"`{command} --help` shows what is possible"
    )


def _out_of_memory() -> UserError:
    return UserError(
        "not enough memory",
        code=ExitCode.BUG,
        hint="a smaller --budget needs less, and so does one pass in file order, without --shuffle",
    )


def _ended(how: str, code: ExitCode) -> int:
    print(f"ahpatron: {how}", file=sys.stderr)
    return code
