"""Learning time of the block engine beside the one-example-at-a-time loop, in one run.

    python tests/benchmarks/speed.py FOLDER [NAME...]

FOLDER holds the paper's data sets as NAME.svm.xz. Each is played in one random order with the
paper's settings (ε = 0.5); the smallest of three times is taken. Both must make the same mistakes.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned

from ahpatron_cli.core import Ahpatron, Gaussian, play
from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.examples import Preparation, load
from ahpatron_cli.data.source import open_source

sys.path.insert(0, str(Path(__file__).parent))
from one_at_a_time import ahpatron
from paper import DATASETS

TIMES = 3
EPSILON = 0.5


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    ratios = []
    print("data set    rounds   mistakes    block s   loop s   ratio")
    for data in DATASETS:
        if names and data.name not in names:
            continue
        with open_source(str(folder / f"{data.name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        order = np.random.default_rng([0, 0]).permutation(loaded.facts.rounds)
        stored, y = loaded.whole.rows, loaded.whole.labels[order]
        rows = stored.take(order) if isinstance(stored, CsrRows) else stored[order]
        dense = rows.dense() if isinstance(rows, CsrRows) else rows
        block, loop = [], []
        for _ in range(TIMES):
            learner = Ahpatron(budget=data.budget, epsilon=EPSILON, ridge=data.ridge)
            tally = play(learner, rows, y, Gaussian(sigma=data.sigma)).tally
            block.append(tally.seconds)
            start = time.perf_counter()
            counts = ahpatron(
                dense,
                y,
                sigma=data.sigma,
                budget=data.budget,
                epsilon=EPSILON,
                ridge=data.ridge,
            )
            loop.append(time.perf_counter() - start)
            same = counts == (tally.mistakes, tally.margin_updates)
        ratio = min(loop) / min(block)
        ratios.append(ratio)
        print(
            f"{data.name:10} {tally.rounds:7} {tally.mistakes:10} {min(block):10.3f} "
            f"{min(loop):8.3f} {ratio:7.2f}" + ("" if same else f"  mistakes differ: {counts}"),
            flush=True,
        )
    print(f"geometric mean of the ratios: {math.prod(ratios) ** (1 / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
