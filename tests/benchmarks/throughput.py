"""How fast, and in how much memory, tables are read, compared with NumPy and pyarrow alone.

    python tests/benchmarks/throughput.py [ROWS]

Makes a table (seeded) of 10 columns of numbers with 6 digits, one category and a label, as CSV and
as Parquet, with ROWS and a tenth of that. `run` (ahpatron, B = 100), `predict` and `convert` read
each in a process of its own. Prints MB of input per second of processor time, start included, its
ratio to `numpy.loadtxt` (CSV, the 10 columns) or to pyarrow reading all, and the peak of memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = "from ahpatron_cli.cli.app import run_command; code = run_command(sys.argv[1:])"
MAKE = """
import numpy as np, pyarrow.csv, pyarrow.parquet
rng, rows = np.random.default_rng(0), int(sys.argv[1])
with open(sys.argv[2], "w") as file:
    file.write(",".join(f"x{i}" for i in range(10)) + ",job,y\\n")
    for start in range(0, rows, 10_000):
        X = rng.standard_normal((min(10_000, rows - start), 10))
        jobs = rng.choice(["clerk", "boss", "nurse", "pilot"], len(X))
        for row, job, yes in zip(X.tolist(), jobs, X[:, 0] + X[:, 1] * X[:, 2] > 1.6):
            file.write(",".join(f"{x:.6g}" for x in row) + f",{job},{'yes' if yes else 'no'}\\n")
pyarrow.parquet.write_table(pyarrow.csv.read_csv(sys.argv[2]), sys.argv[3])
"""
LOADTXT = "import numpy; numpy.loadtxt(sys.argv[1], delimiter=',', usecols=range(10), skiprows=1)"
PYARROW = "import pyarrow.parquet; pyarrow.parquet.read_table(sys.argv[1], use_threads=False)"


def measured(code: str, *arguments: object) -> tuple[float, float]:
    """Run a program: seconds of processor time, and MB of memory at the peak, of its process."""
    whole = (
        f"import resource, sys\ncode = 0\n{code}\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", whole, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.splitlines()[-1].split())
    return seconds, megabytes


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("rows       file     MB     work     MB/s  of reading alone  peak MB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in (rows // 10, rows):
            files = folder / f"{count}.csv", folder / f"{count}.parquet"
            measured(MAKE, count, *files)
            for file, reading in zip(files, (LOADTXT, PYARROW), strict=True):
                size, model = file.stat().st_size / 1e6, folder / "model.npz"
                learn = ("-l", "ahpatron", "--budget", "100", "--sigma", "3", "--save", model)
                works = {
                    "alone": (reading, file),
                    "run": (COMMAND, "run", file, "--label", "y", *learn, "-q"),
                    "predict": (COMMAND, "predict", model, file, "--out", folder / "s.csv", "-q"),
                    "convert": (
                        COMMAND,
                        "convert",
                        file,
                        "--label",
                        "y",
                        "--out",
                        folder / "o",
                        "-q",
                    ),
                }
                alone = 0.0
                for work, (code, *arguments) in works.items():
                    seconds, peak = measured(code, *arguments)
                    alone = alone or seconds
                    print(
                        f"{count:<10,} {file.suffix[1:]:<8} {size:>5.1f}  {work:<8} "
                        f"{size / seconds:>5.1f}  {alone / seconds:>16.2f}  {peak:>7.0f}"
                    )


if __name__ == "__main__":
    main()
