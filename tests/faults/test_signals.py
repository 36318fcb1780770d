"""SIGINT and SIGTERM at random moments, from the first import to the last line of output."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.command import COMMAND, Ahpatron
from support.sweep_command import essence

MOMENTS = 20
SIGNALS = [
    pytest.param(signal.SIGINT, 130, "interrupted", id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, "terminated", id="SIGTERM"),
]
RUN = ("-B", "40", "--sigma", "0.1", "--repeats", "8", "-l", "ahpatron", "-l", "rbp")
OUTPUTS = ("--out", "r.json", "--predictions", "p.csv", "--curve", "c.csv")
SWEEP = ("-g", "budget=20:100:20", "-l", "ahpatron", "-l", "avp", "--repeats", "8", "-j", "2")
BEFORE_OURS = "Fatal Python error", "runpy", "<frozen"
"""Marks of Python itself being interrupted, before the first line of ours was reached."""


def interrupted_after(
    seconds: float, number: signal.Signals, command: list[str], folder: Path
) -> tuple[int, str, str]:
    """Exit code and what was written, of a command that got a signal after so long."""
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell starts what it runs in the background with SIGINT ignored, and that is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        time.sleep(seconds)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def moments(seed: int, whole: float) -> list[float]:
    """Random moments, half of them while Python imports."""
    lots = random.Random(seed)
    early = [lots.uniform(0, 0.5) for _ in range(MOMENTS // 2)]
    return early + [lots.uniform(0.2, whole) for _ in range(MOMENTS - len(early))]


def seconds_of(command: list[str], folder: Path) -> float:
    began = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=True)
    return time.monotonic() - began


def before_ours(code: int, number: signal.Signals, err: str) -> bool:
    """Python was not up yet: it dies of the signal, with a traceback that none of us wrote."""
    ours = any(name in err for name in ("ahpatron_cli/cli/app.py", "ahpatron_cli/cli"))
    return not ours and (code == -number or (code == 1 and BEFORE_OURS[0] in err))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_run(ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int, word: str) -> None:
    command = [*COMMAND, "run", str(rings), *RUN]
    whole = seconds_of(command, ahpatron.folder)
    for moment in moments(number, whole):
        ended, out, err = interrupted_after(moment, number, [*command, *OUTPUTS], ahpatron.folder)
        if ended == 0:  # it was done already
            assert ahpatron.files() == {"r.json", "p.csv", "c.csv"}
            for path in ahpatron.folder.iterdir():
                path.unlink()
            continue
        if not before_ours(ended, number, err):
            assert (ended, err) == (code, f"ahpatron: {word}\n"), moment
            assert out == "" or out.startswith(str(rings))
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
        ended, out, err = interrupted_after(moment, number, [*command, "r.jsonl"], ahpatron.folder)
        assert "Traceback" not in err or before_ours(ended, number, err), err
        assert ended in (code, 0) or before_ours(ended, number, err)
        if ended == code:
            assert f"ahpatron: {word}\n" in err
            assert out == ""
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
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
