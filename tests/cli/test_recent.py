"""What is happening now: recent mistake rates, drift, and figures when a run is stopped."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.metrics import RecentMistakes
from support.command import COMMAND, Ahpatron

TURN = 3000


def turning() -> str:
    """Labels that turn into their opposite."""
    rng = random.Random(1)
    lines = []
    for t in range(TURN + 1000):
        a, b = rng.uniform(-1, 1), rng.uniform(-1, 1)
        label = 1 if (a * b > 0) == (t < TURN) else -1
        lines.append(f"{label} 1:{a:.3f} 2:{b:.3f}\n")
    return "".join(lines)


def run(ahpatron: Ahpatron, *args: object) -> tuple[dict[str, Any], str]:
    done = ahpatron.succeed("run", "d.svm", "--sigma", 0.4, "--format", "json", *args)
    return json.loads(done.out)["runs"][0], done.err


def mistakes(ahpatron: Ahpatron) -> list[int]:
    with (ahpatron.folder / "p.csv").open() as file:
        return [int(row["mistake"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_the_window_and_the_curve(ahpatron: Ahpatron, way: tuple[str, ...]) -> None:
    ahpatron.write("d.svm", turning())
    files = ("--predictions", "p.csv", "--curve", "c.csv")
    record, said = run(ahpatron, "--window", 300, *files, *way)
    made = mistakes(ahpatron)
    assert record["window"] == {"rounds": 300, "mistake_rate": sum(made[-300:]) / 300}
    with (ahpatron.folder / "c.csv").open() as file:
        for row in csv.DictReader(file):
            last = made[max(int(row["round"]) - 300, 0) : int(row["round"])]
            assert float(row["recent_rate"]) == pytest.approx(sum(last) / len(last), abs=1e-12)
    if way:
        assert record["drifts"] == []
    else:
        (drift,) = record["drifts"]
        assert TURN < drift < TURN + 30
        assert f"ahpatron: the mistake rate rose, as of round {drift:,}" in said


def test_without_a_window(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", "1 1:1\n-1 1:2\n")
    assert not run(ahpatron)[0].keys() & {"window", "drifts"}


def test_how_rounds_are_cut_does_not_matter() -> None:
    mistaken = np.random.default_rng(3).random(5000) < np.repeat([0.05, 0.5], 2500)
    whole = RecentMistakes(0, 100)
    rates = whole.extend(mistaken)
    pieces = RecentMistakes(0, 100)
    parts = [pieces.extend(mistaken[i : i + 7]) for i in range(0, 5000, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), rates)
    assert pieces.drifts == whole.drifts
    assert 2500 < whole.drifts[0] < 2560


def worker_answers(parent: int) -> bool:
    """Whether a process of `-j` has come so far that Python's handler of SIGINT stands."""
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{child}/status").read_text()
            caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
            is_worker = b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
            if is_worker and int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1):
                return True
    return False


def test_no_process_prints_a_traceback_on_ctrl_c(ahpatron: Ahpatron, rings: Path) -> None:
    """A terminal sends SIGINT to all of them, here while those of `-j 2` import NumPy."""
    command = [*COMMAND, "run", str(rings), "--repeats", "40", "-l", "avp", "-j", "2"]
    with subprocess.Popen(
        command,
        cwd=ahpatron.folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not worker_answers(process.pid) and process.poll() is None:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "ahpatron: interrupted\n" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_mistakes_so_far_are_printed_with_v(
    ahpatron: Ahpatron, rings: Path, way: tuple[str, ...]
) -> None:
    content = rings.read_text()
    ahpatron.write("d.svm", content * 4 + content[: content.index("\n") + 1])  # 8,001 rounds
    done = ahpatron("run", "d.svm", "-v", "-B", 20, "--predictions", "p.csv", *way)
    with (ahpatron.folder / "p.csv").open() as file:
        mistaken = [int(row["mistake"]) for row in csv.DictReader(file)]
    made = {t: sum(mistaken[:t]) for t in (1000, 2000, 4000, 8000)}
    wanted = [
        f"ahpatron: {t:,} rounds, {count:,} mistakes ({100 * count / t:.2f} %)"
        for t, count in made.items()
    ]
    assert re.findall(r"^ahpatron: .* rounds, .*$", done.err, re.MULTILINE) == wanted
    quiet = ahpatron("run", "d.svm", "-B", 20, *way)
    assert "rounds," not in quiet.err
