"""How fast data files are read, beside scikit-learn's `load_svmlight_file`, in one run.

    python tests/benchmarks/reading.py [MEGABYTES]

Makes files (seeded; 100 MB each, a fifth of that where compressed) of 18 dense features and of 60
values out of 10,000 columns, and prints MB of text per second of processor time (and of the clock,
which on a busy machine says more about the others), medians over repeats with their spread:

- `read`: our reader alone, every chunk of rows that it hands out;
- `load`: the whole file ready to be played (`--shuffle`), with labels mapped and hashed;
- `sklearn`: `load_svmlight_file` of the same bytes;
- `unpack`: only decompressing (the standard library's), what no reader of the file can beat.

All of it runs on one core, in one thread.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import made  # after the threads are pinned
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.source import open_source

TIMES = 3
OPENERS = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def read(path: Path) -> None:
    with open_source(str(path)) as source:
        for _ in SvmReader(source):
            pass


def load_all(path: Path) -> None:
    with open_source(str(path)) as source:
        load(source, Preparation())


def hash_only(path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)


def unpack(path: Path) -> None:
    with OPENERS[path.suffix[1:]](path) as stream:
        while stream.read(1 << 20):
            pass


def speed(name: str, megabytes: float, work: Callable[[], object]) -> float:
    """Print one line of the table; the median in MB per second of processor time."""
    speeds, by_clock = [], []
    for _ in range(TIMES):
        began, clock = time.process_time(), time.perf_counter()
        work()
        speeds.append(megabytes / (time.process_time() - began))
        by_clock.append(megabytes / (time.perf_counter() - clock))
    middle = statistics.median(speeds)
    spread = f"({min(speeds):.1f} to {max(speeds):.1f})"
    clock = statistics.median(by_clock)
    print(f"  {name:<16}{middle:9.1f} MB/s {spread:<20} {clock:8.1f} by the clock", flush=True)
    return middle


def plain(path: Path) -> None:
    megabytes = path.stat().st_size / 1e6
    print(f"{path.name}: {megabytes:.1f} MB")
    ours = speed("read", megabytes, lambda: read(path))
    speed("load", megabytes, lambda: load_all(path))
    theirs = speed("sklearn", megabytes, lambda: load_svmlight_file(str(path)))
    speed("hashing alone", megabytes, lambda: hash_only(path))
    print(f"  reading {ours / theirs:.2f} x sklearn", flush=True)


def packed(path: Path, megabytes: float) -> None:
    """`megabytes` of text stand in the file."""
    print(f"{path.name}: {megabytes:.1f} MB of text in {path.stat().st_size / 1e6:.1f} MB")
    bare = speed("unpack", megabytes, lambda: unpack(path))
    ours = speed("read", megabytes, lambda: read(path))
    print(f"  reading at {ours / bare:.2f} x the speed of decompression alone", flush=True)


def main() -> None:
    size = int(1e6 * float(sys.argv[1] if len(sys.argv) > 1 else 100))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {
            "dense18.svm": made.dense_lines(18),
            "sparse60of10000.svm": made.sparse_lines(10_000, 60),
        }
        for file, batches in files.items():
            made.write(folder / file, batches, size=size)
            plain(folder / file)
        for file in files:
            with (folder / file).open("rb") as stream:
                text = stream.read(size // 5)
            text = text[: text.rindex(b"\n") + 1]
            for suffix, opener in OPENERS.items():
                path = folder / f"{file}.{suffix}"
                with opener(path, "wb") as stream:
                    stream.write(text)
                packed(path, len(text) / 1e6)


if __name__ == "__main__":
    main()
