"""What every request must pass: the right host, a token, a body of JSON that is not too large."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from starlette.requests import ClientDisconnect, Request

from ahpatron_cli.cli.server.exchange import Fault

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Refused(Exception):  # noqa: N818 - an answer with a status, not a fault of the server
    """A request that is refused with a status, a reason, and the place of the fault."""

    def __init__(
        self, status: int, reason: str, *, row: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.fault = Fault(reason, row=row, field=field)


@dataclass(frozen=True)
class Limits:
    """Limits of a request."""

    head: int = 16 * 2**10
    """Bytes of all headers."""
    body: int = 8 * 2**20
    """Bytes."""
    held: int = 64 * 2**20
    """Bytes of the bodies of all requests that are not answered yet."""
    rows: int = 10_000
    seconds: float = 30.0
    """Time for sending the body."""
    waiting: int = 64
    """Requests that wait for the learner."""


class Row(NamedTuple):
    """A row of a request."""

    number: int
    """Its place in the request, from 0."""
    text: bytes
    """The JSON object as it came, which the reader of JSON lines checks."""
    cells: dict[str, Any]


_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class Guard:
    """The checks of a request before anything is done with it.

    Parameters
    ----------
    token : bytes, optional
        The token that clients must send. Without one, the server must be bound to loopback.
    limits : Limits
    """

    def __init__(self, token: bytes | None, limits: Limits) -> None:
        self._token = token
        self.limits = limits
        self._held = 0
        """Bytes of the bodies of all requests that are not answered yet."""

    def check(self, request: Request) -> None:
        """Refuse a request without the token, from a page of another site, or with long headers."""
        size = sum(len(name) + len(value) for name, value in request.headers.raw)
        if size > self.limits.head:
            raise Refused(431, f"the headers are larger than {self.limits.head:,} bytes")
        if self._token is None:
            # A page of another site can have its own name resolved to 127.0.0.1.
            if _host_name(request.headers.get("host", "")) not in LOCAL:
                hint = "without a token, only localhost is answered: see --token-file"
                raise Refused(403, f"the request is for another host; {hint}")
            return
        sent = _sent_token(request.headers.get("authorization", ""))
        if not hmac.compare_digest(sent, self._token):
            raise Refused(401, "a token is required: `Authorization: Bearer TOKEN`")

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """Context manager: the body of a request, which counts as held until it is answered."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a form of another site cannot send this type
            raise Refused(415, "send JSON, with `Content-Type: application/json`")
        body = bytearray()
        try:
            await self._receive(request, body)
            yield bytes(body)
        finally:
            self._held -= len(body)

    async def _receive(self, request: Request, body: bytearray) -> None:
        """Receive the body of a request, of which no more is held than is allowed."""
        too_large = Refused(413, f"the body is larger than {self.limits.body:,} bytes")
        announced = request.headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self.limits.body:
            raise too_large
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    body += part
                    self._held += len(part)
                    if len(body) > self.limits.body:
                        raise too_large
                    if self._held > self.limits.held:
                        raise Refused(429, "the requests that are waiting are too large")
        except TimeoutError:
            raise Refused(408, f"the body did not come in {self.limits.seconds:g} s") from None
        except ClientDisconnect:
            raise Refused(400, "the body is not complete") from None
        except asyncio.CancelledError:  # the server closes all connections
            raise Refused(503, "the server is stopping") from None

    def rows(self, body: bytes) -> tuple[list[Row], bool]:
        """The rows in the body of a request, and whether they are a list."""
        is_list = body.lstrip()[:1] == b"["
        try:
            texts = _LIST.decode(body) if is_list else [msgspec.Raw(body)]
            if len(texts) > self.limits.rows:
                problem = f"{len(texts):,} rows; at most {self.limits.rows:,} are accepted"
                raise Refused(413, problem)
            rows = [_row(number, bytes(text)) for number, text in enumerate(texts)]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, f"the body is not JSON: {error}") from None
        if not rows:
            raise Refused(400, "the list is empty")
        return rows, is_list


def _row(number: int, text: bytes) -> Row:
    """A row of a request; `Refused` if it is no object."""
    cells = msgspec.json.decode(text)
    if not isinstance(cells, dict):
        raise Refused(400, "a row must be a JSON object: columns and values", row=number)
    return Row(number, text, cells)


def _host_name(host: str) -> str:
    """The name in a header `Host`, without the port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _sent_token(authorization: str) -> bytes:
    """The token in a header `Authorization`; of `Basic`, which browsers ask for, the password."""
    scheme, _, value = authorization.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value.encode("latin-1")  # as which headers are decoded
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
