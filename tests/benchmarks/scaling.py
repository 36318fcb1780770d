"""Time per round of every learner as T, B and d double: a wrong order of growth is seen.

    python tests/benchmarks/scaling.py [PICTURE]

A made-up stream of two noisy classes on a wavy border, the same seed always. One of T, B, d
doubles, the others stay as they are. The table gives the time per round of the last setting and
the order of growth over the last doublings: p in `time per round ~ size^p`. CPU time, one BLAS
thread, the least of three. A pass that takes longer than 4 seconds is given up, and larger sizes
are left out; all of it takes some minutes. With PICTURE (svg, png, pdf) the curves are drawn.
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
PATIENCE = 4.0
"""Seconds: a pass that takes longer is given up, and larger sizes are not tried."""
PIECE = 1024
"""Rounds between two looks at the clock."""
TIMES = 3

Curves = dict[tuple[str, str], list[tuple[int, float]]]


def main() -> None:
    curves: Curves = {}
    print(
        f"{'learner':18} "
        + "  ".join(f"{f'µs at {n}={s[-1]}':>15} {'p':>5}" for n, s in SIZES.items())
    )
    for learner in REGISTRY:
        line = f"{learner:18} "
        for name, sizes in SIZES.items():
            curves[learner, name] = points = list(_times(learner, name, sizes))
            line += _cell(points, sizes[-1])
        print(line, flush=True)
    print(f"<: smaller sizes only; the next takes longer than {PATIENCE:g} s.  -: none, or no B")
    if len(sys.argv) > 1:
        draw(curves, sys.argv[1])


def _cell(points: list[tuple[int, float]], last: int) -> str:
    """The last point of a curve, and the order of growth up to there."""
    if not points:
        return f"{'-':>14}  {'-':>5}  "
    (small, before), (large, after) = points[max(len(points) - 3, 0)], points[-1]
    order = math.log(after / before) / math.log(large / small) if large > small else 0.0
    return f"{after:14.1f}{' ' if large == last else '<'} {order:5.2f}  "


def _times(learner: str, name: str, sizes: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    """Sizes and microseconds a round; none as B grows, of a learner that has no B."""
    budgets = [n for n in ("budget", "features") if n in REGISTRY[learner].specs()]
    if name == "B" and not budgets:
        return
    for size in sizes:
        setting = {**BASE, name: size}
        rows, labels = stream(setting["T"], setting["d"])
        best = math.inf
        for _ in range(TIMES):
            player = Player(
                REGISTRY[learner](**dict.fromkeys(budgets, setting["B"])),
                Gaussian(sigma=math.sqrt(setting["d"])),
                horizon=len(labels),
            )
            best = min(best, _seconds(player, rows, labels))
            if best > PATIENCE / TIMES:
                break
        if best > PATIENCE:
            return
        yield size, 1e6 * best / len(labels)


def _seconds(player: Player, rows: np.ndarray, labels: np.ndarray) -> float:
    """Processor time of a pass; infinite, if it was given up."""
    start = time.process_time()
    for first in range(0, len(labels), PIECE):
        player.feed(rows[first : first + PIECE], labels[first : first + PIECE])
        if time.process_time() - start > PATIENCE:
            return math.inf
    return time.process_time() - start


def stream(rounds: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a normal distribution; one in ten labels is wrong."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(rounds, width))
    truth = np.sign(np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2])
    flips = np.where(rng.random(rounds) < 0.1, -1.0, 1.0)
    return rows, np.where(truth == 0, 1.0, truth) * flips


def _was_cut(curves: Curves, learner: str) -> bool:
    """Whether a learner was not asked for all sizes; to have no B is no reason."""
    played = {name: len(curves[learner, name]) for name in SIZES}
    return any(count < len(SIZES[name]) for name, count in played.items() if count or name != "B")


def draw(curves: Curves, path: str) -> None:
    """Three panels, one a size; both axes by doublings, and a line of order 1 to compare with."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "growth"}  # small, and the same bytes
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 6), sharey=True, layout="constrained")
    colours = pyplot.colormaps["tab10"]
    titles = {"T": "T, rounds", "B": "B, budget or features", "d": "d, width of the data"}
    for panel, (name, sizes) in zip(panels, SIZES.items(), strict=True):
        for number, learner in enumerate(REGISTRY):
            points = curves[learner, name]
            x, y = zip(*points, strict=True) if points else ((), ())
            dash = ("-", "--", ":")[number // 10 % 3]
            mark = " *" if _was_cut(curves, learner) else ""
            style = {"linewidth": 1.4, "marker": "^" if len(x) == 1 else ""}  # one size is no line
            panel.plot(x, y, dash, color=colours(number % 10), label=learner + mark, **style)
        order_1 = [2 * size / sizes[0] for size in sizes]
        panel.plot(sizes, order_1, color="lightgrey", linewidth=3, zorder=0, label="order 1")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.set_xlabel(titles[name])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("µs a round")
    base = ", ".join(f"{name} = {size:,}" for name, size in BASE.items())
    figure.suptitle(f"One of T, B and d doubles; else {base}", fontsize=11)
    note = f"* larger sizes: over {PATIENCE:g} s a pass"
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, title=note
    ).get_title().set_fontsize(7)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


if __name__ == "__main__":
    main()
