"""Several classes: one learner per class or one for all, next to scikit-learn's linear learners.

    python tests/benchmarks/multiclass.py [digits] [spirals] [mixtures]

Prints Markdown: progressive mistakes in percent, mean over three permutations; each row is
predicted before its label is seen. `rest` is one learner per class, with B examples each or with
B/k each (the memory of `shared`), `shared` one learner with B. The same σ for all: of the median
distance times 1, 1/2, 1/4 and 1/8 the one that is best for `ahpatron+`, one learner per class, on a
fourth permutation.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import one_pass, permutation
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import PassiveAggressiveClassifier, SGDClassifier

ORDERS = 3


def datasets() -> Iterator[tuple[str, Any, Any, int]]:
    """Name, rows, classes and budget."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y, 400
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 5, 4000)
    along = rng.uniform(0.1, 1, 4000)
    angle = 2 * np.pi * (arm / 5 + 1.2 * along)
    X = along[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
    X += rng.normal(0, 0.02, X.shape)
    noisy = rng.random(4000) < 0.05
    yield "spirals", X, np.where(noisy, rng.integers(0, 5, 4000), arm), 200
    X, cluster = make_blobs(6000, n_features=10, centers=36, cluster_std=2.5, random_state=2)
    yield "mixtures", X, cluster % 12, 480


def ours(
    name: str, way: str, budget: int, sigma: float, X: Any, y: Any, orders: range
) -> tuple[float, float]:
    """Mistakes in percent, and µs of processor time per round."""
    wrong = spent = 0.0
    for number in orders:
        order = permutation(len(y), number)
        params = {"budget": budget, "multiclass": way}
        stream = X[order], y[order].astype(float)
        player, took = one_pass(name, params, sigma, *stream, classes=int(y.max()) + 1)
        spent += took
        wrong += player.tally.mistakes
    return 100 * wrong / len(orders) / len(y), 1e6 * spent / len(orders) / len(y)


def linear(kind: type, X: Any, y: Any) -> float:
    """Mistakes of a learner of scikit-learn, row by row, on standardised features."""
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    wrong = 0
    for number in range(ORDERS):
        first, *others = permutation(len(y), number)
        model = kind(random_state=0)
        model.partial_fit(X[[first]], y[[first]], classes=np.unique(y))
        wrong += 1
        for row in others:
            wrong += model.predict(X[[row]])[0] != y[row]
            model.partial_fit(X[[row]], y[[row]])
    return 100 * wrong / ORDERS / len(y)


def main() -> None:
    warnings.filterwarnings("ignore", category=FutureWarning)
    for title, X, y, budget in datasets():
        if sys.argv[1:] and title not in sys.argv[1:]:
            continue
        k = int(y.max()) + 1
        tried = range(ORDERS, ORDERS + 1)
        widths = [float(np.median(pdist(X[:1000]))) / 2**power for power in range(4)]
        sigma = min(widths, key=lambda s: ours("ahpatron+", "rest", budget, s, X, y, tried)[0])
        fewer = 2 * max(budget // k // 2, 1)
        print(f"**{title}**: {len(y):,} rows, {k} classes, σ = {sigma:.3g}; AMR % (µs per round)\n")
        print(f"| | rest, B = {budget} each | rest, B = {fewer} each | shared, B = {budget} |")
        print("|---|---|---|---|")
        for name in ("ahpatron", "ahpatron+", "arow", "metron"):
            ways = (("rest", budget), ("rest", fewer), ("shared", budget))
            found = [ours(name, way, B, sigma, X, y, range(ORDERS)) for way, B in ways]
            cells = " | ".join(f"{rate:.2f} ({time:.0f})" for rate, time in found)
            print(f"| {name} | {cells} |", flush=True)
        kinds = (SGDClassifier, PassiveAggressiveClassifier)
        rates = [f"{kind.__name__} {linear(kind, X, y):.2f} %" for kind in kinds]
        print(f"\nscikit-learn, linear, `partial_fit` row by row: {', '.join(rates)}\n", flush=True)


if __name__ == "__main__":
    main()
