"""Messages and the progress line, in pipes, on terminals and on streams that are broken."""

import io
import os
import re
import subprocess
import sys
import textwrap

import pexpect
import pytest

from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.errors import ExitCode, UserError

ERROR = UserError("it broke", code=ExitCode.BAD_DATA)
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


@pytest.mark.parametrize(
    ("quiet", "verbose", "wanted"),
    [
        (False, 0, "note: a note\nwarning: a warning\nerror: it broke\n"),
        (True, 2, "error: it broke\n"),
        (False, 1, rf"note: a note\nwarning: {TIME} a warning\na detail\nerror: it broke\n"),
    ],
)
def test_quiet_and_verbose(quiet: bool, verbose: int, wanted: str) -> None:
    stream = io.StringIO()
    stderr = Stderr(quiet, verbose, stream)
    stderr.note("a note")
    stderr.warn("a warning")
    stderr.detail("a detail")
    stderr.error(ERROR)
    assert re.fullmatch(wanted, stream.getvalue())


def test_text_from_outside_is_literal() -> None:
    stream = io.StringIO()
    Stderr(stream=stream).note("[red]a\x1b[31m.svm\n")
    assert stream.getvalue() == "note: [red]a\\x1b[31m.svm\\n\n"


SCRIPT = textwrap.dedent("""
    import sys, time
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.errors import UserError
    total = None if sys.argv[1] == "unknown" else 10
    stderr = Stderr(quiet=sys.argv[1] == "quiet")
    with stderr.progress(total, "da[ta].svm") as show:
        for completed in range(1, 11):
            time.sleep(0.11)
            show(completed, f"{completed * 200:,} rounds", "12.50 % mistakes")
            if completed == 5:
                stderr.note("half [of] it")
    stderr.error(UserError("done"))
""")


def on_a_terminal(mode: str, columns: int = 120, **environment: str) -> str:
    surroundings = {"TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    screen = pexpect.run(
        f"{sys.executable} -c '{SCRIPT}' {mode}",
        env={**os.environ, **surroundings},
        timeout=120,
        dimensions=(24, columns),
    )
    return str(screen.decode())


def test_the_progress_line() -> None:
    screen = on_a_terminal("known", NO_COLOR="1")
    drawn = [line for line in screen.split("\r\x1b[K") if "da[ta].svm" in line]
    assert len(drawn) <= 12  # a message draws it again
    assert " 50%  1,000 rounds  12.50 % mistakes  0:00:00  0:00:00 left  da[ta].svm" in drawn
    assert "\r\x1b[Knote: half [of] it\r\n" in screen
    assert screen.endswith("\r\x1b[Kerror: done\r\n")  # the line is cleared


@pytest.mark.parametrize(
    ("mode", "environment", "wanted"),
    [
        ("quiet", {"NO_COLOR": ""}, "\x1b[1;31merror\x1b[0m: done\r\n"),
        ("quiet", {"NO_COLOR": "1"}, "error: done\r\n"),
        ("known", {"TERM": "dumb"}, "note: half [of] it\r\nerror: done\r\n"),
    ],
)
def test_what_a_terminal_does_not_show(mode: str, environment: dict[str, str], wanted: str) -> None:
    assert on_a_terminal(mode, **environment) == wanted


def test_an_unknown_total_and_a_narrow_terminal() -> None:
    screen = on_a_terminal("unknown", 40)
    assert "\r\x1b[K1,000 rounds  12.50 % mistakes  0:00:00\r" in screen
    assert "%  1," not in screen


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_broken_stderr_stops_nothing(redirection: str) -> None:
    program = (
        "from ahpatron_cli.errors import *; from ahpatron_cli.cli.stderr import Stderr\n"
        "stderr = Stderr(); stderr.note('a'); stderr.warn('b')\n"
        "with stderr.progress(3, 'x') as show: show(1)\n"
        "stderr.error(UserError('c', code=ExitCode.BAD_DATA)); print('alive')"
    )
    done = subprocess.run(
        ["/bin/bash", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")
