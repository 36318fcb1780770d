"""Learning time of the block engine beside one-example-at-a-time loops, in one run.

    python tests/benchmarks/speed.py FOLDER [NAME...]

FOLDER holds the paper's data sets as NAME.svm.xz. Each is played in one random order with the
paper's settings (ε = 0.5); the smallest of three times is taken. All must make the same mistakes.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from one_at_a_time import ahpatron
from paper import DATASETS

from ahpatron_cli.core import Ahpatron, Gaussian, play
from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.examples import Preparation, load
from ahpatron_cli.data.source import open_source

TIMES = 3
EPSILON = 0.5


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    plain_ratios, tuned_ratios = [], []
    print("data set    rounds  mistakes  block s  plain loop s  ratio  tuned loop s  ratio")
    for data in DATASETS:
        if names and data.name not in names:
            continue
        with open_source(str(folder / f"{data.name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        order = np.random.default_rng([0, 0]).permutation(loaded.facts.rounds)
        stored, y = loaded.whole.rows, loaded.whole.labels[order]
        rows = stored.take(order) if isinstance(stored, CsrRows) else stored[order]
        dense = rows.dense() if isinstance(rows, CsrRows) else rows
        settings = {"budget": data.budget, "epsilon": EPSILON, "ridge": data.ridge}
        block, loops, counts = math.inf, {False: math.inf, True: math.inf}, set()
        for _ in range(TIMES):
            tally = play(Ahpatron(**settings), rows, y, Gaussian(sigma=data.sigma)).tally
            block = min(block, tally.seconds)
            counts.add((tally.mistakes, tally.margin_updates))
            for tuned in loops:
                start = time.perf_counter()
                counts.add(ahpatron(dense, y, sigma=data.sigma, tuned=tuned, **settings))
                loops[tuned] = min(loops[tuned], time.perf_counter() - start)
        plain_ratios.append(loops[False] / block)
        tuned_ratios.append(loops[True] / block)
        print(
            f"{data.name:10} {tally.rounds:7} {tally.mistakes:9} {block:8.3f} "
            f"{loops[False]:13.3f} {plain_ratios[-1]:6.2f} {loops[True]:13.3f} "
            f"{tuned_ratios[-1]:6.2f}" + ("" if len(counts) == 1 else f"  differ: {counts}"),
            flush=True,
        )
    for name, ratios in (("plain", plain_ratios), ("tuned", tuned_ratios)):
        mean = math.prod(ratios) ** (1 / len(ratios))
        print(f"geometric mean over the {name} loop: {mean:.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
