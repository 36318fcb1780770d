"""Counts of avp-ogs and forks against those of independent implementations.

    python tests/benchmarks/gold.py DATA_FOLDER

DATA_FOLDER holds phishing.svm.xz. The rows are in the order `default_rng(0).permutation(T)`; the
command `run` permutes and seeds differently. Exit code 1 if any count differs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import read, take

from ahpatron_cli.core import REGISTRY, Gaussian, Player


@dataclass(frozen=True)
class Gold:
    """A run of a learner on phishing, and its counts: mistakes, |S|, updates, as far as known."""

    learner: str
    sigma: float
    counts: tuple[int, ...]
    params: dict[str, Any]
    seed: int = 0


WIDE = {"budget": 400, "sketch": 300, "samples": 200, "rank": 30, "cycle": 3316}
NARROW = {"budget": 100, "sketch": 75, "samples": 50, "rank": 7, "cycle": 3316}
MIDDLE = {**NARROW, "rank": 20}
RUNS = (
    Gold("avp-ogs", 1.0, (773, 605, 1925), {}),
    Gold("avp-ogs", 2.0, (979, 114, 2863), {}),
    Gold("forks", 1.0, (825,), WIDE),
    Gold("forks", 1.0, (810,), WIDE, seed=1),
    Gold("forks", 1.0, (1358,), NARROW),
    Gold("forks", 1.0, (1152,), NARROW, seed=1),
    Gold("forks", 1.0, (842,), MIDDLE),
    Gold("forks", 1.0, (915,), MIDDLE, seed=1),
)


def main() -> None:
    folder = Path(sys.argv[1])
    X, y = read(folder / "phishing.svm.xz")
    order = np.random.default_rng(0).permutation(len(y))
    rows = take(X, order)
    labels = y[order]
    different = 0
    for gold in RUNS:
        learner = REGISTRY[gold.learner](**gold.params)
        kernel = Gaussian(sigma=gold.sigma)
        player = Player(learner, kernel, seed=(gold.seed,), horizon=len(labels))
        player.feed(rows, labels)
        tally = player.tally
        counts = (tally.mistakes, player.f.size, tally.updates)[: len(gold.counts)]
        verdict = "equal" if counts == gold.counts else f"differs from {gold.counts}"
        different += counts != gold.counts
        print(f"{gold.learner} {gold.params} σ {gold.sigma} seed {gold.seed}: {counts} {verdict}")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
