"""How fast, and in how much memory, `convert` and `predict` work, beside reading alone.

    python tests/benchmarks/throughput.py [ROWS]

Makes two files of delimited text (seeded; ROWS and a tenth of that). Converts each, then predicts
what was written with a model of B = 100, each in a process of its own. Prints MB of input per
second of processor time and the peak of memory; beside them Python's csv module and our reader,
each reading the same file once.
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def make(path: Path, rows: int) -> None:
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        file.write("a,b,c,d,e,f,age,member,job,y\n")
        for i in range(rows):
            values = [draw.gauss(0, 1) for _ in range(6)]
            cells = [f"{value:.6g}" for value in values]
            cells += [str(i % 90), str(i % 2), draw.choice(["clerk", "boss", "nurse"])]
            file.write(",".join([*cells, "yes" if values[0] > 0 else "no"]) + "\n")


def measured(*arguments: str | Path) -> tuple[float, float]:
    """Run `ahpatron`: seconds of processor time, and MB of memory at the peak, of its process."""
    code = (
        "import resource, sys; from ahpatron_cli.cli.app import run_command;"
        "code = run_command(sys.argv[1:]); used = resource.getrusage(resource.RUSAGE_SELF);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.splitlines()[-1].split())
    return seconds, megabytes


def seconds_of(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def read_csv(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        for _ in csv.reader(file):
            pass


def read_libsvm(path: Path) -> None:
    from ahpatron_cli.data.libsvm.reader import SvmReader
    from ahpatron_cli.data.source import open_source

    with open_source(str(path)) as source:
        for _ in SvmReader(source):
            pass


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = []
        # Linux counts this process into the peak of those that it starts: it must be small yet.
        for count in (rows // 10, rows):
            table, text = folder / f"{count}.csv", folder / f"{count}.svm"
            make(table, count)
            converted = measured("convert", table, "--label", "y", "--out", text)
            model, options = folder / "model.npz", ("--limit", "20000", "--budget", "100")
            if not model.exists():
                measured("run", text, *options, "--sigma", "3", "--save", model)
            predicted = measured("predict", model, text, "--out", folder / "scores.csv")
            found.append((count, table, text, converted, predicted))
        print("rows       work        MB    MB/s   peak MB   reading alone MB/s")
        for count, table, text, converted, predicted in found:
            by_csv = seconds_of(lambda path=table: read_csv(path))
            by_reader = seconds_of(lambda path=text: read_libsvm(path))
            for work, path, (seconds, peak), reading in (
                ("convert", table, converted, by_csv),
                ("predict", text, predicted, by_reader),
            ):
                size = path.stat().st_size / 1e6
                print(
                    f"{count:<10,} {work} {size:>8.1f} {size / seconds:>7.1f} {peak:>9.0f} "
                    f"{size / reading:>20.0f}"
                )


if __name__ == "__main__":
    main()
