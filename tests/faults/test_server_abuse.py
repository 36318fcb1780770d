"""A server that is sent nonsense, too much, too slowly and too often: it goes on answering."""

import asyncio
import json
import random
import resource
import select
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPMessage
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from uvicorn.server import ServerState

from ahpatron_cli.cli.server import connections
from ahpatron_cli.cli.server.connections import HEAD_SECONDS, MOST_CONNECTIONS, BoundedProtocol
from ahpatron_cli.cli.server.guard import Guard, Limits, Refused
from support.served import JSON, PATIENCE, Served, started

OPTIONS = ("--label", "y", "--id", "key", "-B", "50")
MORE_MEMORY = 400
"""MiB by which a server may grow: bodies of at most 64 MiB, decoded, and the connections."""


@pytest.fixture(params=["", "secret"], ids=["open", "token"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    served = started(tmp_path, *OPTIONS, token=request.param)
    for number in range(20):
        row = {"key": f"k{number}", "x": number % 7, "day": "2024-05-01", "y": number % 2}
        assert served.post("/learn", row)[0] == 200
    yield served
    served.process.kill()
    served.process.communicate()


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)


def exchanged(served: Served, sent: bytes, *, is_whole: bool) -> bytes:
    """All that the server answers until it closes the connection; else the client ends it."""
    with connected(served) as client:
        with suppress(ConnectionError):  # it may refuse before all is sent
            client.sendall(sent)
            if not is_whole:
                client.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while piece := client.recv(1 << 16):
                answer += piece
        return answer


def request(path: str, body: bytes, *heads: str, method: str = "POST", http: str = "1.1") -> bytes:
    """The bytes of a request; heads may replace those that are usual."""
    usual = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    given = {head.partition(":")[0] for head in heads}
    lines = [f"{name}: {value}" for name, value in usual.items() if name not in given]
    lines = [f"{method} {path} HTTP/{http}", *lines, *(head for head in heads if ":" in head)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


ROW = b'{"key": "n", "x": 1, "y": 1}'
CELLS: list[Any] = ["text", [1, "a"], [[1]], {"a": {"b": []}}, 10**400, "\ud800", "x" * 70_000]
BODIES = [
    b"",
    b" ",
    b"null",
    b"1",
    b'"text"',
    b"[]",
    b"[[]]",
    b"[null]",
    b"[1, {}]",
    b"{",
    b'{"x"',
    b'{"x": 1,}',
    b"{'x': 1}",
    b"{} {}",
    b"{}\n{}",
    b'{"x": NaN}',
    b'{"x": Infinity}',
    b'{"x": -Infinity}',
    b'{"x": 1e999}',
    b'{"x": 1e308, "y": 1}',
    b'{"x": 0x10}',
    b'{"x": 01}',
    b'{"x": +1}',
    b'{"x": 1, "x": 2, "y": 1}',
    b'{"y": 1, "y": 0}',
    b'{"a.b": 1, "a": {"b": 2}, "y": 1}',
    b'{"x": "\xff\xfe"}',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b'{"x": "\x00"}',
    b'{"x": "\\u0000", "y": 1}',
    b'{"x": "\\ud800", "y": 1}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"a":' * 60 + b"1" + b"}" * 60,
    b'{"x": 1' + b"0" * 5000 + b', "y": 1}',
    b'{"x": ' + b"9" * 100_000 + b"}",
    b"[" + b"{}," * 10_001 + b"{}]",
    b"[" + b"1," * 1_000_000 + b"1]",
    b"{" + b",".join(b'"c%d": 1' % n for n in range(20_000)) + b', "y": 1}',
    *(json.dumps({"key": "n", "x": cell, "y": 1}).encode() for cell in CELLS),
    *(json.dumps({"key": "n", "x": 1, "y": cell}).encode() for cell in CELLS),
    *(json.dumps({"key": cell, "x": 1, "y": 1}).encode() for cell in CELLS),
    *(json.dumps({"key": "n", "day": cell, "y": 1}).encode() for cell in CELLS),
]
PATHS = ["/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//", "/predict/", "/page.css"]
PATHS += ["/openapi.json/../server", "/model?path=/etc/passwd", "/%00", "/\xff", "*", "http://a/"]
HEADS = [
    "Content-Length: -1",
    "Content-Length: 1e9",
    "Content-Length: 99999999999999999999",
    "Content-Length: " + "9" * 5000,
    "Content-Length: 3",
    "Content-Length: 1, 2",
    "Content-Length",
    "Transfer-Encoding: gzip",
    "Content-Encoding: gzip",
    "Content-Type: text/plain",
    "Content-Type: application/json; charset=utf-16",
    "Content-Type",
    "Host",
    "Host: example.org",
    "Host: [",
    "Host: \xe9",
    "Authorization: Bearer",
    "Authorization: Bearer wrong",
    "Authorization: Basic \xff",
    "Authorization: Basic " + "A" * 10_000,
    "Upgrade: websocket",
    "Cookie: " + "a" * 100_000,
    *(f"H{n}: {'x' * 60}" for n in range(3)),
]
CHUNKS = [
    b"zz\r\n",
    b"-5\r\nabcde\r\n0\r\n\r\n",
    b"5\r\nabcdefgh\r\n0\r\n\r\n",
    b"2\r\n{}\r\n0\r\nTrailer: 1\r\n\r\n",
]
PARTS = [
    b"",
    b"GET / HTTP/9.9\r\n\r\n",
    request("/predict", b"f" * 15 + b"\r\n", "Content-Length", "Transfer-Encoding: chunked"),
    b"\r\n\r\n",
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\n",
    request("/predict", ROW, "Content-Length: 1000"),
    request("/predict", b"5\r\nabc", "Content-Length", "Transfer-Encoding: chunked"),
    request("/predict", b"1\r\n[\r\n" * 1000, "Content-Length", "Transfer-Encoding: chunked"),
    request("/predict", b"", "Expect: 100-continue"),
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300,
    b"GET /health HTTP/1.1\nHost: localhost\n\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]
"""Requests without an end, or after which the connection stays open."""
RAW = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    b"GET\r\n\r\n",
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
    + b"X: y\r\n" * 20_000
    + b"Connection: close\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
]


def whole_requests(served: Served) -> Iterator[bytes]:
    """More than 200 requests that are at fault in many ways."""
    own = [f"{name}: {value}" for name, value in served.headers.items()]
    for body in BODIES:
        for path in ("/predict", "/learn", "/label"):
            yield request(path, body, *own)
    for path in PATHS:
        yield request(path, ROW, *own)
        yield request(path, b"", *own, method="GET")
    for method in ("GET", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "NONSENSE"):
        yield request("/predict", ROW, *own, method=method)
    for http in ("1.0", "0.9", "2.0", "x"):
        yield request("/predict", ROW, *own, http=http)
    for head in HEADS:
        others = [one for one in own if one.partition(":")[0] != head.partition(":")[0]]
        yield request("/predict", ROW, *others, head)
    for chunks in CHUNKS:
        yield request("/learn", chunks, *own, "Content-Length", "Transfer-Encoding: chunked")
    yield request("/predict", b'{"x": "' + b"x" * Limits().body + b'"}', *own)
    yield from RAW


def test_nonsense_is_refused_without_a_fault_of_the_server(server: Served) -> None:
    before = server.megabytes
    statuses = set()
    count = 0
    for sent in whole_requests(server):
        answer = exchanged(server, sent, is_whole=True)
        status = answer[9:12].decode()
        assert status[:1] in ("2", "4"), sent[:200]
        assert b"root:" not in answer
        if status.startswith("4"):
            _, _, body = answer.partition(b"\r\n\r\n")
            assert "error" in json.loads(body), sent[:200]
        statuses.add(status)
        count += 1
    for sent in PARTS:
        assert b" 500 " not in exchanged(server, sent, is_whole=False)
    assert count > 200
    assert statuses >= {"200", "400", "404", "405", "409", "413", "415"}
    assert ("401" in statuses) == bool(server.headers)
    assert server.ask("GET", "/health")[0] == 200
    assert server.post("/learn", {"key": "last", "x": 1, "y": 1})[0] == 200
    assert server.megabytes < before + MORE_MEMORY
    code, err = server.end()
    assert code == 143
    assert "Traceback" not in err


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process, and the server that it starts, may open 4,096 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("1,000 connections need 4,096 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed this connection."""
    readable, _, _ = select.select([client], [], [], 0)
    try:
        return bool(readable) and not client.recv(1)
    except ConnectionError:
        return True


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
def test_of_1000_idle_connections_those_beyond_the_limit_are_closed(tmp_path: Path) -> None:
    """When the others have been idle for too long, the server answers again."""
    served = started(tmp_path, *OPTIONS)
    assert served.post("/learn", {"key": "a", "x": 1, "y": 1})[0] == 200
    before = served.megabytes
    with ExitStack() as opened:
        clients = [opened.enter_context(connected(served)) for _ in range(1000)]
        deadline = time.monotonic() + PATIENCE
        while sum(map(is_closed, clients)) < 1000 - MOST_CONNECTIONS:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert served.megabytes < before + MORE_MEMORY
        while not all(map(is_closed, clients)):
            assert time.monotonic() < deadline + HEAD_SECONDS
            time.sleep(0.05)
    assert served.post("/learn", {"key": "b", "x": 1, "y": 0})[0] == 200
    served.end()


def test_a_connection_beyond_the_limit_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else closes it here: connections may be idle for a day."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 86_400.0)
    config = uvicorn.Config(Starlette(), ws="none", log_config=None)
    state = ServerState()

    async def connect() -> None:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            lambda: BoundedProtocol(config, state, {}), "127.0.0.1", 0
        )
        port = listening.sockets[0].getsockname()[1]
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        last, _ = clients[2]
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                assert await last.read() == b""
        assert len(state.connections) == 2
        assert not any(reader.at_eof() for reader, _ in clients[:2])
        for _, writer in clients:
            writer.close()
        listening.close()

    asyncio.run(connect())


@pytest.mark.slow
def test_requests_that_come_too_slowly_are_ended(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with ExitStack() as opened:
        slow_head, slow_body = (opened.enter_context(connected(served)) for _ in range(2))
        slow_head.sendall(head)
        slow_body.sendall(head + b"Content-Length: 1000\r\n\r\n{")
        answers = {slow_head: b"", slow_body: b""}
        waiting = [slow_head, slow_body]
        deadline = time.monotonic() + Limits().seconds + PATIENCE
        while waiting:
            assert time.monotonic() < deadline
            readable, _, _ = select.select(waiting, [], [], 0.5)
            for client in waiting[:]:
                with suppress(ConnectionError):
                    if client not in readable:
                        client.sendall(b"X: y\r\n" if client is slow_head else b" ")
                        continue
                    answers[client] += client.recv(1 << 16)
                waiting.remove(client)
            assert served.ask("GET", "/health")[0] == 200
    assert answers[slow_head] == b""
    assert answers[slow_body].startswith(b"HTTP/1.1 408 ")
    served.end()


@pytest.mark.slow
def test_an_answer_that_is_never_read_is_given_up(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    rows = [{"key": f"{'k' * 500}{number}", "x": number, "y": 1} for number in range(9_000)]
    body = json.dumps(rows).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", served.port))
        client.sendall(request("/learn", body, "Connection: keep-alive"))
        sockets = Path(f"/proc/{served.process.pid}/fd")
        deadline = time.monotonic() + HEAD_SECONDS + PATIENCE
        before = len(list(sockets.iterdir()))
        while len(list(sockets.iterdir())) >= before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert served.post("/learn", {"key": "b", "x": 1, "y": 0})[0] == 200
    served.end()


def test_a_body_counts_as_held_until_it_is_answered() -> None:
    guard = Guard(None, Limits(held=100))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"[" + b" " * 58 + b"]", "more_body": False}

    def asked() -> Request:
        heads = [(b"content-type", b"application/json")]
        return Request({"type": "http", "method": "POST", "headers": heads}, receive)

    async def ask() -> None:
        for _ in range(5):
            async with guard.body(asked()) as body:
                assert len(body) == 60
        async with guard.body(asked()):
            with pytest.raises(Refused, match="too large"):
                async with guard.body(asked()):
                    pass

    asyncio.run(ask())


def test_as_many_rows_as_the_limit_are_accepted() -> None:
    guard = Guard(None, Limits(rows=2))
    rows, is_list = guard.rows(b'[{"a": 1}, {"a": 2}]')
    assert ([row.cells["a"] for row in rows], is_list) == ([1, 2], True)
    with pytest.raises(Refused, match="3 rows; at most 2"):
        guard.rows(b"[{}, {}, {}]")


def slow_rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Rows of noise, of which a few thousand take a second."""
    draw = random.Random(first)
    return [
        {**{f"x{column}": draw.random() for column in range(20)}, "y": draw.randrange(2)}
        for _ in range(count)
    ]


def test_more_requests_than_may_wait_are_refused(tmp_path: Path) -> None:
    served = started(tmp_path, "--label", "y", "-B", "400")
    row = json.dumps(slow_rows(1)[0]).encode()
    count = 2 * Limits().waiting
    learned = 0
    refused: list[HTTPMessage] = []
    with ThreadPoolExecutor(count + 1) as pool:
        while not refused:
            assert learned < 100_000
            long = pool.submit(served.post, "/learn", slow_rows(3000))
            while served.figure("rounds_total") == learned:  # it is not there yet
                time.sleep(0.01)
            found = [pool.submit(served.ask, "POST", "/learn", row, **JSON) for _ in range(count)]
            answers = [one.result() for one in found]
            assert {status for status, _, _ in answers} <= {200, 429}
            refused = [headers for status, _, headers in answers if status == 429]
            assert long.result()[0] == 200
            learned = served.figure("rounds_total")
    assert refused[0]["Retry-After"]
    served.end()


def test_a_body_that_is_not_complete_at_the_end_is_refused(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, "--state", "s.npz")
    assert served.post("/learn", {"key": "a", "x": 1, "y": 1})[0] == 200
    with connected(served) as client:
        client.sendall(request("/learn", b'{"key": "b"', "Content-Length: 1000"))
        served.process.send_signal(signal.SIGTERM)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
    code, err = served.ended()
    assert code == 143
    assert "Traceback" not in err
    again = started(tmp_path, "--state", "s.npz")
    assert again.figure("rounds_total") == 1
    again.end()


def test_requests_in_flight_are_finished_and_others_are_refused_at_the_end(
    tmp_path: Path,
) -> None:
    """The port answers with 503 until the last state is saved."""
    served = started(tmp_path, "--label", "y", "-B", "400", "--state", "s.npz")
    lists = [slow_rows(1500, first) for first in range(8)]
    with ThreadPoolExecutor(len(lists)) as pool:
        found = [pool.submit(served.post, "/learn", rows) for rows in lists]
        while not any(one.done() for one in found):
            time.sleep(0.01)
        served.process.send_signal(signal.SIGTERM)
        statuses = set()
        with suppress(ConnectionError):  # the process has ended
            while True:
                statuses.add(served.ask("GET", "/health")[0])
        answers = [one.result() for one in found]
    assert statuses == {200, 503} or statuses == {503}
    code, err = served.ended()
    assert code == 143
    assert "Traceback" not in err
    learned = sum(len(answer) for status, answer in answers if status == 200)
    assert {status for status, _ in answers} <= {200, 503}
    again = started(tmp_path, "--state", "s.npz")
    assert learned <= again.figure("rounds_total") <= sum(map(len, lists))
    again.end()
