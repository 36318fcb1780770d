"""`ahpatron serve`: the learner behind HTTP, with a page to look at."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import re
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ahpatron_cli.atomic import exists
from ahpatron_cli.errors import ExitCode, NoRowsError, Place, UserError, usage
from ahpatron_cli.live.monitor import FIGURES_EVERY
from ahpatron_cli.settings import RunSettings, ServeSettings
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    import uvicorn

    from ahpatron_cli.cli.live_beginning import Beginning
    from ahpatron_cli.cli.server.app import Columns
    from ahpatron_cli.cli.server.exchange import Exchange
    from ahpatron_cli.cli.server.session import ServedSession
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.model_file import Model
    from ahpatron_cli.settings import Server, Tables

TOKEN = "AHPATRON_TOKEN"
"""The environment variable with the token."""
GRACE_SECONDS = 2
"""Time for the rows in flight when the server stops."""
LAST_SECONDS = 1
"""Time for sending the last answers, and for clients that are still sending, which are refused."""
LATENCY = 0.1
"""Seconds after which the server notes that it is to stop."""

EXAMPLES = """
  ahpatron serve --label fraud --classes no,yes --id payment --state s.npz
  curl --json '{"payment": "p1", "amount": 131.39}' localhost:8000/predict
  curl --json '{"payment": "p1", "fraud": "no"}' localhost:8000/label
"""


def serve(*, settings: ServeSettings) -> ExitCode:
    """Serve a learner over HTTP, with a page to look at.

    It answers rows and learns their labels, now or later. Requests and answers are
    JSON: POST /predict, /learn and /label. GET / is a page with the figures,
    /metrics has them for Prometheus, /openapi.json describes all. The learner is
    that of `run -`; --state keeps it.
    """
    _check_installed()
    from ahpatron_cli.cli.live_beginning import beginning_of, continued
    from ahpatron_cli.cli.run_job import decisive, job_of, setups_of
    from ahpatron_cli.cli.run_output import check_output
    from ahpatron_cli.cli.server.exchange import NAME, Exchange
    from ahpatron_cli.cli.server.session import ServedSession
    from ahpatron_cli.cli.stderr import Stderr

    raise_on_signals()
    _check_label(settings)
    _check_origins(settings.server.allow_origin)
    token = _token(settings.server)
    stderr = Stderr(settings.output.quiet, settings.output.verbose)
    asked = _as_of_run(settings)
    check_output(asked, inputs=[])
    job = job_of(asked, setups_of(asked, stderr.note), [NAME])
    with ExitStack() as opened:
        beginning = beginning_of(job, asked, options=decisive(asked), opened=opened)
        _note_new_state(beginning, stderr)
        columns = _columns(settings.tables, beginning.model)
        listening = opened.enter_context(_listening(settings.server))
        front = _Front(listening, settings.server, columns=columns, token=token, stderr=stderr)
        session = ServedSession(
            continued(job, beginning),
            asked,
            stderr=stderr,
            beginning=beginning,
            exchange=Exchange(),
            on_start=lambda: front.start(session),
            on_stop=front.stop,
        )
        return _run(session, front)


def _note_new_state(beginning: Beginning, stderr: Stderr) -> None:
    """Say that there was no state, as a mistyped path would begin another one."""
    if beginning.state is not None and beginning.model is None:
        stderr.note(f"there is no state in {beginning.state.path} yet: a new learner begins")


def _check_label(settings: ServeSettings) -> None:
    """Refuse to begin a learner without the name of the label, which a state knows."""
    if settings.tables.label is not None:
        return
    state = settings.live.state
    hint = "it names the label in the JSON objects"
    if state is None:
        raise usage("--label COLUMN is missing", hint)
    if not exists(state):
        raise usage(f"--label COLUMN is missing, and there is no state in {state} yet", hint)


def _check_origins(origins: Sequence[str]) -> None:
    """Refuse what no browser sends as an origin, such as an address with a path."""
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"https?://[^/?#\s]+", origin):
            problem = f"--allow-origin {origin}: an origin is a scheme and a host, without a path"
            raise usage(problem, "such as https://shop.example or http://localhost:3000")


def _run(session: ServedSession, front: _Front) -> ExitCode:
    """Serve until a signal comes."""
    try:
        finished = session.run()
    except NoRowsError:
        if session.asked_by is None:
            raise
        session.stderr.note(f"ended by {session.asked_by} before the first row")
        return ExitCode(128 + signal.Signals[session.asked_by])
    finally:
        session.exchange.abandon()
        front.end()
    documents = [finished.document]
    return finished.ending.exit_code(documents, max_rate=None, stderr=session.stderr)


def _columns(tables: Tables, model: Model | None) -> Columns:
    """The names of label and id: as given, or those of the state."""
    from ahpatron_cli.cli.server.app import Columns

    if model is None:
        assert tables.label is not None
        return Columns(label=tables.label, id=tables.id)
    schema = model.header.schema
    if schema is None:
        problem = "the state is that of LIBSVM text, and requests are rows of a table"
        raise UserError(problem, code=ExitCode.BAD_DATA, place=Place(model.path))
    return Columns(label=schema.label, id=tables.id or schema.id)


@dataclass
class _Front:
    """The HTTP server in front of a session, in a thread of its own."""

    listening: socket.socket
    options: Server
    columns: Columns
    token: bytes | None
    stderr: Stderr
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None
    is_stopping: bool = False

    def start(self, session: ServedSession) -> None:
        """Take requests from now on."""
        self.server = self._made(session)
        self.thread = threading.Thread(
            target=self._answer_requests,
            args=(self.server, session.exchange),
            name="http",
            daemon=True,
        )
        self.thread.start()
        self.stderr.note(f"serving on {_address(self.listening)}")

    def _made(self, session: ServedSession) -> uvicorn.Server:
        import uvicorn

        from ahpatron_cli.cli.server.app import application
        from ahpatron_cli.cli.server.connections import BoundedProtocol
        from ahpatron_cli.cli.server.guard import Guard, Limits

        limits = Limits()
        guard = Guard(self.token, limits)
        origins = self.options.allow_origin
        config = uvicorn.Config(
            application(session, guard, self.columns, origins=origins),
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",  # anybody can send what is no HTTP, and fill a log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.head,
            timeout_graceful_shutdown=LAST_SECONDS,
        )
        return uvicorn.Server(config)

    def _answer_requests(self, server: uvicorn.Server, exchange: Exchange) -> None:
        try:
            asyncio.run(self._serve(server, exchange))
        finally:
            exchange.close()

    async def _serve(self, server: uvicorn.Server, exchange: Exchange) -> None:
        """Answer requests; once stopping, refuse them while the learner ends and is saved."""
        serving = asyncio.create_task(server.serve(sockets=[self.listening]))
        while not self.is_stopping and not serving.done():
            await asyncio.sleep(LATENCY)
        exchange.close()  # the learner answers what it has, and ends
        _, unfinished = await asyncio.wait([serving], timeout=GRACE_SECONDS)
        if unfinished:
            watch.end_stream(signal.SIGTERM)  # rows that are left are refused, not learned
        await serving

    def stop(self) -> None:
        """Take no more requests; a signal handler calls this, so it only notes that."""
        self.is_stopping = True

    def end(self) -> None:
        """Send the answers that are left, and close all connections."""
        self.is_stopping = True
        if self.server is not None and self.thread is not None:
            self.server.should_exit = True
            self.thread.join(2 * LAST_SECONDS)


def _check_installed() -> None:
    """Refuse to begin without the extra `serve`."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        hint = "install them: `pip install 'ahpatron-cli[serve]'`"
        raise usage("serve requires starlette and uvicorn", hint) from None


