"""The way between requests and the learner: lines of JSON go in, and each gets one answer.

The learner reads these lines as `run -` reads standard input, in a thread of its own. The lock is
held while it works on rows, and free while it waits for them.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from ahpatron_cli.output.answers import AnswerWriter

if TYPE_CHECKING:
    from ahpatron_cli.live.service import Refusal

NAME = "requests.jsonl"
"""Name of the stream in messages; its suffix says that the lines are JSON."""


class Fault(msgspec.Struct, omit_defaults=True):
    """The JSON object that says why a request, or a row of it, is refused."""

    error: str
    row: int | None = None
    """Number of the row in its request, from 0."""
    field: str | None = None
    """The column at fault, if it is known."""


class Answer(NamedTuple):
    """The answer to one line."""

    status: int
    body: bytes
    """A JSON object."""


@dataclass(eq=False)
class _Asked:
    """A request that waits for the answers to its lines."""

    count: int
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[list[Answer]]
    answers: list[Answer] = field(default_factory=list)


class Closed(Exception):  # noqa: N818 - the server is shutting down
    """No lines are taken any more."""


class Exchange:
    """A pipe to the learner, and its answers in the order of the lines."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        read, self._write = os.pipe()
        os.write(self._write, b" ")  # the format is recognised now, not when the first row comes
        self.lines: BinaryIO = os.fdopen(read, "rb", buffering=0)
        """The lines, for the learner to read."""
        self._asked: deque[_Asked] = deque()
        self._sender = ThreadPoolExecutor(1, "lines")  # the pipe may be full
        self.is_closed = False
        """Whether no lines are taken any more."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait for answers."""
        return len(self._asked)

    @property
    def row(self) -> int:
        """Number of the row, within its request, that is answered next."""
        return len(self._asked[0].answers)

    async def ask(self, lines: Sequence[bytes]) -> list[Answer]:
        """The answers to these lines."""
        if self.is_closed:
            raise Closed
        loop = asyncio.get_running_loop()
        asked = _Asked(len(lines), loop, done=loop.create_future())
        text = b"".join(line.translate(_ONE_LINE) + b"\n" for line in lines)
        self._asked.append(asked)  # the sender sends in this order
        self._sender.submit(self._send, text)
        return await asked.done

    def _send(self, text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[os.write(self._write, left) :]

    def give(self, answers: Sequence[Answer]) -> None:
        """Pass on the answers to the next lines; called by the learner's thread."""
        for answer in answers:
            asked = self._asked[0]
            asked.answers.append(answer)
            if len(asked.answers) == asked.count:
                self._asked.popleft()
                asked.loop.call_soon_threadsafe(_finish, asked)

    def close(self) -> None:
        """Take no more lines; the learner finds the end of its stream behind those before."""
        if not self.is_closed:
            self.is_closed = True
            self._sender.submit(os.close, self._write)
            self._sender.shutdown(wait=False)

    def abandon(self) -> None:
        """Answer requests that wait although the learner has ended."""
        self.is_closed = True
        while self._asked:
            asked = self._asked.popleft()
            asked.loop.call_soon_threadsafe(_abandon, asked)


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Line ends in a JSON document are white space between its parts."""


def _finish(asked: _Asked) -> None:
    if not asked.done.done():  # else the client has gone
        asked.done.set_result(asked.answers)


def _abandon(asked: _Asked) -> None:
    if not asked.done.done():
        asked.done.set_exception(Closed())


class _Given(io.StringIO):
    """A file whose lines are answers of the exchange."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def write(self, text: str, /) -> int:
        lines = text.removesuffix("\n").split("\n")
        self._exchange.give([Answer(200, line.encode()) for line in lines])
        return len(text)


class RequestAnswers(AnswerWriter):
    """Writer of answers to requests, in place of a file."""

    def __init__(
        self, exchange: Exchange, *, id_name: str | None, with_probabilities: bool
    ) -> None:
        super().__init__(
            _Given(exchange), "jsonl", id_name=id_name, with_probabilities=with_probabilities
        )
        self._exchange = exchange

    def refuse(self, refusal: Refusal, names: Sequence[str]) -> None:
        """Pass on that a row was not answered, and why."""
        status = 409 if refusal.is_unmatched or refusal.is_waiting else 400
        error = refusal.error
        reason = error.problem if error.hint is None else f"{error.problem}; {error.hint}"
        fault = Fault(error=reason, row=self._exchange.row)
        if error.place is not None:
            fault.field = error.place.field
        self._exchange.give([Answer(status, msgspec.json.encode(fault))])
