"""Ahpatron's learning time beside its limit and beside one-example-at-a-time loops, in one run.

    python tests/benchmarks/speed.py [FOLDER [NAME...]]

Without FOLDER the sample data are played; with it, the paper's data sets (NAME.svm.xz), each with
the paper's settings (ε = 0.5), in one random order. The limit is what the same kernel values and
factorisations cost with no learning (limit.py). Times are medians of CPU time on one BLAS thread;
`spread` is the range of the learning times in percent of their median. All passes must make the
same mistakes.

`exp` is several times quicker with AVX-512, so the ratios depend on it. On a CPU that has it, see
both: NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" and
OPENBLAS_CORETYPE=Haswell do without it.
"""

from __future__ import annotations

import ctypes
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from limit import PARTS, bare_pass, learning, observed
from one_at_a_time import ahpatron
from paper import DATASETS, Dataset

from ahpatron_cli.core import Ahpatron, AhpatronPlus
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


COLUMNS = ("limit", "plus", "loop", "tuned", "greedy")
"""ours/limit, and each of the others in units of ours."""


def main() -> None:
    names = sys.argv[2:]
    known = [replace(data, name=f"{data.name}.svm.xz") for data in DATASETS]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "sample_data"
    if len(sys.argv) == 1:
        known = [replace(data, name=f"{data.name}.svm") for data in SAMPLES]
    print(f"NumPy uses {', '.join(_numpy_features())}; OpenBLAS plays for {_blas_core()}")
    print(
        "data set       x limit  ahpatron+/ours  loop/ours  tuned/ours  greedy/ours   "
        + "  ".join(f"{part:>8}" for part in PARTS)
        + "   rounds  limit s  learn s  µs a round  spread"
    )
    ratios = []
    for data in known:
        if names and data.name.removesuffix(".svm.xz") not in names:
            continue
        ratios.append(_line(folder, data))
    means = [math.prod(column) ** (1 / len(ratios)) for column in zip(*ratios, strict=True)]
    print(f"geometric mean {_ratios(means)}")
    small = _small()
    print(f"B = 20, 3 features, 40,000 rounds: {small:.2f} µs a round")


def _numpy_features() -> list[str]:
    found: Any = np.show_config(mode="dicts")["SIMD Extensions"]
    return list(found["baseline"]) + list(found.get("found", []))


def _blas_core() -> str:
    """The kind of CPU that OpenBLAS has chosen its routines for, where it can be asked."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return "a CPU that it does not name"
    cores = set()
    for path in {line.split()[-1] for line in maps.splitlines() if "openblas" in line}:
        library = ctypes.CDLL(path)
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_"):
                ask = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
                if ask is not None:
                    ask.restype = ctypes.c_char_p
                    cores.add(ask().decode())
    return ", ".join(sorted(cores)) or "a CPU that it does not name"


def _ratios(ratios: Sequence[float]) -> str:
    widths = (7, 15, 10, 11, 12)
    return " ".join(f"{ratio:{width}.2f}" for ratio, width in zip(ratios, widths, strict=True))


def _small() -> float:
    """Microseconds a round where kernel values cost next to nothing."""
    rng = np.random.default_rng(0)
    rows = rng.random((40_000, 3))
    labels = np.where(rows.sum(axis=1) + 0.3 * rng.standard_normal(len(rows)) > 1.5, 1.0, -1.0)
    learner = Ahpatron(budget=20)
    times = [learning(learner, rows, labels, sigma=0.3).seconds for _ in range(TIMES)]
    return 1e6 * statistics.median(times) / len(rows)


def _line(folder: Path, data: Dataset) -> tuple[float, ...]:
    with open_source(str(folder / data.name)) as source:
        loaded = load(source, Preparation())
    order = np.random.default_rng([0, 0]).permutation(loaded.facts().rounds)
    stored, y = loaded.whole().rows, loaded.whole().labels[order]
    rows = stored.take(order) if isinstance(stored, CsrRows) else stored[order]
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    settings: dict[str, Any] = {"budget": data.budget, "epsilon": EPSILON, "ridge": data.ridge}
    times: dict[str, list[float]] = {}
    counts = set()
    for _ in range(TIMES):  # interleaved, so that a noisy minute hits all of them
        work = observed(settings, rows, y, data.sigma)
        limit = bare_pass(work, rows, data.sigma, data.budget)
        ours = learning(Ahpatron(**settings), rows, y, data.sigma)
        plus = learning(AhpatronPlus(budget=data.budget, ridge=data.ridge), rows, y, data.sigma)
        greedy = learning(Ahpatron(**settings, selection="greedy"), rows, y, data.sigma)
        counts |= {(run.mistakes, run.margin_updates) for run in (work, ours)}
        spent = {"limit": limit, "ours": ours.seconds, "plus": plus.seconds}
        spent["greedy"] = greedy.seconds
        for name, tuned in (("loop", False), ("tuned", True)):
            start = time.process_time()
            counts.add(ahpatron(dense, y, sigma=data.sigma, tuned=tuned, **settings))
            spent[name] = time.process_time() - start
        spent |= {part: work.parts[part] / work.seconds for part in PARTS}
        for name, seconds in spent.items():
            times.setdefault(name, []).append(seconds)
    median = {name: statistics.median(values) for name, values in times.items()}
    spread = (max(times["ours"]) - min(times["ours"])) / median["ours"]
    unit, each = median["ours"], 1e6 * median["ours"] / len(y)
    ratios = (unit / median["limit"], *(median[name] / unit for name in COLUMNS[1:]))
    print(
        f"{data.name.split('.')[0]:14} {_ratios(ratios)}   "
        + "  ".join(f"{median[part]:8.0%}" for part in PARTS)
        + f"  {len(y):7} {median['limit']:8.3f} {unit:8.3f} {each:11.2f} {spread:7.0%}"
        + ("" if len(counts) == 1 else f"  counts differ: {counts}"),
        flush=True,
    )
    return ratios


if __name__ == "__main__":
    main()
