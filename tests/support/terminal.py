"""A real terminal that the command runs in, and what it shows."""

import os
import re

import pexpect

from support.command import COMMAND

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(*arguments: object, columns: int = 80, **environment: str) -> tuple[str, int]:
    """What a terminal of this width is sent, and the exit code."""
    # pytest-xdist sets COLUMNS for its workers; here the terminal itself is to be asked
    surroundings = {name: v for name, v in os.environ.items() if name not in ("COLUMNS", "LINES")}
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *map(str, arguments)],
        dimensions=(24, columns),
        env={**surroundings, "TERM": "xterm-256color", **environment},
        encoding="utf-8",
        timeout=120,
    )
    child.expect(pexpect.EOF)
    child.close()
    return child.before or "", child.exitstatus


def without_style(text: str) -> str:
    """What is shown, without bold type and colours."""
    return ESCAPE.sub("", text)


def lines_of(text: str) -> list[str]:
    """Visible lines: what stands after the last carriage return of each."""
    return [line.split("\r")[-1] for line in without_style(text).replace("\r\n", "\n").split("\n")]
