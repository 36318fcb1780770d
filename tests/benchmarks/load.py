"""Requests a second and latency of `ahpatron serve`, beside the same rows through a pipe.

    python tests/benchmarks/load.py [--seconds 5] [--connections 1,8,64]

The server runs metron with B = 400 and has learned 2,000 rows with 8 columns of numbers. Each
connection sends one request after the other and stays open: /predict with one row and with 100
rows, and /learn with one row. A last line is the same rows without HTTP: `run - --answers jsonl`,
one line sent after the other. Only loopback is used, and all loops are bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

COLUMNS = 8
LEARNED = 2000
OPTIONS = ("--label", "y", "-l", "metron", "-B", "400")


def rows(seed: int, labelled: bool) -> Iterator[dict[str, Any]]:
    """Rows of two noisy classes, without end."""
    draw = np.random.default_rng(seed)
    while True:
        values = draw.normal(size=COLUMNS).round(4).tolist()
        row: dict[str, Any] = {f"x{number}": value for number, value in enumerate(values)}
        if labelled:
            row["y"] = int(values[0] * values[1] + 0.3 * draw.normal() > 0)
        yield row


def request(path: str, document: Any) -> bytes:
    """The bytes of a request."""
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> bytes:
    """The body of the answer to a request."""
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"the server answered {head!r}")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    assert length is not None
    return await reader.readexactly(int(length[1]))


async def client(
    port: int, seed: int, path: str, count: int, until: float, spent: list[float]
) -> None:
    """Send requests on one connection until a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    source = rows(seed, labelled=path == "/learn")
    while time.perf_counter() < until:
        many = [next(source) for _ in range(count)]
        sent = request(path, many if count > 1 else many[0])
        begun = time.perf_counter()
        await ask(reader, writer, sent)
        spent.append(time.perf_counter() - begun)
    writer.close()


async def load(port: int, path: str, count: int, connections: int, seconds: float) -> None:
    """One line of the table."""
    spent: list[float] = []
    until = time.perf_counter() + seconds
    clients = [client(port, number, path, count, until, spent) for number in range(connections)]
    await asyncio.gather(*clients)
    show(f"{path}, {count} rows", connections, seconds, spent)


def show(what: str, connections: int, seconds: float, spent: list[float]) -> None:
    """Print a line of the table."""
    median, high = 1e3 * np.percentile(spent, [50, 99])
    rate = len(spent) / seconds
    print(f"{what:20} {connections:4} {rate:12.0f} {median:10.2f} {high:10.2f}", flush=True)


async def learn(port: int) -> None:
    """Have the server learn the first rows."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    source = rows(0, labelled=True)
    for _ in range(LEARNED // 100):
        await ask(reader, writer, request("/learn", [next(source) for _ in range(100)]))
    writer.close()


def serve(folder: str) -> tuple[subprocess.Popen[str], int]:
    """A server, and its port."""
    command = [sys.executable, "-m", "ahpatron_cli", "serve", "--port", "0", *OPTIONS]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"serving on http://\S+:(\d+)/", line):
            return server, int(found[1])
    sys.exit("the server did not begin")


def pipe(seconds: float, labelled: bool) -> None:
    """The same rows through a pipe."""
    command = [sys.executable, "-m", "ahpatron_cli", "run", "-", *OPTIONS, "--answers", "jsonl"]
    run = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert run.stdin is not None
    assert run.stdout is not None

    def exchange(row: dict[str, Any]) -> float:
        assert run.stdin is not None
        assert run.stdout is not None
        line = json.dumps(row).encode() + b"\n"
        begun = time.perf_counter()
        run.stdin.write(line)
        run.stdin.flush()
        run.stdout.readline()
        return time.perf_counter() - begun

    source = rows(0, labelled=True)
    for _ in range(LEARNED):
        exchange(next(source))
    source = rows(1, labelled=labelled)
    until = time.perf_counter() + seconds
    spent = []
    while time.perf_counter() < until:
        spent.append(exchange(next(source)))
    run.communicate()
    show("pipe, learned" if labelled else "pipe, predicted", 1, seconds, spent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", default="1,8,64")
    options = parser.parse_args()
    print(f"{'request':20} {'conn':>4} {'requests/s':>12} {'median ms':>10} {'99 % ms':>10}")
    with TemporaryDirectory() as folder:
        for path, count in (("/predict", 1), ("/predict", 100), ("/learn", 1)):
            for connections in map(int, options.connections.split(",")):
                server, port = serve(str(Path(folder)))
                asyncio.run(learn(port))
                asyncio.run(load(port, path, count, connections, options.seconds))
                server.terminate()
                server.communicate()
    for labelled in (False, True):
        pipe(options.seconds, labelled)


if __name__ == "__main__":
    main()
