"""What SIGINT and SIGTERM do: leave at once, or raise, so that unfinished files are removed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeAlias

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]


class Terminated(BaseException):
    """SIGTERM arrived."""


def leave_at_once_on_signals() -> None:
    """For when nothing is open or half written, and an exception would meet nobody."""
    _answer(_leave, _leave)


def raise_on_signals() -> None:
    """KeyboardInterrupt, or Terminated."""
    _answer(signal.default_int_handler, _terminate)


def _answer(interrupted: _Handler, terminated: _Handler) -> None:
    """A SIGINT that is ignored, as in a background job of a shell script, stays ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, terminated)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    word = b"interrupted" if number == signal.SIGINT else b"terminated"
    try:
        os.write(2, b"ahpatron: %s\n" % word)  # not print: it may be what was interrupted
    finally:
        os._exit(128 + number)
