"""Exactness on long streams: resumed passes on the paper's data, matrices after many rounds.

    python tests/benchmarks/exactness.py resumed FOLDER [ROWS]
    python tests/benchmarks/exactness.py long [ROUNDS]

`resumed`: each learner runs on the first ROWS rows of a permutation of each file (NAME.svm.xz in
FOLDER), in one piece, and saved and resumed after half of them: at a multiple of 64, where all
scores must be identical, and five rows later, where the counts must be equal. Printed are the cases
that differ, and a summary.

`long`: arow, metron, krls and projectron++ after a million rounds: |S|, mistakes in the first and
the last tenth, the error of K·Q - I (Q is K^{-1}; arow and metron keep it until S is full), the
smallest and the largest eigenvalue of C or P, and how often a matrix was repaired.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import DATASETS, shuffled

from ahpatron_cli.core import KRLS, REGISTRY, Arow, Gaussian, Metron, Player, ProjectronPlusPlus
from ahpatron_cli.core.rows import rows_of
from support.streams import full

LEFT_OUT = ("krls", "polk", "skegd", "tighter-perceptron")  # slow here; tests/core has them


def counts(player: Player) -> tuple[Any, ...]:
    tally = player.tally
    return tally.mistakes, tally.updates, tally.margin_updates, player.size


def resumed(folder: Path, rows: int) -> None:
    equal = {"identical": 0, "same counts": 0}
    names = [name for name in REGISTRY if name not in LEFT_OUT]
    for data in DATASETS:
        X, y = shuffled(folder, data.name, rows)
        for name in names:
            kind, kernel = REGISTRY[name], Gaussian(sigma=data.sigma)
            learner = kind(**({"budget": data.budget} if "budget" in kind.specs() else {}))
            whole = Player(learner, kernel, horizon=rows)
            scores = whole.feed(X, y)
            half = len(y) // 128 * 64
            for cut, what in ((half, "identical"), (half + 5, "same counts")):
                first = Player(learner, kernel, horizon=rows)
                begun = first.feed(rows_of(X, slice(0, cut)), y[:cut])
                second = Player(kind(**first.learner.params()), kernel, seed=(99,))
                second.load_state_dict(copy.deepcopy(first.state_dict()))
                both = np.append(begun, second.feed(rows_of(X, slice(cut, len(y))), y[cut:]))
                same = counts(whole) == counts(second)
                same &= cut != half or np.array_equal(both, scores)
                equal[what] += same
                if not same:
                    print(f"{data.name} {name} cut at {cut}: {counts(whole)} {counts(second)}")
    print(f"{len(DATASETS) * len(names)} cases: {equal}")


def piece(number: int) -> tuple[Any, Any]:
    """Points in a square, labelled by a wave through it, every tenth label flipped."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, (10_000, 2))
    y = np.where(np.sin(5 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(len(y)) < 0.1, -y, y)


def long(rounds: int) -> None:
    for learner in (
        *(Arow(budget=100), Arow(budget=100, floor=1e-5), Metron(budget=100), Metron(budget=400)),
        *(KRLS(tolerance=0.001), KRLS(tolerance=1e-5), ProjectronPlusPlus(tolerance=0.01)),
    ):
        player, wrong = Player(learner, Gaussian(sigma=0.5), horizon=rounds), [0]
        for number in range(rounds // 10_000):
            player.feed(*piece(number))
            wrong.append(player.tally.mistakes)
        tenth, f = max(len(wrong) // 10, 1), player.f
        rates = [
            100 * (part[-1] - part[0]) / 10_000 / tenth
            for part in (wrong[: tenth + 1], wrong[-tenth - 1 :])
        ]
        line = f"{learner.name:13} |S| {f.size:4d}  mistakes {rates[0]:.2f} %, {rates[1]:.2f} %"
        if f.spans:
            K = f.kernel.between(f.points, f.points)
            line += f"  |K·Q - I| {np.abs(K @ full(f.Q) - np.eye(f.size)).max():.1e}"
        for name in ("C", "P"):
            if hasattr(f, name):
                values = np.linalg.eigvalsh(full(getattr(f, name)))
                line += f"  {name} {values[0]:.1e} to {values[-1]:.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    how, *rest = sys.argv[1:]
    if how == "resumed":
        resumed(Path(rest[0]), int(rest[1]) if rest[1:] else 6000)
    else:
        long(int(rest[0]) if rest else 1_000_000)
