"""What SIGINT, SIGTERM and SIGHUP do: exit at once, raise `Terminated`, wait, or end the stream.

A single streamed pass ends as if its stream had ended: `watch.ending_stream()`. A second signal
raises. Signals that are ignored, as SIGINT in a background job or SIGHUP after nohup, stay so.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
_LATENCY = 0.1
"""Seconds after which a reader that waits for a pipe notices a signal."""


class Terminated(BaseException):
    """A signal ends the command; `number` is that of the signal."""

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
    """Exit without cleaning up: while modules are imported, and after the last output."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        try:  # not by print, which may be what was interrupted
            os.write(2, f"ahpatron: {ENDING[signal.Signals(number)]}\n".encode())
        finally:
            os._exit(128 + number)

    _answer(leave)


def raise_on_signals() -> None:
    """Raise `Terminated`, so that unfinished files are removed."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated(number)

    _answer(end)


@contextmanager
def deferred() -> Iterator[None]:
    """Block signals until the block is done; threads and processes started in it inherit this."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Watch:
    """Signals during a streamed pass: whether it is to end, and whether figures are asked for."""

    def __init__(self) -> None:
        self.ended_by: str | None = None
        """The name of the signal that ended the stream."""
        self._asked = False
        self._figures: Callable[[], None] | None = None

    @contextmanager
    def ending_stream(self, figures: Callable[[], None]) -> Iterator[None]:
        """Let a signal end the stream, and SIGUSR1 call `figures`."""
        self._figures = figures
        before = signal.signal(signal.SIGUSR1, self._ask)
        _answer(self._end)
        try:
            yield
        except StreamEnded:  # before the first row
            raise Terminated(signal.Signals[str(self.ended_by)]) from None
        finally:
            raise_on_signals()
            signal.signal(signal.SIGUSR1, before)
            self.ended_by = self._figures = None

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended_by = signal.Signals(number).name
        raise_on_signals()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def look(self) -> None:
        """Raise `StreamEnded` if a signal ended the stream; give the figures if SIGUSR1 asked."""
        if self.ended_by:
            raise StreamEnded
        if self._figures is not None and self._asked:
            self._asked = False
            self._figures()

    def wait_for(self, descriptor: int) -> None:
        """Wait until this can be read; a signal that ends the stream raises `StreamEnded`."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        self.look()
        while not poll.poll(1e3 * _LATENCY):  # which signals do not interrupt (PEP 475)
            self.look()


watch = Watch()
"""Of this process."""
