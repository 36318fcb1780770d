"""How fast LIBSVM files are read, next to scikit-learn's `load_svmlight_file`, in one run.

    python tests/benchmarks/reading.py [MEGABYTES]

Makes files (100 MB each, a fifth of that where compressed) of 18 dense features and of 60 values
out of 10,000 columns, and prints MB of text per second of processor time, medians of three:

- `read`: our reader alone, every chunk of rows that it yields;
- `load`: the whole file ready for `--shuffle`, with labels mapped and hashed;
- `sklearn`: `load_svmlight_file` of the same bytes;
- `unpack`: only decompressing with the standard library, which no reader can beat.
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

from common import alternate, dense_lines, seconds, sparse_lines, write
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import open_source

TIMES = 3
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


def main() -> None:
    size = int(1e6 * float(sys.argv[1] if len(sys.argv) > 1 else 100))
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


if __name__ == "__main__":
    main()
