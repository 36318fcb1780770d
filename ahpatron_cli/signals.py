"""Handling of SIGINT, SIGTERM and SIGHUP: exit, raise `Terminated`, defer, or end the stream.

In a single streamed pass, a signal ends the stream (`watch.ending_stream()`), and a second one
raises. Ignored signals, such as SIGINT in a background job or SIGHUP after nohup, stay ignored.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, NoReturn

ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
HEARTBEAT = 60.0
"""Seconds between two reports of the current counts."""
_LATENCY = 0.1
"""Seconds after which a reader that waits for a pipe checks for signals."""


class Terminated(BaseException):
    """A signal ends the command; `number` is the signal number."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(number)
        self.number = number


class StreamEnded(Exception):  # noqa: N818 - not an error: the stream is over
    """A signal ended the stream while its reader waited."""


def _answer(handler: Callable[[int, FrameType | None], Any]) -> None:
    for number in ENDING:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave_at_once_on_signals() -> None:
    """Exit on signals without cleanup; used during imports and after the last output."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        try:  # not print, which may have been interrupted
            os.write(2, f"ahpatron: {ENDING[signal.Signals(number)]}\n".encode())
        finally:
            os._exit(128 + number)

    _answer(leave)


def raise_on_signals() -> None:
    """Raise `Terminated` on signals, so that unfinished files are removed."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated(number)

    _answer(end)


@contextmanager
def deferred() -> Iterator[None]:
    """Context manager: defer signals; threads and processes started in it inherit this."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Watch:
    """Signals during a streamed pass: whether to end it, and when to report counts."""

    def __init__(self) -> None:
        self.ended_by: str | None = None
        """Name of the signal that ended the stream; None if none did."""
        self._asked = False
        """Whether counts were asked for since the last report."""
        self._due = 0.0
        """Time of the next report."""
        self._figures: Callable[[bool], None] | None = None
        self._before_waiting: Callable[[], None] | None = None
        self._waiting: Callable[[], AbstractContextManager[object]] = nullcontext
        self._on_signal: Callable[[int], None] | None = None

    @contextmanager
    def ending_stream(
        self,
        figures: Callable[[bool], None],
        before_waiting: Callable[[], None] | None = None,
        *,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
        on_signal: Callable[[int], None] | None = None,
    ) -> Iterator[None]:
        """Context manager: signals end the stream; `figures(asked)` is called each minute (False)
        and on SIGUSR1 (True), `before_waiting` before the reader waits for a pipe.

        The reader waits inside of `waiting()`. With `on_signal`, this is called instead of ending
        the stream.
        """
        self._due = time.monotonic() + HEARTBEAT
        self._figures = figures
        self._before_waiting = before_waiting
        self._waiting = waiting
        self._on_signal = on_signal
        before = signal.signal(signal.SIGUSR1, self._ask)
        _answer(self._end)
        try:
            yield
        except StreamEnded:  # before the first row
            raise Terminated(signal.Signals[str(self.ended_by)]) from None
        finally:
            raise_on_signals()
            signal.signal(signal.SIGUSR1, before)
            self._figures = None
            self._before_waiting = None
            self._waiting = nullcontext
            self._on_signal = None
            self.ended_by = None

    def end_stream(self, by: signal.Signals) -> None:
        """End the stream after the rows that were read, as if this signal had arrived."""
        self.ended_by = by.name

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._on_signal is not None:
            self._on_signal(number)
            return
        self.ended_by = signal.Signals(number).name
        raise_on_signals()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def look(self) -> None:
        """Raise `StreamEnded` if a signal ended the stream; report counts if due."""
        if self.ended_by:
            raise StreamEnded
        if self._figures is not None and (self._asked or time.monotonic() >= self._due):
            asked = self._asked
            self._asked = False
            self._due = time.monotonic() + HEARTBEAT
            self._figures(asked)

    def wait_for(self, descriptor: int) -> None:
        """Wait until a file descriptor is readable; `StreamEnded` if a signal ends the stream."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if self._before_waiting is not None:
            self._before_waiting()
        self.look()
        while not self._has_come(poll):
            self.look()

    def _has_come(self, poll: select.poll) -> bool:
        """Whether something has come, after waiting for a moment."""
        with self._waiting():
            return bool(poll.poll(1e3 * _LATENCY))  # signals do not interrupt it (PEP 475)


watch = Watch()
"""The `Watch` of this process."""