def _token(server: Server) -> bytes | None:
    """The token that clients must send; refuses to serve other machines without one."""
    token = os.environb.get(TOKEN.encode(), b"").strip()
    if server.token_file is not None:
        path = server.token_file
        try:
            token = Path(path).read_bytes().strip()
        except OSError as error:
            problem = f"the token cannot be read: {error.strerror or error}"
            raise UserError(problem, code=ExitCode.NO_INPUT, place=Place(path)) from None
        if not token:
            raise usage(f"there is no token in {path}", "`openssl rand -hex 32` makes one")
    if not token and not _is_loopback(server.host):
        hint = f"give a token: --token-file FILE, or the environment variable {TOKEN}"
        raise usage(f"--host {server.host} lets other machines in, which requires a token", hint)
    return token or None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _as_of_run(settings: ServeSettings) -> RunSettings:
    """The settings of a live run with the same options."""
    return RunSettings(
        learning=settings.learning,
        data=settings.data,
        tables=settings.tables,
        live=replace(settings.live, on_fault="skip"),
        models=settings.models,
        operating_point=settings.operating_point,
        output=replace(settings.output, window=settings.output.window or FIGURES_EVERY),
        given=settings.given,
    )


def _listening(server: Server) -> socket.socket:
    """The socket on which the server listens."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        return socket.create_server((server.host, server.port), family=family, backlog=1024)
    except OSError as error:
        reason, _, _ = (error.strerror or str(error)).partition(" (while")  # the address again
        problem = f"{server.host}, port {server.port}: {reason}"
        hint = "another port: --port N, or --port 0 for any that is free"
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            hint = "--host is an address of this machine, or 0.0.0.0 for all that it has"
        raise UserError(problem, code=ExitCode.CANNOT_CREATE, hint=hint) from None


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"
