"""Wide, sparse data: peak memory, reading and kernel speed, beside scipy.sparse, in one run.

    python tests/benchmarks/wide.py [ROWS]

Makes ROWS rows (20,000 by default) of 60 values out of a million columns, and as many with the
50,000 columns of a text, where few words are in many rows. Each file is loaded whole, played in
file order and shuffled, each time in a process of its own whose peak memory is shown. The kernel
is measured in place: values of the Gaussian kernel between blocks of 64 rows and 400 kept ones,
beside the bare product `X @ S.T` of scipy.sparse over the same blocks (as CSR, and made dense).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import made  # after the threads are pinned
import numpy as np
import scipy.sparse

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.kernels import Gaussian
from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source

KEPT, TIMES = 400, 5
LOAD = """
import sys
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source
with open_source(sys.argv[1]) as source:
    load(source, Preparation())
"""


def peak(command: list[str]) -> tuple[float, float]:
    """Peak resident MiB and processor seconds of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def per_value(count: int, work: Callable[[], object]) -> float:
    """Nanoseconds of processor time per kernel value, the median of a few."""
    spent = []
    for _ in range(TIMES):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return 1e9 * statistics.median(spent) / count


def kernels(path: Path) -> None:
    with open_source(str(path)) as source:
        rows = load(source, Preparation()).whole().rows
    assert isinstance(rows, CsrRows), "wide rows are never made dense"
    order = np.random.default_rng(0).permutation(len(rows))
    kept, played = rows.take(order[:KEPT]), rows.take(order[KEPT : KEPT + 40 * BLOCK])
    kernel = Gaussian(sigma=4.0)
    S, X = kernel.points(kept), kernel.points(played)
    parts = [X.slice(start, start + BLOCK) for start in range(0, X.size, BLOCK)]
    turned = _matrix(kept, rows.width).T.tocsr()
    matrices = [
        _matrix(played.slice(start, start + BLOCK), rows.width)
        for start in range(0, len(played), BLOCK)
    ]
    S.products(parts[0])  # what is made once for all blocks
    count = KEPT * len(played)
    for name, work in {
        "our kernel values": lambda: [kernel.between(S, part) for part in parts],
        "our products": lambda: [S.products(part) for part in parts],
        "X @ S.T, sparse": lambda: [x @ turned for x in matrices],
        "X @ S.T, made dense": lambda: [(x @ turned).toarray() for x in matrices],
    }.items():
        print(f"  {name:<20} {per_value(count, work):6.2f} ns a value", flush=True)


def _matrix(rows: CsrRows, width: int) -> scipy.sparse.csr_matrix:
    shape = (len(rows), width)
    return scipy.sparse.csr_matrix((rows.values, rows.columns, rows.indptr), shape=shape)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    run = [sys.executable, "-m", "ahpatron_cli", "run", "--format", "csv", "-q", "--sigma", "4"]
    with tempfile.TemporaryDirectory() as name:
        files = {
            "million.svm": made.sparse_lines(1_000_000, 60),
            "text.svm": made.sparse_lines(50_000, 120, popularity=1.0),
        }
        for file, batches in files.items():
            path = Path(name) / file
            size = made.write(path, batches, rows=count)
            print(f"{file}: {count:,} rows, {size / 1e6:.1f} MB", flush=True)
            for how, command in {
                "load": [sys.executable, "-c", LOAD, str(path)],
                "run": [*run, str(path)],
                "run --shuffle": [*run, str(path), "--shuffle"],
            }.items():
                memory, seconds = peak(command)
                print(f"  {how:<14} {memory:6.0f} MiB, {seconds:6.2f} s of processor", flush=True)
            kernels(path)


if __name__ == "__main__":
    main()
