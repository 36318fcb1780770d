"""What a sweep costs per trial, what a second process gains, how fast results are read.

    python tests/benchmarks/sweep_speed.py

Overhead: trials of a millisecond; the time of the sweep beyond the trials themselves and the start.
Gain: 16 trials of about a second each, with one process and with two. Reading: processor time of
`read_results` for 10,000 trials, the least of five.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from common import AHPATRON, dense_lines, seconds, write
from msgspec.structs import replace

import ahpatron_cli
from ahpatron_cli.sweep.results_file import encode_trial
from support.trials import stored_trial

SWEEP = [*AHPATRON, "sweep", "--format", "csv", "-q"]


def sweep(results: Path, *arguments: str) -> tuple[float, float, int]:
    """Seconds of the command, seconds of its trials, and how many there were."""
    results.unlink(missing_ok=True)
    began = time.perf_counter()
    command = [*SWEEP, *arguments, "--out", str(results)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - began
    lines = [json.loads(line) for line in results.read_text().splitlines()[1:]]
    return took, sum(line["timing"]["wall_seconds"] for line in lines), len(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, results = str(Path(folder) / "data.svm"), Path(folder) / "r.jsonl"
        write(Path(data), dense_lines(18), rows=60_000)
        small = (data, "--limit", "100", "-B", "20")
        least, within, _ = sweep(results, *small)
        took, learned, trials = sweep(results, *small, "--repeats", "1000")
        overhead = ((took - learned) - (least - within)) / (trials - 1)
        each = f"{trials} trials of {1e3 * learned / trials:.2f} ms"
        print(f"overhead: {1e3 * overhead:.2f} ms per trial ({each}; start {least - within:.2f} s)")
        one, two = (sweep(results, data, "--repeats", "16", "-j", jobs)[0] for jobs in "12")
        print(f"16 trials: {one:.1f} s in one process, {two:.1f} s in two, {one / two:.2f} x")
        ids = (f"{number:020x}" for number in range(10_000))
        results.write_bytes(b"".join(encode_trial(replace(stored_trial(1), id=i)) for i in ids))
        spent = min(seconds(lambda: ahpatron_cli.read_results(results)) for _ in range(5))
        print(f"read_results: {spent:.2f} s for 10,000 trials")


if __name__ == "__main__":
    main()
