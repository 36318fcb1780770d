"""Kill a sweep again and again, and see that nothing is lost and nothing counted twice.

    python tests/benchmarks/sweep_faults.py [KILLS]

200 trials on the sample data, two processes. First uninterrupted; then the parent is killed with
SIGKILL at KILLS (default 20) random moments and the same command restarted each time; then its
workers are. Last, a Dask cluster of two workers, one of which is killed and replaced. All that is
not a time must be byte for byte that of the uninterrupted sweep, every trial there once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
SWEEP = [sys.executable, "-m", "ahpatron_cli", "sweep", str(SAMPLE / "rings.svm")]
SWEEP += [str(SAMPLE / "breast_cancer.svm"), "-l", "ahpatron", "-l", "rbp", "-g", "sigma=0.1,0.5"]
SWEEP += ["-g", "budget=20:100:20", "--repeats", "5", "--shuffle", "--format", "json", "-q"]
TRIALS = 2 * 2 * 2 * 5 * 5


def lines(results: Path) -> Counter[str]:
    """Every trial's line without its time, as often as it is there."""
    found: Counter[str] = Counter()
    for line in results.read_text().splitlines():
        content = json.loads(line)
        if "id" in content:
            del content["timing"], content["check"]
            found[json.dumps(content)] += 1
    return found


def children(process: int) -> list[int]:
    """The processes that `process` has started."""
    listing = Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in listing.read_text().split()] if listing.exists() else []


def workers(process: int) -> list[int]:
    """Those of them that play trials (one is multiprocessing's resource tracker)."""
    found = []
    for child in children(process):
        command = Path(f"/proc/{child}/cmdline")
        if command.exists() and b"spawn_main" in command.read_bytes():
            found.append(child)
    return found


def alive(process: int) -> bool:
    """Whether it runs; what nobody has reaped yet (Z) does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def start(results: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*SWEEP, "--out", str(results), *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def finish(results: Path, *more: str) -> float:
    began = time.perf_counter()
    process = start(results, *more)
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    return time.perf_counter() - began


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def kill_parent(results: Path, kills: int, rng: random.Random, whole: float) -> int:
    """Kill the sweep at random moments and start it again; how often it was alive to be killed.

    Every third time while it starts; else some time after it has stored its first new trial.
    """
    struck = 0
    while struck < kills:
        before = results.stat().st_size if results.exists() else 0
        process = start(results, "-j", "2")
        if struck % 3 == 0:
            time.sleep(rng.uniform(0, 1))
        else:
            while process.poll() is None and not (
                results.exists() and results.stat().st_size > max(before, 2000)
            ):
                time.sleep(0.001)
            time.sleep(rng.uniform(0, whole / kills))
        if process.poll() is not None:  # it came to its end before its time: begin anew
            process.communicate()
            results.unlink()
            continue
        offspring = workers(process.pid)
        kill(process.pid)
        process.communicate()
        struck += 1
        time.sleep(2)
        left = [one for one in offspring if alive(one)]
        assert not left, f"{left} are still alive 2 s after their parent"
    return struck


def kill_workers(results: Path, kills: int, rng: random.Random) -> int:
    struck = 0
    while struck < kills:
        process = start(results, "-j", "2", "--retries", "50")
        while process.poll() is None and struck < kills:
            time.sleep(rng.uniform(0.05, 0.6))
            offspring = workers(process.pid)
            if offspring:
                kill(rng.choice(offspring))
                struck += 1
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
        if struck < kills:
            results.unlink()
    return struck


def on_cluster(results: Path) -> None:
    """The same sweep on a scheduler and two workers started as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        dask = str(Path(sys.executable).with_name("dask"))
        address = Path(folder) / "scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        local = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        running = [
            subprocess.Popen([dask, "scheduler", *local, "--scheduler-file", address], **quiet)
        ]
        while not address.exists():
            time.sleep(0.1)

        def worker() -> subprocess.Popen[bytes]:
            command = [dask, "worker", "--no-nanny", "--nthreads", "1", "--no-dashboard"]
            command += ["--scheduler-file", str(address)]
            return subprocess.Popen(command, **quiet)

        running += [worker(), worker()]
        scheduler = json.loads(address.read_text())["address"]
        try:
            process = start(results, "--scheduler", scheduler)
            while process.poll() is None and (not results.exists() or len(lines(results)) < 20):
                time.sleep(0.02)
            kill(running[1].pid)
            running.append(worker())
            _, said = process.communicate()
            assert process.returncode == 0, said.decode()
        finally:
            for one in running:
                one.kill()
                one.wait()


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = finish(folder / "whole.jsonl", "-j", "1")
        wanted = lines(folder / "whole.jsonl")
        assert len(wanted) == TRIALS
        assert set(wanted.values()) == {1}

        def compare(what: str, results: Path) -> None:
            found = lines(results)
            print(
                f"{what}: {len(found)} trials, each once: {set(found.values()) == {1}}, "
                f"bytes equal: {found == wanted}",
                flush=True,
            )
            assert found == wanted

        cases: list[tuple[str, Callable[[Path], str]]] = [
            (
                "jobs 2",
                lambda results: f"{finish(results, '-j', '2') / whole:.2f} of jobs 1's time",
            ),
            (
                "SIGKILL of the parent",
                lambda results: (
                    f"{kill_parent(results, kills, rng, whole)} times, last part "
                    f"{finish(results, '-j', '2') / whole:.2f}"
                ),
            ),
            ("SIGKILL of workers", lambda results: f"{kill_workers(results, kills, rng)} times"),
            ("Dask, two workers, one killed", lambda results: str(on_cluster(results) or "")),
        ]
        for number, (what, play) in enumerate(cases):
            results = folder / f"{number}.jsonl"
            said = play(results)
            compare(f"{what} {said}", results)


if __name__ == "__main__":
    main()
