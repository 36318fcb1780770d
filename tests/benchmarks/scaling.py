"""Time per round of every learner as T, B and d double: a wrong order of growth is seen.

    python tests/benchmarks/scaling.py [PICTURE]

A made-up stream of two noisy classes on a wavy border, the same seed always. One of T, B, d
doubles, the others stay as they are. The table gives the time per round of the last setting and
the order of growth over the last doublings: p in `time per round ~ size^p`. CPU time, one BLAS
thread, the least of three. With PICTURE (svg, png, pdf) the curves are drawn.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned

from ahpatron_cli.core import REGISTRY, Gaussian, Player

BASE = {"T": 8000, "B": 200, "d": 20}
SIZES = {
    "T": (2000, 4000, 8000, 16000, 32000),
    "B": (50, 100, 200, 400, 800),
    "d": (10, 20, 40, 80, 160),
}
PATIENCE = 6.0
"""Seconds: a learner that took longer for a size is not asked for the next one."""
TIMES = 3

Curves = dict[tuple[str, str], list[tuple[int, float]]]


def main() -> None:
    curves: Curves = {}
    print(
        f"{'learner':13} "
        + "  ".join(f"{f'µs at {n}={s[-1]}':>15} {'p':>5}" for n, s in SIZES.items())
    )
    for learner in REGISTRY:
        line = f"{learner:13} "
        for name, sizes in SIZES.items():
            points = list(_times(learner, name, sizes))
            curves[learner, name] = points
            (small, before), (large, after) = points[max(len(points) - 3, 0)], points[-1]
            order = math.log(after / before) / math.log(large / small) if large > small else 0.0
            mark = " " if large == sizes[-1] else "<"
            line += f"{after:14.1f}{mark} {order:5.2f}  "
        print(line, flush=True)
    print("<: smaller sizes only; the next would take too long")
    if len(sys.argv) > 1:
        draw(curves, sys.argv[1])


def _times(learner: str, name: str, sizes: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    for size in sizes:
        setting = {**BASE, name: size}
        rows, labels = stream(setting["T"], setting["d"])
        kind = REGISTRY[learner]
        names = [n for n in ("budget", "features") if n in kind.specs()]
        best = math.inf
        for _ in range(TIMES):
            player = Player(
                kind(**dict.fromkeys(names, setting["B"])),
                Gaussian(sigma=math.sqrt(setting["d"])),
                horizon=len(labels),
            )
            start = time.process_time()
            player.feed(rows, labels)
            best = min(best, time.process_time() - start)
            if best > PATIENCE / 3:
                break
        yield size, 1e6 * best / len(labels)
        if best > PATIENCE:
            return


def stream(rounds: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a normal distribution; one in ten labels is wrong."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(rounds, width))
    truth = np.sign(np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2])
    flips = np.where(rng.random(rounds) < 0.1, -1.0, 1.0)
    return rows, np.where(truth == 0, 1.0, truth) * flips


def draw(curves: Curves, path: str) -> None:
    """Three panels, one a size; both axes by doublings, and a line of order 1 to compare with."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 5), sharey=True, layout="constrained")
    colours = pyplot.colormaps["tab20"]
    titles = {"T": "T, rounds", "B": "B, budget or features", "d": "d, width of the data"}
    for panel, (name, sizes) in zip(panels, SIZES.items(), strict=True):
        for number, learner in enumerate(REGISTRY):
            x, y = zip(*curves[learner, name], strict=True)
            dash = ("-", "--")[number % 2]
            panel.plot(x, y, dash, marker=".", color=colours(number), label=learner)
        panel.plot(
            sizes, [2 * size / sizes[0] for size in sizes], ":", color="grey", label="order 1"
        )
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.set_xlabel(titles[name])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("µs a round")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    main()
