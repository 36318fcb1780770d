"""Time per round of every learner: at one budget on two files, or as T, B and d double.

    python tests/benchmarks/per_round.py FOLDER          # ijcnn1.svm.xz and a9a.svm.xz, B = D = 400
    python tests/benchmarks/per_round.py --growth

Processor time on one BLAS thread, the least of three; a pass over 4 seconds is not repeated.
--growth has a made stream of two noisy classes; one of T, B and d doubles, the others stay. The
table has the time per round of the largest size and the order of growth p over the last doublings,
in `time per round ~ size^p`. A pass that takes longer than 4 seconds is given up there, and larger
sizes are left out.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import shuffled

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import rows_of

SETS = (("ijcnn1", 1.0, 40_000), ("a9a", 2.0, 20_000))
BASE = {"T": 8000, "B": 200, "d": 20}
SIZES = {
    "T": (2000, 4000, 8000, 16000, 32000),
    "B": (50, 100, 200, 400, 800),
    "d": (10, 20, 40, 80, 160),
}
TIMES, PATIENCE, PIECE = 3, 4.0, 1024
"""Passes; seconds after which none is repeated; rounds between two looks at the clock."""


def least(
    learner: str, budget: int, rows: Any, y: Any, sigma: float, longest: float, **params: Any
) -> tuple[float, Player]:
    """The least time per round in µs, and the last pass; one over `longest` seconds is cut."""
    sizes = dict.fromkeys({"budget", "features"} & REGISTRY[learner].specs().keys(), budget)
    best = math.inf
    for _ in range(TIMES):
        kernel = Gaussian(sigma=sigma)
        player = Player(REGISTRY[learner](**sizes, **params), kernel, horizon=len(y))
        start = time.process_time()
        for first in range(0, len(y), PIECE):
            last = min(first + PIECE, len(y))
            player.feed(rows_of(rows, slice(first, last)), y[first:last])
            if time.process_time() - start > longest:
                break
        spent = time.process_time() - start
        best = min(best, 1e6 * spent / player.tally.rounds)
        if spent > PATIENCE:
            break
    return best, player


def files(folder: Path) -> None:
    """Every learner on the two files, relative to ahpatron."""
    variants = [("bsgd", {"maintenance": word}) for word in ("merge", "project")]
    for name, sigma, rounds in SETS:
        rows, y = shuffled(folder, name, rounds)
        unit = 0.0
        for learner, params in [*((learner, {}) for learner in REGISTRY), *variants]:
            best, player = least(learner, 400, rows, y, sigma, 30.0, **params)
            unit = unit or best
            shown = " ".join((learner, *params.values()))
            given_up = "" if player.tally.rounds == len(y) else f", {player.tally.rounds} rounds"
            cells = f"{best:8.2f} µs {best / unit:8.2f} x ahpatron  |S| {player.size}"
            print(f"{name:8} {shown:18} {cells}{given_up}", flush=True)


def stream(rounds: int, width: int) -> tuple[Any, Any]:
    """Points of a normal distribution; one in ten labels is wrong."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(rounds, width))
    truth = np.where(np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] >= 0, 1.0, -1.0)
    return rows, truth * np.where(rng.random(rounds) < 0.1, -1.0, 1.0)


def curve(learner: str, name: str) -> list[tuple[int, float]]:
    """Sizes and µs per round; none as B grows, for a learner that has no B."""
    points: list[tuple[int, float]] = []
    if name == "B" and not {"budget", "features"} & REGISTRY[learner].specs().keys():
        return points
    for size in SIZES[name]:
        setting = {**BASE, name: size}
        rows, y = stream(setting["T"], setting["d"])
        best, player = least(learner, setting["B"], rows, y, math.sqrt(setting["d"]), PATIENCE)
        if player.tally.rounds < len(y):
            break
        points.append((size, best))
    return points


def growth() -> None:
    """A line per learner: time and order of growth in T, B and d."""
    heads = (f"{f'µs at {name}={sizes[-1]}':>15} {'p':>5}" for name, sizes in SIZES.items())
    print(f"{'learner':18} " + "  ".join(heads))
    for learner in REGISTRY:
        line = f"{learner:18} "
        for name, sizes in SIZES.items():
            points = curve(learner, name)
            if len(points) < 2:
                line += f"{'-':>15} {'-':>5}  "
                continue
            (small, before), (large, after) = points[max(len(points) - 3, 0)], points[-1]
            order = math.log(after / before) / math.log(large / small)
            line += f"{after:14.1f}{' ' if large == sizes[-1] else '<'} {order:5.2f}  "
        print(line, flush=True)
    print(f"<: smaller sizes only; the next takes longer than {PATIENCE:g} s.  -: no B")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--growth"]:
        growth()
    else:
        files(Path(sys.argv[1]))
