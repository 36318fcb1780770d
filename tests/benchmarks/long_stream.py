"""Matrices of arow, metron, krls and projectron++ after a long stream: are they still right?

    python tests/benchmarks/long_stream.py [ROUNDS] [LEARNER]

For each learner: |S|, mistakes in the first and the last tenth of the stream, the error of K·Q - I
(Q is K^{-1}; arow and metron keep it until S is full), the smallest and the largest eigenvalue of C
or P, and how often a matrix was computed from scratch or repaired.
"""

from __future__ import annotations

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned

from ahpatron_cli.core import KRLS, Arow, Gaussian, Learner, Metron, Player, ProjectronPlusPlus
from ahpatron_cli.core.span import Symmetric

PIECE = 100_000


def full(matrix: Symmetric) -> np.ndarray:
    matrix.settle()
    lower = np.tril(matrix.A)
    return lower + np.tril(lower, -1).T


def piece(number: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square, labelled by a wave through it, every tenth label flipped."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, (rounds, 2))
    y = np.where(np.sin(5 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(rounds) < 0.1, -y, y)


def report(learner: Learner, rounds: int) -> None:
    player = Player(learner, Gaussian(sigma=0.5), horizon=rounds)
    rates = []
    for number in range(max(rounds // PIECE, 1)):
        before = player.tally.mistakes
        X, y = piece(number, min(PIECE, rounds))
        player.feed(X, y)
        rates.append(100 * (player.tally.mistakes - before) / len(y))
    f = player.f
    K = f.kernel.between(f.points, f.points)
    line = f"{learner.name:14s} |S| {f.size:4d}  mistakes {rates[0]:.2f} % then {rates[-1]:.2f} %"
    if f.spans:
        line += f"  |K·Q - I| {np.abs(K @ full(f.Q) - np.eye(f.size)).max():.1e}"
    for name in ("C", "P"):
        if hasattr(f, name):
            values = np.linalg.eigvalsh(full(getattr(f, name)))
            line += f"  {name} {values[0]:.1e} to {values[-1]:.1e}"
    print(line, f" drift {f.drift:.0e}, repaired {getattr(f, 'mended', 0)}", flush=True)


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    all_learners = (
        *(Arow(budget=100), Arow(budget=100, floor=1e-5), Metron(budget=100), Metron(budget=400)),
        *(KRLS(tolerance=0.001), KRLS(tolerance=1e-5), ProjectronPlusPlus(tolerance=0.01)),
    )
    for each in all_learners:
        if not sys.argv[2:] or each.name in sys.argv[2:]:
            report(each, total)
