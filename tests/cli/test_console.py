import io
import os
import shlex
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pexpect
import pytest

from ahpatron_cli.cli.console import Stderr
from ahpatron_cli.errors import ExitCode, UserError

ERROR = UserError("it broke", code=ExitCode.BAD_DATA)


def said(quiet: bool = False, verbose: int = 0) -> str:
    stream = io.StringIO()
    stderr = Stderr(quiet, verbose, stream)
    stderr.note("a note")
    stderr.warn("a warning")
    stderr.detail("a detail")
    stderr.error(ERROR)
    return stream.getvalue()


def test_notes_and_warnings_are_said() -> None:
    assert said() == "note: a note\nwarning: a warning\nerror: it broke\n"


def test_quiet_leaves_only_errors() -> None:
    assert said(quiet=True, verbose=2) == "error: it broke\n"


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_adds_details(verbose: int) -> None:
    expected = "note: a note\nwarning: a warning\na detail\nerror: it broke\n"
    assert said(verbose=verbose) == expected


def test_text_from_outside_is_literal() -> None:
    stream = io.StringIO()
    Stderr(stream=stream).note("[red]a\x1b[31m.svm\n")
    assert stream.getvalue() == "note: [red]a\\x1b[31m.svm\\n\n"


def test_a_pipe_gets_no_progress() -> None:
    stream = io.StringIO()
    with Stderr(stream=stream).progress(100, "a.svm") as line:
        line.update(50, mistakes=3, rounds=10)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("term", ["dumb", "", None])
def test_a_dumb_terminal_gets_no_progress_and_no_colour(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch, term: str | None
) -> None:
    if term is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", term)
    stderr = Stderr(stream=terminal)
    with stderr.progress(100, "a.svm") as line:
        line.update(50)
    stderr.error(ERROR)
    assert terminal.getvalue() == "error: it broke\n"


def test_errors_are_coloured_on_a_terminal_only(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Stderr(stream=terminal).error(ERROR)
    assert terminal.getvalue().startswith("\x1b[1;31merror\x1b[0m: ")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.truncate(0), terminal.seek(0)
    Stderr(stream=terminal).error(ERROR)
    assert terminal.getvalue() == "error: it broke\n"


def test_a_bar_that_is_updated_all_the_time_costs_little_and_draws_seldom(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    start, busy = time.perf_counter(), time.process_time()
    with Stderr(stream=terminal).progress(200_000, "a.svm") as line:
        for completed in range(200_000):
            line.update(completed, completed // 10, completed + 1)
    seconds = time.perf_counter() - start
    drawn = terminal.getvalue().count("a.svm")
    assert drawn <= 10 * seconds + 4
    assert time.process_time() - busy < 5


def test_a_bar_inside_a_bar_is_left_out(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stderr = Stderr(stream=terminal)
    with stderr.progress(3, "outer"), stderr.progress(3, "inner") as line:
        line.update(1)
    assert "outer" in terminal.getvalue()
    assert "inner" not in terminal.getvalue()


SCRIPT = textwrap.dedent("""
    import sys, time
    from ahpatron_cli.cli.console import Stderr
    total = None if sys.argv[1] == "unknown" else 10
    stderr = Stderr(quiet=sys.argv[1] == "quiet")
    with stderr.progress(total, "da[ta].svm") as line:
        for completed in range(1, 11):
            line.update(completed, mistakes=completed * 25, rounds=completed * 200)
            time.sleep(0.11)
            if completed == 5:
                stderr.note("half [of] it")
                print("data")
    stderr.note("done")
""")


def test_the_bar_leaves_stdout_alone(tmp_path: Path) -> None:
    """stderr on the terminal, stdout in a file: the data go to the file."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = f"{sys.executable} {tmp_path}/script.py known > {tmp_path}/out.txt"
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    pexpect.run(shlex.join(["/bin/bash", "-c", command]), env=environment, timeout=120)
    assert (tmp_path / "out.txt").read_text() == "data\n"


def on_a_terminal(mode: str, columns: int = 120) -> str:
    screen, _ = pexpect.run(
        f"{sys.executable} -c '{SCRIPT}' {mode}",
        withexitstatus=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"},
        timeout=120,
    )
    return screen.decode()


def test_the_bar_shows_percent_rounds_and_the_running_rate() -> None:
    screen = on_a_terminal("known")
    assert "da[ta].svm" in screen
    assert " 50%" in screen
    assert "1,000 rounds" in screen
    assert "12.50 % mistakes" in screen
    assert "note: half [of] it\r\n" in screen
    assert "data\r\n" in screen
    assert screen.endswith("\x1b[2Knote: done\r\n")  # the bar is wiped out when it is done


def test_an_unknown_total_shows_the_count_without_percent() -> None:
    screen = on_a_terminal("unknown")
    assert "1,000 rounds" in screen
    assert "12.50 % mistakes" in screen
    assert "50%" not in screen


@pytest.mark.parametrize("columns", [40, 66, 78])
def test_the_bar_gives_up_columns_before_it_cuts_words(columns: int) -> None:
    screen = on_a_terminal("known", columns)
    assert "1,000 rounds 12.50 % mistakes" in screen
    assert "…" not in screen
    assert ("da[ta].svm" in screen) == (columns >= 66)
    assert ("0:00:0" in screen) == (columns >= 78)


def test_quiet_shows_no_bar() -> None:
    assert on_a_terminal("quiet") == "data\r\n"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_broken_stderr_stops_nothing(redirection: str) -> None:
    program = (
        "from ahpatron_cli.errors import *; from ahpatron_cli.cli.console import Stderr\n"
        "stderr = Stderr(); stderr.note('a'); stderr.warn('b')\n"
        "with stderr.progress(3, 'x') as line: line.update(1)\n"
        "stderr.error(UserError('c', code=ExitCode.BAD_DATA)); print('alive')"
    )
    done = subprocess.run(
        ["/bin/bash", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_notes_fold_at_the_width_of_a_terminal(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((30, 24)))
    Stderr(stream=terminal).note("the median distance (--sigma auto) of a-very-long-name.svm")
    assert terminal.getvalue() == (
        "note: the median distance\n  (--sigma auto) of\n  a-very-long-name.svm\n"
    )
