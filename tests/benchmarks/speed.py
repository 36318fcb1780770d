"""Ahpatron's learning time beside its limit and beside one-example-at-a-time loops, in one run.

    python tests/benchmarks/speed.py [FOLDER [NAME...]]

Without FOLDER the sample data are played; with it, the paper's data sets (NAME.svm.xz), each with
the paper's settings (ε = 0.5), in one random order. The limit is what the same kernel values and
factorisations cost with no learning (limit.py). Times are medians of CPU time on one BLAS thread;
`spread` is the range of the learning times in percent of their median. All passes must make the
same mistakes.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from limit import PARTS, bare_pass, learning, observed
from one_at_a_time import ahpatron
from paper import DATASETS, Dataset

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source

TIMES = 5
EPSILON = 0.5
SAMPLES = (
    Dataset("rings", 0.1, 100, 0.0005, 0, 0),
    Dataset("breast_cancer", 1, 50, 0.0005, 0, 0),
    Dataset("sparse_text", 1, 100, 0.0005, 0, 0),
)


def main() -> None:
    names = sys.argv[2:]
    known = [replace(data, name=f"{data.name}.svm.xz") for data in DATASETS]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "sample_data"
    if len(sys.argv) == 1:
        known = [replace(data, name=f"{data.name}.svm") for data in SAMPLES]
    print(
        "data set        rounds  limit s  learn s spread  x limit  loop/ours  tuned/ours"
        "  greedy/ours   " + "  ".join(f"{part:>8}" for part in PARTS)
    )
    ratios = []
    for data in known:
        if names and data.name.removesuffix(".svm.xz") not in names:
            continue
        ratios.append(_line(folder, data))
    means = [math.prod(column) ** (1 / len(ratios)) for column in zip(*ratios, strict=True)]
    print(
        f"geometric mean                          {means[0]:9.2f} {means[1]:10.2f} "
        f"{means[2]:11.2f} {means[3]:12.2f}"
    )


def _line(folder: Path, data: Dataset) -> tuple[float, ...]:
    with open_source(str(folder / data.name)) as source:
        loaded = load(source, Preparation())
    order = np.random.default_rng([0, 0]).permutation(loaded.facts().rounds)
    stored, y = loaded.whole().rows, loaded.whole().labels[order]
    rows = stored.take(order) if isinstance(stored, CsrRows) else stored[order]
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    settings = {"budget": data.budget, "epsilon": EPSILON, "ridge": data.ridge}
    times: dict[str, list[float]] = {}
    counts = set()
    for _ in range(TIMES):  # interleaved, so that a noisy minute hits all of them
        work = observed(settings, rows, y, data.sigma)
        limit = bare_pass(work, rows, data.sigma, data.budget)
        ours = learning(settings, rows, y, data.sigma)
        greedy = learning({**settings, "selection": "greedy"}, rows, y, data.sigma)
        counts |= {(run.mistakes, run.margin_updates) for run in (work, ours)}
        spent = {"limit": limit, "ours": ours.seconds, "greedy": greedy.seconds}
        for name, tuned in (("loop", False), ("tuned", True)):
            start = time.process_time()
            counts.add(ahpatron(dense, y, sigma=data.sigma, tuned=tuned, **settings))
            spent[name] = time.process_time() - start
        spent |= {part: work.parts[part] / work.seconds for part in PARTS}
        for name, seconds in spent.items():
            times.setdefault(name, []).append(seconds)
    median = {name: statistics.median(values) for name, values in times.items()}
    spread = (max(times["ours"]) - min(times["ours"])) / median["ours"]
    ratios = (
        median["ours"] / median["limit"],
        median["loop"] / median["ours"],
        median["tuned"] / median["ours"],
        median["greedy"] / median["ours"],
    )
    print(
        f"{data.name.split('.')[0]:14} {len(y):7} {median['limit']:8.3f} {median['ours']:8.3f} "
        f"{spread:6.0%} {ratios[0]:8.2f} {ratios[1]:10.2f} {ratios[2]:11.2f} {ratios[3]:12.2f}   "
        + "  ".join(f"{median[part]:8.0%}" for part in PARTS)
        + ("" if len(counts) == 1 else f"  counts differ: {counts}"),
        flush=True,
    )
    return ratios


if __name__ == "__main__":
    main()
