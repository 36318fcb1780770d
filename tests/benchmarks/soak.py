"""10,000 small trials in one sweep: nothing may grow. `python tests/benchmarks/soak.py [TRIALS]`

While the sweep runs, the memory and the open files of the parent and of its workers are looked at
ten times a second, and the trials done are counted. Printed are the means over the first and the
last tenth of the trials, of memory and descriptors per process and of seconds per trial.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = 2


@dataclass(frozen=True)
class Look:
    """How things stand."""

    trials: int
    seconds: float
    parent_mb: float
    parent_files: int
    workers_mb: float
    """Of the largest worker."""
    workers_files: int


def megabytes(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def descendants(process: int) -> list[int]:
    children = [int(word) for word in _words(f"/proc/{process}/task/{process}/children")]
    return children + [one for child in children for one in descendants(child)]


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_text().split()
    except OSError:
        return []


def watch(process: subprocess.Popen[bytes], results: Path) -> list[Look]:
    looks: list[Look] = []
    began = time.monotonic()
    position = trials = 0
    while process.poll() is None:
        time.sleep(0.1)
        if not results.exists():
            continue
        with results.open("rb") as stream:
            stream.seek(position)
            fresh = stream.read()
        position += len(fresh)
        trials += fresh.count(b"\n")
        try:
            below = [(megabytes(one), files(one)) for one in descendants(process.pid)]
            parent = megabytes(process.pid), files(process.pid)
        except OSError:  # one of them has just ended
            continue
        if below:
            looks.append(
                Look(
                    trials - 1,  # the first line is the header
                    time.monotonic() - began,
                    *parent,
                    max(size for size, _ in below),
                    max(count for _, count in below),
                )
            )
    return looks


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rings = ROOT / "sample_data" / "rings.svm"
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "r.jsonl"
        command = [sys.executable, "-m", "ahpatron_cli", "sweep", str(rings), "--limit", "100"]
        command += ["-B", "10", "-l", "ahpatron", "-l", "rbp", "--repeats", str(trials // 2)]
        command += ["-j", str(JOBS), "--out", str(results), "-q", "--format", "csv"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        looks = watch(process, results)
        assert process.returncode == 0, f"exit code {process.returncode}"
        lines = results.read_bytes().count(b"\n") - 1
    assert lines == trials // 2 * 2, f"{lines} trials"
    first = [look for look in looks if 0.01 * trials < look.trials <= 0.1 * trials]
    last = [look for look in looks if look.trials > 0.9 * trials]
    print(f"{lines:,} trials, {JOBS} workers, {looks[-1].seconds:.0f} s, {len(looks)} looks")
    print(f"{'':24}{'first tenth':>14}{'last tenth':>14}")
    for name in ("parent_mb", "parent_files", "workers_mb", "workers_files"):
        means = [sum(getattr(look, name) for look in part) / len(part) for part in (first, last)]
        print(f"{name.replace('_', ' '):24}{means[0]:14.1f}{means[1]:14.1f}")
    paces = [
        1000 * (part[-1].seconds - part[0].seconds) / (part[-1].trials - part[0].trials)
        for part in (first, last)
    ]
    print(f"{'ms per trial':24}{paces[0]:14.2f}{paces[1]:14.2f}")


if __name__ == "__main__":
    main()
