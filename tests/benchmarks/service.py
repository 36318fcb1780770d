"""A service that lives for a while: drift, late labels, faults, and a restart now and then.

    python tests/benchmarks/service.py [--minutes 30] [--rate 300] [--restart 180]

A producer sends lines of CSV at a steady rate: 300 lines a second are 200 rows and the labels that
come later. Half of the labels come 1 to 3,000 rows late, the concept changes every 20,000 rows, and
one line in 150 is faulty. The service is ended with SIGTERM every `--restart` seconds, each third
time with SIGKILL, and started with the same command; the producer continues after the line that the
state names. A second service gets the same lines once and is not interrupted; at the end, the
figures of both are compared.

Latency is the time from writing a line to reading its answer; memory is that of the process. The
last lines have both over all lives, and say whether the figures are those of the replay; only that
decides the exit code, as the other two depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import itertools
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.model_file import load_model

COLUMNS = 10
DRIFT_EVERY = 20_000
LONGEST_DELAY = 3_000
HEADER = ",".join(["id", *(f"x{i}" for i in range(COLUMNS)), "channel", "label"]) + "\n"
OPTIONS = ["--label", "label", "--classes", "no,yes", "--id", "id", "-l", "metron", "-B", "400"]
SERVICE = ["--window", "1000", "--on-fault", "skip", "--save-every", "10048"]


def stream(seed: int) -> Iterator[str]:
    """Lines of CSV without the header, for ever; the same lines for the same seed."""
    rng = np.random.default_rng(seed)
    draw = random.Random(seed)
    due: dict[int, list[str]] = {}
    for number in itertools.count():
        concept = np.random.default_rng([seed, number // DRIFT_EVERY]).normal(size=COLUMNS)
        x = rng.normal(size=COLUMNS).round(4)
        channel = draw.choice(["web", "chip", "phone"])
        signal_of_row = x @ concept + x[0] * x[1] + (channel == "web")
        label = "yes" if signal_of_row + 0.5 * rng.normal() > 0 else "no"
        cells = ",".join(map(str, x.tolist()))
        if draw.random() < 0.01:
            yield faulty(draw, number, cells)
        if draw.random() < 0.5:
            yield f"{number},{cells},{channel},{label}\n"
        else:
            yield f"{number},{cells},{channel},\n"
            late = f"{number}{',' * (COLUMNS + 2)}{label}\n"
            due.setdefault(number + draw.randint(1, LONGEST_DELAY), []).append(late)
        yield from due.pop(number, [])


def faulty(draw: random.Random, number: int, cells: str) -> str:
    """A line that cannot be learned."""
    kinds = (
        f"{number},{cells},web,no,1\n",  # a cell too many
        f"{number},abc{cells},web,yes\n",
        f"{number},{cells},web,perhaps\n",
        f"{number + 10**9}{',' * (COLUMNS + 2)}no\n",  # a label of a row that never came
    )
    return draw.choice(kinds)


def command(state: Path) -> list[str]:
    """The service; the same command starts it every time."""
    program = [sys.executable, "-m", "ahpatron_cli", "run", "-"]
    return [*program, *OPTIONS, *SERVICE, "--state", str(state), "-q"]


def figures(state: Path) -> dict[str, Any]:
    """What a state counts, by name; arrays as lists."""
    model = load_model(str(state))
    live = model.live
    assert live is not None
    parts = {"tally": model.state["tally"], **live}
    left_out = {"seconds", "class", "columns", "values", "scores", "lengths"}
    found = {}
    for part, values in parts.items():
        for name, value in values.items():
            if name not in left_out:
                found[f"{part}.{name}"] = np.asarray(value).tolist()
    return found


def shown(value: Any) -> str:
    """A figure in a few words."""
    if isinstance(value, list) and len(value) > 20:
        return f"{len(value):,} values"
    return str(value)


def lines_behind(state: Path) -> int:
    """Number of lines that the state has seen."""
    if not state.exists():
        return 0
    live = load_model(str(state)).live
    assert live is not None
    return int(live["counts"]["lines"])


def memory(pid: int) -> float:
    """Resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Life:
    """One life of the service, from a start to a signal."""

    def __init__(self, state: Path) -> None:
        self.sent: list[float] = []
        self.answered: list[float] = []
        self.process = subprocess.Popen(
            command(state),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.readline()  # the header, if there is one
        for _ in self.process.stdout:
            self.answered.append(time.perf_counter())

    def write(self, line: str) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        self.sent.append(time.perf_counter())
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def wait_for_answer(self) -> None:
        """Wait until the first line is answered; what comes before is the start of the program."""
        while not self.answered:
            assert self.process.poll() is None, "the service has ended"
            time.sleep(0.01)
        self.sent[0] = self.answered[0]

    def end(self, number: signal.Signals | None) -> None:
        """End the service with a signal, or with the end of the stream."""
        assert self.process.stdin is not None
        if number is None:
            self.process.stdin.close()
        else:
            self.process.send_signal(number)
        code = self.process.wait(300)
        self._reader.join()
        expected = {None: 0, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
        assert code == expected, f"exit code {code} instead of {expected}"

    def show(self, totals: Totals, since: int) -> int:
        """Print latency and memory of the lines from `since` on; the number of lines so far."""
        until = len(self.answered)
        if until > since:
            sent = np.array(self.sent[since:until])
            answered = np.array(self.answered[since:until])
            milliseconds = 1e3 * (answered - sent)
            size = memory(self.process.pid)
            totals.add(milliseconds, size)
            print(
                f"{totals.minutes:6.1f} min {until - since:7,} lines{latency(milliseconds)}"
                f"{size:8.1f} MiB{len(self.sent) - until:6} unanswered",
                flush=True,
            )
        return until


def latency(milliseconds: np.ndarray) -> str:
    """Median, 99 % and worst, in columns."""
    median, late = np.quantile(milliseconds, [0.5, 0.99])
    return f"{median:9.2f}{late:9.2f}{milliseconds.max():9.2f} ms"


class Totals:
    """Latency and memory over all lives."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._milliseconds: list[np.ndarray] = []
        self._sizes: list[float] = []
        self.lives = 0

    @property
    def minutes(self) -> float:
        """Minutes since the beginning."""
        return (time.monotonic() - self._begun) / 60

    def add(self, milliseconds: np.ndarray, size: float) -> None:
        """Note what was measured last."""
        self._milliseconds.append(milliseconds)
        self._sizes.append(size)

    def show(self) -> None:
        """Print the totals."""
        every = np.concatenate(self._milliseconds)
        half = len(self._sizes) // 2
        print(f"{self.lives} lives, {len(every):,} lines answered in {self.minutes:.1f} minutes")
        print(f"latency: median, 99 %, worst{latency(every)}")
        print(
            f"largest memory: {max(self._sizes[:half], default=0.0):.1f} MiB in the first half, "
            f"{max(self._sizes[half:]):.1f} MiB in the second"
        )


class Replay:
    """A service that gets the same lines once, and is never interrupted."""

    def __init__(self, state: Path) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            command(state),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            text=True,
        )
        self._writer = threading.Thread(target=self._write)
        self._writer.start()
        self.send(HEADER)

    def _write(self) -> None:
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            for line in iter(self._lines.get, None):
                pipe.write(line)

    def send(self, line: str) -> None:
        """Send a line, without waiting."""
        self._lines.put(line)

    def finish(self) -> None:
        """Wait until all lines are learned."""
        self._lines.put(None)
        self._writer.join()
        code = self._process.wait()
        assert code == 0, f"exit code {code} of the replay"


class Producer:
    """Sends the lines of the stream, and keeps those that may have to be sent again."""

    def __init__(self, seed: int, replay: Replay) -> None:
        self._lines = stream(seed)
        self._replay = replay
        self._kept: list[str] = []
        self._first = 0
        """Number of the first line that is kept."""

    def continue_after(self, line: int) -> None:
        """Forget the lines that the state has seen."""
        assert line >= self._first, "the state has lost lines that it had"
        del self._kept[: line - self._first]
        self._first = line

    def line(self, number: int) -> str:
        """The line with this number, counted from the last continuation."""
        while number >= len(self._kept):
            line = next(self._lines)
            self._kept.append(line)
            self._replay.send(line)
        return self._kept[number]

    def rest(self, number: int) -> list[str]:
        """The lines from this one on that an earlier life was sent."""
        return self._kept[number:]


def serve(state: Path, replay: Replay, totals: Totals, given: argparse.Namespace) -> None:
    """Let the service live for its minutes, and be interrupted."""
    producer = Producer(given.seed, replay)
    end = time.monotonic() + 60 * given.minutes
    for number in itertools.count(1):
        totals.lives = number
        done = lines_behind(state)
        producer.continue_after(done)
        life = Life(state)
        life.write(HEADER)
        life.sent.clear()
        stop = min(time.monotonic() + given.restart, end)
        due = time.monotonic()
        printed = due
        seen = count = 0
        while due < stop:
            time.sleep(max(due - time.monotonic(), 0.0))
            life.write(producer.line(count))
            count += 1
            if count == 1:
                life.wait_for_answer()
                due = time.monotonic()
            due = max(due + 1 / given.rate, time.monotonic() - 1.0)
            if due - printed > 30:
                printed = due
                seen = life.show(totals, seen)
        life.show(totals, seen)
        if stop >= end:
            rest = producer.rest(count)
            for line in rest:
                life.write(line)
            life.end(None)
            assert lines_behind(state) == done + count + len(rest)
            return
        kind = signal.SIGKILL if number % 3 == 0 else signal.SIGTERM
        life.end(kind)
        left = done + count - lines_behind(state)
        print(f"{kind.name} after {done + count:,} lines; {left:,} are sent again", flush=True)


def main() -> None:
    """Run the service, and compare it with a replay."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=300.0, help="lines a second")
    parser.add_argument("--restart", type=float, default=180.0, help="seconds of a life")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "service.npz"
        print(f"{'':27}latency: median, 99 %, worst", flush=True)
        whole = Path(folder) / "whole.npz"
        replay = Replay(whole)
        totals = Totals()
        serve(state, replay, totals, given)
        replay.finish()
        found = figures(state)
        expected = figures(whole)
    totals.show()
    for name, value in found.items():
        same = "" if value == expected[name] else f"  REPLAY: {shown(expected[name])}"
        print(f"{name:28} {shown(value)}{same}")
    print("equal to the replay" if found == expected else "NOT equal to the replay")
    sys.exit(found != expected)


if __name__ == "__main__":
    main()
