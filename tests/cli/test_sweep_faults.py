"""`ahpatron sweep` when things go wrong: signals, kills, locks, full disks, other people."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ahpatron_cli.sweep.results_file import read_results
from support.command import COMMAND, Ahpatron
from support.sweep_command import SMALL, TRIALS, essence, lines, sweep


def started(ahpatron: Ahpatron, *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [*COMMAND, "sweep", *map(str, arguments), "--out", "r.jsonl"],
        cwd=ahpatron.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,  # type: ignore[call-overload]  # passed on as they are
    )
    assert isinstance(process, subprocess.Popen)
    return process


MANY = ("-g", "budget=20:200:20", "-l", "ahpatron", "-l", "avp", "--repeats", "10")


def wait_for_trials(ahpatron: Ahpatron, count: int) -> None:
    results = ahpatron.folder / "r.jsonl"
    for _ in range(600):
        if results.exists() and results.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.02)
    raise AssertionError("no trials")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")],
)
def test_signals(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int, said: bytes
) -> None:
    process = started(ahpatron, rings, *MANY, "-j", "2")
    wait_for_trials(ahpatron, 5)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert out == b""
    assert said in err
    assert b"the same command continues" in err
    assert b"Traceback" not in err
    content = (ahpatron.folder / "r.jsonl").read_bytes()
    assert content.endswith(b"\n")
    done = len(lines(ahpatron.folder / "r.jsonl"))
    assert 4 <= done < 110  # the last that we saw may have been undone: it was not durable yet
    plan = sweep(ahpatron, rings, *MANY, "--dry-run")
    assert f"{done} done" in plan.out


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.3, 0.6, 0.9, 1.2])
def test_ctrl_c_for_the_whole_group_while_it_starts(
    ahpatron: Ahpatron, rings: Path, after: float
) -> None:
    process = started(ahpatron, rings, *MANY, "-j", "2", start_new_session=True)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    if process.returncode == 0:  # Python itself swallows it where it cannot raise, and says so
        assert b"KeyboardInterrupt" in err
        return
    assert process.returncode in (130, -signal.SIGINT)  # before Python is up, the signal itself
    if process.returncode == 130:
        assert b"Traceback" not in err


@pytest.mark.slow
def test_a_file_that_is_deleted_while_it_is_written_to(ahpatron: Ahpatron, rings: Path) -> None:
    process = started(ahpatron, rings, *MANY)
    wait_for_trials(ahpatron, 2)
    (ahpatron.folder / "r.jsonl").unlink()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 74
    assert b"deleted or replaced" in err
    assert out == b""


def test_a_kernel_of_zeros_is_said(ahpatron: Ahpatron, rings: Path) -> None:
    grid = ("-g", "sigma=0.00001,0.1", "-B", "20", "--scale", "minmax")
    done = sweep(ahpatron, rings, *grid)
    assert "sigma=1e-05: |f(x)| < 1e-9" in done.err
    assert "sigma=auto" in done.err
    assert "sigma=0.1:" not in done.err


def test_each_header_stands_before_its_trials(ahpatron: Ahpatron, rings: Path) -> None:
    sweep(ahpatron, rings, "-B", "20")
    sweep(ahpatron, rings, "-B", "40")
    results = ahpatron.folder / "r.jsonl"
    content = results.read_text().splitlines(keepends=True)
    assert [line.startswith('{"schema"') for line in content] == [True, False, True, False]
    sweep(ahpatron, rings, "-B", "20", "--format", "csv")  # runs nothing, so writes nothing
    assert results.read_text() == "".join(content)
    results.write_text("".join(content[:1] + content[2:]))
    sweep(ahpatron, rings, "-B", "20")
    again = results.read_text().splitlines()
    assert json.loads(again[-2])["command"].endswith("-B 20 --out r.jsonl")
    assert json.loads(again[-1])["run"]["params"]["budget"] == 20


@pytest.mark.slow
def test_a_second_sweep_on_the_file_is_refused(ahpatron: Ahpatron, rings: Path) -> None:
    process = started(ahpatron, rings, *MANY)
    wait_for_trials(ahpatron, 1)
    second = sweep(ahpatron, rings, *SMALL)
    assert second.code == 75
    assert "another sweep is writing" in second.err
    process.kill()
    process.communicate()
    third = sweep(ahpatron, rings, *SMALL)  # no orphan holds the lock
    assert third.code == 0


def test_a_full_disk_keeps_what_is_there(ahpatron: Ahpatron, rings: Path) -> None:
    limited = ["bash", "-c", 'ulimit -f 4; trap "" XFSZ; exec "$@"', "bash"]
    command = [*COMMAND, "sweep", str(rings), *SMALL, "--out", "r.jsonl"]
    done = subprocess.run(
        [*limited, *command], cwd=ahpatron.folder, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 74
    assert done.stdout == b""
    assert b"File too large" in done.stderr
    done_runs = len(read_results(str(ahpatron.folder / "r.jsonl")).trials)
    assert 0 < done_runs < TRIALS
    assert sweep(ahpatron, rings, *SMALL).code == 0
    found = lines(ahpatron.folder / "r.jsonl")
    assert len(found) == len({one["id"] for one in found}) == TRIALS


@pytest.mark.slow
def test_killed_and_restarted_until_done(ahpatron: Ahpatron, rings: Path) -> None:
    """The long version, with 20 kills of parents and of workers, is in tests/benchmarks."""
    sweep(ahpatron, rings, *MANY, "-j", "2", out="whole.jsonl")
    for count in (3, 30, 60):
        process = started(ahpatron, rings, *MANY, "-j", "2")
        wait_for_trials(ahpatron, count)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.communicate()
        time.sleep(0.5)
        assert not [child for child in children if _alive(child)]
    assert sweep(ahpatron, rings, *MANY, "-j", "2").code == 0
    found = essence(ahpatron.folder / "r.jsonl")
    assert found == essence(ahpatron.folder / "whole.jsonl")
    assert set(found.values()) == {1}


def _alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
