"""The routes of the server: what a request asks for, and how the answer is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ahpatron_cli.cli.live_stream import LiveStream
from ahpatron_cli.cli.server import page
from ahpatron_cli.cli.server.exchange import Closed, Fault
from ahpatron_cli.cli.server.guard import Guard, Refused, Row
from ahpatron_cli.cli.server.openapi import document
from ahpatron_cli.cli.server.session import ServedSession
from ahpatron_cli.cli.server.view import view_of
from ahpatron_cli.data.cells import MISSING

T = TypeVar("T")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class Columns(NamedTuple):
    """Names of the columns that are not features."""

    label: str
    id: str | None


def application(
    session: ServedSession, guard: Guard, columns: Columns, *, origins: Sequence[str]
) -> Starlette:
    """The application that answers requests with this session; pages of `origins` may call it."""
    routes = _Routes(session, guard, columns)
    middleware = []
    if origins:
        allowed = Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
        middleware.append(allowed)
    app = Starlette(
        middleware=middleware,
        routes=[
            Route("/", routes.page, methods=["GET"]),
            Route("/predict", routes.predict, methods=["POST"]),
            Route("/learn", routes.learn, methods=["POST"]),
            Route("/label", routes.label, methods=["POST"]),
            Route("/health", routes.health, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
            Route("/model", routes.model, methods=["GET"]),
            Route("/openapi.json", routes.openapi, methods=["GET"]),
        ],
        exception_handlers={Refused: _refused, HTTPException: _no_route, Exception: _failed},
    )
    app.router.redirect_slashes = False  # the redirection would repeat a host that is not checked
    return app


class _Routes:
    """A method for each route."""

    def __init__(self, session: ServedSession, guard: Guard, columns: Columns) -> None:
        self._session = session
        self._guard = guard
        self._label = columns.label
        self._id = columns.id

    async def predict(self, request: Request) -> Response:
        """Answer rows, which are remembered by id; labels in them are not looked at."""
        return await self._play(request, self._without_label)

    async def learn(self, request: Request) -> Response:
        """Answer rows and learn their labels."""
        return await self._play(request, self._with_label)

    async def label(self, request: Request) -> Response:
        """Learn labels of rows that were answered before."""
        return await self._play(request, self._label_of_id)

    def _without_label(self, row: Row) -> bytes:
        if self._label not in row.cells:
            return row.text
        cells = {name: cell for name, cell in row.cells.items() if name != self._label}
        return msgspec.json.encode(cells)

    def _with_label(self, row: Row) -> bytes:
        self._check_label(row)
        return row.text

    def _label_of_id(self, row: Row) -> bytes:
        if self._id is None:
            raise Refused(400, "labels cannot come later: the server was started without --id")
        _check_value(row, self._id)
        self._check_label(row)
        for name in row.cells:
            if name not in (self._id, self._label):
                problem = f"only {self._id!r} and {self._label!r} belong here; /learn takes rows"
                raise Refused(400, problem, row=row.number, field=name)
        return row.text

    def _check_label(self, row: Row) -> None:
        """Refuse a row without a label, which would be taken for a row to predict."""
        _check_value(row, self._label)
        label = row.cells[self._label]
        if isinstance(label, str) and label.strip() in MISSING:
            problem = f"{label!r} stands for a missing label"
            raise Refused(400, problem, row=row.number, field=self._label)

    async def _play(self, request: Request, line_of: Callable[[Row], bytes]) -> Response:
        """Answer an object with an object, and a list with a list."""
        started = time.perf_counter()
        self._guard.check(request)
        exchange = self._session.exchange
        if exchange.is_closed:
            raise _stopping()
        async with self._guard.body(request) as body:
            rows, is_list = self._guard.rows(body)
            lines = [line_of(row) for row in rows]
            self._check_first_rows(len(lines) if line_of == self._with_label else 0)
            if exchange.waiting >= self._guard.limits.waiting:
                raise Refused(429, "too many requests are waiting")
            try:
                answers = await exchange.ask(lines)
            except Closed:
                raise _stopping() from None
        self._session.history.note_request(len(rows), time.perf_counter() - started)
        if is_list:
            return _json(b"[" + b",".join(answer.body for answer in answers) + b"]")
        return _json(answers[0].body, answers[0].status)

    def _check_first_rows(self, labelled: int) -> None:
        """Refuse what would wait for an answer until others have sent the first rows."""
        needed = self._session.first_rows
        at_once = min(needed, self._guard.limits.rows)
        if labelled < at_once:
            problem = f"the learner begins with {needed:,} rows with labels, which it needs first"
            raise Refused(503, f"{problem}; send /learn a list of at least {at_once:,}")

    async def _look(self, request: Request, look: Callable[[LiveStream], T]) -> T:
        """What `look` finds at the learner, while this has nothing to do."""
        self._guard.check(request)
        session = self._session
        if session.exchange.is_closed:
            raise _stopping()

        def locked() -> T:
            with session.exchange.lock:
                if session.stream is None:
                    raise Refused(503, "the learner begins with the first row")
                return look(session.stream)

        return await run_in_threadpool(locked)

    async def health(self, request: Request) -> Response:
        """Whether the server takes requests: for load balancers, which have no token."""
        if self._session.exchange.is_closed:
            raise _stopping()
        return _json(b'{"status":"ok"}')

    async def metrics(self, request: Request) -> Response:
        """The figures for Prometheus."""
        text = await self._look(request, self._session.exposition)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(text, media_type=kind, headers=_HEADERS)

    async def model(self, request: Request) -> Response:
        """The model, as `ahpatron inspect --json` shows it."""
        return _json(await self._look(request, self._session.description))

    async def page(self, request: Request) -> Response:
        """The page with the figures."""
        try:
            look = partial(view_of, history=self._session.history)
            text = page.to_html(await self._look(request, look))
        except Refused as refused:
            if refused.status != 503:
                raise
            text = page.before_first_row()
        headers = {**_HEADERS, "Content-Security-Policy": page.policy()}
        return Response(text, media_type="text/html", headers=headers)

    async def openapi(self, request: Request) -> Response:
        """The description of all this for machines."""
        self._guard.check(request)
        return _json(msgspec.json.encode(document()))


def _stopping() -> Refused:
    return Refused(503, "the server is stopping")


def _check_value(row: Row, name: str) -> None:
    """Refuse a row without a single value in this column."""
    value = row.cells.get(name)
    if value is None:
        raise Refused(400, f"{name!r} is missing", row=row.number, field=name)
    if isinstance(value, dict | list):
        raise Refused(400, f"{name!r} must be a single value", row=row.number, field=name)


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
    if error.status in (408, 413, 429, 503):
        headers["Connection"] = "close"  # the rest of the body is not read
    return _json(msgspec.json.encode(error.fault), error.status, headers)


async def _no_route(request: Request, error: Exception) -> Response:
    """The answer to a path or a method that there is not."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    hint = "/openapi.json lists what there is"
    if "Allow" in headers:
        hint = f"here is {headers['Allow']} only"
    return _json(msgspec.json.encode(Fault(f"{error.detail}; {hint}")), error.status_code, headers)


async def _failed(request: Request, error: Exception) -> Response:
    """The answer if the server itself has a fault; stderr has the traceback."""
    return _json(msgspec.json.encode(Fault("a fault of the server; see its log")), 500)
