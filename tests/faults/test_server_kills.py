"""A server that is killed again and again, and a client that goes on where the state ends.

At the end, every row was learned exactly once, and the learner is that of a server that was never
killed.
"""

import http.client
import random
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from ahpatron_cli.model_file import load_model
from support.served import PATIENCE, Served, started
from support.states import numbers

EVERY = 64
SIZE = 16
OPTIONS = ("--label", "class", "--id", "key", "-B", "40", "--save-every", str(EVERY))


def rows(count: int) -> list[dict[str, Any]]:
    """Rows of three classes with numbers, text and gaps."""
    draw = random.Random(5)
    found = []
    for number in range(count):
        size = round(draw.gauss(50, 9), 2)
        colour = draw.choice(["red", "green", None])
        kind = "large" if size > 55 else "red" if colour == "red" else "other"
        found.append({"key": f"r{number}", "size": size, "colour": colour, "class": kind})
    return found


class Client:
    """Sends rows in lists, each after the answer to the one before.

    Scores of rows that are answered together have other last digits than those of single rows: all
    lists begin at multiples of their size.
    """

    def __init__(self, folder: Path, stream: list[dict[str, Any]], state: str) -> None:
        self.folder = folder
        self.stream = stream
        self.state = state
        self.draw = random.Random(len(stream))

    @property
    def done(self) -> int:
        """Rows behind the state."""
        path = self.folder / self.state
        if not path.exists():
            return 0
        live = load_model(str(path)).live
        assert live is not None
        return int(live["counts"]["lines"])

    def life(self) -> Served:
        return started(self.folder, *OPTIONS, "--state", self.state)

    def send(self, served: Served, first: int, until: int) -> int:
        """Send rows until one of them, or until the server is gone; how many were answered."""
        while first < until:
            part = self.stream[first : first + SIZE]
            try:
                status, answers = served.post("/learn", part)
            except (ConnectionError, http.client.HTTPException):
                return first
            if status == 503:  # it is stopping
                return first
            assert status == 200
            assert [answer["key"] for answer in answers] == [row["key"] for row in part]
            first += len(part)
        return first

    def finish(self) -> dict[str, Any]:
        """Send all rows that are left; the numbers of the state."""
        served = self.life()
        assert self.send(served, self.done, len(self.stream)) == len(self.stream)
        assert served.end()[0] == 143
        return numbers(self.folder / self.state)


def whole(folder: Path, stream: list[dict[str, Any]]) -> dict[str, Any]:
    return Client(folder, stream, "whole.npz").finish()


@pytest.fixture(params=[3, pytest.param(60, marks=pytest.mark.slow)])
def count(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_rows_of_a_killed_server_are_learned_exactly_once(tmp_path: Path, count: int) -> None:
    """What was lost came after the last save, which is at a multiple of --save-every."""
    client = Client(tmp_path, rows(SIZE * (14 * count + 10)), "s.npz")
    for _ in range(count):
        served = client.life()
        first = client.done
        answered = client.send(served, first, first + SIZE * client.draw.randint(0, 9))
        until = answered + SIZE * 5
        killer = threading.Timer(client.draw.random() * 0.03, served.process.kill)
        killer.start()
        answered = client.send(served, answered, until)
        killer.join()
        said = served.kill()
        assert "Traceback" not in said
        done = client.done
        assert done % EVERY == 0
        assert first <= done <= until
        assert done <= answered + SIZE  # of the list that had no answer
    client.stream = client.stream[: client.done + SIZE * 10]
    found = client.finish()
    expected = whole(tmp_path, client.stream)
    assert found.keys() == expected.keys()
    assert {path: value for path, value in found.items() if value != expected[path]} == {}


def test_a_server_that_is_ended_loses_no_row_that_was_answered(tmp_path: Path, count: int) -> None:
    stream = rows(SIZE * (3 * count + 10))
    client = Client(tmp_path, stream, "s.npz")
    for _ in range(count):
        served = client.life()
        first = client.done
        number = client.draw.choice([signal.SIGTERM, signal.SIGINT])
        ending = threading.Timer(client.draw.random() * 0.1, served.process.send_signal, [number])
        ending.start()
        answered = client.send(served, first, first + 3 * SIZE)
        ending.join()
        code, err = served.process.wait(300), served.kill()
        assert code == 128 + number
        assert "Traceback" not in err
        assert client.done == answered
    found = client.finish()
    expected = whole(tmp_path, stream)
    tallies = [path for path in expected if ".tally." in path or ".live" in path]
    assert {path: found[path] for path in tallies} == {path: expected[path] for path in tallies}


def shows(served: Served, text: str) -> bool:
    return text in served.ask("GET", "/")[1].decode()


@pytest.mark.parametrize("ends_full", [False, True], ids=["room again", "full at the end"])
def test_a_full_disk_leaves_the_state_as_it_was(tmp_path: Path, ends_full: bool) -> None:
    """Saving is tried again; rows are answered meanwhile."""
    client = Client(tmp_path, rows(5 * EVERY), "s.npz")
    served = client.life()
    assert client.send(served, 0, EVERY) == EVERY
    assert served.end()[0] == 143
    before = (tmp_path / "s.npz").read_bytes()
    served = client.life()
    room = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    full = (len(before) // 2, room[1])  # no file may grow beyond it
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, full)
    assert client.send(served, EVERY, 3 * EVERY) == 3 * EVERY
    deadline = time.monotonic() + PATIENCE
    while not shows(served, "could not be saved"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (tmp_path / "s.npz").read_bytes() == before
    if not ends_full:
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, room)
        assert client.send(served, 3 * EVERY, 4 * EVERY) == 4 * EVERY
        while shows(served, "could not be saved"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert client.done == 4 * EVERY
    code, err = served.end()
    assert code == (74 if ends_full else 143)
    assert "not saved" in err
    assert client.done == (1 if ends_full else 4) * EVERY
    found = client.finish()
    expected = whole(tmp_path, client.stream)
    assert {path: value for path, value in found.items() if value != expected[path]} == {}
