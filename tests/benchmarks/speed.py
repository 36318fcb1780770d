"""Ahpatron's learning time next to its limit and to a loop over single examples, in one run.

    python tests/benchmarks/speed.py [FOLDER [NAME...]]
    python tests/benchmarks/speed.py learners FOLDER

Without FOLDER the sample data are used; with it, the paper's data sets (NAME.svm.xz), each with
the paper's settings (ε = 0.5), in one permutation. The *limit* is what the same kernel values and
factorisations cost with no learning: per block one product and one `exp`, per halving one Cholesky
factorisation. `loop` is the fastest loop over single examples that we know how to write in NumPy.
Times are medians of processor time; `spread` is the range of the learning times in percent of their
median. All passes must make the same mistakes.

`exp` is several times faster with AVX-512, so the ratios depend on it; the first lines print which
features NumPy and BLAS use. NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" and
OPENBLAS_CORETYPE=Haswell do without it.

`learners`: time per round of every learner at B = D = 400 on ijcnn1 and a9a, and relative to
ahpatron: the least of three passes; one over 4 seconds is not repeated, one over 30 seconds is cut.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import DATASETS, SAMPLES, Dataset, alternate, one_pass, seconds, shuffled
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_info

from ahpatron_cli.core import BLOCK, REGISTRY, Ahpatron, CsrRows, Gaussian, Learner, Player
from ahpatron_cli.core.rows import sliced

TIMES = 5
LOWEST = -700.0
"""`exp` below this is many times slower, and 0 for all that matters."""
SETS = (Dataset("rings", 0.1, 100), Dataset("breast_cancer", 1, 50), Dataset("sparse_text", 1, 100))
VARIANTS = [("bsgd", {"maintenance": word}) for word in ("merge", "project")]
PATIENCE = 4.0
LONGEST = 30.0
PIECE = 1024
COLUMNS = ("limit", "ahpatron+", "loop")


def features() -> str:
    """What NumPy and the BLAS libraries use of this CPU."""
    from numpy._core._multiarray_umath import __cpu_features__ as cpu

    disabled = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split()
    config: Any = np.show_config(mode="dicts")
    simd = config["SIMD Extensions"]
    used = [name for name in simd.get("found", []) if cpu.get(name) and name not in disabled]
    lines = [f"NumPy {np.__version__}: {' '.join([*simd['baseline'], *used])}"]
    for pool in threadpool_info():
        parts = (pool.get(key) for key in ("internal_api", "version", "architecture"))
        lines.append(" ".join(str(part) for part in parts if part))
    return "\n".join(lines)


def loop(X: Any, y: Any, *, sigma: float, budget: int, epsilon: float, ridge: float) -> Any:
    """|M_T| and |N_T| of the paper's Ahpatron: one product and one `exp` a round."""
    radius = math.sqrt(budget) / 2
    half = budget // 2
    step = radius / math.sqrt(4 * budget)
    S = np.zeros((budget, X.shape[1]))
    squares = np.zeros(budget)
    a = np.zeros(budget)
    gram = np.zeros((budget, budget))
    size = 0
    norm_squared = 0.0
    mistakes = 0
    margin_updates = 0
    for x, label in zip(X, y.tolist(), strict=True):
        square = x @ x
        k = S[:size] @ x
        k *= 2.0
        k -= squares[:size]
        k -= square
        np.minimum(k, 0.0, out=k)
        k /= 2 * sigma * sigma
        np.exp(k, out=k)
        score = float(a[:size] @ k)
        margin = label * score
        mistakes += (score >= 0) != (label > 0)
        if margin >= (1 - epsilon) * (1 - 1e-10):  # 1 - ε up to rounding
            continue
        margin_updates += margin > 0
        if size == budget:
            sizes = np.abs(a)
            kept = np.sort(np.argsort(-np.round(sizes / sizes.max(), 10), kind="stable")[:half])
            gone = np.setdiff1d(np.arange(budget), kept)
            K2 = gram[np.ix_(kept, kept)]
            before = math.sqrt(a @ gram @ a)
            regular = K2 + ridge * np.eye(half)
            a2 = a[kept] + np.linalg.solve(regular, gram[np.ix_(kept, gone)] @ a[gone])
            a[:half] = a2 * (before / math.sqrt(a2 @ K2 @ a2))
            S[:half] = S[kept]
            squares[:half] = squares[kept]
            gram[:half, :half] = K2
            k = k[kept]
            size = half
            norm_squared = before * before
            margin = label * float(a[:half] @ k)
        S[size] = x
        squares[size] = square
        a[size] = step * label
        gram[size, :size] = gram[:size, size] = k
        gram[size, size] = 1.0
        size += 1
        norm_squared += step * (2 * margin + step)
        if norm_squared > radius * radius:
            a[:size] *= radius / math.sqrt(norm_squared)
            norm_squared = radius * radius
    return mistakes, margin_updates


def learn(name: str, params: Any, sigma: float, rows: Any, y: Any, counts: set[Any]) -> float:
    """Processor time of a pass; what it counted is added to `counts`."""
    player, spent = one_pass(name, params, sigma, rows, y)
    counts.add((player.tally.mistakes, player.tally.margin_updates))
    return spent


