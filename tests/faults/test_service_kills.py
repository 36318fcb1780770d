"""A service that is killed, ended, left by its reader or on a full disk, again and again.

A producer continues after the line that the state names. At the end, every row was learned exactly
once.
"""

import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.model_file import load_model
from support.command import Ahpatron
from support.states import numbers

EVERY = 64


class Stream:
    """A service and its producer, which sends a row when the one before was answered."""

    def __init__(self, ahpatron: Ahpatron, lines: list[bytes], state: str = "s.npz") -> None:
        self.ahpatron = ahpatron
        self.lines = lines
        self.path = ahpatron.folder / state
        self.command = ("run", "-", "-l", "ahpatron", "--state", state, "--save-every", EVERY)
        self.learned: list[int] = []
        """Lines that the state names, after each life."""

    @property
    def done(self) -> int:
        """Lines behind the state."""
        if not self.path.exists():
            return 0
        live = load_model(str(self.path)).live
        assert live is not None
        return int(live["counts"]["lines"])

    @contextmanager
    def life(self, until: int, **options: Any) -> Iterator[Any]:
        """A life of the service, in which all lines before `until` are sent and answered."""
        first = self.done
        with self.ahpatron.start(*self.command, text=False, **options) as service:
            guard = threading.Timer(300, service.kill)
            guard.start()
            try:
                for number, line in enumerate(self.lines[first:until]):
                    self.send(service, line)
                    for _ in range(1 + (number == 0)):
                        assert service.stdout.readline()
                yield service
            finally:
                guard.cancel()
                service.kill()
        self.learned.append(self.done)

    @staticmethod
    def send(service: Any, line: bytes) -> None:
        service.stdin.write(line)
        service.stdin.flush()

    def finish(self) -> dict[str, Any]:
        """All lines that are left; the numbers of the state."""
        with self.life(len(self.lines)) as service:
            service.stdin.close()
            assert service.wait(300) == 0
        return numbers(self.path)


@pytest.fixture
def rows(rings: Path) -> list[bytes]:
    return rings.read_bytes().splitlines(keepends=True) * 5


def times(many: int) -> Any:
    """Once in every run of the tests, many times in the slow part."""
    slow = pytest.param(many, marks=pytest.mark.slow)
    return pytest.mark.parametrize("count", [1, slow])


def figures(found: dict[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in found.items() if ".tally." in path or ".live" in path}


def whole(ahpatron: Ahpatron, lines: list[bytes]) -> dict[str, Any]:
    return Stream(ahpatron, lines, "whole.npz").finish()


@times(60)
def test_rows_of_a_killed_service_are_learned_exactly_once(
    ahpatron: Ahpatron, rows: list[bytes], count: int
) -> None:
    """A state that was saved at a multiple of 64 rounds goes on with the bits of a whole run."""
    draw = random.Random(count)
    lines = rows[: 130 * count + 100]
    stream = Stream(ahpatron, lines)
    for _ in range(count):
        until = stream.done + draw.randrange(EVERY, 2 * EVERY)
        with stream.life(until) as service:
            with suppress(BrokenPipeError):
                stream.send(service, b"".join(lines[until : until + draw.randrange(4)]))
            time.sleep(draw.random() * 0.003)
            service.kill()
    found = stream.finish()
    assert all(learned % EVERY == 0 for learned in stream.learned[:-1])
    assert found == whole(ahpatron, lines)


@times(60)
def test_a_service_that_is_ended_loses_nothing(
    ahpatron: Ahpatron, rows: list[bytes], count: int
) -> None:
    draw = random.Random(count)
    lines = rows[: 20 * count + 100]
    stream = Stream(ahpatron, lines)
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
    for _ in range(count):
        until = stream.done + draw.randrange(1, 20)
        number = draw.choice(list(codes))
        with stream.life(until) as service:
            stream.send(service, lines[until])  # which may be learned, or not
            time.sleep(draw.random() * 0.003)
            service.send_signal(number)
            assert service.wait(300) == codes[number]
        assert stream.learned[-1] in (until, until + 1)
    assert figures(stream.finish()) == figures(whole(ahpatron, lines))


@times(20)
def test_a_service_whose_reader_goes_away_loses_nothing(
    ahpatron: Ahpatron, rows: list[bytes], count: int
) -> None:
    draw = random.Random(count)
    lines = rows[: 20 * count + 100]
    stream = Stream(ahpatron, lines)
    for _ in range(count):
        until = stream.done + draw.randrange(1, 20)
        with stream.life(until) as service:
            service.stdout.close()
            with suppress(BrokenPipeError):
                stream.send(service, lines[until])
            assert service.wait(300) == 141
        assert stream.learned[-1] == until + 1
    assert figures(stream.finish()) == figures(whole(ahpatron, lines))


def small_files(size: int) -> Callable[[], None]:
    """No file may grow beyond this size, which is what a full disk is like."""

    def limit() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return limit


@times(20)
def test_a_full_disk_leaves_the_state_as_it_was(
    ahpatron: Ahpatron, rows: list[bytes], count: int
) -> None:
    """What was learned meanwhile is sent again, and learned once."""
    draw = random.Random(count)
    lines = rows[: 20 * count + 400]
    stream = Stream(ahpatron, lines)
    with stream.life(EVERY) as service:
        service.stdin.close()
        assert service.wait(300) == 0
    for _ in range(count):
        before = stream.path.read_bytes()
        until = stream.done + draw.randrange(1, 3 * EVERY)
        limit = small_files(draw.randrange(1, len(before)))
        with stream.life(until, preexec_fn=limit) as service:
            service.stdin.close()
            assert service.wait(300) == 74
        assert stream.path.read_bytes() == before
    assert figures(stream.finish()) == figures(whole(ahpatron, lines))


@times(5)
def test_of_two_services_on_one_state_one_is_refused(
    ahpatron: Ahpatron, rows: list[bytes], count: int
) -> None:
    lines = rows[: 20 * count + 50]
    stream = Stream(ahpatron, lines)
    for _ in range(count):
        with stream.life(stream.done + 20) as service:
            before = stream.path.read_bytes() if stream.path.exists() else b""
            assert ahpatron(*stream.command, stdin=lines[0]).code == 75
            assert (stream.path.read_bytes() if stream.path.exists() else b"") == before
            service.stdin.close()
            assert service.wait(300) == 0
    assert figures(stream.finish()) == figures(whole(ahpatron, lines))
