"""How fast, and in how much memory, files are read, next to scikit-learn, NumPy and pyarrow alone.

    python tests/benchmarks/reading.py libsvm [MEGABYTES]
    python tests/benchmarks/reading.py tables [ROWS [PYTHON]]

`libsvm`: files (100 MB each, a fifth of that where compressed) of 18 dense features and of 60
values out of 10,000 columns; MB of text per second of processor time, medians of three:

- `read`: our reader alone, every chunk of rows that it yields;
- `load`: the whole file ready for `--shuffle`, with labels mapped and hashed;
- `sklearn`: `load_svmlight_file` of the same bytes;
- `unpack`: only decompressing with the standard library, which no reader can beat.

`tables`: 10 columns of numbers with 6 digits, one category and a label, as CSV, JSON lines, Parquet
and a DataFrame of pandas, with ROWS (a million) and a tenth of that. `run` (ahpatron, B = 100),
`predict` and `convert` read each in a process of its own; `fit` and `predict` of Python have the
DataFrame, which they read from Parquet. Processor seconds (the least of three, start included),
rows per second, MB of input per second and peak MiB. `alone` reads the file and does nothing:
`numpy.loadtxt` of the 10 columns, msgspec or pyarrow. With PYTHON, the interpreter of another
checkout, the same in that one, in turns; a dash where it cannot do it.
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
from common import alternate, dense_lines, measured, seconds, sparse_lines, write
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.opening import load
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import open_source
from faults.measured import Measured

TIMES = 3
LOADTXT = "import numpy; numpy.loadtxt({!r}, delimiter=',', usecols=range(10), skiprows=1)"
JSON = "import msgspec; d = msgspec.json.Decoder(); [d.decode(line) for line in open({!r}, 'rb')]"
PYARROW = "import pyarrow.parquet; pyarrow.parquet.read_table({!r}, use_threads=False)"
FRAME = (
    "import pandas; from ahpatron_cli import OnlineKernelClassifier as C\n"
    "rows = pandas.read_parquet({!r}); y = rows.pop('y')\n"
    "model = C('ahpatron', budget=100, sigma=3, random_state=0)\n"
)
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
    """Write the table as CSV, and as JSON lines and Parquet next to it."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(10)]
    with path.open("w") as csv, path.with_suffix(".jsonl").open("w") as jsonl:
        csv.write(",".join([*names, "job", "y\n"]))
        for start in range(0, rows, 10_000):
            X = rng.standard_normal((min(10_000, rows - start), 10))
            jobs = rng.choice(["clerk", "boss", "nurse", "pilot"], len(X))
            rare = X[:, 0] + X[:, 1] * X[:, 2] > 1.6
            for row, job, yes in zip(X.tolist(), jobs, rare, strict=True):
                label = "yes" if yes else "no"
                values = [f"{x:.6g}" for x in row]
                csv.write(f"{','.join(values)},{job},{label}\n")
                cells = [f'"{name}":{value}' for name, value in zip(names, values, strict=True)]
                jsonl.write(f'{{{",".join(cells)},"job":"{job}","y":"{label}"}}\n')
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), path.with_suffix(".parquet"))


def works(python: str, table: Path, model: str) -> dict[str, list[str]]:
    """The commands that are measured on a file, and the name of the model that they make."""
    ahpatron = [python, "-m", "ahpatron_cli"]
    label = ["--label", "y", "-q"]
    learn = ["-l", "ahpatron", "--budget", "100", "--sigma", "3", "--save", model]
    alone = {".csv": LOADTXT, ".jsonl": JSON, ".parquet": PYARROW}[table.suffix]
    found = {
        "alone": [python, "-c", alone.format(str(table))],
        "run": [*ahpatron, "run", str(table), *label, *learn],
        "predict": [*ahpatron, "predict", model, str(table), "-q", "--out", "s.csv"],
        "convert": [*ahpatron, "convert", str(table), *label, "--out", "out.svm"],
    }
    if table.suffix == ".parquet":
        frame = FRAME.format(str(table))
        found["fit"] = [python, "-c", f"{frame}model.fit(rows, y)"]
        few = f"{frame}model.fit(rows[:1000], y[:1000])\n"
        found["fit, predict"] = [python, "-c", f"{few}model.predict(rows)"]
    return found


def measure(table: Path, rows: int, pythons: list[str]) -> None:
    """Print a line for each work on a file: what the interpreters need for it."""
    megabytes = table.stat().st_size / 1e6
    commands = [works(python, table, f"{i}.npz") for i, python in enumerate(pythons)]
    for work in commands[0]:
        line = f"{rows:<10,} {table.suffix[1:]:8} {megabytes:6.1f}  {work:12}"
        found: list[list[Measured]] = [[] for _ in commands]
        for _ in range(TIMES):
            for runs, command in zip(found, commands, strict=True):
                runs.append(measured(command[work], table.parent, limit=None))
        spent = [least(runs) for runs in found]
        print(line + "".join(shown(one, rows, megabytes) for one in spent), flush=True)


def least(runs: list[Measured]) -> tuple[float, float] | None:
    """The least processor seconds of a command and its peak MiB; None if it was refused."""
    if any(one.code for one in runs):
        return None
    return min(one.cpu for one in runs), max(one.megabytes for one in runs)


def shown(spent: tuple[float, float] | None, rows: int, megabytes: float) -> str:
    """Seconds, rows and megabytes per second, and peak memory, as cells of a line."""
    if spent is None:
        return f"{'–':>8}{'–':>10}{'–':>8}{'–':>6}"
    seconds, peak = spent
    return f"{seconds:8.2f}{rows / seconds:10,.0f}{megabytes / seconds:8.1f}{peak:6.0f}"


def tables(rows: int, pythons: list[str]) -> None:
    heading = f"{'s':>8}{'rows/s':>10}{'MB/s':>8}{'MiB':>6}" * len(pythons)
    print(f"{'rows':10} {'file':8} {'MB':>6}  {'work':12}{heading}")
    with tempfile.TemporaryDirectory() as name:
        for count in (rows // 10, rows):
            file = Path(name) / f"{count}.csv"
            make(file, count)
            for suffix in (".csv", ".jsonl", ".parquet"):
                measure(file.with_suffix(suffix), count, pythons)


if __name__ == "__main__":
    how, *rest = sys.argv[1:]
    if how == "libsvm":
        libsvm(int(1e6 * float(*rest or [100])))
    else:
        count, *others = rest or ["1_000_000"]
        tables(int(count), [sys.executable, *others])
