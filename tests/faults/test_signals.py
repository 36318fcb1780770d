"""SIGINT and SIGTERM at random moments, from the first import to the last line of output."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from support.command import COMMAND, Ahpatron
from support.sweep_command import essence

MOMENTS = 20
SIGNALS = [
    pytest.param(signal.SIGINT, 130, "interrupted", id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, "terminated", id="SIGTERM"),
]
RUN = ("-B", "40", "--sigma", "0.1", "--repeats", "8", "-l", "ahpatron", "-l", "rbp")
STOPPED = re.compile(r"note: stopped: \S+(, repeat \d)?: [\d,]+ rounds?, [\d,]+ mistakes? \(.* %\)")
"""What a run has counted until it is stopped: a line for each pass that has begun."""
NOT_BEGUN = "note: stopped before the first figures"
OUTPUTS = ("--out", "r.json", "--predictions", "p.csv", "--curve", "c.csv")
SWEEP = ("-g", "budget=20:100:20", "-l", "ahpatron", "-l", "avp", "--repeats", "8", "-j", "2")


class Moment(NamedTuple):
    """When a signal is sent: so long after the process started, or after it answers signals."""

    seconds: float
    answering: bool


class Ended(NamedTuple):
    """What became of a command that got a signal."""

    code: int
    out: str
    err: str
    answered: bool
    """Whether our handlers stood when the signal was sent: from then on nothing is left to luck."""


def interrupted_at(
    moment: Moment, number: signal.Signals, command: list[str], folder: Path
) -> Ended:
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell starts what it runs in the background with SIGINT ignored, and that is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        while moment.answering and not answers_signals(process) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment.seconds)
        answered = answers_signals(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out, err, answered)


def answers_signals(process: subprocess.Popen[str]) -> bool:
    """Whether the process catches SIGTERM: Python never does, and we do it after SIGINT."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def moments(seed: int, whole: float) -> list[Moment]:
    """Random moments, half of them while Python starts and imports."""
    generator = random.Random(seed)
    early = [Moment(generator.uniform(0, 0.5), answering=False) for _ in range(MOMENTS // 2)]
    late = (
        Moment(generator.uniform(0, whole), answering=True) for _ in range(MOMENTS - len(early))
    )
    return [*early, *late]


def seconds_of(command: list[str], folder: Path) -> float:
    began = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, timeout=600, check=True)
    return time.monotonic() - began


def before_ours(ended: Ended, number: signal.Signals) -> bool:
    """Python was not up yet: it dies of the signal, in words that none of us wrote."""
    ours = any(name in ended.err for name in ("ahpatron_cli/cli",))
    return not ended.answered and not ours and ended.code in (-number, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_run(ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int, word: str) -> None:
    command = [*COMMAND, "run", str(rings), *RUN]
    whole = seconds_of(command, ahpatron.folder)
    for moment in moments(number, whole):
        ended = interrupted_at(moment, number, [*command, *OUTPUTS], ahpatron.folder)
        if ended.code == 0:  # it was done already
            assert ahpatron.files() == {"r.json", "p.csv", "c.csv"}
            for path in ahpatron.folder.iterdir():
                path.unlink()
            continue
        if not before_ours(ended, number):
            *notes, last = ended.err.splitlines()
            assert (ended.code, last) == (code, f"ahpatron: {word}"), moment
            begun = all(STOPPED.fullmatch(note) for note in notes)
            assert begun or notes == [NOT_BEGUN], notes
            assert ended.out == "" or ended.out.startswith(str(rings))
        left = ahpatron.files()
        assert not {name for name in left if name.startswith(".")}  # no temporary files
        assert left in (set(), {"r.json", "p.csv", "c.csv"})  # all, or nothing
        for name in left:
            (ahpatron.folder / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_sweep(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int, word: str
) -> None:
    """One results file goes through all interruptions, and is whole in the end."""
    command = [*COMMAND, "sweep", str(rings), *SWEEP, "--out"]
    whole = seconds_of([*command, "whole.jsonl"], ahpatron.folder)
    results = ahpatron.folder / "r.jsonl"
    for moment in moments(number, whole / 4):
        ended = interrupted_at(moment, number, [*command, "r.jsonl"], ahpatron.folder)
        if not before_ours(ended, number):
            assert "Traceback" not in ended.err, ended.err
            assert ended.code in (code, 0), moment
        if ended.code == code:
            assert f"ahpatron: {word}\n" in ended.err
            assert ended.out == ""
        if results.exists():
            assert results.read_bytes().endswith(b"\n") or not results.read_bytes()
    seconds_of([*command, "r.jsonl"], ahpatron.folder)
    found = essence(results)
    assert found == essence(ahpatron.folder / "whole.jsonl")
    assert set(found.values()) == {1}


def test_an_ignored_sigint_stays_ignored(ahpatron: Ahpatron, rings: Path) -> None:
    """As under nohup, or in the background of a shell script."""
    with subprocess.Popen(
        [*COMMAND, "run", str(rings), *RUN],
        cwd=ahpatron.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        for _ in range(5):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, b"")
