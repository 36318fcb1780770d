"""Exactness of the kept matrices after many rounds.

    python tests/benchmarks/exactness.py [ROUNDS]

arow, metron, krls and projectron++ after a million rounds: |S|, mistakes in the first and the last
tenth, the error of K·Q - I (Q is K^{-1}; arow and metron keep it until S is full), and the smallest
and the largest eigenvalue of C or P.
"""

from __future__ import annotations

import sys
from typing import Any

import common  # noqa: F401 - one BLAS thread, and the path to support
import numpy as np

from ahpatron_cli.core import KRLS, Arow, Gaussian, Metron, Player, ProjectronPlusPlus
from support.streams import full


def piece(number: int) -> tuple[Any, Any]:
    """Points in a square, labelled by a wave through it, every tenth label flipped."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, (10_000, 2))
    y = np.where(np.sin(5 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(len(y)) < 0.1, -y, y)


def main(rounds: int) -> None:
    for learner in (
        Arow(budget=100),
        Arow(budget=100, floor=1e-5),
        Metron(budget=100),
        Metron(budget=400),
        KRLS(tolerance=0.001),
        KRLS(tolerance=1e-5),
        ProjectronPlusPlus(tolerance=0.01),
    ):
        player = Player(learner, Gaussian(sigma=0.5), horizon=rounds)
        wrong = [0]
        for number in range(rounds // 10_000):
            player.feed(*piece(number))
            wrong.append(player.tally.mistakes)
        tenth = max(len(wrong) // 10, 1)
        f = player.f
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
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
