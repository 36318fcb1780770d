"""What SIGINT and SIGTERM do: leave at once, raise (so that unfinished files go), or wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeAlias

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]


class Terminated(BaseException):
    """SIGTERM arrived."""


def leave_at_once_on_signals() -> None:
    """For when nothing is open or half written, and an exception would meet nobody."""
    _answer(_leave, _leave)


def raise_on_signals() -> None:
    """KeyboardInterrupt, or Terminated. Every command asks for that once it has imported all."""
    _answer(signal.default_int_handler, _terminate)


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals wait until the block is done: what is in it happens whole, or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of them
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if arrived:
        signal.raise_signal(arrived[0])


@contextmanager
def unreachable_children() -> Iterator[None]:
    """Start processes in the block that Ctrl-C never reaches: it is for us, and we end them.

    They inherit the mask, so not even one that is still importing prints a traceback. Nor does the
    process that removes memory-mapped files after us complain that we left them to it.
    """
    from multiprocessing import resource_tracker

    warnings = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore:resource_tracker"
    os.environ["PYTHONWARNINGS"] = f"{warnings},{quiet}" if warnings else quiet

    resource_tracker.ensure_running()  # it lifts the mask when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if warnings is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = warnings


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
