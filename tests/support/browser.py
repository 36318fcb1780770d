"""Chromium without a window, for tests of pages; and what a page asked the network for."""

import fcntl
import json
import os
import select
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --remote-debugging-pipe"
)
PATIENCE = 300

needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="no browser to open pages in: apt-get install chromium"
)


class Browser:
    """A page of Chromium, told what to do by Chrome's DevTools protocol over two pipes."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        commands, self._commands = _pipe()
        self._answers, answers = _pipe()
        self._pid = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, commands, 3),  # where Chromium reads, and where it writes
                (os.POSIX_SPAWN_DUP2, answers, 4),
                (os.POSIX_SPAWN_OPEN, 2, str(profile / "stderr"), os.O_CREAT | os.O_WRONLY, 0o600),
            ],
        )
        os.close(commands)
        os.close(answers)
        self._text = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """What has happened since the last call of `get`."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            received = self._receive(deadline)
            if received.get("id") == number:
                assert "error" not in received, received
                result: dict[str, Any] = received["result"]
                return result

    def _receive(self, deadline: float) -> dict[str, Any]:
        """The next message; it is also noted if it is an event."""
        while b"\0" not in self._text:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self._answers], [], [], left)[0], "the browser says nothing"
            piece = os.read(self._answers, 1 << 16)
            assert piece, "the browser has ended"
            self._text += piece
        text, _, self._text = self._text.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, address: str, *, width: int, height: int, scheme: str, scripts: bool) -> None:
        """Open an address in a window of this size, light or dark."""
        self._load("about:blank")
        self.events.clear()
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._load(address)

    def _load(self, address: str) -> None:
        before = self.loads
        self.command("Page.navigate", url=address)
        self.wait_until(lambda: self.loads > before)

    @property
    def loads(self) -> int:
        """How often a page was loaded."""
        return sum(event["method"] == "Page.loadEventFired" for event in self.events)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, which is looked at after each event or part of a second."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline
            if self._text or select.select([self._answers], [], [], 0.1)[0]:
                self._receive(deadline)

    def script(self, body: str) -> Any:
        """What a function with this body returns."""
        result = self.command(
            "Runtime.evaluate", expression=f"(() => {{{body}}})()", returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    @property
    def source(self) -> str:
        """The document as it is now; also if scripts may not run."""
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        found: str = self.command("DOM.getOuterHTML", nodeId=root)["outerHTML"]
        return found

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """What the console shows."""
        kinds = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        return [event for event in self.events if event["method"] in kinds]

    @property
    def requests(self) -> set[str]:
        """Addresses that were asked for."""
        return {
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        }

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)  # at the end of its commands, it ends
        while os.read(self._answers, 1 << 16):
            pass
        os.close(self._answers)
        os.waitpid(self._pid, 0)


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are none of those that Chromium has for its commands."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def open_browser(profile: Path) -> Iterator[Browser]:
    """A browser that keeps its profile in a folder; it is closed after use."""
    browser = Browser(profile)
    yield browser
    browser.close()
