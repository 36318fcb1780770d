"""A server of `ahpatron serve` in a process of its own, and requests to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "ahpatron_cli", "serve", "--port", "0"]
JSON = {"Content-Type": "application/json"}
PATIENCE = 300


@dataclass
class Served:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    headers: dict[str, str] = field(default_factory=dict)
    said: str = ""
    """What it has said before it served."""

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {**self.headers, **headers})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        body = json.dumps(document).encode()
        status, answer, _ = self.ask("POST", path, body, **JSON)
        return status, json.loads(answer)

    def figure(self, name: str) -> int:
        """A figure for Prometheus, once the state is restored."""
        deadline = time.monotonic() + PATIENCE
        status, answer, _ = self.ask("GET", "/metrics")
        while status == 503:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            status, answer, _ = self.ask("GET", "/metrics")
        text = answer.decode()
        found = re.search(rf"^ahpatron_{name}\{{.*\}} (\d+)$", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    @property
    def megabytes(self) -> float:
        """The memory that the process holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (size,) = re.findall(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(size) / 1024

    def kill(self) -> str:
        """End it at once; what it has said."""
        self.process.kill()
        _, err = self.process.communicate(timeout=PATIENCE)
        return err

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end, and wait until it has; its exit code, and what it has said."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait for a process that ends by itself: a second signal would end it at once."""
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


def started(folder: Path, *options: str, token: str | None = None) -> Served:
    environment = {**os.environ, "AHPATRON_TOKEN": token or ""}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # many lives compile the modules once
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"serving on http://\S+:(\d+)/", line):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return Served(process, int(found[1]), headers, said)
    raise AssertionError(f"it does not serve: {said}")
