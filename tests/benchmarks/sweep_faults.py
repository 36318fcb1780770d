"""Kill a sweep again and again, and see that nothing is lost and nothing counted twice.

    python tests/benchmarks/sweep_faults.py [KILLS]

200 trials on the sample data, two processes. First uninterrupted; then the parent is killed with
SIGKILL at KILLS (default 20) random moments and the same command restarted each time; then its
workers are. Last, a Dask cluster of two workers, one of which is killed and replaced. All that is
not a time must be byte for byte that of the uninterrupted sweep, every trial there once.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from common import AHPATRON, SAMPLES

from support.cluster import Cluster
from support.command import Ahpatron

RINGS = str(SAMPLES / "rings.svm")
SWEEP = [*AHPATRON, "sweep", RINGS, str(SAMPLES / "breast_cancer.svm"), "-l", "ahpatron"]
SWEEP += ["-l", "rbp", "-g", "sigma=0.1,0.5", "-g", "budget=20:100:20", "--repeats", "5"]
SWEEP += ["--shuffle", "--format", "json", "-q"]
TRIALS = 2 * 2 * 2 * 5 * 5


def start(results: Path, *more: str) -> psutil.Popen:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return psutil.Popen([*SWEEP, "--out", str(results), *more], **quiet)


def finish(process: psutil.Popen) -> None:
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()


def workers(process: psutil.Process) -> list[psutil.Process]:
    """The processes that run trials; another one is multiprocessing's resource tracker."""
    with suppress(psutil.Error):
        return [one for one in process.children() if "spawn_main" in " ".join(one.cmdline())]
    return []


def kill_parent(results: Path, kills: int, rng: random.Random) -> None:
    """Every third time while it starts, else after it has stored a new trial."""
    struck = 0
    while struck < kills:
        before = results.stat().st_size if results.exists() else 0
        process = start(results, "-j", "2")
        while struck % 3 and process.poll() is None:
            if results.exists() and results.stat().st_size > max(before, 2000):
                break
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.2 if struck % 3 else 1))
        if process.poll() is not None:  # it ended before it was killed: start from scratch
            process.communicate()
            results.unlink()
            continue
        children = workers(process)
        process.kill()
        process.communicate()
        struck += 1
        _, left = psutil.wait_procs(children, timeout=2)
        assert not left, f"{left} are still alive 2 s after their parent"
    finish(start(results, "-j", "2"))


def kill_workers(results: Path, kills: int, rng: random.Random) -> None:
    struck = 0
    while struck < kills:
        results.unlink(missing_ok=True)
        process = start(results, "-j", "2", "--retries", "50")
        while process.poll() is None and struck < kills:
            time.sleep(rng.uniform(0.05, 0.6))
            for victim in rng.sample(found := workers(process), min(1, len(found))):
                with suppress(psutil.Error):
                    victim.kill()
                    struck += 1
        finish(process)


def on_cluster(results: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        process = start(results, "--scheduler", cluster.address)
        while process.poll() is None and (
            not results.exists() or results.read_bytes().count(b"\n") < 20
        ):
            time.sleep(0.02)
        cluster.workers[0].kill()
        cluster.add_worker()
        finish(process)


def faults(kills: int) -> None:
    rng = random.Random(0)
    cases: dict[str, Callable[[Path], None]] = {
        "jobs 1": lambda results: finish(start(results, "-j", "1")),
        "jobs 2": lambda results: finish(start(results, "-j", "2")),
        f"SIGKILL of the parent, {kills} times": lambda path: kill_parent(path, kills, rng),
        f"SIGKILL of workers, {kills} times": lambda path: kill_workers(path, kills, rng),
        "Dask, two workers, one killed": on_cluster,
    }
    wanted = None
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, run) in enumerate(cases.items()):
            results = Path(folder) / f"{number}.jsonl"
            run(results)
            found = Ahpatron(results.parent).essence(results.name)
            wanted = wanted or found
            print(f"{what}: {len(found)} trials, bytes equal: {found == wanted}", flush=True)
            assert found == wanted
            assert len(found) == TRIALS
            assert set(found.values()) == {1}


if __name__ == "__main__":
    faults(int(sys.argv[1]) if sys.argv[1:] else 20)
