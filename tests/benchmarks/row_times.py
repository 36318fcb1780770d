"""Microseconds of processor time a row, and mistakes, of learners on the paper's six files.

    python tests/benchmarks/row_times.py DATA_FOLDER [--learners skegd,forks,avp-ogs] [--rows 20000]
        [--budget 400] [--repeats 2]

DATA_FOLDER holds NAME.svm.xz. Each learner runs on the first rows of permutation 0, with the
paper's σ and budget, or with `--budget` on all files. The least time of `--repeats` passes counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import DATASETS, NAMES, Dataset, one_pass, shuffled


def row(folder: Path, data: Dataset, learner: str, given: argparse.Namespace) -> str:
    """Time a row, and mistakes, of a learner on a data set."""
    from ahpatron_cli.core import REGISTRY

    X, y = shuffled(folder, data.name, given.rows)
    params = {}
    if "budget" in REGISTRY[learner].specs():
        params["budget"] = given.budget or data.budget
    passes = [one_pass(learner, params, data.sigma, X, y) for _ in range(given.repeats)]
    player, _ = passes[0]
    least = min(spent for _, spent in passes)
    micros = 1e6 * least / len(y)
    size = player.size
    return f"{micros:6.1f} µs ({player.tally.mistakes} of {len(y)}, |S| {size})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learners", default="skegd,forks,avp-ogs")
    parser.add_argument("--data", default=NAMES)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    for data in DATASETS:
        if data.name not in given.data.split(","):
            continue
        for learner in given.learners.split(","):
            text = row(given.folder, data, learner, given)
            print(f"{data.name:9} {learner:8} {text}", flush=True)


if __name__ == "__main__":
    main()
