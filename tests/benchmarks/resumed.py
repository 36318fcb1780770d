"""Passes that are saved and resumed, compared with uninterrupted ones on the paper's data sets.

    python tests/benchmarks/resumed.py FOLDER [ROWS]

Each learner runs on the first ROWS rows of a random order of each file, once in one piece and once
saved and resumed after half of them: at a multiple of 64, where all scores must be identical, and
five rows later, where the counts must be equal. Printed are the cases that differ, and a summary.
"""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from paper import DATASETS

from ahpatron_cli.core import REGISTRY, CsrRows, Gaussian, Player
from ahpatron_cli.core.rows import rows_of
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source

LEFT_OUT = ("krls", "polk", "skegd", "tighter-perceptron")  # slow here; the laws have them


def main() -> None:
    folder, rows = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6000
    equal = {"identical": 0, "same counts": 0}
    cases = 0
    for data in DATASETS:
        with open_source(str(folder / f"{data.name}.svm.xz")) as source:
            whole = load(source, Preparation()).whole()
        order = np.random.default_rng(0).permutation(len(whole.labels))[:rows]
        sparse = isinstance(whole.rows, CsrRows)
        X, y = whole.rows.take(order) if sparse else whole.rows[order], whole.labels[order]
        for name in [name for name in REGISTRY if name not in LEFT_OUT]:
            kind = REGISTRY[name]
            learner = kind(**({"budget": data.budget} if "budget" in kind.specs() else {}))
            kernel = Gaussian(sigma=data.sigma)
            expected = Player(learner, kernel, horizon=rows)
            scores = expected.feed(X, y)
            cases += 1
            half = rows // 128 * 64
            for cut in (half, half + 5):
                first = Player(learner, kernel, horizon=rows)
                begun = first.feed(rows_of(X, slice(0, cut)), y[:cut])
                second = Player(kind(**first.learner.params()), kernel, seed=(99,))
                second.load_state_dict(copy.deepcopy(first.state_dict()))
                both = np.append(begun, second.feed(rows_of(X, slice(cut, rows)), y[cut:]))
                counts = [
                    (p.tally.mistakes, p.tally.updates, p.tally.margin_updates, p.size)
                    for p in (expected, second)
                ]
                same = counts[0] == counts[1]
                if cut == half:
                    same = same and np.array_equal(both, scores)
                equal["identical" if cut == half else "same counts"] += same
                if not same:
                    print(f"{data.name} {name} cut at {cut}: {counts}", flush=True)
    print(f"{cases} cases: {equal}")


if __name__ == "__main__":
    main()
