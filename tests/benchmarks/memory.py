"""Memory and time of `ahpatron run`: its start, long streams, files, pipes, shuffles, width.

    python tests/benchmarks/memory.py [ROWS] [SHORT]
    python tests/benchmarks/memory.py start [TIMES]

Makes ROWS rows (3 million by default) of 18 features, and the first SHORT (100,000) of them. Each
is run in file order, from the file and from a pipe: peak resident memory, and microseconds of
processor time per row. Then the short file is shuffled, alone and by two processes (the largest sum
over all processes, shared pages counted once); last, 20,000 rows with 60 values out of a million
columns are run in file order and shuffled.

`start`: processor time of `ahpatron --help` and of `ahpatron run` on 1,000 rows, next to that of
the imports that cannot be avoided; commands taking turns, medians over TIMES (21), and the range.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from common import AHPATRON, alternate, dense_lines, process, sparse_lines, write

RUN = [*AHPATRON, "run", "--format", "csv", "-q", "-B", "100"]
WIDTH = 18
IMPORTS = ("import typer, rich.table", "import numpy, scipy.linalg, typer, rich.table")


def peak_of_all(command: list[str]) -> float:
    """The largest sum of MiB over all processes of a command."""
    started = psutil.Popen(command, stdout=subprocess.DEVNULL)
    largest = 0
    while started.poll() is None:
        with suppress(psutil.Error):  # one of them has just ended
            family = [started, *started.children(recursive=True)]
            largest = max(largest, sum(one.memory_full_info().pss for one in family))
        time.sleep(0.02)
    assert started.returncode == 0, command
    return largest / 2**20


def start(times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "short.svm"
        write(path, dense_lines(WIDTH), rows=1000)
        commands = {
            IMPORTS[0]: [sys.executable, "-c", IMPORTS[0]],
            "ahpatron --help": [*AHPATRON, "--help"],
            IMPORTS[1]: [sys.executable, "-c", IMPORTS[1]],
            "ahpatron run, 1,000 rows": [*AHPATRON, "run", "--limit", "1000", str(path)],
        }
        ways = {
            name: lambda command=command: process(command)[0] for name, command in commands.items()
        }
        spent = alternate(ways, times)
    for name, found in spent.items():
        middle = statistics.median(found)
        print(
            f"{name:46} {1e3 * middle:6.0f} ms  ({1e3 * min(found):.0f} to {1e3 * max(found):.0f})"
        )
    bare_help, our_help, bare_run, our_run = map(statistics.median, spent.values())
    print(f"help: {our_help / bare_help:.2f} x the imports (at most 1.5)")
    print(f"run:  {our_run / bare_run:.2f} x the imports (at most 2.0)")


def main(rows: int = 3_000_000, short: int = 100_000) -> None:
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
        path = folder / f"{short}.svm"
        held = short * (WIDTH + 1) * 8 / 2**20
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
    if sys.argv[1:2] == ["start"]:
        start(int(*sys.argv[2:] or [21]))
    else:
        main(*map(int, sys.argv[1:]))
