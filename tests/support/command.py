"""Running `ahpatron`, in this process, which is quick, or in one of its own; results of sweeps."""

import csv
import fcntl
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ahpatron_cli.cli.app import main
from ahpatron_cli.sweep import trial

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "ahpatron_cli"]
SMALL = ("-g", "budget=20,40", "-l", "ahpatron", "-l", "rbp", "--repeats", "2")
"""The options of a sweep of 8 trials."""


DEADLY = """
import os
from dataclasses import dataclass
from pathlib import Path
from ahpatron_cli.core.registry import RandomBudgetPerceptron

@dataclass
class Deadly(RandomBudgetPerceptron):
    name = "deadly"

    def update(self, f, y, margin):
        if self.budget == 20 and not Path("died").exists():
            KILL
        return super().update(f, y, margin)
"""
"""A learner of one's own that kills its process, once KILL is replaced."""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Ahpatron:
    """Calls `ahpatron` with these arguments, in an empty folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object, stdin: bytes = b"", **environment: str) -> Outcome:
        """In this process: for all but signals, terminals, limits, imports and `--jobs`.

        So are the trials of a sweep, which the command leaves to a process that may die.
        """
        words = ["ahpatron", *map(str, arguments)]
        out = _text_stream(errors="strict")  # as Python has it
        err = _text_stream(errors="backslashreplace")
        surroundings = {"COLUMNS": "80", **environment}  # whatever terminal pytest runs in
        with (
            _stdin(stdin) as source,
            patch.object(sys, "argv", words),
            patch.object(sys, "stdin", source),
            patch.dict(os.environ, surroundings),
            patch.object(trial, "run_all", _run_here),
            redirect_stdout(out),
            redirect_stderr(err),
            chdir(self.folder),
            _own_signal_handlers(),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        return Outcome(int(ended.value.code or 0), _written(out), _written(err))

    def json(self, *arguments: object, **options: Any) -> Any:
        """The document that a command prints with `--format json`."""
        return json.loads(self.succeed(*arguments, "--format", "json", **options).out)

    def succeed(self, *arguments: object, **options: Any) -> Outcome:
        """The outcome of a call that goes well."""
        done = self(*arguments, **options)
        assert done.code == 0, done.err
        return done

    def refusal(self, code: int, *arguments: object, **options: Any) -> str:
        """What a call says that ends with this exit code, and without a word on stdout."""
        done = self(*arguments, **options)
        assert done.code == code, done.err
        assert done.out == ""
        assert "Traceback" not in done.err
        return done.err

    def process(self, *arguments: object, stdin: bytes = b"", **environment: str) -> Outcome:
        """In a process of its own."""
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONWARNINGS": "error", **environment},
            timeout=120,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start it in a process with pipes; SIGINT has its usual meaning, whoever started us.

        A shell starts what it runs in the background with SIGINT ignored, and that is inherited.
        """
        usual: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.folder,
            "text": True,
            "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        }
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.Popen(command, **{**usual, **options})

    def shell(self, line: str) -> Outcome:
        """A line of bash, in which `ahpatron` is the command."""
        line = f'ahpatron() {{ {" ".join(COMMAND)} "$@"; }}; {line}'
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, capture_output=True, timeout=120, check=False
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run(self, *arguments: object, **options: Any) -> dict[str, Any]:
        """The record of the only run, without its time."""
        (record,) = self.json("run", *arguments, **options)["runs"]
        del record["seconds"]
        return dict(record)

    def sweep(self, *arguments: object, out: str = "r.jsonl") -> Outcome:
        """A sweep in this process, or with several jobs in others."""
        several = "-j" in arguments and arguments[arguments.index("-j") + 1] != "1"
        call = self.process if several else self
        return call("sweep", *arguments, "--out", out)

    def trials(self, name: str = "r.jsonl") -> list[dict[str, Any]]:
        """The trials of a results file, as they stand."""
        lines = [json.loads(line) for line in self.read(name).splitlines()]
        return [line for line in lines if "id" in line]

    def essence(self, name: str = "r.jsonl") -> Counter[str]:
        """All of the trials of a results file that is not a time."""
        parts = ("id", "status", "data", "run", "error")
        return Counter(json.dumps([trial[part] for part in parts]) for trial in self.trials(name))

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a CSV file."""
        return rows_of(self.read(name))

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def objects_of(text: str) -> list[dict[str, Any]]:
    """The objects of JSON lines."""
    return list(map(json.loads, text.splitlines()))


def answers(pid: int | str, number: signal.Signals = signal.SIGTERM) -> bool:
    """Whether the process catches the signal: Python itself catches SIGINT, but never SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (number - 1))


def wait_until_read(process: Any) -> None:
    """Wait until the process, a `run`, has read all of its pipe, and waits for more."""
    while _bytes_in(process.stdin):
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    process.send_signal(signal.SIGUSR1)  # answered while it waits; notes may come before
    line = process.stderr.readline()
    while not re.search("rounds, |no rows so far", line):
        assert line, "the process has ended"
        line = process.stderr.readline()


def _bytes_in(pipe: Any) -> int:
    """The number of bytes in a pipe that were not read yet."""
    answer = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return int(struct.unpack("i", answer)[0])


def workers(parent: int) -> set[str]:
    """The processes of `-j` that are alive."""
    found = set()
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(FileNotFoundError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(child)
    return found


def _run_here(
    function: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, retries: int
) -> Iterator[tuple[int, Any]]:
    assert jobs == 1, "for several processes use Ahpatron.process"
    return enumerate(map(function, tasks))


def _text_stream(errors: str) -> io.TextIOWrapper:
    """A stream of text like those of Python; `_written` tells what was written to it."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, newline="\n")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode()


@contextmanager
def _stdin(content: bytes) -> Iterator[io.TextIOWrapper]:
    """A real pipe, which cannot be read twice; a thread fills it."""
    ours, theirs = os.pipe()

    def fill() -> None:
        # broken: it was not read to its end; a descriptor has no path
        with suppress(BrokenPipeError), open(theirs, "wb") as pipe:  # noqa: PTH123
            pipe.write(content)

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        with io.TextIOWrapper(io.BufferedReader(io.FileIO(ours))) as stream:
            yield stream
    finally:
        filler.join()


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Those of pytest are back afterwards."""
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def modules_after(*arguments: object) -> set[str]:
    """The top-level modules that a call imports."""
    code = (
        "import sys\n"
        "from ahpatron_cli.cli.app import run_command\n"
        f"run_command({[str(argument) for argument in arguments]!r})\n"
        "print('\\n'.join(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stderr.split())
