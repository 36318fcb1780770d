"""Time per round of every learner at B = D = 400, relative to ahpatron.

    python tests/benchmarks/per_round.py FOLDER          # ijcnn1.svm.xz and a9a.svm.xz

Processor time on one BLAS thread, the least of three; a pass over 4 seconds is not repeated, one
over 30 seconds is cut.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from common import shuffled

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import rows_of

SETS = (("ijcnn1", 1.0, 40_000), ("a9a", 2.0, 20_000))
VARIANTS = [("bsgd", {"maintenance": word}) for word in ("merge", "project")]
TIMES, PATIENCE, LONGEST, PIECE = 3, 4.0, 30.0, 1024


def main() -> None:
    for name, sigma, rounds in SETS:
        rows, y = shuffled(Path(sys.argv[1]), name, rounds)
        unit = 0.0
        for learner, params in [*((learner, {}) for learner in REGISTRY), *VARIANTS]:
            sizes = dict.fromkeys({"budget", "features"} & REGISTRY[learner].specs().keys(), 400)
            times = []
            while len(times) < TIMES and sum(times) < PATIENCE:
                made = REGISTRY[learner](**sizes, **params)
                player = Player(made, Gaussian(sigma=sigma), horizon=len(y))
                start = time.process_time()
                for first in range(0, len(y), PIECE):
                    piece = slice(first, min(first + PIECE, len(y)))
                    player.feed(rows_of(rows, piece), y[piece])
                    if time.process_time() - start > LONGEST:
                        break
                times.append(time.process_time() - start)
            done = player.tally.rounds
            best = 1e6 * min(times) / done
            unit = unit or best
            cells = f"{best:8.2f} µs {best / unit:8.2f} x ahpatron  |S| {player.size}"
            cut = "" if done == len(y) else f", {done} rounds"
            print(f"{name:8} {' '.join((learner, *params.values())):18} {cells}{cut}", flush=True)


if __name__ == "__main__":
    main()
