"""How fast and in how much memory `ahpatron convert` writes LIBSVM text, beside reading alone.

    python tests/benchmarks/conversion.py [ROWS]

Makes two files of delimited text (seeded; ROWS and a tenth of that), converts each in a process of
its own, and prints MB of CSV per second of processor time and the peak of memory. Beside it:
Python's csv module reading the same file once, and our reader reading what was written.
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


def convert(path: Path, out: Path) -> tuple[float, float]:
    """Seconds of processor time, and MB of memory at the peak, of the process."""
    code = (
        "import resource, sys; from ahpatron_cli.cli.app import run_command;"
        "code = run_command(sys.argv[1:]); used = resource.getrusage(resource.RUSAGE_SELF);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(code)"
    )
    arguments = ["convert", str(path), "--label", "y", "--out", str(out), "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, done.stdout.split())
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
    print("rows        MB   convert MB/s   peak MB   csv module MB/s   read LIBSVM MB/s")
    with tempfile.TemporaryDirectory() as folder:
        # Linux counts this process into the peak of those that it starts: it must be small yet.
        converted = []
        for count in (rows // 10, rows):
            path, out = Path(folder, f"{count}.csv"), Path(folder, f"{count}.svm")
            make(path, count)
            converted.append((count, path, out, *convert(path, out)))
        for count, path, out, seconds, peak in converted:
            megabytes = path.stat().st_size / 1e6
            reading = seconds_of(lambda path=path: read_csv(path))
            again = seconds_of(lambda out=out: read_libsvm(out))
            print(
                f"{count:<9,} {megabytes:>5.1f} {megabytes / seconds:>14.1f} {peak:>9.0f} "
                f"{megabytes / reading:>17.0f} {out.stat().st_size / 1e6 / again:>18.0f}"
            )


if __name__ == "__main__":
    main()
