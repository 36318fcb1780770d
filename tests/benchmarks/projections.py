"""Projectron++'s time beside that of its own matrix products, in one run.

    python tests/benchmarks/projections.py FOLDER [ROWS]

FOLDER holds susy.svm.xz; its first ROWS rows (20,000) are played at tolerance 0.1, in file order.
The products are what the update rule itself multiplies: `K^{-1}k` for every update, a rank-one
growth of K^{-1} for every example that joins, and the kernel values of every block. They are done
again on as many numbers, with no learning around them. CPU time, one BLAS thread.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from scipy.linalg.blas import dspmv, dspr

from ahpatron_cli.core import BLOCK, Gaussian, Player
from ahpatron_cli.core.learners.projectron_plus_plus import ProjectronPlusPlus
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import Inverse
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source


class Noted(Inverse):
    """Notes how large each product was."""

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[int] = []
        self.grown: list[int] = []

    def project(self, column: Floats, diagonal: float, gram: Floats) -> tuple[Floats, float]:
        self.looked.append(self.size)
        return super().project(column, diagonal, gram)

    def grow(self, d: Floats, squared: float, gram: Floats) -> None:
        self.grown.append(self.size)
        super().grow(d, squared, gram)


def main() -> None:
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    with open_source(str(Path(sys.argv[1]) / "susy.svm.xz")) as source:
        loaded = load(source, Preparation(limit=rows))
    X, y = loaded.whole().rows, loaded.whole().labels
    player = Player(ProjectronPlusPlus(tolerance=0.1), Gaussian())
    player.f.inverse = noted = Noted()
    sizes = []
    opened = player.f.open
    player.f.open = lambda block, labels: (sizes.append(player.f.size), opened(block, labels))
    start = time.process_time()
    player.feed(X, y)
    ours = time.process_time() - start
    parts = _products(noted, sizes, X)
    bare = sum(parts.values())
    print(f"{rows} rows, |S| {player.f.size}, {len(noted.looked)} projections")
    print("  ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items()))
    print(f"learning {ours:.2f} s, its products {bare:.2f} s: {ours / bare:.2f} x")


def _products(noted: Noted, sizes: list[int], X: np.ndarray) -> dict[str, float]:
    most = max(noted.looked) + 1
    packed = np.random.default_rng(0).random(most * (most + 1) // 2)
    vector = np.random.default_rng(1).random(most)
    watch = [time.process_time()]
    for size in noted.looked:
        if size:
            dspmv(size, 1.0, packed, vector[:size])
    watch.append(time.process_time())
    for size in noted.grown:
        if size:
            dspr(size, 1e-9, vector[:size], packed, overwrite_ap=1)
    watch.append(time.process_time())
    for number, size in enumerate(sizes):
        block = X[number * BLOCK : (number + 1) * BLOCK]
        left = X[: size + len(block)]
        np.exp(-np.abs(left @ block.T))
    watch.append(time.process_time())
    return dict(zip(("project", "grow", "kernel"), np.diff(watch).tolist(), strict=True))


if __name__ == "__main__":
    main()
