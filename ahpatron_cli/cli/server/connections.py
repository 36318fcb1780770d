"""Connections of the server: bounded in number, and closed if no request comes in time."""

from __future__ import annotations

import asyncio
import socket
from typing import ClassVar

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from ahpatron_cli.cli.server.exchange import Fault

MOST_CONNECTIONS = 512
"""More connections than these are closed at once."""
HEAD_SECONDS = 10.0
"""A connection is closed if request line and headers are not complete by then, or an answer has
not been read."""


class BoundedProtocol(H11Protocol):
    """A connection that is closed if its client sends nothing, or sends or reads too slowly.

    uvicorn limits the time between two requests only. A client that opens connections and never
    sends a request, or never reads an answer, would hold them for ever.
    """

    head_seconds: ClassVar[float] = HEAD_SECONDS
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        # Head and body of an answer are two writes: without this, the second one waits 40 ms.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._head_timer = self.loop.call_later(self.head_seconds, self._close_if_waiting)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answers_request():
            self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_timer()
        self._head_timer = self.loop.call_later(self.head_seconds, self._close_if_waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def _answers_request(self) -> bool:
        """Whether the head of a request has come, and its response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def _close_if_waiting(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # closing would wait until the client has read its answer
        elif not self._answers_request():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP by JSON, as all other faults."""
        body = msgspec.json.encode(Fault(msg))
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        head = h11.Response(status_code=400, headers=headers, reason="Bad Request")
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
