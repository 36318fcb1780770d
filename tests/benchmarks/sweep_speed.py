"""What the machinery of a sweep costs per trial, and what a second process gains.

    python tests/benchmarks/sweep_speed.py

Overhead: trials of a millisecond; what the sweep takes beyond the trials themselves, start-up of
an empty sweep taken off. Gain: 16 trials of about a second each, on random data, with one process
and with two.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SWEEP = [sys.executable, "-m", "ahpatron_cli", "sweep", "--format", "csv", "-q"]


def write_data(path: Path, rows: int, width: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, width)).round(3)
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(rows) > 0, 1, -1)
    with path.open("w") as stream:
        for label, row in zip(y.tolist(), X.tolist(), strict=True):
            values = " ".join(f"{column}:{value}" for column, value in enumerate(row, 1))
            stream.write(f"{label} {values}\n")


def sweep(folder: Path, *arguments: str) -> tuple[float, float, int]:
    """Seconds of the command, seconds of its trials, and how many there were."""
    results = folder / "r.jsonl"
    results.unlink(missing_ok=True)
    began = time.perf_counter()
    command = [*SWEEP, *arguments, "--out", str(results)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - began
    lines = [json.loads(line) for line in results.read_text().splitlines()[1:]]
    return took, sum(line["timing"]["wall_seconds"] for line in lines), len(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.svm", folder / "large.svm"
        write_data(small, 100, 5)
        write_data(large, 60_000, 18)
        sweep(folder, str(small))  # the file is decoded
        least, within, _ = sweep(folder, str(small), "-B", "20")
        took, learned, trials = sweep(folder, str(small), "-B", "20", "--repeats", "1000")
        overhead = ((took - learned) - (least - within)) / (trials - 1)
        print(
            f"overhead: {1e3 * overhead:.2f} ms per trial ({trials} trials of "
            f"{1e3 * learned / trials:.2f} ms; start-up {least - within:.2f} s)"
        )
        sweep(folder, str(large))
        times = {}
        for jobs in ("1", "2"):
            took, learned, trials = sweep(folder, str(large), "--repeats", "16", "-j", jobs)
            times[jobs] = took
            print(f"jobs {jobs}: {took:.1f} s, {trials} trials of {learned / trials:.2f} s")
        print(f"two processes are {times['1'] / times['2']:.2f} times as fast as one")


if __name__ == "__main__":
    main()
