"""The routes of the server: what a request asks for, and how the answer is written."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ahpatron_cli import __version__
from ahpatron_cli.serve import page
from ahpatron_cli.serve.guard import Guard, Refused
from ahpatron_cli.serve.shared import SharedService

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Row: TypeAlias = dict[str, Any]
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def application(shared: SharedService, guard: Guard) -> Starlette:
    """The application that answers requests with this service."""
    handlers = _Handlers(shared, guard)
    routes = [
        Route("/", handlers.page, methods=["GET"]),
        Route("/predict", handlers.predict, methods=["POST"]),
        Route("/learn", handlers.learn, methods=["POST"]),
        Route("/label", handlers.label, methods=["POST"]),
        Route("/health", handlers.health, methods=["GET"]),
        Route("/metrics", handlers.metrics, methods=["GET"]),
        Route("/model", handlers.model, methods=["GET"]),
        Route("/openapi.json", handlers.openapi, methods=["GET"]),
    ]
    refusals = {Refused: _refused, HTTPException: _not_found, Exception: _failed}
    return Starlette(routes=routes, exception_handlers=refusals)


class _Handlers:
    """A method for each route."""

    def __init__(self, shared: SharedService, guard: Guard) -> None:
        self._shared = shared
        self._guard = guard

    async def predict(self, request: Request) -> Response:
        """Answer rows, which are remembered by id."""
        return await self._play(request, self._shared.predict)

    async def learn(self, request: Request) -> Response:
        """Answer and learn rows with labels."""
        return await self._play(request, self._shared.learn)

    async def label(self, request: Request) -> Response:
        """Learn labels of rows that were answered before."""
        return await self._play(request, self._shared.label)

    async def _play(self, request: Request, play: Callable[[list[Row]], list[bytes]]) -> Response:
        """Answer an object with an object, and a list with a list."""
        started = time.perf_counter()
        self._guard.check(request)
        document = await self._guard.document(request)
        rows = _rows(document, most=self._guard.limits.rows)
        answers = await self._shared.call(partial(play, rows))
        body = b"[" + b",".join(answers) + b"]" if isinstance(document, list) else answers[0]
        self._shared.history.note_request(len(rows), time.perf_counter() - started)
        return _json(body)

    async def health(self, request: Request) -> Response:
        """Whether the server takes requests: for load balancers, which have no token."""
        self._shared.check_open()
        return _json(b'{"status":"ok"}')

    async def metrics(self, request: Request) -> Response:
        """The figures for Prometheus."""
        self._guard.check(request)
        text = await self._shared.call(self._shared.exposition)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(text, media_type=kind, headers=_HEADERS)

    async def model(self, request: Request) -> Response:
        """The model, as `ahpatron inspect --json` shows it."""
        self._guard.check(request)
        return _json(await self._shared.call(self._shared.description))

    async def page(self, request: Request) -> Response:
        """The page with the figures."""
        self._guard.check(request)
        view = await self._shared.call(self._shared.view)
        headers = {**_HEADERS, "Content-Security-Policy": page.policy()}
        return Response(page.to_html(view), media_type="text/html", headers=headers)

    async def openapi(self, request: Request) -> Response:
        """The description of all this for machines."""
        self._guard.check(request)
        text = files("ahpatron_cli.serve").joinpath("openapi.json").read_text("utf-8")
        return _json(text.replace('"VERSION"', f'"{__version__}"').encode())


def _rows(document: Any, most: int) -> list[Row]:
    """The objects in a document: one, or a list of them."""
    rows = document if isinstance(document, list) else [document]
    if not rows:
        raise Refused(400, "the list is empty")
    if len(rows) > most:
        raise Refused(413, f"{len(rows):,} rows in a request; at most {most:,} are accepted")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Refused(400, "a row must be a JSON object: columns and values", row=number)
    return rows


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    every = {**_HEADERS, **(headers or {})}
    return Response(body, status, media_type="application/json", headers=every)


async def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request that is refused."""
    assert isinstance(error, Refused)
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="ahpatron", charset="UTF-8"'
    if error.status in (429, 503):
        headers["Retry-After"] = "1"
    if error.status in (408, 413):
        headers["Connection"] = "close"  # the rest of the body is not read
    body = msgspec.json.encode({"error": error.reason, **error.fields})
    return _json(body, error.status, headers)


async def _not_found(request: Request, error: Exception) -> Response:
    """The answer to a path or a method that there is not."""
    assert isinstance(error, HTTPException)
    body = msgspec.json.encode({"error": error.detail})
    return _json(body, error.status_code, dict(error.headers or {}))


async def _failed(request: Request, error: Exception) -> Response:
    """The answer if the server itself has a fault; the log has its traceback."""
    return _json(b'{"error":"a fault of the server; its log has the details"}', 500)
