"""What signals do: leave at once, raise (so that unfinished files go), wait, or end the stream.

SIGINT, SIGTERM and SIGHUP end a command. A single streamed pass ends as if its stream had ended:
`watch.ending_stream()`. Whoever reads a pipe waits with `watch.wait_for`, which signals wake.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeAlias

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]


ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
HEARTBEAT = 60.0
"""Seconds after which figures are due again."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; `number` is that of the signal."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(number)
        self.number = number


class StreamEnded(Exception):  # noqa: N818 - not an error: the stream is over
    """A signal ended the stream while its reader waited."""


class Watch:
    """Signals during a streamed pass: whether it is to end, and when figures are due."""

    def __init__(self) -> None:
        self.ended_by: str | None = None
        """The name of the signal that ended the stream."""
        self._asked = False
        self._next = 0.0
        self._woken: int | None = None
        self._figures: Callable[[bool], None] | None = None

    @contextmanager
    def ending_stream(self, figures: Callable[[bool], None]) -> Iterator[None]:
        """Let signals end the stream, and call `figures` once a minute and on SIGUSR1 (True).

        A second signal raises.
        """
        self.ended_by, self._asked, self._figures = None, False, figures
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._next = time.monotonic() + HEARTBEAT
        self._woken, theirs = os.pipe()
        os.set_blocking(theirs, False)
        wakeup = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        before = signal.signal(signal.SIGUSR1, self._ask)
        _answer(self._end)
        try:
            yield
        except StreamEnded:  # before the first row
            _raise(signal.Signals[str(self.ended_by)], None)
        finally:
            raise_on_signals()
            signal.signal(signal.SIGUSR1, before)
            signal.set_wakeup_fd(wakeup)
            os.close(theirs)
            os.close(self._woken)
            self.ended_by = self._woken = self._figures = None

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended_by = signal.Signals(number).name
        raise_on_signals()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def look(self) -> None:
        """Raise `StreamEnded` if a signal ended the stream; give the figures that are due."""
        if self.ended_by:
            raise StreamEnded
        due = self._figures is not None and time.monotonic() >= self._next
        if self._figures is not None and (self._asked or due):
            asked, self._asked = self._asked, False
            self._next = time.monotonic() + HEARTBEAT
            self._figures(asked)

    def wait_for(self, descriptor: int) -> None:
        """Wait until this can be read; a signal that ends the stream raises `StreamEnded`."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if self._woken is not None:
            poll.register(self._woken, select.POLLIN)
        while True:
            self.look()
            pause = 1e3 * max(self._next - time.monotonic(), 0) if self._figures else None
            ready = dict(poll.poll(pause))
            if self._woken in ready:
                os.read(self._woken, 4096)
            if descriptor in ready:
                return


watch = Watch()
"""Of this process."""


def leave_at_once_on_signals() -> None:
    """For when nothing is open or half written, and an exception would meet nobody."""
    _answer(_leave)


def raise_on_signals() -> None:
    """KeyboardInterrupt, or Terminated. Every command asks for that once it has imported all."""
    _answer(_raise)


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals wait until the block is done: what is in it happens whole, or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of them
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: arrived.append(number))
        for number in ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
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


def _answer(handler: _Handler) -> None:
    """Signals that are ignored, as SIGINT in a background job or SIGHUP after nohup, stay so."""
    for number in ENDING:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    try:
        # not print: it may be what was interrupted
        os.write(2, f"ahpatron: {ENDING[signal.Signals(number)]}\n".encode())
    finally:
        os._exit(128 + number)
