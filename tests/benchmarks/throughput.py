"""How fast, and in how much memory, tables are read, next to NumPy and pyarrow alone.

    python tests/benchmarks/throughput.py [ROWS]

Makes a table of 10 columns of numbers with 6 digits, one category and a label, as CSV and as
Parquet, with ROWS (a million) and a tenth of that. `run` (ahpatron, B = 100), `predict` and
`convert` read each in a process of its own. Prints MB of input per second of processor time, start
included, its ratio to `numpy.loadtxt` (CSV, the 10 columns) or pyarrow reading all, and peak MiB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from common import AHPATRON, process

LOADTXT = "import numpy; numpy.loadtxt({!r}, delimiter=',', usecols=range(10), skiprows=1)"
PYARROW = "import pyarrow.parquet; pyarrow.parquet.read_table({!r}, use_threads=False)"


def make(path: Path, rows: int) -> None:
    """Write the table as CSV, and as Parquet next to it."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join(f"x{i}" for i in range(10)) + ",job,y\n")
        for start in range(0, rows, 10_000):
            X = rng.standard_normal((min(10_000, rows - start), 10))
            jobs = rng.choice(["clerk", "boss", "nurse", "pilot"], len(X))
            rare = X[:, 0] + X[:, 1] * X[:, 2] > 1.6
            for row, job, yes in zip(X.tolist(), jobs, rare, strict=True):
                values = ",".join(f"{x:.6g}" for x in row)
                file.write(f"{values},{job},{'yes' if yes else 'no'}\n")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), path.with_suffix(".parquet"))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("rows       file     MB     work     MB/s  of reading alone  peak MiB")
    with tempfile.TemporaryDirectory() as name:
        for count in (rows // 10, rows):
            file = Path(name) / f"{count}.csv"
            make(file, count)
            for path, alone in ((file, LOADTXT), (file.with_suffix(".parquet"), PYARROW)):
                size, table, model = path.stat().st_size / 1e6, str(path), f"{name}/model.npz"
                learn = ["-l", "ahpatron", "--budget", "100", "--sigma", "3", "--save", model]
                label = ["--label", "y", "-q"]
                works = {
                    "alone": [sys.executable, "-c", alone.format(table)],
                    "run": [*AHPATRON, "run", table, *label, *learn],
                    "predict": [*AHPATRON, "predict", model, table, "-q", "--out", f"{name}/s.csv"],
                    "convert": [*AHPATRON, "convert", table, *label, "--out", f"{name}/out.svm"],
                }
                unit = 0.0
                for work, command in works.items():
                    spent, peak = process(command)
                    unit = unit or spent
                    cells = f"{size / spent:5.1f}  {unit / spent:16.2f}  {peak:8.0f}"
                    print(f"{count:<10,} {path.suffix[1:]:8} {size:5.1f}  {work:8} {cells}")


if __name__ == "__main__":
    main()
