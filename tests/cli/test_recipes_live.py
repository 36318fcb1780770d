"""The recipes for live streams in docs/recipes: each is started as it is written there."""

import configparser
import csv
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.model_file import load_model
from support.command import COMMAND, REPOSITORY, Ahpatron, rows_of

pytestmark = pytest.mark.slow

RECIPES = REPOSITORY / "docs/recipes"
LIMIT = 300.0
"""Seconds after which a recipe that hangs is killed, and its test fails."""


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)


@contextmanager
def running(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process; if it hangs, it is killed."""
    with subprocess.Popen([str(word) for word in command], **options) as process:
        guard = threading.Timer(LIMIT, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def payments(count: int, delay: int = 5) -> Iterator[str]:
    """Payments of the sample data as JSON lines; the label of each comes `delay` payments later."""
    with (REPOSITORY / "sample_data/payments.csv").open() as file:
        rows = list(csv.DictReader(file))[:count]
    labels = [row.pop("fraud") for row in rows]
    for number in range(count + delay):
        if number < count:
            yield json.dumps({"payment": f"p{number}", **rows[number]}) + "\n"
        if number >= delay:
            late = number - delay
            yield json.dumps({"payment": f"p{late}", "fraud": labels[late]}) + "\n"


def answered(path: Path) -> list[dict[str, Any]]:
    """The answers of a file of JSON lines, without a last one that is not complete."""
    if not path.exists():
        return []
    *lines, _ = path.read_text().split("\n")
    return [json.loads(line) for line in lines]


def counts(state: Path) -> dict[str, Any]:
    """What a state counts."""
    live = load_model(str(state)).live
    assert live is not None
    return dict(live["counts"])


# systemd and logrotate ----------------------------------------------------------------------------


class Unit:
    """The unit of docs/recipes, without systemd."""

    def __init__(self, folder: Path) -> None:
        text = (RECIPES / "ahpatron.service").read_text().replace("\\\n", " ")
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser documents
        unit.read_string(text)
        self.settings = unit["Service"]
        self.folder = folder
        subprocess.run(shlex.split(self.settings["ExecStartPre"]), cwd=folder, check=True)

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """The service, as systemd starts it."""
        program, *words = shlex.split(self.settings["ExecStart"])
        assert Path(program).name == "ahpatron"
        nowhere = subprocess.DEVNULL
        with running([*COMMAND, *words], cwd=self.folder, stdout=nowhere) as service:
            yield service

    def stop(self, service: subprocess.Popen[bytes]) -> None:
        """Stop it, as `systemctl stop` does."""
        service.send_signal(signal.SIGTERM)
        assert str(service.wait(LIMIT)) in self.settings["SuccessExitStatus"].split()

    @contextmanager
    def pipe(self) -> Iterator[Any]:
        """The named pipe, open for writing, whether the service runs or not."""
        descriptor = os.open(self.folder / "payments.fifo", os.O_RDWR)
        with os.fdopen(descriptor, "w", buffering=1) as pipe:
            yield pipe


def test_the_unit_of_systemd_continues_after_each_stop(tmp_path: Path) -> None:
    unit = Unit(tmp_path)
    lines = list(payments(120))
    answers = tmp_path / "answers.jsonl"
    with unit.pipe() as pipe:
        for stop in (70, 150, len(lines)):
            with unit.started() as service:
                for line in lines[len(answered(answers)) : stop]:
                    pipe.write(line)
                wait_for(lambda stop=stop: len(answered(answers)) == stop)  # type: ignore[misc]  # a default
                unit.stop(service)
            assert counts(tmp_path / "fraud.npz")["lines"] == stop
    assert counts(tmp_path / "fraud.npz")["late_labels"] == 120
    labelled = Counter(answer["payment"] for answer in answered(answers) if "label" in answer)
    assert len(labelled) == 120
    assert set(labelled.values()) == {1}
    events = [event["event"] for event in answered(tmp_path / "log.jsonl")]
    assert events.count("start") == events.count("ended") == 3


def test_lines_wait_in_the_pipe_while_the_unit_is_stopped(tmp_path: Path) -> None:
    unit = Unit(tmp_path)
    lines = list(payments(20))
    answers = tmp_path / "answers.jsonl"
    with unit.pipe() as pipe:
        with unit.started() as service:
            pipe.writelines(lines[:10])
            wait_for(lambda: len(answered(answers)) == 10)
            unit.stop(service)
        pipe.writelines(lines[10:])
        with unit.started() as service:
            wait_for(lambda: len(answered(answers)) == len(lines))
            unit.stop(service)
    assert counts(tmp_path / "fraud.npz")["late_labels"] == 20


def test_logs_are_begun_when_renamed_and_answers_after_a_restart(tmp_path: Path) -> None:
    """As docs/recipes/logrotate.conf has it."""
    unit = Unit(tmp_path)
    lines = list(payments(40))
    moved = ("log.jsonl", "rejects.jsonl", "answers.jsonl")
    answers = tmp_path / "answers.jsonl"
    with unit.pipe() as pipe:
        with unit.started() as service:
            pipe.writelines([*lines[:20], "[]\n"])
            wait_for(lambda: len(answered(answers)) == 21)
            for name in moved:
                (tmp_path / name).rename(tmp_path / f"{name}.1")
            pipe.writelines(["[]\n", *lines[20:30]])
            wait_for(lambda: len(answered(tmp_path / "answers.jsonl.1")) == 32)
            assert len(answered(tmp_path / "rejects.jsonl.1")) == 1
            assert len(answered(tmp_path / "rejects.jsonl")) == 1
            assert answered(tmp_path / "log.jsonl")[0]["event"] == "fault"
            assert not answers.exists()
            unit.stop(service)
        with unit.started() as service:
            pipe.writelines(lines[30:])
            wait_for(lambda: len(answered(answers)) == len(lines) - 30)
            unit.stop(service)
    found = counts(tmp_path / "fraud.npz")
    assert (found["late_labels"], found["faults"]) == (40, 2)


# A broker -----------------------------------------------------------------------------------------

needs_mosquitto = pytest.mark.skipif(
    not all(map(shutil.which, ("mosquitto", "mosquitto_sub", "mosquitto_pub"))),
    reason="mosquitto and mosquitto-clients are not installed",
)


def free_port() -> int:
    """A port that nobody listens on, and that is given to no outgoing connection.

    Those begin at 32768: a client that tries again and again to reach a port beyond can be given
    that port itself, is then connected to itself, and the broker cannot listen there any more.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("localhost", port))
            return port


