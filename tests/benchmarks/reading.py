"""How fast, and in how much memory, files are read, next to scikit-learn, NumPy and pyarrow alone.

    python tests/benchmarks/reading.py libsvm [MEGABYTES]
    python tests/benchmarks/reading.py tables [ROWS]

`libsvm`: files (100 MB each, a fifth of that where compressed) of 18 dense features and of 60
values out of 10,000 columns; MB of text per second of processor time, medians of three:

- `read`: our reader alone, every chunk of rows that it yields;
- `load`: the whole file ready for `--shuffle`, with labels mapped and hashed;
- `sklearn`: `load_svmlight_file` of the same bytes;
- `unpack`: only decompressing with the standard library, which no reader can beat.

`tables`: 10 columns of numbers with 6 digits, one category and a label, as CSV and as Parquet, with
ROWS (a million) and a tenth of that. `run` (ahpatron, B = 100), `predict` and `convert` read each
in a process of its own: MB of input per second of processor time, start included, its ratio to
`numpy.loadtxt` (CSV, the 10 columns) or pyarrow reading all, and peak MiB.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from common import AHPATRON, alternate, dense_lines, process, seconds, sparse_lines, write
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import open_source

TIMES = 3
LOADTXT = "import numpy; numpy.loadtxt({!r}, delimiter=',', usecols=range(10), skiprows=1)"
PYARROW = "import pyarrow.parquet; pyarrow.parquet.read_table({!r}, use_threads=False)"
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def read(path: Path) -> None:
    with open_source(str(path)) as source:
        for _ in SvmReader(source):
            pass


def load_all(path: Path) -> None:
    with open_source(str(path)) as source:
        load(source, Preparation())


def unpack(path: Path) -> None:
    with OPENERS[path.suffix](path) as stream:
        while stream.read(1 << 20):
            pass


def compare(path: Path, size: int, ways: dict[str, Callable[[Path], object]]) -> None:
    """Print a line: MB of text per second of each way, and as multiples of the last."""
    timed = {name: lambda way=way: seconds(lambda: way(path)) for name, way in ways.items()}
    found = alternate(timed, TIMES)
    speeds = {name: size / 1e6 / statistics.median(times) for name, times in found.items()}
    *_, last = speeds.values()
    shown = (f"{name} {speed:6.1f} MB/s ({speed / last:.2f} x)" for name, speed in speeds.items())
    print(f"{path.name:24} {', '.join(shown)}", flush=True)


def libsvm(size: int) -> None:
    files = {"dense18.svm": dense_lines(18), "sparse60of10000.svm": sparse_lines(10_000, 60)}
    with tempfile.TemporaryDirectory() as name:
        for file, batches in files.items():
            path = Path(name) / file
            write(path, batches, size=size)
            ways = {
                "read": read,
                "load": load_all,
                "sklearn": lambda path: load_svmlight_file(str(path)),
            }
            compare(path, path.stat().st_size, ways)
            text = path.read_bytes()[: size // 5]
            text = text[: text.rindex(b"\n") + 1]
            for suffix, opener in OPENERS.items():
                packed = path.with_name(f"{file}{suffix}")
                with opener(packed, "wb") as stream:
                    stream.write(text)
                compare(packed, len(text), {"read": read, "unpack": unpack})


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


def tables(rows: int) -> None:
    print("rows       file     MB     work     MB/s  of reading alone  peak MiB")
    with tempfile.TemporaryDirectory() as name:
        for count in (rows // 10, rows):
            file = Path(name) / f"{count}.csv"
            make(file, count)
            for path, alone in ((file, LOADTXT), (file.with_suffix(".parquet"), PYARROW)):
                size = path.stat().st_size / 1e6
                table = str(path)
                model = f"{name}/model.npz"
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
    how, *rest = sys.argv[1:]
    if how == "libsvm":
        libsvm(int(1e6 * float(*rest or [100])))
    else:
        tables(int(*rest or [1_000_000]))