def bare_pass(learner: Learner, rows: Any, y: Any, sigma: float) -> Callable[[], None]:
    """A function that computes all kernel values and factorisations of a pass, and learns nothing.

    |S| at the beginning of each block is observed in a pass of its own.
    """
    player = Player(learner, Gaussian(sigma=sigma), horizon=len(y))
    sizes = []
    for start in range(0, len(y), BLOCK):
        sizes.append(player.size or 0)
        player.feed(sliced(rows, slice(start, min(start + BLOCK, len(y)))), y[start:][:BLOCK])
    halvings = int(player.learner.statistics()["halvings"])
    spd = np.eye(learner.params()["budget"] // 2) + 0.01
    values = min(
        ways(rows, sigma), key=lambda way: seconds(lambda: [way(300, 0) for _ in range(30)])
    )

    def compute() -> None:
        for number, size in enumerate(sizes):
            values(size + BLOCK, number * BLOCK)  # κ(S, X) and the block's own kernel matrix
        for _ in range(halvings):
            dpotrf(spd, lower=1)

    return compute


def ways(rows: Any, sigma: float) -> list[Callable[[int, int], Any]]:
    """Ways to compute κ between the first rows and a block: one product and one `exp`."""
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    scaled = (dense - dense[0]) / sigma
    norms = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
    ones = np.ones(len(scaled))
    left = np.column_stack([scaled, norms, ones])
    right = np.column_stack([scaled, ones, norms])
    clips = -4 * norms.min() > -LOWEST

    def exp(exponents: Any) -> Any:
        if clips:
            np.maximum(exponents, LOWEST, out=exponents)
        return np.exp(exponents, out=exponents)

    found = [lambda count, first: exp(left[:count] @ right[first : first + BLOCK].T)]
    if isinstance(rows, CsrRows):
        matrix = csr_matrix(left)
        found.append(lambda count, first: exp(matrix[:count] @ right[first : first + BLOCK].T))
    return found


def measure(data: Dataset, rows: Any, y: Any) -> list[float]:
    """Print a line; our time as a multiple of the limit, and the other times as one of ours."""
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    settings: dict[str, Any] = {"budget": data.budget, "epsilon": 0.5, "ridge": data.ridge}
    counts: set[Any] = set()
    bare = bare_pass(Ahpatron(**settings), rows, y, data.sigma)
    plus = {"budget": data.budget, "ridge": data.ridge}
    times = alternate(
        {
            "limit": lambda: seconds(bare),
            "ours": lambda: learn("ahpatron", settings, data.sigma, rows, y, counts),
            "ahpatron+": lambda: learn("ahpatron+", plus, data.sigma, rows, y, set()),
            "loop": lambda: seconds(
                lambda: counts.add(loop(dense, y, sigma=data.sigma, **settings))
            ),
        },
        TIMES,
    )
    median = {name: statistics.median(values) for name, values in times.items()}
    ours = median["ours"]
    spread = (max(times["ours"]) - min(times["ours"])) / median["ours"]
    ratios = [ours / median["limit"], *(median[name] / ours for name in COLUMNS[1:])]
    shown = "".join(f"{ratio:11.2f}" for ratio in ratios)
    each = f"{len(y):9,}{1e6 * ours / len(y):9.2f}{spread:8.0%}"
    differ = "" if len(counts) == 1 else f"  counts differ: {counts}"
    print(f"{data.name:14}{shown}{each}{differ}", flush=True)
    return ratios


def every_learner(folder: Path) -> None:
    for name, sigma, rounds in (("ijcnn1", 1.0, 40_000), ("a9a", 2.0, 20_000)):
        rows, y = shuffled(folder, name, rounds)
        unit = 0.0
        for learner, params in [*((learner, {}) for learner in REGISTRY), *VARIANTS]:
            sizes = dict.fromkeys({"budget", "features"} & REGISTRY[learner].specs().keys(), 400)
            times = []
            while len(times) < 3 and sum(times) < PATIENCE:
                made = REGISTRY[learner](**sizes, **params)
                player = Player(made, Gaussian(sigma=sigma), horizon=len(y))
                start = time.process_time()
                for first in range(0, len(y), PIECE):
                    piece = slice(first, min(first + PIECE, len(y)))
                    player.feed(sliced(rows, piece), y[piece])
                    if time.process_time() - start > LONGEST:
                        break
                times.append(time.process_time() - start)
            done = player.tally.rounds
            best = 1e6 * min(times) / done
            unit = unit or best
            cells = f"{best:8.2f} µs {best / unit:8.2f} x ahpatron  |S| {player.size}"
            cut = "" if done == len(y) else f", {done} rounds"
            print(f"{name:8} {' '.join((learner, *params.values())):18} {cells}{cut}", flush=True)


def main() -> None:
    names = sys.argv[2:]
    print(features())
    heads = ("x limit", "plus/ours", "loop/ours")
    shown = "".join(f"{head:>11}" for head in heads)
    print(f"{'data set':14}{shown}{'rounds':>9}{'µs each':>9}{'spread':>8}")
    ratios = []
    for data in DATASETS if sys.argv[1:] else SETS:
        if not names or data.name in names:
            folder = Path(sys.argv[1]) if sys.argv[1:] else SAMPLES
            ratios.append(measure(data, *shuffled(folder, data.name)))
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    print(f"{'geometric mean':14}" + "".join(f"{mean:11.2f}" for mean in means))


if __name__ == "__main__":
    every_learner(Path(sys.argv[2])) if sys.argv[1:2] == ["learners"] else main()
