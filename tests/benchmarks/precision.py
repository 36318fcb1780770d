"""What `--precision single` does to Ahpatron's time and mistakes on the paper's data sets.

    python tests/benchmarks/precision.py FOLDER [NAME...]

FOLDER holds NAME.svm.xz. Paper settings, ε = 0.5, the same random orders for both; CPU time, one
BLAS thread, median of the paired ratios.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from paper import DATASETS

from ahpatron_cli.core import Ahpatron, Gaussian, Player
from ahpatron_cli.core.rows import rows_in
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source

ORDERS = 5


def main() -> None:
    names = sys.argv[2:]
    gains = []
    print("data set    AMR % double  single  difference ± se  speed-up  rounds predicted otherwise")
    for data in DATASETS:
        if names and data.name not in names:
            continue
        with open_source(str(Path(sys.argv[1]) / f"{data.name}.svm.xz")) as source:
            whole = load(source, Preparation()).whole
        rates: dict[str, list[float]] = {"double": [], "single": []}
        ratios, others = [], []
        for order in range(ORDERS):
            chosen = np.random.default_rng([0, order]).permutation(len(whole.labels))
            rows, labels = rows_in(whole.rows, chosen), whole.labels[chosen]
            seconds, signs = [], []
            for precision in rates:
                learner = Ahpatron(budget=data.budget, epsilon=0.5, ridge=data.ridge)
                player = Player(learner, Gaussian(sigma=data.sigma, precision=precision))
                start = time.process_time()
                signs.append(player.feed(rows, labels) >= 0)
                seconds.append(time.process_time() - start)
                rates[precision].append(100 * player.tally.mistakes / len(labels))
            ratios.append(seconds[0] / seconds[1])
            others.append(100 * float(np.mean(signs[0] != signs[1])))
        gap = np.subtract(rates["single"], rates["double"])
        gains.append(statistics.median(ratios))
        print(
            f"{data.name:10} {np.mean(rates['double']):13.3f} {np.mean(rates['single']):7.3f} "
            f"{gap.mean():+11.3f} ± {gap.std(ddof=1) / math.sqrt(ORDERS):.3f} {gains[-1]:9.2f} "
            f"{np.mean(others):12.2f} %",
            flush=True,
        )
    print(f"geometric mean of the speed-ups: {math.prod(gains) ** (1 / len(gains)):.2f}")


if __name__ == "__main__":
    main()
