"""Time per round of every learner at B = D = 400, beside Ahpatron's, in one run.

    python tests/benchmarks/per_round.py FOLDER

FOLDER holds ijcnn1.svm.xz and a9a.svm.xz. One random order of each; the smallest of five
times, or of as many as 4 seconds allow. A pass that takes longer than 30 seconds is given up.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from ahpatron_cli.core import REGISTRY
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.runner import LearnerSpec, Run, RunOptions

SETS = (("ijcnn1", 1.0, 40_000), ("a9a", 2.0, 20_000))
TIMES, PATIENCE, LONGEST = 5, 4.0, 30.0


def main() -> None:
    folder = Path(sys.argv[1])
    for name, sigma, rounds in SETS:
        with open_source(str(folder / f"{name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        order = RunOptions(1, 0, shuffle=True).order(0, loaded.facts().rounds)
        assert order is not None
        pieces = list(loaded.batches(order[:rounds]))
        unit = 0.0
        others = [("bsgd", {"maintenance": word}) for word in ("merge", "project")]
        for learner, params in [*((learner, {}) for learner in REGISTRY), *others]:
            if "budget" in REGISTRY[learner].specs():
                params = {"budget": 400, **params}
            setup = LearnerSpec(learner, params, "gaussian", {"sigma": sigma})
            best, spent = float("inf"), 0.0
            for _ in range(TIMES):
                one = Run(setup, name, 0, 0, rounds)
                for piece in pieces:
                    one.feed(piece)
                    if one.result().record.seconds > LONGEST:
                        break
                record = one.result().record
                best = min(best, 1e6 * record.seconds / record.rounds)
                spent += record.seconds
                if spent > PATIENCE:
                    break
            unit = unit or best
            shown = params.get("maintenance", learner)
            given_up = f", given up after {record.rounds}" if record.rounds < rounds else ""
            print(
                f"{name:8} {shown:18} {best:8.2f} µs a round {best / unit:6.2f} x ahpatron, "
                f"|S| {record.support_size}, {record.updates} updates{given_up}",
                flush=True,
            )


if __name__ == "__main__":
    main()