class Broker:
    """mosquitto on a port of its own, with what it has to remember in a folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "mosquitto.log"
        self._configuration = folder / "mosquitto.conf"
        lines = [
            f"listener {self.port} localhost",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {folder}/",
            "autosave_on_changes true",
            "autosave_interval 1",
            "user root",
        ]
        self._configuration.write_text("\n".join([*lines, ""]))

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """The broker; its log begins with this start."""
        command = ["mosquitto", "-c", self._configuration, "-v"]
        with (
            self.log.open("wb") as log,
            running(command, stdout=log, stderr=subprocess.STDOUT) as broker,
        ):
            wait_for(lambda: " running" in self.log.read_text())
            yield broker

    def wait_for_client(self, name: str) -> None:
        """Wait until a client has connected, and has subscribed if it is a reader."""
        sign = f"Sending CONNACK to {name}"
        if name.endswith("reader"):
            sign = f"Sending SUBACK to {name}"
        wait_for(lambda: sign in self.log.read_text())

    def client(self, program: str, *words: str) -> list[str]:
        """A command of mosquitto-clients, whose session the broker remembers.

        With QoS 2, mosquitto_sub drops a message that it is confirming when the connection breaks.
        """
        quality = "1" if program == "mosquitto_sub" else "2"
        return [program, "-h", "localhost", "-p", str(self.port), "-q", quality, "-c", *words]


@needs_mosquitto
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_stream_goes_on_after_the_restart_of_its_broker(
    tmp_path: Path, end: signal.Signals
) -> None:
    """If the broker was killed, it may repeat, or lose, what it had in flight.

    Otherwise it may repeat up to 20 messages. A label comes later than that, so what comes twice is
    a row that is waiting or a second label.
    """
    broker = Broker(tmp_path)
    lines = list(payments(80, delay=30))
    half = len(lines) // 2
    answers = tmp_path / "answers.jsonl"
    program = tmp_path / "bin/ahpatron"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{shlex.join(COMMAND)} "$@" | tee own.jsonl\n')
    program.chmod(0o755)
    surroundings = {
        **os.environ,
        "PORT": str(broker.port),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    read = broker.client("mosquitto_sub", "-i", "test-reader", "-t", "answers")
    write = broker.client("mosquitto_pub", "-i", "test-writer", "-t", "payments", "-l")
    names = ("payments-reader", "payments-answers", "test-reader", "test-writer")
    with (
        answers.open("wb") as output,
        broker.started() as first,
        running(read, stdout=output),
        running(write, stdin=subprocess.PIPE, bufsize=0) as writer,
        running([RECIPES / "mqtt.sh"], cwd=tmp_path, env=surroundings) as pipeline,
    ):
        assert writer.stdin is not None
        for name in names:
            broker.wait_for_client(name)
        writer.stdin.write("".join(lines[:half]).encode())
        wait_for(lambda: len(answered(answers)) > 20)
        first.send_signal(end)
        first.wait()
        with broker.started():
            for name in names:
                broker.wait_for_client(name)
            writer.stdin.write("".join(lines[half:]).encode())
            last = json.loads(lines[-1])["payment"]
            wait_for(lambda: any(answer.get("payment") == last for answer in labelled(answers)))
            os.kill(int((tmp_path / "reader.pid").read_text()), signal.SIGTERM)
            pipeline.wait(LIMIT)
    found = counts(tmp_path / "fraud.npz")
    own = labelled(tmp_path / "own.jsonl")  # the answers may have been lost or repeated, too
    learned = Counter(answer["payment"] for answer in own)
    assert found["late_labels"] == learned.total()
    sent_before = {json.loads(line)["payment"] for line in lines[:half]}
    later = map(json.loads, lines[half + 20 :])  # a client has at most 20 messages in flight
    rows_sent_later = {message["payment"] for message in later if "fraud" not in message}
    assert rows_sent_later <= set(learned)
    assert {name for name, times in learned.items() if times > 1} <= sent_before
    if end == signal.SIGTERM:
        assert learned == Counter(f"p{number}" for number in range(80))


def labelled(path: Path) -> list[dict[str, Any]]:
    """The answers to labels that were learned."""
    return [answer for answer in answered(path) if "label" in answer]


# Partitions ---------------------------------------------------------------------------------------


def test_each_key_goes_to_one_part_and_each_row_is_learned_once(ahpatron: Ahpatron) -> None:
    table = REPOSITORY / "sample_data/payments.csv"
    words = ("run", "-", "--label", "fraud", "--classes", "no,yes", "-B", 50, "--quiet")
    outputs = ("--state", "part-{part}.npz", "--predictions", "part-{part}.csv")
    command = [sys.executable, RECIPES / "partitions.py", "country", 2, *COMMAND, *words, *outputs]
    for life in (1, 2):
        with (
            table.open("rb") as rows,
            running(command, cwd=ahpatron.folder, stdin=rows, stdout=subprocess.DEVNULL) as process,
        ):
            assert process.wait(LIMIT) == 0
        lines = [counts(ahpatron.folder / f"part-{part}.npz")["lines"] for part in range(2)]
        total = len(rows_of(table.read_text()))
        assert sum(lines) == life * total
        assert all(lines)
