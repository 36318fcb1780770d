"""Memory and throughput of `ahpatron run`: short and long streams, files, pipes, shuffles, width.

    python tests/benchmarks/streams.py [ROWS] [SHORT]

Makes ROWS rows (3 million by default) of 18 features, and the first SHORT (100,000) of them. Each
is run in file order, from the file and from a pipe: peak resident memory, and microseconds of
processor time per row. Then the short file is shuffled, alone and by two processes (the largest sum
over all processes, shared pages counted once); last, 20,000 rows with 60 values out of a million
columns are run in file order and shuffled.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from common import AHPATRON, dense_lines, process, sparse_lines, write

RUN = [*AHPATRON, "run", "--format", "csv", "-q", "-B", "100"]
WIDTH = 18


def peak_of_all(command: list[str]) -> float:
    """The largest sum of MiB over all processes of a command."""
    started, largest = psutil.Popen(command, stdout=subprocess.DEVNULL), 0
    while started.poll() is None:
        with suppress(psutil.Error):  # one of them has just ended
            family = [started, *started.children(recursive=True)]
            largest = max(largest, sum(one.memory_full_info().pss for one in family))
        time.sleep(0.02)
    assert started.returncode == 0, command
    return largest / 2**20


def main() -> None:
    rows, short = map(int, (*sys.argv[1:], *("3000000", "100000")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in (short, rows):
            path = folder / f"{count}.svm"
            write(path, dense_lines(WIDTH), rows=count)
            spent, memory = process([*RUN, str(path)])
            shown = f"file {memory:6.1f} MiB, {1e6 * spent / count:5.2f} µs per row"
            with path.open("rb") as file:
                packed = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
                spent, memory = process([*RUN, "-"], stdin=packed.stdout)
            shown += f"; pipe {memory:6.1f} MiB, {1e6 * spent / count:5.2f} µs per row"
            print(f"{count:9,} rows: {shown}", flush=True)
        path, held = folder / f"{short}.svm", short * (WIDTH + 1) * 8 / 2**20
        print(f"{short:,} rows are {held:.1f} MiB as float64")
        sweep = [*AHPATRON, "sweep", "--format", "csv", "-q", "-B", "100", "--repeats", "4"]
        for command in (
            [*RUN, "--shuffle"],
            [*RUN, "--repeats", "4"],
            [*RUN, "--repeats", "4", "-j", "2"],
            [*sweep, "-j", "1", "--out", str(folder / "1.jsonl")],
            [*sweep, "-j", "2", "--out", str(folder / "2.jsonl")],
        ):
            total = peak_of_all([*command, str(path)])
            print(f"{' '.join(command[3:])}: {total:.1f} MiB in all processes", flush=True)
        wide = folder / "wide.svm"
        write(wide, sparse_lines(1_000_000, 60), rows=20_000)
        for options in ([], ["--shuffle"]):
            spent, memory = process([*RUN, "--sigma", "4", str(wide), *options])
            print(f"a million columns {options}: {memory:.0f} MiB, {spent:.2f} s", flush=True)


if __name__ == "__main__":
    main()
