"""Several classes: one learner per class or one for all, beside scikit-learn's linear learners.

    python tests/benchmarks/multiclass.py [digits] [spirals] [mixtures]

Prints Markdown: progressive mistakes in per cent, mean over three orders; each row is predicted
before its label is seen. `rest` is one learner per class, with B examples each or with B/k each
(the memory of `shared`), `shared` one learner with B. The same σ for all: of the median distance
times 1, 1/2, 1/4 and 1/8 the one that is best for `ahpatron+`, one learner per class, on a fourth
order.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import PassiveAggressiveClassifier, SGDClassifier

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.data.geometry import median_sigma

ORDERS, CHOICE_ORDER = 3, 3
LEARNERS = ("ahpatron", "ahpatron+", "arow")


def datasets() -> Iterator[tuple[str, Floats, Integers, int]]:
    """Name, rows, classes and budget."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y, 400
    rng = np.random.default_rng(1)
    arm, along = rng.integers(0, 5, 4000), rng.uniform(0.1, 1, 4000)
    angle = 2 * np.pi * (arm / 5 + 1.2 * along)
    X = along[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
    X += rng.normal(0, 0.02, X.shape)
    noisy = rng.random(4000) < 0.05
    yield "spirals", X, np.where(noisy, rng.integers(0, 5, 4000), arm), 200
    X, cluster = make_blobs(6000, n_features=10, centers=36, cluster_std=2.5, random_state=2)
    yield "mixtures", X, cluster % 12, 480


def order(number: int, rows: int) -> Integers:
    return np.random.default_rng([0, number]).permutation(rows)


def mistakes(
    name: str, multiclass: str, budget: int, sigma: float, X: Floats, y: Integers, orders: range
) -> tuple[float, float]:
    """In per cent, and µs of processor time per round."""
    rates, started = [], time.process_time()
    for number in orders:
        chosen = order(number, len(y))
        learner = REGISTRY[name](budget=budget, multiclass=multiclass)
        k = int(y.max()) + 1
        player = Player(learner, Gaussian(sigma=sigma), classes=k, horizon=len(y))
        player.feed(X[chosen], y[chosen].astype(float))
        rates.append(100 * player.tally.mistakes / len(y))
    spent = (time.process_time() - started) / len(orders) / len(y)
    return float(np.mean(rates)), 1e6 * spent


def linear(kind: type, X: Floats, y: Integers) -> float:
    """Progressive mistakes of a learner of scikit-learn, row by row, on standardised features."""
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    rates = []
    for number in range(ORDERS):
        chosen, model, wrong = order(number, len(y)), kind(random_state=0), 0
        model.partial_fit(X[chosen[:1]], y[chosen[:1]], classes=np.unique(y))
        for row in chosen[1:]:
            wrong += model.predict(X[row : row + 1])[0] != y[row]
            model.partial_fit(X[row : row + 1], y[row : row + 1])
        rates.append(100 * (wrong + 1) / len(y))
    return float(np.mean(rates))


def main() -> None:
    warnings.filterwarnings("ignore", category=FutureWarning)
    for title, X, y, budget in datasets():
        if sys.argv[1:] and title not in sys.argv[1:]:
            continue
        k, median = int(y.max()) + 1, median_sigma(X[:1000], "gaussian")
        assert isinstance(median, float)
        tried = range(CHOICE_ORDER, CHOICE_ORDER + 1)
        widths = [median / 2**power for power in range(4)]
        sigma = min(widths, key=lambda s: mistakes("ahpatron+", "rest", budget, s, X, y, tried)[0])
        fewer = 2 * max(budget // k // 2, 1)
        print(f"**{title}**: {len(y):,} rows, {k} classes, σ = {sigma:.3g}; AMR % (µs a round)\n")
        print(f"| | rest, B = {budget} each | rest, B = {fewer} each | shared, B = {budget} |")
        print("|---|---|---|---|")
        for name in LEARNERS:
            ways = (("rest", budget), ("rest", fewer), ("shared", budget))
            found = [mistakes(name, way, b, sigma, X, y, range(ORDERS)) for way, b in ways]
            cells = " | ".join(f"{rate:.2f} ({time:.0f})" for rate, time in found)
            print(f"| {name} | {cells} |", flush=True)
        kinds = (SGDClassifier, PassiveAggressiveClassifier)
        rates = [f"{kind.__name__} {linear(kind, X, y):.2f} %" for kind in kinds]
        print(f"\nscikit-learn, linear, `partial_fit` row by row: {', '.join(rates)}\n", flush=True)


if __name__ == "__main__":
    main()
