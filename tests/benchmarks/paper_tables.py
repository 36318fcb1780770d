"""The paper's two AMR tables, cell by cell: ours beside the paper's.

    python tests/benchmarks/paper_tables.py FOLDER [--data NAME,NAME] [--learners NAME,NAME]
                                            [--permutations N] [--limit ROWS]
                                            [--tolerances T,T]

FOLDER holds NAME.svm.xz. Grids are the paper's: step 10^{-3..3}/√T for the gradient family,
tolerance 0.1 and 0.9 for the Projectrons (`rule=full`), ε 0.5..0.9 for Ahpatron; the best mean AMR
of a grid is shown. A cell is marked `*` where it differs from the paper's by more than three of the
paper's standard deviations plus 0.1 points. `--limit` plays only the first rows of each order.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # threads are pinned
from paper import DATASETS, EPSILONS, FIGURES, Dataset, Figure

from ahpatron_cli.data.dataset import Dataset as Loaded
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.runner import LearnerSpec, Run, RunOptions, RunResult


def grid(
    figure: Figure, data: Dataset, rounds: int, tolerances: Sequence[float]
) -> list[Mapping[str, float | str]]:
    """All settings that the paper chose from."""
    steps = [10.0**power / math.sqrt(rounds) for power in range(-3, 4)]
    match figure.learner:
        case "ahpatron":
            fixed = {"budget": figure.size, "ridge": data.ridge}
            return [{**fixed, "epsilon": epsilon} for epsilon in EPSILONS]
        case "fogd":
            return [{"features": figure.size, "step": step} for step in steps]
        case "bogd++" | "nogd":
            return [{"budget": figure.size, "step": step} for step in steps]
        case "pomdr":
            return [{"budget": figure.size}]
        case "projectron":
            return [{"tolerance": tolerance} for tolerance in tolerances]
        case "projectron++":
            return [{"tolerance": tolerance, "rule": "full"} for tolerance in tolerances]
    raise ValueError(figure.learner)


def play(
    loaded: Loaded, setup: LearnerSpec, path: str, repeat: int, limit: int | None
) -> RunResult:
    """One pass over one permutation, or over its first rows."""
    order = RunOptions(10, 0, shuffle=True).order(repeat, loaded.facts().rounds)
    assert order is not None
    one = Run(setup, path, 0, repeat, len(order[:limit]))
    for piece in loaded.batches(order[:limit]):
        one.feed(piece)
    return one.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default=",".join(data.name for data in DATASETS))
    parser.add_argument("--learners", default="")
    parser.add_argument("--permutations", type=int, default=10)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--tolerances", default="0.1,0.9")
    given = parser.parse_args()
    tolerances = [float(value) for value in given.tolerances.split(",")]
    print("table         data set  learner       best setting        AMR %         paper         ")
    for data in DATASETS:
        if data.name not in given.data.split(","):
            continue
        with open_source(str(given.folder / f"{data.name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        for figure in FIGURES:
            if figure.dataset != data.name:
                continue
            if given.learners and figure.learner not in given.learners.split(","):
                continue
            rounds = min(loaded.facts().rounds, given.limit or loaded.facts().rounds)
            settings = grid(figure, data, rounds, tolerances)
            show(figure, data, loaded, settings, given.permutations, given.limit)


def show(
    figure: Figure,
    data: Dataset,
    loaded: Loaded,
    settings: Sequence[Mapping[str, float | str]],
    permutations: int,
    limit: int | None,
) -> None:
    """Play a cell and print it."""
    rounds = min(loaded.facts().rounds, limit or loaded.facts().rounds)
    results: dict[str, list[RunResult]] = defaultdict(list)
    for params in settings:
        setup = LearnerSpec(figure.learner, params, "gaussian", {"sigma": data.sigma})
        chosen = ",".join(
            f"{n}={v:.3g}" for n, v in params.items() if n in ("step", "epsilon", "tolerance")
        )
        for repeat in range(permutations):
            results[chosen].append(play(loaded, setup, data.name, repeat, limit))
    best = min(results, key=lambda key: fmean(r.record.mistake_rate for r in results[key]))
    rates = [100 * r.record.mistake_rate for r in results[best]]
    spread = f"{stdev(rates):.2f}" if len(rates) > 1 else "  – "
    support = np.mean([r.record.support_size or 0 for r in results[best]])
    seconds = fmean(r.record.seconds for r in results[best])
    off = fmean(rates) - figure.amr
    mark = "*" if abs(off) > 3 * figure.sd + 0.1 else " "
    print(
        f"{figure.table:13} {figure.dataset:9} {figure.learner:13} {best:16} "
        f"{fmean(rates):6.2f} ± {spread}  {figure.amr:6.2f} ± {figure.sd:.2f} {off:+6.2f} {mark} "
        f"kept {support:.0f} ({figure.size}), {seconds:.2f} s a pass, {len(rates)} x {rounds}",
        flush=True,
    )


if __name__ == "__main__":
    main()
